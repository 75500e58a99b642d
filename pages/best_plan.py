"""Best plan: which few moves bring most, how far from the best possible that is, and whether Pulsar will undo it."""

import time
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from planner.cluster.names import BROKER_OVERLOADED_THRESHOLD_PERCENTAGE
from planner.cluster.text import count, percent, plain
from planner.cluster.units import MIB, NS_PER_MS
from planner.figures.optimize import before_after_figure, frontier_figure
from planner.optimize.offer import Offer, with_alternative
from planner.optimize.plan import Plan
from planner.optimize.question import Question
from planner.optimize.stability import CYCLES
from planner.optimize.waves import WAVE_CLIENTS
from planner.pulsar.shedding.registry import offered_shedders
from planner.share.carry_out import (
    Basis,
    best_plan_markdown,
    best_plan_script,
    document,
    headline,
    moves_csv,
    of_groups,
    summary,
)
from planner.share.commands import CommandOptions
from planner.share.export import json_text
from planner.simulate.scenario import MOST_STEPS
from planner.simulate.strategies import under_strategy
from planner.web import address, best_plan, doubts, names, registry, scenario_history, simulations, state
from planner.web.page import Page, Subject
from planner.web.widgets import chart, download, metrics, show_switched_off, table

_ASKS = {"level": "Lowest usage", "under": "Below a usage", "drain": "Empty brokers"}
_COSTS = {"clients": "clients", "topics": "topics", "moves": "moves"}
_SPLITS = best_plan.USUAL.splits or 0
_SHOWN = 2_000
_CARD_PX = 165


def _question(view: state.Current) -> tuple[Question, Plan | None] | None:
    """Ask what is wanted; return the question and the plan whose frontier it stands on; None while it is looked for."""
    names = view.snapshot.brokers.name
    ask = address.choice("ask", "Question", _ASKS, segments=True, label_visibility="collapsed")
    with st.expander("Rules and limits", icon=":material/rule:"):
        exclude = address.several("exclude", "Brokers that receive no bundles", names)
        keep = address.several("keep", "Namespaces that stay in place", view.snapshot.namespaces)
        even = address.toggle(
            "even",
            "Spread each namespace's bundles as placement does",
            help="As with loadBalancerDistributeBundlesEvenlyEnabled. Pulsar does not require it when an unload names"
            " its destination.",
        )
        splits = address.number("splits", "Bundles that may be split where one bundle sets the limit", _SPLITS, 0, 50)
    base = Question(exclude=exclude, keep_namespaces=keep, even=even, splits=splits)
    if ask == "under":
        with st.container(horizontal=True, vertical_alignment="bottom"):
            limit = view.snapshot.settings.integer(BROKER_OVERLOADED_THRESHOLD_PERCENTAGE)
            under = address.number("percent", "No broker above (%)", float(limit), 1.0, 1_000.0)
            cost = address.choice("least", "Minimize", _COSTS, segments=True)
        return replace(base, under_percent=under, cost=cost), None
    if ask == "drain":
        drain = address.several("drain", "Brokers to empty", names, names[:1])
        return replace(base, drain=drain), None
    free = best_plan.without_budget(base)
    usual = best_plan.usual_moves(view, base)
    frontier = best_plan.best_known(view, free) if usual is not None else None
    if usual is None or frontier is None:
        return None
    most = max(frontier.frontier[-1].moves, 1) if frontier.frontier else 1
    moves = 1
    if most > 1:
        moves = address.number("moves", "Maximum number of moves", usual, 1, most, slider=True)
    return replace(base, moves=moves), frontier


def _headline(plan: Plan, found: Offer | None = None) -> None:
    """Say the answer, then its numbers, and once it was tried what came of it."""
    st.markdown(f"## {plain(summary(plan) if found is None else headline(found))}")
    clients = round(plan.spent["clients"])
    metrics(
        (
            ("Highest usage", percent(plan.peak), f"Now {percent(float(plan.usage_before[plan.counts].max()))}."),
            ("Lower bound", percent(plan.peak_bound), f"Proven: {plain(plan.lower_bound)}. {plain(plan.limit)}"),
            (
                "Deviation of usage",
                f"{plan.deviation * 100:.1f} points",
                f"Now {plan.deviation_before * 100:.1f} points.",
            ),
            ("Bundles moved", f"{len(plan.moves):,}", "Each bundle moves once."),
            ("Disconnected clients", f"{clients:,}", f"Clients of {count(round(plan.spent['topics']), 'topic')}."),
        ),
        _CARD_PX,
    )
    if plan.question.under_percent is None:
        st.caption(plain(plan.limit))
    if found is not None and found.constraint is not None:
        st.caption(plain(names.short(found.constraint.sentence)))
    for note in plan.notes:
        st.info(plain(note), icon=":material/info:")


def _strategies(view: state.Current) -> dict[str, tuple[int, float]]:
    """Return moves and highest usage of every strategy's own run of the same cluster, with the edits of the scenario.

    None until they are known.
    """
    few = len(view.snapshot.bundles) <= best_plan.AT_ONCE_BUNDLES
    if not few and not address.toggle("strategies", "Simulate the strategies for comparison"):
        return {}
    config, manager = view.captured.settings, view.captured.info.load_manager
    base = scenario_history.as_captured(view) if view.outcome is None else view.outcome.trace.scenario
    offered = offered_shedders(view.snapshot.info.load_manager, view.snapshot.settings.release)
    runs = {one.name: under_strategy(base, config, manager, one.name) for one in offered}
    outcomes = simulations.run(view, *runs.values(), names=list(runs))
    if outcomes is None:
        return {}
    found = zip(runs, (one.summary for one in outcomes), strict=True)
    return {name: (numbers.shed, numbers.final_peak_usage_percent) for name, numbers in found if numbers.shed}


def _frontier_words(frontier: Plan, plan: Plan, others: dict[str, tuple[int, float]]) -> str:
    last = frontier.frontier[-1]
    said = (
        f"**Highest usage with {count(len(plan.moves), 'move')}: {plan.peak * 100:.1f} %; with all"
        f" {count(last.moves, 'useful move')}: {last.peak * 100:.1f} %.** The dotted line is the lower bound for each"
        " number of moves."
    )
    if others:
        parts = [f"{name} {count(moves, 'move')}, {peak:.1f} %" for name, (moves, peak) in others.items()]
        said += f" Strategies on their own: {'; '.join(parts)}."
    return said


def _frontier(
    place: DeltaGenerator, frontier: Plan, plan: Plan, others: dict[str, tuple[int, float]], key: str
) -> None:
    """Draw the highest usage for each number of moves."""
    limit = float(plan.snapshot.settings.integer(BROKER_OVERLOADED_THRESHOLD_PERCENTAGE))
    with place.container():
        chart(frontier_figure(frontier, plan, limit, others), _frontier_words(frontier, plan, others), key)


def _stable(offer: Offer) -> None:
    found = offer.stability
    if offer.verdict is not None:
        verdict = f"compared with doing nothing for as long: {plain(offer.verdict.text)}"
        st.markdown(f"During the plan and the {CYCLES} cycles after it, {verdict}")
    if found.stable:
        st.success(found.sentence, icon=":material/verified:")
        return
    sentence, why = plain(names.short(found.sentence)), plain(names.short(found.why))
    first = f"\n\nFirst bundle shed: {why}." if why else ""
    st.warning(f"{sentence}{first}", icon=":material/undo:")


def _take_away(view: state.Current, offer: Offer, ungrouped: float | None) -> None:
    """Draw the waves and what to take away."""
    plan, found = offer.plan, offer.stability
    most = address.number("wave", "Maximum number of clients disconnected per wave", WAVE_CLIENTS, 1, 1_000_000)
    waves = best_plan.waves(plan.digest(), most, plan)
    over = sorted({name for wave in waves for name in wave.over})
    largest = max((wave.clients for wave in waves), default=0)
    st.markdown(
        f"**{count(len(waves), 'wave')}, each disconnecting at most {count(largest, 'client')}.** "
        + (f"Temporarily above the limit: {', '.join(map(plain, over))}." if over else "")
        + ("No broker exceeds its limit during the plan." if not over else "")
    )
    options = CommandOptions()
    basis = Basis(view.captured, view.outcome.trace.scenario) if view.outcome is not None else None

    def script(*, back: bool) -> bytes:
        made_at_ms = time.time_ns() // NS_PER_MS
        return best_plan_script(plan, waves, found, options, basis, made_at_ms=made_at_ms, back=back).encode()

    def listed() -> bytes:
        made_at_ms = time.time_ns() // NS_PER_MS
        return best_plan_markdown(plan, waves, found, options, basis, made_at_ms=made_at_ms).encode()

    with st.container(horizontal=True):
        download("Script", partial(script, back=False), "best-plan.sh", "text/x-shellscript", type="primary")
        download("Undo script", partial(script, back=True), "best-plan-undo.sh", "text/x-shellscript")
        download("Steps as Markdown", listed, "best-plan-steps.md", "text/markdown")
        content = partial(document, plan, waves, found, name=view.saved.name, ungrouped=ungrouped, basis=basis)
        all_of_it = partial(with_alternative, offer)
        download("JSON", lambda: json_text(content(offer=all_of_it())).encode(), "best-plan.json", "application/json")
        download("CSV", lambda: moves_csv(waves).encode(), "best-plan.csv", "text/csv")
        fits = len(waves) + len(plan.splits) <= MOST_STEPS

        def take() -> None:
            scenario_history.change(view, best_plan.opened(view, plan, waves))
            registry.go("what_if")

        if st.button("Open as a scenario", icon=":material/science:", disabled=not fits):
            take()
    if not fits:
        st.caption(
            f"A scenario can have at most {MOST_STEPS:,} waves. To open this plan as a scenario, allow more clients"
            " per wave."
        )
    st.caption(
        f"Plan digest: `{plan.digest()[:12]}`. The script skips bundles that have moved since the capture. If a step"
        " fails, it restores shedding, splits and settings."
    )


def _moves(plan: Plan) -> None:
    """Draw the moves with their reasons."""
    for one in plan.splits:
        st.markdown(f"- Split `{one.bundle}` at `0x{one.boundary:08x}`: {plain(one.why)}")
    some = plan.moves[:_SHOWN]
    frame = pd.DataFrame(
        {
            "bundle": [move.bundle for move in some],
            "from": [move.source for move in some],
            "to": [move.destination for move in some],
            "clients": [move.producers + move.consumers for move in some],
            "MiB/s": [move.throughput_bytes_per_s / MIB for move in some],
            "why": [move.why for move in some],
        }
    )
    if frame.empty:
        return
    st.markdown(f"#### {count(len(plan.moves), 'move')}")
    widths = {"bundle": 240, "from": 120, "to": 120, "clients": 60, "MiB/s": 70}
    table(frame, "best-plan-moves", height=420, widths=widths)


def _start(view: state.Current) -> state.Current | None:
    """Ask what the plan starts from; return the view of it; None while it is computed."""
    after_cycles = view.outcome is not None and address.toggle(
        "settled",
        "After Pulsar's own cycles",
        help="Start from the end of the scenario, after what Pulsar sheds and splits. Otherwise the plan starts from"
        " the cluster with the scenario's edits.",
    )
    return best_plan.start_of(view, after_cycles=after_cycles)


def draw(view: state.Current) -> None:
    """Draw the page."""
    show_switched_off(view.captured)
    doubts.say(doubts.doubt(view))
    top = st.container()
    start = _start(view)
    if start is None:
        return
    _draw_plan(start, top)


def _brokers(plan: Plan, limit: float, key: str) -> None:
    """Draw the usage of each broker before and after a plan."""
    order = plan.counts
    brokers = [name for name, here in zip(plan.snapshot.brokers.name, order.tolist(), strict=True) if here]
    before, after = plan.usage_before[order], plan.usage_after[order]
    worst = plain(names.short(brokers[int(np.argmax(after))]))
    words = (
        f"**Each broker before and after.** After the plan, {worst} has the highest usage: {after.max() * 100:.1f} %."
    )
    chart(before_after_figure(brokers, before, after, limit), words, key)


def _draw_plan(view: state.Current, top: DeltaGenerator) -> None:
    """Draw a plan for a cluster; its answer at the top."""
    asked = _question(view)
    if asked is None:
        return
    question, frontier = asked
    plan = best_plan.best_known(view, question)
    if plan is None:
        return
    if frontier is not None:
        frontier = best_plan.frontier_with(view, frontier, plan)
    with top:
        head = st.empty()
        with head.container():
            _headline(plan)
        ungrouped = best_plan.ungrouped(view, question)
        groups = st.empty()
        if said := of_groups(plan, ungrouped):
            groups.caption(plain(said))
        status = st.empty()
    limit = float(plan.snapshot.settings.integer(BROKER_OVERLOADED_THRESHOLD_PERCENTAGE))
    place = st.empty()
    curve = frontier is not None and len(frontier.frontier) > 1
    if frontier is not None and curve:
        _frontier(place, frontier, plan, {}, "best-plan-frontier-first")
    each = st.empty()
    with each.container():
        _brokers(plan, limit, "best-plan-brokers-first")
    found = best_plan.offer(view, plan)
    if found is None:
        _moves(plan)
        return
    with head.container():
        _headline(found.plan, found)
    if found.plan is not found.first:
        groups.empty()
        ungrouped = None  # that is of the plan that was tried
        with each.container():
            _brokers(found.plan, limit, "best-plan-brokers")
    if found.plan.moves:
        _offered(view, found, ungrouped)
    if frontier is not None and curve and (others := _strategies(view)):
        _frontier(place, frontier, found.plan, others, "best-plan-frontier")
    with status.container():
        best_plan.look_further(view, [*([best_plan.without_budget(question)] if frontier else []), question], plan)


def _offered(view: state.Current, found: Offer, ungrouped: float | None) -> None:
    """Draw what Pulsar makes of the plan that is offered, and how to carry it out."""
    st.markdown("#### Will Pulsar undo it?")
    _stable(found)
    place = st.container()
    st.markdown("#### How to carry it out")
    _take_away(view, found, ungrouped)
    _moves(found.plan)
    with place:
        other = best_plan.alternative(found)
        if other is not None and other.alternative is not None:
            st.info(plain(other.alternative.sentence), icon=":material/anchor:")


PAGE = Page(
    title="Best plan",
    icon=":material/auto_awesome:",
    purpose="The few moves that improve balance most, and whether Pulsar will undo them.",
    draw=draw,
    subject=Subject.SNAPSHOT,
    with_scenario="This page plans for the cluster with the scenario's edits.",
)
