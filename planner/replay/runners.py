"""The three ways to run the tasks of a replay: this process, a pool of processes, Spark. All give the same results.

Results come as they are done, in any order. What goes between processes is Arrow: one row for each task and day.
"""

import json
import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa

from planner.cluster.errors import ReplayError
from planner.replay.kernel import (
    INTERVALS,
    MOVES,
    DayResult,
    ReplayTask,
    TaskResult,
    replay_one,
    task_from_json,
    task_to_json,
)
from planner.spark.schema import arrow_schema
from planner.spark.session import first_line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


Cancelled: TypeAlias = Callable[[], bool]
"""Is asked now and then whether to stop."""

_COLUMNS: Final = (
    "task string, task_digest string, seconds double, error string, day string, cycles bigint, measures string,"
    " digest string, notes string, intervals binary, moves binary"
)

ROWS: Final = arrow_schema(_COLUMNS)
"""How a result travels: one row for each day, one without a day for a task that has none."""

_WAVES: Final = 3


def _packed(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _unpacked(data: bytes, schema: pa.Schema) -> pa.Table:
    return pa.ipc.open_stream(data).read_all().cast(schema)


def result_rows(result: TaskResult) -> pa.RecordBatch:
    """Return a result as rows of `ROWS`."""
    common = {
        "task": result.task,
        "task_digest": result.digest,
        "seconds": result.seconds,
        "error": result.error,
    }
    rows: list[dict[str, Any]] = [
        {
            **common,
            "day": day.day,
            "cycles": day.cycles,
            "measures": json.dumps(day.measures),
            "digest": day.digest,
            "notes": json.dumps(day.notes),
            "intervals": _packed(day.intervals),
            "moves": _packed(day.moves),
        }
        for day in result.days
    ]
    nothing = {"day": "", "cycles": 0, "measures": "{}", "digest": "", "notes": "[]", "intervals": b"", "moves": b""}
    return pa.RecordBatch.from_pylist(rows or [{**common, **nothing}], ROWS)


def tasks_of_rows(rows: Sequence[dict[str, Any]]) -> Iterator[TaskResult]:
    """Return the results that rows hold; those of one task follow one another."""
    by_task: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        by_task.setdefault(row["task"], []).append(row)
    for task, mine in by_task.items():
        days = tuple(
            DayResult(
                task,
                row["day"],
                row["cycles"],
                json.loads(row["measures"]),
                _unpacked(row["intervals"], INTERVALS),
                _unpacked(row["moves"], MOVES),
                row["digest"],
                tuple(json.loads(row["notes"])),
            )
            for row in mine
            if row["day"]
        )
        yield TaskResult(task, days, mine[0]["task_digest"], mine[0]["seconds"], mine[0]["error"])


def run_local(tasks: Sequence[ReplayTask], cancelled: Cancelled) -> Iterator[TaskResult]:
    """Run tasks one after the other in this process."""
    for task in tasks:
        if cancelled():
            return
        yield replay_one(task)


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _end_with_parent() -> None:
    """End this process when the one that started it is gone, even if it was killed."""
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _work(text: str) -> bytes:
    """Run one task in a process of the pool."""
    rows = result_rows(replay_one(task_from_json(text)))
    return _packed(pa.Table.from_batches([rows]))


def run_processes(tasks: Sequence[ReplayTask], workers: int, cancelled: Cancelled) -> Iterator[TaskResult]:
    """Run tasks in a pool of processes, a few more in hand than there are workers.

    Raises:
        ReplayError: A process of the pool was killed.
    """
    count = min(workers or cores(), max(len(tasks), 1))
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(count, mp_context=context, initializer=_end_with_parent) as pool:
        waiting = iter(tasks)
        running: set[Future[bytes]] = set()
        try:
            while True:
                while len(running) < 2 * count and not cancelled():
                    task = next(waiting, None)
                    if task is None:
                        break
                    running.add(pool.submit(_work, task_to_json(task)))
                if not running or cancelled():
                    break
                done, running = wait(running, timeout=1, return_when=FIRST_COMPLETED)
                for future in done:
                    yield from tasks_of_rows(_unpacked(future.result(), ROWS).to_pylist())
        except BrokenProcessPool as error:
            raise ReplayError(
                "A worker process was killed, perhaps for want of memory.",
                remedy="Choose fewer workers, or fewer days for a task, and retry.",
            ) from error
        finally:
            for future in running:
                future.cancel()
            if cancelled():
                for process in list((pool._processes or {}).values()):  # noqa: SLF001 - nothing else stops a task
                    process.terminate()


def _on_spark(texts: Sequence[str]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return what a Spark worker does with the numbers of tasks that it is given."""

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column("id").to_pylist():
                yield result_rows(replay_one(task_from_json(texts[number])))

    return work


def run_spark(
    tasks: Sequence[ReplayTask], spark: "SparkSession", cancelled: Cancelled, parallel: int | Callable[[], int]
) -> Iterator[TaskResult]:
    """Run tasks on Spark.

    Tasks go out in waves, one Spark job each and a partition for every task. Three are under way at any time, so that
    the last tasks of one run beside the first of the next and no core waits; what a worker lost, Spark runs again.

    Args:
        tasks: What to run; each must see the history under the same path as here.
        spark: A session.
        cancelled: Is asked between waves.
        parallel: Tasks that Spark can run at once; a function is asked before each wave, as workers come and go.

    Raises:
        ReplayError: Spark fails.
    """

    def wave(mine: Sequence[ReplayTask]) -> list[dict[str, Any]]:
        texts = [task_to_json(task) for task in mine]
        numbers = spark.range(0, len(texts), 1, len(texts))
        answers = numbers.mapInArrow(_on_spark(texts), _COLUMNS).toArrow()
        rows: list[dict[str, Any]] = answers.cast(ROWS).to_pylist()
        return rows

    begun = 0
    running: set[Future[list[dict[str, Any]]]] = set()
    with ThreadPoolExecutor(_WAVES) as pool:
        try:
            while not cancelled():
                while begun < len(tasks) and len(running) < _WAVES:
                    end = begun + max(parallel() if callable(parallel) else parallel, 1)
                    running.add(pool.submit(wave, tasks[begun:end]))
                    begun = end
                if not running:
                    break
                done, running = wait(running, timeout=1, return_when=FIRST_COMPLETED)
                for future in done:
                    yield from tasks_of_rows(future.result())
        except ReplayError:
            raise
        except Exception as error:
            raise ReplayError(f"Spark failed: {first_line(error)}.", remedy="See the job's log, then retry.") from error
        finally:
            for future in running:
                future.cancel()
