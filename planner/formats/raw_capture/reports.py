"""What each broker of a raw capture says about itself, in the shape of `LocalBrokerData`."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from planner.cluster.settings import Settings
from planner.cluster.snapshot import LoadManager
from planner.formats.raw_capture.answers import Answers, host_and_port, number, whole
from planner.formats.raw_capture.identity import REPORTS, Cast
from planner.formats.raw_capture.metadata_store import DUMP, MetadataStore
from planner.formats.raw_capture.metrics import Metric, read_metrics
from planner.formats.raw_capture.system_topics import SystemTopics

Report = Mapping[str, Any]
"""One broker's report; `source` names where it is from. Without `cpu` the load of the broker is unknown."""

TRAFFIC: Mapping[str, str] = {
    "msgRateIn": "msg_rate_in_per_s",
    "msgRateOut": "msg_rate_out_per_s",
    "msgThroughputIn": "msg_throughput_in_bytes_per_s",
    "msgThroughputOut": "msg_throughput_out_bytes_per_s",
}
"""Column of each rate, by its name in Pulsar's JSON."""

_RESOURCES = {
    "cpu": ("cpu_usage_percent", "cpu_limit_percent"),
    "memory": ("memory_usage_mib", "memory_limit_mib"),
    "directMemory": ("direct_memory_usage_mib", "direct_memory_limit_mib"),
    "bandwidthIn": ("bandwidth_in_usage_kbit_per_s", "bandwidth_in_limit_kbit_per_s"),
    "bandwidthOut": ("bandwidth_out_usage_kbit_per_s", "bandwidth_out_limit_kbit_per_s"),
}
_USAGE_METRICS = {
    "cpu": "pulsar_lb_cpu_usage",
    "memory": "pulsar_lb_memory_usage",
    "directMemory": "pulsar_lb_directMemory_usage",
    "bandwidthIn": "pulsar_lb_bandwidth_in_usage",
    "bandwidthOut": "pulsar_lb_bandwidth_out_usage",
}
_COUNTS = {
    "numTopics": "topics",
    "numProducers": "producers",
    "numConsumers": "consumers",
    "lastUpdate": "updated_at_ms",
    "startTimestamp": "started_at_ms",
}
_MIB = 1 << 20
_KBIT_PER_GBIT = 1_000_000.0
_PERCENT = 100.0
_UNKNOWN = "Its load is unknown and shown as 0; do not trust a decision that gives it bundles."


def read_reports(
    answers: Answers, store: MetadataStore, topics: SystemTopics, cast: Cast, config: Settings, manager: LoadManager
) -> dict[str, Report]:
    """Return the report of each broker.

    Modular: what the metadata store holds, since that is what the leader decides with; else the answer to
    `/broker-stats/load-report`, which is about the broker asked, whatever the path. Extensible: the load data in the
    system topic; else the metrics, which know usages as percentages only.
    """
    answered = _answered(answers, cast) if manager is LoadManager.MODULAR else {}
    reports: dict[str, Report] = {}
    for broker in cast.names:
        tag = cast.tags.get(broker)
        stored = store.node(f"{REPORTS}/{broker}")
        if manager is LoadManager.EXTENSIBLE:
            reports[broker] = {**stored, **_extensible(answers, topics, broker, tag, config)}
        elif "cpu" in stored:
            reports[broker] = {**stored, "source": f"{DUMP}, {REPORTS}/{broker}"}
        else:
            reports[broker] = answered.get(broker, {})
        known = "cpu" in reports[broker]
        if tag is None:
            shown = "Its load is that of the metadata store or system topic." if known else _UNKNOWN
            answers.warn(f"Broker {broker} did not answer. {shown}")
        elif not known:
            answers.warn(f"Broker {broker} ({tag}) gave no load report. {_UNKNOWN}")
    return reports


def _answered(answers: Answers, cast: Cast) -> dict[str, Report]:
    """Return the load reports that brokers answered, by the broker that each is about."""
    found: dict[str, Report] = {}
    for broker, tag in cast.tags.items():
        stem = f"load-report.{tag}"
        report = answers.json(stem, dict, "The metadata store counts, if it was captured.")
        if not report or not isinstance(report.get("cpu"), dict):
            continue
        urls = (host_and_port(report.get(key)) for key in ("webServiceUrl", "webServiceUrlTls"))
        about = next((url for url in urls if url in cast.names), broker)
        if about in found:
            answers.warn(f"{stem}: it is about {about}, as {found[about]['source']} is. It was left out.")
        else:
            found[about] = {**report, "source": stem}
    return found


def _extensible(
    answers: Answers, topics: SystemTopics, broker: str, tag: str | None, config: Settings
) -> dict[str, Any]:
    metrics = read_metrics(answers, tag) if tag is not None else []
    named = {
        name: value
        for name, labels, value in reversed(metrics)
        if name.startswith("pulsar_lb_") and "feature" not in labels
    }
    load = topics.loads.get(broker)
    if load is not None and isinstance(load.get("cpu"), dict):
        return {
            **load,
            "source": f"system-topics, {broker}",
            "numTopics": load.get("topics"),
            "numBundles": load.get("bundleCount"),
            "lastUpdate": load.get("updatedAt"),
        }
    if _USAGE_METRICS["cpu"] not in named:
        return {}
    answers.warn(
        "The extensible load manager answers no load report, and its system topic was not captured: usage of CPU, and"
        " of bandwidth where the NIC speed is not configured, is known as a percentage only and shown of a limit 100."
    )
    limits = _limits(metrics, config)
    report: dict[str, Any] = {"source": f"metrics.{tag}", "lastUpdate": answers.time_ms(f"metrics.{tag}")}
    for resource, name in _USAGE_METRICS.items():
        limit = limits.get(resource, _PERCENT)
        report[resource] = {"usage": max(named.get(name, 0.0), 0.0) / _PERCENT * limit, "limit": limit}
    for name, labels, value in reversed(metrics):
        if name == "pulsar_lb_resource_usage" and labels.get("feature") == "max_ema":
            report["weightedMaxEMA"] = value
    return report


def _limits(metrics: Iterable[Metric], config: Settings) -> dict[str, float]:
    """Return what of each resource there is, as far as metrics and settings know."""
    limits: dict[str, float] = {}
    for name, labels, value in metrics:
        if name == "jvm_memory_bytes_max" and labels.get("area") == "heap" and value > 0:
            limits.setdefault("memory", value / _MIB)
        elif name == "jvm_memory_direct_bytes_max" and value > 0:
            limits.setdefault("directMemory", value / _MIB)
    speed = config["loadBalancerOverrideBrokerNicSpeedGbps"]
    if isinstance(speed, float) and speed > 0:
        cards = max(1, len(config.names("loadBalancerOverrideBrokerNics")))
        limits["bandwidthIn"] = limits["bandwidthOut"] = speed * _KBIT_PER_GBIT * cards
    return limits


def broker_columns(
    answers: Answers, store: MetadataStore, cast: Cast, reports: Mapping[str, Report]
) -> dict[str, Sequence[Any]]:
    """Return the columns of the broker table that the reports and the metadata store know.

    Raises:
        FormatError: A report holds what is no number.
    """
    rows = [reports[broker] for broker in cast.names]
    columns: dict[str, Sequence[Any]] = {}
    for resource, (usage, limit) in _RESOURCES.items():
        pairs = [_resource(row, resource) for row in rows]
        columns[usage], columns[limit] = zip(*pairs, strict=True)
    for broker, speed in zip(cast.names, columns["bandwidth_in_limit_kbit_per_s"], strict=True):
        if speed < 0:
            answers.warn(
                f"Broker {broker} does not know the speed of its NIC (limit {speed:g}), so that bandwidth counts as 0 %"
                " there; Pulsar has loadBalancerOverrideBrokerNicSpeedGbps for that."
            )
    for key, column in TRAFFIC.items():
        columns[column] = [number(row.get(key), _field(row, key)) for row in rows]
    for key, column in _COUNTS.items():
        columns[column] = [whole(row.get(key), _field(row, key)) for row in rows]
    columns["reported_bundles"] = [
        whole(row["numBundles"], _field(row, "numBundles")) if row.get("numBundles") is not None else -1 for row in rows
    ]
    columns["version"] = [_text(row, "brokerVersionString", "brokerVersion") for row in rows]
    columns["load_manager_class"] = [_text(row, "loadManagerClassName") for row in rows]
    columns["persistent_topics_enabled"] = [row.get("persistentTopicsEnabled") is not False for row in rows]
    columns["non_persistent_topics_enabled"] = [row.get("nonPersistentTopicsEnabled") is not False for row in rows]
    columns["has_load_data"] = ["cpu" in row for row in rows]
    for key, column in (("weightedMaxEMA", "weighted_max_ema"), ("msgThroughputEMA", "msg_throughput_ema_bytes_per_s")):
        columns[column] = [_or_unknown(row, key, _field(row, key)) for row in rows]
    for term in ("short", "long"):
        for key, column in TRAFFIC.items():
            columns[f"{term}_term_{column}"] = [
                _average(store, broker, f"{term}TermM{key[1:]}") for broker in cast.names
            ]
    return columns


def _field(row: Report, key: str) -> str:
    return f"{row.get('source', '?')}: {key}"


def _resource(row: Report, resource: str) -> tuple[float, float]:
    pair = row.get(resource)
    if not isinstance(pair, dict):
        return 0.0, 0.0
    limit = number(pair.get("limit"), _field(row, f"{resource}.limit"), least=-float("inf"))
    # Pulsar starts every resource as (-1, -1), and leaves it so where the host does not tell.
    usage = number(pair.get("usage"), _field(row, f"{resource}.usage"), least=0.0 if limit > 0 else -1.0)
    return usage, limit


def _text(row: Report, *keys: str) -> str:
    return next((value for key in keys if isinstance(value := row.get(key), str)), "")


def _or_unknown(row: Mapping[str, Any], key: str, where: str) -> float:
    return float("nan") if row.get(key) is None else number(row[key], where)


def _average(store: MetadataStore, broker: str, key: str) -> float:
    path = f"/loadbalance/broker-time-average/{broker}"
    return _or_unknown(store.node(path), key, f"{DUMP}, {path}: {key}")
