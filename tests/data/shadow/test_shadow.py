"""Shadow mode on captures made by hand, and on those of simulated clusters."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from planner.cluster.errors import CaptureError
from planner.cluster.load_manager import LoadManager
from planner.cluster.ranges import FULL_HIGH
from planner.cluster.snapshot import Snapshot, make_topics
from planner.pulsar.splitting.factory import apply_split
from planner.shadow.predict import ShadowResult, ShadowState, shadow_step
from planner.shadow.record import Cause, ShadowCycle, score_of
from planner.shadow.splits import actual_splits
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.edits.move_bundle import MoveBundle
from planner.simulate.edits.remove_broker import RemoveBroker
from planner.simulate.edits.scale_traffic import ScaleTraffic
from planner.simulate.edits.split_bundle import SplitBundle
from planner.simulate.generate import generate
from planner.simulate.scenario import Scenario, Step
from tests.app.simulate.traces import START_MS, cluster
from tests.data.capture.simulated import watched

AVG = "org.apache.pulsar.broker.loadbalance.impl.AvgShedder"
UNIFORM = "org.apache.pulsar.broker.loadbalance.impl.UniformLoadShedder"
THRESHOLD = {"loadBalancerBundleUnloadMinThroughputThreshold": 0.1, "loadBalancerHistoryResourcePercentage": 0.0}
BUSY = {0: (20.0, 10.0, 10.0, 5.0), 1: (5.0, 5.0), 2: (5.0, 5.0)}
STEP_S = 10


def at(snapshot: Snapshot, second: float, **info: object) -> Snapshot:
    """Return a cluster some seconds later, just reported."""
    by_ms = int(second * 1000)
    moment = replace(snapshot.info, captured_at_ms=START_MS + by_ms, **info)  # type: ignore[arg-type]
    updated = snapshot.brokers.updated_at_ms * 0 + START_MS + by_ms
    return replace(snapshot, info=moment, brokers=replace(snapshot.brokers, updated_at_ms=updated))


def moved(snapshot: Snapshot, wanted: Mapping[str, int]) -> Snapshot:
    owner = snapshot.bundles.owner.copy()
    for bundle, broker in wanted.items():
        owner[snapshot.bundle_position[bundle]] = broker
    return snapshot.with_owner(owner)


def calmed(snapshot: Snapshot) -> Snapshot:
    """Return a cluster whose brokers are equally busy."""
    return replace(snapshot, brokers=replace(snapshot.brokers, cpu_usage_percent=np.full(len(snapshot.brokers), 300.0)))


def follow(captures: Sequence[Snapshot]) -> tuple[ShadowState, list[ShadowCycle], ShadowResult]:
    state, result = ShadowState(), None
    cycles: list[ShadowCycle] = []
    for before, after in pairwise(captures):
        state, result = shadow_step(state, before, after)
        cycles += result.cycles
    assert result is not None
    return state, cycles, result


def still(snapshot: Snapshot, *spans: tuple[int, int]) -> list[Snapshot]:
    """Return captures of an unchanged cluster every ten seconds of some spans of seconds."""
    return [at(snapshot, second) for begin, end in spans for second in range(begin, end, STEP_S)]


@pytest.fixture
def busy() -> Snapshot:
    """Three brokers, the first one of which is too busy."""
    return cluster((0.8, 0.2, 0.2), BUSY, settings=THRESHOLD)


@pytest.fixture
def chosen(busy: Snapshot) -> dict[str, int]:
    """What the leader sheds, and to where."""
    _, result = shadow_step(ShadowState(), at(busy, 0), at(busy, 10))
    moves = result.prediction.decision.moves
    assert moves
    return {m.bundle: busy.brokers.position[m.destination or ""] for m in moves}


def other_bundle(busy: Snapshot, chosen: Mapping[str, int]) -> str:
    return next(n for n, o in zip(busy.bundle_names, busy.bundles.owner, strict=True) if o == 0 and n not in chosen)


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


def test_a_bundle_moved_by_hand_between_cycles_is_no_cycle(busy: Snapshot, chosen: dict[str, int]) -> None:
    after = moved(busy, chosen)
    extra = other_bundle(busy, chosen)
    by_hand = moved(after, {extra: 1})
    _, cycles, _ = follow(still(busy, (0, 60)) + still(calmed(after), (60, 90)) + still(calmed(by_hand), (90, 150)))
    first, second = cycles
    assert first.right
    assert [u.bundle for u in second.outside] == [extra]
    assert extra not in {u.bundle for u in second.actual}
    assert second.causes[0] is Cause.MANUAL


def test_a_bundle_moved_by_hand_during_a_cycle_is_named(busy: Snapshot, chosen: dict[str, int]) -> None:
    extra = next(n for n, o in zip(busy.bundle_names, busy.bundles.owner, strict=True) if o == 1)
    _, cycles, _ = follow(still(busy, (0, 60)) + still(moved(busy, {**chosen, extra: 2}), (60, 120)))
    (cycle,) = cycles
    assert not cycle.right
    assert [(d.bundle, d.what, d.cause) for d in cycle.differences] == [(extra, "unloaded", Cause.MANUAL)]


def test_a_report_that_came_after_the_last_capture() -> None:
    """Until 50 s the first broker is busy, then the second one is; the leader saw that before it decided."""
    shares = {0: (5.0, 5.0), 1: (20.0, 10.0, 10.0, 5.0), 2: (5.0, 5.0)}
    early = cluster((0.3, 0.3, 0.3), shares, settings=THRESHOLD)
    late = cluster((0.2, 0.8, 0.2), shares, settings=THRESHOLD)
    _, result = shadow_step(ShadowState(), at(late, 0), at(late, 10))
    wanted = {m.bundle: late.brokers.position[m.destination or ""] for m in result.prediction.decision.moves}
    _, cycles, _ = follow(still(early, (0, 60)) + still(moved(late, wanted), (60, 120)))
    (cycle,) = cycles
    assert wanted
    assert not cycle.right
    assert cycle.causes == (Cause.LATE_REPORT,)
    assert not cycle.in_time


def test_a_leader_whose_counters_are_ahead() -> None:
    """AvgShedder acts after two hits; this one had one before the first capture."""
    settings = {
        "loadBalancerLoadSheddingStrategy": AVG,
        "loadBalancerLoadPlacementStrategy": AVG,
        "loadBalancerAvgShedderHitCountHighThreshold": 2,
        "minUnloadMessage": 10,
        "minUnloadMessageThroughput": 1,
    }
    skewed = cluster((0.9, 0.1), {0: (20.0, 5.0, 5.0, 5.0), 1: (5.0,)}, settings=settings)
    primed, _, result = follow(still(skewed, (0, 100)))
    moves = result.prediction.decision.moves
    assert moves
    wanted = {m.bundle: skewed.brokers.position[m.destination or ""] for m in moves}
    _, cycles, _ = follow(still(skewed, (0, 30)) + still(moved(skewed, wanted), (30, 80)))
    (cycle,) = cycles
    assert cycle.predicted == ()
    assert cycle.causes == (Cause.MEMORY,)
    assert not cycle.in_time
    assert primed.memory is not None


def test_a_leader_that_remembers_unloads_from_before_the_watch(busy: Snapshot, chosen: dict[str, int]) -> None:
    first = next(iter(chosen))
    settings = busy.settings.changed(loadBalancerSheddingGracePeriodMinutes=0)
    known = replace(busy, settings=settings)
    assert set(chosen) != {other_bundle(busy, chosen)}
    second = other_bundle(known, {first: 0})
    _, cycles, _ = follow(still(busy, (0, 60)) + still(moved(busy, {second: 1}), (60, 130)))
    cycle = cycles[0]
    assert not cycle.right
    assert {d.cause for d in cycle.differences} == {Cause.MEMORY}
    later = [c for c in cycles[1:] if c.acts]
    assert not any(first in {u.bundle for u in c.predicted} for c in later)


def test_an_election_empties_the_memory(busy: Snapshot, chosen: dict[str, int]) -> None:
    after = moved(busy, chosen)
    elected = [at(after, second, leader="b2:8080") for second in range(100, 180, STEP_S)]
    state, cycles, result = follow([*still(busy, (0, 60)), *still(after, (60, 100)), *elected])
    assert cycles[0].leader == "b1:8080"
    assert state.leader[0] == "b2:8080"
    assert state.memory is None
    assert not result.rhythm_known
    assert result.due_ms == START_MS + 150_000
    assert result.prediction.before is None


def test_an_election_during_a_cycle_is_the_reason(busy: Snapshot, chosen: dict[str, int]) -> None:
    extra = other_bundle(busy, chosen)
    late = [at(moved(busy, {extra: 1}), second, leader="b2:8080") for second in range(60, 130, STEP_S)]
    _, cycles, _ = follow([*still(busy, (0, 60)), *late])
    assert Cause.LEADER in cycles[0].causes
    assert not cycles[0].in_time


def test_captures_too_far_apart_are_no_test(busy: Snapshot, chosen: dict[str, int]) -> None:
    _, cycles, _ = follow([at(busy, 0), at(moved(busy, {other_bundle(busy, chosen): 1}), 400)])
    (cycle,) = cycles
    assert not cycle.in_time
    assert cycle.causes == (Cause.MISSED,)


def test_changed_settings_are_the_reason(busy: Snapshot, chosen: dict[str, int]) -> None:
    quiet = replace(busy, settings=busy.settings.changed(loadBalancerBrokerThresholdShedderPercentage=90))
    _, cycles, _ = follow(still(quiet, (0, 60)) + still(moved(busy, chosen), (60, 120)))
    assert cycles[0].causes == (Cause.SETTINGS,)
    assert not cycles[0].in_time


def test_bundles_of_a_broker_that_left_were_not_shed(busy: Snapshot) -> None:
    calm = replace(busy, settings=busy.settings.changed(loadBalancerBrokerThresholdShedderPercentage=90))
    orphans = [n for n, o in zip(calm.bundle_names, calm.bundles.owner, strict=True) if o == 2]
    gone = moved(calm, dict.fromkeys(orphans, 1))
    gone = replace(gone, brokers=replace(gone.brokers, registered=np.array([True, True, False])))
    _, cycles, _ = follow(still(calm, (0, 30)) + still(gone, (30, 120)))
    assert {u.bundle for u in cycles[0].outside} == set(orphans)
    assert {d.cause for d in cycles[0].differences} == {Cause.BROKER_LEFT}
    assert cycles[0].right


def split(snapshot: Snapshot, bundle: int, cut: int) -> Snapshot:
    """Return a cluster with one bundle cut in two, before anything is reported of the halves."""
    ends = (int(snapshot.bundles.low[bundle]), int(snapshot.bundles.high[bundle]))
    made = apply_split(ends, ends, (cut,))
    assert len(made.children) == 2
    columns = {}
    for name in snapshot.bundles.__dataclass_fields__:
        column = getattr(snapshot.bundles, name)
        columns[name] = np.insert(column, bundle, column[bundle])
    columns["high"][bundle] = columns["low"][bundle + 1] = cut
    columns["has_stats"][bundle : bundle + 2] = columns["has_data"][bundle : bundle + 2] = False
    return replace(snapshot, bundles=replace(snapshot.bundles, **columns), topics=make_topics())


def test_splits_that_happened_are_seen_from_boundaries(busy: Snapshot) -> None:
    cut = int(busy.bundles.low[3]) + 1000
    assert actual_splits(busy, split(busy, 3, cut))[0].boundaries == (cut,)
    assert actual_splits(busy, busy) == ()
    assert int(busy.bundles.high[-1]) == FULL_HIGH


def test_an_automatic_split_is_predicted_and_seen() -> None:
    limits = {**THRESHOLD, "defaultNamespaceBundleSplitAlgorithm": "range_equally_divide"}
    calm = cluster((0.3, 0.3, 0.3), settings=limits, topics=5)
    calm = replace(calm, topics=make_topics())
    hot = replace(calm, settings=calm.settings.changed(loadBalancerNamespaceBundleMaxTopics=4))
    _, result = shadow_step(ShadowState(), at(calm, 0), at(hot, 10))
    assert {s.bundle for s in result.splits} == set(hot.bundle_names)
    first = result.splits[0]
    assert first.boundaries is not None
    at_row = hot.bundle_position[first.bundle]
    cold = replace(hot, settings=calm.settings)
    _, cycles, _ = follow([at(calm, 0), at(hot, 10), *still(split(cold, at_row, first.boundaries[0]), (20, 110))])
    assert cycles[0].actual_splits == cycles[0].predicted_splits == (first,)
    assert cycles[0].differences == ()
    _, cycles, _ = follow([at(calm, 0), at(hot, 10), *still(split(cold, at_row, first.boundaries[0] + 5), (20, 110))])
    assert [(d.what, d.cause) for d in cycles[0].differences] == [("split elsewhere", Cause.LATE_REPORT)]
    _, cycles, _ = follow([at(calm, 0), at(calm, 10), *still(split(calm, at_row, first.boundaries[0]), (20, 110))])
    assert [(d.what, d.cause) for d in cycles[0].differences] == [("split", Cause.MANUAL_SPLIT)]
    _, cycles, _ = follow(still(hot, (0, 110)))
    assert {(d.what, d.cause) for d in cycles[0].differences} == {("not split", Cause.UNKNOWN)}


def test_captures_have_to_be_of_one_cluster_in_order(busy: Snapshot) -> None:
    with pytest.raises(CaptureError, match="earlier one first"):
        shadow_step(ShadowState(), at(busy, 10), at(busy, 0))
    with pytest.raises(CaptureError, match="one cluster"):
        shadow_step(ShadowState(), at(busy, 0), at(busy, 10, cluster="other"))


def unwritten(snapshot: Snapshot) -> Snapshot:
    """Return a cluster whose leader has not written averages of brokers: they are worked out from those of bundles."""
    unknown = np.full(len(snapshot.brokers), np.nan)
    terms = ("short_term", "long_term")
    columns: dict[str, Any] = {
        name: unknown for name in snapshot.brokers.__dataclass_fields__ if name.startswith(terms)
    }
    return replace(snapshot, brokers=replace(snapshot.brokers, **columns))


SWING = ScaleTraffic(factor=3.0, shape="daily", duration_min=20)


@pytest.mark.parametrize(
    ("manager", "settings", "least_acting"),
    [
        (
            LoadManager.MODULAR,
            {
                "loadBalancerBrokerThresholdShedderPercentage": 3,
                "loadBalancerBundleUnloadMinThroughputThreshold": 0.1,
            },
            14,
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
        ),
        (LoadManager.MODULAR, {"loadBalancerLoadSheddingStrategy": UNIFORM}, 10),
        (
            LoadManager.EXTENSIBLE,
            {
                "loadBalancerBrokerLoadTargetStd": 0.05,
                "loadBalancerSheddingConditionHitCountThreshold": 1,
                "loadBalancerAutoBundleSplitEnabled": False,
            },
            4,
        ),
    ],
    ids=["ThresholdShedder", "AvgShedder", "UniformLoadShedder", "TransferShedder"],
)
def test_a_simulated_cluster_is_followed(
    manager: LoadManager, settings: dict[str, str | int | float | bool], least_acting: int
) -> None:
    start = generate(ClusterSpec(brokers=6, bundles=120, topics=1200, load_manager=manager, ownership_skew=0.8), seed=1)
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
