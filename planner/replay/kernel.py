"""Replays a part of a history under a scenario: one pure function, which every runner uses unchanged.

A task follows the traffic and the brokers that the history recorded, from its first moment to its last; who serves
which bundle is what the scenario's load balancer decides. It works through one day of the history after the other and
keeps nothing of the days behind but the cluster and the leader's memory, so that it needs the room of one day however
long the history is.
"""

import hashlib
import json
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from planner.cluster.errors import PlannerError, ReplayError
from planner.cluster.names import SHEDDING_INTERVAL_MINUTES
from planner.cluster.snapshot import Snapshot
from planner.cluster.tables import make_brokers, make_bundles, make_topics
from planner.cluster.units import MS_PER_MIN
from planner.history.days import read_day
from planner.history.manifest import DayFolder, complete_days, day_of
from planner.simulate.event import Event
from planner.simulate.measures import blast_radius, broker_series, cycle_counts, imbalance_series, summary_of_cycles
from planner.simulate.run import Simulation
from planner.simulate.scenario import Scenario, scenario_from_json, scenario_to_json
from planner.simulate.trace import Cycle, Stretch
from planner.simulate.traffic import FOLLOWED
from planner.spark.schema import arrow_schema

_MOST_DAYS_KEPT: Final = 4
_MOST_ROWS_KEPT: Final = 100_000
_PLAIN: Final = ("task", "history", "cluster", "start_ms", "end_ms")

INTERVALS: Final = arrow_schema(
    "task string, day string, at_ms bigint, brokers int, usage_average_percent double, usage_std_percent double,"
    " usage_highest_percent double, usage_lowest_percent double, msg_rate_per_s double, throughput_bytes_per_s double,"
    " shed int, placed int, splits int, topics_disconnected bigint, producers_disconnected bigint,"
    " consumers_disconnected bigint"
)
"""One row for each shedding cycle of a task."""

MOVES: Final = arrow_schema(
    "task string, day string, at_ms bigint, kind string, bundle string, source string, destination string,"
    " msg_rate_per_s double, throughput_bytes_per_s double, topics bigint, producers bigint, consumers bigint,"
    " why string"
)
"""One row for each event of a task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayTask:
    """One piece of work.

    Attributes:
        task: Names it within a job.
        history: Root folder of the history.
        cluster: Which cluster of it.
        start_ms: First moment, ms since 1970.
        end_ms: First moment no longer replayed.
        scenario: What is changed; its seed counts, its number of cycles does not.
    """

    task: str
    history: str
    cluster: str
    start_ms: int
    end_ms: int
    scenario: Scenario


@dataclass(frozen=True, eq=False, slots=True)
class DayResult:
    """What a day of a task came to.

    Attributes:
        task: The task.
        day: `yyyy-mm-dd`, UTC.
        cycles: Shedding cycles.
        measures: Numbers of the day, named as in `planner.simulate.measures.Summary`, with blast radius and traffic.
        intervals: As `INTERVALS`.
        moves: As `MOVES`.
        digest: SHA-256 of everything that happened on the day.
        notes: What the user should know.
    """

    task: str
    day: str
    cycles: int
    measures: dict[str, float | None]
    intervals: pa.Table
    moves: pa.Table
    digest: str
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False, slots=True)
class TaskResult:
    """What a task came to.

    Attributes:
        task: The task.
        days: Its days in order.
        digest: SHA-256 over the days; equal on every machine and with every runner.
        seconds: How long it took.
        error: Why it failed, one sentence; empty when it did not.
    """

    task: str
    days: tuple[DayResult, ...]
    digest: str
    seconds: float
    error: str = ""


def task_to_json(task: ReplayTask) -> str:
    """Return a task as text."""
    content: dict[str, Any] = {name: getattr(task, name) for name in _PLAIN}
    content["scenario"] = scenario_to_json(task.scenario)
    return json.dumps(content, sort_keys=True)


def task_from_json(text: str) -> ReplayTask:
    """Read a task.

    Raises:
        PlannerError: Its scenario cannot be read.
    """
    content = json.loads(text)
    return ReplayTask(**{**content, "scenario": scenario_from_json(content["scenario"])})


def _snapshots(day: DayFolder, start_ms: int, end_ms: int, *, followed: bool) -> Iterator[Snapshot]:
    """Yield the snapshots of a day within a time; all but the very first one of a task are only followed.

    Those of a small day that does not grow are kept: the next task of this process is mostly another scenario of it.
    """
    parts = day.manifest.parts.values()
    if not (day.damage is not None or day.is_watched or sum(part.rows for part in parts) > _MOST_ROWS_KEPT):
        yield from _kept(day.path, frozenset(part.sha256 for part in parts), start_ms, end_ms)
        return
    if not followed:
        for start in read_day(day.path, start_ms=start_ms, end_ms=end_ms):
            start_ms = start.info.captured_at_ms + 1
            yield start
            break
    yield from read_day(day.path, start_ms=start_ms, end_ms=end_ms, columns=FOLLOWED)


@lru_cache(maxsize=_MOST_DAYS_KEPT)
def _kept(path: Path, _content: frozenset[str], start_ms: int, end_ms: int) -> list[Snapshot]:
    return list(read_day(path, start_ms=start_ms, end_ms=end_ms))


def frames_of(task: ReplayTask) -> Iterator[Snapshot]:
    """Yield the snapshots of the history within the time of a task.

    Raises:
        ReplayError: There are none.
    """
    root, found = Path(task.history), False
    for day in complete_days(root, task.cluster, day_of(task.start_ms), day_of(task.end_ms - 1)):
        for snapshot in _snapshots(day, task.start_ms, task.end_ms, followed=found):
            found = True
            yield snapshot
    if not found:
        raise ReplayError(
            f"The history has no snapshot of {task.cluster} in this period.",
            where=str(root.name),
            remedy="Choose a period that the history covers.",
        )


def _bare(names: tuple[str, ...], like: Snapshot) -> Snapshot:
    """Return a snapshot that knows the names of brokers and nothing else."""
    return Snapshot(like.info, like.settings, make_brokers(names), (), make_bundles([]), make_topics())


def replay_days(task: ReplayTask) -> Iterator[DayResult]:
    """Replay a task, and yield each day when it is done.

    Raises:
        PlannerError: The history has nothing there, is damaged, or the scenario does not fit it.
    """
    running = Simulation(frames_of(task), task.scenario)
    interval = max(running.config.integer(SHEDDING_INTERVAL_MINUTES), 1) * MS_PER_MIN
    count = max((task.end_ms - running.start.info.captured_at_ms + interval - 1) // interval, 1)
    day, begin = day_of(running.start.info.captured_at_ms), running.end()
    cycles: list[Cycle] = []
    views: dict[tuple[str, ...], Snapshot] = {}
    for cycle in running.cycles(count):
        names = cycle.view.brokers.name
        if names not in views:
            views[names] = _bare(names, cycle.view)
        cycles.append(replace(cycle, view=views[names], owner=cycle.owner[:0]))
        next_day = day_of(min(cycle.at_ms + interval, task.end_ms))  # an interval may be thousands of years
        if next_day != day:
            yield _result(task, day, begin, cycles, running)
            day, begin, cycles = next_day, running.end(), []
    if cycles:
        yield _result(task, day, begin, cycles, running)


def _result(task: ReplayTask, day: str, begin: Snapshot, cycles: list[Cycle], running: Simulation) -> DayResult:
    trace = Stretch(task.scenario, running.config, begin, tuple(cycles))
    values = asdict(summary_of_cycles(trace)) | {
        "shed_bytes_per_s": sum(e.throughput_bytes_per_s for e in trace.events if e.kind == "shed"),
        "events": blast_radius(trace.events).bundles,
    }
    return DayResult(
        task.task,
        day,
        len(cycles),
        {name: None if value is None else float(value) for name, value in values.items()},
        _intervals(task, day, trace),
        _moves(task, day, trace.events),
        trace.digest(),
        tuple(dict.fromkeys(running.notes)),
    )


def _intervals(task: ReplayTask, day: str, trace: Stretch) -> pa.Table:
    series, counts = broker_series(trace), cycle_counts(trace)
    spread = imbalance_series(series)
    number = len(trace.cycles)
    columns: dict[str, Any] = {
        "task": [task.task] * number,
        "day": [day] * number,
        "at_ms": series.at_ms,
        "brokers": series.present.sum(axis=1).astype(np.int32),
        "usage_average_percent": spread.average * 100,
        "usage_std_percent": spread.std * 100,
        "usage_highest_percent": spread.highest * 100,
        "usage_lowest_percent": spread.lowest * 100,
        "msg_rate_per_s": np.nansum(series.msg_rate_per_s, axis=1),
        "throughput_bytes_per_s": np.nansum(series.throughput_bytes_per_s, axis=1),
        "shed": counts.shed,
        "placed": counts.placed,
        "splits": counts.splits,
        "topics_disconnected": counts.topics,
        "producers_disconnected": counts.producers,
        "consumers_disconnected": counts.consumers,
    }
    return pa.table({f.name: pa.array(columns[f.name]).cast(f.type, safe=False) for f in INTERVALS}, schema=INTERVALS)


def _moves(task: ReplayTask, day: str, events: tuple[Event, ...]) -> pa.Table:
    rows = [{name: getattr(event, name) for name in MOVES.names[2:]} for event in events]
    return pa.Table.from_pylist([{"task": task.task, "day": day, **row} for row in rows], schema=MOVES)


def combined_digest(digests: Iterator[str] | list[str]) -> str:
    """Return one digest of several, whatever their order."""
    return hashlib.sha256("\n".join(sorted(digests)).encode()).hexdigest()


def replay_one(task: ReplayTask) -> TaskResult:
    """Replay a task. Whatever fails in it is its result, so that the others go on.

    A fault of the planner is told by the kind of exception alone, for its text may name addresses and differ.
    """
    begin = time.perf_counter()
    days: list[DayResult] = []
    error = ""
    try:
        days.extend(replay_days(task))
    except PlannerError as failure:
        error = str(failure)
    except Exception as failure:  # noqa: BLE001 - one task must not stop a job
        error = f"The planner failed with {type(failure).__name__}. Report this task."
        traceback.print_exc()
    return task_result(task, days, time.perf_counter() - begin, error)


def task_result(task: ReplayTask, days: Sequence[DayResult], seconds: float, error: str = "") -> TaskResult:
    """Return what a task came to, with its digest."""
    digest = hashlib.sha256("\n".join([task.task, *(f"{d.day} {d.digest}" for d in days), error]).encode()).hexdigest()
    return TaskResult(task.task, tuple(days), digest, seconds, error)
