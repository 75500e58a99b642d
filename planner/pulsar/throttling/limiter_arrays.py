"""Many dispatch limiters at once, one dimension of each, for the simulation.

The same arithmetic as `async_token_bucket` and `classic_limiter`, over columns; the tests hold them side by side. A
column is changed in place and belongs to one simulation.
"""

from typing import Protocol

import numpy as np

from planner.cluster.arrays import BoolArray, Int64Array

NO_BOUND = 2**62
"""What a limiter without limit leaves."""
MOST_TOKENS = 10**12
"""A larger rate is counted as this one: 1 TB or 10^12 messages in a period, which no dispatcher reaches."""

_NEVER = -1
_SPLIT = 10**6  # keeps the product of nanoseconds and tokens within 64 bits


def _times_over(a: Int64Array, b: Int64Array, c: Int64Array) -> Int64Array:
    """Return a * b // c exactly, where the product need not fit; a up to 1 h in ns, b up to `MOST_TOKENS`."""
    high, low = np.divmod(a, _SPLIT)
    whole, rest = np.divmod(high * b, c)
    result: Int64Array = whole * _SPLIT + (rest * _SPLIT + low * b) // c
    return result


class LimiterColumn(Protocol):
    """One dimension (messages or bytes) of many limiters. Rows are positions of limiters, each once in a call."""

    limited: BoolArray
    """Which of them limit at all."""

    def peek(self, rows: Int64Array, now_ns: int) -> tuple[Int64Array, tuple[Int64Array, ...]]:
        """Return what each would leave, `NO_BOUND` without limit, and what `commit` needs."""

    def commit(self, rows: Int64Array, asked: tuple[Int64Array, ...], keep: BoolArray) -> None:
        """Make it so that those to keep were asked."""

    def consume(self, rows: Int64Array, amount: Int64Array, now_ns: int) -> None:
        """Charge what was dispatched; amounts below 1 charge nothing."""

    def set_rate(self, rate: Int64Array) -> None:
        """Change the rates of limits that are relative to the publish rate; what limits nothing stays so."""

    def debt(self) -> Int64Array:
        """Return how much more was taken from each than there was; 0 without debt."""


class BucketColumn:
    """Token buckets; see `planner.pulsar.throttling.async_token_bucket`. Full at the time 0.

    Args:
        rate: Tokens of one period; <= 0 without limit. Shape (n,).
        period_ns: Length of the period. Shape (n,).
    """

    def __init__(self, rate: Int64Array, period_ns: Int64Array) -> None:
        self.limited: BoolArray = rate > 0
        self._rate = np.clip(rate, 1, MOST_TOKENS)
        self._period = period_ns
        self._tokens = self._rate.copy()
        self._last = np.zeros_like(rate)
        self._remainder = np.zeros_like(rate)
        self._pending = np.zeros_like(rate)

    def peek(self, rows: Int64Array, now_ns: int) -> tuple[Int64Array, tuple[Int64Array, ...]]:
        """See `LimiterColumn`."""
        rate, period, tokens = self._rate[rows], self._period[rows], self._tokens[rows]
        last, remainder, pending = self._last[rows], self._remainder[rows], self._pending[rows]
        due = now_ns > last + period
        elapsed = np.where(due, now_ns - last + remainder, 0)
        earned = _times_over(elapsed, rate, period)
        left = np.maximum(elapsed - _times_over(period, earned, rate), 0)
        refilled = due & (earned > 0)
        filled = np.where(earned == pending, tokens, np.minimum(tokens + earned - pending, rate))
        tokens = np.where(refilled, filled, tokens)
        pending = np.where(refilled, 0, pending)
        last, remainder = np.where(due, now_ns, last), np.where(due, left, remainder)
        available = np.where(self.limited[rows], np.maximum(tokens - pending, 0), NO_BOUND)
        return available, (tokens, last, remainder, pending)

    def commit(self, rows: Int64Array, asked: tuple[Int64Array, ...], keep: BoolArray) -> None:
        """See `LimiterColumn`."""
        kept = rows[keep]
        self._tokens[kept], self._last[kept], self._remainder[kept], self._pending[kept] = (a[keep] for a in asked)

    def consume(self, rows: Int64Array, amount: Int64Array, now_ns: int) -> None:
        """See `LimiterColumn`."""
        del now_ns
        self._pending[rows] += np.where(self.limited[rows], np.maximum(amount, 0), 0)

    def set_rate(self, rate: Int64Array) -> None:
        """See `LimiterColumn`."""
        self._rate = np.where(self.limited, np.clip(rate, 1, MOST_TOKENS), self._rate)

    def debt(self) -> Int64Array:
        """See `LimiterColumn`."""
        return np.where(self.limited, np.maximum(self._pending - self._tokens, 0), 0)


class ClassicColumn:
    """Counters with a timer; see `planner.pulsar.throttling.classic_limiter`.

    Args:
        rate: Permits of one period; <= 0 without limit. Shape (n,).
        period_ns: Length of the period. Shape (n,).
    """

    def __init__(self, rate: Int64Array, period_ns: Int64Array) -> None:
        self.limited: BoolArray = rate > 0
        self._permits = np.clip(rate, 1, MOST_TOKENS)
        self._updated = self._permits
        self._period = period_ns
        self._acquired = np.zeros_like(rate)
        self._renewal = np.full_like(rate, _NEVER)

    def _renewed(self, rows: Int64Array, now_ns: int) -> tuple[Int64Array, Int64Array, Int64Array]:
        """Return permits, acquired and next renewal after those that are due."""
        permits, acquired, renewal = self._permits[rows], self._acquired[rows], self._renewal[rows]
        due = (renewal != _NEVER) & (renewal <= now_ns)
        later = np.where(due, (now_ns - renewal) // self._period[rows], 0)
        updated = np.where(due, self._updated[rows], permits)
        forgiven = np.maximum(np.maximum(acquired - permits, 0) - later * updated, 0)
        next_renewal = renewal + np.where(due, (later + 1) * self._period[rows], 0)
        return updated, np.where(due, forgiven, acquired), next_renewal

    def peek(self, rows: Int64Array, now_ns: int) -> tuple[Int64Array, tuple[Int64Array, ...]]:
        """See `LimiterColumn`."""
        permits, acquired, renewal = self._renewed(rows, now_ns)
        available = np.where(self.limited[rows], np.maximum(permits - acquired, 0), NO_BOUND)
        return available, (permits, acquired, renewal)

    def commit(self, rows: Int64Array, asked: tuple[Int64Array, ...], keep: BoolArray) -> None:
        """See `LimiterColumn`; the timer runs whether or not somebody asks."""
        kept = rows[keep]
        self._permits[kept], self._acquired[kept], self._renewal[kept] = (a[keep] for a in asked)

    def consume(self, rows: Int64Array, amount: Int64Array, now_ns: int) -> None:
        """See `LimiterColumn`; the first charge starts the timer."""
        permits, acquired, renewal = self._renewed(rows, now_ns)
        charged = self.limited[rows] & (amount > 0)
        self._permits[rows] = permits
        self._acquired[rows] = acquired + np.where(charged, amount, 0)
        started = now_ns + self._period[rows]
        self._renewal[rows] = np.where(charged & (renewal == _NEVER), started, renewal)

    def set_rate(self, rate: Int64Array) -> None:
        """See `LimiterColumn`; in force from the next renewal on."""
        self._updated = np.where(self.limited & (rate > 0), np.clip(rate, 1, MOST_TOKENS), self._updated)

    def debt(self) -> Int64Array:
        """See `LimiterColumn`."""
        return np.where(self.limited, np.maximum(self._acquired - self._permits, 0), 0)
