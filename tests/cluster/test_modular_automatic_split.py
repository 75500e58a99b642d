"""Automatic splits of a real leader are those that the planner predicts."""

import json
import re
import time
from itertools import pairwise

import pytest

from planner.cluster.decisions import SplitDecision
from planner.cluster.ranges import bundle_name
from planner.cluster.snapshot import Snapshot
from planner.pulsar.manager.splits import next_splits
from planner.pulsar.splitting.request import namespace_boundaries
from tests.cluster.launch import wait_for
from tests.cluster.scene import GROW, Scene

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

LIMIT = 13
"""Topics: both bundles of `GROW` have more, their children and all other bundles of the cluster have fewer."""

_SPLITTING = re.compile(r"Load-manager splitting bundle (\S+) and unloading", re.MULTILINE)


def reported_bundles(scene: Scene) -> dict[str, int]:
    """Return the topics of each bundle in the load reports."""
    reports = [json.loads(node["data"]) for node in scene.cluster.metadata("/loadbalance/brokers")]
    return {name: stats["topics"] for report in reports for name, stats in report["lastStats"].items()}


def after(snapshot: Snapshot, decision: SplitDecision) -> dict[str, tuple[int, ...]]:
    """Return the boundaries of each namespace after the splits of a decision."""
    cuts: dict[str, set[int]] = {}
    for order in decision.splits:
        assert order.boundaries
        cuts.setdefault(order.bundle.rpartition("/")[0], set()).update(order.boundaries)
    return {
        name: tuple(sorted({*namespace_boundaries(snapshot, i), *cuts.get(name, ())}))
        for i, name in enumerate(snapshot.namespaces)
    }


def test_automatic_split(modular: Scene) -> None:
    topics = sum(1 for name in modular.flows if name.startswith(f"persistent://{GROW}/"))

    def all_reported() -> bool:
        return sum(n for name, n in reported_bundles(modular).items() if name.startswith(f"{GROW}/")) >= topics

    wait_for("reports about all topics", all_reported, seconds=30)
    before = modular.snapshot()
    settings = {"loadBalancerNamespaceBundleMaxTopics": LIMIT, "loadBalancerAutoBundleSplitEnabled": True}
    decision = next_splits(before, before.settings.changed(**settings))
    expected = after(before, decision)
    assert {order.bundle.rpartition("/")[0] for order in decision.splits} == {GROW}
    leader = modular.cluster.leader
    with modular.settings(settings):
        wait_for("the splits", lambda: len(modular.admin.boundaries(GROW)) >= len(expected[GROW]), seconds=40)
        children = {bundle_name(GROW, *ends) for ends in pairwise(expected[GROW])}
        wait_for("reports about the children", lambda: children <= set(reported_bundles(modular)), seconds=40)
        time.sleep(6)  # another refresh, which must split nothing
    assert {name: modular.admin.boundaries(name) for name in modular.namespaces} == {
        name: expected[name] for name in modular.namespaces
    }
    assert _SPLITTING.findall(leader.log) == [order.bundle for order in decision.splits]
