"""Tracks the ranges of bundles over a day, from the bundles that brokers report.

A namespace's bundles tile the hash space, and only change when one is split. A broker may report a bundle after it was
split elsewhere; that report is stale. So of two bundles that overlap the finer one counts, unless no broker has
reported it for longer than any report is valid; then the namespace was created anew. A range that no broker ever
reported is one bundle that is not loaded. Where topics prove that there are more
bundles than anybody reports, one is cut.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from planner.cluster.arrays import BoolArray, Int64Array, IntArray
from planner.cluster.ranges import FULL_HIGH, HASH_SPACE, bundle_name, parse_bundle


@dataclass(frozen=True, eq=False)
class Ranges:
    """The bundles there are at a moment, by namespace and range.

    Attributes:
        namespaces: Names, in order.
        namespace: Position of each bundle's namespace. Shape (bundles,).
        low: Lower boundary. Shape (bundles,).
        high: Upper boundary. Shape (bundles,).
        bundle: Number of the bundle in the layout; -1 for a range that no broker reported. Shape (bundles,).
    """

    namespaces: tuple[str, ...]
    namespace: IntArray
    low: Int64Array
    high: Int64Array
    bundle: Int64Array

    def of_hashes(self, namespace: Int64Array, hashes: Int64Array) -> Int64Array:
        """Return the position of the bundle that holds each topic, given the position of its namespace and its hash.

        Shape (topics,).

        -1 stands for hash 0xffffffff, for which Pulsar finds no bundle.
        """
        starts = self.namespace.astype(np.int64) * HASH_SPACE + self.low
        found = np.searchsorted(starts, namespace * HASH_SPACE + hashes, side="right") - 1
        return np.where(hashes == FULL_HIGH, -1, found)


class Layout:
    """All bundles that are reported on a day, and which of them exist; a report of a bundle is valid for `valid_ms`."""

    def __init__(self, valid_ms: int) -> None:
        self.valid_ms = valid_ms
        self.number: dict[str, int] = {}
        self.place: list[tuple[str, int, int]] = []
        self.alive: set[int] = set()
        self._said_ms: Int64Array = np.zeros(0, dtype=np.int64)
        self._is_contested: BoolArray = np.zeros(0, dtype=bool)
        self.changes = 0
        self._cut: set[int] = set()
        self._living: dict[str, list[tuple[int, int, int]]] = {}
        self._every: dict[str, list[tuple[int, int, int]]] = {}
        self._ranges: Ranges | None = None

    def start(self, first_ms: Mapping[str, int]) -> None:
        """Take when each bundle of a day is first reported; what overlaps no earlier one is there from the start."""
        for name in sorted(first_ms, key=lambda n: (first_ms[n], n)):
            self.add(name)

    def add(self, name: str) -> int:
        """Return the number of a bundle; a new one is there at once where nothing is."""
        known = self.number.get(name)
        if known is not None:
            return known
        number = len(self.place)
        namespace, low, high = parse_bundle(name)
        self.number[name] = number
        self.place.append((namespace, low, high))
        if number == len(self._said_ms):
            more = max(1_024, number)
            self._said_ms = np.concatenate((self._said_ms, np.full(more, -1, dtype=np.int64)))
            self._is_contested = np.concatenate((self._is_contested, np.zeros(more, dtype=bool)))
        every = self._every.setdefault(namespace, [])
        others = [i for a, b, i in every if a < high and low < b]
        if others:
            self._is_contested[[*others, number]] = True
        insort(every, (low, high, number))
        if not self._in_the_way(number):
            self._set_alive(number)
        return number

    def replace(self, numbers: Iterable[int], time_ms: int) -> None:
        """Take bundles, which tile their namespaces, as all that there are of these, because a snapshot says so."""
        wanted: dict[str, list[tuple[int, int, int]]] = {}
        for number in numbers:
            namespace, low, high = self.place[number]
            wanted.setdefault(namespace, []).append((low, high, number))
            self._said_ms[number] = time_ms
        for namespace, rows in wanted.items():
            rows.sort()
            living = self._living.get(namespace, [])
            if rows != living:
                self.alive.difference_update(number for _, _, number in living)
                self.alive.update(number for _, _, number in rows)
                self._living[namespace] = rows
                self._ranges = None

    def cut(self, number: int, edges: Iterable[int]) -> None:
        """Cut a living bundle at boundaries inside it, in order; a report of any other bundle there outweighs that."""
        namespace, low, high = self.place[number]
        pieces = [self.add(bundle_name(namespace, *pair)) for pair in pairwise([low, *edges, high])]
        self._retire(number)
        for piece in pieces:
            self._said_ms[piece] = -1
            self._set_alive(piece)
        self._cut.update(pieces)

    def knows(self, namespace: str) -> bool:
        """Return whether a bundle of a namespace was reported."""
        return namespace in self._every

    def _in_the_way(self, number: int) -> list[int]:
        """Return the living bundles that overlap a bundle."""
        namespace, low, high = self.place[number]
        living = self._living.get(namespace, [])
        at = bisect_left(living, (low,))
        if at and living[at - 1][1] > low:
            at -= 1
        found = []
        while at < len(living) and living[at][0] < high:
            if living[at][2] != number:
                found.append(living[at][2])
            at += 1
        return found

    def _set_alive(self, number: int) -> None:
        namespace, low, high = self.place[number]
        self.alive.add(number)
        insort(self._living.setdefault(namespace, []), (low, high, number))
        self._ranges = None

    def _retire(self, number: int) -> None:
        namespace, low, high = self.place[number]
        self.alive.remove(number)
        self._living[namespace].remove((low, high, number))
        self._ranges = None

    def claim(self, numbers: Int64Array, times_ms: int | Int64Array) -> BoolArray:
        """Take reports of bundles; return for each whether the bundle exists. Shape (bundles,)."""
        there = np.ones(len(numbers), dtype=bool)
        contested = self._is_contested[numbers]
        if not np.count_nonzero(contested):
            self._said_ms[numbers] = times_ms
            return there
        times = np.broadcast_to(times_ms, len(numbers))
        self._said_ms[numbers[~contested]] = times[~contested]
        for at in np.flatnonzero(contested).tolist():
            there[at] = self._claim(int(numbers[at]), int(times[at]))
        return there

    def _claim(self, number: int, time_ms: int) -> bool:
        others = self._in_the_way(number)
        if number not in self.alive:
            _, low, high = self.place[number]
            for other in others:
                _, start, end = self.place[other]
                finer = low <= start and end <= high
                if finer and 0 <= self._said_ms[other] >= time_ms - self.valid_ms:
                    return False  # reported before the split, or by a broker that does not know of it yet
            for other in others:
                self._retire(other)
            self._set_alive(number)
            self.changes += any(other not in self._cut for other in others)
        self._said_ms[number] = time_ms
        return True

    def ranges(self) -> Ranges:
        """Return the bundles that exist now; ranges that no broker reported fill the holes."""
        if self._ranges is None:
            self._ranges = self._tile()
        return self._ranges

    def _tile(self) -> Ranges:
        namespaces = tuple(sorted(self._living))
        rows: list[tuple[int, int, int, int]] = []
        for i, namespace in enumerate(namespaces):
            at = 0
            for low, high, number in self._living[namespace]:
                if low > at:
                    rows.append((i, at, low, -1))
                rows.append((i, low, high, number))
                at = high
            if at < FULL_HIGH:
                rows.append((i, at, FULL_HIGH, -1))
        table = np.array(rows, dtype=np.int64).reshape(-1, 4)
        return Ranges(namespaces, table[:, 0].astype(np.int32), table[:, 1], table[:, 2], table[:, 3])
