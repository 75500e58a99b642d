"""The tables of a snapshot: brokers, bundles and topics at one moment.

Every table is a frozen dataclass of equally long columns; `column_info` tells each column's unit, meaning and whether
it may be unknown, and the store, the file formats and the validator are driven by it, so that a column exists in one
place only. Brokers and bundles are referred to by their position.

Sources in Pulsar 4.2.4: `LocalBrokerData`, `BundleData`, `TimeAverageMessageData`, `TimeAverageBrokerData`,
`NamespaceBundleStats` (modular load manager); `BrokerLoadData`, `TopBundlesLoadData` (extensible load manager).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache, cached_property, lru_cache
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from planner.cluster.arrays import BoolArray, FloatArray, Int64Array, IntArray, UInt32Array, frozen
from planner.cluster.hashing import hash_map_order, java_string_hashes

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
        return broker_map_order(self.name)


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


@lru_cache(maxsize=64)
def broker_map_order(names: tuple[str, ...], table_size: int | None = None) -> Int64Array:
    """Return positions of brokers in the order of a leader's map, of a table of some size; see `BrokerTable.map_order`.

    Shape (brokers,).
    """
    return frozen(hash_map_order(_name_hashes(names), table_size, concurrent=True))


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

    def of_bundle(self, bundle: int) -> Int64Array:
        """Return positions of the topics of one bundle, in the order of the source. Shape (topics of the bundle,)."""
        edges = np.array((bundle, bundle + 1), dtype=self.bundle.dtype)  # of another type, the column would be copied
        low, high = np.searchsorted(self.bundle, edges, sorter=self.by_bundle).tolist()
        return self.by_bundle[low:high]


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
