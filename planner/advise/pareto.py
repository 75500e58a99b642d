"""The Pareto front of a table of costs, and two rules that choose one of its members.

All costs are to be small. A row is dominated when another one is at least as good in every column and better in one;
rows that are alike do not dominate each other, so that ties stay on the front together.
"""

import numpy as np

from planner.cluster.arrays import BoolArray, FloatArray, frozen

_EVEN_OUT = 1e-3


def pareto_front(costs: FloatArray) -> BoolArray:
    """Tell which rows no other row dominates.

    A row that is only as good in some columns and worse in another (weakly dominated) is out; equal rows are in or out
    together.

    Args:
        costs: Shape (candidates, objectives), all finite, small is good.

    Returns:
        Shape (candidates,).
    """
    keep: BoolArray = np.zeros(len(costs), dtype=np.bool_)
    # Who dominates a row comes before it in this order, and some row of the front dominates whatever is dominated.
    order = np.lexsort(costs.T[::-1])
    front: list[int] = []
    for row in order.tolist():
        best = costs[front]
        as_good = (best <= costs[row]).all(axis=1)
        if not bool((as_good & (best < costs[row]).any(axis=1)).any()):
            front.append(row)
    keep[front] = True
    return frozen(keep)


def _scaled(costs: FloatArray) -> FloatArray:
    """Return costs with the best of each column at 0 and the worst at 1; a column without difference is 0."""
    low: FloatArray = costs.min(axis=0)
    width = costs.max(axis=0) - low
    scaled: FloatArray = np.divide(costs - low, width, out=np.zeros_like(costs), where=width > 0)
    return scaled


def knee_scores(front: FloatArray) -> FloatArray:
    """Score members of a front of two objectives for the knee rule: the smallest is the knee.

    Both costs are scaled over the front to 0 … 1. The knee is the member farthest from the line between the two ends
    of the front, on the good side of it (I. Das, "On characterizing the knee of the Pareto curve", 1999): there a
    little less of one cost begins to cost much of the other. As the ends lie at (0, 1) and (1, 0), that distance grows
    as the sum of the scaled costs falls.

    Args:
        front: Shape (members, 2).

    Returns:
        Shape (members,): the sum of the scaled costs; 1 on the line, more on its bad side.
    """
    scores: FloatArray = _scaled(front).sum(axis=1)
    return scores


def weighted_scores(front: FloatArray, weight: float) -> FloatArray:
    """Score members of a front of two objectives by a weight: the smallest is the choice.

    Both costs are scaled over the front to 0 … 1. The score is the larger one of the weighted costs (the augmented
    Chebyshev distance to the ideal point), plus a thousandth of their sum, which decides between equals. Unlike a
    weighted sum it can choose every member, also where the front bends the wrong way.

    Args:
        front: Shape (members, 2).
        weight: Share of the first objective, 0 … 1.

    Returns:
        Shape (members,).
    """
    scaled = _scaled(front)
    weighted = scaled * np.array([weight, 1 - weight])
    scores: FloatArray = weighted.max(axis=1) + _EVEN_OUT * scaled.sum(axis=1)
    return scores


def distance_to_front(point: FloatArray, costs: FloatArray) -> float:
    """Return how much all costs of a point would have to fall until nothing dominates it, as a share of what they are.

    Args:
        point: Shape (objectives,), not negative.
        costs: Shape (candidates, objectives), not negative.

    Returns:
        0 where no candidate is better in every objective; 0.1 when one is 10 % better in each; 1 at most.
    """
    as_good = (costs <= point).all(axis=1) & (costs < point).any(axis=1)
    if not bool(as_good.any()):
        return 0.0
    better = costs[as_good]
    gain = np.divide(point - better, point, out=np.zeros_like(better), where=point > 0)
    return float(gain.min(axis=1).max())
