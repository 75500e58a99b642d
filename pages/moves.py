"""Moves: what the scenario moves, whom it disconnects, and the commands to take away."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import compress

import numpy as np
import pandas as pd
import streamlit as st

from planner.cluster.text import count, moment, plain
from planner.cluster.units import NS_PER_MS
from planner.explain.diagnosis import diagnose
from planner.explain.outcome import Outcome
from planner.figures.flow import flow_text, move_flow
from planner.remedy.tried import diagnosed
from planner.share.asked import Asked, asked_of, quiet
from planner.share.commands import CommandOptions, final_moves
from planner.share.export import MOVE_COLUMNS, events_csv, json_text, plan_document
from planner.share.follow import STATES, follow, new_brokers
from planner.share.hand_over import commands_of, plan_markdown, plan_script, preview_lines
from planner.share.report import Chart, markdown_report
from planner.share.script import SECTIONS, command_list
from planner.share.step_table import is_step, steps_json
from planner.simulate.demand import demand
from planner.simulate.event import Event
from planner.simulate.measures import blast_radius
from planner.simulate.moves import disconnections
from planner.simulate.trace import Trace
from planner.web import address, doubts, scenario_address, scenario_history, simulations, state
from planner.web.findings import finding_cards
from planner.web.moves import EVENT_FORMATS, EVENT_WIDTHS
from planner.web.page import Page, Subject
from planner.web.remedies import findings_of
from planner.web.widgets import chart, download, metrics, show_switched_off, table

_INFO = ":material/info:"
_MOVED = {"shed", "placed", "moved"}
_SHOWN = {*_MOVED, "handed_over", "unserved"}
"""Kinds of events that are shown at first: those that move a bundle, or disconnect clients."""
_STEP_WIDTHS = {"number": 60, "kind": 80, "what": 300, "from": 160, "to": 160, "topics": 60, "clients": 60, "batch": 60}


@dataclass(frozen=True)
class _Filter:
    """Which events are visible."""

    kinds: frozenset[str]
    brokers: frozenset[str]
    text: str

    def passes(self, event: Event) -> bool:
        """Return whether an event or a move is visible."""
        somewhere = not self.brokers or not self.brokers.isdisjoint((event.source, event.destination))
        return event.kind in self.kinds and somewhere and self.text in event.bundle


def _blast_radius(trace: Trace, visible: Sequence[Event]) -> None:
    """Draw whom the moves disconnect."""
    chosen = set(map(id, visible))
    radius = blast_radius([e for cycle in disconnections(trace) for e in cycle if id(e) in chosen])
    each = "Counted once per disconnection."
    moves = sum(event.kind in _MOVED for event in visible)
    numbers = (
        ("Moves of bundles", moves, "By you or by Pulsar. A bundle counts each time it moves."),
        ("Disconnected topics", radius.topics, each),
        ("Disconnected producers", radius.producers, each),
        ("Disconnected consumers", radius.consumers, each),
    )
    metrics([(label, f"{value:,}", help_) for label, value, help_ in numbers], 160)


def _choose(trace: Trace) -> _Filter:
    """Draw the filter."""
    kinds = {event.kind: event.kind.replace("_", " ") for event in sorted(trace.events, key=lambda e: e.kind)}
    left, middle, right = st.columns([2, 2, 2])
    first = [kind for kind in kinds if kind in _SHOWN]
    wanted = address.several("what", "What", kinds, first or list(kinds), place=left)
    brokers = sorted({name for event in trace.events for name in (event.source, event.destination) if name})
    chosen = address.several("brokers", "From or to", brokers, place=middle, placeholder="any broker")
    text = address.text("part", "Bundle", max_chars=300, place=right, placeholder="part of a name").strip()
    return _Filter(frozenset(wanted), frozenset(chosen), text)


def _moves(outcome: Outcome) -> None:
    trace = outcome.trace
    if not trace.events:
        st.info("Nothing moves in this scenario.", icon=":material/check_circle:")
        return
    wanted = _choose(trace)
    keep = list(map(wanted.passes, trace.events))
    if not any(keep):
        st.info("No matching events in this scenario.", icon=":material/check_circle:")
        return
    _blast_radius(trace, list(compress(trace.events, keep)))
    moves = list(filter(wanted.passes, outcome.moves))
    if any(move.destination for move in moves):
        st.caption(
            "Destinations are predictions, not guarantees: a lookup during the unload can place the bundle on"
            " another broker."
        )
        by = address.choice("flows", "Flow width", ["throughput", "bundles"], segments=True)
        chart(move_flow(moves, by_bundles=by == "bundles"), flow_text(moves), "moves-flow")
    frame = outcome.events[keep]
    table(frame, "moves", height=420, widths=EVENT_WIDTHS, formats=EVENT_FORMATS)


def _before_after(outcome: Outcome, *, planned: bool) -> bool:
    """Draw what the plan changes; return whether to show its commands. What Pulsar does by itself needs no consent."""
    found, objections = outcome.before_after, outcome.gate.objections if planned else ()
    wanted = True
    if objections:
        st.error(f"**{outcome.gate.headline}** {' '.join(objections)}", icon=":material/dangerous:")
        wanted = st.checkbox("Show the commands anyway", key=f"worse-{outcome.digest[:16]}")
    rows = [{"measure": row.measure, "now": row.now, "after the plan": row.after} for row in found.rows]
    table(pd.DataFrame(rows), "before-after", height="content")
    return wanted


def _commands(outcome: Outcome, asked: Asked) -> CommandOptions:
    trace = asked.whole
    verdict = st.container()
    left, middle, right = st.columns(3, vertical_alignment="bottom")
    batch = address.number("batch", "Bundles per batch", 10, 1, 10_000, place=left)
    pause = address.number("pause", "Pause between batches (s)", 60, 0, 86_400, step=10, place=middle)
    hold = right.toggle("Hold shedding and splits during the plan", value=True, key="hold")
    options = CommandOptions(batch_bundles=batch, pause_s=pause, hold=hold)
    show_switched_off(trace.start)
    everything = _preview(asked)
    commands = commands_of(asked, options, everything=everything)
    planned = any(map(is_step, commands))
    with verdict:
        wanted = _before_after(outcome, planned=planned)
    if not wanted:
        return options
    st.caption("The planner never changes a cluster. Review these commands, then run them yourself.")
    if not planned:
        st.info("This scenario requires no commands.", icon=":material/check_circle:")
        return options
    st.markdown("**Steps**")
    table(pd.DataFrame(steps_json(commands)), "plan-steps", height="content", widths=_STEP_WIDTHS)
    for section, title in SECTIONS.items():
        listed = command_list(commands, section)
        if listed:
            st.markdown(f"**{title}**")
            st.code(listed, language="bash", wrap_lines=True)

    def script() -> bytes:
        made_at_ms = time.time_ns() // NS_PER_MS
        return plan_script(asked, options, made_at_ms=made_at_ms, everything=everything, gate=outcome.gate).encode()

    def steps() -> bytes:
        made_at_ms = time.time_ns() // NS_PER_MS
        return plan_markdown(asked, options, made_at_ms=made_at_ms, everything=everything, gate=outcome.gate).encode()

    with st.container(horizontal=True):
        download("Download as a script", script, "plan.sh", "text/x-shellscript", type="primary")
        download("Steps as Markdown", steps, "plan-steps.md", "text/markdown")
        download(
            "Steps as JSON", lambda: json_text(steps_json(commands)).encode(), "plan-steps.json", "application/json"
        )
    st.caption(
        "The script checks that this is the cluster of the plan, and asks before it begins. It skips bundles that have"
        " moved since the capture, and checks after each batch that the bundles have arrived. If a step fails, it"
        " restores shedding, splits and settings. Run it again to continue. Try it with `--dry-run` first."
    )
    return options


def _preview(asked: Asked) -> bool:
    """Say what was asked for, and draw what Pulsar does by itself; return whether that gets commands, too."""
    st.info(plain(asked.sentence), icon=_INFO)
    lines = preview_lines(asked)
    if not lines:
        return False
    with st.expander("Preview: what Pulsar does by itself, without a command", icon=":material/visibility:"):
        st.code("\n".join(lines), language=None, wrap_lines=True)
    return address.toggle(
        "everything",
        "Include Pulsar's own moves and splits",
        help="The script then also carries out what the load balancer would do by itself.",
    )


def _report(view: state.Current, outcome: Outcome, asked: Asked, options: CommandOptions) -> None:
    """Draw downloads of the report, which is written when one is pressed."""
    trace = asked.whole
    link = scenario_address.link_to(view, trace.scenario)  # now, as a download knows no address

    def text() -> str:
        return _report_text(view.saved.name, outcome, asked, options, link)

    def html() -> bytes:
        from planner.figures.report import html_report  # noqa: PLC0415 - the first page need not wait for it

        return html_report(text(), title).encode()

    def pdf() -> bytes:
        from planner.figures.report import pdf_report  # noqa: PLC0415

        return pdf_report(text(), title)

    title = f"Plan {trace.scenario.name} · {view.saved.name}"
    st.markdown("**Report for review**")
    with st.container(horizontal=True):
        download("HTML", html, "report.html", "text/html", type="primary")
        download("PDF", pdf, "report.pdf", "application/pdf")
        download("Markdown", lambda: text().encode(), "report.md", "text/markdown")
    st.caption("Contains the question, verdict, before and after, losses, risks, moves, commands and charts.")


def _report_text(name: str, outcome: Outcome, asked: Asked, options: CommandOptions, link: str) -> str:
    from planner.figures.images import before_after_image, usage_image  # noqa: PLC0415

    series, found = outcome.demand_series, demand(outcome.trace)
    usage = series.usage * 100
    before = np.zeros(len(found.brokers))
    before[: len(series.brokers)] = usage[0]
    shed = outcome.counts.shed.tolist()
    charts = [
        Chart("Usage over time", usage_image(series.minutes.tolist(), series.brokers, usage, shed), "Usage of brokers"),
        Chart(
            "Before and after",
            before_after_image(found.brokers, before, found.usage[-1] * 100),
            "Usage before and after",
        ),
    ]
    return markdown_report(
        asked.whole,
        snapshot_name=name,
        charts=charts,
        findings=diagnosed(outcome),
        link=link,
        options=options,
        asked=asked,
    )


def _files(view: state.Current, outcome: Outcome, asked: Asked, options: CommandOptions) -> None:
    trace = asked.whole

    def plan() -> bytes:
        findings = diagnosed(outcome)
        document = plan_document(trace, snapshot_name=view.saved.name, findings=findings, options=options, asked=asked)
        return json_text(document).encode()

    with st.container(horizontal=True):
        download("Plan as JSON", plan, "plan.json", "application/json")
        download("Events as CSV", lambda: events_csv(trace).encode(), "events.csv", "text/csv")
    _report(view, outcome, asked, options)
    final = [{name: getattr(move, name) for name in MOVE_COLUMNS} for move in final_moves(trace)]
    if final:
        st.markdown("**Bundles with a different owner at the end**")
        table(pd.DataFrame(final), "final-moves", height=420)


def _follow(view: state.Current, trace: Trace) -> None:
    """Draw how far the plan has been carried out."""
    st.caption("Capture the cluster again during or after the plan to see its progress here.")
    captured_at_ms = view.snapshot.info.captured_at_ms
    found = [
        each
        for each in state.workspace().saved()
        if each.cluster == view.snapshot.info.cluster and each.captured_at_ms > captured_at_ms
    ]
    if not found:
        st.info(
            "No later capture of this cluster is available. Capture or upload one on the page Snapshots.",
            icon=":material/info:",
        )
        return
    names = {each.digest: f"{plain(each.name)} · {moment(each.captured_at_ms)}" for each in found}
    chosen = st.selectbox("Later capture", list(names), format_func=names.__getitem__, key="follow")
    later = state.snapshot_of(chosen)
    added, strange = new_brokers(trace, later)
    real = {}
    if added and strange:
        for name in added:
            real[name] = st.selectbox(f"{plain(name)} became", strange, index=None, key=f"became-{name}") or name
    followed = follow(trace, later, real)
    done = followed.counts["done"] == len(followed.steps)
    (st.success if done else st.info)(f"**{followed.sentence}** {followed.advice}")
    if followed.steps:
        rows = [
            {"status": STATES[s.state], "step": s.kind, "of": s.name, "planned": s.wanted, "now": s.found}
            for s in sorted(followed.steps, key=lambda step: list(STATES).index(step.state), reverse=True)
        ]
        table(pd.DataFrame(rows), "followed", height=420)
    if followed.strayed:
        st.markdown(f"**{count(len(followed.strayed), 'bundle')} outside this plan moved in the meantime**")
        table(pd.DataFrame(followed.strayed, columns=["bundle", "then", "now"]), "strayed")


def draw(view: state.Current) -> None:
    """Draw the page."""
    present = scenario_history.present(view)
    found = simulations.run(view, present, *([quiet(present)] if present.edits else []))
    if found is None:
        return
    outcome = found[0]
    trace = replace(outcome.trace, scenario=replace(outcome.trace.scenario, name=present.name))
    divided = asked_of(trace, found[-1].trace if present.edits else None)
    titles = {
        "moves": "Moves",
        "diagnosis": f"Diagnosis ({len(diagnose(outcome))})",
        "commands": "Commands",
        "follow": "Follow",
        "files": "Export and report",
    }
    doubts.say(doubts.doubt(view, present))
    asked = address.part("tab")
    first = titles[asked] if asked and address.is_one_of("tab", "Tab", titles, titles["moves"]) else None
    moves, diagnosis, act, later, files = st.tabs(list(titles.values()), default=first)
    with moves:
        _moves(outcome)
    with diagnosis:
        is_open = present != scenario_history.as_captured(view)
        finding_cards(view, findings_of(view, outcome), "moves", of_scenario=is_open)
    with act:
        options = _commands(outcome, divided)
    with later:
        _follow(view, divided.followed)
    with files:
        _files(view, outcome, divided, options)


PAGE = Page(
    title="Moves",
    icon=":material/swap_horiz:",
    purpose="The moves of your scenario and their reasons, its problems, and the commands to carry it out.",
    draw=draw,
    subject=Subject.SCENARIO,
)
