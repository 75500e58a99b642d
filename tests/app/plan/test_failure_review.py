"""Losing brokers: by hand, against the simulation, and what must always hold."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.cluster.arrays import Int64Array
from planner.cluster.load_manager import LoadManager
from planner.cluster.settings import Settings
from planner.cluster.snapshot import IsolationPolicy, Policies, Snapshot
from planner.simulate import failure_review
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.edits.remove_broker import RemoveBroker
from planner.simulate.edits.scale_traffic import ScaleTraffic
from planner.simulate.failure_review import FailureReview, review_losses
from planner.simulate.generate import generate
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario, Step
from planner.simulate.summary import summary
from planner.simulate.usage_model import at_the_end
from planner.workspace.samples import load_sample, samples
from tests.app.simulate.traces import cluster

ALIKE = {0: (10,) * 6, 1: (10,) * 4, 2: (10,) * 2}
"""Bundles that are all alike, so that their order does not matter."""


def simulated_peak(snapshot: Snapshot, lost: tuple[str, ...], **config: Any) -> float:
    steps = tuple(Step(RemoveBroker(broker=name)) for name in lost)
    scenario = Scenario(cycles=3, steps=steps, settings={"loadBalancerSheddingEnabled": False, **config})
    return float(simulate(snapshot, scenario).cycles[-1].state.usage.max())


def peaks(found: FailureReview) -> dict[tuple[str, ...], float]:
    return {found.names(i): float(peak) for i, peak in enumerate(found.peak_usage)}


class TestAgainstTheSimulation:
    @pytest.mark.parametrize("evenly", ["true", "false"])
    def test_equal_bundles_go_where_the_simulation_puts_them(self, evenly: str) -> None:
        config = {"loadBalancerDistributeBundlesEvenlyEnabled": evenly}
        snapshot = cluster([0.6, 0.4, 0.2], ALIKE)
        found = peaks(review_losses(snapshot, Settings(config)))
        for lost in (("b2:8080",), ("b3:8080",)):
            assert found[lost] == pytest.approx(simulated_peak(snapshot, lost, **config), rel=1e-5)

    @pytest.mark.parametrize("seed", range(4))
    def test_real_clusters_come_near(self, seed: int) -> None:
        snapshot = generate(ClusterSpec(brokers=6, bundles=90, topics=1500, topic_skew=0.4), seed)
        for lost, peak in peaks(review_losses(snapshot)).items():
            assert min(peak, 1.0) == pytest.approx(simulated_peak(snapshot, lost), abs=0.08)


class TestByHand:
    def test_two_of_three(self) -> None:
        found = review_losses(cluster([0.5, 0.3, 0.2], ALIKE), lost=2)
        assert len(found.lost) == 3
        last = peaks(found)["b1:8080", "b2:8080"]
        assert last == pytest.approx(0.02 + 0.48 + 0.28 + 0.18, rel=1e-5)
        assert found.brokers[found.peak_broker[0]] == "b3:8080"
        assert found.over_threshold.tolist() == [1, 1, 1]
        assert found.headroom_factor[0] == pytest.approx(0.98 / 0.94, rel=1e-5)

    def test_before(self) -> None:
        found = review_losses(cluster([0.9, 0.3, 0.2], ALIKE))
        assert found.before.peak_usage == pytest.approx(0.9)
        assert found.before.over_threshold == 1
        assert found.before.growth.factor == pytest.approx(0.98 / 0.88)
        assert (found.before.growth.broker, found.before.growth.resource) == ("b1:8080", "cpu")

    def test_clients_that_reconnect(self) -> None:
        assert review_losses(cluster([0.6, 0.4, 0.2], ALIKE)).clients.tolist() == [72, 48, 24]

    def test_the_worst_comes_first(self) -> None:
        found = review_losses(cluster([0.9, 0.3, 0.2], ALIKE))
        order = found.worst_first()
        assert (np.diff(found.peak_usage[order]) <= 0).all()

    @pytest.mark.parametrize("usage", [[0.5], []])
    def test_nobody_would_be_left(self, usage: list[float]) -> None:
        assert len(review_losses(cluster(usage, dict.fromkeys(range(len(usage)), (10,)))).lost) == 0

    def test_an_idle_cluster_can_grow_for_ever(self) -> None:
        assert review_losses(cluster([0.0, 0.0], {0: (), 1: ()})).before.growth.broker == ""


class TestRules:
    def isolated(self, least: int) -> Snapshot:
        policy = IsolationPolicy("one", ("acme/orders",), ("b1",), ("b2",), min_limit=least)
        return replace(cluster([0.6, 0.4, 0.2], {0: (10,) * 6, 1: (), 2: ()}), policies=Policies(isolation=(policy,)))

    def test_secondary_brokers_help_out(self) -> None:
        found = review_losses(self.isolated(1))
        assert found.unserved.tolist() == [0, 0, 0]
        assert found.brokers[found.peak_broker[0]] == "b2:8080"

    def test_without_a_broker_allowed_bundles_stay_without(self) -> None:
        found = review_losses(self.isolated(0))
        assert found.unserved.tolist() == [6, 0, 0]
        assert found.worst_first()[0] == 0

    @pytest.mark.parametrize(("manager", "unserved"), [(LoadManager.MODULAR, 6), (LoadManager.EXTENSIBLE, 0)])
    def test_where_java_cannot_read_a_policy_the_extensible_filter_keeps_everybody(
        self, manager: LoadManager, unserved: int
    ) -> None:
        policy = IsolationPolicy("all", ("*",), ("b2", "b3"))  # to the modular manager they are reserved
        held = cluster([0.6, 0.4, 0.2], {0: (10,) * 6, 1: (), 2: ()}, load_manager=manager)
        found = review_losses(replace(held, policies=Policies(isolation=(policy,))))
        assert int(found.unserved[0]) == unserved

    @pytest.mark.parametrize("placement", ["LeastResourceUsageWithWeight", "RoundRobinBrokerSelector", "AvgShedder"])
    def test_other_placements_are_named(self, placement: str) -> None:
        config = Settings({"loadBalancerLoadPlacementStrategy": placement})
        found = review_losses(cluster([0.6, 0.4, 0.2], ALIKE), config)
        assert f"as {placement} would place it" in found.method
        assert "at random" in found.method

    def test_the_least_used_broker_gets_it(self) -> None:
        config = Settings(
            {
                "loadBalancerLoadPlacementStrategy": "LeastResourceUsageWithWeight",
                "loadBalancerDistributeBundlesEvenlyEnabled": False,
            }
        )
        found = review_losses(cluster([0.6, 0.5, 0.1], {0: (10,), 1: (10,), 2: (10,)}), config)
        assert peaks(found)["b1:8080",] == pytest.approx(0.1 + 0.58, rel=1e-5)


@given(st.integers(2, 7), st.integers(0, 10**6), st.sampled_from(list(LoadManager)), st.sampled_from([1, 2]))
@settings(max_examples=25, deadline=None)
def test_traffic_is_kept(brokers: int, seed: int, load_manager: LoadManager, lost: int) -> None:
    snapshot = generate(ClusterSpec(brokers=brokers, bundles=40, topics=200, load_manager=load_manager), seed)
    found = review_losses(snapshot, lost=2 if lost == 2 else 1)
    now = review_losses(snapshot).before.growth.factor
    assert len(found.lost) == (0 if brokers <= lost else brokers if lost == 1 else brokers * (brokers - 1) // 2)
    assert (found.unserved == 0).all()
    assert (found.peak_usage >= 0).all()
    for at, gone in enumerate(found.lost.tolist()):
        assert found.peak_broker[at] not in gone
        assert found.headroom_factor[at] <= now * 1.0001 or found.brokers.index(found.before.growth.broker) in gone


@pytest.mark.parametrize("file", ["pip-364.json", "real-extensible.json"])
@pytest.mark.parametrize("factor", [1.0, 3.0])
def test_headroom_is_the_same_on_every_page(file: str, factor: float) -> None:
    snapshot = load_sample(next(sample for sample in samples() if sample.file == file))
    trace = simulate(snapshot, Scenario(cycles=1, steps=(Step(ScaleTraffic(factor=factor)),)))
    state = trace.cycles[0].state
    headroom = state.growth_factor[state.present].min()
    assert headroom == pytest.approx(review_losses(snapshot).before.growth.factor / factor)
    settled = simulate(snapshot, Scenario(cycles=12, steps=(Step(ScaleTraffic(factor=factor)),)))
    after = review_losses(at_the_end(settled), settled.settings).before.growth
    assert after.factor == pytest.approx(summary(settled).final_headroom_factor)


@pytest.mark.parametrize("number", range(12))
def test_brokers_out_of_reach_make_no_difference(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = ClusterSpec(
        load_manager=LoadManager.EXTENSIBLE if number % 3 == 2 else LoadManager.MODULAR,
        brokers=60,
        bundles=120 + 60 * (number % 5),
        namespaces=2 + number % 4 * 9,
        topics=0,
        ownership_skew=number / 12,
        heterogeneity=0.5,
        isolated_namespaces=number % 2 * 2,
        joined_brokers=number % 3,
        msg_rate_per_s=600_000.0,
    )
    placement = ("LeastLongTermMessageRate", "LeastResourceUsageWithWeight")[number % 4 // 2]
    changes: dict[str, str | bool] = {"loadBalancerDistributeBundlesEvenlyEnabled": number % 2 == 0}
    if spec.load_manager is LoadManager.MODULAR:
        changes["loadBalancerLoadPlacementStrategy"] = f"org.apache.pulsar.broker.loadbalance.impl.{placement}"
    snapshot = generate(spec, number)
    config = snapshot.settings.changed(**changes)
    monkeypatch.setattr(failure_review, "_TOGETHER", 5)
    looked_at: list[int] = []
    within = failure_review._Reach.within

    def noted(reach: failure_review._Reach, losses: Int64Array, first: int) -> Int64Array:
        found = within(reach, losses, first)
        looked_at.append(len(found))
        return found

    monkeypatch.setattr(failure_review._Reach, "within", noted)
    near = review_losses(snapshot, config)
    monkeypatch.setattr(failure_review._Reach, "within", lambda reach, *_: np.arange(len(reach.alive)))
    every = review_losses(snapshot, config)
    assert min(looked_at) < len(snapshot.brokers)
    for column in ("peak_usage", "peak_broker", "over_threshold", "headroom_factor", "unserved", "clients"):
        np.testing.assert_array_equal(getattr(near, column), getattr(every, column))
