"""What the advisor is given: the days of finished replays, their scenarios, and how the clusters are set now."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from planner.advise.advice import Configured
from planner.cluster.errors import FormatError, PlannerError, ReplayError
from planner.cluster.files import plain_file
from planner.cluster.snapshot import Snapshot
from planner.cluster.text import count
from planner.explain.doubt import doubt_about
from planner.history.days import read_day
from planner.history.manifest import complete_days
from planner.replay.aggregate import AGGREGATION, DayRow
from planner.replay.jobs import StoredJob, results_folder
from planner.replay.kernel import ReplayTask, TaskResult
from planner.replay.results import DAYS, result_files
from planner.replay.spec import Job
from planner.simulate.scenario import Scenario

_MEASURES = (*(name for name in AGGREGATION if name != "cycles"), "shed_bytes_per_s")
_ROWS = pa.schema(
    [DAYS.field(name).with_nullable(False) for name in ("cluster", "scenario", "day", "cycles")]
    + [DAYS.field(name) for name in _MEASURES]
)


@dataclass(frozen=True, slots=True)
class Material:
    """What the advisor is given.

    Attributes:
        rows: What each scenario came to on each day.
        scenarios: What was replayed; names are unique.
        notes: What the user should know.
    """

    rows: tuple[DayRow, ...]
    scenarios: tuple[Scenario, ...]
    notes: tuple[str, ...] = ()


def rows_of(tasks: Sequence[ReplayTask], results: Iterable[TaskResult]) -> list[DayRow]:
    """Return the days of a runner's results as the advisor takes them; tasks that failed have none."""
    known = {task.task: task for task in tasks}
    return [
        _row(known[result.task].cluster, known[result.task].scenario.name, day.day, day.cycles, day.measures)
        for result in results
        if not result.error
        for day in result.days
    ]


def _row(cluster: str, scenario: str, day: str, cycles: int, measures: Mapping[str, Any]) -> DayRow:
    numbers = {name: measures.get(name) for name in _MEASURES} | {"cycles": float(cycles)}
    return DayRow(cluster=cluster, scenario=scenario, day=day, cycles=cycles, measures=numbers)


def read_rows(folder: Path) -> list[DayRow]:
    """Return the days of a replay from the folder of its results, with its parts while a job runs.

    Raises:
        ReplayError: There are none, or they cannot be read.
    """
    files = [file for file in result_files(folder)["days"] if file.is_file()]
    if not files and (folder / "days.parquet").is_file():
        files = [folder / "days.parquet"]
    if not files:
        raise ReplayError("This replay has no results yet.", where=folder.name, remedy="Wait until it has finished.")
    try:
        table = pa.concat_tables([pq.read_table(plain_file(file), columns=_ROWS.names) for file in files]).cast(_ROWS)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise ReplayError(
            "The results of this replay cannot be read.", where=folder.name, remedy="Retry the job, or delete it."
        ) from error
    return [_row(row["cluster"], row["scenario"], row["day"], row["cycles"], row) for row in table.to_pylist()]


def usable(stored: StoredJob) -> bool:
    """Tell whether a job has ended with something to compare."""
    return stored.job is not None and stored.status.ended and stored.status.done > stored.status.failed


def fits(one: Job, other: Job) -> bool:
    """Tell whether results of two jobs can be compared: the same history, clusters, days and length of a task."""
    alike = ("history", "first_day", "last_day", "days_per_task")
    same = all(getattr(one, name) == getattr(other, name) for name in alike)
    return same and sorted(one.clusters) == sorted(other.clusters)


def material_of(stored: Sequence[StoredJob]) -> Material:
    """Return what several jobs, at least one, about the same time (see `fits`) found, together.

    Of scenarios of the same name the first counts; where the later one is another, a note says that it is left out.

    Raises:
        ReplayError: One has no results, or cannot be compared.
    """
    rows: list[DayRow] = []
    scenarios: dict[str, Scenario] = {}
    notes: list[str] = []
    for job in stored:
        if not usable(job):
            raise ReplayError(
                "This replay has no results to compare yet.",
                where=job.name,
                remedy="Wait until it has finished, or retry it.",
            )
        if job.job is None or stored[0].job is None or not fits(stored[0].job, job.job):
            raise ReplayError(
                "This job cannot be compared with the others.",
                where=job.name,
                remedy="Choose jobs over the same history, clusters and days.",
            )
        fresh: set[str] = set()
        for scenario in job.job.scenarios:
            if scenario.name not in scenarios:
                scenarios[scenario.name] = scenario
                fresh.add(scenario.name)
            elif scenarios[scenario.name] != scenario:
                notes.append(
                    f"{scenario.name} of job {job.name} is left out because another job has a scenario with this name."
                )
        rows += [row for row in read_rows(results_folder(job.folder)) if row.scenario in fresh]
        if job.status.failed:
            notes.append(f"{count(job.status.failed, 'task')} of job {job.name} failed. See its log.")
    return Material(tuple(rows), tuple(scenarios.values()), tuple(notes))


def snapshot_of(job: Job, cluster: str, *, last: bool = False, topics: bool = True) -> Snapshot:
    """Return the first or the last snapshot of a cluster within the days of a job; reading is faster without topics.

    Raises:
        PlannerError: The history is gone, damaged, or has none.
    """
    days = [
        day
        for day in complete_days(Path(job.history), cluster)
        if job.first_day <= day.manifest.day <= job.last_day and day.damage is None
    ]
    if not days:
        raise FormatError(
            f"The history no longer has any days of {cluster}.",
            where=Path(job.history).name,
            remedy="Restore these days.",
        )
    if not last:
        return next(read_day(days[0].path, topics=topics))
    *_, found = read_day(days[-1].path, start_ms=days[-1].manifest.last_ms, topics=topics)
    return found


def configured_of(job: Job) -> dict[str, Configured]:
    """Return how the clusters of a job are set; those whose history cannot be read are left out.

    The settings are those of the last snapshot: they are what is to be changed now. No usage is true where none is in
    the first and in the last snapshot.
    """
    found = {}
    for cluster in job.clusters:
        try:
            first, last = (snapshot_of(job, cluster, last=end, topics=False) for end in (False, True))
            doubt = min((doubt_about(first), doubt_about(last)), key=lambda one: one.everywhere)
        except (PlannerError, OSError):
            continue
        found[cluster] = Configured(last.settings, last.info.load_manager, doubt)
    return found
