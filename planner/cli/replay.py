"""`python -m planner replay`: replays a history under scenarios, with the jobs that the Replay page shows."""

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from cyclopts import ArgumentCollection, Group, Parameter

from planner.advise.objectives import OBJECTIVES, Question
from planner.cluster.errors import FormatError, ReplayError
from planner.replay.runner import Runner

if TYPE_CHECKING:
    from planner.replay.grid import Grid
    from planner.replay.jobs import StoredJob

_LOOK_S: Final = 0.3
_INCOMPLETE: Final = 1
_NO_RESULT: Final = ("failed", "lost")
_SHOWN: Final = (
    "mean_std_percent",
    "peak_usage_percent",
    "shed",
    "topics_disconnected",
    "thrashing_percent",
    "overloaded_broker_min",
)
_USUAL: Final = Question()


def _exactly_one(actions: ArgumentCollection) -> None:
    if len(actions.filter_by(value_set=True)) != 1:
        raise ValueError(f"Give one of {', '.join(action.name for action in actions)}.")


_ACTIONS = Group("What to do", help="One of these.", validator=_exactly_one, sort_key=1)
_TIME = Group("What is replayed", sort_key=2)
_SCENARIOS = Group("Under which scenarios", sort_key=3)
_QUESTION = Group("What counts for --advise", sort_key=4)
_PLACE = Group("Where it runs", sort_key=5)

_Job = Annotated[str, Parameter(group=_ACTIONS, metavar="JOB")]
_Percent = Parameter(group=_QUESTION, metavar="PERCENT")


def _objectives(side: str) -> Parameter:
    known = ", ".join(one.name for one in OBJECTIVES if one.side == side)
    return Parameter(group=_QUESTION, metavar="NAMES", help=f"Objectives of {side}, with commas in between: {known}.")


def replay(
    *,
    history: Annotated[Path | None, Parameter(group=_ACTIONS)] = None,
    list_jobs: Annotated[bool, Parameter(name="--list", group=_ACTIONS)] = False,
    show: _Job = "",
    cancel: _Job = "",
    retry: _Job = "",
    delete: _Job = "",
    advise: Annotated[tuple[str, ...], Parameter(group=_ACTIONS, metavar="JOB", consume_multiple=True)] = (),
    cluster: Annotated[tuple[str, ...], Parameter(group=_TIME)] = (),
    first_day: Annotated[str, Parameter(group=_TIME)] = "",
    last_day: Annotated[str, Parameter(group=_TIME)] = "",
    days_per_task: Annotated[int, Parameter(group=_TIME)] = 1,
    scenarios: Annotated[tuple[Path, ...], Parameter(group=_SCENARIOS, metavar="FILE")] = (),
    base: Annotated[str, Parameter(group=_SCENARIOS, metavar="FILE_OR_LINK")] = "",
    strategy: Annotated[tuple[str, ...], Parameter(group=_SCENARIOS, metavar="NAME")] = (),
    setting: Annotated[tuple[str, ...], Parameter(group=_SCENARIOS, metavar="NAME=V1,V2")] = (),
    weight: Annotated[float | None, _Percent] = None,
    first_part: Annotated[float, _Percent] = _USUAL.first_share * 100,
    loss: Annotated[float, _Percent] = _USUAL.loss_percent,
    balance: Annotated[str, _objectives("balance")] = ",".join(_USUAL.balance),
    disruption: Annotated[str, _objectives("disruption")] = ",".join(_USUAL.disruption),
    runner: Annotated[Runner, Parameter(group=_PLACE)] = "processes",
    workers: Annotated[int, Parameter(group=_PLACE)] = 0,
    name: Annotated[str, Parameter(group=_PLACE)] = "",
    detach: Annotated[bool, Parameter(group=_PLACE)] = False,
    as_json: Annotated[bool, Parameter(name="--json", group=_PLACE)] = False,
) -> int:
    """Replay a history under scenarios.

    Replays a history under a grid of scenarios, as a job that the Replay page shows too, and prints what each came to;
    or says what finished replays recommend. Exit status: 0 all tasks ended well, 1 some failed or the job was
    cancelled, 2 it cannot be run.

    Args:
        history: Folder of the history to replay.
        list_jobs: List the jobs there are.
        show: Print how a job is and what it came to.
        cancel: Stop a job.
        retry: Run what is left of a job.
        delete: Delete a job and its results.
        advise: Say which settings replays over the same days recommend, and how sure that is.
        cluster: Only this cluster; may be given again (all).
        first_day: Day, yyyy-mm-dd in UTC (the first there is).
        last_day: Day, yyyy-mm-dd in UTC, included (the last there is).
        days_per_task: Days that a task works through without a break; 0 for all.
        scenarios: A grid, or a list of scenarios; may be given again.
        base: Scenario that all have in common.
        strategy: A shedding strategy; may be given again.
        setting: Values to try of a setting; may be given again, then all combinations are.
        weight: Weight of balance against disruption, 0 to 100 (the knee of the front).
        first_part: Share of the days that the holdout chooses on.
        loss: How much worse a side may become.
        balance: Objectives of balance.
        disruption: Objectives of disruption.
        runner: One process, a pool, or Spark: here, at SPARK_REMOTE, or at PLANNER_SPARK_MASTER.
        workers: Processes, cores of a local Spark, or tasks at once on a cluster (as many as there are).
        name: What to call the job.
        detach: Print the job's name and do not wait for it.
        as_json: Print the results as JSON.
    """
    from planner.replay import jobs
    from planner.replay.grid import first_snapshot, scenarios_of
    from planner.replay.spec import Job, tasks_of

    if list_jobs:
        _list()
        return 0
    if cancel or delete:
        (jobs.ask_to_cancel if cancel else jobs.delete)(jobs.open_job(cancel or delete))
        return 0
    if show:
        return _report(jobs.open_job(show), as_json=as_json)
    if advise:
        question = Question(
            balance=tuple(filter(None, balance.split(","))),
            disruption=tuple(filter(None, disruption.split(","))),
            weight=None if weight is None else weight / 100,
            loss_percent=loss,
            first_share=first_part / 100,
        )
        _advise([jobs.open_job(job) for job in dict.fromkeys(advise)], question, as_json=as_json)
        return 0
    if retry:
        stored = jobs.open_job(retry)
        jobs.retry(stored)
    else:
        assert history is not None  # noqa: S101 - the group has one of them
        clusters, first, last = _covered(history, cluster)
        grids = _grids(scenarios, base, strategy, setting)
        snapshot = first_snapshot(history, clusters[0])
        named: dict[str, Any] = {}
        for scenario in (one for grid in grids for one in scenarios_of(grid, snapshot)):
            if named.setdefault(scenario.name, scenario) != scenario:
                raise ReplayError("Two scenarios have the same name.", where=scenario.name, remedy="Rename one.")
        job = Job(
            name=name,
            history=str(history.resolve()),
            clusters=clusters,
            first_day=first_day or first,
            last_day=last_day or last,
            days_per_task=days_per_task,
            scenarios=tuple(named.values()),
            runner=runner,
            workers=workers,
        )
        sys.stderr.write(f"{len(tasks_of(job)):,} tasks: {len(job.scenarios):,} scenarios over {job.history}\n")
        stored = jobs.submit(job)
    if detach:
        sys.stdout.write(f"{stored.name}\n")
        return 0
    _follow(stored)
    return _report(jobs.open_job(stored.name), as_json=as_json)


def _covered(history: Path, wanted: Sequence[str]) -> tuple[tuple[str, ...], str, str]:
    """Return the clusters that are replayed, and the first and last day that a history has of them."""
    from planner.history.manifest import complete_days

    days = list(complete_days(history))
    clusters = tuple(wanted) or tuple(sorted({day.manifest.cluster for day in days}))
    covered = sorted(day.manifest.day for day in days if day.manifest.cluster in clusters)
    if not covered:
        raise FormatError(
            "The history has no complete day of these clusters.",
            where=str(history),
            remedy="Give a history that `python -m planner history` made.",
        )
    return clusters, covered[0], covered[-1]


def _grids(files: Sequence[Path], base: str, strategies: Sequence[str], settings: Sequence[str]) -> "list[Grid]":
    from planner.replay.grid import Grid, grid_from_json, values_of
    from planner.simulate.scenario import Scenario
    from planner.workspace.opening import bytes_of, content_of, open_scenario

    common = content_of(open_scenario(base)) if base else None
    found = [grid_from_json(bytes_of(str(path)), path.name) for path in files]
    if common is not None:
        found = [replace(grid, base=common) for grid in found]
    if strategies or settings or not found:
        values: dict[str, tuple[Any, ...]] = {}
        for text in settings:
            setting, _, tried = text.partition("=")
            values[setting] = values_of(setting, tried)
        found.append(Grid(base=common or Scenario(), strategies=tuple(strategies), settings=values))
    return found


def _follow(stored: "StoredJob") -> None:
    """Tell how far a job is until it has ended; an interruption cancels it, a second one leaves it running."""
    from planner.replay import jobs

    said, stopping = "", False
    while True:
        try:
            status = jobs.read_status(stored.folder)
            if status.ended:
                return
            line = f"{status.stage}: {status.done:,} of {status.tasks:,} tasks"
            if status.remaining_s is not None:
                line += f", {status.rate_per_min:,.1f} per minute, about {status.remaining_s:,.0f} s left"
            if line != said and not stopping:
                sys.stderr.write(f"{line}\n")
                sys.stderr.flush()
                said = line
            time.sleep(_LOOK_S)
        except KeyboardInterrupt:
            if stopping:
                raise
            stopping = True
            sys.stderr.write("Stopping; once more to leave it running.\n")
            jobs.ask_to_cancel(stored)


def _list() -> None:
    from planner.replay import jobs

    for stored in jobs.list_jobs():
        status = stored.status
        title = stored.job.name if stored.job is not None else "unreadable"
        sys.stdout.write(f"{stored.name}  {status.state:9}  {status.done:,}/{status.tasks:,} tasks  {title}\n")


def _report(stored: "StoredJob", *, as_json: bool) -> int:
    from planner.replay.jobs import results_folder
    from planner.replay.queries import SCENARIO_MEASURES, ReplayResults
    from planner.replay.results import read_summary, result_files

    status, folder = stored.status, results_folder(stored.folder)
    results = ReplayResults(result_files(folder))
    rows: list[dict[str, Any]] = [] if results.empty else results.scenarios().to_pylist()
    if as_json:
        summary = read_summary(folder)
        content = {
            "job": stored.name,
            "folder": str(stored.folder),
            "status": asdict(status),
            "summary": asdict(summary) if summary is not None else None,
            "scenarios": rows,
        }
        sys.stdout.write(json.dumps(content, indent=1) + "\n")
    else:
        labels = {m.name: f"{m.label}{f' ({m.unit})' if m.unit else ''}" for m in SCENARIO_MEASURES}
        lines = [f"{stored.name}: {status.state}, {status.done:,} of {status.tasks:,} tasks"]
        lines[0] += f", digest {status.digest}" if status.digest else ""
        if status.what and status.state not in _NO_RESULT:
            lines.append(f"{status.what} {status.remedy}")
        for row in rows:
            lines.append(f"{row['scenario']} ({row['days']:,} days, {row['cycles']:,} cycles)")
            lines += [f"    {labels[measure]}: {row[measure]:,.4g}" for measure in _SHOWN]
        _print([*lines, f"Results: {folder}"])
    if status.state in _NO_RESULT:
        raise ReplayError(status.what, remedy=status.remedy)
    return 0 if status.state == "done" and not status.failed else _INCOMPLETE


def _advise(stored: "list[StoredJob]", question: Question, *, as_json: bool) -> None:
    """Print what the advisor says, as its page does."""
    from planner.advise.advice_text import advice_lines, advice_to_json
    from planner.advise.advisor import advise
    from planner.advise.material import configured_of, material_of, usable

    for one in stored:
        if not usable(one):
            raise ReplayError(
                "This replay has no results to compare yet.",
                where=one.name,
                remedy="Wait until it has ended, or retry.",
            )
    material = material_of(stored)
    configured = configured_of(stored[0].job) if stored[0].job is not None else {}
    advice = advise(material.rows, material.scenarios, question, configured)
    notes = (*material.notes, *advice.notes)
    if as_json:
        content = {"jobs": [one.name for one in stored], **advice_to_json(advice, configured), "notes": list(notes)}
        sys.stdout.write(json.dumps(content, indent=1) + "\n")
        return
    lines = advice_lines(advice, configured)
    if notes:
        lines += ["", "What to know about this comparison:", *(f"  {note}" for note in notes)]
    _print(lines)


def _print(lines: Sequence[str]) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))
