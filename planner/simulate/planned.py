"""A cluster that does not exist yet: machines and topics as described, bundles placed as Pulsar would place them.

Topics are named by a pattern and hashed into bundles as Pulsar does. Every bundle is then looked up on empty brokers,
one after the other, by the placement strategy of the release; nothing is known of their load at that moment, as after
the start of a real cluster. Usage follows the traffic by the two costs of CPU that the description states.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from planner.cluster.arrays import FloatArray, Int64Array
from planner.cluster.errors import SettingError
from planner.cluster.hashing import topic_hashes
from planner.cluster.load_manager import LoadManager
from planner.cluster.ranges import bundles_of_hashes, equal_boundaries
from planner.cluster.releases import release
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot, SnapshotInfo
from planner.cluster.tables import TRAFFIC_COLUMNS, BundleTable, TopicTable, make_brokers, make_bundles, make_topics
from planner.cluster.text import count
from planner.cluster.topic_names import namespace_of_topic
from planner.cluster.units import KBIT_PER_BYTE, KBIT_PER_GBIT
from planner.pulsar.load.top_bundles import with_top_ranks
from planner.pulsar.manager.pairing import default_settings
from planner.simulate.planned_spec import EXPONENTS, PlannedCluster, PlannedTopics, names_of
from planner.simulate.run import Simulation
from planner.simulate.scenario import unchanged

_IDLE_CPU_PERCENT = 5.0
_MEMORY_SHARE = 0.4


def plan_cluster(spec: PlannedCluster, seed: int = 0) -> Snapshot:
    """Return a cluster as described; the same description and seed give the same one.

    Raises:
        SettingError: The description is out of bounds.
        FormatError: A pattern is not a topic name.
    """
    spec.check()
    decides = release(spec.pulsar_version)
    config = Settings(default_settings(spec.load_manager).overrides, decides)
    topics, namespaces, bundles = _topics_and_bundles(spec, np.random.default_rng(seed))
    names = tuple(f"planned-{at:0{len(str(spec.brokers))}d}:8080" for at in range(spec.brokers))
    info = SnapshotInfo(
        cluster=spec.cluster,
        load_manager=spec.load_manager,
        captured_at_ms=spec.captured_at_ms,
        pulsar_version=spec.pulsar_version,
        leader=names[0],
        source="Planned",
        description=(
            f"Planned, not a real cluster: {count(spec.brokers, 'broker')}, {count(len(bundles), 'bundle')}, "
            f"{count(len(topics), 'topic')}. Bundles are placed as Pulsar {decides.name} places them on empty brokers."
        ),
        warnings=(
            (
                "This cluster is planned. No broker was measured: usage follows from the traffic by "
                f"{spec.cpu_percent_per_mb_per_s:g} % of a core for 1,000,000 bytes per second and "
                f"{spec.cpu_percent_per_1000_msg_per_s:g} % for 1,000 msg/s."
            ),
        ),
    )
    idle = make_brokers(names, **_machines(spec, np.zeros((len(TRAFFIC_COLUMNS), spec.brokers))))
    start = Snapshot(info=info, settings=config, brokers=idle, namespaces=namespaces, bundles=bundles, topics=topics)
    running = Simulation([start], unchanged(spec.pulsar_version, seed=seed))
    try:
        running.look_up(np.arange(len(bundles)), running.now)
        owner = running.cluster.owner.copy()
    finally:
        running.close()
    return _with_owners(spec, start, owner)


def _topics_and_bundles(
    spec: PlannedCluster, rng: np.random.Generator
) -> tuple[TopicTable, tuple[str, ...], BundleTable]:
    """Return topics with rates, namespaces, and bundles that no broker owns."""
    cuts: dict[str, Int64Array] = {}
    names: list[str] = []
    spaces: list[str] = []
    rates: list[FloatArray] = []
    for group in spec.topics:
        found = names_of(group)
        namespace = namespace_of_topic(found[0], release(spec.pulsar_version))
        edges = np.array(equal_boundaries(group.bundles), dtype=np.int64)
        if len(edges) != len(cuts.setdefault(namespace, edges)):
            raise SettingError(
                f"Two groups of {namespace} have {len(cuts[namespace]) - 1:,} and {group.bundles:,} bundles.",
                where="bundles",
                remedy="Use one number for all groups of a namespace.",
            )
        names += found
        spaces += [namespace] * len(found)
        rates.append(rates_of(group, rng))
    if len(set(names)) < len(names):
        raise SettingError("Two groups name the same topic.", where="pattern", remedy="Use another pattern.")
    namespaces = tuple(cuts)
    first = np.concatenate(([0], np.cumsum([len(edges) - 1 for edges in cuts.values()])))
    hashes = topic_hashes((name.encode() for name in names), len(names))
    place = {name: at for at, name in enumerate(namespaces)}
    of_topic = np.array([place[name] for name in spaces], dtype=np.int64)
    inside = np.empty(len(names), dtype=np.int64)
    for at, edges in enumerate(cuts.values()):
        rows = np.flatnonzero(of_topic == at)
        inside[rows] = first[at] + np.minimum(bundles_of_hashes(edges, hashes[rows].astype(np.int64)), len(edges) - 2)
    columns, producers, consumers = _columns(spec, np.concatenate(rates))
    topics = make_topics(
        hashes,
        name=pa.array(names, type=pa.large_string()),
        bundle=inside.astype(np.int32),
        producers=producers,
        consumers=consumers,
        **columns,
    )
    low = np.concatenate([edges[:-1] for edges in cuts.values()])
    high = np.concatenate([edges[1:] for edges in cuts.values()])
    counts = np.bincount(inside, minlength=len(low))
    bundles = make_bundles(
        low,
        high=high,
        namespace=np.repeat(np.arange(len(namespaces)), [len(edges) - 1 for edges in cuts.values()]),
        owner=np.full(len(low), -1),
        topics=counts,
        producers=np.bincount(inside, weights=producers, minlength=len(low)).astype(np.int64),
        consumers=np.bincount(inside, weights=consumers, minlength=len(low)).astype(np.int64),
        **{name: np.bincount(inside, weights=values, minlength=len(low)) for name, values in columns.items()},
    )
    return topics, namespaces, bundles


def rates_of(group: PlannedTopics, rng: np.random.Generator) -> FloatArray:
    """Return the messages per second that are published to each topic of a group. Shape (topics,)."""
    weight = 1.0 / rng.permutation(np.arange(1, group.count + 1)) ** EXPONENTS[group.distribution]
    rates: FloatArray = np.round(group.msg_rate_per_s * weight / weight.sum(), 6)
    return rates


def _columns(spec: PlannedCluster, rate: FloatArray) -> tuple[dict[str, FloatArray], Int64Array, Int64Array]:
    sizes = [one.count for one in spec.topics]
    subscriptions = np.repeat(np.array([one.subscriptions for one in spec.topics], dtype=np.int64), sizes)
    size_bytes = np.repeat(np.array([one.message_bytes for one in spec.topics], dtype=np.float64), sizes)
    out = rate * subscriptions
    values = (rate, out, rate * size_bytes, out * size_bytes)
    producers = np.ones(len(rate), dtype=np.int64)
    return dict(zip(TRAFFIC_COLUMNS, values, strict=True)), producers, subscriptions


def _machines(spec: PlannedCluster, traffic: FloatArray) -> dict[str, Any]:
    """Return the columns of brokers with traffic: rows in the order of `TRAFFIC_COLUMNS`. Shape (4, brokers)."""
    limit, nic = spec.cores * 100.0, spec.nic_gbit_per_s * KBIT_PER_GBIT
    mib = 1_024.0
    return {
        **dict(zip(TRAFFIC_COLUMNS, traffic, strict=True)),
        "cpu_usage_percent": np.minimum(_cpu_percent(spec, traffic), limit),
        "cpu_limit_percent": limit,
        "memory_usage_mib": _MEMORY_SHARE * spec.memory_gib * mib,
        "memory_limit_mib": spec.memory_gib * mib,
        "direct_memory_usage_mib": 0.0,
        "direct_memory_limit_mib": spec.direct_memory_gib * mib,
        "bandwidth_in_usage_kbit_per_s": np.minimum(traffic[2] * KBIT_PER_BYTE, nic),
        "bandwidth_in_limit_kbit_per_s": nic,
        "bandwidth_out_usage_kbit_per_s": np.minimum(traffic[3] * KBIT_PER_BYTE, nic),
        "bandwidth_out_limit_kbit_per_s": nic,
        "updated_at_ms": spec.captured_at_ms,
        "version": (spec.pulsar_version,) * spec.brokers,
    }


def _overloaded(spec: PlannedCluster, traffic: FloatArray) -> int:
    """Return how many brokers would need more than they have."""
    cpu = _cpu_percent(spec, traffic) > spec.cores * 100.0
    network = traffic[2:].max(axis=0) * KBIT_PER_BYTE > spec.nic_gbit_per_s * KBIT_PER_GBIT
    return int(np.count_nonzero(cpu | network))


def _cpu_percent(spec: PlannedCluster, traffic: FloatArray) -> FloatArray:
    messages, size_bytes = traffic[0] + traffic[1], traffic[2] + traffic[3]
    cpu = spec.cpu_percent_per_mb_per_s * size_bytes / 1e6 + spec.cpu_percent_per_1000_msg_per_s * messages / 1e3
    idle: FloatArray = cpu + _IDLE_CPU_PERCENT * spec.cores
    return idle


def _with_owners(spec: PlannedCluster, start: Snapshot, owner: Int64Array) -> Snapshot:
    """Return a cluster whose brokers report the bundles that they own."""
    bundles, owned = start.bundles, owner >= 0

    def by_broker(values: Any) -> FloatArray:
        weights = np.asarray(values, dtype=np.float64)[owned]
        return np.bincount(owner[owned], weights=weights, minlength=spec.brokers).astype(np.float64)

    traffic = np.array([by_broker(getattr(bundles, name)) for name in TRAFFIC_COLUMNS])
    counts = {name: by_broker(getattr(bundles, name)).astype(np.int64) for name in ("topics", "producers", "consumers")}
    brokers = make_brokers(
        start.brokers.name,
        **_machines(spec, traffic),
        **counts,
        **{f"{term}_term_{n}": t for term in ("short", "long") for n, t in zip(TRAFFIC_COLUMNS, traffic, strict=True)},
        reported_bundles=by_broker(np.ones(len(owner))).astype(np.int64),
    )
    current = {name: getattr(bundles, name) for name in TRAFFIC_COLUMNS}
    table = make_bundles(
        bundles.low,
        high=bundles.high,
        namespace=bundles.namespace,
        owner=owner.astype(np.int32),
        has_stats=owned,
        has_data=owned,
        topics=bundles.topics,
        data_topics=bundles.topics,
        producers=bundles.producers,
        consumers=bundles.consumers,
        short_term_samples=np.where(owned, 10, 0),
        long_term_samples=np.where(owned, 1_000, 0),
        **current,
        **{f"{term}_term_{name}": values for term in ("short", "long") for name, values in current.items()},
    )
    made = start.with_columns(brokers=brokers, bundles=table)
    if over := _overloaded(spec, traffic):
        all_of_them = count(spec.brokers, "broker")
        warning = f"The traffic needs more than {over:,} of {all_of_them} can serve. Usage is shown as 100 %."
        made = replace(made, info=replace(made.info, warnings=(*made.info.warnings, warning)))
    return with_top_ranks(made, made.settings) if spec.load_manager is LoadManager.EXTENSIBLE else made
