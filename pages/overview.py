"""Overview: how the cluster is, what is wrong with it, and what happens at the next cycle."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from planner.cluster.errors import PlannerError
from planner.cluster.names import (
    AUTO_BUNDLE_SPLIT_ENABLED,
    BROKER_OVERLOADED_THRESHOLD_PERCENTAGE,
    DEFAULT_NAMESPACE_BUNDLE_SPLIT_ALGORITHM,
)
from planner.cluster.snapshot import Snapshot
from planner.cluster.text import bytes_per_s, count, msg_per_s, percent, plain, times
from planner.explain.cluster_tables import deciding, hottest_bundles, score_frame, splits_frame
from planner.explain.decision_tables import reason_rows, verdict
from planner.explain.diagnosis import diagnose
from planner.explain.health import Figure, Health, figure_levels, health, usage_of
from planner.explain.losses import losses_text
from planner.explain.outcome import Outcome
from planner.figures.scores import broker_scores
from planner.figures.theme import short_names, without_endings
from planner.pulsar.load.usage import weighted_usage
from planner.pulsar.manager.cycle import CycleDecision
from planner.remedy.tried import in_vain
from planner.simulate.losses import at_its_end
from planner.simulate.sequence import CycleStep
from planner.simulate.usage_model import Standing
from planner.web import names, registry, scenario_history, simulations, state, tasks
from planner.web.best_plan import best_plan_sentence
from planner.web.findings import finding_cards
from planner.web.moves import show_memory, show_moves
from planner.web.page import Page, welcome
from planner.web.quick_edits import quick_edits
from planner.web.remedies import findings_of, fix_box
from planner.web.resource_map import show_resources
from planner.web.reviews import simulated, standing_of
from planner.web.widgets import chart, metrics, show_notes, show_switched_off, table

_CARD_PX = 160
_FINDINGS = 3
_LOOKS = {"bad": ("error", "error"), "warning": ("warning", "warning"), "good": ("success", "check_circle")}
"""By how urgent a verdict is: what draws it, and its icon."""


_LABELS: dict[Figure, str] = {
    "highest": "Highest usage",
    "average": "Average usage",
    "deviation": "Deviation",
    "headroom": "Headroom",
}
_SHED = "Shed next cycle"
_WITHOUT = (
    "The open scenario is not part of it. A remedy is added to that scenario, where it may achieve something else than"
    " it says here."
)


def _trends(outcome: Outcome | None) -> dict[str, list[float]]:
    """Return the course of key figures over the simulated cycles, by their labels; none of a single cycle."""
    if outcome is None or len(outcome.trace.cycles) < 2:  # noqa: PLR2004 - a line has two ends
        return {}
    spread = outcome.demand_spread
    found = {
        _LABELS["highest"]: spread.highest * 100,
        _LABELS["average"]: spread.average * 100,
        _LABELS["deviation"]: spread.std * 100,
        _SHED: outcome.counts.shed.astype(np.float64),
    }
    return {label: values.round(2).tolist() for label, values in found.items() if np.isfinite(values).all()}


def _key_figures(view: state.Current, now: Standing, step: CycleStep | None, outcome: Outcome | None = None) -> None:
    """Draw what counts: usage, headroom, the next cycle; the sparklines are their course in the simulated cycles."""
    snapshot, limit = view.measured, view.measured.settings.integer(BROKER_OVERLOADED_THRESHOLD_PERCENTAGE)
    least, mean, _ = usage_of(snapshot, snapshot.settings)
    brokers = snapshot.brokers
    rate = float(brokers.msg_rate_in_per_s.sum() + brokers.msg_rate_out_per_s.sum())
    throughput = float(brokers.msg_throughput_in_bytes_per_s.sum() + brokers.msg_throughput_out_bytes_per_s.sum())
    who = f"{now.growth.broker} fills up first." if now.growth.broker else "There is no usage."
    first = _busiest_first(snapshot)
    decides = deciding(snapshot)
    hottest = f"{short_names(brokers.name)[first[0]]}, {decides[first[0]]}" if first and now.peak_usage > 0 else ""
    moved = "unknown" if step is None else f"{len(step.decision.moves):,}"
    figures = [
        (_LABELS["highest"], percent(now.peak_usage), f"Overloaded above {limit} %; the lowest is {percent(least)}."),
        (
            _LABELS["average"],
            percent(mean),
            "Mean over all brokers. A broker's usage is that of its most used resource, with weights.",
        ),
        (
            _LABELS["deviation"],
            f"{now.std * 100:.1f} points",
            "Standard deviation of usage over all brokers, in points.",
        ),
        (
            _LABELS["headroom"],
            times(now.growth.factor),
            f"Factor by which all traffic can grow until one broker is full. {who}",
        ),
        (_SHED, moved, "Bundles that a newly elected leader would shed."),
        ("Throughput", bytes_per_s(throughput), f"In and out, {msg_per_s(rate)}."),
    ]
    trends = _trends(outcome)
    if outcome is not None and trends:
        course = f" The sparkline shows the next {count(len(outcome.trace.cycles), 'cycle')}, simulated."
        figures = [(label, value, f"{text}{course if label in trends else ''}") for label, value, text in figures]
    levels = {_LABELS[name]: level for name, level in figure_levels(snapshot, snapshot.settings, now).items()}
    metrics(figures, _CARD_PX, {_LABELS["highest"]: hottest}, levels, trends)


def _busiest_first(snapshot: Snapshot) -> list[int]:
    """Return the places of the brokers, the one that is used most first."""
    usage = weighted_usage(snapshot.brokers, snapshot.settings, snapshot.info.load_manager)
    order: list[int] = np.argsort(-usage, kind="stable").tolist()
    return order


def _losses(view: state.Current) -> tuple[str, str]:
    """Return the broker whose loss is the worst, and a sentence about the result.

    Both are empty while that is worked out.
    """
    snapshot, base = view.snapshot, scenario_history.as_captured(view)
    if view.outcome is not None:
        snapshot, base = at_its_end(view.outcome.trace)
    found = simulated(f"{view.digest}{view.variant}", snapshot, base, last=True)
    if found is None:
        return "", ""
    heads = dict(zip(snapshot.brokers.name, without_endings(snapshot.brokers.name), strict=True))
    lost = found.simulated[0].broker if found.simulated else snapshot.brokers.name[0]
    return lost, plain(losses_text(found, heads))


def _verdict(place: Any, found: Health) -> None:
    """Draw how the cluster is: a colour with an icon and a word."""
    draw, icon = _LOOKS[found.level]
    getattr(place, draw)(f"**{found.word}:** {plain(names.short(found.text))}", icon=f":material/{icon}:")


def _plan_card(view: state.Current, *, wait: bool) -> None:
    """Draw the best plan; with `wait` it is not begun."""
    place = st.container()
    place.markdown(f"**Best plan.** {'' if wait else plain(best_plan_sentence(view))}")
    registry.link("best_plan", "The plan")


def _loss_card(view: state.Current, *, wait: bool) -> str:
    """Draw the worst loss, and return the broker; with `wait` it is not begun."""
    place = st.container()
    lost, sentence = ("", "") if wait else _losses(view)
    place.markdown(f"**Loss of a broker.** {sentence}")
    registry.link("failure_review", "All losses")
    return lost


def _clicks(view: state.Current, lost: str) -> None:
    """Draw the questions that are a click away."""
    known = set(view.captured.brokers.name)
    order = [view.measured.brokers.name[i] for i in _busiest_first(view.measured)]
    busiest = next((name for name in order if name in known), lost)
    quick_edits(view, lost if lost in known else busiest, busiest)


def _findings(view: state.Current, outcome: Outcome) -> frozenset[str]:
    """Draw what the diagnosis of the next cycles found, the worst first; return whose remedies made no difference."""
    found = diagnose(outcome)
    cycles = count(len(outcome.trace.cycles), "cycle")
    st.header(f"Findings ({len(found)})")
    tried = findings_of(view, outcome, last=True)
    own, present = outcome.trace.scenario, scenario_history.present(view)
    without = "" if replace(own, name="") == replace(present, name="") else f" {_WITHOUT}"
    st.caption(f"Based on a simulation of {cycles} of the load balancer; most severe first.{without}")
    finding_cards(view, tried[:_FINDINGS], "overview", columns=3)
    if len(found) > _FINDINGS:
        with st.expander(f"{count(len(found) - _FINDINGS, 'more finding')}"):
            finding_cards(view, tried[_FINDINGS:], "overview-more", columns=3)
    fix_box(view, outcome)
    return in_vain(tried)


def _scores(snapshot: Snapshot, decision: CycleDecision, why: DeltaGenerator) -> None:
    """Draw the score of each broker, and beside it why the next cycle does what it does with it."""
    shedding, fraction = decision.shedding, decision.shedding.score_unit == "fraction"
    sources = {move.source for move in decision.moves}
    unloads = np.array([name in sources for name in snapshot.brokers.name], dtype=np.bool_)
    lines = ", ".join(f"{one.label} {(percent if fraction else msg_per_s)(one.value)}" for one in shedding.lines)
    frame = score_frame(snapshot, decision)
    broker, score = frame.columns[:2]
    top = frame.iloc[0]
    summary = (
        f"Highest score: {top[broker]} with {top[score]:.1f} {'%' if fraction else 'msg/s'}{lines and f'; {lines}'}."
        f" {int(unloads.sum())} of {count(len(unloads), 'broker')} will shed in the next cycle."
    )
    limit = snapshot.settings.integer(BROKER_OVERLOADED_THRESHOLD_PERCENTAGE) / 100 if fraction else None
    figure = broker_scores(snapshot.brokers.name, shedding.scores, unloads, shedding.lines, shedding.score_unit, limit)
    chart(figure, summary, "scores")
    with why:
        table(frame, "broker-scores", formats={score: "%.2f"})


def _next_cycle(view: state.Current, step: CycleStep) -> None:
    """Draw what happens at the next cycle, its details behind tabs."""
    snapshot, decision = view.snapshot, step.decision
    st.header("The next cycle")
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(verdict(decision, "in the next cycle"), width="stretch")
        registry.link("moves", "Commands", ":material/terminal:", tab="commands")
        registry.link("moves", "Report", ":material/description:", tab="files")
    st.caption(
        f"As decided by a newly elected leader, which has no averages and no hit counts yet. {decision.shedder.summary}"
    )
    show_notes(decision.notes, "Notes on this decision")
    titles = [
        "Broker scores",
        "Resources",
        "Why each broker",
        f"Moves ({len(decision.moves):,}) and splits",
        "Hottest bundles",
    ]
    scores, used, why, moves, hottest = st.tabs(titles)
    with scores:
        _scores(snapshot, decision, why)
    with used:
        show_resources(view.measured, "resources")
    with moves:
        _moves(view, step)
    with hottest:
        _hottest(snapshot)


def _moves(view: state.Current, step: CycleStep) -> None:
    """Draw what moves and splits, every bundle that was examined, and what is remembered."""
    snapshot, decision = view.snapshot, step.decision
    show_moves(snapshot, decision, "next")
    _splits(view)
    rows = reason_rows(snapshot, decision.shedding.reasons, bundles=True)
    if rows:
        with st.expander(f"All bundles examined ({len(rows):,})"):
            table(pd.DataFrame(rows[:5_000]), "examined-bundles", height=320)
    show_memory(step.after, "next")
    show_notes(decision.shedder.profile.differences, "Where the public documentation differs from the code")


def _splits(view: state.Current) -> None:
    settings = view.snapshot.settings
    if not settings.flag(AUTO_BUNDLE_SPLIT_ENABLED):
        st.markdown("**No automatic splits:** loadBalancerAutoBundleSplitEnabled is off.")
        return
    decision = state.splits(view)
    algorithm = settings.text(DEFAULT_NAMESPACE_BUNDLE_SPLIT_ALGORITHM)
    if not decision.splits:
        st.markdown(f"**No automatic splits** ({algorithm}): no bundle has exceeded a limit for long enough.")
        return
    st.markdown(f"**{count(len(decision.splits), 'bundle')} split by {algorithm}:**")
    table(splits_frame(decision), "next-splits")


def _hottest(snapshot: Snapshot) -> None:
    hottest = hottest_bundles(snapshot)
    if hottest.empty:
        st.markdown("No bundle reports traffic.")
        return
    first = hottest.iloc[0]
    owner = names.short(str(first["owner"]))
    st.markdown(f"{first['bundle']} on {owner} has the highest throughput: {first['MiB/s']:.1f} MiB/s.")
    table(hottest, "hottest-bundles")


def draw(view: state.Current) -> None:
    """Draw the page: the verdict, what counts, what to ask next, findings; then the next cycle in detail."""
    welcome(view)
    show_switched_off(view.captured)
    snapshot, now = view.snapshot, standing_of(view)
    verdict_place = st.empty()
    _verdict(verdict_place, health(view.measured, view.measured.settings, now, None, None))
    figures_place = st.empty()
    try:
        step = state.step(view)
    except PlannerError:
        _key_figures(view, now, None)
        raise
    with figures_place.container():
        _key_figures(view, now, step, view.outcome)
    if not len(snapshot.brokers):
        return
    _answers(view, now, step, verdict_place, figures_place)
    _next_cycle(view, step)


def _answers(
    view: state.Current, now: Standing, step: CycleStep, verdict_place: DeltaGenerator, figures_place: DeltaGenerator
) -> None:
    """Draw what is simulated, one after the other, as one processor gives the first answers soonest that way.

    First what the verdict needs, then the best plan, the remedies of findings and the losses.
    """
    plan_place, loss_place = (one.container(border=True, height="stretch") for one in st.columns(2))
    clicks_place, findings_place = st.container(), st.container()
    outcomes = simulations.run(view, scenario_history.as_captured(view)) if view.outcome is None else [view.outcome]
    wait = outcomes is None and bool(simulations.SIMULATIONS.pending(tasks.watcher()))
    if outcomes is not None:
        mended = outcomes[0] if view.outcome is None else None
        found = diagnose(outcomes[0])
        _verdict(verdict_place, health(view.measured, view.measured.settings, now, mended, found))
        if view.outcome is None:
            with figures_place.container():
                _key_figures(view, now, step, outcomes[0])
    with plan_place:
        _plan_card(view, wait=wait)
    if outcomes is not None:
        with findings_place:
            vain = _findings(view, outcomes[0])
        if vain:
            _verdict(verdict_place, health(view.measured, view.measured.settings, now, mended, found, vain))
    with loss_place:
        lost = _loss_card(view, wait=wait)
    with clicks_place:
        _clicks(view, lost)


PAGE = Page(
    title="Overview",
    icon=":material/monitoring:",
    purpose="The state of the cluster, its problems and their remedies, and what Pulsar does in the next cycle.",
    draw=draw,
    welcomes=True,
)
