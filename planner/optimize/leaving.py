"""What no plan can beat when whole bundles leave, while what arrives may be cut: a mixed-integer program.

It joins what the ladder and room see apart. Bundles leave a broker as a whole, or not at all; who takes them gets
shares of all that leaves, of namespaces that may go to the same brokers. The largest bundles may be asked to arrive as
a whole as well, on one broker. Anti-affinity groups count as follows.

- The extensible load manager lets a bundle go to a broker with the fewest bundles of its group. So the fewest that any
  candidate has never rises above a level that the budget of moves can lift all of them to, and a broker that takes one
  has at most that and one more in the end. With failure domains the same holds of whole domains, and in each of them: a
  domain in which a broker that may take none has the fewest fills up no further, and keeps the others from taking any.
- The modular load manager counts namespaces. A broker above that level takes bundles only after all bundles of some
  namespaces have left it; and as long as some candidate has none, no broker takes two.
- Bundles that no order of moves lets leave stay (`kept.py`).

Each bundle moves once, as in every plan. What is left out can only lower the bound.
"""

from dataclasses import dataclass, replace

import numpy as np

from planner.cluster.arrays import BoolArray, FloatArray, Int64Array, IntArray
from planner.optimize.bound import SLACK
from planner.optimize.highs import Program
from planner.optimize.in_order import keep_order
from planner.optimize.kept import kept_by_order, orders_of_groups
from planner.optimize.question import Model
from planner.optimize.spare import Spare
from planner.optimize.state import State

MOST_BUNDLES = 3_000
"""Bundles up to which the program is asked closely."""
MOST_QUICKLY = 50_000
"""Bundles up to which it is asked at all: 30,000 take about a second, and it often proves that nothing is left."""
_SMALL_COLUMNS = 2_000
"""Columns up to which a program is small."""
_TOGETHER = (3, 8)
"""Least used brokers that are looked at together, for what the largest bundles of a group can bring them."""
_COUNTED = (0, 1, 3, 8)
"""Bundles for each of them that are counted as the largest."""


def _ever_take(here: Int64Array, reach: Int64Array, may: BoolArray, most: int) -> BoolArray:
    """Say who can ever have so few of a group that the next bundle goes there. Shape (units,).

    Who has more than the fewest ever are takes one only after it has given enough to those that have not, which take
    no more than they can reach.

    Args:
        here: Bundles of the group now. Shape (units,).
        reach: The most that a unit has after it has taken one. Shape (units,).
        may: Whether anything may go there at all. Shape (units,).
        most: The most that the fewest ever are.
    """
    given = int((reach - here)[may & (here <= most)].clip(min=0).sum())
    takes: BoolArray = may & (here - given <= most)
    return takes


_GAP = 2e-3


@dataclass(frozen=True, slots=True)
class Depth:
    """How much is decided as a whole: more proves more, and takes longer.

    Attributes:
        whole: Largest bundles of a broker that leave as a whole; smaller ones may be cut.
        near: Share of the known peak above which that is asked of a broker's bundles.
        placed: Columns for the largest bundles of all, which also arrive as a whole, on one broker.
        decided: Brokers x groups up to which it is decided which brokers take bundles of a group at all.
        states: States of a group that are looked at to see which of its bundles can leave; none without. Moves to spare
            are not looked at then, either.
        nodes: Nodes of the search; 0 where it is not worth asking.
        small_nodes: The same of a small program: one huge bundle takes hundreds of nodes, each of them solved at once.
        in_order: Whether groups move only as some order of their moves allows; a search needs that, a bound is proved
            in less time without.
    """

    whole: int
    near: float
    placed: int
    decided: int
    states: int
    nodes: int
    small_nodes: int
    in_order: bool = False


QUICK = Depth(whole=12, near=0.6, placed=0, decided=0, states=0, nodes=1, small_nodes=1)
CLOSER = Depth(whole=12, near=0.6, placed=0, decided=80, states=150_000, nodes=100, small_nodes=100)
SMALL = Depth(whole=MOST_BUNDLES, near=0.0, placed=400, decided=1_000, states=150_000, nodes=0, small_nodes=500)
CLOSEST = replace(SMALL, nodes=20)


@dataclass(frozen=True, eq=False, slots=True)
class Leaving:
    """What the program says.

    Attributes:
        bound: Proven to be at or below the peak of every plan.
        bundles: What leaves its broker in the best solution; it may have no order. Shape (leaving,).
    """

    bound: float
    bundles: Int64Array


def leaving(model: Model, start: State, *, low: float, high: float, depth: Depth = QUICK) -> Leaving:
    """Return the least peak when whole bundles leave, and which do.

    Args:
        model: The cluster and the question.
        start: The cluster before anything moves.
        low: A bound that is known already.
        high: The peak of a plan that is known already.
        depth: How much is decided as a whole.
    """
    program, found = arrivals(model, start, low=low, high=high, depth=depth)
    nodes = depth.nodes if program.columns > _SMALL_COLUMNS else depth.small_nodes
    if not nodes:
        return Leaving(low, np.zeros(0, dtype=np.int64))
    solved = program.solve(nodes=nodes, gap=_GAP, guess=False)
    if not solved.feasible:
        return Leaving(high - SLACK, np.zeros(0, dtype=np.int64))
    chosen = found.movable[solved.values[found.out] > 0.5] if len(solved.values) else found.movable[:0]  # noqa: PLR2004
    return Leaving(max(low, min(solved.bound, high) - SLACK), chosen)


def arrivals(model: Model, start: State, *, low: float, high: float, depth: Depth) -> tuple[Program, "Arrivals"]:
    """Return the program that asks for the least peak, and what its columns are; arguments as of `leaving`."""
    program = Program()
    peak = program.add(1, cost=1.0, low=low, high=high)
    found = Arrivals(model, start, program, high, depth)
    for row in range(len(model.scale)):
        parts = found.of(row)
        for broker in np.flatnonzero(model.counts & (model.scale[row] > 0)).tolist():
            here = (model.usage.own[row, broker] + start.served[row, broker]) / found.unit[row]
            share = -1.0 / model.scale[row, broker] / found.unit[row]
            columns, values = zip((peak, np.array([share])), *parts.get(broker, ()), strict=True)
            program.row(np.concatenate(columns), np.concatenate(values), high=-here)
    for row in np.flatnonzero(np.isfinite(model.budgets)).tolist():
        program.row(found.out, model.cost[row, found.movable], high=float(model.budgets[row]))
    found.groups()
    if len(found.decides) <= depth.decided:
        for column in found.decides:
            program.whole[column] = True
    return program, found


class Arrivals:
    """Columns of what leaves, whole, and of what arrives, by kind of bundle: who may take it, and its group.

    Args:
        model: The cluster and the question.
        start: The cluster before anything moves.
        program: Gets the columns.
        high: Usage that brokers are at most at.
        depth: How much is decided as a whole.

    Attributes:
        movable: The bundles that may leave. Shape (movable,).
        out: Their columns. Shape (movable,).
        unit: What a flow of 1 is, of each resource. Shape (resources,).
        decides: Columns of the levels of groups, and of whether brokers take any bundle of them: whole numbers.
        frees: Columns of which way each group moves, and of whether bundles that leave a broker free low places: whole
            numbers as well, where groups move in order.
    """

    def __init__(self, model: Model, start: State, program: Program, high: float, depth: Depth) -> None:
        self.model, self.start, self.program = model, start, program
        self.spare = Spare(model, start, high)
        self._closely = depth.states > 0
        self.movable = np.flatnonzero(self.spare.may if self._closely else model.movable)
        self.load = model.usage.bundle[:, self.movable]
        self.unit = np.maximum(self.load.max(axis=1, initial=0.0), 1.0)
        self.owner = model.owner[self.movable]
        self.out = program.add(len(self.movable), high=1.0)
        program.low[-1][model.forced[self.movable]] = 1.0
        self._leave_whole(high, depth)
        group_of, self.masks = model.groups
        spaces = model.snapshot.bundles.namespace[self.movable].astype(np.int64)
        self.space = spaces
        self.limited = self._limited()
        if self.limited and self._closely:
            program.high[-1][kept_by_order(model, start, depth.states)[self.movable]] = 0.0
        ordered = self.limited and depth.in_order
        self._orders = orders_of_groups(model, start, depth.states) if ordered else []
        self.decides: list[int] = []
        self.frees: list[int] = []
        mark = np.array([self._mark(at) for at in range(len(model.snapshot.namespaces))], dtype=np.int64)
        kinds, self.kind = np.unique(np.stack([group_of[spaces], mark[spaces]]), axis=1, return_inverse=True)
        self.kind = self.kind.reshape(-1)
        self.kinds: list[tuple[int, int]] = [(int(mask), int(one)) for mask, one in kinds.T]
        self.takers = [np.flatnonzero(self.masks[mask]) for mask, _ in self.kinds]
        self.placed: dict[int, Int64Array] = {}
        self._arrive_whole(depth.placed)
        self.count_in = {
            at: dict(zip(takers.tolist(), self._counted(at).tolist(), strict=True))
            for at, ((_, one), takers) in enumerate(zip(self.kinds, self.takers, strict=True))
            if one >= 0 or at in self.placed
        }
        for at, into in self.count_in.items():
            mine = self.out[self.kind == at]
            columns = np.concatenate([np.array([*into.values()], dtype=np.int64), mine])
            program.row(columns, np.append(np.ones(len(into)), -np.ones(len(mine))), 0.0, 0.0)

    def _arrive_whole(self, most: int) -> None:
        """Let the largest bundles arrive as a whole: each is a kind of its own. So many columns at most."""
        counts = self.model.counts
        size = (self.load * self.model.scale[:, counts].min(axis=1, keepdims=True)).max(axis=0)
        for one in np.argsort(-size, kind="stable").tolist():
            takers = self.takers[self.kind[one]]
            takers = takers[takers != self.owner[one]]
            most -= len(takers)
            if most < 0:
                return
            self.kinds.append(self.kinds[self.kind[one]])
            self.takers.append(takers)
            self.kind[one] = len(self.kinds) - 1
            self.placed[len(self.kinds) - 1] = self.program.add(len(takers), high=1.0, whole=True)

    def _counted(self, at: int) -> Int64Array:
        """Return columns that count how many bundles of a kind each of its takers gets. Shape (takers,)."""
        return self.placed[at] if at in self.placed else self.program.add(len(self.takers[at]))

    def _limited(self) -> bool:
        """Say whether groups limit what arrives: not where topics can make a candidate drop out."""
        rules, topics = self.model.rules, self.model.snapshot.bundles.topics
        most = int(self.start.topics.max(initial=0)) + int(topics[self.movable].sum())
        return bool(rules.group) and most <= rules.most_topics

    def _mark(self, namespace: int) -> int:
        """Return what tells bundles of groups apart: the namespace where namespaces are counted, else the group."""
        rules = self.model.rules
        if not self.limited or namespace not in rules.group:
            return -1
        return namespace if rules.counts_namespaces else list(rules.members).index(rules.group[namespace])

    def _leave_whole(self, high: float, depth: Depth) -> None:
        """Let the largest bundles of brokers above a usage leave as a whole, and as many as it takes in any case."""
        model, start = self.model, self.start
        for broker in np.flatnonzero(model.counts & (start.usage > 0)).tolist():
            mine = np.flatnonzero(self.owner == broker)
            if not len(mine):
                continue
            load = self.load[:, mine] * model.scale[:, [broker]]
            if self.spare.least[broker]:
                self.program.row(self.out[mine], np.ones(len(mine)), low=float(self.spare.least[broker]))
            large = mine[np.argsort(-load.max(axis=0), kind="stable")[: depth.whole]]
            if start.usage[broker] > high * depth.near:
                for column in self.out[large].tolist():
                    self.program.whole[column] = True

    def of(self, row: int) -> dict[int, list[tuple[Int64Array, FloatArray]]]:
        """Add the flows of a resource; return their columns and signs by broker. Shape of each (flows,)."""
        found: dict[int, list[tuple[Int64Array, FloatArray]]] = {}
        for at, takers in enumerate(self.takers):
            mine = np.flatnonzero(self.kind == at)
            if at in self.placed:
                for broker, column in zip(takers.tolist(), self.placed[at], strict=True):
                    found.setdefault(broker, []).append((column[np.newaxis], self.load[row, mine] / self.unit[row]))
                continue
            if not len(mine):
                continue
            into = self.program.add(len(takers))
            for broker, column in zip(takers.tolist(), into, strict=True):
                found.setdefault(broker, []).append((column[np.newaxis], np.ones(1)))
            sizes = self.load[row, mine] / self.unit[row]
            self.program.row(np.append(into, self.out[mine]), np.append(np.ones(len(into)), -sizes), 0.0, 0.0)
            if at in self.count_in:
                counted = np.array([self.count_in[at][broker] for broker in takers.tolist()], dtype=np.int64)
                self._as_large_as_so_many(into, counted, sizes, self.start.usage[takers])
        for broker in np.unique(self.owner).tolist():
            mine = np.flatnonzero(self.owner == broker)
            found.setdefault(broker, []).append((self.out[mine], -self.load[row, mine] / self.unit[row]))
        return found

    def _as_large_as_so_many(self, into: Int64Array, counted: Int64Array, sizes: FloatArray, usage: FloatArray) -> None:
        """Let so many bundles bring what they can: at most as much as the largest, at least as much as the smallest.

        This holds of each broker, of the least used ones together, and of all.

        Args:
            into: Columns of what arrives. Shape (takers,).
            counted: Columns of how many bundles arrive. Shape (takers,).
            sizes: How much each bundle brings. Shape (bundles,).
            usage: Usage of the takers. Shape (takers,).
        """
        rising = np.sort(sizes)
        rising, falling = np.append(rising, rising[-1:]), np.append(rising[::-1], 0.0)
        small, large = (np.append(0.0, one.cumsum()) for one in (rising, falling))
        order = np.argsort(usage, kind="stable")
        sets = [np.array([one]) for one in range(len(into))]
        sets += [order[:many] for many in _TOGETHER if 1 < many < len(into)]
        sets += [order] if len(into) > 1 else []
        for those in sets:
            columns = np.append(into[those], counted[those])
            for known in sorted({min(part * len(those), len(sizes)) for part in _COUNTED}):
                for sums, one, most in ((large, float(falling[known]), True), (small, float(rising[known]), False)):
                    values = np.append(np.ones(len(those)), np.full(len(those), -one))
                    line = float(sums[known] - known * one)
                    limits = {"high": line} if most else {"low": line}
                    self.program.row(columns, values, **limits)

    # Anti-affinity groups

    def groups(self) -> None:
        """Limit what brokers may take of each group."""
        if not self.limited:
            return
        rules = self.model.rules
        for group, members in rules.members.items():
            counts = rules.group_counts(group, self.start.counts)
            if rules.counts_namespaces:
                if not self._closely:
                    for member in members.tolist():
                        self._of_namespaces_at_once(member, members, counts, rules.before_group(member))
                    continue
                candidates = np.array([rules.before_group(member) for member in members.tolist()])
                for alike in np.unique(candidates, axis=0):
                    self._of_namespaces(members[(candidates == alike).all(axis=1)], members, counts, alike)
            else:
                self._of_bundles(members, counts, rules.before_group(int(members[0])))
        for order in self._orders:
            keep_order(self, order)

    def into(self, members: Int64Array, broker: int) -> Int64Array:
        """Return the columns that count what a broker takes of some namespaces. Shape (such kinds,)."""
        kinds = np.unique(self.kind[np.isin(self.space, members)]).tolist()
        return np.array(
            [self.count_in[at][broker] for at in kinds if broker in self.count_in.get(at, {})], dtype=np.int64
        )

    def _level(self, counts: IntArray, candidates: BoolArray, takers: BoolArray, most: int) -> int:
        """Return the most that the fewest of all candidates can be, with all moves of the budget, and so many."""
        moves = min(self.model.budgets[0], most)
        if not candidates.any():
            return 0
        level = int(counts[candidates].min())
        while True:
            below = candidates & (counts <= level)
            if (below & ~takers).any() or (level + 1 - counts[below]).sum() > moves:
                return level
            level += 1

    def _of_bundles(self, members: Int64Array, counts: IntArray, candidates: BoolArray) -> None:
        domains = self.model.rules.domains_of(candidates)
        places = [np.flatnonzero(candidates & (domains == place)) for place in np.unique(domains[candidates]).tolist()]
        one = len(places) == 1
        most = [
            self._rise(members, [np.array([broker]) for broker in place.tolist()], counts, settles=one)
            for place in places
        ]
        if not one:
            self._rise(members, places, counts, np.array(most), settles=True)

    def _settle(
        self, members: Int64Array, units: list[Int64Array], into: list[Int64Array], here: Int64Array, level: Int64Array
    ) -> None:
        """Let no unit end below the highest that the fewest ever are, but for one that has one less.

        Once all have so many, a unit that gives one away is the only one with fewer, and takes the next.
        """
        program, mine = self.program, np.isin(self.space, members)
        lacks = program.add(len(units), high=1.0)
        program.row(lacks, np.ones(len(units)), high=1.0)
        for unit, taken, now, lack in zip(units, into, here.tolist(), lacks.tolist(), strict=True):
            gone = self.out[mine & np.isin(self.owner, unit)]
            columns = np.concatenate([taken, gone, [lack], level])
            signs = np.concatenate([np.ones(len(taken)), -np.ones(len(gone)), [1.0, -1.0]])
            program.row(columns, signs, low=-float(now))

    def _rise(
        self,
        members: Int64Array,
        units: list[Int64Array],
        counts: IntArray,
        caps: Int64Array | None = None,
        *,
        settles: bool,
    ) -> int:
        """Let who takes a bundle have at most the fewest of all, at the highest that the fewest ever are, and one more.

        For the fewest to be at a level, every unit with less must have taken what it lacks.

        Args:
            members: Namespaces of the group.
            units: Brokers that are counted together. Shape of each (brokers of the unit,).
            counts: Bundles of the group on each broker. Shape (brokers,).
            caps: The most that each unit can ever have, where that is known. Shape (units,).
            settles: Whether what leaves a unit always comes to one of the units.

        Returns:
            The most that all units together can ever have.
        """
        program, mine = self.program, np.isin(self.space, members)
        here = np.array([int(counts[unit].sum()) for unit in units])
        into = [np.concatenate([self.into(members, broker) for broker in unit.tolist()]) for unit in units]
        least = int(here.min())
        takers = np.array([len(one) > 0 for one in into])
        most = self._level(here, np.ones(len(units), dtype=np.bool_), takers, self._most_moves(mine))
        outside = int((mine & ~np.isin(self.owner, np.concatenate(units))).sum())
        most = max(min(most, (int(here.sum()) + outside) // len(units)), least)  # the fewest is at most the mean
        if caps is not None:
            most = max(min(most, int(caps.min())), least)
        reach = np.full(len(units), most + 1) if caps is None else np.minimum(caps, most + 1)
        if settles:
            opens = _ever_take(here, reach, takers, most)
        else:  # a unit can also give bundles to brokers that are none of these units
            able = np.array([int((mine & np.isin(self.owner, unit)).sum()) for unit in units])
            opens = takers & (here - able <= most)
        level = program.add(1, low=float(least), high=float(most))
        self.decides += level.tolist()
        if settles:
            self._settle(members, units, into, here, level)
        for unit, taken, now, may in zip(units, into, here.tolist(), opens.tolist(), strict=True):
            if not len(taken):
                continue
            if not may:
                program.row(taken, np.ones(len(taken)), high=0.0)
                continue
            gone = self.out[mine & np.isin(self.owner, unit)]
            ones = np.ones(len(taken))
            if now < most:
                program.row(np.append(taken, level), np.append(ones, -1.0), low=-float(now))
            takes = program.add(1, high=1.0)
            self.decides += takes.tolist()
            above = max(now - least - 1, 0)
            room = max(min(most + 1 - now + len(gone), int(mine.sum())), 0)
            program.row(np.append(taken, takes), np.append(ones, -float(room)), high=0.0)
            columns = np.concatenate([taken, gone, level, takes])
            signs = np.concatenate([ones, -np.ones(len(gone)), [-1.0, float(above)]])
            program.row(columns, signs, high=float(1 + above - now))
        return int(np.where(opens, np.maximum(here, reach), here).sum())

    def _of_namespaces(self, asked: Int64Array, members: Int64Array, counts: IntArray, candidates: BoolArray) -> None:
        """Let a broker take bundles of namespaces only when it has at most the fewest namespaces of all candidates.

        For the fewest to be at a level, every broker with less must have taken what it lacks; one with more must lose
        all bundles of some namespaces. As long as some broker has none, no broker takes two.

        Args:
            asked: Namespaces of the group with these candidates. Shape (namespaces,).
            members: All namespaces of the group. Shape (namespaces,).
            counts: Namespaces of the group on each broker. Shape (brokers,).
            candidates: Who is a candidate for them. Shape (brokers,).
        """
        may = np.zeros(len(counts), dtype=np.bool_)
        for one in members.tolist():
            may |= self.model.rules.static(one) & self.model.takes
        domains = self.model.rules.domains_of(candidates)
        program, mine = self.program, np.isin(self.space, members)
        moves = min(self.model.budgets[0], self._most_moves(mine))
        for place in np.unique(domains[candidates]).tolist():
            inside = candidates & (domains == place)
            least, most = int(counts[inside].min()), self._level(counts, inside, may, int(moves))
            level = program.add(1, low=float(least), high=float(most))
            self.decides += level.tolist()
            for broker in np.flatnonzero(inside & (counts < most)).tolist():
                came = self.into(members, broker)
                program.row(np.append(came, level), np.append(np.ones(len(came)), -1.0), low=-float(counts[broker]))
            for broker in np.flatnonzero(inside).tolist():
                into, gone = self.into(asked, broker), self.out[mine & (self.owner == broker)]
                if not len(into):
                    continue
                program.row(np.append(into, level), np.append(np.ones(len(into)), -float(moves)), high=1.0)
                if counts[broker] > least:
                    here = self.start.counts[members, broker]
                    self._after_loss(into, gone, np.sort(here[here > 0]), level, (least, most), moves)

    def _after_loss(
        self,
        into: Int64Array,
        gone: Int64Array,
        here: IntArray,
        level: Int64Array,
        levels: tuple[int, int],
        moves: float,
    ) -> None:
        """Let bundles of a group go to a broker only after it lost so many namespaces that it is at the level.

        Args:
            into: Columns that count what it takes. Shape (kinds,).
            gone: Columns of what leaves it. Shape (bundles,).
            here: Bundles of each namespace of the group that it has, the fewest first. Shape (namespaces,).
            level: Column of the level. Shape (1,).
            levels: The least and the most that the level can be.
            moves: The most that bundles of the group can move.
        """
        program, (least, most) = self.program, levels
        must = int(here[: max(len(here) - most, 0)].sum())
        if must > moves or must > len(gone):
            program.row(into, np.ones(len(into)), high=0.0)
            return
        takes, ones = program.add(1, high=1.0), np.ones(len(into))
        self.decides += takes.tolist()
        program.row(np.append(into, takes), np.append(ones, -float(moves - must)), high=0.0)
        program.row(np.append(gone, takes), np.append(np.ones(len(gone)), -float(must)), low=0.0)
        each, above = float(here[0]), len(here) - least
        columns = np.concatenate([gone, level, takes])
        signs = np.concatenate([np.ones(len(gone)), [each, -each * above]])
        program.row(columns, signs, low=each * least)

    def _most_moves(self, those: BoolArray) -> int:
        """Return how many of some of the bundles can leave at most."""
        if not self._closely:
            return len(self.movable)
        here = np.bincount(self.owner[those], minlength=len(self.spare.least))
        return int(np.minimum(here, self.spare.least + max(self.spare.moves, 0.0)).sum())

    def _of_namespaces_at_once(self, member: int, members: Int64Array, counts: IntArray, candidates: BoolArray) -> None:
        """Let a broker above the highest level take bundles of a namespace only once all of some others have left."""
        may = np.zeros(len(counts), dtype=np.bool_)
        for one in members.tolist():
            may |= self.model.rules.static(one) & self.model.takes
        domains = self.model.rules.domains_of(candidates)
        mine = np.isin(self.space, members)
        moves = min(self.model.budgets[0], len(self.movable))
        for place in np.unique(domains[candidates]).tolist():
            inside = candidates & (domains == place)
            level = self._level(counts, inside, may, len(self.movable))
            for broker in np.flatnonzero(inside & (counts > level)).tolist():
                here = self.start.counts[members, broker]
                must = int(np.sort(here[here > 0])[: int(counts[broker]) - level].sum())
                into = self.into(np.array([member]), broker)
                if not len(into):
                    continue
                gone = self.out[mine & (self.owner == broker)]
                if must > moves or must > len(gone):
                    self.program.row(into, np.ones(len(into)), high=0.0)
                    continue
                most = float(min(moves - must, int((self.space == member).sum())))
                rate = must / max(most, 1.0)
                columns = np.concatenate([into, gone])
                self.program.row(columns, np.append(np.full(len(into), rate), -np.ones(len(gone))), high=0.0)
