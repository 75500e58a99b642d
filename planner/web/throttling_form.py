"""The forms of the Throttling page: a topic, its traffic, its limits. What is changed goes into the address."""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import streamlit as st

from planner.cluster.errors import PlannerError, SettingError
from planner.cluster.names import (
    CACHE_EVICTION_BY_EXPECTED_READ_COUNT,
    DISPATCH_RATE_LIMITER_FACTORY_CLASS_NAME,
    DISPATCH_THROTTLING_ON_BATCH_MESSAGE_ENABLED,
    DISPATCH_THROTTLING_ON_NON_BACKLOG_CONSUMER_ENABLED,
    DISPATCHER_MAX_READ_BATCH_SIZE,
    DISPATCHER_MAX_READ_SIZE_BYTES,
    PRECISE_DISPATCHER_FLOW_CONTROL,
)
from planner.cluster.settings import Settings
from planner.cluster.snapshot import DispatchRate, Policies, Snapshot
from planner.pulsar.throttling.precedence import RATE_SETTINGS, Level, Source, has_limit, limit_chain
from planner.simulate.dispatch.caps import at_the_limit, dispatch_caps
from planner.simulate.dispatch.edits import PLACES, LimitEdit
from planner.simulate.dispatch.load import PublishPattern, SubscriptionLoad, SubscriptionType, TopicLoad
from planner.simulate.dispatch.prefill import TopicTraffic
from planner.web import address, state
from planner.web.session import bound
from planner.web.widgets import show_error

SWITCHES = (
    *RATE_SETTINGS[Level.BROKER],
    *RATE_SETTINGS[Level.TOPIC],
    *RATE_SETTINGS[Level.SUBSCRIPTION],
    PRECISE_DISPATCHER_FLOW_CONTROL,
    DISPATCH_THROTTLING_ON_BATCH_MESSAGE_ENABLED,
    DISPATCH_THROTTLING_ON_NON_BACKLOG_CONSUMER_ENABLED,
    CACHE_EVICTION_BY_EXPECTED_READ_COUNT,
    DISPATCHER_MAX_READ_BATCH_SIZE,
    DISPATCHER_MAX_READ_SIZE_BYTES,
    *RATE_SETTINGS[Level.REPLICATOR],
    DISPATCH_RATE_LIMITER_FACTORY_CLASS_NAME,
)
"""Settings of the form."""

_LISTED = 3_000
_NEAR = 50
_INT = 2**31 - 1
_SAFE = 2**53 - 1  # the largest whole number that a browser holds exactly
_WORDS = {
    "topic": Source.LOCAL_TOPIC,
    "global": Source.GLOBAL_TOPIC,
    "namespace": Source.NAMESPACE,
    "named": Source.LOCAL_NAMED,
    "global-named": Source.GLOBAL_NAMED,
}
_KEEP = "unchanged"
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
    names = _listed(view.digest, view.snapshot) or ["persistent://public/default/topic"]
    left, right = st.columns([3, 1])
    topic = address.choice(
        "topic",
        "Topic",
        names,
        named=True,
        clears=_OF_TOPIC,  # another topic begins with its own traffic
        place=left,
        accept_new_options=True,
        help="Choose a topic, or enter a full topic name. Partitions at their limit come first, then topics with a"
        " limit, then those with the highest dispatch rate.",
    )
    help_ = "For policies of a single subscription."
    return topic, address.text("subscription", "Subscription", place=right, placeholder="any", help=help_)


@st.cache_data(max_entries=4, show_spinner=False)
def _listed(digest: str, _snapshot: Snapshot) -> list[str]:
    """Return topics to offer: partitions at their limit, then whole topics, those with a limit first, then by rate."""
    del digest  # what is cached is kept by it
    table = _snapshot.topics
    if not len(table):
        return []
    caps = dispatch_caps(_snapshot)
    limited, near = caps.limited, at_the_limit(_snapshot, caps)[:_NEAR]
    order = np.lexsort((-table.msg_rate_out_per_s, ~limited))[: 4 * _LISTED]
    base = pc.replace_substring_regex(table.name.take(pa.array(order)), pattern="-partition-[0-9]+$", replacement="")
    return list(dict.fromkeys([*table.name.take(pa.array(near)).to_pylist(), *base.to_pylist()]))[:_LISTED]


def traffic_form(traffic: TopicTraffic, topic: str, subscription: str) -> tuple[TopicLoad, int]:
    """Draw the form about a topic's traffic, filled in from the snapshot.

    Args:
        traffic: What the snapshot records.
        topic: Full name, of the topic or of one of its partitions.
        subscription: Name of its first subscription; empty for any.

    Returns:
        The topic without limits, and how long to simulate it, in seconds.
    """
    columns = [st.container() for _ in range(3)]
    number = address.number
    rate = float(f"{traffic.msg_rate_in_per_s:.4g}") or 100.0
    with columns[0]:
        st.markdown("**Publishing**")
        steady = number("publish", "Published (msg/s, all partitions)", rate, 0.0, 1e8)
        burst = number("burst", "Additional rate during bursts (msg/s)", 0.0, 0.0, 1e8)
        lasts = number("burst-s", "Burst duration (s)", 5.0, 0.0, 3600.0) if burst else 0.0
        every = number("burst-every", "Burst interval (s, 0 for one burst)", 30.0, 0.0, 3600.0) if burst else 0.0
        batch = number("batch", "Messages per entry", 1, 1, 100_000, help="The result of batching by the producers.")
        size = number("entry-bytes", "Bytes per entry", traffic.message_bytes * batch, 1, _INT)
    with columns[1]:
        st.markdown("**Consuming**")
        many = number("subscriptions", "Subscriptions", traffic.fan_out, 1, 50)
        kinds = [k.value for k in SubscriptionType if k is not SubscriptionType.REPLICATOR]
        kind = address.choice("type", "Type", kinds, SubscriptionType.SHARED.value)
        consumers = number("consumers", "Consumers per subscription and partition", traffic.consumers, 0, 10_000)
        queue = number("queue", "receiverQueueSize", 1000, 1, 100_000)
        help_ = "A snapshot does not record it: 5,000 is assumed, or as much as is published."
        speed = number("speed", "Processing rate per consumer (msg/s)", traffic.process_msg_per_s, 0.0, 1e8, help=help_)
    with columns[2]:
        st.markdown("**Initial state and duration**")
        help_ = "Per subscription, over all partitions. A snapshot does not record it."
        backlog = number("backlog", "Backlog (messages)", 0, 0, 10**9, help=help_)
        partitions = number("partitions", "Partitions", traffic.partitions, 1, 1000)
        streams = number("replicators", "Replication streams", 0, 0, 10)
        again = number("redelivered", "Redelivered share (0 to 1)", 0.0, 0.0, 0.9)
        duration = number("seconds", "Simulated time (s)", 60, 5, 900)
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
    return TopicLoad(topic, pattern, batch, size, (*made, *remote), partitions, brokers), duration


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
        raise SettingError(f"'{text[:60]}' is not a valid limit.", where=where, remedy="Set the limit in the form.")
    return place, DispatchRate(msgs, byte_count, period, match[5] == "1")


def edit_form(level: Level, topic: str, subscription: str, policies: Policies, config: Settings) -> LimitEdit | None:
    """Draw the form for one level's limit and return the edit; None to leave it as it is."""
    name = f"limit-{level.value}"
    chain = limit_chain(level, topic, policies, config, subscription)
    places = [p for p in PLACES[level] if p is not Source.BROKER and (subscription or "subscription" not in p.value)]
    place, rate = None, chain.rate if has_limit(chain.rate) else DispatchRate()
    if address.part(name):
        try:
            asked = read_edit(address.part(name), level)
            place, rate = asked if asked[0] in places else (None, rate)
        except PlannerError as error:
            show_error(error)
            address.put(**{name: ""})
    rate = DispatchRate(
        max(rate.msg_per_period, -1),
        min(max(rate.bytes_per_period, -1), _SAFE),
        min(max(rate.period_s, 1), _MOST_PERIOD_S),
        rate.relative_to_publish_rate,
    )

    def store(given: str) -> None:
        address.put(**{name: "" if given == _KEEP else written_edit(Source(given), rate)})

    label = f"Set the limit of the {level.value} as"
    box = partial(st.selectbox, label, [_KEEP, *(p.value for p in places)])
    bound(f"{name}-place", _KEEP if place is None else place.value, box, store)
    if place is None:
        return None

    def field(attribute: str, draw: Callable[..., Any]) -> None:
        def keep(given: Any) -> None:
            now = address.part(name)
            where, before = read_edit(now, level) if now else (place, rate)
            address.put(**{name: written_edit(where, replace(before, **{attribute: given}))})

        bound(f"{name}-{attribute}", getattr(rate, attribute), draw, keep)

    unlimited = "-1: no limit"
    columns = iter(st.columns(2) * 2)
    field("msg_per_period", partial(next(columns).number_input, "Messages", -1, _INT, help=unlimited))
    field("bytes_per_period", partial(next(columns).number_input, "Bytes", -1, _SAFE, help=unlimited))
    field("period_s", partial(next(columns).number_input, "Period (s)", 1, _MOST_PERIOD_S))
    help_ = "Adds the limit to the publish rate of the topic (relativeToPublishRate)."
    field("relative_to_publish_rate", partial(next(columns).toggle, "Relative", help=help_))
    return LimitEdit.about(topic, level, place, rate, subscription)
