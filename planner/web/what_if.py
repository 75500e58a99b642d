"""What the What-if page draws: edits and settings on one side, what they come to on the other."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from planner.figures.hash_space import make_raster, raster_map
from planner.figures.scores import broker_scores
from planner.figures.timeline import usage_timeline
from planner.model.errors import PlannerError
from planner.model.settings import Settings
from planner.model.settings_catalog import SETTINGS
from planner.model.snapshot import LoadManager
from planner.placement.registry import PLACEMENTS
from planner.shedding.registry import SHEDDERS
from planner.simulate.cycle import effective_shedder
from planner.simulate.measures import MEASURES, Summary, broker_series, summary
from planner.simulate.scenario import Assumptions, Scenario, Step
from planner.simulate.trace import Cycle, Trace
from planner.simulate.wording import in_words
from planner.web import scenarios, state
from planner.web.bundle_map import namespace_rows
from planner.web.edit_forms import edit_form
from planner.web.setting_form import setting_widget, written
from planner.web.text import bytes_per_s, count
from planner.web.widgets import chart, show_error, show_notes, table

__all__ = ["draw", "event_frame", "summary_frame"]

_SHEDDING = "loadBalancerLoadSheddingStrategy"
_PLACEMENT = "loadBalancerLoadPlacementStrategy"
_CARDS = {
    "shed": ("Bundles shed", ""),
    "settled_after_cycles": ("Settled after", "cycles"),
    "final_std_percent": ("Std of usage", "pt"),
    "peak_usage_percent": ("Peak usage", "%"),
    "topics_disconnected": ("Topics cut off", ""),
    "thrashing_percent": ("Thrashing", "%"),
    "splits": ("Splits", ""),
    "final_headroom_factor": ("Headroom", "x"),
}
"""The measures that stand first: what to call them, and their unit, in the room there is."""
_NAMESPACES = 30
_STEP_S = 0.8


def _number(value: float | None, unit: str) -> str:
    if value is None:
        return "not yet"
    text = f"{value:,}" if isinstance(value, int) else f"{value:,.3g}" if np.isfinite(value) else "unlimited"
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


def event_frame(trace: Trace, cycles: slice = slice(None)) -> pd.DataFrame:
    """Return one row for each event of some cycles."""
    begin = trace.start.info.captured_at_ms
    return pd.DataFrame(
        [
            {
                "cycle": cycle.index + 1,
                "minute": (event.at_ms - begin) / 60_000,
                "what": event.kind.replace("_", " "),
                "bundle": event.bundle,
                "from": event.source,
                "to": event.destination or ", ".join(child.rpartition("/")[2] for child in event.children),
                "MB/s": event.throughput_bytes_per_s / 1e6,
                "topics": event.topics,
                "why": event.why,
            }
            for cycle in trace.cycles[cycles]
            for event in cycle.events
        ],
        columns=["cycle", "minute", "what", "bundle", "from", "to", "MB/s", "topics", "why"],
    )


# What is changed


def _toolbar(view: state.Current) -> None:
    known = scenarios.history(view)
    undo, redo = st.columns(2)
    reset, save = st.columns(2)
    if undo.button("Undo", icon=":material/undo:", disabled=not known.past, width="stretch"):
        scenarios.undo(view)
        st.rerun()
    if redo.button("Redo", icon=":material/redo:", disabled=not known.future, width="stretch"):
        scenarios.redo(view)
        st.rerun()
    if reset.button("Start over", icon=":material/restart_alt:", disabled=known.present == Scenario(), width="stretch"):
        scenarios.change(view, Scenario())
        st.rerun()
    with save.popover("Save, open", icon=":material/save:", width="stretch"):
        _saving(view)


def _saving(view: state.Current) -> None:
    present = scenarios.history(view).present
    kept = state.workspace().scenarios
    name = st.text_input("Name", present.name, max_chars=120, key="scenario-name")
    if st.button("Save on this server", icon=":material/save:", disabled=not name.strip()):
        named = replace(present, name=name.strip())
        scenarios.change(view, named)
        kept.save(named, view.digest, view.saved.name)
        st.rerun()
    saved = kept.list(view.digest)
    if saved:
        labels = {s.digest: f"{s.name or 'without a name'} · {count(s.edits, 'edit')}" for s in saved}
        chosen = st.selectbox("Saved scenarios", list(labels), format_func=lambda d: labels[d])
        left, right = st.columns(2)
        if left.button("Open", icon=":material/folder_open:", width="stretch") and chosen:
            scenarios.change(view, kept.load(chosen))
            st.rerun()
        if right.button("Delete", icon=":material/delete:", width="stretch") and chosen:
            kept.delete(chosen, view.digest)
            st.rerun()
    scenarios.file_exchange(view)


def _link(view: state.Current) -> None:
    with st.popover("Link", icon=":material/link:", width="stretch"):
        st.caption("Opens this scenario, whole, on any server that has the snapshot. It holds no secret.")
        st.code(scenarios.address(view, scenarios.history(view).present), language=None, wrap_lines=True)


def _frame(view: state.Current) -> None:
    """Draw what is watched: for how long, with which seed and load manager."""
    present = scenarios.history(view).present
    left, right = st.columns(2)
    cycles = int(left.number_input("Cycles", 1, 100_000, present.cycles, key=f"cycles-{present.cycles}"))
    seed = int(
        right.number_input(
            "Seed",
            0,
            2**31 - 1,
            present.seed,
            key=f"seed-{present.seed}",
            help="Decides where Pulsar draws at random, and when each broker reports.",
        )
    )
    managers = ["", *(str(manager) for manager in LoadManager)]
    manager: Any = st.selectbox(
        "Load manager",
        managers,
        managers.index(present.load_manager),
        format_func=lambda m: m or f"{view.snapshot.info.load_manager}, as in the snapshot",
        key=f"manager-{present.load_manager}",
    )
    _take(view, replace(present, cycles=cycles, seed=seed, load_manager=manager or ""))


def _take(view: state.Current, scenario: Scenario) -> None:
    """Change the scenario, and draw the page anew with it."""
    if scenario == scenarios.history(view).present:
        return
    try:
        scenarios.change(view, scenario)
    except PlannerError as error:
        show_error(error)
        return
    st.rerun()


def _strategies(view: state.Current, config: Settings) -> None:
    present = scenarios.history(view).present
    manager = present.load_manager_over(view.snapshot)
    shedders = [s.name for s in SHEDDERS if s.load_manager is manager]
    now = effective_shedder(manager, config)[0].name
    chosen = st.selectbox("Shedding strategy", shedders, shedders.index(now), key=f"shedder-{now}-{manager}") or now
    changed = dict(present.settings)
    if chosen != now:
        changed[_SHEDDING] = chosen
    if manager is LoadManager.MODULAR:
        names = [p.name for p in PLACEMENTS if p.load_manager is manager]
        placed = config.text(_PLACEMENT).rpartition(".")[2]
        at = names.index(placed) if placed in names else 0
        place = st.selectbox("Placement strategy", names, at, key=f"placement-{placed}") or placed
        if chosen == "AvgShedder" != now:
            place = "AvgShedder"
        elif now == "AvgShedder" != chosen and place == "AvgShedder":
            place = names[0]
        if place != placed:
            changed[_PLACEMENT] = place
    if changed != dict(present.settings):
        _take(view, replace(present, settings=changed))


def _settings(view: state.Current, config: Settings) -> None:
    """Draw the settings that the scenario changes, and a way to change more."""
    present = scenarios.history(view).present
    special = {_SHEDDING, _PLACEMENT}
    changed = {name: value for name, value in present.settings.items() if name not in special}
    for name in changed:
        field, drop = st.columns([6, 1], vertical_alignment="bottom")
        with field:
            setting = next(s for s in SETTINGS if s.name == name)
            value = setting_widget(setting, config[name], f"scenario-{name}-{config[name]}")
        if drop.button("", icon=":material/close:", key=f"drop-{name}", help="As in the snapshot again"):
            kept = {n: v for n, v in present.settings.items() if n != name}
            _take(view, replace(present, settings=kept))
        if value != config[name]:
            plain: Any = written(value) if isinstance(value, tuple) else value
            _take(view, replace(present, settings={**present.settings, name: plain}))
    shedder = effective_shedder(present.load_manager_over(view.snapshot), config)[0]
    first = [name for name in shedder.settings if name not in changed]
    others = [s.name for s in SETTINGS if s.name not in changed and s.name not in special and s.name not in first]
    picked = st.selectbox(
        "Change a setting",
        [*first, *others],
        index=None,
        placeholder="the strategy's own settings come first",
        key=f"more-{len(changed)}-{'-'.join(sorted(changed))[:80]}",
    )
    if picked:
        value = view.snapshot.settings[picked]
        start: Any = written(value) if isinstance(value, tuple) or value is None else value
        _take(view, replace(present, settings={**present.settings, picked: start}))


def _edits(view: state.Current) -> None:
    """Draw the edits, each with a switch, and the form for another one."""
    present = scenarios.history(view).present
    for at, step in enumerate(present.steps):
        switch, drop = st.columns([6, 1], vertical_alignment="center")
        words = in_words(step.edit)
        on = switch.toggle(words[:1].upper() + words[1:], step.on, key=f"edit-{at}-{step.on}-{hash(step.edit)}")
        steps = list(present.steps)
        if drop.button("", icon=":material/delete:", key=f"delete-{at}-{hash(step.edit)}", help="Delete this edit"):
            del steps[at]
            _take(view, present.with_steps(*steps))
        if on != step.on:
            steps[at] = replace(step, on=on)
            _take(view, present.with_steps(*steps))
    with st.popover("Add an edit", icon=":material/add:", width="stretch"):
        edit = edit_form(view.snapshot, f"edit-{len(present.steps)}")
        if st.button("Add", type="primary", icon=":material/add:"):
            _take(view, present.with_steps(*present.steps, Step(edit)))


def _assumptions(view: state.Current) -> None:
    """Draw what is supposed, with why."""
    present = scenarios.history(view).present
    known = present.assumptions
    models = {"share": "goes along with the traffic", "fixed": "costs what is said below"}
    st.caption(
        "What no snapshot tells. With `share`, what a broker uses beyond idle belongs to its bundles by their share of"
        " its traffic (half by messages, half by bytes), because shedding strategies expect just that; with `fixed`"
        " every bundle costs the same for the same traffic, as on brokers that were measured. Memory stays as it is."
        " Reconnection takes no time: clients come back within a second or so, far below a report interval."
    )
    model: Any = st.selectbox(
        "CPU", list(models), list(models).index(known.cpu_model), format_func=lambda m: f"{m}: {models[m]}"
    )
    left, right = st.columns(2)
    numbers = {
        "cpu_percent_per_mb_per_s": left.number_input(
            "% of a core per MB/s", 0.0, 1e6, known.cpu_percent_per_mb_per_s, disabled=model == "share", format="%g"
        ),
        "cpu_percent_per_1000_msg_per_s": right.number_input(
            "% of a core per 1,000 msg/s",
            0.0,
            1e6,
            known.cpu_percent_per_1000_msg_per_s,
            disabled=model == "share",
            format="%g",
        ),
        "idle_cpu_percent": left.number_input("Idle CPU (%)", 0.0, 100.0, known.idle_cpu_percent, format="%g"),
        "session_timeout_s": right.number_input(
            "A dead broker is noticed after (s)", 0.0, 3600.0, known.session_timeout_s, format="%g"
        ),
    }
    interval = left.number_input("Rates are worked out every (s)", 5, 3600, known.stats_interval_s)
    spread = right.toggle("Brokers report at different moments", known.spread_reports)
    made = Assumptions(cpu_model=model, stats_interval_s=int(interval), spread_reports=spread, **numbers)
    _take(view, replace(present, assumptions=made))


def _controls(view: state.Current) -> None:
    present = scenarios.history(view).present
    try:
        config = present.settings_over(view.snapshot)
    except PlannerError as error:
        show_error(error)
        return
    _toolbar(view)
    _link(view)
    with st.container(border=True):
        st.markdown("**Edits**")
        _edits(view)
    with st.container(border=True):
        st.markdown("**Load balancer**")
        _strategies(view, config)
        _settings(view, config)
    with st.container(border=True):
        st.markdown("**Watch**")
        _frame(view)
    with st.expander("Assumptions", icon=":material/tune:"):
        _assumptions(view)


# What comes of it


def _cards(found: Summary, base: Summary | None) -> None:
    measures = {measure.name: measure for measure in MEASURES}
    names = list(_CARDS)
    for start in (0, 4):
        for column, name in zip(st.columns(4), names[start : start + 4], strict=True):
            measure, value = measures[name], getattr(found, name)
            label, unit = _CARDS[name]
            delta: float | None = None
            if base is not None and value is not None and getattr(base, name) is not None:
                delta = round(value - getattr(base, name), 2)
            colour: Any = {"lower": "inverse", "higher": "normal"}.get(measure.better, "off")
            column.metric(
                label,
                _number(value, unit),
                delta or None,
                delta_color=colour,
                help=f"{measure.label}. {measure.meaning} The change is against the cluster without this scenario.",
            )


def _player(trace: Trace, key: str) -> Cycle:
    """Draw play, step and scrub; return the cycle in view."""
    last = len(trace.cycles)
    if last == 1:
        return trace.cycles[0]
    slider = f"at-cycle-{key}"
    st.session_state.setdefault(slider, 1)
    st.session_state[slider] = min(max(int(st.session_state[slider]), 1), last)
    back, play, forward, scrub = st.columns([1, 1, 1, 9], vertical_alignment="bottom")
    now = st.session_state[slider]
    if back.button("", icon=":material/skip_previous:", help="One cycle back", disabled=now <= 1, width="stretch"):
        st.session_state[slider] = now - 1
    playing = bool(st.session_state.get("playing"))
    icon = ":material/pause:" if playing else ":material/play_arrow:"
    if play.button("", icon=icon, help="Pause" if playing else "Play", width="stretch", key="play"):
        st.session_state["playing"] = not playing
        if not playing and now >= last:
            st.session_state[slider] = 1
        st.rerun()
    if forward.button("", icon=":material/skip_next:", help="One cycle on", disabled=now >= last, width="stretch"):
        st.session_state[slider] = now + 1
    scrub.slider("Cycle", 1, last, key=slider)
    if playing:
        _tick(slider, last)
    return trace.cycles[int(st.session_state[slider]) - 1]


@st.fragment(run_every=_STEP_S)
def _tick(slider: str, last: int) -> None:
    """Go on by one cycle while it plays."""
    if st.session_state.pop("ticked", False):
        at = int(st.session_state[slider])
        if at >= last:
            st.session_state["playing"] = False
        else:
            st.session_state["next_cycle"] = at + 1
        st.rerun()
    st.session_state["ticked"] = True


def _moment(trace: Trace, cycle: Cycle) -> None:
    """Draw one cycle: scores, who owns which range, what happened."""
    view = cycle.view
    sources = {unload.move.source for unload in cycle.unloads if unload.carried_out}
    names = view.brokers.name
    there = cycle.state.present
    usage = np.where(there, cycle.state.usage, np.nan)
    shed = [event for event in cycle.events if event.kind == "shed"]
    moved = bytes_per_s(sum(event.throughput_bytes_per_s for event in shed))
    minute = (cycle.at_ms - trace.start.info.captured_at_ms) / 60_000
    did = f"{count(len(shed), 'bundle')} ({moved}) shed" if shed else "nothing is shed"
    chart(
        broker_scores(names, usage, np.array([name in sources for name in names], dtype=np.bool_), (), "fraction"),
        f"**Cycle {cycle.index + 1}, minute {minute:g}: {did}.** Real usage of each broker when the cycle began.",
        "what-if-scores",
    )
    owner = cycle.owner
    value = np.where(owner >= 0, np.append(usage, np.nan)[owner] * 100, np.nan)
    rows = namespace_rows(view, np.nan_to_num(value), "")[:_NAMESPACES]
    raster = make_raster(view.bundles, rows, value)
    chart(
        raster_map(raster, [view.namespaces[i] for i in rows.tolist()], "usage of the owner (%)", logarithmic=False),
        f"Hash ranges by the usage of the broker that owns them, {count(len(rows), 'namespace')}"
        f" of {len(view.namespaces):,}.",
        "what-if-ranges",
    )
    frame = event_frame(trace, slice(cycle.index, cycle.index + 1))
    if len(frame):
        table(frame.drop(columns="cycle"), "events-of-cycle", height=240)


def _result(view: state.Current) -> None:
    present = scenarios.history(view).present
    base = Scenario(cycles=present.cycles, seed=present.seed)
    changed = replace(present, name="") != base
    try:
        found = scenarios.run(view, present, *([base] if changed else []))
    except PlannerError as error:
        show_error(error)
        return
    if found is None:
        return
    trace = found[0]
    measured = summary(trace)
    before = summary(found[1]) if changed else None
    _cards(measured, before)
    _timeline(trace, measured)
    if "next_cycle" in st.session_state:
        st.session_state[f"at-cycle-{view.digest}"] = st.session_state.pop("next_cycle")
    _moment(trace, _player(trace, view.digest))
    show_notes(trace.notes, "Notes on this simulation")
    with st.expander("All measures", icon=":material/table_chart:"):
        table(summary_frame(measured, before), "measures")
    frame = event_frame(trace)
    with st.expander(f"Everything that happened ({len(frame):,})", icon=":material/list:"):
        table(frame.head(5_000), "events", height=360)
    st.caption(f"Plan digest `{trace.digest()[:16]}`: the same scenario on the same snapshot gives the same plan.")


def _timeline(trace: Trace, measured: Summary) -> None:
    """Draw the usage of the brokers over the cycles."""
    series = broker_series(trace)
    shed = [sum(event.kind == "shed" for event in cycle.events) for cycle in trace.cycles]
    figure = usage_timeline(series.minutes.tolist(), series.brokers, series.usage * 100, shed)
    chart(figure, _story(trace, measured), "what-if-timeline")


def _story(trace: Trace, measured: Summary) -> str:
    """Return what happened in one sentence."""
    cycles = len(trace.cycles)
    if measured.settled_after_cycles is None:
        end = f"it still sheds after {cycles} cycles"
    elif measured.settled_after_cycles == 0:
        end = "nothing is shed"
    else:
        end = f"it has settled after cycle {measured.settled_after_cycles} of {cycles}"
    return (
        f"**{count(measured.shed, 'bundle')} shed, {count(measured.splits, 'split')}; {end}.** Usage of the brokers"
        f" over the cycles; the highest ends at {measured.final_peak_usage_percent:.1f} %."
    )


def draw(view: state.Current) -> None:
    """Draw the page."""
    left, right = st.columns([2, 5], gap="large")
    with left:
        _controls(view)
    with right:
        _result(view)
