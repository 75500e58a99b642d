"""What the Failure review page draws: what the cluster can lose, and how far it can grow."""

from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from planner.cluster.errors import PlannerError
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.explain.failure_review import FailureReview, at_the_end, review_losses
from planner.figures.scores import bars_by_name
from planner.figures.simulation import short_names
from planner.simulate.assumptions import Assumptions
from planner.simulate.edits.registry import BrokerLoss
from planner.simulate.scenario import Scenario, Step
from planner.web import scenarios, state
from planner.web.text import percent
from planner.web.widgets import chart, show_error, table

_SHOWN = 2_000
_BARS = 24
_MANY = 12
_CARD_PX = 230
_GROWTH = "Nothing is moved meanwhile; memory stays as it is."
_RESOURCES = {"": "", "cpu": "CPU", "bandwidthIn": "inbound network", "bandwidthOut": "outbound network"}
_WIDTHS = {
    "peak usage (%)": st.column_config.NumberColumn(format="%.1f"),
    "headroom (times)": st.column_config.NumberColumn(format="%.2f"),
}


@st.cache_data(max_entries=16, show_spinner="Taking brokers away …", hash_funcs={Settings: repr, Snapshot: id})
def _review(digest: str, _snapshot: Snapshot, config: Settings, lost: Any, assumptions: Assumptions) -> FailureReview:
    del digest
    return review_losses(_snapshot, config, lost=lost, assumptions=assumptions)


def review_frame(found: FailureReview, limit: int = _SHOWN) -> pd.DataFrame:
    """Return one row for each loss, the worst first."""
    order = found.worst_first()[:limit]
    return pd.DataFrame(
        {
            "lost": [", ".join(found.names(int(at))) for at in order],
            "peak usage (%)": found.peak_usage[order] * 100,
            "on": [found.brokers[int(found.peak_broker[at])] for at in order],
            "brokers over threshold": found.over_threshold[order],
            "headroom (times)": found.headroom_factor[order],
            "bundles nobody may take": found.unserved[order],
            "clients that reconnect": found.clients[order],
        }
    )


def _try_it(view: state.Current, found: FailureReview, present: Scenario) -> None:
    """Offer the exact answer: a scenario in which the worst loss happens."""
    order = found.worst_first()
    if not len(order):
        return
    names = found.names(int(order[0]))
    if st.button(f"Simulate the worst loss: {' and '.join(names)}", icon=":material/science:"):
        steps = tuple(Step(BrokerLoss(broker=name, at_min=2)) for name in names)
        scenarios.change(view, present.with_steps(*present.steps, *steps))
        st.switch_page(state.PAGES / "what_if.py")


def draw(view: state.Current) -> None:
    """Draw the page."""
    present = scenarios.history(view).present
    outcomes = scenarios.run(view, present)
    if outcomes is None:
        return
    outcome, trace = outcomes[0], outcomes[0].trace
    asked = state.param("lose")
    options = {"1": "any one broker", "2": "any two brokers"}
    with st.container(horizontal=True):
        lost = st.segmented_control(
            "Lose",
            list(options),
            default=asked if asked in options else "1",
            format_func=options.__getitem__,
            required=True,
            key="review-lose",  # without one the next choice would be lost, as the default follows the address
        )
        when = st.segmented_control("Cluster", ["as it is", "after the scenario"], default="as it is", required=True)
    state.set_params(lose="" if lost in {None, "1"} else str(lost))
    snapshot = at_the_end(trace) if when == "after the scenario" else view.snapshot
    try:
        number = 2 if lost == "2" else 1
        key = f"{view.digest}-{outcome.digest if when != 'as it is' else ''}"
        found = _review(key, snapshot, trace.settings, number, present.assumptions)
    except PlannerError as error:
        show_error(error)
        return
    growth = found.before
    limit = trace.settings.integer("loadBalancerBrokerOverloadedThresholdPercentage")
    saturated = f"{growth.factor:.2f} x" if np.isfinite(growth.factor) else "unlimited"
    who = f"{growth.broker} saturates first, by its {_RESOURCES[growth.resource]}"
    with st.container(horizontal=True):
        st.metric(
            "Peak usage now",
            percent(found.before_peak_usage),
            help="Of the most used broker, nothing lost.",
            width=_CARD_PX,
        )
        st.metric(
            "Brokers over threshold now", f"{found.before_over_threshold:,}", help=f"Above {limit} %.", width=_CARD_PX
        )
        st.metric("Growth until saturation", saturated, help=f"Of all traffic. {_GROWTH}", width=_CARD_PX)
    st.caption(f"As all traffic grows, {who}. {_GROWTH}" if growth.broker else _GROWTH)
    if not len(found.peak_usage):
        st.info("Nobody would be left to take over: the cluster has too few brokers.", icon=":material/info:")
        return
    frame = review_frame(found)
    worst = frame.iloc[0]
    bad = int((found.over_threshold > found.before_over_threshold).sum())
    full = int((found.peak_usage > 1).sum())
    losses = len(found.peak_usage)
    summary = (
        f"**Worst: losing {worst['lost']}: {worst['on']} reaches {worst['peak usage (%)']:.1f} %.** Of {losses:,}"
        f" possible losses {bad:,} put more brokers over the threshold of {limit} % than now, {full:,} ask more than"
        " 100 % of a machine."
    )
    if losses > _BARS:
        summary += f" The worst {_BARS} are drawn."
    short = dict(zip(found.brokers, short_names(found.brokers), strict=True))
    first = found.worst_first()[:_BARS].tolist()
    bars = {" + ".join(short[name] for name in found.names(at)): float(found.peak_usage[at]) * 100 for at in first}
    chart(bars_by_name(bars, limit, "peak usage after the loss (%)"), summary, "losses")
    _try_it(view, found, present)
    table(frame, "losses", height=420 if len(frame) > _MANY else None, column_config=_WIDTHS)
    st.caption(f"An estimate. {found.method}")
