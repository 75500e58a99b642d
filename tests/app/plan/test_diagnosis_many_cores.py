"""A broker that reports the cores of its host: it looks idle, and the finding says what may be true instead."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from planner.cluster.load_manager import LoadManager
from planner.cluster.snapshot import Snapshot
from planner.explain.diagnosis import diagnose
from planner.explain.finding import Finding
from planner.explain.outcome import Outcome
from planner.remedy.trials import Trials
from planner.remedy.tried import tried_findings
from tests.app.plan.test_diagnosis_gates import asked, verdict
from tests.app.simulate.traces import cluster

BY_USAGE = {
    "loadBalancerLoadPlacementStrategy": "LeastResourceUsageWithWeight",
    "loadBalancerDistributeBundlesEvenlyEnabled": False,
    "loadBalancerAutoBundleSplitEnabled": False,
}


def with_cores(cores: Sequence[float], used: Sequence[float], **limits: Sequence[float]) -> Snapshot:
    """Brokers of so many cores of which so many are in use; the rest of the machines is alike."""
    usage = [mine / there for mine, there in zip(used, cores, strict=True)]
    made = cluster(usage, dict.fromkeys(range(len(cores)), (20.0,) * 6), settings=BY_USAGE)
    columns = {
        "cpu_usage_percent": [100 * mine for mine in used],
        "cpu_limit_percent": [100 * there for there in cores],
        "memory_limit_mib": [4096.0] * len(cores),
        **limits,
    }
    arrays: dict[str, Any] = {name: np.array(values, np.float64) for name, values in columns.items()}
    return replace(made, brokers=replace(made.brokers, **arrays))


def many(outcome: Outcome) -> list[Finding]:
    return [one for one in diagnose(outcome) if one.code == "more_cores"]


def test_a_broker_that_sees_the_cores_of_its_host_is_named() -> None:
    """All are used alike, but one divides by 64: shedding fills it, and only its report hides that."""
    outcome = asked(with_cores((4, 4, 4, 64), (2.4,) * 4), cycles=30)
    (found,) = many(outcome)
    assert found.title == "b4:8080 reports 64 CPU cores, the others 4"
    assert found.severity == "medium"
    assert found.brokers == ("b4:8080",)
    assert "It uses 4 % of its CPU, brokers with 4 CPU cores 60 % on average." in found.evidence
    assert "If it has 4 as well, it really uses 60 %, and " in found.evidence
    received = sum(move.destination == "b4:8080" for move in outcome.moves)
    assert received == len(outcome.moves) > 1
    assert f"Of {len(outcome.moves)} moves in the simulation, {received} go there." in found.evidence
    assert "-XX:ActiveProcessorCount=4" in found.remedy
    assert verdict(outcome).text.endswith("But this may be untrue: b4:8080 reports 64 CPU cores, the others 4.")


def test_it_comes_before_remedies_that_rest_on_the_report() -> None:
    """A lower minimum throughput sends bundles to the broker that only looks idle."""
    outcome = asked(with_cores((4, 4, 4, 64), (2.4,) * 4), cycles=30)
    tried = tried_findings(diagnose(outcome), Trials(outcome.trace.start, outcome.trace.scenario, outcome))
    first, *others = [one.finding for one in tried]
    assert first.code == "more_cores"
    assert any(one.severity == first.severity and one.changes for one in others)


def test_one_that_does_as_much_less_is_no_doubt() -> None:
    """With the usual cores it would be idle as well: the brokers are apart in any case."""
    outcome = asked(with_cores((4, 4, 4, 64), (2.4, 2.4, 2.4, 0.2)))
    assert "untrue" not in verdict(outcome).text


def test_a_machine_that_is_larger_in_all_is_larger() -> None:
    cores, used = (4.0, 4.0, 4.0, 64.0), (2.4,) * 4
    large = with_cores(cores, used, memory_limit_mib=[4096.0, 4096.0, 4096.0, 65536.0])
    assert not many(asked(large))
    fast = with_cores(cores, used, bandwidth_in_limit_kbit_per_s=[1e7, 1e7, 1e7, 1e8])
    assert not many(asked(fast))


def test_where_nothing_is_used_it_is_a_note() -> None:
    (found,) = many(asked(with_cores((8, 8, 8, 64), (0.8,) * 4)))
    assert found.severity == "low"


def test_without_a_usual_number_none_is_odd() -> None:
    assert not many(asked(with_cores((4, 64), (2.4,) * 2)))
    assert not many(asked(with_cores((4, 8, 16, 64), (2.4,) * 4)))


def test_an_idle_one_needs_no_finding_of_its_own() -> None:
    made = with_cores((4, 4, 4, 64), (2.4,) * 4)
    joined = made.brokers.started_at_ms.copy()
    joined[3] = made.info.captured_at_ms - 600_000
    made = replace(made, brokers=replace(made.brokers, started_at_ms=joined))
    for manager in LoadManager:
        outcome = asked(replace(made, info=replace(made.info, load_manager=manager)), cycles=3)
        codes = {one.code for one in diagnose(outcome)}
        assert not {"more_cores", "idle_broker"} <= codes
