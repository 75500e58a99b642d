"""Shedding: what each strategy would unload with which settings, and why."""

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from planner.cluster.load_manager import LoadManager
from planner.cluster.names import (
    LOAD_MANAGER_CLASS_NAME,
    LOAD_PLACEMENT_STRATEGY,
    SHEDDING_EXCLUDED_NAMESPACES,
    SHEDDING_GRACE_PERIOD_MINUTES,
    SHEDDING_INTERVAL_MINUTES,
)
from planner.cluster.settings import Settings
from planner.cluster.text import count
from planner.explain.decision_tables import before_and_after, reason_rows, verdict
from planner.figures.scores import broker_scores
from planner.pulsar.manager.cycle import effective_shedder
from planner.pulsar.manager.pairing import PAIRED, offered_placements, running_placement
from planner.pulsar.placement.modular_filters import SETTINGS as FILTER_SETTINGS
from planner.pulsar.placement.protocol import Placement
from planner.pulsar.shedding.protocol import Shedder
from planner.pulsar.shedding.registry import SHEDDERS
from planner.simulate.sequence import CycleStep
from planner.simulate.strategies import obstacle, with_obstacle
from planner.web import address, scenario_history, state
from planner.web.choices import choose_shedder, set_setting
from planner.web.moves import show_memory, show_moves
from planner.web.page import Page, Subject
from planner.web.session import bound
from planner.web.setting_form import setting_form
from planner.web.strategies import as_if_running
from planner.web.widgets import chart, show_notes, table

_MOST_CYCLES = 30
_SHOWN_REASONS = 5_000
_FEW_ROWS_PX = 280
_CYCLE_HELP = (
    "Cycle 1 is the next one, with a newly elected leader. Later cycles see the same load again, because no unload"
    " is carried out. Strategies with hit counters need several cycles."
)
_CYCLE_SETTINGS = (
    SHEDDING_INTERVAL_MINUTES,
    SHEDDING_GRACE_PERIOD_MINUTES,
    SHEDDING_EXCLUDED_NAMESPACES,
)


def _shedder(view: state.Current, config: Settings, place: Any) -> Shedder:
    """Draw the choice of a strategy; one of the other load manager brings that along."""
    manager = view.snapshot.info.load_manager
    against = {s.name: obstacle(s, view.captured.info.load_manager, config.release) for s in SHEDDERS}
    ordered = sorted(SHEDDERS, key=lambda s: (s.load_manager is not manager, bool(against[s.name])))
    names = {s.name: with_obstacle(s.name, against[s.name]) for s in ordered}
    running = effective_shedder(manager, config)[0]
    help_ = "loadBalancerLoadSheddingStrategy: selects the bundles to shed. Changing it changes the scenario."
    box = partial(place.selectbox, "Shedding strategy", list(names), format_func=names.__getitem__, help=help_)
    bound("scenario-shedder", running.name, box, partial(choose_shedder, view))
    return running


def _placement(view: state.Current, config: Settings, place: Any) -> Placement:
    """Draw the choice of a placement strategy; some strategies bring their own, and the extensible manager has one."""
    manager = view.snapshot.info.load_manager
    running = running_placement(manager, config)
    if manager is LoadManager.EXTENSIBLE:
        help_ = (
            "The only strategy of the extensible load manager. It places bundles of namespaces that are excluded"
            " from shedding round robin."
        )
        place.selectbox("Placement strategy", [running.name], key="placement-extensible", help=help_, disabled=True)
        return running
    offered = offered_placements(manager, config.release)
    names = [p.name for p in (*offered, *(() if running in offered else (running,)))]
    help_ = (
        f"loadBalancerLoadPlacementStrategy: selects the destination of a bundle. Set {' and '.join(sorted(PAIRED))}"
        " as both the shedding and the placement strategy; otherwise bundles do not go to the other broker of their"
        " pair."
    )
    box = partial(place.selectbox, "Placement strategy", names, help=help_)
    bound("scenario-placement", running.name, box, partial(set_setting, view, LOAD_PLACEMENT_STRATEGY))
    return running


def _settings(view: state.Current, shedder: Shedder, placement: Placement, base: Settings) -> None:
    """Draw the forms, one under each tab; a setting that several read stands in the first."""
    manager = view.snapshot.info.load_manager
    filters = FILTER_SETTINGS if manager is LoadManager.MODULAR else FILTER_SETTINGS[:2] + FILTER_SETTINGS[4:]
    groups = {"Shedding": shedder.settings, "Placement": placement.settings, "Filters": (*filters, *_CYCLE_SETTINGS)}
    seen = {LOAD_MANAGER_CLASS_NAME}
    for tab, (_, names) in zip(st.tabs(list(groups)), groups.items(), strict=True):
        with tab:
            mine = [name for name in names if name not in seen]
            again = [name for name in names if name in seen and name != LOAD_MANAGER_CLASS_NAME]
            seen |= set(mine)
            setting_form(view, mine, base, columns=1)
            if again:
                st.caption(f"Also used here (shown on an earlier tab): {', '.join(again)}.")
            if not mine and not again:
                st.caption(f"{placement.name} has no settings.")


def draw(view: state.Current) -> None:
    """Draw the page: choices on top, settings in the drawer."""
    present = scenario_history.present(view)
    view = view.under(present.load_manager_over(view.captured))
    config = present.settings_over(view.captured)
    left, middle, right = st.columns([3, 3, 1])
    shedder = _shedder(view, config, left)
    placement = _placement(view, config, middle)
    cycle = address.number("cycle", "Cycle", 1, 1, _MOST_CYCLES, place=right, help=_CYCLE_HELP)
    with st.sidebar:
        st.header("Settings")
        config, off = as_if_running(config)
        _settings(view, shedder, placement, config)
    if off:
        st.info(off, icon=":material/toggle_off:")
    st.caption(f"{shedder.summary} {placement.summary}")
    step = state.step(view, config, cycle)
    pair = shedder.profile.paired_placement
    mixed = placement.name != pair and (bool(pair) or placement.name in PAIRED)
    if mixed:
        st.warning(step.decision.notes[0], icon=":material/link_off:")
    show_notes(step.decision.notes[mixed:], "Notes on this decision")
    _results(view, step, cycle)
    _reasons(view, step)


def _results(view: state.Current, step: CycleStep, cycle: int) -> None:
    """Draw what is chosen, where it goes, and what that does to the brokers."""
    snapshot, decision = view.snapshot, step.decision
    names = snapshot.brokers.name
    sources = {move.source for move in decision.moves}
    chart(
        broker_scores(
            names,
            decision.shedding.scores,
            np.array([n in sources for n in names], dtype=np.bool_),
            decision.shedding.lines,
            decision.shedding.score_unit,
        ),
        verdict(decision, "in the first cycle" if cycle == 1 else f"in cycle {cycle}"),
        "shedding-scores",
    )
    if cycle > 1:
        st.caption(
            f"Unloads of earlier cycles are not carried out: in all {count(cycle, 'cycle')}, the brokers report the"
            " same load, and bundles that an earlier cycle selected do not count as unloaded."
        )
    show_moves(snapshot, decision, "shedding")
    if decision.moves:
        st.markdown("**Each broker before and after**")
        frame = before_and_after(snapshot, decision)
        formats = {column: "%.2f" for column in frame.columns if "MiB/s" in column}
        table(frame, "before-and-after", height=_FEW_ROWS_PX, formats=formats)


def _reasons(view: state.Current, step: CycleStep) -> None:
    """Draw why each broker and each bundle that was examined goes or stays, and what is remembered."""
    snapshot, shedding = view.snapshot, step.decision.shedding
    st.header("Why")
    by_broker, by_bundle = st.tabs(["Broker by broker", "Bundle by bundle"])
    with by_broker:
        table(pd.DataFrame(reason_rows(snapshot, shedding.reasons, bundles=False)), "broker-reasons")
    rows = reason_rows(snapshot, shedding.reasons, bundles=True)
    with by_bundle:
        st.markdown(
            f"{count(len(rows), 'bundle')} examined{', the first are shown' if len(rows) > _SHOWN_REASONS else ''}."
        )
        if rows:
            first = pd.DataFrame(rows[:_SHOWN_REASONS])
            table(first, "bundle-reasons", height=360)
    show_memory(step.after, "shedding")
    show_notes(
        step.decision.shedder.profile.differences,
        "Where the public documentation differs from the code",
    )


PAGE = Page(
    title="Shedding",
    icon=":material/low_priority:",
    purpose="The bundles that a strategy sheds with your settings, and why each bundle moves or stays.",
    draw=draw,
    subject=Subject.DECISION,
    has_drawer=True,
)
