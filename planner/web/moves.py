"""What becomes of the bundles that a cycle chose, and what the leader remembers afterwards, drawn."""

import json

import streamlit as st

from planner.cluster.snapshot import Snapshot
from planner.cluster.text import count
from planner.explain.decision_tables import candidate_frame, destination, memory_frame, moves_frame, step_lines
from planner.pulsar.manager.cycle import CycleDecision
from planner.pulsar.manager.leader import LeaderMemory, memory_to_json
from planner.web.names import short
from planner.web.widgets import download, table

EVENT_FORMATS = {"minute": "%.2f", "MiB/s": "%.3f"}
"""Number formats of events."""
EVENT_WIDTHS = {
    "cycle": 55,
    "minute": 65,
    "what": 105,
    "bundle": 270,
    "from": 105,
    "to": 105,
    "MiB/s": 75,
    "topics": 60,
    "why": 520,
}
"""Widths of the columns of events, in pixels."""
_IN_WORDS = 3
_EXPLAINED = 2_000
_SHOWN = 5_000
_HOW = {
    "named": "The name of the bundle determines its broker.",
    "owner": "The bundle stays with its current owner.",
    "affinity": "An unload specified this destination.",
    "preallocated": "The leader had already assigned the bundle to this broker.",
    "strategy": "The filters and the placement strategy decide.",
}


def show_moves(snapshot: Snapshot, decision: CycleDecision, key: str) -> None:
    """Draw the table of moves, and how each destination was found."""
    if not decision.unloads:
        st.markdown(f"{decision.shedder.name} selects no bundle. The reasons are listed per broker.")
        return
    if len(decision.unloads) <= _IN_WORDS:
        fates = [
            f"from {u.move.source} to {destination(u)}" if u.carried_out else u.reason.text for u in decision.unloads
        ]
        said = zip(decision.unloads, fates, strict=True)
        st.markdown("\n".join(f"- `{unload.move.bundle}`: {short(fate)}" for unload, fate in said))
    table(moves_frame(decision), f"{key}-moves", widths={"what happens": 400, "why it was selected": 400})
    drawn = sum(u.carried_out and len(u.acceptable) > 1 for u in decision.unloads)
    if drawn:
        st.caption(
            f"Pulsar draws {count(drawn, 'destination')} at random from the brokers listed. The numbers on this page"
            " use one fixed draw."
        )
    with st.expander("Why this broker"):
        show_why_this_broker(snapshot, decision, key)


def show_why_this_broker(snapshot: Snapshot, decision: CycleDecision, key: str) -> None:
    """Draw how the destination of one bundle was found: what each filter left, and what the strategy says."""
    visible = decision.unloads[:_EXPLAINED]
    picked = st.selectbox(
        "Selected bundle",
        range(len(visible)),
        format_func=lambda i: f"{visible[i].move.bundle} from {visible[i].move.source}",
        key=f"{key}-why",
    )
    if picked is None or picked >= len(visible):
        return
    unload = visible[picked]
    st.markdown(f"**{unload.move.bundle}**: {short(unload.reason.text)}.")
    selection = unload.selection
    if selection is None:
        st.markdown(
            f"{decision.shedder.name} selects the destination itself; no placement strategy runs."
            if unload.carried_out
            else "The leader keeps this bundle in place before it selects a destination, so no filter and no"
            " placement strategy runs."
        )
        return
    st.caption(_HOW[selection.how])
    if selection.steps:
        st.markdown(f"Filters in Pulsar's order, starting with {count(len(snapshot.brokers), 'broker')}:")
        lines = enumerate(step_lines(snapshot, selection), start=1)
        st.markdown("\n".join(f"{at}. {short(line)}" for at, line in lines))
    if selection.strategy:
        st.markdown(f"Then **{selection.strategy}** compares the remaining candidates:")
        if len(selection.calls) > 1:
            st.caption(
                "Placement ran again over all brokers allowed by the isolation policies, because one broker was"
                " overloaded."
            )
        table(candidate_frame(snapshot, selection), f"{key}-candidates")


def show_memory(memory: LeaderMemory, key: str) -> None:
    """Draw what the leader remembers after a cycle, with a download as JSON."""
    frame = memory_frame(memory)
    with st.expander(f"What the leader remembers after this cycle ({len(frame):,})"):
        if frame.empty:
            st.markdown("Nothing: no averages, hit counts, pending assignments or recent unloads.")
        else:
            more = f" Showing the first {_SHOWN:,}." if len(frame) > _SHOWN else ""
            st.markdown(f"A newly elected leader starts with none of this state.{more}")
            table(frame.head(_SHOWN), f"{key}-memory", height=280)
        content = json.dumps(memory_to_json(memory), indent=2)
        download("Download as JSON", content, "leader-memory.json", "application/json", key=f"{key}-memory-json")
