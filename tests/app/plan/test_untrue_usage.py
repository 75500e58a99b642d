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
from planner.doors.lint import lint_snapshot
from planner.explain.diagnosis import diagnose
from planner.explain.doubt import NO_DOUBT, doubt_about, untrue
from planner.explain.outcome import Outcome
from planner.formats.document import write_document
from planner.optimize.answer import best_plan
from planner.optimize.offer import offer_of
from planner.optimize.question import Question
from planner.optimize.stability import LEFT_OFF
from planner.remedy.trials import Trials
from planner.remedy.tried import NOT_TRIED, fix, tried_findings
from planner.simulate.edits.registry import MachineChange, TrafficGrowth
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario, Step, unchanged
from planner.workspace.samples import load_sample, samples
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
    assert doubt_about(snapshot).sentence.startswith("The reported usage is untrue: all 5 brokers report")


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
    assert "The reported usage is untrue: all 5 brokers report more CPU usage than their limits. Correct that" in said
    assert NOTE in said
    assert main(["optimize", "--snapshot", str(saved), "--moves", "1", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["moves"] == []
    assert told["doubt"].startswith("The reported usage is untrue: ")
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


def worded(name: str) -> Snapshot:
    """A sample with topics, of which no usage is true."""
    sample = load_sample(next(one for one in samples() if one.file == name))
    return brokers(sample, cpu_usage_percent=sample.brokers.cpu_limit_percent * 1.5)


@pytest.fixture
def listed(tmp_path: Path) -> Path:
    path = tmp_path / "listed.json"
    path.write_text(write_document(worded(samples()[0].file)), encoding="utf-8")
    return path


UNTRUE: Final = "The reported usage is untrue: all {} brokers report more CPU usage than their limits. Correct that"


def test_a_plan_says_it(saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A plan was called better than doing nothing."""
    sentence = UNTRUE.format(5)
    scenario, report = tmp_path / "move.json", tmp_path / "report.md"
    bundle = five(WRONG).bundle_names[0]
    edit = {"kind": "move_bundles", "moves": [[bundle, "b5:8080"]]}
    scenario.write_text(json.dumps({"version": 1, "steps": [{"edit": edit}]}), encoding="utf-8")
    asked = ["plan", "--snapshot", str(saved), "--scenario", str(scenario)]
    assert main([*asked, "--report", str(report)]) == 0
    assert sentence in capsys.readouterr().out
    text = report.read_text(encoding="utf-8")
    assert f"**{sentence}" in text
    assert "doing nothing**:" not in text
    assert main([*asked, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["doubt"].startswith(sentence)
    assert main([*asked, "--commands"]) == 0
    told = capsys.readouterr()
    assert f"warning: {sentence}" in told.err
    assert "he reported usage is untrue: all 5 brokers" in told.out


def test_no_cut_is_advised(listed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sentence = f"No cuts or splits are offered. {UNTRUE.format(20)}"
    assert main(["bundles", "--snapshot", str(listed), "--namespace", "stark/orders"]) == 0
    said = capsys.readouterr().out
    assert sentence in said
    assert "If it is recreated" not in said
    assert main(["bundles", "--snapshot", str(listed), "--namespace", "stark/orders", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["withheld"].startswith(sentence)
    assert (told["steps"], told["successor"]) == ([], [])
    assert told["recommended"] == told["now"]["bundles"]
    assert main(["bundles", "--snapshot", str(listed)]) == 0


def test_no_release_is_called_better(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "uniform.json"
    path.write_text(write_document(worded("uniform-shedder-rate.json")), encoding="utf-8")
    assert main(["upgrade", "--snapshot", str(path), "--to", "4.0.8"]) == 0
    said = f"Whether 4.0.8 is better or worse for this cluster is not known. {UNTRUE.format(2)}"
    assert said in capsys.readouterr().out
    assert main(["upgrade", "--snapshot", str(path), "--to", "4.0.8", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["verdict"] == "unknown"


def test_lint_has_no_command_that_rests_on_it() -> None:
    found = lint_snapshot(five(WRONG, loadBalancerHistoryResourcePercentage=1.0), "wrong.json")
    held = [one for one in found if one.tried == NOT_TRIED]
    assert held
    assert {one.command for one in held} == {("pulsar-bundle-planner fix --snapshot wrong.json",)}


def test_nothing_is_simulated_to_doubt_usage_that_is_possible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planner.explain.doubt.simulate", lambda *_: pytest.fail("simulated"))
    assert doubt_about(five((0.9,) * 5)) is NO_DOUBT
