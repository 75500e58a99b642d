"""The three ways to run the tasks of a replay: this process, a pool of processes, Spark. All give the same results.

Results come as they are done, in any order. What goes between processes is a task as text, and its result as bytes.
"""

import multiprocessing
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Final, TypeAlias

import pyarrow as pa
from msgspec import msgpack

from planner.cluster.errors import ReplayError
from planner.replay.kernel import ReplayTask, TaskResult, replay_one, task_from_json, task_result, task_to_json
from planner.spark.session import Guard, OpenSession, check_workers

Cancelled: TypeAlias = Callable[[], bool]
"""Is asked now and then whether to stop."""

_SMALL_BYTES: Final = 16 << 10
_WAVES: Final = 3
_WAVE_S: Final = 8.0
_MOST_IN_PARTITION: Final = 500
_WAVE_BYTES: Final = 256 << 20  # a quarter of what Spark's driver takes of a job (spark.driver.maxResultSize)
_LAST_S: Final = 5.0

_KILLED: Final = (
    "The worker was killed each time, possibly because it ran out of memory. Give workers more memory, or "
    "tasks fewer days."
)


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
    return pack_result(replay_one(task_from_json(text)))


def run_processes(tasks: Sequence[ReplayTask], workers: int, cancelled: Cancelled) -> Iterator[TaskResult]:
    """Run tasks in a pool of processes, a few more in hand than there are workers.

    When a process is killed, the tasks that were in hand run again, one at a time; one that kills its process then as
    well is a task that failed.
    """
    count = min(workers or cores(), max(len(tasks), 1))
    waiting, suspects = deque(tasks), deque[ReplayTask]()
    while (waiting or suspects) and not cancelled():
        alone = bool(suspects)
        given = suspects if alone else waiting
        running: dict[Future[bytes], ReplayTask] = {}
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(1 if alone else count, mp_context=context, initializer=_end_with_parent) as pool:
            try:
                while (given or running) and not cancelled():
                    while given and len(running) < (1 if alone else 2 * count):
                        running[pool.submit(_work, task_to_json(given[0]))] = given[0]
                        given.popleft()  # a pool that is broken by now has not taken it
                    done, _ = wait(running, timeout=1, return_when=FIRST_COMPLETED)
                    for future in done:
                        result = unpack_result(future.result())
                        del running[future]
                        yield result
            except BrokenProcessPool:
                if alone:
                    yield from (task_result(task, (), 0.0, _KILLED) for task in running.values())
                else:
                    suspects.extend(running.values())
            finally:
                if cancelled():
                    for process in list((pool._processes or {}).values()):  # noqa: SLF001 - nothing else stops a task
                        process.terminate()
                else:
                    for future in running:
                        future.cancel()


def _on_spark(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Run the tasks that a Spark worker is given as text."""
    for batch in batches:
        for text in batch.column("task").to_pylist():
            yield pa.RecordBatch.from_pydict({"result": [pack_result(replay_one(task_from_json(text)))]})


def run_spark(
    tasks: Sequence[ReplayTask],
    session: OpenSession,
    cancelled: Cancelled,
    report: Callable[[str], None] = lambda _: None,
) -> Iterator[TaskResult]:
    """Run tasks on Spark.

    Tasks go out in waves, one Spark job each, with as many partitions as Spark runs at once and so many tasks in each
    that a wave takes seconds. Three are under way at any time, so that the last tasks of one run beside the first of
    the next and no core waits. What a worker lost, Spark runs again, four times in all; a wave that fails all the same
    is cut in halves, down to the task that fails.

    Args:
        tasks: What to run; each must see the history under the same path as here.
        session: Where to run them.
        cancelled: Is asked between waves.
        report: Is told when Spark does not work as it should, and "" when it does again.

    Raises:
        ReplayError: Spark is gone, or fails whatever it is given.
    """
    waves = _Waves(session, tasks)
    guard = Guard(session, report)
    pool = ThreadPoolExecutor(_WAVES)
    running: dict[Future[list[bytes]], Sequence[ReplayTask]] = {}
    try:
        while not cancelled():
            while len(running) < _WAVES and (wave := waves.next()):
                running[pool.submit(waves.run, wave)] = wave
            if not running:
                return
            done, _ = wait(running, timeout=1, return_when=FIRST_COMPLETED)
            guard.look()
            for future in done:
                wave, error = running.pop(future), future.exception()
                if error is None:
                    packed = future.result()
                    results = list(map(unpack_result, packed))
                    waves.took([result.seconds for result in results], sum(map(len, packed)))
                    yield from results
                elif not cancelled():
                    yield from waves.failed(wave, error)
    except ReplayError:
        session.cancel()
        for future in wait(running, timeout=_LAST_S).done:
            if future.exception() is None:
                yield from map(unpack_result, future.result())
        raise
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def wave_size(left: int, parallel: int, mean_s: float | None, result_bytes: float) -> int:
    """Return how many of the tasks that are left make the next wave, of which Spark runs `parallel` at once.

    As many for each core as take seconds, unless other waves would go without, or the results were too much for the
    driver. What a task takes is None while nobody knows.
    """
    each = 1
    if mean_s is not None:
        each = max(min(round(_WAVE_S / max(mean_s, 1e-3)), left // (parallel * _WAVES), _MOST_IN_PARTITION), 1)
    return min(parallel * each, max(int(_WAVE_BYTES / result_bytes), 1), left)


class _Waves:
    """The tasks that are left, and how many of them make a wave."""

    def __init__(self, session: OpenSession, tasks: Sequence[ReplayTask]) -> None:
        self.session = session
        self.left = deque(tasks)
        self.again: deque[Sequence[ReplayTask]] = deque()
        self.seconds: deque[float] = deque(maxlen=200)
        self.largest = 1.0

    def next(self) -> Sequence[ReplayTask]:
        """Return the tasks of the next wave; none when all have been given out."""
        if self.again:
            return self.again.popleft()
        mean_s = sum(self.seconds) / len(self.seconds) if self.seconds else None
        size = wave_size(len(self.left), max(self.session.parallel_now(), 1), mean_s, self.largest)
        return [self.left.popleft() for _ in range(size)]

    def took(self, seconds: Sequence[float], size: int) -> None:
        """Note how long the tasks of a wave took, and how many bytes their results have."""
        self.seconds.extend(seconds)
        self.largest = max(self.largest, size / max(len(seconds), 1))

    def run(self, wave: Sequence[ReplayTask]) -> list[bytes]:
        """Run a wave; returns the results as `pack_result` does."""
        parts = min(max(self.session.parallel_now(), 1), len(wave))
        part = pa.array((number % parts for number in range(len(wave))), pa.int32())
        texts = pa.table({"part": part, "task": [task_to_json(task) for task in wave]})
        frame = self.session.spark.createDataFrame(texts).repartitionById(parts, "part")
        results: list[bytes] = frame.mapInArrow(_on_spark, "result binary").toArrow()["result"].to_pylist()
        return results

    def failed(self, wave: Sequence[ReplayTask], error: BaseException) -> Iterator[TaskResult]:
        """Take in that a wave failed: run it again in halves; yield a task that failed alone where another would not.

        Raises:
            ReplayError: The session is gone, or fails at anything.
        """
        gone = self.session.gone(error)
        if gone is not None:
            raise gone from error
        if len(wave) > 1:
            middle = len(wave) // 2
            self.again += [wave[:middle], wave[middle:]]
            return
        check_workers(self.session, "planner.replay.kernel", [wave[0].history])
        yield task_result(wave[0], (), 0.0, _KILLED)
