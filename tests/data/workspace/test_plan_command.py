"""`python -m planner plan` prints what the pages show, and says what is wrong in one line."""

import importlib
import io
import json
import os
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from planner.__main__ import main
from planner.cluster.digest import snapshot_digest
from planner.formats.archive import write_zip
from planner.share.link import encode_link, encode_reference, scenario_digest
from planner.share.scenario_file import scenario_file
from planner.simulate.edits.move_bundle import MoveBundle
from planner.simulate.edits.remove_broker import RemoveBroker
from planner.simulate.measures import MEASURES
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario, Step
from planner.simulate.summary import summary
from planner.simulate.trace import Trace
from planner.workspace.database import open_workspace
from planner.workspace.samples import load_sample, samples

SAMPLE = next(sample for sample in samples() if sample.file == "pip-364.json")
SNAPSHOT = load_sample(SAMPLE)
SCENARIO = Scenario(
    name="without one",
    steps=(
        Step(RemoveBroker(broker=SNAPSHOT.brokers.name[0], at_min=1)),
        Step(MoveBundle(bundle=SNAPSHOT.bundle_names[0]), on=False),
    ),
    settings={"loadBalancerBrokerThresholdShedderPercentage": 5},
    cycles=6,
)


@pytest.fixture(scope="module")
def expected() -> Trace:
    return simulate(SNAPSHOT, SCENARIO)


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "scenario.json"
    path.write_text(scenario_file(SCENARIO, SAMPLE.digest, SAMPLE.title), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("snapshot", ["pip-364", "pip-364.json", SAMPLE.title, SAMPLE.digest[:12]])
def test_json_has_the_numbers_of_the_simulation(
    expected: Trace, file: str, snapshot: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", "--snapshot", snapshot, "--scenario", file, "--json"]) == 0
    out, err = capsys.readouterr()
    document = json.loads(out)
    assert err.startswith("note: Automatic splits are off: loadBalancerAutoBundleSplitEnabled is false.")
    assert len(err.splitlines()) == 1
    assert document["plan_digest"] == expected.digest()
    numbers = summary(expected)
    assert {name: entry["value"] for name, entry in document["measures"].items()} == {
        measure.name: getattr(numbers, measure.name) for measure in MEASURES
    }


def test_a_path_a_link_an_address_and_standard_input_give_the_same(
    expected: Trace,
    file: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    workspace_file: Path,
) -> None:
    path = Path(__file__).parents[3] / "sample_snapshots" / SAMPLE.file
    link = encode_link(SCENARIO, SAMPLE.digest, "x")
    workspace = open_workspace(workspace_file)
    workspace.scenarios.save(SCENARIO, SAMPLE.digest)
    workspace.close()
    kept = encode_reference(scenario_digest(SCENARIO), SAMPLE.digest)
    (tmp_path / "link.txt").write_text(link)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(Path(file).read_bytes())))
    plans = set()
    for text in (
        file,
        link,
        f"http://127.0.0.1:8501/what-if?page=1&scenario={link}",
        kept,
        str(tmp_path / "link.txt"),
        "-",
    ):
        assert main(["plan", "--snapshot", str(path), "--scenario", text, "--json"]) == 0
        plans.add(json.loads(capsys.readouterr().out)["plan_digest"])
    assert plans == {expected.digest()}


def test_text_shows_every_measure(expected: Trace, file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--snapshot", "pip-364", "--scenario", file]) == 0
    out = capsys.readouterr().out
    assert all(f"\n{measure.label}  " in out or f"\n{measure.label} " in out for measure in MEASURES)
    assert expected.digest()[:12] in out
    assert f"{SNAPSHOT.brokers.name[0]} -> " in out


def test_follow_says_how_far_a_plan_is(
    expected: Trace, file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    end = replace(expected.end, settings=expected.settings)
    later = replace(SNAPSHOT, info=replace(SNAPSHOT.info, captured_at_ms=end.info.captured_at_ms))
    said = []
    for name, snapshot in {"all.zip": end, "none.zip": later}.items():
        with (tmp_path / name).open("wb") as target:
            write_zip(snapshot, target)
        words = ["--follow", str(tmp_path / name), "--broker", "added-1:8080=added-1:8080"]
        assert main(["plan", "--snapshot", "pip-364", "--scenario", file, *words]) == 0
        said.append(capsys.readouterr().out)
    done, left = said
    assert "The plan is complete" in done
    assert "still to do: move " in left
    assert "Run the script of the plan again" in left
    assert main(["plan", "--snapshot", "pip-364", "--scenario", file, *words[:2], "--broker", "nobody"]) == 2
    assert "does not name a broker" in capsys.readouterr().err


def test_commands_report_and_csv(
    expected: Trace, file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report, rows = tmp_path / "r.md", tmp_path / "e.csv"
    words = ["--commands", "--batch", "1", "--pause", "7", "--report", str(report), "--csv", str(rows)]
    assert main(["plan", "--snapshot", "pip-364", "--scenario", file, *words]) == 0
    script = capsys.readouterr().out
    assert script.startswith("#!/bin/sh\n# Plan without one for the cluster example\n")
    assert re.search(r"# +[0-9]+ +setting +loadBalancerBrokerThresholdShedderPercentage +10 +5\n", script)
    assert "\nbatch 'Batch 1 of " in script
    assert "\ncheck_batch 7\n" in script
    text = report.read_text(encoding="utf-8")
    assert text.startswith("# Plan: without one\n")
    moved = re.findall(r"^move [0-9]+ (\S+)_", script, re.MULTILINE)
    assert moved
    assert all(bundle in text for bundle in moved)
    assert len(rows.read_text(encoding="utf-8").splitlines()) == len(expected.events) + 1


def test_another_snapshot_is_warned_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "s.json"
    path.write_text(scenario_file(Scenario(cycles=1), "ab" * 32, "Another"), encoding="utf-8")
    assert main(["plan", "--snapshot", "pip-364", "--scenario", str(path)]) == 0
    err = capsys.readouterr().err
    assert err.startswith("warning: the scenario was made for the snapshot Another (abababababab); this is a different")
    assert snapshot_digest(SNAPSHOT)[:12] in err


@pytest.mark.parametrize(
    ("snapshot", "scenario", "message"),
    [
        ("no-such", '{"version":1}', "no-such: There is no file and no sample"),
        ("pip-364", "{", "cannot be read"),
        ("pip-364", '{"version":1,"cycles":0}', "cycles"),
        ("pip-364", '{"version":1,"settings":{"minUnloadMesage":1}}', "minUnloadMessage"),
        (
            "pip-364",
            '{"version":1,"steps":[{"edit":{"kind":"remove_broker","broker":"nobody:1"}}]}',
            "error: edit 1: The cluster has no broker nobody:1",
        ),
        (
            "pip-364",
            '{"version":1,"steps":[{"edit":{"kind":"move_bundle","bundle":"a\\nb","destination":"x"}}]}',
            "edit 1: The cluster has no bundle a\\nb at that moment",
        ),
        ("a\nb\u2028c", '{"version":1}', "a\\nb\\u2028c: There is no file and no sample"),
    ],
)
def test_errors_are_one_line(
    snapshot: str, scenario: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "s.json"
    path.write_text(scenario)
    assert main(["plan", "--snapshot", snapshot, "--scenario", str(path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert message in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("/no/such/file", "Cannot read: No such file"),
        ("a\0b", "Cannot read"),
        ("https://planner.example/", "does not contain a scenario"),
        ("1." + "A" * 40, "was altered"),
        ("2." + "A" * 40, "newer planner"),
    ],
)
def test_what_is_no_scenario(text: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--snapshot", "pip-364", "--scenario", text]) == 2
    assert message in capsys.readouterr().err


def test_a_pipe_that_nobody_writes_is_no_scenario(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert main(["plan", "--snapshot", "pip-364", "--scenario", str(tmp_path / "pipe")]) == 2
    assert "pipe: The file cannot be read" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ("plan", "--scenario", "s.json"),
        ("upgrade", "--to", "5.0.0-M1", "--hours", "1"),
        ("optimize", "--scenario", "s.json"),
    ],
)
def test_a_high_price_is_told_before_it_is_paid(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.json").write_text('{"version": 1, "cycles": 9}')
    told: list[str] = []

    def noted(run: Callable[..., Trace], *given: Any, **named: Any) -> Trace:
        told.append(capsys.readouterr().err)
        return run(*given, **named)

    for module in ("planner.simulate.run", "planner.share.upgrade", "planner.optimize.absorb"):
        run = importlib.import_module(module).simulate
        monkeypatch.setattr(f"{module}.simulate", partial(noted, run))
    assert main([*words, "--snapshot", "pip-364"]) == 0
    assert told[0] == ""
    monkeypatch.setattr("planner.simulate.price.TOLD_FROM_S", 0.0)
    told.clear()
    assert main([*words, "--snapshot", "pip-364"]) == 0
    assert told[0].startswith("note: This simulates ")
    assert "on 5 brokers" in told[0]
    assert told[0].count("\n") == 1


def test_a_place_that_cannot_be_written(file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--snapshot", "pip-364", "--scenario", file, "--report", str(tmp_path)]) == 2
    assert "Cannot write" in capsys.readouterr().err
