"""What no plan can beat, as only so many bundles fit: each broker takes a whole number of them.

25 equal bundles on 4 equal brokers put 7 on one of them, whatever is done. At a usage, a broker holds at most as many
bundles as the smallest ones fill it up to it; where all brokers together hold fewer bundles than there are, no plan
gets down to that usage. Asked of the largest bundles alone, the small ones count for nothing; asked of bundles that
only some brokers may have, the other brokers do not.
"""

from collections.abc import Iterator

import numpy as np

from planner.cluster.arrays import BoolArray, FloatArray, Int64Array
from planner.optimize.bound import SLACK, stuck
from planner.optimize.question import Model

_MOST_BUNDLES = 3_000
"""Bundles up to which they are counted: of more, each is too small to matter."""
_ROUNDING_FACTOR = 1 + 1e-9
_PREFIXES = 48
"""How many numbers of largest bundles are looked at, about."""
_HALVINGS = 50


def counted(model: Model, low: float, high: float) -> float:
    """Return the least peak that the numbers of bundles leave possible.

    Args:
        model: The cluster and the question.
        low: A bound that is known already; it is the answer where this proves no more.
        high: The peak of a plan that is known already.
    """
    if int(model.movable.sum()) > _MOST_BUNDLES:
        return low
    base, _ = stuck(model)
    for bundles, brokers in _kinds(model):
        size = (model.usage.bundle[:, bundles] * model.scale[:, brokers].min(axis=1, keepdims=True)).max(axis=0)
        order = bundles[np.argsort(-size, kind="stable")]
        for many in _numbers(len(order)):
            fits = _Fits(model, base, order[:many], brokers)
            if fits.at(low) >= many:
                continue
            below, above = low, high
            for _ in range(_HALVINGS):
                middle = (below + above) / 2
                below, above = (below, middle) if fits.at(middle) >= many else (middle, above)
            low = max(low, below - SLACK)
    return low


def _kinds(model: Model) -> Iterator[tuple[Int64Array, BoolArray]]:
    """Yield bundles that end on some brokers in any plan, and those brokers: all, and those of each policy.

    A bundle may stay where it is, unless it must leave; who may take one counts. Shapes (such bundles,) and (brokers,).
    """
    must_end = model.movable & (model.counts[model.owner] | model.forced)
    group, masks = model.groups
    of = group[model.snapshot.bundles.namespace]
    if must_end.any() and model.counts.any():
        yield np.flatnonzero(must_end), model.counts
    for brokers in masks:
        inside = np.array([not (theirs & ~brokers).any() for theirs in masks])
        mine = must_end & inside[of] & (model.forced | brokers[model.owner])
        if mine.any() and brokers.any():
            yield np.flatnonzero(mine), brokers


def _numbers(many: int) -> list[int]:
    """Return numbers of the largest bundles to look at: all of them, and ever fewer."""
    return sorted({round(one) for one in np.geomspace(1, max(many, 1), _PREFIXES)} if many else set(), reverse=True)


class _Fits:
    """How many of some bundles fit on brokers.

    Args:
        model: The cluster and the question.
        base: Demand of what cannot leave each broker. Shape (resources, brokers).
        bundles: Which bundles.
        brokers: Where they may be. Shape (brokers,).
    """

    def __init__(self, model: Model, base: FloatArray, bundles: Int64Array, brokers: BoolArray) -> None:
        self.base, self.scale = base[:, brokers], model.scale[:, brokers]
        self.fixed = model.usage.fixed[brokers]
        smallest = np.sort(model.usage.bundle[:, bundles], axis=1)
        self.sums = np.hstack([np.zeros((len(smallest), 1)), smallest.cumsum(axis=1)])
        here = np.bincount(model.owner[bundles[~model.forced[bundles]]], minlength=len(brokers))[: len(brokers)]
        self.most = np.where(model.takes, len(bundles), here)[brokers]

    def at(self, usage: float) -> int:
        """Return how many fit where no broker is above a usage."""
        many = self.most.copy()
        for row, sums in enumerate(self.sums):
            used = self.scale[row] > 0
            room = np.divide(usage, self.scale[row], out=np.full(len(used), np.inf), where=used) - self.base[row]
            found = np.searchsorted(sums, room * _ROUNDING_FACTOR, side="right") - 1
            many = np.where(used, np.minimum(many, found), many)
        return int(np.clip(many, 0, None).sum())
