"""Rows of the program of what leaves and arrives: groups move only as some order of their moves allows.

What `kept.py` knows of all orders is how many bundles can leave each failure domain and come there together. While a
broker that blocks others is among the fewest, bundles come to low places only: those that brokers have, and those that
bundles free when they leave.
"""

from typing import TYPE_CHECKING

import numpy as np

from planner.cluster.arrays import Int64Array
from planner.optimize.kept import Order

if TYPE_CHECKING:
    from planner.optimize.leaving import Arrivals

_MOST_WAYS = 1_500
"""Ways in which a group can move up to which one of them is chosen; else only sums of several numbers are limited."""


def keep_order(found: "Arrivals", order: Order) -> None:
    """Let as many bundles of a group leave domains, and come there to low places, as some order allows."""
    program, mine = found.program, np.isin(found.space, order.members)
    width = order.domains
    moved = program.add(order.moved.shape[1])
    for domain, column in enumerate(moved[: width + 1].tolist()):
        gone = found.out[mine & (order.domain[found.owner] == domain)]
        program.row(np.append(gone, column), np.append(np.ones(len(gone)), -1.0), 0.0, 0.0)
    for domain in range(width):
        brokers = np.flatnonzero(order.domain == domain).tolist()
        came = [found.into(order.members, broker) for broker in brokers]
        columns = np.append(np.concatenate(came), moved[width + 1 + domain])
        program.row(columns, np.append(np.ones(len(columns) - 1), -1.0), 0.0, 0.0)
        low = [
            _low(found, into, found.out[mine & (found.owner == broker)], int(order.places[broker]))
            for broker, into in zip(brokers, came, strict=True)
            if len(into)
        ]
        columns = np.append(np.array(low, dtype=np.int64), moved[2 * width + 1 + domain])
        program.row(columns, np.append(np.ones(len(low)), -1.0), low=0.0)
    if len(order.moved) > _MOST_WAYS:
        for factors, limit in order.limits():
            program.row(moved[: len(factors)], factors.astype(np.float64), high=float(limit))
        return
    kinds = np.unique(found.kind[mine]).tolist()
    if order.moved.shape[1] > 3 * width + 1 and found.placed.keys() >= set(kinds):
        _from_to(found, order, kinds, moved[3 * width + 1 :])
    ways = program.add(len(order.moved), high=1.0)
    found.frees += ways.tolist()
    program.row(ways, np.ones(len(ways)), 1.0, 1.0)
    for column, many in zip(moved.tolist(), order.moved.T, strict=True):
        program.row(np.append(ways, column), np.append(many.astype(np.float64), -1.0), 0.0, 0.0)


def _from_to(found: "Arrivals", order: Order, kinds: list[int], moved: Int64Array) -> None:
    """Let columns be how many bundles move from each domain, and other brokers, to each domain."""
    width = order.domains
    source = {at: int(order.domain[found.owner[found.kind == at][0]]) for at in kinds}
    for one, column in enumerate(moved.tolist()):
        parts = [
            found.placed[at][order.domain[found.takers[at]] == one % width]
            for at in kinds
            if source[at] == one // width
        ]
        columns = np.append(np.concatenate([moved[:0], *parts]), column)
        found.program.row(columns, np.append(np.ones(len(columns) - 1), -1.0), 0.0, 0.0)


def _low(found: "Arrivals", into: Int64Array, gone: Int64Array, places: int) -> int:
    """Return a column for how many of the bundles that a broker takes can come to low places.

    Args:
        found: The program's columns; gets another one.
        into: Columns that count what it takes. Shape (kinds,).
        gone: Columns of what leaves it. Shape (bundles,).
        places: Its low places; see `Order.places`.
    """
    program, most = found.program, float(len(found.movable))
    low = int(program.add(1)[0])
    program.row(np.append(into, low), np.append(-np.ones(len(into)), 1.0), high=0.0)
    if places > 0:
        program.row(np.append(gone, low), np.append(-np.ones(len(gone)), 1.0), high=float(places))
        return low
    frees = int(program.add(1, high=1.0)[0])
    found.frees.append(frees)
    program.row(np.array([low, frees]), np.array([1.0, -most]), high=0.0)
    columns = np.concatenate([gone, [low, frees]])
    program.row(columns, np.concatenate([-np.ones(len(gone)), [1.0, -float(places)]]), high=0.0)
    return low
