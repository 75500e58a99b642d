"""A cluster as tables: its brokers and their resources, its namespaces, its bundles."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from planner.cluster.arrays import FloatArray, Int64Array
from planner.cluster.decisions import SplitDecision
from planner.cluster.load_manager import LoadManager
from planner.cluster.ranges import format_range
from planner.cluster.snapshot import Snapshot
from planner.cluster.text import moment
from planner.cluster.units import MIB
from planner.explain.decision_tables import reason_rows
from planner.pulsar.load.usage import (
    RESOURCES,
    ResourceWeights,
    deciding_resource,
    max_usage,
    usage_percent_by_resource,
    weighted_usage,
)
from planner.pulsar.manager.cycle import CycleDecision

MEASURES = {
    "throughput": ("Throughput", "MiB/s"),
    "rate": ("Message rate", "msg/s"),
    "topics": ("Topics", "topics"),
    "owner": ("Owner rank", "1 = busiest broker"),
}
"""Measures that the colour can show: name and unit."""

_RESOURCES = {
    "cpu": ("CPU", "% of one core", "cpu", "cpu_usage_percent", "cpu_limit_percent"),
    "memory": ("Heap memory", "MiB", "memory", "memory_usage_mib", "memory_limit_mib"),
    "directMemory": ("Direct memory", "MiB", "direct_memory", "direct_memory_usage_mib", "direct_memory_limit_mib"),
    "bandwidthIn": (
        "Bandwidth in", "kbit/s", "bandwidth_in", "bandwidth_in_usage_kbit_per_s", "bandwidth_in_limit_kbit_per_s",
    ),
    "bandwidthOut": (
        "Bandwidth out", "kbit/s", "bandwidth_out", "bandwidth_out_usage_kbit_per_s", "bandwidth_out_limit_kbit_per_s",
    ),
}  # fmt: skip
"""Label of a resource, its unit, its weight, and the columns of its use and its limit."""
_HOTTEST = 20


def deciding(snapshot: Snapshot) -> list[str]:
    """Return which resource decides the usage of each broker, as people call it."""
    brokers, config = snapshot.brokers, snapshot.settings
    return [_RESOURCES[name][0] for name in deciding_resource(brokers, config, snapshot.info.load_manager)]


def score_frame(snapshot: Snapshot, decision: CycleDecision) -> pd.DataFrame:
    """Return one row for each broker: score, what decides it, and what the next cycle does with it."""
    leaves = Counter(move.source for move in decision.moves)
    arrives = Counter(move.destination for move in decision.moves)
    why = {row["broker"]: row["why"] for row in reason_rows(snapshot, decision.shedding.reasons, bundles=False)}
    names = snapshot.brokers.name
    factor = 100.0 if decision.shedding.score_unit == "fraction" else 1.0
    unit = "score (%)" if factor > 1 else "score (msg/s)"
    return pd.DataFrame(
        {
            "broker": names,
            unit: decision.shedding.scores * factor,
            "decided by": deciding(snapshot),
            "bundles": snapshot.bundle_counts(),
            "unloads": [leaves[n] for n in names],
            "receives": [arrives[n] for n in names],
            "why": [why.get(n, "") for n in names],
        }
    ).sort_values(unit, ascending=False, kind="stable")


def hottest_bundles(snapshot: Snapshot) -> pd.DataFrame:
    """Return the bundles with the highest current throughput."""
    bundles = snapshot.bundles
    throughput = bundles.throughput_bytes_per_s()
    top = np.argsort(-throughput, kind="stable")[:_HOTTEST]
    top = top[throughput[top] > 0]
    return pd.DataFrame({"bundle": [snapshot.bundle_names[i] for i in top], **_columns(snapshot, top)})


def _columns(snapshot: Snapshot, rows: Int64Array) -> dict[str, Any]:
    """Return what is told of bundles in every table of them."""
    bundles = snapshot.bundles
    return {
        "owner": [snapshot.brokers.name[o] if o >= 0 else "unowned" for o in bundles.owner[rows]],
        "MiB/s": bundles.throughput_bytes_per_s(rows) / MIB,
        "msg/s": bundles.msg_rate_per_s(rows),
        "topics": bundles.topics[rows],
        "producers": bundles.producers[rows],
        "consumers": bundles.consumers[rows],
    }


def splits_frame(decision: SplitDecision) -> pd.DataFrame:
    """Return one row for each bundle that is split by itself."""
    rows = []
    for one in decision.splits:
        into = ", ".join(child.rsplit("/", 1)[-1] for child in one.children) or "decided by its broker"
        rows.append((one.bundle, one.broker, into, one.reason.text))
    return pd.DataFrame(rows, columns=["bundle", "broker", "into", "why"])


def broker_frame(snapshot: Snapshot) -> pd.DataFrame:
    """Return one row for each broker."""
    brokers, manager = snapshot.brokers, snapshot.info.load_manager
    percents = usage_percent_by_resource(brokers)
    frame = pd.DataFrame({"broker": brokers.name})
    frame["usage (%)"] = weighted_usage(brokers, snapshot.settings, manager) * 100
    frame["decided by"] = deciding(snapshot)
    for name, row in zip(RESOURCES, percents, strict=True):
        frame[f"{_RESOURCES[name][0]} (%)"] = row.astype(np.float64)
    frame["highest resource, unweighted (%)"] = max_usage(brokers, manager) * 100
    if manager is LoadManager.EXTENSIBLE:
        frame["averaged usage (%)"] = brokers.weighted_max_ema * 100
    frame["msg/s"] = brokers.msg_rate_per_s()
    frame["MiB/s"] = brokers.throughput_bytes_per_s() / MIB
    frame["bundles"] = snapshot.bundle_counts()
    frame["topics"] = brokers.topics
    frame["producers"] = brokers.producers
    frame["consumers"] = brokers.consumers
    frame["version"] = brokers.version
    frame["reported"] = [moment(t) for t in brokers.updated_at_ms.tolist()]
    return frame.sort_values("usage (%)", ascending=False, kind="stable")


def resource_frame(snapshot: Snapshot, broker: int) -> pd.DataFrame:
    """Return one row for each resource of a broker: use, limit, percentage, weight, and what it counts for."""
    brokers, manager = snapshot.brokers, snapshot.info.load_manager
    weights = ResourceWeights.of(snapshot.settings, manager)
    percents = usage_percent_by_resource(brokers)[:, broker].astype(np.float64)
    decides = deciding_resource(brokers, snapshot.settings, manager)[broker]
    rows = []
    for name, percent in zip(RESOURCES, percents.tolist(), strict=True):
        label, unit, weighed, *columns = _RESOURCES[name]
        usage, limit = (float(getattr(brokers, column)[broker]) for column in columns)
        weight = getattr(weights, weighed)
        if name == "memory" and manager is LoadManager.MODULAR:
            meaning = "never counts with the modular load manager"
        elif limit <= 0:
            meaning = "limit unknown, counts as 0 %"
        elif weight == 0:
            meaning = "weight 0, does not count"
        else:
            meaning = "decides the usage" if name == decides else "counts, but another resource is higher"
        rows.append((label, usage, limit, unit, percent, weight, meaning))
    return pd.DataFrame(rows, columns=["resource", "used", "limit", "unit", "% of limit", "weight", "meaning"])


@dataclass(frozen=True, slots=True)
class ResourceShares:
    """Every resource of every broker, the broker with the highest usage first.

    Attributes:
        brokers: Broker ids.
        resources: What each resource is called.
        percents: Use in percent of the limit, NaN where the limit or the use is unknown. Shape (resources, brokers).
        counts: Which resources count towards the usage, by the load manager and the weights.
    """

    brokers: tuple[str, ...]
    resources: tuple[str, ...]
    percents: FloatArray
    counts: tuple[bool, ...]


def resource_shares(snapshot: Snapshot) -> ResourceShares:
    """Return every resource of every broker."""
    brokers, manager = snapshot.brokers, snapshot.info.load_manager
    weights = ResourceWeights.of(snapshot.settings, manager)
    order = np.argsort(-weighted_usage(brokers, snapshot.settings, manager), kind="stable")
    percents = usage_percent_by_resource(brokers).astype(np.float64)
    limits = np.array([getattr(brokers, _RESOURCES[name][4]) for name in RESOURCES], dtype=np.float64)
    known = np.where((limits > 0) & np.isfinite(percents), percents, np.nan)
    counts = tuple(
        getattr(weights, _RESOURCES[name][2]) != 0 and not (name == "memory" and manager is LoadManager.MODULAR)
        for name in RESOURCES
    )
    return ResourceShares(
        brokers=tuple(brokers.name[i] for i in order.tolist()),
        resources=tuple(_RESOURCES[name][0] for name in RESOURCES),
        percents=known[:, order],
        counts=counts,
    )


def resource_text(shares: ResourceShares) -> str:
    """Return what `ResourceShares` shows, in a sentence or two of Markdown."""
    percents = shares.percents
    if not np.isfinite(percents).any():
        return "No broker reports the use and limit of a resource."
    counted = percents[list(shares.counts)]
    names = [name for name, counts in zip(shares.resources, shares.counts, strict=True) if counts]
    ignored = [name for name, counts in zip(shares.resources, shares.counts, strict=True) if not counts]
    rest = f" Not counted: {', '.join(ignored)}." if ignored else ""
    if not np.isfinite(counted).any():
        return f"No counted resource is known.{rest}"
    at, broker = np.unravel_index(int(np.nanargmax(counted)), counted.shape)
    top = f"{shares.brokers[int(broker)]}, {names[int(at)]}: {float(counted[at, broker]):.1f} % of the limit"
    return f"**Resources of each broker**, highest usage first. Most used: {top}.{rest}"


def measure(snapshot: Snapshot, name: str) -> FloatArray:
    """Return the value of each bundle for a measure; NaN where it has none, or nobody loads it. Shape (bundles,)."""
    bundles = snapshot.bundles
    owned = bundles.owner >= 0
    traffic = bundles.throughput_bytes_per_s()
    rate = bundles.msg_rate_per_s()
    known = {"throughput": traffic / MIB, "rate": rate, "topics": bundles.topics.astype(np.float64)}
    if name in known:
        return np.where(owned | (known[name] > 0), known[name], np.nan)
    usage = weighted_usage(snapshot.brokers, snapshot.settings, snapshot.info.load_manager)
    rank = np.empty(len(usage))
    rank[np.argsort(-usage, kind="stable")] = np.arange(1, len(usage) + 1)
    values: FloatArray = np.where(owned, rank[np.maximum(bundles.owner, 0)], np.nan)
    return values


def namespace_rows(snapshot: Snapshot, value: FloatArray, text: str) -> Int64Array:
    """Return the namespaces whose name contains a text, the one with the largest total first.

    Shape (matching namespaces,).
    """
    totals = np.bincount(snapshot.bundles.namespace, weights=np.nan_to_num(value), minlength=len(snapshot.namespaces))
    order = np.argsort(-totals, kind="stable")
    wanted = text.strip().lower()
    if wanted:
        order = np.array([i for i in order.tolist() if wanted in snapshot.namespaces[i].lower()], dtype=np.int64)
    return order.astype(np.int64)


def bundles_of_namespace(snapshot: Snapshot, namespace: str) -> Int64Array:
    """Return the bundles of a namespace in the order of their ranges; shape (bundles of the namespace,)."""
    rows = np.flatnonzero(snapshot.bundles.namespace == snapshot.namespaces.index(namespace))
    ordered: Int64Array = rows[np.argsort(snapshot.bundles.low[rows], kind="stable")]
    return ordered


def bundle_ranges(snapshot: Snapshot, rows: Int64Array) -> list[str]:
    """Return the hash ranges of bundles as Pulsar writes them, such as `0x00000000_0x40000000`."""
    return [format_range(int(snapshot.bundles.low[i]), int(snapshot.bundles.high[i])) for i in rows]


def bundle_frame(snapshot: Snapshot, rows: Int64Array) -> pd.DataFrame:
    """Return a table of bundles, in the order given."""
    share = (snapshot.bundles.high[rows] - snapshot.bundles.low[rows]) / 2**32 * 100
    ranges = bundle_ranges(snapshot, rows)
    return pd.DataFrame({"range": ranges, **_columns(snapshot, rows), "share of hash space (%)": share})
