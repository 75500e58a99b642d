"""What a snapshot knows about a topic, to begin a dispatch simulation with."""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from planner.cluster.settings import Settings
from planner.cluster.snapshot import Policies, Snapshot
from planner.pulsar.throttling.precedence import Level, limit_chain, parse_topic
from planner.simulate.dispatch.load import SubscriptionLoad, SubscriptionType, TopicLoad

_MESSAGE_BYTES = 1024
_MOST_FAN_OUT = 20


@dataclass(frozen=True, slots=True)
class TopicTraffic:
    """Traffic of a topic with all its partitions, or of one of its partitions.

    Attributes:
        name: Full name, without `-partition-N`.
        partition: Number of the partition that this is about; None for the whole topic.
        listed: Partitions that the snapshot lists (1 for a topic without); 0 when it does not know the topic.
        share: Part of the topic's messages, in and out, that the partition has, or else its busiest one; 1 for a topic
            without partitions.
        busiest: Full name of the busiest partition, or of the topic without partitions; empty when none is listed.
        partitions: How many there are at least, by the highest number listed.
        brokers: Position of each partition's broker, in the order of their numbers; broker 0 where unknown.
        msg_rate_in_per_s: Messages published to all of them.
        msg_rate_out_per_s: Messages dispatched by all of them.
        message_bytes: Mean size of a message, 1024 when there is no traffic.
        fan_out: Subscriptions that the dispatch rate speaks for: the nearest number to dispatched over published.
        consumers: Consumers of a partition, on average, rounded up.
    """

    name: str
    partition: int | None
    listed: int
    share: float
    busiest: str
    partitions: int
    brokers: tuple[int, ...]
    msg_rate_in_per_s: float
    msg_rate_out_per_s: float
    message_bytes: int
    fan_out: int
    consumers: int

    @property
    def process_msg_per_s(self) -> float:
        """How fast one consumer works, msg/s: what a snapshot cannot say, but at least as fast as is published.

        The consumers of a topic that is in balance keep up, whatever the usual speed is.
        """
        needed = self.msg_rate_in_per_s / self.partitions / self.consumers
        step = 10.0 ** max(np.floor(np.log10(needed)) - 1, 0) if needed > 0 else 1.0
        return max(SubscriptionLoad().process_msg_per_s, float(np.ceil(needed / step) * step))


def topic_traffic(snapshot: Snapshot, topic: str) -> TopicTraffic:
    """Return what a snapshot knows about a topic, by the full name of it or of one of its partitions.

    A partition that the snapshot lists has its own traffic and no siblings: each partition has the whole quota. A name
    that the snapshot does not list has no traffic.

    Raises:
        SettingError: It is no full topic name.
    """
    asked = parse_topic(topic)
    base = asked.base
    table = snapshot.topics
    names = table.name
    near = pc.starts_with(names, pattern=base) if len(table) else pa.array([], type=pa.bool_())
    rows = [
        int(row)
        for row in np.flatnonzero(near.to_numpy(zero_copy_only=False))
        if parse_topic(names[int(row)].as_py()).base == base
    ]
    numbers = [parse_topic(names[row].as_py()).partition for row in rows]
    both = table.msg_rate_per_s(np.array(rows, dtype=np.int64)) if rows else np.zeros(0)
    one = numbers.index(asked.partition) if asked.partition is not None and asked.partition in numbers else None
    most = int(both.argmax()) if one is None and rows else one
    share = float(both[most] / both.sum()) if most is not None and both.sum() > 0 else 1.0
    busiest = names[rows[int(both.argmax())]].as_py() if rows else ""
    listed = len(rows)
    if one is not None:
        rows, numbers = [rows[one]], [None]
    partitions = max((n + 1 for n in numbers if n is not None), default=1)
    brokers = [0] * partitions
    for row, number in zip(rows, numbers, strict=True):
        bundle = int(table.bundle[row])
        if bundle >= 0:
            brokers[number or 0] = max(int(snapshot.bundles.owner[bundle]), 0)
    rate_in, rate_out = (float(c[rows].sum()) for c in (table.msg_rate_in_per_s, table.msg_rate_out_per_s))
    bytes_in, bytes_out = (
        float(c[rows].sum()) for c in (table.msg_throughput_in_bytes_per_s, table.msg_throughput_out_bytes_per_s)
    )
    size = bytes_in / rate_in if rate_in > 0 else bytes_out / rate_out if rate_out > 0 else _MESSAGE_BYTES
    fan_out = round(rate_out / rate_in) if rate_in > 0 else 1
    consumers = int(np.ceil(table.consumers[rows].mean() / max(fan_out, 1))) if rows else 1
    return TopicTraffic(
        base,
        asked.partition if one is not None else None,
        listed,
        share,
        busiest,
        partitions,
        tuple(brokers),
        rate_in,
        rate_out,
        max(round(size), 1),
        min(max(fan_out, 1), _MOST_FAN_OUT),
        max(consumers, 1),
    )


def with_limits(topic: TopicLoad, policies: Policies, config: Settings) -> TopicLoad:
    """Return a topic with the limits in force for it and its subscriptions; a replicator gets the replicators' limit.

    Raises:
        SettingError: Its name is no full topic name.
    """
    limited = []
    for one in topic.subscriptions:
        level = Level.REPLICATOR if one.kind is SubscriptionType.REPLICATOR else Level.SUBSCRIPTION
        limited.append(replace(one, limit=limit_chain(level, topic.name, policies, config, one.name).rate))
    return replace(
        topic,
        subscriptions=tuple(limited),
        limit=limit_chain(Level.TOPIC, topic.name, policies, config).rate,
        persistent=parse_topic(topic.name).persistent,
    )
