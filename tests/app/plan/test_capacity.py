"""Overview's verdict and the finding about capacity: one question, one answer."""

import re
from dataclasses import replace

import numpy as np
import pytest

from planner.cluster.snapshot import Snapshot
from planner.cluster.text import quantity
from planner.explain.diagnosis import diagnose
from planner.explain.finding import Finding
from planner.explain.health import Health, health
from planner.explain.outcome import Outcome
from planner.share.plan_text import plan_text
from planner.simulate.assumptions import Assumptions
from planner.simulate.edits.remove_broker import RemoveBroker
from planner.simulate.run import simulate
from planner.simulate.scenario import Step, unchanged
from planner.simulate.usage_model import standing
from tests.app.remedy.operator_reports import CLASS, PLACEMENT, SHEDDING, bundles, cluster, isolation

_MANAGERS = ("modular", "modular", "modular", "modular", "extensible")
_SHEDDERS = ("OverloadShedder", "ThresholdShedder", "UniformLoadShedder", "AvgShedder", "TransferShedder")


def seen(snapshot: Snapshot, cycles: int = 30) -> tuple[Health, tuple[Finding, ...]]:
    outcome = Outcome(simulate(snapshot, unchanged(str(snapshot.settings.release), cycles=cycles)))
    findings = diagnose(outcome)
    now = standing(snapshot, snapshot.settings, Assumptions())
    return health(snapshot, snapshot.settings, now, outcome, findings), findings


def unlike(snapshot: Snapshot, sizes: np.ndarray) -> Snapshot:
    """Return a cluster in which each broker has so many times the processors, and uses so many times as many."""
    table = snapshot.brokers
    return snapshot.with_columns(
        brokers=replace(
            table,
            cpu_limit_percent=table.cpu_limit_percent * sizes,
            cpu_usage_percent=table.cpu_usage_percent * sizes,
        )
    )


def nearly_full(seed: int) -> Snapshot:
    draw = np.random.default_rng(seed)
    brokers, at = int(draw.integers(2, 6)), seed % len(_SHEDDERS)
    rows = [
        row
        for broker in range(1, brokers + 1)
        for row in bundles(f"t/n{broker}", (broker,) * int(draw.integers(2, 12)), float(draw.uniform(0.5, 8)))
    ]
    settings = {SHEDDING: CLASS[_SHEDDERS[at]]}
    if _SHEDDERS[at] == "AvgShedder":
        settings[PLACEMENT] = CLASS["AvgShedder"]
    made = cluster(
        brokers, rows, settings=settings, manager=_MANAGERS[at], cpu_percent=draw.uniform(70, 99, brokers).tolist()
    )
    return unlike(made, draw.choice([1.0, 2.0, 4.0], brokers))


@pytest.mark.parametrize("seed", range(60))
def test_verdict_and_finding_agree(seed: int) -> None:
    """The one weighed the cluster as captured, and the other what balancing makes of it."""
    verdict, findings = seen(nearly_full(seed))
    assert (verdict.word == "Out of capacity") == ("out_of_capacity" in {one.code for one in findings}), verdict


def test_room_on_a_larger_machine_is_found() -> None:
    """The mean of 98 and 80 % is above the limit; but the second broker is four times as large as the first."""
    made = cluster(
        2,
        bundles("t/a", (1,) * 10 + (2,) * 10, 3.0),
        settings={SHEDDING: CLASS["OverloadShedder"]},
        cpu_percent=(98, 80),
    )
    verdict, findings = seen(unlike(made, np.array([1.0, 4.0])))
    assert verdict.word == "Overloaded"
    assert "Pulsar fixes this on its own by cycle 1" in verdict.text
    assert "out_of_capacity" not in {one.code for one in findings}
    assert seen(unlike(made, np.array([4.0, 4.0])))[0].word == "Out of capacity"


def test_a_policy_whose_larger_broker_has_room_is_not_full() -> None:
    policy = isolation(["b1", "b2"])
    rows = bundles("vip/a", (1,) * 10 + (2,) * 10, 3.0)
    off = {"loadBalancerSheddingEnabled": False}
    made = cluster(3, rows, settings=off, cpu_percent=(98, 80, 5), policies=policy)
    assert "policy_full" in {one.code for one in seen(made)[1]}
    assert "policy_full" not in {one.code for one in seen(unlike(made, np.array([1.0, 4.0, 1.0])))[1]}


def test_brokers_that_are_full_of_different_things_have_room_together() -> None:
    """One is full by its processors, and the other by its network: each would use 50 % of both in perfect balance."""
    made = cluster(2, bundles("t/a", (1,) * 8 + (2,) * 8, 3.0), cpu_percent=(95, 5))
    network = np.array([5e5, 9.5e6])
    full = made.with_columns(brokers=replace(made.brokers, bandwidth_in_usage_kbit_per_s=network))
    now = standing(full, full.settings, Assumptions())
    assert now.over_threshold == 2
    assert now.balanced_usage == pytest.approx(0.5)
    assert seen(full)[0].word == "Overloaded"


def test_memory_does_not_move() -> None:
    """Pooled, 95 and 5 % would be 50; but the first broker keeps its 95 %."""
    weights = {"loadBalancerDirectMemoryResourceWeight": 1.0}
    made = cluster(2, bundles("t/a", (1,) * 8 + (2,) * 8, 3.0), settings=weights, cpu_percent=(40, 40))
    memory = np.array([0.95, 0.05]) * made.brokers.direct_memory_limit_mib
    full = made.with_columns(brokers=replace(made.brokers, direct_memory_usage_mib=memory))
    assert standing(full, full.settings, Assumptions()).balanced_usage == pytest.approx((0.95 + 0.4) / 2)


def test_machines_that_are_full_without_any_traffic_have_no_headroom_to_speak_of() -> None:
    """It read "Headroom: infx;  fills up first"."""
    verdict, findings = seen(cluster(3, [], cpu_percent=(95, 95, 95)))
    (scarce,) = [one for one in findings if one.code == "out_of_capacity"]
    assert "Headroom: unlimited." in scarce.evidence
    assert (verdict.word, "no traffic" in verdict.text) == ("Out of capacity", True)


def test_where_no_broker_is_left_that_is_said() -> None:
    """The diagnosis of an outage had no findings, and its measures were nan and inf."""
    made = nearly_full(1)
    gone = [Step(RemoveBroker(broker=name)) for name in made.brokers.name]
    trace = simulate(made, unchanged(made.info.pulsar_version, steps=tuple(gone)))
    (finding,) = diagnose(trace)
    assert finding.title == "Out of capacity: no broker is left"
    text = plan_text(trace, "a sample", (finding,))
    assert not re.search(r"\b(nan|inf)\b", text)
    assert re.search(r"Capacity headroom at the end +0\.00 times", text)


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [(1, "bundles", "1 bundle"), (2, "bundles", "2 bundles"), (None, "%", "none")],
)
def test_a_quantity_of_one(value: float | None, unit: str, shown: str) -> None:
    assert quantity(value, unit) == shown
