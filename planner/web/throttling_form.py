"""The forms of the Throttling page: a topic, its traffic, its limits. What is changed goes into the address."""

import re
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import streamlit as st

from planner.cluster.errors import PlannerError, SettingError
from planner.cluster.settings import Settings
from planner.cluster.snapshot import DispatchRate, Policies, Snapshot
from planner.pulsar.throttling.precedence import Level, Source, has_limit, limit_chain
from planner.simulate.dispatch.caps import dispatch_caps
from planner.simulate.dispatch.edits import PLACES, LimitEdit
from planner.simulate.dispatch.load import PublishPattern, SubscriptionLoad, SubscriptionType, TopicLoad
from planner.simulate.dispatch.prefill import TopicTraffic, with_limits
from planner.web import state
from planner.web.widgets import show_error

SWITCHES = (
    "dispatchThrottlingRateInMsg",
    "dispatchThrottlingRateInByte",
    "dispatchThrottlingRatePerTopicInMsg",
    "dispatchThrottlingRatePerTopicInByte",
    "dispatchThrottlingRatePerSubscriptionInMsg",
    "dispatchThrottlingRatePerSubscriptionInByte",
    "preciseDispatcherFlowControl",
    "dispatchThrottlingOnBatchMessageEnabled",
    "dispatchThrottlingOnNonBacklogConsumerEnabled",
    "cacheEvictionByExpectedReadCount",
    "dispatcherMaxReadBatchSize",
    "dispatcherMaxReadSizeBytes",
    "dispatchThrottlingRatePerReplicatorInMsg",
    "dispatchThrottlingRatePerReplicatorInByte",
    "dispatchRateLimiterFactoryClassName",
)
"""Settings of the form."""

_LISTED = 3_000
_INT = 2**31 - 1
_SAFE = 2**53 - 1  # the largest whole number that a browser holds exactly
_WORDS = {
    "topic": Source.LOCAL_TOPIC,
    "global": Source.GLOBAL_TOPIC,
    "namespace": Source.NAMESPACE,
    "named": Source.LOCAL_NAMED,
    "global-named": Source.GLOBAL_NAMED,
}
_KEEP = "leave as it is"
_EDIT = re.compile(r"([a-z-]+):(-1|[0-9]{1,10}):(-1|[0-9]{1,16}):([0-9]{1,4}):([01])")
_MOST_PERIOD_S = 3600
_TRAFFIC: tuple[str, ...] = (
    "publish",
    "burst",
    "burst-s",
    "burst-every",
    "batch",
    "entry-bytes",
    "subscriptions",
    "type",
    "consumers",
    "queue",
    "speed",
    "backlog",
    "partitions",
    "replicators",
    "redelivered",
    "seconds",
)
_OF_TOPIC = (*_TRAFFIC, *(f"limit-{level.value}" for level in Level))


def choose_topic(view: state.Current) -> tuple[str, str]:
    """Draw the choice of topic and subscription, and return their names."""
    names = _listed(view.digest, view.snapshot)
    asked = state.param("topic")
    start = asked or (names[0] if names else "persistent://public/default/topic")
    options = names if start in names else [start, *names]
    left, right = st.columns([3, 1])
    topic = left.selectbox(
        "Topic",
        options,
        index=options.index(start),
        accept_new_options=True,
        key=f"throttling-topic-{start}",
        help="Choose one, or write any full topic name. Those with a limit come first, then by dispatch rate.",
    )
    subscription = right.text_input(
        "Subscription",
        state.param("subscription"),
        max_chars=200,
        placeholder="any",
        key="throttling-subscription",
        help="For policies that name one.",
    )
    if topic and topic != start:  # another topic begins with its own traffic
        state.set_params(**dict.fromkeys(_OF_TOPIC, ""))
    state.set_params(topic=topic or start, subscription=subscription)
    if topic and topic != start:  # the box is drawn anew with what was picked, else its next choice would be lost
        st.rerun()
    return topic or start, subscription


@st.cache_data(max_entries=4, show_spinner=False)
def _listed(digest: str, _snapshot: Snapshot) -> list[str]:
    """Return topics to offer, partitions put together: those with a limit first, then by dispatch rate."""
    del digest  # what is cached is kept by it
    table = _snapshot.topics
    if not len(table):
        return []
    limited = dispatch_caps(_snapshot).limited
    order = np.lexsort((-table.msg_rate_out_per_s, ~limited))[: 4 * _LISTED]
    base = pc.replace_substring_regex(table.name.take(pa.array(order)), pattern="-partition-[0-9]+$", replacement="")
    return list(dict.fromkeys(base.to_pylist()))[:_LISTED]


def _number(topic: str, label: str, name: str, default: float, low: float, high: float, help_: str = "") -> float:
    """Draw a number that the address keeps when it is not the default."""
    asked, whole = state.param(name), isinstance(default, int)
    start: float = default
    try:
        given = (int(asked) if whole else float(asked)) if asked else default
    except (ValueError, OverflowError):
        given = float("nan")
    if low <= given <= high:
        start = given
    else:
        remedy = f"Give a number from {low:g} to {high:g}."
        show_error(SettingError(f"'{asked[:40]}' is not possible.", where=label, remedy=remedy))
    key = f"throttling-{name}-{topic}-{default}"  # another default begins anew, what the address has stays
    value: float
    if whole:
        value = int(st.number_input(label, int(low), int(high), int(start), 1, key=key, help=help_))
    else:
        value = float(st.number_input(label, low, high, float(start), format="%g", key=key, help=help_))
    state.set_params(**{name: "" if value == default else f"{value:.12g}" if not whole else str(int(value))})
    return value


@dataclass(frozen=True, slots=True)
class TrafficForm:
    """What the form about a topic's traffic says.

    Attributes:
        publish: When messages are published.
        messages_per_entry: Messages in a batch.
        entry_bytes: Size of an entry.
        subscriptions: Who reads it, without limits.
        brokers: Broker of each partition.
        duration_s: How long to simulate.
    """

    publish: PublishPattern
    messages_per_entry: int
    entry_bytes: int
    subscriptions: tuple[SubscriptionLoad, ...]
    brokers: tuple[int, ...]
    duration_s: int

    def load(self, topic: str, policies: Policies, config: Settings) -> TopicLoad:
        """Return the topic with the limits in force for it."""
        return with_limits(
            topic,
            self.publish,
            self.messages_per_entry,
            self.entry_bytes,
            self.subscriptions,
            self.brokers,
            policies,
            config,
        )


def traffic_form(traffic: TopicTraffic, subscription: str) -> TrafficForm:
    """Draw the form about a topic's traffic, filled in with what the snapshot knows."""
    columns = st.columns(3)
    number = partial(_number, traffic.name)
    rate = float(f"{traffic.msg_rate_in_per_s:.4g}") or 100.0
    with columns[0]:
        st.markdown("**Publishing**")
        steady = number("Published (msg/s, all partitions)", "publish", rate, 0.0, 1e8)
        burst = number("Bursts add (msg/s)", "burst", 0.0, 0.0, 1e8)
        lasts = number("A burst lasts (s)", "burst-s", 5.0, 0.0, 3600.0) if burst else 0.0
        every = number("One burst every (s, 0 once)", "burst-every", 30.0, 0.0, 3600.0) if burst else 0.0
        batch = int(number("Messages in an entry", "batch", 1, 1, 100_000, "Batching by the producers."))
        size = int(number("Bytes of an entry", "entry-bytes", traffic.message_bytes * batch, 1, _INT))
    with columns[1]:
        st.markdown("**Consuming**")
        many = int(number("Subscriptions", "subscriptions", traffic.fan_out, 1, 50))
        kinds = [k.value for k in SubscriptionType if k is not SubscriptionType.REPLICATOR]
        asked = state.param("type")
        start = asked if asked in kinds else SubscriptionType.SHARED.value
        kind = st.selectbox("Type", kinds, kinds.index(start), key="throttling-type") or start
        state.set_params(type="" if kind == SubscriptionType.SHARED else kind)
        consumers = int(
            number("Consumers of a subscription, each partition", "consumers", traffic.consumers, 0, 10_000)
        )
        queue = int(number("receiverQueueSize", "queue", 1000, 1, 100_000))
        speed = number("A consumer processes (msg/s)", "speed", 5000.0, 0.0, 1e6)
    with columns[2]:
        st.markdown("**At the beginning, and how long**")
        minute = round(steady * 60) or 1000
        help_ = "Of each subscription, on all partitions. By default what is published in a minute."
        backlog = int(number("Backlog (messages)", "backlog", minute, 0, 10**9, help_))
        partitions = int(number("Partitions", "partitions", traffic.partitions, 1, 1000))
        streams = int(number("Replication streams", "replicators", 0, 0, 10))
        again = number("Redelivered (fraction)", "redelivered", 0.0, 0.0, 0.9)
        duration = int(number("Simulated time (s)", "seconds", 60, 5, 900))
    known = subscription or "subscription"
    made = [
        SubscriptionLoad(
            known if at == 0 else f"{known}-{at + 1}",
            SubscriptionType(kind),
            consumers,
            queue,
            speed,
            backlog,
            redelivered_fraction=again,
        )
        for at in range(many)
    ]
    remote = [
        SubscriptionLoad(f"remote-{at + 1}", SubscriptionType.REPLICATOR, 1, 1000, speed, backlog)
        for at in range(streams)
    ]
    pattern = PublishPattern(steady, burst, 0.0, min(lasts, every) if every else lasts, every)
    brokers = tuple(traffic.brokers[p % len(traffic.brokers)] for p in range(partitions))
    return TrafficForm(pattern, batch, size, (*made, *remote), brokers, duration)


def written_edit(place: Source, rate: DispatchRate) -> str:
    """Return an edit as the address keeps it."""
    word = next(w for w, source in _WORDS.items() if source is place)
    relative = int(rate.relative_to_publish_rate)
    return f"{word}:{rate.msg_per_period}:{rate.bytes_per_period}:{rate.period_s}:{relative}"


def read_edit(text: str, level: Level) -> tuple[Source, DispatchRate]:
    """Read an edit from the address.

    Raises:
        SettingError: It is none.
    """
    match = _EDIT.fullmatch(text)
    place = _WORDS.get(match[1]) if match else None
    msgs, byte_count, period = (int(match[i]) for i in (2, 3, 4)) if match else (0, 0, 0)
    if (
        match is None
        or place not in PLACES[level]
        or msgs > _INT
        or byte_count > _SAFE
        or not 0 < period <= _MOST_PERIOD_S
    ):
        where = f"Limit of the {level.value} in this link"
        raise SettingError(f"'{text[:60]}' is no limit.", where=where, remedy="Write it anew in the form.")
    return place, DispatchRate(msgs, byte_count, period, match[5] == "1")


def edit_form(level: Level, topic: str, subscription: str, policies: Policies, config: Settings) -> LimitEdit | None:
    """Draw the form for one level's limit and return the edit; None to leave it as it is."""
    name = f"limit-{level.value}"
    chain = limit_chain(level, topic, policies, config, subscription)
    places = [p for p in PLACES[level] if p is not Source.BROKER and (subscription or "subscription" not in p.value)]
    place, rate = None, chain.rate if has_limit(chain.rate) else DispatchRate()
    if state.param(name):
        try:
            asked = read_edit(state.param(name), level)
            place, rate = asked if asked[0] in places else (None, rate)
        except PlannerError as error:
            show_error(error)
    options = [_KEEP, *(p.value for p in places)]
    start = _KEEP if place is None else place.value
    columns = st.columns([2, 1, 1, 1, 1], vertical_alignment="bottom")
    key = f"throttling-{name}-{topic}"
    chosen = columns[0].selectbox(
        f"Set the limit of the {level.value} as", options, options.index(start), key=f"{key}-place"
    )
    if chosen in {None, _KEEP}:
        state.set_params(**{name: ""})
        return None
    picked = Source(chosen)
    with columns[1]:
        msgs = st.number_input(
            "Messages", -1, _INT, max(rate.msg_per_period, -1), key=f"{key}-msgs", help="-1: no limit"
        )
    with columns[2]:
        byte_count = min(max(rate.bytes_per_period, -1), _SAFE)
        bytes_ = st.number_input("Bytes", -1, _SAFE, byte_count, key=f"{key}-bytes", help="-1: no limit")
    with columns[3]:
        period = st.number_input(
            "Period (s)", 1, _MOST_PERIOD_S, min(max(rate.period_s, 1), _MOST_PERIOD_S), key=f"{key}-period"
        )
    help_ = "Added to the publish rate of the topic (relativeToPublishRate)."
    with columns[4]:
        relative = st.toggle("Relative", rate.relative_to_publish_rate, key=f"{key}-relative", help=help_)
    made = DispatchRate(int(msgs), int(bytes_), int(period), bool(relative))
    state.set_params(**{name: written_edit(picked, made)})
    return LimitEdit.about(topic, level, picked, made, subscription)
