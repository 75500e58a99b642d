"""Asks Pulsar's own classes where the modular load manager places bundles: its strategies, and the whole request."""

import pytest

from tests.oracle.cases import PLACEMENTS, placement_case, seeded
from tests.oracle.harness import Oracle, check
from tests.oracle.requests import manager_case, mismatches

pytestmark = [pytest.mark.oracle, pytest.mark.timeout(900)]


@pytest.mark.parametrize("strategy", PLACEMENTS)
def test_strategies(oracle: Oracle, strategy: str) -> None:
    rng = seeded()
    cases = [placement_case(strategy, rng, number) for number in range(1200)]
    answers = check(oracle, cases)
    steps = [step for answer in answers for step in answer["steps"]]
    if strategy != "AvgShedder":
        assert any(step.get("selected", "") is None for step in steps)
    if strategy != "RoundRobinBrokerSelector":
        assert {1, 2, 5} <= {len(step.get("candidates", ())) for step in steps}


@pytest.mark.parametrize("strategy", [name for name in PLACEMENTS if name != "AvgShedder"])
def test_strategies_of_large_clusters(oracle: Oracle, strategy: str) -> None:
    rng = seeded()
    check(oracle, [placement_case(strategy, rng, number, (200, 20_000)) for number in range(3)])


def test_requests(oracle: Oracle) -> None:
    """Isolation, topics, anti-affinity, even distribution, class and version, re-selection, promises, refreshes."""
    rng = seeded()
    cases = [manager_case(rng, number) for number in range(1500)]
    answers = oracle(cases)
    wrong = {c["id"]: found for c, a in zip(cases, answers, strict=True) if (found := mismatches(c, a))}
    assert not wrong
    calls = [len(answer["calls"]) for case in answers for answer in case["requests"]]
    assert min(calls.count(1), calls.count(2)) > 500


def test_requests_of_large_clusters(oracle: Oracle) -> None:
    rng = seeded()
    cases = [manager_case(rng, number, (200, 20_000)) for number in range(4)]
    wrong = {c["id"]: found for c, a in zip(cases, oracle(cases), strict=True) if (found := mismatches(c, a))}
    assert not wrong
