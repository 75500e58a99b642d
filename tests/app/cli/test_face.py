"""What `import planner` offers: every name resolves and says what it is, and the page of the documentation runs."""

import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

import planner

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "notebook.md"


@pytest.mark.parametrize("name", planner.__all__)
def test_exported_names_resolve_and_say_what_they_are(name: str) -> None:
    found = getattr(planner, name)
    assert found.__name__ == name
    assert found.__doc__
    assert not (ROOT / "planner" / name).exists(), "a package of that name would take its place"


def test_nothing_else_is_offered() -> None:
    assert planner.__all__ == sorted(planner.__all__)
    assert dir(planner) == planner.__all__
    assert len(planner.__all__) <= 20
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = planner.nothing
    assert (ROOT / "planner" / "py.typed").exists()


def test_importing_it_loads_nothing() -> None:
    code = "import sys; before = set(sys.modules); import planner; print(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert {name.partition(".")[0] for name in done.stdout.split()} <= {"planner", "importlib", "warnings"}


def blocks() -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.usefixtures("workspace_file")
def test_every_block_of_the_page_runs_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for number, block in enumerate(blocks(), 1):
        exec(compile(block, f"{PAGE.name}, block {number}", "exec"), names)  # noqa: S102 - our own documentation
    said = capsys.readouterr().out
    assert len(blocks()) >= 8
    assert "threshold 5" in said
    assert "no-such-file.zip There is no file and no sample" in said
    assert {type(names[name]).__name__ for name in ("usage", "flow", "bars")} == {"Figure"}


@pytest.fixture(scope="module")
def outcome() -> planner.Outcome:
    return planner.run_scenario(planner.load_snapshot("pip-364"), planner.make_scenario(cycles=4))


def test_tables_hold_what_they_were_made_of(outcome: planner.Outcome) -> None:
    start = outcome.trace.start
    assert planner.to_arrow(start).num_rows == len(start.brokers)
    assert planner.to_pandas(start, "bundles")["low"].tolist() == start.bundles.low.tolist()
    assert planner.to_arrow(outcome).num_rows == len(outcome.trace.events)
    series = planner.to_pandas(outcome.series)
    assert series.shape[0] == outcome.series.usage.size
    first = series[series["cycle"] == 1]
    assert first["usage"].tolist() == outcome.series.usage[0].tolist()
    assert first["broker"].tolist() == list(outcome.series.brokers)
    table = planner.to_arrow(planner.compare({"one": outcome, "two": outcome}))
    assert isinstance(table, pa.Table)
    assert table["one"].to_pylist() == table["two"].to_pylist()
    measured = dict(zip(table["name"].to_pylist(), table["one"].to_pylist(), strict=True))
    assert measured["shed"] == outcome.summary.shed
    assert isinstance(planner.to_pandas(outcome), pd.DataFrame)


def test_a_scenario_is_built_over_another_one(outcome: planner.Outcome) -> None:
    start = outcome.trace.start
    edit = {"kind": "remove_broker", "broker": start.brokers.name[0]}
    base = planner.make_scenario(edit, settings={"loadBalancerEnabled": True}, cycles=3)
    more = planner.make_scenario(base.edits[0], base=base, settings={"loadBalancerSheddingEnabled": False}, seed=4)
    assert more.edits == (base.edits[0], base.edits[0])
    assert dict(more.settings) == {"loadBalancerEnabled": True, "loadBalancerSheddingEnabled": False}
    assert (more.cycles, more.seed) == (3, 4)
    avg = planner.make_scenario(base=base, snapshot=start, strategy="AvgShedder")
    assert avg.name == "AvgShedder"
    assert avg.settings["loadBalancerEnabled"] is True


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        (lambda _: planner.load_snapshot("none"), "no file and no sample"),
        (lambda _: planner.open_link("1.AAAAAAAAAAAAAAAAAA"), "was altered"),
        (lambda _: planner.make_scenario(cycles=0), "cycles"),
        (lambda _: planner.make_scenario(settings={"noSuch": 1}), "noSuch"),
        (lambda _: planner.make_scenario({"kind": "none"}), "edit"),
        (lambda _: planner.make_scenario(strategy="AvgShedder"), "needs a cluster"),
        (lambda _: planner.capture_cluster("ftp://x", "out"), "not an http or https"),
        (lambda _: planner.capture_cluster("http://x", "out", speed=3), "option does not exist"),
        (lambda o: planner.explain_decision(o, broker="b", cycle=9), "cycle does not exist"),
        (lambda o: planner.figure(o, "pie"), "figure does not exist"),
        (lambda o: planner.figure(planner.compare({"a": o}), "pie"), "measure does not exist"),
        (lambda o: planner.to_arrow(o.trace.start, "clients"), "no such part"),
        (lambda _: planner.to_pandas(3), "no table"),
        (lambda _: planner.replay_history("nowhere"), "no such folder"),
    ],
)
def test_what_cannot_be_done_is_said_by_one_family_of_errors(
    wrong: "object", what: str, outcome: planner.Outcome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(planner.PlannerError, match=what):
        wrong(outcome)  # type: ignore[operator]
