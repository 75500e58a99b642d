"""Reads the `loadData` shape of the vectors into a snapshot."""

from collections.abc import Mapping
from typing import Any, TypeAlias

from planner.cluster.ranges import parse_bundle
from planner.cluster.settings import Settings
from planner.cluster.snapshot import LoadManager, Snapshot, SnapshotInfo, make_brokers, make_bundles, make_topics

Json: TypeAlias = Mapping[str, Any]

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
_AVERAGES = {"shortTermData": "short_term_", "longTermData": "long_term_"}


def _time_average_columns(brokers: Mapping[str, Json]) -> dict[str, list[float]]:
    columns: dict[str, list[float]] = {}
    for term in ("short", "long"):
        for name, column in _TRAFFIC.items():
            key = f"{term}TermM{name[1:]}"
            columns[f"{term}_term_{column}"] = [
                (b.get("timeAverageData") or {}).get(key, float("nan")) for b in brokers.values()
            ]
    return columns


def snapshot_of_load_data(
    load_data: Json,
    config: Settings,
    *,
    load_manager: LoadManager = LoadManager.MODULAR,
    now_ms: int = 0,
) -> Snapshot:
    """Build the snapshot that a vector's `loadData` describes.

    Brokers and bundles keep the order of the vector; bundles come from `bundleData` first, then from the brokers' own
    lists. Bundles need not tile their namespaces.

    Args:
        load_data: `brokers` and `bundleData` as in the vectors' description; absent fields are 0 or empty.
        config: Settings in force.
        load_manager: The load manager.
        now_ms: The moment.
    """
    brokers: Mapping[str, Json] = load_data.get("brokers", {})
    data: Mapping[str, Json] = load_data.get("bundleData", {})
    stats: dict[str, Json] = {}
    owner: dict[str, int] = {}
    for position, broker in enumerate(brokers.values()):
        last = broker.get("lastStats") or {}
        stats.update(last)
        owner.update(dict.fromkeys([*(broker.get("bundles") or ()), *last], position))
    names = list(dict.fromkeys([*data, *owner]))
    parsed = [parse_bundle(name) for name in names]
    namespaces = tuple(dict.fromkeys(namespace for namespace, _, _ in parsed))
    place = {namespace: i for i, namespace in enumerate(namespaces)}

    broker_columns: dict[str, Any] = _time_average_columns(brokers)
    for resource, (usage, limit) in _RESOURCES.items():
        broker_columns[usage] = [(b.get(resource) or {}).get("usage", 0.0) for b in brokers.values()]
        broker_columns[limit] = [(b.get(resource) or {}).get("limit", 0.0) for b in brokers.values()]
    for key, column in _TRAFFIC.items():
        broker_columns[column] = [b.get(key, 0.0) for b in brokers.values()]

    bundle_columns: dict[str, Any] = {
        "namespace": [place[namespace] for namespace, _, _ in parsed],
        "high": [high for _, _, high in parsed],
        "owner": [owner.get(name, -1) for name in names],
        "has_stats": [name in stats for name in names],
        "has_data": [name in data for name in names],
        "data_topics": [data.get(name, {}).get("topics", 0) for name in names],
    }
    for key, column in (_TRAFFIC | _COUNTS).items():
        bundle_columns[column] = [stats.get(name, {}).get(key, 0) for name in names]
    for key, prefix in _AVERAGES.items():
        for field, column in _TRAFFIC.items():
            bundle_columns[prefix + column] = [(data.get(n, {}).get(key) or {}).get(field, 0.0) for n in names]
    return Snapshot(
        info=SnapshotInfo(cluster="vector", load_manager=load_manager, captured_at_ms=now_ms),
        settings=config,
        brokers=make_brokers(tuple(brokers), **broker_columns),
        namespaces=namespaces,
        bundles=make_bundles([low for _, low, _ in parsed], **bundle_columns),
        topics=make_topics(),
    )
