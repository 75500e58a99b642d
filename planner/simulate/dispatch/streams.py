"""The streams of a dispatch simulation as columns: one for each subscription of each partition."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from planner.cluster.arrays import BoolArray, FloatArray, Int64Array
from planner.cluster.settings import Settings
from planner.cluster.snapshot import DispatchRate
from planner.simulate.dispatch.load import SubscriptionLoad, SubscriptionType, TopicLoad

_SHARING = (SubscriptionType.SHARED, SubscriptionType.KEY_SHARED)


@dataclass(frozen=True, eq=False)
class Streams:
    """What does not change during a simulation. Shape of every column: (streams,).

    Attributes:
        topic: Position of the topic.
        partition: Number of the partition in its topic.
        log: Position of the partition among those of all topics.
        slot: Position of the subscription in its topic.
        broker: Broker of the partition.
        messages: Messages in an entry.
        entry_bytes: Bytes of an entry.
        replicates: It is a replicator.
        persistent: Its topic is persistent.
        consumers: Consumers that get messages.
        permits: Messages that consumers ask for at first.
        returned_at: Messages after which a consumer gives permits back.
        processed_per_s: Messages that all consumers work off in a second.
        redelivered: Part of the messages that come back.
        waiting: Entries in the backlog at first.
        limit: Dispatch rate of the subscription.
    """

    topic: Int64Array
    partition: Int64Array
    log: Int64Array
    slot: Int64Array
    broker: Int64Array
    messages: Int64Array
    entry_bytes: Int64Array
    replicates: BoolArray
    persistent: BoolArray
    consumers: Int64Array
    permits: Int64Array
    returned_at: Int64Array
    processed_per_s: FloatArray
    redelivered: FloatArray
    waiting: Int64Array
    limit: tuple[DispatchRate, ...]

    def __len__(self) -> int:
        return len(self.topic)


_KINDS: dict[str, type] = {
    "replicates": np.bool_,
    "persistent": np.bool_,
    "processed_per_s": np.float64,
    "redelivered": np.float64,
}


def make_streams(topics: Sequence[TopicLoad], config: Settings) -> Streams:
    """Return one stream for each subscription of each partition, in the order of topics, partitions, subscriptions."""
    producer_queue = config.integer("replicationProducerQueueSize")
    first_log = np.cumsum([0, *(t.partitions for t in topics)]).tolist()
    placed = [
        (at, partition, slot)
        for at, topic in enumerate(topics)
        for partition in range(topic.partitions)
        for slot in range(len(topic.subscriptions))
    ]
    rows = [
        {"topic": at, "partition": partition, "log": first_log[at] + partition, "slot": slot}
        | _row(topics[at], partition, topics[at].subscriptions[slot], producer_queue)
        for at, partition, slot in placed
    ]
    names = [f.name for f in fields(Streams) if f.name != "limit"]
    made: dict[str, Any] = {n: np.array([row[n] for row in rows], dtype=_KINDS.get(n, np.int64)) for n in names}
    return Streams(**made, limit=tuple(topics[at].subscriptions[slot].limit for at, _, slot in placed))


def _row(topic: TopicLoad, partition: int, one: SubscriptionLoad, producer_queue: int) -> dict[str, float]:
    replicates = one.kind is SubscriptionType.REPLICATOR
    consumers = min(one.consumers, 1) if replicates or one.kind.one_at_a_time else one.consumers
    queue = producer_queue if replicates else one.receiver_queue_msgs
    entries = -(-one.backlog_msgs // topic.messages_per_entry)
    return {
        "broker": topic.brokers[partition % len(topic.brokers)],
        "messages": topic.messages_per_entry,
        "entry_bytes": topic.entry_bytes,
        "replicates": replicates,
        "persistent": topic.persistent,
        "consumers": consumers,
        "permits": queue * consumers,
        # a replicator's permits come back with every message, a consumer's by halves of its queue
        "returned_at": 1 if replicates else max(queue // 2, 1),
        "processed_per_s": one.process_msg_per_s * consumers,
        "redelivered": one.redelivered_fraction if one.kind in _SHARING else 0.0,
        "waiting": entries // topic.partitions + (partition < entries % topic.partitions),
    }


class Publishing:
    """What was published to each partition, and the average that relative limits are added to.

    Args:
        topics: The topics.
        stats_s: How often the average is updated (`statsUpdateFrequencyInSecs`). It starts with the steady rate.
    """

    def __init__(self, topics: Sequence[TopicLoad], stats_s: float) -> None:
        patterns = [t.publish for t in topics]
        columns = [
            [p.msg_per_s, p.burst_msg_per_s, p.burst_start_s, p.burst_s, p.burst_every_s or np.inf] for p in patterns
        ]
        numbers = np.array(columns, dtype=np.float64).reshape(-1, 5)
        self._steady, self._burst, self._start, self._length, self._every = numbers.T
        partitions = np.array([t.partitions for t in topics], dtype=np.int64)
        self._topic = np.repeat(np.arange(len(topics)), partitions)
        self._parts = partitions[self._topic]
        first = np.cumsum(partitions) - partitions
        self._part = np.arange(len(self._topic)) - first[self._topic]
        self._messages = np.array([t.messages_per_entry for t in topics], dtype=np.int64)
        self._message_bytes = np.array([t.entry_bytes / t.messages_per_entry for t in topics])
        self._stats_s = stats_s
        self._average = self._steady.copy()

    def messages(self, at_s: float | FloatArray) -> FloatArray:
        """Return how many messages were sent to each topic before moments. Shape (moments, topics), (topics,) for one.

        Moments are of shape (moments, 1).
        """
        since = np.maximum(at_s - self._start, 0.0)
        cycles, phase = np.divmod(since, self._every)
        bursting = cycles * self._length + np.minimum(phase, self._length)
        total: FloatArray = self._steady * at_s + self._burst * bursting
        return total

    def entries(self, at_s: FloatArray) -> Int64Array:
        """Return how many whole entries were published to each partition before moments. Shape (moments, partitions).

        Batches go to the partitions in turn. Moments are of shape (moments,).
        """
        # a millionth of a message forgives what adding rates in floating point loses
        batches = np.floor((self.messages(at_s[:, np.newaxis]) + 1e-6) / self._messages).astype(np.int64)
        shared: Int64Array = (batches[:, self._topic] + self._parts - 1 - self._part) // self._parts
        return shared

    def update_average(self, at_s: float) -> None:
        """Take the rate since the last update into the average, as `PersistentTopic` does: up at once, down by half."""
        new = (self.messages(at_s) - self.messages(at_s - self._stats_s)) / self._stats_s
        self._average = np.where(new > self._average, new, (new + self._average) / 2)

    def averages(self) -> tuple[FloatArray, FloatArray]:
        """Return messages and bytes per second that are published to each partition on average.

        Shape (partitions,) each.
        """
        msgs = self._average[self._topic] / self._parts
        return msgs, msgs * self._message_bytes[self._topic]
