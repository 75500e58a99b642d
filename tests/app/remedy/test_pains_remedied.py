"""The known pains of operators: of each, something that is offered works when it is carried out."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

import pytest

from planner.cluster.snapshot import Snapshot
from planner.explain.diagnosis import diagnose
from planner.explain.finding import Finding
from planner.explain.outcome import Outcome
from planner.remedy.candidates import more_brokers, of_finding
from planner.remedy.trials import Trials
from planner.remedy.tried import diagnosed, fix, tried_findings
from planner.simulate.dispatch.edits import doubled_limit
from planner.simulate.edits.registry import DispatchLimit, TrafficGrowth
from planner.simulate.judge import judge
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario, Step, unchanged
from tests.app.plan.test_pains import EVENLY, PAINS, PLACEMENT, SHEDDING, limited, made

CLASSES = "org.apache.pulsar.broker.loadbalance.impl."


def full(strategy: str) -> Snapshot:
    """Brokers alike, evenly used."""
    like = {"brokers": 4, "bundles": 64, "topics": 800, "topic_skew": 0.1, "heterogeneity": 0, "ownership_skew": 0}
    return made({SHEDDING: f"{CLASSES}{strategy}"}, **like)


def slow_network() -> Snapshot:
    """One of four brokers reports a tenth of the speed of the others."""
    snapshot = made({}, brokers=4, bundles=64, topics=800, topic_skew=0.3, msg_rate_per_s=150_000)
    table = snapshot.brokers
    inbound, outbound = table.bandwidth_in_limit_kbit_per_s.copy(), table.bandwidth_out_limit_kbit_per_s.copy()
    inbound[1] /= 10
    outbound[1] /= 10
    slow = replace(table, bandwidth_in_limit_kbit_per_s=inbound, bandwidth_out_limit_kbit_per_s=outbound)
    return replace(snapshot, brokers=slow)


def few_bundles(**more: float) -> Snapshot:
    like = {"brokers": 6, "bundles": 4, "topics": 500, "topic_skew": 0.1, "heterogeneity": 0}
    return made({"loadBalancerAutoBundleSplitEnabled": False}, msg_rate_per_s=120_000, **like, **more)


CLUSTERS: Final[Mapping[str, tuple[Callable[[], Snapshot], str]]] = {
    "1 unload storm": (lambda: full("OverloadShedder"), "out_of_capacity"),
    "2 ping-pong": (PAINS["2 ping-pong"][0], "ping_pong"),
    "3 idle broker": (PAINS["3 idle broker"][0], "idle_broker"),
    "4 never sheds, as everybody is full": (lambda: full("ThresholdShedder"), "out_of_capacity"),
    "5 averages": (PAINS["5 averages"][0], "ema_lag"),
    "6 random fallback": (
        lambda: made(
            {PLACEMENT: f"{CLASSES}LeastResourceUsageWithWeight", EVENLY: False},
            brokers=6,
            bundles=60,
            topics=600,
            msg_rate_per_s=250_000,
        ),
        "drawn_at_random",
    ),
    "7 strategies that fight": (PAINS["7 strategies that fight"][0], "fighting_strategies"),
    "8 threshold": (PAINS["8 threshold"][0], "threshold_never_reached"),
    "9 too few bundles": (lambda: few_bundles(cpu_percent_per_mb_per_s=1.5), "bundle_count_too_low"),
    "10 splits up to the most there may be": (PAINS["10 splits up to the most there may be"][0], "split_cascade"),
    "11 refused split": (PAINS["11 refused split"][0], "split_refused"),
    "12 hot topic": (PAINS["12 hot topic"][0], "hot_topic"),
    "13 clients": (few_bundles, "clients_cut_off"),
    "14 wrong speed of a network": (slow_network, "impossible_measurement"),
}
GROWN: Final = {"1 unload storm": 2.2, "4 never sheds, as everybody is full": 2.2}
"""Traffic that is added, so that usage follows from traffic."""


def asked(pain: str) -> tuple[Trials, Outcome, Finding]:
    """Return where remedies of a pain are tried, what comes of none, and the finding that names the pain."""
    make, code = CLUSTERS[pain]
    snapshot = make()
    scenario = unchanged(snapshot.info.pulsar_version)
    if pain in GROWN:
        scenario = replace(scenario, steps=(Step(TrafficGrowth(factor=GROWN[pain])),))
    outcome = Outcome(simulate(snapshot, scenario))
    trials = Trials(snapshot, scenario, outcome)  # what findings try, Fix it need not simulate again
    found = (one.finding for one in tried_findings(diagnose(outcome), trials))
    return trials, outcome, next(one for one in found if one.code == code)


@pytest.mark.parametrize("pain", CLUSTERS)
def test_what_is_offered_works(pain: str) -> None:
    trials, outcome, finding = asked(pain)
    action = of_finding(finding, outcome.trace.settings)
    if action is None:
        found = fix(trials, outcome)
        best = found.pair or found.best
        assert best is not None or found.brokers, (finding.tried, found.sentence)
        action = more_brokers(trials.scenario, found.brokers) if best is None else best.action
    trial = trials.try_out(action)
    assert trial is not None
    verdict = judge(outcome.result, Outcome(simulate(trials.snapshot, trial.on(trials.scenario))).result)
    assert verdict.word in {"better", "trade-off"}
    assert trial.verdict == verdict
    assert trial.is_worth_it


def test_a_doubled_limit_throttles_no_more() -> None:
    """15 throttling: the finding says where the limit is set, and gives the command that doubles it."""
    snapshot = limited(1.0)
    finding = next(one for one in diagnosed(Outcome(simulate(snapshot, Scenario()))) if one.code == "throttled")
    doubled = doubled_limit(finding.topics[0], snapshot.policies, snapshot.settings)
    assert doubled is not None
    assert (
        "namespaces set-dispatch-rate acme/orders --msg-dispatch-rate -1 --byte-dispatch-rate 2097152" in finding.remedy
    )
    assert all(command in finding.remedy for command in doubled.commands())
    edit = DispatchLimit.of(doubled)
    assert edit is not None
    outcome = Outcome(simulate(snapshot, Scenario(steps=(Step(edit),))))
    assert "throttled" not in {one.code for one in diagnosed(outcome)}
