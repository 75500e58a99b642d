"""Makes a snapshot of what is known of a cluster at a moment."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from planner.cluster.arrays import BoolArray, FloatArray, Int64Array, IntArray, frozen
from planner.cluster.load_manager import LoadManager
from planner.cluster.pulsar_json import BROKER_COUNTS, EMAS
from planner.cluster.ranges import bundle_name
from planner.cluster.releases import REFERENCE, release
from planner.cluster.settings import Settings
from planner.cluster.snapshot import MAX_VERSION, Policies, Snapshot, SnapshotInfo
from planner.cluster.tables import BrokerTable, BundleTable, TopicTable, make_brokers, make_bundles, make_topics
from planner.history.assumed import cuts
from planner.history.columns import (
    AVERAGES,
    NEVER,
    RATES,
    TOPIC_GAUGES,
)
from planner.history.layout import Ranges
from planner.history.records import BROKER_VALUES, BUNDLE_VALUES, COUNTERS
from planner.history.state import ClusterState
from planner.pulsar.load.averages import refresh, with_broker_averages
from planner.pulsar.load.broker_report import with_report_totals
from planner.pulsar.manager.pairing import default_settings

_FOR_GOOD = np.iinfo(np.int64).max
"""Until when an owner counts that the channel named."""
_PERCENT = 100.0
_KNOWN_LIMITS = {"memory_usage_mib": "memory_limit_mib", "direct_memory_usage_mib": "direct_memory_limit_mib"}


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment at which a snapshot is due.

    Attributes:
        time_ms: When, ms since 1970.
        rows: Rows of the snapshot in all tables.
        snapshot: Makes it; to be called before the state goes on, or not at all.
    """

    time_ms: int
    rows: int
    snapshot: Callable[[], Snapshot]


class MomentMaker:
    """Makes the moments of one cluster, in the order of time.

    Attributes:
        state: What is known of the cluster; its averages go on with each moment.
    """

    def __init__(self, state: ClusterState) -> None:
        self.state = state
        self._placed: tuple[Ranges, int, Int64Array] | None = None
        self._last: Snapshot | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is only kept to be found sooner."""
        return {"state": self.state, "_placed": None, "_last": None}

    def moment(self, time_ms: int) -> Moment:
        """Return the cluster at a moment; `advance` to it first.

        Averages (`BundleData`) take one sample whenever something was reported since the last moment.
        """
        self.state.brokers.fit()
        present = self.state.present(time_ms)
        every = self.state.brokers.names
        names = sorted(name for name in every if name not in self.state.programs)
        order = np.array([self.state.brokers.number[name] for name in names], dtype=np.int64)
        place = np.full(len(every) + 1, -1, dtype=np.int64)
        place[order] = np.arange(len(names))
        place[-1] = -1
        topics, of_topics = self._topic_rows(time_ms, present)
        ranges = self.state.layout.ranges()
        bundles = self._bundles(time_ms, ranges, present, place, topics, of_topics)
        self.state.changed = False
        shown = partial(self._snapshot, time_ms, names, order, present, ranges, bundles, topics, of_topics)
        return Moment(time_ms, len(names) + len(bundles) + len(topics), shown)

    def _snapshot(
        self,
        time_ms: int,
        names: list[str],
        order: Int64Array,
        present: BoolArray,
        ranges: Ranges,
        bundles: BundleTable,
        topics: Int64Array,
        of_topics: Int64Array,
    ) -> Snapshot:
        base = self.state.base
        manager = LoadManager.EXTENSIBLE if self.state.extensible else LoadManager.MODULAR
        config, version = base.settings if base is not None else default_settings(manager), self._version()
        snapshot = Snapshot(
            info=SnapshotInfo(
                cluster=self.state.cluster,
                load_manager=manager,
                captured_at_ms=time_ms,
                pulsar_version=version,
                leader=base.info.leader if base is not None and base.info.leader in names else "",
                source="Ingested history",
                settings_from=base.info.settings_from if base is not None else "defaults",
                dynamic_settings=base.info.dynamic_settings if base is not None else None,
            ),
            settings=Settings(config.overrides, release(version)),
            brokers=self._brokers(names, order, present),
            namespaces=ranges.namespaces,
            bundles=bundles,
            topics=self._topic_table(topics, of_topics),
            policies=base.policies if base is not None else Policies(),
        )
        self._last = self._with_sums(snapshot.sharing(self._last), present[order])
        return self._last

    def _version(self) -> str:
        found = [text["version"] for text in self.state.broker_texts if text.get("version")]
        if found:
            most: str = max(sorted(set(found)), key=found.count)
            return most[:MAX_VERSION]
        return self.state.base.info.pulsar_version if self.state.base is not None else REFERENCE.name

    def _brokers(self, names: list[str], order: Int64Array, present: BoolArray) -> BrokerTable:
        values = self.state.brokers["values"][order].copy()
        by_samples = self.state.brokers["by_samples"][order]
        for resource in ("cpu", "memory", "direct_memory", "bandwidth_in", "bandwidth_out"):
            usage = next(i for i, n in enumerate(BROKER_VALUES) if n.startswith(f"{resource}_usage"))
            sampled = by_samples & np.isnan(values[:, usage + 1])
            values[sampled, usage + 1] = _PERCENT
            if BROKER_VALUES[usage] in _KNOWN_LIMITS:  # sampled as a percentage of it
                values[by_samples, usage] *= values[by_samples, usage + 1] / _PERCENT
        there = present[order]
        reported = ~np.isnan(values[:, BROKER_VALUES.index("cpu_usage_percent")])
        columns: dict[str, Any] = {}
        plain = np.nan_to_num(values).T.copy()
        for at, name in enumerate(BROKER_VALUES):
            column = values[:, at]
            if name in EMAS.values():
                columns[name] = column
            elif name in BROKER_COUNTS:
                unknown = -1 if name == "reported_bundles" else 0
                columns[name] = np.where(np.isnan(column), unknown, column).astype(np.int64)
            else:
                columns[name] = plain[at]
        texts = [self.state.broker_texts[i] for i in order.tolist()]
        columns["version"] = [text.get("version", "") for text in texts]
        columns["load_manager_class"] = [text.get("load_manager_class", "") for text in texts]
        for name in ("persistent_topics_enabled", "non_persistent_topics_enabled"):
            columns[name] = [text.get(name, True) for text in texts]
        return make_brokers(names, registered=there, has_load_data=there & reported, **columns)

    def _topic_rows(self, time_ms: int, present: BoolArray) -> tuple[Int64Array, Int64Array]:
        """Return the topics that are loaded, and the position of the bundle of each."""
        if not len(self.state.topics):
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        rates = self.state.counters.take()
        count = len(self.state.topics)
        owner = self.state.topics["owner"][:count]
        loaded = (self.state.topics["until_ms"][:count] >= time_ms) & (owner >= 0) & np.append(present, False)[owner]
        if len(rates):
            known = rates[: len(rates) // len(COUNTERS) * len(COUNTERS)].reshape(-1, len(COUNTERS))[:count]
            gauges = self.state.topics["gauges"]
            for at in range(len(COUNTERS)):
                rows = np.flatnonzero(~np.isnan(known[:, at]))
                gauges[rows, at] = known[rows, at]
        inside = self._places()
        holes = np.unique(inside[loaded & (inside >= 0)])
        holes = holes[self.state.layout.ranges().bundle[holes] < 0]
        if len(holes):  # no broker reported a bundle there, but it has topics
            ranges = self.state.layout.ranges()
            for hole in holes.tolist():
                namespace = ranges.namespaces[ranges.namespace[hole]]
                self.state.layout.add(bundle_name(namespace, int(ranges.low[hole]), int(ranges.high[hole])))
            self.state.bundles.fit(len(self.state.layout.place))
            inside = self._places()
        rows = np.flatnonzero(loaded & (inside >= 0))
        if self._cut(time_ms, rows, inside[rows]):
            inside = self._places()
        return rows, inside[rows]

    def _cut(self, time_ms: int, rows: Int64Array, inside: Int64Array) -> bool:
        """Cut bundles that nobody reports, and that several brokers serve topics of; say whether there were any."""
        ranges, topics = self.state.layout.ranges(), self.state.topics
        owner = topics["owner"][rows]
        now = ~topics["by_samples"][rows] | (topics["listed_ms"][rows] == self.state.brokers["spoke_ms"][owner])
        reported = self.state.bundles["owner_until_ms"][ranges.bundle] >= time_ms
        found: dict[int, list[int]] = {}
        for place, edge in cuts(inside[now], topics["hash"][rows[now]], owner[now], ~reported):
            found.setdefault(place, []).append(edge)
        for place, edges in found.items():
            self.state.layout.cut(int(ranges.bundle[place]), edges)
            self.state.cut[ranges.namespaces[ranges.namespace[place]]] = None
        self.state.bundles.fit(len(self.state.layout.place))
        return bool(found)

    def _places(self) -> Int64Array:
        """Return the position of the bundle of each topic, as Pulsar hashes it."""
        ranges, count = self.state.layout.ranges(), len(self.state.topics)
        if self._placed is None or self._placed[0] is not ranges or self._placed[1] != count:
            position = {name: i for i, name in enumerate(ranges.namespaces)}
            spaces = np.array([position[name] for name in self.state.spaces], dtype=np.int64)
            inside = ranges.of_hashes(spaces[self.state.topics["space"][:count]], self.state.topics["hash"][:count])
            self._placed = (ranges, count, inside)
        return self._placed[2]

    def _bundles(
        self,
        time_ms: int,
        ranges: Ranges,
        present: BoolArray,
        place: Int64Array,
        topics: Int64Array,
        of_topics: Int64Array,
    ) -> BundleTable:
        size = len(ranges.low)
        held = self.state.bundles
        held.fit(len(self.state.layout.place))
        known = ranges.bundle >= 0
        at = np.where(known, ranges.bundle, 0)
        owner = np.where(known & (held["owner_until_ms"][at] >= time_ms), held["owner"][at], -1)
        owner[~np.append(present, False)[owner]] = -1
        stats = held["stats"][at]
        reported = known & (owner >= 0) & (held["stats_until_ms"][at] >= time_ms)
        if len(topics):
            serving = self.state.topics["owner"][topics]
            newest = np.argsort(self.state.topics["owner_ms"][topics], kind="stable")
            found = np.full(size, -1, dtype=np.int64)
            found[of_topics[newest]] = serving[newest]
            outdated = self._outdated(owner, at, topics, of_topics)
            moved = (found >= 0) & (outdated["owner_ms"] | (owner < 0))
            owner = np.where(moved, found, owner)
            sums = self._sums(topics, of_topics, size)
            summed = (~reported | outdated["stats_ms"]) & (sums[:, BUNDLE_VALUES.index("topics")] > 0)
            stats = np.where(summed[:, None], sums, stats)
            reported |= summed
        stats[~reported] = 0.0
        columns: dict[str, Any] = dict(zip(BUNDLE_VALUES, stats.T.copy(), strict=True))
        for name in ("topics", "producers", "consumers", "cache_size_bytes"):
            columns[name] = columns[name].astype(np.int64)
        ranked = known & (held["rank_by"][at] == owner) & (owner >= 0)
        averages: dict[str, Any] = {name: held[name][at] for name in ("has_data", "data_topics", *AVERAGES)}
        averages["has_data"] = averages["has_data"] & known
        table = make_bundles(
            ranges.low,
            high=ranges.high,
            namespace=ranges.namespace,
            owner=place[owner],
            has_stats=reported,
            averages_estimated=averages["has_data"] | reported,
            top_rank=np.where(ranked, held["rank"][at], -1),
            **averages,
            **columns,
        )
        if self.state.changed:
            table = replace(refresh(table), averages_estimated=frozen(reported.copy()))
            there = slice(None) if known.all() else known
            rows = ranges.bundle[there]
            for name in ("has_data", "data_topics", *AVERAGES):
                held[name][rows] = getattr(table, name)[there]
        return table

    def _sums(self, topics: Int64Array, of_topics: Int64Array, bundles: int) -> FloatArray:
        """Return the values of bundles as sums over their topics. Shape (bundles, BUNDLE_VALUES)."""
        sums = np.zeros((bundles, len(BUNDLE_VALUES)))
        gauges = np.nan_to_num(self.state.topics["gauges"][topics])
        for column, name in enumerate(TOPIC_GAUGES):
            sums[:, BUNDLE_VALUES.index(name)] = np.bincount(of_topics, gauges[:, column], minlength=bundles)
        sums[:, BUNDLE_VALUES.index("topics")] = np.bincount(of_topics, minlength=bundles)
        return sums

    def _outdated(
        self, owner: Int64Array, at: Int64Array, topics: Int64Array, of_topics: Int64Array
    ) -> dict[str, BoolArray]:
        """Return where a Prometheus sampled topics of a bundle after its owner or its values became known.

        Those of a broker whose reports name all its bundles, and owners that the channel named, stay. Shape (bundles,).
        """
        columns, held = self.state.topics, self.state.bundles
        sampled = columns["by_samples"][topics]
        newest_ms = np.full(len(at), NEVER, dtype=np.int64)
        np.maximum.at(newest_ms, of_topics[sampled], columns["owner_ms"][topics[sampled]])
        reports = (owner >= 0) & self.state.brokers["complete"][np.maximum(owner, 0)]
        from_channel = held["owner_until_ms"][at] == _FOR_GOOD
        return {
            "owner_ms": (newest_ms > held["owner_ms"][at]) & ~reports & ~from_channel,
            "stats_ms": (newest_ms > held["stats_ms"][at]) & ~reports,
        }

    def _topic_table(self, rows: Int64Array, inside: Int64Array) -> TopicTable:
        if not len(rows):
            return make_topics()
        gauges = np.nan_to_num(self.state.topics["gauges"][rows])
        names = pa.array(self.state.topics.names, type=pa.large_string()).take(pa.array(rows))
        columns: dict[str, Any] = {name: gauges[:, i] for i, name in enumerate(TOPIC_GAUGES)}
        for name in ("producers", "consumers"):
            columns[name] = columns[name].astype(np.int32)
        bundle: IntArray = inside.astype(np.int32)
        return make_topics(self.state.topics["hash"][rows].astype(np.uint32), name=names, bundle=bundle, **columns)

    def _with_sums(self, snapshot: Snapshot, present: BoolArray) -> Snapshot:
        """Fill in what no broker reported of itself: sums over its bundles, and over their averages."""
        brokers = snapshot.brokers
        order = [self.state.brokers.number[name] for name in brokers.name]
        silent = np.isnan(self.state.brokers["values"][order, BROKER_VALUES.index("msg_rate_in_per_s")]) & present
        if silent.any():
            sums = with_report_totals(snapshot)
            columns: dict[str, Any] = {
                name: frozen(np.where(silent, getattr(sums, name), getattr(brokers, name)))
                for name in (*RATES, "topics", "producers", "consumers")
            }
            snapshot = snapshot.with_columns(brokers=replace(brokers, **columns))
        if snapshot.info.load_manager is LoadManager.MODULAR:
            snapshot = snapshot.with_columns(brokers=with_broker_averages(snapshot))
        return snapshot
