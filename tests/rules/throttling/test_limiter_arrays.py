"""Columns of limiters count as the single limiters do."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.cluster.snapshot import DispatchRate
from planner.pulsar.throttling.classic_limiter import classic_limiter
from planner.pulsar.throttling.dispatch_limiter import async_token_bucket_limiter
from planner.pulsar.throttling.limiter_arrays import MOST_TOKENS, NO_BOUND, BucketColumn, ClassicColumn, LimiterColumn
from planner.pulsar.throttling.protocol import DispatchLimiter, PublishRate

SECOND = 1_000_000_000
ALL = np.array([0, 1, 2, 3])
steps = st.lists(
    st.tuples(st.integers(0, 3 * SECOND), st.lists(st.integers(0, 40), min_size=4, max_size=4)), max_size=25
)
rates = st.lists(st.sampled_from([-1, 0, 1, 3, 10, 1000, 7_000_000_001, MOST_TOKENS]), min_size=4, max_size=4)
periods = st.lists(st.integers(1, 600), min_size=4, max_size=4)


def single(kind: type[LimiterColumn], rate: int, period_s: int) -> DispatchLimiter:
    limit = DispatchRate(bytes_per_period=rate, period_s=period_s)
    return classic_limiter(limit) if kind is ClassicColumn else async_token_bucket_limiter(limit, 0)


@pytest.mark.parametrize("kind", [BucketColumn, ClassicColumn])
@given(rates, periods, steps, st.integers(1, 10**11))
def test_counts_as_single_limiters(
    kind: Any, rate: list[int], period: list[int], moves: list[tuple[int, list[int]]], scale: int
) -> None:
    column: LimiterColumn = kind(np.array(rate), np.array(period) * SECOND)
    limiters = [single(kind, r, p) for r, p in zip(rate, period, strict=True)]
    now = 0
    for wait, wanted in moves:
        now += wait
        available, asked = column.peek(ALL, now)
        column.commit(ALL, asked, np.ones(4, dtype=bool))
        amounts = np.array(wanted) * (1 if max(rate) <= 1000 else scale)
        column.consume(ALL, amounts, now)
        for at in range(4):
            limiters[at], left = limiters[at].available(now)
            assert available[at] == (NO_BOUND if left.bytes < 0 else left.bytes)
            limiters[at] = limiters[at].consume(0, int(amounts[at]), now)


@pytest.mark.parametrize("kind", [BucketColumn, ClassicColumn])
def test_a_look_changes_nothing_until_it_is_kept(kind: Any) -> None:
    column: LimiterColumn = kind(np.full(4, 10), np.full(4, SECOND))
    column.consume(ALL, np.array([10, 10, 25, 0]), 0)
    assert column.debt().tolist() == [0, 0, 15, 0]
    later = 5 * SECOND // 4
    available, asked = column.peek(ALL, later)
    assert available.tolist() == [10, 10, 0, 10]
    column.commit(ALL, asked, np.array([True, False, True, False]))
    assert column.debt().tolist() == [0, 0, 3 if kind is BucketColumn else 5, 0]


@pytest.mark.parametrize("kind", [BucketColumn, ClassicColumn])
def test_relative_limits_follow_the_publish_rate(kind: Any) -> None:
    rate = DispatchRate(-1, 10, relative_to_publish_rate=True)
    one = classic_limiter(rate) if kind is ClassicColumn else async_token_bucket_limiter(rate, 0)
    limiter: DispatchLimiter = one
    column: LimiterColumn = kind(np.array([10]), np.array([SECOND]))
    row = np.array([0])
    for at, published in enumerate((0, 0, 25, 25, 3, 3)):
        now = at * (SECOND + 1)
        column.set_rate(np.array([10 + published]))
        publish = PublishRate(0, float(published))
        available, asked = column.peek(row, now)
        column.commit(row, asked, np.array([True]))
        column.consume(row, np.array([17]), now)
        limiter, left = limiter.available(now, publish)
        limiter = limiter.consume(0, 17, now, publish)
        assert available[0] == left.bytes
