"""Our own thresholds at their borders, and numbers of findings worked out a second time."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from planner.cluster.load_manager import LoadManager
from planner.cluster.snapshot import Snapshot
from planner.explain.diagnosis import diagnose
from planner.explain.health import figure_levels, health
from planner.explain.held import APART
from planner.explain.split_advice import split_advice
from planner.simulate.assumptions import Assumptions
from planner.simulate.failure_review import review_losses
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario
from planner.simulate.usage_model import standing
from planner.workspace.opening import open_snapshot
from tests.app.plan.test_split_advice import big, big_limits, with_topics
from tests.app.simulate.traces import cluster

LIMIT = "loadBalancerBrokerOverloadedThresholdPercentage"


def word(usages: Sequence[float], **settings: int) -> str:
    snapshot = cluster(list(usages), dict.fromkeys(range(len(usages)), (10.0, 10.0)))
    config = snapshot.settings.changed(**settings)
    return health(snapshot, config, standing(snapshot, config, Assumptions()), None, None).word


@pytest.mark.parametrize(
    ("usages", "limit", "expected"),
    [
        ((0.5, 0.5), 50, "Out of capacity"),  # on average at the limit, though no broker is above it
        ((0.25, 0.75), 50, "Out of capacity"),
        ((0.25, 0.5), 50, "Unbalanced"),  # at the limit is not above it
        ((0.25, 0.53), 50, "Overloaded"),
        ((0.25, 0.25), 50, "Healthy"),
    ],
)
def test_the_verdict_at_the_limit(usages: tuple[float, ...], limit: int, expected: str) -> None:
    assert word(usages, **{LIMIT: limit}) == expected


def test_the_verdict_where_brokers_are_just_apart() -> None:
    assert APART == 0.15
    assert word((0.005, 0.155)) == "Unbalanced", "exactly 15 points, in doubles"
    assert word((0.005, 0.1549)) == "Healthy"


@pytest.mark.parametrize(
    ("usages", "limit", "urgent"),
    [
        ((0.25, 0.25), 50, {}),
        ((0.25, 0.5), 50, {"deviation": "warning"}),  # at the limit is not above it
        ((0.25, 0.53), 50, {"deviation": "warning", "highest": "bad"}),
        ((0.5, 0.5), 50, {"average": "bad"}),
        ((0.9, 0.9), 50, {"average": "bad", "highest": "bad"}),
    ],
)
def test_the_key_figures_are_urgent_where_the_verdict_is(
    usages: tuple[float, ...], limit: int, urgent: dict[str, str]
) -> None:
    snapshot = cluster(list(usages), dict.fromkeys(range(len(usages)), (10.0, 10.0)))
    config = snapshot.settings.changed(**{LIMIT: limit})
    assert figure_levels(snapshot, config, standing(snapshot, config, Assumptions())) == urgent


def test_headroom_is_urgent_where_a_machine_is_past_its_capacity() -> None:
    snapshot = cluster([0.5, 0.5], {0: (10.0, 10.0), 1: (10.0, 10.0)})
    now = standing(snapshot, snapshot.settings, Assumptions())
    for factor, level in ((1.0, None), (0.99, "bad")):
        found = figure_levels(snapshot, snapshot.settings, replace(now, growth=replace(now.growth, factor=factor)))
        assert found.get("headroom") == level


def test_a_limit_is_exceeded_above_it_alone() -> None:
    """Pulsar compares strictly (`BundleSplitterTask`): a bundle at a limit is not split."""
    snapshot = with_topics(big(), [1.0] * 6)
    topics = int(snapshot.bundles.topics[0])
    assert topics == 6

    def sentence(most: int) -> str:
        limits = {**big_limits(), "loadBalancerNamespaceBundleMaxTopics": most}
        return split_advice(snapshot, 0, snapshot.settings.changed(**limits)).sentence

    assert "loadBalancerNamespaceBundleMaxTopics is" in sentence(topics - 1)
    assert "loadBalancerNamespaceBundleMaxTopics is" not in sentence(topics)


@pytest.fixture(scope="module")
def five() -> Snapshot:
    return open_snapshot("pip-364.json")[1]


def test_bundles_that_missed_their_pair_are_counted(five: Snapshot) -> None:
    """AvgShedder pairs each overloaded broker with another one; another placement strategy puts bundles elsewhere."""
    settings: dict[str, str | int | float | bool] = {
        "loadBalancerLoadSheddingStrategy": "AvgShedder",
        "loadBalancerLoadPlacementStrategy": "LeastLongTermMessageRate",
        "loadBalancerAvgShedderHitCountHighThreshold": 1,
        "loadBalancerAvgShedderHitCountLowThreshold": 1,
    }
    trace = simulate(five, Scenario(settings=settings, cycles=6))
    paired = {
        (cycle.index, unload.move.bundle): unload.move.reason.other
        for cycle in trace.cycles
        for unload in cycle.unloads
        if unload.move.reason.other is not None
    }
    went = {
        (cycle.index, event.bundle): event.destination
        for cycle in trace.cycles
        for event in cycle.events
        if event.kind == "shed"
    }
    missed = sum(went[key] != other for key, other in paired.items())
    assert 0 < missed < len(paired) or len(paired) > missed
    found = next(one for one in diagnose(trace) if one.code == "fighting_strategies")
    assert f"{missed} of {len(paired)} bundles" in found.evidence


def test_heap_counts_for_the_extensible_load_manager_alone() -> None:
    """`BrokerLoadData` has the heap among its resources; the modular load manager does not weigh it."""
    sizes = {0: (10.0,) * 4, 1: (10.0,) * 4, 2: (10.0,) * 4}
    peaks = {}
    for manager in LoadManager:
        snapshot = cluster([0.2, 0.2, 0.2], sizes, load_manager=manager)
        count = len(snapshot.brokers)
        weights = {"loadBalancerMemoryResourceWeight": 1.0, "loadBalancerDirectMemoryResourceWeight": 0.0}
        brokers = replace(
            snapshot.brokers,
            memory_usage_mib=np.array([900.0, 100.0, 100.0]),
            memory_limit_mib=np.full(count, 1_000.0),
        )
        heavy = replace(snapshot.with_columns(brokers=brokers), settings=snapshot.settings.changed(**weights))
        found = review_losses(heavy)
        peaks[manager] = dict(zip((found.names(at) for at in range(count)), found.peak_usage.tolist(), strict=True))
    assert peaks[LoadManager.EXTENSIBLE]["b2:8080",] == pytest.approx(0.9)
    assert peaks[LoadManager.EXTENSIBLE]["b1:8080",] < 0.5, "its heap goes with it"
    assert peaks[LoadManager.MODULAR]["b2:8080",] < 0.5
