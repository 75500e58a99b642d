"""The three ways to run the tasks of a replay: this process, a pool of processes, Spark. All give the same results.

Results come as they are done, in any order. What goes between processes is Arrow: one row for each task and day.
"""

import json
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from os import cpu_count
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa

from planner.model.errors import ReplayError
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

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["ROWS", "Cancelled", "result_rows", "run_local", "run_processes", "run_spark", "tasks_of_rows"]

Cancelled: TypeAlias = Callable[[], bool]
"""Is asked now and then whether to stop."""

ROWS: Final = pa.schema(
    [
        ("task", pa.string()),
        ("task_digest", pa.string()),
        ("seconds", pa.float64()),
        ("error", pa.string()),
        ("day", pa.string()),
        ("cycles", pa.int64()),
        ("measures", pa.string()),
        ("digest", pa.string()),
        ("notes", pa.string()),
        ("intervals", pa.binary()),
        ("moves", pa.binary()),
    ]
)
"""How a result travels: one row for each day, one without a day for a task that has none."""

_SPARK_SCHEMA = (
    "task string, task_digest string, seconds double, error string, day string, cycles long, measures string,"
    " digest string, notes string, intervals binary, moves binary"
)


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


def _work(text: str) -> bytes:
    """Run one task in a process of the pool."""
    rows = result_rows(replay_one(task_from_json(text)))
    return _packed(pa.Table.from_batches([rows]))


def run_processes(tasks: Sequence[ReplayTask], workers: int, cancelled: Cancelled) -> Iterator[TaskResult]:
    """Run tasks in a pool of processes, a few more in hand than there are workers.

    Raises:
        ReplayError: A process of the pool was killed.
    """
    count = min(workers or cpu_count() or 1, max(len(tasks), 1))
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(count, mp_context=context) as pool:
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


def _on_spark(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Run the tasks of a partition in a Spark worker."""
    for batch in batches:
        for text in batch.column("task").to_pylist():
            yield result_rows(replay_one(task_from_json(text)))


def run_spark(
    tasks: Sequence[ReplayTask], spark: "SparkSession", cancelled: Cancelled, parallel: int
) -> Iterator[TaskResult]:
    """Run tasks on Spark.

    Args:
        tasks: What to run; each must see the history under the same path as here.
        spark: A session.
        cancelled: Is asked between results.
        parallel: Tasks that Spark can run at once; their number is a few times that, so that none waits long.

    Raises:
        ReplayError: Spark fails.
    """
    partitions = min(len(tasks), max(parallel, 1) * 8)
    texts = [(place, task_to_json(task)) for place, task in enumerate(tasks)]
    try:
        frame = spark.createDataFrame(texts, "place long, task string")
        spread = frame.repartitionByRange(partitions, "place") if partitions > 1 else frame.repartition(1)
        answers = spread.select("task").mapInArrow(_on_spark, _SPARK_SCHEMA)
        rows: list[dict[str, Any]] = []
        for row in answers.toLocalIterator(prefetchPartitions=True):
            one = row.asDict()
            if rows and one["task"] != rows[0]["task"]:
                yield from tasks_of_rows(rows)
                rows = []
            rows.append({k: bytes(v) if isinstance(v, bytearray) else v for k, v in one.items()})
            if cancelled():
                return
        yield from tasks_of_rows(rows)
    except ReplayError:
        raise
    except Exception as error:
        first = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise ReplayError(f"Spark failed: {first[:300]}.", remedy="See the job's log, then retry.") from error
