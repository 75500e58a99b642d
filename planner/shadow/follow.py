"""Shadow mode: predicts from each capture what the load balancer does next, and learns from later ones what it did.

The leader's memory is carried from cycle to cycle as the planner carries it (`next_cycle`), with the unloads that
really happened. `follow` states the order of the steps: observe what two captures show (`observe`), find or continue
the cycle that is open (`open_cycle`), judge it when it is complete (`judge`), and predict the next one (`prediction`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from planner.cluster.errors import CaptureError
from planner.cluster.snapshot import Snapshot
from planner.pulsar.placement import modular
from planner.shadow.judge import ALWAYS_KNOWN, SAMPLES_TO_KNOW, judge
from planner.shadow.memory import settle_memory
from planner.shadow.observe import Observation, leadership, observe, sheds
from planner.shadow.open_cycle import MISSED_SHARE, is_complete, opened, with_unloads
from planner.shadow.prediction import Prediction, alternatives, predict
from planner.shadow.record import Cause, ShadowCycle, Split
from planner.shadow.rhythm import shedding_interval_ms
from planner.shadow.state import BetweenCycles, OpenCycle, ShadowState

_RECENT = 6
_MOST_MISSED = 1_000
_MANUAL_SHARES = (0.6, 0.2)
"""Between these shares of an interval before the next cycle none can be near."""

_Followed = tuple[ShadowState, tuple[ShadowCycle, ...]]
"""The state, and the judged cycles."""


@dataclass(frozen=True, eq=False, slots=True)
class ShadowResult:
    """What a capture showed.

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
    state, cycles = follow(state, before, after, interval_ms or shedding_interval_ms(before.settings))
    rhythm = state.rhythm
    return state, ShadowResult(cycles, state.prediction, state.splits.predicted, rhythm.due_ms, rhythm.known)


def follow(state: ShadowState, before: Snapshot, after: Snapshot, interval_ms: int) -> _Followed:
    """Find what happened between two captures, judge the cycle that is complete, and predict the next one."""
    state = replace(state, rhythm=replace(state.rhythm, interval_ms=interval_ms))
    if not state.rhythm.due_ms:
        state = _begun(state, before, after.info.captured_at_ms)
    if not state.continues(before):
        state = _predicted(state, before, ())
    seen = observe(before, after, state)
    state = _noted(state, seen)
    state, cycles = _follow_cycle(state, seen)
    state = _with_leader(state, seen)
    state = _with_reports_read(state, seen)
    state = _with_preallocated(state, seen)
    same_memory = not cycles and not seen.elected
    return _predicted(state, seen.view, state.predictions if same_memory else ()), cycles


# What is known, step by step


def _begun(state: ShadowState, first: Snapshot, until_ms: int) -> ShadowState:
    """Begin with the first capture."""
    at_ms, metrics = first.info.captured_at_ms, first.info.leader_metrics
    return replace(
        state,
        leader=leadership(first),
        first_ms=at_ms,
        began_ms=at_ms,
        counted=metrics,
        counted_at_begin=metrics,
        rhythm=state.rhythm.after_election(first, at_ms, until_ms),
        preallocated=_given_since_election(first),
        samples=0 if first.bundles.averages_estimated.any() else SAMPLES_TO_KNOW,
    )


def _predicted(state: ShadowState, view: Snapshot, recent: tuple[Prediction, ...]) -> ShadowState:
    """Predict the next cycle from a capture; keep a few predictions from the captures before it."""
    made = predict(view, state.remembered(view))
    return replace(state, predictions=(*recent, made)[-_RECENT:])


def _noted(state: ShadowState, seen: Observation) -> ShadowState:
    """Note what does not depend on whether a cycle happened: samples, maps and splits, and since when it will act."""
    acts = bool(state.prediction.sure)
    return replace(
        state,
        acting_since_ms=(state.acting_since_ms or seen.from_ms) if acts else 0,
        samples=0 if seen.misses_report else state.samples + seen.reports,
        maps=seen.maps,
        splits=seen.splits,
        between=state.between.with_splits(seen.splits_seen),
    )


def _with_leader(state: ShadowState, seen: Observation) -> ShadowState:
    """Note who leads and what it counts; a newly elected leader remembers nothing."""
    if seen.elected:
        state = _newly_elected(state, seen)
    if seen.after.info.leader:  # between two leaders there is none
        state = replace(state, leader=seen.leader)
    if not state.counted and state.cycle is None:
        state = replace(state, counted=seen.counted.after)
    return state


def _newly_elected(state: ShadowState, seen: Observation) -> ShadowState:
    return replace(
        state,
        memory=None,
        began_ms=seen.from_ms,
        cycles_followed=ALWAYS_KNOWN,
        counted=seen.counted.after,
        counted_at_begin=seen.counted.after,
        rhythm=state.rhythm.after_election(seen.after, seen.from_ms, seen.to_ms),
    )


def _with_reports_read(state: ShadowState, seen: Observation) -> ShadowState:
    """Let the leader forget promises as it reads new reports, and brokers that left."""
    memory = state.memory
    if memory is None or not seen.is_modular:
        return state
    place = modular.with_active_brokers(memory.modular, seen.after)
    if seen.before.brokers.updated_at_ms.tolist() != seen.after.brokers.updated_at_ms.tolist():
        place = modular.after_refresh(place, seen.after)
    return state if place == memory.modular else replace(state, memory=replace(memory, modular=place))


def _with_preallocated(state: ShadowState, seen: Observation) -> ShadowState:
    """Follow which bundles the leader counts for itself: those that it gave to itself and does not report.

    A broker that splits a bundle keeps the children without being given them.
    """
    if seen.elected:
        return replace(state, preallocated=_given_since_election(seen.after))
    silent = modular.unreported(seen.after)
    given = {bundle: to for bundle, to in silent.items() if seen.owners_before.get(bundle, to) != to}
    kept = {bundle: to for bundle, to in silent.items() if state.preallocated.get(bundle) == to}
    return replace(state, preallocated={**kept, **given})


def _given_since_election(view: Snapshot) -> dict[str, str]:
    """Return what a leader gave to itself and does not report, as far as the metadata store shows when."""
    since_ms, taken_ms = view.info.leader_since_ms, view.info.taken_ms
    return {b: to for b, to in modular.unreported(view).items() if 0 < since_ms <= taken_ms.get(b, 0)}


# Cycles


def _follow_cycle(state: ShadowState, seen: Observation) -> _Followed:
    """Find or continue a cycle, and judge it when it is complete."""
    if seen.elected and state.cycle is not None and not state.cycle.sources:
        state = replace(state, cycle=None)  # its leader is gone, and the next one decides at another time
    shed_before, sheds_now = sheds(seen.before), sheds(seen.after)
    if sheds_now and not shed_before and state.rhythm.is_due(seen.to_ms) and seen.counted.unloaded:
        return _switched_on(state, seen)
    if not sheds_now or not shed_before:
        return _switched_off(state, seen)
    if seen.gap_ms > MISSED_SHARE * state.rhythm.interval_ms:
        return _missed(state, seen)
    return _follow_unloads(_with_counted_cycle(state, seen), seen, Cause.LEADER if seen.elected else None)


def _with_counted_cycle(state: ShadowState, seen: Observation) -> ShadowState:
    """Go by the leader's count of cycles without unloads, if it counted one between the two captures."""
    unloading = state.cycle is not None and bool(state.cycle.sources)
    if seen.elected or unloading or not seen.counted.skipped_cycle:
        return state
    # The leader decided with what the earlier capture shows.
    return replace(state, cycle=None, rhythm=state.rhythm.after_counted_cycle(seen.from_ms, seen.to_ms))


def _switched_on(state: ShadowState, seen: Observation) -> _Followed:
    """Follow a leader that decided by settings which no capture held: shedding was switched on just before."""
    view = replace(seen.known, settings=seen.after.settings)
    return _follow_unloads(_predicted(state, view, ()), seen, Cause.SETTINGS)


def _switched_off(state: ShadowState, seen: Observation) -> _Followed:
    """Go on while shedding is off: there are no cycles, and every unload is a manual one.

    What the leader decided just before it was switched off is judged first.
    """
    decided = sheds(seen.before)
    cycles: tuple[ShadowCycle, ...] = ()
    state, moved = _moved(state, seen)
    cycle = state.cycle
    if decided and cycle is None and moved and _is_cycle(state, seen, moved):
        cycle = opened(state, seen, None)
    if decided and cycle is not None:
        if moved:
            cycle = with_unloads(cycle, state, seen, moved, frozenset())
        elif not cycle.sources:
            cycle = replace(cycle, disturbed=Cause.SETTINGS)
        state, cycles = _closed(state, seen, cycle)
    else:
        state = _with_outside(state, seen, moved, Cause.UNKNOWN if decided else Cause.MANUAL)
    return replace(state, cycle=None, rhythm=state.rhythm.skipped_to(seen.to_ms)), cycles


def _missed(state: ShadowState, seen: Observation) -> _Followed:
    """Judge captures so far apart that several cycles lie between them."""
    cycle = state.cycle or opened(state, seen, Cause.MISSED)
    state, moved = _moved(state, seen)
    cycle = replace(cycle, sources={**moved, **cycle.sources}, disturbed=Cause.MISSED)
    state, cycles = _closed(state, seen, cycle)
    passed = min(round(seen.gap_ms / state.rhythm.interval_ms) - 1, _MOST_MISSED)
    for _ in range(passed):
        further = predict(seen.view, state.remembered(seen.view))
        state = replace(state, memory=settle_memory(further.before, further.after, further.bundles, {}, 0))
    return replace(state, rhythm=state.rhythm.lost()), cycles


def _follow_unloads(state: ShadowState, seen: Observation, disturbed: Cause | None) -> _Followed:
    """Find bundles that left their broker, decide whether a cycle did it, and judge it when it is complete."""
    state, moved = _moved(state, seen)
    if state.cycle is None:
        state, moved = _without_early(state, seen, moved)
    cycle = state.cycle
    if cycle is None and _begins(state, seen, moved, disturbed):
        cycle = opened(state, seen, disturbed)
    if cycle is None:
        return _with_outside(state, seen, moved, _outside_cause(state, seen, moved)), ()
    if disturbed is not None:
        cycle = replace(cycle, disturbed=disturbed)
    returned = seen.returned(cycle.prediction)
    if moved or returned:
        cycle = with_unloads(cycle, state, seen, moved, returned)
    elif not cycle.sources and not state.rhythm.known:
        cycle = opened(state, seen, cycle.disturbed)  # the cycle may come only now
    if is_complete(cycle, state, seen):
        return _closed(state, seen, cycle)
    return replace(state, cycle=cycle), ()


def _closed(state: ShadowState, seen: Observation, cycle: OpenCycle) -> _Followed:
    """Judge a cycle, and take over what is known after it."""
    judgement = judge(cycle, state, seen)
    state = replace(
        state,
        rhythm=judgement.rhythm,
        memory=judgement.memory,
        preallocated=judgement.preallocated,
        counted=judgement.counted,
        cycles_followed=judgement.cycles_followed,
        number=judgement.record.number,
        acting_since_ms=0,
        cycle=None,
        between=BetweenCycles(),
    )
    return state, (judgement.record,)


def _begins(state: ShadowState, seen: Observation, moved: Mapping[str, str], disturbed: Cause | None) -> bool:
    """Say whether a cycle begins: it is due, the leader counted unloads, or bundles left as in a cycle."""
    counted = disturbed is None and bool(seen.counted.unloaded)
    # A newly elected leader decides later.
    due = (disturbed is None or bool(moved)) and state.rhythm.is_due(seen.to_ms)
    return counted or due or (bool(moved) and _is_cycle(state, seen, moved))


def _is_cycle(state: ShadowState, seen: Observation, moved: Mapping[str, str]) -> bool:
    """Say whether bundles left in a cycle: one is about due, or some decision of the leader would select them."""
    made = state.prediction
    if not moved.keys().isdisjoint(made.bundles):
        return True
    if state.rhythm.known:
        return state.rhythm.may_hold_cycle(seen.from_ms, seen.to_ms)
    others = alternatives(made, (), seen.view, state.rhythm, seen.maps)
    return any(not moved.keys().isdisjoint(decide().bundles) for _, decide in others)


# Unloads outside of a cycle


def _moved(state: ShadowState, seen: Observation) -> tuple[ShadowState, dict[str, str]]:
    """Return bundles that were unloaded, with the broker that had them; note those whose broker left."""
    predicted = state.prediction.bundles
    state = _with_outside(state, seen, seen.orphaned(predicted), Cause.BROKER_LEFT)
    return state, seen.moved(predicted)


def _without_early(state: ShadowState, seen: Observation, moved: dict[str, str]) -> tuple[ShadowState, dict[str, str]]:
    """Note what was unloaded before the next cycle was due, for certain, as outside of it; return the rest."""
    rhythm = state.rhythm
    if not rhythm.known:
        return state, moved
    predicted, own_only = state.prediction.bundles, not seen.is_modular or seen.counted.unloaded != 0
    early = {
        bundle: source
        for bundle, source in moved.items()
        if 0 < seen.taken_ms(bundle) < rhythm.due_ms - rhythm.near_ms and not (own_only and bundle in predicted)
    }
    state = _with_outside(state, seen, early, _outside_cause(state, seen, early))
    return state, {bundle: source for bundle, source in moved.items() if bundle not in early}


def _outside_cause(state: ShadowState, seen: Observation, moved: Mapping[str, str]) -> Cause:
    """Say what unloaded bundles outside of a cycle: a manual unload; of several only when no cycle can be near."""
    rhythm = state.rhythm
    if len(moved) <= 1 or not rhythm.known:
        return Cause.MANUAL
    times = [seen.taken_ms(bundle) for bundle in moved]
    first_ms, last_ms = (min(times), max(times)) if all(times) else (seen.from_ms, seen.to_ms)
    low_ms, high_ms = (rhythm.due_ms - share * rhythm.interval_ms for share in _MANUAL_SHARES)
    return Cause.MANUAL if low_ms <= first_ms and last_ms <= high_ms else Cause.UNKNOWN


def _with_outside(state: ShadowState, seen: Observation, moved: Mapping[str, str], cause: Cause) -> ShadowState:
    """Note bundles that left their broker, but not in a cycle."""
    return replace(state, between=state.between.with_unloads(seen.relocations(moved), cause))
