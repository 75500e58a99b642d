"""Which bundles of an anti-affinity group no plan can move, because of the order that failure domains ask for.

The extensible load manager lets a bundle go to the domains with the fewest bundles of its group, and of all their
brokers to those with the fewest. A broker that may take none, and has few, so blocks all brokers with more: they take
bundles only while their domain has fewer than the domain of that broker. This asks, move by move, how many bundles can
have left each domain and come there. It also counts *low places*: how many bundles brokers can take before they have
more than the broker that blocks others. What is left out allows more.

- Where a broker with few bundles must be next, a move takes a low place of its domain.
- A bundle that leaves such a broker frees a low place. A broker with more bundles must lose several before, and until
  then its domain took bundles only on brokers with as few.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

from planner.cluster.arrays import BoolArray, Int64Array
from planner.optimize.question import Model
from planner.optimize.state import State

_NEVER = 2**31
"""More bundles than there are."""
_STATES_PER_MOVE = 100
"""States that take as long as it takes to look at one more move."""
_TOGETHER = 3
"""Numbers of bundles that left domains or came there, of which a sum or difference is limited."""


@dataclass(frozen=True, eq=False, slots=True)
class Order:
    """What all orders of moves of a group have in common that move all that must.

    Attributes:
        members: Namespaces of the group. Shape (namespaces,).
        domain: Domain of each broker; the last number for brokers that are no candidates. Shape (brokers,).
        domains: How many domains have candidates.
        moved: How many bundles can have left each domain, and other brokers, then come to each domain, and of these to
            a low place for certain; where known, then from each domain, and other brokers, to each domain.
            Shape (ways, 3 * domains + 1) or (ways, 3 * domains + 1 + (domains + 1) * domains).
        places: Low places of each broker; where negative, so many bundles leave it before those that free low places.
            Shape (brokers,).
    """

    members: Int64Array
    domain: Int64Array
    domains: int
    moved: Int64Array
    places: Int64Array

    def limits(self) -> Iterator[tuple[Int64Array, int]]:
        """Yield factors for the columns of `moved`, and what these come to at most. Shape (3 * domains + 1,)."""
        width = 3 * self.domains + 1
        for many in range(1, _TOGETHER + 1):
            for columns in combinations(range(width), many):
                for signs in product((1, -1), repeat=many):
                    factors = np.zeros(width, dtype=np.int64)
                    factors[list(columns)] = signs
                    yield factors, int((self.moved[:, :width] @ factors).max())


def kept_by_order(model: Model, start: State, most_states: int) -> BoolArray:
    """Say which bundles cannot move in any plan that moves all that must. Shape (bundles,).

    Args:
        model: The cluster and the question; topics make no candidate drop out.
        start: The cluster before anything moves.
        most_states: How many states are looked at for a group; where there are more, its bundles may move.
    """
    kept = np.zeros(len(model.owner), dtype=np.bool_)
    for members, group in _blocked(model, start):
        states = group.states(most_states)
        if states is None or not group.possible(states, group.must).any():
            continue
        mine = model.movable & np.isin(start.space, members)
        for broker in np.unique(model.owner[mine & ~model.forced]).tolist():
            more = group.must.copy()
            more[broker] += 1
            if not group.possible(states, more).any():
                kept |= mine & ~model.forced & (model.owner == broker)
    return kept


def orders_of_groups(model: Model, start: State, most_states: int) -> list[Order]:
    """Return what is known of the groups in which a broker blocks others; none of other groups.

    Args:
        model: The cluster and the question; topics make no candidate drop out.
        start: The cluster before anything moves.
        most_states: How many states are looked at for a group; of one with more, nothing is known.
    """
    found = list[Order]()
    for members, group in _blocked(model, start):
        states = group.states(most_states, low=True, pairs=True) or group.states(most_states, low=True)
        done = group.possible(states, group.must) if states else np.zeros(0, dtype=np.bool_)
        if states and done.any():
            moved = np.unique(np.hstack([states.left, states.come, states.low, states.pairs])[done], axis=0)
            found.append(Order(members, group.domain, group.domains, moved, group.few + 1 - group.here))
    return found


def _blocked(model: Model, start: State) -> Iterator[tuple[Int64Array, "_Group"]]:
    """Yield the namespaces of each group in which a broker blocks others, and the group."""
    rules = model.rules
    if rules.counts_namespaces or not rules.domains:
        return
    for members in rules.members.values():
        group = _Group.of(model, start, members)
        if group is not None:
            yield members, group


@dataclass(frozen=True, eq=False, slots=True)
class _States:
    """What can have happened. Each shape (states, domains), with one more for other brokers in that of `left`.

    Two are counted only where they are asked for, and else have no columns. Of what has come, `low` came while the
    broker that blocks others was among the fewest: to a low place for certain. `pairs` are the moves from each domain,
    or other brokers, to each domain. Shape (states, (domains + 1) * domains).
    """

    left: Int64Array
    come: Int64Array
    places: Int64Array
    freed: Int64Array
    low: Int64Array
    pairs: Int64Array

    def __len__(self) -> int:
        return len(self.left)

    def of(self, rows: BoolArray) -> "_States":
        """Return some of them."""
        parts = (self.left, self.come, self.places, self.freed, self.low, self.pairs)
        return _States(*(part[rows] for part in parts))

    @staticmethod
    def joined(parts: "list[_States]") -> "_States":
        """Return those of all parts, each once."""
        every = np.concatenate(
            [np.hstack([one.left, one.come, one.places, one.freed, one.low, one.pairs]) for one in parts]
        )
        order = np.lexsort(every.T)
        every = every[order]
        every = every[np.append(True, (every[1:] != every[:-1]).any(axis=1))]
        width = parts[0].come.shape[1]
        low = parts[0].low.shape[1]
        return _States(*np.split(every, np.cumsum([width + 1, width, width, width, low]), axis=1))


@dataclass(frozen=True, eq=False, slots=True)
class _Group:
    """A group in a cluster with domains.

    Attributes:
        here: Its bundles on each broker. Shape (brokers,).
        domain: Domain of each broker; the last number for brokers that are no candidates. Shape (brokers,).
        takers: Whether each may take any bundle of it. Shape (brokers,).
        movable: How many of its bundles may leave each. Shape (brokers,).
        must: How many of them must. Shape (brokers,).
        few: Bundles of the broker that blocks others.
        moves: How many moves the group may have.
        domains: How many domains have candidates.
        blocked: Whether a broker that may take none has so few. Shape (domains,).
    """

    here: Int64Array
    domain: Int64Array
    takers: BoolArray
    movable: Int64Array
    must: Int64Array
    few: int
    moves: int
    domains: int
    blocked: BoolArray

    @staticmethod
    def of(model: Model, start: State, members: Int64Array) -> "_Group | None":
        """Return a group, None where no broker blocks others."""
        rules, brokers = model.rules, len(start.usage)
        candidates = rules.before_group(int(members[0]))
        may: BoolArray = np.any([rules.static(at) & model.takes for at in members.tolist()], axis=0) & candidates
        never = candidates & ~may
        names, domain = np.unique(rules.domains_of(candidates)[candidates], return_inverse=True)
        if not never.any() or len(names) < 2:  # noqa: PLR2004 - several
            return None
        place = np.full(brokers, len(names))
        place[candidates] = domain.reshape(-1)
        here = start.counts[members].sum(axis=0).astype(np.int64)
        mine = model.movable & np.isin(start.space, members)
        others = int((model.forced & ~mine).sum())
        few = int(here[never].min())
        blocked = np.isin(np.arange(len(names)), place[never & (here <= few)])
        return _Group(
            here=here,
            domain=place,
            takers=may,
            movable=np.bincount(model.owner[mine], minlength=brokers),
            must=np.bincount(model.owner[mine & model.forced], minlength=brokers),
            few=few,
            moves=int(min(model.budgets[0] - others, mine.sum())),
            domains=len(names),
            blocked=blocked,
        )

    def _in(self, domain: int) -> Int64Array:
        """Return the brokers of a domain that may take bundles. Shape (such brokers,)."""
        return np.flatnonzero(self.takers & (self.domain == domain))

    def _sums(self, values: Int64Array) -> Int64Array:
        """Return the sum for each domain, and for other brokers. Shape (domains + 1,)."""
        found: Int64Array = np.bincount(self.domain, values, minlength=self.domains + 1).astype(np.int64)
        return found

    def states(self, most: int, *, low: bool = False, pairs: bool = False) -> _States | None:
        """Return all that can have happened after any number of moves, None where that is too much."""
        width = self.domains
        none = np.zeros((1, width), dtype=np.int64)
        places = self._sums(np.where(self.takers, np.maximum(self.few + 1 - self.here, 0), 0))[np.newaxis, :width]
        left, every = (np.zeros((1, many), dtype=np.int64) for many in (width + 1, (width + 1) * width * pairs))
        layer = _States(left, none, places, none, none[:, : width * low], every)
        found, count = [layer], 1  # those of other layers have another number of moves
        for _ in range(self.moves):
            after = self._after(layer)
            if not after:
                break
            layer = _States.joined(after)
            found.append(layer)
            count += len(layer) + _STATES_PER_MOVE
            if count > most:
                return None
        return _States.joined(found)

    def _after(self, layer: _States) -> list[_States]:
        """Return what one more move leads to."""
        width = self.domains
        sums = self._sums(self.here)[:width] + layer.come - layer.left[:, :width]
        fewest = sums == sums.min(axis=1, keepdims=True)
        low = (fewest & (self.blocked | (layer.places > 0))).any(axis=1)
        blocks = (fewest & self.blocked).any(axis=1)
        able, found = self._sums(self.movable), []
        for to in range(width):
            takes = fewest[:, to] & np.where(low, layer.places[:, to] > 0, len(self._in(to)) > 0)
            for source in range(width + 1):
                rows = takes & (layer.left[:, source] < able[source])
                if not rows.any():
                    continue
                now = layer.of(rows)
                left, come, places, taken = now.left.copy(), now.come.copy(), now.places.copy(), now.low.copy()
                left[:, source] += 1
                come[:, to] += 1
                places[:, to] -= low[rows]
                taken[:, to : to + 1] += blocks[rows, np.newaxis]
                pairs = now.pairs.copy()
                pairs[:, source * width + to : source * width + to + 1] += 1
                after = _States(left, come, places, now.freed, taken, pairs)
                found.append(after)
                if source < width:
                    found.append(self._freeing(after, now, source))
        return [one for one in found if len(one)]

    def _freeing(self, after: _States, before: _States, source: int) -> _States:
        """Return the same where what leaves frees a low place, as far as that can be."""
        freed, left = after.freed[:, source], before.left[:, source]
        mine = self._in(source)
        most = np.maximum(self.few + 2 + left[:, np.newaxis] - self.here[mine], 0).sum(axis=1) + left
        enough = np.array([self._leave(source, np.zeros_like(self.must), many) for many in range(freed.max() + 2)])
        rows = (before.come[:, source] <= most) & (after.left[:, source] >= enough[freed + 1])
        found = after.of(rows)
        places, freed_now = found.places.copy(), found.freed.copy()
        places[:, source] += 1
        freed_now[:, source] += 1
        return _States(found.left, found.come, places, freed_now, found.low, found.pairs)

    def _leave(self, domain: int, must: Int64Array, freed: int) -> int:
        """Return how many bundles leave a domain at least when so many low places were freed.

        Args:
            domain: Its number.
            must: How many leave each broker at least. Shape (brokers,).
            freed: Low places that were freed. A broker with more bundles frees them with the last that leave it.
        """
        more = np.full(freed + 1, _NEVER)
        more[0] = 0
        for broker in self._in(domain).tolist():
            unfree = max(int(self.here[broker]) - self.few, 1) - 1
            most = min(max(int(self.movable[broker]) - unfree, 0), freed)
            before = more.copy()
            for mine in range(1, most + 1):
                besides = max(unfree + mine - int(must[broker]), 0)
                np.minimum(more[mine:], before[:-mine] + besides, out=more[mine:])
        return int(more[freed]) + int(must[self.domain == domain].sum())

    def possible(self, states: _States, must: Int64Array) -> BoolArray:
        """Say in which states so many bundles of each broker can have left. Shape (states,)."""
        found = np.ones(len(states), dtype=np.bool_)
        for domain in range(self.domains):
            freed = states.freed[:, domain]
            least = np.array([self._leave(domain, must, many) for many in range(freed.max() + 1)])
            found &= states.left[:, domain] >= least[freed]
        found &= states.left[:, -1] >= self._sums(must)[-1]
        return found
