"""Asks about all bundles as a whole: which moves bring every broker to or below a usage?

The program is that of `leaving.py`, but each bundle arrives as a whole, on one broker. It knows no order of moves. What
it finds has one nearly always, and is a start for the search.
"""

import numpy as np

from planner.optimize.leaving import MOST_BUNDLES, Arrivals, Depth, arrivals
from planner.optimize.question import Model
from planner.optimize.spare import Spare
from planner.optimize.state import State

_MOST_CHOICES, _MOST_OF_GROUPS = 40_000, 20_000
"""Bundles x brokers up to which it is asked, without anti-affinity groups and with them."""
_NODES = 2
SHORT_PROOF, LONG_PROOF = 800_000, 8_000_000
"""Nodes x columns that a proof is worth, before a plan is searched longer for and after it."""
_ANY = 1e9
"""Cost of a program at or below which its first solution is enough: more than any."""
_EVERY = Depth(
    whole=MOST_BUNDLES, near=0.0, placed=_MOST_CHOICES, decided=1_000, states=150_000, nodes=0, small_nodes=0
)


def moves_below(model: Model, start: State, usage: float) -> list[tuple[int, int]]:
    """Return moves that bring every broker to or below a usage, in no order; none where none were found.

    Args:
        model: The cluster and the question.
        start: The cluster before anything moves.
        usage: What is asked for (1.0 = 100 %).
    """
    if model.rules.group and model.rules.counts_namespaces and Spare(model, start, usage).moves >= 1:
        return []  # of namespaces the program knows too little about their order, unless few bundles may leave
    if not _all_can_be_asked(model, start, usage):
        return []
    program, found = arrivals(model, start, low=0.0, high=usage, depth=_EVERY)
    costs = np.zeros(program.columns)
    costs[found.out] = 1.0
    program.cost = [costs]
    if not model.rules.counts_namespaces:
        _primary_first(model, start, found)
    values = program.solve(nodes=_NODES, presolve=True, enough=_ANY).values
    moves = []
    for at, columns in found.placed.items() if len(values) else ():
        bundle = int(found.movable[found.kind == at][0])
        taken = np.flatnonzero(values[columns] > 0.5)  # noqa: PLR2004 - a whole number
        moves += [(bundle, int(found.takers[at][one])) for one in taken.tolist()]
    return moves


def _all_can_be_asked(model: Model, start: State, usage: float) -> bool:
    """Say whether the program is small enough; arguments as of `moves_below`."""
    group, masks = model.groups
    space = model.snapshot.bundles.namespace[Spare(model, start, usage).may]
    most = _MOST_OF_GROUPS if model.rules.group else _MOST_CHOICES
    return len(space) <= MOST_BUNDLES and int(masks[group[space]].sum()) <= most


def none_below(model: Model, start: State, usage: float, *, work: int = LONG_PROOF) -> bool:
    """Say whether it is proven that no plan brings every broker to or below a usage; arguments as of `moves_below`.

    To ask whether there is any plan proves more in the same time than to ask for the best one. So many nodes x columns
    are worth it; a program that is too large is not asked.
    """
    if not _all_can_be_asked(model, start, usage):
        return False
    program, _ = arrivals(model, start, low=0.0, high=usage, depth=_EVERY)
    program.cost = [np.zeros(program.columns)]
    return not program.solve(nodes=max(work // program.columns, 1), enough=_ANY, guess=False).feasible


def _primary_first(model: Model, start: State, found: Arrivals) -> None:
    """Let bundles go to secondary brokers only where their primary ones have taken bundles of the group.

    A primary broker with the fewest bundles of the group is the only one that may take a bundle, until it has more.
    """
    rules = model.rules
    if not found.limited:
        return
    for members in rules.members.values():
        here = start.counts[members].sum(axis=0)
        for member in members.tolist():
            candidates = rules.before_group(member)
            primary, enough = rules.primary(member)
            if not enough or not candidates.any():
                continue
            first = np.flatnonzero(primary & candidates & (here == here[candidates].min()))
            must = len(first) - enough + 1
            if must <= 0:
                continue
            came = np.concatenate([found.into(members, broker) for broker in first.tolist()])
            for at in np.unique(found.kind[found.space == member]).tolist():
                into = found.placed[at][~primary[found.takers[at]]]
                values = np.append(np.full(len(into), float(must)), -np.ones(len(came)))
                found.program.row(np.append(into, came), values, high=0.0)
