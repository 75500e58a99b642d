"""Makes way where single moves and chains end: what has moved changes places, goes home, or small ones go ahead.

Anti-affinity lets a bundle go only to a broker with the fewest of its group at that moment, so that what moved before
cannot simply move on.
"""

from collections.abc import Iterator

import numpy as np

from planner.cluster.arrays import FloatArray, Int64Array
from planner.optimize.state import EPSILON, State

_TRIED = 4
_LARGEST = 16
_MOST_AHEAD = 12
"""Small bundles that move ahead of one at most."""


def make_way(state: State, hot: int, caps: FloatArray) -> bool:
    """Lower the usage of the most used broker by more than one move at a time.

    Args:
        state: Is changed where that is possible.
        hot: The broker.
        caps: Usage that a receiver may not exceed. Shape (brokers,).

    Returns:
        Whether it was.
    """
    return _change_places(state, hot, caps) or _take_back(state, hot, caps) or _go_ahead(state, hot, caps)


def _take_back(state: State, hot: int, caps: FloatArray) -> bool:
    """Let a bundle of the broker move instead of one that has moved, which goes home."""
    before, top = state.moves(), float(state.usage[hot])
    for bundle, other in _instead(state, hot, caps):
        state.restore([move for move in before if move[0] != other])
        after = state.arriving(np.array([bundle]), np.minimum(caps, top - EPSILON))[0]
        if np.isfinite(after.min()):
            state.move(bundle, int(after.argmin()))
            lower, moves = state.usage[hot] < top - EPSILON and state.peak() <= top, len(state.order)
            if lower and len(state.in_order()) == moves:
                return True
        state.restore(before)
    return False


def _instead(state: State, hot: int, caps: FloatArray) -> Iterator[tuple[int, int]]:
    """Yield bundles of a broker, each with one that has moved and can go home for it, the best first."""
    model, top = state.model, float(state.usage[hot])
    mine = np.flatnonzero((state.owner == hot) & (model.owner == hot) & model.movable)
    moved = np.array(list(state.order), dtype=np.int64)
    homes = model.owner[moved]
    moved = moved[~model.forced[moved] & (homes != hot) & model.counts[homes]]
    if not len(mine) or not len(moved):
        return
    mine = mine[np.argsort(state.without(hot, mine), kind="stable")][:_LARGEST]
    homes, places = model.owner[moved], state.owner[moved]
    usage, load = model.usage, model.usage.bundle
    home = state.with_each(moved)[np.arange(len(moved)), homes]
    left = usage.own[:, places] + state.served[:, places] - load[:, moved]
    there = ((left[:, np.newaxis] + load[:, mine, np.newaxis]) * model.scale[:, np.newaxis, places]).max(axis=0)
    worst = np.maximum(np.maximum(state.without(hot, mine)[:, np.newaxis], home), there)
    spent = state.spent[:, np.newaxis, np.newaxis] - model.cost[:, np.newaxis, moved] + model.cost[:, mine, np.newaxis]
    paid = (spent <= model.budgets[:, np.newaxis, np.newaxis] + EPSILON).all(axis=0)
    worst[~paid | (there > caps[places] + EPSILON)] = np.inf
    for row, column in _lowest(worst, top):
        yield int(mine[row]), int(moved[column])


def _change_places(state: State, hot: int, caps: FloatArray) -> bool:
    """Let a bundle that has moved to the broker change places with another one of its group that has moved.

    Each broker keeps as many bundles of the group, so that the order of the moves stays possible.
    """
    model, top = state.model, float(state.usage[hot])
    moved = np.array([one for one in state.order if one not in model.pinned], dtype=np.int64)
    moved = moved[state.changing[state.space[moved]]]
    mine, others = moved[state.owner[moved] == hot], moved[state.owner[moved] != hot]
    if not len(mine) or not len(others):
        return False
    usage, load, places = model.usage, model.usage.bundle, state.owner[others]
    change = load[:, np.newaxis, others] - load[:, mine, np.newaxis]
    demand = usage.own + state.served
    here = ((demand[:, [hot]][:, :, np.newaxis] + change) * model.scale[:, [hot]][:, :, np.newaxis]).max(axis=0)
    there = ((demand[:, np.newaxis, places] - change) * model.scale[:, np.newaxis, places]).max(axis=0)
    group, masks = model.groups
    may = masks[group[state.space[mine]]][:, places] & masks[group[state.space[others]], hot]
    may &= _marks(state, mine)[:, np.newaxis] == _marks(state, others)
    may &= (model.owner[others] != hot) & (model.owner[mine][:, np.newaxis] != places)
    worst = np.where(may & (there <= caps[places] + EPSILON), np.maximum(here, there), np.inf)
    for row, column in _lowest(worst, top):
        one, other = int(mine[row]), int(others[column])
        swapped = {one: (other, hot), other: (one, int(places[column]))}
        state.restore([swapped.get(bundle, (bundle, to)) for bundle, to in state.moves()])
        return True
    return False


def _marks(state: State, bundles: Int64Array) -> Int64Array:
    """Return what tells bundles of different groups apart. Shape (bundles,)."""
    return np.array([state.model.rules.mark(at) for at in state.space[bundles].tolist()], dtype=np.int64)


def _go_ahead(state: State, hot: int, caps: FloatArray) -> bool:
    """Let small bundles of a group move ahead, so that it is the turn of a broker with room for a large one."""
    model, rules, top = state.model, state.model.rules, float(state.usage[hot])
    if rules.counts_namespaces or rules.domains:
        return False
    mine = state.movable_on(hot)
    mine = mine[state.changing[state.space[mine]]]
    mine = mine[np.argsort(state.without(hot, mine), kind="stable")][:_LARGEST]
    before, group_of, masks = state.moves(), *model.groups
    for bundle in mine.tolist():
        space = int(state.space[bundle])
        if space not in rules.group:
            continue
        counts = rules.group_counts(rules.group[space], state.counts)
        candidates = rules.before_group(space)
        with_it = state.with_each(np.array([bundle]))[0]
        fits = masks[group_of[space]] & (with_it < np.minimum(caps, top - EPSILON))
        fits[hot] = False
        if not fits.any():
            continue
        to = int(np.lexsort((with_it, np.where(fits, counts, np.iinfo(np.int32).max)))[0])
        ahead = np.flatnonzero(candidates & (counts < counts[to]))
        lacking = counts[to] - counts[ahead]
        if not 0 < lacking.sum() <= _MOST_AHEAD:
            continue
        for broker in np.repeat(ahead, lacking).tolist():
            if not _smallest_to(state, broker, rules.members[rules.group[space]], np.minimum(caps, top - EPSILON)):
                break
        after = state.arriving(np.array([bundle]), np.minimum(caps, top - EPSILON))[0]
        paid = (state.spent + model.cost[:, bundle] <= model.budgets + EPSILON).all()
        if paid and np.isfinite(after.min()) and state.owner[bundle] == hot:
            state.move(bundle, int(after.argmin()))
            if state.usage[hot] < top - EPSILON and state.peak() <= top:
                return True
        state.restore(before)
    return False


def _smallest_to(state: State, broker: int, members: Int64Array, most: FloatArray) -> bool:
    """Move the smallest bundle of some namespaces that may go to a broker there; say whether there was one."""
    model = state.model
    those = np.flatnonzero(np.isin(state.space, members) & model.movable & (state.owner == model.owner))
    those = those[(state.owner[those] != broker) & (state.owner[those] >= 0)]
    paid = (state.spent[:, np.newaxis] + model.cost[:, those] <= model.budgets[:, np.newaxis] + EPSILON).all(axis=0)
    those = those[paid]
    size = (model.usage.bundle[:, those] * model.scale[:, [broker]]).max(axis=0)
    for bundle in those[np.argsort(size, kind="stable")][:_TRIED].tolist():
        if state.arriving(np.array([bundle]), most)[0, broker] < np.inf:
            state.move(bundle, broker)
            return True
    return False


def _lowest(worst: FloatArray, top: float) -> Iterator[tuple[int, int]]:
    """Yield the places of the lowest few values below another one."""
    for at in np.argsort(worst, axis=None, kind="stable")[:_TRIED].tolist():
        row, column = divmod(at, worst.shape[1])
        if worst[row, column] >= top - EPSILON:
            return
        yield row, column
