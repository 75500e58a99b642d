"""Dispatch limiters count as Pulsar's do: the documented examples, and what holds for all of them.

The columns that the simulation runs are what is checked, whether of 64 bits or of whole numbers of any size.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from planner.cluster.errors import PulsarError
from planner.cluster.snapshot import DispatchRate
from planner.conform.throttling import OneLimiter
from planner.pulsar.throttling.async_token_bucket import BucketColumn
from planner.pulsar.throttling.classic_limiter import ClassicColumn
from planner.pulsar.throttling.protocol import MOST_TOKENS, NO_BOUND, LimiterColumn

SECOND = 1_000_000_000
TEN = DispatchRate(msg_per_period=10)
KINDS = (BucketColumn, ClassicColumn)
ALL = np.array([0, 1, 2, 3])
ROW = np.array([0])


def charged(kind: Any, rate: DispatchRate, msgs: int, at_ns: int = 0) -> OneLimiter:
    limiter = OneLimiter(kind, rate)
    limiter.consume(msgs, 0, at_ns)
    return limiter


def read_at(limiter: OneLimiter, *seconds: float) -> list[int]:
    return [limiter.available(round(second * SECOND))[0] for second in seconds]


def test_bucket_pays_debt_by_elapsed_time() -> None:
    """30 sent at 10 per second: -20, -10 after the first second, then half a period more earns half a rate."""
    limiter = charged(BucketColumn, TEN, 30)
    assert limiter.available(SECOND + 1) == (0, -1)
    assert limiter.column.debt()[0] == 10
    assert read_at(limiter, 2.5) == [5]


def test_bucket_refills_only_after_more_than_a_period() -> None:
    assert read_at(charged(BucketColumn, TEN, 10), 1.0, 1.000000001) == [0, 10]


def test_classic_forgives_one_rate_each_period() -> None:
    """30 sent at 10 per second block two periods; the timer starts with the first charge."""
    limiter = charged(ClassicColumn, TEN, 30, SECOND // 2)
    assert read_at(limiter, 1.0, 1.5, 2.5, 3.49, 3.5) == [0, 0, 0, 0, 10]


@pytest.mark.parametrize("kind", KINDS)
def test_eleven_of_ten_leave_nine(kind: Any) -> None:
    assert read_at(charged(kind, TEN, 11), 0.5, 1.000000001) == [0, 9]


def test_policy_change_forgets_the_debt_of_a_bucket_only() -> None:
    bucket, classic = charged(BucketColumn, TEN, 30), charged(ClassicColumn, TEN, 30)
    for limiter in (bucket, classic):
        limiter.change(TEN, SECOND // 2)
    assert read_at(bucket, 0.5) == [10]
    assert read_at(classic, 1.0, 1.5, 2.5, 3.5) == [0, 0, 0, 10]


def test_relative_limit_adds_the_publish_rate() -> None:
    rate, published = DispatchRate(10, 0, relative_to_publish_rate=True), (5.9, 1000.0)
    bucket = OneLimiter(BucketColumn, rate, 0, published)
    assert bucket.available(0) == bucket.rates() == (15, -1)
    classic = OneLimiter(ClassicColumn, rate, 0, published)
    classic.consume(30, 0, 0)
    assert classic.rates()[0] == 10
    assert classic.available(4 * SECOND) == classic.rates() == (15, -1)


@pytest.mark.parametrize("kind", KINDS)
def test_relative_limits_follow_the_publish_rate(kind: Any) -> None:
    rate = DispatchRate(-1, 10, relative_to_publish_rate=True)
    limiter = OneLimiter(kind, rate)
    column: LimiterColumn = kind(np.array([10]), np.array([SECOND]))
    for at, published in enumerate((0, 0, 25, 25, 3, 3)):
        now = at * (SECOND + 1)
        column.set_rate(np.array([10 + published]))
        available, asked = column.peek(ROW, now)
        column.commit(ROW, asked, np.array([True]))
        column.consume(ROW, np.array([17]), now)
        limiter.publish((0, float(published)))
        assert limiter.available(now)[1] == available[0]
        limiter.consume(0, 17, now)


@pytest.mark.parametrize(("kind", "rate"), [(BucketColumn, DispatchRate()), (ClassicColumn, DispatchRate(period_s=0))])
def test_no_limit_is_said_so(kind: Any, rate: DispatchRate) -> None:
    limiter = OneLimiter(kind, rate)
    assert not limiter.column.limited.any()
    limiter.consume(5, 5, 0)
    assert limiter.available(0) == limiter.rates() == (-1, -1)


def test_period_below_one_second() -> None:
    assert read_at(charged(BucketColumn, DispatchRate(10, period_s=0), 10), 1.1) == [10]
    with pytest.raises(PulsarError, match="> 0") as refused:
        OneLimiter(ClassicColumn, DispatchRate(10, period_s=0))
    assert refused.value.exception == "IllegalArgumentException"


def bucket_of(tokens: int, period_ns: int, start_ns: int = 0, initial: int | None = None) -> BucketColumn:
    def whole(value: int) -> npt.NDArray[Any]:
        return np.array([value], dtype=object)

    first = whole(tokens if initial is None else initial)
    return BucketColumn(whole(tokens), whole(period_ns), start_ns, resolution_ns=whole(1), initial=first)


def test_asking_twice_at_one_moment_earns_nothing_more() -> None:
    bucket = bucket_of(854224, 3 * SECOND + 1, initial=0)
    assert [bucket.balance(ROW, SECOND * 3 // 2)[0] for _ in range(2)] == [427111, 427111]


charges = st.lists(st.tuples(st.integers(0, 3 * SECOND), st.integers(0, 40)), max_size=30)
rates = st.builds(
    DispatchRate, msg_per_period=st.integers(1, 1000), bytes_per_period=st.just(-1), period_s=st.integers(1, 5)
)


@pytest.mark.parametrize("kind", KINDS)
@given(rate=rates, asked=charges)
def test_dispatch_never_outruns_the_rate(kind: Any, rate: DispatchRate, asked: list[tuple[int, int]]) -> None:
    """Who reads only what is available gets at most a full bucket and what the elapsed time earns."""
    limiter, now, sent = OneLimiter(kind, rate), 0, 0
    for wait, wanted in asked:
        now += wait
        left = limiter.available(now)[0]
        assert left >= 0
        sent += min(wanted, left)
        limiter.consume(min(wanted, left), 0, now)
    assert sent <= rate.msg_per_period * (now / (rate.period_s * SECOND) + 1) + 1e-6


@pytest.mark.parametrize("kind", KINDS)
@given(rate=rates, asked=charges)
def test_charges_are_conserved(kind: Any, rate: DispatchRate, asked: list[tuple[int, int]]) -> None:
    """A dimension never holds more than its rate, and a charge never raises it."""
    limiter, now = OneLimiter(kind, rate), 0
    for wait, msgs in asked:
        now += wait
        before = limiter.available(now)[0]
        limiter.consume(msgs, 0, now)
        assert max(before - msgs, 0) == limiter.available(now)[0] <= rate.msg_per_period


@given(st.integers(1, 10**9), st.integers(1, 10**11), st.integers(0, 10**9), st.integers(0, 10**10))
def test_waiting_the_throttling_duration_refills_to_the_target(
    tokens: int, period: int, taken: int, start: int
) -> None:
    bucket = bucket_of(tokens, period, start)
    bucket.consume(ROW, np.array([tokens + taken], dtype=object), start)
    wait = bucket.throttling_duration_ns(ROW, start)[0]
    assume(wait < 2**63 - 1)  # 292 years, where Java's long ends
    assert bucket.balance(ROW, start + wait + period // tokens + 2)[0] >= max(tokens // 100, 1)


steps = st.lists(
    st.tuples(st.integers(0, 3 * SECOND), st.lists(st.integers(0, 40), min_size=4, max_size=4)), max_size=25
)
many = st.lists(st.sampled_from([-1, 0, 1, 3, 10, 1000, 7_000_000_001, MOST_TOKENS]), min_size=4, max_size=4)
periods = st.lists(st.integers(1, 600), min_size=4, max_size=4)


@pytest.mark.parametrize("kind", KINDS)
@given(rate=many, period=periods, moves=steps, scale=st.integers(1, 10**11))
def test_sixty_four_bits_suffice(
    kind: Any, rate: list[int], period: list[int], moves: list[tuple[int, list[int]]], scale: int
) -> None:
    """What the simulation runs equals the same column of whole numbers of any size."""
    narrow: LimiterColumn = kind(np.array(rate), np.array(period) * SECOND)
    wide: LimiterColumn = kind(np.array(rate, dtype=object), np.array(period, dtype=object) * SECOND)
    now = 0
    for wait, wanted in moves:
        now += wait
        amounts = np.array(wanted) * (1 if max(rate) <= 1000 else scale)
        answers = []
        for column in (narrow, wide):
            available, asked = column.peek(ALL, now)
            column.commit(ALL, asked, np.ones(4, dtype=bool))
            column.consume(ALL, amounts.astype(available.dtype), now)
            answers.append((available.tolist(), column.debt().tolist()))
        assert answers[0] == answers[1]
        assert [left == NO_BOUND for left in answers[0][0]] == [one <= 0 for one in rate]


@pytest.mark.parametrize("kind", KINDS)
def test_a_look_changes_nothing_until_it_is_kept(kind: Any) -> None:
    column: LimiterColumn = kind(np.full(4, 10), np.full(4, SECOND))
    column.consume(ALL, np.array([10, 10, 25, 0]), 0)
    assert column.debt().tolist() == [0, 0, 15, 0]
    available, asked = column.peek(ALL, 5 * SECOND // 4)
    assert available.tolist() == [10, 10, 0, 10]
    column.commit(ALL, asked, np.array([True, False, True, False]))
    assert column.debt().tolist() == [0, 0, 3 if kind is BucketColumn else 5, 0]
