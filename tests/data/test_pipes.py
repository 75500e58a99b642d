"""A pipe in the place of a file of a folder is named, or passed over; nothing waits for it."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from planner.advise.material import read_rows
from planner.capture.options import CaptureOptions
from planner.capture.run import capture_cluster
from planner.cluster.errors import PlannerError
from planner.history.days import read_day
from planner.history.manifest import complete_days
from planner.history.sources import blocks_of, find_sources, lines_of_block
from planner.replay.jobs import list_jobs, log_tail, open_job, retry
from planner.replay.queries import ReplayResults
from planner.replay.report import report_to_json
from planner.replay.results import result_files
from planner.shadow.record import ShadowRecord
from tests.app.pages.test_shadow_page import cycle
from tests.data.recorded_cluster import Cluster
from tests.data.replay.replays import JOB, make_job_folder
from tests.data.test_faults import watch
from tests.fuzz.fuzz import at_most

MOST_S = 20.0
Options = Callable[..., CaptureOptions]


def with_a_pipe(folder: Path, tmp_path: Path) -> Iterator[Path]:
    """Yield copies of a folder, each with another of its files a pipe."""
    for number, file in enumerate(sorted(p.relative_to(folder) for p in folder.rglob("*") if p.is_file())):
        copy = tmp_path / str(number) / folder.name
        shutil.copytree(folder, copy, symlinks=True)
        (copy / file).unlink()
        os.mkfifo(copy / file)
        with at_most(MOST_S):
            yield copy


@pytest.mark.parametrize("earlier", [False, True])
def test_a_job(earlier: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: FBT001 - a parameter
    made = tmp_path / "made" / "jobs"
    made.mkdir(parents=True)
    make_job_folder(made)
    if earlier:  # it wrote no digests
        (made / JOB / "results" / "summary.json").write_text("{}")
    monkeypatch.setattr("planner.replay.jobs._start", lambda *_: None)
    asked: tuple[Callable[[Path], object], ...] = (
        list_jobs,
        lambda root: log_tail(root / JOB),
        lambda root: report_to_json(open_job(JOB, root)),
        lambda root: ReplayResults(result_files(root / JOB / "results")).scenarios(),
        lambda root: read_rows(root / JOB / "results"),
        lambda root: retry(open_job(JOB, root)),
    )
    tried = 0
    for root in with_a_pipe(made, tmp_path):
        for ask in asked:
            with suppress(PlannerError):
                ask(root)
        tried += 1
    assert tried > 5


def test_a_history(tmp_path: Path) -> None:
    root = tmp_path / "history"
    watch(root, *range(1, 70))
    (root / "cluster=tiny" / ".lock").touch()
    tried = 0
    for copy in with_a_pipe(root, tmp_path):
        for day in complete_days(copy):
            with suppress(PlannerError):
                day.rows("brokers")
                list(read_day(day.path))
        with suppress(PlannerError):
            watch(copy, 71)
        tried += 1
    assert tried > 5


def test_recordings(tmp_path: Path) -> None:
    for name in ("a.jsonl", "a.jsonl.gz", "a.json"):
        os.mkfifo(tmp_path / name)
    with at_most(MOST_S), suppress(PlannerError, OSError):
        for source in find_sources([tmp_path], tmp_path / "out"):
            for block in blocks_of(source):
                list(lines_of_block(block))


def test_a_record(tmp_path: Path) -> None:
    record = ShadowRecord(tmp_path)
    os.mkfifo(record.path)
    with at_most(MOST_S), pytest.raises(PlannerError, match="pipe"):
        record.add(cycle(1))


@pytest.mark.parametrize("file", ["journal.jsonl", "leader.json", "metrics.b1.json", "index.json"])
def test_a_capture_that_goes_on(cluster: Cluster, options: Options, file: str) -> None:
    given = options(cluster)
    capture_cluster(given)
    path = given.out / "raw" / file
    path.unlink()
    os.mkfifo(path)
    with at_most(MOST_S), suppress(PlannerError):
        capture_cluster(given)
