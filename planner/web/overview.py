"""What the Overview page draws."""

from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from planner.cluster.decisions import SplitDecision
from planner.cluster.errors import PlannerError
from planner.cluster.snapshot import Snapshot
from planner.figures.scores import broker_scores
from planner.pulsar.load.usage import deciding_resource, weighted_usage
from planner.pulsar.manager.cycle import CycleDecision
from planner.simulate.measures import imbalance
from planner.simulate.sequence import CycleStep
from planner.web import state
from planner.web.memory import show_memory
from planner.web.moves import show_moves, verdict
from planner.web.text import bytes_per_s, count, msg_per_s, percent
from planner.web.widgets import chart, reason_rows, show_error, show_notes, table

_HOTTEST = 20
_ROOM = 8


def _totals(snapshot: Snapshot) -> tuple[float, float]:
    table_ = snapshot.brokers
    rate = table_.msg_rate_in_per_s.sum() + table_.msg_rate_out_per_s.sum()
    throughput = table_.msg_throughput_in_bytes_per_s.sum() + table_.msg_throughput_out_bytes_per_s.sum()
    return float(rate), float(throughput)


def score_frame(snapshot: Snapshot, decision: CycleDecision) -> pd.DataFrame:
    """Return one row for each broker: score, what decides it, and what the next cycle does with it."""
    leaves = Counter(move.source for move in decision.moves)
    arrives = Counter(move.destination for move in decision.moves)
    why = {row["broker"]: row["why"] for row in reason_rows(snapshot, decision.shedding.reasons, bundles=False)}
    names = snapshot.brokers.name
    factor = 100.0 if decision.shedding.score_unit == "fraction" else 1.0
    unit = "score (%)" if factor > 1 else "score (msg/s)"
    return pd.DataFrame(
        {
            "broker": names,
            unit: decision.shedding.scores * factor,
            "decided by": deciding_resource(snapshot.brokers, snapshot.settings, snapshot.info.load_manager),
            "bundles": snapshot.bundle_counts(),
            "unloads": [leaves[n] for n in names],
            "gets": [arrives[n] for n in names],
            "why": [why.get(n, "") for n in names],
        }
    ).sort_values(unit, ascending=False, kind="stable")


def hottest_bundles(snapshot: Snapshot, limit: int = _HOTTEST) -> pd.DataFrame:
    """Return the bundles with the highest current throughput."""
    bundles = snapshot.bundles
    throughput = bundles.msg_throughput_in_bytes_per_s + bundles.msg_throughput_out_bytes_per_s
    top = np.argsort(-throughput, kind="stable")[:limit]
    top = top[throughput[top] > 0]
    return pd.DataFrame(
        {
            "bundle": [snapshot.bundle_names[i] for i in top],
            "owner": [snapshot.brokers.name[o] if o >= 0 else "not loaded" for o in bundles.owner[top]],
            "MB/s": throughput[top] / 1e6,
            "msg/s": bundles.msg_rate_in_per_s[top] + bundles.msg_rate_out_per_s[top],
            "topics": bundles.topics[top],
            "producers": bundles.producers[top],
            "consumers": bundles.consumers[top],
        }
    )


def _key_figures(snapshot: Snapshot) -> None:
    spread = imbalance(weighted_usage(snapshot.brokers, snapshot.settings, snapshot.info.load_manager))
    rate, throughput = _totals(snapshot)
    loaded = int((snapshot.bundles.owner >= 0).sum())
    figures: list[tuple[str, str, str]] = [
        ("Brokers", f"{len(snapshot.brokers):,}", "Brokers that answered or are registered."),
        ("Bundles loaded", f"{loaded:,}", f"Bundles that a broker owns, of {len(snapshot.bundles):,} there are."),
        ("Messages in + out", msg_per_s(rate), "Sum over the brokers."),
        ("Throughput in + out", bytes_per_s(throughput), "Sum over the brokers."),
        ("Average usage", percent(spread.average), "Mean over the brokers of the largest weighted resource usage."),
        ("Highest - lowest", f"{spread.spread * 100:.1f} points", "Spread of the usage between brokers."),
        ("Standard deviation", f"{spread.std * 100:.1f} points", "Of the usage over the brokers."),
        ("Highest ÷ average", f"{spread.max_over_average:.2f}", "1.00 is perfect balance."),
    ]
    for start in (0, 4):
        for column, (label, value, help_) in zip(st.columns(4), figures[start : start + 4], strict=True):
            column.metric(label, value, help=help_)


def _next_cycle(view: state.Current, step: CycleStep) -> None:
    snapshot, decision = view.snapshot, step.decision
    st.subheader("The next cycle")
    st.caption(
        "As a leader decides that was just elected: it has no averages and no hit counts of its own yet."
        f" {decision.shedder.summary}"
    )
    show_notes(decision.notes, "Notes on this decision")
    show_moves(snapshot, decision, "next")
    _splits(view)
    rows = reason_rows(snapshot, decision.shedding.reasons, bundles=True)
    if rows:
        with st.expander(f"Every bundle that was examined ({len(rows):,})"):
            table(pd.DataFrame(rows[:5_000]), "examined-bundles", height=320 if len(rows) > _ROOM else None)
    show_memory(step.after, "next")
    show_notes(decision.shedder.profile.differences, "Where the public documentation differs from the code")


def splits_frame(decision: SplitDecision) -> pd.DataFrame:
    """Return one row for each bundle that is split by itself."""
    return pd.DataFrame(
        [
            {
                "bundle": s.bundle,
                "broker": s.broker,
                "into": ", ".join(c.rsplit("/", 1)[-1] for c in s.children) or "decided by its broker",
                "why": s.reason.text,
            }
            for s in decision.splits
        ],
        columns=["bundle", "broker", "into", "why"],
    )


def _splits(view: state.Current) -> None:
    settings = view.snapshot.settings
    if not settings.flag("loadBalancerAutoBundleSplitEnabled"):
        st.markdown("**No bundle is split by itself:** loadBalancerAutoBundleSplitEnabled is off.")
        return
    decision = state.splits(view)
    algorithm = settings.text("defaultNamespaceBundleSplitAlgorithm")
    if not decision.splits:
        st.markdown(f"**No bundle is split by itself** ({algorithm}): none exceeds a limit for long enough.")
        return
    st.markdown(f"**{count(len(decision.splits), 'bundle')} split by {algorithm}:**")
    table(splits_frame(decision), "next-splits", column_config=_columns())


def _columns() -> dict[str, Any]:
    number = st.column_config.NumberColumn
    return {
        "msg/s": number(format="%.1f"),
        "MB/s": number(format="%.3f"),
        "why": st.column_config.TextColumn(width="large"),
    }


def draw(view: state.Current) -> None:
    """Draw the page."""
    snapshot = view.snapshot
    try:
        step = state.step(view)
    except PlannerError as error:
        _key_figures(snapshot)
        show_error(error)
        return
    decision = step.decision
    st.markdown(verdict(decision, "at the next cycle"))
    _key_figures(snapshot)
    frame = score_frame(snapshot, decision)
    scores = decision.shedding.scores
    unit = decision.shedding.score_unit
    st.subheader("Broker scores")
    sources = {move.source for move in decision.moves}
    shedding = np.array([n in sources for n in snapshot.brokers.name], dtype=np.bool_)
    lines = ", ".join(
        f"{line.label} {percent(line.value) if unit == 'fraction' else msg_per_s(line.value)}"
        for line in decision.shedding.lines
    )
    top = frame.iloc[0]
    summary = (
        f"Highest score: {top['broker']} with {top.iloc[1]:.1f} {'%' if unit == 'fraction' else 'msg/s'}"
        f"{f'; {lines}' if lines else ''}. {int(shedding.sum())} of {len(shedding)} brokers unload at the next cycle."
    )
    chart(broker_scores(snapshot.brokers.name, scores, shedding, decision.shedding.lines, unit), summary, "scores")
    score = frame.columns[1]
    table(
        frame,
        "broker-scores",
        column_config={
            score: st.column_config.NumberColumn(format="%.2f"),
            "why": st.column_config.TextColumn(width="large"),
        },
    )
    _next_cycle(view, step)
    st.subheader("Hottest bundles")
    hottest = hottest_bundles(snapshot)
    if hottest.empty:
        st.markdown("No bundle reports traffic.")
    else:
        first = hottest.iloc[0]
        st.markdown(f"{first['bundle']} has the most throughput, {first['MB/s']:.3f} MB/s, on {first['owner']}.")
        table(hottest, "hottest-bundles", column_config=_columns())
