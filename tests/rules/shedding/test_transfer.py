"""TransferShedder: the documented examples, its reasons, and what always holds."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.cluster.decisions import Reason, SheddingDecision
from planner.cluster.load_manager import LoadManager
from planner.cluster.memory import SheddingMemory
from planner.cluster.ranges import equal_boundaries
from planner.cluster.settings import Settings
from planner.cluster.snapshot import IsolationPolicy, Policies, Snapshot, SnapshotInfo
from planner.cluster.tables import make_brokers, make_bundles, make_topics
from planner.pulsar.shedding.transfer import SHEDDER, TransferShedder, TransferState

NOW = 1_700_000_000_000
MB = 1e6


def cluster(brokers: Sequence[tuple[float, Sequence[float]]], **columns: Any) -> Snapshot:
    """Brokers `b1`, `b2`... with a load and the throughput in MB/s of their top bundles, lightest first."""
    owner = [position for position, (_, bundles) in enumerate(brokers) for _ in bundles]
    rank = [place for _, bundles in brokers for place in range(len(bundles))]
    traffic = [value * MB for _, bundles in brokers for value in bundles]
    total = [sum(bundles) * MB for _, bundles in brokers]
    bounds = equal_boundaries(max(len(owner), 1))
    return Snapshot(
        info=SnapshotInfo(cluster="test", load_manager=LoadManager.EXTENSIBLE, captured_at_ms=NOW),
        settings=Settings(),
        brokers=make_brokers(
            [f"b{i + 1}:8080" for i in range(len(brokers))],
            **{
                "msg_throughput_out_bytes_per_s": total,
                "weighted_max_ema": [load for load, _ in brokers],
                "msg_throughput_ema_bytes_per_s": total,
                "updated_at_ms": [NOW - 5000] * len(brokers),
                **columns,
            },
        ),
        namespaces=("t/n",),
        bundles=make_bundles(
            bounds[: len(owner)],
            namespace=[0] * len(owner),
            high=bounds[1 : len(owner) + 1],
            owner=owner,
            top_rank=rank,
            msg_throughput_out_bytes_per_s=traffic,
            msg_rate_out_per_s=[1.0] * len(owner),
        ),
        topics=make_topics(),
    )


EAGER = Settings({"loadBalancerSheddingConditionHitCountThreshold": 0})


def decide(
    snapshot: Snapshot, config: Settings = EAGER, shedder: TransferShedder = SHEDDER, **memory: Any
) -> tuple[SheddingMemory[TransferState], SheddingDecision]:
    state = memory.pop("state", shedder.initial())
    return shedder.decide(snapshot, SheddingMemory(state, **memory), config)


def moved(decision: SheddingDecision) -> list[tuple[str, str | None, int]]:
    return [
        (m.source[:2], m.destination and m.destination[:2], round(m.throughput_bytes_per_s / MB))
        for m in decision.moves
    ]


def reasons(snapshot: Snapshot, decision: SheddingDecision) -> list[Reason]:
    return [r for b in decision.reasons for r in b.rows(snapshot.brokers.name, snapshot.bundle_names)]


def codes_of(snapshot: Snapshot, decision: SheddingDecision, broker: str) -> set[str]:
    return {r.code.code for r in reasons(snapshot, decision) if r.broker == broker and r.bundle is None}


def bundle_codes(snapshot: Snapshot, decision: SheddingDecision) -> list[str]:
    return [r.code.code for r in reasons(snapshot, decision) if r.bundle is not None]


def test_first_example_sheds_in_the_fourth_cycle_only() -> None:
    snapshot = cluster([(0.02, (1, 2)), (0.40, (10, 20)), (0.90, (30, 30, 30))])
    memory = SheddingMemory(SHEDDER.initial())
    for cycle in (1, 2, 3):
        memory, decision = SHEDDER.decide(snapshot, memory, Settings())
        assert decision.moves == ()
        assert decision.counters == {"Skip/HitCount": 1}
        assert memory.state.hit_count == cycle
        assert codes_of(snapshot, decision, "b2:8080") == {"transfer.hit_count"}
    memory, decision = SHEDDER.decide(snapshot, memory, Settings())
    assert moved(decision) == [("b3", "b1", 30)]
    assert decision.counters == {"Success/Overloaded": 1}
    assert memory.state.hit_count == 0
    assert memory.state.load_avg == pytest.approx(0.44)
    assert memory.state.load_std == pytest.approx(0.360, abs=5e-4)
    assert decision.measures["std_after"] == pytest.approx(0.118, abs=5e-4)
    assert "transfer.bundle_too_big" in bundle_codes(snapshot, decision)


def test_second_example_moves_on_for_an_underloaded_broker() -> None:
    snapshot = cluster([(0.02, (1, 1)), (0.04, (2, 2)), (0.48, (20, 30)), (0.90, (30, 60))])
    _, decision = decide(snapshot)
    assert moved(decision) == [("b4", "b1", 30), ("b3", "b2", 20)]
    assert decision.counters == {"Success/Overloaded": 1, "Success/Underloaded": 1}
    assert decision.moves[1].reason.code.code == "transfer.underloaded"
    assert decision.moves[1].reason.other == "b2:8080"


def test_third_example_swaps() -> None:
    snapshot = cluster([(0.2, (4, 8, 8)), (0.8, (38, 42))])
    _, decision = decide(snapshot)
    assert sorted(moved(decision)) == [("b1", "b2", 4), ("b1", "b2", 8), ("b2", "b1", 38)]
    assert "transfer.swap_not_needed" in bundle_codes(snapshot, decision)


def test_third_example_has_no_swap_without_transfer() -> None:
    snapshot = cluster([(0.2, (4, 8, 8)), (0.8, (38, 42))])
    _, decision = decide(snapshot, EAGER.changed(loadBalancerTransferEnabled=False))
    assert decision.moves == ()
    assert decision.counters == {"Skip/NoBundles": 1}
    assert "transfer.bundle_no_swap" in bundle_codes(snapshot, decision)


def test_fourth_example_keeps_the_last_bundle() -> None:
    snapshot = cluster([(0.1, (5, 5)), (0.8, (10, 70))])
    _, decision = decide(snapshot)
    assert moved(decision) == [("b2", "b1", 10)]
    assert "transfer.bundle_last" in bundle_codes(snapshot, decision)


@pytest.mark.parametrize("debug", [False, True])
def test_fifth_example_depends_on_debug_mode(debug: bool) -> None:  # noqa: FBT001 - a case of the test
    snapshot = cluster(
        [
            (0.1, (3, 8, 16, 28)),
            (0.21, (3, 12, 14, 15)),
            (0.23, (4, 17, 21)),
            (0.75, (2, 19, 22, 39, 39)),
            (0.99, (14, 21, 24, 28, 36)),
        ]
    )
    _, decision = decide(snapshot, EAGER.changed(loadBalancerDebugModeEnabled=debug))
    pair = [(s, v) for s, d, v in moved(decision) if {s, d} == {"b5", "b1"}]
    out = [v for s, v in pair if s == "b5"]
    back = [v for s, v in pair if s == "b1"]
    assert out == ([14, 21, 24, 28] if debug else [14, 21, 24])
    assert back == ([3, 8, 16, 28] if debug else [3, 8, 16])
    assert any("loadBalancerDebugModeEnabled" in note for note in decision.notes) is debug


def test_transfer_disabled_names_no_destination_but_uses_up_the_low_broker() -> None:
    snapshot = cluster([(0.1, (5, 5)), (0.12, (5, 5)), (0.8, (10, 70)), (0.9, (20, 70))])
    _, decision = decide(snapshot, EAGER.changed(loadBalancerTransferEnabled=False))
    assert moved(decision) == [("b4", None, 20), ("b3", None, 10)]
    assert codes_of(snapshot, decision, "b1:8080") == {"transfer.counterpart"}
    assert codes_of(snapshot, decision, "b2:8080") == {"transfer.counterpart"}


def test_balanced_cluster_resets_the_hit_count() -> None:
    snapshot = cluster([(0.5, (5, 5)), (0.52, (5, 5))])
    memory, decision = decide(snapshot, state=TransferState(hit_count=7))
    assert memory.state.hit_count == 0
    assert decision.counters == {"Skip/HitCount": 1}
    assert codes_of(snapshot, decision, "b1:8080") == {"transfer.balanced"}


def test_cool_down_stops_the_cycle_and_keeps_the_hit_count() -> None:
    snapshot = cluster([(0.1, (5, 5)), (0.9, (10, 70))])
    unloaded = {"b2:8080": NOW - 5000 - 179_999}
    memory, decision = decide(snapshot, state=TransferState(5, 0.3, 0.2), recently_unloaded_brokers=unloaded)
    assert decision.moves == ()
    assert decision.counters == {"Skip/CoolDown": 1}
    assert memory.state == TransferState(5, 0.3, 0.2)
    assert memory.recently_unloaded_brokers == unloaded
    assert codes_of(snapshot, decision, "b2:8080") == {"transfer.cooling_down"}
    assert codes_of(snapshot, decision, "b1:8080") == {"transfer.cycle_cooling_down"}


def test_delay_equal_to_the_setting_is_over() -> None:
    snapshot = cluster([(0.1, (5, 5)), (0.9, (10, 70))])
    memory, decision = decide(snapshot, recently_unloaded_brokers={"b2:8080": NOW - 5000 - 180_000})
    assert moved(decision) == [("b2", "b1", 10)]
    assert memory.recently_unloaded_brokers == {}


def test_outdated_broker_is_left_out_of_the_average_but_can_give() -> None:
    snapshot = cluster([(0.1, (5, 5)), (0.5, (5, 5)), (0.9, (10, 70))], updated_at_ms=[NOW, NOW, NOW - 1_800_001])
    memory, decision = decide(snapshot, EAGER.changed(loadBalancerBrokerLoadTargetStd=0.1))
    assert memory.state.load_avg == pytest.approx(0.3)
    assert moved(decision)[0] == ("b3", "b1", 10)
    assert codes_of(snapshot, decision, "b3:8080") == {"transfer.outdated", "transfer.donor"}


@pytest.mark.parametrize(
    ("columns", "skip"),
    [
        ({"updated_at_ms": [NOW - 1_800_001] * 2}, "OutDatedData"),
        ({"has_load_data": [False, False], "registered": [False, False]}, "NoBrokers"),
        ({"has_load_data": [True, False]}, "NoLoadData"),
    ],
)
def test_cycle_is_skipped(columns: Mapping[str, Any], skip: str) -> None:
    snapshot = cluster([(0.1, (5, 5)), (0.9, (10, 70))], **columns)
    memory, decision = decide(snapshot, state=TransferState(4, 0.25, 0.125))
    assert decision.moves == ()
    assert decision.counters == {f"Skip/{skip}": 1}
    assert memory.state == TransferState(4, 0.25, 0.125)
    assert all(codes_of(snapshot, decision, name) for name in snapshot.brokers.name)


def test_broker_that_left_without_data_does_not_matter() -> None:
    snapshot = cluster(
        [(0.1, (5, 5)), (0.9, (10, 70)), (0.0, ())], has_load_data=[True, True, False], registered=[True, True, False]
    )
    _, decision = decide(snapshot)
    assert moved(decision) == [("b2", "b1", 10)]
    assert codes_of(snapshot, decision, "b3:8080") == {"transfer.unknown"}
    assert math.isnan(decision.scores[2])


def test_excluded_namespace_and_recent_bundle_stay() -> None:
    snapshot = cluster([(0.1, (5, 5)), (0.9, (10, 20, 50))])
    recent = {snapshot.bundle_names[2]: NOW - 60_000}
    _, decision = decide(snapshot, recently_unloaded_bundles=recent)
    assert moved(decision) == [("b2", "b1", 20)]
    assert "transfer.bundle_recent" in bundle_codes(snapshot, decision)
    _, decision = decide(snapshot, EAGER.changed(loadBalancerSheddingExcludedNamespaces="t/n"))
    assert decision.moves == ()
    assert decision.counters == {"Skip/NoBundles": 1}
    assert set(bundle_codes(snapshot, decision)) == {"transfer.bundle_excluded"}


@pytest.mark.parametrize(
    "policies",
    [
        Policies(isolation=(IsolationPolicy("p", ("t/.*",), ("b.*",)),)),
        Policies(anti_affinity_group={"t/n": "group"}),
    ],
)
def test_policies_hold_bundles_back_unless_allowed(policies: Policies) -> None:
    snapshot = replace(cluster([(0.1, (5, 5)), (0.9, (10, 70))]), policies=policies)
    _, decision = decide(snapshot)
    assert decision.moves == ()
    assert set(bundle_codes(snapshot, decision)) == {"transfer.bundle_policy"}
    allowed = EAGER.changed(loadBalancerSheddingBundlesWithPoliciesEnabled=True)
    _, decision = decide(snapshot, allowed, TransferShedder(lambda *_: lambda _: frozenset({"b1:8080", "b2:8080"})))
    assert moved(decision) == [("b2", "b1", 10)]


@pytest.mark.parametrize("transfer", [True, False])
def test_placement_filters_must_leave_the_paired_broker(transfer: bool) -> None:  # noqa: FBT001 - a case of the test
    """Also without transfers, where the broker is not even the destination: measured with the official class."""
    snapshot = cluster([(0.1, (5, 5)), (0.11, (5, 5)), (0.9, (10, 70))])
    config = EAGER.changed(loadBalancerTransferEnabled=transfer)
    _, decision = decide(snapshot, config, TransferShedder(lambda *_: lambda _: frozenset({"b2:8080", "b3:8080"})))
    assert decision.moves == ()
    assert "transfer.bundle_filtered" in bundle_codes(snapshot, decision)


def test_pulsar_s_own_filters_are_asked() -> None:
    snapshot = cluster([(0.1, (5, 5)), (0.9, (10, 70))], topics=[7, 3])
    full = EAGER.changed(loadBalancerBrokerMaxTopics=7)
    _, decision = decide(snapshot, full)
    assert decision.moves == ()
    assert set(bundle_codes(snapshot, decision)) == {"transfer.bundle_filtered"}
    _, decision = decide(snapshot, full.changed(preferLaterVersions=True))
    assert set(bundle_codes(snapshot, decision)) == {"transfer.bundle_filter_failed"}
    isolated = replace(snapshot, policies=Policies(isolation=(IsolationPolicy("p", ("t/n",), ("b1",), ("b2",)),)))
    allowed = EAGER.changed(loadBalancerSheddingBundlesWithPoliciesEnabled=True)
    _, decision = decide(isolated, allowed)
    assert moved(decision) == [("b2", "b1", 10)]


def test_unknown_averages_are_replaced_by_current_usage_and_said_so() -> None:
    snapshot = cluster(
        [(math.nan, (5, 5)), (math.nan, (10, 70))],
        msg_throughput_ema_bytes_per_s=[math.nan, math.nan],
        updated_at_ms=[0, 0],
        cpu_usage_percent=[10.0, 90.0],
        cpu_limit_percent=[100.0, 100.0],
    )
    memory, decision = decide(snapshot)
    assert moved(decision) == [("b2", "b1", 10)]
    assert memory.state.load_avg == pytest.approx(0.5)
    assert decision.scores == pytest.approx([0.1, 0.9])
    assert [note.split(" without ")[0] for note in decision.notes] == ["2 brokers", "2 brokers"]


def test_no_report_at_all_is_said() -> None:
    snapshot = cluster([(0.1, (5, 5)), (0.9, (10, 70))])
    silent = np.full(4, -1, dtype=np.int32)
    snapshot = replace(snapshot, bundles=replace(snapshot.bundles, top_rank=silent))
    _, decision = decide(snapshot)
    assert decision.counters == {"Skip/NoLoadData": 1}
    assert any("top bundles" in note for note in decision.notes)
    assert codes_of(snapshot, decision, "b2:8080") == {"transfer.no_top_bundles"}


def test_pairs_are_capped() -> None:
    snapshot = cluster([(0.1, (5, 5)), (0.11, (5, 5)), (0.88, (10, 70)), (0.9, (10, 70))])
    _, decision = decide(snapshot, EAGER.changed(loadBalancerMaxNumberOfBrokerSheddingPerCycle=1))
    assert moved(decision) == [("b4", "b1", 10)]
    assert codes_of(snapshot, decision, "b2:8080") == {"transfer.pair_limit"}
    assert codes_of(snapshot, decision, "b3:8080") == {"transfer.pair_limit"}


def test_idle_brokers_divide_as_java_does() -> None:
    """All loads 0: the wanted amount is NaN in Java, compares false, and everything but the last bundle goes."""
    snapshot = cluster([(0.0, ()), (0.0, (1, 2, 3))])
    _, decision = decide(snapshot)
    assert {m.source for m in decision.moves} <= {"b1:8080", "b2:8080"}
    assert len(decision.moves) == 2


NUMBERS = st.sampled_from([0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 35.0])


@st.composite
def clusters(draw: st.DrawFn) -> Snapshot:
    size = draw(st.integers(1, 8))
    brokers = [(draw(st.floats(0.0, 1.5)), sorted(draw(st.lists(NUMBERS, max_size=6)))) for _ in range(size)]
    columns = {
        "has_load_data": draw(st.lists(st.sampled_from([True, True, True, False]), min_size=size, max_size=size)),
        "registered": draw(st.lists(st.sampled_from([True, True, True, False]), min_size=size, max_size=size)),
        "updated_at_ms": [NOW - draw(st.sampled_from([0, 5000, 5000, 1_800_001])) for _ in range(size)],
    }
    if draw(st.booleans()):
        columns = {}
    return cluster(brokers, **columns)


CONFIGS = st.builds(
    lambda **values: Settings(values),
    loadBalancerBrokerLoadTargetStd=st.sampled_from([0.0, 0.1, 0.25]),
    loadBalancerSheddingConditionHitCountThreshold=st.sampled_from([0, 0, 1]),
    loadBalancerTransferEnabled=st.booleans(),
    loadBalancerDebugModeEnabled=st.booleans(),
    loadBalancerMaxNumberOfBrokerSheddingPerCycle=st.sampled_from([1, 3, 10]),
)


@given(clusters(), CONFIGS, st.integers(0, 3))
def test_what_always_holds(snapshot: Snapshot, config: Settings, hits: int) -> None:
    before = SheddingMemory(TransferState(hit_count=hits))
    memory, decision = SHEDDER.decide(snapshot, before, config)
    again_memory, again = SHEDDER.decide(snapshot, before, config)
    same = (memory, decision.moves, decision.counters), (again_memory, again.moves, again.counters)
    assert repr(same[0]) == repr(same[1])  # NaN differs from itself

    names = [move.bundle for move in decision.moves]
    assert len(set(names)) == len(names)
    registered = {
        n for n, here in zip(snapshot.brokers.name, snapshot.brokers.registered.tolist(), strict=True) if here
    }
    for move in decision.moves:
        assert move.source != move.destination
        assert (move.destination is not None) == config.flag("loadBalancerTransferEnabled")
        assert move.destination is None or move.destination in registered
        owner = int(snapshot.bundles.owner[snapshot.bundle_position[move.bundle]])
        assert snapshot.brokers.name[owner] == move.source
        assert move.throughput_bytes_per_s > 0
        assert move.reason.text

    told = {reason.broker for reason in reasons(snapshot, decision) if reason.bundle is None}
    assert told == set(snapshot.brokers.name)
    assert all(reason.text for reason in reasons(snapshot, decision))

    threshold = config.integer("loadBalancerSheddingConditionHitCountThreshold")
    if decision.moves:
        assert hits + 1 > threshold
        assert memory.state.hit_count == 0
        assert sum(decision.counters.values()) == len(decision.moves)
    else:
        assert list(decision.counters.values()) == [1]
        assert memory.state.hit_count in {0, hits, hits + 1}
