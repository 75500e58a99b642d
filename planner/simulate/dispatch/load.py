"""What a dispatch simulation is about: topics, how they are published to, and who consumes them."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from planner.cluster.errors import SettingError
from planner.cluster.snapshot import DispatchRate
from planner.pulsar.throttling.precedence import NO_LIMIT

_MOST_RATE = 1e9
_MOST_MSGS = 10**12
_MOST_BYTES = 2**31 - 1
_MOST_STREAMS = 200_000
_MOST_PERIOD_S = 3600


class SubscriptionType(StrEnum):
    """Who gets the messages of a subscription; a replicator reads like one."""

    EXCLUSIVE = "Exclusive"
    FAILOVER = "Failover"
    SHARED = "Shared"
    KEY_SHARED = "Key_Shared"
    REPLICATOR = "Replicator"

    @property
    def one_at_a_time(self) -> bool:
        """True when one consumer gets everything, however many are connected."""
        return self in {SubscriptionType.EXCLUSIVE, SubscriptionType.FAILOVER}


@dataclass(frozen=True, slots=True)
class PublishPattern:
    """When messages are published: a steady rate, and bursts on top of it.

    Attributes:
        msg_per_s: The steady rate.
        burst_msg_per_s: What a burst adds to it.
        burst_start_s: When the first burst begins.
        burst_s: How long a burst lasts.
        burst_every_s: Time from one burst to the next; 0 for a single one.
    """

    msg_per_s: float = 0.0
    burst_msg_per_s: float = 0.0
    burst_start_s: float = 0.0
    burst_s: float = 0.0
    burst_every_s: float = 0.0


@dataclass(frozen=True, slots=True)
class SubscriptionLoad:
    """One subscription of a topic, or one replication stream.

    Attributes:
        name: Its name.
        kind: Who gets the messages.
        consumers: Connected ones.
        receiver_queue_msgs: Permits of each consumer (`receiverQueueSize`); for a replicator the setting
            `replicationProducerQueueSize` counts instead.
        process_msg_per_s: How fast one consumer works off its queue, or the remote cluster takes messages.
        backlog_msgs: Messages that wait at the beginning, on the whole topic.
        limit: The dispatch rate in force for this subscription (or replicator) on each partition.
        redelivered_fraction: Part of the messages that come back after they were processed, from 0 to below 1 (Shared
            and Key_Shared only). Replays are read beside other reads, from the same tokens.
    """

    name: str = "subscription"
    kind: SubscriptionType = SubscriptionType.SHARED
    consumers: int = 1
    receiver_queue_msgs: int = 1000
    process_msg_per_s: float = 5000.0
    backlog_msgs: int = 0
    limit: DispatchRate = NO_LIMIT
    redelivered_fraction: float = 0.0


@dataclass(frozen=True, slots=True)
class TopicLoad:
    """A topic with its subscriptions.

    Attributes:
        name: Full name.
        publish: Messages published to the whole topic, spread evenly over the partitions.
        messages_per_entry: Messages in a batch; 1 without batching.
        entry_bytes: Size of an entry in its ledger.
        subscriptions: Those that read it, replicators among them.
        partitions: How many; 1 for a topic without. Each has its own quota.
        brokers: Broker of each partition, repeated when there are more partitions; their numbers are the caller's.
        limit: The dispatch rate that all subscriptions of a partition share.
        persistent: False for a topic that nothing throttles.
    """

    name: str
    publish: PublishPattern = PublishPattern()
    messages_per_entry: int = 1
    entry_bytes: int = 1024
    subscriptions: tuple[SubscriptionLoad, ...] = (SubscriptionLoad(),)
    partitions: int = 1
    brokers: tuple[int, ...] = (0,)
    limit: DispatchRate = NO_LIMIT
    persistent: bool = True


def check_loads(topics: Sequence[TopicLoad]) -> None:
    """Check that a simulation can be run about some topics.

    Raises:
        SettingError: A number is outside its bounds, or there is too much of something.
    """
    streams = sum(t.partitions * len(t.subscriptions) for t in topics)
    if streams > _MOST_STREAMS:
        remedy = f"Simulate at most {_MOST_STREAMS:,} at a time."
        raise SettingError(
            f"{streams:,} subscriptions over all partitions are too many.", where="Topics", remedy=remedy
        )
    for topic in topics:
        pattern = topic.publish
        where = f"Topic {topic.name[:80]}"
        _within(where, "publish rate", pattern.msg_per_s, 0, _MOST_RATE)
        _within(where, "burst publish rate", pattern.burst_msg_per_s, 0, _MOST_RATE)
        for what in ("burst_start_s", "burst_s", "burst_every_s"):
            _within(where, what, getattr(pattern, what), 0, _MOST_RATE)
        if pattern.burst_every_s and pattern.burst_every_s < pattern.burst_s:
            remedy = "Use an interval of at least the burst length."
            raise SettingError("A burst is longer than the interval between bursts.", where=where, remedy=remedy)
        _within(where, "messages per entry", topic.messages_per_entry, 1, 10**6)
        _within(where, "bytes per entry", topic.entry_bytes, 1, _MOST_BYTES)
        _within(where, "partitions", topic.partitions, 1, 10_000)
        if not topic.brokers or min(topic.brokers) < 0:
            raise SettingError("A partition has no broker.", where=where, remedy="Use broker numbers of 0 or more.")
        _within(where, "period of the limit", topic.limit.period_s, 1, _MOST_PERIOD_S)
        for one in topic.subscriptions:
            here = f"{where}, {one.name[:80]}"
            _within(here, "consumers", one.consumers, 0, 100_000)
            _within(here, "receiver queue", one.receiver_queue_msgs, 1, 10**6)
            _within(here, "processing rate", one.process_msg_per_s, 0, _MOST_RATE)
            _within(here, "backlog", one.backlog_msgs, 0, _MOST_MSGS)
            _within(here, "fraction redelivered", one.redelivered_fraction, 0, 0.99)
            _within(here, "period of the limit", one.limit.period_s, 1, _MOST_PERIOD_S)


def _within(where: str, what: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        remedy = f"Use a number from {low:,} to {high:,}."
        raise SettingError(f"The {what} is {value:g}.", where=where, remedy=remedy)
