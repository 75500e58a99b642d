"""Judges a cycle: what the leader unloaded, what was not as predicted and why, and what the leader remembers now."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from planner.cluster.relocation import Relocation
from planner.pulsar.manager.leader import LeaderMemory
from planner.shadow.case import TAKES_MS, Case
from planner.shadow.causes import ELSEWHERE, differences
from planner.shadow.memory import carried_out, cycles_to_know, other_memories, settle_memory
from planner.shadow.observe import Observation
from planner.shadow.open_cycle import WAIT_SHARE, destinations
from planner.shadow.prediction import Prediction, predict
from planner.shadow.record import Cause, Deviation, ShadowCycle
from planner.shadow.rhythm import Rhythm
from planner.shadow.state import Metrics, OpenCycle, ShadowState

SAMPLES_TO_KNOW = 50
"""After this many samples, a change of one of them changes no short-term average by more than half a percent."""
ALWAYS_KNOWN = 1 << 31
"""More cycles than any strategy's counters need to be known."""
_LATE = frozenset({Cause.LATE_REPORT, Cause.SETTINGS, Cause.POLICIES, Cause.EARLIER})


@dataclass(frozen=True, eq=False, slots=True)
class Judgement:
    """What is known after a cycle was judged.

    Attributes:
        record: The cycle, as it goes on record.
        memory: What the leader remembers.
        preallocated: Bundles that the leader gave to itself, and still counts as if they were in transit to it.
        counted: What the leader's metrics reported, up to this cycle.
        cycles_followed: Cycles for which the leader's counters have been followed.
        rhythm: When the next cycle is due.
    """

    record: ShadowCycle
    memory: LeaderMemory
    preallocated: Mapping[str, str]
    counted: Metrics
    cycles_followed: int
    rhythm: Rhythm


@dataclass(frozen=True, eq=False, slots=True)
class _Outcome:
    """What a cycle did.

    Attributes:
        predicted: Bundles that were to be unloaded, of those that still exist.
        actual: Bundles that were unloaded.
        differences: What was not as predicted, with the likely cause.
        explained: The decision that explains it if that is not the prediction.
        moment_ms: About when the leader decided, ms since 1970.
    """

    predicted: tuple[Relocation, ...]
    actual: tuple[Relocation, ...]
    differences: tuple[Deviation, ...]
    explained: Prediction | None
    moment_ms: int

    @property
    def in_cycle(self) -> tuple[Relocation, ...]:
        """What the leader unloaded."""
        return _without_manual(self.actual, self.differences)


def _without_manual(actual: tuple[Relocation, ...], found: Sequence[Deviation]) -> tuple[Relocation, ...]:
    causes = {difference.bundle: difference.cause for difference in found}
    return tuple(unload for unload in actual if causes.get(unload.bundle) is not Cause.MANUAL)


def judge(cycle: OpenCycle, state: ShadowState, seen: Observation) -> Judgement:
    """Judge a cycle that is complete.

    Args:
        cycle: The cycle.
        state: What was known before the later capture.
        seen: What the last two captures show.

    Returns:
        The record of the cycle, and what is known after it.
    """
    left = {
        bundle: source
        for bundle, source in cycle.sources.items()
        if seen.owners.get(bundle, "") != source or bundle in cycle.prediction.bundles
    }
    case, unloaded = _of_leader(Case(cycle, state, seen), left)
    outcome = _outcome(case, unloaded)
    late = any(d.cause in _LATE and d.what != ELSEWHERE for d in outcome.differences) or case.loads_change_decision()
    return Judgement(
        record=_record(case, outcome, in_time=_is_in_time(case, late=late)),
        memory=_memory(case, outcome),
        preallocated=_preallocated(case, outcome),
        counted=_counted(case, outcome),
        cycles_followed=_cycles_followed(case, late=late),
        rhythm=_rhythm(case, outcome),
    )


# What the leader did


def _of_leader(case: Case, left: Mapping[str, str]) -> tuple[Case, Mapping[str, str]]:
    """Separate what the leader unloaded, by its own count, from manual unloads, and note those as outside the cycle.

    Where it unloaded more than has another broker now, the rest was taken back.

    Args:
        case: The cycle.
        left: Bundles that left their broker, with that broker.
    """
    unreliable = case.cycle.disturbed in {Cause.LEADER, Cause.MISSED}
    own = None if unreliable else case.seen.counted.unloaded
    if own is None:
        return case, left
    missing = _counted_and_not_seen(case, left)
    if missing:
        back = {bundle for bundle, source in missing.items() if case.seen.owners.get(bundle) == source}
        between = case.state.between.without_unloads(missing)
        cycle = replace(case.cycle, returned=case.cycle.returned | back)
        return replace(case, cycle=cycle, state=replace(case.state, between=between)), {**left, **missing}
    if own >= len(left):
        return case, left
    chosen = _likely_own(case, frozenset(left), own)
    mine = {bundle: source for bundle, source in left.items() if bundle in chosen}
    others = case.seen.relocations({bundle: source for bundle, source in left.items() if bundle not in mine})
    times = {bundle: at_ms for bundle, at_ms in case.cycle.taken_ms.items() if bundle in mine}
    cycle = replace(case.cycle, taken_ms=times, returned=case.cycle.returned & mine.keys())
    between = case.state.between.with_unloads(others, Cause.MANUAL)
    return replace(case, cycle=cycle, state=replace(case.state, between=between)), mine


def _counted_and_not_seen(case: Case, left: Mapping[str, str]) -> dict[str, str]:
    """Return predicted bundles, with their broker, that did not seem to leave, where the leader counted them as well.

    A capture asks for owners first, and then for metrics: the count has to be there one capture earlier.
    """
    owners, counted = case.seen.owners, case.seen.counted.unloaded_before
    more = {u.bundle: u.source for u in case.made.unloads if u.bundle in owners and u.bundle not in left}
    return more if counted is not None and counted >= len(left) + len(more) else {}


def _likely_own(case: Case, left: frozenset[str], own: int) -> frozenset[str]:
    """Return as many bundles as the leader counted: those of a decision with that number, else the likeliest ones."""
    for made in (case.made, *(decide() for _, decide in case.alternatives())):
        both = left & made.bundles
        if made.sure <= left and len(both) == own:
            return both
    made, acceptable, cycle = case.made, case.made.acceptable, case.cycle
    from_ms = case.rhythm.due_ms - case.rhythm.sharp_ms if case.rhythm.known else 0

    def unlikely(bundle: str) -> tuple[bool, bool, bool, int, str]:
        at_ms, to = cycle.taken_ms.get(bundle, case.seen.to_ms), cycle.destinations.get(bundle, "")
        elsewhere = bool(to) and to not in acceptable.get(bundle, (to,))
        return bundle not in made.bundles, at_ms < from_ms, elsewhere, at_ms, bundle

    return frozenset(sorted(left, key=unlikely)[:own])


def _outcome(case: Case, unloaded: Mapping[str, str]) -> _Outcome:
    """Compare what the leader unloaded with the prediction."""
    existing = case.seen.after.bundle_position
    predicted = tuple(unload for unload in case.made.unloads if unload.bundle in existing)
    went = destinations(case.cycle, case.seen, unloaded)
    actual = tuple(Relocation(bundle, source, went[bundle]) for bundle, source in unloaded.items())
    found, explained = differences(case, predicted, actual)
    decided = bool(_without_manual(actual, found))
    moment_ms = case.moment_ms(explained) if decided else case.rhythm.due_ms
    return _Outcome(predicted, actual, found, explained, moment_ms)


def _record(case: Case, outcome: _Outcome, *, in_time: bool) -> ShadowCycle:
    between = case.state.between
    return ShadowCycle(
        cluster=case.seen.after.info.cluster,
        number=case.state.number + 1,
        from_ms=case.cycle.from_ms,
        to_ms=case.cycle.seen_ms,
        leader=case.made.view.info.leader,
        shedder=case.made.decision.shedder.name,
        predicted=outcome.predicted,
        actual=outcome.actual,
        outside=between.outside,
        predicted_splits=between.predicted_splits,
        actual_splits=between.actual_splits,
        differences=(*between.differences, *outcome.differences),
        in_time=in_time,
    )


# Whether the inputs were seen in time


def _is_in_time(case: Case, *, late: bool) -> bool:
    """Say whether the captures hold the inputs of the decision (`ShadowCycle.in_time`)."""
    return (
        _knows_memory(case)
        and _knows_moment(case)
        and not case.seen.counted.stopped
        and case.cycle.stable
        and case.cycle.disturbed is None
        and not late
        and not case.order_changes_decision()
    )


def _knows_memory(case: Case) -> bool:
    """Say whether the leader's counters and averages have been followed long enough."""
    needed = cycles_to_know(case.made.decision.shedder.name, case.made.view.settings)
    sampled = case.state.samples >= SAMPLES_TO_KNOW or not case.seen.is_modular
    return case.state.cycles_followed >= needed and sampled


def _knows_moment(case: Case) -> bool:
    """Say whether the cycle was predicted before it began, from captures close to each other."""
    cycle, rhythm = case.cycle, case.rhythm
    first_ms = min(cycle.taken_ms.values(), default=cycle.seen_ms)
    close = cycle.gap_ms <= WAIT_SHARE * rhythm.interval_ms
    return close and first_ms - cycle.from_ms >= TAKES_MS and not (rhythm.known and cycle.from_ms > rhythm.due_ms)


# What is known after it


def _memory(case: Case, outcome: _Outcome) -> LeaderMemory:
    """Return what the leader remembers after the cycle."""
    made, metrics = outcome.explained or case.made, case.seen.counted.after
    after = made.after if outcome.explained is None else carried_out(case.made.after, made.after)
    counters = made.decision.shedder.profile.counters
    if counters is not None and counters.reported is not None and metrics:
        before = made.before.shedding.state if made.before is not None else made.decision.shedder.initial()
        counted = case.seen.counted.at_last_cycle
        state = counters.reported(before, made.after.shedding.state, counted, metrics, made.view.settings)
        after = replace(after, shedding=after.shedding.with_state(state))
    unloaded = {unload.bundle: unload.source for unload in outcome.in_cycle}
    times = {bundle: at_ms - TAKES_MS for bundle, at_ms in case.cycle.taken_ms.items()} if case.seen.is_modular else {}
    return settle_memory(case.made.before, after, made.bundles, unloaded, outcome.moment_ms, times)


def _preallocated(case: Case, outcome: _Outcome) -> Mapping[str, str]:
    """Return what the leader counts for itself: as in the decision that explains the cycle, if there is one."""
    explained = outcome.explained
    if explained is None or explained.before is None or not case.seen.is_modular:
        return case.state.preallocated
    return explained.before.modular.preallocated


def _counted(case: Case, outcome: _Outcome) -> Metrics:
    """Return the leader's metrics that belong to this cycle.

    What was counted only in the later capture may not have moved yet: it belongs to the next cycle.
    """
    counted, own = case.seen.counted, len(outcome.in_cycle)
    later = counted.unloaded
    newer = counted.unloaded_before == own and later is not None and later > own
    return counted.before if newer else counted.after


def _cycles_followed(case: Case, *, late: bool) -> int:
    """Return for how many cycles the counters of a leader that reports nothing of them have been followed.

    A cycle that may have counted otherwise than it was followed leaves them unknown, until one whose unloads were
    predicted, or after which they are the same whatever they were before.
    """
    made, followed = case.made, case.state.cycles_followed
    profile = made.decision.shedder.profile
    if profile.counters is None or profile.counters.reported is not None:
        return followed + 1
    hits = _hits(made)
    if late or not case.cycle.stable or any(_hits(one) != hits for one in case.by_later_loads()):
        return -ALWAYS_KNOWN
    if case.cycle.sources and case.cycle.sources.keys() == made.bundles:
        return ALWAYS_KNOWN
    others = (predict(made.view, other) for other in other_memories(made.decision, made.before, made.view))
    return ALWAYS_KNOWN if all(_hits(one) == hits for one in others) else followed + 1


def _hits(made: Prediction) -> list[Mapping[str, float]]:
    """Return the hit counts after a decision, by broker."""
    tallies, brokers = made.decision.shedder.profile.tallies, made.view.brokers.name
    return [tally.of(made.after.shedding.state, brokers) for tally in tallies if tally.unit == "hits"]


def _rhythm(case: Case, outcome: _Outcome) -> Rhythm:
    """Return when the next cycle is due: the modular load manager counts from the last unload."""
    ended_ms, in_cycle = outcome.moment_ms, bool(outcome.in_cycle)
    if in_cycle and case.seen.is_modular:
        ended_ms = max((*case.cycle.taken_ms.values(), ended_ms))
    return case.rhythm.after_cycle(ended_ms, case.seen.to_ms, seen=in_cycle)
