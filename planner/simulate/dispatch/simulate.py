"""Dispatch of many topics over time, under dispatch limits of every level.

Every subscription of every partition is a *stream*: a dispatcher that reads entries as those of Pulsar 4.2.4 do
(`PersistentDispatcherMultipleConsumers`, `PersistentDispatcherSingleActiveConsumer`, `PersistentReplicator`):

1. entries to read = what the permits of the consumers allow, at most `dispatcherMaxReadBatchSize`;
2. broker, topic and subscription limiter reduce it in this order, one token for one entry; what has none left stops the
   dispatcher for 1000 ms, and those after it are not asked;
3. as many entries are read as the bytes are estimated to hold, at least one;
4. all limiters are charged with the messages (or entries) and bytes that were sent, into debt if need be; then it reads
   again.

Time goes on in steps of `step_ms` and one nanosecond, so that a retry after 1000 ms finds more than one second
elapsed, as it does in a real broker. Messages arrive, and consumers give permits back, at the steps. Reads take no time
and never fail, consumers can always be written to, every entry of a topic has the same size, and messages of a shared
subscription find a consumer with permits. Streams of one broker are asked in turn, another one first each time; in a
real broker that order is arbitrary.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from planner.cluster.arrays import BoolArray, FloatArray, Int64Array, frozen
from planner.cluster.errors import SettingError
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
from planner.cluster.snapshot import DispatchRate
from planner.cluster.units import NS_PER_MS
from planner.pulsar.throttling.async_token_bucket import BucketColumn, bucket_column
from planner.pulsar.throttling.classic_limiter import ClassicColumn
from planner.pulsar.throttling.entries import ENTRY_OVERHEAD_BYTES
from planner.pulsar.throttling.precedence import Level, setting_rate
from planner.pulsar.throttling.protocol import NO_BOUND, LimiterColumn
from planner.simulate.dispatch.load import TopicLoad, check_loads
from planner.simulate.dispatch.streams import Publishing, make_streams
from planner.simulate.dispatch.trace import LIMITS, MATRICES, DispatchTrace

RETRY_MS = 1000
"""Time that a dispatcher waits when a limiter leaves nothing."""

_STEPS_MS = (100, 50, 20, 10)
_MOST_DURATION_S = 3600.0
_STREAM_STEP_S = 1.5e-7
_STEP_S = 2e-4
_MOST_CELLS = 3_000_000
_ARRIVALS = 100_000
"""Arrivals that are worked out at once: steps x streams."""
_SECOND_NS = 1_000_000_000


def limiter_column(config: Settings) -> type[BucketColumn] | type[ClassicColumn]:
    """Return the kind of limiter that `dispatchRateLimiterFactoryClassName` names; a blank one is the classic one.

    Raises:
        SettingError: It is a class of somebody else.
    """
    name = config.text(DISPATCH_RATE_LIMITER_FACTORY_CLASS_NAME).strip()
    if name.endswith("DispatchRateLimiterFactoryAsyncTokenBucket"):
        return bucket_column(config.release)
    if not name or name.endswith("DispatchRateLimiterFactoryClassic"):
        return ClassicColumn
    raise SettingError(
        f"{name[:120]} is not one of Pulsar's own limiters.",
        where=DISPATCH_RATE_LIMITER_FACTORY_CLASS_NAME,
        remedy="Choose DispatchRateLimiterFactoryAsyncTokenBucket or DispatchRateLimiterFactoryClassic.",
    )


def simulate(
    topics: Sequence[TopicLoad],
    config: Settings,
    duration_s: float = 60.0,
    *,
    period_s: float = 1.0,
    step_ms: int | None = None,
) -> DispatchTrace:
    """Simulate dispatch, from full limiters on.

    Args:
        topics: What is dispatched, with the limits in force for it (see `planner.pulsar.throttling.precedence`).
        config: Settings of the brokers: the limit each broker shares, read sizes, switches, the kind of limiter.
        duration_s: How long, up to an hour.
        period_s: Length of the periods that are reported; a multiple of 0.1 s.
        step_ms: Time between two steps, a divisor of 100. By default the longest of 100, 50, 20 and 10 in which no
            consumer works off more than half its queue. A consumer never gets more than its queue in one step.

    Returns:
        What each stream got in each period.

    Raises:
        SettingError: Something is out of bounds.
    """
    check_loads(topics)
    step = _step_ms(topics) if step_ms is None else step_ms
    if step < 1 or 100 % step:
        raise SettingError(f"A step of {step} ms is not possible.", where="step_ms", remedy="Use a divisor of 100.")
    tenths = round(period_s * 10)
    if not 0.1 <= period_s <= duration_s <= _MOST_DURATION_S or abs(tenths - period_s * 10) > 1e-9:  # noqa: PLR2004
        remedy = f"Use at most {_MOST_DURATION_S:g} s, and periods in tenths of a second."
        raise SettingError(f"{duration_s:g} s in periods of {period_s:g} s.", where="Duration", remedy=remedy)
    periods, steps_each = max(round(duration_s / period_s), 1), tenths * 100 // step
    streams = sum(topic.partitions * len(topic.subscriptions) for topic in topics)
    if periods * streams > _MOST_CELLS:
        what = f"{streams:,} streams over {periods:,} periods are too many."
        raise SettingError(what, where="Duration", remedy="Simulate fewer topics, or a shorter time.")
    run = _Dispatch(topics, config, step, periods)
    for at in range(periods):
        for k in range(at * steps_each, (at + 1) * steps_each):
            run.step(k)
        run.close_period()
    return run.trace(topics, period_s)


def price_s(topics: Sequence[TopicLoad], duration_s: float) -> float:
    """Return about how long a processor simulates, s; measured on two cores, right to a factor of a few."""
    streams = sum(topic.partitions * len(topic.subscriptions) for topic in topics)
    return duration_s * 1000 / _step_ms(topics) * (streams * _STREAM_STEP_S + _STEP_S)


def _step_ms(topics: Sequence[TopicLoad]) -> int:
    fastest = max((s.process_msg_per_s / s.receiver_queue_msgs for t in topics for s in t.subscriptions), default=0.0)
    return next((s for s in _STEPS_MS if fastest * s / 1000 <= 1 / 2), _STEPS_MS[-1])


class _Limiters:
    """The limiters of one level, for messages and for bytes.

    Args:
        rates: Dispatch rate of each.
        published: Messages and bytes per second that are published on average, for each.
        kind: Which kind of limiter.
    """

    def __init__(
        self,
        rates: Sequence[DispatchRate],
        published: tuple[FloatArray, FloatArray],
        kind: type[BucketColumn] | type[ClassicColumn],
    ) -> None:
        self._relative = np.array([r.relative_to_publish_rate for r in rates], dtype=bool)
        msgs = np.array([r.msg_per_period for r in rates], dtype=np.int64)
        self._stated = (msgs, np.array([r.bytes_per_period for r in rates], dtype=np.int64))
        period = np.array([r.period_s for r in rates], dtype=np.int64) * _SECOND_NS
        start = self._effective(published) if issubclass(kind, BucketColumn) else self._stated
        self.columns: tuple[LimiterColumn, LimiterColumn] = (kind(start[0], period), kind(start[1], period))
        self.limits = any(bool(c.limited.any()) for c in self.columns)
        self.publish(published)

    def _effective(self, published: tuple[FloatArray, FloatArray]) -> tuple[Int64Array, ...]:
        pairs = zip(self._stated, published, strict=True)
        return tuple(np.where(self._relative & (s > 0), s + more.astype(np.int64), s) for s, more in pairs)

    def publish(self, published: tuple[FloatArray, FloatArray]) -> None:
        """Add the average publish rates to the limits that are relative to them."""
        if self._relative.any():
            for column, rate in zip(self.columns, self._effective(published), strict=True):
                column.set_rate(rate)


class _Dispatch:
    """One simulation; see `simulate`."""

    def __init__(self, topics: Sequence[TopicLoad], config: Settings, step_ms: int, periods: int) -> None:
        self.streams = s = make_streams(topics, config)
        size = len(s)
        self._step_ms, self._retry_steps = step_ms, RETRY_MS // step_ms
        stats_s = config.integer("statsUpdateFrequencyInSecs")
        self._stats_steps = stats_s * 1000 // step_ms
        self._publishing = Publishing(topics, stats_s)
        # how it reads
        batch = config.integer(DISPATCHER_MAX_READ_BATCH_SIZE)
        self._batch = np.minimum(batch, np.where(s.replicates, s.permits, NO_BOUND))
        self._max_bytes = config.integer(DISPATCHER_MAX_READ_SIZE_BYTES)
        self._estimated = s.entry_bytes + ENTRY_OVERHEAD_BYTES
        self._divisor = np.where(config.flag(PRECISE_DISPATCHER_FLOW_CONTROL) & ~s.replicates, s.messages, 1)
        by_entry = config.flag(DISPATCH_THROTTLING_ON_BATCH_MESSAGE_ENABLED) | s.replicates
        self._charge = np.where(by_entry, 1, s.messages)
        # what limits it
        kind, published = limiter_column(config), self._publishing.averages()
        brokers = int(s.broker.max(initial=-1)) + 1
        none = (np.zeros(brokers), np.zeros(brokers))
        logs = [t.limit for t in topics for _ in range(t.partitions)]
        self._brokers = _Limiters([setting_rate(Level.BROKER, config)] * brokers, none, kind)
        self._logs = _Limiters(logs, published, kind)
        self._own = _Limiters(s.limit, (published[0][s.log], published[1][s.log]), kind)
        self._always = config.flag(DISPATCH_THROTTLING_ON_NON_BACKLOG_CONSUMER_ENABLED)
        self._by_backlog = not config.flag(CACHE_EVICTION_BY_EXPECTED_READ_COUNT)
        self._threshold = config.integer("managedLedgerCursorBackloggedThreshold")
        # what changes
        self._waiting = s.waiting.copy()
        self._permits = s.permits.copy()
        self._arrived = np.zeros(size, dtype=np.int64)
        self._ahead = min(max(_ARRIVALS // max(size, 1), 1), 1000)
        self._work_off = s.processed_per_s * (step_ms / 1000)
        self._redelivers = bool(s.redelivered.any())
        self._busy = False
        """Whether consumers have anything to work off or to give back."""
        self._replays = np.zeros(size, dtype=np.int64)
        self._to_replay, self._in_flight, self._processed = np.zeros((3, size))
        self._resumes = np.zeros(size, dtype=np.int64)
        self._drained = np.where(s.waiting > 0, np.inf, 0.0)
        self._update_cursors()
        # what is told of it; all by period, streams last
        self._period = 0
        self._recorded = {name: np.zeros((periods, size), dtype=np.int64) for name in MATRICES}
        self._events, self._bound = np.zeros((2, periods, len(LIMITS), size), dtype=np.int32)
        self._left = np.full((periods, len(LIMITS), size), -1, dtype=np.int64)

    def _update_cursors(self) -> None:
        """Decide which streams are throttled: inactive cursors only, if those without backlog are to be spared."""
        s = self.streams
        few = (self._threshold < 0) | (self._waiting <= self._threshold)
        active = (s.consumers > 0) & (few | (not self._by_backlog))
        self._shares = s.persistent & ~s.replicates & (self._always | ~active)
        self._limited = self._shares | (s.persistent & s.replicates)

    def step(self, k: int) -> None:
        """Let messages arrive, consumers work, and every dispatcher that may read do so until it may not."""
        s, at_s = self.streams, k * self._step_ms / 1000
        self._now_ns = k * (self._step_ms * NS_PER_MS + 1)
        self._k = k
        if (fresh := self._fresh(k)) is not None:
            self._waiting += fresh
            self._recorded["published_msgs"][self._period] += fresh * s.messages
        if k and self._busy:
            self._consume()
        if k and k % self._stats_steps == 0:
            self._publishing.update_average(at_s)
            msgs, byte_count = self._publishing.averages()
            self._logs.publish((msgs, byte_count))
            self._own.publish((msgs[s.log], byte_count[s.log]))
            self._update_cursors()
        ready = (self._reads() & (self._resumes <= k)).nonzero()[0]
        if not ready.size:
            return
        turn = int(np.searchsorted(ready, k * 7919 % max(len(s), 1)))  # a prime: another one is first each time
        ready = np.concatenate((ready[turn:], ready[:turn]))
        while ready.size:
            for rows in self._apart(ready):
                self._read(rows)
            ready = ready[(self._reads() & (self._resumes <= k))[ready]]
        self._drained = np.where(np.isinf(self._drained) & (self._waiting == 0), at_s, self._drained)

    def _fresh(self, k: int) -> Int64Array | None:
        """Return the entries that arrive at a step, None for none at all; many steps are worked out together."""
        at = k % self._ahead
        if not at:
            moments = np.arange(k, k + self._ahead) * self._step_ms / 1000
            arrived = self._publishing.entries(moments)[:, self.streams.log]
            self._arriving = np.diff(arrived, axis=0, prepend=self._arrived[np.newaxis])
            self._arrived, self._arrives = arrived[-1], np.any(self._arriving, axis=1)
        fresh: Int64Array | None = self._arriving[at] if self._arrives[at] else None
        return fresh

    def _reads(self) -> BoolArray:
        reads: BoolArray = (self._permits > 0) & ((self._waiting > 0) | (self._replays > 0))
        return reads

    def _consume(self) -> None:
        """Let consumers work off what they have, and give permits back."""
        s = self.streams
        done = np.minimum(self._in_flight, self._work_off)
        self._in_flight -= done
        self._processed += done
        times = np.floor((self._processed + 1e-6) / s.returned_at)
        returned = times.any()
        if returned:
            back = times * s.returned_at
            self._permits += back.astype(np.int64)
            self._processed -= back
        if self._redelivers:
            self._to_replay += done * s.redelivered / s.messages
            entries = np.floor(self._to_replay + 1e-9)
            self._to_replay -= entries
            self._replays += entries.astype(np.int64)
        self._busy = bool(returned or self._redelivers or self._in_flight.any())

    def _apart(self, ready: Int64Array) -> list[Int64Array]:
        """Split streams into groups in which no two share a partition, so that a group can read at the same time."""
        if not self._logs.limits:
            return [ready]
        slots = self.streams.slot[ready]
        return [ready[slots == slot] for slot in np.unique(slots)]

    def _read(self, rows: Int64Array) -> None:
        """Let some streams read once, in their order."""
        s, now = self.streams, self._now_ns
        wanted = np.minimum(-(-self._permits[rows] // self._divisor[rows]), self._batch[rows])
        limits = [(self._logs, s.log[rows], self._shares[rows]), (self._own, rows, self._limited[rows])]
        limits = [limit for limit in limits if limit[0].limits]
        answers = [[c.peek(at, now) for c in limit.columns] for limit, at, _ in limits]
        msgs, byte_count = np.full((2, rows.size), NO_BOUND, dtype=np.int64)
        for (_, _, applies), (of_msgs, of_bytes) in zip(limits, answers, strict=True):
            msgs = np.where(applies, np.minimum(msgs, of_msgs[0]), msgs)
            byte_count = np.where(applies, np.minimum(byte_count, of_bytes[0]), byte_count)
        entries, room = wanted, np.full(rows.size, self._max_bytes, dtype=np.int64)
        if self._brokers.limits:
            shared = self._share_broker(rows, np.minimum(wanted, msgs), np.minimum(room, byte_count))
            entries, room = self._reduce(0, rows, entries, room, *shared)
            msgs, byte_count = np.minimum(msgs, shared[0]), np.minimum(byte_count, shared[1])
        for (limit, at, applies), answer in zip(limits, answers, strict=True):
            asked = applies & (entries > 0) & (room > 0)
            for column, (_, state) in zip(limit.columns, answer, strict=True):
                column.commit(at, state, asked)
            left = [np.where(asked, available, NO_BOUND) for available, _ in answer]
            entries, room = self._reduce(2 if limit is self._logs else 4, rows, entries, room, left[0], left[1])
        stopped = (entries <= 0) | (room <= 0)
        if stopped.any():
            self._resumes[rows[stopped]] = self._k + self._retry_steps
            entries = np.where(stopped, 0, entries)
        new, replayed = self._entries_read(rows, entries, room)
        self._send(rows, new, replayed, (msgs, byte_count), limits)

    def _reduce(
        self,
        event: int,
        rows: Int64Array,
        entries: Int64Array,
        room: Int64Array,
        msgs: Int64Array,
        byte_count: Int64Array,
    ) -> tuple[Int64Array, Int64Array]:
        """Reduce entries and bytes to what a limiter leaves, and count that it did."""
        events, bound, most = (counts[self._period] for counts in (self._events, self._bound, self._left))
        for at, left in ((event, msgs), (event + 1, byte_count)):
            most[at, rows] = np.maximum(most[at, rows], np.where(left < NO_BOUND, left, -1))
        few, little = msgs < entries, byte_count < room
        if not (few.any() or little.any()):
            return entries, room
        events[event, rows] += few
        events[event + 1, rows] += little
        fewer, less = np.minimum(entries, msgs), np.minimum(room, byte_count)
        before, by_msgs, after = (self._fits(rows, *both) for both in ((entries, room), (fewer, room), (fewer, less)))
        bound[event, rows] += by_msgs < before
        bound[event + 1, rows] += after < by_msgs
        return fewer, less

    def _fits(self, rows: Int64Array, entries: Int64Array, room: Int64Array) -> Int64Array:
        """Return how many entries a read is estimated to hold, at least one unless there are no tokens at all."""
        held = np.minimum(entries, np.maximum(room // self._estimated[rows], 1))
        return np.where(room > 0, held, 0)

    def _entries_read(self, rows: Int64Array, entries: Int64Array, room: Int64Array) -> tuple[Int64Array, Int64Array]:
        """Return entries read from the backlog and entries replayed; both reads see the same tokens."""
        most = self._fits(rows, entries, room)
        return np.minimum(most, self._waiting[rows]), np.minimum(most, self._replays[rows])

    def _share_broker(self, rows: Int64Array, entries: Int64Array, room: Int64Array) -> tuple[Int64Array, Int64Array]:
        """Return what the limiter of its broker leaves to each stream, after those before it took theirs.

        Args:
            rows: The streams, in the order in which they ask.
            entries: What each would read at most if it had no broker.
            room: The same in bytes.
        """
        msgs, byte_count = np.full((2, rows.size), NO_BOUND, dtype=np.int64)
        broker_of = self.streams.broker[rows]
        for broker in np.unique(broker_of[self._shares[rows]]):
            asking = np.flatnonzero(self._shares[rows] & (broker_of == broker))
            at, left = np.array([broker]), []
            for column in self._brokers.columns:
                available, state = column.peek(at, self._now_ns)
                column.commit(at, state, np.array([True]))
                left.append(int(available[0]))
            seen = self._in_turn(rows[asking], entries[asking], room[asking], left[0], left[1])
            msgs[asking], byte_count[asking] = seen
        return msgs, byte_count

    def _in_turn(
        self, rows: Int64Array, entries: Int64Array, room: Int64Array, msgs: int, byte_count: int
    ) -> tuple[Int64Array, Int64Array]:
        """Return what is left of tokens when each stream asks, one after the other.

        All that are not reduced are done at once: their charges add up.
        """
        seen = np.zeros((2, rows.size), dtype=np.int64)
        new, replayed = self._entries_read(rows, entries, room)
        need = np.maximum(new, replayed)
        charged = (new + replayed) * self._charge[rows], (new + replayed) * self.streams.entry_bytes[rows]
        at = 0
        while at < rows.size and msgs > 0 and byte_count > 0:
            left_msgs = msgs - (np.cumsum(charged[0][at:]) - charged[0][at:])
            left_bytes = byte_count - (np.cumsum(charged[1][at:]) - charged[1][at:])
            served = (left_msgs > 0) & (left_bytes > 0) & (left_msgs >= need[at:])
            served &= np.maximum(left_bytes // self._estimated[rows[at:]], 1) >= need[at:]
            many = rows.size - at if served.all() else int(np.argmin(served))
            seen[0, at : at + many], seen[1, at : at + many] = left_msgs[:many], left_bytes[:many]
            msgs -= int(charged[0][at : at + many].sum())
            byte_count -= int(charged[1][at : at + many].sum())
            at += many
            if at < rows.size:
                seen[:, at] = max(msgs, 0), max(byte_count, 0)
                if msgs > 0 and byte_count > 0:
                    one, fewer = rows[at : at + 1], np.minimum(entries[at : at + 1], msgs)
                    read = sum(self._entries_read(one, fewer, np.minimum(room[at : at + 1], byte_count)))
                    msgs -= int((read * self._charge[one])[0])
                    byte_count -= int((read * self.streams.entry_bytes[one])[0])
                at += 1
        seen[:, at:] = np.array([[max(msgs, 0)], [max(byte_count, 0)]])
        return seen[0], seen[1]

    def _send(
        self,
        rows: Int64Array,
        new: Int64Array,
        replayed: Int64Array,
        allowed: tuple[Int64Array, Int64Array],
        limits: Sequence[tuple[_Limiters, Int64Array, BoolArray]],
    ) -> None:
        """Hand entries to consumers, and charge the limiters.

        Args:
            rows: The streams.
            new: Entries of the backlog.
            replayed: Entries sent again.
            allowed: What the limiters had left when they were read, in messages and bytes.
            limits: Limiters of topics and subscriptions, their positions and whether they apply.
        """
        s, entries = self.streams, new + replayed
        sent = entries * s.messages[rows], entries * s.entry_bytes[rows]
        self._waiting[rows] -= new
        self._replays[rows] -= replayed
        self._permits[rows] -= sent[0]
        self._in_flight[rows] += sent[0]
        self._busy = True
        limited = bool(limits) or self._brokers.limits
        for left, amount, unit in zip(allowed, sent, ("msgs", "bytes"), strict=True):
            self._recorded[f"delivered_{unit}"][self._period][rows] += amount
            if not limited:
                continue
            over = np.where(left < NO_BOUND, np.maximum(amount - left, 0), 0)
            self._recorded[f"over_delivered_{unit}"][self._period][rows] += over
        charges = entries * self._charge[rows], sent[1]
        for limit, positions, applies in limits:
            for column, charge in zip(limit.columns, charges, strict=True):
                column.consume(positions, np.where(applies, charge, 0), self._now_ns)
        if self._brokers.limits:
            shares = self._shares[rows]
            for column, charge in zip(self._brokers.columns, charges, strict=True):
                by_broker = np.bincount(s.broker[rows[shares]], charge[shares], len(column.limited)).astype(np.int64)
                column.consume(np.arange(len(by_broker)), by_broker, self._now_ns)

    def close_period(self) -> None:
        """End a period: tell of debts, and of what waits."""
        s, recorded = self.streams, {name: column[self._period] for name, column in self._recorded.items()}
        for at, unit in enumerate(("msgs", "bytes")):
            shared = np.maximum(self._logs.columns[at].debt()[s.log], self._brokers.columns[at].debt()[s.broker])
            own = self._own.columns[at].debt()
            debt = np.maximum(np.where(self._shares, shared, 0), np.where(self._limited, own, 0))
            recorded[f"debt_{unit}"][:] = debt
        waiting = (self._waiting + self._replays) * s.messages
        recorded["waiting_msgs"][:] = waiting
        recorded["demand_msgs"][:] = recorded["delivered_msgs"] + np.minimum(waiting, np.maximum(self._permits, 0))
        self._period += 1

    def trace(self, topics: Sequence[TopicLoad], period_s: float) -> DispatchTrace:
        """Return everything, read-only."""
        s = self.streams
        cubes: dict[str, Any] = {"events": self._events, "bound": self._bound, "left": self._left}
        columns: dict[str, Any] = {
            "topic": s.topic,
            "partition": s.partition,
            "subscription": s.slot,
            "backlog_at_start_msgs": s.waiting * s.messages,
            "drained_s": np.where(np.isinf(self._drained), np.nan, self._drained),
            **{name: recorded.T for name, recorded in self._recorded.items()},
            **{name: np.moveaxis(cube, 0, 2) for name, cube in cubes.items()},
        }
        return DispatchTrace(tuple(topics), period_s, **{name: frozen(column) for name, column in columns.items()})
