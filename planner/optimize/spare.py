"""How many bundles leave each broker in any plan below a usage, and how many moves that leaves to spare.

Where a budget of moves hardly suffices, this says much of a plan: a full broker loses the fewest bundles that bring it
below the usage, and more of them only with moves to spare. Small bundles are none of the fewest.
"""

import numpy as np

from planner.cluster.arrays import BoolArray, FloatArray, Int64Array
from planner.optimize.bound import SLACK
from planner.optimize.question import Model
from planner.optimize.state import State


class Spare:
    """What all plans have in common that bring every broker to or below a usage.

    Args:
        model: The cluster and the question.
        start: The cluster before anything moves.
        usage: What is asked for (1.0 = 100 %).

    Attributes:
        least: Bundles that leave each broker at least. Shape (brokers,).
        small: Bundles that leave only where their broker loses one more than these. Shape (bundles,).
        moves: What is left of the budget of moves when each broker loses so many; infinite without a budget.
        may: Bundles that may leave: without moves to spare, no small ones. Shape (bundles,).
    """

    def __init__(self, model: Model, start: State, usage: float) -> None:
        free, must = (model.movable & (model.forced == forced) for forced in (False, True))
        least = np.bincount(model.owner[must], minlength=len(start.usage)).astype(np.int64)
        small: BoolArray = free.copy()
        for broker in np.flatnonzero(model.counts).tolist():
            here = model.owner == broker
            leaves = model.usage.bundle[:, must & here].sum(axis=1)
            demand = model.usage.own[:, broker] + start.served[:, broker] - leaves
            excess = demand * model.scale[:, broker] - usage - SLACK
            load = model.usage.bundle[:, free & here] * model.scale[:, [broker]]
            fewest = int(_enough(load, excess[:, np.newaxis])[0])
            small[free & here] = 1 + _enough(load, excess[:, np.newaxis] - load) > fewest
            least[broker] += fewest
        self.least: Int64Array = least
        self.small = small
        self.moves = float(model.budgets[0] - least.sum())
        self.may: BoolArray = model.movable & ~(small & (self.moves < 1))


def _enough(load: FloatArray, excess: FloatArray) -> Int64Array:
    """Return how many bundles must leave a broker so that so much of each resource is gone. Shape (cases,).

    Args:
        load: Usage of its bundles. Shape (resources, bundles).
        excess: What must go, in several cases. Shape (resources, cases).
    """
    sums = np.hstack([np.zeros((len(load), 1)), -np.sort(-load, axis=1)]).cumsum(axis=1)
    found: Int64Array = np.max([np.searchsorted(*one) for one in zip(sums, excess, strict=True)], axis=0)
    return found
