"""A broker with fewer cores than the others: the same work fills it first, and that is one finding."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pytest

from planner.cluster.load_manager import LoadManager
from planner.cluster.snapshot import Snapshot
from planner.explain.diagnosis import diagnose
from planner.explain.finding import Finding
from planner.explain.health import health
from planner.explain.outcome import Outcome
from planner.remedy.trials import Trials
from planner.remedy.tried import tried_findings
from planner.simulate.assumptions import Assumptions
from planner.simulate.edits.registry import MachineChange
from planner.simulate.edits.scale_traffic import ScaleTraffic
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario, Step, unchanged
from planner.simulate.usage_model import standing
from tests.app.plan.test_diagnosis_measurements import CLASS, SHEDDING, brokers
from tests.app.simulate.traces import cluster

EIGHT: Final = 8


def machines(
    cores: Sequence[float], used: Sequence[float], manager: LoadManager = LoadManager.MODULAR, **settings: Any
) -> Snapshot:
    """Brokers of so many cores, of which so many are in use; all carry the same traffic."""
    own = {SHEDDING: CLASS["TransferShedder"]} if manager is LoadManager.EXTENSIBLE else {}
    usage = [one / all_of_it for one, all_of_it in zip(used, cores, strict=True)]
    carried = dict.fromkeys(range(len(cores)), (5.0,) * 8)
    made = cluster(usage, carried, load_manager=manager, settings={**own, **settings})
    return brokers(made, cpu_limit_percent=np.array(cores) * 100, cpu_usage_percent=np.array(used) * 100)


def outcome_of(snapshot: Snapshot, scenario: Scenario | None = None) -> Outcome:
    return Outcome(simulate(snapshot, scenario or unchanged("4.2.4", cycles=12)))


def found(snapshot: Snapshot) -> dict[str, Finding]:
    return {finding.code: finding for finding in diagnose(outcome_of(snapshot))}


@pytest.mark.parametrize("manager", LoadManager)
@pytest.mark.parametrize(("used", "severity"), [(3.7, "high"), (2.4, "medium"), (1.3, "low")])
def test_few_cores_are_the_one_cause(manager: LoadManager, used: float, severity: str) -> None:
    """Overview lowered the minimum of a gate or the score's memory, and left a pod with half the cores as it was."""
    seen = found(machines([4, 8, 8, 8, 8], [used] * 5, manager))
    finding = seen["fewer_cores"]
    assert list(seen) == ["fewer_cores"]
    assert finding.title == "b1:8080 has 4 CPU cores, the others 8"
    assert f"With 8, it would use {used / 8 * 100:.0f} %." in finding.evidence
    assert finding.remedy.startswith("Give 8 CPU cores to b1:8080:")
    assert (finding.severity, finding.brokers) == (severity, ("b1:8080",))
    assert finding.edits == (MachineChange(brokers=("b1:8080",), cores=EIGHT),)


@pytest.mark.parametrize(
    ("cores", "used"),
    [
        ([5, 8, 8, 8, 8], [4.5] * 5),  # more than half
        ([4, 8, 8, 8, 8], [1.0, 2.0, 2.0, 2.0, 2.0]),  # as busy as the others
        ([4, 8, 8, 8, 8], [3.8, 1.0, 1.0, 1.0, 1.0]),  # with 8 cores it would stand out as well
        ([4, 4, 8, 8, 8], [3.0] * 5),  # fewer than two thirds agree
        ([4, 8], [3.0] * 2),  # two are no majority
        ([16, 8, 8, 8, 8], [3.0] * 5),  # one has more
    ],
)
def test_what_is_no_such_machine(cores: Sequence[float], used: Sequence[float]) -> None:
    assert "fewer_cores" not in found(machines(cores, used))


def test_a_broker_whose_network_decides_stands_out_for_another_reason() -> None:
    made = machines([4, 8, 8, 8, 8], [2.4] * 5)
    assert "fewer_cores" in found(made)
    assert "fewer_cores" not in found(brokers(made, bandwidth_out_usage_kbit_per_s=[7e6, *[1e6] * 4]))


def test_cpu_that_does_not_count_decides_nothing() -> None:
    assert "fewer_cores" not in found(machines([4, 8, 8, 8, 8], [3.7] * 5, loadBalancerCPUResourceWeight=0.0))


def test_several_are_one_finding_the_busiest_first() -> None:
    finding = found(machines([4, 2, *[8] * 6], [2.6, 1.8, *[2.4] * 6]))["fewer_cores"]
    assert finding.brokers == ("b2:8080", "b1:8080")
    assert "The same holds for b1:8080." in finding.evidence
    assert finding.edits == (MachineChange(brokers=("b2:8080", "b1:8080"), cores=EIGHT),)


def test_a_cluster_that_is_full_with_the_usual_cores_is_out_of_capacity() -> None:
    seen = found(machines([4, 8, 8, 8, 8], [3.9, 7.8, 7.8, 7.8, 7.8]))
    assert "out_of_capacity" in seen
    growth = unchanged("4.2.4", cycles=12, steps=(Step(ScaleTraffic(factor=2.6)),))
    later = diagnose(outcome_of(machines([4, 8, 8, 8, 8], [3.0] * 5), growth))
    assert {"fewer_cores", "out_of_capacity"} <= {one.code for one in later}


def test_another_hot_broker_is_another_story() -> None:
    """A broker of the usual size that is held back on its own account is reported as well."""
    seen = found(
        machines([4, 8, 8, 8, 8], [3.0, 3.0, 6.6, 3.0, 3.0], loadBalancerBundleUnloadMinThroughputThreshold=99)
    )
    assert seen["held_by_gate"].brokers[0] == "b3:8080"
    assert seen["fewer_cores"].brokers == ("b1:8080",)


def test_the_remedy_is_simulated_and_ends_it() -> None:
    snapshot, scenario = machines([4, 8, 8, 8, 8], [3.7] * 5), unchanged("4.2.4", cycles=12)
    outcome = outcome_of(snapshot, scenario)
    (tried,) = tried_findings(diagnose(outcome), Trials(snapshot, scenario, outcome))
    assert tried.trial is not None
    assert tried.trial.offered
    assert tried.trial.action.words == "Change b1:8080 to 8 cores"
    assert tried.finding.tried.endswith("The finding is gone.")
    mended = scenario.with_steps(Step(tried.trial.action.edits[0]))
    assert "fewer_cores" not in {one.code for one in diagnose(outcome_of(snapshot, mended))}


def test_the_verdict_names_it_where_pulsar_leaves_the_broker_hot() -> None:
    snapshot = machines([4, 8, 8, 8, 8], [3.7] * 5, loadBalancerLoadSheddingStrategy=CLASS["UniformLoadShedder"])
    outcome = outcome_of(snapshot)
    now = standing(snapshot, snapshot.settings, Assumptions())
    said = health(snapshot, snapshot.settings, now, outcome, diagnose(outcome))
    assert (said.word, said.level) == ("Overloaded", "bad")
    assert said.text.endswith("b1:8080 has 4 CPU cores, the others 8.")


def test_usage_above_the_limit_is_one_finding_with_the_same_remedy() -> None:
    seen = found(machines([4, 8, 8, 8, 8], [4.6] * 5))
    assert "fewer_cores" not in seen
    finding = seen["impossible_measurement"]
    assert "Others have 8 cores; with as many, the usage of b1:8080 is possible." in finding.evidence
    assert finding.edits == (MachineChange(brokers=("b1:8080",), cores=EIGHT),)


def test_no_cores_are_named_that_do_not_make_a_measurement_possible() -> None:
    finding = found(machines([4, 8, 8, 8, 8], [9.0, *[3.0] * 4]))["impossible_measurement"]
    assert "Others have" not in finding.evidence
    assert finding.edits == ()
