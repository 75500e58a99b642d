"""Averages of bundles from repeated captures, where nobody may read those of the leader.

Mirrors what `ModularLoadManagerImpl` of Pulsar 4.2.4 does with each load report that changes: one sample of every
bundle. It differs in that the leader may have seen reports that came and went between two captures, and that the
samples before the first capture are unknown. What is estimated is therefore marked as such.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from planner.cluster.arrays import BoolArray, Int64Array, frozen
from planner.cluster.load_manager import LoadManager
from planner.cluster.pulsar_json import BUNDLE_STATS
from planner.cluster.snapshot import Snapshot
from planner.cluster.tables import BundleTable
from planner.formats.validate import fitting_notes
from planner.pulsar.load.averages import refresh

_MOST_REFRESHES = 1_000
_CARRIED = ("short_term_", "long_term_")


def with_estimated_averages(snapshot: Snapshot, before: Snapshot | None) -> Snapshot:
    """Return a snapshot whose estimated averages go on from those of the capture before, None for the first one.

    Each broker whose report is a new one counts as one refresh of the leader, which takes the current values of every
    bundle as a sample. Averages that were read are left as they are, and so are those of bundles that are new.
    """
    estimated = snapshot.bundles.averages_estimated
    if before is None or snapshot.info.load_manager is LoadManager.EXTENSIBLE or not estimated.any():
        return snapshot
    earlier = np.array([before.bundle_position.get(name, -1) for name in snapshot.bundle_names], dtype=np.int64)
    known = estimated & (earlier >= 0)
    known &= before.bundles.has_data[earlier] & before.bundles.averages_estimated[earlier]
    if not known.any():
        return snapshot
    reports = new_reports(before, snapshot)
    averages = with_averages(snapshot.bundles, known, before.bundles, earlier)
    gone_on = carried_on(snapshot, before, earlier, averages, reports)
    bundles = with_averages(snapshot.bundles, known, gone_on)
    apart_s = (snapshot.info.captured_at_ms - before.info.captured_at_ms) / 1000
    note = (
        f"Averages of {int(known.sum()):,} bundles are estimated from repeated captures, the last one "
        f"{apart_s:,.0f} s earlier with {len(reports)} new load reports since. The leader's averages may "
        "differ."
    )
    info = replace(snapshot.info, warnings=fitting_notes((note, *snapshot.info.warnings)))
    return replace(snapshot, info=info, bundles=bundles)


def average_columns(bundles: BundleTable) -> list[str]:
    """Return the names of the columns that hold short-term and long-term averages."""
    return [name for name in bundles.__dataclass_fields__ if name.startswith(_CARRIED)]


def carried_on(
    after: Snapshot,
    before: Snapshot,
    rows: Int64Array,
    averages: BundleTable,
    reports: Sequence[int],
    *,
    known: int = 0,
) -> BundleTable:
    """Return bundles whose averages go on from others, with a sample of all bundles for each load report.

    A report brings the current values of its broker's bundles; those of the others are the earlier ones until theirs.
    A bundle that has moved begins anew when its old broker reports without it before its new one does.

    Args:
        after: The cluster with the bundles.
        before: The same earlier, with the earlier values.
        rows: The row of each bundle there; -1 for none. Shape (bundles,).
        averages: The averages from which they go on, in the order of `after`.
        reports: Rows of the brokers that reported, in the order of their reports.
        known: How many of these the averages hold already.
    """
    now, current = after.bundles, tuple(BUNDLE_STATS.values())
    place = np.array([after.brokers.position.get(name, -1) for name in before.brokers.name] + [-1], dtype=np.int64)
    reported = (rows >= 0) & np.append(before.bundles.has_stats, False)[rows]
    teller = np.where(reported, place[np.append(before.bundles.owner, -1)[rows]], -1)
    values = {name: np.append(getattr(before.bundles, name), 0)[rows] for name in current}
    bundles = replace(averages, **_where(reported, values, now))
    for number, broker in enumerate(reports):
        theirs = {name: getattr(bundles, name) for name in current}
        bundles = replace(bundles, **_where(now.owner != broker, theirs, now))
        its = (now.owner == broker) & now.has_stats
        teller = np.where(its, broker, np.where(teller == broker, -1, teller))
        if number >= known:
            bundles = refresh(replace(bundles, has_stats=frozen(teller >= 0)))
    return bundles


def with_averages(
    bundles: BundleTable, where: BoolArray, source: BundleTable, rows: Int64Array | None = None
) -> BundleTable:
    """Return bundles some of which have the averages of others, in the same rows unless others are given."""
    columns = {name: getattr(source, name) for name in average_columns(bundles)}
    if rows is not None:
        columns = {name: column[rows] for name, column in columns.items()}
    return replace(bundles, **_where(where, columns, bundles))


def _where(chosen: BoolArray, columns: Mapping[str, Any], others: BundleTable) -> dict[str, Any]:
    """Return columns, and where they are not chosen those of a table."""
    return {name: frozen(np.where(chosen, column, getattr(others, name))) for name, column in columns.items()}


def new_reports(before: Snapshot, after: Snapshot) -> tuple[int, ...]:
    """Return the rows of the brokers that have reported since an earlier capture, in the order of their reports."""
    updated = dict(zip(before.brokers.name, before.brokers.updated_at_ms.tolist(), strict=True))
    times = after.brokers.updated_at_ms.tolist()
    fresh = (row for row, name in enumerate(after.brokers.name) if updated.get(name) != times[row])
    return tuple(sorted(fresh, key=times.__getitem__))[:_MOST_REFRESHES]
