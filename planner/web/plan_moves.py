"""What the Moves page draws: the projected moves, why, whom they disconnect, and what to take away."""

from collections.abc import Sequence
from dataclasses import asdict

import numpy as np
import pandas as pd
import streamlit as st

from planner.figures.flow import move_flow
from planner.figures.images import before_after_image, usage_image
from planner.model.errors import PlannerError
from planner.plan.commands import SECTIONS, CommandOptions, command_script, final_moves, plan_commands
from planner.plan.diagnosis import diagnose
from planner.plan.export import events_csv, plan_json
from planner.plan.finding import Finding
from planner.plan.report import Chart, markdown_report
from planner.simulate.journeys import disconnections
from planner.simulate.measures import blast_radius, broker_series
from planner.simulate.trace import Event, Trace
from planner.web import scenarios, state
from planner.web.text import bytes_per_s, count
from planner.web.what_if import event_frame
from planner.web.widgets import chart, show_error, table

__all__ = ["draw", "finding_cards"]

_MANY = 12
_MOVED = {"shed", "placed", "moved"}
_ICONS = {"high": ":material/error:", "medium": ":material/warning:", "low": ":material/info:"}


def _blast_radius(trace: Trace, events: Sequence[Event]) -> None:
    """Draw whom the moves disconnect."""
    shown = set(map(id, events))
    radius = blast_radius([e for cycle in disconnections(trace) for e in cycle if id(e) in shown])
    numbers = {
        "Bundles moved": sum(event.kind in _MOVED for event in events),
        "Topics cut off": radius.topics,
        "Producers cut off": radius.producers,
        "Consumers cut off": radius.consumers,
    }
    for column, (label, value) in zip(st.columns(4), numbers.items(), strict=True):
        column.metric(label, f"{value:,}", help="Counted once for each time that they have to reconnect.")


def _choose(trace: Trace) -> list[Event]:
    """Draw the filter and return the events that pass it."""
    kinds = sorted({event.kind for event in trace.events})
    left, middle, right = st.columns([2, 2, 2])
    wanted = left.multiselect(
        "What", kinds, [kind for kind in kinds if kind in _MOVED] or kinds, format_func=lambda k: k.replace("_", " ")
    )
    brokers = sorted({name for event in trace.events for name in (event.source, event.destination) if name})
    chosen = middle.multiselect("From or to", brokers, placeholder="any broker")
    text = right.text_input("Bundle", placeholder="part of its name", max_chars=300).strip()
    return [
        event
        for event in trace.events
        if event.kind in wanted
        and (not chosen or event.source in chosen or event.destination in chosen)
        and text in event.bundle
    ]


def _moves(trace: Trace) -> None:
    events = _choose(trace)
    if not events:
        st.info("Nothing of this kind happens in this scenario.", icon=":material/check_circle:")
        return
    _blast_radius(trace, events)
    flows: dict[tuple[str, str], tuple[int, float]] = {}
    for event in events:
        if event.kind in _MOVED and event.destination:
            bundles, size = flows.get((event.source, event.destination), (0, 0.0))
            flows[event.source, event.destination] = bundles + 1, size + event.throughput_bytes_per_s
    if flows:
        most = max(flows.items(), key=lambda item: item[1])
        (source, destination), (bundles, size) = most
        summary = (
            f"**{count(sum(n for n, _ in flows.values()), 'bundle')} between {count(len(flows), 'pair')} of brokers.**"
            f" Most from {source or 'nobody'} to {destination}: {count(bundles, 'bundle')}, {bytes_per_s(size)}."
        )
        chart(move_flow(flows), summary, "moves-flow")
    shown = set(map(id, events))
    frame = event_frame(trace)
    keep = [id(event) in shown for cycle in trace.cycles for event in cycle.events]
    table(frame[np.array(keep, dtype=np.bool_)], "moves", height=420 if len(events) > _MANY else None)


def _commands(trace: Trace) -> CommandOptions:
    left, middle, right = st.columns(3, vertical_alignment="bottom")
    batch = int(left.number_input("Bundles in a batch", 1, 10_000, 10))
    pause = int(middle.number_input("Pause between batches (s)", 0, 86_400, 60, 10))
    hold = right.toggle("Hold automatic balancing meanwhile", value=True)
    options = CommandOptions(batch_bundles=batch, pause_s=pause, hold=hold)
    commands = plan_commands(trace, options)
    st.caption("Nothing here changes a cluster: these are commands for you to read, and to run where you decide to.")
    if not any(command.words for command in commands):
        st.info("This scenario leaves nothing to do by command.", icon=":material/check_circle:")
    for section, title in SECTIONS.items():
        mine = [command for command in commands if command.section == section]
        if not mine:
            continue
        st.markdown(f"**{title}**")
        lines = []
        for command in mine:
            if command.note:
                lines.append(f"# {command.note}")
            if command.line:
                lines.append(f"# {command.line}" if command.by_hand else command.line)
        st.code("\n".join(lines), language="bash", wrap_lines=True)
    st.download_button(
        "Download as a script",
        command_script(commands, trace.scenario.name or "Plan").encode(),
        "plan.sh",
        "text/x-shellscript",
        icon=":material/download:",
    )
    return options


def finding_cards(findings: Sequence[Finding]) -> None:
    """Draw what a diagnosis found: evidence and remedy."""
    if not findings:
        st.success("No known failure pattern shows in this simulation.", icon=":material/check_circle:")
    for finding in findings:
        with st.container(border=True):
            st.markdown(f"{_ICONS[finding.severity]} **{finding.title}**")
            st.text(finding.evidence)
            st.text(f"Remedy: {finding.remedy}")
            if finding.changes:
                changes = ", ".join(f"{name} = {value}" for name, value in finding.changes.items())
                st.caption(f"Try: {changes}")


def _report(view: state.Current, trace: Trace, findings: Sequence[Finding], options: CommandOptions) -> None:
    series = broker_series(trace)
    shed = [sum(event.kind == "shed" for event in cycle.events) for cycle in trace.cycles]
    usage = series.usage * 100
    if not st.button("Write the report", icon=":material/description:"):
        return
    charts = [
        Chart("Usage over time", usage_image(series.minutes.tolist(), series.brokers, usage, shed), "Usage of brokers"),
        Chart("Before and after", before_after_image(series.brokers, usage[0], usage[-1]), "Usage before and after"),
    ]
    link = scenarios.address(view, trace.scenario)
    text = markdown_report(
        trace, snapshot_name=view.saved.name, charts=charts, findings=findings, link=link, options=options
    )
    st.download_button(
        "Download the report", text.encode(), "report.md", "text/markdown", icon=":material/download:", type="primary"
    )
    st.caption(f"Markdown with its charts inside, {len(text) / 1000:,.0f} kB.")


def draw(view: state.Current) -> None:
    """Draw the page."""
    present = scenarios.history(view).present
    found = scenarios.run(view, present)
    if found is None:
        return
    trace = found[0]
    try:
        findings = diagnose(trace)
        moves, diagnosis, act, files = st.tabs(["Moves", f"Diagnosis ({len(findings)})", "Commands", "Export, report"])
        with moves:
            _moves(trace)
        with diagnosis:
            finding_cards(findings)
        with act:
            options = _commands(trace)
        with files:
            st.download_button(
                "Plan as JSON",
                plan_json(trace, snapshot_name=view.saved.name, findings=findings, options=options).encode(),
                "plan.json",
                "application/json",
                icon=":material/download:",
            )
            st.download_button(
                "Events as CSV", events_csv(trace).encode(), "events.csv", "text/csv", icon=":material/download:"
            )
            final = [asdict(move) for move in final_moves(trace)]
            if final:
                st.markdown("**Who serves what at the end, where that differs from the start**")
                table(pd.DataFrame(final), "final-moves", height=280)
            _report(view, trace, findings, options)
    except PlannerError as error:
        show_error(error)
