"""What no plan can beat, proven: the least peak, and the least cost of getting under a usage.

Several relaxations, each of which allows more than a plan may do; the highest of their answers counts.

- *Ladder*: whole bundles. A broker from which k bundles leave is at least where the k largest of each resource leave
  it, receiving nothing. The least peak with K moves is then one number in one sorted list.
- *Alone*: a bundle needs a broker that suits it, on which nothing else lies but what cannot leave.
- *Room*: all traffic, which may be cut, must fit on the brokers that its policies allow, within the budgets (linear).
- *Cover*: what must leave a broker costs something, in whole bundles (mixed-integer, broker by broker).
- *Leaving*: whole bundles leave, and what arrives may be cut, but for the largest (`leaving.py`, mixed-integer).
- *Whole*: the question itself, where it is small enough (mixed-integer).

Anti-affinity counts in the last two alone. It is about the order: who takes a bundle has the fewest at that moment, so
that what one placement forbids after these moves it allows after others. They include what is true of all orders; what
is left out can only lower a bound.
"""

import numpy as np

from planner.cluster.arrays import FloatArray, Int64Array
from planner.optimize.highs import Program, Solution
from planner.optimize.question import Model
from planner.optimize.state import State
from planner.simulate.load_model import broker_sums

SLACK = 1e-7
"""Reduction of a bound for rounding and the tolerances of HiGHS (1.0 = 100 %)."""

_MOST_BUNDLES = 20_000
_ALONE = 2_000


def ladder(model: Model, start: State) -> FloatArray:
    """Return the least peak that k moves can lead to, k from 0 on. Shape (moves + 1,); it never rises.

    Moves that a drain asks for are not counted.
    """
    steps = [np.zeros(0)]
    for broker in np.flatnonzero(model.counts).tolist():
        mine = np.flatnonzero((model.owner == broker) & model.movable)
        own = (model.usage.own[:, broker] + start.served[:, broker]) * model.scale[:, broker]
        load = -np.sort(-model.usage.bundle[:, mine] * model.scale[:, broker, np.newaxis], axis=1)
        left = own[:, np.newaxis] - np.concatenate([np.zeros((len(load), 1)), load.cumsum(axis=1)], axis=1)
        least = np.maximum(left.max(axis=0), model.usage.fixed[broker])
        steps.append(least[:-1])  # with nothing left on it no move helps: that is what `alone` looks at
    pooled = np.concatenate(steps)
    return -np.sort(-pooled)


def at_rung(rungs: FloatArray, moves: float) -> float:
    """Return the least peak that a number of moves can lead to, as far as the ladder says."""
    if not len(rungs) or moves >= len(rungs):
        return 0.0
    return float(rungs[int(max(moves, 0))]) - SLACK


def stuck(model: Model) -> tuple[FloatArray, FloatArray]:
    """Return demand and usage of brokers with nothing on them but what cannot leave.

    Shapes (resources, brokers) and (brokers,).
    """
    staying = np.where(model.movable, -1, model.owner)
    demand = model.usage.own + broker_sums(model.usage.bundle, staying, len(model.usage.alive))[:-1]
    usage = np.maximum((demand * model.scale).max(axis=0), model.usage.fixed)
    return demand, usage


def alone(model: Model) -> tuple[float, int, int]:
    """Return the least peak that some single bundle leaves possible, that bundle, and the broker that suits it best.

    The bundle is -1 where none is the limit, but what cannot leave a broker.
    """
    demand, usage = stuck(model)
    least, bundle, suits = model.peak(usage), -1, -1
    movable = np.flatnonzero(model.movable)
    size = (model.usage.bundle[:, movable] * model.scale[:, model.counts].min(axis=1, keepdims=True)).max(axis=0)
    for at in movable[np.argsort(-size, kind="stable")[:_ALONE]].tolist():
        with_it = np.maximum(((demand + model.usage.bundle[:, [at]]) * model.scale).max(axis=0), model.usage.fixed)
        may = model.rules.static(int(model.snapshot.bundles.namespace[at])) & model.takes
        if not model.forced[at]:
            may = may.copy()
            may[model.owner[at]] = True
        fit = np.where(may & model.counts, with_it, np.inf)
        best = int(fit.argmin())
        if np.isfinite(fit[best]) and fit[best] > least:
            least, bundle, suits = float(fit[best]), at, best
    return least - SLACK, bundle, suits


def room(model: Model, start: State, *, under: float | None = None, weight: FloatArray | None = None) -> float:
    """Return the least peak, or the least cost of a peak, when bundles may be cut.

    Args:
        model: The cluster and the question.
        start: How it is.
        under: Asks for the least cost such that no broker is above this usage.
        weight: What each bundle costs. Shape (bundles,).

    Returns:
        A usage, or a cost; infinite where there is no plan.
    """
    program = Program()
    most = np.inf if under is None else under
    fixed = min(float(model.usage.fixed[model.counts].max(initial=0.0)), most)
    peak = program.add(1, cost=0.0 if weight is not None else 1.0, low=fixed, high=most)
    movable = np.flatnonzero(model.movable)
    flows = _Flows(model, program, movable, weight)
    for row in range(len(model.scale)):
        parts = flows.of(row)
        for broker in np.flatnonzero(model.counts & (model.scale[row] > 0)).tolist():
            here = (model.usage.own[row, broker] + start.served[row, broker]) / flows.unit[row]
            share = -1.0 / model.scale[row, broker] / flows.unit[row]
            columns, values = zip((peak, np.array([share])), *parts.get(broker, ()), strict=True)
            program.row(np.concatenate(columns), np.concatenate(values), high=-here)
    for row, budget in enumerate(model.budgets.tolist()):
        if np.isfinite(budget) and len(flows.out):
            program.row(flows.out, model.cost[row, movable], high=budget)
    found = program.solve()
    if not found.feasible:
        return np.inf
    return found.bound - (SLACK if weight is None else 1e-6 * max(found.bound, 1.0))


class _Flows:
    """What leaves brokers and what arrives there, by resource and by which brokers may take it.

    Attributes:
        out: How much of each bundle leaves, 0 to 1; empty in a large cluster, where bundles are not told apart.
        unit: What a flow of 1 is, of each resource. Shape (resources,).
    """

    def __init__(self, model: Model, program: Program, movable: Int64Array, weight: FloatArray | None) -> None:
        self.model, self.program = model, program
        self.load = model.usage.bundle[:, movable]
        self.unit = np.maximum(self.load.max(axis=1, initial=0.0), 1.0)
        self.out: Int64Array = np.zeros(0, dtype=np.int64)
        if len(movable) <= _MOST_BUNDLES:
            self.out = program.add(len(movable), cost=0.0 if weight is None else weight[movable], high=1.0)
            program.low[-1][model.forced[movable]] = 1.0
        self.owner = model.owner[movable]
        group, self.masks = model.groups
        self.group = group[model.snapshot.bundles.namespace[movable]]

    def of(self, row: int) -> dict[int, list[tuple[Int64Array, FloatArray]]]:
        """Add the flows of a resource; return their columns and signs by broker."""
        found: dict[int, list[tuple[Int64Array, FloatArray]]] = {}
        for at, mask in enumerate(self.masks):
            mine = np.flatnonzero(self.group == at)
            if not len(mine):
                continue
            takers = np.flatnonzero(mask)
            into = self.program.add(len(takers))
            for broker, column in zip(takers.tolist(), into, strict=True):
                found.setdefault(broker, []).append((column[np.newaxis], np.ones(1)))
            columns, values = [into], [np.ones(len(takers))]
            for broker in np.unique(self.owner[mine]).tolist():
                leaving, sizes = self._leaving(row, broker, mine[self.owner[mine] == broker])
                found.setdefault(broker, []).append((leaving, sizes))
                columns.append(leaving)
                values.append(sizes)
            self.program.row(np.concatenate(columns), np.concatenate(values), 0.0, 0.0)
        return found

    def _leaving(self, row: int, broker: int, those: Int64Array) -> tuple[Int64Array, FloatArray]:
        """Return columns for what leaves a broker, and how much of the resource each takes along, negative."""
        sizes = self.load[row, those] / self.unit[row]
        if len(self.out):
            return self.out[those], -sizes
        total = float(sizes.sum())
        must = 0.0 if self.model.counts[broker] else total
        return self.program.add(1, low=must, high=total), np.array([-1.0])


def cover(model: Model, start: State, broker: int, under: float, weight: FloatArray) -> tuple[float, Int64Array]:
    """Return the least cost of what must leave a broker so that it is at or below a usage, and the bundles that do it.

    Returns:
        The cost, proven to be the least, and the bundles, shape (leaving,); infinite and none where it cannot be.
    """
    mine = np.flatnonzero((model.owner == broker) & model.movable)
    usage = (model.usage.own[:, broker] + start.served[:, broker]) * model.scale[:, broker]
    load = model.usage.bundle[:, mine] * model.scale[:, broker, np.newaxis]
    excess = usage - under
    if (excess <= 0).all() and model.usage.fixed[broker] <= under:
        return 0.0, mine[:0]
    if model.usage.fixed[broker] > under or (load.sum(axis=1) < excess).any():
        return np.inf, mine[:0]
    program = Program()
    out = program.add(len(mine), cost=weight[mine], high=1.0, whole=True)
    for row in np.flatnonzero(excess > 0).tolist():
        program.row(out, load[row] / excess[row], low=1.0)
    found: Solution = program.solve(nodes=2_000, gap=1e-6)
    chosen = mine[found.values[out] > 0.5] if len(found.values) else mine  # noqa: PLR2004 - a whole number
    return found.bound - 1e-6 * max(found.bound, 1.0), chosen


def covers(model: Model, start: State, under: float, weight: FloatArray) -> tuple[float, Int64Array]:
    """Return the least cost of what must leave all brokers above a usage, and the bundles that do it.

    Shape (leaving,).
    """
    total, chosen = 0.0, [np.zeros(0, dtype=np.int64)]
    for broker in np.flatnonzero(model.counts & (start.usage > under)).tolist():
        cost, bundles = cover(model, start, broker, under, weight)
        total += cost
        chosen.append(bundles)
    return total, np.concatenate(chosen)
