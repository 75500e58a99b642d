"""What topics may dispatch, and what that adds up to on their brokers."""

import json
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from planner.cluster.load_manager import LoadManager
from planner.cluster.settings import Settings
from planner.cluster.snapshot import DispatchRate, DispatchRatePolicy, Policies, Snapshot, SnapshotInfo
from planner.cluster.tables import make_brokers, make_bundles, make_topics
from planner.pulsar.throttling.precedence import Level, limit_chain
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.dispatch.caps import broker_dispatch, dispatch_caps, throttles_consumers
from planner.simulate.generate import generate

NAMES = (
    "persistent://t/n/a-partition-0",
    "persistent://t/n/a-partition-1",
    "persistent://t/n/b",
    "non-persistent://t/n/c",
    "persistent://t/other/d",
    "persistent://t/n/unplaced",
)


def policy(kind: Any, target: str, *rate: Any, **more: Any) -> DispatchRatePolicy:
    return DispatchRatePolicy(kind, target, DispatchRate(*rate), **more)


def cluster(*policies: DispatchRatePolicy, **config: Any) -> Snapshot:
    bundles = make_bundles([0, 2**31, 0], high=[2**31, 2**32 - 1, 2**32 - 1], namespace=[0, 0, 1], owner=[0, 1, 0])
    topics = make_topics(
        hash=[1, 2**31 + 1, 2, 3, 4, 5],
        name=pa.array(NAMES, type=pa.large_string()),
        bundle=[0, 1, 0, 0, 2, -1],
        msg_rate_in_per_s=[50.9, 50.9, 10.0, 10.0, 0.0, 0.0],
        msg_throughput_in_bytes_per_s=[5090.0, 5090.0, 2000.0, 1000.0, 0.0, 0.0],
        msg_rate_out_per_s=[100.0, 20.0, 0.0, 10.0, 4.0, 0.0],
        msg_throughput_out_bytes_per_s=[10_000.0, 2000.0, 0.0, 1000.0, 800.0, 0.0],
    )
    return Snapshot(
        SnapshotInfo("c", LoadManager.MODULAR, 1),
        Settings(config),
        make_brokers(["b1:1", "b2:1"], bandwidth_out_limit_kbit_per_s=[8000.0, 0.0]),
        ("t/n", "t/other"),
        bundles,
        topics,
        Policies(dispatch_rates=policies),
    )


def test_every_partition_has_the_quota() -> None:
    snapshot = cluster(policy("dispatch", "persistent://t/n/a", 40), policy("dispatch", "t/n", 10, 500))
    caps = dispatch_caps(snapshot)
    assert caps.msg_per_s.tolist() == [40, 40, 10, np.inf, np.inf, 10]
    assert caps.bytes_per_s.tolist() == [np.inf, np.inf, 500, np.inf, np.inf, 500]
    assert caps.message_bytes[:3].tolist() == [100, 100, 200]
    assert caps.throughput_bytes_per_s[:3].tolist() == [4000, 4000, 500]
    assert caps.limited.tolist() == [True, True, True, False, False, True]


def test_subscriptions_multiply_their_limit() -> None:
    snapshot = cluster(policy("subscription", "t/n", 10), dispatchThrottlingRatePerTopicInMsg=25)
    assert dispatch_caps(snapshot).msg_per_s.tolist() == [10, 10, 10, np.inf, 25, 10]
    assert dispatch_caps(snapshot, subscriptions=3).msg_per_s[0] == 25
    each = np.array([1, 2, 3, 1, 1, 0])
    assert dispatch_caps(snapshot, subscriptions=each).msg_per_s.tolist() == [10, 20, 25, np.inf, 25, 0]


def test_periods_relative_limits_and_batches() -> None:
    relative = cluster(policy("dispatch", "t/n", 40, -1, 5, True))
    assert dispatch_caps(relative).msg_per_s[0] == 90 / 5
    config = Settings({"dispatchThrottlingOnBatchMessageEnabled": True})
    assert dispatch_caps(relative, config, messages_per_entry=6.0).msg_per_s[0] == 6 * 90 / 5
    assert dispatch_caps(relative, messages_per_entry=6.0).msg_per_s[0] == 90 / 5


def test_the_switch_that_switches_everything_off() -> None:
    config = Settings({"dispatchThrottlingOnNonBacklogConsumerEnabled": False, "dispatchThrottlingRateInMsg": 1})
    snapshot = cluster(policy("dispatch", "t/n", 40))
    assert not throttles_consumers(config)
    assert not dispatch_caps(snapshot, config).limited.any()
    assert np.isinf(broker_dispatch(snapshot, dispatch_caps(snapshot, config), config).shared_msg_per_s).all()


def test_what_adds_up_on_a_broker() -> None:
    snapshot = cluster(policy("dispatch", "t/n", 40), dispatchThrottlingRateInByte=9000)
    total = broker_dispatch(snapshot, dispatch_caps(snapshot))
    assert total.topics.tolist() == [4, 1]
    assert total.limited_topics.tolist() == [2, 1]
    assert total.limited_bytes_per_s.tolist() == [40 * 100 + 40 * 200, 4000]
    assert total.limited_now_bytes_per_s.tolist() == [10_000, 2000]
    assert total.unlimited_now_bytes_per_s.tolist() == [1800, 0]
    assert total.bandwidth_bytes_per_s[0] == 1_000_000
    assert np.isnan(total.bandwidth_bytes_per_s[1])
    assert total.shared_bytes_per_s.tolist() == [9000, 9000]


def test_a_cluster_without_topics() -> None:
    snapshot = generate(ClusterSpec(brokers=2, bundles=4, topics=0), 1)
    caps = dispatch_caps(snapshot)
    assert caps.msg_per_s.shape == (0,)
    assert broker_dispatch(snapshot, caps).topics.tolist() == [0, 0]


targets = st.sampled_from([*NAMES[2:], "persistent://t/n/a", "t/n", "t/other"])
stated = st.builds(
    DispatchRatePolicy,
    st.sampled_from(["dispatch", "subscription", "replicator"]),
    targets,
    st.builds(DispatchRate, st.integers(-1, 9), st.integers(-1, 9), st.integers(1, 3)),
    st.just(""),
    st.booleans(),
)


@given(st.lists(stated, max_size=6), st.integers(0, 5))
def test_caps_are_those_of_the_chains(policies: list[DispatchRatePolicy], setting: int) -> None:
    snapshot = cluster(*policies, dispatchThrottlingRatePerSubscriptionInMsg=setting)
    caps = dispatch_caps(snapshot)
    for at, name in enumerate(NAMES):
        chains = [
            limit_chain(level, name, snapshot.policies, snapshot.settings).rate
            for level in (Level.TOPIC, Level.SUBSCRIPTION)
        ]
        msgs = [r.msg_per_period / r.period_s for r in chains if r.msg_per_period > 0]
        byte_counts = [r.bytes_per_period / r.period_s for r in chains if r.bytes_per_period > 0]
        assert caps.msg_per_s[at] == min(msgs, default=np.inf), json.dumps([repr(p) for p in policies])
        assert caps.bytes_per_s[at] == min(byte_counts, default=np.inf)
