"""What benchmarks measure a piece of work by: the clock, the processor time of all processes, and a worker's memory.

Processor time is that of this process, the JVM and all Python workers; other programs on the machine disturb it less
than the clock. Needs `/proc` (Linux).
"""

import os
import subprocess
import tarfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

__all__ = ["MB", "ROOT", "Cost", "earlier_version", "measured"]

ROOT = Path(__file__).resolve().parent.parent

MB = 1e6

_TICKS = os.sysconf("SC_CLK_TCK")
_EVERY_S = 0.2
_WORKERS = (b"pyspark.daemon", b"multiprocessing.spawn")


def _descendants() -> dict[int, list[str]]:
    """Return the fields of `/proc/<pid>/stat`, after the name, of this process and all below it."""
    every: dict[int, list[str]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            every[int(path.parent.name)] = path.read_text().rpartition(")")[2].split()
        except OSError:  # it ended meanwhile
            continue
    found = {os.getpid()}
    while more := {pid for pid, fields in every.items() if int(fields[1]) in found} - found:
        found |= more
    return {pid: every[pid] for pid in found if pid in every}


def _processor_seconds() -> float:
    """Return the processor time of this process, what is below it, and what was and has ended."""
    return sum(sum(map(int, fields[11:15])) for fields in _descendants().values()) / _TICKS


def _worker_mb() -> float:
    """Return the memory of the largest Python worker, of Spark or of a pool."""
    sizes = [0.0]
    for pid in _descendants():
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
            if any(mark in command for mark in _WORKERS):
                status = Path(f"/proc/{pid}/status").read_text().splitlines()
                sizes += [int(line.split()[1]) * 1024 / MB for line in status if line.startswith("VmRSS")]
        except OSError:
            continue
    return max(sizes)


def earlier_version(revision: str, folder: Path) -> Path:
    """Unpack the planner of an earlier revision in a folder, for `PYTHONPATH`; returns the folder."""
    packed = subprocess.run(["git", "archive", revision, "planner"], check=True, stdout=subprocess.PIPE, cwd=ROOT)
    with tarfile.open(fileobj=BytesIO(packed.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder


@dataclass
class Cost:
    """What a piece of work took."""

    seconds: float = 0.0
    processor_seconds: float = 0.0
    worker_mb: float = 0.0


@contextmanager
def measured(*, memory: bool = False) -> Iterator[Cost]:
    """Measure what runs inside; memory takes a look at all processes five times a second."""
    cost = Cost()
    done = threading.Event()

    def watch() -> None:
        while not done.wait(_EVERY_S):
            cost.worker_mb = max(cost.worker_mb, _worker_mb())

    watcher = threading.Thread(target=watch)
    if memory:
        watcher.start()
    start, before = time.perf_counter(), _processor_seconds()
    try:
        yield cost
    finally:
        cost.seconds, cost.processor_seconds = time.perf_counter() - start, _processor_seconds() - before
        done.set()
        if memory:
            watcher.join()
