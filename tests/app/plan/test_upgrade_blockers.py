"""What keeps a cluster from running on another release."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from planner.cluster.load_manager import LoadManager
from planner.cluster.releases import ReleaseName, release
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.explain.diagnosis import diagnose
from planner.explain.upgrade import before_upgrade, steps_of, upgrade_of
from planner.formats.reading import read_snapshot
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario, unchanged
from tests.app.simulate.traces import cluster

CASES = Path(__file__).parents[4] / "shared" / "cases"
IMPL: Final = "org.apache.pulsar.broker.loadbalance.impl."
SHEDDING: Final = "loadBalancerLoadSheddingStrategy"
PLACEMENT: Final = "loadBalancerLoadPlacementStrategy"


def of(
    version: str, namespace: str = "acme/orders", manager: LoadManager = LoadManager.MODULAR, **given: Any
) -> Snapshot:
    made = cluster((0.2, 0.2), load_manager=manager)
    return replace(
        made,
        namespaces=(namespace,),
        info=replace(made.info, pulsar_version=version),
        settings=Settings(given, release(version)),
    )


def blocked(snapshot: Snapshot, to: ReleaseName) -> tuple[str, ...]:
    upgrade = upgrade_of(snapshot, before_upgrade(Scenario(), snapshot), to)
    said = [step.what for step in steps_of(upgrade, snapshot) if step.what.startswith("Blocker: ")]
    assert said == [f"Blocker: {one}" for one in upgrade.blockers]
    return upgrade.blockers


@pytest.mark.parametrize(
    ("version", "to", "namespace", "held"),
    [
        ("4.0.8", "4.2.4", "acme/east/orders", True),
        ("3.0.7", "5.0.1", "acme/east/orders", True),
        ("3.0.7", "4.0.8", "acme/east/orders", False),
        ("4.0.8", "4.2.4", "acme/orders", False),
        ("4.0.8", "4.2.4", "pulsar/east/b1:8080", False),
    ],
)
def test_namespaces_that_name_a_cluster(version: str, to: ReleaseName, namespace: str, *, held: bool) -> None:
    snapshot = of(version, namespace)
    found = blocked(snapshot, to)
    assert (len(found) == 1) is held
    assert all(namespace in one for one in found)
    codes = {finding.code: finding for finding in diagnose(simulate(snapshot, unchanged(to, cycles=1)))}
    assert ("old_namespace" in codes) is (namespace == "acme/east/orders")
    if "old_namespace" in codes:
        assert codes["old_namespace"].severity == "low"
        assert ("follows the rules of" in codes["old_namespace"].evidence) is held


@pytest.mark.parametrize(
    ("version", "to", "setting", "held"),
    [
        ("3.3.5", "4.0.8", SHEDDING, True),
        ("3.0.7", "3.3.5", SHEDDING, False),
        ("4.0.8", "4.2.4", PLACEMENT, True),
        ("3.3.5", "4.0.8", PLACEMENT, False),
    ],
)
def test_classes_that_cannot_be_loaded(version: str, to: ReleaseName, setting: str, *, held: bool) -> None:
    simple = "UniformLoadShedder" if setting == SHEDDING else "LeastResourceUsageWithWeight"
    found = blocked(of(version, "acme/orders", LoadManager.MODULAR, **{setting: simple}), to)
    assert (len(found) == 1) is held
    assert all(f"Set it to {IMPL}{simple} first." in one for one in found)
    assert not blocked(of(version, "acme/orders", LoadManager.MODULAR, **{setting: IMPL + simple}), to)


def test_the_extensible_load_manager_replaces_what_it_cannot_load() -> None:
    assert not blocked(
        of("4.0.8", "acme/orders", LoadManager.EXTENSIBLE, **{SHEDDING: "Transfer", PLACEMENT: "X"}), "4.2.4"
    )


@pytest.mark.skipif(not CASES.is_dir(), reason="needs the handed-out cases")
def test_the_handed_out_case() -> None:
    (said,) = blocked(read_snapshot(CASES / "h08_v1_namespace.json"), "4.2.4")
    assert "prop/east/ns1" in said
