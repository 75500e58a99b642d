"""Collects samples of metrics by broker: what the broker says of itself, of its bundles and of its topics."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from planner.cluster.pulsar_json import BUNDLE_METRICS, MOST, RATES, USAGE_METRICS
from planner.cluster.text import count, moment
from planner.cluster.units import MS_PER_MIN
from planner.doors.pieces import Metrics, NotUsed, Piece, Source
from planner.doors.words import BROKER, BUNDLE
from planner.history.assumed import listed
from planner.history.labels import (
    HOST_LABEL,
    REPLICA_LABELS,
    WEB_PORT,
    broker_of,
    has_port,
    own_host,
    pod_of,
    topic_of,
)
from planner.history.prometheus import COUNTER_METRICS, JAVA_METRICS, TOPIC_METRICS

VALID_MS: Final = 5 * MS_PER_MIN
"""How long a sample counts, as in Prometheus."""

_OF_BROKERS: Final = (
    *USAGE_METRICS.values(),
    "pulsar_lb_resource_usage",
    "pulsar_lb_resource_usage_stats",
    "pulsar_lb_unload_bundle_total",
    "pulsar_lb_unload_broker_breakdown_total",
    "jvm_memory_bytes_max",
    "jvm_memory_direct_bytes_max",
)
_ONLY: Final = {"jvm_memory_bytes_max": ("area", "heap")}
_KEPT_LABELS: Final = ("area", "feature", "reason", "result", "stat")
_OF_SERIES: Final = frozenset(
    [
        *(*_KEPT_LABELS, "__name__", "metric", "cluster", "namespace", "topic", "partition", "bundle", "subscription"),
        *("consumer_id", "consumer_name", HOST_LABEL, *REPLICA_LABELS),
    ]
)
"""Labels that Pulsar writes itself, and those of copies; all others say where a series was collected."""

TOTALS: Final[Mapping[str, str]] = {
    **{name.replace("pulsar_", "pulsar_broker_"): column for name, column in TOPIC_METRICS.items()},
    "pulsar_broker_topics_count": "topics",
}
"""Sums over the topics of a broker, with which they are compared."""

USED: Final = frozenset([*_OF_BROKERS, *BUNDLE_METRICS, *TOPIC_METRICS, *TOTALS])
"""Metrics of which a value at one moment is used."""

COUNTERS: Final = frozenset(COUNTER_METRICS)
"""Counters, of which two values give a rate."""


_Key: TypeAlias = tuple[str, str, str, tuple[tuple[str, str], ...]]
"""Cluster, broker, pod, and the labels that say where it was collected."""


@dataclass
class _Broker:
    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    host: str = ""
    cluster: str = ""
    at_ms: int = 0
    plain: dict[tuple[str, tuple[tuple[str, str], ...]], float] = field(default_factory=dict)
    bundles: dict[str, dict[str, float]] = field(default_factory=dict)
    topics: dict[str, dict[str, float]] = field(default_factory=dict)
    totals: dict[str, float] = field(default_factory=dict)

    def add(self, other: "_Broker") -> None:
        """Take what another has of the same broker."""
        self.host, self.cluster = self.host or other.host, self.cluster or other.cluster
        self.at_ms = max(self.at_ms, other.at_ms)
        self.plain |= other.plain
        self.totals |= other.totals
        for mine, theirs in ((self.bundles, other.bundles), (self.topics, other.topics)):
            for name, values in theirs.items():
                mine.setdefault(name, {}).update(values)


@dataclass(frozen=True, slots=True)
class Place:
    """What samples with the same labels are about.

    Attributes:
        labels: The labels.
        broker: Where the samples of the broker are collected.
        topic: The topic; empty where they are of none.
        bundle: The bundle; empty where they are of none.
    """

    labels: Mapping[str, str]
    broker: _Broker
    topic: str
    bundle: str


class MetricsReader:
    """Collects samples.

    Args:
        source: Where they are from.
        broker: The broker of samples that do not name one; empty unknown.
    """

    def __init__(self, source: Source, broker: str = "") -> None:
        self._source = source
        self._broker = broker
        self._brokers: dict[_Key, _Broker] = {}
        self._wrong: dict[str, int] = {}
        self._again: dict[str, int] = {}
        self._odd_bundles = 0
        self._of_namespaces = 0
        self._counted: dict[tuple[int, str, str], tuple[_Broker, float]] = {}

    def place(self, labels: Mapping[str, str]) -> Place:
        """Return what samples with these labels are about; it can be kept for others with the same labels."""
        pod = pod_of(labels)[0] or _own_host(labels)
        broker = broker_of(labels)[0] or self._broker or _host_in(labels) or pod
        cluster = labels.get("cluster", "")
        there = tuple(sorted((label, text) for label, text in labels.items() if label not in _OF_SERIES))
        key = (cluster, broker, pod, there)
        found = self._brokers.get(key) or self._brokers.setdefault(key, _Broker(broker, dict(there), cluster=cluster))
        found.host = found.host or labels.get("broker", "")
        return Place(labels, found, topic_of(labels), labels.get("bundle", ""))

    def add(self, name: str, labels: Mapping[str, str], value: float, at_ms: int = 0) -> None:
        """Take a sample of a metric that is `USED`, or the rate of a counter of a topic."""
        self.take(name, self.place(labels), value, at_ms)

    def take(self, name: str, place: Place, value: float, at_ms: int = 0) -> None:
        """Take a sample as `add` does, about a place."""
        only = _ONLY.get(name)
        if only is not None and place.labels.get(only[0]) != only[1]:
            return
        if not 0 <= value <= MOST:  # NaN is not either
            self._wrong[name] = self._wrong.get(name, 0) + 1
            return
        found = place.broker
        found.at_ms = max(found.at_ms, at_ms)
        if (column := TOPIC_METRICS.get(name)) is not None:
            if place.topic:
                self._put(name, found.topics.setdefault(place.topic, {}), column, value)
            else:
                self._of_namespaces += 1
        elif name in BUNDLE_METRICS:
            if BUNDLE.fullmatch(place.bundle):
                key = BUNDLE_METRICS[name]
                number = value if key in RATES else int(value)
                self._put(name, found.bundles.setdefault(place.bundle, {}), key, number)
            else:
                self._odd_bundles += 1
        elif name in COUNTER_METRICS:
            self._count(place, COUNTER_METRICS[name], value)
        elif name in TOTALS:
            found.totals[TOTALS[name]] = value
        else:
            kept = tuple((label, place.labels[label]) for label in _KEPT_LABELS if label in place.labels)
            self._put(name, found.plain, (name, kept), value)

    def _put(self, name: str, row: dict[Any, float], key: object, value: float) -> None:
        """Take a value; one that is said otherwise already is counted."""
        if row.setdefault(key, value) != value:
            self._again[name] = self._again.get(name, 0) + 1
            row[key] = value

    def _count(self, place: Place, column: str, value: float) -> None:
        """Add the rate of a counter, of which each subscription has its own."""
        if not place.topic:
            self._of_namespaces += 1
            return
        place.broker.topics.setdefault(place.topic, {})
        key = (id(place.broker), place.topic, column)
        self._counted[key] = (place.broker, self._counted.get(key, (place.broker, 0.0))[1] + value)

    def pieces(self) -> Iterator[Piece]:
        """Yield the metrics of each broker, and what was left out."""
        for (_, topic, column), (one, rate) in self._counted.items():
            one.topics[topic].setdefault(column, rate)
        for (broker, pod), one in self._by_name():
            if not (one.plain or one.bundles or one.topics):
                continue
            yield Metrics(
                source=self._source,
                broker=broker,
                pod=pod,
                host=one.host,
                labels=one.labels,
                cluster=one.cluster,
                at_ms=one.at_ms,
                plain=[(name, dict(labels), value) for (name, labels), value in one.plain.items()],
                bundles=one.bundles,
                topics=one.topics,
                totals=one.totals,
            )
        yield from self._left_out()

    def _by_name(self) -> Iterator[tuple[tuple[str, str], _Broker]]:
        """Yield what was collected at each place of each cluster; series that name no cluster are of the only one."""
        clusters = {name for name, *_ in self._brokers if name}
        first = next((name for name, *_ in self._brokers if name), "")
        found: dict[_Key, _Broker] = {}
        for (cluster, broker, pod, there), one in self._brokers.items():
            key = (cluster if len(clusters) > 1 and cluster else first, broker, pod, there)
            if key in found:
                found[key].add(one)
            else:
                found[key] = one
        yield from (((broker, pod), one) for (_, broker, pod, _), one in found.items())

    def _left_out(self) -> Iterator[NotUsed]:
        if self._wrong:
            many = count(sum(self._wrong.values()), "value")
            yield NotUsed(
                source=self._source, why=f"{many} of {listed(self._wrong)} left out: not finite numbers of 0 or more"
            )
        if self._again:
            many = count(sum(self._again.values()), "value")
            why = f"{many} of {listed(self._again)} differ from another one of the same broker, bundle or topic"
            why += "; the last one counts. Their labels may tell tenants or servers apart"
            yield NotUsed(source=self._source, why=why)
        if self._odd_bundles:
            why = f"{count(self._odd_bundles, 'sample')} without a valid bundle"
            yield NotUsed(source=self._source, why=why)
        if self._of_namespaces and not any(one.topics for one in self._brokers.values()):
            why = "rates are of namespaces; set exposeTopicLevelMetricsInPrometheus=true for those of topics"
            yield NotUsed(source=self._source, why=why)


def _own_host(labels: Mapping[str, str]) -> str:
    """Return the host that a broker gives as its own where `instance` is an address; empty where it gives none."""
    return own_host(labels) if has_port(labels.get("instance", "")) else ""


def _host_in(labels: Mapping[str, str]) -> str:
    """Return the host that `instance` names without a port; empty where it names none."""
    instance = labels.get("instance", "")
    return instance if BROKER.fullmatch(f"{instance}:{WEB_PORT}") else ""


def is_of_any_program(metrics: Metrics) -> bool:
    """Say whether metrics are those of Java alone, which are no sign of a broker."""
    return not (metrics.bundles or metrics.topics or metrics.totals) and all(
        n in JAVA_METRICS for n, *_ in metrics.plain
    )


def lacking_of(metrics: Metrics) -> dict[str, int]:
    """Return how many topics and bundles of a broker lack a value that others have, by its name."""
    found: dict[str, int] = {}
    for what, wanted, rows in (
        ("topics", dict.fromkeys(TOPIC_METRICS.values()), metrics.topics),
        ("bundles", dict.fromkeys(BUNDLE_METRICS.values()), metrics.bundles),
    ):
        for name in wanted:
            if number := sum(name not in values for values in rows.values()):
                found[f"{name} of {what}"] = number
    return found


def of_another_time(
    source: Source, newest_ms: int, oldest_ms: int, *, is_range: bool, stale: int, is_recording: bool = True
) -> Iterator[NotUsed]:
    """Yield what a person must know of samples over time of which one moment is shown."""
    if is_range:
        why = f"it has samples from {moment(oldest_ms)} on; the last moment, {moment(newest_ms)}, is shown"
        why += ". `python -m planner history ingest` reads all of them" if is_recording else ""
        yield NotUsed(source=source, why=why, is_expected=True)
    if stale:
        why = f"{count(stale, 'series')} ended more than {VALID_MS // MS_PER_MIN} min before the last moment"
        yield NotUsed(source=source, why=why.replace("seriess", "series"))
