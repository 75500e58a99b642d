"""Looks for a plan: moves from the most used broker to where they fit, swaps, chains, and then what makes usage even.

Every step is a few array operations over the bundles of one broker and all brokers that may take them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from planner.cluster.arrays import BoolArray, FloatArray, Int64Array, IntArray
from planner.optimize.question import Model

EPSILON = 1e-9
"""Differences of usage (1.0 = 100 %) up to this one are ignored."""

_MISJUDGED = (0.005, 0.01, 0.03, 0.06, 0.1)
_GIVEN_UP = (0.1, 0.3, 0.6)
_AROUND_THE_HOTTEST = 0.7
"""Share of rounds that give up moves around the most used broker."""
_MOST_BUNDLES = 64
_FEW = 8
_PARTNERS = 24


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
        misjudged: By how much receivers may seem to have less room than they have, and what draws it.
    """

    misjudged: tuple[float, np.random.Generator] | None = None

    def __init__(self, model: Model) -> None:
        self.model = model
        usage, snapshot = model.usage, model.snapshot
        self.owner: Int64Array = model.owner.copy()
        mine, count = self.owner >= 0, len(snapshot.brokers)
        self.served: FloatArray = np.array(
            [np.bincount(self.owner[mine], row[mine], minlength=count) for row in usage.bundle]
        )
        self.usage: FloatArray = usage.usage(self.served)
        self.order: dict[int, None] = {}
        self.spent: FloatArray = np.zeros(len(model.cost))
        self.space = snapshot.bundles.namespace.astype(np.int64)
        self._topic_count = snapshot.bundles.topics
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
        if int(self.topics.max(initial=0)) + int(self._topic_count[bundles].max(initial=0)) > most:
            mask &= self.topics + self._topic_count[bundles, np.newaxis] <= most
        rows = np.flatnonzero(self.changing[space])
        for one in np.unique(space[rows]).tolist():
            mask[rows[space[rows] == one]] &= self._now(one)
        free = np.flatnonzero(~self.model.forced[bundles])
        mask[free, self.model.owner[bundles[free]]] = True
        for row, bundle in enumerate(bundles.tolist()):
            if bundle in self.model.pinned:
                mask[row] &= np.arange(mask.shape[1]) == self.model.pinned[bundle]
        mask[np.arange(len(bundles)), self.owner[bundles]] = False
        return mask

    def _now(self, namespace: int) -> BoolArray:
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
        self.topics[before] -= self._topic_count[bundle]
        self.topics[to] += self._topic_count[bundle]
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
        left = np.bincount(self.model.owner[moved], self._topic_count[moved], minlength=len(self.topics))
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


@dataclass(frozen=True, slots=True)
class Step:
    """The plan after one more move: a point of the frontier.

    Attributes:
        moves: Bundles moved.
        clients: Producers and consumers disconnected.
        peak: Highest usage (1.0 = 100 %).
    """

    moves: int
    clients: int
    peak: float


def step_of(state: State) -> Step:
    """Return where a search stands."""
    return Step(round(float(state.spent[0])), round(float(state.spent[2])), state.peak())


def unfolded(state: State) -> list[Step]:
    """Return where the plan stands after each of its moves, those first that lower the peak most.

    It ends where no further move leaves the most used broker: none of those that are left lowers the peak.
    """
    played, moves = State(state.model), state.moves()
    bundles, to = np.array(moves, dtype=np.int64).reshape(-1, 2).T
    waiting, steps = np.ones(len(moves), dtype=np.bool_), [step_of(played)]

    def possible(asked: BoolArray) -> Int64Array:
        rows = np.flatnonzero(asked)
        found: Int64Array = rows[played.allowed(bundles[rows])[np.arange(len(rows)), to[rows]]]
        return found

    while True:
        hot = played.hottest()
        from_hot = waiting & (played.owner[bundles] == hot)
        if not from_hot.any():
            return steps
        rows = possible(from_hot)
        if not len(rows):
            rows = possible(waiting)
        if not len(rows):
            return [*steps, step_of(state)]
        after = played.with_each(bundles[rows])[np.arange(len(rows)), to[rows]]
        best = int(rows[np.maximum(after, played.without(hot, bundles[rows])).argmin()])
        played.move(int(bundles[best]), int(to[best]))
        waiting[best] = False
        steps.append(step_of(played))


def _picked(state: State, broker: int) -> Int64Array:
    """Return bundles worth trying to move from a broker: the large ones, and some of every size."""
    mine = state.movable_on(broker)
    if len(mine) <= _MOST_BUNDLES:
        return mine
    by_size = mine[np.argsort(state.without(broker, mine), kind="stable")]
    large = by_size[: _MOST_BUNDLES // 2]
    rest = by_size[_MOST_BUNDLES // 2 :]
    chosen = rest[np.linspace(0, len(rest) - 1, _MOST_BUNDLES // 2).astype(np.int64)]
    return np.concatenate([large, np.unique(chosen)])


def _receiver(state: State, bundle: int, after: FloatArray, most: float) -> int:
    """Return who takes a bundle: of those that stay at or below a usage the least used, where possible an even one."""
    fit = np.flatnonzero(after <= most + EPSILON)
    if state.model.rules.spreads:
        even = fit[state.spreads(bundle, fit)]
        fit = even if len(even) else fit
    return int(fit[after[fit].argmin()])


def lower_peak(
    state: State, caps: FloatArray, should_stop: Callable[[], bool], steps: list[Step] | None = None, goal: float = 0.0
) -> None:
    """Move the most used broker's bundles to where they fit best, until the budgets or the ideas are used up.

    Args:
        state: Is changed.
        caps: Usage that a receiver may not exceed. Shape (brokers,).
        should_stop: Is called after every move; says whether to stop.
        steps: Gets a point after every move.
        goal: Usage at which the peak is low enough.
    """
    while not should_stop():
        hot = state.hottest()
        if state.usage[hot] <= goal:
            return
        if not (_single(state, hot, caps) or _chain(state, hot, caps)):
            return
        if steps is not None:
            steps.append(step_of(state))


def order_moves(state: State, otherwise: list[tuple[int, int]]) -> None:
    """Take moves back that have no order; make other moves where one that must be is among them."""
    kept = state.in_order()
    must = {bundle for bundle in state.order if state.model.forced[bundle]}
    state.restore(kept if must <= {bundle for bundle, _ in kept} else otherwise)


def try_again(
    state: State,
    find: Callable[[], None],
    worth: Callable[[], float],
    should_stop: Callable[[], bool],
    otherwise: list[tuple[int, int]],
    *,
    goal: float,
    steps: int,
) -> None:
    """Give up some of the moves and find others, with receivers misjudged a little, again and again.

    Where bundles fit well only together, or anti-affinity lets them go anywhere only in turns, this finds what single
    moves and chains do not.

    Args:
        state: Is changed: to the best that was found, with moves that can be carried out one after the other.
        find: Makes moves in `state`.
        worth: Says how good `state` is; less is better, and infinite is no answer.
        should_stop: Says whether to stop.
        otherwise: Moves that must be made, and that have an order.
        goal: What is good enough.
        steps: How many moves are found anew in all.
    """
    model, random = state.model, np.random.default_rng(state.model.question.seed)
    order_moves(state, otherwise)
    best, kept = worth(), state.moves()
    while best > goal and steps > 0 and not should_stop():
        part, around = float(random.choice(_GIVEN_UP)), random.random() < _AROUND_THE_HOTTEST
        if around:
            chosen = random.random(len(state.usage)) < part
            chosen[state.hottest()] = True
            gone = [bool(chosen[to] or chosen[model.owner[bundle]]) for bundle, to in kept]
        else:
            gone = (random.random(len(kept)) < part).tolist()
        state.restore([move for move, left in zip(kept, gone, strict=True) if model.forced[move[0]] or not left])
        order_moves(state, kept)
        left = len(state.order)
        state.misjudged = (float(random.choice(_MISJUDGED)), random)
        find()
        state.misjudged = None
        find()
        steps -= max(len(state.order) - left, 0) + 1
        order_moves(state, kept)
        if worth() < best - EPSILON:
            best, kept = worth(), state.moves()
        state.restore(kept)


def _single(state: State, hot: int, caps: FloatArray) -> bool:
    mine = _picked(state, hot)
    if not len(mine):
        return False
    here, after = state.without(hot, mine), state.arriving(mine, caps)
    worse = np.maximum(here, after.min(axis=1))
    best = int(worse.argmin())
    if worse[best] >= state.usage[hot] - EPSILON:
        return False
    bundle = int(mine[best])
    state.move(bundle, _receiver(state, bundle, after[best], float(worse[best])))
    return True


def _chain(state: State, hot: int, caps: FloatArray) -> bool:
    """Move a bundle to a broker that gives one of its own to a third one, or back: two moves that help together."""
    mine = _picked(state, hot)
    if not len(mine):
        return False
    near = np.argsort(state.without(hot, mine), kind="stable")
    chosen = np.unique(np.concatenate([near[:_FEW], near[:: max(len(near) // _FEW, 1)][:_FEW]]))
    known: dict[int, Int64Array] = {}
    found = [pair for bundle in mine[chosen].tolist() for pair in _pairs(state, hot, int(bundle), caps, known)]
    top, before = float(state.usage[hot]), state.moves()
    if not found or min(found)[0] >= top - EPSILON:
        return False
    _, bundle, partner, other, third = min(found)
    state.move(other, third)
    if state.allowed(np.array([bundle]))[0, partner]:
        state.move(bundle, partner)
        if state.peak() <= top and (state.spent <= state.model.budgets).all():
            return True
    state.restore(before)
    return False


def _pairs(
    state: State, hot: int, bundle: int, caps: FloatArray, known: dict[int, Int64Array]
) -> Iterator[tuple[float, int, int, int, int]]:
    """Yield the best chain over each likely partner: usage it leads to, bundle, partner, its bundle, third broker."""
    model, one = state.model, np.array([bundle])
    usage, scale, load = model.usage, model.scale, model.usage.bundle
    here = float(state.without(hot, one)[0])
    spent = model.cost[:, bundle] * int(state.owner[bundle] == model.owner[bundle])
    budgets = (model.budgets - state.spent - spent)[:, np.newaxis]
    after = state.arriving(one)[0]
    for partner in np.argsort(after, kind="stable")[:_FEW].tolist():
        if not np.isfinite(after[partner]):
            return
        if partner not in known:
            known[partner] = _picked(state, partner)
        others = known[partner]
        away = state.owner[others] != model.owner[others]
        others = others[away | (model.cost[:, others] <= budgets).all(axis=0)][:_PARTNERS]
        if not len(others):
            continue
        left = usage.own[:, [partner]] + state.served[:, [partner]] + load[:, one] - load[:, others]
        kept = np.maximum((left * scale[:, [partner]]).max(axis=0), usage.fixed[partner])
        third = state.with_each(others)
        third[third > caps + EPSILON] = np.inf
        back = usage.own[:, [hot]] + state.served[:, [hot]] - load[:, one] + load[:, others]
        third[:, hot] = (back * scale[:, [hot]]).max(axis=0)
        third[~state.allowed(others)] = np.inf
        to = third.argmin(axis=1)
        worst = np.maximum(np.maximum(kept, third.min(axis=1)), np.where(to == hot, 0.0, here))
        worst[kept > caps[partner] + EPSILON] = np.inf
        at = int(worst.argmin())
        yield float(worst[at]), bundle, partner, int(others[at]), int(to[at])


def under(state: State, target: float, weight: FloatArray, caps: FloatArray, should_stop: Callable[[], bool]) -> bool:
    """Move bundles that cost little until no broker is above a usage.

    Args:
        state: Is changed.
        target: The usage (1.0 = 100 %).
        weight: What each bundle costs. Shape (bundles,).
        caps: Usage that a receiver may not exceed. Shape (brokers,).
        should_stop: Is called after every move; says whether to stop.

    Returns:
        Whether it is done.
    """
    most = np.minimum(caps, target)
    while not should_stop():
        hot = state.hottest()
        top = float(state.usage[hot])
        if top <= target + EPSILON:
            return True
        mine = state.movable_on(hot)
        after = state.arriving(mine, most)
        gain = np.minimum(top - state.without(hot, mine), top - target)
        fits = np.isfinite(after.min(axis=1, initial=np.inf)) & (gain > EPSILON)
        if not fits.any():
            if not _chain(state, hot, most):
                return False
            continue
        away = state.owner[mine] != state.model.owner[mine]
        price = np.where(away, 0.0, weight[mine])
        rate = np.where(fits, price / np.maximum(gain, EPSILON), np.inf)
        best = int(np.lexsort((-gain, rate))[0])
        state.move(int(mine[best]), _receiver(state, int(mine[best]), after[best], target))
    return False


def send_home(state: State, target: float, weight: FloatArray) -> None:
    """Take moves back, the dearest first, that a usage can be kept without."""
    for bundle in sorted(state.order, key=lambda one: (-weight[one], one)):
        home = int(state.model.owner[bundle])
        if state.model.forced[bundle] or not state.model.usage.alive[home]:
            continue
        after = state.with_each(np.array([bundle]))[0, home]
        if after <= target + EPSILON and not state.model.rules.changes(int(state.space[bundle])):
            state.move(bundle, home)


def even_out(state: State, caps: FloatArray, should_stop: Callable[[], bool]) -> None:
    """Lower the deviation by single moves that raise no broker above the highest usage, within the budgets."""
    model = state.model
    counts = model.counts
    idle = np.zeros(len(state.usage), dtype=np.bool_)
    while not should_stop():
        waiting = np.where(counts & ~idle, state.usage, -np.inf)
        hot = int(waiting.argmax())
        if waiting[hot] == -np.inf:
            return
        mine = _picked(state, hot)
        gain = _gains(state, mine, hot, caps, state.peak())
        if not gain.size or gain.min() >= -EPSILON:
            idle[hot] = True
            continue
        best, to = np.unravel_index(int(gain.argmin()), gain.shape)
        state.move(int(mine[best]), int(to))
        idle[[hot, int(to)]] = False


def settle(state: State, caps: FloatArray, should_stop: Callable[[], bool]) -> None:
    """Give what has moved anyway a better place: no further bundle is disconnected by it."""
    for bundle in list(state.order):
        if should_stop():
            return
        if state.model.rules.changes(int(state.space[bundle])):
            continue
        hot = int(state.owner[bundle])
        gain = _gains(state, np.array([bundle]), hot, caps, state.peak())
        home = int(state.model.owner[bundle])
        if state.model.forced[bundle]:
            gain[0, home] = np.inf
        to = int(gain[0].argmin())
        if gain[0, to] < -EPSILON:
            state.move(bundle, to)


def _gains(state: State, bundles: Int64Array, source: int, caps: FloatArray, peak: float) -> FloatArray:
    """Return by how much moves change the sum of squares. Shape (bundles, brokers); infinite where not allowed."""
    if not len(bundles):
        return np.zeros((0, len(caps)))
    here, after = state.without(source, bundles), state.with_each(bundles)
    gain: FloatArray = after**2 - state.usage**2 + (here**2 - state.usage[source] ** 2)[:, np.newaxis]
    gain[~state.allowed(bundles) | (after > np.minimum(caps, peak) + EPSILON)] = np.inf
    return gain


def place_forced(state: State, should_stop: Callable[[], bool]) -> list[int]:
    """Move what must move, the largest first, to where the peak is lowest afterwards.

    Returns:
        What no broker may take.
    """
    forced = np.flatnonzero(state.model.forced)
    size = (state.model.usage.bundle[:, forced] * state.model.scale.min(axis=1, keepdims=True)).max(axis=0)
    waiting = forced[np.argsort(-size, kind="stable")].tolist()
    while waiting and not should_stop():
        left = []
        for bundle in waiting:
            after = state.arriving(np.array([bundle]))[0]
            if np.isinf(after).all():
                left.append(bundle)
                continue
            state.move(bundle, _receiver(state, bundle, after, float(after.min())))
        if len(left) == len(waiting):
            return left
        waiting = left
    return []
