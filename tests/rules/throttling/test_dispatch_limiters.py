"""Dispatch limiters count as Pulsar's do: recorded cases, the documented examples, and what holds for all of them."""

from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from planner.cli.conform import mismatches
from planner.cluster.errors import PulsarError
from planner.cluster.snapshot import DispatchRate
from planner.conform.reader import Vector, read_vectors
from planner.pulsar.throttling.async_token_bucket import (
    BucketRate,
    balance,
    consume,
    new_bucket,
    throttling_duration_ns,
)
from planner.pulsar.throttling.classic_limiter import classic_limiter
from planner.pulsar.throttling.dispatch_limiter import async_token_bucket_limiter
from planner.pulsar.throttling.protocol import UNLIMITED, Available, DispatchLimiter, PublishRate

GOLDENS = Path(__file__).parent.parent.parent / "goldens" / "dispatch_throttle"
SECOND = 1_000_000_000
TEN = DispatchRate(msg_per_period=10)


def recorded(name: str) -> list[object]:
    return [pytest.param(vector, id=vector.id) for vector in read_vectors(GOLDENS / name)]


@pytest.mark.parametrize("vector", [*recorded("vectors.jsonl.gz"), *recorded("edges.jsonl.gz")])
def test_counts_as_recorded(vector: Vector) -> None:
    assert not list(mismatches(vector))


def read_at(limiter: DispatchLimiter, *seconds: float) -> list[int]:
    answers = []
    for second in seconds:
        limiter, left = limiter.available(round(second * SECOND))
        answers.append(left.msgs)
    return answers


def test_bucket_pays_debt_by_elapsed_time() -> None:
    """30 sent at 10 per second: -20, -10 after the first second, then half a period more earns half a rate."""
    limiter = async_token_bucket_limiter(TEN, 0).consume(30, 0, 0)
    just_after_a_second = SECOND + 1
    limiter, left = limiter.available(just_after_a_second)
    assert left == Available(0, UNLIMITED)
    assert limiter.msgs is not None
    assert limiter.msgs.tokens == -10
    assert read_at(limiter, 2.5) == [5]


def test_bucket_refills_only_after_more_than_a_period() -> None:
    limiter = async_token_bucket_limiter(TEN, 0).consume(10, 0, 0)
    assert read_at(limiter, 1.0, 1.000000001) == [0, 10]


def test_classic_forgives_one_rate_each_period() -> None:
    """30 sent at 10 per second block two periods; the timer starts with the first charge."""
    limiter = classic_limiter(TEN).consume(30, 0, SECOND // 2)
    assert read_at(limiter, 1.0, 1.5, 2.5, 3.49, 3.5) == [0, 0, 0, 0, 10]


@pytest.mark.parametrize("limiter", [classic_limiter(TEN), async_token_bucket_limiter(TEN, 0)])
def test_eleven_of_ten_leave_nine(limiter: DispatchLimiter) -> None:
    assert read_at(limiter.consume(11, 0, 0), 0.5, 1.000000001) == [0, 9]


def test_policy_change_forgets_the_debt_of_a_bucket_only() -> None:
    half = SECOND // 2
    bucket = async_token_bucket_limiter(TEN, 0).consume(30, 0, 0).with_rate(TEN, half)
    classic = classic_limiter(TEN).consume(30, 0, 0).with_rate(TEN, half)
    assert read_at(bucket, 0.5) == [10]
    assert read_at(classic, 1.0, 1.5, 2.5, 3.5) == [0, 0, 0, 10]


def test_relative_limit_adds_the_publish_rate() -> None:
    rate, publish = DispatchRate(10, 0, relative_to_publish_rate=True), PublishRate(5.9, 1000.0)
    bucket = async_token_bucket_limiter(rate, 0, publish)
    assert bucket.available(0, publish)[1] == bucket.rates(publish) == Available(15, UNLIMITED)
    classic = classic_limiter(rate).consume(30, 0, 0, publish)
    assert classic.rates(publish).msgs == 10
    renewed, left = classic.available(4 * SECOND, publish)
    assert (renewed.rates(publish).msgs, left.msgs) == (15, 15)


def test_no_limit_is_said_so() -> None:
    for limiter in (async_token_bucket_limiter(DispatchRate(), 0), classic_limiter(DispatchRate(period_s=0))):
        assert not limiter.enabled
        assert limiter.consume(5, 5, 0).available(0)[1] == limiter.rates() == Available(UNLIMITED, UNLIMITED)


def test_period_below_one_second() -> None:
    assert read_at(async_token_bucket_limiter(DispatchRate(10, period_s=0), 0).consume(10, 0, 0), 1.1) == [10]
    with pytest.raises(PulsarError, match="> 0") as refused:
        classic_limiter(DispatchRate(10, period_s=0))
    assert refused.value.exception == "IllegalArgumentException"


def test_asking_twice_at_one_moment_earns_nothing_more() -> None:
    rate = BucketRate(tokens=854224, period_ns=3 * SECOND + 1, capacity_tokens=854224, resolution_ns=1)
    bucket, first = balance(new_bucket(rate, 0, initial_tokens=0), rate, SECOND * 3 // 2)
    assert (first, balance(bucket, rate, SECOND * 3 // 2)[1]) == (427111, 427111)


charges = st.lists(st.tuples(st.integers(0, 3 * SECOND), st.integers(0, 40)), max_size=30)
rates = st.builds(
    DispatchRate, msg_per_period=st.integers(1, 1000), bytes_per_period=st.just(-1), period_s=st.integers(1, 5)
)


@given(rates, charges)
def test_dispatch_never_outruns_the_rate(rate: DispatchRate, asked: list[tuple[int, int]]) -> None:
    """Who reads only what is available gets at most a full bucket and what the elapsed time earns."""
    period = rate.period_s * SECOND
    for limiter in (async_token_bucket_limiter(rate, 0), classic_limiter(rate)):
        now, sent, current = 0, 0, limiter
        for wait, wanted in asked:
            now += wait
            after, left = current.available(now)
            assert left.msgs >= 0
            sent += min(wanted, left.msgs)
            current = after.consume(min(wanted, left.msgs), 0, now)
        assert sent <= rate.msg_per_period * (now / period + 1) + 1e-6


@given(rates, charges)
def test_charges_are_conserved(rate: DispatchRate, asked: list[tuple[int, int]]) -> None:
    """A dimension never holds more than its rate, and a charge never raises it."""
    for limiter in (async_token_bucket_limiter(rate, 0), classic_limiter(rate)):
        now, current = 0, limiter
        for wait, msgs in asked:
            now += wait
            current, before = current.available(now)
            current, after = current.consume(msgs, 0, now).available(now)
            assert max(before.msgs - msgs, 0) == after.msgs <= rate.msg_per_period


@given(st.integers(1, 10**9), st.integers(1, 10**11), st.integers(0, 10**9), st.integers(0, 10**10))
def test_waiting_the_throttling_duration_refills_to_the_target(
    tokens: int, period: int, taken: int, start: int
) -> None:
    rate = BucketRate(tokens, period, capacity_tokens=tokens, resolution_ns=1)
    bucket, wait = throttling_duration_ns(consume(new_bucket(rate, start), tokens + taken), rate, start)
    assume(wait < 2**63 - 1)  # 292 years, where Java's long ends
    _, tokens_then = balance(bucket, rate, start + wait + period // tokens + 2)
    assert tokens_then >= rate.target_tokens
