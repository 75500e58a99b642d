"""`python -m planner bundles`: how many bundles a namespace should have, and where to cut it."""

import sys
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Group, Parameter

from planner.cli.output import check_writable, opened, write_file
from planner.simulate.planned_spec import PlannedTopics
from planner.weeks.spec import Weeks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.cluster.snapshot import Snapshot
    from planner.namespaces.advice import BundleAdvice
    from planner.namespaces.impact import SplitForecast

_NAMES: Final = {"count": "topics", "distribution": "rates", "bundles": "count"}
_BROKERS: Final = 10
_WEEKS: Final = Group("Over weeks", sort_key=2)
_PLANNED: Final = "planned|pattern|count|msg_rate_per_s|message_bytes|subscriptions|distribution|bundles"


def _option(field: str) -> str:
    return _NAMES.get(field, field.lower().replace("_", "-"))


def bundles(
    *,
    snapshot: Annotated[str, Parameter(metavar="PATH_OR_SAMPLE")] = "",
    namespace: Annotated[tuple[str, ...], Parameter(metavar="NAMESPACE", negative=())] = (),
    scenario: Annotated[str, Parameter(metavar="FILE_OR_LINK", allow_leading_hyphen=True)] = "",
    brokers: Annotated[int, Parameter(metavar="N")] = _BROKERS,
    seed: int = 0,
    moment: Annotated[tuple[str, ...], Parameter(metavar="PATH_OR_SAMPLE", negative=())] = (),
    hours: Annotated[float, Parameter(metavar="N")] = 0.0,
    growth_percent: Annotated[float, Parameter(metavar="N")] = 0.0,
    planned: Annotated[
        PlannedTopics,
        Parameter(
            name="*",
            parse=f"^({_PLANNED})$",
            name_transform=_option,
        ),
    ] = PlannedTopics(pattern=""),
    weeks: Annotated[Weeks, Parameter(name="*", group=_WEEKS, negative_iterable=())] = Weeks(),
    csv: Annotated[Path | None, Parameter(metavar="FILE", group=_WEEKS)] = None,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
) -> int:
    """Advise how many bundles a namespace needs, and where to cut it.

    Hashes the names of its topics as Pulsar does, so that what each number of bundles gives is exact. Cuts and a few
    numbers are simulated on the cluster. Nothing is carried out. Without --namespace, all namespaces with topics, the
    most uneven first. With --pattern instead of --snapshot, a namespace that does not exist yet, on empty brokers.
    Exit status: 0 keep it as it is, 1 something is recommended, 2 an input cannot be read or is out of range.

    Args:
        snapshot: A snapshot (folder, .zip, .json), a raw capture, or a sample by its file name, title or digest.
        namespace: Namespaces to look at.
        scenario: Scenario that happens meanwhile: a file, a link, or - for standard input.
        brokers: With --pattern, the number of brokers.
        seed: With --pattern, decides which topics carry most.
        moment: Snapshot of the same cluster at another moment, in which cuts have to hold as well.
        hours: Hours within which to look for splits.
        growth_percent: With --hours, by how much all traffic grows in that time.
        planned: With --pattern, the topics of the namespace.
        weeks: What to look at over the days of a history.
        csv: With --history, write a CSV with one row for each namespace.
        as_json: Print everything as JSON.
    """
    from planner.cluster.errors import ScenarioError
    from planner.namespaces.advice import advisable, bundle_advice
    from planner.namespaces.impact import growing, split_forecasts
    from planner.namespaces.population import populations
    from planner.share.bundle_advice import NO_TOPICS
    from planner.simulate.run import simulate
    from planner.workspace.opening import content_of, open_scenario

    if sum(map(bool, (snapshot, planned.pattern, weeks.history))) != 1:
        raise ScenarioError("Choose one thing to look at.", remedy="Use one of --snapshot, --pattern and --history.")
    only_weeks = [*_changed(weeks, Weeks(history=weeks.history)), *(["--csv"] if csv is not None else [])]
    besides = [name for name, value, usual in (("--brokers", brokers, _BROKERS), ("--seed", seed, 0)) if value != usual]
    _refuse("--history", weeks.history, only_weeks)
    _refuse("--hours", hours, ["--growth-percent"] if growth_percent else [])
    _refuse("--pattern", planned.pattern, [*_changed(planned, PlannedTopics(pattern=planned.pattern)), *besides])
    if weeks.history:
        return _over_weeks(weeks, csv, narrowed=bool(namespace or scenario or moment or hours), as_json=as_json)
    cluster = _planned(planned, brokers, seed) if planned.pattern else opened(snapshot)[1]
    asked = content_of(open_scenario(scenario), cluster) if scenario else None
    grown = growing(cluster, hours, 1 + growth_percent / 100, asked) if hours else None
    wanted = namespace or (cluster.namespaces if planned.pattern else ())
    others = [opened(one)[1] for one in moment]
    found = [
        bundle_advice(cluster, name, asked, history=populations(others, name), is_planned=bool(planned.pattern))
        for name in wanted or advisable(cluster)
    ]
    if not found and grown is None:
        raise ScenarioError(NO_TOPICS, remedy="Capture the cluster with topics, or describe them by a pattern.")
    splits = None
    if grown is not None:
        trace = simulate(cluster, grown)
        splits = split_forecasts(trace, trace.end)
    sys.stdout.write(_written(found, splits, wanted, as_json=as_json))
    return int(any(one.edits for one in found))


def _planned(topics: PlannedTopics, brokers: int, seed: int) -> "Snapshot":
    """Return a cluster that does not exist yet; an error names the option that is wrong."""
    from planner.cluster.errors import SettingError
    from planner.simulate.planned import plan_cluster
    from planner.simulate.planned_spec import PlannedCluster

    try:
        return plan_cluster(PlannedCluster(brokers=brokers, topics=(topics,)), seed)
    except SettingError as error:
        where = f"--{_option(error.where)}" if error.where else ""
        raise SettingError(error.what, where=where, remedy=error.remedy) from error


def _written(
    found: "list[BundleAdvice]",
    splits: "Sequence[SplitForecast] | None",
    wanted: "Sequence[str]",
    *,
    as_json: bool,
) -> str:
    """Return advice as text, or as JSON."""
    from planner.share.bundle_advice import advice_document, advice_text, forecast_text, overview_text
    from planner.share.export import json_text

    if as_json:
        documents = [advice_document(one, splits) for one in found]
        return json_text(documents[0] if len(wanted) == 1 else {"namespaces": documents})
    text = "\n".join(map(advice_text, found)) if wanted else overview_text(found)
    return text + (forecast_text(splits, wanted) if splits is not None else "")


def _changed(given: PlannedTopics | Weeks, usual: PlannedTopics | Weeks) -> list[str]:
    """Return the options that were given, of those that stand for fields."""
    names = [field.name for field in fields(given) if getattr(given, field.name) != getattr(usual, field.name)]
    return [f"--{_option(name)}" for name in names]


def _refuse(needed: str, value: object, given: list[str]) -> None:
    """Refuse options that are without effect where another one is not given."""
    from planner.cluster.errors import ScenarioError

    if given and not value:
        raise ScenarioError(
            f"Without {needed}, nothing uses {', '.join(given)}.", remedy=f"Add {needed}, or leave out {given[0]}."
        )


def _over_weeks(asked: Weeks, csv: Path | None, *, narrowed: bool, as_json: bool) -> int:
    """Print advice over weeks; tell how far it is meanwhile. What would narrow or change it is refused."""
    from planner.cluster.errors import ReplayError, ScenarioError
    from planner.share.export import json_text
    from planner.weeks.advice import week_document, weeks_csv
    from planner.weeks.report import week_lines
    from planner.weeks.run import run_weeks

    if narrowed:
        raise ScenarioError(
            "--history looks at all namespaces, as they were recorded.",
            remedy="Leave out --namespace, --scenario, --moment and --hours.",
        )

    def progress(done: int, tasks: int, where: str) -> None:
        sys.stderr.write(f"{done:,} of {tasks:,} tasks done, on {where}\n")
        sys.stderr.flush()

    if csv is not None:
        check_writable(csv)
    found = run_weeks(asked, progress)
    sys.stderr.writelines(f"note: {note}\n" for note in found.notes)
    if not found.rows:
        raise ReplayError("There is no advice: every task failed.", remedy="Correct what the notes above name.")
    if csv is not None:
        write_file(csv, weeks_csv(found.rows))
    if as_json:
        sys.stdout.write(json_text({"weeks": week_document(found.rows), "notes": list(found.notes)}))
    else:
        sys.stdout.write("\n".join(week_lines(found.rows)) + "\n")
    return int(any(row.is_steady for row in found.rows))
