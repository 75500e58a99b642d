"""Says what a Prometheus has of a cluster, and how precise a history or snapshot of it will be."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Final

import msgspec

from planner.capture.prometheus import Series, Source, Wanted
from planner.capture.prometheus_client import PrometheusClient, TooMuchError
from planner.capture.prometheus_options import PrometheusOptions
from planner.capture.prometheus_queries import brokers_query, names_query
from planner.cluster.moments import iso_moment
from planner.cluster.pulsar_json import USAGE_METRICS
from planner.cluster.text import count
from planner.cluster.units import MS_PER_MIN, MS_PER_S
from planner.history.assumed import listed
from planner.history.labels import broker_of, has_port, normalised, pod_of
from planner.history.prometheus import BUNDLE_METRICS, COUNTER_METRICS, TOPIC_METRICS

_LOOK_BACK_MS: Final = 15 * MS_PER_MIN
_BYTES_PER_SAMPLE: Final = 25


@dataclass(frozen=True, slots=True)
class Survey:
    """What is there at a moment.

    Attributes:
        at_ms: The moment, ms since 1970.
        series: Number of series by Pulsar's name of the metric.
        brokers: Web addresses of the brokers, as the planner will name them.
        clusters: Values of the label `cluster`.
        scrape_s: Seconds between two samples; None where there are too few.
        notes: What was assumed about brokers.
    """

    at_ms: int
    series: Mapping[str, int]
    brokers: tuple[str, ...]
    clusters: tuple[str, ...]
    scrape_s: float | None
    notes: tuple[str, ...]

    def has(self, metrics: Mapping[str, str]) -> int:
        """Return the most series that one of some metrics has."""
        return max((self.series.get(name, 0) for name in metrics), default=0)

    def lines(self, wanted: Wanted | None = None) -> Iterator[str]:
        """Yield what is there, how precise the result will be, and what is missing."""
        if not self.series:
            yield f"No series of Pulsar at {iso_moment(self.at_ms)}. Check the address, --matchers and the time."
            yield from self.notes
            return
        names = listed(dict.fromkeys(self.brokers))
        yield f"At {iso_moment(self.at_ms)}: {count(len(self.brokers), 'broker')}: {names}."
        if len(self.clusters) > 1:
            yield f"Several clusters: {listed(dict.fromkeys(self.clusters))}. Choose one with --matchers."
        yield from self._kinds()
        yield from self._precision(wanted)
        yield from self.notes
        if wanted is not None:
            points = (wanted.end_ms - wanted.start_ms) // wanted.step_ms
            megabytes = points * sum(self.series.values()) * _BYTES_PER_SAMPLE / 1e6
            yield f"To fetch: about {points:,} samples of each series, {megabytes:,.0f} MB."

    def _kinds(self) -> Iterator[str]:
        usage = [resource for resource, metric in USAGE_METRICS.items() if metric in self.series]
        lacking = [resource for resource in USAGE_METRICS if resource not in usage]
        yield f"Usage of brokers: {', '.join(usage) or 'none'}."
        if lacking:
            yield f"Missing: usage of {', '.join(lacking)}. 0 is shown there, so load-based strategies see less load."
        for metric, what in (("jvm_memory_bytes_max", "heap"), ("jvm_memory_direct_bytes_max", "direct memory")):
            if metric not in self.series:
                yield f"Missing: {metric}, the size of the {what}."
        bundles, topics = self.has(BUNDLE_METRICS), self.has(TOPIC_METRICS)
        counters = self.has(COUNTER_METRICS)
        if bundles:
            yield f"Bundles: {count(bundles, 'bundle')} with series of their own: traffic and owner as reported."
        else:
            yield (
                "Missing: pulsar_bundle_*. The traffic of a bundle is the sum of its topics. For exact values set"
                " exposeBundlesMetricsInPrometheus=true (modular load manager)."
            )
        if topics or counters:
            yield f"Topics: up to {max(topics, counters):,} series of a metric."
        else:
            yield "Missing: series of topics. Splits cannot be predicted. Set exposeTopicLevelMetricsInPrometheus=true."
        if topics and not self.series.get("pulsar_rate_in") and counters:
            yield "Rates of topics follow from counters."
        if not bundles and not topics and not counters:
            yield "With neither, a history has only the load of the brokers."

    def _precision(self, wanted: Wanted | None) -> Iterator[str]:
        if self.scrape_s is None:
            yield "The scrape interval is unknown: there are fewer than two samples in 15 min."
            return
        yield f"Scrape interval: {self.scrape_s:.3g} s. A change appears up to that much later."
        step_s = wanted.step_ms / MS_PER_S if wanted is not None else math.inf
        if step_s < self.scrape_s:
            yield f"--step-s {step_s:g} repeats samples; {math.ceil(self.scrape_s)} is enough."
        if self.scrape_s > MS_PER_MIN / MS_PER_S:
            yield "That is longer than a minute, at which Pulsar's load balancer decides."


def survey(options: PrometheusOptions, at_ms: int) -> Survey:
    """Ask a Prometheus what it has at a moment; no samples over a longer time are asked for.

    Raises:
        CaptureError: There is no answer.
    """
    with PrometheusClient(options) as client:
        source = Source(client, options)
        series: dict[str, int] = {}
        for one in source.of_moment(names_query(options.matchers), at_ms):
            name = str(normalised(one.metric).get("__name__", ""))
            series[name] = series.get(name, 0) + int(float(msgspec.json.decode(one.value)[1]))
        found = source.of_moment(brokers_query(options.matchers), at_ms)
        clusters = sorted({one.metric["cluster"] for one in found if one.metric.get("cluster")})
        brokers = _brokers(source.labels(one.metric, at_ms) for one in found)
        scrape_s = _scrape_s(source, found, at_ms)
        if not series:
            source.note_averages(names_query(options.matchers), at_ms)
        source.note_stores()
        return Survey(at_ms, series, brokers, tuple(clusters), scrape_s, (*source.notes, *source.said))


def _brokers(series: Iterable[Mapping[str, str]]) -> tuple[str, ...]:
    """Return the brokers of series by name; several pods at one address are brokers of their own."""
    pods: dict[str, set[str]] = {}
    for labels in series:
        pods.setdefault(broker_of(labels)[0], set()).update(filter(None, pod_of(labels)[:1]))
    apart = {pod for found in pods.values() if len(found) > 1 for pod in found}
    named = apart | {broker for broker, found in pods.items() if len(found) <= 1}
    return tuple(sorted({name for name in named if has_port(name) or name in apart} or set(filter(None, named))))


def _scrape_s(source: Source, series: list[Series], at_ms: int) -> float | None:
    """Return the time between two samples of a series, in seconds."""
    if not series:
        return None
    labels = series[0].metric
    matchers = ",".join(f"{name}={msgspec.json.encode(value).decode()}" for name, value in labels.items())
    if any(not name.replace("_", "a").isalnum() for name in labels):
        return None
    try:
        found = source.of_moment(f"{{{matchers}}}[{_LOOK_BACK_MS // MS_PER_S}s]", at_ms)
    except TooMuchError:
        return None
    times = [float(at) for one in found[:1] for at, _ in msgspec.json.decode(one.values)]
    apart = [after - before for before, after in pairwise(times)]
    return median(apart) if apart else None
