"""Current values and averages of the bundles of a raw capture."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from planner.cluster.internal_namespaces import is_heartbeat_or_sla_namespace
from planner.cluster.snapshot import LoadManager
from planner.formats.raw_capture.answers import Answers, number, whole
from planner.formats.raw_capture.identity import Cast
from planner.formats.raw_capture.metadata_store import DUMP, MetadataStore
from planner.formats.raw_capture.metrics import read_metrics
from planner.formats.raw_capture.reports import TRAFFIC, Report
from planner.formats.raw_capture.system_topics import SystemTopics
from planner.formats.raw_capture.topics import TopicStats

Stats = Mapping[str, float]
"""Current values of a bundle by their name in `NamespaceBundleStats`; counts are whole."""

_COUNTS = {
    "topics": "topics",
    "producerCount": "producers",
    "consumerCount": "consumers",
    "cacheSize": "cache_size_bytes",
}
_METRICS = {
    "pulsar_bundle_msg_rate_in": "msgRateIn",
    "pulsar_bundle_msg_rate_out": "msgRateOut",
    "pulsar_bundle_msg_throughput_in": "msgThroughputIn",
    "pulsar_bundle_msg_throughput_out": "msgThroughputOut",
    "pulsar_bundle_topics_count": "topics",
    "pulsar_bundle_producer_count": "producerCount",
    "pulsar_bundle_consumer_count": "consumerCount",
}
_TERMS = {"shortTermData": "short_term_", "longTermData": "long_term_"}


def current_stats(
    answers: Answers,
    topics: SystemTopics,
    cast: Cast,
    reports: Mapping[str, Report],
    topic_stats: Mapping[str, TopicStats],
    owners: Mapping[str, str],
) -> dict[str, Stats]:
    """Return the current values of each bundle that anybody reports, from the best source of each.

    In that order: the last report of its owner, or of another broker that it left meanwhile; the top bundles of the
    extensible load manager; the bundle metrics; sums over its topics.

    Raises:
        FormatError: A value is no number.
    """
    found = _reported(reports, owners)
    for broker, report in topics.top_bundles.items():
        for name, stats in _top(report):
            found.setdefault(name, _checked(stats, f"system-topics, {broker}: {name}"))
    served = (name for name in owners if not is_heartbeat_or_sla_namespace(name.rpartition("/")[0]))
    if any(name not in found for name in served):
        for tag in cast.tags.values():
            for name, stats in _of_metrics(answers, tag).items():
                found.setdefault(name, _checked(stats, f"metrics.{tag}: {name}"))
    for name, stats in _sums(topic_stats.values()).items():
        found.setdefault(name, stats)
    return found


def _reported(reports: Mapping[str, Report], owners: Mapping[str, str]) -> dict[str, Stats]:
    """Return what the last reports say, that of the owner before any other."""
    found: dict[str, Stats] = {}
    for mine in (True, False):
        for broker, report in reports.items():
            for name, stats in _last_stats(report).items():
                if name not in found and (owners.get(name) == broker) is mine:
                    found[name] = _checked(stats, f"{report['source']}: lastStats {name}")
    return found


def _last_stats(report: Report) -> Mapping[str, Mapping[str, Any]]:
    stats = report.get("lastStats")
    return {k: v for k, v in stats.items() if isinstance(v, dict)} if isinstance(stats, dict) else {}


def _top(report: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    rows = report.get("topBundlesLoadData")
    return [
        (row["bundleName"], row["stats"])
        for row in (rows if isinstance(rows, list) else ())
        if isinstance(row, dict) and isinstance(row.get("bundleName"), str) and isinstance(row.get("stats"), dict)
    ]


def _checked(stats: Mapping[str, Any], where: str) -> Stats:
    rates: dict[str, float] = {key: number(stats.get(key), f"{where}: {key}") for key in TRAFFIC}
    return rates | {key: whole(stats.get(key), f"{where}: {key}") for key in _COUNTS}


def _of_metrics(answers: Answers, tag: str) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for name, labels, value in read_metrics(answers, tag):
        key, bundle = _METRICS.get(name), labels.get("bundle")
        if key and bundle:
            found.setdefault(bundle, {}).setdefault(key, value if key in TRAFFIC else int(value))
    return found


def _sums(topics: Iterable[TopicStats]) -> dict[str, dict[str, float]]:
    sums: dict[str, dict[str, float]] = {}
    for topic in topics:
        total = sums.setdefault(topic.bundle, dict.fromkeys([*TRAFFIC, *_COUNTS], 0))
        for key, value in topic.rates.items():
            total[key] += value
        total["topics"] += 1
        total["producerCount"] += topic.producers
        total["consumerCount"] += topic.consumers
    return sums


def broker_sums(owners: Mapping[str, str], stats: Mapping[str, Stats]) -> dict[str, dict[str, float]]:
    """Return sums over the bundles of each broker, under the names of `LocalBrokerData`."""
    names = {"numTopics": "topics", "numProducers": "producerCount", "numConsumers": "consumerCount"}
    sums: dict[str, dict[str, float]] = {}
    for name, broker in owners.items():
        total = sums.setdefault(broker, dict.fromkeys([*TRAFFIC, *names], 0))
        for key in total:
            total[key] += stats.get(name, {}).get(names.get(key, key), 0)
    return sums


def bundle_columns(
    answers: Answers,
    store: MetadataStore,
    names: Sequence[str],
    owners: Mapping[str, str],
    stats: Mapping[str, Stats],
    manager: LoadManager,
) -> dict[str, Sequence[Any]]:
    """Return the columns of current values and averages.

    The leader keeps averages of exactly the bundles that some broker reports. Those in the metadata store are read;
    where it has none, the current values stand in as averages of one sample.

    Raises:
        FormatError: A stored average is no number.
    """
    stored = [store.node(f"/loadbalance/bundle-data/{name}") for name in names]
    current = [stats.get(name, {}) for name in names]
    estimated = [bool(now) and not data for now, data in zip(current, stored, strict=True)]
    if any(estimated):
        if manager is LoadManager.EXTENSIBLE:
            reason = "The extensible load manager keeps no averages"
        elif any(stored):
            reason = "The metadata store holds no averages of some bundles yet"
        else:
            reason = "Averages were not captured, which only the metadata store has"
        answers.warn(f"{reason}; those of {sum(estimated)} bundles are estimated as the current values.")
    columns: dict[str, Sequence[Any]] = {
        "has_stats": [bool(now) and name in owners for now, name in zip(current, names, strict=True)],
        "has_data": [bool(now) for now in current],
        "averages_estimated": estimated,
        "data_topics": [
            whole(data.get("topics"), _where(name)) if data else now.get("topics", 0)
            for name, now, data in zip(names, current, stored, strict=True)
        ],
    }
    for key, column in {**TRAFFIC, **_COUNTS}.items():
        columns[column] = [now.get(key, 0) for now in current]
    for key, prefix in _TERMS.items():
        terms = [data.get(key) for data in stored]
        averages = [t if isinstance(t, dict) else now for t, now in zip(terms, current, strict=True)]
        for field, column in TRAFFIC.items():
            columns[prefix + column] = [
                number(a.get(field), f"{_where(name)}: {key}.{field}") for name, a in zip(names, averages, strict=True)
            ]
        columns[f"{prefix}samples"] = [
            whole(a.get("numSamples", int(bool(a))), f"{_where(name)}: {key}.numSamples")
            for name, a in zip(names, averages, strict=True)
        ]
    return columns


def _where(name: str) -> str:
    return f"{DUMP}, /loadbalance/bundle-data/{name}"


def top_ranks(topics: SystemTopics, names: Sequence[str], owners: Mapping[str, str]) -> list[int] | None:
    """Return the place of each bundle in its owner's report of top bundles, -1 absent; None when none was captured."""
    if not topics.top_bundles:
        return None
    place = {
        (broker, name): rank
        for broker, report in topics.top_bundles.items()
        for rank, (name, _) in enumerate(_top(report))
    }
    return [place.get((owners.get(name, ""), name), -1) for name in names]
