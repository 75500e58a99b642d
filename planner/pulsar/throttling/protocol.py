"""The contract of dispatch limiters: columns of one dimension (messages or bytes) of many limiters."""

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from planner.cluster.arrays import BoolArray, Int64Array

NO_BOUND = 2**62
"""Permits that a limiter without limit leaves."""

MOST_TOKENS = 10**12
"""A larger rate in a column of int64 is counted as this one: 1 TB or 10^12 messages in a period, which no dispatcher
reaches. A column of Python integers (dtype object) counts any rate."""

_SPLIT = 10**6  # keeps the product of nanoseconds and tokens within 64 bits


class LimiterColumn(Protocol):
    """One dimension (messages or bytes) of many limiters. Rows are positions of limiters, each once in a call.

    Mirrors what implements `DispatchRateLimiter` of Pulsar 4.2.4. A column is changed in place and belongs to one
    simulation. Moments are ns of any clock that only moves forward; amounts are messages or bytes.
    """

    limited: BoolArray
    """Which of them limit at all. Shape (n,)."""

    def peek(self, rows: Int64Array, now_ns: int) -> tuple[Int64Array, tuple[Int64Array, ...]]:
        """Return what each would leave, `NO_BOUND` without limit, and what `commit` needs. Shapes (rows,)."""

    def commit(self, rows: Int64Array, asked: tuple[Int64Array, ...], keep: BoolArray) -> None:
        """Make it so that those to keep were asked."""

    def consume(self, rows: Int64Array, amount: Int64Array, now_ns: int) -> None:
        """Charge what was dispatched, there or not; amounts below 1 charge nothing."""

    def set_rate(self, rate: Int64Array) -> None:
        """Change the rates of limits that are relative to the publish rate; what limits nothing stays so."""

    def change_policy(self, rate: Int64Array, period_ns: Int64Array, now_ns: int) -> None:
        """Take the rates and periods of a policy that was changed. Shapes (n,)."""

    def rates(self) -> Int64Array:
        """Return the tokens or permits of one period in force, -1 without limit. Shape (n,)."""

    def debt(self) -> Int64Array:
        """Return how much more was taken from each than there was; 0 without debt. Shape (n,)."""


def counted(rate: Int64Array) -> Int64Array:
    """Return rates as a column counts them: at least 1, at most `MOST_TOKENS` in 64 bits. Shape (n,)."""
    return np.maximum(rate, 1) if rate.dtype == object else np.clip(rate, 1, MOST_TOKENS)


def times_over(a: npt.NDArray[Any], b: npt.NDArray[Any], c: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a * b // c exactly, where the product need not fit; a up to 1 h in ns, b up to `MOST_TOKENS`.

    Shape as given.
    """
    if b.dtype == object:
        return a * b // c  # type: ignore[no-any-return]
    high, low = np.divmod(a, _SPLIT)
    whole, rest = np.divmod(high * b, c)
    return whole * _SPLIT + (rest * _SPLIT + low * b) // c  # type: ignore[no-any-return]


def wrapped_times_over(a: npt.NDArray[Any], b: npt.NDArray[Any], c: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a * b // c as Java's `long` gives it: the product wraps around, the quotient is cut towards 0.

    Shape as given; c above 0.
    """
    product = a * b
    if product.dtype == object:
        product = (product + 2**63) % 2**64 - 2**63
    quotient: npt.NDArray[Any] = np.where(product < 0, -(-product // c), product // c)
    return quotient
