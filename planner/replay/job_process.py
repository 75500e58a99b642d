"""The process of a replay job: `python -m planner.replay.job_process FOLDER [LOCK]`.

It waits for its turn, runs what `spec.json` asks for, and writes how far it is; it ends when the job has ended.
"""

import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any, Final

from planner.cluster.errors import PlannerError, ReplayError
from planner.cluster.files import content_of_file, writing_results
from planner.cluster.units import NS_PER_MS
from planner.replay.jobs import (
    RESERVE,
    ahead,
    read_status,
    results_folder,
    turn,
    write_status,
)
from planner.replay.kernel import ReplayTask, TaskResult
from planner.replay.results import ResultSummary, ResultWriter
from planner.replay.runners import REPLAYS, run_local, run_processes, run_spark
from planner.replay.spec import Job, job_from_json, tasks_of
from planner.spark.runners import cores
from planner.spark.session import check_workers, open_session

_LOOK_S: Final = 0.25
_GRACE_S: Final = 3.0
_WRITE_S: Final = 0.5
_FLUSH_S: Final = 2.0
_FAILED: Final = 1


class _StoppedError(BaseException):
    """The process was told to end; nothing that catches errors may catch this."""


class _Worker:
    """Works on one job."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.status = replace(read_status(folder), state="queued", pid=os.getpid(), what="", remedy="", digest="")
        self.writing = threading.Lock()
        self.written_s = 0.0
        self.over = threading.Event()
        self.cancelled = threading.Event()
        self.signalled = ""
        self.on_cancel: Callable[[], None] = lambda: None
        self.in_flight: Callable[[], int] = lambda: 0
        self.begin_s = self.replaying_s = 0.0

    # What the job says

    def say(self, line: str) -> None:
        """Add a line to the log."""
        with suppress(OSError):  # a full disk takes no log either
            sys.stdout.write(f"{time.strftime('%Y-%m-%d %H:%M:%S', time.gmtime())} {line}\n")
            sys.stdout.flush()

    def report(self, *, now: bool = True, **changes: Any) -> None:
        """Change the status, and write it if that is due."""
        with self.writing:
            if self.status.ended:
                return
            self.status = replace(self.status, **changes)
            if now or time.monotonic() - self.written_s >= _WRITE_S:
                self.written_s = time.monotonic()
                write_status(self.folder, self.status)

    def end(self, state: str, what: str = "", remedy: str = "", **changes: Any) -> None:
        """Write how the job ended; only the first time counts. What a signal stopped has failed."""
        if state == "cancelled" and self.signalled:
            state, remedy = "failed", "Retry: finished tasks are kept."
            what = f"A signal ended the process ({self.signalled})."
        stage = {"done": "Done", "cancelled": "Cancelled", "failed": "Failed"}[state]
        self.say(" ".join(filter(None, (f"{stage}.", what, remedy))))
        with suppress(ReplayError):  # the disk does not even take this: the job is found to be lost
            self.report(
                state=state,
                stage=stage,
                what=what,
                remedy=remedy,
                remaining_s=None,
                ended_ms=time.time_ns() // NS_PER_MS,
                **changes,
            )

    # Cancelling

    def stop(self, number: int, _: FrameType | None) -> None:
        """End for a signal: at once, or at the next task where somebody else's code has taken the exception away."""
        if not self.cancelled.is_set():
            self.signalled = signal.Signals(number).name
            self.cancelled.set()
        raise _StoppedError

    def watch(self) -> None:
        """Wait for the wish to cancel; then stop what runs, and end the process when that takes too long."""
        while not self.over.wait(_LOOK_S):
            if not self.cancelled.is_set() and (self.folder / "cancel").exists():
                self.cancelled.set()
                self.say("Cancellation was requested.")
                with suppress(ReplayError):
                    self.report(stage="Stopping")
                threading.Thread(target=self.on_cancel, daemon=True).start()
                if not self.over.wait(_GRACE_S):
                    self.end("cancelled", "This job was cancelled.", "Retry continues with the remaining tasks.")
                    self.die()

    def die(self) -> None:
        """End this process and those that it started, at once."""
        if os.getpgrp() == os.getpid():
            os.killpg(os.getpgrp(), signal.SIGKILL)
        os._exit(_FAILED)

    # Working

    def run(self) -> None:
        """Work on the job from its place in the queue to its end."""
        self.report()
        while not self.cancelled.is_set():
            if number := ahead(self.folder):
                stage = f"Waiting for {number} other job{'s' if number > 1 else ''}"
                if stage != self.status.stage:
                    self.report(stage=stage)
            else:
                with turn(self.folder) as mine:
                    if mine and not self.cancelled.is_set():
                        self.work()
                        return
            time.sleep(_LOOK_S)
        self.end("cancelled", "This job was cancelled before it started.", "Retry it.")

    def work(self) -> None:
        """Run the tasks that are left and put the results together."""
        (self.folder / RESERVE).touch()
        job = job_from_json(content_of_file(self.folder / "spec.json"))
        self.report(state="starting", stage="Reading the days of the history")
        tasks = tasks_of(job)
        writer = ResultWriter(results_folder(self.folder), tasks, every_s=_FLUSH_S)
        left = [task for task in tasks if task.task not in writer.finished]
        kept = len(tasks) - len(left)
        self.report(tasks=len(tasks), kept=kept, done=kept, failed=0, started_ms=time.time_ns() // NS_PER_MS)
        self.say(f"{len(tasks):,} tasks, {kept:,} of them finished before.")
        if writer.damaged:
            self.say(f"{writer.damaged:,} parts of the results were damaged. Their tasks run again.")
        self.begin_s = time.monotonic()
        try:
            self._replay(job, left, writer)
        except ReplayError:
            if not self.cancelled.is_set():  # what is cancelled fails as a rule
                raise
        self.report(state="finishing", stage="Collecting the results")
        self._conclude(writer.finish(time.monotonic() - self.begin_s))

    def _replay(self, job: Job, tasks: Sequence[ReplayTask], writer: ResultWriter) -> None:
        failed = 0
        try:
            with _runner(job, tasks, self) as results:
                self.replaying_s = time.monotonic()
                self.report(state="running", stage="Replaying")
                for result in results:
                    failed += bool(result.error)
                    self._one_more(writer, result, failed)
                writer.flush()
        except ReplayError:
            writer.flush()
            raise

    def _one_more(self, writer: ResultWriter, result: TaskResult, failed: int) -> None:
        writer.add(result)
        if result.error:
            self.say(f"{result.task}: {result.error}")
        self.progress(self.status.done + 1, failed)

    def waits_for(self, what: str) -> None:
        """Say what the job waits for; "" when it goes on."""
        self.say(f"{what}." if what else "Continuing.")
        self.report(stage=what or "Replaying", remaining_s=None)

    def progress(self, done: int, failed: int) -> None:
        """Say how many tasks have ended, how fast, and how long the others will take."""
        mine = done - self.status.kept
        taken = time.monotonic() - self.replaying_s
        rate = mine / taken if taken > 0 else 0.0
        left = self.status.tasks - done
        self.report(
            now=not left,
            done=done,
            failed=failed,
            rate_per_min=rate * 60,
            remaining_s=left / rate if rate > 0 else None,
        )

    def _conclude(self, summary: ResultSummary) -> None:
        error = next(iter(summary.errors.values()), "")
        if not summary.complete:
            self.end("cancelled", "This job was cancelled.", "Retry continues with the remaining tasks.")
        elif summary.failed == summary.tasks:
            self.end("failed", f"Every task failed. The first error: {error}", digest=summary.digest)
        elif summary.failed:
            what = f"{summary.failed:,} of {summary.tasks:,} tasks failed. The first error: {error}"
            self.end("done", what, "Retry runs them again. The log lists them.", digest=summary.digest)
        else:
            self.end("done", digest=summary.digest)


@contextmanager
def _runner(job: Job, tasks: Sequence[ReplayTask], worker: _Worker) -> Iterator[Iterator[TaskResult]]:
    """Give the results of tasks, from where the job wants them to run."""
    stop = worker.cancelled.is_set
    if not tasks:
        yield iter(())
    elif job.runner == "local":
        worker.report(where="one process of this machine")
        yield run_local(tasks, stop)
    elif job.runner == "processes":
        count = min(job.workers or cores(), len(tasks))
        worker.report(where=f"{count} process{'es' if count > 1 else ''} of this machine")
        yield run_processes(tasks, count, stop)
    else:
        worker.report(stage="Starting Spark")
        with open_session(f"planner replay {worker.folder.name}", worker.folder, job.workers) as session:
            worker.on_cancel = session.cancel
            where = f"{session.place.in_words}, {session.parallel} tasks at once"
            worker.say(f"Running on {where}.")
            worker.report(where=where)
            if session.place.kind != "local":
                worker.report(stage="Checking the Spark workers")
                check_workers(session, REPLAYS.module, [job.history])
            yield run_spark(tasks, session, stop, worker.waits_for)


def main(arguments: Sequence[str] | None = None) -> int:
    """Work on the job in a folder; the second argument is the open file whose lock says that this process lives.

    Returns:
        0 when the job ended well or was cancelled, else 1.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    if len(given) > 1:
        os.set_inheritable(int(given[1]), False)
    worker = _Worker(Path(given[0]))
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, worker.stop)
    threading.Thread(target=worker.watch, daemon=True).start()
    try:
        worker.run()
    except (Exception, _StoppedError) as error:  # noqa: BLE001 - whatever fails, the status says so
        _failed(worker, error)
    worker.over.set()
    return 0 if worker.status.state in {"done", "cancelled"} else _FAILED


def _failed(worker: _Worker, error: BaseException) -> None:
    """Write why a job failed."""
    if worker.cancelled.is_set():
        worker.end("cancelled", "This job was cancelled.", "Retry continues with the remaining tasks.")
        return
    if isinstance(error, OSError):
        try:
            with writing_results(worker.folder):
                raise error
        except PlannerError as told:
            error = told
    with suppress(OSError):
        traceback.print_exception(error)
    match error:
        case PlannerError():
            worker.end("failed", f"{error.where}: {error.what}" if error.where else error.what, error.remedy)
        case MemoryError():
            worker.end("failed", "The job ran out of memory.", "Choose fewer workers, and retry.")
        case _:
            what = f"The job failed: {type(error).__name__}: {str(error)[:200]}."
            worker.end("failed", what, "Check the log, retry, and report a bug if it fails again.")


if __name__ == "__main__":
    sys.exit(main())
