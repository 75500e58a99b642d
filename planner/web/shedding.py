"""What the Shedding page draws."""

import numpy as np
import pandas as pd
import streamlit as st

from planner.figures.scores import broker_scores
from planner.model.decisions import SheddingDecision
from planner.model.errors import PlannerError
from planner.model.settings import Settings
from planner.model.snapshot import LoadManager, Snapshot
from planner.shedding.protocol import Shedder
from planner.shedding.registry import SHEDDERS, shedder_by_name
from planner.simulate.cycle import effective_shedder
from planner.simulate.sequence import decide_sequence
from planner.web import state
from planner.web.documentation import SHEDDING_DIFFERENCES
from planner.web.overview import moves_frame
from planner.web.setting_form import setting_form
from planner.web.text import bytes_per_s, count
from planner.web.widgets import chart, reason_rows, show_error, show_notes, table

__all__ = ["before_and_after", "draw"]

_MOST_CYCLES = 30
_SHOWN_REASONS = 5_000


def before_and_after(snapshot: Snapshot, decision: SheddingDecision) -> pd.DataFrame:
    """Return the traffic of each broker before the moves, and after those whose destination is known."""
    names = snapshot.brokers.name
    throughput = snapshot.brokers.msg_throughput_in_bytes_per_s + snapshot.brokers.msg_throughput_out_bytes_per_s
    leaving, arriving = np.zeros(len(names)), np.zeros(len(names))
    bundles = np.zeros(len(names), dtype=np.int64)
    for move in decision.moves:
        source = snapshot.brokers.position[move.source]
        leaving[source] += move.throughput_bytes_per_s
        bundles[source] -= 1
        if move.destination is not None:
            destination = snapshot.brokers.position[move.destination]
            arriving[destination] += move.throughput_bytes_per_s
            bundles[destination] += 1
    owned = snapshot.bundle_counts()
    return pd.DataFrame(
        {
            "broker": names,
            "MB/s before": throughput / 1e6,
            "leaves (MB/s)": leaving / 1e6,
            "arrives (MB/s)": arriving / 1e6,
            "MB/s after": (throughput - leaving + arriving) / 1e6,
            "bundles before": owned,
            "bundles after": owned + bundles,
        }
    ).sort_values("MB/s before", ascending=False, kind="stable")


def _choose(view: state.Current) -> Shedder:
    manager = view.snapshot.info.load_manager
    offered = [s for s in SHEDDERS if s.load_manager is manager]
    names = [s.name for s in offered]
    configured = effective_shedder(manager, view.snapshot.settings)[0].name
    asked = state.param("strategy")
    if asked and asked not in names:
        st.warning(f"The link names a strategy that the {manager} load manager cannot run.", icon=":material/link_off:")
    start = asked if asked in names else configured
    picked = st.selectbox("Strategy", names, index=names.index(start), key=f"strategy-{view.digest}") or start
    state.set_params(strategy="" if picked == configured else picked)
    return shedder_by_name(picked)


def _verdict(decision: SheddingDecision, cycles: int) -> str:
    when = "in the first cycle" if cycles == 1 else f"in cycle {cycles}"
    if not decision.moves:
        return f"**Nothing is unloaded {when}.**"
    moved = bytes_per_s(sum(m.throughput_bytes_per_s for m in decision.moves))
    sources = len({m.source for m in decision.moves})
    return f"**{count(len(decision.moves), 'bundle')} ({moved}) leave {count(sources, 'broker')} {when}.**"


def _decide(view: state.Current, shedder: Shedder, config: Settings, cycles: int) -> SheddingDecision:
    return decide_sequence([view.snapshot] * cycles, shedder, config)[-1].decision


def draw(view: state.Current) -> None:
    """Draw the page."""
    snapshot = view.snapshot
    try:
        shedder = _choose(view)
        st.caption(shedder.summary)
        cycles = int(
            st.number_input(
                "Cycle",
                1,
                _MOST_CYCLES,
                1,
                key=f"cycles-{view.digest}",
                help="The leader has seen this same load so many times; strategies that count hits need several.",
            )
        )
        with st.expander("Settings", expanded=True):
            config = setting_form(shedder.settings, snapshot.settings, f"{view.digest}-{shedder.name}")
        decision = _decide(view, shedder, config, cycles)
    except PlannerError as error:
        show_error(error)
        return
    names = snapshot.brokers.name
    sources = {m.source for m in decision.moves}
    chart(
        broker_scores(
            names,
            decision.scores,
            np.array([n in sources for n in names], dtype=np.bool_),
            decision.lines,
            decision.score_unit,
        ),
        _verdict(decision, cycles),
        "shedding-scores",
    )
    if snapshot.info.load_manager is LoadManager.MODULAR and shedder.name != "AvgShedder" and decision.moves:
        st.caption("Where a bundle goes is decided afterwards, by placement.")
    if decision.moves:
        table(moves_frame(decision), "shedding-moves")
        table(before_and_after(snapshot, decision), "before-and-after")
    show_notes(decision.notes, "Notes on this decision")
    show_notes(SHEDDING_DIFFERENCES.get(shedder.name, ()), "Where the public documentation differs from the code")
    st.subheader("Why, broker by broker")
    table(pd.DataFrame(reason_rows(snapshot, decision.reasons, bundles=False)), "broker-reasons")
    rows = reason_rows(snapshot, decision.reasons, bundles=True)
    if rows:
        st.subheader("Why, bundle by bundle")
        st.markdown(
            f"{count(len(rows), 'bundle')} examined{', the first are shown' if len(rows) > _SHOWN_REASONS else ''}."
        )
        table(pd.DataFrame(rows[:_SHOWN_REASONS]), "bundle-reasons", height=360)
