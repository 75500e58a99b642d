"""What a capacity planner does in a notebook, in few words; `import planner` offers all of it.

Thin: every function calls the one that the pages and commands call, and gives what that gives.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from functools import singledispatch
from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from planner.capture import run as capturing
from planner.capture.options import CaptureOptions
from planner.cluster.errors import ReplayError, SettingError
from planner.cluster.releases import release as named
from planner.cluster.snapshot import Snapshot
from planner.doors.lint import lint_file, lint_snapshot
from planner.explain.outcome import Outcome
from planner.figures.flow import move_flow
from planner.figures.scores import bars_by_name
from planner.figures.simulation import brokers_over_cycles, heat_map
from planner.formats.rows import table_to_arrow
from planner.namespaces.impact import SplitForecast, growing, split_forecasts
from planner.replay import jobs
from planner.replay.grid import Grid, job_over
from planner.replay.queries import ReplayResults
from planner.replay.results import result_files
from planner.share.link import LinkedScenario
from planner.share.lint import LintFinding
from planner.simulate import measures, run
from planner.simulate.edits.edit import Edit
from planner.simulate.measures import BrokerSeries, Comparison
from planner.simulate.scenario import Scenario, Step, scenario_from_json, scenario_to_json
from planner.simulate.strategies import under_strategy
from planner.simulate.what_if import Target, WhatIf, what_if
from planner.workspace.opening import content_of, open_scenario, open_snapshot

_LOOK_S = 0.3


def load_snapshot(source: str | PathLike[str]) -> Snapshot:
    """Load a snapshot.

    Args:
        source: A folder, a zip, a JSON document, the folder of a raw capture, or a sample by its name.

    Raises:
        FormatError: There is none, or it cannot be read.
        SnapshotError: It is no cluster.
    """
    return open_snapshot(str(source))[1]


def open_link(text: str) -> LinkedScenario:
    """Open a link of the pages, or a scenario file.

    Returns:
        The scenario, and the digest and name of the snapshot that it was made over.

    Raises:
        PlannerError: It cannot be read, or the workspace does not have the scenario that it names.
    """
    linked = open_scenario(text)
    return replace(linked, scenario=content_of(linked))


def capture_cluster(admin_url: str, out: str | PathLike[str], **options: Any) -> Snapshot:
    """Capture a running cluster with read-only requests.

    Args:
        admin_url: Address of the admin API of any broker, such as `http://broker-1:8080`.
        out: Folder for the raw answers and the snapshot; a capture that was cut short goes on there.
        options: Other fields of `planner.capture.options.CaptureOptions`.

    Raises:
        PlannerError: It cannot be captured.
    """
    known = {field.name for field in fields(CaptureOptions)}
    if unknown := sorted(set(options) - known):
        raise SettingError("This option does not exist.", where=unknown[0], remedy=f"Use one of {', '.join(known)}.")
    return capturing.capture_cluster(CaptureOptions(admin_url=admin_url, out=Path(out), **options)).snapshot


def make_scenario(
    *edits: Edit | Mapping[str, Any],
    base: Scenario | None = None,
    snapshot: Snapshot | None = None,
    strategy: str = "",
    **changes: Any,
) -> Scenario:
    """Make a scenario: what is changed about a cluster.

    Args:
        edits: Added to those of the base: edits, or mappings as in a scenario file, with their `kind`.
        base: Scenario to begin with.
        snapshot: The cluster; needed for a strategy alone.
        strategy: Shedding strategy, with the load manager and the placement that it needs.
        changes: Fields of `Scenario`, such as `name`, `settings` (added to those of the base), `cycles` or `seed`.

    Raises:
        ScenarioError: A value is out of bounds.
        SettingError: There is no such setting or strategy.
    """
    begun = base or Scenario()
    document = scenario_to_json(begun.over(snapshot) if snapshot else begun)
    steps = [edit if isinstance(edit, Mapping) else _written(edit) for edit in edits]
    document["steps"] = [*document.get("steps", []), *({"edit": dict(edit)} for edit in steps)]
    settings = {**document.get("settings", {}), **changes.pop("settings", {})}
    scenario = scenario_from_json({**document, "settings": settings, **changes})
    if not strategy:
        return scenario
    if snapshot is None:
        raise SettingError("A strategy needs a cluster.", where="strategy", remedy="Also pass its snapshot.")
    chosen = under_strategy(scenario, snapshot.settings, snapshot.info.load_manager, strategy)
    return replace(chosen, name=scenario.name or chosen.name)


def _written(edit: Edit) -> Mapping[str, Any]:
    written: Mapping[str, Any] = scenario_to_json(Scenario(steps=(Step(edit),)))["steps"][0]["edit"]
    return written


def run_scenario(snapshot: Snapshot, scenario: Scenario | None = None) -> Outcome:
    """Simulate a scenario over a snapshot.

    Returns:
        What happened: `summary`, `moves`, `events`, `series`, and `trace` with every cycle.

    Raises:
        PlannerError: The scenario does not fit the cluster.
    """
    return Outcome(run.simulate(snapshot, scenario or Scenario()))


def compare(outcomes: Mapping[str, Outcome]) -> Comparison:
    """Put simulations side by side, by what to call each; `to_pandas` makes a table of it."""
    traces = {name: outcome.trace for name, outcome in outcomes.items()}
    return measures.compare(traces, {name: outcome.summary for name, outcome in outcomes.items()})


def explain_decision(outcome: Outcome, *, broker: str = "", bundle: str = "", cycle: int = 1) -> tuple[WhatIf, ...]:
    """Say why a broker or a bundle is unloaded or stays, and from which value of which setting on it would not.

    Args:
        outcome: A simulation.
        broker: Broker id.
        bundle: Full name of a bundle, instead.
        cycle: Which cycle, from 1.

    Returns:
        For each strategy of the cluster's load manager and release what it does, why, and what would flip it; the one
        that decided has `ran`.

    Raises:
        PlannerError: There is no such cycle, broker or bundle.
    """
    if not 1 <= cycle <= len(outcome.trace.cycles):
        raise SettingError("This cycle does not exist.", where="cycle", remedy=f"Use 1 to {len(outcome.trace.cycles)}.")
    return what_if(outcome.trace, cycle - 1, Target(broker, bundle))


def replay_history(history: str | PathLike[str], scenarios: Sequence[Scenario] = (), **job: Any) -> ReplayResults:
    """Replay days of a history under scenarios, and wait for the results.

    Args:
        history: Folder of the history.
        scenarios: What is compared, each with a name of its own; how the cluster is, when there are none.
        job: Arguments of `planner.replay.grid.job_over` and fields of `planner.replay.spec.Job`, such as `clusters`,
            `first_day`, `runner` or `workers`.

    Raises:
        PlannerError: It cannot be run, or came to nothing.
    """
    grid = Grid(with_base=not scenarios, more=tuple(scenarios))
    stored = jobs.submit(job_over(Path(history), [grid], **{"name": "", **job}))
    try:
        while not (status := jobs.read_status(stored.folder)).ended:
            time.sleep(_LOOK_S)
    except KeyboardInterrupt:
        jobs.ask_to_cancel(stored)
        raise
    if status.state != "done":
        raise ReplayError(status.what or f"The replay was {status.state}.", where=stored.name, remedy=status.remedy)
    return ReplayResults(result_files(jobs.results_folder(stored.folder)))


def forecast_splits(
    snapshot: Snapshot, hours: float = 1.0, growth_percent: float = 0.0, scenario: Scenario | None = None
) -> tuple[SplitForecast, ...]:
    """Say which namespaces split within some hours, and which splits are refused, while all traffic grows.

    Args:
        snapshot: The cluster.
        hours: Within how many hours.
        growth_percent: By how much all traffic grows in that time.
        scenario: What happens meanwhile; nothing by default.

    Raises:
        PlannerError: A number is out of range, or the scenario does not fit the cluster.
    """
    trace = run.simulate(snapshot, growing(snapshot, hours, 1 + growth_percent / 100, scenario))
    return split_forecasts(trace, trace.end)


def lint(target: Snapshot | str | PathLike[str], release: str = "") -> tuple[LintFinding, ...]:
    """Check the settings of a cluster, each remedy tried on it, or those of a `broker.conf`.

    Args:
        target: A snapshot, or a settings file.
        release: Whose brokers read the file, such as `4.0.8`; by default that of the images in it, else the newest.

    Raises:
        PlannerError: It cannot be read, or holds no settings of the load balancer.
    """
    if isinstance(target, Snapshot):
        return lint_snapshot(target, target.info.cluster)
    return lint_file(Path(target), named(release) if release else None)


@singledispatch
def to_arrow(result: object, part: str = "") -> pa.Table:
    """Return a result as an Arrow table.

    Args:
        result: A snapshot, a simulation, its `series`, a comparison, or the results of a replay.
        part: Of a snapshot: `brokers`, `bundles` or `topics`.

    Returns:
        A row for each broker, bundle or topic; for each event of a simulation; for each broker in each cycle of a
        series; for each measure of a comparison; for each scenario of a replay.

    Raises:
        SettingError: There is no such table.
    """
    what = f"{type(result).__name__} has no table {part}".rstrip()
    raise SettingError(f"{what}.", remedy="Pass a snapshot, or the result of a function.")


@to_arrow.register
def _(result: Snapshot, part: str = "brokers") -> pa.Table:
    if part not in {"brokers", "bundles", "topics"}:
        raise SettingError("A snapshot has no such part.", where=part, remedy="Use brokers, bundles or topics.")
    return table_to_arrow(result, part)


@to_arrow.register
def _(result: Outcome) -> pa.Table:
    return pa.Table.from_pandas(result.events, preserve_index=False)


@to_arrow.register
def _(result: BrokerSeries) -> pa.Table:
    cycles, brokers = result.usage.shape
    tables = ("present", "usage", "cpu_demand_percent", "msg_rate_per_s", "throughput_bytes_per_s", "bundles")
    columns: dict[str, Any] = {
        "cycle": [cycle + 1 for cycle in range(cycles) for _ in range(brokers)],
        "at_ms": result.at_ms.repeat(brokers),
        "broker": list(result.brokers) * cycles,
    }
    return pa.table({**columns, **{name: getattr(result, name).ravel() for name in tables}})


@to_arrow.register
def _(result: Comparison) -> pa.Table:
    of_measures = [row.measure for row in result.rows]
    columns: dict[str, Any] = {key: [getattr(one, key) for one in of_measures] for key in ("name", "label", "unit")}
    for name, values in zip(result.names, zip(*(row.values for row in result.rows), strict=True), strict=True):  # noqa: PD011
        columns[name] = pa.array(values, pa.float64())
    return pa.table(columns)


@to_arrow.register
def _(result: ReplayResults) -> pa.Table:
    return result.scenarios()


def to_pandas(result: object, *part: str) -> pd.DataFrame:
    """Return a result as a data frame; arguments, rows and errors as of `to_arrow`."""
    frame: pd.DataFrame = to_arrow(result, *part).to_pandas()
    return frame


def figure(result: Outcome | Comparison, kind: str = "usage") -> Any:
    """Draw a result.

    Args:
        result: A simulation, or a comparison.
        kind: Of a simulation: `usage` (every broker over the cycles, and what happened), `heat` (a row for each broker)
            or `moves` (from which broker to which). Of a comparison: the name of a measure, such as
            `mean_std_percent`.

    Returns:
        A Plotly figure.

    Raises:
        SettingError: There is no such figure.
    """
    if isinstance(result, Comparison):
        for row in result.rows:
            if row.measure.name == kind:
                known = {n: v for n, v in zip(result.names, row.values, strict=True) if v is not None}
                return bars_by_name(known, None, f"{row.measure.label} {row.measure.unit}".rstrip())
        raise SettingError("This measure does not exist.", where=kind, remedy="Use the name of one of the rows.")
    if kind == "usage":
        events = [cycle.events for cycle in result.trace.cycles]
        return brokers_over_cycles(result.series, result.counts, events)
    if kind == "heat":
        return heat_map(result.series)
    if kind == "moves":
        return move_flow(result.moves)
    raise SettingError("This figure does not exist.", where=kind, remedy="Use usage, heat or moves.")
