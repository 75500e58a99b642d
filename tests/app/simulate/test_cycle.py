"""Whole cycles on random clusters: what must hold whatever the strategies choose."""

import json
import time
from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.cluster.load_manager import LoadManager
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.pulsar.manager.cycle import CycleDecision, _order_notes, next_cycle, the_other_way_round
from planner.pulsar.manager.leader import LeaderMemory, memory_to_json
from planner.pulsar.placement.filters import isolate
from planner.pulsar.shedding.registry import SHEDDERS
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.generate import generate
from tests.app.simulate.traces import cluster

EAGER = {
    "loadBalancerBrokerThresholdShedderPercentage": 1,
    "loadBalancerBrokerOverloadedThresholdPercentage": 30,
    "loadBalancerBundleUnloadMinThroughputThreshold": 0.001,
    "loadBalancerMsgRateDifferenceShedderThreshold": 5.0,
    "minUnloadMessage": 1,
    "minUnloadMessageThroughput": 1,
    "loadBalancerAvgShedderLowThreshold": 1,
    "loadBalancerAvgShedderHitCountLowThreshold": 1,
    "loadBalancerBrokerLoadTargetStd": 0.01,
    "loadBalancerSheddingConditionHitCountThreshold": 0,
    "loadBalancerSheddingBundlesWithPoliciesEnabled": True,
}
PLACEMENTS = ("LeastLongTermMessageRate", "LeastResourceUsageWithWeight", "RoundRobinBrokerSelector")

UNIFORM = "org.apache.pulsar.broker.loadbalance.impl.UniformLoadShedder"


@st.composite
def clusters(draw: st.DrawFn) -> tuple[Snapshot, Settings]:
    shedder = draw(st.sampled_from(SHEDDERS))
    spec = ClusterSpec(
        load_manager=shedder.load_manager,
        brokers=draw(st.integers(1, 8)),
        bundles=draw(st.integers(6, 60)),
        topics=draw(st.integers(0, 200)),
        namespaces=6,
        isolated_namespaces=draw(st.integers(0, 3)),
        anti_affinity_namespaces=draw(st.integers(0, 4)),
    )
    config = {**EAGER, "loadBalancerLoadSheddingStrategy": shedder.java_class}
    if shedder.load_manager is LoadManager.MODULAR:
        placement = "AvgShedder" if shedder.name == "AvgShedder" else draw(st.sampled_from(PLACEMENTS))
        config["loadBalancerLoadPlacementStrategy"] = placement
    config["loadBalancerDistributeBundlesEvenlyEnabled"] = draw(st.booleans())
    config["loadBalancerTransferEnabled"] = draw(st.booleans())
    if draw(st.booleans()):
        config["loadBalancerSheddingExcludedNamespaces"] = generate(spec, 1).namespaces[0]
    return generate(spec, draw(st.integers(0, 10**6))), Settings(config)


def two_cycles(snapshot: Snapshot, config: Settings, seed: int) -> tuple[LeaderMemory, CycleDecision]:
    memory, _ = next_cycle(snapshot, None, config, seed)
    later = replace(snapshot, info=replace(snapshot.info, captured_at_ms=snapshot.info.captured_at_ms + 60_000))
    return next_cycle(later, memory, config, seed)


def moves_are_possible(snapshot: Snapshot, config: Settings, decision: CycleDecision) -> None:
    """Assert that each bundle moves once, from its owner, to a broker that may have it."""
    names, owner = snapshot.brokers.name, snapshot.bundles.owner
    moved = [move.bundle for move in decision.moves]
    assert len(moved) == len(set(moved))
    for unload in decision.unloads:
        move = unload.move
        assert names[owner[snapshot.bundle_position[move.bundle]]] == move.source
        assert unload.carried_out or move.destination is None
        assert move.destination is None or move.destination in unload.acceptable
        if snapshot.info.load_manager is LoadManager.MODULAR:
            assert move.destination != move.source
            excluded = move.bundle.rpartition("/")[0] in config.names("loadBalancerSheddingExcludedNamespaces")
            assert not (excluded and unload.carried_out)


def isolation_holds(snapshot: Snapshot, decision: CycleDecision) -> None:
    """Assert that no bundle goes where its namespace may not be."""
    for unload in decision.unloads:
        if not unload.carried_out:
            continue
        namespace = unload.move.bundle.rpartition("/")[0]
        found = isolate(snapshot.policies, namespace, snapshot.brokers.name, lambda _: True)
        assert set(unload.acceptable) <= set(found.candidates)


def every_broker_has_a_reason(snapshot: Snapshot, decision: CycleDecision) -> None:
    """Assert that something is said about each broker."""
    said = {i for reason in decision.shedding.reasons for i in reason.brokers.tolist()}
    assert said >= set(range(len(snapshot.brokers)))


class TestAnyCycle:
    @given(clusters(), st.integers(0, 100))
    @settings(max_examples=100, deadline=None)
    def test_moves_are_possible_isolation_holds_and_every_broker_has_a_reason(
        self, cluster: tuple[Snapshot, Settings], seed: int
    ) -> None:
        snapshot, config = cluster
        _, decision = two_cycles(snapshot, config, seed)
        moves_are_possible(snapshot, config, decision)
        isolation_holds(snapshot, decision)
        every_broker_has_a_reason(snapshot, decision)

    @given(clusters(), st.integers(0, 100))
    @settings(max_examples=40, deadline=None)
    def test_same_input_same_answer_and_memory_shows_as_json(
        self, cluster: tuple[Snapshot, Settings], seed: int
    ) -> None:
        snapshot, config = cluster
        memory, decision = two_cycles(snapshot, config, seed)
        again, same = two_cycles(snapshot, config, seed)
        assert (again, same.moves) == (memory, decision.moves)
        assert json.dumps(memory_to_json(memory)) == json.dumps(memory_to_json(again))


def test_bundles_of_one_cycle_may_go_to_the_same_broker() -> None:
    """Destinations are chosen without preallocation, so that all of a cycle may meet on the least loaded broker."""
    snapshot = generate(
        ClusterSpec(brokers=6, bundles=200, topics=800, namespaces=4, topic_skew=1.5, ownership_skew=0.8), 3
    )
    config = Settings({**EAGER, "loadBalancerDistributeBundlesEvenlyEnabled": False})
    _, decision = next_cycle(snapshot, None, config, 0)
    destinations = {move.destination for move in decision.moves}
    assert len(decision.moves) > 1
    assert len(destinations) == 1


class TestEqualOnes:
    """Two brokers have the same load, a third one none; UniformLoadShedder unloads the first of the busiest."""

    def decided(self, *names: str) -> CycleDecision:
        rates = {0: (5_000.0,) * 8, 1: (5_000.0,) * 8, 2: (1.0,) * 8}
        view = cluster([0.5, 0.5, 0.5], dict.fromkeys(rates, (10.0,) * 8), rates=rates)
        view = replace(view, brokers=replace(view.brokers, name=names))
        return next_cycle(view, None, view.settings.changed(loadBalancerLoadSheddingStrategy=UNIFORM), 0)[1]

    def test_in_one_bucket_the_leaders_history_decides(self) -> None:
        here, there = self.decided("b0:8080", "b2:8080", "b1:8080"), self.decided("b2:8080", "b0:8080", "b1:8080")
        assert {move.source for move in here.moves} != {move.source for move in there.moves}
        (note,) = (note for note in here.notes if "Pulsar may choose differently" in note)
        assert note.index("from b2:8080") < note.index("instead of") < note.index("from b0:8080")
        assert any("may choose differently" in note for note in there.notes)

    def test_in_two_buckets_their_names_decide(self) -> None:
        here, there = self.decided("b0:8080", "b3:8080", "b1:8080"), self.decided("b3:8080", "b0:8080", "b1:8080")
        assert {move.source for move in here.moves} == {move.source for move in there.moves}
        assert not any("other one" in note for note in (*here.notes, *there.notes))


def test_a_report_without_room_is_said() -> None:
    """`TopKBundles` of Pulsar raises when it is asked for none of several bundles, and the last report stands."""
    view = cluster([0.9, 0.1], load_manager=LoadManager.EXTENSIBLE)
    for size, said in ((0, True), (-1, True), (1, False)):
        config = view.settings.changed(loadBalancerMaxNumberOfBundlesInBundleLoadReport=size)
        assert any("fail to report bundles" in note for note in next_cycle(view, None, config, 0)[1].notes) is said


def test_the_cluster_turned_round_has_the_same_names() -> None:
    snapshot = generate(ClusterSpec(brokers=5, bundles=40, topics=100), 3)
    turned = the_other_way_round(snapshot)
    afresh = replace(turned)
    assert turned.bundle_names == afresh.bundle_names == snapshot.bundle_names[::-1]
    assert np.array_equal(turned.bundle_name_hashes, afresh.bundle_name_hashes)


def test_the_order_check_grows_with_the_moves_only() -> None:
    """It was quadratic: half of a cycle of 2,700 moves."""
    snapshot = generate(ClusterSpec(brokers=5, bundles=40, topics=100, ownership_skew=1.0), 3)
    decision = next_cycle(snapshot, None, snapshot.settings.changed(**EAGER), 1)[1].shedding
    moves = [replace(decision.moves[0], bundle=f"a/b/{at}") for at in range(8_000)]
    one, other = (replace(decision, moves=tuple(part)) for part in (moves, moves[::-1]))
    began = time.process_time()
    assert _order_notes(one, other, "Order") == ()
    assert time.process_time() - began < 1.0
