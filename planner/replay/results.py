"""The results of a replay as Parquet files in a folder, written while tasks finish.

While a job runs they lie in parts, `parts/<number>/`, each of which appears as a whole. At the end there is one each:

- `intervals.parquet`: as `planner.replay.kernel.INTERVALS`.
- `moves.parquet`: as `planner.replay.kernel.MOVES`.
- `days.parquet`: as `DAYS`, the measures of each day of each task.
- `tasks.parquet`: as `TASKS`, also those that failed; of these the other files have nothing.
- `summary.json`: as `ResultSummary`, with the SHA-256 of the others.

Each part has the SHA-256 of its files in `files.json`.
"""

import shutil
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ConfigDict, TypeAdapter

from planner.cluster.errors import PlannerError, ReplayError
from planner.cluster.files import (
    check_file,
    clear_unfinished,
    content_of_file,
    file_digest,
    plain_file,
    put_in_place,
    write_whole,
    writing_results,
)
from planner.formats.encoding import read_sealed, sealed_json
from planner.replay.kernel import INTERVALS, MOVES, ReplayTask, TaskResult, combined_digest
from planner.simulate.measures import MEASURES
from planner.spark.schema import arrow_schema

MEASURE_COLUMNS: Final = (
    *(measure.name for measure in MEASURES if measure.name != "cycles"),
    "shed_bytes_per_s",
    "events",
)
"""Columns of `DAYS` that hold a number: all of `planner.simulate.measures.Summary`, the throughput shed, and events."""

DAYS: Final = arrow_schema(
    "task string, cluster string, scenario string, day string, cycles bigint,"
    f" {', '.join(f'{name} double' for name in MEASURE_COLUMNS)}, digest string, notes array<string>"
)
"""One row for each day of each task. A measure that a day does not have, such as when it settled, is null."""

TASKS: Final = arrow_schema(
    "task string, cluster string, scenario string, start_ms bigint, end_ms bigint, days bigint, cycles bigint,"
    " seconds double, error string, digest string"
)
"""One row for each task that has ended, well or not."""

FILES: Final = {"intervals": INTERVALS, "moves": MOVES, "days": DAYS, "tasks": TASKS}
"""Schema of each file, by its name without `.parquet`."""

_PARTS: Final = "parts"
_SUMMARY: Final = "summary.json"
_DIGESTS: Final = "files.json"
_FORMAT: Final = "pulsar-bundle-planner replay results"
_ERRORS_KEPT: Final = 100
_AGAIN: Final = "Retry the job, or delete it."
_ROWS_IN_A_GROUP: Final = 131_072


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultSummary:
    """What a job came to.

    Attributes:
        digest: SHA-256 over all tasks, whatever their order; equal with every runner.
        complete: Whether all tasks have ended.
        tasks: Tasks of the job.
        done: Tasks that ended well.
        failed: Tasks that ended with an error.
        cycles: Shedding cycles replayed.
        moves: Events.
        work_seconds: Time that the tasks took, added up.
        seconds: Time that the job took from its first task to its last.
        errors: Why tasks failed, by task; the first 100.
    """

    __pydantic_config__ = ConfigDict(allow_inf_nan=False)

    digest: str
    complete: bool
    tasks: int
    done: int
    failed: int
    cycles: int
    moves: int
    work_seconds: float
    seconds: float
    errors: dict[str, str]


_SUMMARIES: Final = TypeAdapter(ResultSummary)


class ResultWriter:
    """Takes results in any order and writes them.

    A folder that already has parts goes on with them: `finished` says which tasks need not run again. Parts that are
    damaged are deleted, so that their tasks run again.

    Args:
        folder: Where to write; made when it is not there.
        tasks: The tasks of the job.
        every_s: Results wait at most about so long until they are written.

    Attributes:
        finished: Tasks that ended well.
        failed: Errors of the others, by task.
        damaged: How many parts were.

    Raises:
        ReplayError: The folder cannot be written; any method may say so.
    """

    def __init__(self, folder: Path, tasks: Sequence[ReplayTask], *, every_s: float = 5.0) -> None:
        self.folder = folder
        self.tasks = {task.task: task for task in tasks}
        self.every_s = every_s
        self.finished: set[str] = set()
        self.failed: dict[str, str] = {}
        self.waiting: list[TaskResult] = []
        self.written_s = time.monotonic()
        self.damaged = 0
        with writing_results(folder, ValueError, pa.ArrowException):
            (folder / _PARTS).mkdir(parents=True, exist_ok=True)
            clear_unfinished(folder)
            for left in (*folder.glob(f".{_PARTS}"), *(folder / _PARTS).glob(".*")):
                shutil.rmtree(left)
            parts = self._parts()
            self.next = int(parts[-1].name) + 1 if parts else 0
            for part in parts:
                try:
                    _checked(part, part / _DIGESTS)
                    self._note(pq.read_table(plain_file(part / "tasks.parquet"), columns=["task", "error"]))
                except (ReplayError, OSError, pa.ArrowException):
                    self.damaged += 1
                    shutil.rmtree(part)

    def _parts(self) -> list[Path]:
        return sorted((self.folder / _PARTS).glob("[0-9]*"))

    def _note(self, table: pa.Table) -> None:
        for row in table.to_pylist():
            if row["error"]:
                self.failed[row["task"]] = row["error"]
            else:
                self.finished.add(row["task"])
                self.failed.pop(row["task"], None)

    def add(self, result: TaskResult) -> None:
        """Take a result, and write those that have waited long enough."""
        self.waiting.append(result)
        if time.monotonic() - self.written_s >= self.every_s:
            self.flush()

    def flush(self) -> None:
        """Write what waits, as a part that appears as a whole."""
        self.written_s = time.monotonic()
        if not self.waiting:
            return
        part = self.folder / _PARTS / f"{self.next:06d}"
        fresh = part.with_name(f".{part.name}")
        tables = self._tables()
        with writing_results(self.folder, pa.ArrowException):
            try:
                fresh.mkdir()
                for name, table in tables.items():
                    pq.write_table(table, fresh / f"{name}.parquet", compression="zstd")
                write_whole(fresh / _DIGESTS, sealed_json(_digests(fresh)))
                put_in_place(fresh, part)
            finally:
                shutil.rmtree(fresh, ignore_errors=True)
        self.next += 1
        self.waiting = []
        self._note(tables["tasks"])

    def _tables(self) -> dict[str, pa.Table]:
        well = [result for result in self.waiting if not result.error]
        days = [day for result in well for day in result.days]
        return {
            "intervals": pa.concat_tables([INTERVALS.empty_table(), *(day.intervals for day in days)]),
            "moves": pa.concat_tables([MOVES.empty_table(), *(day.moves for day in days)]),
            "days": pa.Table.from_pylist([row for result in well for row in self._days(result)], schema=DAYS),
            "tasks": pa.Table.from_pylist([self._task(result) for result in self.waiting], schema=TASKS),
        }

    def _task(self, result: TaskResult) -> dict[str, Any]:
        task = self.tasks[result.task]
        return {
            **self._about(result),
            "start_ms": task.start_ms,
            "end_ms": task.end_ms,
            "days": len(result.days),
            "cycles": sum(day.cycles for day in result.days),
            "seconds": result.seconds,
            "error": result.error,
            "digest": result.digest,
        }

    def _about(self, result: TaskResult) -> dict[str, Any]:
        task = self.tasks[result.task]
        return {"task": task.task, "cluster": task.cluster, "scenario": task.scenario.name}

    def _days(self, result: TaskResult) -> list[dict[str, Any]]:
        own = ("day", "cycles", "digest", "notes")
        return [self._about(result) | day.measures | {name: getattr(day, name) for name in own} for day in result.days]

    def finish(self, seconds: float) -> ResultSummary:
        """Write what waits, put the parts together and sum up; the job took so many seconds."""
        self.flush()
        parts = self._parts()
        with writing_results(self.folder, pa.ArrowException):
            (self.folder / _SUMMARY).unlink(missing_ok=True)  # until there is a new one, the parts are what there is
            rows = {name: self._together(name, parts) for name in FILES}
            summary = self._summary(seconds, rows["moves"])
            content = {"format": _FORMAT, "version": 1, **asdict(summary), "files": _digests(self.folder)}
            write_whole(self.folder / _SUMMARY, sealed_json(content))
            if summary.complete and not summary.failed:
                shutil.rmtree((self.folder / _PARTS).rename(self.folder / f".{_PARTS}"))
        return summary

    def _together(self, name: str, parts: Sequence[Path]) -> int:
        """Write the rows of all parts into one file; of a task that ran twice, only what came last."""
        fresh, rows = self.folder / f".{name}.parquet", 0
        with pq.ParquetWriter(fresh, FILES[name], compression="zstd") as writer:
            waiting: list[pa.Table] = []
            for part in parts:
                table = pq.read_table(plain_file(part / f"{name}.parquet")).cast(FILES[name])
                if name == "tasks":
                    table = pa.Table.from_pylist([r for r in table.to_pylist() if self._counts(r)], schema=TASKS)
                waiting.append(table)
                rows += table.num_rows
                if sum(t.num_rows for t in waiting) >= _ROWS_IN_A_GROUP:
                    writer.write_table(pa.concat_tables(waiting))
                    waiting = []
            if waiting:
                writer.write_table(pa.concat_tables(waiting))
        fresh.replace(self.folder / f"{name}.parquet")
        return rows

    def _counts(self, row: dict[str, Any]) -> bool:
        return not row["error"] or (row["task"] not in self.finished and row["error"] == self.failed[row["task"]])

    def _summary(self, seconds: float, moves: int) -> ResultSummary:
        found = {row["task"]: row for row in pq.read_table(plain_file(self.folder / "tasks.parquet")).to_pylist()}
        errors = sorted(self.failed.items())
        return ResultSummary(
            digest=combined_digest([row["digest"] for row in found.values()]),
            complete=len(found) == len(self.tasks),
            tasks=len(self.tasks),
            done=len(self.finished),
            failed=len(errors),
            cycles=sum(row["cycles"] for row in found.values()),
            moves=moves,
            work_seconds=sum(row["seconds"] for row in found.values()),
            seconds=seconds,
            errors=dict(errors[:_ERRORS_KEPT]),
        )


def _digests(folder: Path) -> dict[str, str]:
    return {name: file_digest(folder / f"{name}.parquet") for name in FILES}


def _checked(folder: Path, index: Path) -> dict[str, Path]:
    """Return the files of a folder, seen to be what was written; earlier versions wrote no digests.

    Raises:
        ReplayError: One is damaged, or gone.
    """
    files = {name: folder / f"{name}.parquet" for name in FILES}
    try:
        known = read_sealed(content_of_file(index), index.name) if index.is_file() else {}
        digests = known.get("files", {}) if index.name == _SUMMARY else known
        for name in FILES.keys() & digests.keys():
            check_file(files[name], digests[name])
    except (OSError, PlannerError, AttributeError, TypeError) as error:
        reason = error.what if isinstance(error, PlannerError) else str(error)
        raise ReplayError(
            f"The results cannot be read: {reason.rstrip('.')[:200]}.", where=index.name, remedy=_AGAIN
        ) from error
    return files


def result_files(folder: Path) -> dict[str, list[Path]]:
    """Return the files that hold a job's results so far, by the names of `FILES`; an empty list where there is none.

    Raises:
        ReplayError: One is damaged.
    """
    try:
        whole = [_checked(part, part / _DIGESTS) for part in sorted((folder / _PARTS).glob("[0-9]*"))]
    except ReplayError:
        if not (folder / _SUMMARY).is_file():  # else they were put together meanwhile
            raise
        whole = []
    if (folder / _SUMMARY).is_file():
        whole = [_checked(folder, folder / _SUMMARY)]
    return {name: [files[name] for files in whole] for name in FILES}


def read_summary(folder: Path) -> ResultSummary | None:
    """Return what a job came to; None when it has no end yet.

    Raises:
        ReplayError: The file is damaged.
    """
    path = folder / _SUMMARY
    if not path.is_file():
        return None
    try:
        return _SUMMARIES.validate_python(read_sealed(content_of_file(path), path.name))
    except (OSError, ValueError, PlannerError) as error:
        raise ReplayError("The summary of the results cannot be read.", where=path.name, remedy=_AGAIN) from error
