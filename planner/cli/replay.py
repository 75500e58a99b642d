"""`python -m planner replay`: replays a history under scenarios, with the jobs that the Replay page shows."""

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import ArgumentCollection, Group, Parameter

from planner.advise.objectives import OBJECTIVES, Question
from planner.cluster.errors import ReplayError
from planner.cluster.releases import ReleaseName
from planner.replay.runner import Runner

if TYPE_CHECKING:
    from planner.replay.jobs import StoredJob

_LOOK_S: Final = 0.3
_INCOMPLETE: Final = 1
_NO_RESULT: Final = ("failed", "lost")
_USUAL: Final = Question()


def _exactly_one(actions: ArgumentCollection) -> None:
    if len(actions.filter_by(value_set=True)) != 1:
        raise ValueError(f"Use one of {', '.join(action.name for action in actions)}.")


_ACTIONS = Group("What to do", help="One of these.", validator=_exactly_one, sort_key=1)
_TIME = Group("What is replayed", sort_key=2)
_SCENARIOS = Group("Under which scenarios", sort_key=3)
_QUESTION = Group("What counts for --advise", sort_key=4)
_PLACE = Group("Where it runs", sort_key=5)

_Job = Annotated[str, Parameter(group=_ACTIONS, metavar="JOB")]
_Percent = Parameter(group=_QUESTION, metavar="PERCENT")


def _objectives(side: str) -> Parameter:
    known = ", ".join(one.name for one in OBJECTIVES if one.side == side)
    return Parameter(group=_QUESTION, metavar="NAMES", help=f"Objectives of {side}, separated by commas: {known}.")


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
    release: Annotated[tuple[ReleaseName, ...], Parameter(group=_SCENARIOS)] = (),
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

    Replays a history under a grid of scenarios, as a job that the Replay page also shows, and prints the result of each
    scenario; or prints what finished replays recommend. Exit status: 0 all tasks succeeded, 1 some failed or the job
    was cancelled, 2 the replay cannot run.

    Args:
        history: Folder of the history to replay.
        list_jobs: List all jobs.
        show: Print the status and results of a job.
        cancel: Stop a job.
        retry: Run the remaining tasks of a job.
        delete: Delete a job and its results.
        advise: Print which settings replays over the same days recommend, and how certain that is.
        cluster: Only this cluster; may be repeated (default: all).
        first_day: Day, yyyy-mm-dd in UTC (default: the first day of the history).
        last_day: Day, yyyy-mm-dd in UTC, inclusive (default: the last day of the history).
        days_per_task: Days per task; 0 for all.
        scenarios: A grid, or a list of scenarios; may be repeated.
        base: Scenario that all others start from.
        strategy: A shedding strategy; may be repeated.
        setting: Values of a setting; may be repeated, which runs all combinations.
        release: A further release of Pulsar for each scenario; may be repeated.
        weight: Weight of balance against disruption, 0 to 100 (default: the balanced choice).
        first_part: Share of the days that settings are chosen on; the rest check the choice.
        loss: How much worse balance or disruption may become.
        balance: Objectives of balance.
        disruption: Objectives of disruption.
        runner: One process, a pool, or Spark: here, at SPARK_REMOTE, or at PLANNER_SPARK_MASTER.
        workers: Processes, cores of a local Spark, or parallel tasks on a cluster (default: all).
        name: Name of the job.
        detach: Print the job's name and do not wait for it.
        as_json: Print the results as JSON.
    """
    from planner.history.passed_over import passed_over
    from planner.replay import jobs
    from planner.replay.grid import grids_of, job_over
    from planner.replay.report import job_line
    from planner.replay.spec import tasks_of
    from planner.workspace.opening import content_of, open_scenario

    if list_jobs:
        _print([job_line(stored) for stored in jobs.list_jobs()])
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
    elif history is None:  # what was given is empty
        raise ReplayError("A job name is required.", where="replay", remedy="--list shows the names of all jobs.")
    else:
        job = job_over(
            history,
            grids_of(scenarios, content_of(open_scenario(base)) if base else None, strategy, setting, release),
            cluster,
            first_day,
            last_day,
            name=name,
            days_per_task=days_per_task,
            runner=runner,
            workers=workers,
        )
        sys.stderr.writelines(f"note: {sentence}\n" for sentence in passed_over(history))
        sys.stderr.write(f"{len(tasks_of(job)):,} tasks: {len(job.scenarios):,} scenarios over {job.history}\n")
        stored = jobs.submit(job)
    if detach:
        sys.stdout.write(f"{stored.name}\n")
        return 0
    _follow(stored)
    return _report(jobs.open_job(stored.name), as_json=as_json)


def _follow(stored: "StoredJob") -> None:
    """Tell how far a job is until it has ended; an interruption cancels it, a second one leaves it running."""
    from planner.replay import jobs
    from planner.replay.report import progress_line

    last_line, stopping = "", False
    while True:
        try:
            status = jobs.read_status(stored.folder)
            if status.ended:
                return
            if (line := progress_line(status)) != last_line and not stopping:
                last_line = line
                sys.stderr.write(f"{last_line}\n")
                sys.stderr.flush()
            time.sleep(_LOOK_S)
        except KeyboardInterrupt:
            if stopping:
                raise
            stopping = True
            sys.stderr.write("Stopping. Press Ctrl+C again to leave the job running.\n")
            jobs.ask_to_cancel(stored)


def _report(stored: "StoredJob", *, as_json: bool) -> int:
    from planner.replay.report import report_lines, report_to_json

    if as_json:
        sys.stdout.write(json.dumps(report_to_json(stored), indent=1) + "\n")
    else:
        _print(report_lines(stored))
    status = stored.status
    if status.state in _NO_RESULT:
        raise ReplayError(status.what, remedy=status.remedy)
    return 0 if status.state == "done" and not status.failed else _INCOMPLETE


def _advise(stored: "list[StoredJob]", question: Question, *, as_json: bool) -> None:
    """Print what the advisor says, as its page does."""
    from planner.advise.advice_text import advice_lines, advice_to_json
    from planner.advise.advisor import advise
    from planner.advise.material import configured_of, material_of

    material = material_of(stored)
    configured = configured_of(stored[0].job) if stored[0].job is not None else {}
    advice = advise(material.rows, material.scenarios, question, configured)
    notes = [*material.notes, *advice.notes]
    if as_json:
        content = {"jobs": [one.name for one in stored], **advice_to_json(advice, configured), "notes": notes}
        sys.stdout.write(json.dumps(content, indent=1) + "\n")
        return
    heading = ["", "Notes on this comparison:"] if notes else []
    _print([*advice_lines(advice, configured), *heading, *(f"  {note}" for note in notes)])


def _print(lines: Sequence[str]) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))
