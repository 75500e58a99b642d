"""How much each topic of a snapshot may dispatch, and what that adds up to on its broker."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from planner.cluster.arrays import BoolArray, FloatArray, Int64Array, frozen
from planner.cluster.internal_bundles import internal_topics
from planner.cluster.names import (
    CACHE_EVICTION_BY_EXPECTED_READ_COUNT,
    DISPATCH_THROTTLING_ON_BATCH_MESSAGE_ENABLED,
    DISPATCH_THROTTLING_ON_NON_BACKLOG_CONSUMER_ENABLED,
)
from planner.cluster.settings import Settings
from planner.cluster.snapshot import DispatchRate, Policies, Snapshot
from planner.cluster.text import bytes_per_s, msg_per_s, percent
from planner.cluster.units import BYTES_PER_KBIT
from planner.pulsar.throttling.precedence import Level, limit_chain, parse_topic, setting_rate

AT_THE_LIMIT: Final = 0.9
"""Share of its limit from which on a topic is said to dispatch at it."""


@dataclass(frozen=True, eq=False)
class DispatchCaps:
    """The most that each topic may dispatch over a long time. Shape of every column: (topics,).

    Attributes:
        msg_per_s: Messages per second to all consumers; infinite without limit.
        bytes_per_s: Bytes per second that are limited as such; infinite without limit.
        message_bytes: Mean size of its messages, NaN when there was no traffic.
    """

    msg_per_s: FloatArray
    bytes_per_s: FloatArray
    message_bytes: FloatArray

    @property
    def throughput_bytes_per_s(self) -> FloatArray:
        """Bytes per second, the limit of messages counted with their mean size; infinite without limit.

        Shape (topics,).

        A limit of messages only says nothing about bytes while their size is unknown.
        """
        known = np.isfinite(self.msg_per_s) & np.isfinite(self.message_bytes)
        by_msgs = np.full(len(known), np.inf)
        by_msgs[known] = self.msg_per_s[known] * self.message_bytes[known]
        result: FloatArray = np.minimum(self.bytes_per_s, by_msgs)
        return result

    @property
    def limited(self) -> BoolArray:
        """Whether anything limits the topic. Shape (topics,)."""
        return np.isfinite(self.msg_per_s) | np.isfinite(self.bytes_per_s)


@dataclass(frozen=True, eq=False)
class BrokerDispatch:
    """What the topics of each broker may dispatch. Shape of every column: (brokers,).

    Attributes:
        topics: Topics on it that the snapshot lists.
        limited_topics: Those with a limit.
        limited_bytes_per_s: What those with a limit may dispatch in all; without those whose message size is unknown.
        limited_now_bytes_per_s: What those with a limit dispatch now.
        unlimited_now_bytes_per_s: What those without a limit dispatch now; nothing keeps it from growing.
        shared_bytes_per_s: Limit that the broker itself shares among all topics, in bytes; infinite without.
        shared_msg_per_s: The same in messages.
        bandwidth_bytes_per_s: Outbound bandwidth; NaN when the broker did not report it.
    """

    topics: Int64Array
    limited_topics: Int64Array
    limited_bytes_per_s: FloatArray
    limited_now_bytes_per_s: FloatArray
    unlimited_now_bytes_per_s: FloatArray
    shared_bytes_per_s: FloatArray
    shared_msg_per_s: FloatArray
    bandwidth_bytes_per_s: FloatArray


def throttles_consumers(config: Settings) -> bool:
    """Return whether subscriptions with consumers are throttled at all.

    Without `dispatchThrottlingOnNonBacklogConsumerEnabled` only inactive cursors are, and with
    `cacheEvictionByExpectedReadCount`, the default of 4.2.4, those of connected consumers are never inactive.
    """
    always = config.flag(DISPATCH_THROTTLING_ON_NON_BACKLOG_CONSUMER_ENABLED)
    return always or not config.flag(CACHE_EVICTION_BY_EXPECTED_READ_COUNT)


def dispatch_caps(
    snapshot: Snapshot,
    config: Settings | None = None,
    policies: Policies | None = None,
    *,
    subscriptions: int | Int64Array = 1,
    messages_per_entry: float | FloatArray = 1.0,
) -> DispatchCaps:
    """Return the most that each topic may dispatch, by the topic's and the subscriptions' limits.

    What a broker shares among its topics is not in it, nor are policies of single subscriptions.
    A limit relative to the publish rate is taken with the topic's current publish rate.

    Args:
        snapshot: The cluster.
        config: Settings of the brokers, those of the snapshot by default.
        policies: Dispatch policies, those of the snapshot by default.
        subscriptions: Subscriptions of each topic, which a snapshot does not list; one number for all, or one each.
        messages_per_entry: Mean messages in an entry; counts only where limits count entries
            (`dispatchThrottlingOnBatchMessageEnabled`).
    """
    settings = snapshot.settings if config is None else config
    stated = snapshot.policies if policies is None else policies
    table, size = snapshot.topics, len(snapshot.topics)
    caps = np.full((2, size), np.inf)
    published = table.msg_rate_in_per_s, table.msg_throughput_in_bytes_per_s
    counted = messages_per_entry if settings.flag(DISPATCH_THROTTLING_ON_BATCH_MESSAGE_ENABLED) else 1.0
    for rows in _alike(snapshot, stated) if throttles_consumers(settings) else ():
        name = table.name[int(rows[0])].as_py()
        topic = limit_chain(Level.TOPIC, name, stated, settings).rate
        each = limit_chain(Level.SUBSCRIPTION, name, stated, settings).rate
        many = np.broadcast_to(np.asarray(subscriptions), (size,))[rows]
        for at in (0, 1):
            by_topic, by_subscription = (_per_second(rate, at, published[at][rows]) for rate in (topic, each))
            by_all = np.multiply(by_subscription, many, out=np.zeros(len(rows)), where=many > 0)
            caps[at, rows] = np.minimum(by_topic, by_all)
    caps[0] *= counted
    rate_out, bytes_out = table.msg_rate_out_per_s, table.msg_throughput_out_bytes_per_s
    with np.errstate(divide="ignore", invalid="ignore"):
        sent = np.where(rate_out > 0, bytes_out / rate_out, np.nan)
        received = np.where(published[0] > 0, published[1] / published[0], np.nan)
    size_of = np.where(np.isnan(sent), received, sent)
    return DispatchCaps(frozen(caps[0]), frozen(caps[1]), frozen(size_of))


def at_the_limit(snapshot: Snapshot, caps: DispatchCaps) -> Int64Array:
    """Return the rows of the topics that dispatch at their limit, or nearly so, those with the most bytes first.

    A finding names the first one, and the page Throttling opens on it. Internal topics are left out. Shape (topics at
    the limit,).
    """
    topics = snapshot.topics
    rate, size = topics.msg_rate_out_per_s, topics.msg_throughput_out_bytes_per_s
    near = (size >= caps.bytes_per_s * AT_THE_LIMIT) | (rate >= caps.msg_per_s * AT_THE_LIMIT)
    hit = np.flatnonzero(near & ((rate > 0) | (size > 0)) & ~internal_topics(snapshot))
    return frozen(hit[np.argsort(-size[hit], kind="stable")])


def dispatched(snapshot: Snapshot, caps: DispatchCaps, row: int) -> str:
    """Return what a topic dispatches beside the most that it may: `32.1 k msg/s, 97 % of its limit of 33 k msg/s`."""
    rate = snapshot.topics.msg_rate_out_per_s[row], caps.msg_per_s[row]
    size = snapshot.topics.msg_throughput_out_bytes_per_s[row], caps.bytes_per_s[row]
    by_size = np.isfinite(size[1]) and (not np.isfinite(rate[1]) or size[0] / size[1] >= AT_THE_LIMIT)
    say, (now, most) = (bytes_per_s, size) if by_size else (msg_per_s, rate)
    return f"{say(float(now))}, {percent(float(now / most), 0)} of its limit of {say(float(most))}"


def _per_second(rate: DispatchRate, dimension: int, published: FloatArray) -> FloatArray:
    stated = (rate.msg_per_period, rate.bytes_per_period)[dimension]
    if stated <= 0:
        return np.full(len(published), np.inf)
    more = np.floor(published) if rate.relative_to_publish_rate else np.zeros(len(published))
    result: FloatArray = (stated + more) / max(rate.period_s, 1)
    return result


def _alike(snapshot: Snapshot, policies: Policies) -> list[Int64Array]:
    """Return positions of the persistent topics, in groups that the same policies apply to."""
    table, size = snapshot.topics, len(snapshot.topics)
    if not size:
        return []
    targets = sorted({p.target for p in policies.dispatch_rates})
    on_topics = [t for t in targets if "://" in t]
    on_namespace = {t: at for at, t in enumerate(targets) if "://" not in t}
    # a namespace without policies is like any other without
    group = np.array([on_namespace.get(name, -1) for name in snapshot.namespaces] or [-1], dtype=np.int64)
    key = group[snapshot.bundles.namespace[table.bundle]] if len(snapshot.bundles) else np.full(size, -1)
    for row in np.flatnonzero(table.bundle < 0):
        key[row] = on_namespace.get(parse_topic(table.name[int(row)].as_py()).namespace, -1)
    key = key * (len(on_topics) + 1)
    if on_topics:
        base = pc.replace_substring_regex(table.name, pattern=r"-partition-[0-9]+$", replacement="")
        found = pc.index_in(base, value_set=pa.array(on_topics, type=base.type))
        key = key + pc.fill_null(found, len(on_topics)).to_numpy(zero_copy_only=False)
    persistent = ~pc.starts_with(table.name, pattern="non-persistent://").to_numpy(zero_copy_only=False)
    rows = np.flatnonzero(persistent)
    order = rows[np.argsort(key[rows], kind="stable")]
    edges = np.flatnonzero(np.diff(key[order])) + 1
    return [part for part in np.split(order, edges) if part.size]


def broker_dispatch(snapshot: Snapshot, caps: DispatchCaps, config: Settings | None = None) -> BrokerDispatch:
    """Return what the topics of each broker may dispatch in all, beside its bandwidth.

    Every partition has the whole quota of its topic, so that the partitions of a topic on one broker add up. The
    settings are those of the snapshot by default.
    """
    settings = snapshot.settings if config is None else config
    table, brokers, owner = snapshot.topics, len(snapshot.brokers), _owners(snapshot)

    def summed(rows: BoolArray, values: FloatArray | None = None) -> FloatArray:
        chosen = rows & (owner >= 0)
        weights = None if values is None else values[chosen]
        return np.bincount(owner[chosen], weights, brokers).astype(np.float64)

    most, now = caps.throughput_bytes_per_s, table.msg_throughput_out_bytes_per_s
    limited = caps.limited
    shared = _shared(settings)
    bandwidth = snapshot.brokers.bandwidth_out_limit_kbit_per_s * BYTES_PER_KBIT
    return BrokerDispatch(
        topics=summed(np.ones(len(table), dtype=bool)).astype(np.int64),
        limited_topics=summed(limited).astype(np.int64),
        limited_bytes_per_s=summed(limited & np.isfinite(most), most),
        limited_now_bytes_per_s=summed(limited, now),
        unlimited_now_bytes_per_s=summed(~limited, now),
        shared_bytes_per_s=np.full(brokers, shared[1]),
        shared_msg_per_s=np.full(brokers, shared[0]),
        bandwidth_bytes_per_s=np.where(bandwidth > 0, bandwidth, np.nan),
    )


def _owners(snapshot: Snapshot) -> Int64Array:
    """Return the broker of each topic, -1 without one."""
    bundle = snapshot.topics.bundle
    owner = np.full(len(bundle), -1, dtype=np.int64)
    owner[bundle >= 0] = snapshot.bundles.owner[bundle[bundle >= 0]]
    return owner


def _shared(config: Settings) -> tuple[float, float]:
    """Return what a broker shares among its topics, in messages and bytes per second."""
    rate, applies = setting_rate(Level.BROKER, config), throttles_consumers(config)
    msgs, byte_count = (float(r) if r > 0 and applies else np.inf for r in (rate.msg_per_period, rate.bytes_per_period))
    return msgs, byte_count
