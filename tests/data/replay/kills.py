"""Kills workers, executors, drivers, jobs, masters and servers of real Spark in the middle of jobs, in turn, seeded.

Usage: python -m tests.data.replay.kills [--seed 1] [--kills 20]

One row for each kill: what was killed at which task, whether the job went on by itself or had to be retried, and
whether its digest is that of the undisturbed run. The exit status is 1 if one is not.
"""

import argparse
import os
import signal
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from planner.replay.jobs import StoredJob, read_status, retry, submit
from planner.replay.kernel import combined_digest
from planner.replay.runners import run_local
from planner.replay.spec import tasks_of
from tests.data.replay.replays import OFTEN, make_history, make_job
from tests.data.replay.spark_servers import ConnectServer, Standalone, below, standalone

if TYPE_CHECKING:
    from collections.abc import Callable

_VALUES = tuple(range(1, 8))
_PATIENCE_S = 900.0
_MOST_RETRIES = 4


class Killer:
    """Knows what runs, and ends one of it."""

    def __init__(self, cluster: Standalone, server: ConnectServer, random: Random) -> None:
        self.cluster, self.server, self.random = cluster, server, random

    def any_below(self, pids: list[int], mark: str) -> None:
        """Kill one of the processes below some with a mark, as soon as there is one."""
        until = time.monotonic() + _PATIENCE_S
        while not (found := [child for pid in pids for child in below(pid, mark)]):
            assert time.monotonic() < until, f"no {mark}"
            time.sleep(0.2)
        with suppress(ProcessLookupError):
            os.kill(self.random.choice(found), signal.SIGKILL)

    def workers(self) -> list[int]:
        return [worker.process.pid for worker in self.cluster.workers if worker.process.poll() is None]

    def python_worker(self, _: StoredJob) -> None:
        self.any_below(self.workers(), "pyspark.daemon")

    def executor(self, _: StoredJob) -> None:
        self.any_below(self.workers(), "CoarseGrainedExecutorBackend")

    def worker(self, _: StoredJob) -> None:
        left = [worker for worker in self.cluster.workers if worker.process.poll() is None]
        self.random.choice(left).kill()
        self.cluster.add_worker()

    def driver(self, stored: StoredJob) -> None:
        self.any_below([read_status(stored.folder).pid], "java")

    def job(self, stored: StoredJob) -> None:
        os.kill(read_status(stored.folder).pid, signal.SIGKILL)

    def master(self, _: StoredJob) -> None:
        self.cluster.master.kill()
        time.sleep(self.random.uniform(0, 5))
        self.cluster.start_master()

    def worker_of_server(self, _: StoredJob) -> None:
        self.any_below([self.server.server.process.pid], "pyspark.daemon")

    def server_itself(self, _: StoredJob) -> None:
        self.server.kill()
        time.sleep(self.random.uniform(0, 5))
        self.server.start()


def tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def until(stored: StoredJob, done: int) -> None:
    """Wait until so many tasks of a job are done, or it has ended."""
    end = time.monotonic() + _PATIENCE_S
    while not (status := read_status(stored.folder)).ended and status.done < done:
        assert time.monotonic() < end, status
        time.sleep(0.1)


def main() -> int:
    """Kill, and tell what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kills", type=int, default=20)
    given = parser.parse_args()
    random, wrong = Random(given.seed), 0  # noqa: S311 - no secret
    os.environ["PLANNER_SPARK_WAIT_S"] = "30"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        job = make_job(make_history(folder / "history"), base=OFTEN, values=_VALUES, runner="spark")
        right = combined_digest([one.digest for one in run_local(tasks_of(job), lambda: False)])
        server = ConnectServer(folder / "server")
        try:
            with standalone(folder / "cluster", 2) as cluster:
                killer = Killer(cluster, server, random)
                here: list[Callable[[StoredJob], None]] = [
                    *(killer.python_worker, killer.executor, killer.driver, killer.master, killer.server_itself),
                    *(killer.worker, killer.worker_of_server, killer.job),
                ]
                tell("kill  what              at task  ended            retries  seconds  digest")
                for number in range(given.kills):
                    kill = here[number % len(here)]
                    connect = kill in (killer.server_itself, killer.worker_of_server)
                    os.environ.pop("SPARK_REMOTE", None)
                    os.environ["PLANNER_SPARK_MASTER"] = cluster.address
                    if connect:
                        os.environ["SPARK_REMOTE"] = server.address
                    begin_s = time.monotonic()
                    stored = submit(job, folder / "jobs")
                    at = random.randint(1, len(tasks_of(job)) * 2 // 3)
                    until(stored, at)
                    kill(stored)
                    until(stored, 1 << 30)
                    status = first = read_status(stored.folder)
                    retries = 0
                    while status.state != "done" and retries < _MOST_RETRIES:
                        retries += 1
                        retry(stored)
                        until(stored, 1 << 30)
                        status = read_status(stored.folder)
                    same = status.digest == right
                    wrong += not same
                    tell(
                        f"{number + 1:4d}  {kill.__name__:16} {at:8d}  {first.state:15} {retries:8d}"
                        f" {time.monotonic() - begin_s:8.0f}  {'the same' if same else 'ANOTHER ONE'}  {first.what}"
                    )
        finally:
            server.kill()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
