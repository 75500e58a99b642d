"""The cheapest plan that is at least as balanced as something else, such as what a strategy comes to."""

from dataclasses import dataclass

import numpy as np

from planner.cluster.snapshot import Snapshot
from planner.optimize.bound import SLACK, ladder
from planner.optimize.question import COSTS, Question, model_of
from planner.optimize.search import even_out, under
from planner.optimize.state import EPSILON, State


@dataclass(frozen=True, slots=True)
class Rival:
    """A plan that is at least as balanced.

    Attributes:
        moves: Bundles it moves.
        clients: Producers and consumers it disconnects.
        least_moves: What no plan with such a peak can do without.
        peak: Its highest usage (1.0 = 100 %).
        deviation: Standard deviation of the usage of its brokers.
        reached: Whether it is at least as balanced; else it is as near as the search came.
    """

    moves: int
    clients: int
    least_moves: int
    peak: float
    deviation: float
    reached: bool


def as_balanced_as(snapshot: Snapshot, peak: float, deviation: float) -> Rival:
    """Return a plan with few moves whose highest usage and deviation are both no worse than given ones.

    Args:
        snapshot: The cluster before.
        peak: Highest usage (1.0 = 100 %).
        deviation: Standard deviation of the usage of the brokers.

    Raises:
        ScenarioError: Nothing of this cluster can be moved.
    """
    model = model_of(snapshot, Question())
    start, every = State(model), np.full(len(snapshot.brokers), np.inf)
    found: list[Rival] = []
    least = int((ladder(model, start) > peak + SLACK).sum())
    for cost in ("moves", "clients"):
        state = State(model)
        weight = model.cost[COSTS.index(cost)]

        def good(state: State = state) -> bool:
            return state.peak() <= peak + EPSILON and float(state.usage[model.counts].std()) <= deviation + EPSILON

        under(state, peak, weight, every, lambda: False)
        even_out(state, every, good)
        if good():
            for bundle in list(state.order):  # what it can do without
                before = int(state.owner[bundle])
                state.move(bundle, int(model.owner[bundle]))
                if not good():
                    state.move(bundle, before)
        found.append(
            Rival(
                round(float(state.spent[0])),
                round(float(state.spent[COSTS.index("clients")])),
                least,
                state.peak(),
                float(state.usage[model.counts].std()),
                good(),
            )
        )
    return min(found, key=lambda one: (not one.reached, one.moves, one.clients))
