"""How a job is and what it came to, as text and as JSON."""

from dataclasses import asdict
from typing import Any, Final

from planner.cluster.text import count
from planner.replay.jobs import Status, StoredJob, results_folder
from planner.replay.queries import SCENARIO_MEASURES, ReplayResults
from planner.replay.results import read_summary, result_files

_SHOWN: Final = (
    "mean_std_percent",
    "peak_usage_percent",
    "shed",
    "topics_disconnected",
    "thrashing_percent",
    "overloaded_broker_min",
)
_NO_RESULT: Final = ("failed", "lost")


def _rows(stored: StoredJob) -> list[dict[str, Any]]:
    results = ReplayResults(result_files(results_folder(stored.folder)))
    return [] if results.empty else results.scenarios().to_pylist()


def job_line(stored: StoredJob) -> str:
    """Return a line about a job, for a list."""
    status = stored.status
    title = stored.job.name if stored.job is not None else "unreadable"
    return f"{stored.name}  {status.state:9}  {status.done:,}/{status.tasks:,} tasks  {title}"


def progress_line(status: Status) -> str:
    """Return a line about how far a job is."""
    line = f"{status.stage}: {status.done:,} of {status.tasks:,} tasks"
    if status.remaining_s is None:
        return line
    return f"{line}, {status.rate_per_min:,.1f} per minute, about {status.remaining_s:,.0f} s left"


def report_to_json(stored: StoredJob) -> dict[str, Any]:
    """Return a job with its status, its summary and a row for each scenario.

    Raises:
        StoreError: The results cannot be read.
    """
    summary = read_summary(results_folder(stored.folder))
    return {
        "job": stored.name,
        "folder": str(stored.folder),
        "status": asdict(stored.status),
        "summary": asdict(summary) if summary is not None else None,
        "scenarios": _rows(stored),
    }


def report_lines(stored: StoredJob) -> list[str]:
    """Return lines with the most telling measures of each scenario.

    Raises:
        StoreError: The results cannot be read.
    """
    status = stored.status
    digest = f", digest {status.digest}" if status.digest else ""
    lines = [f"{stored.name}: {status.state}, {status.done:,} of {status.tasks:,} tasks{digest}"]
    if status.what and status.state not in _NO_RESULT:
        lines.append(f"{status.what} {status.remedy}")
    labels = {m.name: f"{m.label}{f' ({m.unit})' if m.unit else ''}" for m in SCENARIO_MEASURES}
    for row in _rows(stored):
        lines.append(f"{row['scenario']} ({count(row['days'], 'day')}, {count(row['cycles'], 'cycle')})")
        lines += [f"    {labels[name]}: {'unknown' if row[name] is None else f'{row[name]:,.4g}'}" for name in _SHOWN]
    return [*lines, f"Results: {results_folder(stored.folder)}"]
