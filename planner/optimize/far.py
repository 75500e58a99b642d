"""What is asked of HiGHS where a plan is more than 1 % above its bound: for a lower peak, then for a longer proof."""

from collections.abc import Callable

import numpy as np

from planner.cluster.arrays import FloatArray
from planner.optimize.below import LONG_PROOF, SHORT_PROOF, can_be_asked_again, none_below, ways_below
from planner.optimize.bound import SLACK
from planner.optimize.leaving import CLOSER, CLOSEST, MOST_BUNDLES, SMALL, leaving
from planner.optimize.nearby import exchange_nearby
from planner.optimize.placement import carry_out, forced_stay
from planner.optimize.search import lower_peak, place_forced
from planner.optimize.state import EPSILON, State
from planner.optimize.together import place_together

_FAR_FACTOR = 1.01
"""Relative to the bound: a peak that is worth this work."""
_NEAR_FACTOR = 1.008
"""Relative to the bound: a peak at which programs of many bundles stop."""
_ASKED_FACTOR = 1.0095
"""Relative to the bound: the usage that all bundles are asked to get below."""
_PROVEN_FACTOR = 1.0098
"""The peak relative to what is proven impossible: to prove less than all is much faster."""
_START_FACTOR = 1.05
"""Relative to the plan so far: the peak of another start that is worth a search."""
_LONG_ROUNDS = 6
"""Rounds of work with which the longest programs are asked."""
_MOST_PROGRAMS = 6
_NEARBY_PROGRAMS = 10
"""Programs of a few brokers for each round of work."""


def lower_and_prove(
    start: State, state: State, caps: FloatArray, bounds: dict[str, float], should_stop: Callable[[], bool]
) -> float:
    """Lower the peak of a plan far above its bound, and prove more; return the bound.

    Short proofs come first: often there is nothing to search for. Where many bundles are asked about several times, the
    longest do, too: they say what to ask for.

    Args:
        start: The cluster before anything moves.
        state: The plan; is changed.
        caps: Usage that a receiver may not exceed. Shape (brokers,).
        bounds: Each bound by its name; *leaving* is changed.
        should_stop: Says whether to stop.
    """
    model, peak, known = state.model, state.peak(), max(bounds.values())
    closely = model.question.rounds >= _LONG_ROUNDS and can_be_asked_again(model, start, known * _ASKED_FACTOR)
    bound = prove_far(start, state, bounds, should_stop, searched=closely)
    if _is_far(state, bound):
        # With groups a goal nearer the plan has more moves without an order: 3 of 60 plans were worse with it.
        lower_far(state, caps, bound if closely or not model.rules.group else known, should_stop)
    if closely and state.peak() >= peak:
        return bound
    return prove_far(start, state, bounds, should_stop, searched=True)


def lower_far(state: State, caps: FloatArray, bound: float, should_stop: Callable[[], bool]) -> None:
    """Lower the peak of a plan far above its bound: place all bundles at once, then many, then a few brokers each.

    Args:
        state: The plan; is changed.
        caps: Usage that a receiver may not exceed. Shape (brokers,).
        bound: What no plan gets below.
        should_stop: Says whether to stop.
    """
    before, peak, rounds = state.moves(), state.peak(), state.model.question.rounds
    if not _is_far(state, bound):
        return
    most, goal = np.maximum(caps, state.usage), bound * _NEAR_FACTOR

    def finish() -> None:
        lower_peak(state, most, should_stop, goal=goal)

    if rounds >= _LONG_ROUNDS and not should_stop():
        _start_anew(state, finish, should_stop, bound)
        if state.peak() > peak * _START_FACTOR:
            state.restore(before)
        if not _is_far(state, bound):
            return
    place_together(state, finish, should_stop, goal=goal, rounds=min(rounds // 2, _MOST_PROGRAMS))
    exchange_nearby(state, should_stop, goal=goal, programs=_NEARBY_PROGRAMS * rounds)
    if state.peak() > peak:
        state.restore(before)


def _start_anew(state: State, finish: Callable[[], None], should_stop: Callable[[], bool], bound: float) -> None:
    """Take the best of the plans that begin with what is said of all bundles at once; none where none is as asked.

    Args:
        state: The plan; is changed.
        finish: Improves it further.
        should_stop: Says whether to stop.
        bound: What no plan gets below.
    """
    start, best, lowest = State(state.model), state.moves(), np.inf
    refused = set[tuple[int, int]]()
    for moves in ways_below(state.model, start, bound * _ASKED_FACTOR, refused):
        refused |= carry_out(state, moves)
        place_forced(state, should_stop)
        finish()
        if state.peak() < lowest and not forced_stay(state) and (state.spent <= state.model.budgets + EPSILON).all():
            best, lowest = state.moves(), state.peak()
        if lowest <= bound * _FAR_FACTOR or should_stop():
            break
    state.restore(best)


def prove_far(
    start: State, state: State, bounds: dict[str, float], should_stop: Callable[[], bool], *, searched: bool
) -> float:
    """Return the bound, after longer proofs where a plan is far above it.

    Args:
        start: The cluster before anything moves.
        state: The plan.
        bounds: Each bound by its name; *leaving* is changed.
        should_stop: Says whether to stop.
        searched: Whether a longer search has been tried, or depends on it: only then the longest proofs are worth it.
    """
    model, usage = state.model, state.peak() / _PROVEN_FACTOR

    def far() -> bool:
        return _is_far(state, max(bounds.values())) and not should_stop()

    if "leaving" not in bounds or int(model.movable.sum()) > MOST_BUNDLES:
        return max(bounds.values())
    long = model.question.rounds >= _LONG_ROUNDS
    for depth in (CLOSER, CLOSEST if searched else SMALL) if long else (CLOSER,):
        if far():
            known = max(bounds.values())
            bounds["leaving"] = max(known, leaving(model, start, low=known, high=usage, depth=depth).bound)
    if long and far() and none_below(model, start, usage, work=LONG_PROOF if searched else SHORT_PROOF):
        bounds["leaving"] = max(*bounds.values(), usage - SLACK)
    return max(bounds.values())


def _is_far(state: State, bound: float) -> bool:
    """Say whether a plan is so far above a bound that this work is worth it."""
    return state.peak() > bound * _FAR_FACTOR
