"""How fast requests are sent: so many at once, so many at once to one broker, so many in a second."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from planner.capture.options import Limits


class Pace:
    """Lets requests begin one after the other.

    Attributes:
        in_flight: Requests under way.
        most_in_flight: The most there ever were.
        started: Requests begun.
    """

    def __init__(self, limits: Limits) -> None:
        self.in_flight = 0
        self.most_in_flight = 0
        self.started = 0
        self._apart_s = 1.0 / limits.per_second
        self._next_s = 0.0
        self._all = asyncio.Semaphore(limits.in_flight)
        self._per_broker = limits.in_flight_per_broker
        self._brokers: dict[str, asyncio.Semaphore] = {}

    @asynccontextmanager
    async def turn(self, base: str) -> AsyncIterator[None]:
        """Wait for one's turn to ask an address, and hold it."""
        broker = self._brokers.setdefault(base, asyncio.Semaphore(self._per_broker))
        async with broker, self._all:
            now = asyncio.get_running_loop().time()
            starts = max(now, self._next_s)
            self._next_s = starts + self._apart_s
            if starts > now:
                await asyncio.sleep(starts - now)
            self.in_flight += 1
            self.started += 1
            self.most_in_flight = max(self.most_in_flight, self.in_flight)
            try:
                yield
            finally:
                self.in_flight -= 1
