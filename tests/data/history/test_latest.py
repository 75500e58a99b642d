"""The newest snapshots of a history, one for each cycle."""

from dataclasses import replace
from pathlib import Path

import pytest

from planner.cluster.errors import CaptureError
from planner.history.days import snapshot_at
from planner.history.latest import recent_moments
from planner.history.manifest import moment_of
from planner.history.watched import HistoryFolder
from tests.app.simulate.traces import START_MS, cluster


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A capture every 20 s for four minutes, over midnight."""
    history = HistoryFolder(tmp_path, 1 << 30)
    midnight = START_MS - START_MS % 86_400_000
    made = cluster((0.5, 0.5))
    for second in range(-120, 120, 20):
        history.add(replace(made, info=replace(made.info, captured_at_ms=midnight + second * 1000 + 7)))
    (history.folder_of("by-hand") / "day=2027-01-15" / "20270115T000500.000Z").mkdir()
    (history.folder_of("by-hand") / "day=2027-01-15" / ".20270115T000501.000Z.part").mkdir()
    return history.folder_of("by-hand")


def seconds(moments: list[tuple[Path, int]]) -> list[float]:
    midnight = START_MS - START_MS % 86_400_000
    return [(time_ms - midnight - 7) / 1000 for _, time_ms in moments]


def test_the_last_one_before_each_cycle(folder: Path) -> None:
    assert seconds(recent_moments(folder, 3, 60_000)) == [-20.0, 40.0, 100.0]
    assert seconds(recent_moments(folder, 99, 60_000)) == [-80.0, -20.0, 40.0, 100.0]
    assert seconds(recent_moments(folder, 3, 60_000, START_MS + 30_000)) == [20.0, 80.0, 100.0]
    day, time_ms = recent_moments(folder, 1, 60_000)[0]
    assert snapshot_at(day, time_ms).info.captured_at_ms == time_ms


def test_names_that_are_no_moment() -> None:
    for name in ("", "20270115T000500Z", "20271315T000500.000Z", ".20270115T000500.000Z.part"):
        assert moment_of(name) == 0


def test_a_history_that_is_not_there(tmp_path: Path) -> None:
    assert recent_moments(tmp_path / "none", 3, 60_000) == []
    (tmp_path / "day=2027-01-15").write_text("")
    with pytest.raises(CaptureError, match="cannot be read"):
        recent_moments(tmp_path, 3, 60_000)
