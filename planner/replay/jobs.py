"""Replay jobs: each is a folder, worked on by a process of its own that outlives the server that started it.

A job's folder, `<root>/jobs/<id>/`:

- `spec.json`: what is asked for, as `planner.replay.spec.job_to_json`.
- `status.json`: how far it is, as `Status`; always replaced as a whole.
- `log.txt`: what its process says.
- `cancel`: is there when it shall stop.
- `alive`: locked as long as its process lives, so that a dead one is known whatever became of its process id.
- `results/`: as `planner.replay.results`.

Jobs run one at a time, in the order in which they were submitted.
"""

import contextlib
import fcntl
import os
import re
import secrets
import shlex
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO, Final, Literal, TypeAlias

from pydantic import ConfigDict, TypeAdapter

from planner.cluster.errors import PlannerError, ReplayError
from planner.cluster.files import (
    check_spelling,
    clear_unfinished,
    content_of_file,
    only_writer,
    opened,
    plain_file,
    put_in_place,
    reading,
    write_whole,
    writing_results,
)
from planner.cluster.resources import process_environment
from planner.cluster.units import NS_PER_MS
from planner.formats.encoding import read_sealed, sealed_json
from planner.replay.spec import Job, job_from_json, job_to_json, tasks_of
from planner.workspace.place import default_path

State: TypeAlias = Literal["queued", "starting", "running", "finishing", "done", "failed", "cancelled", "lost"]
"""State of a job. `lost` is never written: it means a job without end and without process."""

ENDED: Final = ("done", "failed", "cancelled", "lost")
"""States in which no process works on a job."""

RESERVE: Final = "reserve"
"""A file that is deleted when the disk is full, so that the status can still say so."""

_RESERVE_BYTES: Final = 65_536
_NAME: Final = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9a-f]{8}")
_HISTORIES: Final = "PLANNER_HISTORIES"
_LOG_BYTES: Final = 20_000
_MOST_SAID: Final = 400
_STOP_WAIT_S: Final = 10.0
_LOCK_WAIT_S: Final = 3.0
_LEFT_S: Final = 3_600.0
"""A folder that is not finished after this was left by a process that was killed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """How far a job is.

    Attributes:
        state: How it is.
        stage: What it does, in words.
        where: Where it runs, in words; empty while nobody knows.
        tasks: How many tasks it has; 0 while nobody knows.
        done: How many have ended.
        failed: How many of these with an error.
        kept: How many had ended before it was retried.
        rate_per_min: Tasks per minute; 0 while nobody knows.
        remaining_s: How long it will take; None while nobody knows.
        submitted_ms: When it was submitted or retried, ms since 1970; jobs run in this order.
        started_ms: When its first task began; 0 before.
        ended_ms: When it ended; 0 before.
        pid: Its process; 0 when it never had one.
        what: What is wrong with it, one sentence; empty when nothing is.
        remedy: What to do about that.
        digest: SHA-256 over all results; empty until they are complete.
    """

    __pydantic_config__ = ConfigDict(allow_inf_nan=False)

    state: State
    stage: str = ""
    where: str = ""
    tasks: int = 0
    done: int = 0
    failed: int = 0
    kept: int = 0
    rate_per_min: float = 0.0
    remaining_s: float | None = None
    submitted_ms: int = 0
    started_ms: int = 0
    ended_ms: int = 0
    pid: int = 0
    what: str = ""
    remedy: str = ""
    digest: str = ""

    @property
    def ended(self) -> bool:
        """Whether no process works on it."""
        return self.state in ENDED


_STATUS: Final = TypeAdapter(Status)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredJob:
    """A job there is.

    Attributes:
        name: Name of its folder, and of the job in links.
        folder: Its folder.
        job: What is asked for; None when that cannot be read.
        status: How far it is.
    """

    name: str
    folder: Path
    job: Job | None
    status: Status


# Folders


def jobs_root() -> Path:
    """Return where jobs live: beside the workspace."""
    return default_path().parent / "jobs"


def histories_root() -> Path:
    """Return where histories live: `PLANNER_HISTORIES`, else beside the workspace.

    Raises:
        ReplayError: No folder can have that name.
    """
    named = os.environ.get(_HISTORIES)
    root = Path(named) if named else default_path().parent / "histories"
    with reading(root, ReplayError, f"Set {_HISTORIES} to another folder."):
        root.exists()
    check_spelling(root)
    return root


def histories() -> dict[str, Path]:
    """Return the histories of this server by name: folders with clusters, and `.` where clusters lie beside them.

    Raises:
        ReplayError: They cannot be read.
    """
    root = histories_root()
    if not root.is_dir():
        return {}
    with reading(root, ReplayError, f"Set {_HISTORIES} to another folder."):
        folders = sorted(path for path in root.iterdir() if path.is_dir() and not path.name.startswith("."))
        places = {".": root, **{path.name: path for path in folders}}
        return {name: place for name, place in places.items() if any(place.glob("cluster=*"))}


def where_shown(folder: Path) -> str:
    """Return whether the dashboard reads a folder of histories, and else how it would, in a sentence.

    Raises:
        ReplayError: The folder of histories cannot be read.
    """
    root, mine = histories_root().absolute(), folder.absolute()
    if root in (mine, mine.parent):
        return f"The dashboard reads {mine}."
    return (
        f"This history is in {mine}. The dashboard reads {root}: start it with {_HISTORIES}={shlex.quote(str(mine))} to"
        " see this one."
    )


def watch_command(name: str) -> str:
    """Return the command that records a running cluster into a history that this server reads."""
    folder = shlex.quote(str(histories_root().absolute() / name))
    return (
        "python -m planner watch --admin-url http://broker-1:8080 --metadata-store zk:zk-1:2181 --shadow"
        f" --history {folder}"
    )


def results_folder(folder: Path) -> Path:
    """Return where the results of a job lie."""
    return folder / "results"


# Status


def write_status(folder: Path, status: Status) -> None:
    """Replace the status of a job. On a full disk the room kept for this is used.

    Raises:
        ReplayError: It cannot be written all the same.
    """
    text = sealed_json(asdict(status))
    with writing_results(folder):
        try:
            write_whole(folder / "status.json", text)
        except OSError:
            (folder / RESERVE).unlink(missing_ok=True)
            write_whole(folder / "status.json", text)


def _written_status(folder: Path) -> Status:
    try:
        return _STATUS.validate_python(read_sealed(content_of_file(folder / "status.json"), "status.json"))
    except (OSError, ValueError, PlannerError):
        return Status(
            state="failed", what="The status of this job cannot be read.", remedy="Retry the job, or delete it."
        )


def has_process(folder: Path) -> bool:
    """Tell whether a process works on a job, or waits to."""
    try:
        with opened(folder / "alive") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def read_status(folder: Path) -> Status:
    """Return how far a job is; one whose process is gone without having said so is `lost`."""
    status = _written_status(folder)
    if status.ended or has_process(folder):
        return status
    status = _written_status(folder)  # it may have ended between the two looks
    if status.ended:
        return status
    free = shutil.disk_usage(folder).free
    full = " The disk is full." if free < _RESERVE_BYTES else ""
    return replace(
        status,
        state="lost",
        remaining_s=None,
        what=f"The process of this job (pid {status.pid}) ended without a message.{full}",
        remedy="The process was killed, the machine was restarted, or memory ran out. Retry: finished tasks are kept.",
    )


def log_tail(folder: Path) -> str:
    """Return the end of what the process of a job said."""
    try:
        with opened(folder / "log.txt") as file:
            file.seek(max(file.seek(0, os.SEEK_END) - _LOG_BYTES, 0))
            return file.read().decode(errors="replace")
    except OSError:
        return ""


# Jobs


def open_job(name: str, root: Path | None = None) -> StoredJob:
    """Return a job by its name, which may come from a link; `jobs_root()` holds all jobs by default.

    Raises:
        ReplayError: There is none of this name.
    """
    folder = (root or jobs_root()) / name
    if not _NAME.fullmatch(name) or not folder.is_dir():
        raise ReplayError(
            "There is no such replay job on this server.",
            where=name[:40],
            remedy="The job was deleted, or the link belongs to another server. Choose another job.",
        )
    return _stored(folder)


def _stored(folder: Path) -> StoredJob:
    job, reason = None, ""
    try:
        with reading("spec.json", ReplayError):
            job = job_from_json(content_of_file(folder / "spec.json"))
    except PlannerError as error:
        reason = f"The request of this job cannot be read: {error.where}: {error.what}"
    status = read_status(folder)
    if reason and status.ended and not status.what:
        status = replace(status, what=reason[:_MOST_SAID], remedy="Delete the job, and submit it again.")
    return StoredJob(name=folder.name, folder=folder, job=job, status=status)


def list_jobs(root: Path | None = None) -> list[StoredJob]:
    """Return all jobs, the one submitted last first."""
    place = root or jobs_root()
    found = [_stored(folder) for folder in place.iterdir() if _NAME.fullmatch(folder.name)] if place.is_dir() else []
    return sorted(found, key=lambda stored: (stored.status.submitted_ms, stored.name), reverse=True)


def submit(job: Job, root: Path | None = None) -> StoredJob:
    """Put a job at the end of the queue, in `jobs_root()` by default, and start its process.

    Raises:
        PlannerError: It cannot be run, or its folder cannot be written.
    """
    count = len(tasks_of(job))
    place = root or jobs_root()
    name = f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{secrets.token_hex(4)}"
    fresh, folder = place / f".{name}", place / name
    _clear_left(place)
    with writing_results(place):
        try:
            fresh.mkdir(parents=True, mode=0o700)
            write_whole(fresh / "spec.json", job_to_json(job))
            (fresh / "alive").touch()
            _queue(fresh, folder, count)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    return _stored(folder)


def _clear_left(place: Path) -> None:
    """Delete folders that were being made or deleted when their process was killed, as far as the disk allows."""
    for folder in place.glob(".*"):
        if _NAME.fullmatch(folder.name.removeprefix(".").removeprefix("deleted-")) and not has_process(folder):
            with contextlib.suppress(OSError):
                if time.time() - folder.stat().st_mtime > _LEFT_S:
                    shutil.rmtree(folder)


def retry(stored: StoredJob) -> None:
    """Put a job that has ended at the end of the queue again; tasks that ended well are kept.

    Raises:
        ReplayError: It still runs, or its folder cannot be written.
    """
    folder = stored.folder
    if not read_status(folder).ended:
        raise ReplayError("This job has not ended yet.", where=stored.name, remedy="Wait, or cancel it first.")
    with writing_results(folder):
        (folder / "cancel").unlink(missing_ok=True)
        _queue(folder, folder, stored.status.tasks)


def _queue(fresh: Path, folder: Path, tasks: int) -> None:
    """Make a folder a queued job and start its process, which holds its lock from the first moment on."""
    (fresh / RESERVE).write_bytes(bytes(_RESERVE_BYTES))
    with (fresh / "alive").open("r+b") as alive:
        _lock(alive, folder)
        clear_unfinished(fresh)
        now_ms = time.time_ns() // NS_PER_MS
        write_status(fresh, Status(state="queued", stage="Waiting in the queue", tasks=tasks, submitted_ms=now_ms))
        if fresh != folder:
            put_in_place(fresh, folder)
        _start(folder, alive)


def _lock(alive: IO[bytes], folder: Path) -> None:
    """Lock a job for its process; a process that has just ended it, or somebody who looks, may still hold the lock."""
    until = time.monotonic() + _LOCK_WAIT_S
    while True:
        try:
            fcntl.flock(alive, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if time.monotonic() > until:
                raise ReplayError(
                    "This job is already running.", where=folder.name, remedy="Wait until it ends."
                ) from error
            time.sleep(0.01)
        else:
            return


def _start(folder: Path, alive: IO[bytes]) -> None:
    command = [sys.executable, "-m", "planner.replay.job_process", str(folder.resolve()), str(alive.fileno())]
    log_file = folder / "log.txt"
    with (plain_file(log_file) if log_file.exists() else log_file).open("ab") as log:
        process = subprocess.Popen(  # noqa: S603 - our own module
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=process_environment(),
            pass_fds=[alive.fileno()],
            start_new_session=True,
        )
    threading.Thread(target=process.wait, daemon=True).start()  # so that no zombie is left


def ask_to_cancel(stored: StoredJob) -> None:
    """Ask a job to stop; it does within seconds.

    Raises:
        ReplayError: Its folder cannot be written.
    """
    with writing_results(stored.folder):
        (stored.folder / "cancel").touch()


def delete(stored: StoredJob) -> None:
    """Delete a job and its results; one that runs is stopped first.

    Raises:
        ReplayError: It does not stop, or cannot be deleted.
    """
    until = time.monotonic() + _STOP_WAIT_S
    if not read_status(stored.folder).ended:
        ask_to_cancel(stored)
    while has_process(stored.folder):
        if time.monotonic() > until:
            raise ReplayError("The job did not stop.", where=stored.name, remedy="Try deleting it again in a minute.")
        time.sleep(0.1)
    aside = stored.folder.with_name(f".deleted-{stored.name}")
    with writing_results(stored.folder), contextlib.suppress(FileNotFoundError):
        stored.folder.rename(aside)
        shutil.rmtree(aside)


# The queue


def ahead(folder: Path) -> int:
    """Return how many jobs were submitted before this one and have not ended."""
    mine = (_written_status(folder).submitted_ms, folder.name)
    number = 0
    for other in folder.parent.iterdir():
        if other != folder and _NAME.fullmatch(other.name):
            status = _written_status(other)
            if (status.submitted_ms, other.name) < mine and not status.ended and has_process(other):
                number += 1
    return number


def turn(folder: Path) -> contextlib.AbstractContextManager[bool]:
    """Try to take the turn of a job; gives whether it has it, and keeps it until the end."""
    return only_writer(folder.parent / "turn.lock", wait=False)
