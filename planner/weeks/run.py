"""Runs the advice over weeks: plans the tasks of a history, and runs them here, in a pool, or on Spark."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Final

from planner.cluster.errors import ReplayError
from planner.cluster.text import count
from planner.explain.finding import listed
from planner.history.days import snapshot_at, times_of_day
from planner.history.manifest import complete_days
from planner.namespaces.advice import advisable
from planner.spark import runners
from planner.spark.runners import Cancelled, Work, cores
from planner.spark.session import check_workers, open_session
from planner.weeks.advice import WeekResult, WeekRow, WeekTask, ranked, result_from_json, run_task, task_to_json
from planner.weeks.spec import Weeks

MOST_MOMENTS: Final = 24
"""Most moments of a day."""
MOST_WEEKS: Final = 104
"""Longest horizon."""
_LAST: Final = "9"
"""Comes after every day."""
_NAMESPACES: Final = 4
"""Namespaces of a task: each of them takes seconds, and reading the moments about as long."""


def _failed(task: WeekTask, reason: str) -> WeekResult:
    return WeekResult(task=task.task, rows=(), seconds=0.0, error=reason)


WEEKS: Final[Work[WeekTask, WeekResult]] = Work(
    module="planner.weeks.advice",
    write=task_to_json,
    run=run_task,
    read=result_from_json,
    failed=_failed,
    seconds=attrgetter("seconds"),
    folder=attrgetter("history"),
)
"""Tasks of advice over weeks."""


@dataclass(frozen=True, slots=True)
class WeekAdvice:
    """Advice over weeks.

    Attributes:
        rows: A row for each namespace, what changes something first.
        notes: Why tasks failed, each once, and which namespaces are left out.
        where: Where it ran, in words.
    """

    rows: tuple[WeekRow, ...]
    notes: tuple[str, ...]
    where: str


def spread(times: Sequence[int], most: int) -> list[int]:
    """Return at most so many of some moments, spread over all of them, each from the middle of its part."""
    if len(times) <= most:
        return list(times)
    return [times[(2 * at + 1) * len(times) // (2 * most)] for at in range(most)]


def weeks_tasks(asked: Weeks) -> list[WeekTask]:
    """Return the tasks that advise on all namespaces of a history.

    Raises:
        ReplayError: There is no such cluster, no day, no topic, or the number of moments is out of range.
        FormatError: The history cannot be read.
    """
    if asked.history is None:
        raise ReplayError("There is no history to look at.", remedy="Use the folder of a history.")
    history, clusters = asked.history, asked.cluster
    if not 1 <= asked.moments_per_day <= MOST_MOMENTS:
        raise ReplayError(
            f"{asked.moments_per_day} moments per day are out of range.",
            remedy=f"Use a number from 1 to {MOST_MOMENTS}.",
        )
    if not 1 <= asked.horizon_weeks <= MOST_WEEKS:
        raise ReplayError(
            f"A horizon of {count(asked.horizon_weeks, 'week')} is out of range.",
            remedy=f"Use a number from 1 to {MOST_WEEKS}.",
        )
    by_cluster: dict[str, list[tuple[str, int]]] = {}
    for day in complete_days(history, None, asked.first_day, asked.last_day or _LAST):
        if day.damage is None and (not clusters or day.manifest.cluster in clusters):
            folder = str(day.path.relative_to(history))
            chosen = spread(times_of_day(day.path), asked.moments_per_day)
            by_cluster.setdefault(day.manifest.cluster, []).extend((folder, at_ms) for at_ms in chosen)
    missing = [name for name in clusters if name not in by_cluster]
    if missing or not by_cluster:
        raise ReplayError(
            f"The history has no day of {missing[0]!r} in this period."
            if missing
            else "The history has no days in this period.",
            where=str(history),
            remedy="Use a cluster and days that the history covers.",
        )
    tasks = []
    for cluster, moments in by_cluster.items():
        folder, at_ms = moments[-1]
        names = advisable(snapshot_at(history / folder, at_ms))
        tasks += [
            WeekTask(
                task=f"{cluster}/{at // _NAMESPACES}",
                history=str(history.absolute()),
                cluster=cluster,
                namespaces=names[at : at + _NAMESPACES],
                moments=tuple(moments),
                horizon_weeks=asked.horizon_weeks,
            )
            for at in range(0, len(names), _NAMESPACES)
        ]
    if not tasks:
        raise ReplayError(
            "The history lists no topics, and advice on bundles needs their names.",
            where=str(history),
            remedy="Record the cluster with topics.",
        )
    return tasks


def run_weeks(
    asked: Weeks,
    progress: Callable[[int, int, str], None] = lambda _done, _all, _where: None,
    cancelled: Cancelled = lambda: False,
) -> WeekAdvice:
    """Advise on all namespaces of a history; every runner gives the same rows.

    Args:
        asked: What to look at, and where it runs.
        progress: Told how many tasks are done, of how many, and where they run.
        cancelled: Asked now and then whether to stop; what is done by then is returned.

    Raises:
        ReplayError: There is nothing to look at, Spark does not start, or fails at anything.
        FormatError: The history cannot be read.
    """
    tasks, runner, workers = weeks_tasks(asked), asked.runner, asked.workers
    results: list[WeekResult] = []
    where = ""

    def take(given: Iterator[WeekResult]) -> None:
        progress(0, len(tasks), where)
        for result in given:
            results.append(result)
            progress(len(results), len(tasks), where)

    if runner == "local":
        where = "one process"
        take(_here(tasks, cancelled))
    elif runner == "processes":
        number = min(workers or cores(), max(len(tasks), 1))
        where = count(number, "process")
        take(runners.run_processes(WEEKS, tasks, number, cancelled))
    else:
        with (
            tempfile.TemporaryDirectory() as folder,
            open_session("planner bundles", Path(folder), workers) as session,
        ):
            where = f"{session.place.in_words}, {session.parallel} tasks at once"
            if session.place.kind != "local":
                check_workers(session, WEEKS.module, sorted({task.history for task in tasks}))
            take(runners.run_spark(WEEKS, tasks, session, cancelled))
    notes = dict.fromkeys([*(f"{one.task}: {one.error}" for one in results if one.error), *_gone(tasks)])
    return WeekAdvice(tuple(ranked([row for one in results for row in one.rows])), tuple(notes), where)


def _gone(tasks: Sequence[WeekTask]) -> Iterator[str]:
    """Yield a sentence for each cluster with namespaces that had topics at the first moment, and none at the last."""
    kept: dict[str, set[str]] = {}
    for task in tasks:
        kept.setdefault(task.cluster, set()).update(task.namespaces)
    first = {task.cluster: task for task in reversed(tasks)}
    for cluster, names in kept.items():
        folder, at_ms = first[cluster].moments[0]
        gone = [one for one in advisable(snapshot_at(Path(first[cluster].history) / folder, at_ms)) if one not in names]
        if gone:
            them = "it" if len(gone) == 1 else "them"
            when = "had topics at the first moment and none at the last"
            yield f"{cluster}: {listed(gone)} {when}, so there is no advice on {them}."


def _here(tasks: Sequence[WeekTask], cancelled: Cancelled) -> Iterator[WeekResult]:
    for task in tasks:
        if cancelled():
            return
        yield result_from_json(run_task(task_to_json(task)))
