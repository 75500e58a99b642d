"""Failure review: lose any one or two brokers, and grow until the first one saturates."""

from dataclasses import replace

import pandas as pd
import streamlit as st

from planner.cluster.names import BROKER_OVERLOADED_THRESHOLD_PERCENTAGE
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.cluster.text import percent, plain, times
from planner.explain.losses import losses_text
from planner.explain.outcome import Outcome
from planner.figures.scores import bars_by_name
from planner.figures.theme import short_names, without_endings
from planner.optimize.waves import scenario_of
from planner.share.carry_out import summary
from planner.simulate.assumptions import Assumptions
from planner.simulate.failure_review import FailureReview
from planner.simulate.losses import LOSS_AT_MIN, Losses, at_its_end, with_loss, with_loss_at_its_end
from planner.simulate.scenario import Scenario
from planner.web import address, best_plan, doubts, names, registry, scenario_history, simulations, state
from planner.web.page import Page, Subject
from planner.web.reviews import losses, simulated
from planner.web.widgets import chart, metrics, table

_SHOWN = 2_000
_BARS = 24
_CARD_PX = 230
_GROWTH = "Assumes that no bundle moves and that memory usage stays the same."
_RESOURCES = {"": "", "cpu": "CPU", "bandwidthIn": "inbound network", "bandwidthOut": "outbound network"}


def review_frame(found: FailureReview) -> pd.DataFrame:
    """Return one row for each loss, the worst first."""
    order = found.worst_first()[:_SHOWN]
    return pd.DataFrame(
        {
            "lost": [", ".join(found.names(int(at))) for at in order],
            "highest usage (%)": found.peak_usage[order] * 100,
            "on": [found.brokers[int(found.peak_broker[at])] for at in order],
            "brokers above the limit": found.over_threshold[order],
            "headroom (x)": found.headroom_factor[order],
            "bundles no broker can own": found.unserved[order],
            "disconnected clients": found.clients[order],
        }
    )


def losses_frame(found: Losses) -> pd.DataFrame:
    """Return one row for each simulated loss, the worst first."""
    shown = found.simulated[:_SHOWN]
    return pd.DataFrame(
        {
            "lost": [one.broker for one in shown],
            "right after (%)": [one.right_after_percent for one in shown],
            "highest usage (%)": [one.highest_percent for one in shown],
            "on": [one.highest_on for one in shown],
            "minutes after the loss": [one.highest_at_min for one in shown],
            "brokers above the limit": [one.over_threshold for one in shown],
            "topics disconnected": [one.topics for one in shown],
            "bundles no broker can serve": [one.unserved for one in shown],
        }
    )


def _try_it(view: state.Current, lost: tuple[str, ...], end: Outcome | None) -> None:
    """Offer the simulation in which the worst loss happens to the cluster that is reviewed."""
    base, when, help_ = scenario_history.as_captured(view), "", None
    if end is not None:
        when = " after the scenario"
        help_ = "The leader then remembers the scenario's cycles; the losses on this page begin with a new leader."
    elif scenario_history.present(view) != base:
        help_ = "Without the open scenario. You can undo this on What-if."
    label = f"Simulate the worst loss{when}: {plain(names.short(' and '.join(lost)))}"
    if st.button(label, icon=":material/science:", help=help_):
        made = with_loss(base, *lost) if end is None else with_loss_at_its_end(end.trace, *lost)
        scenario_history.change(view, replace(made, name="" if end is None else scenario_history.present(view).name))
        registry.go("what_if")


def _safe_plan(view: state.Current) -> None:
    """Offer few moves after which the loss of any one broker is milder."""
    if withheld := doubts.doubt(view).instead_of("moves"):
        st.caption(plain(names.short(withheld)))
        return
    if address.toggle("safe", "Find a few moves that reduce the impact of the worst loss"):
        plan = best_plan.safe_of(view)
        if plan is None:
            return
        st.markdown(f"**{plain(summary(plan))}** {plain(plan.notes[-1])}")
        if st.button("Open these moves as a scenario", icon=":material/auto_awesome:", disabled=not plan.moves):
            scenario_history.change(view, scenario_of(plan, held=False))
            registry.go("what_if")


def _growth(found: FailureReview, limit: int) -> None:
    """Draw how things are now, and how far traffic can grow."""
    growth = found.before.growth
    over = f"{found.before.over_threshold:,}"
    metrics(
        (
            ("Highest usage", percent(found.before.peak_usage), "Before any loss."),
            ("Brokers above the limit", over, f"Before any loss. The limit is {limit} %."),
            (
                "Headroom",
                times(growth.factor),
                f"Factor by which all traffic can grow until one broker is full. {_GROWTH}",
            ),
        ),
        _CARD_PX,
    )
    who = f"{_RESOURCES[growth.resource]} of {names.short(growth.broker)} fills up first"
    st.caption(f"As all traffic grows, the {who}. {_GROWTH}" if growth.broker else _GROWTH)


def _losses(found: FailureReview, frame: pd.DataFrame, limit: int) -> None:
    """Draw the worst losses."""
    worst, losses = frame.iloc[0], len(found.peak_usage)
    more = int((found.over_threshold > found.before.over_threshold).sum())
    full = int((found.peak_usage > 1).sum())
    reaches = "reaches" if found.peak_usage.max() > found.before.peak_usage else "still has the highest usage, with"
    summary = (
        f"**Worst loss: {worst['lost']}. Then {worst['on']} {reaches} {worst['highest usage (%)']:.1f} %.** Of"
        f" {losses:,} possible losses, {more:,} put more brokers above the limit of {limit} % than now, and {full:,}"
        f" exceed the capacity of a broker.{f' Showing the worst {_BARS}.' if losses > _BARS else ''}"
    )
    short = dict(zip(found.brokers, short_names(found.brokers), strict=True))
    first = found.worst_first()[:_BARS].tolist()
    bars = {" + ".join(short[name] for name in found.names(at)): float(found.peak_usage[at]) * 100 for at in first}
    chart(bars_by_name(bars, limit, "highest usage after the loss (%)"), summary, "losses")


def _one(view: state.Current, key: str, snapshot: Snapshot, scenario: Scenario, end: Outcome | None) -> None:
    """Draw the loss of any one broker, simulated."""
    found = simulated(key, snapshot, scenario)
    if found is None:
        return
    _growth(found.review, found.limit_percent)
    if not found.simulated:
        st.info("Too few brokers: no broker would remain to take over.", icon=":material/info:")
        return
    frame = losses_frame(found)
    short = dict(zip(snapshot.brokers.name, short_names(snapshot.brokers.name), strict=True))
    bars = {short[one.broker]: one.highest_percent for one in found.simulated[:_BARS]}
    text = losses_text(found, dict(zip(short, without_endings(snapshot.brokers.name), strict=True)))
    chart(bars_by_name(bars, found.limit_percent, "highest usage with the loss (%)"), f"**{plain(text)}**", "losses")
    _try_it(view, (found.simulated[0].broker,), end)
    if end is None:
        _safe_plan(view)
    formats = {"right after (%)": "%.1f", "highest usage (%)": "%.1f", "minutes after the loss": "%.0f"}
    table(frame, "losses", height=420, formats=formats)
    st.caption(
        f"Each row is a simulation in which that broker dies after {LOSS_AT_MIN:.0f} minutes: with anti-affinity,"
        " isolation, splits and later shedding, as What-if shows it."
    )


def _two(
    view: state.Current,
    key: str,
    snapshot: Snapshot,
    config: Settings,
    assumptions: Assumptions,
    end: Outcome | None,
) -> None:
    """Draw the loss of any two brokers, estimated."""
    found = losses(key, snapshot, config, 2, assumptions)
    if found is None:
        return
    limit = config.integer(BROKER_OVERLOADED_THRESHOLD_PERCENTAGE)
    _growth(found, limit)
    if not len(found.peak_usage):
        st.info("Too few brokers: no broker would remain to take over.", icon=":material/info:")
        return
    frame = review_frame(found)
    _losses(found, frame, limit)
    _try_it(view, found.names(int(found.worst_first()[0])), end)
    formats = {"highest usage (%)": "%.1f", "headroom (x)": "%.2f"}
    table(frame, "losses", height=420, formats=formats)
    st.caption(f"This is an estimate. {found.method}")


def draw(view: state.Current) -> None:
    """Draw the page."""
    present = scenario_history.present(view)
    with st.container(horizontal=True):
        lost = address.choice("lose", "Lose", {"1": "any one broker", "2": "any two brokers"}, segments=True)
        when = address.choice("when", "Cluster", {"now": "as captured", "end": "after the scenario"}, segments=True)
    doubts.say(doubts.doubt(view, present if when == "end" else None))
    key, snapshot, scenario, end = view.digest, view.snapshot, scenario_history.as_captured(view), None
    if when == "end":
        outcomes = simulations.run(view, present)
        if outcomes is None:
            return
        end = outcomes[0]
        key = f"{key}-{end.digest}"
        snapshot, scenario = at_its_end(end.trace)
    if lost == "2":
        _two(view, key, snapshot, scenario.settings_over(snapshot), present.assumptions, end)
    else:
        _one(view, key, snapshot, scenario, end)


PAGE = Page(
    title="Failure review",
    icon=":material/emergency_home:",
    purpose="What happens when one or two brokers are lost, and how far traffic can grow.",
    draw=draw,
    subject=Subject.SCENARIO,
    at_end={"when": "end"},
)
