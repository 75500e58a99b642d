"""How evenly loads can lie on brokers: a bound that no placement beats, and a placement that is known."""

import heapq
from typing import Final

import numpy as np

from planner.cluster.arrays import FloatArray

_FEW: Final = 20
"""Loads up to which placements are searched; more than that are even enough when the heaviest are placed first."""
_MOST_LOADS: Final = 12_000
"""Loads of brokers that such a search looks at: about ten milliseconds."""
_ALIKE: Final = 1e-12
"""Shares that differ by less are the same."""


def least_share(loads: FloatArray, brokers: int) -> float:
    """Return a share of the whole below which no placement brings the broker with most of it.

    It may be too low, never too high.

    Args:
        loads: Loads that cannot be divided. Shape (loads,).
        brokers: How many brokers may take them.
    """
    return shares(loads, brokers)[0]


def reached_share(loads: FloatArray, brokers: int) -> float:
    """Return the share of the broker with most under the best placement that is known, as `shares` does."""
    return shares(loads, brokers)[1]


def shares(loads: FloatArray, brokers: int) -> tuple[float, float]:
    """Return what the broker with most of some loads has, as shares of the whole.

    First a bound that no placement beats, then what a placement reaches. That one takes the heaviest first, each where
    least is. Of a few loads, placements are searched, so that both are mostly the best one.

    Args:
        loads: Loads that cannot be divided. Shape (loads,).
        brokers: How many brokers may take them.
    """
    whole = float(loads.sum())
    if not whole or brokers < 1:
        share = 1.0 if whole else 0.0
        return share, share
    heavy = np.sort(loads[loads > 0])[::-1] / whole
    least, reached = _bound(heavy, brokers), _heaviest_first(heavy, brokers)
    if len(heavy) <= _FEW and reached > least + _ALIKE:
        found, is_best = _searched(heavy.tolist(), brokers, least, reached)
        return (found, found) if is_best else (least, found)
    return least, reached


def _bound(heavy: FloatArray, brokers: int) -> float:
    """Return the largest of three bounds on loads in descending order.

    An even part; the heaviest load; and, as of k·B + 1 loads some broker gets k + 1, the k + 1 lightest of the k·B + 1
    heaviest.
    """
    rounds = np.arange(1, (len(heavy) - 1) // brokers + 1)
    sums = np.concatenate(([0.0], np.cumsum(heavy)))
    last = rounds * brokers + 1
    packed = sums[last] - sums[last - rounds - 1]
    return float(max(1 / brokers, heavy[0], packed.max(initial=0.0)))


def _heaviest_first(heavy: FloatArray, brokers: int) -> float:
    if len(heavy) <= brokers:
        return float(heavy[0])
    least: list[float] = heavy[:brokers][::-1].tolist()
    heapq.heapify(least)
    for load in heavy[brokers:].tolist():
        heapq.heapreplace(least, least[0] + load)
    return max(least)


def _searched(heavy: list[float], brokers: int, least: float, reached: float) -> tuple[float, bool]:
    """Return the least that a search of placements reaches, and whether no placement reaches less.

    Args:
        heavy: Loads in descending order.
        brokers: How many brokers may take them.
        least: A bound: what reaches it ends the search.
        reached: What is reached already.
    """
    best = reached
    seen: set[tuple[float, ...]] = set()
    waiting = [(0, (0.0,) * brokers)]
    while waiting and best > least + _ALIKE:
        if len(seen) * brokers >= _MOST_LOADS:
            return best, False
        at, placed = waiting.pop()
        if at == len(heavy):
            best = min(best, placed[-1])
            continue
        # The emptiest is looked at first, as it was put there last.
        for broker in range(brokers - 1, -1, -1):
            load = placed[broker] + heavy[at]
            if (broker and placed[broker] == placed[broker - 1]) or load >= best - _ALIKE:
                continue
            following = tuple(sorted((*placed[:broker], load, *placed[broker + 1 :])))
            if following not in seen:
                seen.add(following)
                waiting.append((at + 1, following))
    return best, True
