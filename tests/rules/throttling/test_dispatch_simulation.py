"""Dispatch over time: the documented cases, an engine without arrays beside it, and what holds for every load."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.cluster.errors import SettingError
from planner.cluster.settings import Settings
from planner.cluster.snapshot import DispatchRate
from planner.conform.throttling import OneLimiter
from planner.pulsar.throttling.async_token_bucket import BucketColumn
from planner.pulsar.throttling.classic_limiter import ClassicColumn
from planner.pulsar.throttling.precedence import NO_LIMIT, Level, has_limit, setting_rate
from planner.simulate.dispatch.load import PublishPattern, SubscriptionLoad, SubscriptionType, TopicLoad
from planner.simulate.dispatch.simulate import simulate
from planner.simulate.dispatch.trace import LIMITS, DispatchTrace

NAME = "persistent://tenant/namespace/topic"
CLASSIC = {"dispatchRateLimiterFactoryClassName": ""}
TEN = DispatchRate(10)


def load(backlog: int = 0, **topic: Any) -> TopicLoad:
    return TopicLoad(NAME, subscriptions=(SubscriptionLoad(backlog_msgs=backlog),), **topic)


def run(topic: TopicLoad, seconds: float = 10, **config: Any) -> DispatchTrace:
    return simulate([topic], Settings(config), seconds)


def delivered(trace: DispatchTrace) -> list[int]:
    return [int(n) for n in trace.total("delivered_msgs")]


@pytest.mark.parametrize("config", [{}, CLASSIC])
def test_eleven_of_ten_leave_nine(config: dict[str, str]) -> None:
    """An entry of 11 messages is sent although only 10 may be; the next period has 9."""
    trace = run(load(11, publish=PublishPattern(11), messages_per_entry=11, limit=TEN), 3, **config)
    assert delivered(trace)[0] == 11
    assert trace.total("over_delivered_msgs")[0] == trace.total("debt_msgs")[0] == 1
    assert trace.allowed().tolist()[:2] == [10, 9]


@pytest.mark.parametrize("config", [{}, CLASSIC])
def test_thirty_of_ten_leave_nothing_for_two_periods(config: dict[str, str]) -> None:
    trace = run(load(90, messages_per_entry=3, limit=TEN), 7, **config)
    assert delivered(trace) == [30, 0, 0, 30, 0, 0, 30]
    assert trace.allowed().tolist() == [10, 0, 0, 10, 0, 0, 10]
    assert trace.total("debt_msgs").tolist() == [20, 10, 0, 20, 10, 0, 20]
    assert {str(limit) for limit in trace.binding()} == {"topic (messages)"}
    assert (trace.events >= trace.bound).all()


SWITCHES = [
    # precise flow control, messages counted by batch, delivered in the first second, and in six
    (False, False, 60, 60),
    (True, False, 60, 60),
    (False, True, 60, 360),
    (True, True, 60, 360),
]


@pytest.mark.parametrize(("precise", "by_batch", "first", "in_six"), SWITCHES)
def test_ten_per_second_of_batches_of_six(precise: bool, by_batch: bool, first: int, in_six: int) -> None:  # noqa: FBT001
    """Both switches may be on together, and precise mode does not read 2 entries here, as the documentation says."""
    config = {"preciseDispatcherFlowControl": precise, "dispatchThrottlingOnBatchMessageEnabled": by_batch}
    trace = run(load(6_000, messages_per_entry=6, limit=TEN), 6, **config)
    assert delivered(trace)[0] == first
    assert sum(delivered(trace)) == in_six
    assert trace.total("debt_msgs")[0] == (0 if by_batch else 50)


def test_precise_flow_control_divides_permits_only() -> None:
    """10 permits: 10 entries of 6 without, 2 entries with it."""
    one = SubscriptionLoad(receiver_queue_msgs=10, backlog_msgs=600, process_msg_per_s=0)
    topic = TopicLoad(NAME, messages_per_entry=6, subscriptions=(one,))
    assert delivered(run(topic, 1)) == [60]
    assert delivered(run(topic, 1, preciseDispatcherFlowControl=True)) == [12]


def test_each_partition_has_the_quota() -> None:
    trace = run(load(10_000, limit=TEN, partitions=4), 10)
    assert delivered(trace) == [40] * 10


def test_subscriptions_share_the_quota_of_their_topic() -> None:
    subs = tuple(SubscriptionLoad(f"s{i}", backlog_msgs=10_000) for i in range(3))
    assert delivered(run(TopicLoad(NAME, subscriptions=subs, limit=DispatchRate(300)), 10)) == [300] * 10
    each = tuple(replace(s, limit=DispatchRate(100)) for s in subs)
    assert delivered(run(TopicLoad(NAME, subscriptions=each), 10)) == [300] * 10


def test_a_broker_shares_its_quota_among_all_topics() -> None:
    topics = [load(5_000, brokers=(i % 2,)) for i in range(6)]
    trace = simulate(topics, Settings({"dispatchThrottlingRateInMsg": 700}), 10)
    assert delivered(trace) == [1400] * 10
    assert {limit for limit in trace.binding() if limit} == {LIMITS[0]}
    assert {limit for limit in trace.binding(trace.streams(3)) if limit} == {LIMITS[0]}


def test_tokens_that_streams_share_count_once() -> None:
    subs = tuple(SubscriptionLoad(f"s{i}", backlog_msgs=10_000, limit=DispatchRate(100)) for i in range(2))
    topic = TopicLoad(NAME, subscriptions=subs, limit=DispatchRate(50), partitions=3, brokers=(0, 1, 1))
    trace = run(topic, 3, dispatchThrottlingRateInMsg=30)
    assert trace.allowed().tolist() == [60] * 3
    only = run(replace(topic, subscriptions=subs[:1]), 3)
    assert only.allowed().tolist() == [150] * 3
    apart = run(replace(topic, limit=NO_LIMIT), 3)
    assert apart.allowed().tolist() == [600] * 3
    in_bytes = run(load(9_000, messages_per_entry=10, entry_bytes=1000, limit=DispatchRate(-1, 5000)), 2)
    assert in_bytes.allowed()[0] == 50
    assert np.isnan(run(load(10), 2).allowed()).all()


def test_one_entry_is_read_however_large() -> None:
    """A limit of 1 kB/s and entries of 1 MB: one at once, and a debt that takes 999 seconds."""
    trace = run(load(100, entry_bytes=1_000_000, limit=DispatchRate(-1, 1000)), 20)
    assert trace.total("delivered_bytes").tolist() == [1_000_000] + [0] * 19
    assert trace.total("debt_bytes")[0] == 999_000
    assert trace.total("over_delivered_bytes")[0] == 999_000
    assert str(trace.binding()[5]) == "topic (bytes)"


def test_a_longer_period_comes_at_once() -> None:
    trace = run(load(10_000, limit=DispatchRate(100, period_s=5)), 15)
    assert delivered(trace) == [100, 0, 0, 0, 0] * 3


def test_relative_limits_add_the_publish_rate() -> None:
    limit = DispatchRate(10, relative_to_publish_rate=True)
    assert delivered(run(load(10_000, publish=PublishPattern(50), limit=limit), 10)) == [60] * 10
    config = {"dispatchThrottlingRatePerTopicInMsg": 10, "dispatchThrottlingRateRelativeToPublishRate": True}
    assert setting_rate(Level.TOPIC, Settings(config)) == DispatchRate(10, 0)


def test_a_relative_limit_rises_with_the_next_statistics() -> None:
    pattern = PublishPattern(50, burst_msg_per_s=100, burst_start_s=0, burst_s=1000)
    limit = DispatchRate(10, relative_to_publish_rate=True)
    trace = run(load(100_000, publish=pattern, limit=limit), 30, statsUpdateFrequencyInSecs=10)
    assert delivered(trace)[5] == 60
    assert delivered(trace)[25] == 160


def test_consumers_without_backlog_are_throttled_too_by_default() -> None:
    """Switched off, nothing is throttled at all in 4.2.4, unless cursors become inactive by their backlog."""
    switch = {"dispatchThrottlingOnNonBacklogConsumerEnabled": False}
    old = {**switch, "cacheEvictionByExpectedReadCount": False}
    tailing = load(publish=PublishPattern(100), limit=TEN)
    behind = load(5_000, publish=PublishPattern(100), limit=TEN)
    for topic in (tailing, behind):
        assert delivered(run(topic))[5] == 10
        assert delivered(run(topic, **switch))[5] >= 100
    assert delivered(run(tailing, **old))[5] == 100
    assert delivered(run(behind, **old))[5] == 10


def test_replicators_have_a_limiter_of_their_own_and_count_entries() -> None:
    stream = SubscriptionLoad("remote", SubscriptionType.REPLICATOR, backlog_msgs=60_000, limit=DispatchRate(20))
    topic = TopicLoad(NAME, messages_per_entry=6, subscriptions=(stream,), limit=DispatchRate(1))
    trace = run(topic, 10, dispatchThrottlingRateInMsg=1)
    assert delivered(trace) == [120] * 10
    assert not trace.total("debt_msgs").any()


def test_non_persistent_topics_are_not_throttled() -> None:
    topic = load(publish=PublishPattern(100), limit=TEN, persistent=False)
    assert sum(delivered(run(topic, dispatchThrottlingRateInMsg=1))) == 990


def test_one_consumer_of_an_exclusive_subscription_gets_everything() -> None:
    for kind, expected in ((SubscriptionType.FAILOVER, 100), (SubscriptionType.SHARED, 300)):
        one = SubscriptionLoad("s", kind, consumers=3, process_msg_per_s=100, backlog_msgs=90_000)
        assert delivered(run(TopicLoad(NAME, subscriptions=(one,)), 60))[-10:] == pytest.approx(
            [expected] * 10, abs=500
        )
        total = sum(delivered(run(TopicLoad(NAME, subscriptions=(one,)), 60)))
        assert total == pytest.approx(60 * expected, abs=4_000)


def test_redelivered_messages_count_again_and_are_read_beside_others() -> None:
    one = SubscriptionLoad("s", backlog_msgs=100_000, redelivered_fraction=0.5)
    trace = run(TopicLoad(NAME, subscriptions=(one,), limit=DispatchRate(50)), 60)
    assert trace.total("over_delivered_msgs").max() > 0
    rest = trace.total("waiting_msgs")[-1]
    assert sum(delivered(trace)) > 100_000 - rest
    assert sum(delivered(trace)) <= 50 * 61 + 100


def test_backlog_drains_when_it_is_worked_off() -> None:
    trace = run(load(1_000, limit=DispatchRate(100)), 20)
    assert trace.drain().seconds == 9.0
    assert trace.drain().measured
    slow = run(load(10_000, publish=PublishPattern(50), limit=DispatchRate(100)), 20).drain()
    assert slow.seconds == pytest.approx(200, abs=3)
    assert not slow.measured
    growing = run(load(10, publish=PublishPattern(50), limit=TEN), 20).drain()
    assert growing.seconds is None
    assert growing.change_msgs_per_s == pytest.approx(40)


def test_bursts_are_published_when_they_should() -> None:
    pattern = PublishPattern(10, burst_msg_per_s=100, burst_start_s=2, burst_s=2, burst_every_s=5)
    trace = run(load(publish=pattern, partitions=3), 12)
    sums = np.cumsum(trace.total("published_msgs"))
    assert sums[[1, 3, 6, 11]] == pytest.approx([20, 240, 270, 520], abs=11)


def test_the_same_again() -> None:
    topics = [load(i * 100, publish=PublishPattern(i), limit=DispatchRate(i)) for i in range(1, 9)]
    once, again = (simulate(topics, Settings({"dispatchThrottlingRateInByte": 9_000}), 10) for _ in range(2))
    assert np.array_equal(once.delivered_msgs, again.delivered_msgs)
    assert np.array_equal(once.events, again.events)


def test_no_topics() -> None:
    trace = simulate([], Settings(), 5)
    assert trace.delivered_msgs.shape == (0, 5)
    assert trace.drain().seconds == 0
    assert trace.allowed().tolist() == [0] * 5


REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("period of the limit", {"limit": DispatchRate(1, period_s=0)}),
    ("messages per entry", {"messages_per_entry": 0}),
    ("bytes per entry", {"entry_bytes": 0}),
    ("partitions", {"partitions": 0}),
    ("no broker", {"brokers": ()}),
    ("publish rate", {"publish": PublishPattern(float("nan"))}),
    ("longer than the interval", {"publish": PublishPattern(1, 1, 0, 5, 2)}),
    ("backlog", {"subscriptions": (SubscriptionLoad(backlog_msgs=-1),)}),
    ("redelivered", {"subscriptions": (SubscriptionLoad(redelivered_fraction=1),)}),
    ("too many", {"partitions": 10_000, "subscriptions": (SubscriptionLoad(),) * 30}),
]


@pytest.mark.parametrize(("what", "topic"), REFUSED)
def test_impossible_loads_are_refused(what: str, topic: dict[str, Any]) -> None:
    with pytest.raises(SettingError, match=what):
        simulate([TopicLoad(NAME, **topic)], Settings(), 5)


@pytest.mark.parametrize(
    "options", [{"duration_s": 1e6}, {"duration_s": 5, "period_s": 0.05}, {"duration_s": 5, "step_ms": 30}]
)
def test_impossible_times_are_refused(options: Any) -> None:
    with pytest.raises(SettingError):
        simulate([load()], Settings(), **options)


def test_an_unknown_limiter_is_refused() -> None:
    with pytest.raises(SettingError, match="not one of Pulsar's own"):
        run(load(), dispatchRateLimiterFactoryClassName="com.example.Mine")


class Plain:
    """The same dispatch, one stream after the other, with one limiter at a time."""

    def __init__(self, topics: list[TopicLoad], config: Settings, step_ms: int) -> None:
        self.config, self.step_ms = config, step_ms
        self.streams: list[dict[str, Any]] = []
        self.limiters: dict[tuple[str, int], OneLimiter] = {}
        for at, topic in enumerate(topics):
            self.limiters["topic", at] = self.limiter(topic.limit)
            self.limiters["broker", topic.brokers[0]] = self.limiter(setting_rate(Level.BROKER, config))
            for slot, sub in enumerate(topic.subscriptions):
                number = len(self.streams)
                self.limiters["subscription", number] = self.limiter(sub.limit)
                chain = [("broker", topic.brokers[0]), ("topic", at), ("subscription", number)]
                self.streams.append(
                    {"topic": topic, "slot": slot, "sub": sub, "chain": chain, "resume": 0, "arrived": 0}
                    | {"waiting": -(-sub.backlog_msgs // topic.messages_per_entry), "in_flight": 0.0, "worked": 0.0}
                    | {"permits": sub.receiver_queue_msgs * sub.consumers, "msgs": 0, "bytes": 0, "number": number}
                )
        self.grouped = any(has_limit(t.limit) for t in topics)

    def limiter(self, rate: DispatchRate) -> OneLimiter:
        classic = not self.config.text("dispatchRateLimiterFactoryClassName")
        return OneLimiter(ClassicColumn if classic else BucketColumn, rate)

    def read(self, one: dict[str, Any], k: int, now: int) -> None:
        topic = one["topic"]
        by = topic.messages_per_entry if self.config.flag("preciseDispatcherFlowControl") else 1
        entries = min(-(-one["permits"] // by), self.config.integer("dispatcherMaxReadBatchSize"))
        room = self.config.integer("dispatcherMaxReadSizeBytes")
        for key in one["chain"]:
            left, bytes_left = self.limiters[key].available(now)
            entries = entries if left < 0 else min(entries, left)
            room = room if bytes_left < 0 else min(room, bytes_left)
            if entries == 0 or room == 0:
                one["resume"] = k + 1000 // self.step_ms
                return
        entries = min(entries, max(room // (topic.entry_bytes + 64), 1), one["waiting"])
        msgs, byte_count = entries * topic.messages_per_entry, entries * topic.entry_bytes
        one["waiting"] -= entries
        one["permits"] -= msgs
        one["in_flight"] += msgs
        one["msgs"] += msgs
        one["bytes"] += byte_count
        charge = entries if self.config.flag("dispatchThrottlingOnBatchMessageEnabled") else msgs
        for key in one["chain"]:
            self.limiters[key].consume(charge, byte_count, now)

    def step(self, k: int) -> None:
        now, at_s = k * (self.step_ms * 1_000_000 + 1), k * self.step_ms / 1000
        for one in self.streams:
            topic, sub = one["topic"], one["sub"]
            arrived = int((topic.publish.msg_per_s * at_s + 1e-6) // topic.messages_per_entry)
            one["waiting"] += arrived - one["arrived"]
            one["arrived"] = arrived
            done = min(one["in_flight"], sub.process_msg_per_s * sub.consumers * self.step_ms / 1000) if k else 0.0
            one["in_flight"] -= done
            half = max(sub.receiver_queue_msgs // 2, 1)
            times = int((one["worked"] + done + 1e-6) // half)
            one["worked"] += done - times * half
            one["permits"] += times * half

        def may(one: dict[str, Any]) -> bool:
            return bool(one["permits"] > 0 and one["waiting"] > 0 and one["resume"] <= k)

        first = k * 7919 % len(self.streams)
        ready = [one for one in self.streams[first:] + self.streams[:first] if may(one)]
        while ready:
            for one in sorted(ready, key=lambda r: r["slot"]) if self.grouped else ready:
                self.read(one, k, now)
            ready = [one for one in ready if may(one)]


limits = st.builds(
    DispatchRate, st.sampled_from([-1, 3, 40, 700]), st.sampled_from([-1, 900, 60_000]), st.integers(1, 3)
)
loads = st.lists(
    st.builds(
        TopicLoad,
        st.just(NAME),
        st.builds(PublishPattern, st.sampled_from([0.0, 5.0, 130.0])),
        st.sampled_from([1, 6]),
        st.sampled_from([100, 30_000]),
        st.lists(
            st.builds(
                SubscriptionLoad,
                st.just("s"),
                st.just(SubscriptionType.SHARED),
                st.integers(0, 2),
                st.sampled_from([10, 1000]),
                st.sampled_from([0.0, 50.0, 2000.0]),
                st.sampled_from([0, 7, 3000]),
                st.one_of(st.just(NO_LIMIT), limits),
            ),
            max_size=3,
        ).map(tuple),
        st.just(1),
        st.integers(0, 1).map(lambda broker: (broker,)),
        st.one_of(st.just(NO_LIMIT), limits),
    ),
    min_size=1,
    max_size=5,
)
configs = st.fixed_dictionaries(
    {
        "dispatchThrottlingRateInMsg": st.sampled_from([0, 5, 300]),
        "dispatchThrottlingRateInByte": st.sampled_from([0, 5_000, 400_000]),
        "preciseDispatcherFlowControl": st.booleans(),
        "dispatchThrottlingOnBatchMessageEnabled": st.booleans(),
        "dispatchRateLimiterFactoryClassName": st.sampled_from(
            ["", str(Settings()["dispatchRateLimiterFactoryClassName"])]
        ),
    }
).map(Settings)


@settings(max_examples=40, deadline=None)
@given(loads, configs)
def test_sends_what_one_stream_after_the_other_sends(topics: list[TopicLoad], config: Settings) -> None:
    trace = simulate(topics, config, 6, step_ms=100)
    plain = Plain(topics, config, 100)
    for second in range(6):
        for k in range(second * 10, second * 10 + 10):
            if plain.streams:
                plain.step(k)
        assert trace.delivered_msgs[:, : second + 1].sum(axis=1).tolist() == [s["msgs"] for s in plain.streams]
        assert trace.delivered_bytes[:, : second + 1].sum(axis=1).tolist() == [s["bytes"] for s in plain.streams]
        assert trace.waiting_msgs[:, second].tolist() == [
            s["waiting"] * s["topic"].messages_per_entry for s in plain.streams
        ]


@settings(max_examples=40, deadline=None)
@given(loads, configs)
def test_nothing_is_negative_lost_or_sent_before_it_is_there(topics: list[TopicLoad], config: Settings) -> None:
    trace = simulate(topics, config, 5)
    for name in ("published", "delivered", "waiting", "demand", "debt", "over_delivered"):
        assert (getattr(trace, f"{name}_msgs") >= 0).all()
    sent, arrived = trace.delivered_msgs.cumsum(axis=1), trace.published_msgs.cumsum(axis=1)
    assert (trace.waiting_msgs == trace.backlog_at_start_msgs[:, None] + arrived - sent).all()
    assert (trace.demand_msgs >= trace.delivered_msgs).all()
    assert (trace.over_delivered_msgs <= trace.delivered_msgs).all()


@settings(max_examples=40, deadline=None)
@given(loads, configs, st.integers(0, 4), st.integers(1, 6))
def test_a_window_gets_the_limit_and_one_read(
    topics: list[TopicLoad], config: Settings, start: int, length: int
) -> None:
    """At most what a full limiter holds, what the time earns, and one read more; whatever the level."""
    trace = simulate(topics, config, 8)
    window = slice(start, start + length)
    by_batch = config.flag("dispatchThrottlingOnBatchMessageEnabled")

    def holds(rate: DispatchRate, streams: Any, divisor: int, read: int, read_bytes: int) -> None:
        earned = length / rate.period_s + 1
        if rate.msg_per_period > 0:
            sent = trace.delivered_msgs[streams, window].sum() / divisor
            assert sent <= rate.msg_per_period * earned + read / divisor
        if rate.bytes_per_period > 0:
            assert trace.delivered_bytes[streams, window].sum() <= rate.bytes_per_period * earned + read_bytes

    for at, topic in enumerate(topics):
        divisor = topic.messages_per_entry if by_batch else 1
        read = 100 * topic.messages_per_entry
        holds(topic.limit, trace.streams(at), divisor, read, topic.entry_bytes)
        for slot, one in enumerate(topic.subscriptions):
            holds(one.limit, trace.streams(at, slot), divisor, read, topic.entry_bytes)
    if not by_batch:
        for broker in (0, 1):
            of_broker = [at for at, topic in enumerate(topics) if topic.brokers == (broker,)]
            holds(setting_rate(Level.BROKER, config), np.isin(trace.topic, of_broker), 1, 600, 30_000)


@settings(max_examples=50, deadline=None)
@given(loads, configs, st.sampled_from(["broker", "topic", "subscription", "all"]))
def test_removing_a_limit_never_lowers_delivery(topics: list[TopicLoad], config: Settings, which: str) -> None:
    """Of a stream that shares nothing with others; who shares may lose to another that was let go."""
    topics = [replace(t, subscriptions=t.subscriptions[:1]) for t in topics[:1]]
    freed = topics
    if which in {"topic", "all"}:
        freed = [replace(t, limit=NO_LIMIT) for t in freed]
    if which in {"subscription", "all"}:
        freed = [replace(t, subscriptions=tuple(replace(s, limit=NO_LIMIT) for s in t.subscriptions)) for t in freed]
    free = config
    if which in {"broker", "all"}:
        free = config.changed(dispatchThrottlingRateInMsg=0, dispatchThrottlingRateInByte=0)
    before, after = simulate(topics, config, 12), simulate(freed, free, 12)
    assert (before.delivered_msgs.cumsum(axis=1) <= after.delivered_msgs.cumsum(axis=1)).all()
