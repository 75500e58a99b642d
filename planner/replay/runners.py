"""The three ways to run the tasks of a replay: this process, a pool of processes, Spark. All give the same results.

Results come as they are done, in any order. What goes between processes is a task as text, and its result as bytes.
"""

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import Final

import pyarrow as pa
from msgspec import msgpack

from planner.replay.kernel import ReplayTask, TaskResult, replay_one, task_from_json, task_result, task_to_json
from planner.spark import runners
from planner.spark.runners import Cancelled, Work
from planner.spark.session import OpenSession

_SMALL_BYTES: Final = 16 << 10


def _packed(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd" if table.nbytes > _SMALL_BYTES else None)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _unpacked(_: type, data: bytes) -> pa.Table:
    return pa.ipc.open_stream(data).read_all()


def pack_result(result: TaskResult) -> bytes:
    """Return a result as bytes, in which it goes from process to process."""
    return msgpack.encode(result, enc_hook=_packed)


def unpack_result(data: bytes) -> TaskResult:
    """Return the result that `pack_result` made bytes of."""
    return msgpack.decode(data, type=TaskResult, dec_hook=_unpacked)


def run_local(tasks: Sequence[ReplayTask], cancelled: Cancelled) -> Iterator[TaskResult]:
    """Run tasks one after the other in this process."""
    for task in tasks:
        if cancelled():
            return
        yield replay_one(task)


def _work(text: str) -> bytes:
    """Run one task in a process of the pool."""
    return pack_result(replay_one(task_from_json(text)))


def _failed(task: ReplayTask, reason: str) -> TaskResult:
    return task_result(task, (), 0.0, reason)


REPLAYS: Final[Work[ReplayTask, TaskResult]] = Work(
    module="planner.replay.runners",
    write=task_to_json,
    run=_work,
    read=unpack_result,
    failed=_failed,
    seconds=attrgetter("seconds"),
    folder=attrgetter("history"),
)
"""Tasks of replays."""


def run_processes(tasks: Sequence[ReplayTask], workers: int, cancelled: Cancelled) -> Iterator[TaskResult]:
    """Run tasks in a pool of processes; see `planner.spark.runners.run_processes`."""
    return runners.run_processes(REPLAYS, tasks, workers, cancelled)


def run_spark(
    tasks: Sequence[ReplayTask],
    session: OpenSession,
    cancelled: Cancelled,
    report: Callable[[str], None] = lambda _: None,
) -> Iterator[TaskResult]:
    """Run tasks on Spark; see `planner.spark.runners.run_spark`.

    Raises:
        ReplayError: Spark is gone, or fails whatever it is given.
    """
    return runners.run_spark(REPLAYS, tasks, session, cancelled, report)
