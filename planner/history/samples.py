"""Samples of Prometheus series, taken in the order of time."""

from dataclasses import dataclass

import numpy as np

from planner.cluster.arrays import BoolArray, FloatArray, Int64Array
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
