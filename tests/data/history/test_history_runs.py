"""A large day is made run by run, by one worker or by several: the same files, and the same snapshots as of one run."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from planner.cluster.digest import snapshot_digest
from planner.cluster.errors import ReplayError
from planner.cluster.load_manager import LoadManager
from planner.cluster.units import DAY_MS
from planner.formats.folder import write_folder
from planner.history import day_writer
from planner.history import ingest as module
from planner.history.day_writer import STAGING, RunLength, clear_staging, commit_day
from planner.history.days import read_day, snapshot_at
from planner.history.generate import snapshots_of_day
from planner.history.ingest import ingest
from planner.history.make import ToMake, ToMakeRun, is_worth_cutting, make_day, make_run
from planner.history.manifest import (
    MANIFEST,
    DayManifest,
    complete_days,
    day_folder,
    day_start_ms,
    read_manifest,
)
from planner.history.plan import DayPlan
from planner.history.raw import write_raw
from planner.history.records import Stream
from planner.history.sources import blocks_of, find_sources
from planner.history.spec import FORMS, HistorySpec, Options
from planner.history.staged import RunPart
from planner.replay.kernel import ReplayTask, replay_days
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.scenario import Scenario
from tests.data.history.whole import check_day

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAY = "2027-01-11"
SPEC = HistorySpec(
    cluster=ClusterSpec(brokers=4, bundles=24, topics=80, msg_rate_per_s=20_000, cluster="c"),
    days=1,
    interval_s=600,
    restarts_per_day=6,
    restart_minutes=60,
    splits_per_day=6,
    topics=True,
)
WHOLE = Options(interval_ms=600_000)
CUT = replace(WHOLE, run_rows=500)


def spec_of(manager: LoadManager) -> HistorySpec:
    return replace(SPEC, cluster=replace(SPEC.cluster, load_manager=manager))


def record(raw: Path, form: str) -> None:
    """Write a day in one form, or in all of them with snapshots between, at full intervals and off them."""
    spec = spec_of(LoadManager.EXTENSIBLE if form == "extensible" else LoadManager.MODULAR)
    for one in FORMS if form == "mixed" else [name for name in FORMS if name == form] or ["reports"]:
        write_raw(raw, snapshots_of_day(spec, 1, 0), one)
    if form == "mixed":
        for n, snapshot in enumerate(snapshots_of_day(spec, 1, 0)):
            if n % 5 == 0:
                at_ms = snapshot.info.captured_at_ms + n * 100
                write_folder(replace(snapshot, info=replace(snapshot.info, captured_at_ms=at_ms)), raw / f"s{n}")


def pieces_of(raw: Path, folder: Path) -> tuple[RunPart, ...]:
    """Do what the first stage does, in this process."""
    folder.mkdir()
    blocks = [(n, block) for n, source in enumerate(find_sources([raw], folder)) for block in blocks_of(source)]
    found = [module._read_one(folder, WHOLE, module._ToRead(n, b, f"{n}-{b.first}")) for n, b in blocks]
    pieces = tuple(piece for some in found for piece in some if piece.lane in (Stream.ROW, Stream.HINT))
    return tuple(piece for piece in pieces if piece.day == day_start_ms(DAY) // DAY_MS)


def digests(folder: Path) -> list[str]:
    return [snapshot_digest(snapshot) for snapshot in read_day(folder)]


@pytest.mark.parametrize("form", [*FORMS, "extensible", "mixed"])
def test_runs_are_the_same_whoever_makes_them(tmp_path: Path, form: str) -> None:
    record(tmp_path / "raw", form)
    pieces = pieces_of(tmp_path / "raw", tmp_path / "read")
    given = ToMake(DayPlan("c", DAY, {}), pieces)
    uncut, alone, several = (tmp_path / name for name in ("uncut", "alone", "several"))
    small = make_day(uncut, WHOLE, given).manifest
    assert small.runs == ("",)
    by_one = make_day(alone, CUT, given).manifest
    ahead = make_day(several, CUT, replace(given, ahead=True))
    assert len(by_one.runs) == len(ahead.starts) > 4
    runs = [make_run(several, CUT, ToMakeRun("c", DAY, pieces, start)) for start in reversed(ahead.starts)]
    again = make_run(several, CUT, ToMakeRun("c", DAY, pieces, ahead.starts[1]))  # another attempt at the same run
    assert again.parts == runs[-2].parts
    assert not list(several.glob("cluster=*"))  # nothing is there before everything is
    assert commit_day(several, ahead.manifest, runs) == by_one
    files = [{path.name: path.read_bytes() for path in day_folder(r, "c", DAY).iterdir()} for r in (alone, several)]
    assert files[0] == files[1]

    folder = day_folder(several, "c", DAY)
    assert digests(folder) == digests(day_folder(uncut, "c", DAY))
    about = {"parts": {}, "digest": ""}
    assert check_day(folder).model_copy(update=about) == small.model_copy(update=about)
    assert by_one.rows_of("bundles") == small.rows_of("bundles")
    times = [snapshot.info.captured_at_ms for snapshot in read_day(folder)]
    assert snapshot_at(folder, times[40]).info.captured_at_ms == times[40]
    found = read_day(folder, start_ms=times[20], end_ms=times[90])
    assert [snapshot.info.captured_at_ms for snapshot in found] == times[20:90]


def test_a_state_that_has_changed_is_refused(tmp_path: Path) -> None:
    record(tmp_path / "raw", "reports")
    pieces = pieces_of(tmp_path / "raw", tmp_path / "read")
    start = make_day(tmp_path / "h", CUT, ToMake(DayPlan("c", DAY, {}), pieces, ahead=True)).starts[2]
    Path(start.path).write_bytes(b"oops")
    with pytest.raises(ReplayError, match=f"{DAY} of c cannot be made.*have changed"):
        make_run(tmp_path / "h", CUT, ToMakeRun("c", DAY, pieces, start))


def test_a_run_is_long_enough_and_a_day_is_cut_where_that_is_sooner() -> None:
    length = RunLength(100)
    assert [length.ends(n * 1_200_000, 60) for n in range(8)] == [n in (3, 7) for n in range(8)]
    assert not RunLength(100).ends(0, 1_000)
    assert [
        is_worth_cutting(w, t, c, 4_000) for w, t, c in [(1, 1, 8), (2, 2, 1), (2, 2, 2), (2, 8, 4), (2, 8, 8)]
    ] == [
        False,
        False,
        True,
        False,
        True,
    ]


@pytest.fixture
def committed(monkeypatch: pytest.MonkeyPatch) -> list[DayManifest]:
    """Days whose runs several workers made."""
    found: list[DayManifest] = []

    def commit(root: Path, manifest: DayManifest, runs: list[day_writer.Runs]) -> DayManifest:
        found.append(commit_day(root, manifest, runs))
        return found[-1]

    monkeypatch.setattr(module, "commit_day", commit)
    return found


def replayed(root: Path) -> list[tuple[object, ...]]:
    start_ms = day_start_ms(DAY)
    end_ms = start_ms + DAY_MS
    task = ReplayTask(task="t", history=str(root), cluster="c", start_ms=start_ms, end_ms=end_ms, scenario=Scenario())
    return [(one.day, one.cycles, one.measures, one.intervals, one.moves) for one in replay_days(task)]


def test_a_cut_day_is_ingested_once_and_replayed_like_any_other(
    spark: "SparkSession", tmp_path: Path, committed: list[DayManifest]
) -> None:
    raw, root = tmp_path / "raw", tmp_path / "cut"
    record(raw, "reports")
    made = ingest([raw], root, CUT, spark)
    assert list(made.days) == committed
    assert len(made.days[0].runs) > 4
    assert [path.name for path in (root / STAGING).iterdir()] == ["lock"]
    before = (day_folder(root, "c", DAY) / MANIFEST).read_bytes()
    again = ingest([raw], root, CUT, spark)
    assert (again.files_read, len(again.days), again.days_unchanged) == (0, 0, 1)
    assert (day_folder(root, "c", DAY) / MANIFEST).read_bytes() == before

    ingest([raw], tmp_path / "whole", WHOLE, spark)
    assert len(committed) == 1
    assert replayed(root) == replayed(tmp_path / "whole")

    report = next(raw.glob("*.jsonl")).read_bytes().splitlines()[80]
    (raw / "late.jsonl").write_bytes(report.replace(b'"limit":', b'"limit":1'))
    late = ingest([raw], root, CUT, spark)
    assert late.days[0].rows.outdated == 1
    assert late.days[0].runs[:2] == ("-01-b", "-02-b")
    folder = day_folder(root, "c", DAY)
    assert {path.name for path in folder.iterdir()} == {*check_day(folder).parts, MANIFEST}


class Killed(BaseException):
    """What a process that is killed does not come to."""


def dies_after(steps: int, real: Callable[..., object]) -> Callable[..., object]:
    left = iter(range(steps))

    def call(*args: object, **named: object) -> object:
        if next(left, None) is None:
            raise Killed
        return real(*args, **named)

    return call


def killed_states(root: Path, raw: Path, tmp_path: Path) -> Iterator[int]:
    """Replace a cut day by another one, killed after each file; yield how many moments there are."""
    pieces = pieces_of(raw, tmp_path / "read")
    for step in range(100):
        ahead = make_day(root, CUT, ToMake(DayPlan("c", DAY, {}), pieces, ahead=True))
        runs = [make_run(root, CUT, ToMakeRun("c", DAY, pieces, start)) for start in ahead.starts]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Path, "replace", dies_after(step, Path.replace))
            with contextlib.suppress(Killed):
                commit_day(root, ahead.manifest, runs)
                return
        clear_staging(root)
        yield len(list(read_day(day_folder(root, "c", DAY))))
        check_day(day_folder(root, "c", DAY))


def test_killed_at_any_file_a_day_is_the_former_one_or_the_new_one(tmp_path: Path) -> None:
    snapshots = list(snapshots_of_day(SPEC, 1, 0))
    write_raw(tmp_path / "half", iter(snapshots[:30]), "reports")
    write_raw(tmp_path / "more", iter(snapshots[:60]), "reports")
    root, given = tmp_path / "h", pieces_of(tmp_path / "half", tmp_path / "first")
    former = make_day(root, CUT, ToMake(DayPlan("c", DAY, {}), given)).manifest
    found = list(killed_states(root, tmp_path / "more", tmp_path))
    assert set(found) == {former.moments}
    assert len(found) > 6
    folder = day_folder(root, "c", DAY)
    assert read_manifest(folder).moments > former.moments
    assert {path.name for path in folder.iterdir()} == {*check_day(folder).parts, MANIFEST}


def test_killed_between_runs_there_is_no_day_and_the_next_ingest_makes_it(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw, root = tmp_path / "raw", tmp_path / "h"
    record(raw, "reports")
    with monkeypatch.context() as patch:
        patch.setattr(module, "commit_day", dies_after(0, commit_day))
        patch.setattr(module, "clear_staging", dies_after(1, clear_staging))
        with pytest.raises(Killed):
            ingest([raw], root, CUT, spark)
    assert not list(complete_days(root))
    assert len(list((root / STAGING).iterdir())) > 4
    made = ingest([raw], root, CUT, spark)
    assert (made.files_read, len(made.days)) == (0, 1)
    check_day(day_folder(root, "c", DAY))
    assert [path.name for path in (root / STAGING).iterdir()] == ["lock"]
