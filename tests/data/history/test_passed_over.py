"""Folders that look like days of a history and are none are named."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from planner.__main__ import main
from planner.history.manifest import complete_days
from planner.history.passed_over import passed_over
from tests.data.test_faults import make_day, watch


@pytest.fixture
def history(tmp_path: Path) -> Path:
    """A day that was ingested, and what goes with one."""
    root = tmp_path / "history"
    make_day(root, 1, 2, 3)
    (root / "set_aside").mkdir()
    (root / "set_aside" / "a.parquet").touch()
    return root


def day(root: Path) -> Path:
    (found,) = root.glob("cluster=*/day=*")
    return found


SPOILT: dict[str, Callable[[Path], object]] = {
    "no manifest.json": lambda path: (path / "manifest.json").unlink(),
    "is not a folder": lambda path: path.rename(path.parent / ".gone") and path.write_text("x"),
    "day=2027-1-15: This folder looks": lambda path: path.rename(path.with_name("day=2027-1-15")),
    "2027-01-15: This folder looks": lambda path: path.rename(path.with_name("2027-01-15")),
    "copy: This folder looks": lambda path: path.rename(path.with_name("a copy")),
    "tiny/day=": lambda path: path.parent.rename(path.parent.with_name("tiny")),
    "This folder looks like a day": lambda path: path.rename(path.parent.parent / path.name),
}


@pytest.mark.parametrize("words", SPOILT)
def test_what_looks_like_a_day_is_named(history: Path, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert passed_over(history) == []
    SPOILT[words](day(history))
    assert list(complete_days(history)) == []
    (said,) = passed_over(history)
    assert words in said
    watch(history, 100_000, 100_001)  # of the next day
    main(["shadow", "--history", str(history), "--cluster", "tiny"])
    assert said in capsys.readouterr().err


def test_what_a_watch_begins_with_is_none(tmp_path: Path) -> None:
    watch(tmp_path, 1, 2)
    (tmp_path / "cluster=tiny" / "day=2027-01-16" / ".20270116T000000.000Z.part").mkdir(parents=True)
    (tmp_path / "cluster=tiny" / ".wrong" / "1").mkdir(parents=True)
    assert passed_over(tmp_path) == []


def test_a_replay_names_them(
    history: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANNER_WORKSPACE", str(tmp_path / "w.duckdb"))
    monkeypatch.setattr("planner.replay.jobs._start", lambda *_: None)
    shutil.copytree(day(history), day(history).with_name("day=2027-01-16"))
    (history / "cluster=tiny" / "day=2027-01-16" / "manifest.json").unlink()
    assert main(["replay", "--history", str(history), "--detach"]) == 0
    assert (
        "note: cluster=tiny/day=2027-01-16: This folder has the name of a day but no manifest.json"
        in capsys.readouterr().err
    )
