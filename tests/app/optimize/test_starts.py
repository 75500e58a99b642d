"""What a plan starts from: the cluster with the edits of a scenario, before or after the load balancer's own cycles."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.__main__ import main
from planner.cluster.digest import snapshot_digest
from planner.cluster.snapshot import Snapshot
from planner.optimize.absorb import left_by, on_its_edits
from planner.optimize.answer import best_plan
from planner.optimize.question import Question
from planner.optimize.stability import watch
from planner.optimize.waves import on_top_of, scenario_of
from planner.share.scenario_file import scenario_file
from planner.simulate.assumptions import Assumptions
from planner.simulate.edits.registry import BrokerDrain, NewBrokers, TrafficGrowth
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario, Step, unchanged
from planner.simulate.usage_model import at_the_end, settled, standing
from planner.workspace.samples import Sample, load_sample, samples
from tests.app.optimize.brute import small_cluster


def adding(snapshot: Snapshot, count: int) -> Scenario:
    return unchanged(snapshot.info.pulsar_version, steps=(Step(NewBrokers(count=count)),), cycles=3)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000), count=st.integers(1, 3), moves=st.sampled_from([1, 3, 8, None]))
def test_more_brokers_are_never_worse(seed: int, count: int, moves: int | None) -> None:
    """Without anti-affinity groups: with them an empty broker is the only one that may own the next bundle."""
    small = small_cluster(seed)
    more = left_by(small, adding(small, count))
    assert len(more.brokers) == len(small.brokers) + count
    assert (more.bundles.owner == small.bundles.owner).all(), "nothing has moved before the plan"
    question = Question(moves=moves, splits=0)
    assert best_plan(more, question).peak <= best_plan(small, question).peak + 1e-6


def test_no_cycle_runs_before_a_plan_unless_that_is_asked() -> None:
    story = load_sample(samples()[0])
    asked = adding(story, 4)
    with_edits, afterwards = left_by(story, asked), settled(simulate(story, asked))
    assert (with_edits.bundles.owner == story.bundles.owner).all()
    assert len(afterwards.bundles) > len(story.bundles), "the load balancer has split some"
    question = Question(moves=18, rounds=2, splits=0)
    assert best_plan(with_edits, question).peak <= best_plan(story, question).peak + 1e-6


@pytest.mark.parametrize(
    "sample", [one for one in samples() if one.file != "generated-100.zip"], ids=lambda one: one.file
)
def test_what_a_plan_on_edits_promises_is_what_opens(sample: Sample) -> None:
    """What a bundle brings to a machine goes along with it: by the edits, and once more by the plan."""
    captured = load_sample(sample)
    largest = captured.brokers.name[int(captured.bundle_counts().argmax())]
    asked = unchanged(captured.info.pulsar_version, steps=(Step(BrokerDrain(broker=largest, bundles_per_min=1_000)),))
    asked = replace(asked, assumptions=Assumptions(idle_cpu_percent=10.0), cycles=3)
    plan = best_plan(left_by(captured, asked), Question(moves=10, rounds=2, splits=0))
    end = at_the_end(simulate(captured, on_its_edits(captured, asked, scenario_of(plan, cycles=3))))
    opened = standing(end, end.settings, Assumptions()).peak_usage
    assert opened == pytest.approx(float(plan.usage_after[plan.counts].max()), abs=1e-9)


def test_edits_and_settings_are_made() -> None:
    story = load_sample(samples()[0])
    name = story.brokers.name[0]
    steps = (Step(BrokerDrain(broker=name, bundles_per_min=1_000)), Step(TrafficGrowth(factor=1.5)))
    asked = replace(
        unchanged(story.info.pulsar_version, steps=steps, cycles=3),
        settings={"loadBalancerBrokerOverloadedThresholdPercentage": 80},
    )
    left = left_by(story, asked)
    assert not (left.bundles.owner == left.brokers.position[name]).any()
    assert left.bundles.msg_rate_in_per_s.sum() == pytest.approx(1.5 * story.bundles.msg_rate_in_per_s.sum(), rel=0.01)
    assert left.settings.integer("loadBalancerBrokerOverloadedThresholdPercentage") == 80
    assert left.settings.flag("loadBalancerSheddingEnabled") == story.settings.flag("loadBalancerSheddingEnabled")


def test_the_command_starts_from_the_edits(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    story = load_sample(samples()[0])
    kept = tmp_path / "more.json"
    kept.write_text(scenario_file(adding(story, 4), snapshot_digest(story), "story"))
    told = []
    words = ["optimize", "--snapshot", samples()[0].file, "--moves", "8", "--splits", "0", "--json"]
    for more in ([], ["--scenario", str(kept)], ["--scenario", str(kept), "--after-cycles"]):
        assert main([*words, *more]) == 0
        told.append(json.loads(capsys.readouterr().out))
    alone, edited, cycles = told
    assert edited["peak_percent"] <= alone["peak_percent"] + 1e-6
    assert edited["before_percent"] == pytest.approx(alone["before_percent"])
    assert cycles["before_percent"] != pytest.approx(alone["before_percent"])
    assert any(move["to"].startswith("added-") for move in edited["moves"])


def test_the_release_of_a_scenario_decides_what_becomes_of_its_plan() -> None:
    """What a plan is judged by is what it opens as, also where the scenario is about another release."""
    story = load_sample(samples()[0])
    asked = Scenario(pulsar_version="3.0.7", cycles=1)
    plan = best_plan(left_by(story, asked), Question(moves=4, splits=0, rounds=2))
    watched = watch(plan).trace
    assert watched.scenario.pulsar_version == "3.0.7"
    assert watched.settings.release.name == simulate(story, asked).settings.release.name == "3.0.7"
    assert on_top_of(asked, scenario_of(plan)).pulsar_version == "3.0.7"
