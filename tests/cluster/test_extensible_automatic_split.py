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


def test_automatic_splits(extensible: Scene) -> None:
    """Check after check, until no bundle has too many topics any more."""
    extensible.admin.create_namespace(AUTO, 4)
    for topic in topics():
        extensible.admin.create_topic(topic)
        extensible.admin.lookup(topic)

    def counted() -> Snapshot | None:
        found = extensible.snapshot(AUTO)
        mine = [at for at, name in enumerate(found.bundle_names) if name.startswith(f"{AUTO}/")]
        listed = set(found.topics.name.to_pylist()) >= set(topics())
        return found if listed and found.bundles.topics[mine].sum() >= len(topics()) else None

    settings = {
        "loadBalancerNamespaceBundleMaxTopics": LIMIT,
        "loadBalancerNamespaceBundleSplitConditionHitCountThreshold": 0,
        "loadBalancerAutoBundleSplitEnabled": True,
    }
    before = wait_for("all topics are loaded and counted", counted, seconds=120, every=2)
    rounds = 0
    with extensible.settings(settings):
        while True:
            decision = next_splits(before, before.settings.changed(**settings))
            assert {order.bundle.rpartition("/")[0] for order in decision.splits} <= {AUTO}
            expected = after(before, decision)[AUTO]
            if not decision.splits:
                break
            known = len(extensible.admin.boundaries(AUTO))
            wait_for("a split", lambda had=known: len(extensible.admin.boundaries(AUTO)) > had, seconds=90, every=0.5)
            assert extensible.admin.boundaries(AUTO) == expected
            rounds += 1
            before = wait_for("the children are counted", counted, seconds=60, every=1)
        time.sleep(_CHECK_S)  # another check, which must split nothing
        assert extensible.admin.boundaries(AUTO) == expected
    assert rounds
    assert sum(name.startswith(f"{SHED}/") for name in extensible.cluster.owners()) == 16
