"""The documentation's examples with their real numbers, and what a snapshot knows about a topic."""

import pyarrow as pa
import pytest

from planner.cluster.errors import SettingError
from planner.cluster.load_manager import LoadManager
from planner.cluster.settings import Settings
from planner.cluster.snapshot import DispatchRate, DispatchRatePolicy, Policies, Snapshot, SnapshotInfo
from planner.cluster.tables import make_brokers, make_bundles, make_topics
from planner.pulsar.throttling.precedence import NO_LIMIT
from planner.simulate.dispatch.documented import DOCUMENTED, play
from planner.simulate.dispatch.load import PublishPattern, SubscriptionLoad, SubscriptionType, TopicLoad
from planner.simulate.dispatch.prefill import topic_traffic, with_limits

TOPIC = "persistent://t/n/a"


def test_documented_cases_come_out_with_their_real_numbers() -> None:
    delivered = {
        case.title: [int(n) for n in trace.total("delivered_msgs")]
        for case, trace in zip(DOCUMENTED, play(), strict=True)
    }
    assert delivered["30 of 10 delivered"] == [30, 0, 0, 30, 0, 0]
    assert delivered["10 per second, 6 messages per entry"] == [60, 0, 0, 0, 0, 0]
    precise = delivered["the same example with preciseDispatcherFlowControl"]
    assert precise == [60, 0, 0, 0, 0, 0], "2 entries of 6 would be 12"
    assert delivered["the same example with dispatchThrottlingOnBatchMessageEnabled"] == [60] * 6
    assert delivered["with both settings"] == [60] * 6
    eleven = play(DOCUMENTED[:1], 2)[0]
    assert eleven.total("delivered_msgs")[0] == 11
    assert eleven.allowed()[1] == 9


def snapshot() -> Snapshot:
    names = [f"{TOPIC}-partition-0", f"{TOPIC}-partition-2", "persistent://t/n/ab", "persistent://t/n/b"]
    topics = make_topics(
        hash=[1, 2, 3, 4],
        name=pa.array(names, type=pa.large_string()),
        bundle=[0, 1, 0, -1],
        msg_rate_in_per_s=[10.0, 30.0, 7.0, 0.0],
        msg_throughput_in_bytes_per_s=[1000.0, 3000.0, 7.0, 0.0],
        msg_rate_out_per_s=[30.0, 90.0, 7.0, 0.0],
        msg_throughput_out_bytes_per_s=[3000.0, 9000.0, 7.0, 0.0],
        consumers=[6, 7, 1, 0],
    )
    bundles = make_bundles([0, 2**31], high=[2**31, 2**32 - 1], namespace=0, owner=[1, 0])
    info = SnapshotInfo("c", LoadManager.MODULAR, 1)
    return Snapshot(info, Settings(), make_brokers(["b1:1", "b2:1"]), ("t/n",), bundles, topics)


@pytest.mark.parametrize("name", [TOPIC, f"{TOPIC}-partition-1"])
def test_partitions_are_put_together(name: str) -> None:
    traffic = topic_traffic(snapshot(), name)
    assert (traffic.name, traffic.listed, traffic.partitions) == (TOPIC, 2, 3)
    assert traffic.brokers == (1, 0, 0)
    assert (traffic.msg_rate_in_per_s, traffic.msg_rate_out_per_s) == (40, 120)
    assert (traffic.message_bytes, traffic.fan_out, traffic.consumers) == (100, 3, 3)


def test_topics_without_traffic_or_unknown() -> None:
    idle = topic_traffic(snapshot(), "persistent://t/n/b")
    assert (idle.listed, idle.partitions, idle.message_bytes, idle.fan_out) == (1, 1, 1024, 1)
    assert topic_traffic(snapshot(), "persistent://x/y/z").listed == 0
    with pytest.raises(SettingError):
        topic_traffic(snapshot(), "z")


def test_limits_in_force_are_put_in() -> None:
    rates = (
        DispatchRatePolicy("subscription", TOPIC, DispatchRate(5), "fast"),
        DispatchRatePolicy("replicator", "t/n", DispatchRate(7)),
    )
    subscriptions = (
        SubscriptionLoad("fast"),
        SubscriptionLoad("slow", limit=DispatchRate(1)),
        SubscriptionLoad("remote", SubscriptionType.REPLICATOR),
    )
    config = Settings({"dispatchThrottlingRatePerTopicInByte": 9})
    policies = Policies(dispatch_rates=rates)
    load = with_limits(TopicLoad(TOPIC, PublishPattern(1), 2, 300, subscriptions, 2, (0, 1)), policies, config)
    assert load.limit == DispatchRate(0, 9)
    assert [s.limit for s in load.subscriptions] == [DispatchRate(5), NO_LIMIT, DispatchRate(7)]
    assert (load.partitions, load.messages_per_entry, load.entry_bytes, load.persistent) == (2, 2, 300, True)
