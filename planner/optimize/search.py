"""Looks for a plan: moves from the most used broker to where they fit, swaps, chains, and then what makes usage even.

Every step is a few array operations over the bundles of one broker and all brokers that may take them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from planner.cluster.arrays import BoolArray, FloatArray, Int64Array
from planner.optimize.make_way import make_way
from planner.optimize.state import EPSILON, State

_MISJUDGED = (0.005, 0.01, 0.03, 0.06, 0.1)
_GIVEN_UP = (0.1, 0.3, 0.6)
_AROUND_THE_HOTTEST = 0.7
"""Share of rounds that give up moves around the most used broker."""
_MAKES_WAY = 0.8
"""Share of rounds in which what has moved may make way for what has not."""
_WAYS_FOR_A_MOVE = 2
"""Times that moves make way that take as long as one move that is found again."""
_MOST_BUNDLES = 64
_FEW = 8
_PARTNERS = 24


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
        if not _single(state, hot, caps):
            if state.ways > 0 and make_way(state, hot, caps):
                state.ways -= 1
            elif not _chain(state, hot, caps):
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
        state.restore([move for move, left in zip(kept, gone, strict=True) if not left])
        state.restore(state.in_order())
        left = len(state.order)
        state.misjudged = (float(random.choice(_MISJUDGED)), random)
        state.ways = ways = left + _FEW if random.random() < _MAKES_WAY else 0
        if place_forced(state, should_stop):
            state.misjudged, state.ways = None, 0
            state.restore(kept)
            steps -= 1
            continue
        find()
        state.misjudged = None
        find()
        steps -= max(len(state.order) - left, 0) + 1 + (ways - state.ways) // _WAYS_FOR_A_MOVE
        state.ways = 0
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


def place_repairs(state: State, should_stop: Callable[[], bool]) -> list[int]:
    """Spend what is left of the budgets on repairs, the largest first, to where the peak is lowest afterwards.

    Returns:
        What no broker may take, although the budgets suffice for it.
    """
    model = state.model
    size = (model.usage.bundle * model.scale.min(axis=1, keepdims=True)).max(axis=0)
    rest = np.flatnonzero(model.repairs & (state.owner == model.owner))
    waiting: list[int] = rest[np.argsort(-size[rest], kind="stable")].tolist()
    before = len(waiting) + 1
    while len(waiting) < before and not should_stop():
        before, left = len(waiting), list[int]()
        for bundle in waiting:
            if (state.spent + model.cost[:, bundle] > model.budgets + EPSILON).any():
                continue
            after = state.arriving(np.array([bundle]))[0]
            if np.isfinite(after.min()):
                state.move(bundle, _receiver(state, bundle, after, float(after.min())))
            else:
                left.append(bundle)
        waiting = left
    return waiting


def place_forced(state: State, should_stop: Callable[[], bool]) -> list[int]:
    """Move what must move, the largest first, to where the peak is lowest afterwards.

    Returns:
        What no broker may take.
    """
    forced = np.flatnonzero(state.model.forced & (state.owner == state.model.owner))
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
