"""ThresholdShedder of a real leader unloads what the planner predicts, and to where."""

import json

import pytest

from planner.placement.modular import fresh_memory, select_broker
from planner.simulate.cycle import next_cycle
from tests.cluster.launch import wait_for
from tests.cluster.scene import ONLY_DIRECT_MEMORY, SHED, Scene
from tests.cluster.watch import shed_by_leader

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

SETTINGS = {
    **ONLY_DIRECT_MEMORY,
    "loadBalancerSheddingEnabled": True,
    "loadBalancerBrokerThresholdShedderPercentage": 1,
    "loadBalancerBundleUnloadMinThroughputThreshold": 0.001,
    "loadBalancerDistributeBundlesEvenlyEnabled": False,
    "loadBalancerSheddingGracePeriodMinutes": 30,
}


def test_threshold_shedder(modular: Scene) -> None:
    wait_for("averages of the brokers", lambda: averages_written(modular), seconds=90)
    with modular.settings(SETTINGS):
        before, done = shed_by_leader(modular)
    owners = modular.cluster.owners()
    _, cycle = next_cycle(before, None, before.settings, seed=0)
    assert cycle.shedder.name == "ThresholdShedder"
    expected = [(source, bundle) for source, bundles in cycle.shedding.unload().items() for bundle in bundles]
    assert [(unload.source, unload.bundle) for unload in done] == expected
    for unload in done:
        assert unload.bundle.startswith(f"{SHED}/")
        _, selection = select_broker(before, unload.bundle, fresh_memory(before.settings), before.settings, 0)
        assert selection.decision.acceptable == (unload.destination,)
        assert owners[unload.bundle] == unload.destination


def averages_written(scene: Scene) -> bool:
    """Say whether the leader wrote averages of every broker and bundle since the traffic runs."""
    brokers = scene.cluster.metadata("/loadbalance/broker-time-average")
    bundles = scene.cluster.metadata(f"/loadbalance/bundle-data/{SHED}")
    return len(bundles) == 16 and all(json.loads(node["data"])["longTermMsgRateIn"] > 0 for node in brokers)
