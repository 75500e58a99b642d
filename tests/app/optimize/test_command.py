"""`python -m planner optimize`."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from planner.__main__ import main


def test_json_has_what_others_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["optimize", "--snapshot", "pip-364", "--moves", "8", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["bound_percent"] <= told["peak_percent"] < told["before_percent"]
    assert 0 < len(told["moves"]) <= 8
    assert {"bundle", "from", "to"} <= told["moves"][0].keys()
    assert isinstance(told["stable"], bool)
    assert len(told["plan_digest"]) == 64


def test_it_says_the_answer_first(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    rows = tmp_path / "moves.csv"
    assert main(["optimize", "--snapshot", "pip-364", "--moves", "8", "--csv", str(rows)]) == 0
    said = capsys.readouterr().out
    assert "8 moves" in said
    assert "; lower bound with 8 moves: " in said
    assert "table" in said  # stable, or not stable
    assert len(rows.read_text().splitlines()) == 9


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "; lower bound: "),
        (["--moves", "1"], "; lower bound with 1 move: "),
        (["--clients", "200"], "; lower bound with 200 clients disconnected: "),
        (["--moves", "5", "--megabytes", "10"], "; lower bound with 5 moves and 9.54 MiB/s moved: "),
        (["--under", "60", "--topics", "90"], "; lower bound with 90 topics disconnected: "),
    ],
)
def test_what_no_plan_gets_below_names_its_budget(
    capsys: pytest.CaptureFixture[str], words: list[str], sentence: str
) -> None:
    assert main(["optimize", "--snapshot", "pip-364", *words]) == 0
    assert sentence in capsys.readouterr().out


def test_a_saved_plan_is_a_scenario(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    kept = tmp_path / "plan.json"
    assert main(["optimize", "--snapshot", "pip-364", "--moves", "8", "--save", str(kept), "--json"]) == 0
    asked = {(move["bundle"], move["to"]) for move in json.loads(capsys.readouterr().out)["moves"]}
    assert main(["plan", "--snapshot", "pip-364", "--scenario", str(kept), "--json"]) == 0
    told = capsys.readouterr()
    moved = {(one["bundle"], one["destination"]) for one in json.loads(told.out)["events"] if one["kind"] == "moved"}
    assert moved == asked
    assert [line.partition(":")[0] for line in told.err.splitlines()] == ["note"], "splits are off in this sample"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--moves", "0"], "0 is not a valid budget for moves"),
        (["--under", "1"], "No plan brings every broker below 1 %"),
        (["--drain", "nowhere:8080"], "The cluster has no broker nowhere:8080"),
        (["--pin", "a/b/c"], "A pin is a bundle and a broker"),
        (["--traffic", "0"], "Traffic cannot be multiplied by 0"),
        (["--wave-clients", "0"], "cannot contain a move"),
        (["--seed", "-1"], "The seed and the number of splits cannot be negative"),
        (["--splits", "-1"], "The seed and the number of splits cannot be negative"),
        (["--after-cycles"], "Only a scenario has cycles"),
        (["--save", "plan.json", "--scenario", "other.json"], "cannot be saved as a plan for the snapshot"),
    ],
)
def test_bad_questions_get_one_sentence(capsys: pytest.CaptureFixture[str], words: list[str], sentence: str) -> None:
    assert main(["optimize", "--snapshot", "pip-364", *words]) == 2
    said = capsys.readouterr()
    assert sentence in said.err
    assert not said.out
    assert len(said.err.splitlines()) == 1


def test_the_script_runs(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for words in (["--commands"], ["--back"]):
        assert main(["optimize", "--snapshot", "pip-364", "--moves", "8", *words]) == 0
        script = tmp_path / "plan.sh"
        script.write_text(capsys.readouterr().out)
        checker = Path(sys.executable).with_name("shellcheck")
        subprocess.run([checker, script], check=True, env={**os.environ, "LC_ALL": "C.UTF-8"})
        done = subprocess.run(["sh", script, "--dry-run"], capture_output=True, text=True, check=True)
        assert done.stdout.count("--destinationBroker") == 8
        assert done.stdout.index("loadBalancerSheddingEnabled --value false") < done.stdout.index("unload")
