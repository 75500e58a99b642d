"""Plans as JSON and CSV hold what the simulation found, whatever is in the names."""

import csv
import io
import json
from dataclasses import replace

from planner.cluster.digest import snapshot_digest
from planner.cluster.moments import LAST_MS
from planner.cluster.snapshot import Snapshot
from planner.explain.diagnosis import diagnose
from planner.share.export import EVENT_COLUMNS, events_csv, json_text, plan_document
from planner.simulate.edits.remove_broker import RemoveBroker
from planner.simulate.edits.split_bundle import SplitBundle
from planner.simulate.event import Event
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario, Step, scenario_from_json
from planner.simulate.summary import summary
from planner.simulate.trace import Trace


def made(snapshot: Snapshot) -> Trace:
    steps = (
        Step(SplitBundle(bundle=snapshot.bundle_names[0])),
        Step(RemoveBroker(broker=snapshot.brokers.name[0], at_min=1)),
    )
    return simulate(snapshot, Scenario(steps=steps, settings={"minUnloadMessage": 9}, cycles=4))


def test_json_says_it_all_again(small: Snapshot) -> None:
    trace = made(small)
    document = json.loads(json_text(plan_document(trace, snapshot_name="mine", findings=diagnose(trace))))
    assert document["plan_digest"] == trace.digest()
    assert document["snapshot"]["digest"] == snapshot_digest(small)
    again = simulate(small, scenario_from_json(document["scenario"]))
    assert again.digest() == document["plan_digest"]
    assert document["settings_changed"] == {"minUnloadMessage": {"before": 1000, "after": 9}}
    assert document["measures"]["splits"]["value"] == summary(trace).splits
    assert [event["bundle"] for event in document["events"]] == [event.bundle for event in trace.events]
    assert len(document["diagnosis"]) == len(diagnose(trace))
    assert {"splits", "unloads", "leaving"} <= {command["section"] for command in document["commands"]}
    one, other = (plan_document(one, snapshot_name="mine", findings=diagnose(one)) for one in (again, trace))
    assert json_text(one) == json_text(other)


def test_numbers_without_end_are_null(small: Snapshot) -> None:
    trace = made(small)
    event = replace(trace.events[0], msg_rate_per_s=float("nan"), throughput_bytes_per_s=float("inf"))
    cycle = replace(trace.cycles[0], events=(event,))
    document = plan_document(replace(trace, cycles=(cycle,)))
    assert document["events"][0]["msg_rate_per_s"] is None
    assert document["events"][0]["throughput_bytes_per_s"] is None
    json.dumps(document, allow_nan=False)


def test_csv_has_a_row_for_each_event(small: Snapshot) -> None:
    trace = made(small)
    rows = list(csv.DictReader(io.StringIO(events_csv(trace))))
    assert tuple(rows[0]) == EVENT_COLUMNS
    assert [row["bundle"] for row in rows] == [event.bundle for event in trace.events]
    assert [float(row["throughput_bytes_per_s"]) for row in rows] == [e.throughput_bytes_per_s for e in trace.events]
    start = small.info.captured_at_ms
    assert [round(float(row["minute"]) * 60_000) for row in rows] == [e.at_ms - start for e in trace.events]
    assert sum(int(row["cycle"]) == 1 for row in rows) == len(trace.cycles[1].events)


def test_csv_runs_nothing_in_a_spreadsheet(small: Snapshot) -> None:
    trace = made(small)
    hostile = Event('=HYPERLINK("x")', "+1", "@SUM(A1)", ("-2",), 'a,"b"\r\nc', at_ms=1, kind="shed")
    cycle = replace(trace.cycles[0], events=(hostile,))
    row = next(csv.DictReader(io.StringIO(events_csv(replace(trace, cycles=(cycle,))), newline="")))
    assert (row["bundle"], row["source"], row["destination"], row["acceptable"]) == (
        '\'=HYPERLINK("x")',
        "'+1",
        "'@SUM(A1)",
        "'-2",
    )
    assert row["why"] == 'a,"b"\r\nc'


def test_a_simulation_that_was_stopped_at_once(small: Snapshot) -> None:
    trace = simulate(small, Scenario(cycles=4), cancelled=lambda: True)
    assert trace.cycles == ()
    document = plan_document(trace)
    assert document["complete"] is False
    assert document["measures"] == {}
    assert document["events"] == []
    assert diagnose(trace) == ()
    assert events_csv(trace).strip() == ",".join(EVENT_COLUMNS)


def test_events_after_the_last_year_of_the_calendar_are_told(small: Snapshot) -> None:
    late = replace(small, info=replace(small.info, captured_at_ms=LAST_MS))
    trace = simulate(late, Scenario(steps=(Step(RemoveBroker(broker=small.brokers.name[0], at_min=5)),), cycles=3))
    assert "after the year 9999" in events_csv(trace)
