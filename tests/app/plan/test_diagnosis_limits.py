"""Limits that say something else than they were written for, and brokers that are given nothing because of one."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np
import pytest

from planner.cluster.load_manager import LoadManager
from planner.cluster.snapshot import Snapshot
from planner.explain.diagnosis import diagnose
from planner.explain.finding import Finding
from planner.explain.outcome import Outcome
from planner.pulsar.manager.class_names import MANAGER_CLASSES
from planner.pulsar.shedding.registry import SHEDDERS
from planner.pulsar.shedding.transfer import TransferShedder
from planner.simulate.run import simulate
from planner.simulate.scenario import unchanged
from tests.app.simulate.traces import cluster

BANDWIDTH: Final = "loadBalancerNamespaceBundleMaxBandwidthMbytes"
TARGET: Final = "loadBalancerBrokerLoadTargetStd"
TOPICS: Final = "loadBalancerBrokerMaxTopics"


def found(snapshot: Snapshot, settings: Mapping[str, str] | None = None) -> dict[str, Finding]:
    scenario = unchanged("4.2.4", cycles=4, settings=settings or {})
    return {one.code: one for one in diagnose(Outcome(simulate(snapshot, scenario)))}


@pytest.mark.parametrize(
    ("asked", "taken", "severity"), [(2048, "-2,048", "high"), (4096, "0", "high"), (5000, "904", "medium")]
)
def test_a_limit_beyond_32_bits_is_the_cause_of_splits(asked: int, taken: str, severity: str) -> None:
    """Raising the limit further was the remedy."""
    made = cluster((0.4, 0.4), {0: (1.0,) * 4, 1: (1.0,) * 4}, settings={BANDWIDTH: asked})
    seen = found(made)
    assert f"= {asked:,} as {taken} MiB/s" in seen["limit_overflows"].title
    assert seen["limit_overflows"].severity == severity
    assert "split_cascade" not in seen
    assert seen["limit_overflows"].changes == {BANDWIDTH: 2047}
    assert "limit_overflows" not in found(made, {BANDWIDTH: "2047"})


@pytest.mark.parametrize(("asked", "told"), [(0.25, False), (0.49, False), (0.5, True), (25, True)])
def test_a_deviation_that_no_cluster_has_is_a_percentage(asked: float, *, told: bool) -> None:
    settings = {
        TARGET: asked,
        "loadManagerClassName": MANAGER_CLASSES[LoadManager.EXTENSIBLE],
        "loadBalancerLoadSheddingStrategy": TransferShedder.java_class,
    }
    sizes = {0: (4.0,) * 8, 1: (1.0,) * 8, 2: (1.0,) * 8}
    seen = found(cluster((0.8, 0.3, 0.3), sizes, load_manager=LoadManager.EXTENSIBLE, settings=settings))
    assert ("threshold_never_acts" in seen) is told
    assert not told or seen["threshold_never_acts"].changes == {TARGET: 0.25}
    assert not told or "threshold_never_reached" not in seen


HISTORY: Final = "loadBalancerHistoryResourcePercentage"
SHARE: Final = "maxUnloadPercentage"
UNEVEN: Final = {0: (10.0,) * 8, 1: (10.0,) * 4, 2: (10.0,) * 4}


@pytest.mark.parametrize("manager", list(LoadManager))
@pytest.mark.parametrize("asked", [1.5, 90, 1e6, 1e300])
def test_an_average_that_runs_away_is_simulated_and_named(manager: LoadManager, asked: float) -> None:
    """Such a cluster was refused: Pulsar takes the number, and calculates with it until it is no number any more."""
    seen = found(cluster((0.8, 0.2, 0.25), UNEVEN, load_manager=manager, settings={HISTORY: asked}))
    finding = seen["average_runs_away"]
    assert finding.severity == "high"
    assert finding.changes == {HISTORY: 0.9}
    assert f"each average is {asked:g} times the last one" in finding.evidence
    assert not seen.keys() & {"average_frozen", "ema_lag", "unload_storm", "threshold_never_reached", "held_by_gate"}


def test_an_average_that_no_strategy_reads_explains_nothing() -> None:
    settings = {HISTORY: 90, "loadBalancerLoadSheddingStrategy": "OverloadShedder"}
    seen = found(cluster((0.8, 0.2, 0.25), UNEVEN, settings=settings))
    assert "average_runs_away" in seen
    assert "threshold_never_reached" in seen


@pytest.mark.parametrize("strategy", ["UniformLoadShedder", "AvgShedder"])
def test_more_than_the_whole_difference_is_shed_and_named(strategy: str) -> None:
    """Pulsar multiplies: 20 times a difference is all that the highest broker has."""
    settings = {SHARE: 20, "loadBalancerLoadSheddingStrategy": strategy}
    if strategy == "AvgShedder":
        settings["loadBalancerLoadPlacementStrategy"] = strategy
    sizes = {0: (30.0,) * 8, 1: (10.0,) * 3, 2: (10.0,) * 3}
    made = cluster((0.8, 0.2, 0.2), sizes, settings=settings)
    seen = found(made)
    finding = seen["share_above_one"]
    assert finding.changes == {SHARE: 0.2}
    assert not seen.keys() & {"unload_storm", "ping_pong", "clients_cut_off"}
    scenario = unchanged("4.2.4", cycles=4)
    shed = [sum(one.carried_out for one in cycle.unloads) for cycle in simulate(made, scenario).cycles]
    assert max(shed) == 8, "everything at once"
    assert "share_above_one" not in found(made, {SHARE: "1.0"})
    assert "share_above_one" not in found(made, {"loadBalancerLoadSheddingStrategy": "ThresholdShedder"})


@pytest.mark.parametrize(
    ("load_manager", "topics", "severity", "said"),
    [
        (LoadManager.EXTENSIBLE, (1000, 1000), "high", "stays without a broker"),
        (LoadManager.EXTENSIBLE, (1000, 999), "medium", "b1:8080 has"),
        (LoadManager.MODULAR, (1001, 1001), "low", "Pulsar ignores the limit"),
        (LoadManager.MODULAR, (1001, 1000), "medium", "b1:8080 has"),
        (LoadManager.MODULAR, (1000, 1000), "", ""),
    ],
)
def test_brokers_with_as_many_topics_as_placement_allows(
    load_manager: LoadManager, topics: tuple[int, int], severity: str, said: str
) -> None:
    each = {0: (1.0,), 1: (1.0,)}
    made = cluster((0.4, 0.4), each, load_manager=load_manager, settings={TOPICS: 1000})
    counted = replace(made.brokers, topics=np.array(topics))
    bundles = replace(made.bundles, topics=np.array(topics), data_topics=np.array(topics))
    finding = found(made.with_columns(brokers=counted, bundles=bundles)).get("topics_full")
    assert (finding.severity if finding else "") == severity
    assert finding is None or said in f"{finding.title} {finding.evidence}"


def test_a_pair_with_which_brokers_do_not_start_is_compared_with_nothing() -> None:
    avg = next(one.java_class for one in SHEDDERS if one.profile.paired_placement)
    made = cluster((0.8, 0.2, 0.2), settings={"loadBalancerLoadPlacementStrategy": avg})
    finding = found(made)["fighting_strategies"]
    assert "brokers with these settings do not start" in finding.evidence
    assert finding.remedy.endswith("LeastLongTermMessageRate.")
    assert finding.changes == {}, "a simulation of brokers that do not start says nothing"


@pytest.mark.parametrize("leader", ["b1:8080", "b3:8080"])
def test_brokers_with_another_load_manager_than_the_leader_get_nothing(leader: str) -> None:
    made = cluster((0.4, 0.4, 0.1), {0: (1.0,), 1: (1.0,), 2: ()})
    other = (*[MANAGER_CLASSES[LoadManager.MODULAR]] * 2, MANAGER_CLASSES[LoadManager.EXTENSIBLE])
    made = replace(made, info=replace(made.info, leader=leader))
    finding = found(made.with_columns(brokers=replace(made.brokers, load_manager_class=other)))["unlike_machines"]
    assert finding.title == "Brokers run different load managers"
    assert finding.remedy == "Bring all brokers to one load manager (loadManagerClassName)."
    left = "b3:8080" if leader == "b1:8080" else "b1:8080, b2:8080"
    assert f"Bundles go only to brokers with the load manager of the leader: none to {left}." in finding.evidence
    assert finding.evidence.endswith("Pulsar takes all brokers again.")
