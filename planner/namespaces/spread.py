"""How evenly loads can lie on brokers: a bound that no placement beats, and a placement that is known."""

import heapq

import numpy as np

from planner.cluster.arrays import FloatArray


def least_share(loads: FloatArray, brokers: int) -> float:
    """Return a share of the whole below which no placement brings the broker with most of it.

    The largest of: an even part; the heaviest load; and, as of k·B + 1 loads some broker gets k + 1, the k + 1 lightest
    of the k·B + 1 heaviest. It may be too low, never too high.

    Args:
        loads: Loads that cannot be divided. Shape (loads,).
        brokers: How many brokers may take them.
    """
    whole = float(loads.sum())
    if not whole or brokers < 1:
        return 1.0 if whole else 0.0
    heavy = np.sort(loads)[::-1]
    rounds = np.arange(1, (len(heavy) - 1) // brokers + 1)
    sums = np.concatenate(([0.0], np.cumsum(heavy)))
    last = rounds * brokers + 1
    packed = sums[last] - sums[last - rounds - 1]
    return float(max(whole / brokers, heavy[0], packed.max(initial=0.0)) / whole)


def reached_share(loads: FloatArray, brokers: int) -> float:
    """Return the share of the broker with most when loads are placed heaviest first, each where least is."""
    whole = float(loads.sum())
    if not whole or brokers < 1:
        return 1.0 if whole else 0.0
    heavy = np.sort(loads[loads > 0])[::-1]
    if len(heavy) <= brokers:
        return float(heavy[0] / whole)
    least: list[float] = heavy[:brokers][::-1].tolist()
    heapq.heapify(least)
    for load in heavy[brokers:].tolist():
        heapq.heapreplace(least, least[0] + load)
    return max(least) / whole
