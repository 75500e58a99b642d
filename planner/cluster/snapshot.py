"""A snapshot: what a cluster's brokers, bundles and topics look like at one moment.

Frozen and columnar. Every table is a dataclass of equally long columns; `column_info` tells each column's unit, meaning
and whether it may be unknown, and the store, the file formats and the validator are driven by it, so that a column
exists in one place only. Brokers and bundles are referred to by their position.

Sources in Pulsar 4.2.4: `LocalBrokerData`, `BundleData`, `TimeAverageMessageData`, `TimeAverageBrokerData`,
`NamespaceBundleStats` (modular load manager); `BrokerLoadData`, `TopBundlesLoadData` (extensible load manager).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache, cached_property, lru_cache
from types import MappingProxyType
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import ConfigDict, Field

from planner.cluster.arrays import BoolArray, FloatArray, Int64Array, IntArray, UInt32Array, frozen
from planner.cluster.hashing import grouped_map_order, hash_map_order, hash_map_size, java_string_hashes
from planner.cluster.internal_namespaces import is_never_shed
from planner.cluster.load_manager import LoadManager
from planner.cluster.moments import LAST_MS
from planner.cluster.ranges import bundle_name
from planner.cluster.releases import REFERENCE, Release
from planner.cluster.releases import release as named
from planner.cluster.settings import Settings

MAX_NAME = 4_096
"""Most characters of a name."""

MAX_TEXT = 10_000
"""Most characters of a text."""

MAX_NOTES = 10_000
"""Most notes of a snapshot."""

MAX_VERSION = 50
"""Most characters of the version of a cluster."""

Name = Annotated[str, Field(min_length=1, max_length=MAX_NAME)]
"""What something is called, never empty."""

Text = Annotated[str, Field(max_length=MAX_TEXT)]
"""What people write, or may leave empty."""

Int = Annotated[int, Field(ge=-(2**31), lt=2**31)]
"""A Java `int`."""

_EXACT = ConfigDict(extra="forbid", strict=True)

ColumnKind: TypeAlias = Literal["text", "float", "int", "bool", "id", "hash"]
"""Type of a column: UTF-8 text, float64, int64, bool, int32 position in another table, unsigned 32-bit hash."""

_DTYPES: dict[str, type[np.generic]] = {
    "float": np.float64,
    "int": np.int64,
    "bool": np.bool_,
    "id": np.int32,
    "hash": np.uint32,
}


@dataclass(frozen=True, slots=True)
class ColumnInfo:
    """What a column holds.

    Attributes:
        name: Name in the dataclass, in Parquet, in DuckDB and in the JSON document.
        kind: Type.
        unit: Unit, empty for counts, names and switches.
        meaning: One line.
        default: Value when a source does not give it; NaN marks an unknown number.
        required: True when every source must give it.
    """

    name: str
    kind: ColumnKind
    unit: str
    meaning: str
    default: float | bool | str
    required: bool

    @property
    def may_be_unknown(self) -> bool:
        """True when NaN stands for 'nobody said'."""
        return isinstance(self.default, float) and bool(np.isnan(self.default))


def _column(kind: ColumnKind, unit: str, meaning: str, default: object = None) -> Any:
    meta = {"kind": kind, "unit": unit, "meaning": meaning, "default": default, "required": default is None}
    return field(metadata=meta)


def _number(unit: str, meaning: str, default: float = 0.0) -> Any:
    return _column("float", unit, meaning, default)


def column_info(table: type) -> tuple[ColumnInfo, ...]:
    """Return what the columns of a table class hold, in their order."""
    return _column_info(table)


@cache
def _column_info(table: type) -> tuple[ColumnInfo, ...]:
    found = []
    for f in fields(table):
        if meta := dict(f.metadata):
            if meta["required"]:
                meta["default"] = {"text": "", "float": 0.0, "int": 0, "bool": False, "id": -1, "hash": 0}[meta["kind"]]
            found.append(ColumnInfo(f.name, **meta))
    return tuple(found)


_NAN = float("nan")


def _average(unit: str) -> Any:
    return _number(unit, "TimeAverageBrokerData; NaN unknown", _NAN)


TRAFFIC_COLUMNS = (
    "msg_rate_in_per_s",
    "msg_rate_out_per_s",
    "msg_throughput_in_bytes_per_s",
    "msg_throughput_out_bytes_per_s",
)
"""The traffic of a broker, a bundle or a topic, as the columns of all three tables are named."""

Term: TypeAlias = Literal["", "short_term_", "long_term_"]
"""Which traffic: the current one, or one of the averages, which topics have not."""

_EVERY = slice(None)


class _Traffic:
    """What the tables have in common: the sums of their traffic, in + out."""

    def msg_rate_per_s(self, rows: Any = _EVERY, term: Term = "") -> FloatArray:
        """Return the message rate in + out of some rows by position, of all without; of one row it is one number.

        Shape (rows,).
        """
        inbound: FloatArray = getattr(self, f"{term}msg_rate_in_per_s")[rows]
        outbound: FloatArray = getattr(self, f"{term}msg_rate_out_per_s")[rows]
        return inbound + outbound

    def throughput_bytes_per_s(self, rows: Any = _EVERY, term: Term = "") -> FloatArray:
        """Return the throughput in + out; see `msg_rate_per_s`. Shape (rows,)."""
        inbound: FloatArray = getattr(self, f"{term}msg_throughput_in_bytes_per_s")[rows]
        outbound: FloatArray = getattr(self, f"{term}msg_throughput_out_bytes_per_s")[rows]
        return inbound + outbound


@dataclass(frozen=True, eq=False, kw_only=True)
class BrokerTable(_Traffic):
    """One row for each broker, in the order of the source. Shape of every column: (brokers,)."""

    name: tuple[str, ...] = _column("text", "", "Broker id, host:port")
    cpu_usage_percent: FloatArray = _number("% of one core", "CPU in use")
    cpu_limit_percent: FloatArray = _number("% of one core", "CPU capacity: 100 for each core; <= 0 unknown")
    memory_usage_mib: FloatArray = _number("MiB", "JVM heap in use")
    memory_limit_mib: FloatArray = _number("MiB", "JVM heap limit; <= 0 unknown")
    direct_memory_usage_mib: FloatArray = _number("MiB", "Direct memory in use")
    direct_memory_limit_mib: FloatArray = _number("MiB", "Direct memory limit; <= 0 unknown")
    bandwidth_in_usage_kbit_per_s: FloatArray = _number("kbit/s", "Inbound bandwidth in use")
    bandwidth_in_limit_kbit_per_s: FloatArray = _number("kbit/s", "Inbound NIC speed; <= 0 unknown")
    bandwidth_out_usage_kbit_per_s: FloatArray = _number("kbit/s", "Outbound bandwidth in use")
    bandwidth_out_limit_kbit_per_s: FloatArray = _number("kbit/s", "Outbound NIC speed; <= 0 unknown")
    msg_rate_in_per_s: FloatArray = _number("msg/s", "Messages published to the broker")
    msg_rate_out_per_s: FloatArray = _number("msg/s", "Messages dispatched by the broker")
    msg_throughput_in_bytes_per_s: FloatArray = _number("bytes/s", "Bytes published to the broker")
    msg_throughput_out_bytes_per_s: FloatArray = _number("bytes/s", "Bytes dispatched by the broker")
    topics: Int64Array = _column("int", "topics", "Topics loaded, as the broker reports them", 0)
    producers: Int64Array = _column("int", "producers", "Producers connected", 0)
    consumers: Int64Array = _column("int", "consumers", "Consumers connected", 0)
    reported_bundles: Int64Array = _column("int", "bundles", "Bundles, as the broker counts them; -1 unknown", -1)
    updated_at_ms: Int64Array = _column("int", "ms since 1970", "When the report was made; 0 unknown", 0)
    started_at_ms: Int64Array = _column("int", "ms since 1970", "When the broker started; 0 unknown", 0)
    version: tuple[str, ...] = _column("text", "", "Pulsar version; empty unknown", "")
    load_manager_class: tuple[str, ...] = _column("text", "", "loadManagerClassName; empty unknown", "")
    persistent_topics_enabled: BoolArray = _column("bool", "", "Serves persistent topics", True)
    non_persistent_topics_enabled: BoolArray = _column("bool", "", "Serves non-persistent topics", True)
    registered: BoolArray = _column("bool", "", "Is an active broker of the cluster", True)
    has_load_data: BoolArray = _column("bool", "", "Its load report is known", True)
    weighted_max_ema: FloatArray = _number("1.0 = 100 %", "Extensible: weightedMaxEMA; NaN unknown", _NAN)
    msg_throughput_ema_bytes_per_s: FloatArray = _number("bytes/s", "Extensible: msgThroughputEMA; NaN unknown", _NAN)
    short_term_msg_rate_in_per_s: FloatArray = _average("msg/s")
    short_term_msg_rate_out_per_s: FloatArray = _average("msg/s")
    short_term_msg_throughput_in_bytes_per_s: FloatArray = _average("bytes/s")
    short_term_msg_throughput_out_bytes_per_s: FloatArray = _average("bytes/s")
    long_term_msg_rate_in_per_s: FloatArray = _average("msg/s")
    long_term_msg_rate_out_per_s: FloatArray = _average("msg/s")
    long_term_msg_throughput_in_bytes_per_s: FloatArray = _average("bytes/s")
    long_term_msg_throughput_out_bytes_per_s: FloatArray = _average("bytes/s")

    def __len__(self) -> int:
        return len(self.name)

    @cached_property
    def position(self) -> Mapping[str, int]:
        """Position of each broker by its id."""
        return _position(self.name)

    @cached_property
    def name_hashes(self) -> IntArray:
        """`String.hashCode` of each broker's id. Shape (brokers,)."""
        return _name_hashes(self.name)

    @property
    def names_array(self) -> npt.NDArray[np.object_]:
        """The ids as an array, to pick many at once. Shape (brokers,)."""
        return _names_array(self.name)

    @property
    def alphabetical(self) -> Int64Array:
        """Place of each broker when they are sorted by id. Shape (brokers,)."""
        return _alphabetical(self.name)

    @cached_property
    def map_order(self) -> Int64Array:
        """Positions in the order in which Pulsar's `brokerData` map visits the brokers (see `hash_map_order`).

        Shape (brokers,).

        It is a `ConcurrentHashMap`, and so is the load data store of the extensible load manager.
        """
        return _map_order(self.name)


# A simulation makes a table for every report, of the same brokers.


@lru_cache(maxsize=16)
def _position(names: tuple[str, ...]) -> Mapping[str, int]:
    return MappingProxyType({name: i for i, name in enumerate(names)})


@lru_cache(maxsize=16)
def _names_array(names: tuple[str, ...]) -> npt.NDArray[np.object_]:
    return frozen(np.array(names, dtype=np.object_))


@lru_cache(maxsize=16)
def _alphabetical(names: tuple[str, ...]) -> Int64Array:
    return frozen(np.argsort(np.array(sorted(range(len(names)), key=names.__getitem__), dtype=np.int64)))


@lru_cache(maxsize=16)
def _name_hashes(names: tuple[str, ...]) -> IntArray:
    return frozen(java_string_hashes(names))


@lru_cache(maxsize=16)
def _map_order(names: tuple[str, ...]) -> Int64Array:
    return frozen(hash_map_order(_name_hashes(names), concurrent=True))


@dataclass(frozen=True, eq=False, kw_only=True)
class BundleTable(_Traffic):
    """One row for each bundle. Shape of every column: (bundles,).

    Current values are the owner's last report (`lastStats`); short-term and long-term values are the leader's
    `BundleData` (means over at most 10 and 1000 samples).
    """

    namespace: IntArray = _column("id", "", "Namespace, position in `Snapshot.namespaces`")
    low: Int64Array = _column("int", "hash", "Lower boundary, inclusive")
    high: Int64Array = _column("int", "hash", "Upper boundary, exclusive; inclusive when 0xffffffff")
    owner: IntArray = _column("id", "", "Broker that owns it, position in `Snapshot.brokers`; -1 not loaded", -1)
    has_stats: BoolArray = _column("bool", "", "Its owner reported current values", True)
    msg_rate_in_per_s: FloatArray = _number("msg/s", "Current publish rate")
    msg_rate_out_per_s: FloatArray = _number("msg/s", "Current dispatch rate")
    msg_throughput_in_bytes_per_s: FloatArray = _number("bytes/s", "Current publish throughput")
    msg_throughput_out_bytes_per_s: FloatArray = _number("bytes/s", "Current dispatch throughput")
    topics: Int64Array = _column("int", "topics", "Topics loaded", 0)
    producers: Int64Array = _column("int", "producers", "Producers connected", 0)
    consumers: Int64Array = _column("int", "consumers", "Consumers connected", 0)
    cache_size_bytes: Int64Array = _column("int", "bytes", "cacheSize of the report", 0)
    has_data: BoolArray = _column("bool", "", "The leader keeps averages (BundleData) for it", True)
    averages_estimated: BoolArray = _column("bool", "", "The averages were estimated, not read", False)
    data_topics: Int64Array = _column("int", "topics", "Topics in BundleData", 0)
    short_term_samples: Int64Array = _column("int", "samples", "numSamples of the short-term average", 0)
    short_term_msg_rate_in_per_s: FloatArray = _number("msg/s", "Short-term publish rate")
    short_term_msg_rate_out_per_s: FloatArray = _number("msg/s", "Short-term dispatch rate")
    short_term_msg_throughput_in_bytes_per_s: FloatArray = _number("bytes/s", "Short-term publish throughput")
    short_term_msg_throughput_out_bytes_per_s: FloatArray = _number("bytes/s", "Short-term dispatch throughput")
    long_term_samples: Int64Array = _column("int", "samples", "numSamples of the long-term average", 0)
    long_term_msg_rate_in_per_s: FloatArray = _number("msg/s", "Long-term publish rate")
    long_term_msg_rate_out_per_s: FloatArray = _number("msg/s", "Long-term dispatch rate")
    long_term_msg_throughput_in_bytes_per_s: FloatArray = _number("bytes/s", "Long-term publish throughput")
    long_term_msg_throughput_out_bytes_per_s: FloatArray = _number("bytes/s", "Long-term dispatch throughput")
    top_rank: IntArray = _column(
        "id", "", "Extensible: place in the owner's top-bundles report, 0 first; -1 absent", -1
    )

    def __len__(self) -> int:
        return len(self.low)


@dataclass(frozen=True, eq=False, kw_only=True)
class TopicTable(_Traffic):
    """One row for each topic (each partition of a partitioned one). Shape of every column: (topics,)."""

    name: Any = _column("text", "", "Full topic name with its domain (a pyarrow string array)")
    bundle: IntArray = _column("id", "", "Bundle that holds it, position in `Snapshot.bundles`; -1 unknown", -1)
    hash: UInt32Array = _column("hash", "", "CRC-32 of the name, its place in the hash space", 0)
    msg_rate_in_per_s: FloatArray = _number("msg/s", "Publish rate")
    msg_rate_out_per_s: FloatArray = _number("msg/s", "Dispatch rate")
    msg_throughput_in_bytes_per_s: FloatArray = _number("bytes/s", "Publish throughput")
    msg_throughput_out_bytes_per_s: FloatArray = _number("bytes/s", "Dispatch throughput")
    producers: IntArray = _column("id", "producers", "Producers connected", 0)
    consumers: IntArray = _column("id", "consumers", "Consumers connected", 0)
    has_stats: BoolArray = _column("bool", "", "A broker reported its values", True)

    def __len__(self) -> int:
        return len(self.hash)

    @cached_property
    def by_bundle(self) -> Int64Array:
        """Positions of the topics sorted by bundle, in the order of the source inside each. Shape (topics,)."""
        return frozen(np.argsort(self.bundle, kind="stable"))

    def with_bundles(self, bundle: IntArray, changed: Int64Array) -> "TopicTable":
        """Return the same topics after their bundles were renumbered in the same order, and some went to others.

        Args:
            bundle: The bundle of each, as in the column. Shape (topics,).
            changed: Positions of the topics that are in another bundle than before. Shape (changed,).
        """
        table = replace(self, bundle=bundle)
        if "by_bundle" in self.__dict__:
            # Sorting millions of topics anew costs fifty times as much as putting some into their places, where what
            # they leave and where they go is side by side, as with a split.
            low, high = self._places(self.bundle[changed].min(), self.bundle[changed].max()) if len(changed) else (0, 0)
            order, back = self.by_bundle, changed[np.argsort(bundle[changed], kind="stable")]
            before, behind = (bundle[order[at]] for at in (slice(max(low - 1, 0), low), slice(high, high + 1)))
            fits = (before < bundle[back[:1]]).all() and (bundle[back[-1:]] < behind).all()
            if fits and high - low == len(changed):
                table.__dict__["by_bundle"] = frozen(np.concatenate([order[:low], back, order[high:]]))
        return table

    def _places(self, first: int, last: int) -> tuple[int, int]:
        """Return where the topics of some bundles in a row begin and end in `by_bundle`."""
        edges = np.array((first, last + 1), dtype=self.bundle.dtype)  # of another type, the column would be copied
        low, high = np.searchsorted(self.bundle, edges, sorter=self.by_bundle).tolist()
        return low, high

    def of_bundle(self, bundle: int) -> Int64Array:
        """Return positions of the topics of one bundle, in the order of the source. Shape (topics of the bundle,)."""
        low, high = self._places(bundle, bundle)
        return self.by_bundle[low:high]


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


_RANGES = ("namespace", "low", "high")
_FOLLOWS_FROM: Mapping[str, tuple[str, ...]] = {
    "bundle_names": _RANGES,
    "bundle_position": _RANGES,
    "bundle_name_hashes": _RANGES,
    "_shedding_ranks": (*_RANGES, "has_data"),
    "_owned": ("owner",),
    "reported": (*_RANGES, "has_stats", "owner"),
}
"""What a snapshot works out when it is asked for, and the columns of its bundles that it follows from."""


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
    """

    info: SnapshotInfo
    settings: Settings
    brokers: BrokerTable
    namespaces: tuple[str, ...]
    bundles: BundleTable
    topics: TopicTable
    policies: Policies = field(default_factory=Policies)
    most_brokers: int = 0

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
        return frozen(hash_map_order(self.brokers.name_hashes, size, concurrent=True))

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

    def _shedding_rank(self, release: Release) -> Int64Array:
        # Names with a cluster, of heartbeats up to 4.0.8, are none to newer releases, whose brokers never make them.
        own = named(self.info.pulsar_version)
        stays = (is_never_shed(n, release) or (n.count("/") > 1 and is_never_shed(n, own)) for n in self.namespaces)
        internal = np.array([*stays] or [False])
        inside = np.flatnonzero(self.bundles.has_data & ~internal[self.bundles.namespace])
        hashes = self.bundle_name_hashes
        every = np.flatnonzero(self.bundles.has_data)
        visited = every[hash_map_order(hashes[every], concurrent=True)]
        kept = visited[np.isin(visited, inside, assume_unique=True)]
        rank = np.full(len(self.bundles), -1, dtype=np.int64)
        rank[kept[hash_map_order(hashes[kept])]] = np.arange(len(kept))
        return frozen(rank)

    @cached_property
    def _owned(self) -> tuple[Int64Array, Int64Array]:
        order = np.argsort(self.bundles.owner, kind="stable")
        starts = np.searchsorted(self.bundles.owner, np.arange(len(self.brokers) + 1), sorter=order)
        return frozen(order), frozen(starts)

    @cached_property
    def reported(self) -> Int64Array:
        """Positions of the bundles that stand in a load report: by broker, then in the order of the report's map.

        Shape (bundles reported,).
        """
        listed = np.flatnonzero(self.bundles.has_stats & (self.bundles.owner >= 0))
        order = grouped_map_order(self.bundle_name_hashes[listed], self.bundles.owner[listed], concurrent=True)
        return frozen(listed[order])

    def bundles_of(self, broker: int) -> Int64Array:
        """Return positions of the bundles that a broker owns, in table order. Shape (bundles of the broker,)."""
        order, starts = self._owned
        return order[starts[broker] : starts[broker + 1]]

    def bundle_counts(self) -> Int64Array:
        """Return how many bundles each broker owns. Shape (brokers,)."""
        return np.diff(self._owned[1])

    def reported_counts(self) -> Int64Array:
        """Return how many bundles each broker reports: its own count where known, else how many it owns.

        Shape (brokers,).
        """
        reported = self.brokers.reported_bundles
        return np.where(reported >= 0, reported, self.bundle_counts())

    def with_owner(self, owner: IntArray) -> "Snapshot":
        """Return the same cluster with other owners; every other column is shared, nothing is copied but this one."""
        return self.with_columns(bundles=replace(self.bundles, owner=frozen(owner)))

    def with_columns(self, **changes: Any) -> "Snapshot":
        """Return a snapshot with other tables, or other fields, which keeps what was worked out and still holds."""
        return replace(self, **changes).sharing(self)

    def naming(self, names: tuple[str, ...], hashes: IntArray, position: Mapping[str, int] | None = None) -> "Snapshot":
        """Take over the names of the bundles, their hashes and their positions from who keeps them up to date.

        Args:
            names: As `bundle_names`.
            hashes: As `bundle_name_hashes`.
            position: As `bundle_position`; None to leave that for when it is asked for.

        Returns:
            This snapshot.
        """
        self.__dict__.update(bundle_names=names, bundle_name_hashes=hashes)
        if position is not None:
            self.__dict__["bundle_position"] = position
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


_T = TypeVar("_T", BrokerTable, BundleTable, TopicTable)


def _make(table: type[_T], columns: Mapping[str, Any], size: int) -> _T:
    known = {info.name for info in column_info(table)}
    unknown = set(columns) - known
    if unknown:
        raise TypeError(f"{table.__name__} has no column {', '.join(sorted(unknown))}")
    made: dict[str, Any] = {}
    for info in column_info(table):
        given = columns.get(info.name)
        if given is None and info.required and size:
            raise TypeError(f"{table.__name__} needs {info.name}")
        if info.kind == "text":
            if table is TopicTable:
                made[info.name] = given if given is not None else pa.nulls(0, pa.large_string())
            else:
                made[info.name] = tuple(given) if given is not None else (str(info.default),) * size
        elif given is None:
            made[info.name] = _same(size, info.default, info.kind)
        else:
            array = np.array(given, dtype=_DTYPES[info.kind], copy=None)
            made[info.name] = frozen(array if array.ndim else np.full(size, array))
        if len(made[info.name]) != size:
            raise ValueError(f"{table.__name__}.{info.name} has {len(made[info.name])} rows, not {size}")
    return table(**made)


@lru_cache(maxsize=128)
def _same(size: int, value: object, kind: ColumnKind) -> npt.NDArray[Any]:
    """Return a column of one value; a history has as many of it as moments."""
    return frozen(np.full(size, value, dtype=_DTYPES[kind]))


def make_brokers(name: Sequence[str], **columns: Any) -> BrokerTable:
    """Build a broker table; columns not given take their default, single values are repeated."""
    return _make(BrokerTable, {"name": name, **columns}, len(name))


def make_bundles(low: Sequence[int] | Int64Array, **columns: Any) -> BundleTable:
    """Build a bundle table; columns not given take their default, single values are repeated."""
    return _make(BundleTable, {"low": low, **columns}, len(low))


def make_topics(hash: Sequence[int] | UInt32Array = (), **columns: Any) -> TopicTable:  # noqa: A002
    """Build a topic table; `name` is a pyarrow string array. Without arguments: no topics."""
    if not columns and not len(hash):
        return _NO_TOPICS
    return _make(TopicTable, {"hash": hash, **columns}, len(hash))


_NO_TOPICS = _make(TopicTable, {}, 0)
