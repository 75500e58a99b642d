"""The time of a simulation: what is planned, and when each broker measures and reports."""

from bisect import insort
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import TypeAlias

import numpy as np

from planner.cluster.arrays import Int64Array
from planner.cluster.units import MS_PER_MIN

Action: TypeAlias = Callable[[int], object]
"""Something to do; it is given the moment, ms since 1970."""

_TICK_MS = 5_000
FIRST_MS, LAST_MS = 1_440 * MS_PER_MIN, 3 * 1_440 * MS_PER_MIN
"""How much of the beginning and of the end of a long interval between two cycles is simulated."""
WATCHED_MIN = (FIRST_MS + LAST_MS) // MS_PER_MIN
"""Most minutes that are simulated between two cycles."""


def watched(begin: int, end: int) -> list[tuple[int, int]]:
    """Return which stretches from one cycle to the next are gone through: the ends of one that is set never to end."""
    if end - begin <= FIRST_MS + LAST_MS:
        return [(begin, end)]
    return [(begin, begin + FIRST_MS), (end - LAST_MS, end)]


class Clock:
    """Plans actions, and knows the moments at which brokers report: each once in an interval, at a moment of its own.

    Args:
        start_ms: When the simulation begins, ms since 1970.
        interval_ms: Time between two reports of a broker.
        seed: Draws the moment of each broker; None for all at once.
        brokers: Broker ids.
    """

    def __init__(self, start_ms: int, interval_ms: int, seed: int | None, brokers: Sequence[str]) -> None:
        self.start_ms = start_ms
        self.interval_ms = interval_ms
        self._seed = seed
        self._planned: list[tuple[int, int, Action]] = []
        self._phase_ms: Int64Array = np.zeros(0, dtype=np.int64)
        self.join(brokers)

    def join(self, brokers: Sequence[str]) -> None:
        """Take in further brokers, in the order of their positions."""
        ticks = max(self.interval_ms // _TICK_MS, 1)
        draws = [0] * len(brokers)
        if self._seed is not None:
            draws = [Random(f"{self._seed}/{name}").randrange(ticks) for name in brokers]  # noqa: S311 - no secret
        self._phase_ms = np.append(self._phase_ms, (np.array(draws, dtype=np.int64) + 1) * _TICK_MS)
        self._at_phase: dict[int, Int64Array] = {}
        self._offsets: dict[int, list[int]] = {}

    def at(self, at_ms: float, action: Action) -> None:
        """Plan an action. Of one moment, that comes first which was planned while fewer others waited."""
        insort(self._planned, (round(at_ms), len(self._planned), action), key=lambda planned: planned[:2])

    def clear(self) -> None:
        """Forget what is planned."""
        self._planned.clear()

    def due(self, now: int) -> Iterator[tuple[int, Action]]:
        """Yield what is planned up to a moment, each with its moment; what is planned meanwhile is among it."""
        while self._planned and self._planned[0][0] <= now:
            at_ms, _, action = self._planned.pop(0)
            yield max(at_ms, self.start_ms), action

    def reporting(self, now: int) -> Int64Array:
        """Return the positions of the brokers that report at a moment. Shape (reporting,)."""
        phase_ms = (now - self.start_ms) % self.interval_ms
        if phase_ms not in self._at_phase:
            self._at_phase[phase_ms] = np.flatnonzero((self._phase_ms - phase_ms) % self.interval_ms == 0)
        return self._at_phase[phase_ms]

    def order(self, position: int) -> int:
        """Return when in the interval a broker reports, ms."""
        return int(self._phase_ms[position])

    def ticks(self, from_ms: int, to_ms: int) -> Iterator[int]:
        """Yield the moments after `from_ms` and up to `to_ms` at which some broker reports.

        Brokers that join meanwhile report from the next interval on.
        """
        for begin in range(from_ms, to_ms, self.interval_ms):
            shift = (begin - self.start_ms) % self.interval_ms
            if shift not in self._offsets:
                offsets = (self._phase_ms - shift) % self.interval_ms
                self._offsets[shift] = np.unique(np.where(offsets == 0, self.interval_ms, offsets)).tolist()
            for offset in self._offsets[shift]:
                if begin + offset > min(begin + self.interval_ms, to_ms):
                    break
                yield begin + offset
