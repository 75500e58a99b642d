"""Generates clusters: seeded, consistent, of any size.

What is generated holds together as a real cluster does: hashes are those of the names, topics lie in the bundle that
holds their hash, bundle rates are sums over topics and broker rates sums over bundles, and resource usage follows the
traffic. How usage follows is an assumption, stated in `ClusterSpec`.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from planner.cluster.arrays import FloatArray, Int64Array, IntArray
from planner.cluster.errors import SettingError
from planner.cluster.hashing import topic_hashes
from planner.cluster.load_manager import LoadManager
from planner.cluster.ranges import FULL_HIGH, equal_boundaries
from planner.cluster.releases import REFERENCE
from planner.cluster.snapshot import IsolationPolicy, Policies, Snapshot, SnapshotInfo
from planner.cluster.tables import TRAFFIC_COLUMNS, BundleTable, TopicTable, make_brokers, make_bundles, make_topics
from planner.cluster.text import count
from planner.cluster.units import DAY_MS, HOUR_MS, KBIT_PER_BYTE
from planner.pulsar.load.top_bundles import with_top_ranks
from planner.pulsar.manager.pairing import default_settings
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.load_model import COUNT_COLUMNS

_TENANTS = ("acme", "globex", "initech", "umbrella", "hooli", "stark", "wayne", "tyrell")
_KINDS = ("orders", "clicks", "telemetry", "audit", "billing", "alerts", "sessions", "inventory", "payments", "search")
_MAX_HEAVY_SHARE = 0.2
_GROUP_SIZE = 4
_JOINED_MS = 600_000


def _namespaces(spec: ClusterSpec) -> tuple[str, ...]:
    count = spec.namespaces or max(1, min(spec.bundles, round(spec.bundles / 100)))
    names = []
    for i in range(count):
        kind = _KINDS[(i // len(_TENANTS)) % len(_KINDS)]
        generation = i // (len(_TENANTS) * len(_KINDS))
        names.append(f"{_TENANTS[i % len(_TENANTS)]}/{kind}{f'-{generation}' if generation else ''}")
    return tuple(names)


def _bundle_ranges(
    spec: ClusterSpec, namespaces: int, rng: np.random.Generator
) -> tuple[IntArray, Int64Array, Int64Array]:
    """Share the bundles out over the namespaces, a few large ones and many small ones, in equal ranges."""
    weights = 1.0 / np.arange(1, namespaces + 1) ** 0.5
    extra = rng.multinomial(spec.bundles - namespaces, weights / weights.sum())
    counts = extra + 1
    low = np.concatenate([np.array(equal_boundaries(int(n))[:-1], dtype=np.int64) for n in counts])
    high = np.roll(low, -1)
    last = np.cumsum(counts) - 1
    high[last] = FULL_HIGH
    return np.repeat(np.arange(namespaces, dtype=np.int32), counts), low, high


def _topic_names(spec: ClusterSpec, namespaces: tuple[str, ...], rng: np.random.Generator) -> tuple[pa.Array, IntArray]:
    """Return full names, and the namespace of each, grouped by namespace."""
    weights = 1.0 / np.arange(1, len(namespaces) + 1) ** 0.7
    counts = rng.multinomial(spec.topics, weights / weights.sum())
    space = np.repeat(np.arange(len(namespaces), dtype=np.int32), counts)
    number = np.arange(spec.topics) - np.repeat(np.cumsum(counts) - counts, counts)
    in_partitioned = number < np.repeat(np.floor(counts * spec.partitioned), counts)
    prefix = pa.array([f"persistent://{n}/" for n in namespaces]).take(pa.array(space))
    whole = pc.binary_join_element_wise(prefix, "topic-", pc.cast(pa.array(number), pa.string()), "")
    parts = pc.binary_join_element_wise(
        prefix,
        "stream-",
        pc.cast(pa.array(number // 8), pa.string()),
        "-partition-",
        pc.cast(pa.array(number % 8), pa.string()),
        "",
    )
    names = pc.if_else(pa.array(in_partitioned), parts, whole).cast(pa.large_string())
    return names.combine_chunks() if isinstance(names, pa.ChunkedArray) else names, space


def _topics(
    spec: ClusterSpec,
    namespaces: tuple[str, ...],
    ranges: tuple[IntArray, Int64Array, Int64Array],
    rng: np.random.Generator,
) -> TopicTable:
    if not spec.topics:
        return make_topics(np.zeros(0, np.uint32))
    names, space = _topic_names(spec, namespaces, rng)
    hashes = topic_hashes(names.cast(pa.large_binary()).to_pylist(), len(names))
    bundle_space, low, _ = ranges
    starts = (bundle_space.astype(np.int64) << 32) | low
    bundle = np.searchsorted(starts, (space.astype(np.int64) << 32) | hashes.astype(np.int64), side="right") - 1
    weight = 1.0 / rng.permutation(np.arange(1, spec.topics + 1)) ** spec.topic_skew
    weight[rng.random(spec.topics) < spec.idle] = 0.0
    weight[space >= len(namespaces) - spec.idle_namespaces] = 0.0
    share = np.minimum(weight / max(weight.sum(), 1e-300), _MAX_HEAVY_SHARE)
    rate_in = np.round(spec.msg_rate_per_s * share, 3)
    size = np.round(spec.message_bytes * rng.lognormal(-0.3, 0.8, spec.topics))
    subscriptions = np.where(weight > 0, rng.poisson(spec.fan_out, spec.topics), 0)
    rate_out = np.round(rate_in * subscriptions, 3)
    return make_topics(
        hashes,
        name=names,
        bundle=bundle.astype(np.int32),
        msg_rate_in_per_s=rate_in,
        msg_rate_out_per_s=rate_out,
        msg_throughput_in_bytes_per_s=np.round(rate_in * size),
        msg_throughput_out_bytes_per_s=np.round(rate_out * size),
        producers=np.where(weight > 0, rng.integers(1, 4, spec.topics), 0),
        consumers=subscriptions * rng.integers(1, 3, spec.topics),
    )


def _sum_by(ids: npt.NDArray[Any], values: npt.NDArray[Any], size: int) -> FloatArray:
    kept = ids >= 0
    sums = np.bincount(ids[kept], weights=values[kept].astype(np.float64), minlength=size)[:size]
    return sums.astype(np.float64)


def _bundles(
    spec: ClusterSpec, ranges: tuple[IntArray, Int64Array, Int64Array], topics: TopicTable, rng: np.random.Generator
) -> BundleTable:
    space, low, high = ranges
    size = len(low)
    weights = rng.dirichlet(np.full(spec.brokers, 1.0 / max(spec.ownership_skew, 0.01) ** 2))
    weights[spec.brokers - spec.joined_brokers :] = 0.0
    if spec.joined_brokers:
        weights /= weights.sum()
    owner = rng.choice(spec.brokers, size, p=weights).astype(np.int32)
    columns: dict[str, Any] = {}
    for name in TRAFFIC_COLUMNS:
        current = np.round(_sum_by(topics.bundle, getattr(topics, name), size), 3)
        columns[name] = current
        columns[f"short_term_{name}"] = np.round(current * rng.normal(1.0, 0.03, size).clip(0.5, 1.5), 3)
        columns[f"long_term_{name}"] = np.round(current * rng.normal(1.0, 0.08, size).clip(0.3, 1.7), 3)
    counts = np.bincount(topics.bundle, minlength=size).astype(np.int64) if len(topics) else np.zeros(size, np.int64)
    loaded = counts > 0
    return make_bundles(
        low,
        high=high,
        namespace=space,
        owner=np.where(loaded, owner, -1),
        has_stats=loaded,
        has_data=loaded,
        topics=counts,
        data_topics=counts,
        producers=_sum_by(topics.bundle, topics.producers, size).astype(np.int64),
        consumers=_sum_by(topics.bundle, topics.consumers, size).astype(np.int64),
        short_term_samples=np.where(loaded, 10, 0),
        long_term_samples=np.where(loaded, rng.integers(50, 1_001, size), 0),
        **columns,
    )


def _broker_columns(spec: ClusterSpec, bundles: BundleTable, rng: np.random.Generator) -> dict[str, Any]:
    size = spec.brokers
    columns: dict[str, Any] = {
        term + name: _sum_by(bundles.owner, getattr(bundles, term + name), size)
        for term in ("", "short_term_", "long_term_")
        for name in TRAFFIC_COLUMNS
    }
    columns |= {name: _sum_by(bundles.owner, getattr(bundles, name), size).astype(np.int64) for name in COUNT_COLUMNS}
    factor = np.where(rng.random(size) < spec.heterogeneity, rng.choice([0.5, 2.0], size), 1.0)
    bytes_in, bytes_out = columns[TRAFFIC_COLUMNS[2]], columns[TRAFFIC_COLUMNS[3]]
    messages = columns[TRAFFIC_COLUMNS[0]] + columns[TRAFFIC_COLUMNS[1]]
    demand = spec.cpu_percent_per_mb_per_s * (bytes_in + bytes_out) / 1e6
    demand = demand + spec.cpu_percent_per_1000_msg_per_s * messages / 1e3 + 5.0
    typical = max(float(np.mean(demand)), 1.0)
    cores = np.maximum(1.0, np.round(typical / 45.0 * factor))
    nic_kbit_per_s = np.maximum(1.0, np.ceil(np.mean(bytes_in + bytes_out) * KBIT_PER_BYTE / 5e5)) * 1e6 * factor
    busiest = np.maximum(bytes_in, bytes_out) * KBIT_PER_BYTE
    nic_kbit_per_s = np.maximum(nic_kbit_per_s, np.ceil(busiest / 0.9 / 1e6) * 1e6)  # nothing runs beyond its NIC
    columns |= {
        "cpu_usage_percent": np.round(np.minimum(demand * rng.normal(1.0, 0.04, size).clip(0.8, 1.2), cores * 99.0), 2),
        "cpu_limit_percent": cores * 100.0,
        "memory_usage_mib": np.round(rng.uniform(0.3, 0.8, size) * 8_192.0),
        "memory_limit_mib": 8_192.0,
        "direct_memory_usage_mib": np.round(rng.uniform(0.1, 0.5, size) * 16_384.0),
        "direct_memory_limit_mib": 16_384.0,
        "bandwidth_in_usage_kbit_per_s": np.round(bytes_in * KBIT_PER_BYTE, 1),
        "bandwidth_in_limit_kbit_per_s": nic_kbit_per_s,
        "bandwidth_out_usage_kbit_per_s": np.round(bytes_out * KBIT_PER_BYTE, 1),
        "bandwidth_out_limit_kbit_per_s": nic_kbit_per_s,
        "reported_bundles": np.bincount(bundles.owner[bundles.owner >= 0], minlength=size).astype(np.int64),
        "updated_at_ms": np.maximum(spec.captured_at_ms - rng.integers(0, 5_000, size), 0),
        "started_at_ms": np.maximum(spec.captured_at_ms - rng.integers(HOUR_MS, 30 * DAY_MS, size), 0),
        "version": (REFERENCE.name,) * size,
    }
    columns["started_at_ms"][size - spec.joined_brokers :] = max(spec.captured_at_ms - _JOINED_MS, 0)
    return columns


def generate(spec: ClusterSpec, seed: int) -> Snapshot:
    """Generate a cluster; the same specification and seed give the same one.

    Raises:
        SettingError: The specification is out of bounds, or the seed is negative.
    """
    spec.check()
    if seed < 0:
        raise SettingError(f"{seed} is not a valid seed.", where="seed", remedy="Use a whole number of 0 or more.")
    rng = np.random.default_rng(seed)
    namespaces = _namespaces(spec)
    ranges = _bundle_ranges(spec, len(namespaces), rng)
    topics = _topics(spec, namespaces, ranges, rng)
    bundles = _bundles(spec, ranges, topics, rng)
    columns = _broker_columns(spec, bundles, rng)
    names = tuple(f"broker-{i:0{len(str(spec.brokers))}d}.{spec.cluster}.example:8080" for i in range(spec.brokers))
    if spec.load_manager is LoadManager.EXTENSIBLE:
        throughput = columns[TRAFFIC_COLUMNS[2]] + columns[TRAFFIC_COLUMNS[3]]
        usage = columns["cpu_usage_percent"] / columns["cpu_limit_percent"]
        columns["weighted_max_ema"] = np.round(usage * rng.normal(1.0, 0.02, spec.brokers), 6).clip(0)
        columns["msg_throughput_ema_bytes_per_s"] = np.round(throughput * rng.normal(1.0, 0.02, spec.brokers), 1).clip(
            0
        )
    isolation = tuple(
        IsolationPolicy(
            name=f"isolate-{name.replace('/', '-')}",
            namespaces=(name,),
            primary=(rf"broker-0*{i % spec.brokers}\..*",),
            secondary=(r"broker-.*",),
        )
        for i, name in enumerate(namespaces[: spec.isolated_namespaces])
    )
    snapshot = Snapshot(
        info=SnapshotInfo(
            cluster=spec.cluster,
            load_manager=spec.load_manager,
            captured_at_ms=spec.captured_at_ms,
            leader=names[0],
            source=f"Generated, seed {seed}",
            description=(
                f"{count(spec.brokers, 'broker')}, {count(len(bundles), 'bundle')} in"
                f" {count(len(namespaces), 'namespace')}, {count(spec.topics, 'topic')}; not a real cluster."
            ),
        ),
        settings=default_settings(spec.load_manager),
        brokers=make_brokers(names, **columns),
        namespaces=namespaces,
        bundles=bundles,
        topics=topics,
        policies=Policies(
            isolation=isolation,
            anti_affinity_group={
                name: f"group-{i // _GROUP_SIZE}" for i, name in enumerate(namespaces[: spec.anti_affinity_namespaces])
            },
        ),
    )
    return with_top_ranks(snapshot, snapshot.settings) if spec.load_manager is LoadManager.EXTENSIBLE else snapshot
