"""The top bundles that a broker of the extensible load manager reports: the only ones its peers can move.

Mirrors `TopKBundles` and `NamespaceBundleStats.compareTo` of Pulsar 4.2.4, ties included.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np

from planner.cluster.arrays import BoolArray, FloatArray, Int64Array, IntArray, frozen
from planner.cluster.hashing import hash_map_buckets, hash_map_order, hash_map_size
from planner.cluster.internal_namespaces import is_never_reported
from planner.cluster.java import ContradictoryOrderError, tim_sort
from planner.cluster.names import (
    MAX_NUMBER_OF_BUNDLES_IN_BUNDLE_LOAD_REPORT,
    SHEDDING_BUNDLES_WITH_POLICIES_ENABLED,
    SHEDDING_EXCLUDED_NAMESPACES,
)
from planner.cluster.once import once
from planner.cluster.releases import Switch
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Policies, Snapshot
from planner.cluster.tables import BundleTable
from planner.pulsar.load.namespace_policies import policy_gate

IDLE_BUNDLES = Switch(
    "Bundles without traffic are reported among the top bundles, and move like others.",
    until="4.0.1",
    backported=("3.3.5",),
)
ROUGH_ORDER = Switch(
    "The report orders bundles by differences above a step, not by rounded values, so b can equal both a "
    "and c although a is below c.",
    until="4.0.7",
)
_DECIDE = (
    SHEDDING_BUNDLES_WITH_POLICIES_ENABLED,
    SHEDDING_EXCLUDED_NAMESPACES,
    MAX_NUMBER_OF_BUNDLES_IN_BUNDLE_LOAD_REPORT,
)
"""Settings that decide which bundles a broker reports."""
_THROUGHPUT_STEP = 1e5
_RATE_STEP = 100.0
_CONNECTIONS_STEP = 500
_CACHE_STEP = 100_000
_STEPS = (_THROUGHPUT_STEP, _THROUGHPUT_STEP, _RATE_STEP, _CONNECTIONS_STEP, _CACHE_STEP)


@dataclass(frozen=True)
class StatisticsMap:
    """What is known of the map in which a broker keeps the statistics of its bundles.

    Attributes:
        since_ms: When the broker started.
        most: How many bundles it had when it had most: a map never shrinks.
        came_ms: When each was first seen there, by name. Those seen at once, and not seen, come in their own order.
    """

    since_ms: int = 0
    most: int = 0
    came_ms: Mapping[str, int] = field(default_factory=dict)


_UNKNOWN = StatisticsMap()
_NOTHING: Mapping[str, StatisticsMap] = MappingProxyType({})


def _java_round(values: FloatArray) -> FloatArray:
    """Round half up without the error of adding 0.5 first, as `Math.round` does: to a `long`, NaN to 0."""
    low = np.floor(values)
    rounded: FloatArray = np.nan_to_num(low + (values - low >= 0.5))  # noqa: PLR2004 - one half
    return np.clip(rounded, -(2.0**63), 2.0**63)


class _Rough:
    """What a bundle is ordered by in releases with `ROUGH_ORDER`: rates, counts and size, each in steps."""

    __slots__ = ("steps",)

    def __init__(self, steps: tuple[float, ...]) -> None:
        self.steps = steps

    def against(self, other: "_Rough") -> float:
        """Return which is heavier, by the first part that differs by more than one step: above 0 when this one is."""
        parts = zip(self.steps, other.steps, _STEPS, strict=True)
        return next((1 if mine > theirs else -1 for mine, theirs, step in parts if abs(mine - theirs) > step), 0)

    def __gt__(self, other: "_Rough") -> bool:
        return self.against(other) > 0

    def __lt__(self, other: "_Rough") -> bool:
        return self.against(other) < 0


def _rough_keys(bundles: BundleTable, rows: Int64Array) -> list[_Rough]:
    columns = (
        bundles.msg_throughput_in_bytes_per_s[rows],
        bundles.msg_throughput_out_bytes_per_s[rows],
        bundles.msg_rate_per_s(rows),
        bundles.topics[rows] + bundles.consumers[rows] + bundles.producers[rows],
        bundles.cache_size_bytes[rows],
    )
    return [_Rough(steps) for steps in zip(*(column.tolist() for column in columns), strict=True)]


def load_keys(bundles: BundleTable, rows: Int64Array | None = None) -> Int64Array:
    """Return the place of each bundle among all by load; bundles that Pulsar takes for equally loaded share one.

    Compared one after the other: throughput in and out, each rounded to 100 kB/s, message rate rounded to 100 msg/s,
    topics + producers + consumers in steps of 500, cache size in steps of 100 kB. Shape (bundles,); greater is heavier.

    Args:
        bundles: The bundles.
        rows: Positions of those to compare, all of them when None.
    """
    at = slice(None) if rows is None else rows
    columns = (
        _java_round(bundles.msg_throughput_in_bytes_per_s[at] / _THROUGHPUT_STEP),
        _java_round(bundles.msg_throughput_out_bytes_per_s[at] / _THROUGHPUT_STEP),
        _java_round(bundles.msg_rate_per_s(at) / _RATE_STEP),
        np.trunc((bundles.topics[at] + bundles.consumers[at] + bundles.producers[at]) / _CONNECTIONS_STEP),
        np.trunc(bundles.cache_size_bytes[at] / _CACHE_STEP),
    )
    if not len(columns[0]):
        return np.zeros(0, dtype=np.int64)
    order = np.lexsort(columns[::-1])
    changes = np.zeros(len(order), dtype=bool)
    for column in columns:
        ordered = column[order]
        changes[1:] |= ordered[1:] != ordered[:-1]
    keys = np.empty(len(order), dtype=np.int64)
    keys[order] = np.cumsum(changes)
    return keys


def partition_top(keys: Sequence[Any], count: int) -> list[int]:
    """Return the positions of the `count` greatest keys, greatest first.

    Which ones of equal keys are taken, and in which order, is as Pulsar's quick select leaves them: the last key of the
    open part is the pivot, the part is cut into greater, equal and smaller keys, and the side that holds the boundary
    stays open. What stands before the boundary is sorted in the end, stably.

    Raises:
        ContradictoryOrderError: Keys contradict each other, and Java's sort notices.

    Args:
        keys: The keys, in the order in which the map of statistics is visited: numbers, or `_Rough`.
        count: How many to take; all when there are fewer.
    """
    count = min(count, len(keys))
    if count <= 0:
        return []
    where = list(range(len(keys)))
    first, last = 0, len(where) - 1
    while first < last:
        pivot = keys[where[last]]
        greater, at, smaller = first, first, last
        while at <= smaller:
            key = keys[where[at]]
            if key > pivot:
                where[greater], where[at] = where[at], where[greater]
                greater, at = greater + 1, at + 1
            elif key < pivot:
                where[at], where[smaller] = where[smaller], where[at]
                smaller -= 1
            else:
                at += 1
        if greater < count <= at:
            last = greater
            break
        first, last = (first, greater - 1) if count <= greater else (at, last)
    head = where[:last]
    if keys and isinstance(keys[0], _Rough):
        head = tim_sort(head, lambda one, other: keys[other].against(keys[one]))
    else:
        head.sort(key=lambda position: -keys[position])
    return [*head, *where[last:count]]


class _Same:
    """Stands for an object in a cache: equal to itself alone."""

    __slots__ = ("it",)

    def __init__(self, it: Policies) -> None:
        self.it = it

    def __hash__(self) -> int:
        return id(self.it)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.it is other.it


@lru_cache(maxsize=16)
def _reportable(policies: _Same, namespaces: tuple[str, ...], config: Settings) -> BoolArray:
    """Say of which namespaces bundles are reported. Shape (namespaces,)."""
    excluded = set(config.names(SHEDDING_EXCLUDED_NAMESPACES))
    with_policies = config.flag(SHEDDING_BUNDLES_WITH_POLICIES_ENABLED)
    allowed = [
        not is_never_reported(name, config.release)
        and name not in excluded
        and (with_policies or policy_gate(policies.it, name) is None)
        for name in namespaces
    ]
    return frozen(np.array(allowed or [False], dtype=np.bool_))


def _eligible(snapshot: Snapshot, config: Settings, rows: Int64Array) -> BoolArray:
    bundles = snapshot.bundles
    traffic = bundles.throughput_bytes_per_s(rows)
    reportable = _reportable(_Same(snapshot.policies), snapshot.namespaces, config)
    busy = (traffic != 0) | config.release.has(IDLE_BUNDLES)
    allowed: BoolArray = reportable[bundles.namespace[rows]] & bundles.has_stats[rows] & busy
    return allowed


@lru_cache(maxsize=1 << 12)
def _visited(hashes: bytes, most: int) -> Int64Array:
    """Return the order in which a broker visits the statistics of its bundles; the same as long as none comes or goes.

    Args:
        hashes: `String.hashCode` of their names, 32 bits each.
        most: How many it had when it had most.
    """
    keys = np.frombuffer(hashes, dtype=np.int32)
    return frozen(hash_map_order(keys, hash_map_size(max(len(keys), most), concurrent=True), concurrent=True))


def top_bundles(
    snapshot: Snapshot,
    config: Settings,
    brokers: Iterable[int] | None = None,
    maps: Mapping[str, StatisticsMap] = _NOTHING,
) -> tuple[tuple[int, ...], ...]:
    """Return what each broker reports: positions of its top bundles, lightest first.

    Left out are bundles without traffic (see `IDLE_BUNDLES`), of system, heartbeat and SLA namespaces, of
    `loadBalancerSheddingExcludedNamespaces`, and of namespaces with an isolation or anti-affinity policy unless
    `loadBalancerSheddingBundlesWithPoliciesEnabled` is set. Of the others, the
    `loadBalancerMaxNumberOfBundlesInBundleLoadReport` heaviest are taken.

    The statistics of a broker stand in a `ConcurrentHashMap`; its order decides between equally loaded bundles.

    Args:
        snapshot: The cluster.
        config: Settings in force.
        brokers: Positions of the brokers to ask; all of them when None.
        maps: What is known of the maps of brokers, by broker id.
    """
    count = config.integer(MAX_NUMBER_OF_BUNDLES_IN_BUNDLE_LOAD_REPORT)
    hashes, rough = snapshot.bundle_name_hashes, config.release.has(ROUGH_ORDER)

    def report(broker: int, owned: Int64Array, eligible: BoolArray, keys: Int64Array) -> tuple[int, ...]:
        known = maps.get(snapshot.brokers.name[broker], _UNKNOWN)
        listed = np.flatnonzero(snapshot.bundles.has_stats[owned])
        if known.came_ms:
            names = map(snapshot.bundle_names.__getitem__, owned[listed].tolist())
            came_ms = [known.came_ms.get(name, known.since_ms) for name in names]
            listed = listed[np.argsort(came_ms, kind="stable")]
        visited = listed[_visited(hashes[owned[listed]].tobytes(), known.most)]
        visited = visited[eligible[visited]]
        if rough:
            try:
                top = partition_top(_rough_keys(snapshot.bundles, owned[visited]), count)
            except ContradictoryOrderError:  # Pulsar's report fails
                top = []
        else:
            top = partition_top(keys[visited].tolist(), count)
        return tuple(owned[visited[top[::-1]]].tolist())

    asked = range(len(snapshot.brokers)) if brokers is None else list(brokers)
    mine = [snapshot.bundles_of(broker) for broker in asked]
    rows = np.concatenate(mine) if mine else np.zeros(0, dtype=np.int64)
    ends = np.cumsum([len(owned) for owned in mine], dtype=np.int64)[:-1]
    keys, eligible = load_keys(snapshot.bundles, rows), _eligible(snapshot, config, rows)
    parts = zip(asked, mine, np.split(eligible, ends), np.split(keys, ends), strict=True) if mine else ()
    return tuple(report(*part) for part in parts)


def reported_under(snapshot: Snapshot, now: Settings, then: Settings) -> Snapshot:
    """Return a snapshot with `top_rank` as brokers report under other settings; itself where these make no difference.

    Args:
        snapshot: The cluster, with the reports of its settings.
        now: Settings under which they were made.
        then: Settings in force.
    """
    one, other = _reporting(now), _reporting(then)
    return snapshot if one == other else _reported(snapshot, one, other)


@once
def _reported(snapshot: Snapshot, now: Settings, then: Settings) -> Snapshot:
    rows = np.arange(len(snapshot.bundles))
    alike = np.array_equal(_eligible(snapshot, now, rows), _eligible(snapshot, then, rows))
    alike = (
        alike and now[MAX_NUMBER_OF_BUNDLES_IN_BUNDLE_LOAD_REPORT] == then[MAX_NUMBER_OF_BUNDLES_IN_BUNDLE_LOAD_REPORT]
    )
    alike = alike and now.release.has(ROUGH_ORDER) == then.release.has(ROUGH_ORDER)
    return snapshot if alike else with_top_ranks(snapshot, then)


def _reporting(config: Settings) -> Settings:
    """Return settings without those that decide nothing about reports, so that others are told apart."""
    return Settings({name: config[name] for name in _DECIDE if name in config}, config.release)


def undecided(
    snapshot: Snapshot, config: Settings, maps: Mapping[str, StatisticsMap] = _NOTHING
) -> tuple[tuple[int, int], ...]:
    """Return pairs of equally loaded bundles of one broker that share a bucket of its map.

    Which of two is the heavier one decides the order in which they came to the broker, which no capture tells.

    Args:
        snapshot: The cluster.
        config: Settings in force.
        maps: See `top_bundles`.
    """
    found: list[tuple[int, int]] = []
    for broker, name in enumerate(snapshot.brokers.name):
        owned = snapshot.bundles_of(broker)
        listed = owned[snapshot.bundles.has_stats[owned]]
        size = hash_map_size(max(len(listed), maps.get(name, _UNKNOWN).most), concurrent=True)
        mine = listed[_eligible(snapshot, config, listed)]
        keys, buckets = load_keys(snapshot.bundles, mine), hash_map_buckets(snapshot.bundle_name_hashes[mine], size)
        alike = (keys[:, None] == keys) & (buckets[:, None] == buckets)
        found += [(int(mine[i]), int(mine[j])) for i, j in np.argwhere(np.triu(alike, 1)).tolist()]
    return tuple(found)


def with_top_ranks(
    snapshot: Snapshot,
    config: Settings,
    brokers: Collection[int] | None = None,
    maps: Mapping[str, StatisticsMap] = _NOTHING,
) -> Snapshot:
    """Return the snapshot with `top_rank` as brokers would report it next; nothing else changes.

    Args:
        snapshot: The cluster.
        config: Settings in force.
        brokers: Positions of the brokers that report; all of them when None. What the others reported stays.
        maps: See `top_bundles`.
    """
    rank: IntArray = snapshot.bundles.top_rank.copy()
    asked = np.zeros(len(snapshot.brokers) + 1, dtype=np.bool_)  # the last one is nobody
    asked[slice(None) if brokers is None else list(brokers)] = True
    rank[asked[snapshot.bundles.owner]] = -1
    for report in top_bundles(snapshot, config, brokers, maps):
        rank[list(report)] = np.arange(len(report), dtype=np.int32)
    return snapshot.with_columns(bundles=replace(snapshot.bundles, top_rank=frozen(rank)))
