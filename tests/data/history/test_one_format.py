"""Watched, ingested and generated history is one format: nothing that was acknowledged is ever lost to a writer."""

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from planner.__main__ import main
from planner.cluster.digest import snapshot_digest
from planner.cluster.errors import CaptureError, FormatError, PlannerError, ReplayError
from planner.cluster.releases import release
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.cluster.units import DAY_MS
from planner.formats.folder import write_folder
from planner.history import watched
from planner.history.day_writer import DayWriter, clear_staging
from planner.history.days import read_day, snapshot_at
from planner.history.generate import check_spec, write_day
from planner.history.ingest import ingest
from planner.history.latest import recent_moments
from planner.history.manifest import LOCK, DayManifest, complete_days, day_folder, day_of, open_day, stamp_of
from planner.history.spec import HistorySpec
from planner.history.watched import HistoryFolder
from planner.replay.kernel import frames_of
from planner.replay.spec import Job, tasks_of
from planner.shadow.record import NextCycle, ShadowRecord, write_next
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.scenario import Scenario
from tests.data.history.whole import check_day

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAY = "2027-01-15"
START = 1_800_000_000_000 - 1_800_000_000_000 % DAY_MS
GENERATED = HistorySpec(
    cluster=ClusterSpec(brokers=2, bundles=8, topics=20, cluster="small"), first_day=DAY, days=1, interval_s=21_600
)


def at(snapshot: Snapshot, time_ms: int) -> Snapshot:
    return replace(snapshot, info=replace(snapshot.info, captured_at_ms=time_ms))


def times(root: Path) -> list[int]:
    return [s.info.captured_at_ms for day in complete_days(root) for s in read_day(day.path)]


def watch(root: Path, snapshot: Snapshot, moments: list[int]) -> None:
    for moment in moments:
        HistoryFolder(root, 1 << 40).add(at(snapshot, START + moment))


@pytest.fixture
def by_three(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compaction after three segments."""
    monkeypatch.setattr(watched, "SEGMENTS_OF_A_RUN", 3)


@pytest.fixture
def old(tmp_path: Path, small: Snapshot) -> Path:
    """A history as watches wrote it before there were runs: one snapshot folder for each moment."""
    for moment in range(4):
        snapshot = at(small, START + moment * 60_000)
        write_folder(snapshot, day_folder(tmp_path / "old", "small", DAY) / stamp_of(snapshot.info.captured_at_ms))
    return tmp_path / "old"


# Nothing is replaced that was not read into its successor.


def test_watched_snapshots_survive_an_ingest_of_their_own_folder(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = times(old)
    assert main(["history", "ingest", str(old / "cluster=small"), "--out", str(old)]) == 2
    assert "needs no ingest" in capsys.readouterr().err
    assert times(old) == before == [START + moment * 60_000 for moment in range(4)]


def test_watched_history_can_be_ingested_into_another(spark: "SparkSession", old: Path, small: Snapshot) -> None:
    out = old.parent / "out"
    ingest([old], out, session=spark)
    assert times(out) == times(old)
    assert [snapshot_digest(s) for d in complete_days(out) for s in read_day(d.path)] == [
        snapshot_digest(at(small, time_ms)) for time_ms in times(old)
    ]


@pytest.mark.usefixtures("by_three")
def test_what_a_watch_compacts_is_no_new_source(spark: "SparkSession", old: Path, small: Snapshot) -> None:
    out = old.parent / "out"
    ingest([old], out, session=spark)
    watch(old, small, [240_000])
    done = ingest([old], out, session=spark)
    assert [m.moments for m in done.days] == [5]
    assert times(out) == times(old)
    assert not ingest([old], out, session=spark).days


def test_ingest_leaves_watched_days_alone(spark: "SparkSession", tmp_path: Path, small: Snapshot) -> None:
    watch(tmp_path / "h", small, [0, 1_000])
    write_folder(at(small, START + 5_000), tmp_path / "more")
    with pytest.raises(ReplayError, match=r"2 snapshots of this day were watched, and would be lost.*--out"):
        ingest([tmp_path / "more"], tmp_path / "h", session=spark)
    assert times(tmp_path / "h") == [START, START + 1_000]


def test_a_watch_goes_on_in_an_ingested_day(spark: "SparkSession", tmp_path: Path, small: Snapshot) -> None:
    write_folder(at(small, START), tmp_path / "raw" / "one")
    ingest([tmp_path / "raw"], tmp_path / "h", session=spark)
    watch(tmp_path / "h", small, [2_000, 1_000])
    assert times(tmp_path / "h") == [START, START + 1_000, START + 2_000]
    write_folder(at(small, START + 3_000), tmp_path / "raw" / "two")
    with pytest.raises(ReplayError, match="would be lost"):
        ingest([tmp_path / "raw"], tmp_path / "h", session=spark)
    shutil.rmtree(tmp_path / "raw" / "one")
    assert len(times(tmp_path / "h")) == 3


def test_files_that_are_not_given_are_not_dropped(spark: "SparkSession", tmp_path: Path, small: Snapshot) -> None:
    for name, second in (("one", 0), ("two", 1)):
        write_folder(at(small, START + second * 1_000), tmp_path / name)
    ingest([tmp_path / "one"], tmp_path / "h", session=spark)
    (tmp_path / "h" / "ledger.json").unlink()
    with pytest.raises(ReplayError, match="contains rows of a file that this run does not read"):
        ingest([tmp_path / "two"], tmp_path / "h", session=spark)
    ingest([tmp_path / "one", tmp_path / "two"], tmp_path / "h", session=spark)
    assert times(tmp_path / "h") == [START, START + 1_000]


@pytest.mark.usefixtures("by_three")
def test_generated_days_replace_generated_ones_alone(tmp_path: Path, small: Snapshot) -> None:
    write_day(tmp_path, GENERATED, 1, 0)
    write_day(tmp_path, GENERATED, 2, 0)
    assert len(times(tmp_path)) == 4
    watch(tmp_path, small, [5_000 + second for second in range(5)])
    assert len(times(tmp_path)) == 9
    with pytest.raises(ReplayError, match="9 snapshots of this day were watched"):
        write_day(tmp_path, GENERATED, 1, 0)
    assert len(times(tmp_path)) == 9
    write_day(tmp_path / "g", GENERATED, 1, 0)
    with DayWriter(tmp_path / "g", "small", DAY) as writer:
        writer.add(at(small, START))
        with pytest.raises(ReplayError, match="were generated"):
            writer.commit(DayManifest(cluster="small", day=DAY, made_by="ingest"))
    assert len(times(tmp_path / "g")) == 4


def files_written(root: Path, act: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Return the files that come into being, however briefly, digits as 0."""
    found: set[str] = set()
    renamed = Path.rename, Path.replace

    def note(path: Path) -> None:
        for one in [path, *path.rglob("*")]:
            if one.is_file() and one.is_relative_to(root):
                text = str(one.relative_to(root))
                found.add("".join("0" if c.isdigit() else c for c in text))

    def rename(self: Path, target: Path) -> Path:
        made = renamed[0](self, target)
        note(Path(target))
        return made

    def replaced(self: Path, target: Path) -> Path:
        made = renamed[1](self, target)
        note(Path(target))
        return made

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", rename)
        patch.setattr(Path, "replace", replaced)
        act()
    note(root)
    return {name for name in found if not any(p.startswith((".staging", ".run-")) or p.endswith((".part", ".going"))
            for p in name.split("/"))}  # fmt: skip


@pytest.mark.usefixtures("by_three")
def test_two_writers_never_share_a_path(tmp_path: Path, small: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole days, what is watched, and the record of shadow mode have file names of their own; the manifest is shared.

    It is the one file that both write, under the lock of the cluster: neither drops what the other named in it (above).
    """

    def whole(root: Path) -> None:
        write_day(root, replace(GENERATED, topics=True), 1, 0)

    def watching(root: Path) -> None:
        watch(root, small, [second * 1_000 for second in range(8)])

    def shadow(root: Path) -> None:
        folder = HistoryFolder(root, 1).folder_of("small")
        write_next(folder, NextCycle(START, START, rhythm_known=True, shedder="x"))
        ShadowRecord(folder).path.write_text("")

    written = []
    for number, act in enumerate((whole, watching, shadow)):
        root = tmp_path / str(number)
        root.mkdir()
        written.append(files_written(root, lambda act=act, root=root: act(root), monkeypatch))  # type: ignore[misc]
    days, watches, shadows = written
    shared = {"cluster=small/day=0000-00-00/manifest.json", f"cluster=small/{LOCK}"}
    assert days & watches == shared
    assert not (days | watches) & shadows
    assert len(days) == 6
    assert "cluster=small/day=0000-00-00/moments-00000000T000000.000Z.parquet" in watches
    assert "cluster=small/day=0000-00-00/00000000T000000.000Z/manifest.json" in watches


# Segments, runs, and what kills the watch between them.


@pytest.mark.usefixtures("by_three")
def test_segments_become_runs_and_come_out_as_they_went_in(tmp_path: Path, small: Snapshot) -> None:
    moments = [second * 10_000 for second in range(11)]
    watch(tmp_path, small, moments)
    (day,) = complete_days(tmp_path)
    assert [len(list(day.path.glob(f"moments{run}.parquet"))) for run in day.manifest.runs] == [1, 1, 1]
    assert len(day.segments) == 2
    assert day.is_watched
    assert (day.manifest.moments, day.manifest.first_ms, day.manifest.last_ms) == (11, START, START + 100_000)
    assert day.rows("bundles") == 11 * len(small.bundles)
    assert day.rows("topics") == 11 * len(small.topics)
    check_day(day.path)
    found = list(read_day(day.path))
    assert [snapshot_digest(s) for s in found] == [snapshot_digest(at(small, START + m)) for m in moments]
    assert [s.info for s in found] == [at(small, START + m).info for m in moments]
    some = read_day(day.path, start_ms=START + 20_000, end_ms=START + 95_000, topics=False)
    assert [(s.info.captured_at_ms - START, len(s.topics)) for s in some] == [(m, 0) for m in moments[2:10]]
    assert snapshot_at(day.path, START + 40_000).info.captured_at_ms == START + 40_000
    with pytest.raises(FormatError, match="no longer in the history"):
        snapshot_at(day.path, START + 40_001)


@pytest.mark.usefixtures("by_three")
def test_the_rest_of_a_day_is_compacted_when_it_is_over(tmp_path: Path, small: Snapshot) -> None:
    watch(tmp_path, small, [0, 1_000, DAY_MS, DAY_MS + 1_000])
    first, second = complete_days(tmp_path)
    assert (len(first.manifest.runs), len(first.segments)) == (1, 0)
    assert (len(second.manifest.runs), len(second.segments)) == (0, 2)
    assert times(tmp_path) == [START, START + 1_000, START + DAY_MS, START + DAY_MS + 1_000]


@pytest.mark.usefixtures("by_three")
def test_a_clock_that_was_set_back(tmp_path: Path, small: Snapshot) -> None:
    moments = [5_000, 6_000, 7_000, 8_000, 1_000, 6_500, 5_500, 9_000, 500]
    watch(tmp_path, small, moments)
    watch(tmp_path, small, [6_000, 9_000])  # said again
    assert times(tmp_path) == [START + m for m in sorted(moments)]


@pytest.mark.usefixtures("by_three")
def test_an_old_watched_history_is_read_and_goes_on(old: Path, small: Snapshot) -> None:
    assert times(old) == [START + moment * 60_000 for moment in range(4)]
    assert [at for _, at in recent_moments(old / "cluster=small", 2, 60_000)] == [START + 120_000, START + 180_000]
    watch(old, small, [240_000])
    (day,) = complete_days(old)
    assert len(day.manifest.runs) == 1
    assert times(old) == [START + moment * 60_000 for moment in range(5)]


@pytest.mark.usefixtures("by_three")
def test_a_damaged_segment_stays_where_it_is(tmp_path: Path, small: Snapshot) -> None:
    watch(tmp_path, small, [0, 1_000])
    bad = day_folder(tmp_path, "small", DAY) / stamp_of(START)
    (bad / "bundles.parquet").write_bytes(b"oops")
    watch(tmp_path, small, [2_000, 3_000, 4_000, 5_000])
    assert (bad / "manifest.json").is_file()
    with pytest.raises(FormatError, match="SHA-256"):
        times(tmp_path)
    shutil.rmtree(bad)
    assert times(tmp_path) == [START + m * 1_000 for m in range(1, 6)]


class Killed(BaseException):
    """What a process that is killed does not come to."""


def syscalls_of_an_append(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object], die_at: int) -> int:
    """Run something that ends before its n-th change of the disk; return how many changes it made."""
    count = 0

    def counted(real: Callable[..., object]) -> Callable[..., object]:
        def call(*args: object, **named: object) -> object:
            nonlocal count
            count += 1
            if count > die_at:
                raise Killed
            return real(*args, **named)

        return call

    with monkeypatch.context() as patch:
        for name in ("rename", "replace", "unlink", "mkdir", "rmdir"):
            patch.setattr(Path, name, counted(getattr(Path, name)))
        patch.setattr(shutil, "rmtree", counted(shutil.rmtree))
        patch.setattr(os, "fsync", counted(os.fsync))
        with contextlib.suppress(Killed):
            act()
    return count


@pytest.mark.usefixtures("by_three")
def test_killed_at_any_step_every_acknowledged_snapshot_survives(
    tmp_path: Path, small: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An append that compacts, ended before each of its changes of the disk; and the one after it."""
    watch(tmp_path / "full", small, [0, 1_000, 2_000])
    steps = syscalls_of_an_append(monkeypatch, lambda: watch(tmp_path / "full", small, [3_000]), 10**9)
    assert steps > 20
    watch(tmp_path / "before", small, [0, 1_000, 2_000])
    for step in range(steps):
        root = shutil.copytree(tmp_path / "before", tmp_path / f"{step}")
        syscalls_of_an_append(monkeypatch, lambda root=root: watch(root, small, [3_000]), step)  # type: ignore[misc]
        acknowledged = [START, START + 1_000, START + 2_000]
        found = times(root)
        assert found[:3] == acknowledged, step
        assert found[3:] in ([], [START + 3_000]), step
        watch(root, small, [4_000])
        assert times(root) == [*found, START + 4_000], step
        assert not [p for p in root.rglob("*") if p.name.startswith(".") and p.name != LOCK], (
            step,
            "leftovers are cleared",
        )
        (day,) = complete_days(root)
        assert {p.name for p in day.path.glob("*.parquet")} == set(day.manifest.parts), step


# Readers beside a watch.


@pytest.mark.usefixtures("by_three")
def test_a_reader_goes_on_while_what_it_reads_is_compacted(tmp_path: Path, small: Snapshot) -> None:
    watch(tmp_path, small, [0, 1_000, 2_000])
    folder = day_folder(tmp_path, "small", DAY)
    reading = read_day(folder)
    assert next(reading).info.captured_at_ms == START
    watch(tmp_path, small, [3_000])
    day = open_day(folder)
    assert day is not None
    assert list(day.segments) == [START + 3_000]
    assert [s.info.captured_at_ms for s in reading] == [START + 1_000, START + 2_000]


@pytest.mark.usefixtures("by_three")
def test_a_reader_goes_on_while_room_is_made(tmp_path: Path, small: Snapshot) -> None:
    moments = [second * 1_000 for second in range(10)]
    watch(tmp_path, small, moments)
    folder = day_folder(tmp_path, "small", DAY)
    reading = read_day(folder)
    next(reading)
    history = HistoryFolder(tmp_path, history_bytes := HistoryFolder(tmp_path, 1).bytes_of("small") // 2)
    history.add(at(small, START + 10_000))
    assert history.bytes_of("small") <= history_bytes
    rest = [s.info.captured_at_ms - START for s in reading]
    assert rest[-1] == 9_000
    assert rest == sorted(set(rest))
    left = times(tmp_path)
    assert left[-1] == START + 10_000
    assert 1 < len(left) < 10
    HistoryFolder(tmp_path, 1).add(at(small, START + DAY_MS))
    assert times(tmp_path) == [START + DAY_MS]
    assert not folder.exists()


@pytest.mark.usefixtures("by_three")
def test_room_is_not_made_of_days_that_others_made(tmp_path: Path, small: Snapshot) -> None:
    write_day(tmp_path, GENERATED, 1, 0)
    HistoryFolder(tmp_path, 1).add(at(small, START + DAY_MS))
    assert len(times(tmp_path)) == 5


def test_a_day_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="no such file"):
        list(read_day(tmp_path / "cluster=x" / "day=2027-01-15"))
    clear_staging(tmp_path)


def test_a_folder_that_cannot_be_written(tmp_path: Path, small: Snapshot) -> None:
    (tmp_path / "cluster=small").write_text("in the way")
    with pytest.raises(CaptureError, match="Cannot write"):
        HistoryFolder(tmp_path, 1).add(small)


# Everybody reads watched days.


@pytest.mark.usefixtures("by_three")
def test_every_form_of_a_day_names_the_release_that_decides(tmp_path: Path, small: Snapshot) -> None:
    """The cluster is upgraded while it is watched, and what the older release did by default changes with it."""
    versions = ["3.0.0"] * 2 + ["4.2.4"] * 2 + ["3.0.7"]
    for second, version in enumerate(versions):
        info = replace(small.info, captured_at_ms=START + second * 1_000, pulsar_version=version)
        HistoryFolder(tmp_path, 1 << 40).add(replace(small, info=info, settings=Settings({}, release(version))))
    (day,) = complete_days(tmp_path)
    assert len(day.manifest.runs) == 1
    assert len(day.segments) == 2
    found = [snapshot.settings for snapshot in read_day(day.path)]
    assert [one.release.name for one in found] == versions
    weights = [one.number("loadBalancerDirectMemoryResourceWeight") for one in found]
    assert weights == [1.0, 1.0, 0.0, 0.0, 1.0]


@pytest.mark.usefixtures("by_three")
def test_a_watched_history_is_replayed(tmp_path: Path, small: Snapshot) -> None:
    moments = [second * 60_000 for second in range(7)]
    watch(tmp_path, small, moments)
    scenario = Scenario(name="as it is")
    job = Job(name="x", history=str(tmp_path), clusters=("small",), first_day=DAY, last_day=DAY, scenarios=(scenario,))
    (task,) = tasks_of(job)
    frames: Iterator[Snapshot] = frames_of(task)
    assert [s.info.captured_at_ms for s in frames] == [START + m for m in moments]


def test_shadow_reads_generated_days_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_day(tmp_path, GENERATED, 1, 0)
    assert main(["shadow", "--history", str(tmp_path)]) == 0
    assert "correct cycles" in capsys.readouterr().out


def test_day_names() -> None:
    assert day_of(START) == DAY
    with pytest.raises(PlannerError):
        check_spec(HistorySpec(first_day="tomorrow"))
