"""Every broker reports usage above its limit: nothing is advised that rests on it, until that is corrected."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import pytest

from planner.__main__ import main
from planner.cluster.load_manager import LoadManager
from planner.cluster.snapshot import IsolationPolicy, Snapshot
from planner.explain.diagnosis import diagnose
from planner.explain.doubt import doubt_about, untrue
from planner.explain.outcome import Outcome
from planner.formats.document import write_document
from planner.optimize.answer import best_plan
from planner.optimize.offer import offer_of
from planner.optimize.question import Question
from planner.optimize.stability import LEFT_OFF
from planner.remedy.trials import Trials
from planner.remedy.tried import fix, tried_findings
from planner.simulate.edits.registry import MachineChange, TrafficGrowth
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario, Step, unchanged
from tests.app.plan.test_diagnosis_measurements import brokers, five
from tests.app.simulate.traces import cluster

WRONG: Final = (1.9, 1.2, 1.2, 1.2, 1.2)
SAID: Final = "All 5 brokers report more CPU usage than their limits"
NOTE: Final = "No move is offered for balance, because no usage is true."


def apart() -> Snapshot:
    """Many small bundles, and much to balance."""
    return cluster((0.8, 0.6, 0.3, 0.3, 0.3), {at: (size,) * 12 for at, size in enumerate((4.0, 3.0, 1.5, 1.5, 1.5))})


def outcome_of(snapshot: Snapshot, *steps: Step, cycles: int = 5) -> Outcome:
    return Outcome(simulate(snapshot, unchanged("4.2.4", cycles=cycles).with_steps(*steps)))


@pytest.mark.parametrize("manager", LoadManager)
def test_no_usage_is_true(manager: LoadManager) -> None:
    outcome = outcome_of(five(WRONG, manager))
    assert untrue(outcome) == SAID
    (finding,) = [one for one in diagnose(outcome) if one.code == "impossible_measurement"]
    assert finding.title == SAID
    assert finding.remedy.endswith("until it is right, no prediction holds.")


@pytest.mark.parametrize(
    ("snapshot", "steps"),
    [
        (five((1.9, 1.2, 1.2, 1.2, 0.9)), ()),  # one may be true
        (five((0.9,) * 5), ()),
        (brokers(five(), memory_usage_mib=[5000.0] * 5, memory_limit_mib=[4000.0] * 5), ()),  # does not decide
        (five(WRONG, loadBalancerCPUResourceWeight=0.0), ()),
        (five(WRONG), (Step(MachineChange(cores=20)),)),  # corrected
        (five((0.5,) * 5), (Step(TrafficGrowth(factor=3.0)),)),  # more than brokers have, and meant
    ],
)
def test_usage_that_may_be_true(snapshot: Snapshot, steps: Sequence[Step]) -> None:
    assert untrue(outcome_of(snapshot, *steps)) == ""
    assert not doubt_about(snapshot, Scenario(steps=tuple(steps))).everywhere


def test_a_scenario_that_corrects_the_machines_is_not_doubted() -> None:
    """The finding stayed, so that the trial of its own remedy could not end it."""
    snapshot, mended = five(WRONG), Step(MachineChange(cores=20))
    assert "impossible_measurement" not in {one.code for one in diagnose(outcome_of(snapshot, mended))}
    assert doubt_about(snapshot, Scenario(steps=(mended,))).sentence == ""
    assert doubt_about(snapshot).sentence.startswith("This is untrue: all 5 brokers report more CPU usage")


@pytest.mark.parametrize("manager", LoadManager)
def test_fix_it_tries_nothing(manager: LoadManager) -> None:
    """It advised to move two bundles, or another strategy."""
    snapshot = five(WRONG, manager)
    outcome = outcome_of(snapshot, cycles=30)
    found = fix(Trials(snapshot, outcome.trace.scenario, outcome), outcome)
    assert (found.best, found.pair, found.others, found.capacity, found.lucky) == (None, None, (), None, None)
    assert found.sentence == (
        "No advice until this is corrected: all 5 brokers report more CPU usage than their limits. Then capture again."
    )


def test_only_what_corrects_the_measurements_is_tried() -> None:
    """A broker with half the cores of the others may have theirs; no threshold is judged by such numbers."""
    cores = np.array([400.0, *[800.0] * 4])
    snapshot = brokers(
        five(loadBalancerHistoryResourcePercentage=1.0),
        cpu_limit_percent=cores,
        cpu_usage_percent=np.array([820.0, *[900.0] * 4]),
    )
    outcome = outcome_of(snapshot)
    trials = Trials(snapshot, outcome.trace.scenario, outcome)
    seen = {one.finding.code: one for one in tried_findings(diagnose(outcome), trials)}
    assert seen["impossible_measurement"].trial is not None
    frozen = seen["average_frozen"]
    assert frozen.trial is None
    assert not frozen.finding.changes
    assert frozen.finding.tried == "Not tried: the measurements have to be corrected first."


def test_a_best_plan_offers_no_balance() -> None:
    plan = best_plan(apart(), Question(moves=5, rounds=2))
    assert offer_of(plan).plan.moves
    offer = offer_of(plan, untrue=True)
    assert offer.plan.moves == ()
    assert offer.plan.notes == (offer.tried,) == (NOTE,)
    low = best_plan(apart(), Question(under_percent=70.0, rounds=2))
    assert low.moves
    assert offer_of(low, untrue=True).plan.moves == ()


def test_what_has_to_move_stays() -> None:
    snapshot = apart()
    names, bundles = snapshot.brokers.name, snapshot.bundle_names
    drained = best_plan(snapshot, Question(drain=(names[4],), moves=20, rounds=2))
    offer = offer_of(drained, untrue=True)
    assert len(drained.moves) > len(offer.plan.moves) == 12
    assert {move.source for move in offer.plan.moves} == {names[4]}
    assert offer.plan.notes[-1] == NOTE
    assert offer.stability.keeps in ({}, LEFT_OFF), "no threshold by such numbers"
    pinned = best_plan(snapshot, Question(pins={bundles[0]: names[3]}, rounds=2))
    assert [(one.bundle, one.destination) for one in offer_of(pinned, untrue=True).plan.moves] == [
        (bundles[0], names[3])
    ]


def test_repairs_of_policies_stay() -> None:
    made = apart()
    policy = IsolationPolicy("only", (f"{made.namespaces[0]}.*",), ("b1", "b2", "b3", "b4"))
    snapshot = replace(made, policies=replace(made.policies, isolation=(policy,)))
    plan = best_plan(snapshot, Question(rounds=2))
    found = offer_of(plan, untrue=True).plan
    assert len(plan.moves) > len(found.moves)
    assert len(found.repairs) == len(found.moves) == 12


def test_a_plan_without_moves_for_balance_is_as_it_was() -> None:
    snapshot = five((1.5,) * 5)
    plan = best_plan(snapshot, Question(pins={snapshot.bundle_names[0]: "b2:8080"}, moves=1, rounds=2))
    offer = offer_of(plan, untrue=True)
    assert offer.plan is plan
    assert not offer.tried


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "wrong.json"
    path.write_text(write_document(five(WRONG)), encoding="utf-8")
    return path


def test_the_command_says_why(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["optimize", "--snapshot", str(saved), "--moves", "1"]) == 0
    said = capsys.readouterr().out
    assert "Nothing to move" in said
    assert "This is untrue: all 5 brokers report more CPU usage than their limits. Correct that" in said
    assert NOTE in said
    assert main(["optimize", "--snapshot", str(saved), "--moves", "1", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["moves"] == []
    assert told["doubt"].startswith("This is untrue: ")
    assert main(["fix", "--snapshot", str(saved)]) == 1
    assert capsys.readouterr().out.startswith("No advice until this is corrected: all 5 brokers")


def test_traffic_that_grows_is_no_wrong_measurement(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--traffic 3` called every report impossible."""
    path = tmp_path / "right.json"
    path.write_text(write_document(five((0.9, 0.5, 0.5, 0.5, 0.5))), encoding="utf-8")
    assert main(["optimize", "--snapshot", str(path), "--traffic", "3", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["doubt"] == ""
    assert told["moves"]
