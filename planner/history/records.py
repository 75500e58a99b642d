"""What is read out of raw files, before it becomes history: one row for each raw row, or run of samples.

The rows pass through Spark, so that their Arrow types must match the declared schema exactly. Rows that cannot be
read are in the same stream, in the lane `aside`.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any

import numpy as np
import pyarrow as pa

from planner.cluster.arrays import FloatArray, Int64Array
from planner.cluster.errors import PlannerError
from planner.cluster.pulsar_json import BROKER_COLUMNS, BUNDLE_STATS, RATES
from planner.history.manifest import DAY_MS
from planner.spark.schema import arrow_schema

BROKER_VALUES = BROKER_COLUMNS
"""Columns of `BrokerTable` that a report gives, in the order of its values."""

BUNDLE_VALUES = tuple(BUNDLE_STATS.values())
"""Columns of `BundleTable` that a report gives of each bundle."""

COUNTERS = ("messages_in", "messages_out", "bytes_in", "bytes_out")
"""Counters of a topic, in the order of the rates that follow from them; NaN where a broker does not give one."""

TOPIC_VALUES = (*RATES.values(), "producers", "consumers", *COUNTERS)
"""What a broker says of each topic: columns of `TopicTable`, then counters."""


class Lane(StrEnum):
    """Where a row goes."""

    ROW = "row"
    ASIDE = "aside"
    HINT = "hint"
    BLOCK = "block"


class Kind(StrEnum):
    """What a row says.

    Attributes:
        REPORT: A broker's load report. `names` are its bundles, `values` `BROKER_VALUES` and then `BUNDLE_VALUES` of
            each bundle; the bundles are all that it owns where `text` says `"complete": true`.
        TOP: A broker's top bundles, lightest first. `names`, and `BUNDLE_VALUES` of each.
        STATE: A new owner of a bundle: `names` is the bundle, `broker` the owner, empty when nobody owns it.
        TOPICS: Topics that a broker has loaded. `names`, and `TOPIC_VALUES` of each; `text` lists its bundles.
        SAMPLES: Samples of one Prometheus series over at most an hour: `metric`, `names` is the bundle or topic,
            `text` its other labels; `times` and `values`.
        SNAPSHOT: A snapshot or raw capture; `text` is its path.
    """

    REPORT = "report"
    TOP = "top"
    STATE = "state"
    TOPICS = "topics"
    SAMPLES = "samples"
    SNAPSHOT = "snapshot"


DDL = (
    "lane string, cluster string, day int, time_ms bigint, carry boolean, kind string, broker string, metric string,"
    " names array<string>, times array<bigint>, values array<double>, text string, source int, line bigint,"
    " rows bigint, digest_low bigint, digest_high bigint, raw binary"
)
"""Columns of the stream; a day is counted from 1970-01-01."""

SCHEMA = arrow_schema(DDL)
"""The same columns as Arrow has them."""

_BATCH_ROWS = 2_000
_BATCH_VALUES = 500_000
_SHIFT = 31


@dataclass(frozen=True, slots=True)
class Record:
    """A row that could be read.

    Attributes:
        kind: What it says; see there for the meaning of the fields.
        cluster: Name of the cluster.
        time_ms: When it was so, ms since 1970, by the clock of whoever recorded it where that is known.
        broker: Broker id; empty when it is about no single one.
        metric: Name of the Prometheus metric.
        names: Bundles or topics.
        times: Times of samples.
        values: Numbers.
        text: Whatever else.
        rows: How many raw rows it stands for.
        line: Line in the file, from 1; in a Prometheus export the number of the series.
        clock_lag_ms: How long before `time_ms` the broker says it made the report; None unknown.
    """

    kind: Kind
    cluster: str
    time_ms: int
    broker: str = ""
    metric: str = ""
    names: Sequence[str] = ()
    times: Sequence[int] | Int64Array = ()
    values: Sequence[float] | FloatArray = ()
    text: str = ""
    rows: int = 1
    line: int = 0
    clock_lag_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Aside:
    """A row that could not be read.

    Attributes:
        reason: Why, and what to do, one or two sentences.
        line: Line in the file, from 1; in a Prometheus export the number of the series; 0 for the whole file.
        place: Where inside the line or file; may be empty.
        rows: How many raw rows are lost with it.
        raw: Its bytes, as far as they are at hand.
    """

    reason: str
    line: int = 0
    place: str = ""
    rows: int = 1
    raw: bytes = b""

    @classmethod
    def of(cls, error: PlannerError, line: int, raw: bytes = b"", rows: int = 1) -> "Aside":
        """Put a row aside because of an error."""
        remedy = f" {error.remedy}" if error.remedy else ""
        return cls(f"{error.what}{remedy}", line, error.where, rows, raw)


@dataclass
class Tally:
    """What was read, counted before anybody looks at what it is.

    Attributes:
        rows: Rows.
        lines: Lines, blank ones too; 0 in a file that has none.
    """

    rows: int = 0
    lines: int = 0


@dataclass
class Hint:
    """What the records of a day have in common, known before the first of them is looked at.

    Attributes:
        first_ms: When each bundle is first reported, by name.
        lag_ms: Shortest time between the clock of each broker and that of the recorder, by broker.
        late: Rows that stand after later ones of the same broker.
    """

    first_ms: dict[str, int] = field(default_factory=dict)
    lag_ms: dict[str, int] = field(default_factory=dict)
    late: int = 0

    def add(self, record: Record) -> None:
        """Take note of a record."""
        if record.clock_lag_ms is not None:
            known = self.lag_ms.get(record.broker)
            self.lag_ms[record.broker] = record.clock_lag_ms if known is None else min(known, record.clock_lag_ms)
        for name in bundles_of(record):
            known = self.first_ms.get(name)
            if known is None or record.time_ms < known:
                self.first_ms[name] = record.time_ms


def bundles_of(record: Record) -> Sequence[str]:
    """Return the bundles that a record reports."""
    if record.kind is Kind.TOPICS:
        found: list[str] = json.loads(record.text)
        return found
    if record.kind is Kind.SAMPLES:
        return record.names if record.metric.startswith("pulsar_bundle_") else ()
    return () if record.kind is Kind.SNAPSHOT else record.names


def _digest(record: Record) -> int:
    """Return 62 bits that differ when anything about the record differs but its place in the file."""
    parts = (record.kind, record.cluster, record.broker, record.metric, record.text, str(record.time_ms))
    head = "\x1f".join((*parts, *record.names)).encode()
    digest = hashlib.blake2b(head, digest_size=8)
    digest.update(np.asarray(record.times, dtype="<i8").tobytes())
    digest.update(np.asarray(record.values, dtype="<f8").tobytes())
    return int.from_bytes(digest.digest()) >> 2


_FIELDS = tuple(f.name for f in fields(Record) if f.name in SCHEMA.names)
_LISTS = ("names", "times", "values")
_EMPTY = {f.name: b"" if f.type == pa.binary() else "" if f.type == pa.string() else 0 for f in SCHEMA} | {
    "carry": False,
    **dict.fromkeys(_LISTS, ()),
}


def _row(lane: Lane, source: int, **columns: Any) -> dict[str, Any]:
    return _EMPTY | {"lane": lane.value, "source": source} | columns


def _rows_of_record(record: Record, source: int, carry_ms: int) -> Iterator[dict[str, Any]]:
    """Yield a record for its day and, when it is from the last minutes of it, for the next day too."""
    digest = _digest(record)
    made = _row(Lane.ROW, source, **{name: getattr(record, name) for name in _FIELDS})
    made |= {
        "kind": record.kind.value,
        "day": record.time_ms // DAY_MS,
        "digest_low": digest & ((1 << _SHIFT) - 1),
        "digest_high": digest >> _SHIFT,
    }
    yield made
    last_ms = int(record.times[-1]) if len(record.times) else record.time_ms
    if last_ms % DAY_MS >= DAY_MS - carry_ms and record.kind is not Kind.SNAPSHOT:
        yield made | {"day": made["day"] + 1, "carry": True}


def _rows_of_hints(hints: Mapping[tuple[str, int], Hint], source: int) -> Iterator[dict[str, Any]]:
    for (cluster, day), hint in hints.items():
        place = {"cluster": cluster, "day": day}
        names = sorted(hint.first_ms)
        times = [hint.first_ms[n] for n in names]
        yield _row(Lane.HINT, source, kind="bundles", names=names, times=times, rows=hint.late, **place)
        if hint.lag_ms:
            brokers = sorted(hint.lag_ms)
            lags = [hint.lag_ms[b] for b in brokers]
            yield _row(Lane.HINT, source, kind="clocks", names=brokers, times=lags, **place)


def batches(
    found: Iterator[Record | Aside], source: int, carry_ms: int, tally: Tally, first: int = 0
) -> Iterator[pa.RecordBatch]:
    """Turn what was read of a file, or of a block of it, into rows of the stream.

    Args:
        found: What was read.
        source: Number of the file.
        carry_ms: How long before midnight a record matters to the next day.
        tally: What is counted while it is read.
        first: First byte of the block.
    """
    waiting: list[dict[str, Any]] = []
    weight = 0
    hints: dict[tuple[str, int], Hint] = {}
    newest: dict[tuple[str, str, Kind], int] = {}
    for item in found:
        if isinstance(item, Aside):
            text = f"{item.place}: {item.reason}" if item.place else item.reason
            place = {"time_ms": first, "line": item.line}
            waiting.append(_row(Lane.ASIDE, source, text=text, rows=item.rows, raw=item.raw, **place))
            weight += len(item.raw) // 8
        else:
            rows = list(_rows_of_record(item, source, carry_ms))
            waiting += rows
            weight += len(rows) * (len(item.values) + len(item.names) + len(item.times))
            for row in rows:
                hints.setdefault((item.cluster, row["day"]), Hint()).add(item)
            if item.kind is not Kind.SAMPLES:
                key = (item.cluster, item.broker, item.kind)
                last = newest.get(key, item.time_ms)
                hints[item.cluster, item.time_ms // DAY_MS].late += item.time_ms < last
                newest[key] = max(item.time_ms, last)
        if len(waiting) >= _BATCH_ROWS or weight >= _BATCH_VALUES:
            yield pa.RecordBatch.from_pylist(waiting, schema=SCHEMA)
            waiting, weight = [], 0
    waiting += _rows_of_hints(hints, source)
    waiting.append(_row(Lane.BLOCK, source, time_ms=first, line=tally.lines, rows=tally.rows))
    yield pa.RecordBatch.from_pylist(waiting, schema=SCHEMA)


@dataclass(frozen=True, slots=True)
class Row:
    """A record with what the stream says about it.

    Attributes:
        record: The record.
        carry: It is of the day before.
        digest: Tells whether two rows say the same.
    """

    record: Record
    carry: bool
    digest: tuple[int, int]


def rows_of_batch(batch: pa.RecordBatch) -> Iterator[Row]:
    """Yield the records of a batch of the stream; numbers stay arrays."""
    plain = [name for name in _FIELDS if name not in _LISTS]
    lists = {name: batch.column(name) for name in _LISTS}
    offsets = {name: column.offsets.to_pylist() for name, column in lists.items()}
    flat = {name: lists[name].values.to_numpy(zero_copy_only=False) for name in ("times", "values")}
    for at, row in enumerate(batch.select([*plain, "carry", "digest_low", "digest_high"]).to_pylist()):
        spans = {name: slice(*ends[at : at + 2]) for name, ends in offsets.items()}
        digest, carry = (row.pop("digest_low"), row.pop("digest_high")), row.pop("carry")
        names = lists["names"].values[spans["names"]].to_pylist()
        numbers = {name: values[spans[name]] for name, values in flat.items()}
        yield Row(Record(**row | {"kind": Kind(row["kind"])}, names=names, **numbers), carry, digest)
