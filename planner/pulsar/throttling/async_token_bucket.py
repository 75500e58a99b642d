"""AsyncTokenBucket: tokens earned by elapsed time, taken without asking, refilled when somebody looks.

Mirrors `AsyncTokenBucket` and `FinalRateAsyncTokenBucket` (`org.apache.pulsar.broker.qos`) and, for the buckets that
`BucketColumn` makes by default, `DispatchRateLimiterAsyncTokenBucketImpl` of Pulsar 4.2.4, to the last token. What is a
counter of atomics there is a column here.
"""

import numpy as np

from planner.cluster.arrays import BoolArray, Int64Array
from planner.cluster.releases import Release, Switch
from planner.pulsar.throttling.protocol import NO_BOUND, counted, times_over, wrapped_times_over

OVERFLOWS = Switch(
    "The token bucket multiplies in 64 bits: at a high rate, or after a long idle time, it earns a wrong "
    "number of tokens, or none.",
    until="4.2.4",
)
_LONG_MAX = 2**63 - 1
_TARGET_FILL = 0.01


class BucketColumn:
    """Token buckets; see `LimiterColumn`.

    Args:
        rate: Tokens of one period; <= 0 without limit. Shape (n,), int64 or Python integers.
        period_ns: Length of the period, at least 1 ns. Shape (n,).
        now_ns: When they are made.
        capacity: Most tokens each can hold; those of one period by default. Shape (n,).
        resolution_ns: Tokens are added when more than this has passed; the period by default. Shape (n,).
        initial: Tokens to begin with; those of one period by default. Shape (n,).
    """

    _times_over = staticmethod(times_over)

    def __init__(
        self,
        rate: Int64Array,
        period_ns: Int64Array,
        now_ns: int = 0,
        *,
        capacity: Int64Array | None = None,
        resolution_ns: Int64Array | None = None,
        initial: Int64Array | None = None,
    ) -> None:
        self.limited: BoolArray = np.asarray(rate > 0, dtype=bool)
        self._rate = counted(rate)
        self._period = period_ns
        self._capacity = capacity
        self._resolution = period_ns if resolution_ns is None else resolution_ns
        self._tokens = self._rate.copy() if initial is None else initial
        self._last = np.full_like(rate, now_ns)
        self._remainder = np.zeros_like(rate)
        self._pending = np.zeros_like(rate)
        self._is_free = capacity is None and initial is None and not self.limited.any()
        """Whether nothing is limited, so that nothing has to be counted either: the buckets stay full."""

    def _filled(self, rows: Int64Array, now_ns: int) -> tuple[Int64Array, ...]:
        """Return tokens, moment, remainder and what is pending, after the tokens that are due were added."""
        rate, period, tokens = self._rate[rows], self._period[rows], self._tokens[rows]
        last, remainder, pending = self._last[rows], self._remainder[rows], self._pending[rows]
        token_ns, resolution = period // rate, self._resolution[rows]
        step = np.where(token_ns > resolution, np.maximum(token_ns - remainder - 1, 0), resolution)
        due = np.asarray(now_ns > last + step, dtype=bool)
        if not due.any():
            return tokens, last, remainder, pending
        elapsed = np.where(due, now_ns - last + remainder, 0)
        earned = np.minimum(self._times_over(elapsed, rate, period), _LONG_MAX)
        left = np.maximum(elapsed - self._times_over(period, earned, rate), 0)
        refilled = due & np.asarray(earned > 0, dtype=bool)
        capacity = rate if self._capacity is None else self._capacity[rows]
        # Not even the capacity is looked at when nothing changes.
        filled = np.where(earned == pending, tokens, np.minimum(tokens + earned - pending, capacity))
        return (
            np.where(refilled, filled, tokens),
            np.where(due, now_ns, last),
            np.where(due, left, remainder),
            np.where(refilled, 0, pending),
        )

    def peek(self, rows: Int64Array, now_ns: int) -> tuple[Int64Array, tuple[Int64Array, ...]]:
        """See `LimiterColumn`."""
        if self._is_free:
            return np.full(len(rows), NO_BOUND, dtype=self._rate.dtype), ()
        asked = self._filled(rows, now_ns)
        return np.where(self.limited[rows], np.maximum(asked[0] - asked[3], 0), NO_BOUND), asked

    def balance(self, rows: Int64Array, now_ns: int) -> Int64Array:
        """Add the tokens that are due, and return the balance of each, below 0 in debt. Shape (rows,)."""
        asked = self._filled(rows, now_ns)
        self.commit(rows, asked, np.ones(len(rows), dtype=bool))
        balance: Int64Array = asked[0] - asked[3]
        return balance

    def throttling_duration_ns(self, rows: Int64Array, now_ns: int) -> Int64Array:
        """Return in how many ns each will hold a hundredth of its capacity; 0 when it does. Shape (rows,)."""
        rate = self._rate[rows]
        capacity = rate if self._capacity is None else self._capacity[rows]
        target = np.maximum((capacity.astype(np.float64) * _TARGET_FILL).astype(np.int64).astype(rate.dtype), 1)
        missing = np.maximum(target - self.balance(rows, now_ns), 0)
        wait: Int64Array = np.minimum(self._times_over(missing, self._period[rows], rate), _LONG_MAX)
        return wait

    def commit(self, rows: Int64Array, asked: tuple[Int64Array, ...], keep: BoolArray) -> None:
        """See `LimiterColumn`."""
        if not asked:
            return
        kept = rows[keep]
        self._tokens[kept], self._last[kept], self._remainder[kept], self._pending[kept] = (a[keep] for a in asked)

    def consume(self, rows: Int64Array, amount: Int64Array, now_ns: int) -> None:
        """See `LimiterColumn`; the moment does not matter to a bucket."""
        del now_ns
        if self._is_free:
            return
        self._pending[rows] += np.where(self.limited[rows], np.maximum(amount, 0), 0)

    def set_rate(self, rate: Int64Array) -> None:
        """See `LimiterColumn`; in force at once."""
        self._rate = np.where(self.limited, counted(rate), self._rate)

    def change_policy(self, rate: Int64Array, period_ns: Int64Array, now_ns: int) -> None:
        """See `LimiterColumn`: new full buckets, so that debt is forgotten."""
        self.__init__(rate, period_ns, now_ns)  # type: ignore[misc]

    def rates(self) -> Int64Array:
        """See `LimiterColumn`."""
        return np.where(self.limited, self._rate, -1)

    def debt(self) -> Int64Array:
        """See `LimiterColumn`."""
        return np.where(self.limited, np.maximum(self._pending - self._tokens, 0), 0)


class OverflowingBucketColumn(BucketColumn):
    """Token buckets of releases with `OVERFLOWS`."""

    _times_over = staticmethod(wrapped_times_over)


def bucket_column(release: Release) -> type[BucketColumn]:
    """Return the token buckets of a release."""
    return OverflowingBucketColumn if release.has(OVERFLOWS) else BucketColumn
