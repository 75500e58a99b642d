"""Overview: is this cluster balanced, and what happens at the next cycle?"""

import numpy as np
import pandas as pd
import streamlit as st

from planner.cluster.errors import PlannerError
from planner.cluster.snapshot import Snapshot
from planner.explain.cluster_tables import hottest_bundles, score_frame, splits_frame
from planner.explain.decision_tables import reason_rows, verdict
from planner.explain.text import bytes_per_s, count, msg_per_s, percent
from planner.figures.scores import broker_scores
from planner.pulsar.load.usage import weighted_usage
from planner.pulsar.manager.cycle import CycleDecision
from planner.simulate.measures import imbalance
from planner.simulate.sequence import CycleStep
from planner.web import state
from planner.web.moves import show_memory, show_moves
from planner.web.page import Page
from planner.web.widgets import chart, show_notes, table

_ROOM = 8


def _key_figures(snapshot: Snapshot) -> None:
    spread = imbalance(weighted_usage(snapshot.brokers, snapshot.settings, snapshot.info.load_manager))
    brokers = snapshot.brokers
    rate = float(brokers.msg_rate_in_per_s.sum() + brokers.msg_rate_out_per_s.sum())
    throughput = float(brokers.msg_throughput_in_bytes_per_s.sum() + brokers.msg_throughput_out_bytes_per_s.sum())
    loaded = int((snapshot.bundles.owner >= 0).sum())
    figures: list[tuple[str, str, str]] = [
        ("Brokers", f"{len(brokers):,}", "Brokers that answered or are registered."),
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


def _scores(snapshot: Snapshot, decision: CycleDecision) -> None:
    """Draw the score of each broker, and what the next cycle does with it."""
    st.subheader("Broker scores")
    shedding, fraction = decision.shedding, decision.shedding.score_unit == "fraction"
    sources = {move.source for move in decision.moves}
    unloads = np.array([name in sources for name in snapshot.brokers.name], dtype=np.bool_)
    lines = ", ".join(f"{one.label} {(percent if fraction else msg_per_s)(one.value)}" for one in shedding.lines)
    frame = score_frame(snapshot, decision)
    broker, score = frame.columns[:2]
    top = frame.iloc[0]
    summary = (
        f"Highest score: {top[broker]} with {top[score]:.1f} {'%' if fraction else 'msg/s'}{lines and f'; {lines}'}."
        f" {int(unloads.sum())} of {len(unloads)} brokers unload at the next cycle."
    )
    figure = broker_scores(snapshot.brokers.name, shedding.scores, unloads, shedding.lines, shedding.score_unit)
    chart(figure, summary, "scores")
    table(frame, "broker-scores", formats={score: "%.2f"})


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
    table(splits_frame(decision), "next-splits")


def _hottest(snapshot: Snapshot) -> None:
    st.subheader("Hottest bundles")
    hottest = hottest_bundles(snapshot)
    if hottest.empty:
        st.markdown("No bundle reports traffic.")
        return
    first = hottest.iloc[0]
    st.markdown(f"{first['bundle']} has the most throughput, {first['MB/s']:.3f} MB/s, on {first['owner']}.")
    table(hottest, "hottest-bundles")


def draw(view: state.Current) -> None:
    """Draw the page."""
    try:
        step = state.step(view)
    except PlannerError:
        _key_figures(view.snapshot)
        raise
    st.markdown(verdict(step.decision, "at the next cycle"))
    _key_figures(view.snapshot)
    _scores(view.snapshot, step.decision)
    _next_cycle(view, step)
    _hottest(view.snapshot)


PAGE = Page(
    title="Overview",
    icon=":material/monitoring:",
    purpose="Is the cluster balanced, what does Pulsar do at the next cycle, and why?",
    draw=draw,
)
