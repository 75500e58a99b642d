"""What becomes of the bundles that a cycle chose: where each goes or which rule keeps it, and why."""

from itertools import islice
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from planner.cluster.snapshot import Snapshot
from planner.pulsar.manager.cycle import CycleDecision, Unload
from planner.pulsar.placement.selection import Selection
from planner.web.text import bytes_per_s, count
from planner.web.widgets import table

_LISTED = 5
_IN_WORDS = 3
_SAID = 3
_EXPLAINED = 2_000
_HOW = {
    "named": "The bundle's own name says which broker it belongs to.",
    "owner": "It stays with its present owner.",
    "affinity": "An unload named this destination.",
    "preallocated": "The leader promised it to this broker before.",
    "strategy": "The filters and the placement strategy decide.",
}
_FILTERS = {
    "isolation": "Isolation policies, and topics that the broker serves",
    "topics": "loadBalancerBrokerMaxTopics",
    "anti-affinity": "Anti-affinity group",
    "even distribution": "Even distribution of the namespace's bundles",
    "load manager class": "Same load manager class",
    "version": "Latest broker version",
    "restored": "The filters failed or left nobody: back to the isolation policies",
    "broker_load_manager_class_filter": "Same load manager class",
    "broker_max_topic_count_filter": "loadBalancerBrokerMaxTopics",
    "broker_version_filter": "Latest broker version",
    "broker_anti_affinity_group_filter": "Anti-affinity group",
    "broker_isolation_policies_filter": "Isolation policies",
}


def _some(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more


def destination(unload: Unload) -> str:
    """Return where a bundle goes, in words; where Pulsar draws, all brokers that it may draw."""
    if not unload.carried_out:
        return "stays"
    if len(unload.acceptable) > 1:
        return f"one of {len(unload.acceptable)} brokers: {_some(unload.acceptable)}"
    return unload.move.destination or "nobody: it stays unloaded"


def _in_words(unload: Unload) -> str:
    return f"from {unload.move.source} to {destination(unload)}" if unload.carried_out else unload.reason.text


def moves_frame(decision: CycleDecision) -> pd.DataFrame:
    """Return one row for each bundle that the strategy chose: where it goes, or which rule keeps it."""
    return pd.DataFrame(
        [
            {
                "bundle": u.move.bundle,
                "from": u.move.source,
                "to": destination(u),
                "MB/s": u.move.throughput_bytes_per_s / 1e6,
                "msg/s": u.move.msg_rate_per_s,
                "what happens": u.reason.text,
                "why it was chosen": u.move.reason.text,
            }
            for u in decision.unloads
        ],
        columns=["bundle", "from", "to", "MB/s", "msg/s", "what happens", "why it was chosen"],
    )


def verdict(decision: CycleDecision, when: str) -> str:
    """Return what a cycle does, in one sentence with Markdown.

    Args:
        decision: What it decides.
        when: Such as `at the next cycle`.
    """
    name, chosen, moves = decision.shedder.name, decision.unloads, decision.moves
    if not chosen:
        return f"**{name} unloads nothing {when}.**"
    kept = len(chosen) - len(moves)
    if not moves:
        return f"**{name} chooses {count(kept, 'bundle')} {when}, but none is unloaded:** other rules keep them."
    moved = bytes_per_s(sum(m.throughput_bytes_per_s for m in moves))
    sources = len({m.source for m in moves})
    stays = (
        f" {count(kept, 'more bundle')} {'is' if kept == 1 else 'are'} chosen but kept by other rules." if kept else ""
    )
    return f"**{name} unloads {count(len(moves), 'bundle')} from {count(sources, 'broker')} ({moved}) {when}.**{stays}"


def _drawn(decision: CycleDecision) -> int:
    return sum(1 for u in decision.unloads if u.carried_out and len(u.acceptable) > 1)


def before_and_after(snapshot: Snapshot, decision: CycleDecision) -> pd.DataFrame:
    """Return the traffic and the bundles of each broker before a cycle and after it.

    Where Pulsar draws the destination, the one drawn here counts.
    """
    names, position = snapshot.brokers.name, snapshot.brokers.position
    bundles = snapshot.bundles
    throughput = snapshot.brokers.msg_throughput_in_bytes_per_s + snapshot.brokers.msg_throughput_out_bytes_per_s
    leaving, arriving = np.zeros(len(names)), np.zeros(len(names))
    gained = np.zeros(len(names), dtype=np.int64)
    for move in decision.moves:
        at = snapshot.bundle_position[move.bundle]
        carried = move.throughput_bytes_per_s
        if bundles.has_stats[at]:
            carried = float(bundles.msg_throughput_in_bytes_per_s[at] + bundles.msg_throughput_out_bytes_per_s[at])
        leaving[position[move.source]] += carried
        gained[position[move.source]] -= 1
        if move.destination is not None:
            arriving[position[move.destination]] += carried
            gained[position[move.destination]] += 1
    owned = snapshot.bundle_counts()
    return pd.DataFrame(
        {
            "broker": names,
            "MB/s before": throughput / 1e6,
            "- MB/s": leaving / 1e6,
            "+ MB/s": arriving / 1e6,
            "MB/s after": (throughput - leaving + arriving) / 1e6,
            "bundles before": owned,
            "bundles after": owned + gained,
        }
    ).sort_values("MB/s before", ascending=False, kind="stable")


def step_lines(snapshot: Snapshot, selection: Selection) -> list[str]:
    """Return one sentence for each filter: how many brokers it left, and which it dropped or took back, and why."""
    names, bundles = snapshot.brokers.name, snapshot.bundle_names
    lines = []
    for step in selection.steps:
        total = sum(len(group) for group in step.reasons)
        first = islice((r for group in step.reasons for r in group.rows(names, bundles)), _SAID)
        said = "; ".join(f"{r.broker}: {r.text}" for r in first)
        more = f"; and {total - _SAID:,} more" if total > _SAID else ""
        what = f"it fails: {step.failure}" if step.failure else f"{said}{more}"
        left = f"{count(len(step.kept), 'broker')} left"
        lines.append(f"**{_FILTERS.get(step.name, step.name)}**: {left}{f' ({what})' if what else ''}.")
    return lines


def candidate_frame(snapshot: Snapshot, selection: Selection) -> pd.DataFrame:
    """Return one row for each reason that the placement strategy or a filter gives about a broker."""
    names, bundles = snapshot.brokers.name, snapshot.bundle_names
    rows: list[dict[str, Any]] = []
    for call, answer in enumerate(selection.calls, start=1):
        asked = {"asked": f"time {call}"} if len(selection.calls) > 1 else {}
        for reason in (r for group in answer.reasons for r in group.rows(names, bundles)):
            may = "may be drawn" if reason.broker in answer.acceptable else "not taken"
            taken = reason.broker == answer.selected
            rows.append({**asked, "broker": reason.broker, "verdict": "taken" if taken else may, "why": reason.text})
    for step in selection.steps:
        asked = {"asked": "filters"} if len(selection.calls) > 1 else {}
        for reason in (r for group in step.reasons for r in group.rows(names, bundles)):
            verb = "back after" if step.name == "restored" else "dropped by"
            name = _FILTERS.get(step.name, step.name)
            rows.append({**asked, "broker": reason.broker, "verdict": f"{verb}: {name}", "why": reason.text})
    return pd.DataFrame(rows, columns=list(rows[0]) if rows else ["broker", "verdict", "why"])


def show_moves(snapshot: Snapshot, decision: CycleDecision, key: str) -> None:
    """Draw the table of moves, and how each destination was found."""
    if not decision.unloads:
        st.markdown(f"{decision.shedder.name} chooses no bundle; broker by broker it says why.")
        return
    if len(decision.unloads) <= _IN_WORDS:
        st.markdown("\n".join(f"- `{u.move.bundle}`: {_in_words(u)}" for u in decision.unloads))
    number, text = st.column_config.NumberColumn, st.column_config.TextColumn
    columns = {
        "msg/s": number(format="%.1f"),
        "MB/s": number(format="%.3f"),
        "what happens": text(width="large"),
        "why it was chosen": text(width="large"),
    }
    table(moves_frame(decision), f"{key}-moves", column_config=columns)
    drawn = _drawn(decision)
    if drawn:
        st.caption(
            f"Pulsar draws {count(drawn, 'destination')} at random: any of the brokers named may come out. What is"
            " counted further on this page takes one draw, the same at every visit."
        )
    with st.expander("Why this broker"):
        show_why_this_broker(snapshot, decision, key)


def show_why_this_broker(snapshot: Snapshot, decision: CycleDecision, key: str) -> None:
    """Draw how the destination of one bundle was found: what each filter left, and what the strategy says."""
    shown = decision.unloads[:_EXPLAINED]
    picked = st.selectbox(
        "Bundle that was chosen",
        range(len(shown)),
        format_func=lambda i: f"{shown[i].move.bundle} from {shown[i].move.source}",
        key=f"{key}-why",
    )
    if picked is None or picked >= len(shown):
        return
    unload = shown[picked]
    st.markdown(f"**{unload.move.bundle}**: {unload.reason.text}.")
    selection = unload.selection
    if selection is None:
        st.markdown(
            f"{decision.shedder.name} itself names the destination; no placement strategy is asked."
            if unload.carried_out
            else "The leader keeps it before it looks for a destination: no filter and no placement strategy is asked."
        )
        return
    st.caption(_HOW[selection.how])
    if selection.steps:
        st.markdown(f"The filters, in Pulsar's order, of {count(len(snapshot.brokers), 'broker')}:")
        st.markdown("\n".join(f"{at}. {line}" for at, line in enumerate(step_lines(snapshot, selection), start=1)))
    if selection.strategy:
        st.markdown(f"Then **{selection.strategy}** about the candidates that are left; every broker with its reason:")
        if len(selection.calls) > 1:
            st.caption("It is asked a second time, about all brokers of the isolation policies: one was overloaded.")
        why = {"why": st.column_config.TextColumn(width="large")}
        table(candidate_frame(snapshot, selection), f"{key}-candidates", column_config=why)
