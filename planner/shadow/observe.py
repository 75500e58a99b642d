"""What two captures of one cluster show: which bundles left, which reports arrived, what the leader counted."""

from collections import Counter
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np

from planner.capture.estimate import new_reports
from planner.cluster.internal_namespaces import is_heartbeat_or_sla_namespace
from planner.cluster.load_manager import LoadManager
from planner.cluster.names import LOAD_BALANCER_ENABLED, REPORT_UPDATE_MIN_INTERVAL_MILLIS, SHEDDING_ENABLED
from planner.cluster.pulsar_json import BUNDLE_STATS
from planner.cluster.relocation import Relocation
from planner.cluster.snapshot import Snapshot
from planner.pulsar.load.top_bundles import StatisticsMap
from planner.shadow.prediction import Prediction
from planner.shadow.splits import SplitShadow, SplitsSeen, follow_splits
from planner.shadow.state import Leadership, Metrics, ShadowState
from planner.shadow.view import leader_view, statistics_maps, with_reported_order

SESSION_MS = 30_000
"""After this a metadata store gives up on a silent client (`metadataStoreSessionTimeoutMillis`)."""
TWICE_INTERVALS = 1.9
"""A broker whose reports are this many report intervals apart made one more that no capture shows."""
_WINDOW_INTERVALS = 1.5
"""This many report intervals between a capture and the first report after it hold another one."""
_SILENT_FACTOR = 2
_SKIP = "Skip/"
"""Begins the name of each metric in which an extensible leader counts cycles that unload nothing."""


def leadership(snapshot: Snapshot) -> Leadership:
    """Return who leads in a capture."""
    at = snapshot.brokers.position.get(snapshot.info.leader, -1)
    started_ms = int(snapshot.brokers.started_at_ms[at]) if at >= 0 else 0
    return Leadership(snapshot.info.leader, started_ms, snapshot.info.leader_since_ms)


def sheds(snapshot: Snapshot) -> bool:
    """Say whether the leader decides cycles."""
    return snapshot.settings.flag(LOAD_BALANCER_ENABLED) and snapshot.settings.flag(SHEDDING_ENABLED)


def report_times(before: Snapshot, after: Snapshot) -> list[tuple[int, int]]:
    """Return when each broker of two captures had reported last, ms since 1970, in the one and in the other."""
    was, now = before.brokers, after.brokers
    known = dict(zip(was.name, was.updated_at_ms.tolist(), strict=True))
    return [(known[name], at) for name, at in zip(now.name, now.updated_at_ms.tolist(), strict=True) if name in known]


def misses_report(before: Snapshot, after: Snapshot) -> bool:
    """Say whether a broker made a report between two captures that neither shows, and that may have been another."""
    every_ms = before.settings.integer(REPORT_UPDATE_MIN_INTERVAL_MILLIS)
    from_ms = before.info.captured_at_ms
    twice = any(
        at - from_ms >= _WINDOW_INTERVALS * every_ms and at - since >= TWICE_INTERVALS * every_ms
        for since, at in report_times(before, after)
    )
    pairs = ((getattr(before.bundles, name), getattr(after.bundles, name)) for name in BUNDLE_STATS.values())
    return twice and not all(np.array_equal(*pair) for pair in pairs)


@dataclass(frozen=True, eq=False, slots=True)
class Counted:
    """What the leader's metrics count, at three moments; empty where it does not answer.

    Attributes:
        at_last_cycle: When the last cycle was judged.
        before: In the earlier capture.
        after: In the later one.
        is_extensible: Whether the leader is that of the extensible load manager.
    """

    at_last_cycle: Metrics
    before: Metrics
    after: Metrics
    is_extensible: bool

    @property
    def unloaded(self) -> int | None:
        """Bundles that the leader has unloaded since the last cycle, by its own count; None unknown."""
        return self._unloaded(self.after)

    @property
    def unloaded_before(self) -> int | None:
        """The same, as of the earlier capture."""
        return self._unloaded(self.before)

    def _unloaded(self, metrics: Metrics) -> int | None:
        # The extensible leader counts what it unloads late, at times with the next cycle; what it skipped, at once.
        known, now = self.at_last_cycle.get("unloaded"), metrics.get("unloaded")
        if known is None or now is None or now < known:
            return None
        unsure = self.is_extensible and _skipped(self.at_last_cycle, metrics) == (now > known)
        return None if unsure else int(now - known)

    @property
    def starts_over(self) -> bool:
        """Whether the leader counts from 0 again; its node may be older than its restart."""
        return bool(self.after) and self.after.get("unloaded", 0) < self.at_last_cycle.get("unloaded", 0)

    @property
    def skipped_cycle(self) -> bool:
        """Whether an extensible leader counted a cycle without unloads between the two captures."""
        return bool(self.before) and _skipped(self.before, self.after)

    @property
    def counts_skips(self) -> bool:
        """Whether the leader counts its cycles that unload nothing: each at once, with the reason."""
        return any(name.startswith(_SKIP) for name in self.after)

    @property
    def names_loads(self) -> bool:
        """Whether the leader reports which loads of brokers it compared."""
        return "load_std" in self.after

    @property
    def stopped(self) -> bool:
        """Whether the leader's metrics were known at the last cycle, and are not now."""
        return bool(self.at_last_cycle) and not self.after

    def agrees(self, made: Prediction) -> bool:
        """Say whether a decision fits what the metrics report of the last one; any does when they report nothing.

        They name the reason why nothing was unloaded, and the loads that were compared.
        """
        after, was, counters = self.after, self.at_last_cycle, made.decision.shedding.counters
        reasons = [name for name in after if name.startswith(_SKIP)]
        if reasons and was and any((after[name] > was.get(name, 0)) != (name in counters) for name in reasons):
            return False
        std = getattr(made.after.shedding.state, "load_std", None)
        return std is None or "load_std" not in after or bool(np.isclose(std, after["load_std"], rtol=1e-6))


def _skipped(was: Metrics, now: Metrics) -> bool:
    return any(now[name] > was.get(name, 0) for name in now if name.startswith(_SKIP))


@dataclass(frozen=True, eq=False, slots=True)
class Observation:
    """What two captures in the order of time show.

    Attributes:
        before: The earlier capture.
        after: The later one.
        known: The earlier one, as the leader knew the cluster.
        view: The later one, as the leader knows the cluster.
        maps: What is known of the brokers' maps of bundle statistics, by broker id.
        reports: Load reports that arrived between the two.
        misses_report: Whether a report came and went between the two.
        counted: What the leader's metrics count.
        leader: Who leads in the later capture.
        elected: Whether another leader decides since the earlier capture, or the same one after a restart.
        splits: What is known of splits after the later capture.
        splits_seen: Splits that happened or are overdue.
        owners_before: Broker of each bundle in the earlier capture; empty for none. Heartbeats are left out.
        owners: Broker of each bundle in the later one.
        left: Bundles in both captures that left their broker, with that broker; those just split are left out.
        staying: Brokers that were there all the time, as far as the captures show.
        starting: Brokers that started so lately that their former bundles are still being placed.
        emptied: Brokers that lost all their bundles at once: killed and started again between the captures.
    """

    before: Snapshot
    after: Snapshot
    known: Snapshot
    view: Snapshot
    maps: Mapping[str, StatisticsMap]
    reports: int
    misses_report: bool
    counted: Counted
    leader: Leadership
    elected: bool
    splits: SplitShadow
    splits_seen: SplitsSeen
    owners_before: Mapping[str, str]
    owners: Mapping[str, str]
    left: Mapping[str, str]
    staying: frozenset[str]
    starting: frozenset[str]
    emptied: frozenset[str]

    @property
    def from_ms(self) -> int:
        """When the earlier capture was made, ms since 1970."""
        return self.before.info.captured_at_ms

    @property
    def to_ms(self) -> int:
        """When the later capture was made, ms since 1970."""
        return self.after.info.captured_at_ms

    @property
    def gap_ms(self) -> int:
        """Time between the two."""
        return self.to_ms - self.from_ms

    @property
    def is_modular(self) -> bool:
        """Whether the modular load manager decides: it unloads one bundle after the other."""
        return self.after.info.load_manager is LoadManager.MODULAR

    @property
    def report_interval_ms(self) -> int:
        """Least time between two load reports of a broker."""
        return self.before.settings.integer(REPORT_UPDATE_MIN_INTERVAL_MILLIS)

    def moved(self, predicted: AbstractSet[str]) -> dict[str, str]:
        """Return bundles that were unloaded, with the broker that had them.

        Those of a broker that may have been away count only where they were predicted.
        """
        return {bundle: source for bundle, source in self.left.items() if self._unloaded(bundle, source, predicted)}

    def orphaned(self, predicted: AbstractSet[str]) -> dict[str, str]:
        """Return the other bundles that left, with their broker: it left, or was restarted."""
        return {bundle: source for bundle, source in self.left.items() if not self._unloaded(bundle, source, predicted)}

    def _unloaded(self, bundle: str, source: str, predicted: AbstractSet[str]) -> bool:
        away = source in self.starting or source in self.emptied
        return source in self.staying and (bundle in predicted or not away)

    def relocations(self, moved: Mapping[str, str]) -> tuple[Relocation, ...]:
        """Return bundles that left a broker, with the broker that has them now; empty for none, or when split since."""
        return tuple(Relocation(bundle, source, self.owners.get(bundle, "")) for bundle, source in moved.items())

    def taken_ms(self, bundle: str) -> int:
        """Return when a broker took a bundle between the two captures, ms since 1970; 0 when that is not known."""
        at_ms = self.after.info.taken_ms.get(bundle, 0)
        return at_ms if at_ms != self.before.info.taken_ms.get(bundle, 0) else 0

    def returned(self, made: Prediction) -> frozenset[str]:
        """Return predicted bundles that were unloaded, and that the same broker took again."""
        return frozenset(
            unload.bundle
            for unload in made.unloads
            if self.taken_ms(unload.bundle) > made.captured_at_ms
            and self.owners.get(unload.bundle, "") == unload.source == self.owners_before.get(unload.bundle)
            and unload.source in self.staying
        )


def observe(before: Snapshot, after: Snapshot, state: ShadowState) -> Observation:
    """Return what two captures show.

    Args:
        before: The earlier capture.
        after: The later one, of the same cluster.
        state: What is known after the earlier one.
    """
    known = state.known_view(before)
    maps = statistics_maps(statistics_maps(state.maps, before), after)
    view = with_reported_order(leader_view(known, before, after), maps)
    reports = len(new_reports(before, after))
    splits, splits_seen = follow_splits(state.splits, known, view, max(reports, 1))
    extensible = after.info.load_manager is LoadManager.EXTENSIBLE
    counted = Counted(state.counted, before.info.leader_metrics, after.info.leader_metrics, extensible)
    leader = leadership(after)
    owners_before, owners = _owners(before), _owners(after)
    left = {
        bundle: source
        for bundle, source in owners_before.items()
        if source and owners.get(bundle, source) != source and bundle not in splits.broken
    }
    return Observation(
        before=before,
        after=after,
        known=known,
        view=view,
        maps=maps,
        reports=reports,
        misses_report=misses_report(before, after),
        counted=counted,
        leader=leader,
        elected=counted.starts_over or state.leader.differs(leader),
        splits=splits,
        splits_seen=splits_seen,
        owners_before=owners_before,
        owners=owners,
        left=left,
        staying=_staying(before, after),
        starting=_starting(before, after, state.first_ms),
        emptied=_emptied(before, after, owners_before, owners, left),
    )


def _owners(snapshot: Snapshot) -> dict[str, str]:
    names = (*snapshot.brokers.name, "")
    return {
        bundle: names[owner]
        for bundle, owner in zip(snapshot.bundle_names, snapshot.bundles.owner.tolist(), strict=True)
        if not is_heartbeat_or_sla_namespace(bundle.rpartition("/")[0], snapshot.settings.release)
    }


def _staying(before: Snapshot, after: Snapshot) -> frozenset[str]:
    now, was = after.brokers, before.brokers
    started = dict(zip(was.name, was.started_at_ms.tolist(), strict=True))
    rows = zip(now.name, now.registered.tolist(), now.started_at_ms.tolist(), strict=True)
    return frozenset(n for n, active, at in rows if active and not (at and started.get(n) and at != started[n]))


def _starting(before: Snapshot, after: Snapshot, first_ms: int) -> frozenset[str]:
    since_ms = max(before.info.captured_at_ms - SESSION_MS, first_ms)
    brokers = after.brokers
    return frozenset(n for n, at in zip(brokers.name, brokers.started_at_ms.tolist(), strict=True) if at > since_ms)


def _emptied(
    before: Snapshot,
    after: Snapshot,
    owners_before: Mapping[str, str],
    owners: Mapping[str, str],
    left: Mapping[str, str],
) -> frozenset[str]:
    """Return brokers that lost all their bundles and fell silent, or whose bundles have no owner yet.

    A broker that was killed and starts again may look the same in both captures, but for the bundles that it had.
    """
    had, lost = Counter(owners_before.values()), Counter(left.values())
    emptied = {name for name, count in lost.items() if count == had[name] > 1}
    placed = {source for bundle, source in left.items() if owners[bundle]}
    return frozenset(emptied & (_silent(before, after) | (emptied - placed)))


def _silent(before: Snapshot, after: Snapshot) -> set[str]:
    """Return brokers that have not reported since the earlier capture, while all others did much later."""
    was, now, to_ms = before.brokers, after.brokers, after.info.captured_at_ms
    updated = dict(zip(was.name, was.updated_at_ms.tolist(), strict=True))
    ages = {name: to_ms - at for name, at in zip(now.name, now.updated_at_ms.tolist(), strict=True)}
    still = {name for name, age in ages.items() if to_ms - age == updated.get(name)}
    return {
        name
        for name in still
        if ages[name] > _SILENT_FACTOR * max((age for other, age in ages.items() if other != name), default=ages[name])
    }
