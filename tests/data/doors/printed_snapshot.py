"""What the ten commands print of a generated cluster: the answers of its brokers, as a recorded capture has them."""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from planner.cluster.load_manager import LoadManager
from planner.cluster.pulsar_json import RATES
from planner.cluster.ranges import FULL_HIGH
from planner.cluster.snapshot import IsolationPolicy, Snapshot

_RESOURCES = {
    "cpu": "cpu_{}_percent",
    "memory": "memory_{}_mib",
    "directMemory": "direct_memory_{}_mib",
    "bandwidthIn": "bandwidth_in_{}_kbit_per_s",
    "bandwidthOut": "bandwidth_out_{}_kbit_per_s",
}
_USAGE_METRICS = {
    "cpu": "pulsar_lb_cpu_usage",
    "memory": "pulsar_lb_memory_usage",
    "directMemory": "pulsar_lb_directMemory_usage",
    "bandwidthIn": "pulsar_lb_bandwidth_in_usage",
    "bandwidthOut": "pulsar_lb_bandwidth_out_usage",
}


def _at(table: Any, column: str, row: int) -> Any:
    return getattr(table, column)[row].item()


def _pairs(snapshot: Snapshot, row: int) -> dict[str, dict[str, float]]:
    table = snapshot.brokers
    return {
        name: {what: _at(table, column.format(what), row) for what in ("usage", "limit")}
        for name, column in _RESOURCES.items()
    }


def _rates(table: Any, row: int) -> dict[str, float]:
    return {key: _at(table, column, row) for key, column in RATES.items()}


def _report(snapshot: Snapshot, row: int, rows: list[int]) -> dict[str, Any]:
    table, bundles = snapshot.brokers, snapshot.bundles
    stats = {
        snapshot.bundle_names[at]: {
            **_rates(bundles, at),
            "topics": _at(bundles, "topics", at),
            "producerCount": _at(bundles, "producers", at),
            "consumerCount": _at(bundles, "consumers", at),
            "cacheSize": _at(bundles, "cache_size_bytes", at),
        }
        for at in rows
        if bundles.has_stats[at]
    }
    return {
        "webServiceUrl": f"http://{table.name[row]}",
        "persistentTopicsEnabled": True,
        "nonPersistentTopicsEnabled": True,
        **_pairs(snapshot, row),
        **_rates(table, row),
        "lastUpdate": _at(table, "updated_at_ms", row),
        "startTimestamp": _at(table, "started_at_ms", row),
        "lastStats": stats,
        "numTopics": _at(table, "topics", row),
        "numBundles": _at(table, "reported_bundles", row),
        "numProducers": _at(table, "producers", row),
        "numConsumers": _at(table, "consumers", row),
        "bundles": list(stats),
        "brokerVersionString": snapshot.info.pulsar_version,
        "loadManagerClassName": snapshot.settings["loadManagerClassName"],
    }


def _metrics(snapshot: Snapshot, row: int) -> str:
    name, cluster = snapshot.brokers.name[row], snapshot.info.cluster
    labels = f'cluster="{cluster}",broker="{name.rpartition(":")[0]}"'
    lines = [
        f'{_USAGE_METRICS[resource]}{{{labels},metric="loadBalancing"}} {100 * pair["usage"] / pair["limit"]}'
        for resource, pair in _pairs(snapshot, row).items()
    ]
    ema = _at(snapshot.brokers, "weighted_max_ema", row)
    lines.append(f'pulsar_lb_resource_usage{{{labels},feature="max_ema",metric="loadBalancing"}} {ema}')
    for area, resource in (("jvm_memory_direct_bytes_max", "directMemory"), ("jvm_memory_bytes_max", "memory")):
        heap = ',area="heap"' if resource == "memory" else ""
        lines.append(f'{area}{{cluster="{cluster}"{heap}}} {_pairs(snapshot, row)[resource]["limit"] * 2**20}')
    return "\n".join([*lines, ""])


def _topic(table: Any, at: int) -> dict[str, Any]:
    rates = _rates(table, at)
    into = {key: value for key, value in rates.items() if key.endswith("In")}
    out = {key: value for key, value in rates.items() if key.endswith("Out")}
    producers, consumers = _at(table, "producers", at), _at(table, "consumers", at)
    first = [into if number == 0 else dict.fromkeys(into, 0.0) for number in range(producers)]
    reading = [out if number == 0 else dict.fromkeys(out, 0.0) for number in range(consumers)]
    return {**rates, "publishers": first, "subscriptions": {"s": {**out, "consumers": reading}} if consumers else {}}


def _topics(snapshot: Snapshot, rows: list[int]) -> dict[str, Any]:
    table, names = snapshot.topics, snapshot.topics.name.to_pylist()
    found: dict[str, Any] = {}
    wanted = set(rows)
    for at, bundle in enumerate(table.bundle.tolist()):
        if bundle in wanted:
            namespace, _, span = snapshot.bundle_names[bundle].rpartition("/")
            spans = found.setdefault(namespace, {}).setdefault(span, {"persistent": {}})
            spans["persistent"][names[at]] = _topic(table, at)
    return found


def _policy(policy: IsolationPolicy) -> dict[str, Any]:
    parameters = {"min_limit": str(policy.min_limit), "usage_threshold": str(policy.usage_threshold_percent)}
    return {
        "namespaces": list(policy.namespaces),
        "primary": list(policy.primary),
        "secondary": list(policy.secondary),
        "auto_failover_policy": {"policy_type": "min_available", "parameters": parameters},
    }


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        return "Optional.empty"
    return ",".join(value) if isinstance(value, tuple) else str(value)


def _boundaries(snapshot: Snapshot) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    rows = sorted(zip(snapshot.bundles.namespace.tolist(), snapshot.bundles.low.tolist(), strict=True))
    for namespace, low in rows:
        found.setdefault(snapshot.namespaces[namespace], []).append(f"0x{low:08x}")
    return {name: [*lows, f"0x{FULL_HIGH:08x}"] for name, lows in found.items()}


def answers_of(snapshot: Snapshot) -> Mapping[str, bytes]:
    """Return what its brokers answer, as the files of a raw capture with their index."""
    files: dict[str, Any] = {
        "brokers.json": list(snapshot.brokers.name),
        "leader.json": {"brokerId": snapshot.info.leader, "serviceUrl": f"http://{snapshot.info.leader}"},
        "runtime-config.b0.json": {name: _text(snapshot.settings[name]) for name in snapshot.settings},
        "dynamic-config-values.json": {},
        "isolation-policies.json": {one.name: _policy(one) for one in snapshot.policies.isolation},
    }
    index = []
    owners = snapshot.bundles.owner.tolist()
    for row, broker in enumerate(snapshot.brokers.name):
        rows = [at for at, owner in enumerate(owners) if owner == row]
        if snapshot.info.load_manager is LoadManager.MODULAR:
            files[f"load-report.b{row}.json"] = _report(snapshot, row, rows)
        else:
            files[f"prometheus.b{row}.txt"] = _metrics(snapshot, row)
        files[f"topics.b{row}.json"] = _topics(snapshot, rows)
        files[f"owned.b{row}.json"] = {snapshot.bundle_names[at]: {} for at in rows}
        index.append({"file": f"owned.b{row}.json", "asked": f"http://{broker}", "path": "/admin/v2/brokers"})
    for number, (namespace, edges) in enumerate(_boundaries(snapshot).items()):
        name = f"bundles.n{number}.json"
        files[name] = {"boundaries": edges, "numBundles": len(edges) - 1}
        index.append({"file": name, "asked": "", "path": f"/admin/v2/namespaces/{quote(namespace)}/bundles"})
    files["index.json"] = index
    plain = {
        name: value.encode() if isinstance(value, str) else json.dumps(value).encode() for name, value in files.items()
    }
    return plain | {"version.txt": snapshot.info.pulsar_version.encode()}
