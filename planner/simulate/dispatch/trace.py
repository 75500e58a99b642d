"""What a dispatch simulation found out."""

from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np

from planner.cluster.arrays import BoolArray, FloatArray, Int64Array, IntArray
from planner.pulsar.throttling.precedence import Level
from planner.simulate.dispatch.load import TopicLoad


class Limit(NamedTuple):
    """One limiter in one dimension.

    Attributes:
        level: Broker, topic or subscription (of a replicator: its own).
        dimension: `messages` or `bytes`.
    """

    level: Level
    dimension: str

    def __str__(self) -> str:
        return f"{self.level.value} ({self.dimension})"


LIMITS = tuple(
    Limit(level, dimension)
    for level in (Level.BROKER, Level.TOPIC, Level.SUBSCRIPTION)
    for dimension in ("messages", "bytes")
)
"""Limits that can bind a stream, in the order of `DispatchTrace.events`."""


@dataclass(frozen=True, slots=True)
class Drain:
    """When a backlog is gone.

    Attributes:
        seconds: When nothing of it was left for the first time; else when it will be, if it goes on as in the second
            half of the simulated time; None when it grows.
        measured: It happened within the simulated time.
        change_msgs_per_s: How the backlog changed over the second half; below 0 when it shrinks.
    """

    seconds: float | None
    measured: bool
    change_msgs_per_s: float


@dataclass(frozen=True, eq=False)
class DispatchTrace:
    """What each stream (subscription of a partition) got in each period. Shape of a matrix: (streams, periods).

    Attributes:
        topics: What was simulated.
        period_s: Length of a period.
        topic: Position of each stream's topic. Shape (streams,).
        partition: Its partition. Shape (streams,).
        subscription: Position of its subscription in the topic. Shape (streams,).
        backlog_at_start_msgs: Messages that waited at first. Shape (streams,).
        drained_s: When none of them was left; 0 when none waited, NaN when not in time. Shape (streams,).
        published_msgs: Messages that arrived for it.
        delivered_msgs: Messages sent to consumers, redelivered ones counted again.
        delivered_bytes: Bytes sent to consumers.
        waiting_msgs: Messages left at the end of the period.
        demand_msgs: Messages that consumers would have taken: those delivered, and those that still wait and that they
            have permits for.
        over_delivered_msgs: Messages beyond what the limiters had left when they were read.
        over_delivered_bytes: The same for bytes.
        debt_msgs: Largest debt of the limiters it is charged to, in messages (or entries, where those are counted), at
            the end of the period.
        debt_bytes: The same for bytes.
        events: How often each of `LIMITS` reduced or stopped a read: Pulsar's `dispatchThrottledMsgEventsBy…Limit` and
            `dispatchThrottledBytesEventsBy…Limit`. Shape (6, streams, periods).
        bound: How often each of them made a read smaller or stopped it. Less than `events`: bytes that are limited, but
            hold all entries to be read, bind nothing. Shape (6, streams, periods).
        left: Most tokens that each of them left at any time in the period; -1 without limit, or when nobody asked.
            Shape (6, streams, periods).
    """

    topics: tuple[TopicLoad, ...]
    period_s: float
    topic: Int64Array
    partition: Int64Array
    subscription: Int64Array
    backlog_at_start_msgs: Int64Array
    drained_s: FloatArray
    published_msgs: Int64Array
    delivered_msgs: Int64Array
    delivered_bytes: Int64Array
    waiting_msgs: Int64Array
    demand_msgs: Int64Array
    over_delivered_msgs: Int64Array
    over_delivered_bytes: Int64Array
    debt_msgs: Int64Array
    debt_bytes: Int64Array
    events: IntArray
    bound: IntArray
    left: Int64Array

    @property
    def periods(self) -> int:
        """How many periods were simulated."""
        return int(self.delivered_msgs.shape[1])

    @property
    def ends_s(self) -> FloatArray:
        """End of each period. Shape (periods,)."""
        return np.arange(1, self.periods + 1, dtype=np.float64) * self.period_s

    def streams(self, topic: int | None = None, subscription: int | None = None) -> BoolArray:
        """Return which streams belong to a topic, a subscription of it, or to all of them. Shape (streams,)."""
        chosen = np.ones(len(self.topic), dtype=bool)
        if topic is not None:
            chosen &= self.topic == topic
        if subscription is not None:
            chosen &= self.subscription == subscription
        return chosen

    def total(self, column: str, streams: BoolArray | None = None) -> FloatArray:
        """Return a matrix summed over some streams (all by default). Shape (periods,)."""
        values = getattr(self, column)[self.streams() if streams is None else streams]
        return np.asarray(values.sum(axis=0), dtype=np.float64)

    def allowed(self, streams: BoolArray | None = None) -> FloatArray:
        """Return how many messages the limiters left to some streams (all by default) in all. Shape (periods,).

        Streams that share a limiter saw the same tokens, which count once; the tightest level counts. A limit in bytes
        counts as the messages that fit into it.

        Returns:
            NaN where no limiter bounds all of them, or nobody asked.
        """
        chosen = np.flatnonzero(self.streams() if streams is None else streams)
        size = np.array([t.entry_bytes / t.messages_per_entry for t in self.topics])[self.topic[chosen], None]
        both = np.where(self.left < 0, np.inf, self.left)[:, chosen]
        broker, topic, own = (np.minimum(both[at], both[at + 1] / size) for at in (0, 2, 4))
        brokers_of = [
            (self.topics[t].brokers, p) for t, p in zip(self.topic[chosen], self.partition[chosen], strict=True)
        ]
        broker_of = np.array([b[p % len(b)] for b, p in brokers_of], dtype=np.int64)
        partitions, at = np.unique(np.stack((self.topic[chosen], self.partition[chosen])), axis=1, return_inverse=True)
        by_partition = np.minimum(_sums(own, at), _most(topic, at))
        first = np.array([np.flatnonzero(at == group)[0] for group in range(partitions.shape[1])], dtype=np.int64)
        _, home = np.unique(broker_of, return_inverse=True)
        by_broker = np.minimum(_sums(by_partition, home[first]), _most(broker, home))
        total = by_broker.sum(axis=0)
        return np.where(np.isfinite(total), total, np.nan)

    def binding(self, streams: BoolArray | None = None) -> tuple[Limit | None, ...]:
        """Return which limit bound most reads of some streams, by period; None where none did."""
        counts = self.bound if streams is None else self.bound[:, streams]
        sums = counts.sum(axis=1, dtype=np.int64)
        return tuple(LIMITS[int(np.argmax(column))] if column.any() else None for column in sums.T)

    def drain(self, streams: BoolArray | None = None) -> Drain:
        """Return when the backlog of some streams (all by default) is gone."""
        chosen = self.streams() if streams is None else streams
        waiting = self.total("waiting_msgs", chosen)
        left = int(waiting[-1])
        half = self.periods // 2
        seconds = (self.periods - half) * self.period_s
        before = float(waiting[half - 1]) if half else float(self.backlog_at_start_msgs[chosen].sum())
        change = (left - before) / seconds
        when = self.drained_s[chosen]
        if np.isfinite(when).all() and (left == 0 or change <= 0):
            return Drain(float(when.max(initial=0.0)), measured=True, change_msgs_per_s=change)
        eta = self.periods * self.period_s + left / -change if change < 0 else None
        return Drain(eta, measured=False, change_msgs_per_s=change)


def _sums(values: FloatArray, group: Int64Array) -> FloatArray:
    """Add the rows of each group; infinite where one of them is."""
    sums = np.zeros((int(group.max(initial=-1)) + 1, values.shape[1]))
    np.add.at(sums, group, values)
    return sums


def _most(values: FloatArray, group: Int64Array) -> FloatArray:
    """Return the largest finite number in the rows of each group, infinite where there is none."""
    most = np.full((int(group.max(initial=-1)) + 1, values.shape[1]), -np.inf)
    np.maximum.at(most, group, np.where(np.isfinite(values), values, -np.inf))
    return np.where(np.isneginf(most), np.inf, most)


MATRICES = tuple(f.name for f in fields(DispatchTrace) if f.name.endswith(("_msgs", "_bytes")))[1:]
"""Columns of a `DispatchTrace` with a value for each stream and period."""
