"""Places many bundles anew at once: a mixed-integer program of whole bundles around the plan that was found.

What has moved may go anywhere else, go home, or make way for others; large bundles of full brokers may move instead.
Rules that no move changes, and budgets, are rows. The order that anti-affinity asks for is kept by limits on what each
broker has in the end: where bundles are counted, nobody ends below a level, and who takes one ends at most one above
it; where namespaces are counted, no broker wins or loses one. Such moves nearly always have an order. What has none is
left out, and asked again without it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from planner.cluster.arrays import BoolArray, FloatArray, Int64Array
from planner.optimize.highs import Program, Solution
from planner.optimize.question import Model
from planner.optimize.state import EPSILON, State

_MOST_CHOICES = 9_000
"""Bundles x brokers of a program at most."""
_LARGEST = (30, 15, 8)
"""Bundles of a full broker that may move instead: as many as the choices allow."""
_SMALLEST_PART = 5
"""Small bundles of a group that may move from any broker, so that a level rises: a fifth of the large ones."""
_LEVELS = 2
"""How much higher or lower than now the level of a group may be."""
_NODES = 40
_LEVELS_TRIED = 2
_GAP = 1e-3
_ANY = 1e9
"""Cost of a program at or below which its first solution is enough: more than any."""
_DOUBTS = (0.0, *[0.1] * 8, *[0.4] * 8)
"""How often moves are made in another order than what seems best, in turns."""
_RETRIES = 3
"""Times that a program is asked again without moves that had no order."""


def place_together(
    state: State,
    caps: FloatArray,
    finish: Callable[[], None],
    should_stop: Callable[[], bool],
    *,
    goal: float,
    rounds: int,
) -> None:
    """Lower the peak of a plan by placing many of its bundles anew at once, as long as that helps.

    Args:
        state: The plan; is changed.
        caps: Usage that a receiver may not exceed. Shape (brokers,).
        finish: Improves `state` further, after each program.
        should_stop: Says whether to stop.
        goal: Peak that is low enough.
        rounds: Programs that help at most.
    """
    for _ in range(rounds):
        before, peak = state.moves(), state.peak()
        refused: set[tuple[int, int]] = set()
        for _ in range(_RETRIES):
            if peak <= goal or should_stop():
                return
            state.restore(before)
            program = _Placement(state, caps, goal, refused)
            wanted = program.solve(peak)
            if wanted is None:
                break
            made = ordered(state.model, wanted)
            left = set(wanted) - set(made)
            state.restore(made)
            state.order = dict.fromkeys(bundle for bundle, _ in made)
            if not _forced_stay(state):
                finish()
                if state.peak() < peak - EPSILON and (state.spent <= state.model.budgets + EPSILON).all():
                    break
            if not left:
                state.restore(before)
                break
            refused |= left
        if state.peak() >= peak - EPSILON or _forced_stay(state):
            state.restore(before)
            return


def _forced_stay(state: State) -> bool:
    return bool((state.model.forced & (state.owner == state.model.owner)).any())


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


@dataclass(frozen=True, eq=False, slots=True)
class _Choice:
    """One way for one bundle: its place among the free ones, and the broker."""

    row: Int64Array
    bundle: Int64Array
    broker: Int64Array
    column: Int64Array


class _Placement:
    """The program of one round.

    Args:
        state: The plan so far.
        caps: Usage that a receiver may not exceed. Shape (brokers,).
        goal: Peak that is low enough.
        refused: Moves that had no order.
    """

    def __init__(self, state: State, caps: FloatArray, goal: float, refused: set[tuple[int, int]]) -> None:
        self.state, self.model, self.goal = state, state.model, goal
        self.caps = np.maximum(caps, state.usage)
        self.program = Program()
        self.start = State(self.model)
        self.peak = self.program.add(1)
        self.level_of: dict[int, float] = {}
        self.free, may = self._free(refused)
        self.choice = self._choices(may)
        self._loads()
        self._budgets()
        self._groups()

    def _free(self, refused: set[tuple[int, int]]) -> tuple[Int64Array, BoolArray]:
        """Return the bundles that may be placed anew, and where each may go. Shapes (free,) and (free, brokers)."""
        for many in _LARGEST:
            free = self._around(many)
            may = self._may_go(free, refused)
            if may.sum() <= _MOST_CHOICES:
                break
        return free, may

    def _around(self, many: int) -> Int64Array:
        """Return what has moved, so many of the largest bundles of full brokers, and small ones of groups."""
        model, state = self.model, self.state
        free = np.zeros(len(model.owner), dtype=np.bool_)
        free[[bundle for bundle in state.order if bundle not in model.pinned]] = True
        size = (model.usage.bundle * model.scale[:, np.maximum(model.owner, 0)]).max(axis=0)
        may = model.movable & ~free & (model.owner >= 0)
        for broker in np.flatnonzero(self.start.usage > 0).tolist():
            mine = np.flatnonzero(may & (model.owner == broker))
            mine = mine[np.argsort(-size[mine], kind="stable")]
            if self.start.usage[broker] > self.goal and model.counts[broker]:
                free[mine[:many]] = True
            if not model.rules.counts_namespaces:
                for members in model.rules.members.values():
                    free[mine[np.isin(state.space[mine], members)][-(many // _SMALLEST_PART) :]] = True
        found: Int64Array = np.flatnonzero(free)
        return found

    def _may_go(self, free: Int64Array, refused: set[tuple[int, int]]) -> BoolArray:
        model, state = self.model, self.state
        group, masks = model.groups
        every = np.arange(len(free))
        may: BoolArray = masks[group[state.space[free]]] & ~self._closed(free)
        may[every, model.owner[free]] = ~model.forced[free]
        may[every, state.owner[free]] = True
        for bundle, broker in sorted(refused):
            may[free == bundle, broker] &= may[free == bundle].sum() == 1
        return may

    def _choices(self, may: BoolArray) -> _Choice:
        row, broker = np.nonzero(may)
        away = (broker != self.model.owner[self.free[row]]).astype(np.float64)
        column = self.program.add(len(row), cost=away, high=1.0, whole=True)
        starts = np.searchsorted(row, np.arange(len(self.free) + 1))
        for first, last in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
            self.program.row(column[first:last], np.ones(last - first), 1.0, 1.0)
        return _Choice(row, self.free[row], broker, column)

    def _closed(self, free: Int64Array) -> BoolArray:
        """Say where free bundles may not go for their group. Shape (free, brokers)."""
        state, rules, space = self.state, self.model.rules, self.state.space[free]
        closed = np.zeros((len(free), len(state.usage)), dtype=np.bool_)
        for at in np.unique(space[state.changing[space]]).tolist():
            closed[space == at] = ~self._open(at) if at in rules.group else ~state.now(at)
        return closed

    def _open(self, namespace: int) -> BoolArray:
        """Return who may take a bundle of a namespace of a group, as the plan stands. Shape (brokers,)."""
        state, rules = self.state, self.model.rules
        members = rules.members[rules.group[namespace]]
        taken = np.zeros(len(state.usage), dtype=np.bool_)
        if rules.counts_namespaces:
            came = [bundle for bundle in state.order if state.space[bundle] == namespace]
            taken[state.owner[came]] = True
            return taken | state.now(namespace)
        here = state.counts[members].sum(axis=0)
        candidates = rules.before_group(namespace)
        found = taken
        for place, level, _ in self._levels(members, candidates):
            found[place[here[place] <= level + 1]] = True
        return found

    def _levels(self, members: Int64Array, candidates: BoolArray) -> list[tuple[Int64Array, int, BoolArray]]:
        """Return brokers of each domain, the level of a group there, and who has taken any, as the plan stands."""
        state, rules = self.state, self.model.rules
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

    def _loads(self) -> None:
        model, state, choice = self.model, self.state, self.choice
        usage = model.usage
        rest = usage.own + state.served
        np.subtract.at(rest.T, state.owner[self.free], usage.bundle[:, self.free].T)
        order = np.argsort(choice.broker, kind="stable")
        starts = np.searchsorted(choice.broker[order], np.arange(len(state.usage) + 1))
        low = self.goal
        for broker in np.flatnonzero(usage.alive).tolist():
            mine = order[starts[broker] : starts[broker + 1]]
            low = max(low, float(usage.fixed[broker])) if model.counts[broker] else low
            for row in np.flatnonzero(model.scale[:, broker] > 0).tolist():
                load = usage.bundle[row, choice.bundle[mine]] * model.scale[row, broker]
                here = float(rest[row, broker] * model.scale[row, broker])
                if model.counts[broker]:
                    self.program.row(np.append(choice.column[mine], self.peak), np.append(load, -1.0), high=-here)
            others = int(state.topics[broker] - state.topic_count[self.free][state.owner[self.free] == broker].sum())
            topics = state.topic_count[choice.bundle[mine]].astype(np.float64)
            limit = max(model.rules.most_topics, int(state.topics[broker]))
            if others + topics.sum() > limit:
                self.program.row(choice.column[mine], topics, high=float(limit - others))
        self.lowest = low

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
        levels = self._levels(members, candidates)
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
        self.level_of[int(column[0])] = float(level)
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

    def solve(self, peak: float) -> list[tuple[int, int]] | None:
        """Return all moves of a better plan, None where the program knows none.

        It is asked for any plan at or below a level, then for one half as low, and last for the lowest peak.
        """
        choice, state, level = self.choice, self.state, self.lowest
        if len(choice.column) > _MOST_CHOICES:
            return None
        for _ in range(_LEVELS_TRIED):
            found = self.program.solve(nodes=_NODES, presolve=True, enough=_ANY, most={int(self.peak[0]): level})
            if len(found.values):
                break
            level = (level + peak) / 2
        if not len(found.values):
            found = self._lowest_peak(peak)
            if not len(found.values) or found.objective >= peak - EPSILON:
                return None
        taken = found.values[choice.column] > 0.5  # noqa: PLR2004 - a whole number
        placed = dict(zip(choice.bundle[taken].tolist(), choice.broker[taken].tolist(), strict=True))
        kept = [(bundle, placed.pop(bundle, to)) for bundle, to in state.moves()]
        moves = [*kept, *placed.items()]
        return [(bundle, to) for bundle, to in moves if to != self.model.owner[bundle]]

    def _lowest_peak(self, peak: float) -> Solution:
        """Ask for the lowest peak, from the plan so far."""
        program, choice = self.program, self.choice
        program.cost = [np.append(1.0, np.zeros(program.columns - 1))]
        program.low[0][:] = self.lowest
        first = np.zeros(program.columns)
        first[self.peak] = peak
        first[choice.column] = choice.broker == self.state.owner[choice.bundle]
        first[[*self.level_of]] = [*self.level_of.values()]
        return program.solve(nodes=_NODES, gap=_GAP, presolve=True, enough=self.goal, first=first)
