"""What the Shedding page draws."""

import numpy as np
import pandas as pd
import streamlit as st

from planner.cluster.errors import PlannerError
from planner.cluster.settings import Settings
from planner.cluster.snapshot import LoadManager
from planner.figures.scores import broker_scores
from planner.pulsar.manager.cycle import effective_shedder
from planner.pulsar.placement import avg, least_resource_usage_extensible
from planner.pulsar.placement.modular import configured_placement
from planner.pulsar.placement.modular_filters import SETTINGS as FILTER_SETTINGS
from planner.pulsar.placement.protocol import Placement
from planner.pulsar.placement.registry import PLACEMENTS, placement_by_name
from planner.pulsar.shedding.protocol import Shedder
from planner.pulsar.shedding.registry import SHEDDERS, shedder_by_name
from planner.simulate.sequence import CycleStep
from planner.web import state
from planner.web.memory import show_memory
from planner.web.moves import before_and_after, show_moves, verdict
from planner.web.setting_form import setting_form
from planner.web.strategies import as_if_running
from planner.web.text import count
from planner.web.widgets import chart, reason_rows, show_error, show_notes, table

_AVG = avg.PLACEMENT.name
_MOST_CYCLES = 30
_SHOWN_REASONS = 5_000
_ROOM = 9
_CYCLE_SETTINGS = (
    "loadBalancerSheddingIntervalMinutes",
    "loadBalancerSheddingGracePeriodMinutes",
    "loadBalancerSheddingExcludedNamespaces",
)


def _pick(view: state.Current, label: str, names: list[str], configured: str, param: str, help_: str) -> str:
    """Draw the choice of a strategy; one that is not configured goes into the address."""
    asked = state.param(param)
    if asked and asked not in names:
        manager = view.snapshot.info.load_manager
        st.warning(f"The link names a strategy that the {manager} load manager cannot run.", icon=":material/link_off:")
    start = asked if asked in names else configured
    picked = (
        st.selectbox(label, names, names.index(start), key=f"{param}-{view.digest}-{configured}", help=help_) or start
    )
    state.set_params(**{param: "" if picked == configured else picked})
    return picked


def _shedder(view: state.Current) -> Shedder:
    manager = view.snapshot.info.load_manager
    names = [s.name for s in SHEDDERS if s.load_manager is manager]
    configured = effective_shedder(manager, view.snapshot.settings)[0].name
    help_ = "loadBalancerLoadSheddingStrategy: chooses what leaves its broker."
    return shedder_by_name(_pick(view, "Shedding strategy", names, configured, "strategy", help_))


def _placement(view: state.Current, shedder: Shedder) -> Placement:
    """Draw the choice of a placement strategy; AvgShedder brings its own, and the extensible manager has one."""
    manager = view.snapshot.info.load_manager
    if manager is LoadManager.EXTENSIBLE:
        only = least_resource_usage_extensible.PLACEMENT
        help_ = "The extensible load manager has this one; namespaces excluded from shedding are placed in turn."
        st.selectbox("Placement strategy", [only.name], key="placement-extensible", help=help_, disabled=True)
        return only
    names = [p.name for p in PLACEMENTS if p.load_manager is manager]
    configured = configured_placement(view.snapshot.settings).name
    if (shedder.name == _AVG) != (configured == _AVG):
        configured = _AVG if shedder.name == _AVG else names[0]
    help_ = (
        "loadBalancerLoadPlacementStrategy: chooses where a bundle goes. AvgShedder must be both the shedding and the"
        " placement strategy: only then a bundle goes to the other broker of its pair."
    )
    return placement_by_name(_pick(view, "Placement strategy", names, configured, "placement", help_), manager)


def _cycle(view: state.Current) -> int:
    asked = state.param("cycle")
    start = int(asked) if asked.isdecimal() and 1 <= int(asked) <= _MOST_CYCLES else 1
    help_ = (
        "1 is the next one, by a leader that was just elected. A later one has seen this same load in every cycle"
        " before, as nothing is carried out in between; strategies that count hits need several."
    )
    cycle = int(st.number_input("Cycle", 1, _MOST_CYCLES, start, key=f"cycle-{view.digest}", help=help_))
    state.set_params(cycle="" if cycle == 1 else str(cycle))
    return cycle


def _settings(view: state.Current, shedder: Shedder, placement: Placement, base: Settings) -> Settings:
    """Draw the forms, one under each tab; a setting that several read stands in the first."""
    manager = view.snapshot.info.load_manager
    filters = FILTER_SETTINGS if manager is LoadManager.MODULAR else FILTER_SETTINGS[:2] + FILTER_SETTINGS[4:]
    groups = {"Shedding": shedder.settings, "Placement": placement.settings, "Filters": (*filters, *_CYCLE_SETTINGS)}
    chosen, seen = base, {"loadManagerClassName"}
    for tab, (title, names) in zip(st.tabs(list(groups)), groups.items(), strict=True):
        with tab:
            mine = [name for name in names if name not in seen]
            again = [name for name in names if name in seen and name != "loadManagerClassName"]
            seen |= set(mine)
            prefix = f"{view.digest}-{shedder.name}-{placement.name}-{title}"
            form = setting_form(mine, base, prefix, columns=1)
            chosen = chosen.changed(**{name: form[name] for name in mine})
            if again:
                st.caption(f"Read as well, under an earlier tab: {', '.join(again)}.")
            if not mine and not again:
                st.caption(f"{placement.name} reads no setting.")
    return chosen


def draw(view: state.Current) -> None:
    """Draw the page: choices on top, results beside the settings; in a narrow window results come first."""
    try:
        left, middle, right = st.columns([3, 3, 1])
        with left:
            shedder = _shedder(view)
        with middle:
            placement = _placement(view, shedder)
        with right:
            cycle = _cycle(view)
        results, settings = st.columns([2, 1], gap="large")
        with settings:
            st.subheader("Settings")
            base = view.snapshot.settings.changed(loadBalancerLoadSheddingStrategy=shedder.name)
            if view.snapshot.info.load_manager is LoadManager.MODULAR:
                base = base.changed(loadBalancerLoadPlacementStrategy=placement.name)
            base, off = as_if_running(base)
            config = _settings(view, shedder, placement, base)
        with results:
            if off:
                st.info(off, icon=":material/toggle_off:")
            st.caption(f"{shedder.summary} {placement.summary}")
            step = state.step(view, config, cycle)
            mixed = (shedder.name == _AVG) != (placement.name == _AVG)
            if mixed:
                st.warning(step.decision.notes[0], icon=":material/link_off:")
            show_notes(step.decision.notes[mixed:], "Notes on this decision")
            _results(view, step, cycle)
    except PlannerError as error:
        show_error(error)
        return
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
            f"Nothing is carried out in the {count(cycle - 1, 'cycle')} before: the brokers report the same load each"
            " time, and what an earlier cycle chose is not marked as unloaded."
        )
    show_moves(snapshot, decision, "shedding")
    if decision.moves:
        st.markdown("**Each broker before and after**")
        number = st.column_config.NumberColumn(format="%.2f")
        frame = before_and_after(snapshot, decision)
        table(frame, "before-and-after", column_config={c: number for c in frame.columns if "MB/s" in c})


def _reasons(view: state.Current, step: CycleStep) -> None:
    """Draw why each broker and each bundle that was examined goes or stays, and what is remembered."""
    snapshot, shedding = view.snapshot, step.decision.shedding
    st.subheader("Why, broker by broker")
    wide = {"why": st.column_config.TextColumn(width="large")}
    brokers = pd.DataFrame(reason_rows(snapshot, shedding.reasons, bundles=False))
    table(brokers, "broker-reasons", column_config=wide)
    rows = reason_rows(snapshot, shedding.reasons, bundles=True)
    if rows:
        st.subheader("Why, bundle by bundle")
        st.markdown(
            f"{count(len(rows), 'bundle')} examined{', the first are shown' if len(rows) > _SHOWN_REASONS else ''}."
        )
        table(
            pd.DataFrame(rows[:_SHOWN_REASONS]),
            "bundle-reasons",
            height=360 if len(rows) > _ROOM else None,
            column_config=wide,
        )
    show_memory(step.after, "shedding")
    show_notes(
        step.decision.shedder.profile.differences,
        "Where the public documentation differs from the code",
    )
