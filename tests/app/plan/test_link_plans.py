"""A scenario opened from its link, or from the workspace that keeps it, gives the same plan."""

from pathlib import Path

import pytest

from planner.cluster.digest import snapshot_digest
from planner.cluster.snapshot import Snapshot
from planner.formats.document import snapshot_of_document, write_document
from planner.share.link import decode_link, encode_link, scenario_link
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.generate import generate
from planner.simulate.run import simulate
from planner.workspace.database import open_workspace
from tests.app.plan.random_scenarios import random_plan, random_scenario


@pytest.fixture(scope="module")
def little() -> Snapshot:
    """A cluster small enough to be simulated hundreds of times."""
    return generate(ClusterSpec(brokers=4, namespaces=3, bundles=16, topics=48, msg_rate_per_s=40_000), 3)


def test_a_thousand_links_hold_their_scenarios(little: Snapshot) -> None:
    """An equal scenario gives an equal plan, which is tried with some of them below."""
    digest = snapshot_digest(little)
    for seed in range(1_000):
        scenario = random_scenario(little, seed, most_cycles=2)
        link = decode_link(encode_link(scenario, digest, "little"))
        assert (link.snapshot_digest, link.scenario) == (digest, scenario)


def test_links_give_the_same_plans(little: Snapshot) -> None:
    digest = snapshot_digest(little)
    plans = set()
    for seed in range(100):
        trace = random_plan(little, seed, most_cycles=2)
        link = decode_link(encode_link(trace.scenario, digest, "little"))
        assert link.scenario is not None
        assert simulate(little, link.scenario).digest() == trace.digest()
        plans.add(trace.digest())
    assert len(plans) > 50, "the scenarios do different things"


def test_another_server_with_the_same_snapshot_makes_the_same_plan(little: Snapshot, tmp_path: Path) -> None:
    """The snapshot goes through a file, the scenario through a link; one is too large and goes through the store."""
    here = open_workspace(tmp_path / "here.duckdb")
    there = snapshot_of_document(write_document(little).encode(), "little.json")
    for seed in range(5):
        trace = random_plan(little, seed, most_cycles=4)
        text = scenario_link(
            trace.scenario,
            snapshot_digest(little),
            "little",
            address="https://planner.example/" + "x" * (1_800 if seed == 0 else 0) + "?s=",
            keep=lambda scenario: here.scenarios.save(scenario).digest,
        ).rpartition("=")[2]
        link = decode_link(text)
        assert link.snapshot_digest == snapshot_digest(there)
        assert (link.scenario is None) is (seed == 0)
        scenario = link.scenario or here.scenarios.load(link.scenario_digest)
        assert simulate(there, scenario).digest() == trace.digest()
    here.close()
