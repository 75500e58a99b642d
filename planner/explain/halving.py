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


def halved(start: Snapshot, namespace: str, wanted: int) -> tuple[BundleSplit, ...]:
    """Return the splits in two, one after the other, after which no bundle is wider than one of so many equal ones.

    None where these are more than anybody would do by hand, or the namespace is not there yet.

    Args:
        start: The cluster.
        namespace: Whose bundles are split.
        wanted: Number of equal bundles.
    """
    table = start.bundles
    if namespace not in start.namespaces:
        return ()
    mine = np.flatnonzero(table.namespace == start.namespaces.index(namespace))
    ranges = [(int(table.low[at]), int(table.high[at])) for at in mine.tolist()]
    return _splits(start, namespace, ranges, 2**32 // max(wanted, 1))


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


def _splits(start: Snapshot, namespace: str, ranges: list[tuple[int, int]], width: int) -> tuple[BundleSplit, ...]:
    """Return the splits in two after which no range is wider than that, the heaviest first; none when too many."""
    weigh = _weigh_topics(start, namespace) if topics_listed(start) else _weigh_bundles(start, namespace)

    def place(one: tuple[int, int]) -> tuple[float, int, int]:
        return -weigh(one), one[0] - one[1], one[0]

    wide = [(*place(one), one) for one in ranges if one[1] - one[0] > width]
    heapify(wide)
    edits: list[BundleSplit] = []
    while wide and len(edits) < _MOST_SPLITS:
        one = heappop(wide)[-1]
        edits.append(_split(namespace, one))
        for part in _halves(one):
            if part[1] - part[0] > width:
                heappush(wide, (*place(part), part))
    return () if wide else unloaded_once(edits)


def parted(start: Snapshot, namespace: str, wanted: int, bundle: str = "") -> tuple[BundleSplit, ...]:
    """Return the splits in two that part the topics of bundles with traffic, the heaviest bundle first.

    There are no more of them than topics that are not alone in a bundle, less one for each such bundle: where topics
    are so near each other that halving leaves empty bundles, fewer topics are parted. None where these are more than
    anybody would do by hand, topics are not listed, or the namespace is not there yet.

    Args:
        start: The cluster.
        namespace: Whose bundles are split.
        wanted: Number of equal bundles, or parts of the one bundle; none becomes narrower than one of these.
        bundle: Full name of the one bundle that is split; empty for all.
    """
    if namespace not in start.namespaces or not topics_listed(start):
        return ()
    weigh = _weigh_topics(start, namespace)
    hashes = np.sort(start.topics.hash[_topics_of(start, namespace)].astype(np.int64))
    table = start.bundles
    mine = np.flatnonzero(table.namespace == start.namespaces.index(namespace))
    if bundle:
        mine = mine[[start.bundle_names[at] == bundle for at in mine.tolist()]]
    whole = int((table.high[mine] - table.low[mine]).max(initial=0)) if bundle else 2**32
    width = whole // max(wanted, 1)
    heavy = [(-weigh(one), one) for one in zip(table.low[mine].tolist(), table.high[mine].tolist(), strict=True)]
    heapify(heavy)
    left = sum(max(int(np.diff(np.searchsorted(hashes, one))[0]) - 1, 0) for _, one in heavy)
    edits: list[BundleSplit] = []
    while heavy and heavy[0][0] < 0:
        down = _parting(hashes, heappop(heavy)[1], width)
        if not down or len(down) > left:
            continue
        left -= len(down)
        edits += [_split(namespace, one) for one in down]
        for part in _halves(down[-1]):
            heappush(heavy, (-weigh(part), part))
    return unloaded_once(edits) if len(edits) <= _MOST_SPLITS else ()


def _parting(hashes: Int64Array, one: tuple[int, int], width: int) -> list[tuple[int, int]]:
    """Return the ranges to halve, one within the other, until topics are parted; none where no such halves part any.

    Args:
        hashes: Hashes of all topics, sorted.
        one: The range.
        width: From which on a range is not halved any more.
    """
    first, last = np.searchsorted(hashes, one).tolist()
    down: list[tuple[int, int]] = []
    while last - first > 1 and one[1] - one[0] > width:
        down.append(one)
        low, high = _halves(one)
        at = int(np.searchsorted(hashes, low[1]))
        if first < at < last:
            return down
        one = low if at == last else high
    return []


def _halves(one: tuple[int, int]) -> tuple[tuple[int, int], tuple[int, int]]:
    middle = middle_of(*one)
    return (one[0], middle), (middle, one[1])


def _split(namespace: str, one: tuple[int, int]) -> BundleSplit:
    return BundleSplit(bundle=bundle_name(namespace, *one), algorithm=HALVES, unload=True)


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
