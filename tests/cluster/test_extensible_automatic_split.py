"""Automatic splits of real brokers of the extensible load manager are those that the planner predicts."""

import time

import pytest

from planner.cluster.snapshot import Snapshot
from planner.pulsar.manager.splits import next_splits
from tests.cluster.launch import wait_for
from tests.cluster.scene import SHED, Scene, one_in_each_bundle
from tests.cluster.test_modular_automatic_split import after

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

AUTO = "globex/auto"
"""Topics without traffic: eight in one of its four bundles, two in each of the others."""
LIMIT = 5
_CHECK_S = 75.0
"""From one check of a broker to the next, and some more."""


def topics() -> list[str]:
    return one_in_each_bundle(AUTO, 4, 8)[:8] + one_in_each_bundle(AUTO, 4, 2)[2:]


def test_automatic_split(extensible: Scene) -> None:
    extensible.admin.create_namespace(AUTO, 4)
    for topic in topics():
        extensible.admin.create_topic(topic)
        extensible.admin.lookup(topic)

    def loaded() -> Snapshot | None:
        found = extensible.snapshot(AUTO)
        mine = [name for name in found.topics.name.to_pylist() if name in set(topics())]
        counted = found.bundles.topics[[at for at, name in enumerate(found.bundle_names) if name.startswith(AUTO)]]
        return found if len(mine) == len(topics()) and counted.max() > LIMIT else None

    before = wait_for("all topics are loaded and counted", loaded, seconds=120, every=2)
    settings = {
        "loadBalancerNamespaceBundleMaxTopics": LIMIT,
        "loadBalancerNamespaceBundleSplitConditionHitCountThreshold": 0,
        "loadBalancerAutoBundleSplitEnabled": True,
    }
    decision = next_splits(before, before.settings.changed(**settings))
    expected = after(before, decision)
    assert {order.bundle.rpartition("/")[0] for order in decision.splits} == {AUTO}
    assert len(expected[AUTO]) == 6
    with extensible.settings(settings):
        wait_for("the split", lambda: len(extensible.admin.boundaries(AUTO)) >= 6, seconds=_CHECK_S, every=1)
        time.sleep(_CHECK_S)  # another check, which must split nothing that was not predicted
        again = extensible.snapshot(AUTO)
        further = after(again, next_splits(again, again.settings.changed(**settings)))
    assert extensible.admin.boundaries(AUTO) == expected[AUTO] == further[AUTO]
    assert sum(name.startswith(f"{SHED}/") for name in extensible.cluster.owners()) == 16
