"""Current values and averages of the bundles of a raw capture."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from planner.cluster.internal_namespaces import is_heartbeat_or_sla_namespace
from planner.cluster.load_manager import LoadManager
from planner.cluster.pulsar_json import (
    BROKER_COUNTS,
    BUNDLE_METRICS,
    BUNDLE_STATS,
    RATES,
    TERMS,
    bundle_numbers,
    last_stats,
    number,
    top_bundles,
    whole,
)
from planner.cluster.releases import Release
from planner.formats.raw_capture.answers import Answers
from planner.formats.raw_capture.identity import CapturedBrokers
from planner.formats.raw_capture.metadata_store import DUMP, MetadataStore
from planner.formats.raw_capture.metrics import read_metrics
from planner.formats.raw_capture.reports import Report
from planner.formats.raw_capture.system_topics import SystemTopics
from planner.formats.raw_capture.topics import ServedTopic

_AVERAGES = "/loadbalance/bundle-data"

Stats = Mapping[str, float]
"""Current values of a bundle by column; counts are whole."""


def current_stats(
    answers: Answers,
    topics: SystemTopics,
    brokers: CapturedBrokers,
    reports: Mapping[str, Report],
    topic_stats: Mapping[str, ServedTopic],
    owners: Mapping[str, str],
    decides: Release,
) -> dict[str, Stats]:
    """Return the current values of each bundle that anybody reports, from the best source of each.

    In that order: the last report of its owner, or of another broker that it left meanwhile; the owner's top bundles
    with the extensible load manager; the bundle metrics; sums over its topics; the top bundles of a broker that it
    left, which may be minutes old.

    Raises:
        FormatError: A value is no number.
    """
    found = _reported(reports, owners)
    tops = [
        (broker, name, bundle_numbers(stats, f"system-topics, {broker}: {name}: "))
        for broker, report in topics.top_bundles.items()
        for name, stats in top_bundles(report)
    ]
    for broker, name, numbers in tops:
        if owners.get(name) == broker:
            found.setdefault(name, numbers)
    served = (name for name in owners if not is_heartbeat_or_sla_namespace(name.rpartition("/")[0], decides))
    if any(name not in found for name in served):
        for tag in brokers.aliases.values():
            for name, stats in _of_metrics(answers, tag).items():
                found.setdefault(name, bundle_numbers(stats, f"metrics.{tag}: {name}: "))
    for name, stats in _sums(topic_stats.values()).items():
        found.setdefault(name, stats)
    for _, name, numbers in tops:
        found.setdefault(name, numbers)
    return found


def _reported(reports: Mapping[str, Report], owners: Mapping[str, str]) -> dict[str, Stats]:
    """Return what the last reports say, that of the owner before any other."""
    found: dict[str, Stats] = {}
    for mine in (True, False):
        for broker, report in reports.items():
            for name, stats in last_stats(report).items():
                if name not in found and (owners.get(name) == broker) is mine:
                    found[name] = bundle_numbers(stats, f"{report['source']}: lastStats {name}: ")
    return found


def _of_metrics(answers: Answers, tag: str) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for name, labels, value in read_metrics(answers, tag):
        key, bundle = BUNDLE_METRICS.get(name), labels.get("bundle")
        if key and bundle:
            found.setdefault(bundle, {}).setdefault(key, value if key in RATES else int(value))
    return found


def _sums(served: Iterable[ServedTopic]) -> dict[str, dict[str, float]]:
    sums: dict[str, dict[str, float]] = {}
    for topic in served:
        total = sums.setdefault(topic.bundle, dict.fromkeys(BUNDLE_STATS.values(), 0))
        for column, value in zip(RATES.values(), topic.stats.rates, strict=True):
            total[column] += value
        total["topics"] += 1
        total["producers"] += topic.stats.producers
        total["consumers"] += topic.stats.consumers
    return sums


def broker_sums(owners: Mapping[str, str], stats: Mapping[str, Stats]) -> dict[str, dict[str, float]]:
    """Return sums over the bundles of each broker, under the names of `LocalBrokerData`."""
    keys = dict(RATES) | {BROKER_COUNTS[column][0]: column for column in ("topics", "producers", "consumers")}
    sums: dict[str, dict[str, float]] = {}
    for name, broker in owners.items():
        total = sums.setdefault(broker, dict.fromkeys(keys, 0))
        for key, column in keys.items():
            total[key] += stats.get(name, {}).get(column, 0)
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
    stored = [store.node(f"{_AVERAGES}/{name}") for name in names]
    current = [stats.get(name, {}) for name in names]
    estimated = [bool(now) and not data for now, data in zip(current, stored, strict=True)]
    if any(estimated):
        if manager is LoadManager.EXTENSIBLE:
            reason = "The extensible load manager keeps no averages"
        elif any(stored):
            reason = "The metadata store does not have averages of some bundles yet"
        else:
            reason = "Averages exist only in the metadata store, which was not captured"
        answers.warn(f"{reason}; those of {sum(estimated)} bundles are estimated from current values.")
    columns: dict[str, Sequence[Any]] = {
        "has_stats": [bool(now) and name in owners for now, name in zip(current, names, strict=True)],
        "has_data": [bool(now) for now in current],
        "averages_estimated": estimated,
        "data_topics": [
            whole(data.get("topics"), _where(name)) if data else now.get("topics", 0)
            for name, now, data in zip(names, current, stored, strict=True)
        ],
    }
    for column in BUNDLE_STATS.values():
        columns[column] = [now.get(column, 0) for now in current]
    for key, prefix in TERMS.items():
        terms = [t if isinstance(t := data.get(key), dict) else None for data in stored]
        for field, column in RATES.items():
            columns[prefix + column] = [
                now.get(column, 0.0) if term is None else number(term.get(field), f"{_where(name)}: {key}.{field}")
                for name, term, now in zip(names, terms, current, strict=True)
            ]
        columns[f"{prefix}samples"] = [
            int(bool(now))
            if term is None
            else whole(term.get("numSamples", int(bool(term))), f"{_where(name)}: {key}.numSamples")
            for name, term, now in zip(names, terms, current, strict=True)
        ]
    return columns


def _where(name: str) -> str:
    return f"{DUMP}, {_AVERAGES}/{name}"


def top_ranks(topics: SystemTopics, names: Sequence[str], owners: Mapping[str, str]) -> list[int] | None:
    """Return the place of each bundle in its owner's report of top bundles, -1 absent; None when none was captured."""
    if not topics.top_bundles:
        return None
    place = {
        (broker, name): rank
        for broker, report in topics.top_bundles.items()
        for rank, (name, _) in enumerate(top_bundles(report))
    }
    return [place.get((owners.get(name, ""), name), -1) for name in names]


def averages_written_ms(store: MetadataStore) -> int:
    """Return when the leader wrote averages of bundles last, ms since 1970; 0 unknown."""
    return max((at for path, at in store.changed_ms.items() if path.startswith(f"{_AVERAGES}/")), default=0)
