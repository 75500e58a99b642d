"""What is known of a cluster at a moment, as records come in; `planner.history.moment` makes snapshots of it."""

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from planner.cluster.arrays import BoolArray, FloatArray, Int64Array
from planner.cluster.hashing import topic_hash
from planner.cluster.load_manager import LoadManager
from planner.cluster.ranges import FULL_HIGH, bundle_name, equal_boundaries
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.cluster.tables import make_brokers, make_bundles, make_topics
from planner.cluster.topic_names import namespace_of_topic
from planner.cluster.units import MIB
from planner.history.assumed import Hosts
from planner.history.columns import (
    AVERAGES,
    NEVER,
    TOPIC_GAUGES,
    Columns,
    broker_columns,
    bundle_columns,
    topic_columns,
)
from planner.history.gateways import Gateways
from planner.history.layout import Layout
from planner.history.prometheus import BUNDLE_METRICS, JAVA_METRICS
from planner.history.rates import CounterRates
from planner.history.records import BROKER_VALUES, BUNDLE_VALUES, COUNTERS, TOPIC_VALUES, Kind, Record
from planner.history.samples import Samples, Series
from planner.history.spec import Options

_MOST_KNOWN = 4_096
_OF_ITS_CLOCK = tuple(BROKER_VALUES.index(name) for name in ("updated_at_ms", "started_at_ms"))
_WEIGHTED_EMA = BROKER_VALUES.index("weighted_max_ema")
_MSG_RATE_IN = BROKER_VALUES.index("msg_rate_in_per_s")
_TEXTS = ("version", "load_manager_class", "persistent_topics_enabled", "non_persistent_topics_enabled")


@lru_cache(maxsize=1 << 10)
def _facts_of(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text)
    return found


class ClusterState:
    """One cluster, over the bundles that are reported on a day; records are applied in the order of time.

    What a broker says of times is corrected by `skew_ms`, by which its clock is ahead.

    Attributes:
        base: The last snapshot that was taken, without its tables.
        hosts: Which broker is meant where a series names a host alone.
        gateways: Which broker is meant where several have one address.
        assumed: Namespaces whose bundles are unknown.
        cut: Namespaces with a bundle that several brokers serve, so that there are more than anybody reports.
        programs: What has only series of Java, as a bookie or ZooKeeper has, and is therefore no broker.
    """

    def __init__(
        self,
        cluster: str,
        layout: Layout,
        options: Options,
        skew_ms: dict[str, int],
        hosts: Hosts | None = None,
        gateways: Gateways | None = None,
    ) -> None:
        self.cluster, self.layout, self.options, self.skew_ms = cluster, layout, options, skew_ms
        self.base: Snapshot | None = None
        self.hosts = hosts or Hosts(())
        self.gateways = gateways or Gateways({})
        self.cut: dict[str, None] = {}
        self.extensible = False
        self.brokers = broker_columns()
        self.broker_texts: list[dict[str, Any]] = []
        self._bundle_columns = bundle_columns()
        self._waiting: dict[int, tuple[Int64Array, FloatArray, int]] = {}
        self.topics = topic_columns()
        self.spaces: list[str] = []
        self.space_number: dict[str, int] = {}
        self.programs: dict[str, None] = {}
        self.samples = Samples(options.sample_ms)
        self.counters = CounterRates(options.report_ms)
        self.assumed: list[str] = []
        self._known: dict[tuple[str, ...], Int64Array] = {}
        self.unplaced_topics: set[str] = set()
        self.changed = False

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is only kept to be found sooner."""
        return {**vars(self), "_known": {}}

    # --- what comes in

    @property
    def bundles(self) -> Columns:
        """What is known of each bundle; complete reports wait until somebody asks, and are taken all at once."""
        if waiting := self._waiting:
            self._waiting = {}
            sizes = [len(numbers) for numbers, _, _ in waiting.values()]
            numbers = np.concatenate([numbers for numbers, _, _ in waiting.values()])
            times = np.repeat([time_ms for _, _, time_ms in waiting.values()], sizes)
            brokers = np.array(list(waiting))
            speaks = np.zeros(len(self.brokers) + 1, dtype=bool)
            speaks[brokers] = True
            owner = self._bundle_columns["owner"]
            owner[speaks[owner]] = -1
            self._own(np.repeat(brokers, sizes), numbers, times)
            self._stats(numbers, np.concatenate([stats for _, stats, _ in waiting.values()]), times)
        return self._bundle_columns

    def apply(self, record: Record, *, counts: bool) -> None:
        """Take a record that is no snapshot; `counts` says whether its rows are of this day."""
        if record.kind is Kind.SAMPLES:
            self._samples(record, counts=counts)
            return
        self.changed = True
        if record.kind is Kind.REPORT:
            self._report(record)
        elif record.kind is Kind.TOP:
            self._top(record)
        elif record.kind is Kind.STATE:
            self._state(record)
        else:
            self._topics(record)

    def _broker(self, name: str) -> int:
        row = self.brokers.row(name)
        self.programs.pop(name, None)
        if row == len(self.broker_texts):
            self.broker_texts.append({})
            self.brokers.fit()
        return row

    def _seen(self, name: str, time_ms: int) -> int:
        row = self._broker(name)
        until = self.brokers["until_ms"]
        until[row] = max(int(until[row]), time_ms + self.options.report_ms)
        return row

    def _numbers(self, names: Sequence[str], time_ms: int) -> Int64Array:
        """Return the numbers of bundles, -1 for those that were split before."""
        numbers = self._numbered(names)
        return np.where(self.layout.claim(numbers, time_ms), numbers, -1)

    def _numbered(self, names: Sequence[str]) -> Int64Array:
        """Return the numbers of bundles; most brokers speak of the same ones again and again."""
        key = tuple(names)
        known = self._known.get(key)
        if known is None:
            numbers = list(map(self.layout.number.get, names))
            if None in numbers:
                numbers = [self.layout.add(name) for name in names]
            self._bundle_columns.fit(len(self.layout.place))
            known = np.array(numbers, dtype=np.int64)
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[key] = known
        return known

    def _own(self, broker: int | Int64Array, numbers: Int64Array, time_ms: int | Int64Array) -> None:
        self.bundles["owner"][numbers] = broker
        self.bundles["owner_ms"][numbers] = time_ms
        self.bundles["owner_until_ms"][numbers] = time_ms + self.options.report_ms

    def _stats(self, numbers: Int64Array, values: FloatArray, time_ms: int | Int64Array) -> None:
        self.bundles["stats"][numbers] = values
        self.bundles["stats_ms"][numbers] = time_ms
        self.bundles["stats_until_ms"][numbers] = time_ms + self.options.report_ms

    def _report(self, record: Record) -> None:
        broker = self._seen(record.broker, record.time_ms)
        values = np.asarray(record.values, dtype=np.float64)
        own = values[: len(BROKER_VALUES)].copy()
        skew = self.skew_ms.get(record.broker, 0)
        for at in _OF_ITS_CLOCK:
            own[at] = max(own[at] - skew, 0.0) if own[at] else 0.0
        self.brokers["values"][broker] = own
        self.brokers["reports"][broker] = True
        self.brokers["by_samples"][broker] = False
        text = _facts_of(record.text)
        self.broker_texts[broker] = text
        self.extensible |= "Extensible" in text["load_manager_class"]
        if text["complete"]:
            numbers, stats = self._numbered(record.names), values[len(BROKER_VALUES) :].reshape(-1, len(BUNDLE_VALUES))
            there = self.layout.claim(numbers, record.time_ms)
            self.brokers["complete"][broker] = True
            if broker in self._waiting:
                _ = self.bundles
            if np.count_nonzero(there) < len(there):
                numbers, stats = numbers[there], stats[there]
            self._waiting[broker] = (numbers, stats, record.time_ms)
        elif not np.isnan(own[_WEIGHTED_EMA]):
            self.extensible = True

    def _top(self, record: Record) -> None:
        self.extensible = True
        broker = self._seen(record.broker, record.time_ms)
        numbers = self._numbers(record.names, record.time_ms)
        there = numbers >= 0
        self.bundles["rank"][self.bundles["rank_by"] == broker] = -1
        self._own(broker, numbers[there], record.time_ms)
        stats = np.asarray(record.values, dtype=np.float64).reshape(-1, len(BUNDLE_VALUES))
        self._stats(numbers[there], stats[there], record.time_ms)
        self.bundles["rank"][numbers[there]] = np.flatnonzero(there)
        self.bundles["rank_by"][numbers[there]] = broker

    def _state(self, record: Record) -> None:
        self.extensible = True
        if record.text == "Deleted":
            return  # of a bundle that was split, whose children are reported
        number = int(self._numbers(record.names, record.time_ms)[0])
        if number < 0:
            return
        owner = self._seen(record.broker, record.time_ms) if record.broker else -1
        self.bundles["owner"][number] = owner
        self.bundles["owner_ms"][number] = record.time_ms
        self.bundles["owner_until_ms"][number] = np.iinfo(np.int64).max  # until it is said otherwise

    def _topic(self, name: str) -> int:
        known = len(self.topics)
        row = self.topics.row(name)
        if row == known:
            self.topics.fit()
            namespace = namespace_of_topic(name)
            space = self.space_number.setdefault(namespace, len(self.spaces))
            if space == len(self.spaces):
                self.spaces.append(namespace)
                self._assume(namespace)
            self.topics["space"][row] = space
            self.topics["hash"][row] = topic_hash(name)
            if self.topics["hash"][row] == FULL_HIGH:
                self.unplaced_topics.add(name)
        return row

    def _assume(self, namespace: str) -> None:
        """Give a namespace whose bundles are unknown as many as a new one has."""
        if not self.layout.knows(namespace):
            settings = self.base.settings if self.base is not None else Settings({})
            edges = equal_boundaries(settings.integer("defaultNumberOfNamespaceBundles"))
            for low, high in pairwise(edges):
                self.layout.add(bundle_name(namespace, low, high))
            self.bundles.fit(len(self.layout.place))
            self.assumed.append(namespace)

    def _topics(self, record: Record) -> None:
        broker = self._seen(record.broker, record.time_ms)
        bundles = self._numbers(json.loads(record.text), record.time_ms)
        complete = not self.extensible and not bool(self.brokers["complete"][broker])
        if complete:
            self.bundles["owner"][self.bundles["owner"] == broker] = -1
        self._own(broker, bundles[bundles >= 0], record.time_ms)
        rows = np.array([self._topic(name) for name in record.names], dtype=np.int64)
        values = np.asarray(record.values, dtype=np.float64).reshape(-1, len(TOPIC_VALUES))
        gone = (self.topics["owner"] == broker) & ~self.topics["by_samples"]
        self.topics["until_ms"][gone] = NEVER
        if not len(rows):
            return
        before = self.topics["owner"][rows]
        count = len(self.topics) * len(COUNTERS)
        self.counters.grow(count)
        counter = (rows[:, None] * len(COUNTERS) + np.arange(len(COUNTERS))).reshape(-1)
        moved = np.repeat((before != broker) & (before >= 0), len(COUNTERS))
        times = np.full(len(counter), record.time_ms)
        self.counters.feed(counter, times, values[:, len(TOPIC_GAUGES) :].reshape(-1), moved)
        self.topics["gauges"][rows] = values[:, : len(TOPIC_GAUGES)]
        self._serve(rows, broker, record.time_ms, self.options.report_ms, by_samples=False)

    def _serve(
        self,
        rows: Int64Array,
        broker: "int | Int64Array",
        time_ms: "int | Int64Array",
        valid_ms: int,
        *,
        by_samples: bool,
    ) -> None:
        self.topics["owner"][rows] = broker
        self.topics["owner_ms"][rows] = time_ms
        self.topics["until_ms"][rows] = time_ms + valid_ms
        self.topics["by_samples"][rows] = by_samples

    def is_placed(self, record: Record) -> bool:
        """Return whether there is a place for samples: a single broker, and a bundle where they are of a topic."""
        is_of_bundle = not record.names or record.names[0] not in self.unplaced_topics
        return is_of_bundle and bool(self._named(record))

    def _named(self, record: Record) -> str:
        """Return the broker of a record of samples; empty where it is none, or one of several."""
        name = self.gateways.name_of(record.broker, record.text)
        return self.hosts.broker_of(name) if name else ""

    def _samples(self, record: Record, *, counts: bool) -> None:
        named = self._named(record)
        if not named:
            return
        if named != record.broker:
            record = replace(record, broker=named)
        is_known = named in self.brokers.number and named not in self.programs
        broker = self._broker(named)
        if not is_known and record.metric in JAVA_METRICS:
            self.programs[named] = None
        name = -1
        if record.metric in BUNDLE_METRICS:
            name = self.layout.add(record.names[0])
            self.bundles.fit(len(self.layout.place))
        elif record.names:
            name = self._topic(record.names[0])
        self.samples.add(record, broker, name, counts=counts)

    def apply_snapshot(self, snapshot: Snapshot, *, layout_only: bool = False) -> None:
        """Take a snapshot as reports of its moment; with `layout_only`, its bundles, settings and policies alone."""
        self.base = Snapshot(
            snapshot.info, snapshot.settings, make_brokers([]), (), make_bundles([]), make_topics(), snapshot.policies
        )
        self.extensible = snapshot.info.load_manager is LoadManager.EXTENSIBLE
        at = snapshot.info.captured_at_ms
        numbers = np.array([self.layout.add(name) for name in snapshot.bundle_names], dtype=np.int64)
        self.bundles.fit(len(self.layout.place))
        self.layout.replace(numbers.tolist(), at)
        if layout_only:
            return
        self.changed = False  # its averages have this moment in them
        rows = np.array([self._broker(name) for name in snapshot.brokers.name], dtype=np.int64)
        columns = [np.asarray(getattr(snapshot.brokers, name), dtype=np.float64) for name in BROKER_VALUES]
        self.brokers["values"][rows] = np.stack(columns, axis=1)
        self.brokers["until_ms"][rows] = np.where(snapshot.brokers.registered, at + self.options.report_ms, NEVER)
        texts = {name: np.asarray(getattr(snapshot.brokers, name)).tolist() for name in _TEXTS}
        for row, broker in enumerate(rows.tolist()):
            self.broker_texts[broker] = {name: column[row] for name, column in texts.items()}
        owner, table = snapshot.bundles.owner, snapshot.bundles
        self.bundles["owner"][numbers] = np.where(owner >= 0, rows[owner], -1)
        self.bundles["owner_ms"][numbers] = at
        self.bundles["owner_until_ms"][numbers] = at + self.options.report_ms
        self.bundles["stats"][numbers] = np.stack([getattr(table, name) for name in BUNDLE_VALUES], axis=1)
        self.bundles["stats_ms"][numbers] = at
        self.bundles["stats_until_ms"][numbers] = np.where(table.has_stats, at + self.options.report_ms, NEVER)
        self.bundles["rank"][numbers] = table.top_rank
        self.bundles["rank_by"][numbers] = self.bundles["owner"][numbers]
        for name in ("has_data", "data_topics", *AVERAGES):
            self.bundles[name][numbers] = getattr(table, name)
        if len(snapshot.topics):
            self._topics_of_snapshot(snapshot, rows, at)

    def _topics_of_snapshot(self, snapshot: Snapshot, brokers: Int64Array, at: int) -> None:
        table = snapshot.topics
        rows = np.array([self._topic(name) for name in table.name.to_pylist()], dtype=np.int64)
        owner = np.append(np.where(snapshot.bundles.owner >= 0, brokers[snapshot.bundles.owner], -1), -1)[table.bundle]
        self.topics["gauges"][rows] = np.stack([getattr(table, name) for name in TOPIC_GAUGES], axis=1)
        served = table.has_stats & (owner >= 0)
        self._serve(rows[served], owner[served], at, self.options.report_ms, by_samples=False)

    # --- what goes out

    def present(self, time_ms: int) -> BoolArray:
        """Return which brokers have a valid report. Shape (brokers,)."""
        there: BoolArray = self.brokers["until_ms"][: len(self.brokers)] >= time_ms
        return there

    def advance(self, time_ms: int) -> None:
        """Take what Prometheus sampled up to a moment."""
        if not len(self.samples):
            return
        self.changed |= self.samples.advance(time_ms)
        for series in self.samples.at(time_ms):
            if not len(series.value):
                continue
            until = self.brokers["until_ms"]
            np.maximum.at(until, series.broker, series.time_ms + self.options.sample_ms)
            self.brokers["spoke_ms"][series.broker] = time_ms
            # No series says what a broker carries: its rates are sums again, not those of an earlier snapshot.
            silent = series.broker[~self.brokers["reports"][series.broker]]
            self.brokers["values"][silent, _MSG_RATE_IN] = np.nan
            if series.group == "broker":
                self._broker_samples(series)
            elif series.group == "bundle":
                self._bundle_samples(series.where(~self.brokers["complete"][series.broker]))
            else:
                self._topic_samples(series, counted=series.group == "counter")
                self._list(series, time_ms)

    def _broker_samples(self, series: Series) -> None:
        series = series.where(~self.brokers["reports"][series.broker])
        values = self.brokers["values"]
        self.brokers["by_samples"][series.broker] = True
        if series.column.endswith("_limit_mib"):
            shown = series.value / MIB
        elif series.column == "started_at_ms":
            shown = np.round(series.value * 1_000)
        else:
            shown = series.value
        values[series.broker, BROKER_VALUES.index(series.column)] = shown

    def _bundle_samples(self, series: Series) -> None:
        newer = series.time_ms >= self.bundles["owner_ms"][series.name]
        order = np.flatnonzero(newer)[np.argsort(series.time_ms[newer], kind="stable")]
        rows, at = series.name[order], series.time_ms[order]
        there = self.layout.claim(rows, at)
        rows, at, order = rows[there], at[there], order[there]
        self.bundles["owner"][rows] = series.broker[order]
        self.bundles["owner_ms"][rows] = at
        self.bundles["owner_until_ms"][rows] = at + self.options.sample_ms
        self.bundles["stats"][rows, BUNDLE_VALUES.index(series.column)] = series.value[order]
        self.bundles["stats_ms"][rows] = at
        self.bundles["stats_until_ms"][rows] = at + self.options.sample_ms

    def _topic_samples(self, series: Series, *, counted: bool) -> None:
        """Take what the broker that serves a topic says of it; counters of subscriptions are added up."""
        order = np.argsort(series.time_ms, kind="stable")
        rows, brokers, at = series.name[order], series.broker[order], series.time_ms[order]
        newer = at >= self.topics["owner_ms"][rows]
        self._serve(rows[newer], brokers[newer], at[newer], self.options.sample_ms, by_samples=True)
        mine = self.topics["owner"][rows] == brokers
        rows, values = rows[mine], series.value[order][mine]
        column = TOPIC_GAUGES.index(series.column)
        gauges = self.topics["gauges"]
        if counted:
            gauges[rows, column] = 0.0
            np.add.at(gauges, (rows, column), values)
        else:
            gauges[rows, column] = values

    def _list(self, series: Series, time_ms: int) -> None:
        """Note which topics a broker serves now: those of its last samples; others may be gone."""
        newest = np.full(len(self.brokers), NEVER, dtype=np.int64)
        np.maximum.at(newest, series.broker, series.time_ms)
        here = (self.topics["owner"][series.name] == series.broker) & (series.time_ms == newest[series.broker])
        self.topics["listed_ms"][series.name[here]] = time_ms
