"""Lowers the peak of a plan a few brokers at a time: what they have is placed anew among them, all else stays.

One mixed-integer program says how a full broker and some others share their bundles so that the least is above a usage
just below the peak, and with the fewest moves then. Several brokers at the peak give way one after the other, and moves
that are saved on the way are there for others.
"""

from collections.abc import Callable

import numpy as np

from planner.cluster.arrays import BoolArray, FloatArray, Int64Array
from planner.optimize.placement import Placement, carry_out
from planner.optimize.state import EPSILON, State

_STEPS = (0.35, 0.15, 0.05)
"""Share of the way from the peak to the goal that is asked for: less where more has not been found."""
_FAILURES = 30
"""Programs in a row that bring nothing, after which less is asked for."""
_OTHERS = 4
_MOST_CHOICES = (400, 800)
"""Bundles x brokers of a program at most, in turns."""
_PARTNER = 2.0
"""Weight of each bundle that went from one broker to another, when others are drawn for a full one; 1 without."""
_SPARE = 20.0
"""Weight of a broker without any usage, when others are drawn."""
_UNRELATED = 0.02
"""Weight of a broker that can take nothing of a full one, when others are drawn."""
_PRICE = 1e4
"""Moves that usage of 1.0 above what is asked for is worth."""
_NODES = 10
_GAP = 0.1


def exchange_nearby(state: State, should_stop: Callable[[], bool], *, goal: float, programs: int) -> None:
    """Lower the peak of a plan by programs of a few brokers each.

    Args:
        state: The plan; is changed.
        should_stop: Says whether to stop.
        goal: Peak that is low enough.
        programs: How many are asked at most.
    """
    random, kept, step = np.random.default_rng(state.model.question.seed), state.moves(), 0
    peak, left = state.peak(), programs
    while peak > goal and left > 0 and step < len(_STEPS) and not should_stop():
        above, failures = peak - _STEPS[step] * (peak - goal), 0
        while _worth(state, above)[0] > 0 and failures < _FAILURES and left > 0 and not should_stop():
            left -= 1
            before = _worth(state, above)
            lowered = _exchanged(state, _some(state, above, random, _MOST_CHOICES[left % len(_MOST_CHOICES)]), above)
            failures = 0 if lowered and _worth(state, above)[0] < before[0] else failures + 1
        if state.peak() < peak - EPSILON:
            peak, kept = state.peak(), state.moves()
        if _worth(state, above)[0] > 0:
            step += 1
    state.restore(kept)


def _worth(state: State, above: float) -> tuple[float, float]:
    """Return how far brokers are above a usage, all together, and the moves; less is better."""
    over = np.maximum(state.usage[state.model.counts] - above - EPSILON, 0.0)
    return round(float(over.sum()), 7), float(state.spent[0])


def _some(state: State, above: float, random: np.random.Generator, most: int) -> BoolArray:
    """Return a broker above a usage, and some to share bundles with. Shape (brokers,)."""
    model = state.model
    full = int(random.choice(np.flatnonzero(model.counts & (state.usage > above + EPSILON))))
    group, masks = model.groups
    mine = np.flatnonzero(model.movable & (state.owner == full))
    reach = masks[group[state.space[mine]]].any(axis=0)
    weight: FloatArray = np.where(reach, 1.0, _UNRELATED)
    way = random.random()
    if way < 1 / 3:
        weight += reach * _SPARE * np.maximum(above - state.usage, 0.0) / above
    elif way < 2 / 3:
        for bundle in state.order:
            ends = int(model.owner[bundle]), int(state.owner[bundle])
            if full in ends:
                weight[list(ends)] += _PARTNER
    weight[~model.usage.alive] = weight[full] = 0.0
    load = np.bincount(state.owner[_free(state, model.usage.alive)], minlength=len(weight))
    chosen: BoolArray = np.arange(len(weight)) == full
    for _ in range(_OTHERS):
        if not weight.any():
            break
        one = int(random.choice(len(weight), p=weight / weight.sum()))
        weight[one] = 0.0
        if chosen.sum() < 2 or (load[chosen].sum() + load[one]) * (chosen.sum() + 1) <= most:  # noqa: PLR2004 - a pair
            chosen[one] = True
    return chosen


def _free(state: State, brokers: BoolArray) -> Int64Array:
    """Return what some brokers have that may move. Shape (such bundles,)."""
    model = state.model
    may = model.movable & (state.owner >= 0)
    may[list(model.pinned)] = False
    may[may] = brokers[state.owner[may]]
    found: Int64Array = np.flatnonzero(may)
    return found


def _exchanged(state: State, brokers: BoolArray, above: float) -> bool:
    """Let some brokers share what they have as a program says; return whether that is better, and go back if not."""
    free = _free(state, brokers)
    may = Placement.where(state, free, set())
    may[:, ~brokers] = False
    program = Placement(state, free, may, np.flatnonzero(brokers), above=above, apart=True)
    wanted = program.least_over(above, price=_PRICE, nodes=_NODES, gap=_GAP)
    before, worth = state.moves(), _worth(state, above)
    if not carry_out(state, wanted) and _worth(state, above) < worth:
        return True
    state.restore(before)
    return False
