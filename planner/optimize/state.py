"""A cluster while its bundles are moved: who has what, what that comes to, and what may go where."""

import numpy as np

from planner.cluster.arrays import BoolArray, FloatArray, Int64Array, IntArray
from planner.optimize.question import Model
from planner.simulate.load_model import broker_sums

EPSILON = 1e-9
"""Differences of usage (1.0 = 100 %) up to this one are ignored."""


class State:
    """A cluster while bundles are moved.

    Args:
        model: The cluster and the question.

    Attributes:
        owner: Who serves each bundle now. Shape (bundles,).
        served: Demand of each broker's bundles. Shape (resources, brokers).
        usage: Weighted usage of each broker. Shape (brokers,).
        order: Bundles that are not where they were, the one that moved last at the end.
        spent: What the moves cost, as `COSTS`. Shape (4,).
        space: Namespace of each bundle. Shape (bundles,).
        topics: Topics of each broker. Shape (brokers,).
        counts: Bundles of each namespace on each broker. Shape (namespaces, brokers).
        changing: Namespaces whose bundles may go elsewhere after moves of others. Shape (namespaces,).
        ways: How often moves may be taken back, or change places, for others.
        misjudged: By how much receivers may seem to have less room than they have, and what draws it.
    """

    misjudged: tuple[float, np.random.Generator] | None = None
    ways: int = 0

    def __init__(self, model: Model) -> None:
        self.model = model
        usage, snapshot = model.usage, model.snapshot
        self.owner: Int64Array = model.owner.copy()
        mine, count = self.owner >= 0, len(snapshot.brokers)
        self.served: FloatArray = broker_sums(usage.bundle, self.owner, count)[:-1]
        self.usage: FloatArray = usage.usage(self.served)
        self.order: dict[int, None] = {}
        self.spent: FloatArray = np.zeros(len(model.cost))
        self.space = snapshot.bundles.namespace.astype(np.int64)
        self.topic_count = snapshot.bundles.topics
        self.topics: Int64Array = np.where(snapshot.brokers.has_load_data, snapshot.brokers.topics, 0)
        self.counts: IntArray = np.zeros((len(snapshot.namespaces), count), dtype=np.int32)
        np.add.at(self.counts, (self.space[mine], self.owner[mine]), 1)
        self._by_broker: list[set[int]] = [set() for _ in range(count)]
        for bundle in np.flatnonzero(mine & model.movable).tolist():
            self._by_broker[self.owner[bundle]].add(bundle)
        self._mask_of, self._masks = model.groups
        self._least: dict[str, dict[bytes, BoolArray]] = {}
        self.changing = np.array([model.rules.changes(at) for at in range(len(snapshot.namespaces))] or [False])

    # What may go where

    def movable_on(self, broker: int) -> Int64Array:
        """Return the bundles on a broker that may leave it within the budgets. Shape (such bundles,)."""
        mine = np.array(sorted(self._by_broker[broker]), dtype=np.int64)
        if not len(mine):
            return mine
        pinned = [bundle for bundle, to in self.model.pinned.items() if to == broker]
        away = self.owner[mine] != self.model.owner[mine]
        mine, away = (one[~away | ~self.changing[self.space[mine]]] for one in (mine, away))
        left = (self.model.budgets - self.spent)[:, np.newaxis]
        free: Int64Array = mine[(away | (self.model.cost[:, mine] <= left).all(axis=0)) & ~np.isin(mine, pinned)]
        return free

    def allowed(self, bundles: Int64Array) -> BoolArray:
        """Return who may take bundles now, their own broker left out. Shape (bundles, brokers).

        What has moved may go home: that is one move less, if the others still have an order.
        """
        space = self.space[bundles]
        mask: BoolArray = self._masks[self._mask_of[space]].copy()
        most = self.model.rules.most_topics
        if int(self.topics.max(initial=0)) + int(self.topic_count[bundles].max(initial=0)) > most:
            mask &= self.topics + self.topic_count[bundles, np.newaxis] <= most
        rows = np.flatnonzero(self.changing[space])
        for one in np.unique(space[rows]).tolist():
            mask[rows[space[rows] == one]] &= self.now(one)
        free = np.flatnonzero(~self.model.forced[bundles])
        mask[free, self.model.owner[bundles[free]]] = True
        for row, bundle in enumerate(bundles.tolist()):
            if bundle in self.model.pinned:
                mask[row] &= np.arange(mask.shape[1]) == self.model.pinned[bundle]
        mask[np.arange(len(bundles)), self.owner[bundles]] = False
        return mask

    def now(self, namespace: int) -> BoolArray:
        """Return where a bundle of a changing namespace may go now, apart from the topic limit. Shape (brokers,)."""
        rules, left = self.model.rules, self.topics <= self.model.rules.most_topics
        group = rules.group.get(namespace)
        if group is None:
            return rules.dynamic(namespace, self.counts, self.topics)
        early = rules.before_group(namespace) & left
        key = early.tobytes()
        known = self._least.setdefault(group, {})
        if key not in known:
            known[key] = rules.least_of_group(group, self.counts, early)
        return rules.dynamic(namespace, self.counts, self.topics, known[key])

    def spreads(self, bundle: int, brokers: Int64Array) -> BoolArray:
        """Say which brokers have as few bundles of the namespace as any other that may have one. Shape as given."""
        counts = self.counts[self.space[bundle]]
        every = counts[self._masks[self._mask_of[self.space[bundle]]]]
        few: BoolArray = counts[brokers] <= every.min(initial=np.iinfo(np.int32).max)
        return few

    # What would be

    def without(self, broker: int, bundles: Int64Array) -> FloatArray:
        """Return usage of a broker without each of some bundles. Shape (bundles,)."""
        usage = self.model.usage
        left = usage.own[:, broker, np.newaxis] + self.served[:, broker, np.newaxis] - usage.bundle[:, bundles]
        found = (left * self.model.scale[:, broker, np.newaxis]).max(axis=0)
        kept: FloatArray = np.maximum(found, usage.fixed[broker])
        return kept

    def with_each(self, bundles: Int64Array) -> FloatArray:
        """Return usage of every broker with each of some bundles besides. Shape (bundles, brokers)."""
        usage, scale = self.model.usage, self.model.scale
        found = np.repeat(usage.fixed[np.newaxis], len(bundles), axis=0)
        for row in range(len(scale)):
            here = (usage.own[row] + self.served[row]) * scale[row]
            np.maximum(found, here + usage.bundle[row, bundles, np.newaxis] * scale[row], out=found)
        if self.misjudged is not None:
            points, random = self.misjudged
            found += random.random(found.shape) * points
        return found

    def arriving(self, bundles: Int64Array, caps: FloatArray | float = np.inf) -> FloatArray:
        """Return the same, infinite where a bundle may not go, or is too much for a cap. Shape (bundles, brokers)."""
        after = self.with_each(bundles)
        after[~self.allowed(bundles) | (after > caps + EPSILON)] = np.inf
        return after

    # Moves

    def move(self, bundle: int, to: int) -> None:
        """Let another broker serve a bundle."""
        model, before, home = self.model, int(self.owner[bundle]), int(self.model.owner[bundle])
        load = model.usage.bundle[:, bundle]
        self.served[:, before] -= load
        self.served[:, to] += load
        both = [before, to]
        here = (model.usage.own[:, both] + self.served[:, both]) * model.scale[:, both]
        self.usage[both] = np.maximum(here.max(axis=0), model.usage.fixed[both])
        self.topics[before] -= self.topic_count[bundle]
        self.topics[to] += self.topic_count[bundle]
        space = int(self.space[bundle])
        self.counts[space, both] += (-1, 1)
        if self.changing[space]:
            self._least.pop(model.rules.group.get(space, ""), None)
        self._by_broker[before].discard(bundle)
        self._by_broker[to].add(bundle)
        self.owner[bundle] = to
        self.spent += model.cost[:, bundle] * (int(to != home) - int(before != home))
        self.order.pop(bundle, None)
        if to != home:
            self.order[bundle] = None

    def peak(self) -> float:
        """Return the highest usage that counts."""
        return self.model.peak(self.usage)

    def hottest(self) -> int:
        """Return the broker with the highest usage that counts."""
        return int(np.where(self.model.counts, self.usage, -np.inf).argmax())

    def moves(self) -> list[tuple[int, int]]:
        """Return the bundles that are elsewhere than at the start, with their brokers, in order."""
        return [(bundle, int(self.owner[bundle])) for bundle in self.order]

    def _crowded(self) -> bool:
        """Say whether a broker could meet its topic limit on the way, if all that comes came before anything left."""
        moved = np.fromiter(self.order, dtype=np.int64, count=len(self.order))
        left = np.bincount(self.model.owner[moved], self.topic_count[moved], minlength=len(self.topics))
        return bool((self.topics + left).max(initial=0) > self.model.rules.most_topics)

    def in_order(self) -> list[tuple[int, int]]:
        """Return the moves in an order in which every destination passes the filters at its turn, others left out."""
        if not self.changing.any() and not self._crowded():
            return self.moves()
        return State(self.model).play(self.moves())

    def play(self, moves: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Make moves in an order in which every destination passes the filters at its turn; return those made."""
        made: list[tuple[int, int]] = []
        waiting, before = moves, len(moves) + 1
        while len(waiting) < before:
            before, left = len(waiting), []
            for bundle, to in waiting:
                if self.allowed(np.array([bundle]))[0, to]:
                    self.move(bundle, to)
                    made.append((bundle, to))
                else:
                    left.append((bundle, to))
            waiting = left
        return made

    def restore(self, moves: list[tuple[int, int]]) -> None:
        """Go back to what `moves` returned."""
        wanted = dict(moves)
        for bundle in list(self.order):
            if bundle not in wanted:
                self.move(bundle, int(self.model.owner[bundle]))
        for bundle, to in moves:
            if self.owner[bundle] != to:
                self.move(bundle, to)
        self.order = dict.fromkeys(wanted)
