"""Rot, full disks and kills, over everything that is kept: what was acknowledged is there, all else is named.

A sample of it runs in CI. All of it, half an hour: `PLANNER_FAULTS=all pytest tests/data/test_faults.py -n 2` (two or
three bits of every byte, every place at which a file can be cut, every step at which a process can be killed). A file
whose SHA-256 stands elsewhere is as wrong at one place as at any other: of those, five hundred places.
"""

import contextlib
import errno
import hashlib
import io
import json
import os
import resource
import shutil
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from planner.cluster import files
from planner.cluster.digest import snapshot_digest
from planner.cluster.errors import FormatError, PlannerError
from planner.cluster.snapshot import Snapshot
from planner.cluster.units import DAY_MS
from planner.formats.archive import write_zip
from planner.formats.folder import write_folder
from planner.formats.reading import read_snapshot
from planner.history import watched
from planner.history.day_writer import DayWriter, clear_staging
from planner.history.days import read_day, times_of_day
from planner.history.ledger import Ledger, SourceEntry, only_ingest, read_ledger, write_ledger
from planner.history.manifest import LOCK, DayManifest, complete_days, day_of, read_manifest
from planner.history.sources import SourceKind
from planner.history.watched import HistoryFolder
from planner.replay import jobs
from planner.replay.jobs import Status, list_jobs, open_job, retry, submit, write_status
from planner.replay.queries import ReplayResults
from planner.replay.report import report_to_json
from planner.replay.results import result_files
from planner.replay.spec import Job
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.generate import generate
from planner.simulate.scenario import Scenario
from planner.workspace.database import Workspace, open_workspace
from tests.data.replay.replays import JOB, make_job_folder, replayed, work

ALL = os.environ.get("PLANNER_FAULTS") == "all"
pytestmark = [pytest.mark.timeout(0)] if ALL else []
SAMPLE, SEALED_SAMPLE, SEALED = 60, 12, 500
START = 1_800_000_000_000 - 1_800_000_000_000 % DAY_MS
TINY = generate(ClusterSpec(brokers=2, bundles=6, topics=10, namespaces=2, cluster="tiny"), 3)


def at(moment: int) -> Snapshot:
    return replace(TINY, info=replace(TINY.info, captured_at_ms=START + moment * 1_000))


def watch(root: Path, *moments: int) -> None:
    for moment in moments:
        HistoryFolder(root, 1 << 40).add(at(moment))


def make_day(root: Path, *moments: int) -> None:
    with DayWriter(root, "tiny", day_of(START)) as writer:
        for moment in moments:
            writer.add(at(moment))
        writer.commit(DayManifest(cluster="tiny", day=day_of(START), made_by="ingest", gaps=[], notes=["a note"]))


def read_history(root: Path) -> list[str]:
    """Return what can be seen of a history: the manifests without the names of files, and every snapshot."""
    found: list[str] = []
    for day in complete_days(root):
        if day.damage is not None:
            raise day.damage
        found += [repr(day.manifest.model_copy(update={"parts": {}, "digest": ""})), repr(times_of_day(day.path))]
        found += [snapshot_digest(snapshot) for snapshot in read_day(day.path)]
    return found


def make_ledger(root: Path) -> None:
    about = {"size": 7, "changed_ns": 8, "cluster": "c", "read": 3, "kept": 2, "set_aside": 1}
    write_ledger(root, Ledger(settings={"interval_ms": 5}, sources={"a": SourceEntry(kind=SourceKind.LINES, **about)}))


def make_zip(root: Path) -> None:
    packed = io.BytesIO()
    write_zip(TINY, packed)
    (root / "x.zip").write_bytes(packed.getvalue())


def read_job_folder(root: Path) -> list[Any]:
    """Return all that the pages show of a job."""
    stored = open_job(JOB, root)
    if stored.job is None or stored.status.what:
        raise PlannerError(stored.status.what, remedy=stored.status.remedy)
    results = ReplayResults(result_files(root / JOB / "results"))
    tables = [results.scenarios(), results.failed(), results.curves("std", ["hourly"]), results.moves("hourly")]
    told = report_to_json(replace(stored, folder=root / JOB)) | {"folder": ""}
    return [json.dumps(told), repr(stored.job), *(table.to_pylist() for table in tables)]


@dataclass(frozen=True)
class SessionValue:
    """Something that is kept on disk.

    Attributes:
        make: Writes it into a folder.
        read: Returns everything that matters of what is there.
    """

    make: Callable[[Path], object]
    read: Callable[[Path], Any]


KEPT = {
    "snapshot folder": SessionValue(
        lambda root: write_folder(TINY, root / "s"), lambda root: snapshot_digest(read_snapshot(root / "s"))
    ),
    "snapshot zip": SessionValue(make_zip, lambda root: snapshot_digest(read_snapshot(root / "x.zip"))),
    "whole day": SessionValue(lambda root: make_day(root, 1, 2, 3), read_history),
    "watched day": SessionValue(lambda root: watch(root, 1, 2, 3, 4, 5), read_history),
    "ledger": SessionValue(make_ledger, lambda root: read_ledger(root).model_dump()),
    "replay job": SessionValue(make_job_folder, read_job_folder),
}


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compact early, start no process for a job, and take what a killed process left of one as old at once."""
    monkeypatch.setattr(watched, "SEGMENTS_OF_A_RUN", 3)
    monkeypatch.setattr(jobs, "_start", lambda *_: None)
    monkeypatch.setattr(jobs, "_LEFT_S", -1.0)


def named(error: PlannerError, *words: str) -> None:
    """See that an error says what is wrong and what to do."""
    assert error.what.rstrip(".")
    assert error.remedy, error
    assert not words or any(word in error.what for word in words), error


def files_in(folder: Path) -> list[Path]:
    """Return all files that hold something, in order."""
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size)


def outcome(kept: SessionValue, root: Path) -> Any:
    """Return what is read, or None where it is refused in words with a remedy."""
    files._check.cache_clear()
    try:
        return kept.read(root)
    except PlannerError as error:
        return named(error)


def is_sealed(path: Path) -> bool:
    """Whether SHA-256 of a file stands elsewhere, so that any change of it is the same change."""
    return path.suffix == ".parquet"


def bits_of(path: Path, random: np.random.Generator) -> list[int]:
    bits = path.stat().st_size * 8
    if not ALL:
        most = SEALED_SAMPLE if is_sealed(path) else SAMPLE
        return [int(bit) for bit in random.choice(bits, min(bits, most), replace=False)]
    return list(range(0, bits, max(bits // SEALED | 1, 3) if is_sealed(path) else 3))


def cuts_of(path: Path) -> list[int]:
    size = path.stat().st_size
    step = 512 if not ALL else size // SEALED + 1 if is_sealed(path) else 1
    return sorted({*range(0, size, step), size - 1})


@pytest.mark.parametrize("name", KEPT)
def test_no_flipped_bit_is_silently_wrong(tmp_path: Path, name: str) -> None:
    kept, random = KEPT[name], np.random.default_rng(len(name))
    kept.make(tmp_path)
    right = outcome(kept, tmp_path)
    assert right
    told = tried = 0
    for path in files_in(tmp_path):
        content = path.read_bytes()
        for bit in bits_of(path, random):
            flipped = bytearray(content)
            flipped[bit // 8] ^= 1 << bit % 8
            path.write_bytes(flipped)
            found = outcome(kept, tmp_path)
            assert found is None or (found == right and not is_sealed(path)), (path.name, bit)
            tried += 1
            told += found is None
        path.write_bytes(content)
    assert told > tried // 2 or name == "ledger"
    assert outcome(kept, tmp_path) == right


@pytest.mark.parametrize("name", KEPT)
def test_no_file_cut_off_is_silently_wrong(tmp_path: Path, name: str) -> None:
    kept = KEPT[name]
    kept.make(tmp_path)
    right = outcome(kept, tmp_path)
    for path in files_in(tmp_path):
        content = path.read_bytes()
        for length in cuts_of(path):
            path.write_bytes(content[:length])
            found = outcome(kept, tmp_path)
            assert found is None or (found == right and content[length:] == b"\n"), (path.name, length)
        path.write_bytes(content)
    assert outcome(kept, tmp_path) == right


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", KEPT)
def test_a_pipe_is_not_waited_for_and_a_device_not_read_to_its_end(tmp_path: Path, name: str) -> None:
    kept = KEPT[name]
    kept.make(tmp_path)
    right = outcome(kept, tmp_path)
    for path in files_in(tmp_path):
        content = path.read_bytes()
        for put in (os.mkfifo, lambda path: path.symlink_to("/dev/zero")):
            path.unlink()
            put(path)
            assert outcome(kept, tmp_path) != right, path.name
        path.unlink()
        path.write_bytes(content)
    assert outcome(kept, tmp_path) == right


def test_a_watched_moment_whose_manifest_is_a_pipe_is_named(tmp_path: Path) -> None:
    watch(tmp_path, 1, 2, 3)
    (day,) = complete_days(tmp_path)
    segment = day.segments[START + 2_000]
    for put in (os.mkfifo, Path.mkdir, lambda path: path.symlink_to("gone")):
        path = segment / "manifest.json"
        path.unlink() if not path.is_dir() else path.rmdir()
        put(path)
        with pytest.raises(FormatError, match=f"{segment.name}: .* Delete only this folder"):
            read_history(tmp_path)
        watch(tmp_path, 4)  # the watch goes on


def test_of_a_damaged_watched_day_one_moment_goes_at_most(tmp_path: Path) -> None:
    watch(tmp_path, 1, 2, 3, 4, 5)
    (day,) = complete_days(tmp_path)
    for path, remedy in (
        (next(iter(day.segments.values())) / "bundles.parquet", "Delete only this folder"),
        (next(day.path.glob("bundles-*.parquet")), "Restore a copy of that file"),
    ):
        content = path.read_bytes()
        path.write_bytes(content[:-9])
        with pytest.raises(FormatError, match=remedy):
            read_history(tmp_path)
        path.write_bytes(content)
    shutil.rmtree(next(iter(day.segments.values())))
    assert moments(tmp_path) == sorted(set(range(1, 6)) - {(next(iter(day.segments)) - START) // 1_000})


# What is done to what is kept: a state before, and something that is acknowledged when it returns.


@dataclass(frozen=True)
class Act:
    """A change of what is kept.

    Attributes:
        before: Makes what is there before.
        act: Changes it, and says so when it returns.
        read: Returns what is there, as a list of which some are always there.
        always: What is there before and after, whatever happens.
        then: What is there besides once it was acknowledged.
    """

    before: Callable[[Path], object]
    act: Callable[[Path], object]
    read: Callable[[Path], list[Any]]
    always: list[Any]
    then: list[Any]


def moments(root: Path) -> list[int]:
    files._check.cache_clear()
    return [(s.info.captured_at_ms - START) // 1_000 for day in complete_days(root) for s in read_day(day.path)]


def ingested(root: Path) -> None:
    """Do to the disk what an ingest does once its rows are known."""
    with only_ingest(root):
        clear_staging(root)
        make_ledger(root)
        make_day(root, 1, 2, 3, 4)
        clear_staging(root)
        make_ledger(root)


def add(path: Path, *moments_of: int) -> None:
    workspace = open_workspace(path / "w.duckdb")
    try:
        for moment in moments_of:
            workspace.add(at(moment), f"m{moment}")
    finally:
        workspace.close()


def finished_tasks(root: Path) -> list[int]:
    files._check.cache_clear()
    tables = [pq.read_table(path) for path in result_files(root / "results")["tasks"]]
    found = {task for table in tables for task in table["task"].to_pylist()}
    return [at for at, task in enumerate(replayed()[1]) if task.task in found]


def submit_job(root: Path, name: str) -> None:
    if not (root / "h").exists():
        make_day(root / "h", 1)
    day = day_of(START)
    scenarios = (Scenario(name="a"),)
    submit(
        Job(name=name, history=f"{root}/h", clusters=("tiny",), first_day=day, last_day=day, scenarios=scenarios), root
    )


def submitted(root: Path) -> list[str]:
    jobs = list_jobs(root)
    assert not any(one.status.state == "failed" for one in jobs), "a job is there as a whole or not at all"
    return sorted({one.job.name for one in jobs if one.job is not None})


def ended_job(root: Path) -> None:
    submit_job(root, "one")
    write_status(list_jobs(root)[0].folder, Status(state="done"))


def states(root: Path) -> list[str]:
    """Return the name of a job, and its state where that is not the one before: no process takes it up here."""
    (one,) = list_jobs(root)
    assert one.job is not None
    return [one.job.name, one.status.state][: 1 if one.status.state == "done" else 2]


ACTS = {
    "watch": Act(lambda root: watch(root, 1, 2, 3), lambda root: watch(root, 4), moments, [1, 2, 3], [4]),
    "ingest": Act(lambda root: make_day(root, 1, 2, 3), ingested, moments, [1, 2, 3], [4]),
    "save": Act(
        lambda root: write_folder(TINY, root / "s"),
        lambda root: write_folder(TINY, root / "t"),
        lambda root: [p.name for p in sorted(root.iterdir()) if (p / "manifest.json").exists() and read_snapshot(p)],
        ["s"],
        ["t"],
    ),
    "replay": Act(lambda root: work(root, tasks=1), work, finished_tasks, [0], [1]),
    "submit": Act(
        lambda root: submit_job(root, "one"), lambda root: submit_job(root, "two"), submitted, ["one"], ["two"]
    ),
    "retry": Act(ended_job, lambda root: retry(list_jobs(root)[0]), states, ["one"], ["lost"]),
}


def check(one: Act, root: Path, *, acknowledged: bool, place: object) -> None:
    """See that nothing is lost, and that the same goes through now, and leaves nothing lying about."""
    found = one.read(root)
    assert found[: len(one.always)] == one.always, place
    assert found[len(one.always) :] == one.then or (found == one.always and not acknowledged), place
    one.act(root)
    assert one.read(root) == one.always + one.then, place
    for left in (p for p in root.rglob("*") if p.name not in {LOCK, ".staging"} and p.name.startswith(".")):
        assert not left, (place, "leftovers are cleared")
    for folder in root.glob("cluster=*/day=*"):
        with contextlib.suppress(PlannerError):
            named = set(read_manifest(folder).parts)
            assert {p.name for p in folder.glob("*.parquet")} == named, place


_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "shutil.rmtree"}


def killed_before(step: int, act: Callable[[], object]) -> bool:
    """Run something in a process that is killed, as by `kill -9`, before its n-th change; say whether it was."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        count = 0

        def watching(event: str, arguments: tuple[Any, ...]) -> None:
            nonlocal count
            if event in _CHANGES or (event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITES):
                count += 1
                if count > step:
                    os.kill(os.getpid(), signal.SIGKILL)

        try:
            sys.addaudithook(watching)
            act()
        except BaseException:  # noqa: BLE001 - the parent must not go on twice
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


@pytest.mark.parametrize("name", ACTS)
def test_killed_at_any_step_nothing_acknowledged_is_lost(tmp_path: Path, name: str) -> None:
    one = ACTS[name]
    one.before(tmp_path / "before")
    for step in range(1_000):
        root = shutil.copytree(tmp_path / "before", tmp_path / str(step))
        killed = killed_before(step, lambda root=root: one.act(root))  # type: ignore[misc]
        check(one, root, acknowledged=not killed, place=step)
        shutil.rmtree(root)
        if not killed:
            assert step > 4
            return


@pytest.mark.parametrize("name", ACTS)
@pytest.mark.parametrize("call", ["rename", "replace", "fsync", "mkdir"])
def test_what_the_disk_refuses_is_named_and_loses_nothing(
    tmp_path: Path, name: str, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, real = ACTS[name], getattr(os, call)
    one.before(tmp_path / "before")
    for step in range(1_000):
        count = 0

        def refuses(*given: Any, step: int = step, **named: Any) -> Any:
            nonlocal count
            count += 1
            if count == step + 1:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return real(*given, **named)

        root = shutil.copytree(tmp_path / "before", tmp_path / str(step))
        acknowledged = True
        with monkeypatch.context() as patch:
            patch.setattr(os, call, refuses)
            try:
                one.act(root)
            except PlannerError as error:
                acknowledged = False
                named(error, "Input/output error")
        check(one, root, acknowledged=acknowledged, place=(call, step))
        shutil.rmtree(root)
        if count <= step:
            return


@contextlib.contextmanager
def files_at_most(size: int) -> Iterator[None]:
    """Have the system refuse to let any file grow beyond a size, as it does when a disk or a quota is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("name", ACTS)
def test_a_full_disk_is_named_and_loses_nothing(tmp_path: Path, name: str) -> None:
    one = ACTS[name]
    one.before(tmp_path / "before")
    full = shutil.copytree(tmp_path / "before", tmp_path / "full")
    one.act(full)
    sizes = sorted({p.stat().st_size for p in full.rglob("*") if p.is_file()} | {1})
    refused = 0
    edges = {size + off for size in sizes for off in (-1, 0)} if ALL else set()  # what is written goes through, or not
    for size in sorted({*range(0, sizes[-1] + 1, max(sizes[-1] // (200 if ALL else 25), 1)), *edges}):
        root = shutil.copytree(tmp_path / "before", tmp_path / str(size))
        acknowledged = True
        try:
            with files_at_most(size):
                one.act(root)
        except PlannerError as error:
            acknowledged = False
            named(error, "full", "too large")
        refused += not acknowledged
        check(one, root, acknowledged=acknowledged, place=size)
        shutil.rmtree(root)
    assert refused


# The workspace is written by DuckDB, out of sight of Python.


def saved(workspace: Workspace) -> list[str]:
    return [snapshot_digest(workspace.snapshot(one.digest)) for one in workspace.saved()]


def test_uploads_and_scenarios_survive_a_kill(tmp_path: Path) -> None:
    """A process uploads and saves, and tells each; it is killed at any time, and what it told is there."""
    random = np.random.default_rng(7)
    for turn in range(40 if ALL else 5):
        path = tmp_path / f"{turn}.duckdb"
        read, write = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            try:
                workspace = open_workspace(path)
                for moment in range(1_000):
                    workspace.add(at(moment), "x")
                    workspace.scenarios.save(Scenario(name=f"s{moment}"))
                    os.write(write, b".")
            finally:
                os._exit(1)
        os.close(write)
        told = len(os.read(read, 1))
        time.sleep(random.random() / 5)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        while piece := os.read(read, 1_000):
            told += len(piece)
        os.close(read)
        workspace = open_workspace(path)
        found = set(saved(workspace))
        scenarios = {one.name for one in workspace.scenarios.list()}
        workspace.close()
        assert {snapshot_digest(at(moment)) for moment in range(told)} <= found
        assert {f"s{moment}" for moment in range(told)} <= scenarios
        assert len(found) <= told + 1


def test_a_full_disk_under_a_workspace_is_named_and_loses_nothing(tmp_path: Path) -> None:
    full = tmp_path / "full"
    full.mkdir()
    add(full, 1)
    add(full, *range(2, 6))
    most, refused = max(p.stat().st_size for p in full.iterdir()), 0
    for size in range(0, most + 1, max(most // (100 if ALL else 12), 1)):
        root = tmp_path / str(size)
        root.mkdir()
        add(root, 1)
        told = [1]
        try:
            with files_at_most(size):
                workspace = open_workspace(root / "w.duckdb")
                try:
                    for moment in range(2, 6):
                        workspace.add(at(moment), f"m{moment}")
                        told.append(moment)
                finally:
                    workspace.close()
        except PlannerError as error:
            refused += 1
            named(error, "full", "too large")
        workspace = open_workspace(root / "w.duckdb")
        found = set(saved(workspace))
        workspace.close()
        assert {snapshot_digest(at(moment)) for moment in told} <= found, size
        assert len(found) <= len(told) + 1
        add(root, 9)
    assert refused


def test_no_flipped_bit_of_a_workspace_is_silently_wrong(tmp_path: Path) -> None:
    add(tmp_path, 1, 2)
    path, random = tmp_path / "w.duckdb", np.random.default_rng(5)
    content = path.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    right = sorted(snapshot_digest(at(moment)) for moment in (1, 2))
    for _ in range(400 if ALL else 20):
        flipped = bytearray(content)
        flipped[random.integers(len(content))] ^= 1 << int(random.integers(8))
        path.write_bytes(flipped)
        try:
            workspace = open_workspace(path)
        except PlannerError as error:
            named(error)
            continue
        try:
            assert sorted(saved(workspace)) == right
        except PlannerError as error:
            named(error)
        finally:
            with contextlib.suppress(PlannerError):
                workspace.close()
    path.write_bytes(content)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == digest
