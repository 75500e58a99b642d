"""A snapshot: what a cluster's brokers, bundles and topics look like at one moment.

Frozen and columnar (`planner.cluster.tables`), with the settings, the policies, and where it comes from.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import ConfigDict, Field

from planner.cluster.arrays import BoolArray, FloatArray, Int64Array, IntArray, frozen, sorted_places
from planner.cluster.hashing import (
    grouped_map_order,
    hash_map_buckets,
    hash_map_order,
    hash_map_size,
    java_string_hashes,
)
from planner.cluster.internal_namespaces import is_never_shed
from planner.cluster.load_manager import LoadManager
from planner.cluster.moments import LAST_MS
from planner.cluster.ranges import bundle_name
from planner.cluster.releases import REFERENCE, Release
from planner.cluster.releases import release as named
from planner.cluster.settings import Settings
from planner.cluster.tables import BrokerTable, BundleTable, TopicTable, broker_map_order

MAX_NAME = 4_096
"""Most characters of a name."""

MAX_TEXT = 10_000
"""Most characters of a text."""

MAX_NOTES = 10_000
"""Most notes of a snapshot."""

MAX_VERSION = 50
"""Most characters of the version of a cluster."""

Name = Annotated[str, Field(min_length=1, max_length=MAX_NAME)]
"""A name, never empty."""

Text = Annotated[str, Field(max_length=MAX_TEXT)]
"""Free text, possibly empty."""

Int = Annotated[int, Field(ge=-(2**31), lt=2**31)]
"""A Java `int`."""

_EXACT = ConfigDict(extra="forbid", strict=True)


@dataclass(frozen=True, slots=True)
class IsolationPolicy:
    """A namespace isolation policy of the cluster.

    Attributes:
        name: Its name.
        namespaces: Regular expressions; one must match a whole `tenant/namespace`.
        primary: Regular expressions of broker hosts, without port.
        secondary: The same for the brokers used while fewer than `min_limit` primaries are there.
        min_limit: Parameter of the `min_available` failover policy.
        usage_threshold_percent: Its other parameter; Pulsar 4.2.4 does not read it for placement.
    """

    __pydantic_config__ = _EXACT

    name: Name
    namespaces: tuple[Text, ...]
    primary: tuple[Text, ...]
    secondary: tuple[Text, ...] = ()
    min_limit: Int = 1
    usage_threshold_percent: Int = 100


@dataclass(frozen=True, slots=True)
class DispatchRate:
    """A dispatch limit as a policy states it; a rate <= 0 is no limit in that dimension."""

    __pydantic_config__ = _EXACT

    msg_per_period: Int = -1
    bytes_per_period: Annotated[int, Field(ge=-(2**63), lt=2**63)] = -1
    period_s: Int = 1
    relative_to_publish_rate: bool = False


@dataclass(frozen=True, slots=True)
class DispatchRatePolicy:
    """A dispatch limit and what it applies to.

    Attributes:
        kind: `dispatch` (all subscriptions of a topic), `subscription` (each subscription) or `replicator`.
        target: Namespace `tenant/namespace`, or a full topic name without `-partition-N`.
        rate: The limit.
        subscription: The one subscription it names; empty for all.
        is_global: A global topic policy rather than a local one.
    """

    __pydantic_config__ = _EXACT

    kind: Literal["dispatch", "subscription", "replicator"]
    target: Name
    rate: DispatchRate
    subscription: Text = ""
    is_global: bool = False


@dataclass(frozen=True, slots=True)
class Policies:
    """Everything that restricts where bundles may go and how fast they are dispatched.

    Attributes:
        isolation: Isolation policies in the order of the cluster's map; the first that matches a namespace counts.
        anti_affinity_group: Group of a namespace, by `tenant/namespace`.
        failure_domains: Brokers of each failure domain.
        dispatch_rates: Dispatch limits of namespaces and topics.
    """

    __pydantic_config__ = _EXACT

    isolation: tuple[IsolationPolicy, ...] = ()
    anti_affinity_group: Mapping[str, Name] = field(default_factory=dict)
    failure_domains: Mapping[str, tuple[Name, ...]] = field(default_factory=dict)
    dispatch_rates: tuple[DispatchRatePolicy, ...] = ()


@dataclass(frozen=True, slots=True)
class SnapshotInfo:
    """Where a snapshot comes from.

    Attributes:
        cluster: Name of the cluster.
        load_manager: Which load manager it runs.
        captured_at_ms: The moment, in ms since 1970; the clock of every decision about this snapshot.
        pulsar_version: Version of its brokers, such as `4.2.4`.
        leader: Broker id of the leader (or channel owner); empty unknown.
        source: What it was made from, one line for people.
        description: What there is to see in it, for people; may be empty.
        warnings: What is missing, estimated or odd, one sentence each; pages show them.
        leader_since_ms: When the leader was elected, by the clock of the metadata store; 0 unknown.
        taken_ms: Bundles that a broker took shortly before, and when, by the same clock.
        leader_metrics: What the leader's metrics say of its strategy since that broker started; empty unknown:
            `unloaded` bundles, and of the extensible load manager cycles without an unload by `Skip/reason`, and
            `load_avg` and `load_std` of the last one (1.0 = 100 %).
        averages_written_ms: When the leader wrote the averages of bundles last, by the clock of the metadata store; 0
            unknown.
        settings_from: Where the settings come from: `brokers` were asked and answered; `defaults` of the release, as
            the brokers' settings could not be read; empty unknown.
        dynamic_settings: Overrides of `broker.conf` in the dynamic configuration, as Pulsar keeps them, by name; None
            unknown. Only settings the planner knows.
    """

    __pydantic_config__ = _EXACT

    cluster: Name
    load_manager: LoadManager
    captured_at_ms: Annotated[int, Field(ge=0, le=LAST_MS)]
    pulsar_version: Annotated[str, Field(max_length=MAX_VERSION)] = REFERENCE.name
    leader: Annotated[str, Field(max_length=MAX_NAME)] = ""
    source: Text = ""
    description: Text = ""
    warnings: Annotated[tuple[Text, ...], Field(max_length=MAX_NOTES)] = ()
    leader_since_ms: Annotated[int, Field(ge=0, lt=2**53)] = 0
    taken_ms: Annotated[Mapping[Name, Annotated[int, Field(ge=0, lt=2**53)]], Field(max_length=10_000)] = field(
        default_factory=dict
    )
    leader_metrics: Annotated[
        Mapping[Name, Annotated[float, Field(ge=0, lt=2**53, allow_inf_nan=False)]], Field(max_length=100)
    ] = field(default_factory=dict)
    averages_written_ms: Annotated[int, Field(ge=0, lt=2**53)] = 0
    settings_from: Literal["", "brokers", "defaults"] = ""
    dynamic_settings: Annotated[Mapping[Name, Text], Field(max_length=1_000)] | None = None


@lru_cache(maxsize=64)
def _never_shed(namespaces: tuple[str, ...], release: Release, version: str) -> BoolArray:
    """Return of which namespaces a cluster of some version never sheds bundles by a release. Shape (namespaces or 1,).

    Names with a cluster, of heartbeats up to 4.0.8, are none to newer releases, whose brokers never make them.
    """
    own = named(version)
    stays = (is_never_shed(n, release) or (n.count("/") > 1 and is_never_shed(n, own)) for n in namespaces)
    return frozen(np.array([*stays] or [False]))


@dataclass(frozen=True, eq=False, slots=True)
class KnownLoad:
    """What machines use by themselves, and what each bundle adds, as a simulation left it; no source tells it.

    A snapshot tells the usage of a machine as a whole. To share it out anew, by traffic, after bundles have moved would
    give each bundle another part than the simulation had moved along with it.

    Attributes:
        machines: CPU (percent of one core), bandwidth in and out (kbit/s) of machines without bundles. Shape
            (3, brokers).
        bundles: What each bundle adds to its broker, likewise, also beyond what the machine has. Shape (3, bundles).
    """

    machines: FloatArray
    bundles: FloatArray


_RANGES = ("namespace", "low", "high")
_FOLLOWS_FROM: Mapping[str, tuple[str, ...]] = {
    "bundle_names": _RANGES,
    "bundle_position": _RANGES,
    "bundle_name_hashes": _RANGES,
    "_shedding_ranks": (*_RANGES, "has_data"),
    "_owned": ("owner",),
    "_in_namespaces": ("namespace",),
    "reported": (*_RANGES, "has_stats", "owner"),
}
"""Cached properties of a snapshot, and the columns of its bundles that each depends on."""


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A cluster at one moment; see the module.

    Attributes:
        info: Where it comes from.
        settings: Settings in force.
        brokers: The brokers.
        namespaces: Names `tenant/namespace`; bundles refer to them by position.
        bundles: The bundles.
        topics: The topics; an empty table when the source does not list them.
        policies: Isolation, anti-affinity and dispatch policies.
        most_brokers: How many brokers the leader's maps held at once, where that were more than now: such a map never
            shrinks, and visits what is left in another order. No source tells it; 0 for no more than now.
        known_load: What a simulation knows of its load, of these brokers and bundles; None for what sources tell.
    """

    info: SnapshotInfo
    settings: Settings
    brokers: BrokerTable
    namespaces: tuple[str, ...]
    bundles: BundleTable
    topics: TopicTable
    policies: Policies = field(default_factory=Policies)
    most_brokers: int = 0
    known_load: KnownLoad | None = None

    def broker_table_size(self, brokers: int) -> int:
        """Return the size of the table of a leader's map that holds so many brokers now; see `hash_map_order`."""
        return hash_map_size(max(brokers, self.most_brokers), concurrent=True)

    @cached_property
    def broker_map_order(self) -> Int64Array:
        """Positions of the brokers as the leader's map visits them: `BrokerTable.map_order`, but for `most_brokers`.

        Shape (brokers,).
        """
        size = self.broker_table_size(len(self.brokers))
        if size == hash_map_size(len(self.brokers), concurrent=True):
            return self.brokers.map_order
        return broker_map_order(self.brokers.name, size)

    @property
    def rows(self) -> int:
        """Rows of all tables."""
        return len(self.brokers) + len(self.bundles) + len(self.topics)

    @cached_property
    def bundle_names(self) -> tuple[str, ...]:
        """Full name of each bundle."""
        table = self.bundles
        rows = zip(table.namespace.tolist(), table.low.tolist(), table.high.tolist(), strict=True)
        return tuple(bundle_name(self.namespaces[n], low, high) for n, low, high in rows)

    @cached_property
    def bundle_position(self) -> Mapping[str, int]:
        """Position of each bundle by its full name."""
        return MappingProxyType({name: i for i, name in enumerate(self.bundle_names)})

    @cached_property
    def bundle_name_hashes(self) -> IntArray:
        """`String.hashCode` of each bundle's full name. Shape (bundles,)."""
        return frozen(java_string_hashes(self.bundle_names))

    def names_of(self, bundles: Int64Array) -> tuple[list[str], IntArray]:
        """Return full names and their hashes of some bundles only: all of a big cluster would take long to work out.

        Shapes (bundles asked about,).
        """
        table = self.bundles
        if "bundle_names" in self.__dict__:
            every = self.bundle_names
            names = [every[at] for at in bundles.tolist()]
        else:
            rows = zip(*(column[bundles].tolist() for column in (table.namespace, table.low, table.high)), strict=True)
            names = [bundle_name(self.namespaces[namespace], low, high) for namespace, low, high in rows]
        known = "bundle_name_hashes" in self.__dict__
        return names, self.bundle_name_hashes[bundles] if known else java_string_hashes(names)

    def shedding_rank(self, release: Release) -> Int64Array:
        """Return the place of each bundle in the map that modular shedders walk.

        The map (`LoadData.getBundleDataForLoadShedding`) holds the bundles that the leader keeps averages of, without
        those that a release never sheds, such as heartbeats; -1 for a bundle that is not in it. Shape
        (bundles,).
        """
        ranks = self._shedding_ranks
        if release.name not in ranks:
            ranks[release.name] = self._shedding_rank(release)
        return ranks[release.name]

    @cached_property
    def _shedding_ranks(self) -> dict[str, Int64Array]:
        return {}

    def is_walked(self, release: Release) -> BoolArray:
        """Return which bundles are in the map of `shedding_rank`. Shape (bundles,)."""
        internal = _never_shed(self.namespaces, release, self.info.pulsar_version)
        walked: BoolArray = (
            self.bundles.has_data & ~internal[self.bundles.namespace] if internal.any() else (self.bundles.has_data)
        )
        return walked

    def shedding_buckets(self, bundles: Int64Array, release: Release) -> Int64Array:
        """Return numbers that ascend as `shedding_rank` does, but for equal ones: for a few bundles far quicker.

        Shape (bundles asked about,).
        """
        hashes = self.bundle_name_hashes[bundles]
        inner = hash_map_size(int(np.count_nonzero(self.is_walked(release))))
        outer = hash_map_size(int(np.count_nonzero(self.bundles.has_data)), concurrent=True)
        return hash_map_buckets(hashes, inner).astype(np.int64) * outer + hash_map_buckets(hashes, outer)

    def _shedding_rank(self, release: Release) -> Int64Array:
        hashes = self.bundle_name_hashes
        every = np.flatnonzero(self.bundles.has_data)
        visited = every[hash_map_order(hashes[every], concurrent=True)]
        kept = visited[self.is_walked(release)[visited]]
        rank = np.full(len(self.bundles), -1, dtype=np.int64)
        rank[kept[hash_map_order(hashes[kept])]] = np.arange(len(kept))
        return frozen(rank)

    @cached_property
    def _owned(self) -> tuple[Int64Array, Int64Array]:
        order = sorted_places(self.bundles.owner, len(self.brokers))
        edges = np.arange(len(self.brokers) + 1, dtype=self.bundles.owner.dtype)
        starts = np.searchsorted(self.bundles.owner, edges, sorter=order)
        return frozen(order), frozen(starts)

    @cached_property
    def reported(self) -> Int64Array:
        """Positions of the bundles that stand in a load report: by broker, then in the order of the report's map.

        Shape (bundles reported,).
        """
        return frozen(self._in_reports(self.bundles.owner >= 0))

    def reported_by(self, brokers: Int64Array) -> Int64Array:
        """Return `reported` of some brokers, by position. Shape (bundles they report,)."""
        asked = np.zeros(len(self.brokers) + 1, dtype=np.bool_)  # the last one is of bundles without an owner, -1
        asked[brokers] = True
        return self._in_reports(asked[self.bundles.owner])

    def _in_reports(self, of: BoolArray) -> Int64Array:
        listed = np.flatnonzero(self.bundles.has_stats & of)
        order = grouped_map_order(self.bundle_name_hashes[listed], self.bundles.owner[listed], concurrent=True)
        return listed[order]

    def bundles_of(self, broker: int) -> Int64Array:
        """Return positions of the bundles that a broker owns, in table order. Shape (bundles of the broker,)."""
        order, starts = self._owned
        return order[starts[broker] : starts[broker + 1]]

    @cached_property
    def _in_namespaces(self) -> tuple[Int64Array, Int64Array]:
        order = sorted_places(self.bundles.namespace, len(self.namespaces))
        edges = np.arange(len(self.namespaces) + 1, dtype=self.bundles.namespace.dtype)
        return frozen(order), frozen(np.searchsorted(self.bundles.namespace, edges, sorter=order))

    def bundles_in(self, namespace: int) -> Int64Array:
        """Return positions of the bundles of a namespace, by its position, in table order.

        Shape (bundles of the namespace,).
        """
        order, starts = self._in_namespaces
        return order[starts[namespace] : starts[namespace + 1]]

    def bundle_counts(self) -> Int64Array:
        """Return how many bundles each broker owns. Shape (brokers,)."""
        if "_owned" in self.__dict__:
            return np.diff(self._owned[1])
        owner = self.bundles.owner  # counting takes a tenth of the time that sorting takes
        return np.bincount(owner[owner >= 0], minlength=len(self.brokers)).astype(np.int64, copy=False)

    def reported_counts(self) -> Int64Array:
        """Return how many bundles each broker reports: its own count where known, else how many it owns.

        Shape (brokers,).
        """
        reported = self.brokers.reported_bundles
        return reported if (reported >= 0).all() else np.where(reported >= 0, reported, self.bundle_counts())

    def with_owner(self, owner: IntArray) -> "Snapshot":
        """Return the same cluster with other owners; every other column is shared, nothing is copied but this one."""
        return self.with_columns(bundles=replace(self.bundles, owner=frozen(owner)))

    def with_columns(self, **changes: Any) -> "Snapshot":
        """Return a snapshot with other tables, or other fields, which keeps what was worked out and still holds."""
        return replace(self, **changes).sharing(self)

    def naming(
        self,
        names: Sequence[str],
        hashes: IntArray,
        position: Mapping[str, int] | None = None,
        reported: Int64Array | None = None,
    ) -> "Snapshot":
        """Take over the names of the bundles, and what follows from them, from who keeps them up to date.

        Args:
            names: As `bundle_names`; a list that is changed later is for a snapshot that is not kept.
            hashes: As `bundle_name_hashes`.
            position: As `bundle_position`; None to leave that for when it is asked for.
            reported: As `reported`; None likewise.

        Returns:
            This snapshot.
        """
        self.__dict__.update(bundle_names=names, bundle_name_hashes=hashes)
        known = {"bundle_position": position, "reported": reported}
        self.__dict__.update({name: value for name, value in known.items() if value is not None})
        return self

    def sharing(self, known: "Snapshot | None") -> "Snapshot":
        """Take over the names and orders that another snapshot has worked out, as far as they hold here, too.

        They hold when they follow from equal columns, which is found out by comparing those.

        Args:
            known: The other one; None has nothing to give.

        Returns:
            This snapshot.
        """
        if known is not None:
            same: dict[str, bool] = {"owner": len(known.brokers) == len(self.brokers)}
            same["namespace"] = known.namespaces is self.namespaces or known.namespaces == self.namespaces

            def holds(column: str) -> bool:
                mine, other = getattr(self.bundles, column), getattr(known.bundles, column)
                if same.get(column, True) and mine is not other:
                    same[column] = np.array_equal(mine, other)
                return same.get(column, True)

            for name, columns in _FOLLOWS_FROM.items():
                if name in known.__dict__ and name not in self.__dict__ and all(map(holds, columns)):
                    self.__dict__[name] = known.__dict__[name]
        return self
