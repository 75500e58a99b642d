"""Splits in two, one after the other, that divide a bundle or a namespace into equal parts."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from heapq import heapify, heappop, heappush
from typing import Final

import numpy as np

from planner.cluster.arrays import Int64Array
from planner.cluster.ranges import bundle_name, middle_of, parse_range
from planner.cluster.snapshot import Snapshot
from planner.pulsar.splitting.registry import HALVES
from planner.pulsar.splitting.request import topics_listed
from planner.simulate.edits.registry import BundleSplit

_MOST_SPLITS: Final = 64
"""Splits of a namespace that are tried together."""


def halved(start: Snapshot, namespace: str, wanted: int, *, least_topics: int = 0) -> tuple[BundleSplit, ...]:
    """Return the splits in two, one after the other, after which no bundle is wider than one of so many equal ones.

    None where these are more than anybody would do by hand, or the namespace is not there yet.

    Args:
        start: The cluster.
        namespace: Whose bundles are split.
        wanted: Number of equal bundles.
        least_topics: Where topics are listed, a range with fewer of them stays as wide as it is.
    """
    table = start.bundles
    if namespace not in start.namespaces:
        return ()
    mine = np.flatnonzero(table.namespace == start.namespaces.index(namespace))
    ranges = [(int(table.low[at]), int(table.high[at])) for at in mine.tolist()]
    return _splits(start, namespace, ranges, 2**32 // max(wanted, 1), least_topics)


def divided(start: Snapshot, bundle: str, parts: int) -> tuple[BundleSplit, ...]:
    """Return the splits in two that divide a bundle into so many equal parts; none where it is not there.

    Args:
        start: The cluster.
        bundle: The bundle.
        parts: A power of two.
    """
    at = start.bundle_position.get(bundle)
    if at is None:
        return ()
    low, high = int(start.bundles.low[at]), int(start.bundles.high[at])
    return _splits(start, bundle.rpartition("/")[0], [(low, high)], (high - low) // parts + 1)


def _splits(
    start: Snapshot, namespace: str, ranges: list[tuple[int, int]], width: int, least_topics: int = 0
) -> tuple[BundleSplit, ...]:
    """Return the splits in two after which no range is wider than that, the heaviest first; none when too many."""
    listed = topics_listed(start)
    weigh = _weigh_topics(start, namespace) if listed else _weigh_bundles(start, namespace)
    hashes = np.sort(start.topics.hash[_topics_of(start, namespace)].astype(np.int64)) if listed else None

    def place(one: tuple[int, int]) -> tuple[float, int, int]:
        return -weigh(one), one[0] - one[1], one[0]

    def is_wide(one: tuple[int, int]) -> bool:
        topics = least_topics if hashes is None else int(np.diff(np.searchsorted(hashes, one))[0])
        return one[1] - one[0] > width and topics >= least_topics

    wide = [(*place(one), one) for one in ranges if is_wide(one)]
    heapify(wide)
    edits: list[BundleSplit] = []
    while wide and len(edits) < _MOST_SPLITS:
        low, high = heappop(wide)[-1]
        edits.append(BundleSplit(bundle=bundle_name(namespace, low, high), algorithm=HALVES, unload=True))
        for part in ((low, middle_of(low, high)), (middle_of(low, high), high)):
            if is_wide(part):
                heappush(wide, (*place(part), part))
    return () if wide else unloaded_once(edits)


def _topics_of(start: Snapshot, namespace: str) -> Int64Array:
    known = start.bundles.namespace == start.namespaces.index(namespace)
    return np.flatnonzero(np.isin(start.topics.bundle, np.flatnonzero(known)))


def _weigh_topics(start: Snapshot, namespace: str) -> Callable[[tuple[int, int]], float]:
    """Return what says how much throughput the topics of a range carry, in bytes per second."""
    table, mine = start.topics, _topics_of(start, namespace)
    mine = mine[np.argsort(table.hash[mine], kind="stable")]
    hashes, running = table.hash[mine].astype(np.int64), np.append(0.0, np.cumsum(table.throughput_bytes_per_s()[mine]))

    def weigh(one: tuple[int, int]) -> float:
        first, last = np.searchsorted(hashes, one).tolist()
        return float(running[last] - running[first])

    return weigh


def _weigh_bundles(start: Snapshot, namespace: str) -> Callable[[tuple[int, int]], float]:
    """Return the same without a list of topics: those of a bundle may be anywhere in its range."""
    table = start.bundles
    mine = np.flatnonzero(table.namespace == start.namespaces.index(namespace))
    mine = mine[np.argsort(table.low[mine], kind="stable")]
    low, high = table.low[mine].astype(np.int64), table.high[mine].astype(np.int64)
    density = table.throughput_bytes_per_s(mine) / (high - low)

    def weigh(one: tuple[int, int]) -> float:
        at = int(np.searchsorted(low, one[0], side="right")) - 1
        return float(density[at] * (one[1] - one[0]))

    return weigh


def unloaded_once(splits: Sequence[BundleSplit]) -> tuple[BundleSplit, ...]:
    """Return splits in two with the children left in place where both are split once more.

    Each topic is then disconnected once, when its last bundle is unloaded.
    """
    cut = {one.bundle for one in splits}

    def parts(bundle: str) -> tuple[str, str]:
        space, _, ends = bundle.rpartition("/")
        low, high = parse_range(ends)
        middle = middle_of(low, high)
        return bundle_name(space, low, middle), bundle_name(space, middle, high)

    return tuple(replace(one, unload=not cut.issuperset(parts(one.bundle))) for one in splits)
