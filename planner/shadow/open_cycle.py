"""A cycle that is open: how it begins, takes in unloads, and when nothing more is to be expected of it.

The leader decides first and then unloads, one bundle after the other, which may take long. So a cycle is judged by the
last capture from before it was due, and the captures around that one are searched for an explanation.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from planner.shadow.observe import SESSION_MS, Observation
from planner.shadow.prediction import Prediction
from planner.shadow.record import Cause
from planner.shadow.rhythm import Rhythm
from planner.shadow.state import OpenCycle, ShadowState

WAIT_SHARE = 0.5
"""A cycle is over after this share of an interval without a further unload."""
MISSED_SHARE = 1.5
"""Captures this many intervals apart have missed a cycle."""
_SETTLE_MS = 15_000
_SETTLE_GAPS = 3
_SETTLE_SHARE = 0.4
_LATEST_SHARE = 0.8
_LONGEST_SERIES = 3
_REPORTS = 2


def opened(state: ShadowState, seen: Observation, disturbed: Cause | None) -> OpenCycle:
    """Open a cycle, predicted from the last capture; where it is known when it was due, from the last before that."""
    predictions, rhythm = state.predictions, state.rhythm
    at = len(predictions) - 1
    if rhythm.known:
        until_ms = rhythm.due_ms + rhythm.sharp_ms
        at = max((i for i, one in enumerate(predictions) if one.captured_at_ms <= until_ms), default=0)
    made = predictions[at]
    last = _of_last_reports(predictions[: at + 1], seen)
    is_last = at + 1 == len(predictions)
    gap_ms = seen.gap_ms if is_last else predictions[at + 1].captured_at_ms - made.captured_at_ms
    return OpenCycle(
        prediction=made,
        around=predictions,
        stable=at > 0 and all(one.bundles == made.bundles for one in last),
        from_ms=made.captured_at_ms,
        seen_ms=seen.to_ms,
        later=seen.view,
        last_ms=seen.to_ms,
        gap_ms=gap_ms,
        disturbed=disturbed,
    )


def _of_last_reports(predictions: Sequence[Prediction], seen: Observation) -> Sequence[Prediction]:
    """Return the last two predictions; where no capture shows when brokers reported, all since each has reported."""
    if seen.is_modular:
        return predictions[-2:]
    since_ms = predictions[-1].captured_at_ms - _REPORTS * seen.report_interval_ms
    return (*(one for one in predictions[:-2] if one.captured_at_ms >= since_ms), *predictions[-2:])


def with_unloads(
    cycle: OpenCycle, state: ShadowState, seen: Observation, moved: Mapping[str, str], returned: frozenset[str]
) -> OpenCycle:
    """Take unloads into an open cycle.

    Args:
        cycle: The cycle.
        state: What is known before the later capture.
        seen: What two captures show.
        moved: Bundles that were unloaded between the two, with the broker that had them.
        returned: Predicted bundles that were unloaded, and that the same broker took again.
    """
    if not cycle.sources:
        # A known rhythm keeps the prediction of its moment; without one, the last capture counts.
        known = state.rhythm.known
        cycle = replace(cycle, later=seen.view, seen_ms=seen.to_ms) if known else opened(state, seen, cycle.disturbed)
    back = {unload.bundle: unload.source for unload in cycle.prediction.unloads if unload.bundle in returned}
    # What is given to a broker that is only starting is taken late.
    taken = [bundle for bundle in (*moved, *returned) if seen.owners.get(bundle, "") not in seen.starting]
    times = {bundle: at_ms for bundle in taken if (at_ms := seen.taken_ms(bundle)) > cycle.from_ms}
    return replace(
        cycle,
        sources={**moved, **back, **cycle.sources},
        returned=cycle.returned | returned,
        last_ms=seen.to_ms,
        destinations=destinations(cycle, seen, moved),
        taken_ms={**cycle.taken_ms, **times},
    )


def destinations(cycle: OpenCycle, seen: Observation, bundles: Iterable[str]) -> Mapping[str, str]:
    """Return the first broker that had each bundle of an open cycle, and of some more."""
    known = {bundle: broker for bundle, broker in cycle.destinations.items() if broker}
    return {**{bundle: seen.owners.get(bundle, "") for bundle in (*cycle.sources, *bundles)}, **known}


def is_complete(cycle: OpenCycle, state: ShadowState, seen: Observation) -> bool:
    """Say whether nothing more is to be expected of a cycle."""
    rhythm, unloaded = state.rhythm, seen.counted.unloaded
    if _awaits_answer(cycle, rhythm, seen):
        return False
    since_ms = seen.to_ms - (cycle.from_ms if cycle.sources else min(rhythm.due_ms, seen.to_ms))
    settle_ms = min(max(_SETTLE_GAPS * seen.gap_ms, _SETTLE_MS), _SETTLE_SHARE * rhythm.interval_ms)
    all_seen = unloaded is not None and 0 < unloaded <= len(cycle.sources) and since_ms >= settle_ms
    if all_seen or _is_over(cycle, rhythm, seen):
        return True
    if since_ms < settle_ms or not _is_quiet(cycle, seen, settle_ms):
        return since_ms >= _LONGEST_SERIES * rhythm.interval_ms
    if _carried_out(cycle, unloaded):
        return True
    if not cycle.sources and not rhythm.known:
        return seen.to_ms >= state.acting_since_ms + rhythm.interval_ms + settle_ms
    # A slow cluster unloads one bundle, and the next one much later.
    return (seen.to_ms - cycle.last_ms if cycle.sources else since_ms) >= WAIT_SHARE * rhythm.interval_ms


def _is_over(cycle: OpenCycle, rhythm: Rhythm, seen: Observation) -> bool:
    """Say whether the next cycle is near; the modular load manager waits until it has unloaded everything."""
    near = rhythm.known and seen.to_ms - rhythm.due_ms >= _LATEST_SHARE * rhythm.interval_ms
    return near and not (seen.is_modular and cycle.sources)


def _is_quiet(cycle: OpenCycle, seen: Observation, settle_ms: float) -> bool:
    """Say whether nothing more was unloaded for at least the time between two captures."""
    return not cycle.sources or seen.gap_ms >= settle_ms or seen.to_ms - cycle.last_ms >= seen.gap_ms


def _awaits_answer(cycle: OpenCycle, rhythm: Rhythm, seen: Observation) -> bool:
    """Say whether the leader may still report what it decided: a leader that is there counts each cycle."""
    passed_ms = seen.to_ms - rhythm.due_ms
    if seen.counted.stopped:  # a leader that is gone is followed by one that decides later
        return passed_ms < SESSION_MS
    skips = not cycle.sources and not seen.counted.unloaded and seen.counted.counts_skips
    return skips and rhythm.counted_ms < rhythm.due_ms and passed_ms < MISSED_SHARE * rhythm.interval_ms


def _carried_out(cycle: OpenCycle, unloaded: int | None) -> bool:
    """Say whether the prediction was carried out; a leader counts when it has unloaded everything."""
    counting = unloaded is not None and unloaded < len(cycle.sources.keys() & cycle.prediction.bundles)
    return cycle.prediction.sure <= cycle.sources.keys() and not counting
