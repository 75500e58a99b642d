"""Throttling: which dispatch limit is in force, what it does over time, and what all topics may dispatch."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from planner.cluster.arrays import FloatArray
from planner.cluster.settings import Settings
from planner.cluster.snapshot import DispatchRate, Policies, Snapshot
from planner.cluster.text import bytes_per_s, count, msg_per_s, plain
from planner.cluster.units import MIB
from planner.figures.throttling import broker_bars, dispatch_timeline, scenario_lines
from planner.pulsar.throttling.precedence import RATE_SETTINGS, Level, LimitChain, all_chains, has_limit, parse_topic
from planner.simulate.dispatch.caps import at_the_limit, broker_dispatch, dispatch_caps, dispatched, throttles_consumers
from planner.simulate.dispatch.documented import DIFFERENCES, DOCUMENTED, play
from planner.simulate.dispatch.edits import LimitEdit, edited, setting_commands
from planner.simulate.dispatch.load import SubscriptionType, TopicLoad
from planner.simulate.dispatch.prefill import TopicTraffic, topic_traffic, with_limits
from planner.simulate.dispatch.simulate import price_s, simulate
from planner.simulate.dispatch.trace import DispatchTrace
from planner.simulate.edits.registry import DispatchLimit
from planner.simulate.scenario import Scenario, Step
from planner.web import registry, scenario_history, state
from planner.web.names import short
from planner.web.page import Page, Subject
from planner.web.session import SessionValue
from planner.web.setting_form import setting_form
from planner.web.throttling_form import SWITCHES, choose_topic, edit_form, traffic_form
from planner.web.widgets import button, chart, show_notes, table

_LOSER = "color: #7a8594"
_WINNER = "font-weight: 600"
_DRAWN_BROKERS = 20
_UNEVEN = 2.0
"""Times an even share from which on the busiest partition stands for itself."""
_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400
_ASKED_FROM_S = 5.0
"""From which price on dispatch is simulated by a click alone."""
_PAID: SessionValue[frozenset[str]] = SessionValue("paid_dispatch", frozenset)
_CONSUMERS, _NOTHING = "consumers", "nothing"
_UNLIMITED = {
    _CONSUMERS: "This demand reaches no limit; the consumers are slower than the publishers",
    _NOTHING: "This demand reaches no limit",
}
_TEXT_PX, _WHERE_PX = 200, 330


def duration(seconds: float) -> str:
    """Return a time such as `9 s`, `4 min 10 s`, `3 h 5 min` or `12 days`."""
    whole = round(seconds)
    if whole < _MINUTE:
        return f"{seconds:.3g} s"
    if whole < _HOUR:
        return f"{whole // _MINUTE} min {whole % _MINUTE} s"
    if whole < 2 * _DAY:
        return f"{whole // _HOUR} h {whole % _HOUR // _MINUTE} min"
    return f"{whole // _DAY:,} days"


def rate_text(rate: DispatchRate | None) -> str:
    """Return a limit such as `10 messages and 1,000 bytes in 2 s, added to the publish rate`."""
    if rate is None:
        return "not set"
    if not has_limit(rate):
        return "no limit"
    parts = [(rate.msg_per_period, "message"), (rate.bytes_per_period, "byte")]
    both = " and ".join(count(n, noun) for n, noun in parts if n > 0)
    relative = ", added to the publish rate" if rate.relative_to_publish_rate else ""
    return f"{both} in {rate.period_s} s{relative}"


def chain_frame(chains: tuple[LimitChain, ...]) -> pd.DataFrame:
    """Return one row for each place where a limit may be set, the one in force and those that lose to it."""
    return pd.DataFrame(
        [
            {
                "level": chain.level.value,
                "asked": f"{at}. {candidate.source.value}",
                "limit": rate_text(candidate.rate),
                "why": candidate.reason.text,
                "in force": candidate.in_force,
                "where": candidate.where,
                "code": candidate.reason.code.code,
            }
            for chain in chains
            for at, candidate in enumerate(chain.candidates, start=1)
        ]
    )


def _chain_table(chains: tuple[LimitChain, ...], name: str) -> None:
    """Show the chains, what is in force in bold and what loses in grey."""
    frame = chain_frame(chains)
    style = frame.style.apply(lambda row: [_WINNER if row["in force"] else _LOSER] * len(row), axis=1)
    widths = {"limit": _TEXT_PX, "where": _WHERE_PX}
    table(frame, name, style=style, height="content", widths=widths, hidden=("in force", "code"))


def chain_sentence(chains: tuple[LimitChain, ...], partitions: int) -> str:
    """Return what is in force, as one sentence for each level that is limited."""
    said = []
    for chain in chains:
        winner = chain.winner
        if winner is None:
            continue
        rate = chain.rate
        times = ""
        if partitions > 1 and chain.level is not Level.BROKER and rate.msg_per_period > 0:
            total = msg_per_s(partitions * rate.msg_per_period / rate.period_s)
            times = f" for each of {partitions} partitions, {total} in total"
        said.append(f"**{chain.level.value}**: {rate_text(rate)}, by the {winner.source.value}{times}")
    return "; ".join(said) + "." if said else "**No dispatch limit** applies to this topic."


def verdict(trace: DispatchTrace) -> str:
    """Return when the backlog of everything simulated is gone."""
    drain = trace.drain()
    if drain.seconds == 0:
        return "no backlog remains"
    if drain.seconds is not None:
        return f"backlog drains in {duration(drain.seconds)}"
    if drain.change_msgs_per_s > 0:
        return f"backlog grows by {msg_per_s(drain.change_msgs_per_s)}"
    return "backlog does not shrink"


def _bound_by(trace: DispatchTrace) -> str:
    bound = [str(limit) for limit in trace.binding() if limit is not None]
    if not bound:
        return _CONSUMERS if trace.drain().change_msgs_per_s > 0 else _NOTHING
    most = max(dict.fromkeys(bound), key=bound.count)
    return f"{most} in {len(bound)} of {count(trace.periods, 'period')}"


def compared(traces: dict[str, DispatchTrace]) -> pd.DataFrame:
    """Return one row for each scenario."""
    rows = []
    for name, trace in traces.items():
        seconds = trace.periods * trace.period_s
        waiting = trace.total("waiting_msgs")
        sizes = trace.total("delivered_bytes") / trace.period_s / MIB
        rows.append(
            {
                "scenario": name,
                "delivered msg/s": float(trace.total("delivered_msgs").sum()) / seconds,
                "delivered MiB/s": float(sizes.mean()),
                "minimum in 1 s (MiB/s)": float(sizes.min()),
                "maximum in 1 s (MiB/s)": float(sizes.max()),
                "backlog": verdict(trace),
                "backlog at the end": int(waiting[-1]),
                "highest excess in 1 s (msg)": int(trace.total("over_delivered_msgs").max()),
                "largest debt (msg)": int(trace.debt_msgs.max(initial=0)),
                "largest debt (bytes)": int(trace.debt_bytes.max(initial=0)),
                "limited by": _bound_by(trace),
            }
        )
    return pd.DataFrame(rows)


def broker_frame(snapshot: Snapshot, policies: Policies, config: Settings, subscriptions: int) -> pd.DataFrame:
    """Return one row for each broker: what its topics may dispatch in all, beside its bandwidth; MiB/s.

    Each topic is taken to have so many subscriptions.
    """
    caps = dispatch_caps(snapshot, config, policies, subscriptions=subscriptions)
    total = broker_dispatch(snapshot, caps, config)
    may = (total.limited_bytes_per_s + total.unlimited_now_bytes_per_s) / MIB
    bandwidth = total.bandwidth_bytes_per_s / MIB
    return pd.DataFrame(
        {
            "broker": snapshot.brokers.name,
            "topics": total.topics,
            "topics with a limit": total.limited_topics,
            "dispatched now": (total.limited_now_bytes_per_s + total.unlimited_now_bytes_per_s) / MIB,
            "limit of limited topics": total.limited_bytes_per_s / MIB,
            "dispatched without limit": total.unlimited_now_bytes_per_s / MIB,
            "broker's own limit": np.where(
                np.isfinite(total.shared_bytes_per_s), total.shared_bytes_per_s / MIB, np.nan
            ),
            "bandwidth": bandwidth,
            "possible / bandwidth": may / bandwidth,
        }
    )


def _edit(topic: str, subscription: str, view: state.Current) -> tuple[tuple[LimitEdit, ...], Settings]:
    """Draw the editor, and return the policies edited and the settings chosen."""
    made, snapshot = [], view.snapshot
    for level in (Level.TOPIC, Level.SUBSCRIPTION, Level.REPLICATOR):
        edit = edit_form(level, topic, subscription, snapshot.policies, snapshot.settings)
        made += [edit] if edit is not None else []
    config = scenario_history.present(view).settings_over(view.captured)
    with st.expander("Broker settings"):
        setting_form(view, SWITCHES, config)
    return tuple(made), config


def _without_limits(config: Settings) -> Settings:
    return config.changed(**{name: 0 for names in RATE_SETTINGS.values() for name in names})


def _draw_timeline(trace: DispatchTrace, name: str) -> None:
    figure = dispatch_timeline(
        trace.ends_s,
        demand=trace.total("demand_msgs"),
        allowed=trace.allowed(),
        delivered=trace.total("delivered_msgs"),
        debt=np.concatenate(([0.0], trace.debt_msgs.max(axis=0, initial=0))),
        waiting=_backlog(trace),
        unit="messages in 1 s",
    )
    row = compared({name: trace}).iloc[0]
    over = f"; at most {row['highest excess in 1 s (msg)']:,} messages above the limits in one second"
    mean, least, most = (
        bytes_per_s(row[name] * MIB) for name in ("delivered MiB/s", "minimum in 1 s (MiB/s)", "maximum in 1 s (MiB/s)")
    )
    limit = _UNLIMITED.get(row["limited by"], f"Limited by {row['limited by']}")
    summary = (
        f"**{name}: {verdict(trace)}.** On average, {msg_per_s(row['delivered msg/s'])} ({mean}) are delivered,"
        f" between {least} and {most}. {limit}{over if row['highest excess in 1 s (msg)'] else ''}."
    )
    chart(figure, summary, "dispatch-timeline")


def _backlog(trace: DispatchTrace) -> FloatArray:
    """Return the backlog at the beginning and after each period."""
    return np.concatenate(([float(trace.backlog_at_start_msgs.sum())], trace.total("waiting_msgs")))


def _draw_scenarios(traces: dict[str, DispatchTrace]) -> None:
    ends_s = np.concatenate(([0.0], next(iter(traces.values())).ends_s))
    series = {name: _backlog(trace) for name, trace in traces.items()}
    said = "; ".join(f"{name.lower()}: {verdict(trace)}" for name, trace in traces.items())
    chart(scenario_lines(ends_s, series, "backlog (messages)"), f"**Scenarios.** {said}.", "dispatch-scenarios")
    table(compared(traces), "dispatch-scenarios")


def _draw_brokers(snapshot: Snapshot, policies: Policies, config: Settings, subscriptions: int) -> None:
    st.header("Possible dispatch per broker")
    if not len(snapshot.topics):
        st.info("The snapshot does not list topics, so their limits cannot be added up.", icon=":material/info:")
        return
    frame = broker_frame(snapshot, policies, config, subscriptions)
    share = frame["possible / bandwidth"].fillna(0.0)
    visible = frame.loc[frame.assign(order=share).sort_values("order", ascending=False, kind="stable").index]
    visible = visible.head(_DRAWN_BROKERS)
    limited, topics = int(frame["topics with a limit"].sum()), int(frame["topics"].sum())
    over = int((share > 1).sum())
    worst = visible.iloc[0]
    most = (
        f"{worst['broker']} can dispatch up to {bytes_per_s((worst['limit of limited topics']) * MIB)} from"
        f" {count(int(worst['topics with a limit']), 'topic')} with a limit, and dispatches"
        f" {bytes_per_s(worst['dispatched without limit'] * MIB)} from topics without a limit; together"
        f" {worst['possible / bandwidth'] * 100:.1f} % of its bandwidth"
        if np.isfinite(worst["possible / bandwidth"])
        else "no broker reported its bandwidth"
    )
    summary = (
        f"**{limited:,} of {count(topics, 'topic')} have a limit; the demand on {over} of"
        f" {count(len(frame), 'broker')} can exceed the bandwidth.** {most}."
    )
    columns = (
        "dispatched now",
        "limit of limited topics",
        "dispatched without limit",
        "bandwidth",
        "broker's own limit",
    )
    values = [visible[column].to_numpy(dtype=np.float64) for column in columns]
    chart(broker_bars([short(name) for name in visible["broker"]], *values), summary, "dispatch-brokers")
    st.caption(
        "In MiB/s. Every partition counts with the full limit of its topic. Each topic is assumed to have"
        f" {count(subscriptions, 'subscription')}, as in the form above. Limits in messages are converted with the"
        " topic's mean message size."
    )
    table(frame, "dispatch-brokers", formats={"possible / bandwidth": "percent"})


@st.cache_resource(max_entries=6, show_spinner="Dispatching …")
def _simulated(key: str, duration_s: int, _load: TopicLoad, _config: Settings) -> DispatchTrace:
    del key
    return simulate([_load], _config, duration_s)


@st.cache_data(show_spinner=False)
def _documented_frame() -> pd.DataFrame:
    """Return one row for each example of the documentation: what it says, and what 4.2.4 does."""
    rows = []
    for case, trace in zip(DOCUMENTED, play(), strict=True):
        left = [f"{n:.0f}" if np.isfinite(n) else "-" for n in trace.allowed()]
        rows.append(
            {
                "example": case.title,
                "documented": case.document,
                "Pulsar 4.2.4": "agrees" if case.agrees else "differs",
                "delivered, second by second": ", ".join(f"{n:.0f}" for n in trace.total("delivered_msgs")),
                "limit remaining before": ", ".join(left),
                "debt after": ", ".join(f"{n:.0f}" for n in trace.total("debt_msgs")),
            }
        )
    return pd.DataFrame(rows)


def _draw_documentation() -> None:
    with st.expander("Simulated examples of the documentation", icon=":material/menu_book:"):
        st.caption("Each example has a limit of 10 messages in 1 s.")
        table(_documented_frame(), "documented-dispatch")
    show_notes(DIFFERENCES, "Where the public documentation differs from the code")


def _draw_commands(edits: tuple[LimitEdit, ...], before: Settings, after: Settings) -> None:
    changed = {name: after[name] for name in SWITCHES if name in after and after[name] != before[name]}
    dynamic = {name: value for name, value in changed.items() if after.of(name).dynamic}
    lines = [line for edit in edits for line in edit.commands()] + list(setting_commands(dynamic))
    if lines:
        st.markdown("**The commands**")
        st.code("\n".join(lines), language="sh", wrap_lines=True)
    fixed = [f"{name}={value}" for name, value in changed.items() if name not in dynamic]
    if fixed:
        st.markdown("**In broker.conf of every broker, followed by a restart**")
        st.code("\n".join(fixed), language="properties", wrap_lines=True)
    if lines or fixed:
        st.caption("The planner never changes a cluster. Run the commands yourself.")


def scenario_with(present: Scenario, edits: tuple[LimitEdit, ...], before: Settings, after: Settings) -> Scenario:
    """Return a scenario with dispatch limits in it, as far as a scenario can have them.

    Policies of single subscriptions, global ones and those of replicators are left out: a snapshot does not record what
    they would hold back. Settings are those of the snapshot before, and with the limits after.
    """
    made = [edit for edit in map(DispatchLimit.of, edits) if edit is not None]
    steps = (*present.steps, *map(Step, made))
    changed: dict[str, Any] = {name: after[name] for name in after.overrides if after[name] != before[name]}
    return replace(present, steps=steps, settings={**present.settings, **changed})


def _offer_scenario(view: state.Current, edits: tuple[LimitEdit, ...], config: Settings) -> None:
    """Offer to take the limits into the scenario, where they change the brokers' load."""
    present = scenario_history.present(view)
    made = scenario_with(present, edits, view.captured.settings, config)
    help_ = "Effect on the load balancer's scores"
    if made != present and st.button("Add to the scenario", icon=":material/science:", help=help_):
        scenario_history.change(view, made)
        registry.go("what_if")


def _draw_dispatch(topic: TopicLoad, seconds: int, cases: Mapping[str, tuple[Policies, Settings]]) -> None:
    """Draw dispatch over time; on request only where the simulation takes long."""
    st.header("Dispatch over time")
    loads = {name: with_limits(topic, limits, settings) for name, (limits, settings) in cases.items()}
    keys = {name: repr((loads[name], seconds, settings.overrides)) for name, (_, settings) in cases.items()}
    work_s = sum(price_s([load], seconds) for load in loads.values())
    if work_s > _ASKED_FROM_S and not set(keys.values()) <= _PAID.get():
        subscriptions = count(len(topic.subscriptions), "subscription")
        st.info(
            f"This simulates {count(topic.partitions, 'partition')} with {subscriptions} for {seconds:,} s,"
            f" {len(cases)} times, and takes this server about {work_s:,.0f} s.",
            icon=":material/hourglass_top:",
        )
        button("Run", "play_arrow", lambda: _PAID.put(_PAID.get() | set(keys.values())))
        return
    traces = {name: _simulated(keys[name], seconds, loads[name], case[1]) for name, case in cases.items()}
    name = "Edited" if "Edited" in cases else "Current"
    _draw_timeline(traces[name], name)
    st.caption(
        "Sums over all subscriptions and partitions of the topic, assuming that no other topic uses its brokers."
        " Limiters start full. Debt is that of the limiter with the highest debt."
    )
    _draw_scenarios(traces)


def _about(traffic: TopicTraffic) -> str:
    """Return what the traffic below is about."""
    if not traffic.listed:
        return "The snapshot does not list this topic; its traffic below is an assumption."
    share = f"{traffic.share * 100:.0f} % of the topic's messages"
    if traffic.partition is not None:
        return f"Partition {traffic.partition} of {count(traffic.listed, 'listed partition')}, with {share}."
    if traffic.partitions > 1 and traffic.share * traffic.partitions > _UNEVEN:
        return (
            f"{plain(traffic.busiest)} has {share}. Below, the traffic is spread evenly over"
            f" {count(traffic.partitions, 'partition')}: choose that partition for its own rates."
        )
    return "Rates below are those of the snapshot."


def limit_sentence(snapshot: Snapshot, traffic: TopicTraffic) -> str:
    """Return what the topic dispatches of its limit where it is at it, as the finding does; empty elsewhere."""
    if not traffic.listed:
        return ""
    name = traffic.name if traffic.partition is None else f"{traffic.name}-partition-{traffic.partition}"
    caps = dispatch_caps(snapshot)
    for row in at_the_limit(snapshot, caps).tolist():
        listed = snapshot.topics.name[row].as_py()
        if name in {listed, parse_topic(listed).base}:
            return (
                f"**At its limit, or close to it:** {plain(listed)} dispatches {dispatched(snapshot, caps, row)}. What"
                " its consumers want beyond that is not measured; the demand below is what they get now."
            )
    return ""


def draw(view: state.Current) -> None:
    """Draw the page."""
    snapshot = view.snapshot
    topic, subscription = choose_topic(view)
    traffic = topic_traffic(snapshot, topic)
    st.caption(_about(traffic))
    st.header("Current limit and its source")
    verdict_place = st.container()
    with st.sidebar:
        st.header("Other limits")
        edits, config = _edit(traffic.name, subscription, view)
        with st.expander("Traffic of the topic", icon=":material/tune:"):
            load, seconds = traffic_form(traffic, topic, subscription)
    policies, config = edited(edits, snapshot.policies, config)
    with verdict_place:
        chains = all_chains(traffic.name, snapshot.policies, snapshot.settings, subscription)
        st.markdown(chain_sentence(chains, load.partitions))
        if near := limit_sentence(snapshot, traffic):
            st.markdown(near)
        _chain_table(chains, "limit-chain")
        if not throttles_consumers(config):
            st.warning(
                "No subscription with consumers is throttled: dispatchThrottlingOnNonBacklogConsumerEnabled is off,"
                " and cursors of connected consumers are never inactive.",
                icon=":material/warning:",
            )
    changed = bool(edits) or config != snapshot.settings
    if changed:
        chains = all_chains(traffic.name, policies, config, subscription)
        st.markdown("After the edit: " + chain_sentence(chains, load.partitions))
        with st.expander("Limit after the edit"):
            _chain_table(chains, "limit-chain-edited")
        _draw_commands(edits, snapshot.settings, config)
        _offer_scenario(view, edits, config)
    free = _without_limits(config)
    cases = {"Current": (snapshot.policies, snapshot.settings)}
    if changed:
        cases["Edited"] = (policies, config)
    cases["Without limits"] = (Policies(), free)
    over_time, brokers, documented = st.tabs(["Dispatch over time", "Brokers", "Documentation"])
    with over_time:
        _draw_dispatch(load, seconds, cases)
    subscriptions = sum(s.kind is not SubscriptionType.REPLICATOR for s in load.subscriptions)
    with brokers:
        _draw_brokers(snapshot, policies, config, subscriptions)
    with documented:
        _draw_documentation()


PAGE = Page(
    title="Throttling",
    icon=":material/speed:",
    purpose="The dispatch limit that applies to a topic, why it applies, and its effect on backlog and delivery.",
    draw=draw,
    subject=Subject.DECISION,
    has_drawer=True,
)
