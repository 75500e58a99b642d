"""The classic dispatch limiter: counts what was taken, and a timer forgives one rate every period.

Mirrors `DispatchRateLimiterClassicImpl` and the `RateLimiter` below it of Pulsar 4.2.4. The timer does not run here:
renewals that fall due are made up for at the next call.
"""

import numpy as np

from planner.cluster.arrays import BoolArray, Int64Array
from planner.cluster.errors import PulsarError
from planner.pulsar.throttling.protocol import NO_BOUND, counted

_NEVER = -1


class ClassicColumn:
    """Counters with a timer, which starts with the first charge; see `LimiterColumn`.

    Args:
        rate: Permits of one period; <= 0 without limit. Shape (n,), int64 or Python integers.
        period_ns: Length of the period. Shape (n,).
        now_ns: When they are made; without effect.

    Raises:
        PulsarError: There is a limit and its period is not positive.
    """

    def __init__(self, rate: Int64Array, period_ns: Int64Array, now_ns: int = 0) -> None:
        del now_ns
        self.limited: BoolArray = np.asarray(rate > 0, dtype=bool)
        self._permits = counted(rate)
        self._updated = self._permits
        self._period = period_ns
        self._acquired = np.zeros_like(rate)
        self._renewal = np.full_like(rate, _NEVER)
        if (period_ns[self.limited] <= 0).any():
            remedy = "Use a ratePeriodInSecond of at least 1."
            raise PulsarError("IllegalArgumentException", "Renew permit time must be > 0.", remedy=remedy)

    def _renewed(self, rows: Int64Array, now_ns: int) -> tuple[Int64Array, Int64Array, Int64Array]:
        """Return permits, acquired and next renewal after those that are due."""
        permits, acquired, renewal = self._permits[rows], self._acquired[rows], self._renewal[rows]
        due = np.asarray((renewal != _NEVER) & (renewal <= now_ns), dtype=bool)
        if not due.any():
            return permits, acquired, renewal
        period = np.where(due, self._period[rows], 1)
        later = np.where(due, (now_ns - renewal) // period, 0)
        updated = np.where(due, self._updated[rows], permits)
        forgiven = np.maximum(np.maximum(acquired - permits, 0) - later * updated, 0)
        return updated, np.where(due, forgiven, acquired), renewal + np.where(due, (later + 1) * period, 0)

    def peek(self, rows: Int64Array, now_ns: int) -> tuple[Int64Array, tuple[Int64Array, ...]]:
        """See `LimiterColumn`."""
        asked = self._renewed(rows, now_ns)
        return np.where(self.limited[rows], np.maximum(asked[0] - asked[1], 0), NO_BOUND), asked

    def commit(self, rows: Int64Array, asked: tuple[Int64Array, ...], keep: BoolArray) -> None:
        """See `LimiterColumn`; the timer runs whether or not somebody asks."""
        kept = rows[keep]
        self._permits[kept], self._acquired[kept], self._renewal[kept] = (a[keep] for a in asked)

    def consume(self, rows: Int64Array, amount: Int64Array, now_ns: int) -> None:
        """See `LimiterColumn`; the first charge starts the timer."""
        permits, acquired, renewal = self._renewed(rows, now_ns)
        charged = self.limited[rows] & np.asarray(amount > 0, dtype=bool)
        self._permits[rows] = permits
        self._acquired[rows] = acquired + np.where(charged, amount, 0)
        self._renewal[rows] = np.where(charged & (renewal == _NEVER), now_ns + self._period[rows], renewal)

    def set_rate(self, rate: Int64Array) -> None:
        """See `LimiterColumn`; in force from the next renewal on."""
        self._updated = np.where(self.limited & (rate > 0), counted(rate), self._updated)

    def change_policy(self, rate: Int64Array, period_ns: Int64Array, now_ns: int) -> None:
        """See `LimiterColumn`: debt stays, and the timer starts anew.

        Raises:
            PulsarError: There is a limit and its period is not positive.
        """
        every = np.arange(len(rate))
        acquired = self._renewed(every, now_ns)[1]
        before = self.limited
        self.__init__(rate, period_ns)  # type: ignore[misc]
        stays = before & self.limited
        self._acquired = np.where(stays, acquired, self._acquired)
        self._renewal = np.where(stays, now_ns + period_ns, self._renewal)

    def rates(self) -> Int64Array:
        """See `LimiterColumn`; a relative limit is updated by renewals only."""
        return np.where(self.limited, self._permits, -1)

    def debt(self) -> Int64Array:
        """See `LimiterColumn`."""
        return np.where(self.limited, np.maximum(self._acquired - self._permits, 0), 0)
