"""One question has one answer after a scenario, too: each fact that pages show of its end, asked where they get it."""

import random
import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from planner.cluster.errors import ScenarioError
from planner.explain.cluster_tables import broker_frame
from planner.explain.diagnosis import diagnose
from planner.explain.health import figure_levels, health, usage_of
from planner.explain.outcome import Outcome
from planner.share.plan_text import plan_text
from planner.simulate.edits.registry import BrokerLoss, TrafficGrowth
from planner.simulate.failure_review import review_losses
from planner.simulate.judge import Result
from planner.simulate.losses import at_its_end, losses_after, losses_now, simulate_losses
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario, Step, unchanged
from planner.web.state import Current
from planner.workspace.database import SavedSnapshot
from tests.app.plan.random_scenarios import random_edit
from tests.app.plan.test_one_answer import cluster

CASES = range(40)
ALIKE = 1e-6
LIMIT = "loadBalancerBrokerOverloadedThresholdPercentage"
WEIGHT = "loadBalancerCPUResourceWeight"
SETTINGS = (
    (LIMIT, (50, 60, 95)),
    (WEIGHT, (0.0, 0.5)),
    ("loadBalancerBandwidthOutResourceWeight", (0.0, 2.0)),
    ("loadBalancerDirectMemoryResourceWeight", (0.0, 1.0)),
    ("loadBalancerSheddingIntervalMinutes", (2, 5)),
    ("loadBalancerSheddingEnabled", (False,)),
)


def scenario_of(number: int, attempt: int) -> Scenario:
    """Edits of any kind, more traffic, and settings by which usage is measured."""
    draw, snapshot = random.Random(f"{number}/{attempt}"), cluster(number)  # noqa: S311
    steps = [Step(TrafficGrowth(factor=draw.choice((0.7, 1.5, 4.0))))] if draw.random() < 0.6 else []
    steps += [Step(random_edit(snapshot, draw)) for _ in range(draw.randint(0, 3))]
    settings = {name: draw.choice(values) for name, values in draw.sample(SETTINGS, draw.randint(0, 3))}
    made = unchanged(snapshot.info.pulsar_version, steps=tuple(steps), settings=settings)
    return replace(made, cycles=draw.choice((1, 4, 12)), seed=draw.choice((0, 3)))


@cache
def played(number: int) -> Outcome:
    """The first random scenario that fits the cluster."""
    for attempt in range(20):
        try:
            return Outcome(simulate(cluster(number), scenario_of(number, attempt)))
        except ScenarioError:
            continue
    raise AssertionError(number)


def shown_after(case: Outcome) -> Current:
    """The view of a page with the scenario."""
    start = case.trace.start
    saved = SavedSnapshot("d", "n", "c", "m", start.info.pulsar_version, 0, 0, 0, 0, 0, "", "", (), 0)
    return Current(saved, start).after(case)


@pytest.mark.parametrize("number", CASES)
def test_usage_at_the_end(number: int) -> None:
    """Overview, Brokers and Failure review after the scenario; What-if, Moves and Compare of it."""
    case = played(number)
    measured, now = shown_after(case).measured, case.before_after.after
    snapshot, then = at_its_end(case.trace)
    review = review_losses(snapshot, then.settings_over(snapshot), assumptions=then.assumptions).before
    least, _, highest = usage_of(measured, measured.settings)
    for peak in (
        highest,
        review.peak_usage,
        float(np.nanmax(broker_frame(measured)["usage (%)"], initial=0.0)) / 100,
        case.summary.final_peak_usage_percent / 100,
        case.result.end_peak_percent / 100,
    ):
        assert peak == pytest.approx(now.peak_usage, rel=ALIKE, abs=ALIKE)
    assert (highest - least) * 100 == pytest.approx(case.result.apart_points, rel=1e-4, abs=1e-4)
    assert review.over_threshold == case.result.over_at_end == now.over_threshold
    assert review.growth.factor == pytest.approx(now.growth.factor, rel=ALIKE)
    assert case.summary.final_headroom_factor == now.growth.factor
    assert review.std == pytest.approx(now.std, rel=ALIKE, abs=ALIKE)


@pytest.mark.parametrize("number", CASES)
def test_how_many_are_above_which_limit(number: int) -> None:
    """The verdict of Overview, findings, and what the gate says of the way."""
    case = played(number)
    measured, now = shown_after(case).measured, case.before_after.after
    said = health(measured, measured.settings, now, None, diagnose(case)).text
    found = re.search(r"(\d+) of \d+ brokers? above (\d+) %", said)
    if found:
        assert (int(found[1]), int(found[2])) == (now.over_threshold, case.result.limit_percent)
    levels = figure_levels(measured, measured.settings, now)
    assert ("highest" in levels) == (now.over_threshold > 0)
    for text in (one.evidence for one in diagnose(case) if one.code == "out_of_capacity"):
        assert text.startswith(f"{now.over_threshold} of ")
        assert f"above {case.result.limit_percent:.0f} %" in text
    for one in case.gate.objections[1:]:
        on_the_way = re.search(r" is at (\d+) % ", one)
        assert on_the_way is not None
        assert float(on_the_way[1]) == pytest.approx(case.result.highest_percent, abs=0.51)


@pytest.mark.parametrize("number", CASES[::8])
def test_losses(number: int) -> None:
    """Overview and Failure review simulate losses after the scenario, the report those before and after it."""
    trace = played(number).trace
    again = simulate_losses(*at_its_end(trace))
    assert again.simulated == losses_after(trace).simulated
    assert again.limit_percent == trace.start.settings.integer(LIMIT)
    now = simulate_losses(trace.start, unchanged(trace.start.settings.release.name))
    assert now.simulated == losses_now(trace).simulated


def test_some_scenarios_tell_answers_apart() -> None:
    """Demand beyond capacity, another limit, and other weights are among them."""
    cases = [played(number) for number in CASES]
    assert any(case.result.end_peak_percent > 100 for case in cases)
    for name in (LIMIT, WEIGHT):
        assert any(case.trace.settings[name] != case.trace.start.settings[name] for case in cases)
    assert any(len(case.gate.objections) > 1 for case in cases)


@pytest.mark.parametrize("changes", [{LIMIT: 60}, {WEIGHT: 0.5}])
def test_other_measures_are_said_to_change_decisions_only(changes: dict[str, float]) -> None:
    made = Scenario(cycles=1, settings=changes)
    (said,) = made.measured_as_captured(cluster(0))
    trace = simulate(cluster(0), made)
    assert said in trace.notes
    assert said in plan_text(trace, "", ())
    assert not Scenario(settings={"loadBalancerBrokerThresholdShedderPercentage": 5}).measured_as_captured(cluster(0))


def test_a_weight_of_the_capture_that_the_scenario_takes_back_is_noticed() -> None:
    """The value is the default then, so that the scenario's settings do not differ from the defaults."""
    light = replace(cluster(0), settings=cluster(0).settings.changed(**{WEIGHT: 0.5}))
    taken_back = simulate(light, Scenario(cycles=3, settings={WEIGHT: 1.0}))
    assert Result.of(taken_back).highest_percent == Result.of(simulate(light, Scenario(cycles=3))).highest_percent


def test_demand_beyond_capacity_counts_under_other_weights_too() -> None:
    """A broker dies; on the way, usage was cut off at 100 % wherever a scenario changes a weight."""
    snapshot = cluster(1)
    edits = (Step(TrafficGrowth(factor=6.0)), Step(BrokerLoss(broker=snapshot.brokers.name[0], at_min=1.0)))
    same, lighter = (
        Result.of(simulate(snapshot, Scenario(cycles=5, steps=edits, settings=settings)))
        for settings in ({"loadBalancerSheddingEnabled": False}, {"loadBalancerSheddingEnabled": False, WEIGHT: 0.9})
    )
    assert same.highest_percent > 100
    assert lighter.highest_percent == pytest.approx(same.highest_percent)
