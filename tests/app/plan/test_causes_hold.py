"""The cause that a verdict names: one that holds when its remedy is tried."""

from dataclasses import replace

import pytest

from benchmarks.advice import random_cluster
from planner.explain.diagnosis import diagnose
from planner.explain.finding import Finding
from planner.explain.health import health
from planner.explain.outcome import Outcome
from planner.explain.shedding_patterns import lag_decides
from planner.remedy.trials import Trials
from planner.remedy.tried import in_vain, tried_findings
from planner.simulate.assumptions import Assumptions
from planner.simulate.run import simulate
from planner.simulate.scenario import unchanged
from planner.simulate.usage_model import standing
from tests.app.simulate.traces import cluster


def verdicts(number: int) -> tuple[bool, str, str]:
    """Return whether averages decide, and the verdict before and after remedies were tried."""
    cluster, scenario = random_cluster(number)
    scenario = replace(scenario, seed=1)
    outcome = Outcome(simulate(cluster, scenario))
    found, config = diagnose(outcome), outcome.trace.settings
    now = standing(cluster, config, Assumptions())
    vain = in_vain(tried_findings(found, Trials(cluster, scenario, outcome)))
    first, second = (health(cluster, config, now, outcome, found, one).text for one in (frozenset[str](), vain))
    return lag_decides(outcome), first, second


def test_averages_that_lagged_long_before_are_not_why_brokers_stay_apart() -> None:
    """Lower averages changed nothing here, while no score reached the threshold any more."""
    decides, first, second = verdicts(18)
    assert not decides
    assert "the threshold is no longer reached" in first
    assert first == second


def made(code: str, title: str) -> Finding:
    return Finding(code=code, title=title, evidence="", remedy="", severity="medium")


@pytest.mark.parametrize(
    ("vain", "named"),
    [(frozenset[str](), "a first cause"), ({"threshold_never_reached"}, "a second cause")],
)
def test_a_cause_whose_remedy_made_no_difference_stands_behind_others(vain: frozenset[str], named: str) -> None:
    case = cluster((0.6, 0.2, 0.2), settings={"loadBalancerBrokerThresholdShedderPercentage": 90})
    outcome = Outcome(simulate(case, unchanged("4.2.4", cycles=3)))
    found = [made("threshold_never_reached", "A first cause"), made("idle_broker", "A second cause")]
    now = standing(case, case.settings, Assumptions())
    assert named in health(case, case.settings, now, outcome, found, vain).text
    alone = health(case, case.settings, now, outcome, found[:1], vain).text
    assert "a first cause" in alone
