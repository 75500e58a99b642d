"""Asks about all bundles as a whole: which moves bring every broker to or below a usage?

The program is that of `leaving.py`, but each bundle arrives as a whole, on one broker. It knows no order of moves, or
little of it. What it finds has one nearly always, and is a start for the search. In a larger cluster with moves to
spare, it is asked again without the moves that found none.
"""

from collections.abc import Collection, Iterator
from dataclasses import replace

import numpy as np

from planner.optimize.leaving import MOST_BUNDLES, Arrivals, Depth, arrivals
from planner.optimize.question import Model
from planner.optimize.spare import Spare
from planner.optimize.state import State

_MOST_CHOICES = 20_000
"""Bundles x brokers up to which it is asked."""
_MOST_EASY = 40_000
"""The same without anti-affinity groups, and for a plan with moves to spare: what leaves is easy to choose then."""
_SPARE_PART = 0.1
"""Moves to spare that are many: this share of the budget."""
_KEPT_BACK = 0.04
"""Moves that it may not use, to make up for those without an order: this share of the budget."""
_ROUNDS = 4
"""Times that it is asked, each time without moves that found no order."""
_NODES = 2
SHORT_PROOF, LONG_PROOF = 200_000, 8_000_000
"""Nodes x columns that a proof is worth, before a plan is searched longer for and after it."""
_ANY = 1e9
"""Cost of a program at or below which its first solution is enough: more than any."""
_EVERY = Depth(whole=MOST_BUNDLES, near=0.0, placed=_MOST_EASY, decided=1_000, states=150_000, nodes=0, small_nodes=0)
_IN_ORDER = replace(_EVERY, in_order=True)


def ways_below(
    model: Model, start: State, usage: float, refused: set[tuple[int, int]]
) -> Iterator[list[tuple[int, int]]]:
    """Yield moves that bring every broker to or below a usage, in no order, until all have one or none are found.

    Once the bundles of a plan are known, only these and the groups of the moves without an order are asked about.

    Args:
        model: The cluster and the question.
        start: The cluster before anything moves.
        usage: What is asked for (1.0 = 100 %).
        refused: Gets those of the moves that found no order, after each time.
    """
    once = all_can_be_asked(model, start, usage)
    if not once and not can_be_asked_again(model, start, usage):
        return
    if not once and model.question.moves is not None:
        fewer = model.question.moves - round(model.question.moves * _KEPT_BACK)
        model = replace(model, question=replace(model.question, moves=fewer))
    every = among = model.movable
    moved, depth = model.forced.copy(), _EVERY if once else _IN_ORDER
    for _ in range(1 if once else _ROUNDS):
        moves = _moves_below(replace(model, movable=among), start, usage, refused, depth)
        if not moves and among is not every:
            among, moves = every, _moves_below(model, start, usage, refused, depth)
        if not moves:
            return
        before = set(refused)
        yield moves
        left = refused - before
        if not left:
            return
        moved[[bundle for bundle, _ in moves]] = True
        groups = {model.rules.group.get(int(start.space[bundle])) for bundle, _ in left}
        again = [at for at, group in model.rules.group.items() if group in groups]
        among = moved | (every & np.isin(start.space, again))
        refused |= {other for move in left for other in _like(model, start, *move)}


def _like(model: Model, start: State, bundle: int, to: int) -> Iterator[tuple[int, int]]:
    """Yield moves of a bundle that find no order either, in all likelihood: to brokers with more of its group."""
    rules, space = model.rules, int(start.space[bundle])
    if rules.counts_namespaces or space not in rules.group:
        return
    here, domain = rules.group_counts(rules.group[space], start.counts), rules.domains_of(rules.before_group(space))
    for broker in np.flatnonzero((domain == domain[to]) & (here > here[to])).tolist():
        yield bundle, broker


def _moves_below(
    model: Model, start: State, usage: float, refused: Collection[tuple[int, int]], depth: Depth
) -> list[tuple[int, int]]:
    """Return moves that bring every broker to or below a usage, in no order; none where none were found.

    Arguments as of `ways_below`, and how much is decided; the moves that found no order are left out.
    """
    if model.rules.group and model.rules.counts_namespaces and Spare(model, start, usage).moves >= 1:
        return []  # of namespaces the program knows too little about their order, unless few bundles may leave
    program, found = arrivals(model, start, low=0.0, high=usage, depth=depth)
    for column in found.frees:
        program.whole[column] = True
    costs = np.zeros(program.columns)
    costs[found.out] = 1.0
    program.cost = [costs]
    for at, columns in found.placed.items():
        bundle = int(found.movable[found.kind == at][0])
        for broker in [broker for one, broker in refused if one == bundle]:
            never = columns[found.takers[at] == broker]
            program.row(never, np.ones(len(never)), high=0.0)
    if not model.rules.counts_namespaces:
        _primary_first(model, start, found)
    values = program.solve(nodes=_NODES, presolve=True, enough=_ANY).values
    moves = []
    for at, columns in found.placed.items() if len(values) else ():
        bundle = int(found.movable[found.kind == at][0])
        taken = np.flatnonzero(values[columns] > 0.5)  # noqa: PLR2004 - a whole number
        moves += [(bundle, int(found.takers[at][one])) for one in taken.tolist()]
    return moves


def all_can_be_asked(model: Model, start: State, usage: float) -> bool:
    """Say whether the program is small enough; arguments as of `ways_below`."""
    return _choices(model, Spare(model, start, usage)) <= (_MOST_CHOICES if model.rules.group else _MOST_EASY)


def can_be_asked_again(model: Model, start: State, usage: float) -> bool:
    """Say whether the program of a larger cluster is worth several rounds; arguments as of `ways_below`."""
    if not model.rules.group or model.rules.counts_namespaces:
        return False
    spare = Spare(model, start, usage)
    return spare.moves >= model.budgets[0] * _SPARE_PART and _MOST_CHOICES < _choices(model, spare) <= _MOST_EASY


def _choices(model: Model, spare: Spare) -> float:
    """Return how many brokers all bundles that may leave have in all; infinite where there are too many bundles."""
    group, masks = model.groups
    space = model.snapshot.bundles.namespace[spare.may]
    return float(masks[group[space]].sum()) if len(space) <= MOST_BUNDLES else np.inf


def none_below(model: Model, start: State, usage: float, *, work: int = LONG_PROOF) -> bool:
    """Say whether it is proven that no plan brings every broker to or below a usage; arguments as of `ways_below`.

    To ask whether there is any plan proves more in the same time than to ask for the best one. So many nodes x columns
    are worth it; a program that is too large is not asked.
    """
    if not all_can_be_asked(model, start, usage):
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
