"""ThresholdShedder of a real leader unloads what the planner predicts, and to where."""

from dataclasses import replace

import pytest

from planner.pulsar.manager.cycle import next_cycle
from planner.pulsar.placement.modular import fresh_memory, select_broker, unreported
from tests.cluster.scene import ONLY_DIRECT_MEMORY, SHED, Scene
from tests.cluster.watch import robust, settled_snapshot, shed_by_leader, words_before

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

SETTINGS = {
    **ONLY_DIRECT_MEMORY,
    "loadBalancerSheddingEnabled": True,
    "loadBalancerBundleUnloadMinThroughputThreshold": 0.001,
    "loadBalancerDistributeBundlesEvenlyEnabled": False,
}


def test_threshold_shedder(modular: Scene) -> None:
    name = "loadBalancerBrokerThresholdShedderPercentage"
    value = robust(settled_snapshot(modular), SETTINGS, name, range(8))
    before, done = shed_by_leader(modular, {**SETTINGS, name: value})
    owners = modular.cluster.owners()
    _, cycle = next_cycle(before, None, before.settings, seed=0)
    assert cycle.shedder.name == "ThresholdShedder"
    expected = [(source, bundle) for source, bundles in cycle.shedding.unload().items() for bundle in bundles]
    assert [(unload.source, unload.bundle) for unload in done] == expected
    for unload in done:
        assert unload.bundle.startswith(f"{SHED}/")
        acceptable: set[tuple[str, ...]] = set()
        for own in ({}, unreported(before)):  # what the leader gave to itself it counts for good while nobody uses it
            memory = replace(fresh_memory(before.settings), preallocated=own)
            _, selection = select_broker(before, unload.bundle, memory, before.settings, 0)
            acceptable.add(selection.decision.acceptable)
        assert (unload.destination,) in acceptable, words_before(modular.cluster.leader, unload)
        assert owners[unload.bundle] == unload.destination
