"""`python -m planner replay`: replays a history under scenarios, with the jobs that the Replay page shows."""

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final, get_args

from planner.advise.advice_text import advice_lines, advice_to_json
from planner.advise.advisor import Question, advise
from planner.advise.material import configured_of, material_of, usable
from planner.advise.objectives import OBJECTIVES
from planner.cluster.errors import FormatError, ReplayError
from planner.history.manifest import complete_days
from planner.replay import jobs
from planner.replay.grid import Grid, first_snapshot, grid_from_json, scenarios_of, values_of
from planner.replay.queries import SCENARIO_MEASURES, ReplayResults
from planner.replay.results import read_summary, result_files
from planner.replay.spec import Job, Runner, tasks_of
from planner.share.link import decode_link
from planner.share.scenario_file import MOST_BYTES, read_scenario_file
from planner.simulate.scenario import Scenario

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


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "replay",
        help="replay a history under scenarios",
        description=(
            "Replay a history under a grid of scenarios, as a job that the Replay page shows too, and print what each"
            " came to; or say what finished replays recommend. Exit status: 0 all tasks ended well, 1 some failed or"
            " the job was cancelled, 2 it cannot be run."
        ),
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--history", type=Path, help="folder of the history to replay")
    what.add_argument("--list", action="store_true", help="list the jobs there are")
    for name, text in (
        ("show", "print how a job is and what it came to"),
        ("cancel", "stop a job"),
        ("retry", "run what is left of a job"),
        ("delete", "delete a job and its results"),
    ):
        what.add_argument(f"--{name}", metavar="JOB", help=text)
    what.add_argument(
        "--advise",
        nargs="+",
        metavar="JOB",
        help="say which settings replays over the same days recommend, and how sure that is",
    )
    _add_time(parser)
    _add_scenarios(parser)
    _add_question(parser)
    where = parser.add_argument_group("where it runs")
    where.add_argument(
        "--runner",
        choices=get_args(Runner),
        default="processes",
        help="one process, a pool, or Spark: here, at SPARK_REMOTE, or at PLANNER_SPARK_MASTER (%(default)s)",
    )
    where.add_argument(
        "--workers",
        type=int,
        default=0,
        help="processes, cores of a local Spark, or tasks at once on a cluster (as many as there are)",
    )
    where.add_argument("--name", default="", help="what to call the job")
    where.add_argument("--detach", action="store_true", help="print the job's name and do not wait for it")
    where.add_argument("--json", action="store_true", help="print the results as JSON")


def _add_time(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what is replayed")
    group.add_argument("--cluster", action="append", default=[], help="only this cluster; may be given again (all)")
    group.add_argument("--first-day", default="", help="yyyy-mm-dd, UTC (the first there is)")
    group.add_argument("--last-day", default="", help="yyyy-mm-dd, UTC, included (the last there is)")
    group.add_argument(
        "--days-per-task",
        type=int,
        default=1,
        help="days that a task works through without a break; 0 for all (%(default)s)",
    )


def _add_scenarios(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("under which scenarios")
    group.add_argument(
        "--scenarios", action="append", type=Path, default=[], metavar="FILE", help="a grid, or a list of scenarios"
    )
    group.add_argument("--base", metavar="FILE_OR_LINK", help="scenario that all have in common")
    group.add_argument(
        "--strategy", action="append", default=[], metavar="NAME", help="a shedding strategy; may be given again"
    )
    group.add_argument(
        "--setting",
        action="append",
        default=[],
        metavar="NAME=V1,V2",
        help="values to try of a setting; may be given again, then all combinations are",
    )


def _add_question(parser: argparse.ArgumentParser) -> None:
    usual = Question()
    group = parser.add_argument_group("what counts for --advise")
    group.add_argument(
        "--weight",
        type=float,
        metavar="PERCENT",
        help="weight of balance against disruption, 0 to 100 (the knee of the front)",
    )
    group.add_argument(
        "--first-part",
        type=float,
        default=usual.first_share * 100,
        metavar="PERCENT",
        help="share of the days that the holdout chooses on (%(default)g)",
    )
    group.add_argument(
        "--loss",
        type=float,
        default=usual.loss_percent,
        metavar="PERCENT",
        help="how much worse a side may become (%(default)g)",
    )
    for side, default in (("balance", usual.balance), ("disruption", usual.disruption)):
        known = ", ".join(one.name for one in OBJECTIVES if one.side == side)
        group.add_argument(
            f"--{side}",
            default=",".join(default),
            metavar="NAMES",
            help=f"objectives of {side}, with commas in between: {known} (%(default)s)",
        )


def run(args: argparse.Namespace) -> int:
    """Do what the arguments say.

    Raises:
        PlannerError: Something cannot be read or run.
    """
    if args.list:
        return _list()
    for name, action in (("cancel", jobs.ask_to_cancel), ("delete", jobs.delete)):
        if getattr(args, name):
            action(jobs.open_job(getattr(args, name)))
            return 0
    if args.show:
        return _report(jobs.open_job(args.show), as_json=args.json)
    if args.advise:
        return _advise(args)
    if args.retry:
        stored = jobs.open_job(args.retry)
        jobs.retry(stored)
    else:
        job = _job(args)
        sys.stderr.write(f"{len(tasks_of(job)):,} tasks: {len(job.scenarios):,} scenarios over {job.history}\n")
        stored = jobs.submit(job)
    if args.detach:
        sys.stdout.write(f"{stored.name}\n")
        return 0
    _follow(stored)
    return _report(jobs.open_job(stored.name), as_json=args.json)


def _job(args: argparse.Namespace) -> Job:
    days = list(complete_days(args.history))
    clusters = tuple(args.cluster) or tuple(sorted({day.manifest.cluster for day in days}))
    covered = sorted(day.manifest.day for day in days if day.manifest.cluster in clusters)
    if not covered:
        raise FormatError(
            "The history has no complete day of these clusters.",
            where=str(args.history),
            remedy="Give a history that `python -m planner history` made.",
        )
    snapshot = first_snapshot(args.history, clusters[0])
    scenarios: dict[str, Scenario] = {}
    for wanted in _grids(args):
        for scenario in scenarios_of(wanted, snapshot):
            if scenarios.setdefault(scenario.name, scenario) != scenario:
                raise ReplayError("Two scenarios have the same name.", where=scenario.name, remedy="Rename one.")
    return Job(
        name=args.name,
        history=str(args.history.resolve()),
        clusters=clusters,
        first_day=args.first_day or covered[0],
        last_day=args.last_day or covered[-1],
        days_per_task=args.days_per_task,
        scenarios=tuple(scenarios.values()),
        runner=args.runner,
        workers=args.workers,
    )


def _grids(args: argparse.Namespace) -> list[Grid]:
    base = _base(args.base) if args.base else None
    found = []
    for path in args.scenarios:
        wanted = grid_from_json(_read(path), path.name)
        found.append(wanted if base is None else replace(wanted, base=base))
    if args.strategy or args.setting or not found:
        settings: dict[str, tuple[Any, ...]] = {}
        for text in args.setting:
            name, _, values = text.partition("=")
            settings[name] = values_of(name, values)
        found.append(Grid(base=base or Scenario(), strategies=tuple(args.strategy), settings=settings))
    return found


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "its name cannot be used"
        raise FormatError(f"Cannot read: {reason}.", where=str(path)[:200], remedy="Give a file.") from error


def _base(text: str) -> Scenario:
    linked = read_scenario_file(_read(Path(text)), text) if Path(text).is_file() else decode_link(text)
    if linked.scenario is None:
        raise FormatError(
            "The link names a scenario that a server keeps.", where=text[:100], remedy="Export it there as a file."
        )
    return linked.scenario


def _follow(stored: jobs.StoredJob) -> None:
    """Tell how far a job is until it has ended; an interruption cancels it."""
    said = ""
    while True:
        try:
            status = jobs.read_status(stored.folder)
            line = f"{status.stage}: {status.done:,} of {status.tasks:,} tasks"
            if status.remaining_s is not None:
                line += f", {status.rate_per_min:,.1f} per minute, about {status.remaining_s:,.0f} s left"
            if status.ended:
                return
            if line != said:
                sys.stderr.write(f"{line}\n")
                sys.stderr.flush()
                said = line
            time.sleep(_LOOK_S)
        except KeyboardInterrupt:
            sys.stderr.write("Stopping; once more to leave it running.\n")
            jobs.ask_to_cancel(stored)
            _until_ended(lambda: jobs.read_status(stored.folder).ended)


def _until_ended(ended: Callable[[], bool]) -> None:
    while not ended():
        time.sleep(_LOOK_S)


def _list() -> int:
    for stored in jobs.list_jobs():
        status = stored.status
        title = stored.job.name if stored.job is not None else "unreadable"
        sys.stdout.write(f"{stored.name}  {status.state:9}  {status.done:,}/{status.tasks:,} tasks  {title}\n")
    return 0


def _report(stored: jobs.StoredJob, *, as_json: bool) -> int:
    status = stored.status
    results = ReplayResults(result_files(jobs.results_folder(stored.folder)))
    rows: list[dict[str, Any]] = [] if results.empty else results.scenarios().to_pylist()
    if as_json:
        summary = read_summary(jobs.results_folder(stored.folder))
        content = {
            "job": stored.name,
            "folder": str(stored.folder),
            "status": asdict(status),
            "summary": asdict(summary) if summary is not None else None,
            "scenarios": rows,
        }
        sys.stdout.write(json.dumps(content, indent=1) + "\n")
    else:
        sys.stdout.write(f"{stored.name}: {status.state}, {status.done:,} of {status.tasks:,} tasks")
        sys.stdout.write(f", digest {status.digest}\n" if status.digest else "\n")
        if status.what and status.state not in _NO_RESULT:
            sys.stdout.write(f"{status.what} {status.remedy}\n")
        sys.stdout.write("".join(f"{line}\n" for line in _table(rows)))
        sys.stdout.write(f"Results: {jobs.results_folder(stored.folder)}\n")
    if status.state in _NO_RESULT:
        raise ReplayError(status.what, remedy=status.remedy)
    return 0 if status.state == "done" and not status.failed else _INCOMPLETE


def _table(rows: list[dict[str, Any]]) -> list[str]:
    """Return lines with the most telling measures of each scenario."""
    labels = {m.name: f"{m.label}{f' ({m.unit})' if m.unit else ''}" for m in SCENARIO_MEASURES}
    lines = []
    for row in rows:
        lines.append(f"{row['scenario']} ({row['days']:,} days, {row['cycles']:,} cycles)")
        lines += [f"    {labels[name]}: {row[name]:,.4g}" for name in _SHOWN]
    return lines


def _advise(args: argparse.Namespace) -> int:
    """Print what the advisor says, as its page does."""
    stored = [jobs.open_job(name) for name in dict.fromkeys(args.advise)]
    for one in stored:
        if not usable(one):
            raise ReplayError(
                "This replay has no results to compare yet.",
                where=one.name,
                remedy="Wait until it has ended, or retry.",
            )
    question = Question(
        balance=tuple(filter(None, args.balance.split(","))),
        disruption=tuple(filter(None, args.disruption.split(","))),
        weight=None if args.weight is None else args.weight / 100,
        loss_percent=args.loss,
        first_share=args.first_part / 100,
    )
    material = material_of(stored)
    configured = configured_of(stored[0].job) if stored[0].job is not None else {}
    advice = advise(material.rows, material.scenarios, question, configured)
    notes = (*material.notes, *advice.notes)
    if args.json:
        content = {"jobs": [one.name for one in stored], **advice_to_json(advice, configured), "notes": list(notes)}
        sys.stdout.write(json.dumps(content, indent=1) + "\n")
        return 0
    lines = advice_lines(advice, configured)
    if notes:
        lines += ["", "What to know about this comparison:", *(f"  {note}" for note in notes)]
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return 0
