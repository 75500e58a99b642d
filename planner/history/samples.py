"""Samples of Prometheus series, taken in the order of time.

Series that differ in nothing but labels without a meaning (see `planner.history.labels`) are *rivals*. They are never
merged: at a moment the first of those that have a sample counts, in the order of those labels. Rivals that follow one
another, as when a pod is replaced, are one series over time; rivals that live at the same time are a conflict, which a
note of the day names.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from planner.cluster.arrays import BoolArray, FloatArray, Int64Array
from planner.history.labels import difference, packed, unpacked
from planner.history.prometheus import BROKER_METRICS, BUNDLE_METRICS, COUNTER_METRICS, TOPIC_METRICS
from planner.history.rates import CounterRates
from planner.history.records import Record

_GROUPS = (
    ("broker", BROKER_METRICS),
    ("bundle", BUNDLE_METRICS),
    ("topic", TOPIC_METRICS),
    ("counter", COUNTER_METRICS),
)


@dataclass(frozen=True, eq=False)
class Series:
    """The series of one metric that have a value. Shape of every column: (series,).

    Attributes:
        group: `broker`, `bundle`, `topic` or `counter`.
        column: The column it is about.
        broker: Number of the broker of each.
        name: Number of the bundle or topic of each; -1 for a metric of brokers.
        value: Value of each; of a counter, its rate per second.
        time_ms: When it was sampled.
    """

    group: str
    column: str
    broker: Int64Array
    name: Int64Array
    value: FloatArray
    time_ms: Int64Array

    def where(self, wanted: BoolArray) -> "Series":
        """Return some of the series."""
        chosen = (self.broker[wanted], self.name[wanted], self.value[wanted], self.time_ms[wanted])
        return Series(self.group, self.column, *chosen)


_Key = tuple[str, str, str, str]


class Rivals:
    """Series that differ only in labels without a meaning, and which of them counts.

    Attributes:
        conflicts: Metric and label of those that live at the same time, and what the label says in the series that
            counts.
    """

    def __init__(self) -> None:
        self.conflicts: dict[tuple[str, str], str] = {}
        self._members: dict[_Key, list[tuple[str, int]]] = {}
        self._groups: list[_Key] | None = []
        self._group = self._number = np.zeros(0, dtype=np.int64)
        self._first_ms: Int64Array = np.zeros(0, dtype=np.int64)
        self._rows: Int64Array = np.zeros(0, dtype=np.int64)
        self._reported: BoolArray = np.zeros(0, dtype=bool)

    def add(self, key: _Key, number: int, known: Mapping[_Key, int]) -> None:
        """Take a new series, among those that are known by metric, broker, bundle or topic, and other labels."""
        metric, broker, name, text = key
        subscription, others = unpacked(text)
        plain = (metric, broker, name, packed(subscription, ""))
        if not others and plain not in self._members:
            return
        members = self._members.setdefault(plain, [])
        if others and not members and plain in known:
            members.append(("", known[plain]))
        members.append((others, number))
        if len(members) > 1:
            self._groups = None

    def _listed(self) -> list[_Key]:
        """Return the groups of two series and more; their members are in the order in which they count."""
        if self._groups is None:
            self._groups = [key for key, members in self._members.items() if len(members) > 1]
            rows = [(g, number) for g, key in enumerate(self._groups) for _, number in sorted(self._members[key])]
            table = np.array(rows, dtype=np.int64).reshape(-1, 2)
            self._group, self._number = table[:, 0], table[:, 1]
            self._reported = np.zeros(len(self._groups), dtype=bool)
        return self._groups

    def _fit(self, count: int) -> None:
        if (more := count - len(self._rows)) > 0:
            self._rows = np.concatenate((self._rows, np.zeros(max(more, len(self._rows)), dtype=np.int64)))
            unknown = np.full(len(self._rows) - len(self._first_ms), np.iinfo(np.int64).max)
            self._first_ms = np.concatenate((self._first_ms, unknown))

    def take(self, series: Int64Array, times_ms: Int64Array, counts: Int64Array) -> None:
        """Take when series were sampled, in the order of time, and which of the rows are to be counted."""
        if self._members:
            self._fit(int(series.max(initial=-1)) + 1)
            np.minimum.at(self._first_ms, series, times_ms)
            np.add.at(self._rows, series, counts)

    def overruled(self, fresh: BoolArray, time_ms: Int64Array) -> tuple[Int64Array, int]:
        """Return the series that do not count, and how many rows they had since the last call.

        Args:
            fresh: Which series have a sample. Shape (series,).
            time_ms: When each was sampled last. Shape (series,).
        """
        groups = self._listed()
        if not groups:
            return self._number, 0
        self._fit(len(fresh))
        there = self._number < len(fresh)
        there[there] = fresh[self._number[there]]
        group, number = self._group[there], self._number[there]
        again = np.zeros(len(number), dtype=bool)
        again[1:] = group[1:] == group[:-1]
        first = number[np.maximum.accumulate(np.where(again, 0, np.arange(len(number))))]
        late, lead = number[again], first[again]
        both = (self._first_ms[late] <= time_ms[lead]) & (self._first_ms[lead] <= time_ms[late])
        rows = int(self._rows[late[both]].sum())
        self._rows[:] = 0
        found = np.unique(group[again][both])
        for at in found[~self._reported[found]].tolist():
            self._conflict(groups[at])
        self._reported[found] = True
        return late, rows

    def _conflict(self, key: _Key) -> None:
        for label, value in difference([others for others, _ in sorted(self._members[key])]).items():
            self.conflicts.setdefault((key[0], label), value)


class Samples:
    """Takes runs of samples, at most an hour each, and tells what every series shows; a sample is valid for a while."""

    def __init__(self, valid_ms: int) -> None:
        self.valid_ms = valid_ms
        self.number: dict[tuple[str, str, str, str], int] = {}
        self.brokers: list[int] = []
        self.names: list[int] = []
        self.value: FloatArray = np.zeros(0)
        self.time_ms: Int64Array = np.zeros(0, dtype=np.int64)
        self.counters = CounterRates(valid_ms)
        self._rows: dict[str, tuple[Int64Array, Int64Array, Int64Array]] | None = None
        self.newest_ms = -1
        self._taken_ms = -1
        self.rivals = Rivals()
        self.duplicate = 0
        self.outdated = 0
        self._new: list[tuple[int, Record]] = []
        nothing = np.zeros(0, dtype=np.int64)
        self._waiting: tuple[Int64Array, Int64Array, FloatArray, Int64Array] = (nothing, nothing, np.zeros(0), nothing)

    def __len__(self) -> int:
        return len(self.number)

    def add(self, record: Record, broker: int, name: int, *, counts: bool) -> None:
        """Take a run of samples with the numbers of its broker, and of its bundle or topic, -1 where it has none.

        Repeated rows of a run that `counts`, because it is of this day, are counted.
        """
        key = (record.metric, record.broker, record.names[0] if record.names else "", record.text)
        number = self.number.setdefault(key, len(self.number))
        if number == len(self.brokers):
            self.brokers.append(broker)
            self.names.append(name)
            self._rows = None
            self.rivals.add(key, number, self.number)
        self._new.append((number if counts else -number - 1, record))
        if len(record.times):
            self.newest_ms = max(self.newest_ms, int(record.times[-1]))

    def _by_metric(self) -> dict[str, tuple[Int64Array, Int64Array, Int64Array]]:
        """Return the series of each metric, their brokers, and their bundles or topics."""
        if self._rows is None:
            rows: dict[str, list[int]] = {}
            for (metric, *_), number in self.number.items():
                rows.setdefault(metric, []).append(number)
            brokers, names = np.array(self.brokers, dtype=np.int64), np.array(self.names, dtype=np.int64)
            arrays = {metric: np.array(listed, dtype=np.int64) for metric, listed in rows.items()}
            self._rows = {metric: (listed, brokers[listed], names[listed]) for metric, listed in arrays.items()}
        return self._rows

    def _sort(self) -> None:
        """Merge the runs that came since, without what is said twice of a moment; the last row counts."""
        if not self._new:
            return
        lengths = [len(record.times) for _, record in self._new]
        signed = np.repeat(np.array([number for number, _ in self._new], dtype=np.int64), lengths)
        times = np.concatenate([np.asarray(record.times, dtype=np.int64) for _, record in self._new])
        values = np.concatenate([np.asarray(record.values, dtype=np.float64) for _, record in self._new])
        self._new = []
        series = np.concatenate((self._waiting[0], np.where(signed < 0, -signed - 1, signed)))
        times = np.concatenate((self._waiting[1], times))
        values = np.concatenate((self._waiting[2], values))
        counts = np.concatenate((self._waiting[3], (signed >= 0).astype(np.int64)))
        order = np.lexsort((np.arange(len(series)), series, times))
        series, times, values, counts = series[order], times[order], values[order], counts[order]
        again = np.zeros(len(series), dtype=bool)
        again[:-1] = (series[1:] == series[:-1]) & (times[1:] == times[:-1])
        same = again.copy()
        same[:-1] &= values[1:] == values[:-1]
        self.duplicate += int(counts[same].sum())
        self.outdated += int(counts[again & ~same].sum())
        kept = ~again
        self._waiting = (series[kept], times[kept], values[kept], counts[kept])

    def advance(self, time_ms: int) -> bool:
        """Take what was sampled up to a moment; say whether there was anything."""
        self._sort()
        series, times, values, counts = self._waiting
        end = int(np.searchsorted(times, time_ms, side="right"))
        if not end:
            return False
        more = len(self) - len(self.value)
        if more > 0:
            self.value = np.concatenate((self.value, np.full(more, np.nan)))
            self.time_ms = np.concatenate((self.time_ms, np.full(more, -1, dtype=np.int64)))
        now, at, shown = series[:end], times[:end], values[:end]
        self.value[now] = shown
        self.time_ms[now] = at
        counted = self._counted()[now]
        if counted.any():
            self.counters.feed(now[counted], at[counted], shown[counted])
        self.rivals.take(now, at, counts[:end])
        self._waiting = (series[end:], times[end:], values[end:], counts[end:])
        return True

    def at(self, time_ms: int) -> list[Series]:
        """Return what each series shows that was sampled since the last call, but not too long ago; counters come last.

        Call it once for each moment, after `advance`: rates of counters are those since the last call.
        """
        values = self.value.copy()
        counted = np.flatnonzero(self._counted()[: len(values)])
        self.counters.grow(len(self))
        values[counted] = self.counters.take()[counted]
        fresh = (self.time_ms > self._taken_ms) & (self.time_ms >= time_ms - self.valid_ms) & ~np.isnan(values)
        self._taken_ms = time_ms
        overruled, lost = self.rivals.overruled(fresh, self.time_ms)
        fresh[overruled] = False
        self.outdated += lost
        found: list[Series] = []
        rows_of = self._by_metric()
        for group, columns in _GROUPS:
            for metric in sorted(set(rows_of) & set(columns)):
                rows, brokers, names = rows_of[metric]
                known = rows < len(values)  # the others have no sample yet
                known[known] = fresh[rows[known]]
                at = rows[known]
                numbers = (brokers[known], names[known], values[at], self.time_ms[at])
                found.append(Series(group, columns[metric], *numbers))
        return found

    def _counted(self) -> BoolArray:
        made = np.zeros(len(self), dtype=bool)
        for metric, (rows, _, _) in self._by_metric().items():
            if metric in COUNTER_METRICS:
                made[rows] = True
        return made
