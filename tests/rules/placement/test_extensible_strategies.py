"""The two placement strategies of the extensible load manager."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.cluster.load_manager import LoadManager
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot, SnapshotInfo
from planner.cluster.tables import make_brokers, make_bundles, make_topics
from planner.pulsar.placement import least_resource_usage_extensible, round_robin_extensible
from planner.pulsar.placement.draw import draw
from planner.pulsar.placement.protocol import Placement
from planner.pulsar.placement.rotation import Rotation, rotate

LEAST, ROUND = least_resource_usage_extensible.PLACEMENT, round_robin_extensible.PLACEMENT
BUNDLE = "t/n/0x00000000_0xffffffff"


def cluster(*loads: float, has_load_data: list[bool] | None = None) -> Snapshot:
    known = has_load_data or [True] * len(loads)
    return Snapshot(
        info=SnapshotInfo(cluster="test", load_manager=LoadManager.EXTENSIBLE, captured_at_ms=1),
        settings=Settings(),
        brokers=make_brokers(
            [f"b{i}" for i in range(len(loads))],
            weighted_max_ema=loads,
            msg_throughput_ema_bytes_per_s=0.0,
            has_load_data=known,
        ),
        namespaces=("t/n",),
        bundles=make_bundles([0], high=2**32 - 1, namespace=0),
        topics=make_topics(),
    )


def acceptable(snapshot: Snapshot, candidates: list[str] | None = None, difference: int = 10) -> tuple[str, ...]:
    config = Settings({"loadBalancerAverageResourceUsageDifferenceThresholdPercentage": difference})
    _, decision = LEAST.select(
        BUNDLE, candidates or list(snapshot.brokers.name), snapshot, LEAST.initial(), config, seed=1
    )
    assert decision.selected in decision.acceptable
    told = [reason for block in decision.reasons for reason in block.rows(snapshot.brokers.name, snapshot.bundle_names)]
    assert {reason.broker for reason in told if reason.code.acts} == set(decision.acceptable)
    assert all(reason.text and reason.bundle == BUNDLE for reason in told)
    return decision.acceptable


def test_draws_among_those_well_below_the_average() -> None:
    assert acceptable(cluster(0.1, 0.3, 0.8)) == ("b0", "b1")


def test_single_precision_excludes_a_broker_that_the_setting_s_description_includes() -> None:
    """30 of 100 is 0.30000002 in Pulsar, which lifts it above the limit although the average rises too."""
    snapshot = cluster(0.1, 0.30000001907348633, 0.8)
    assert acceptable(snapshot) == ("b0",)


def test_nobody_well_below_means_anybody() -> None:
    assert acceptable(cluster(0.4, 0.5)) == ("b0", "b1")


def test_average_is_over_the_candidates_only() -> None:
    assert acceptable(cluster(0.1, 0.3, 0.35, 0.9), ["b1", "b2"]) == ("b1", "b2")


def test_brokers_without_data_are_drawn_only_when_nobody_stands_out() -> None:
    assert acceptable(cluster(0.1, 0.0, 0.8, has_load_data=[True, False, True])) == ("b0",)
    assert acceptable(cluster(0.4, 0.0, 0.4, has_load_data=[True, False, True])) == ("b0", "b1", "b2")
    assert acceptable(cluster(0.4, 0.4, has_load_data=[False, False])) == ("b0", "b1")


def test_unknown_candidate_counts_as_without_data() -> None:
    _, decision = LEAST.select(BUNDLE, ["b0", "new"], cluster(0.1), LEAST.initial(), Settings(), seed=1)
    assert decision.acceptable == ("b0", "new")


@pytest.mark.parametrize("strategy", [LEAST, ROUND])
def test_without_candidates_there_is_no_broker(strategy: Placement) -> None:
    _, decision = strategy.select(BUNDLE, [], cluster(0.1), strategy.initial(), Settings(), 1)
    assert (decision.acceptable, decision.selected) == ((), None)


@given(st.lists(st.floats(0, 2), min_size=1, max_size=8), st.integers(0, 30), st.integers())
def test_draw_is_reproducible_and_acceptable(loads: list[float], difference: int, seed: int) -> None:
    snapshot = cluster(*loads)
    config = Settings({"loadBalancerAverageResourceUsageDifferenceThresholdPercentage": difference})
    names = list(snapshot.brokers.name)
    first = LEAST.select(BUNDLE, names, snapshot, LEAST.initial(), config, seed)[1]
    second = LEAST.select(BUNDLE, names, snapshot, LEAST.initial(), config, seed)[1]
    assert first.selected == second.selected
    assert first.selected in first.acceptable
    average = sum(loads) / len(loads)
    chosen = [load for load, name in zip(loads, names, strict=True) if name in first.acceptable]
    if len(chosen) < len(loads):
        assert all(
            load + difference / 100 <= average or math.isclose(load + difference / 100, average) for load in chosen
        )


def test_every_acceptable_broker_is_drawn_for_some_seed() -> None:
    assert {draw(("a", "b", "c"), BUNDLE, seed) for seed in range(100)} == {"a", "b", "c"}
    assert len({draw(tuple("abcdefgh"), f"t/n/{i}", 0) for i in range(100)}) == 8


def test_turns_follow_the_list_seen_first() -> None:
    state, snapshot, chosen = ROUND.initial(), cluster(0.1, 0.2, 0.3), []
    for candidates in (["b0", "b1", "b2"], ["b2", "b1", "b0"], ["b2", "b1", "b0"], ["b1", "b2"], ["b1", "b2"]):
        state, decision = ROUND.select(BUNDLE, candidates, snapshot, state, Settings(), 0)
        chosen.append(decision.selected)
        assert decision.acceptable == (decision.selected,)
        texts = [r.text for b in decision.reasons for r in b.rows(snapshot.brokers.name, snapshot.bundle_names)]
        assert len(texts) == len(candidates)
    assert chosen == ["b0", "b1", "b2", "b2", "b1"]


def test_list_is_kept_although_others_were_replaced() -> None:
    state, _ = rotate(Rotation(), ["a", "b", "c"])
    state, turn = rotate(state, ["x", "b", "y"])
    assert (turn.selected, turn.relisted) == ("b", False)
    state, turn = rotate(state, ["x", "b", "y"])
    assert (turn.selected, turn.relisted) == ("y", True)


def test_counter_starts_again_after_the_greatest_int() -> None:
    state, turn = rotate(Rotation(counter=2**31 - 1), ["a", "b"])
    assert (turn.selected, state.counter) == ("b", 0)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_turns_are_fair(size: int) -> None:
    names, state, seen = [f"b{i}" for i in range(size)], Rotation(), []
    for _ in range(3 * size):
        state, turn = rotate(state, names)
        seen.append(turn.selected)
    assert seen == names * 3
