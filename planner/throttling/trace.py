"""What a dispatch simulation found out."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np

from planner.model.arrays import BoolArray, FloatArray, Int64Array, IntArray, frozen
from planner.throttling.load import TopicLoad
from planner.throttling.precedence import Level

__all__ = ["LIMITS", "DispatchTrace", "Drain", "Limit"]


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
"""What can bind a stream, in the order of `DispatchTrace.events`."""


@dataclass(frozen=True, slots=True)
class Drain:
    """When a backlog is gone.

    Attributes:
        seconds: When nothing of it was left for the first time; else when it will be, if it goes on as in the second
            half of the simulated time; None when it grows.
        measured: It happened within the simulated time.
        change_msgs_per_s: How the backlog changed over the second half; below 0 when it shrinks.
        left_msgs: What is left of it at the end.
    """

    seconds: float | None
    measured: bool
    change_msgs_per_s: float
    left_msgs: int


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
        allowed_msgs: Most messages that the limiters left at any time in the period; NaN without limit, or when nobody
            asked.
        allowed_bytes: The same for bytes.
        over_delivered_msgs: Messages beyond what the limiters had left when they were read.
        over_delivered_bytes: The same for bytes.
        debt_msgs: Largest debt of the limiters it is charged to, in messages (or entries, where those are counted), at
            the end of the period.
        debt_bytes: The same for bytes.
        events: How often each of `LIMITS` reduced or stopped a read: Pulsar's `dispatchThrottledMsgEventsBy…Limit` and
            `dispatchThrottledBytesEventsBy…Limit`. Shape (6, streams, periods).
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
    allowed_msgs: FloatArray
    allowed_bytes: FloatArray
    over_delivered_msgs: Int64Array
    over_delivered_bytes: Int64Array
    debt_msgs: Int64Array
    debt_bytes: Int64Array
    events: IntArray

    @property
    def periods(self) -> int:
        """How many periods were simulated."""
        return int(self.delivered_msgs.shape[1])

    @property
    def ends_s(self) -> FloatArray:
        """End of each period."""
        return np.arange(1, self.periods + 1, dtype=np.float64) * self.period_s

    def streams(self, topic: int | None = None, subscription: int | None = None) -> BoolArray:
        """Return which streams belong to a topic, a subscription of it, or to all of them."""
        chosen = np.ones(len(self.topic), dtype=bool)
        if topic is not None:
            chosen &= self.topic == topic
        if subscription is not None:
            chosen &= self.subscription == subscription
        return chosen

    def total(self, column: str, streams: BoolArray | None = None) -> FloatArray:
        """Return a matrix summed over some streams (all by default). Shape (periods,).

        What the limiters allowed is NaN where none of them has a number.
        """
        values = getattr(self, column)[self.streams() if streams is None else streams]
        if values.dtype != np.float64:
            return np.asarray(values.sum(axis=0), dtype=np.float64)
        known = np.isfinite(values)
        sums = np.where(known, values, 0.0).sum(axis=0, dtype=np.float64)
        return np.asarray(np.where(known.any(axis=0), sums, np.nan), dtype=np.float64)

    def allowed(self, level: Level, streams: BoolArray | None = None) -> FloatArray:
        """Return how many messages the limiters of a level left to some streams in all. Shape (periods,).

        Streams that share a limiter saw the same tokens, which count once. A limit in bytes counts as the messages that
        fit into it.

        Args:
            level: The one that binds.
            streams: Which streams, all by default.

        Returns:
            NaN where nothing limits them, or nobody asked.
        """
        chosen = np.flatnonzero(self.streams() if streams is None else streams)
        size = np.array([t.entry_bytes / t.messages_per_entry for t in self.topics])[self.topic[chosen]]
        left = np.fmin(self.allowed_msgs[chosen], self.allowed_bytes[chosen] / size[:, None])
        partition = self.topic[chosen] * (int(self.partition.max(initial=0)) + 1) + self.partition[chosen]
        if level is Level.BROKER:
            brokers = [self.topics[t].brokers for t in self.topic[chosen]]
            group = np.array([b[p % len(b)] for b, p in zip(brokers, self.partition[chosen], strict=True)])
        else:
            group = partition if level is Level.TOPIC else np.arange(len(chosen))
        names, at = np.unique(group, return_inverse=True)
        most = np.full((len(names), self.periods), -np.inf)
        np.maximum.at(most, at, np.nan_to_num(left, nan=-np.inf))
        known = np.isfinite(most)
        sums = np.where(known, most, 0.0).sum(axis=0, dtype=np.float64)
        return np.asarray(np.where(known.any(axis=0), sums, np.nan), dtype=np.float64)

    def binding(self, streams: BoolArray | None = None) -> tuple[Limit | None, ...]:
        """Return which limit reduced or stopped most reads of some streams, by period; None where none did."""
        counts = self.events if streams is None else self.events[:, streams]
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
            return Drain(float(when.max(initial=0.0)), measured=True, change_msgs_per_s=change, left_msgs=left)
        eta = self.periods * self.period_s + left / -change if change < 0 else None
        return Drain(eta, measured=False, change_msgs_per_s=change, left_msgs=left)


_MATRICES = tuple(f.name for f in fields(DispatchTrace) if f.name.endswith(("_msgs", "_bytes")))[1:]


class Recorder:
    """Collects the periods of a simulation.

    Args:
        streams: How many.
        periods: How many.
    """

    def __init__(self, streams: int, periods: int) -> None:
        shape = (periods, streams)
        real = {"allowed_msgs", "allowed_bytes"}
        self._matrices = {n: np.zeros(shape, dtype=np.float64 if n in real else np.int64) for n in _MATRICES}
        self._events = np.zeros((periods, len(LIMITS), streams), dtype=np.int32)

    def take(self, period: int, events: IntArray, **columns: Int64Array | FloatArray) -> None:
        """Store what happened in a period, by stream."""
        self._events[period] = events
        for name, values in columns.items():
            self._matrices[name][period] = values

    def trace(self, topics: Sequence[TopicLoad], period_s: float, **columns: Int64Array | FloatArray) -> DispatchTrace:
        """Return everything, read-only."""
        matrices = {name: frozen(matrix.T) for name, matrix in self._matrices.items()}
        events = frozen(np.moveaxis(self._events, 0, 2))
        given = {name: frozen(column) for name, column in columns.items()}
        return DispatchTrace(tuple(topics), period_s, events=events, **given, **matrices)  # type: ignore[arg-type]
