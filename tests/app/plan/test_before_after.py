"""What a plan changes."""

from dataclasses import replace

import pytest

from planner.cluster.snapshot import Snapshot
from planner.explain.outcome import Outcome
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario
from planner.workspace.samples import load_sample, samples


@pytest.fixture(scope="module")
def pip() -> Snapshot:
    return load_sample(next(s for s in samples() if s.file == "pip-364.json"))


def test_numbers_are_those_of_the_cluster(pip: Snapshot) -> None:
    found = Outcome(simulate(pip, Scenario(cycles=1, settings={"loadBalancerEnabled": False}))).before_after
    assert replace(found.after, std=found.before.std) == found.before
    assert found.after.std == pytest.approx(found.before.std)
    assert found.topics == found.clients == 0
    assert found.all_topics == int(pip.bundles.topics.sum())
    assert found.before.growth.factor * found.before.peak_usage == pytest.approx(1, rel=0.02)
