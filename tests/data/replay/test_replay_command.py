"""The advisor on the command line: it says what its page says, from the same numbers."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from planner.__main__ import main
from planner.advise.advice_text import apply_script, evidence_text, front_text, holdout_text, measure_rows, verdict_text
from planner.advise.advisor import advise
from planner.advise.material import configured_of, material_of
from planner.advise.objectives import Question
from planner.advise.verdict import verdict_of
from planner.replay import jobs
from planner.replay.jobs import StoredJob, open_job, submit
from tests.data.replay.replays import HOURLY, SHEDDING, make_job, wait_for

BASE = replace(HOURLY, name="as it is")


@pytest.fixture(scope="module")
def finished(replay_history: Path, tmp_path_factory: pytest.TempPathFactory) -> list[StoredJob]:
    """Two jobs over the same days that have ended."""
    root = tmp_path_factory.mktemp("advised") / "jobs"
    wanted = [make_job(replay_history, base=BASE, values=values) for values in ((2, 5, 20), (40,))]
    found = [submit(job, root) for job in wanted]
    assert [wait_for(stored).state for stored in found] == ["done", "done"]
    return [open_job(stored.name, root) for stored in found]


@pytest.fixture
def here(finished: list[StoredJob], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of those jobs, which the command line finds."""
    monkeypatch.setenv("PLANNER_WORKSPACE", str(finished[0].folder.parent.parent / "planner.duckdb"))
    return [stored.name for stored in finished]


@pytest.mark.parametrize("weight", [0, 100])
def test_it_says_what_the_page_says(
    weight: int, finished: list[StoredJob], here: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", "--advise", *here, "--weight", str(weight), "--first-part", "50", "--loss", "5"]) == 0
    said = capsys.readouterr().out
    material = material_of(finished)
    assert finished[0].job is not None
    configured = configured_of(finished[0].job)
    question = Question(weight=weight / 100, loss_percent=5, first_share=0.5)
    advice = advise(material.rows, material.scenarios, question, configured)
    assert len(advice.candidates) == 5
    assert advice.current == "as it is"
    assert front_text(advice) in said
    assert advice.holdout is not None
    assert holdout_text(advice.holdout) in said
    assert all(found.sentence in said for found in advice.sensitivity)
    assert all(note in said for note in (*advice.notes, *material.notes))
    for one in advice.front:
        assert f"{one.balance:8.1f} {one.disruption:11.1f}  {one.name}" in said
    evidence = advice.evidence
    assert evidence is not None
    changed = advice.chosen != advice.current
    verdict = verdict_of(advice)
    assert verdict_text(advice) in said
    assert ("Evidence:" in said, "Commands for east:" in said) == (changed, verdict.kind == "recommended")
    if changed:
        assert evidence_text(evidence, "balance") in said
        assert all(f"{row['measure']}: {row['current']} now" in said for row in measure_rows(evidence))
        assert all(doubt in said for doubt in verdict.doubts)
        assert verdict.kind == "unproven"  # two days prove nothing
        assert f"--config {SHEDDING} --value" in apply_script(advice, "west", configured["west"])


def test_overload_counts_before_any_weight(here: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    for weight in ("0", "100"):
        assert main(["replay", "--advise", *here, "--weight", weight, "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        hot = {one["name"] for one in found["candidates"] if one["more_overload"]}
        minutes = {one["name"]: one["measures"]["overloaded_broker_min"] for one in found["candidates"]}
        assert "as it is" in hot
        assert found["recommended"] in found["front"]
        assert not hot & set(found["front"])
        assert minutes[found["recommended"]] < 0.98 * minutes["as it is"]
        assert found["judged"]["overload"] == 1


def test_json_holds_the_same_numbers(
    finished: list[StoredJob], here: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", "--advise", here[0], "--json", "--balance", "deviation", "--disruption", "unloads"]) == 0
    found = json.loads(capsys.readouterr().out)
    material = material_of(finished[:1])
    assert finished[0].job is not None
    question = Question(balance=("deviation",), disruption=("unloads",))
    configured = configured_of(finished[0].job)
    advice = advise(material.rows, material.scenarios, question, configured)
    assert found["jobs"] == here[:1]
    assert (found["recommended"], found["knee"], found["current"]) == (
        advice.chosen,
        advice.knee or None,
        advice.current,
    )
    assert [(one["name"], one["balance"], one["disruption"], one["on_front"]) for one in found["candidates"]] == [
        (one.name, one.balance, one.disruption, one.on_front) for one in advice.candidates
    ]
    assert found["candidates"][0]["measures"]["shed"] == advice.candidates[0].totals["shed"]
    assert found["question"]["balance"] == ["deviation"]
    assert [one["sentence"] for one in found["sensitivity"]] == [one.sentence for one in advice.sensitivity]
    assert advice.holdout is not None
    assert found["holdout"]["chosen"] == advice.holdout.chosen
    assert found["holdout"]["rest_days"] == ["2027-01-12"]
    assert found["keep_current"] is (advice.chosen == advice.current)
    assert found["verdict"] == verdict_of(advice).kind == ("keep" if found["keep_current"] else "unproven")
    assert found["commands"] == {}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--weight", "150"], "is out of range. Use a number from 0 to 1."),
        (["--first-part", "-1"], "is out of range. Use a number from 0 to 1."),
        (["--balance", "beauty"], "beauty: Unknown objective. Choose from deviation"),
        (["--balance", "unloads"], "unloads is an objective of disruption, not of balance"),
        (["--disruption", ","], "No objective of disruption"),
    ],
)
def test_what_cannot_be_asked(
    arguments: list[str], said: str, here: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", "--advise", here[0], *arguments]) == 2
    assert said in capsys.readouterr().err


def test_a_job_without_results(
    replay_history: Path, here: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(jobs, "_start", lambda *_: None)
    stored = submit(make_job(replay_history))
    assert main(["replay", "--advise", here[0], stored.name]) == 2
    assert f"{stored.name}: This replay has no results to compare yet." in capsys.readouterr().err
    jobs.delete(stored)
    assert main(["replay", "--advise", stored.name]) == 2
    assert "no such replay job" in capsys.readouterr().err
