"""What the leader knows at a capture, as far as captures tell.

The leader of the modular load manager of Pulsar 4.2.4 takes a sample of every bundle with each load report that
arrives, but writes its averages only every `loadBalancerResourceQuotaUpdateIntervalMinutes` (15). In between, what was
captured stands still; here it goes on with one sample for each broker that has reported anew. It differs where a broker
reported twice between two captures.
"""

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from planner.capture.estimate import average_columns, carried_on, new_reports, with_averages
from planner.cluster.arrays import BoolArray, Int64Array, frozen
from planner.cluster.load_manager import LoadManager
from planner.cluster.pulsar_json import BUNDLE_STATS
from planner.cluster.snapshot import Snapshot
from planner.cluster.tables import BundleTable
from planner.pulsar.load.averages import broker_averages, refresh
from planner.pulsar.load.top_bundles import StatisticsMap, undecided, with_top_ranks
from planner.pulsar.manager.cycle import the_other_way_round

_AVERAGES = ("short_term_", "long_term_")
_MOST_PAIRS = 5


def after_reports(snapshot: Snapshot, reports: int) -> Snapshot:
    """Return a snapshot whose bundles have averages with this many further samples of their current values."""
    bundles = snapshot.bundles
    for _ in range(reports):
        bundles = refresh(bundles)
    return snapshot.with_columns(bundles=bundles)


def leader_view(known: Snapshot, before: Snapshot, after: Snapshot) -> Snapshot:
    """Return a capture as the leader knows the cluster, from the one before as known then (`known`) and as captured.

    Averages that have not changed since the capture before go on from what was known then; others are as captured.
    """
    if after.info.load_manager is not LoadManager.MODULAR:
        return after
    return _with_brokers(known, before, after, _with_samples(known, before, after))


def statistics_maps(known: Mapping[str, StatisticsMap], view: Snapshot) -> Mapping[str, StatisticsMap]:
    """Return what is known of the map of each broker of the extensible load manager after one more capture."""
    if view.info.load_manager is not LoadManager.EXTENSIBLE:
        return known
    maps = {}
    for broker, (name, since_ms) in enumerate(zip(view.brokers.name, view.brokers.started_at_ms.tolist(), strict=True)):
        before, rows = known.get(name), view.bundles_of(broker)
        if before is None or before.since_ms != since_ms:
            before = StatisticsMap(since_ms)
        there = [view.bundle_names[row] for row in rows[view.bundles.has_stats[rows]].tolist()]
        came_ms = {bundle: before.came_ms.get(bundle, view.info.captured_at_ms) for bundle in there}
        maps[name] = StatisticsMap(since_ms, max(before.most, len(there)), came_ms)
    return maps


def with_reported_order(view: Snapshot, maps: Mapping[str, StatisticsMap]) -> Snapshot:
    """Return a capture with top bundles in the order in which brokers visit them; those that were read stay.

    The order decides between equally loaded bundles. It goes by when they came, and a broker's map never shrinks.
    """
    if view.info.load_manager is not LoadManager.EXTENSIBLE:
        return view
    worked_out = with_top_ranks(view, view.settings)
    if not np.array_equal(worked_out.bundles.top_rank, view.bundles.top_rank):
        return view
    return with_top_ranks(view, view.settings, maps=maps)


def other_orders(view: Snapshot, maps: Mapping[str, StatisticsMap], bundles: AbstractSet[str]) -> Iterator[Snapshot]:
    """Yield a capture with equals in other orders, in which they may have come to their broker: no capture tells it.

    Args:
        view: The capture.
        maps: What is known of the maps of brokers, by broker id.
        bundles: Those whose place among their equals matters.
    """
    if view.info.load_manager is not LoadManager.EXTENSIBLE:
        yield the_other_way_round(view)
        return
    at = {view.bundle_position[bundle] for bundle in bundles if bundle in view.bundle_position}
    pairs = [pair for pair in undecided(view, view.settings, maps) if not at.isdisjoint(pair)][:_MOST_PAIRS]
    for count in range(1, len(pairs) + 1):
        for chosen in combinations(pairs, count):
            rank = view.bundles.top_rank.copy()
            for one, other in chosen:
                rank[[one, other]] = rank[[other, one]]
            yield view.with_columns(bundles=replace(view.bundles, top_rank=frozen(rank)))


def _with_samples(known: Snapshot, before: Snapshot, after: Snapshot) -> Snapshot:
    """Return a capture with the averages of bundles gone on."""
    rows = np.array([before.bundle_position.get(name, -1) for name in after.bundle_names], dtype=np.int64)
    stands = _unchanged(before.bundles, after.bundles, rows)
    reports, written_ms = new_reports(before, after), after.info.averages_written_ms
    written = sum(after.brokers.updated_at_ms[row] <= written_ms for row in reports) if written_ms else len(reports)
    bundles = after.bundles
    if written < len(reports) and not stands.all():
        fresh = ~stands & bundles.has_data & ~bundles.averages_estimated
        gone_on = carried_on(after, before, rows, bundles, reports, known=written)
        bundles = with_averages(bundles, fresh, gone_on)
    if stands.any():
        averages = with_averages(after.bundles, stands, known.bundles, rows)
        bundles = with_averages(bundles, stands, carried_on(after, before, rows, averages, reports))
    return after if bundles is after.bundles else after.with_columns(bundles=bundles)


def _with_brokers(known: Snapshot, before: Snapshot, after: Snapshot, view: Snapshot) -> Snapshot:
    """Return the view of a capture with the averages of brokers gone on, too; arguments are those of `leader_view`.

    The leader sums up those of the bundles that a broker reports, with each load report, and writes the sums as seldom
    as those of bundles. What the sums have beyond the captured bundles stays as it was written.
    """
    place = before.brokers.position
    rows = np.array([place.get(name, -1) for name in after.brokers.name], dtype=np.int64)
    was, written, now = (broker_averages(s) for s in (known, with_owners_of(before, after), view))
    columns: dict[str, Any] = {}
    for name, sums in now.items():
        column = getattr(after.brokers, name)
        if np.isnan(column).all():
            continue
        stands = (rows >= 0) & (np.append(getattr(before.brokers, name), np.nan)[rows] == column)
        beyond_then = (np.append(getattr(known.brokers, name), np.nan) - np.append(was[name], 0.0))[rows]
        beyond = np.maximum(np.where(stands, beyond_then, column - written[name]), 0.0)
        columns[name] = frozen(beyond + sums)
    return view.with_columns(brokers=replace(view.brokers, **columns)) if columns else view


def with_owners_of(before: Snapshot, after: Snapshot) -> Snapshot:
    """Return a capture with the owners of an earlier one, where the broker is still there."""
    names = (*before.brokers.name, "")
    owners = dict(zip(before.bundle_names, before.bundles.owner.tolist(), strict=True))
    place = after.brokers.position
    rows = zip(after.bundle_names, after.bundles.owner.tolist(), strict=True)
    owner = [place.get(names[owners[name]], now) if name in owners else now for name, now in rows]
    return after.with_owner(np.array(owner, dtype=np.int32))


def at_decision(view: Snapshot, later: Snapshot, moment_ms: int) -> Snapshot:
    """Return what the leader knew at a moment between two captures, from the views of both.

    Of brokers that reported after the first one and not after the moment, the later capture shows the report. Owners
    are those of the first one.
    """
    rows = np.array([view.brokers.position.get(name, -1) for name in later.brokers.name], dtype=np.int64)
    was, now = view.brokers.updated_at_ms, later.brokers.updated_at_ms
    fresh = [
        (int(row), at)
        for at, row in sorted(enumerate(rows.tolist()), key=lambda one: now[one[0]])
        if row >= 0 and was[row] < now[at] <= moment_ms and later.brokers.has_load_data[at]
    ]
    for row, at in fresh:
        view = _after_report(view, later, row, at)
    return view


def _after_report(view: Snapshot, later: Snapshot, row: int, at: int) -> Snapshot:
    """Return a capture after one broker has reported; it is in this row, and in the row `at` of the later capture."""
    reported = [
        name
        for name in view.brokers.__dataclass_fields__
        if not name.startswith(_AVERAGES) and isinstance(getattr(view.brokers, name), np.ndarray)
    ]
    brokers = replace(view.brokers, **_taken(view.brokers, later.brokers, [row], [at], reported))
    names, bundles = view.bundle_names, view.bundles
    place = [
        (i, j)
        for i in np.flatnonzero(bundles.owner == row).tolist()
        if (j := later.bundle_position.get(names[i], -1)) >= 0 and later.bundles.has_stats[j]
    ]
    if place:
        here, there = (np.array(column) for column in zip(*place, strict=True))
        bundles = replace(bundles, **_taken(bundles, later.bundles, here, there, BUNDLE_STATS.values()))
    changed = view.with_columns(brokers=brokers, bundles=bundles)
    return after_reports(changed, 1) if view.info.load_manager is LoadManager.MODULAR else changed


def _taken(mine: Any, theirs: Any, here: Any, there: Any, names: Iterable[str]) -> dict[str, Any]:
    """Return columns in which some rows are those of another table."""
    columns: dict[str, Any] = {}
    for name in names:
        column = getattr(mine, name).copy()
        column[here] = getattr(theirs, name)[there]
        columns[name] = frozen(column)
    return columns


def with_loads_of(view: Snapshot, later: Snapshot, maps: Mapping[str, StatisticsMap]) -> Snapshot:
    """Return a later capture with the owners of an earlier one, and the top bundles that brokers report then."""
    loads = with_owners_of(view, later)
    if later.info.load_manager is LoadManager.EXTENSIBLE and with_reported_order(later, maps) is not later:
        return with_top_ranks(loads, loads.settings, maps=maps)
    return loads


def _unchanged(before: BundleTable, after: BundleTable, rows: Int64Array) -> BoolArray:
    """Say which bundles have the averages that they had. Shape (bundles,)."""
    same: BoolArray = (rows >= 0) & after.has_data & ~after.averages_estimated
    same &= np.append(before.has_data, False)[rows]
    for name in average_columns(after):
        same &= np.append(getattr(before, name), 0)[rows] == getattr(after, name)
    return same
