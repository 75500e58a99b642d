"""A plan as JSON and as CSV, for other programs and for spreadsheets."""

import csv
import dataclasses
import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from planner.cluster.digest import snapshot_digest
from planner.cluster.moments import LAST_MS
from planner.cluster.relocation import Relocation
from planner.cluster.setting import conf_value
from planner.cluster.text import moment
from planner.cluster.units import MS_PER_MIN
from planner.explain.doubt import doubt_about
from planner.explain.finding import Finding
from planner.share.asked import Asked, asked_of
from planner.share.commands import CommandOptions, changed_settings, final_moves
from planner.share.hand_over import commands_of
from planner.share.link import scenario_digest
from planner.share.step_table import steps_json
from planner.simulate.admin_commands import Command
from planner.simulate.event import Event
from planner.simulate.measures import MEASURES, Summary
from planner.simulate.scenario import Scenario, Step, scenario_to_json
from planner.simulate.summary import summary
from planner.simulate.trace import Trace

FORMAT_VERSION: Final = 1
"""Version of the JSON document."""

EVENT_COLUMNS: Final = (
    "cycle",
    "minute",
    "at",
    "at_ms",
    "kind",
    "bundle",
    "source",
    "destination",
    "acceptable",
    "children",
    "why",
    "topics",
    "producers",
    "consumers",
    "msg_rate_per_s",
    "throughput_bytes_per_s",
)
"""Columns of the CSV: cycle from 0, minutes since the start, UTC and ms since 1970, then as `Event` has them."""

MOVE_COLUMNS: Final = ("bundle", "source", "destination", *EVENT_COLUMNS[10:])
"""Columns about a relocation from start to end."""

_EVENT: Final = EVENT_COLUMNS[3:]

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def plan_document(
    trace: Trace,
    *,
    snapshot_name: str = "",
    findings: Sequence[Finding] = (),
    options: CommandOptions | None = None,
    asked: Asked | None = None,
    everything: bool = False,
) -> dict[str, Any]:
    """Return everything a plan says as JSON values; numbers that are not finite are null.

    Args:
        trace: The simulation.
        snapshot_name: What the snapshot is called.
        findings: What the diagnosis says of it.
        options: How commands are written.
        asked: The simulation divided, where the caller has it.
        everything: The commands are also those for what only the load balancer does.
    """
    divided = asked or asked_of(trace)
    commands = commands_of(divided, options, everything=everything)
    document = {
        "format_version": FORMAT_VERSION,
        "plan_digest": trace.digest(),
        "complete": trace.complete,
        "snapshot": {
            "digest": snapshot_digest(trace.start),
            "name": snapshot_name,
            "cluster": trace.start.info.cluster,
            "captured_at_ms": trace.start.info.captured_at_ms,
        },
        "scenario_digest": scenario_digest(trace.scenario),
        "scenario": scenario_to_json(trace.scenario),
        "settings_changed": {
            name: {"before": before, "after": after} for name, (before, after) in changed_settings(trace).items()
        },
        "measures": _measures(summary(trace)) if trace.cycles else {},
        "doubt": doubt_about(trace.start, trace.scenario).sentence,
        "diagnosis": [_plain(finding) for finding in findings],
        "moves": [_columns(move, MOVE_COLUMNS) for move in final_moves(trace)],
        "asked": divided.sentence,
        "preview": {
            "moves": [_columns(move, MOVE_COLUMNS) for move in divided.moves],
            "splits": [
                {"bundle": one.bundle, "children": list(one.children), "why": one.why} for one in divided.splits
            ],
        },
        "commands": [_command(command) for command in commands],
        "steps": steps_json(commands),
        "events": [
            {"cycle": cycle.index, **_columns(event, _EVENT)} for cycle in trace.cycles for event in cycle.events
        ],
        "notes": trace.notes,
    }
    finite: dict[str, Any] = _finite(document)
    return finite


def json_text(document: Mapping[str, Any] | Sequence[Any]) -> str:
    """Return a document as text; equal ones give equal text."""
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def csv_text(header: Sequence[str], rows: Iterable[Iterable[Any]]) -> str:
    """Return a table as text (RFC 4180, UTF-8), with a row of names first; no cell is a formula."""
    target = io.StringIO()
    csv.writer(target).writerows([header, *(map(no_formula, row) for row in rows)])
    return target.getvalue()


def events_csv(trace: Trace) -> str:
    """Return one row for each event."""
    start_ms = trace.start.info.captured_at_ms
    return csv_text(EVENT_COLUMNS, (_row(c.index, event, start_ms) for c in trace.cycles for event in c.events))


def _row(cycle: int, event: Event, start_ms: int) -> tuple[str | int | float, ...]:
    at = moment(event.at_ms)
    if event.at_ms <= LAST_MS:
        at = datetime.fromtimestamp(event.at_ms / 1000, tz=UTC).isoformat(timespec="milliseconds")
    cells = _columns(event, _EVENT)
    cells |= {name: " ".join(cells[name]) for name in ("acceptable", "children")}
    return (cycle, round((event.at_ms - start_ms) / MS_PER_MIN, 3), at, *cells.values())


def no_formula(cell: Any) -> Any:
    """Return a cell of a CSV file; a text that a spreadsheet would take for a formula begins with an apostrophe."""
    return f"'{cell}" if isinstance(cell, str) and cell.lstrip().startswith(_FORMULA) else cell


def _columns(move: Relocation, names: Sequence[str]) -> dict[str, Any]:
    return {name: getattr(move, name) for name in names}


def _measures(numbers: Summary) -> dict[str, Any]:
    return {
        measure.name: {"value": getattr(numbers, measure.name), "unit": measure.unit, "label": measure.label}
        for measure in MEASURES
    }


def _plain(finding: Finding) -> dict[str, Any]:
    left_out = {"explains"}  # what follows from it is no finding
    names = [field.name for field in dataclasses.fields(finding) if field.name not in left_out]
    fields = {name: getattr(finding, name) for name in names}
    edits = scenario_to_json(Scenario().with_steps(*map(Step, finding.edits))).get("steps", [])
    return {
        **fields,
        "changes": {name: conf_value(value) for name, value in finding.changes.items()},
        "edits": [step["edit"] for step in edits],
    }


def _command(command: Command) -> dict[str, Any]:
    return {**dataclasses.asdict(command), "line": command.line}


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _finite(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return value
