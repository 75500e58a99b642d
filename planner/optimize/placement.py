"""A program that places bundles anew: who may have each, budgets, and what keeps the order that groups ask for.

Rules that no move changes, and budgets, are rows. The order that anti-affinity asks for is kept by limits on what each
broker has in the end: where bundles are counted, nobody ends below a level, and who takes one ends at most one above
it; where namespaces are counted, no broker wins or loses one. Such moves nearly always have an order. What has none is
left out.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from planner.cluster.arrays import BoolArray, FloatArray, Int64Array
from planner.optimize.highs import Program
from planner.optimize.question import Model
from planner.optimize.state import State

_LEVELS = 2
"""How much higher or lower than now the level of a group may be."""
_DOUBTS = (0.0, *[0.1] * 8, *[0.4] * 8)
"""How often moves are made in another order than what seems best, in turns."""


def ordered(model: Model, moves: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return moves in an order in which every destination passes the filters at its turn, what has none left out."""
    state, rules, random = State(model), model.rules, np.random.default_rng(model.question.seed)
    made = state.play([move for move in moves if not state.changing[state.space[move[0]]]])
    rest = [move for move in moves if state.changing[state.space[move[0]]]]
    groups = {rules.group.get(int(state.space[bundle]), "") for bundle, _ in rest}
    for group in sorted(groups):
        waiting = [move for move in rest if rules.group.get(int(state.space[move[0]]), "") == group]
        best: list[tuple[int, int]] = []
        for doubt in _DOUBTS:
            now = _in_turns(state, group, waiting, doubt, random)
            best = now if len(now) > len(best) else best
            for bundle, _ in now:
                state.move(bundle, int(model.owner[bundle]))
            if len(best) == len(waiting):
                break
        for bundle, to in best:
            state.move(bundle, to)
        made += best
    return made


def _in_turns(
    state: State, group: str, moves: list[tuple[int, int]], doubt: float, random: np.random.Generator
) -> list[tuple[int, int]]:
    """Make moves of a group, as many as find an order; return those made.

    What leaves those with the most goes first, so that those with the fewest have their turn.
    """
    rules, made = state.model.rules, list[tuple[int, int]]()
    bundles, to = np.array(moves, dtype=np.int64).T
    waiting = np.ones(len(moves), dtype=np.bool_)
    while True:
        rows = np.flatnonzero(waiting)
        rows = rows[state.allowed(bundles[rows])[np.arange(len(rows)), to[rows]]]
        if not len(rows):
            return made
        if random.random() < doubt:
            best = int(random.choice(rows))
        elif group:
            source, space = state.owner[bundles[rows]], state.space[bundles[rows]]
            counts = rules.group_counts(group, state.counts)
            if rules.counts_namespaces:
                last, first = state.counts[space, source] == 1, state.counts[space, to[rows]] == 0
                best = int(rows[np.lexsort((-counts[source], first, last))[0]])
            else:
                domain = rules.domains_of(rules.before_group(int(space[0])))
                sums = np.bincount(domain, counts, minlength=int(domain.max()) + 1)
                within = domain[source] == domain[to[rows]]
                best = int(rows[np.lexsort((-counts[source], -sums[domain[source]], ~within))[0]])
        else:
            best = int(rows[0])
        state.move(int(bundles[best]), int(to[best]))
        made.append((int(bundles[best]), int(to[best])))
        waiting[best] = False


def carry_out(state: State, wanted: list[tuple[int, int]]) -> set[tuple[int, int]]:
    """Let a state be as moves lead to that find an order; return those that find none."""
    made = ordered(state.model, wanted)
    state.restore(made)
    return set(wanted) - set(made)


def forced_stay(state: State) -> bool:
    """Say whether something stays that must move."""
    return bool((state.model.forced & (state.owner == state.model.owner)).any())


@dataclass(frozen=True, eq=False, slots=True)
class Choice:
    """One way for one bundle: its place among the free ones, and the broker."""

    row: Int64Array
    bundle: Int64Array
    broker: Int64Array
    column: Int64Array


class Placement:
    """Columns that say where bundles go, and the rows that every plan keeps.

    Args:
        state: The plan so far.
        free: Bundles that are placed anew. Shape (free,).
        may: Where each may go. Shape (free, brokers).
        brokers: Those whose usage counts here. Shape (such brokers,).
        above: Usage that they should not be above.
        apart: Whether each broker has a column for what it is above, or all have one for the highest of them.

    Attributes:
        program: What is asked.
        over: Its columns for how far brokers are above the usage. Shape (such brokers,), or (1,).
        choice: Its columns for bundles and brokers. They cost 1 where that is a move.
    """

    def __init__(
        self, state: State, free: Int64Array, may: BoolArray, brokers: Int64Array, *, above: float, apart: bool
    ) -> None:
        self.state, self.model, self.free, self.brokers = state, state.model, free, brokers
        self.program = Program()
        self.over = self.program.add(len(brokers) if apart else 1)
        self._level_of: dict[int, float] = {}
        self.choice = self._choices(may)
        self._loads(dict(zip(brokers.tolist(), np.broadcast_to(self.over, len(brokers)).tolist(), strict=True)), above)
        self._budgets()
        self._groups()

    @staticmethod
    def where(state: State, free: Int64Array, refused: set[tuple[int, int]]) -> BoolArray:
        """Return where bundles may go, without some moves. Shape (free, brokers)."""
        model = state.model
        group, masks = model.groups
        every = np.arange(len(free))
        may: BoolArray = masks[group[state.space[free]]] & ~_closed(state, free)
        may[every, model.owner[free]] = ~model.forced[free]
        may[every, state.owner[free]] = True
        for bundle, broker in sorted(refused):
            may[free == bundle, broker] &= may[free == bundle].sum() == 1
        return may

    def _choices(self, may: BoolArray) -> Choice:
        row, broker = np.nonzero(may)
        away = (broker != self.model.owner[self.free[row]]).astype(np.float64)
        column = self.program.add(len(row), cost=away, high=1.0, whole=True)
        starts = np.searchsorted(row, np.arange(len(self.free) + 1))
        for first, last in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
            self.program.row(column[first:last], np.ones(last - first), 1.0, 1.0)
        return Choice(row, self.free[row], broker, column)

    def _loads(self, over: Mapping[int, int], above: float) -> None:
        """Let columns be how far brokers are above a usage, and keep their topics below the limit."""
        model, state, choice = self.model, self.state, self.choice
        usage = model.usage
        rest = usage.own + state.served
        np.subtract.at(rest.T, state.owner[self.free], usage.bundle[:, self.free].T)
        order = np.argsort(choice.broker, kind="stable")
        starts = np.searchsorted(choice.broker[order], np.arange(len(state.usage) + 1))
        for broker, column in over.items():
            mine = order[starts[broker] : starts[broker + 1]]
            if model.counts[broker]:
                for row in np.flatnonzero(model.scale[:, broker] > 0).tolist():
                    load = usage.bundle[row, choice.bundle[mine]] * model.scale[row, broker]
                    here = float(rest[row, broker] * model.scale[row, broker])
                    self.program.row(np.append(choice.column[mine], column), np.append(load, -1.0), high=above - here)
            others = int(state.topics[broker] - state.topic_count[self.free][state.owner[self.free] == broker].sum())
            topics = state.topic_count[choice.bundle[mine]].astype(np.float64)
            limit = max(model.rules.most_topics, int(state.topics[broker]))
            if others + topics.sum() > limit:
                self.program.row(choice.column[mine], topics, high=float(limit - others))

    def as_it_is(self, columns: Mapping[int, float]) -> FloatArray:
        """Return the plan so far as a solution, other columns as given. Shape (columns,)."""
        choice, found = self.choice, np.zeros(self.program.columns)
        found[choice.column] = choice.broker == self.state.owner[choice.bundle]
        for column, value in {**self._level_of, **columns}.items():
            found[column] = value
        return found

    def moves(self, values: FloatArray) -> list[tuple[int, int]]:
        """Return all moves of a plan that is as a solution says. Shape (columns,)."""
        choice = self.choice
        taken = values[choice.column] > 0.5  # noqa: PLR2004 - a whole number
        placed = dict(zip(choice.bundle[taken].tolist(), choice.broker[taken].tolist(), strict=True))
        kept = [(bundle, placed.pop(bundle, to)) for bundle, to in self.state.moves()]
        return [(bundle, to) for bundle, to in [*kept, *placed.items()] if to != self.model.owner[bundle]]

    def least_over(self, above: float, *, price: float, nodes: int, gap: float) -> list[tuple[int, int]]:
        """Return all moves of a plan with the least usage above what was asked for, and few moves.

        Args:
            above: The usage that brokers should not be above.
            price: Moves that usage of 1.0 above it is worth.
            nodes: Nodes of the search at most.
            gap: How near the bound a solution is good enough, relative to it.
        """
        state, program = self.state, self.program
        program.cost[0] = np.full(len(self.over), price)
        program.high[0][:] = max(state.peak() - above, 0.0)
        now = np.maximum(state.usage[self.brokers] - above, 0.0)
        first = self.as_it_is(dict(zip(self.over.tolist(), now.tolist(), strict=True)))
        found = program.solve(nodes=nodes, gap=gap, presolve=True, first=first)
        return self.moves(found.values) if len(found.values) else state.moves()

    def _budgets(self) -> None:
        model, choice = self.model, self.choice
        away = choice.broker != model.owner[choice.bundle]
        moved = self.free[self.state.owner[self.free] != model.owner[self.free]]
        for row in np.flatnonzero(np.isfinite(model.budgets)).tolist():
            left = model.budgets[row] - self.state.spent[row] + model.cost[row, moved].sum()
            self.program.row(choice.column[away], model.cost[row, choice.bundle[away]], high=float(left))

    # Anti-affinity groups

    def _groups(self) -> None:
        rules = self.model.rules
        for members in rules.members.values():
            if rules.counts_namespaces:
                self._keep_namespaces(members)
            else:
                self._keep_level(members, rules.before_group(int(members[0])))

    def _keep_namespaces(self, members: Int64Array) -> None:
        """Let no broker lose a namespace of a group, and nobody win one but for the last bundle to come.

        Who has the fewest namespaces now may take more bundles of those that it has; others as many as in the plan.
        """
        state, choice, rules = self.state, self.choice, self.model.rules
        won: dict[int, list[Int64Array]] = {}
        for member in members.tolist():
            mine, now_open = state.space[choice.bundle] == member, state.now(member)
            free = self.free[state.space[self.free] == member]
            for broker in np.unique(choice.broker[mine]).tolist():
                here = mine & (choice.broker == broker)
                columns, now = choice.column[here], int(state.counts[member, broker])
                came = choice.column[here & (self.model.owner[choice.bundle] != broker)]
                if now and now == int((state.owner[free] == broker).sum()):
                    self.program.row(columns, np.ones(len(columns)), low=1.0)
                if not now:
                    place = 0 if rules.domains else broker
                    won.setdefault(place, []).append(columns)
                elif not now_open[broker]:
                    most = int(((state.owner[free] == broker) & (self.model.owner[free] != broker)).sum())
                    self.program.row(came, np.ones(len(came)), high=float(most))
        for parts in won.values():
            columns = np.concatenate(parts)
            self.program.row(columns, np.ones(len(columns)), high=1.0)

    def _keep_level(self, members: Int64Array, candidates: BoolArray) -> None:
        """Let nobody end below a level, and who may take a bundle at most one above it; so for domains as a whole."""
        here = self.state.counts[members].sum(axis=0)
        levels = _levels_of(self.state, members, candidates)
        for place, level, _ in levels:
            self._between(members, [place[[at]] for at in range(len(place))], here[place], level)
        if len(levels) > 1:
            sums = np.array([int(here[place].sum()) for place, _, _ in levels])
            came = np.array([bool(taken.any()) for _, _, taken in levels])
            level = max(int(sums.min()), int(sums[came].max(initial=0)) - 1)
            self._between(members, [place for place, _, _ in levels], sums, level)

    def _between(self, members: Int64Array, units: list[Int64Array], here: Int64Array, level: int) -> None:
        state, choice, program = self.state, self.choice, self.program
        mine = np.isin(state.space[choice.bundle], members)
        free = self.free[np.isin(state.space[self.free], members)]
        column = program.add(1, low=max(level - _LEVELS, 0), high=level + _LEVELS, whole=True)
        self._level_of[int(column[0])] = float(level)
        for unit, now in zip(units, here.tolist(), strict=True):
            rest = now - int(np.isin(state.owner[free], unit).sum())
            there = choice.column[mine & np.isin(choice.broker, unit)]
            columns, signs = np.append(there, column), np.append(np.ones(len(there)), -1.0)
            lacks = min(now - level, 0)
            program.row(columns, signs, low=float(lacks - rest), high=float(1 - rest) if now <= level + 1 else np.inf)
            if now > level + 1:
                came = choice.column[
                    mine & np.isin(choice.broker, unit) & (choice.broker != self.model.owner[choice.bundle])
                ]
                program.row(came, np.ones(len(came)), high=0.0)


def _closed(state: State, free: Int64Array) -> BoolArray:
    """Say where free bundles may not go for their group. Shape (free, brokers)."""
    rules, space = state.model.rules, state.space[free]
    closed = np.zeros((len(free), len(state.usage)), dtype=np.bool_)
    for at in np.unique(space[state.changing[space]]).tolist():
        closed[space == at] = ~_open(state, at) if at in rules.group else ~state.now(at)
    return closed


def _open(state: State, namespace: int) -> BoolArray:
    """Return who may take a bundle of a namespace of a group, as the plan stands. Shape (brokers,)."""
    rules = state.model.rules
    members = rules.members[rules.group[namespace]]
    taken = np.zeros(len(state.usage), dtype=np.bool_)
    if rules.counts_namespaces:
        came = [bundle for bundle in state.order if state.space[bundle] == namespace]
        taken[state.owner[came]] = True
        return taken | state.now(namespace)
    here = state.counts[members].sum(axis=0)
    candidates = rules.before_group(namespace)
    found = taken
    for place, level, _ in _levels_of(state, members, candidates):
        found[place[here[place] <= level + 1]] = True
    return found


def _levels_of(state: State, members: Int64Array, candidates: BoolArray) -> list[tuple[Int64Array, int, BoolArray]]:
    """Return brokers of each domain, the level of a group there, and who has taken any, as the plan stands."""
    rules = state.model.rules
    here = state.counts[members].sum(axis=0)
    came = np.array([one for one in state.order if state.space[one] in set(members.tolist())], dtype=np.int64)
    taken = np.zeros(len(here), dtype=np.bool_)
    taken[state.owner[came]] = True
    domains = rules.domains_of(candidates)
    found = []
    for domain in np.unique(domains[candidates]).tolist():
        place = np.flatnonzero(candidates & (domains == domain))
        top = int(here[place][taken[place]].max(initial=0)) - 1
        found.append((place, max(int(here[place].min()), top), taken[place]))
    return found
