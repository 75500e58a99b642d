"""Shadow mode on captures made by hand, and on those of simulated clusters."""

from dataclasses import replace

import pytest

from planner.cluster.errors import CaptureError
from planner.cluster.load_manager import LoadManager
from planner.cluster.snapshot import Snapshot
from planner.shadow.follow import shadow_step
from planner.shadow.record import Cause, score_of
from planner.shadow.state import ShadowState
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.edits.move_bundle import MoveBundle
from planner.simulate.edits.remove_broker import RemoveBroker
from planner.simulate.edits.split_bundle import SplitBundle
from planner.simulate.generate import generate
from planner.simulate.scenario import Scenario, Step
from tests.app.simulate.traces import START_MS, cluster
from tests.data.capture.simulated import watched
from tests.data.shadow.captures import (
    AVG,
    SWING,
    THRESHOLD,
    UNIFORM,
    at,
    every,
    follow,
    moved,
    other_bundle,
    still,
    unwritten,
)


def test_what_was_predicted_happens(busy: Snapshot, chosen: dict[str, int]) -> None:
    _, cycles, result = follow(still(busy, (0, 60)) + still(moved(busy, chosen), (60, 120)))
    (cycle,) = cycles
    assert {u.bundle for u in cycle.predicted} == {u.bundle for u in cycle.actual} == set(chosen)
    assert cycle.right
    assert cycle.acts
    assert cycle.in_time
    assert cycle.differences == ()
    assert (cycle.from_ms, cycle.to_ms) == (START_MS + 50_000, START_MS + 60_000)
    assert (cycle.leader, cycle.shedder) == ("b1:8080", "ThresholdShedder")
    assert result.rhythm_known
    assert result.due_ms == START_MS + 115_000
    score = score_of(cycles)
    assert (score.cycles, score.right, score.in_time, score.in_time_right) == (1, 1, 1, 1)
    assert score.destinations_right == score.destinations == len(chosen)


def test_bundles_without_owner_for_a_moment_are_waited_for(busy: Snapshot, chosen: dict[str, int]) -> None:
    between = at(moved(busy, dict.fromkeys(chosen, -1)), 60)
    _, cycles, _ = follow([*still(busy, (0, 60)), between, *still(moved(busy, chosen), (70, 120))])
    (cycle,) = cycles
    names = busy.brokers.name
    assert {u.bundle: u.destination for u in cycle.actual} == {b: names[to] for b, to in chosen.items()}


def test_an_idle_cluster_is_right_every_minute() -> None:
    calm = cluster((0.3, 0.3, 0.3), settings=THRESHOLD)
    _, cycles, result = follow(still(calm, (0, 300)))
    assert [c.right for c in cycles] == [True] * 4
    assert not any(c.acts for c in cycles)
    assert not result.rhythm_known


def test_what_stays_is_told_when_its_cycle_is_over(busy: Snapshot) -> None:
    _, cycles, _ = follow(still(busy, (0, 100)))
    (cycle,) = cycles
    assert not cycle.right
    assert cycle.actual == ()
    assert {d.what for d in cycle.differences} == {"stayed"}


def test_captures_too_far_apart_are_no_test(busy: Snapshot, chosen: dict[str, int]) -> None:
    _, cycles, _ = follow([at(busy, 0), at(moved(busy, {other_bundle(busy, chosen): 1}), 400)])
    (cycle,) = cycles
    assert not cycle.in_time
    assert cycle.causes == (Cause.MISSED,)


def test_a_report_that_no_capture_holds_is_in_the_averages(busy: Snapshot, chosen: dict[str, int]) -> None:
    """Brokers may have reported something else between two captures; what that made of averages fades with samples."""
    louder = replace(busy, bundles=replace(busy.bundles, msg_rate_in_per_s=busy.bundles.msg_rate_in_per_s + 1))
    changed = [at(louder, 0), at(louder, 10)]
    for pause_s, in_time in ((10, False), (1, True)):
        _, cycles, _ = follow([*changed, *every(busy, 20, 60, pause_s), *still(moved(busy, chosen), (60, 120))])
        assert cycles[0].right
        assert cycles[0].in_time == in_time


def test_captures_have_to_be_of_one_cluster_in_order(busy: Snapshot) -> None:
    with pytest.raises(CaptureError, match="in the order of time"):
        shadow_step(ShadowState(), at(busy, 10), at(busy, 0))
    with pytest.raises(CaptureError, match="one cluster"):
        shadow_step(ShadowState(), at(busy, 0), at(busy, 10, cluster="other"))


@pytest.mark.parametrize(
    ("manager", "settings", "least_acting", "seed"),
    [
        (
            LoadManager.MODULAR,
            {
                "loadBalancerBrokerThresholdShedderPercentage": 3,
                "loadBalancerBundleUnloadMinThroughputThreshold": 0.1,
            },
            14,
            3,
        ),
        (
            LoadManager.MODULAR,
            {
                "loadBalancerLoadSheddingStrategy": AVG,
                "loadBalancerLoadPlacementStrategy": AVG,
                "loadBalancerAvgShedderLowThreshold": 3,
                "loadBalancerAvgShedderHighThreshold": 10,
            },
            8,
            2,
        ),
        (LoadManager.MODULAR, {"loadBalancerLoadSheddingStrategy": UNIFORM}, 10, 1),
        (
            LoadManager.EXTENSIBLE,
            {
                "loadBalancerBrokerLoadTargetStd": 0.05,
                "loadBalancerSheddingConditionHitCountThreshold": 1,
                "loadBalancerAutoBundleSplitEnabled": False,
            },
            4,
            1,
        ),
    ],
    ids=["ThresholdShedder", "AvgShedder", "UniformLoadShedder", "TransferShedder"],
)
def test_a_simulated_cluster_is_followed(
    manager: LoadManager, settings: dict[str, str | int | float | bool], least_acting: int, seed: int
) -> None:
    start = generate(
        ClusterSpec(brokers=6, bundles=120, topics=1200, load_manager=manager, ownership_skew=0.8), seed=seed
    )
    captures, real = watched(unwritten(start), Scenario(settings=settings, cycles=40, steps=(Step(SWING),), seed=1))
    _, cycles, _ = follow(captures)
    score = score_of(cycles)
    assert sum(any(u.carried_out for u in c.unloads) for c in real) >= least_acting - 1
    assert score.acting >= least_acting
    assert score.right >= 0.95 * score.cycles
    assert score.in_time_right == score.in_time
    assert score.destinations_right >= 0.95 * score.destinations > 0
    assert score.splits_right >= 0.5 * score.splits
    unexplained = [c for c in cycles if not c.right and Cause.MEMORY not in c.causes]
    assert not unexplained


def test_an_operator_in_a_simulated_cluster_is_told_from_the_load_balancer() -> None:
    start = generate(ClusterSpec(brokers=6, bundles=120, topics=1200, ownership_skew=0.8), seed=2)
    settings = {"loadBalancerBrokerThresholdShedderPercentage": 3, "loadBalancerAutoBundleSplitEnabled": False}
    names = start.bundle_names
    by_hand = [n for n, o in zip(names, start.bundles.owner.tolist(), strict=True) if o == 1][:2]
    steps = (
        Step(SWING),
        *(Step(MoveBundle(bundle=n, destination=start.brokers.name[3], at_min=5.5 + i)) for i, n in enumerate(by_hand)),
        Step(SplitBundle(bundle=names[90], at_min=8.5)),
        Step(RemoveBroker(broker=start.brokers.name[4], at_min=12.5)),
    )
    captures, _ = watched(unwritten(start), Scenario(settings=settings, cycles=20, steps=steps, seed=2))
    _, cycles, _ = follow(captures)
    causes = {d.bundle: d.cause for c in cycles for d in c.differences}
    assert [causes.get(name) for name in by_hand] == [Cause.MANUAL] * 2
    assert causes[names[90]] is Cause.MANUAL_SPLIT
    assert Cause.BROKER_LEFT in causes.values()
