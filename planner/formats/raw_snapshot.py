"""A snapshot from a raw capture: what the admin API, the metadata store and the metrics of a cluster answered.

A load report counts as the leader saw it: from the metadata store where it was captured, else from the broker's own
answer. What nobody said is estimated or left out, and a warning says so.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Literal
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa

from planner.formats.raw_answers import RawAnswers
from planner.formats.tables import bundle_of_topics
from planner.formats.validate import validate
from planner.model.errors import FormatError, PlannerError
from planner.model.hashing import topic_hashes
from planner.model.ranges import FULL_HIGH, bundle_name, format_range
from planner.model.settings import Settings
from planner.model.settings_catalog import SETTINGS_BY_NAME
from planner.model.snapshot import (
    DispatchRate,
    DispatchRatePolicy,
    IsolationPolicy,
    LoadManager,
    Policies,
    Snapshot,
    SnapshotInfo,
    TopicTable,
    make_brokers,
    make_bundles,
    make_topics,
)

__all__ = ["snapshot_of_capture"]

_RESOURCES = {
    "cpu": ("cpu_usage_percent", "cpu_limit_percent"),
    "memory": ("memory_usage_mib", "memory_limit_mib"),
    "directMemory": ("direct_memory_usage_mib", "direct_memory_limit_mib"),
    "bandwidthIn": ("bandwidth_in_usage_kbit_per_s", "bandwidth_in_limit_kbit_per_s"),
    "bandwidthOut": ("bandwidth_out_usage_kbit_per_s", "bandwidth_out_limit_kbit_per_s"),
}
_TRAFFIC = {
    "msgRateIn": "msg_rate_in_per_s",
    "msgRateOut": "msg_rate_out_per_s",
    "msgThroughputIn": "msg_throughput_in_bytes_per_s",
    "msgThroughputOut": "msg_throughput_out_bytes_per_s",
}
_COUNTS = {
    "topics": "topics",
    "producerCount": "producers",
    "consumerCount": "consumers",
    "cacheSize": "cache_size_bytes",
}
_RATE_KINDS: Mapping[str, Literal["dispatch", "subscription", "replicator"]] = {
    "topicDispatchRate": "dispatch",
    "subscriptionDispatchRate": "subscription",
    "replicatorDispatchRate": "replicator",
}
_METRIC = re.compile(r"(\w+)\{([^}]*)\} (\S+)")
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_STRATEGIES = {
    "loadBalancerLoadSheddingStrategy": (
        "org.apache.pulsar.broker.loadbalance.impl.OverloadShedder",
        "org.apache.pulsar.broker.loadbalance.impl.ThresholdShedder",
        "org.apache.pulsar.broker.loadbalance.impl.UniformLoadShedder",
        "org.apache.pulsar.broker.loadbalance.impl.AvgShedder",
        "org.apache.pulsar.broker.loadbalance.extensions.scheduler.TransferShedder",
    ),
    "loadBalancerLoadPlacementStrategy": (
        "org.apache.pulsar.broker.loadbalance.impl.LeastLongTermMessageRate",
        "org.apache.pulsar.broker.loadbalance.impl.LeastResourceUsageWithWeight",
        "org.apache.pulsar.broker.loadbalance.impl.RoundRobinBrokerSelector",
        "org.apache.pulsar.broker.loadbalance.impl.AvgShedder",
    ),
}


def _number(value: Any, default: float = 0.0) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else default


def _count(value: Any, default: int = 0) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 53 else default


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def snapshot_of_capture(files: Mapping[str, bytes]) -> Snapshot:
    """Build and validate the snapshot that a raw capture shows.

    Args:
        files: Content of the capture by path; `index.json` lists the requests.

    Raises:
        FormatError: The capture lacks what no snapshot can do without.
        SnapshotError: What it says is no cluster.
    """
    answers = RawAnswers(files)
    brokers = _broker_ids(answers)
    settings = _settings(answers)
    manager = _load_manager(answers, settings)
    reports = {broker: _report(answers, broker, manager) for broker in brokers}
    stats_by_topic = _topic_stats(answers)
    boundaries = _boundaries(answers)
    owners = _owners(answers, brokers, reports, boundaries)
    namespaces = tuple(boundaries)
    ranges = [(s, low, high) for s, ns in enumerate(namespaces) for low, high in _pairs(boundaries[ns])]
    names = [bundle_name(namespaces[s], low, high) for s, low, high in ranges]
    bundle_columns = _bundle_columns(answers, names, owners, reports, stats_by_topic)
    bundles = make_bundles(
        [low for _, low, _ in ranges],
        high=[high for _, _, high in ranges],
        namespace=[s for s, _, _ in ranges],
        owner=[brokers.index(owners[n]) if n in owners else -1 for n in names],
        **bundle_columns,
    )
    times = answers.times_ms()
    _warn_about_times(answers, times, settings)
    snapshot = Snapshot(
        info=SnapshotInfo(
            cluster=_cluster(answers),
            load_manager=manager,
            captured_at_ms=times[-1] if times else 0,
            pulsar_version=_version(answers, reports.values()),
            leader=_leader(answers),
            source=f"Raw capture of {len(brokers)} brokers, {len(files)} files",
        ),
        settings=settings,
        brokers=make_brokers(tuple(brokers), **_broker_columns(answers, brokers, reports, manager)),
        namespaces=namespaces,
        bundles=bundles,
        topics=_topics(answers, stats_by_topic, bundles, namespaces),
        policies=_policies(answers, _cluster(answers)),
    )
    snapshot = replace(snapshot, info=replace(snapshot.info, warnings=tuple(answers.warnings)))
    validate(snapshot, {part: f"capture: {part}" for part in ("brokers", "bundles", "topics")})
    return snapshot


def _broker_ids(answers: RawAnswers) -> list[str]:
    listed = answers.json("brokers.json") or answers.json("brokers-all.json")
    if isinstance(listed, list) and listed and all(isinstance(b, str) for b in listed):
        return sorted(dict.fromkeys(listed))
    registered = [rest for rest, _ in answers.below("/loadbalance/brokers/") if "/" not in rest]
    found = sorted(registered or answers.labels)
    if not found:
        raise FormatError(
            "The capture names no broker.", where="brokers.json", remedy="Capture /admin/v2/brokers/{cluster} as well."
        )
    return found


def _cluster(answers: RawAnswers) -> str:
    clusters = answers.json("clusters.json")
    if isinstance(clusters, list) and clusters and isinstance(clusters[0], str):
        return clusters[0]
    for rest, _ in answers.below("/admin/clusters/"):
        return rest.split("/", 1)[0]
    return "captured"


def _leader(answers: RawAnswers) -> str:
    for value in (
        answers.object("leader.json"),
        answers.metadata.get("/loadbalance/leader"),
        answers.metadata.get("/loadbalance/extension/leader"),
    ):
        leader = _object(value).get("brokerId")
        if isinstance(leader, str):
            return leader
    return ""


def _version(answers: RawAnswers, reports: Iterable[Mapping[str, Any]]) -> str:
    plain = answers.text("version.json").strip().strip('"')
    version = plain if re.fullmatch(r"\d+\.\d+[\w.+-]*", plain) else None
    if version is None:
        said = [r.get("brokerVersionString") for r in reports]
        version = next((v for v in said if isinstance(v, str)), None)
    if version is None:
        answers.warn("The Pulsar version was not captured; 4.2.4 is assumed.")
    return version or "4.2.4"


def _settings(answers: RawAnswers) -> Settings:
    seen: dict[str, set[str]] = {}
    for label in answers.labels.values():
        for name, value in answers.object(f"runtime-config.{label}.json").items():
            if name in SETTINGS_BY_NAME and isinstance(value, str):
                seen.setdefault(name, set()).add(value)
    for name, value in answers.object("dynamic-config-values.json").items():
        if name in SETTINGS_BY_NAME and isinstance(value, str):
            seen[name] = {value}
    if not seen:
        answers.warn("The settings were not captured; the defaults of 4.2.4 are assumed.")
    values: dict[str, Any] = {}
    for name, given in sorted(seen.items()):
        if len(given) > 1:
            answers.warn(f"The brokers differ in {name} ({', '.join(sorted(given))}); the first is used.")
        value = _official_class(name, min(given), answers)
        try:
            values |= Settings({name: value}).overrides
        except PlannerError as error:
            answers.warn(f"{error} The default is assumed.")
    return Settings(values)


def _official_class(name: str, value: str, answers: RawAnswers) -> str:
    known = _STRATEGIES.get(name, ())
    simple = value.rsplit(".", 1)[-1]
    by_simple = {k.rsplit(".", 1)[-1]: k for k in known}
    if not known or value in known or simple in by_simple:
        return by_simple.get(simple, value)
    base = next((by_simple[s] for s in sorted(by_simple, key=len, reverse=True) if simple.endswith(s)), None)
    if base is None:
        answers.warn(f"{name} is {value}, which is not one of Pulsar's classes; its decisions cannot be predicted.")
        return value
    answers.warn(f"{name} is the custom class {simple}; it is taken to decide like {base.rsplit('.', 1)[-1]}.")
    return base


def _load_manager(answers: RawAnswers, settings: Settings) -> LoadManager:
    classes = [settings.text("loadManagerClassName")]
    classes += [str(node.get("loadManagerClassName", "")) for _, node in answers.below("/loadbalance/brokers/")]
    return LoadManager.EXTENSIBLE if any("Extensible" in c for c in classes) else LoadManager.MODULAR


def _report(answers: RawAnswers, broker: str, manager: LoadManager) -> Mapping[str, Any]:
    """Return the load report of a broker in the shape of LocalBrokerData; empty when it did not answer."""
    label = answers.labels.get(broker)
    stored = _object(answers.metadata.get(f"/loadbalance/brokers/{broker}"))
    if manager is LoadManager.EXTENSIBLE:
        return {**stored, **_report_of_metrics(answers, broker, label)}
    if "cpu" in stored:
        return stored
    report = answers.object(f"load-report.{label}.json") if label else {}
    if "cpu" in report:
        return report
    answers.warn(f"Broker {broker} did not answer: its load is unknown and counts as 0.")
    return {}


def _prometheus(text: str) -> Iterable[tuple[str, Mapping[str, str], float]]:
    for line in text.splitlines():
        match = _METRIC.fullmatch(line.rsplit("#", 1)[0].strip()) if line[:1] != "#" else None
        if match:
            try:
                yield match[1], dict(_LABEL.findall(match[2])), float(match[3])
            except ValueError:
                continue


def _report_of_metrics(answers: RawAnswers, broker: str, label: str | None) -> Mapping[str, Any]:
    """Return what the metrics say about a broker of the extensible load manager.

    Metrics give percentages, so that every limit is 100 there.
    """
    found: dict[str, float] = {}
    for name, labels, value in _prometheus(answers.text(f"prometheus.{label}.txt")) if label else ():
        if np.isfinite(value):
            found[f"{name}:{labels['feature']}" if "feature" in labels else name] = value
    for item in answers.json(f"metrics.{label}.json") or () if label else ():
        dimensions, metrics = _object(_object(item).get("dimensions")), _object(_object(item).get("metrics"))
        for name, value in metrics.items():
            full = name.replace("brk_", "pulsar_", 1)
            key = f"{full}:{dimensions['feature']}" if "feature" in dimensions else full
            found.setdefault(key, _number(value))
    if "pulsar_lb_cpu_usage" not in found:
        answers.warn(f"Broker {broker} did not answer: its load is unknown and counts as 0.")
        return {}
    answers.warn(
        "The extensible load manager answers no load report; usages come from the metrics as percentages, so that every"
        " limit is shown as 100."
    )
    report: dict[str, Any] = {
        resource: {"usage": found.get(f"pulsar_lb_{metric}_usage", 0.0), "limit": 100.0}
        for resource, metric in (
            ("cpu", "cpu"),
            ("memory", "memory"),
            ("directMemory", "directMemory"),
            ("bandwidthIn", "bandwidth_in"),
            ("bandwidthOut", "bandwidth_out"),
        )
    }
    for key, metric in (
        ("msgRateIn", "pulsar_broker_rate_in"),
        ("msgRateOut", "pulsar_broker_rate_out"),
        ("msgThroughputIn", "pulsar_broker_throughput_in"),
        ("msgThroughputOut", "pulsar_broker_throughput_out"),
    ):
        report[key] = found.get(metric, 0.0)
    for key, metric in (
        ("numTopics", "pulsar_broker_topics_count"),
        ("numProducers", "pulsar_broker_producers_count"),
        ("numConsumers", "pulsar_broker_consumers_count"),
    ):
        report[key] = int(found.get(metric, 0.0))
    if "pulsar_lb_resource_usage:max_ema" in found:
        report["weightedMaxEMA"] = found["pulsar_lb_resource_usage:max_ema"]
    report["lastUpdate"] = _count(answers.entry.get(f"prometheus.{label}.txt", {}).get("time_ms"))
    return report


def _pairs(boundaries: Sequence[int]) -> Iterable[tuple[int, int]]:
    return pairwise(boundaries)


def _parse_boundaries(value: Any) -> tuple[int, ...] | None:
    texts = _object(value).get("boundaries")
    if not isinstance(texts, list) or not all(isinstance(t, str) and re.fullmatch("0x[0-9a-f]{8}", t) for t in texts):
        return None
    return tuple(int(t, 16) for t in texts)


def _boundaries(answers: RawAnswers) -> dict[str, tuple[int, ...]]:
    """Return the boundaries of each namespace, from the freshest place that says them."""
    found: dict[str, tuple[int, ...]] = {}

    def take(namespace: str, value: Any) -> None:
        parsed = _parse_boundaries(value)
        if parsed is not None:
            found.setdefault(namespace, parsed)

    for namespace, file in answers.of_namespaces("bundles"):
        take(namespace, answers.object(file, needed=f"The bundles of {namespace} come from elsewhere."))
    for prefix in ("/admin/local-policies/", "/admin/policies/"):
        for namespace, node in answers.below(prefix):
            if namespace.count("/") == 1:
                take(namespace, node.get("bundles"))
    for namespace, file in answers.of_namespaces(""):
        take(namespace, answers.object(file).get("bundles"))
    return found


def _claims(answers: RawAnswers, broker: str, report: Mapping[str, Any]) -> Iterable[str]:
    """Return the bundles that a broker says it owns."""
    label = answers.labels.get(broker)
    owned = answers.json(f"owned.{label}.json") if label else None
    if isinstance(owned, dict):
        return owned
    claimed = dict.fromkeys([*_object(report.get("lastStats")), *(report.get("bundles") or ())])
    for rest, node in answers.below("/namespace/"):
        urls = (node.get("httpUrl"), node.get("nativeUrl"))
        if any(isinstance(u, str) and urlsplit(u).netloc == broker for u in urls):
            claimed[rest] = None
    answers.warn(
        f"Broker {broker} did not say which bundles it owns; {len(claimed)} are known from its report and the metadata"
        " store."
    )
    return claimed


def _owners(
    answers: RawAnswers,
    brokers: Sequence[str],
    reports: Mapping[str, Mapping[str, Any]],
    boundaries: dict[str, tuple[int, ...]],
) -> dict[str, str]:
    """Return the owner of each owned bundle; full bundles of namespaces nobody listed are added to the boundaries."""
    owners: dict[str, str] = {}
    full = format_range(0, FULL_HIGH)
    for broker in brokers:
        for name in _claims(answers, broker, reports[broker]):
            namespace, _, span = name.rpartition("/")
            if namespace not in boundaries and span == full:
                boundaries[namespace] = (0, FULL_HIGH)
            pairs = {format_range(low, high) for low, high in _pairs(boundaries.get(namespace, (0,)))}
            if span not in pairs:
                answers.warn(f"{name} of {broker} is not a bundle of {namespace} (any more); it is left out.")
            elif name in owners:
                answers.warn(f"{name} is claimed by {owners[name]} and by {broker}; it moved during the capture.")
            else:
                owners[name] = broker
    return owners


def _topic_stats(answers: RawAnswers) -> dict[str, tuple[str, Mapping[str, Any]]]:
    """Return (bundle, stats) of each topic that a broker reported."""
    found: dict[str, tuple[str, Mapping[str, Any]]] = {}
    for broker, label in sorted(answers.labels.items()):
        value = answers.object(f"topics.{label}.json", needed=f"Rates of the topics of {broker} are unknown.")
        for namespace, bundles in value.items():
            for span, kinds in _object(bundles).items():
                for topics in _object(kinds).values():
                    for topic, stats in _object(topics).items():
                        found.setdefault(topic, (f"{namespace}/{span}", _object(stats)))
    return found


def _consumers(stats: Mapping[str, Any]) -> int:
    subscriptions = _object(stats.get("subscriptions")).values()
    return sum(len(c) for s in subscriptions if isinstance(c := _object(s).get("consumers"), list))


def _producers(stats: Mapping[str, Any]) -> int:
    publishers = stats.get("publishers")
    return len(publishers) if isinstance(publishers, list) else _count(stats.get("producerCount"))


def _sums(topic_stats: Mapping[str, tuple[str, Mapping[str, Any]]]) -> dict[str, dict[str, float]]:
    """Return current values of each bundle summed from its topics."""
    sums: dict[str, dict[str, float]] = {}
    for bundle, stats in topic_stats.values():
        total = sums.setdefault(bundle, dict.fromkeys([*_TRAFFIC, *_COUNTS], 0))
        for key in _TRAFFIC:
            total[key] += _number(stats.get(key))
        total["topics"] += 1
        total["producerCount"] += _producers(stats)
        total["consumerCount"] += _consumers(stats)
    return sums


def _bundle_columns(
    answers: RawAnswers,
    names: Sequence[str],
    owners: Mapping[str, str],
    reports: Mapping[str, Mapping[str, Any]],
    topic_stats: Mapping[str, tuple[str, Mapping[str, Any]]],
) -> dict[str, Any]:
    """Return the columns of current values and averages."""
    summed = _sums(topic_stats)
    current: list[Mapping[str, Any]] = []
    for name in names:
        report = reports.get(owners.get(name, ""), {})
        current.append(_object(_object(report.get("lastStats")).get(name)) or summed.get(name, {}))
    data = [_object(answers.metadata.get(f"/loadbalance/bundle-data/{name}")) for name in names]
    reported = [bool(c) and name in owners for c, name in zip(current, names, strict=True)]
    estimated = [said and not d for said, d in zip(reported, data, strict=True)]
    if any(estimated):
        answers.warn(
            f"The averages of {sum(estimated)} bundles are not in the capture (they live in the leader's memory and the"
            " metadata store); their current values stand in for them."
        )
    columns: dict[str, Any] = {
        "has_stats": reported,
        "has_data": [said or bool(d) for said, d in zip(reported, data, strict=True)],
        "averages_estimated": estimated,
        "data_topics": [
            _count(d.get("topics")) if d else _count(c.get("topics")) for c, d in zip(current, data, strict=True)
        ],
    }
    columns |= {column: [_number(c.get(key)) for c in current] for key, column in _TRAFFIC.items()}
    columns |= {column: [int(_number(c.get(key))) for c in current] for key, column in _COUNTS.items()}
    for key, prefix in (("shortTermData", "short_term_"), ("longTermData", "long_term_")):
        averages = [_object(d.get(key)) if d else c for c, d in zip(current, data, strict=True)]
        columns |= {prefix + column: [_number(a.get(k)) for a in averages] for k, column in _TRAFFIC.items()}
        columns[f"{prefix}samples"] = [_count(a.get("numSamples"), int(bool(a))) for a in averages]
    return columns


def _broker_columns(
    answers: RawAnswers, brokers: Sequence[str], reports: Mapping[str, Mapping[str, Any]], manager: LoadManager
) -> dict[str, Any]:
    rows = [reports[b] for b in brokers]
    columns: dict[str, Any] = {}
    for resource, (usage, limit) in _RESOURCES.items():
        columns[usage] = [_number(_object(r.get(resource)).get("usage")) for r in rows]
        columns[limit] = [_number(_object(r.get(resource)).get("limit")) for r in rows]
    for broker, row in zip(brokers, rows, strict=True):
        if _number(_object(row.get("bandwidthIn")).get("limit")) < 0:
            answers.warn(
                f"Broker {broker} does not know its NIC speed (limit below 0): bandwidth counts as 0 %."
                " Set loadBalancerOverrideBrokerNicSpeedGbps."
            )
    columns |= {column: [_number(r.get(key)) for r in rows] for key, column in _TRAFFIC.items()}
    for key, column in (
        ("numTopics", "topics"),
        ("numProducers", "producers"),
        ("numConsumers", "consumers"),
        ("lastUpdate", "updated_at_ms"),
        ("startTimestamp", "started_at_ms"),
    ):
        columns[column] = [_count(r.get(key)) for r in rows]
    columns["reported_bundles"] = [_count(r.get("numBundles"), -1) for r in rows]
    columns["version"] = [str(r.get("brokerVersionString") or r.get("brokerVersion") or "") for r in rows]
    columns["load_manager_class"] = [str(r.get("loadManagerClassName") or "") for r in rows]
    columns["persistent_topics_enabled"] = [r.get("persistentTopicsEnabled") is not False for r in rows]
    columns["non_persistent_topics_enabled"] = [r.get("nonPersistentTopicsEnabled") is not False for r in rows]
    columns["has_load_data"] = ["cpu" in r for r in rows]
    if manager is LoadManager.EXTENSIBLE:
        columns["weighted_max_ema"] = [_number(r.get("weightedMaxEMA"), float("nan")) for r in rows]
    averages = [_object(answers.metadata.get(f"/loadbalance/broker-time-average/{b}")) for b in brokers]
    for term in ("short", "long"):
        for key, column in _TRAFFIC.items():
            values = [_number(a.get(f"{term}TermM{key[1:]}"), float("nan")) for a in averages]
            columns[f"{term}_term_{column}"] = values
    return columns


def _topics(
    answers: RawAnswers,
    topic_stats: Mapping[str, tuple[str, Mapping[str, Any]]],
    bundles: Any,
    namespaces: Sequence[str],
) -> TopicTable:
    names = list(topic_stats)
    for entry in answers.index:
        path = entry.get("path")
        if isinstance(path, str) and re.fullmatch(r"/admin/v2/(non-)?persistent/[^/]+/[^/]+/?", path):
            listed = answers.json(entry["file"])
            names += [t for t in listed if isinstance(t, str)] if isinstance(listed, list) else []
    names = list(dict.fromkeys(names))
    hashes = topic_hashes((n.encode() for n in names), len(names))
    bundle = bundle_of_topics(names, hashes, bundles, namespaces)
    known = np.flatnonzero(bundle >= 0)
    if len(known) < len(names):
        answers.warn(
            f"{len(names) - len(known)} topics belong to namespaces whose bundles are unknown; they are left out."
        )
    kept = [names[i] for i in known]
    stats = [topic_stats[n][1] if n in topic_stats else {} for n in kept]
    columns: dict[str, Any] = {column: [_number(s.get(key)) for s in stats] for key, column in _TRAFFIC.items()}
    return make_topics(
        hashes[known],
        name=pa.array(kept, type=pa.large_string()),
        bundle=bundle[known],
        producers=[_producers(s) for s in stats],
        consumers=[_consumers(s) for s in stats],
        has_stats=[n in topic_stats for n in kept],
        **columns,
    )


def _policies(answers: RawAnswers, cluster: str) -> Policies:
    isolation = answers.object("isolation-policies.json") or _object(
        answers.metadata.get(f"/admin/clusters/{cluster}/namespaceIsolationPolicies")
    )
    groups: dict[str, str] = {}
    for namespace, file in answers.of_namespaces("antiAffinity"):
        group = answers.json(file) if file.endswith(".json") else None
        if isinstance(group, str) and group.strip():
            groups[namespace] = group.strip().strip('"')
    for namespace, node in answers.below("/admin/local-policies/"):
        group = node.get("namespaceAntiAffinityGroup")
        if isinstance(group, str) and group.strip(' "'):
            groups.setdefault(namespace, group.strip().strip('"'))
    domains = {
        name: tuple(b for b in _object(domain).get("brokers") or () if isinstance(b, str))
        for name, domain in answers.object("failure-domains.json").items()
    }
    return Policies(
        isolation=tuple(_isolation(name, _object(policy)) for name, policy in isolation.items()),
        anti_affinity_group=groups,
        failure_domains=domains,
        dispatch_rates=tuple(_dispatch_rates(answers, cluster)),
    )


def _isolation(name: str, policy: Mapping[str, Any]) -> IsolationPolicy:
    failover = _object(_object(policy.get("auto_failover_policy")).get("parameters"))

    def texts(key: str) -> tuple[str, ...]:
        return tuple(t for t in policy.get(key) or () if isinstance(t, str))

    def parameter(key: str, default: int) -> int:
        text = str(failover.get(key, default))
        return int(text) if text.isdecimal() else default

    return IsolationPolicy(
        name=name,
        namespaces=texts("namespaces"),
        primary=texts("primary"),
        secondary=texts("secondary"),
        min_limit=parameter("min_limit", 1),
        usage_threshold_percent=parameter("usage_threshold", 100),
    )


def _dispatch_rates(answers: RawAnswers, cluster: str) -> Iterable[DispatchRatePolicy]:
    policies = dict(answers.below("/admin/policies/"))
    policies |= {namespace: answers.object(file) for namespace, file in answers.of_namespaces("")}
    for namespace, policy in sorted(policies.items()):
        for key, kind in _RATE_KINDS.items():
            rate = _object(_object(policy.get(key)).get(cluster))
            if rate:
                yield DispatchRatePolicy(
                    kind=kind,
                    target=namespace,
                    rate=DispatchRate(
                        msg_per_period=_count(rate.get("dispatchThrottlingRateInMsg"), -1),
                        bytes_per_period=_count(rate.get("dispatchThrottlingRateInByte"), -1),
                        period_s=_count(rate.get("ratePeriodInSecond"), 1),
                        relative_to_publish_rate=rate.get("relativeToPublishRate") is True,
                    ),
                )


def _warn_about_times(answers: RawAnswers, times: Sequence[int], settings: Settings) -> None:
    longest_ms = settings.integer("loadBalancerReportUpdateMaxIntervalMinutes") * 60_000
    if not times:
        answers.warn("The index says no times; the moment of the capture is unknown.")
    elif times[-1] - times[0] > longest_ms:
        answers.warn(
            f"The parts were captured {(times[-1] - times[0]) / 1000:.0f} s apart, longer than a report interval"
            f" ({longest_ms / 1000:.0f} s): rates and owners may not fit together."
        )
