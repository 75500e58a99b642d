"""AvgShedder of 5.0.1: what becomes of the destinations that it plans. Its classes were read, not run."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from planner.cluster.errors import PulsarError
from planner.cluster.releases import release
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.pulsar.manager.cycle import CycleDecision, next_cycle
from planner.pulsar.manager.leader import LeaderMemory, memory_to_json
from planner.pulsar.placement.avg import PLACEMENT, Bindings, Plans
from planner.pulsar.placement.modular import configured_placement, fresh_memory, least_loaded
from tests.rules.shedding.test_modular_shedders import cluster

NAMES = tuple(f"b{i}:8080" for i in range(4))
SOURCE, TO = NAMES[3], NAMES[0]
AVG = "org.apache.pulsar.broker.loadbalance.impl.AvgShedder"
EAGER = {
    "loadBalancerLoadSheddingStrategy": AVG,
    "loadBalancerLoadPlacementStrategy": AVG,
    "loadBalancerDistributeBundlesEvenlyEnabled": False,
    "loadBalancerAvgShedderHitCountHighThreshold": 1,
    "minUnloadMessage": 100,
    "maxUnloadPercentage": 0.5,
}
RATES = [[100.0], [400.0], [400.0], [500.0, 500.0, 500.0]]


def planned(usages: list[float], candidates: tuple[str, ...] = NAMES) -> tuple[Any, ...]:
    """Return the brokers that a planned bundle may go to, over a cluster with such usages in percent."""
    snapshot = cluster(usages, [[0.0], [0.0], [0.0], [0.0]])
    bundle = snapshot.bundle_names[3]
    config = Settings({}, release("5.0.1"))
    state = Plans({bundle: (SOURCE, TO)})
    after, decision = PLACEMENT.select(bundle, candidates, snapshot, state, config, 1)
    assert after is state
    assert decision.selected in decision.acceptable or not decision.acceptable
    return decision.acceptable


def test_the_planned_broker_is_taken() -> None:
    assert planned([10, 50, 60, 90]) == (TO,)


def test_a_planned_broker_that_is_gone_gives_way_to_any_but_the_source() -> None:
    assert planned([10, 99, 60, 90], NAMES[1:]) == NAMES[1:3]
    assert planned([10, 99, 60, 90], (SOURCE,)) == ()


def test_a_planned_broker_above_the_threshold_gives_way_to_those_up_to_it() -> None:
    assert planned([85, 50, 60, 90]) == (TO,)
    assert planned([85.5, 85, 85.5, 10]) == (NAMES[1],)
    assert planned([99, 86, 86, 10]) == (TO,)


def test_a_bundle_without_a_plan_is_drawn_and_bound_to_nothing() -> None:
    snapshot = cluster([10, 50, 60, 90], RATES, RATES)
    config = Settings(EAGER, release("5.0.1"))
    after, found = least_loaded(snapshot, "t/n/0xffffffff_0xffffffff", fresh_memory(config), config, 1)
    assert found.decision.acceptable == NAMES
    assert after.placement == Bindings()
    old = config.overrides
    bound, _ = least_loaded(snapshot, "t/n/0xffffffff_0xffffffff", fresh_memory(Settings(old)), Settings(old), 1)
    assert bound.placement != Bindings()


def test_without_a_candidate_there_is_no_broker_and_no_failure() -> None:
    snapshot = cluster([10, 90], [[0.0], [0.0]])
    with pytest.raises(PulsarError):
        PLACEMENT.select("t/n/x", (), snapshot, Bindings(), Settings(), 1)
    _, decision = PLACEMENT.select("t/n/x", (), snapshot, Bindings(), Settings({}, release("5.0.1")), 1)
    assert decision.selected is None


def cycles(version: str, count: int, snapshot: Snapshot) -> tuple[LeaderMemory, CycleDecision]:
    config = Settings(EAGER, release(version))
    memory, decided = next_cycle(snapshot, None, config, 1)
    for _ in range(count - 1):
        memory, decided = next_cycle(snapshot, memory, config, 1)
    return memory, decided


def test_equal_bundles_have_a_plan_each_and_none_outlives_the_cycle() -> None:
    """By the value of their averages, a bundle that is not shed would share the binding of its equal."""
    snapshot = cluster([10, 50, 60, 90], [[0.0] * len(r) for r in RATES], RATES)
    memory, decided = cycles("5.0.1", 1, snapshot)
    assert [(u.move.source, u.move.destination) for u in decided.unloads] == [(SOURCE, TO)]
    assert memory.shedding.state.broker == {}
    assert memory.modular.placement == Bindings()
    assert memory_to_json(memory)["shedding"]["state"]["broker"] == {}
    config = Settings(EAGER, release("5.0.1"))
    _, equal = least_loaded(snapshot, snapshot.bundle_names[4], memory.modular, config, 1)
    assert equal.decision.acceptable == NAMES
    old, before = cycles("4.2.4", 1, snapshot)
    assert before.moves == decided.moves
    place = replace(old.modular, placement=Bindings(old.shedding.state.broker))
    _, shared = least_loaded(snapshot, snapshot.bundle_names[4], place, Settings(EAGER), 1)
    assert shared.decision.acceptable == (TO,)


def test_a_cycle_takes_another_broker_when_the_planned_one_has_no_room() -> None:
    """Too many topics on the planned broker: a filter of the load manager keeps it out."""
    snapshot = cluster([10, 50, 60, 90], [[0.0] * len(r) for r in RATES], RATES)
    full = replace(snapshot, brokers=replace(snapshot.brokers, topics=np.array([60_000, 0, 0, 0])))
    _, decided = cycles("5.0.1", 1, full)
    (unload,) = decided.unloads
    assert set(unload.acceptable) == {NAMES[1], NAMES[2]}


def test_alone_as_placement_strategy_it_gives_way() -> None:
    alone = {**EAGER, "loadBalancerLoadSheddingStrategy": AVG.replace("Avg", "Threshold")}
    config = Settings(alone, release("5.0.1"))
    assert configured_placement(config).name == "LeastLongTermMessageRate"
    assert configured_placement(Settings(alone)) is PLACEMENT
    _, decided = next_cycle(cluster([10, 90], [[0.0], [0.0]]), None, config, 1)
    assert any("places bundles by LeastLongTermMessageRate instead" in note for note in decided.notes)
