"""AvgShedder of a real leader unloads what the planner predicts, and to where."""

import pytest

from planner.pulsar.manager.cycle import next_cycle
from tests.cluster.scene import ONLY_DIRECT_MEMORY, SHED, Scene
from tests.cluster.watch import robust, settled_snapshot, shed_by_leader

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

SETTINGS = {
    **ONLY_DIRECT_MEMORY,
    "loadBalancerSheddingEnabled": True,
    "loadBalancerAvgShedderLowThreshold": 2,
    "loadBalancerAvgShedderHighThreshold": 5,
    "loadBalancerAvgShedderHitCountHighThreshold": 1,
    "minUnloadMessage": 10,
    "loadBalancerDistributeBundlesEvenlyEnabled": False,
}


def test_avg_shedder(avg_shedder: Scene) -> None:
    """The first bundle goes to the least loaded broker.

    So do the others, unless a report arrives first: the strategy looks its choice up by the averages of the bundle.
    """
    values = [0.1 * 1.04**step for step in range(40)]
    value = robust(settled_snapshot(avg_shedder), SETTINGS, "maxUnloadPercentage", values)
    before, done = shed_by_leader(avg_shedder, {**SETTINGS, "maxUnloadPercentage": value})
    owners = avg_shedder.cluster.owners()
    _, cycle = next_cycle(before, None, before.settings, seed=0)
    assert cycle.shedder.name == "AvgShedder"
    expected = [(move.source, move.bundle) for move in cycle.shedding.moves]
    assert [(unload.source, unload.bundle) for unload in done] == expected
    assert done[0].destination == cycle.shedding.moves[0].destination
    for unload in done:
        assert unload.bundle.startswith(f"{SHED}/")
        assert owners[unload.bundle] == unload.destination
