"""Automatic splitting of the modular load manager: its rules, its reasons, and what always holds."""

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
from planner.cluster.releases import REFERENCE
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot, SnapshotInfo
from planner.cluster.tables import TopicTable, make_brokers, make_bundles, make_topics
from planner.pulsar.splitting.automatic_modular import SETTINGS, decide, decide_cycle

MIB = 1024 * 1024


def cluster(
    topics: Sequence[int],
    owner: Sequence[int] = (),
    listed: TopicTable | None = None,
    bounds: Sequence[int] = (),
    **columns: Any,
) -> Snapshot:
    """One namespace with so many topics in each bundle; two brokers."""
    edges = tuple(bounds) or equal_boundaries(len(topics))
    return Snapshot(
        info=SnapshotInfo(cluster="test", load_manager=LoadManager.MODULAR, captured_at_ms=1),
        settings=Settings(),
        brokers=make_brokers(["b0:1", "b1:1"]),
        namespaces=("t/n",),
        bundles=make_bundles(
            edges[:-1],
            high=edges[1:],
            namespace=0,
            owner=list(owner) or [0] * len(topics),
            topics=topics,
            **columns,
        ),
        topics=listed or make_topics(),
    )


def listed_topics(hashes: Sequence[int]) -> TopicTable:
    """Topics in the first bundle."""
    return make_topics(hashes, bundle=0, name=[f"persistent://t/n/{h}" for h in hashes])


def codes(snapshot: Snapshot, decision: SplitDecision) -> dict[str | None, str]:
    """Code of each bundle's one reason, by bundle."""
    rows = [r for b in decision.reasons for r in b.rows(snapshot.brokers.name, snapshot.bundle_names)]
    assert len({r.bundle for r in rows}) == len(rows)
    assert all(r.text for r in rows)
    return {r.bundle: r.code.code.removeprefix("split_modular.") for r in rows}


def one(decision: SplitDecision) -> str:
    (order,) = decision.splits
    return order.reason.code.code.removeprefix("split_modular.")


class TestLimits:
    """Each limit, strictly exceeded or not."""

    @pytest.mark.parametrize(("topics", "hot"), [(1000, False), (1001, True)])
    def test_topics(self, topics: int, *, hot: bool) -> None:
        assert bool(decide(cluster([topics]), Settings()).splits) == hot

    @pytest.mark.parametrize(("consumers", "limit", "hot"), [(600, 1000, False), (601, 1000, True), (601, 0, False)])
    def test_sessions(self, consumers: int, limit: int, *, hot: bool) -> None:
        snapshot = cluster([2], producers=400, consumers=consumers)
        decision = decide(snapshot, Settings({"loadBalancerNamespaceBundleMaxSessions": limit}))
        assert bool(decision.splits) == hot

    @pytest.mark.parametrize(("rate", "hot"), [(15000.0, False), (15000.5, True)])
    def test_long_term_rate(self, rate: float, *, hot: bool) -> None:
        snapshot = cluster([2], long_term_msg_rate_in_per_s=rate, long_term_msg_rate_out_per_s=15000.0)
        assert bool(decide(snapshot, Settings()).splits) == hot

    @pytest.mark.parametrize(("bytes_per_s", "hot"), [(50 * MIB, False), (50 * MIB + 1, True)])
    def test_long_term_throughput(self, bytes_per_s: int, *, hot: bool) -> None:
        snapshot = cluster(
            [2],
            long_term_msg_throughput_in_bytes_per_s=float(bytes_per_s),
            long_term_msg_throughput_out_bytes_per_s=float(50 * MIB),
        )
        assert bool(decide(snapshot, Settings()).splits) == hot

    def test_current_and_short_term_rates_do_not_count(self) -> None:
        snapshot = cluster([2], msg_rate_in_per_s=1e9, short_term_msg_rate_in_per_s=1e9)
        assert not decide(snapshot, Settings()).splits

    def test_without_averages_rates_are_nothing(self) -> None:
        snapshot = cluster([2], long_term_msg_rate_in_per_s=1e9, has_data=False)
        assert codes(snapshot, decide(snapshot, Settings())) == {"t/n/0x00000000_0xffffffff": "below"}

    def test_first_limit_exceeded_is_the_reason(self) -> None:
        everything: dict[str, Any] = {
            "producers": 5000,
            "long_term_msg_rate_in_per_s": 1e9,
            "long_term_msg_throughput_in_bytes_per_s": 1e12,
        }
        assert one(decide(cluster([2000], **everything), Settings())) == "topics"
        assert one(decide(cluster([2], **everything), Settings())) == "sessions"
        del everything["producers"]
        assert one(decide(cluster([2], **everything), Settings())) == "msg_rate"
        del everything["long_term_msg_rate_in_per_s"]
        assert one(decide(cluster([2], **everything), Settings())) == "bandwidth"

    def test_fewer_than_two_topics_are_never_split(self) -> None:
        snapshot = cluster([1, 0], long_term_msg_rate_in_per_s=1e9)
        assert set(codes(snapshot, decide(snapshot, Settings())).values()) == {"few_topics"}

    @pytest.mark.parametrize(("mib", "limit"), [(2047, 2047.0), (2048, -2048.0), (4096, 0.0)])
    def test_bandwidth_limit_overflows(self, mib: int, limit: float) -> None:
        snapshot = cluster([2], long_term_msg_throughput_in_bytes_per_s=1.0)
        decision = decide(snapshot, Settings({"loadBalancerNamespaceBundleMaxBandwidthMbytes": mib}))
        assert bool(decision.splits) == (limit <= 0)
        assert all(order.reason.values["limit_mib_per_s"] == limit for order in decision.splits)

    def test_unloaded_and_unreported_bundles_are_not_examined(self) -> None:
        snapshot = cluster([5000, 5000, 5000], owner=[-1, 0, 1], has_stats=[True, False, True])
        decision = decide(snapshot, Settings())
        assert [order.broker for order in decision.splits] == ["b1:1"]
        assert len(codes(snapshot, decision)) == 1
        silent = replace(snapshot, brokers=replace(snapshot.brokers, has_load_data=np.array([True, False])))
        assert not decide(silent, Settings()).splits


class TestNamespaceCap:
    """`loadBalancerNamespaceMaximumBundles` counts what there is and what was chosen."""

    @pytest.mark.parametrize(("cap", "chosen"), [(128, 4), (7, 3), (5, 1), (4, 0), (0, 0)])
    def test_each_chosen_bundle_counts_one(self, cap: int, chosen: int) -> None:
        snapshot = cluster([5000] * 4)
        decision = decide(snapshot, Settings({"loadBalancerNamespaceMaximumBundles": cap}))
        assert len(decision.splits) == chosen
        kinds = list(codes(snapshot, decision).values())
        assert kinds.count("namespace_full") == 4 - chosen

    def test_counts_and_order_may_be_given(self) -> None:
        snapshot = cluster([5000] * 4)
        config = Settings({"loadBalancerNamespaceMaximumBundles": 10})
        for first in range(4):
            visit = np.roll(np.arange(4), -first)
            decision = decide(snapshot, config, visit=visit, bundle_counts={"t/n": 9})
            assert [order.bundle for order in decision.splits] == [snapshot.bundle_names[first]]
        assert len(decide(snapshot, config, bundle_counts={}).splits) == 4

    def test_the_reason_tells_the_numbers(self) -> None:
        snapshot = cluster([5000] * 4)
        decision = decide(snapshot, Settings({"loadBalancerNamespaceMaximumBundles": 5}))
        (full,) = (b for b in decision.reasons if b.code.code.endswith("namespace_full"))
        assert full.values.tolist() == [[5.0, 1.0, 5.0]] * 3


class TestChildren:
    """What the default algorithm makes of the chosen bundles."""

    def test_in_the_middle_by_default(self) -> None:
        (order,) = decide(cluster([2000]), Settings()).splits
        assert order.boundaries == (0x7FFFFFFF,)
        assert order.children == ("t/n/0x00000000_0x7fffffff", "t/n/0x7fffffff_0xffffffff")
        assert order.broker == "b0:1"

    def test_by_topics(self) -> None:
        snapshot = cluster([2000], listed=listed_topics([10, 20, 30, 50]))
        config = Settings({"defaultNamespaceBundleSplitAlgorithm": "topic_count_equally_divide"})
        (order,) = decide(snapshot, config).splits
        assert order.boundaries == (25,)

    def test_topics_not_listed(self) -> None:
        snapshot = cluster([2000])
        config = Settings({"defaultNamespaceBundleSplitAlgorithm": "topic_count_equally_divide"})
        decision = decide(snapshot, config)
        assert decision.splits[0].boundaries is None
        assert set(codes(snapshot, decision).values()) == {"topics_unknown"}

    @pytest.mark.parametrize(
        ("algorithm", "hashes", "kind"),
        [
            ("specified_positions_divide", [10, 20], "algorithm_failed"),
            ("flow_or_qps_equally_divide", [10, 20], "no_boundary"),
            ("topic_count_equally_divide", [0, 0], "refused"),
        ],
    )
    def test_chosen_but_not_cut(self, algorithm: str, hashes: list[int], kind: str) -> None:
        snapshot = cluster([2000], listed=listed_topics(hashes))
        decision = decide(snapshot, Settings({"defaultNamespaceBundleSplitAlgorithm": algorithm}))
        assert decision.splits[0].boundaries == ()
        assert decision.splits[0].children == ()
        assert set(codes(snapshot, decision).values()) == {kind}

    def test_a_single_hash_is_chosen_but_not_cut(self) -> None:
        snapshot = cluster([2, 5000, 2], bounds=(0, 5, 6, FULL_HIGH))
        decision = decide(snapshot, Settings())
        assert [order.children for order in decision.splits] == [()]
        assert codes(snapshot, decision)["t/n/0x00000005_0x00000006"] == "too_narrow"


class TestCycle:
    """The leader's switches."""

    def test_switched_off(self) -> None:
        decision = decide_cycle(cluster([5000]), Settings({"loadBalancerAutoBundleSplitEnabled": False}))
        assert not decision.splits
        assert [block.code.code for block in decision.reasons] == ["split_modular.disabled"]

    def test_a_single_broker(self) -> None:
        snapshot = cluster([5000])
        alone = replace(snapshot, brokers=replace(snapshot.brokers, has_load_data=np.array([True, False])))
        decision = decide_cycle(alone, Settings())
        assert [block.code.code for block in decision.reasons] == ["split_modular.single_broker"]

    def test_otherwise_decides(self) -> None:
        assert decide_cycle(cluster([5000]), Settings()).splits

    def test_settings_are_real(self) -> None:
        assert set(SETTINGS) <= set(REFERENCE.settings)


@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.integers(-1, 1), st.integers(0, 3), st.floats(0, 10), st.booleans()),
        min_size=1,
        max_size=40,
    ),
    st.integers(0, 60),
    st.integers(-1, 4),
)
def test_every_examined_bundle_has_one_reason(
    rows: list[tuple[int, int, int, float, bool]], cap: int, limit: int
) -> None:
    topics, owner, producers, rate, data = (list(column) for column in zip(*rows, strict=True))
    snapshot = cluster(topics, owner, producers=producers, long_term_msg_rate_in_per_s=rate, has_data=data)
    config = Settings(
        {
            "loadBalancerNamespaceBundleMaxTopics": limit,
            "loadBalancerNamespaceBundleMaxMsgRate": 5,
            "loadBalancerNamespaceMaximumBundles": cap,
        }
    )
    decision = decide(snapshot, config)
    reasons = codes(snapshot, decision)
    examined = [name for name, broker in zip(snapshot.bundle_names, owner, strict=True) if broker >= 0]
    assert set(reasons) == set(examined)
    split = {order.bundle for order in decision.splits}
    assert {name for name, kind in reasons.items() if kind in {"topics", "sessions", "msg_rate", "bandwidth"}} == split
    assert len(split) <= max(cap - len(snapshot.bundles), 0)
    # A full namespace is the only thing that keeps a bundle above a limit from being split.
    roomy = decide(snapshot, config.changed(loadBalancerNamespaceMaximumBundles=1000))
    held = {name for name, kind in reasons.items() if kind == "namespace_full"}
    assert {order.bundle for order in roomy.splits} == split | held
    assert not held or len(split) == max(cap - len(snapshot.bundles), 0)
