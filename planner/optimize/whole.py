"""The question as a mixed-integer program, for small clusters.

Bundles that differ in nothing are counted together: each by itself, a proof would go through all their exchanges.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice

import numpy as np

from planner.cluster.arrays import FloatArray, Int64Array
from planner.optimize.bound import SLACK
from planner.optimize.highs import Program
from planner.optimize.question import Model
from planner.optimize.state import EPSILON, State

MOST_CHOICES = 2_000
"""Kinds of bundles x brokers up to which a question is asked as a whole."""


@dataclass(frozen=True, eq=False, slots=True)
class Answer:
    """What the program says.

    Attributes:
        value: Highest usage, or cost, of the placement; infinite when none was found.
        bound: Proven to be at or below every value, for these bundles and brokers.
        moves: Bundles with the broker that each is to have.
    """

    value: float
    bound: float
    moves: list[tuple[int, int]]


def solve_whole(
    model: Model,
    state: State,
    bundles: Int64Array,
    brokers: Int64Array,
    *,
    under: float | None = None,
    weight: FloatArray | None = None,
    nodes: int = 2_000,
) -> Answer:
    """Place bundles anew; everything else stays as it is.

    Args:
        model: The cluster and the question.
        state: The cluster before anything moves.
        bundles: What may move; all of it is on `brokers`, or may leave a broker that does not count.
        brokers: Where, and whose usage counts. Those that do not count may lose bundles only.
        under: Asks for the least cost with no broker above this usage, else for the lowest peak.
        weight: What each bundle costs then. Shape (bundles of the cluster,).
        nodes: How long to search, in nodes.
    """
    program = Program()
    counted = brokers[model.counts[brokers]]
    floor = float(model.usage.fixed[counted].max(initial=0.0))
    most = np.inf if under is None else under
    peak = program.add(1, cost=0.0 if weight is not None else 1.0, low=min(floor, most), high=most)
    kinds = kinds_of(model, bundles, weight)
    which, where = _choices(model, program, kinds, brokers, weight)
    many = np.array([len(kinds[bundle]) for bundle in which.tolist()])
    columns = 1 + np.arange(len(which))
    for broker in counted.tolist():
        mine = where == broker
        here = state.owner[bundles] == broker
        left = model.usage.own[:, broker] + state.served[:, broker] - model.usage.bundle[:, bundles[here]].sum(axis=1)
        for row in np.flatnonzero(model.scale[:, broker] > 0).tolist():
            scale = model.scale[row, broker]
            load = np.append(model.usage.bundle[row, which[mine]] * scale, -1.0)
            program.row(np.append(columns[mine], peak), load, high=-float(left[row] * scale))
        others = int(state.topics[broker] - model.snapshot.bundles.topics[bundles[here]].sum())
        limit = max(model.rules.most_topics, int(state.topics[broker]))
        topics = model.snapshot.bundles.topics[which[mine]].astype(np.float64)
        if others + (topics * many[mine]).sum() > limit:
            program.row(columns[mine], topics, high=float(limit - others))
    space = model.snapshot.bundles.namespace
    most_topics = int(state.topics.max(initial=0) + model.snapshot.bundles.topics[bundles].sum())
    for members, limits in model.rules.most_of_groups(state.counts, most_topics):
        of_group = np.isin(space[which], members)
        here = np.bincount(model.owner[bundles[np.isin(space[bundles], members)]], minlength=len(limits))
        fixed = state.counts[members].sum(axis=0) - here
        for broker in np.unique(where[of_group]).tolist():
            mine = columns[of_group & (where == broker)]
            program.row(mine, np.ones(len(mine)), high=float(limits[broker] - fixed[broker]))
    away = where != model.owner[which]
    for row in np.flatnonzero(np.isfinite(model.budgets)).tolist():
        program.row(columns[away], model.cost[row, which[away]], high=float(model.budgets[row]))
    found = program.solve(nodes=nodes, gap=1e-5)
    slack = SLACK if weight is None else 1e-6 * max(found.bound, 1.0) if np.isfinite(found.bound) else 0.0
    if not len(found.values):
        return Answer(np.inf, found.bound, [])
    moves = []
    left = {bundle: iter(alike) for bundle, alike in kinds.items()}
    for bundle, broker, taken in zip(which.tolist(), where.tolist(), np.rint(found.values[columns]), strict=True):
        moves += [(one, broker) for one in islice(left[bundle], int(taken))]
    return Answer(found.objective, found.bound - slack, moves)


def kinds_of(model: Model, bundles: Int64Array, weight: FloatArray | None = None) -> dict[int, list[int]]:
    """Return bundles that differ in nothing, in order, by the first of them."""
    table, first, found = model.snapshot.bundles, dict[tuple[object, ...], int](), dict[int, list[int]]()
    for bundle in bundles.tolist():
        key = (
            int(model.owner[bundle]),
            int(table.namespace[bundle]),
            int(table.topics[bundle]),
            bool(model.forced[bundle]),
            model.pinned.get(bundle, -1),
            model.usage.bundle[:, bundle].tobytes(),
            model.cost[:, bundle].tobytes(),
            None if weight is None else float(weight[bundle]),
        )
        found.setdefault(first.setdefault(key, bundle), []).append(bundle)
    return found


def _choices(
    model: Model, program: Program, kinds: Mapping[int, list[int]], brokers: Int64Array, weight: FloatArray | None
) -> tuple[Int64Array, Int64Array]:
    """Add a column for each kind of bundle and each broker that may have it: how many of the kind.

    Returns:
        The first bundle of the kind, and the broker, of each.
    """
    which, where = [], []
    for bundle, alike in kinds.items():
        home = int(model.owner[bundle])
        may = model.rules.static(int(model.snapshot.bundles.namespace[bundle])) & model.takes
        options = [broker for broker in brokers.tolist() if may[broker] and broker != home]
        if not model.forced[bundle] and home in brokers:
            options.append(home)
        if bundle in model.pinned:
            options = [model.pinned[bundle]]
        dear = [0.0 if weight is None or broker == home else float(weight[bundle]) for broker in options]
        many = float(len(alike))
        columns = program.add(len(options), cost=np.array(dear), high=many, whole=True)
        program.row(columns, np.ones(len(options)), many, many)
        which += [bundle] * len(options)
        where += options
    return np.array(which, dtype=np.int64), np.array(where, dtype=np.int64)


def adopt(state: State, moves: list[tuple[int, int]]) -> bool:
    """Carry out what a program says, in an order in which every rule holds; go back where there is none.

    Returns:
        Whether it was carried out.
    """
    before = state.moves()
    wanted = [(bundle, to) for bundle, to in moves if state.owner[bundle] != to]
    if len(state.play(wanted)) < len(wanted):
        state.restore(before)
        return False
    if (state.spent > state.model.budgets + EPSILON).any():
        state.restore(before)
        return False
    return True
