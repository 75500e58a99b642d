"""Shadow mode: predicts from each capture what the load balancer does next, and sees from later ones whether it did.

The leader's memory is carried from cycle to cycle as the planner carries it (`next_cycle`), with the unloads that
really happened. No interface tells when the leader decides: Pulsar 4.2.4 decides `loadBalancerSheddingIntervalMinutes`
after an election and then in that rhythm (the modular load manager counts from the end of one cycle, the extensible one
from its begin). The rhythm is known from the leader's node in the metadata store, or else learned from the first unload
that a cycle explains; until then a cycle is supposed every interval from the first capture on.

The leader decides first and then unloads, one bundle after the other, which may take long. So a cycle is judged by the
last capture from before it was due, and the captures around that one are looked at for an explanation.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from planner.capture.estimate import new_reports
from planner.cluster.errors import CaptureError
from planner.cluster.internal_namespaces import is_heartbeat_or_sla_namespace
from planner.cluster.load_manager import LoadManager
from planner.cluster.pulsar_json import BUNDLE_STATS
from planner.cluster.relocation import Relocation
from planner.cluster.snapshot import Snapshot
from planner.pulsar.load.top_bundles import StatisticsMap
from planner.pulsar.manager.cycle import CycleDecision, next_cycle
from planner.pulsar.manager.leader import LeaderMemory, elected
from planner.pulsar.placement import modular
from planner.shadow.memory import (
    carried_out,
    cycles_to_know,
    fitting,
    other_memories,
    remembering,
    settle_memory,
)
from planner.shadow.record import Cause, Deviation, ShadowCycle, Split
from planner.shadow.splits import SplitShadow, follow_splits
from planner.shadow.view import (
    at_decision,
    leader_view,
    other_orders,
    statistics_maps,
    with_loads_of,
    with_reported_order,
)

_MS_PER_MIN = 60_000
_SEED = 0
_SETTLE_MS = 15_000
_GAPS = 3
_SETTLE_SHARE = 0.4
_WAIT_SHARE = 0.5
_LATEST_SHARE = 0.8
_MISSED_SHARE = 1.5
_TOLERANCE_SHARE = 0.1
_DRIFT_SHARE = 0.02
_MOST_MISSED = 1_000
_MOST_OUTSIDE = 1_000
_MOST_UNSEEN = 30
_RECENT = 6
_SHARP_SHARE = 0.02
_TAKES_MS = 100
_SILENT = 2
_REPORTS = 2
_TWICE = 1.9
"""A broker whose reports are this many intervals apart made one between them."""
_WINDOW = 1.5
"""This many intervals between a capture and the first report after it hold another report."""
_FORGOTTEN = 50
"""After this many samples, a change of one of them changes no short-term average by more than half a percent."""
_SESSION_MS = 30_000
"""After this a metadata store gives up on who fell silent (`metadataStoreSessionTimeoutMillis`)."""
_BETWEEN = (0.6, 0.2)
_PROMPT_SHARE = 0.05
_STEADY_INTERVALS = 10
_LONGEST_SERIES = 3
_MOST_HITS = 1 << 31
_ELSEWHERE = "went elsewhere"
_SKIP = "Skip/"
_LATE = frozenset({Cause.LATE_REPORT, Cause.SETTINGS, Cause.POLICIES, Cause.EARLIER})


@dataclass(frozen=True, eq=False, slots=True)
class Prediction:
    """What the next cycle does, as of one capture.

    Attributes:
        view: The capture.
        before: What the leader remembers, as far as is known.
        after: What it remembers if it carries that out.
        decision: What it does.
    """

    view: Snapshot
    before: LeaderMemory | None
    after: LeaderMemory
    decision: CycleDecision

    @property
    def unloads(self) -> tuple[Relocation, ...]:
        """The bundles that are unloaded, with the brokers that may get them; those included that a draw decides."""
        found = []
        for unload in self.decision.unloads:
            move, others = unload.move, tuple(name for name in unload.acceptable if name != unload.move.source)
            drawn = bool(others) and len(others) < len(unload.acceptable)
            if unload.carried_out or drawn:
                found.append(Relocation(move.bundle, move.source, move.destination or "", others, may_stay=drawn))
        return tuple(found)

    @property
    def bundles(self) -> frozenset[str]:
        """The bundles that are unloaded, or may be."""
        return frozenset(unload.bundle for unload in self.unloads)

    @property
    def sure(self) -> frozenset[str]:
        """The bundles that are unloaded for certain."""
        return frozenset(unload.bundle for unload in self.unloads if not unload.may_stay)

    @property
    def acceptable(self) -> Mapping[str, tuple[str, ...]]:
        """The brokers that may get each bundle which is unloaded."""
        return {unload.bundle: unload.acceptable for unload in self.unloads}

    def explains(self, left: AbstractSet[str]) -> bool:
        """Say whether exactly these bundles may have been unloaded."""
        return self.sure <= left <= self.bundles


@dataclass(frozen=True, eq=False, slots=True)
class _OpenCycle:
    """A cycle under way: from the moment it is due, or the first unload, until nothing more happens.

    Attributes:
        prediction: From the last capture before it.
        around: From the captures shortly before and after that one, oldest first.
        stable: Whether the capture before that one gave the same prediction.
        from_ms: That capture.
        seen_ms: The first capture in which something had happened; the one that made it due when nothing has.
        later: That capture's content.
        last_ms: The last capture in which something more had happened.
        gap_ms: Time between the captures before and after.
        sources: Bundles that were unloaded, with the broker that had them.
        destinations: The first broker that had them then; empty for none.
        taken_ms: When they had a broker again, as far as the metadata store tells.
        returned: Those of them that the same broker took again.
        disturbed: What else happened meanwhile that makes the prediction void.
    """

    prediction: Prediction
    around: tuple[Prediction, ...]
    stable: bool
    from_ms: int
    seen_ms: int
    later: Snapshot
    last_ms: int
    gap_ms: int
    sources: Mapping[str, str] = field(default_factory=dict)
    destinations: Mapping[str, str] = field(default_factory=dict)
    taken_ms: Mapping[str, int] = field(default_factory=dict)
    returned: frozenset[str] = frozenset()
    disturbed: Cause | None = None


@dataclass(frozen=True, eq=False)
class ShadowState:
    """What shadow mode knows after a capture; a new one knows nothing.

    Attributes:
        memory: What the leader remembers; None before the first cycle, and after an election.
        leader: Broker id of the leader, when it started, and when it was elected; empty and 0 unknown.
        due_ms: When the next cycle is expected; 0 before the first capture.
        rhythm_known: Whether a cycle was seen, so that `due_ms` is more than a supposition.
        told_ms: The last capture with which the leader said that it had decided and unloaded nothing; 0 before one.
        silent: Cycles since the last one that was seen.
        acting_ms: Since when the prediction has been one with unloads; 0 when it is not.
        first_ms: The first capture.
        began_ms: The first capture since the election; 0 before there is one.
        watched: Cycles since then; after an election, when the leader's memory is known to be empty, more than enough.
        number: Cycles judged.
        counted: What the leader's metrics said when the last cycle was judged; empty unknown.
        counted_first: The same at `began_ms`.
        preallocated: Bundles that the leader gave to itself, and still counts as if they were on their way to it.
        maps: What is known of the maps of brokers in which statistics of bundles lie, by broker id.
        samples: Samples of the leader's averages since one that no capture may hold.
        prediction: From the last capture.
        recent: From the last captures with the same memory, that one included, oldest first.
        current: The cycle under way, if there is one.
        outside: Bundles that left their broker since the last cycle, but not in one.
        differences: Differences found since the last cycle.
        splits: Of splits.
        predicted_splits: Splits that were predicted and happened, or are overdue, since the last cycle.
        actual_splits: Splits that happened since the last cycle.
    """

    memory: LeaderMemory | None = None
    leader: tuple[str, int, int] = ("", 0, 0)
    due_ms: int = 0
    rhythm_known: bool = False
    told_ms: int = 0
    silent: int = 0
    acting_ms: int = 0
    first_ms: int = 0
    began_ms: int = 0
    watched: int = 0
    number: int = 0
    counted: Mapping[str, float] = field(default_factory=dict)
    counted_first: Mapping[str, float] = field(default_factory=dict)
    preallocated: Mapping[str, str] = field(default_factory=dict)
    maps: Mapping[str, StatisticsMap] = field(default_factory=dict)
    samples: int = 0
    prediction: Prediction | None = None
    recent: tuple[Prediction, ...] = ()
    current: _OpenCycle | None = None
    outside: tuple[Relocation, ...] = ()
    differences: tuple[Deviation, ...] = ()
    splits: SplitShadow = field(default_factory=SplitShadow)
    predicted_splits: tuple[Split, ...] = ()
    actual_splits: tuple[Split, ...] = ()


@dataclass(frozen=True, eq=False, slots=True)
class ShadowResult:
    """What a capture told.

    Attributes:
        cycles: Cycles that are complete with it.
        prediction: What the next cycle does.
        splits: Splits that are expected next.
        due_ms: When the next cycle is expected, ms since 1970.
        rhythm_known: Whether that is learned from a cycle that was seen.
    """

    cycles: tuple[ShadowCycle, ...]
    prediction: Prediction
    splits: tuple[Split, ...]
    due_ms: int
    rhythm_known: bool


def shadow_step(
    state: ShadowState, before: Snapshot, after: Snapshot, *, interval_ms: int = 0
) -> tuple[ShadowState, ShadowResult]:
    """Compare what was predicted from a capture with the next one of the same cluster, and predict from that.

    Args:
        state: What is known.
        before: The capture.
        after: The next one.
        interval_ms: Time from one cycle to the next; 0 for that of the settings.

    Returns:
        What is known then, and what was found.

    Raises:
        CaptureError: The captures are of different clusters, or not in the order of time.
        SettingError: A strategy of the cluster is unknown.
    """
    if before.info.cluster != after.info.cluster or before.info.captured_at_ms >= after.info.captured_at_ms:
        raise CaptureError(
            "These are not two captures of one cluster in the order of time.",
            where=f"{before.info.cluster}, {after.info.cluster}"[:200],
            remedy="Follow one cluster, in the order of time.",
        )
    step = _Step(state, before, after, interval_ms)
    step.follow()
    return step.state, step.result()


def _predict(view: Snapshot, remembered: LeaderMemory | None) -> Prediction:
    memory = fitting(remembered, view)
    after, decision = next_cycle(view, memory, view.settings, _SEED, explain=False)
    return Prediction(view, memory, after, decision)


def _sheds(snapshot: Snapshot) -> bool:
    return snapshot.settings.flag("loadBalancerEnabled") and snapshot.settings.flag("loadBalancerSheddingEnabled")


def _updates(before: Snapshot, after: Snapshot) -> list[tuple[int, int]]:
    """Return when each broker of two captures had reported last, ms since 1970, in the one and in the other."""
    was, now = before.brokers, after.brokers
    known = dict(zip(was.name, was.updated_at_ms.tolist(), strict=True))
    return [(known[name], at) for name, at in zip(now.name, now.updated_at_ms.tolist(), strict=True) if name in known]


def misses_report(before: Snapshot, after: Snapshot) -> bool:
    """Say whether a broker made a report between two captures that neither shows, and that may have been another."""
    every_ms = before.settings.integer("loadBalancerReportUpdateMinIntervalMillis")
    from_ms = before.info.captured_at_ms
    twice = any(
        at - from_ms >= _WINDOW * every_ms and at - since >= _TWICE * every_ms for since, at in _updates(before, after)
    )
    pairs = ((getattr(before.bundles, name), getattr(after.bundles, name)) for name in BUNDLE_STATS.values())
    return twice and not all(np.array_equal(*pair) for pair in pairs)


def _skipped(was: Mapping[str, float], said: Mapping[str, float]) -> bool:
    """Say whether an extensible leader has counted a cycle that unloaded nothing, by its metrics before and now."""
    return any(said[name] > was.get(name, 0) for name in said if name.startswith(_SKIP))


def _owners(snapshot: Snapshot) -> dict[str, str]:
    """Return the broker of each bundle by its name; empty where nobody has it. Heartbeats are left out."""
    names = (*snapshot.brokers.name, "")
    return {
        bundle: names[owner]
        for bundle, owner in zip(snapshot.bundle_names, snapshot.bundles.owner.tolist(), strict=True)
        if not is_heartbeat_or_sla_namespace(bundle.rpartition("/")[0], snapshot.settings.release)
    }


def _leader(snapshot: Snapshot) -> tuple[str, int, int]:
    at = snapshot.brokers.position.get(snapshot.info.leader, -1)
    started_ms = int(snapshot.brokers.started_at_ms[at]) if at >= 0 else 0
    return (snapshot.info.leader, started_ms, snapshot.info.leader_since_ms)


def _itself(made: Prediction) -> Prediction:
    return made


class _Step:
    """One step; what it finds goes into `state` and `cycles`."""

    def __init__(self, state: ShadowState, before: Snapshot, after: Snapshot, interval_ms: int) -> None:
        self.state = state
        self.before = before
        self.after = after
        self.from_ms = before.info.captured_at_ms
        self.to_ms = after.info.captured_at_ms
        self.gap_ms = self.to_ms - self.from_ms
        interval_min = max(before.settings.integer("loadBalancerSheddingIntervalMinutes"), 1)
        self.interval_ms = interval_ms or interval_min * _MS_PER_MIN
        made = state.prediction
        continued = made is not None and made.view.info.captured_at_ms == self.from_ms
        self.known = made.view if made is not None and continued else before
        maps = statistics_maps(statistics_maps(state.maps, before), after)
        self.change(maps=maps)
        self.view = with_reported_order(leader_view(self.known, before, after), maps)
        self.owners = _owners(after)
        self.cycles: list[ShadowCycle] = []
        self.renewed = False

    def change(self, **values: object) -> None:
        self.state = replace(self.state, **values)  # type: ignore[arg-type] # fields of `ShadowState`

    def result(self) -> ShadowResult:
        state = self.state
        assert state.prediction is not None  # noqa: S101 - `follow` has just made it
        return ShadowResult(
            tuple(self.cycles), state.prediction, state.splits.predicted, state.due_ms, state.rhythm_known
        )

    def follow(self) -> None:
        """Find what happened, judge what is complete, and predict."""
        state = self.state
        if not state.due_ms:
            self.change(leader=_leader(self.before), began_ms=self.from_ms, first_ms=self.from_ms)
            self.change(counted=self.before.info.leader_metrics, counted_first=self.before.info.leader_metrics)
            self.begin_rhythm(self.before, self.from_ms)
            self.change(preallocated=self.given_since_election(self.before))
            self.change(samples=0 if self.before.bundles.averages_estimated.any() else _FORGOTTEN)
        if state.prediction is None or state.prediction.view.info.captured_at_ms != self.from_ms:
            made = _predict(self.known, self.remembered(self.known))
            self.change(prediction=made, recent=(made,))
        self.follow_acting(self.from_ms)
        self.follow_samples()
        self.follow_splits()
        elected_now = self.elected()
        if elected_now and self.state.current is not None and not self.state.current.sources:
            self.change(current=None)  # who was to decide is gone, and who comes after it decides at another time
        if _sheds(self.after) and not _sheds(self.before) and self.due_now() and self.own():
            self.wake()
        elif not _sheds(self.after) or not _sheds(self.before):
            self.rest()
        elif self.gap_ms > _MISSED_SHARE * self.interval_ms:
            self.missed()
        else:
            self.keep_time(elected_now=elected_now)
            self.follow_unloads(Cause.LEADER if elected_now else None)
        if elected_now:
            counted = self.after.info.leader_metrics
            self.change(memory=None, began_ms=self.from_ms, watched=_MOST_HITS, counted=counted, counted_first=counted)
            self.begin_rhythm(self.after, self.from_ms)
        if self.after.info.leader:  # between two leaders there is none
            self.change(leader=_leader(self.after))
        if not self.state.counted and self.state.current is None:
            self.change(counted=self.after.info.leader_metrics)
        self.follow_memory()
        self.follow_preallocated(elected_now=elected_now)
        recent = () if self.renewed or elected_now else self.state.recent
        made = _predict(self.view, self.remembered(self.view))
        self.change(prediction=made, recent=(*recent, made)[-_RECENT:])

    def begin_rhythm(self, view: Snapshot, at_ms: int) -> None:
        """Expect the first cycle one interval after the election, if its moment is known; else after a capture."""
        elected_ms = view.info.leader_since_ms
        if not 0 < elected_ms <= self.to_ms:
            self.change(due_ms=at_ms + self.interval_ms, rhythm_known=False, silent=0)
            return
        passed = max((at_ms - elected_ms) // self.interval_ms, 0)
        # The modular load manager falls behind by what its unloads take.
        steady = view.info.load_manager is LoadManager.EXTENSIBLE or passed < _STEADY_INTERVALS
        self.change(due_ms=elected_ms + (passed + 1) * self.interval_ms, rhythm_known=steady, silent=0)

    def skips(self) -> bool:
        """Say whether the leader counts its cycles that unload nothing: each at once, for one of some reasons."""
        return any(name.startswith(_SKIP) for name in self.after.info.leader_metrics)

    def keep_time(self, *, elected_now: bool) -> None:
        """Go by when the leader says that it decided: between the two captures, if it has counted a cycle since."""
        was, said = self.before.info.leader_metrics, self.after.info.leader_metrics
        current, due_ms = self.state.current, self.state.due_ms
        if elected_now or not was or not _skipped(was, said) or (current is not None and current.sources):
            return
        near_ms = _PROMPT_SHARE * self.interval_ms
        if not (self.state.rhythm_known and self.from_ms <= due_ms <= self.to_ms + near_ms):
            self.change(due_ms=self.from_ms)
        self.change(current=None, told_ms=self.to_ms, rhythm_known=True)  # it knew the earlier capture

    def rest(self) -> None:
        """Go on while shedding is off: there are no cycles, and whatever is unloaded is unloaded by hand.

        What the leader decided just before it was switched off is judged first.
        """
        moved, current, decided = self.moved(), self.state.current, _sheds(self.before)
        if decided and current is None and moved and self.is_cycle(moved):
            current = self.open(None)
        if decided and current is not None:
            if not moved and not current.sources:
                current = replace(current, disturbed=Cause.SETTINGS)
            self.close(self.add(current, moved, frozenset()) if moved else current)
        else:
            self.aside(moved, Cause.UNKNOWN if decided else Cause.MANUAL)
        due_ms = self.state.due_ms
        while due_ms <= self.to_ms:
            due_ms += self.interval_ms
        self.change(current=None, due_ms=due_ms)

    def wake(self) -> None:
        """Let a leader decide by settings that no capture held: shedding was switched on just before."""
        made = _predict(replace(self.known, settings=self.after.settings), self.remembered(self.known))
        self.change(prediction=made, recent=(made,))
        self.follow_unloads(Cause.SETTINGS)

    def follow_acting(self, at_ms: int) -> None:
        """Note since when the prediction has been one with unloads."""
        acts = bool(self.state.prediction and self.state.prediction.sure)
        self.change(acting_ms=(self.state.acting_ms or at_ms) if acts else 0)

    def follow_samples(self) -> None:
        """Count the samples of averages since a broker may have reported something else between two captures."""
        was, now = self.before, self.after
        self.change(samples=0 if misses_report(was, now) else self.state.samples + len(new_reports(was, now)))

    def follow_splits(self) -> None:
        """Let splits be judged."""
        reports = max(len(new_reports(self.before, self.after)), 1)
        splits, seen = follow_splits(self.state.splits, self.known, self.view, reports)
        self.change(
            splits=splits,
            predicted_splits=(*self.state.predicted_splits, *seen.predicted),
            actual_splits=(*self.state.actual_splits, *seen.actual),
            differences=(*self.state.differences, *seen.differences),
        )

    def elected(self) -> bool:
        """Say whether another leader decides since the capture before, or the same one after a restart."""
        known, now = self.state.leader, _leader(self.after)
        was, said = self.state.counted.get("unloaded", 0), self.after.info.leader_metrics.get("unloaded", 0)
        if self.after.info.leader_metrics and said < was:
            return True  # it counts anew, and its node may be older than its death
        if not known[0] or not now[0]:
            return False
        return any(a != b and bool(a) and bool(b) for a, b in zip(known, now, strict=True))

    def follow_memory(self) -> None:
        """Let the leader forget promises as it reads new reports, and brokers that left."""
        memory = self.state.memory
        if memory is None or self.after.info.load_manager is not LoadManager.MODULAR:
            return
        place = modular.with_active_brokers(memory.modular, self.after)
        if self.before.brokers.updated_at_ms.tolist() != self.after.brokers.updated_at_ms.tolist():
            place = modular.after_refresh(place, self.after)
        if place != memory.modular:
            self.change(memory=replace(memory, modular=place))

    def remembered(self, view: Snapshot) -> LeaderMemory | None:
        """Return what the leader remembers when it decides the next cycle, with what it counts for itself."""
        due_ms = max(self.state.due_ms, view.info.captured_at_ms)
        return remembering(self.state.memory, view, self.state.preallocated, due_ms)

    @staticmethod
    def given_since_election(view: Snapshot) -> dict[str, str]:
        """Return what a leader gave to itself and does not report, as far as the metadata store tells when."""
        since_ms, taken_ms = view.info.leader_since_ms, view.info.taken_ms
        return {b: to for b, to in modular.unreported(view).items() if 0 < since_ms <= taken_ms.get(b, 0)}

    def follow_preallocated(self, *, elected_now: bool) -> None:
        """Follow which bundles the leader counts for itself: those that it gave to itself and does not report.

        Whoever splits a bundle keeps the children without being given them.
        """
        if elected_now:
            self.change(preallocated=self.given_since_election(self.after))
            return
        was, silent = _owners(self.before), modular.unreported(self.after)
        given = {b: to for b, to in silent.items() if was.get(b, to) != to}
        kept = {b: to for b, to in silent.items() if self.state.preallocated.get(b) == to}
        self.change(preallocated={**kept, **given})

    # Unloads

    def follow_unloads(self, disturbed: Cause | None) -> None:
        """Find bundles that left their broker, decide whether a cycle did it, and judge it when it is complete."""
        moved = self.moved()
        current = self.state.current
        if current is None and moved:
            moved = self.without_early(moved)
        # Who was elected just now decides later.
        due = (disturbed is None and bool(self.own())) or ((disturbed is None or bool(moved)) and self.due_now())
        if current is None and (due or (moved and self.is_cycle(moved))):
            current = self.open(disturbed)
        if current is None:
            self.aside(moved, self.outside_cause(moved))
            return
        if disturbed is not None:
            current = replace(current, disturbed=disturbed)
        returned = self.returned(current)
        if moved or returned:
            current = self.add(current, moved, returned)
        elif not current.sources and not self.state.rhythm_known:
            current = self.open(current.disturbed)  # the cycle may come only now
        if self.complete(current):
            self.close(current)
        else:
            self.change(current=current)

    def moved(self) -> dict[str, str]:
        """Return bundles that are in both captures and left a broker which is still there, with that broker."""
        here, fresh, was = self.staying(), self.fresh(), _owners(self.before)
        left = {
            bundle: source
            for bundle, source in was.items()
            if source and self.owners.get(bundle, source) != source and bundle not in self.state.splits.broken
        }
        made = self.state.prediction
        foreseen = made.bundles if made is not None else frozenset()
        had, lost = Counter(was.values()), Counter(left.values())
        # A broker that was killed and starts again may look the same in both captures, but for what it had.
        emptied = {name for name, count in lost.items() if count == had[name] > 1}
        placed = {source for bundle, source in left.items() if self.owners[bundle]}
        emptied &= self.silent() | (emptied - placed)
        moved, orphaned = {}, []
        for bundle, source in left.items():
            if source in here and (bundle in foreseen or source not in fresh | emptied):
                moved[bundle] = source
            else:
                orphaned.append(Relocation(bundle, source, self.owners[bundle]))
        self.note_outside(orphaned, Cause.BROKER_LEFT)
        return moved

    def own(self, said: Mapping[str, float] | None = None) -> int | None:
        """Return how many bundles the leader has unloaded by its own count since the last cycle; None unknown.

        The extensible load manager counts what it unloads late, at times with the next cycle; what it skipped, at once.

        Args:
            said: Its metrics; those of the later capture when None.
        """
        was, said = self.state.counted, self.after.info.leader_metrics if said is None else said
        known, now = was.get("unloaded"), said.get("unloaded")
        if known is None or now is None or now < known:
            return None
        unsure = self.after.info.load_manager is LoadManager.EXTENSIBLE and _skipped(was, said) == (now > known)
        return None if unsure else int(now - known)

    def agrees(self, made: Prediction) -> bool:
        """Say whether a decision fits to what the leader's metrics say of the last one; any does when they say nothing.

        They name the reason why nothing was unloaded, and the loads that were compared.
        """
        said, was, counters = self.after.info.leader_metrics, self.state.counted, made.decision.shedding.counters
        reasons = [name for name in said if name.startswith("Skip/")]
        if reasons and was and any((said[name] > was.get(name, 0)) != (name in counters) for name in reasons):
            return False
        std = getattr(made.after.shedding.state, "load_std", None)
        return std is None or "load_std" not in said or bool(np.isclose(std, said["load_std"], rtol=1e-6))

    def taken_ms(self, bundle: str) -> int:
        """Return when a broker took a bundle between the two captures; 0 when that is not known."""
        at_ms = self.after.info.taken_ms.get(bundle, 0)
        return at_ms if at_ms != self.before.info.taken_ms.get(bundle, 0) else 0

    def without_early(self, moved: Mapping[str, str]) -> dict[str, str]:
        """Put aside what was unloaded before the next cycle was due, for certain; return the rest."""
        near_ms = self.near_ms()
        if not self.state.rhythm_known:
            return dict(moved)
        made = self.state.prediction
        foreseen = made.bundles if made is not None else frozenset()
        early = {b: s for b, s in moved.items() if 0 < self.taken_ms(b) < self.state.due_ms - near_ms}
        if self.after.info.load_manager is not LoadManager.MODULAR or self.own() != 0:
            early = {b: s for b, s in early.items() if b not in foreseen}
        self.aside(early, self.outside_cause(early))
        return {bundle: source for bundle, source in moved.items() if bundle not in early}

    def outside_cause(self, moved: Mapping[str, str]) -> Cause:
        """Say who unloaded bundles outside of a cycle: somebody; several only when no cycle can be near."""
        if len(moved) <= 1 or not self.state.rhythm_known:
            return Cause.MANUAL
        times = [self.taken_ms(bundle) for bundle in moved]
        first_ms, last_ms = (min(times), max(times)) if all(times) else (self.from_ms, self.to_ms)
        low, high = (self.state.due_ms - share * self.interval_ms for share in _BETWEEN)
        return Cause.MANUAL if low <= first_ms and last_ms <= high else Cause.UNKNOWN

    def returned(self, current: _OpenCycle) -> frozenset[str]:
        """Return bundles that were to be unloaded, and that the same broker took anew."""
        here, was = self.staying(), _owners(self.before)
        return frozenset(
            unload.bundle
            for unload in current.prediction.unloads
            if self.taken_ms(unload.bundle) > current.prediction.view.info.captured_at_ms
            and self.owners.get(unload.bundle, "") == unload.source == was.get(unload.bundle)
            and unload.source in here
        )

    def staying(self) -> set[str]:
        """Return the brokers that were there all the time, as far as the captures tell."""
        now, was = self.after.brokers, self.before.brokers
        started = dict(zip(was.name, was.started_at_ms.tolist(), strict=True))
        rows = zip(now.name, now.registered.tolist(), now.started_at_ms.tolist(), strict=True)
        return {n for n, active, at in rows if active and not (at and started.get(n) and at != started[n])}

    def fresh(self) -> set[str]:
        """Return brokers that started a short while ago, after the first capture: what they had is still given away."""
        since_ms = max(self.from_ms - _SESSION_MS, self.state.first_ms)
        brokers = self.after.brokers
        return {n for n, at in zip(brokers.name, brokers.started_at_ms.tolist(), strict=True) if at > since_ms}

    def silent(self) -> set[str]:
        """Return brokers that have not reported since the capture before, while all others did much later."""
        was, now = self.before.brokers, self.after.brokers
        updated = dict(zip(was.name, was.updated_at_ms.tolist(), strict=True))
        ages = {n: self.to_ms - at for n, at in zip(now.name, now.updated_at_ms.tolist(), strict=True)}
        still = {name for name, age in ages.items() if self.to_ms - age == updated.get(name)}
        return {n for n in still if ages[n] > _SILENT * max((a for o, a in ages.items() if o != n), default=ages[n])}

    def aside(self, moved: Mapping[str, str], cause: Cause) -> None:
        """Note bundles that left their broker, but not in a cycle."""
        self.note_outside((Relocation(b, source, self.owners[b]) for b, source in moved.items()), cause)

    def note_outside(self, unloads: Iterable[Relocation], cause: Cause) -> None:
        room = _MOST_OUTSIDE - len(self.state.outside)
        found = tuple(unloads)[: max(room, 0)]
        if found:
            differences = tuple(Deviation(unload.bundle, "unloaded", cause) for unload in found)
            self.change(outside=(*self.state.outside, *found), differences=(*self.state.differences, *differences))

    def due_now(self) -> bool:
        return self.state.due_ms <= self.to_ms

    def is_cycle(self, moved: Mapping[str, str]) -> bool:
        """Say whether bundles left in a cycle: one is about due, or some decision of the leader would choose them."""
        state, prediction = self.state, self.state.prediction
        if prediction is None:
            return False
        if not moved.keys().isdisjoint(prediction.bundles):
            return True
        if state.rhythm_known:
            near_ms = self.near_ms()
            return self.to_ms >= state.due_ms - near_ms or self.from_ms <= state.due_ms - self.interval_ms + near_ms
        others = self.others(prediction, (), self.view)
        return any(not moved.keys().isdisjoint(other().bundles) for _, other in others)

    def near_ms(self) -> float:
        """Return how far from the moment it is due a cycle may be."""
        drift_share = min(_DRIFT_SHARE * self.state.silent, _TOLERANCE_SHARE)
        return (_TOLERANCE_SHARE + drift_share) * self.interval_ms

    def open(self, disturbed: Cause | None) -> _OpenCycle:
        """Begin a cycle, predicted from the last capture; where it is known when it was due, from the last before."""
        recent, state = self.state.recent, self.state
        if state.rhythm_known:
            until_ms = state.due_ms + _SHARP_SHARE * self.interval_ms
            at = max((i for i, one in enumerate(recent) if one.view.info.captured_at_ms <= until_ms), default=0)
        else:
            at = len(recent) - 1
        stable = at > 0 and all(one.bundles == recent[at].bundles for one in self.of_reports(recent[: at + 1]))
        made = recent[at]
        gap_ms = self.gap_ms if at == len(recent) - 1 else recent[at + 1].view.info.captured_at_ms
        gap_ms -= 0 if at == len(recent) - 1 else made.view.info.captured_at_ms
        from_ms = made.view.info.captured_at_ms
        return _OpenCycle(made, recent, stable, from_ms, self.to_ms, self.view, self.to_ms, gap_ms, disturbed=disturbed)

    def of_reports(self, recent: tuple[Prediction, ...]) -> tuple[Prediction, ...]:
        """Return the last two predictions; where nobody says when brokers reported, all since each has reported."""
        if self.after.info.load_manager is LoadManager.MODULAR:
            return recent[-2:]
        report_ms = self.before.settings.integer("loadBalancerReportUpdateMinIntervalMillis")
        since_ms = recent[-1].view.info.captured_at_ms - _REPORTS * report_ms
        return tuple(one for one in recent[:-2] if one.view.info.captured_at_ms >= since_ms) + recent[-2:]

    def add(self, current: _OpenCycle, moved: Mapping[str, str], returned: frozenset[str]) -> _OpenCycle:
        """Take unloads into a cycle under way."""
        if not current.sources:
            opened = self.open(current.disturbed)
            # Who predicted the moment keeps to it; who did not goes by the last capture.
            current = replace(current, later=self.view, seen_ms=self.to_ms) if self.state.rhythm_known else opened
        back = {unload.bundle: unload.source for unload in current.prediction.unloads if unload.bundle in returned}
        fresh = self.fresh()  # what is given to a broker that is only starting is taken late
        taken = [b for b in (*moved, *returned) if self.owners.get(b, "") not in fresh]
        times = {bundle: at for bundle in taken if (at := self.taken_ms(bundle)) > current.from_ms}
        return replace(
            current,
            sources={**moved, **back, **current.sources},
            returned=current.returned | returned,
            last_ms=self.to_ms,
            destinations=self.destinations(current, moved),
            taken_ms={**current.taken_ms, **times},
        )

    def destinations(self, current: _OpenCycle, moved: Iterable[str]) -> Mapping[str, str]:
        """Return the first broker that had each bundle of a cycle under way, and of some more."""
        known = {bundle: broker for bundle, broker in current.destinations.items() if broker}
        return {**{bundle: self.owners.get(bundle, "") for bundle in (*current.sources, *moved)}, **known}

    def unheard(self) -> bool:
        """Say whether the leader's metrics were known at the last cycle, and are not now."""
        return bool(self.state.counted) and not self.after.info.leader_metrics

    def complete(self, current: _OpenCycle) -> bool:
        """Say whether nothing more is to be expected of a cycle."""
        since_ms = self.to_ms - (current.from_ms if current.sources else min(self.state.due_ms, self.to_ms))
        settle_ms = min(max(_GAPS * self.gap_ms, _SETTLE_MS), _SETTLE_SHARE * self.interval_ms)
        in_turn = self.after.info.load_manager is LoadManager.MODULAR and current.sources
        passed_ms = self.to_ms - self.state.due_ms
        over = self.state.rhythm_known and passed_ms >= _LATEST_SHARE * self.interval_ms
        own = self.own()
        waits = not current.sources and not own and self.skips() and self.state.told_ms < self.state.due_ms
        # Who is gone is followed by who decides later; who is there would have told that it decided.
        if (self.unheard() and passed_ms < _SESSION_MS) or (waits and passed_ms < _MISSED_SHARE * self.interval_ms):
            return False
        if (over and not in_turn) or (own and own <= len(current.sources) and since_ms >= settle_ms):
            return True
        quiet_ms = self.to_ms - current.last_ms
        quiet = not current.sources or self.gap_ms >= settle_ms or quiet_ms >= self.gap_ms
        if since_ms < settle_ms or not quiet:
            return since_ms >= _LONGEST_SERIES * self.interval_ms
        counting = own is not None and own < len(current.sources.keys() & current.prediction.bundles)
        if current.prediction.sure <= current.sources.keys() and not counting:  # it counts when it is done with all
            return True
        if not current.sources and not self.state.rhythm_known:
            return self.to_ms >= self.state.acting_ms + self.interval_ms + settle_ms
        # A slow cluster unloads one bundle, and the next one much later.
        return (quiet_ms if current.sources else since_ms) >= _WAIT_SHARE * self.interval_ms

    # Judging

    def missed(self) -> None:
        """Judge captures so far apart that several cycles lie between them."""
        current = self.state.current or self.open(Cause.MISSED)
        moved = self.moved()
        current = replace(current, sources={**moved, **current.sources}, disturbed=Cause.MISSED)
        self.close(current)
        passed = min(round(self.gap_ms / self.interval_ms) - 1, _MOST_MISSED)
        for _ in range(passed):
            further = _predict(self.view, self.remembered(self.view))
            self.change(memory=settle_memory(further.before, further.after, further.bundles, {}, 0))
        self.change(rhythm_known=False)

    def others(
        self, prediction: Prediction, around: tuple[Prediction, ...], later: Snapshot
    ) -> list[tuple[Cause, Callable[[], Prediction]]]:
        """Return what else the leader might have decided, with the reason; each is worked out when it is called."""
        view, memory = prediction.view, prediction.before
        found: list[tuple[Cause, Callable[[], Prediction]]] = []
        if view.settings.overrides != later.settings.overrides:
            found.append((Cause.SETTINGS, lambda: _predict(replace(view, settings=later.settings), memory)))
        if view.policies != later.policies:
            found.append((Cause.POLICIES, lambda: _predict(replace(view, policies=later.policies), memory)))
            if view.settings.overrides != later.settings.overrides:
                both = replace(view, policies=later.policies, settings=later.settings)
                found.append((Cause.POLICIES, lambda: _predict(both, memory)))
        at_ms = view.info.captured_at_ms
        following = next((one.view for one in around if one.view.info.captured_at_ms > at_ms), later)
        due_ms = self.state.due_ms
        found.append((Cause.LATE_REPORT, lambda: _predict(at_decision(view, following, due_ms), memory)))
        afterwards = (one for one in around if one.view.info.captured_at_ms > at_ms)
        found.extend((Cause.LATE_REPORT, partial(_itself, one)) for one in afterwards)
        found.append((Cause.LATE_REPORT, lambda: _predict(self.loads_of(view, later), memory)))
        before = [one for one in reversed(around) if one.view.info.captured_at_ms < at_ms]
        if self.state.rhythm_known and view.info.load_manager is LoadManager.MODULAR:
            before = []  # reports that were in the metadata store when it decided are known to it
        found.extend((Cause.EARLIER, partial(_itself, one)) for one in before)
        memories = other_memories(prediction.decision, memory, view)
        found.extend((Cause.MEMORY, partial(_predict, view, other)) for other in memories)
        return found

    def close(self, current: _OpenCycle) -> None:
        """Judge a cycle, and take over what the leader remembers now."""
        existing = self.after.bundle_position
        sources: Mapping[str, str] = {
            bundle: source
            for bundle, source in current.sources.items()
            if self.owners.get(bundle, "") != source or bundle in current.prediction.bundles
        }
        current, sources = self.of_leader(current, sources)
        predicted = tuple(u for u in current.prediction.unloads if u.bundle in existing)
        went = self.destinations(current, sources)
        actual = tuple(Relocation(b, source, went[b]) for b, source in sources.items())
        differences, explained = self.differences(current, predicted, actual)
        causes = {difference.bundle: difference.cause for difference in differences}
        in_cycle = [u for u in actual if causes.get(u.bundle) is not Cause.MANUAL]
        moment_ms = self.moment_ms(current, explained) if in_cycle else self.state.due_ms
        self.remember(current, explained, in_cycle, moment_ms)
        earlier, own = self.own(self.before.info.leader_metrics), self.own()
        # What was counted only now may not have moved yet: it is of the next cycle.
        newer = earlier == len(in_cycle) and own is not None and own > earlier
        state = self.state
        shedder = current.prediction.decision.shedder.name
        late = any(d.cause in _LATE and d.what != _ELSEWHERE for d in differences) or self.moving(current)
        known = state.watched >= cycles_to_know(shedder, current.prediction.view.settings)
        first_ms = min(current.taken_ms.values(), default=current.seen_ms)
        in_time = (
            known
            and (state.samples >= _FORGOTTEN or self.after.info.load_manager is not LoadManager.MODULAR)
            and not self.unheard()
            and current.stable
            and current.disturbed is None
            and current.gap_ms <= _WAIT_SHARE * self.interval_ms
            and first_ms - current.from_ms >= _TAKES_MS
            and not (state.rhythm_known and current.from_ms > state.due_ms)
            and not late
            and not self.undecided(current)
        )
        self.cycles.append(
            ShadowCycle(
                cluster=self.after.info.cluster,
                number=state.number + 1,
                from_ms=current.from_ms,
                to_ms=current.seen_ms,
                leader=current.prediction.view.info.leader,
                shedder=shedder,
                predicted=predicted,
                actual=actual,
                outside=state.outside,
                predicted_splits=state.predicted_splits,
                actual_splits=state.actual_splits,
                differences=(*state.differences, *differences),
                in_time=in_time,
            )
        )
        self.change(
            number=state.number + 1,
            watched=self.watched(current, late=late),
            counted=(self.before if newer else self.after).info.leader_metrics,
            current=None,
            acting_ms=0,
            outside=(),
            differences=(),
            predicted_splits=(),
            actual_splits=(),
        )
        ended_ms = max((*current.taken_ms.values(), moment_ms)) if in_cycle else moment_ms
        in_turn = self.after.info.load_manager is LoadManager.MODULAR
        self.expect_next(ended_ms if in_turn else moment_ms, seen=bool(in_cycle))

    def of_leader(self, current: _OpenCycle, sources: Mapping[str, str]) -> tuple[_OpenCycle, Mapping[str, str]]:
        """Tell apart what the leader unloaded, by its own count, and what somebody else did; put that aside.

        Where it unloaded more than has another broker now, the rest was taken back.
        """
        own = None if current.disturbed in {Cause.LEADER, Cause.MISSED} else self.own()
        if own is None:
            return current, sources
        left, made = set(sources), current.prediction
        more = {u.bundle: u.source for u in made.unloads if u.bundle in self.owners and u.bundle not in left}
        before = self.own(self.before.info.leader_metrics)  # a capture asks for owners first, and then for metrics
        if more and before is not None and before >= len(left) + len(more):
            back = {bundle for bundle, source in more.items() if self.owners[bundle] == source}
            self.change(
                outside=tuple(unload for unload in self.state.outside if unload.bundle not in more),
                differences=tuple(d for d in self.state.differences if d.bundle not in more or d.what != "unloaded"),
            )
            return replace(current, returned=current.returned | back), {**sources, **more}
        if own >= len(left):
            return current, sources
        times = dict(current.taken_ms)
        from_ms = self.state.due_ms - _SHARP_SHARE * self.interval_ms if self.state.rhythm_known else 0

        acceptable = made.acceptable

        def place(name: str) -> tuple[bool, bool, bool, int, str]:
            at_ms, to = times.get(name, self.to_ms), current.destinations.get(name, "")
            elsewhere = bool(to) and to not in acceptable.get(name, (to,))
            return name not in made.bundles, at_ms < from_ms, elsewhere, at_ms, name

        first = sorted(left, key=place)
        others = (other() for _, other in self.others(made, current.around, current.later))
        chosen = next(
            (both for one in (made, *others) if one.sure <= left and len(both := left & one.bundles) == own),
            first[:own],
        )
        mine = {bundle: source for bundle, source in sources.items() if bundle in chosen}
        self.aside({b: s for b, s in sources.items() if b not in mine}, Cause.MANUAL)
        times = {bundle: at for bundle, at in times.items() if bundle in mine}
        return replace(current, taken_ms=times, returned=current.returned & mine.keys()), mine

    def causes_outside(self) -> dict[str, Cause]:
        """Return why bundles left their broker, but not in a cycle, since the last one."""
        return {d.bundle: d.cause for d in self.state.differences if d.what == "unloaded"}

    def moving(self, current: _OpenCycle) -> bool:
        """Say whether the loads that the capture after a decision shows would have made it another one."""
        made = current.prediction
        if not made.bundles and not current.sources:
            return False
        if "load_std" in self.after.info.leader_metrics:  # the leader says which loads of brokers it compared
            loads = self.loads_of(made.view, self.next_view(current)).with_columns(brokers=made.view.brokers)
            return not self.agrees(made) or _predict(loads, made.before).bundles != made.bundles
        return {one.bundles for one in self.by_later_loads(current)} != {made.bundles}

    def by_later_loads(self, current: _OpenCycle) -> tuple[Prediction, Prediction]:
        """Return what the loads of the capture after a decision decide: all, and those reported until the decision."""
        made, later = current.prediction, self.next_view(current)
        then = at_decision(made.view, later, self.moment_ms(current, None))
        return _predict(self.loads_of(made.view, later), made.before), _predict(then, made.before)

    def watched(self, current: _OpenCycle, *, late: bool) -> int:
        """Return for how many cycles the counters of a leader that tells nothing of them have been followed.

        A cycle that may have counted otherwise than it was followed leaves them unknown, until one whose unloads were
        predicted, or after which they are the same whatever they were before.
        """
        made = current.prediction
        profile, brokers = made.decision.shedder.profile, made.view.brokers.name
        if profile.counters is None or profile.counters.told is not None:
            return self.state.watched + 1

        def hits(one: Prediction) -> list[Mapping[str, float]]:
            return [tally.of(one.after.shedding.state, brokers) for tally in profile.tallies if tally.unit == "hits"]

        if late or not current.stable or any(hits(one) != hits(made) for one in self.by_later_loads(current)):
            return -_MOST_HITS
        if current.sources and current.sources.keys() == made.bundles:
            return _MOST_HITS
        others = (_predict(made.view, other) for other in other_memories(made.decision, made.before, made.view))
        return _MOST_HITS if all(hits(one) == hits(made) for one in others) else self.state.watched + 1

    def in_other_orders(self, made: Prediction, bundles: AbstractSet[str]) -> Iterator[Prediction]:
        """Yield what the leader decides when equals, of which these are some, came to it in other orders."""
        return (_predict(view, made.before) for view in other_orders(made.view, self.state.maps, bundles))

    def undecided(self, current: _OpenCycle) -> bool:
        """Say whether the order of equals, which no capture tells, would have made a decision another one."""
        made = current.prediction
        if not made.bundles and not current.sources:
            return False
        others = self.in_other_orders(made, made.bundles | current.sources.keys())
        return any(other.bundles != made.bundles for other in others)

    def loads_of(self, view: Snapshot, later: Snapshot) -> Snapshot:
        return with_loads_of(view, later, self.state.maps)

    def next_view(self, current: _OpenCycle) -> Snapshot:
        """Return the capture after the one that a cycle is predicted from."""
        at_ms = current.prediction.view.info.captured_at_ms
        views = (one.view for one in current.around if one.view.info.captured_at_ms > at_ms)
        return next(views, current.later)

    def moment_ms(self, current: _OpenCycle, explained: Prediction | None) -> int:
        """Return about when a leader decided: before a broker had the first bundle, after the capture that it knew."""
        made = explained or current.prediction
        from_ms = max(made.view.info.captured_at_ms, current.from_ms) if explained is None else current.from_ms
        from_ms = min(from_ms, made.view.info.captured_at_ms)
        due_ms, known = self.state.due_ms, self.state.rhythm_known
        began_ms = min(current.taken_ms.values(), default=0)
        if began_ms and not (known and began_ms - due_ms > _PROMPT_SHARE * self.interval_ms):
            return max(began_ms - _TAKES_MS, from_ms)
        if known and from_ms <= due_ms <= current.seen_ms:
            return due_ms
        return (from_ms + current.seen_ms) // 2

    def expect_next(self, moment_ms: int, *, seen: bool) -> None:
        """Work out when the next cycle is due."""
        due_ms = moment_ms + self.interval_ms
        while due_ms <= self.to_ms:
            due_ms += self.interval_ms
        self.change(
            due_ms=due_ms,
            rhythm_known=self.state.rhythm_known or seen,
            silent=0 if seen else self.state.silent + 1,
        )

    def remember(
        self, current: _OpenCycle, explained: Prediction | None, in_cycle: list[Relocation], moment_ms: int
    ) -> None:
        """Take over what the leader remembers after a cycle."""
        made, said = explained or current.prediction, self.after.info.leader_metrics
        after = made.after if explained is None else carried_out(current.prediction.after, explained.after)
        counters = made.decision.shedder.profile.counters
        if counters is not None and counters.told is not None and said:
            before = made.before.shedding.state if made.before is not None else made.decision.shedder.initial()
            state = counters.told(before, made.after.shedding.state, self.state.counted, said, made.view.settings)
            after = replace(after, shedding=after.shedding.with_state(state))
        unloaded = {unload.bundle: unload.source for unload in in_cycle}
        in_turn = self.after.info.load_manager is LoadManager.MODULAR
        times = {b: at - _TAKES_MS for b, at in current.taken_ms.items()} if in_turn else {}
        self.change(memory=settle_memory(current.prediction.before, after, made.bundles, unloaded, moment_ms, times))
        if explained is not None and explained.before is not None and in_turn:
            self.change(preallocated=explained.before.modular.preallocated)
        self.renewed = True

    def differences(
        self, current: _OpenCycle, predicted: tuple[Relocation, ...], actual: tuple[Relocation, ...]
    ) -> tuple[tuple[Deviation, ...], Prediction | None]:
        """Return what was not as predicted, and the decision that explains it if there is one."""
        wanted, left = {u.bundle for u in predicted}, {u.bundle for u in actual}
        acceptable = {u.bundle: u.acceptable for u in predicted}
        elsewhere = [u for u in actual if u.destination and u.destination not in acceptable.get(u.bundle, ())]
        elsewhere = [u for u in elsewhere if u.bundle in wanted]
        aside = {(u.bundle, u.source) for u in self.state.outside}
        why = self.causes_outside()
        gone = {u.bundle for u in predicted if u.bundle not in left and (u.bundle, u.source) in aside}
        before_it = [Deviation(bundle, "stayed", why[bundle]) for bundle in sorted(gone)]
        sure = {u.bundle for u in predicted if not u.may_stay} - gone
        as_predicted = sure <= left <= wanted
        if as_predicted and not elsewhere:
            return tuple(before_it), self.fitting_metrics(current, left)
        choose, explained = self.likely(current, left) if not as_predicted else ((lambda _: Cause.UNKNOWN), None)
        found = [Deviation(bundle, "stayed", choose(bundle)) for bundle in sorted(sure - left)]
        found += [Deviation(bundle, "unloaded", choose(bundle)) for bundle in sorted(left - wanted)]
        found += self.went_elsewhere(current, elsewhere)
        found += before_it
        return tuple(found), explained

    def fitting_metrics(self, current: _OpenCycle, left: set[str]) -> Prediction | None:
        """Return a decision with the same unloads as predicted to which the leader's metrics fit better, if any."""
        made = current.prediction
        if self.agrees(made) or current.disturbed is not None:
            return None
        others = (other() for _, other in self.others(made, current.around, current.later))
        return next((other for other in others if other.explains(left) and self.agrees(other)), None)

    def went_elsewhere(self, current: _OpenCycle, unloads: Sequence[Relocation]) -> list[Deviation]:
        """Say why bundles went to other brokers than predicted; each other decision is worked out once for all."""
        disturbed, bundles = current.disturbed, {unload.bundle for unload in unloads}
        causes = dict.fromkeys(bundles & current.returned, Cause.RETURNED)
        others = self.others(current.prediction, current.around, current.later) if disturbed is None else ()
        for why, other in others:
            if bundles <= causes.keys():
                break
            acceptable = other().acceptable
            causes = {u.bundle: why for u in unloads if u.destination in acceptable.get(u.bundle, ())} | causes
        rest = Cause.UNKNOWN if disturbed is None else disturbed
        return [Deviation(unload.bundle, _ELSEWHERE, causes.get(unload.bundle, rest)) for unload in unloads]

    def likely(self, current: _OpenCycle, left: set[str]) -> tuple[Callable[[str], Cause], Prediction | None]:
        """Return the likely reason of each difference, and the decision that explains them all if there is one."""
        if current.disturbed is not None:
            cause = current.disturbed
            return (lambda _: cause), None
        made = current.prediction
        others = [(cause, other()) for cause, other in self.others(made, current.around, current.later)]
        explaining = [one for one in others if one[1].explains(left)]
        for cause, other in sorted(explaining, key=lambda one: not self.agrees(one[1])):
            return (lambda _, why=cause: why), other
        for other in self.in_other_orders(made, left ^ made.bundles):
            if other.explains(left):
                return (lambda _: Cause.ORDER), other
        unseen = self.unseen_unloads(current, left)
        if unseen is not None:
            return (lambda _: Cause.MEMORY), unseen
        # One bundle beside a decision was unloaded by somebody else; several are more likely the leader's own.
        by_hand = self.own() is None and self.apart(current, left - made.bundles)  # what it counted is its own
        hand = Cause.MANUAL if by_hand else Cause.UNKNOWN
        for cause, other in ((Cause.UNKNOWN, made), *others):
            extra = left - other.bundles
            if other.sure <= left and len(extra) == 1:
                why = self.else_unseen(current, cause)
                hand = self.else_unseen(current, hand)
                return (lambda name, why=why, hand=hand, more=extra: hand if name in more else why), other
        return (lambda _: self.else_unseen(current, Cause.UNKNOWN)), None

    def else_unseen(self, current: _OpenCycle, cause: Cause) -> Cause:
        """Return a late report in place of no cause, where the leader must have known one that no capture holds."""
        if cause is not Cause.UNKNOWN or not self.state.rhythm_known:
            return cause
        reported = _updates(current.prediction.view, self.next_view(current))
        every_ms = self.before.settings.integer("loadBalancerReportUpdateMinIntervalMillis")
        due_ms = self.state.due_ms
        unseen = any(since + every_ms <= due_ms < at and at - since >= _TWICE * every_ms for since, at in reported)
        return Cause.LATE_REPORT if unseen else cause

    def apart(self, current: _OpenCycle, extra: set[str]) -> bool:
        """Say whether bundles left in a cycle but not with it: the leader knew what we know, at another time."""
        if self.moving(current) or not current.stable:
            return False
        at_ms = max((self.after.info.taken_ms.get(bundle, 0) for bundle in extra), default=0)
        late_share = (at_ms - self.state.due_ms) / self.interval_ms
        return not self.state.rhythm_known or not -_SHARP_SHARE <= late_share <= _TOLERANCE_SHARE

    def unseen_unloads(self, current: _OpenCycle, left: set[str]) -> Prediction | None:
        """Return the decision of a leader that remembers unloads from before the first capture, if it explains all."""
        made = current.prediction
        config = made.view.settings
        grace_ms = config.integer("loadBalancerSheddingGracePeriodMinutes") * _MS_PER_MIN
        if self.to_ms - self.state.began_ms > grace_ms or self.state.counted_first.get("unloaded") == 0:
            return None
        manager = made.view.info.load_manager
        memory = made.before or elected(made.decision.shedder, manager, config)
        for view in (made.view, self.loads_of(made.view, current.later)):
            seen = memory.shedding.recently_unloaded_bundles
            for _ in range(_MOST_UNSEEN):
                seen = {**dict.fromkeys(made.sure - left, self.state.began_ms), **seen}
                shed = replace(memory.shedding, recently_unloaded_bundles=seen)
                made = _predict(view, replace(memory, shedding=shed))
                if made.sure <= left:
                    break
            if made.explains(left):
                return made
        return None
