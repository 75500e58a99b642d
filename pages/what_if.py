"""What-if: change anything about the cluster and watch its load balancer."""

import time
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from planner.cluster.arrays import BoolArray, FloatArray
from planner.cluster.errors import PlannerError
from planner.cluster.ranges import parse_bundle
from planner.cluster.text import bytes_per_s, count, rounded, times
from planner.explain.cluster_tables import measure as of_bundles
from planner.explain.cluster_tables import namespace_rows
from planner.explain.diagnosis import diagnose
from planner.explain.outcome import Outcome
from planner.figures.hash_space import make_raster
from planner.figures.ownership import MOST_COLOURS, Mark, ownership_map
from planner.figures.simulation import (
    brokers_over_cycles,
    cycle_scores,
    cycle_scores_text,
    heat_map,
    heat_map_text,
    timeline_text,
)
from planner.share.link import scenario_digest
from planner.simulate.demand import demand
from planner.simulate.measures import MEASURES, Summary
from planner.simulate.trace import Cycle
from planner.web import address, doubts, names, scenario_history, simulations, state
from planner.web.findings import finding_cards
from planner.web.moves import EVENT_FORMATS, EVENT_WIDTHS
from planner.web.page import Page, Subject
from planner.web.remedies import findings_of
from planner.web.scenario_controls import draw_controls, draw_toolbar
from planner.web.session import SessionValue, bound, draw_again
from planner.web.widgets import button, chart, show_error, show_notes, table

_CARDS = {
    "shed": ("Bundles shed", ""),
    "settled_after_cycles": ("Cycles to settle", ""),
    "final_std_percent": ("Final deviation", "points"),
    "peak_usage_percent": ("Peak", "%"),
    "topics_disconnected": ("Disconnected topics", ""),
    "thrashing_percent": ("Thrashing", "%"),
    "splits": ("Splits", ""),
    "final_headroom_factor": ("Final headroom", "x"),
}
"""The measures shown first: short labels and units."""
_CARD_PX = 170
_QUANTITIES: dict[str, str] = {
    "usage": "Usage",
    "msg_rate_per_s": "Message rate",
    "throughput_bytes_per_s": "Throughput",
    "bundles": "Bundles",
}
_VIEWS = {"lines": "Lines", "map": "Heat map"}
_NAMESPACES = 16
_STEP_S = 0.8
_EVENTS_PX = 210
_SHOWN_EVENTS = 5_000
_AT: SessionValue[dict[str, int]] = SessionValue("cycle-in-view", dict)
"""The cycle in view of each snapshot, 1 for the first."""
_PLAYING = SessionValue("playing", bool)
_STEPPED_AT = SessionValue("stepped-at", float)


def _number(value: float | None, unit: str) -> str:
    if value is None:
        return "not yet"
    if unit == "x":
        return times(value)
    text = f"{value:,}" if isinstance(value, int) else rounded(value)
    return f"{text} {unit}".strip()


def summary_frame(found: Summary, base: Summary | None = None) -> pd.DataFrame:
    """Return one row for each measure of a simulation, beside those of another one."""
    rows = []
    for measure in MEASURES:
        row = {"measure": measure.label, "value": _number(getattr(found, measure.name), measure.unit)}
        if base is not None:
            row["without changes"] = _number(getattr(base, measure.name), measure.unit)
        rows.append({**row, "good": f"{measure.better} is better" if measure.better else "", "what": measure.meaning})
    return pd.DataFrame(rows)


def _cards(found: Summary, base: Summary | None) -> None:
    measures = {measure.name: measure for measure in MEASURES}
    with st.container(horizontal=True):
        for name, (label, unit) in _CARDS.items():
            measure, value = measures[name], getattr(found, name)
            change, words = (0.0, None) if base is None else change_words(value, getattr(base, name))
            colour: Any = {"lower": "inverse", "higher": "normal"}.get(measure.better, "off") if change else "off"
            st.metric(
                label,
                _number(value, unit),
                words,
                delta_color=colour,
                delta_arrow="off",
                help=f"{measure.label}. {measure.meaning}",
                width=_CARD_PX,
            )


def change_words(value: float | None, before: float | None) -> tuple[float, str]:
    """Return how much larger a measure is than of the cluster as captured, 0 where that is no number, and the words."""
    there = f"{_number(before, '')} as captured"
    if value == before:
        return 0.0, "as captured"
    if value is None or before is None or not np.isfinite(value - before):
        return 0.0, there
    change = round(value - before, 2)
    return change, f"{'+' if change > 0 else '-'}{_number(abs(change), '')} · {there}" if change else "as captured"


def _story(outcome: Outcome) -> str:
    """Return what happened in a sentence, and first of all whether bundles could not be placed."""
    found, cycles = outcome.summary, outcome.summary.cycles
    lost = f"{count(found.unserved, 'bundle')} could not be placed. " if found.unserved else ""
    done = f"{lost}{count(found.shed, 'bundle')} shed, {count(found.splits, 'split')}"
    if found.settled_after_cycles is None:
        end = f"still shedding after {count(cycles, 'cycle')}"
    elif found.settled_after_cycles == 0:
        return f"**{done} in {count(cycles, 'cycle')}.**"
    else:
        end = f"settled after cycle {found.settled_after_cycles} of {cycles}"
    return f"**{done}; {end}.**"


# One cycle


def _player(last: int, digest: str) -> int:
    """Draw play, step and scrub; return the cycle in view, 1 for the first."""
    if last == 1:
        return 1

    def go(to: int) -> None:
        _AT.get()[digest] = to

    playing, at = _PLAYING.get(), min(_AT.get().get(digest, 1), last)
    if playing and time.monotonic() - _STEPPED_AT.get() >= _STEP_S * 0.75:
        at = min(at + 1, last)
        _STEPPED_AT.put(time.monotonic())
    go(at)
    if playing and at == last:
        _PLAYING.put(False)
        draw_again()

    def play() -> None:
        _PLAYING.put(not playing)
        _STEPPED_AT.put(time.monotonic())
        if not playing and at == last:
            go(1)

    with st.container(horizontal=True, vertical_alignment="bottom"):
        button("Back", "skip_previous", partial(go, at - 1), disabled=at == 1)
        words, icon = ("Pause", ":material/pause:") if playing else ("Play", ":material/play_arrow:")
        if st.button(words, icon=icon, on_click=play, key="play"):
            st.rerun()  # not the fragment only: the pace at which it is drawn changes
        button("Next", "skip_next", partial(go, at + 1), disabled=at == last)
        bound(f"cycle-of-{last}", at, partial(st.slider, "Cycle", 1, last), go)
    return at


def _scores(outcome: Outcome, index: int) -> None:
    """Draw what the strategy compared in one cycle, with what it compared it with."""
    series, cycle = outcome.series, outcome.trace.cycles[index]
    sources = {unload.move.source for unload in cycle.unloads if unload.carried_out}
    shedding = np.array([name in sources for name in series.brokers], dtype=np.bool_)
    decided = outcome.decision(index)
    scores, actual = outcome.scores[index], series.usage[index]
    unit, lines, subject = decided.shedding.score_unit, decided.shedding.lines, decided.shedder.name
    if not np.isfinite(outcome.scores).any():
        scores, unit, lines, subject = actual, "fraction", (), ""
    shed = [event for event in cycle.events if event.kind == "shed"]
    size = bytes_per_s(sum(event.throughput_bytes_per_s for event in shed))
    did = f"{count(len(shed), 'bundle')} ({size}) shed" if shed else "nothing shed"
    marks = unit == "fraction" and bool(subject)
    of = (
        f"Scores as {subject} compares them{'; dashes mark the actual usage' if marks else ''}."
        if subject
        else "Actual usage."
    )
    known = series.usage[np.isfinite(series.usage)] if marks or not subject else series.usage[:0]
    top = max(outcome.top_score, float(known.max(initial=0.0))) or 1.0
    chart(
        cycle_scores(series.brokers, scores, shedding, lines, unit, top, actual=actual if marks else None),
        f"**Cycle {index + 1}, minute {series.minutes[index]:g}: {did}.**"
        f" {cycle_scores_text(series.brokers, scores, shedding, unit)} {of}",
        "what-if-scores",
    )


def _owners(outcome: Outcome, index: int) -> None:
    """Draw who owns which hash range after one cycle, and which bundles something happened to."""
    series, cycle = outcome.series, outcome.trace.cycles[index]
    view, start = cycle.view, outcome.trace.start
    # By their traffic at the start, so that they stay in their order.
    rows = namespace_rows(start, of_bundles(start, "throughput"), "")[:_NAMESPACES]
    names = [start.namespaces[i] for i in rows.tolist()]
    own_colours = len(series.brokers) <= MOST_COLOURS
    raster = make_raster(view.bundles, rows, _shown_value(outcome, cycle, own_colours=own_colours))
    marks = [
        Mark(names.index(namespace), (low + high) / 2, f"{event.kind}: {event.bundle}<br>{event.source or 'no owner'} "
             f"→ {event.destination or ', '.join(event.children) or 'no owner'}")
        for event in cycle.events
        if event.bundle
        for namespace, low, high in [parse_bundle(event.bundle)]
        if namespace in names
    ]  # fmt: skip
    chart(
        ownership_map(raster, names, series.brokers if own_colours else (), marks),
        f"**Owners of the hash ranges after cycle {index + 1}**, {count(len(rows), 'namespace')} of"
        f" {len(start.namespaces):,}, busiest first. Diamonds mark {count(len(marks), 'affected bundle')}.",
        "what-if-owners",
    )


def _shown_value(outcome: Outcome, cycle: Cycle, *, own_colours: bool) -> FloatArray:
    """Return what each bundle is coloured by: its owner's place, or its owner's usage (%); NaN if unowned."""
    names, state_ = cycle.view.brokers.name, cycle.state
    if own_colours:
        places = {name: at for at, name in enumerate(outcome.series.brokers)}
        of_broker = np.array([places[name] for name in names], dtype=np.float64)
    else:
        there: BoolArray = state_.present
        of_broker = np.where(there, state_.usage * 100, np.nan)
    owner = cycle.owner
    value: FloatArray = np.where(owner >= 0, np.append(of_broker, np.nan)[owner], np.nan)
    return value


def _over_time(outcome: Outcome, index: int) -> None:
    """Draw the brokers over the cycles, by a quantity of choice."""
    series, counts = outcome.demand_series, outcome.counts
    with st.container(horizontal=True):
        quantity: Any = address.choice("quantity", "Quantity", _QUANTITIES, segments=True, label_visibility="collapsed")
        how = address.choice("show", "Show as", _VIEWS, segments=True, label_visibility="collapsed")
    if how == "map":
        chart(heat_map(series, quantity=quantity, at=index), heat_map_text(series, quantity=quantity), "what-if-map")
        return
    limit = outcome.limit
    events = [cycle.events for cycle in outcome.trace.cycles]
    figure = brokers_over_cycles(
        series, counts, events, quantity=quantity, limit=limit if quantity == "usage" else None, at=index
    )
    chart(figure, timeline_text(series, counts, quantity=quantity), "what-if-timeline")


def _cycle_by_cycle(outcome: Outcome, digest: str) -> None:
    """Draw time, and the cycle in view. Only this is drawn again while it plays or is scrubbed."""
    over_time = st.container()
    index = _player(len(outcome.trace.cycles), digest) - 1
    with over_time:
        _over_time(outcome, index)
    _scores(outcome, index)
    _owners(outcome, index)
    frame = outcome.events[outcome.events["cycle"] == index + 1]
    if len(frame):
        table(
            frame, "events-of-cycle", height=_EVENTS_PX, widths=EVENT_WIDTHS, formats=EVENT_FORMATS, hidden=("cycle",)
        )


def _overload(outcome: Outcome) -> None:
    """Say which machines cannot do what their traffic asks for."""
    brokers = demand(outcome.trace).end.brokers
    limit = brokers.cpu_limit_percent
    asked = np.where((limit > 0) & brokers.registered, brokers.cpu_usage_percent, 0.0)
    share = asked / np.where(limit > 0, limit, 1.0)
    over = np.flatnonzero(share > 1)
    if not len(over):
        return
    worst = int(share.argmax())
    who = names.short(brokers.name[worst])
    st.warning(
        f"At the end, the traffic of {count(len(over), 'broker')} needs more CPU than the machine has: {who} would"
        f" need {share[worst] * 100:,.0f} %. Its clients have to wait. Pulsar reports at most 100 %, so no strategy"
        " sees the excess.",
        icon=":material/local_fire_department:",
    )


def _result(view: state.Current) -> None:
    present = scenario_history.present(view)
    base = scenario_history.as_captured(view, cycles=present.cycles, seed=present.seed)
    changed = replace(present, name="") != base
    found = simulations.run(view, present, *([base] if changed else []))
    if found is None:
        return
    outcome, before = found[0], found[1].summary if changed else None
    doubts.say(doubts.doubt(view, present))
    st.markdown(f"{_story(outcome)}{' Below each number: its change, and what it is as captured.' if before else ''}")
    _cards(outcome.summary, before)
    _overload(outcome)
    show_notes(outcome.trace.notes, "Notes on this simulation")
    findings = diagnose(outcome)
    titles = f": {', '.join(names.short(f.title) for f in findings)}" if findings else ": no problems found"
    with st.expander(f"Diagnosis{titles}", icon=":material/stethoscope:"):
        finding_cards(view, findings_of(view, outcome), "what-if", of_scenario=changed)
    st.fragment(_cycle_by_cycle, run_every=_STEP_S if _PLAYING.get() else None)(outcome, view.digest)
    with st.expander("All measures", icon=":material/table_chart:", key="all-measures", on_change="rerun") as measures:
        if measures.open:
            table(summary_frame(outcome.summary, before), "measures", widths={"what": 400})
    events = outcome.events
    title = f"All events ({len(events):,})"
    with st.expander(title, icon=":material/list:", key="all-events", on_change="rerun") as everything:
        if everything.open:
            visible = events.head(_SHOWN_EVENTS)
            table(visible, "events", height=360, widths=EVENT_WIDTHS, formats=EVENT_FORMATS)
    st.caption(
        f"Plan digest `{outcome.digest[:16]}`. Scenario digest `{scenario_digest(present)[:16]}`. The same scenario"
        " and snapshot always give the same plan."
    )


def draw(view: state.Current) -> None:
    """Draw the page."""
    draw_toolbar(view)
    with st.sidebar:
        draw_controls(view)
    try:
        _result(view)
    except PlannerError as error:
        show_error(error)


PAGE = Page(
    title="What-if",
    icon=":material/science:",
    purpose="Change the cluster, its traffic or its settings, and see how Pulsar's load balancer reacts.",
    draw=draw,
    subject=Subject.SCENARIO,
    changes_scenario=True,
    has_drawer=True,
)
