"""Two ways to run many tasks: a pool of processes, and Spark. Both give the same results.

Results come as they are done, in any order. What goes between processes is a task as text, and its result as bytes.
"""

import multiprocessing
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Final, Generic, TypeAlias, TypeVar

import pyarrow as pa

from planner.cluster.errors import ReplayError
from planner.spark.session import Guard, OpenSession, check_workers

T = TypeVar("T")
R = TypeVar("R")

Cancelled: TypeAlias = Callable[[], bool]
"""Is asked now and then whether to stop."""

_WAVES: Final = 3
_WAVE_S: Final = 8.0
_MOST_IN_PARTITION: Final = 500
_WAVE_BYTES: Final = 256 << 20  # a quarter of what Spark's driver takes of a job (spark.driver.maxResultSize)
_LAST_S: Final = 5.0

_KILLED: Final = (
    "The worker was killed each time, possibly because it ran out of memory. Give workers more memory, or "
    "tasks fewer days."
)


@dataclass(frozen=True, slots=True)
class Work(Generic[T, R]):
    """A kind of tasks.

    Attributes:
        module: Where `run` is; workers have to be able to import it.
        write: Returns a task as text.
        run: Runs the task in a text, and returns its result as bytes; a function of a module, which raises nothing.
        read: Returns the result that bytes hold.
        failed: Returns the result of a task that could not be run, with the reason.
        seconds: Returns how long a task took.
        folder: Returns the folder that a task reads, which workers have to see.
    """

    module: str
    write: Callable[[T], str]
    run: Callable[[str], bytes]
    read: Callable[[bytes], R]
    failed: Callable[[T, str], R]
    seconds: Callable[[R], float]
    folder: Callable[[T], str]


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


def run_processes(work: Work[T, R], tasks: Sequence[T], workers: int, cancelled: Cancelled) -> Iterator[R]:
    """Run tasks in a pool of processes, a few more in hand than there are workers.

    When a process is killed, the tasks that were in hand run again, one at a time; one that kills its process then as
    well is a task that failed.
    """
    count = min(workers or cores(), max(len(tasks), 1))
    waiting, suspects = deque(tasks), deque[T]()
    while (waiting or suspects) and not cancelled():
        alone = bool(suspects)
        given = suspects if alone else waiting
        running: dict[Future[bytes], T] = {}
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(1 if alone else count, mp_context=context, initializer=_end_with_parent) as pool:
            try:
                while (given or running) and not cancelled():
                    while given and len(running) < (1 if alone else 2 * count):
                        running[pool.submit(work.run, work.write(given[0]))] = given[0]
                        given.popleft()  # a pool that is broken by now has not taken it
                    done, _ = wait(running, timeout=1, return_when=FIRST_COMPLETED)
                    for future in done:
                        result = work.read(future.result())
                        del running[future]
                        yield result
            except BrokenProcessPool:
                if alone:
                    yield from (work.failed(task, _KILLED) for task in running.values())
                else:
                    suspects.extend(running.values())
            finally:
                if cancelled():
                    for process in list((pool._processes or {}).values()):  # noqa: SLF001 - nothing else stops a task
                        process.terminate()
                else:
                    for future in running:
                        future.cancel()


def _on_spark(run: Callable[[str], bytes]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return what runs the tasks that a Spark worker is given as text."""

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for text in batch.column("task").to_pylist():
                yield pa.RecordBatch.from_pydict({"result": [run(text)]})

    return work


def run_spark(
    work: Work[T, R],
    tasks: Sequence[T],
    session: OpenSession,
    cancelled: Cancelled,
    report: Callable[[str], None] = lambda _: None,
) -> Iterator[R]:
    """Run tasks on Spark.

    Tasks go out in waves, one Spark job each, with as many partitions as Spark runs at once and so many tasks in each
    that a wave takes seconds. Three are under way at any time, so that the last tasks of one run beside the first of
    the next and no core waits. What a worker lost, Spark runs again, four times in all; a wave that fails all the same
    is cut in halves, down to the task that fails.

    Args:
        work: What kind of tasks.
        tasks: What to run; each must see its folder under the same path as here.
        session: Where to run them.
        cancelled: Is asked between waves.
        report: Is told when Spark does not work as it should, and "" when it does again.

    Raises:
        ReplayError: Spark is gone, or fails whatever it is given.
    """
    waves = _Waves(work, session, tasks)
    guard = Guard(session, report)
    pool = ThreadPoolExecutor(_WAVES)
    running: dict[Future[list[bytes]], Sequence[T]] = {}
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
                    results = list(map(work.read, packed))
                    waves.took(list(map(work.seconds, results)), sum(map(len, packed)))
                    yield from results
                elif not cancelled():
                    yield from waves.failed(wave, error)
    except ReplayError:
        session.cancel()
        for future in wait(running, timeout=_LAST_S).done:
            if future.exception() is None:
                yield from map(work.read, future.result())
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


class _Waves(Generic[T, R]):
    """The tasks that are left, and how many of them make a wave."""

    def __init__(self, work: Work[T, R], session: OpenSession, tasks: Sequence[T]) -> None:
        self.work = work
        self.session = session
        self.left = deque(tasks)
        self.again: deque[Sequence[T]] = deque()
        self.seconds: deque[float] = deque(maxlen=200)
        self.largest = 1.0

    def next(self) -> Sequence[T]:
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

    def run(self, wave: Sequence[T]) -> list[bytes]:
        """Run a wave; returns the results as bytes."""
        parts = min(max(self.session.parallel_now(), 1), len(wave))
        part = pa.array((number % parts for number in range(len(wave))), pa.int32())
        texts = pa.table({"part": part, "task": list(map(self.work.write, wave))})
        frame = self.session.spark.createDataFrame(texts).repartitionById(parts, "part")
        done = frame.mapInArrow(_on_spark(self.work.run), "result binary").toArrow()
        results: list[bytes] = done["result"].to_pylist()
        return results

    def failed(self, wave: Sequence[T], error: BaseException) -> Iterator[R]:
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
        check_workers(self.session, self.work.module, [self.work.folder(wave[0])])
        yield self.work.failed(wave[0], _KILLED)
