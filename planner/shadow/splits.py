"""Splits that shadow mode predicts from one capture to the next, and those that happened.

Mirrors when Pulsar 4.2.4 looks for bundles to split: the leader of the modular load manager after each refresh of the
load reports; each broker of the extensible one every `loadBalancerSplitIntervalMinutes` since it started, with a count
for each bundle above a limit. It differs in that a broker begins to check some seconds after its start, which nobody
tells, so that a count may be one check early.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from planner.cluster.arrays import FloatArray, frozen
from planner.cluster.load_manager import LoadManager
from planner.cluster.names import (
    AUTO_BUNDLE_SPLIT_ENABLED,
    LOAD_BALANCER_ENABLED,
    REPORT_UPDATE_MIN_INTERVAL_MILLIS,
    SHEDDING_INTERVAL_MINUTES,
    SPLIT_INTERVAL_MINUTES,
)
from planner.cluster.pulsar_json import RATES
from planner.cluster.snapshot import Snapshot
from planner.cluster.units import MS_PER_MIN
from planner.pulsar.splitting import automatic_extensible, automatic_modular
from planner.pulsar.splitting.automatic_extensible import AutoSplitState
from planner.pulsar.splitting.limits import LIMITS
from planner.pulsar.splitting.request import namespace_boundaries
from planner.shadow.record import Cause, Deviation, Split
from planner.shadow.view import after_reports

_REPORTS = 4
_GAPS = 3
_LEAST_WAIT_MS = 20_000
_NEARLY = 0.8


@dataclass(frozen=True, slots=True)
class _Pending:
    """A split that was predicted and has not happened yet.

    Attributes:
        split: What was predicted last.
        since_ms: When it was predicted first.
        last_ms: When it was predicted last; for a while after that it may still show.
        reported_overdue: Whether it is on record as overdue.
    """

    split: Split
    since_ms: int
    last_ms: int
    reported_overdue: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class SplitShadow:
    """What shadow mode knows of automatic splits.

    Attributes:
        hits: Extensible: what each broker counts, by broker id.
        pending: Splits that were predicted lately, by bundle.
        at_ms: The capture that it was predicted from last.
        broken: Bundles that appeared in the captures of the last while, and when; their owners are still settling.
    """

    hits: Mapping[str, AutoSplitState] = field(default_factory=dict)
    pending: Mapping[str, _Pending] = field(default_factory=dict)
    at_ms: int = 0
    broken: Mapping[str, int] = field(default_factory=dict)

    @property
    def predicted(self) -> tuple[Split, ...]:
        """The splits that come next."""
        return tuple(pending.split for pending in self.pending.values() if pending.last_ms == self.at_ms)


@dataclass(frozen=True, slots=True)
class SplitsSeen:
    """What two captures tell about splits.

    Attributes:
        predicted: Splits that happened and were predicted, and those that are overdue.
        actual: Splits that happened.
        differences: What was not as predicted.
    """

    predicted: tuple[Split, ...] = ()
    actual: tuple[Split, ...] = ()
    differences: tuple[Deviation, ...] = ()


def actual_splits(before: Snapshot, after: Snapshot) -> tuple[Split, ...]:
    """Return the bundles of one capture that are in pieces in a later one, in the order of the first."""
    gone = [name for name in before.bundle_names if name not in after.bundle_position]
    if not gone:
        return ()
    places = {name: at for at, name in enumerate(after.namespaces)}
    cuts: dict[str, np.ndarray] = {}
    found: list[Split] = []
    for name in gone:
        at = before.bundle_position[name]
        namespace = before.namespaces[before.bundles.namespace[at]]
        if namespace not in places:
            continue
        if namespace not in cuts:
            cuts[namespace] = np.array(namespace_boundaries(after, places[namespace]), dtype=np.int64)
        low, high = int(before.bundles.low[at]), int(before.bundles.high[at])
        inside = cuts[namespace][(cuts[namespace] > low) & (cuts[namespace] < high)]
        if len(inside) and {low, high} <= set(cuts[namespace].tolist()):
            found.append(Split(name, tuple(inside.tolist())))
    return tuple(found)


def follow_splits(
    shadow: SplitShadow, before: Snapshot, after: Snapshot, reports: int
) -> tuple[SplitShadow, SplitsSeen]:
    """Compare what was predicted from a capture, as the leader knows it, with the next one, and predict from that.

    So many load reports are expected until the capture after.

    Returns:
        What is known then, and what was seen.
    """
    pending = dict(shadow.pending)
    predicted, differences = [], []
    actual = actual_splits(before, after)
    for split in actual:
        expected = pending.pop(split.bundle, None)
        if expected is None:
            differences.append(Deviation(split.bundle, "split", _unexpected(shadow, before, after, split.bundle)))
            continue
        predicted.append(expected.split)
        if expected.split.boundaries is not None and not expected.split.is_among(split.boundaries):
            differences.append(Deviation(split.bundle, "split elsewhere", Cause.LATE_REPORT))
    now_ms = after.info.captured_at_ms
    hits = _checked(shadow.hits, before, after)
    expected_now = _predicted(after, hits)
    forecast = {**_forecast(after, reports), **expected_now}
    wait_ms = _wait_ms(before, after)
    kept = {
        name: waiting
        for name, waiting in pending.items()
        if name in after.bundle_position and now_ms - waiting.last_ms <= wait_ms
    }
    for name, split in forecast.items():
        waiting = kept.get(name, _Pending(split, now_ms, now_ms))
        if name not in expected_now:
            waiting = replace(waiting, since_ms=now_ms)
        overdue = now_ms - waiting.since_ms > wait_ms and not waiting.reported_overdue
        if overdue:
            predicted.append(waiting.split)
            differences.append(Deviation(name, "not split", Cause.UNKNOWN))
        kept[name] = replace(waiting, split=split, last_ms=now_ms, reported_overdue=waiting.reported_overdue or overdue)
    new = dict.fromkeys((n for n in after.bundle_names if n not in before.bundle_position), now_ms)
    settling_ms = now_ms - max(after.settings.integer(SHEDDING_INTERVAL_MINUTES), 1) * MS_PER_MIN // 2
    broken = {name: at for name, at in {**shadow.broken, **new}.items() if at >= settling_ms}
    return SplitShadow(hits, kept, now_ms, broken), SplitsSeen(tuple(predicted), actual, tuple(differences))


def _wait_ms(before: Snapshot, after: Snapshot) -> int:
    """Return how long after it was predicted a split should have happened."""
    config = after.settings
    gap_ms = after.info.captured_at_ms - before.info.captured_at_ms
    if after.info.load_manager is LoadManager.EXTENSIBLE:
        check_ms = max(config.integer(SPLIT_INTERVAL_MINUTES), 1) * MS_PER_MIN
        return 2 * check_ms + _GAPS * gap_ms
    report_ms = config.integer(REPORT_UPDATE_MIN_INTERVAL_MILLIS)
    return max(_REPORTS * report_ms, _GAPS * gap_ms, _LEAST_WAIT_MS)


def _enabled(snapshot: Snapshot) -> bool:
    config = snapshot.settings
    return config.flag(LOAD_BALANCER_ENABLED) and config.flag(AUTO_BUNDLE_SPLIT_ENABLED)


def _checked(hits: Mapping[str, AutoSplitState], before: Snapshot, after: Snapshot) -> Mapping[str, AutoSplitState]:
    """Return the counts after the checks of all brokers whose time came between two captures."""
    if before.info.load_manager is not LoadManager.EXTENSIBLE or not _enabled(before):
        return {}
    interval_ms = max(before.settings.integer(SPLIT_INTERVAL_MINUTES), 1) * MS_PER_MIN
    from_ms, to_ms = before.info.captured_at_ms, after.info.captured_at_ms
    counted = {name: held for name, held in hits.items() if name in after.brokers.position}
    for broker, name in enumerate(before.brokers.name):
        started_ms = int(before.brokers.started_at_ms[broker])
        if (to_ms - started_ms) // interval_ms == (from_ms - started_ms) // interval_ms:
            continue
        visit = automatic_extensible.visit_of(before, broker)
        held, _ = automatic_extensible.decide(before, visit, counted.get(name, AutoSplitState()), before.settings)
        counted[name] = held
    return {name: held for name, held in counted.items() if held.hit_counts}


def _predicted(snapshot: Snapshot, hits: Mapping[str, AutoSplitState]) -> dict[str, Split]:
    """Return the splits that the next check decides, by bundle; those in which nothing can be cut are left out."""
    if snapshot.info.load_manager is LoadManager.MODULAR:
        orders = automatic_modular.decide_cycle(snapshot, snapshot.settings).splits
    elif _enabled(snapshot):
        orders = automatic_extensible.decide_all(snapshot, hits, snapshot.settings)[1].splits
    else:
        orders = ()
    return {order.bundle: Split(order.bundle, order.boundaries) for order in orders if order.boundaries != ()}


def _forecast(snapshot: Snapshot, reports: int) -> dict[str, Split]:
    """Return the splits that the leader decides when it has read the next reports.

    It splits at once when a report puts a bundle above a limit, so that no capture shows one that is.
    """
    if snapshot.info.load_manager is not LoadManager.MODULAR or not reports or not _enabled(snapshot):
        return {}
    return _predicted(after_reports(_reported(snapshot), reports), {})


def _reported(snapshot: Snapshot) -> Snapshot:
    """Return a snapshot whose next load reports have arrived: topics as loaded, new bundles with what is on them."""
    table, topics, count = snapshot.bundles, snapshot.topics, len(snapshot.bundles)
    listed = np.flatnonzero((topics.bundle >= 0) & topics.has_stats)
    place = topics.bundle[listed]
    unknown = ~table.has_stats & (table.owner >= 0) & np.isin(np.arange(count), place)

    def total(name: str) -> FloatArray:
        return np.bincount(place, getattr(topics, name)[listed], minlength=count).astype(np.float64)

    columns: dict[str, Any] = {name: np.where(unknown, total(name), getattr(table, name)) for name in RATES.values()}
    for name in ("producers", "consumers"):
        columns[name] = np.where(unknown, total(name), getattr(table, name)).astype(np.int64)
    columns["topics"] = np.maximum(table.topics, np.bincount(place, minlength=count)).astype(np.int64)
    columns["has_stats"] = table.has_stats | unknown
    return replace(snapshot, bundles=replace(table, **{name: frozen(values) for name, values in columns.items()}))


def _unexpected(shadow: SplitShadow, before: Snapshot, after: Snapshot, bundle: str) -> Cause:
    """Say why a bundle was split that was not to be: other settings, a check early, nearly at a limit, or by hand."""
    if not _enabled(before) and _enabled(after):
        return Cause.SETTINGS
    if any(bundle in held.hit_counts for held in shadow.hits.values()):
        return Cause.MEMORY
    if before.info.load_manager is LoadManager.MODULAR and _enabled(before):
        config = before.settings
        lower = {name: int(config.integer(name) * _NEARLY) for name in LIMITS}
        if bundle in _predicted(replace(before, settings=config.changed(**lower)), {}):
            return Cause.LATE_REPORT
        if config.overrides != after.settings.overrides:
            changed = replace(before, settings=after.settings)
            if bundle in {**_forecast(changed, 1), **_predicted(changed, {})}:
                return Cause.SETTINGS
    return Cause.MANUAL_SPLIT
