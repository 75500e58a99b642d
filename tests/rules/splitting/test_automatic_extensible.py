"""Automatic splitting of the extensible load manager: its rules, its reasons, and what always holds."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.cluster.decisions import SplitDecision
from planner.cluster.load_manager import LoadManager
from planner.cluster.ranges import FULL_HIGH, equal_boundaries
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot, SnapshotInfo
from planner.cluster.tables import TopicTable, make_brokers, make_bundles, make_topics
from planner.pulsar.splitting.automatic_extensible import REFUSED, AutoSplitState, decide, decide_all, visit_of

AT_ONCE = Settings({"loadBalancerNamespaceBundleSplitConditionHitCountThreshold": 0})


def cluster(
    topics: Sequence[int], owner: Sequence[int] = (), listed: TopicTable | None = None, **columns: Any
) -> Snapshot:
    """One namespace in equal bundles with so many topics each; two brokers."""
    bounds = equal_boundaries(len(topics))
    return Snapshot(
        info=SnapshotInfo(cluster="test", load_manager=LoadManager.EXTENSIBLE, captured_at_ms=1),
        settings=Settings(),
        brokers=make_brokers(["b0:1", "b1:1"]),
        namespaces=("t/n",),
        bundles=make_bundles(
            bounds[:-1],
            high=bounds[1:],
            namespace=0,
            owner=list(owner) or [0] * len(topics),
            topics=topics,
            **columns,
        ),
        topics=listed or make_topics(),
    )


def run(
    snapshot: Snapshot, config: Settings = AT_ONCE, state: AutoSplitState | None = None, splitting: Sequence[str] = ()
) -> tuple[AutoSplitState, SplitDecision]:
    return decide(snapshot, visit_of(snapshot, 0, splitting), state or AutoSplitState(), config)


def codes(snapshot: Snapshot, decision: SplitDecision) -> dict[str, str]:
    """Code of each bundle's one reason, by bundle."""
    rows = [r for b in decision.reasons for r in b.rows(snapshot.brokers.name, snapshot.bundle_names)]
    assert len({r.bundle for r in rows}) == len(rows)
    assert all(r.text for r in rows)
    return {str(r.bundle): r.code.code.removeprefix("split_extensible.") for r in rows}


def test_splits_in_the_fourth_cycle() -> None:
    snapshot, state = cluster([1001, 5]), AutoSplitState()
    for hits in (1, 2, 3):
        state, decision = run(snapshot, Settings(), state)
        assert decision.splits == ()
        assert state.hit_counts == {snapshot.bundle_names[0]: hits}
        assert codes(snapshot, decision) == dict(zip(snapshot.bundle_names, ("hit_count", "below"), strict=True))
    state, decision = run(snapshot, Settings(), state)
    assert [s.bundle for s in decision.splits] == [snapshot.bundle_names[0]]
    assert decision.splits[0].boundaries == (0x40000000,)
    assert decision.splits[0].children == ("t/n/0x00000000_0x40000000", "t/n/0x40000000_0x80000000")
    assert decision.counters == {"Success/Topics": 1}
    assert state.hit_counts == {}


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({}, None),
        ({"producers": [600], "consumers": [400]}, None),
        ({"producers": [600], "consumers": [401]}, "Sessions"),
        ({"msg_rate_in_per_s": [29_999.0], "msg_rate_out_per_s": [1.0]}, None),
        ({"msg_rate_in_per_s": [29_999.0], "msg_rate_out_per_s": [1.5]}, "MsgRate"),
        ({"msg_throughput_out_bytes_per_s": [100 * 1024 * 1024.0]}, None),
        ({"msg_throughput_out_bytes_per_s": [100 * 1024 * 1024.0 + 1]}, "Bandwidth"),
        ({"msg_throughput_out_bytes_per_s": [1e9], "producers": [1001], "msg_rate_in_per_s": [1e9]}, "Sessions"),
    ],
)
def test_limits_are_strict_and_the_first_exceeded_is_named(columns: dict[str, Any], reason: str | None) -> None:
    _, decision = run(cluster([1000], **columns))
    assert decision.counters == ({f"Success/{reason}": 1} if reason else {})


def test_sessions_are_not_limited_by_zero() -> None:
    snapshot = cluster([5], producers=[5000])
    _, decision = run(snapshot, AT_ONCE.changed(loadBalancerNamespaceBundleMaxSessions=0))
    assert decision.splits == ()


@pytest.mark.parametrize(("mbytes", "splits"), [(2047, 0), (2048, 1), (4096, 1)])
def test_bandwidth_limit_overflows_as_a_32_bit_integer(mbytes: int, splits: int) -> None:
    config = AT_ONCE.changed(loadBalancerNamespaceBundleMaxBandwidthMbytes=mbytes)
    _, decision = run(cluster([2], msg_throughput_in_bytes_per_s=[1.0]), config)
    assert len(decision.splits) == splits


def test_cycle_within_the_limits_clears_the_count_and_a_skipped_one_keeps_it() -> None:
    name = cluster([5]).bundle_names[0]
    state = AutoSplitState({name: 2})
    after, decision = run(cluster([5]), Settings(), state)
    assert after.hit_counts == {}
    after, decision = run(cluster([1]), Settings(), state)
    assert after.hit_counts == {name: 2}
    assert codes(cluster([1]), decision) == {name: "few_topics"}


def test_bundle_of_another_broker_is_forgotten() -> None:
    snapshot = cluster([1001, 1001], owner=[1, 0])
    after, _ = run(snapshot, Settings(), AutoSplitState({snapshot.bundle_names[0]: 2}))
    assert after.hit_counts == {snapshot.bundle_names[1]: 1}


def test_bundle_with_statistics_but_without_ownership_is_left_alone() -> None:
    snapshot = cluster([1001])
    name = snapshot.bundle_names[0]
    visit = replace(visit_of(snapshot, 0), owned=np.array([False]))
    after, decision = decide(snapshot, visit, AutoSplitState({name: 2}), AT_ONCE)
    assert after.hit_counts == {name: 2}
    assert codes(snapshot, decision) == {name: "not_owned"}


def test_namespace_limit_counts_what_was_chosen_in_the_cycle() -> None:
    snapshot = cluster([1001] * 4)
    after, decision = run(snapshot, AT_ONCE.changed(loadBalancerNamespaceMaximumBundles=6))
    assert len(decision.splits) == 2
    assert sorted(codes(snapshot, decision).values()) == ["namespace_full"] * 2 + ["topics"] * 2
    assert set(after.hit_counts.values()) == {1}


def test_full_cycle_leaves_the_rest_as_it_was() -> None:
    snapshot = cluster([1001] * 5 + [5])
    quiet = snapshot.bundle_names[5]
    before = AutoSplitState(dict.fromkeys(snapshot.bundle_names, 7))
    after, decision = run(snapshot, AT_ONCE.changed(loadBalancerMaxNumberOfBundlesToSplitPerCycle=2), before)
    found = codes(snapshot, decision)
    assert sorted(found.values()).count("topics") == len(decision.splits) == 2
    for name, code in found.items():
        assert after.hit_counts.get(name) == {"topics": None, "below": None, "cycle_full": 7}[code]
    assert found[quiet] in {"below", "cycle_full"}


@pytest.mark.parametrize(
    ("splitting", "held"),
    [
        ("t/n/0x00000000_0x10000000", True),
        ("t/n/0x70000000_0x80000000", True),
        ("t/n1/0x00000000_0x10000000", True),
        ("t/n/0x10000000_0x20000000", False),
        ("t/m/0x00000000_0x80000000", False),
        ("t/n/0x80000000_0xffffffff", False),
    ],
)
def test_bundles_being_split_are_compared_by_the_beginning_of_the_namespace(splitting: str, held: bool) -> None:  # noqa: FBT001
    snapshot = cluster([1001, 5])
    _, decision = run(snapshot, splitting=[splitting])
    assert codes(snapshot, decision)[snapshot.bundle_names[0]] == ("splitting" if held else "topics")


def topics(*hashes: int, rate: float = 0.0) -> TopicTable:
    return make_topics(
        hashes, name=[f"persistent://t/n/x{i}" for i in range(len(hashes))], bundle=0, msg_rate_in_per_s=rate
    )


def test_algorithm_must_give_one_boundary() -> None:
    config = AT_ONCE.changed(
        defaultNamespaceBundleSplitAlgorithm="flow_or_qps_equally_divide", loadBalancerNamespaceBundleMaxMsgRate=15
    )
    two = cluster([2], listed=topics(10, 20, rate=10.0), msg_rate_in_per_s=[20.0])
    after, decision = run(two, config)
    assert decision.splits[0].boundaries == (16,)
    three = cluster([3], listed=topics(10, 20, 30, rate=10.0), msg_rate_in_per_s=[30.0])
    after, decision = run(three, config)
    assert codes(three, decision) == {three.bundle_names[0]: "no_boundary"}
    assert decision.counters == {"Failure/Unknown": 1}
    assert after.hit_counts == {three.bundle_names[0]: 1}


def test_specified_positions_by_default_fails_always() -> None:
    snapshot = cluster([1001], listed=topics(10, 20))
    _, decision = run(snapshot, AT_ONCE.changed(defaultNamespaceBundleSplitAlgorithm="specified_positions_divide"))
    assert codes(snapshot, decision) == {snapshot.bundle_names[0]: "algorithm_failed"}
    assert decision.counters == {"Failure/Unknown": 1}


def test_empty_child_fails_the_whole_cycle() -> None:
    """Pulsar raises while it makes the children, so that bundles chosen before are lost as well."""
    config = AT_ONCE.changed(defaultNamespaceBundleSplitAlgorithm="topic_count_equally_divide")
    snapshot = cluster([1001], listed=topics(0, 0))
    after, decision = run(snapshot, config)
    assert decision.splits == ()
    assert decision.counters == {}
    assert codes(snapshot, decision) == {snapshot.bundle_names[0]: "fails_cycle"}
    assert after.hit_counts == {snapshot.bundle_names[0]: 1}


def test_unlisted_topics_leave_open_where_a_bundle_is_cut() -> None:
    snapshot = cluster([1001])
    _, decision = run(snapshot, AT_ONCE.changed(defaultNamespaceBundleSplitAlgorithm="topic_count_equally_divide"))
    assert codes(snapshot, decision) == {snapshot.bundle_names[0]: "topics_unknown"}
    assert decision.counters == {}


def test_range_of_one_hash_is_a_failure() -> None:
    snapshot = cluster([1001])
    narrow = replace(snapshot.bundles, low=np.array([FULL_HIGH - 1]), high=np.array([FULL_HIGH]))
    snapshot = replace(snapshot, bundles=narrow)
    _, decision = run(snapshot)
    assert decision.counters == {"Failure/Unknown": 1}
    assert codes(snapshot, decision) == {snapshot.bundle_names[0]: "too_narrow"}


@st.composite
def clusters(draw: st.DrawFn) -> Snapshot:
    size = draw(st.integers(1, 12))

    def column(*values: float) -> list[float]:
        return [draw(st.sampled_from(values)) for _ in range(size)]

    return cluster(
        [int(x) for x in column(0, 1, 2, 1000, 1001)],
        [int(x) for x in column(-1, 0, 0, 1)],
        producers=column(0, 1001),
        msg_rate_in_per_s=column(0.0, 30_001.0),
        has_stats=[bool(x) for x in column(1, 1, 0)],
    )


CONFIGS = st.builds(
    lambda **values: Settings(values),
    loadBalancerNamespaceBundleSplitConditionHitCountThreshold=st.sampled_from([0, 1, 2]),
    loadBalancerMaxNumberOfBundlesToSplitPerCycle=st.sampled_from([1, 2, 10]),
    loadBalancerNamespaceMaximumBundles=st.sampled_from([4, 10, 128]),
)


@given(st.lists(clusters(), min_size=1, max_size=4), CONFIGS)
def test_what_always_holds(moments: list[Snapshot], config: Settings) -> None:
    states: dict[str, AutoSplitState] = {}
    threshold = config.integer("loadBalancerNamespaceBundleSplitConditionHitCountThreshold")
    cap = config.integer("loadBalancerMaxNumberOfBundlesToSplitPerCycle")
    for snapshot in moments:
        before = states
        states, decision = decide_all(snapshot, before, config)
        same, quick = decide_all(snapshot, before, config, explain=False)
        assert (states, decision.splits, decision.counters) == (same, quick.splits, quick.counters)
        refused = (
            [(b.code, b.bundles.tolist()) for b in one.reasons if b.code in REFUSED] for one in (decision, quick)
        )
        assert next(refused) == next(refused)
        table = snapshot.bundles
        considered = {
            name
            for name, owner, stats in zip(
                snapshot.bundle_names, table.owner.tolist(), table.has_stats.tolist(), strict=True
            )
            if owner >= 0 and stats
        }
        assert set(codes(snapshot, decision)) == considered
        for broker in snapshot.brokers.name:
            assert sum(order.broker == broker for order in decision.splits) <= cap
        for order in decision.splits:
            assert order.broker == snapshot.brokers.name[table.owner[snapshot.bundle_position[order.bundle]]]
            assert order.bundle not in states.get(order.broker, AutoSplitState()).hit_counts
            assert before.get(order.broker, AutoSplitState()).hit_counts.get(order.bundle, 0) + 1 > threshold


@given(clusters(), CONFIGS)
def test_all_brokers_together_decide_as_each_alone(snapshot: Snapshot, config: Settings) -> None:
    states, together = decide_all(snapshot, {}, config)
    alone = [decide(snapshot, visit_of(snapshot, broker), AutoSplitState(), config) for broker in (0, 1)]
    assert sorted(s.bundle for s in together.splits) == sorted(s.bundle for _, d in alone for s in d.splits)
    for name, (state, _) in zip(snapshot.brokers.name, alone, strict=True):
        assert states.get(name, AutoSplitState()).hit_counts == state.hit_counts
