"""What a plan changes, and whether it is said when it ends worse than now."""

from dataclasses import replace

import pytest

from planner.cluster.snapshot import Snapshot
from planner.explain.outcome import Outcome
from planner.simulate.edits.edit import Edit
from planner.simulate.edits.kill_broker import KillBroker
from planner.simulate.edits.scale_traffic import ScaleTraffic
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario, Step
from planner.workspace.samples import load_sample, samples


@pytest.fixture(scope="module")
def pip() -> Snapshot:
    return load_sample(next(s for s in samples() if s.file == "pip-364.json"))


@pytest.mark.parametrize(
    ("edits", "said"),
    [
        ((), ()),
        (
            (ScaleTraffic(factor=2.0),),
            ("The highest usage rises from", "Brokers above 85 %", "Headroom falls from"),
        ),
        ((KillBroker(broker="broker-4:8080"),), ()),
    ],
)
def test_worse_is_said(pip: Snapshot, edits: tuple[Edit, ...], said: tuple[str, ...]) -> None:
    found = Outcome(simulate(pip, Scenario(steps=tuple(map(Step, edits)), cycles=12))).before_after
    assert len(found.worse) == len(said)
    for sentence, part in zip(found.worse, said, strict=True):
        assert part in sentence


def test_numbers_are_those_of_the_cluster(pip: Snapshot) -> None:
    found = Outcome(simulate(pip, Scenario(cycles=1, settings={"loadBalancerEnabled": False}))).before_after
    assert replace(found.after, std=found.before.std) == found.before
    assert found.after.std == pytest.approx(found.before.std)
    assert found.topics == found.clients == 0
    assert found.all_topics == int(pip.bundles.topics.sum())
    assert found.before.growth.factor * found.before.peak_usage == pytest.approx(1, rel=0.02)
