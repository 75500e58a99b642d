"""What is read out of raw files, before it becomes history: one row for each raw row, or run of samples.

The process that reads rows keeps them, sorted, in files of its own (`planner.history.staged`): they pass through no
other one. Rows that cannot be read are in the same stream, in the lane `aside`.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import Raw, msgpack

from planner.cluster.arrays import FloatArray, Int64Array
from planner.cluster.errors import FormatError, PlannerError
from planner.cluster.moments import LAST_MS
from planner.cluster.pulsar_json import BROKER_COLUMNS, BUNDLE_STATS, RATES, USAGE_METRICS
from planner.cluster.units import DAY_MS
from planner.formats.validate import MAX_NAME_LENGTH
from planner.history.gateways import Targets, add_target, widen
from planner.history.manifest import day_folder
from planner.spark.schema import arrow_schema

BROKER_VALUES = BROKER_COLUMNS
"""Columns of `BrokerTable` that a report gives, in the order of its values."""

BUNDLE_VALUES = tuple(BUNDLE_STATS.values())
"""Columns of `BundleTable` that a report gives of each bundle."""

COUNTERS = ("messages_in", "messages_out", "bytes_in", "bytes_out")
"""Counters of a topic, in the order of the rates that follow from them; NaN where a broker does not give one."""

TOPIC_VALUES = (*RATES.values(), "producers", "consumers", *COUNTERS)
"""Fields of a topic: columns of `TopicTable`, then counters."""


class Stream(StrEnum):
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
            `text` its subscription and other labels (`labels.packed`); `times` and `values`. `broker` may be a host
            without a port.
        SNAPSHOT: A snapshot or raw capture; `text` is its path.
    """

    REPORT = "report"
    TOP = "top"
    STATE = "state"
    TOPICS = "topics"
    SAMPLES = "samples"
    SNAPSHOT = "snapshot"


DDL = (
    "lane string, cluster string, day int, time_ms bigint, carry boolean, kind string, broker string, subject string,"
    " text string, measure bigint, source int, block bigint, line bigint, rows bigint, digest_low bigint,"
    " digest_high bigint, body binary"
)
"""Columns of the stream.

A day is counted from 1970-01-01, a block is the first byte of it. Of a record, `subject` is its first name, `measure`
the lag of the broker's clock, `text` the digest where it is a snapshot, and `body` everything else (`_packed`). Of a
row set aside, `text` is the reason, `measure` its bytes, `subject` their SHA-256, and `body` the first of them.
"""

SCHEMA = arrow_schema(DDL)
"""The same columns as Arrow has them."""

MOST_RAW_BYTES = 1 << 16
"""Bytes that are kept of a row that is set aside."""

MOST_ASIDE = 2_000
"""Most unreadable rows that are listed one by one, for a file or a block of it; the others are counted."""

_LONGEST_FOLDER_NAME = 200
_BATCH_ROWS = 2_000
_BATCH_BYTES = 4 << 20
_LISTED_BYTES = 4 << 20
_LONGEST_TEXT = 500
_SHIFT = 31
_MOST_WARNINGS = 5


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

    def __post_init__(self) -> None:
        """Refuse what no day can hold.

        Raises:
            FormatError: The moment is out of bounds, or a name cannot be one.
        """
        if not 0 < self.time_ms <= LAST_MS:
            raise FormatError(
                f"{self.time_ms} is not a valid timestamp.", remedy="Use milliseconds since 1970 (Prometheus: seconds)."
            )
        check_cluster(self.cluster)
        check_name(self.broker)


@lru_cache(maxsize=1 << 10)
def check_cluster(cluster: str) -> None:
    """Refuse a name of a cluster that cannot be that of a folder.

    Raises:
        FormatError: It is empty, too long, or holds signs that cannot be shown.
    """
    if not cluster.strip() or not cluster.isprintable():
        raise FormatError("The name of the cluster cannot be shown.", where="cluster", remedy="Set --cluster.")
    if len(day_folder(Path(), cluster, "").parent.name) > _LONGEST_FOLDER_NAME:
        raise FormatError(
            f"The name of the cluster, {cluster[:40]}…, is too long for a folder.",
            where="cluster",
            remedy="Shorten it.",
        )


@lru_cache(maxsize=1 << 18)
def check_name(name: str) -> None:
    """Refuse a name of a broker, namespace or topic that none can have.

    Raises:
        FormatError: It is too long, or cannot be written as UTF-8.
    """
    if len(name) > MAX_NAME_LENGTH or (not name.isascii() and len(name.encode("utf-8", "replace")) > MAX_NAME_LENGTH):
        raise FormatError(
            f"The name {name[:40]}… is too long.", remedy=f"Names have at most {MAX_NAME_LENGTH:,} bytes in UTF-8."
        )


@dataclass(frozen=True, slots=True)
class RowSetAside:
    """A row that could not be read.

    Attributes:
        reason: Why, and what to do, one or two sentences.
        line: Line in the file, from 1; in a Prometheus export the number of the series; 0 for the whole file.
        place: Where inside the line or file; may be empty.
        rows: How many raw rows are lost with it.
        raw: Its bytes, as far as they are at hand.
        size: How many bytes it has, where `raw` is its beginning alone.
        sha256: SHA-256 of all of them, in the same case.
    """

    reason: str
    line: int = 0
    place: str = ""
    rows: int = 1
    raw: bytes = b""
    size: int = 0
    sha256: str = ""

    @classmethod
    def of(cls, error: Exception, line: int, raw: bytes = b"", rows: int = 1) -> "RowSetAside":
        """Put a row aside because of an error; one that is none of `PlannerError` is a fault of the planner."""
        if not isinstance(error, PlannerError):
            return cls(
                f"The planner failed on it with {type(error).__name__}. Report this as a bug.", line, rows=rows, raw=raw
            )
        remedy = f" {error.remedy}" if error.remedy else ""
        return cls(f"{error.what[:_LONGEST_TEXT]}{remedy}", line, error.where[:_LONGEST_TEXT], rows, raw)


@dataclass
class Tally:
    """What was read, counted before anybody looks at what it is.

    Attributes:
        rows: Rows.
        lines: Lines, blank ones too; 0 in a file that has none.
        warnings: What servers say of their answers, one sentence each.
    """

    rows: int = 0
    lines: int = 0
    warnings: dict[str, None] = field(default_factory=dict)


@dataclass
class DayFacts:
    """What the records of a day have in common, known before the first of them is looked at.

    Attributes:
        first_ms: When each bundle is first reported, by name.
        lag_ms: Times between the clock of each broker and that of the recorder, by broker.
        brokers: Brokers that records name.
        late: Rows that stand after later ones of the same broker.
        warnings: What servers say of the answers that have records of the day, one sentence each.
        targets: What the series of each address call their brokers, and when.
    """

    first_ms: dict[str, int] = field(default_factory=dict)
    lag_ms: dict[str, list[int]] = field(default_factory=dict)
    brokers: set[str] = field(default_factory=set)
    late: int = 0
    warnings: dict[str, None] = field(default_factory=dict)
    targets: Targets = field(default_factory=dict)
    _given: dict[str, tuple[Sequence[str], int]] = field(default_factory=dict)

    def add(self, record: Record) -> None:
        """Take note of a record."""
        if record.clock_lag_ms is not None:
            self.lag_ms.setdefault(record.broker, []).append(record.clock_lag_ms)
        self.brokers.add(record.broker)
        if record.kind is Kind.SAMPLES and record.text and len(record.times):
            times_ms = int(record.times[0]), int(record.times[-1])
            add_target(
                self.targets, record.broker, record.text, times_ms, is_usage=record.metric == USAGE_METRICS["cpu"]
            )
        names = bundles_of(record)
        before = self._given.get(record.broker)
        if before is not None and before[1] <= record.time_ms and before[0] == names:
            return  # the same bundles as before, as a rule
        self._given[record.broker] = (names, record.time_ms)
        for name in names:
            known = self.first_ms.get(name)
            if known is None or record.time_ms < known:
                self.first_ms[name] = record.time_ms

    def take(self, row: Mapping[str, Any]) -> None:
        """Take note of a row of hints of the stream."""
        found = msgpack.decode(row["body"])
        if row["kind"] == "bundles":
            for name, time_ms in found:
                if self.first_ms.get(name, time_ms) >= time_ms:
                    self.first_ms[name] = time_ms
        elif row["kind"] == "brokers":
            self.brokers.update(found)
        elif row["kind"] == "targets":
            for address, pod, host, hour, first_ms, last_ms in found:
                widen(self.targets, (address, pod, host, hour), first_ms, last_ms)
        elif row["kind"] == "warnings":
            self.warnings |= dict.fromkeys(found)
        else:
            for name, lags_ms in found:
                self.lag_ms.setdefault(name, []).extend(lags_ms)
        self.late += row["rows"]


def bundles_of(record: Record) -> Sequence[str]:
    """Return the bundles that a record reports."""
    if record.kind is Kind.TOPICS:
        found: list[str] = json.loads(record.text)
        return found
    if record.kind is Kind.SAMPLES:
        return record.names if record.metric.startswith("pulsar_bundle_") else ()
    return () if record.kind is Kind.SNAPSHOT else record.names


def _packed(record: Record) -> tuple[int, bytes]:
    """Return 62 bits that differ when anything about the record differs but its place in the file, and its body."""
    parts = (record.kind, record.cluster, record.broker, record.metric, record.text, str(record.time_ms))
    head = "\x1f".join((*parts, *record.names)).encode()
    digest = hashlib.blake2b(head, digest_size=8)
    times, values = (
        np.asarray(record.times, dtype="<i8").tobytes(),
        np.asarray(record.values, dtype="<f8").tobytes(),
    )
    digest.update(times)
    digest.update(values)
    body = msgpack.encode((record.metric, record.text, record.names, times, values))
    return int.from_bytes(digest.digest()) >> 2, body


EMPTY = {f.name: b"" if f.type == pa.binary() else "" if f.type == pa.string() else 0 for f in SCHEMA} | {
    "carry": False,
    "measure": None,
}
"""An empty row of the stream."""


def _rows_of_record(record: Record, carry_ms: int, place: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a record for its day and, when it is from the last minutes of it, for the next day too."""
    (digest, body), day = _packed(record), record.time_ms // DAY_MS
    made = {
        **place,
        "lane": Stream.ROW.value,
        "cluster": record.cluster,
        "day": day,
        "time_ms": record.time_ms,
        "kind": record.kind.value,
        "broker": record.broker,
        "subject": record.names[0] if record.names else "",
        "text": record.metric if record.kind is Kind.SNAPSHOT else "",
        "measure": record.clock_lag_ms,
        "line": record.line,
        "rows": record.rows,
        "digest_low": digest & ((1 << _SHIFT) - 1),
        "digest_high": digest >> _SHIFT,
        "body": body,
    }
    yield made
    last_ms = int(record.times[-1]) if len(record.times) else record.time_ms
    is_last = last_ms % DAY_MS >= DAY_MS - carry_ms and day < LAST_MS // DAY_MS
    if is_last and record.kind is not Kind.SNAPSHOT:
        yield {**made, "day": day + 1, "carry": True}


def _rows_of_hints(
    hints: Mapping[tuple[str, int], DayFacts], warnings: Iterable[str], place: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    for (cluster, day), hint in hints.items():
        made: dict[str, Any] = {**place, "lane": Stream.HINT.value, "cluster": cluster, "day": day}
        body = msgpack.encode(sorted(hint.first_ms.items()))
        yield made | {"kind": "bundles", "rows": hint.late, "body": body}
        if hint.brokers:
            yield made | {"kind": "brokers", "body": msgpack.encode(sorted(hint.brokers))}
        if warnings:
            yield made | {"kind": "warnings", "body": msgpack.encode(list(warnings))}
        if hint.targets:
            rows = [(*key, *time_ms) for key, time_ms in sorted(hint.targets.items())]
            yield made | {"kind": "targets", "body": msgpack.encode(rows)}
        if hint.lag_ms:
            yield made | {"kind": "clocks", "body": msgpack.encode(sorted(hint.lag_ms.items()))}


def _row_of_aside(aside: RowSetAside, most_bytes: int, place: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **place,
        "lane": Stream.ASIDE.value,
        "line": aside.line,
        "rows": aside.rows,
        "text": f"{aside.place}: {aside.reason}" if aside.place else aside.reason,
        "measure": aside.size or len(aside.raw),
        "subject": aside.sha256 or hashlib.sha256(aside.raw).hexdigest(),
        "body": aside.raw[:most_bytes],
    }


def batches(
    found: Iterable[Record | RowSetAside], source: int, carry_ms: int, tally: Tally, first: int = 0
) -> Iterator[pa.RecordBatch]:
    """Turn what was read of a file, or of a block of it, into rows of the stream.

    Args:
        found: What was read.
        source: Number of the file.
        carry_ms: How long before midnight a record matters to the next day.
        tally: What is counted while it is read.
        first: First byte of the block.
    """
    place = EMPTY | {"source": source, "block": first}
    waiting: list[dict[str, Any]] = []
    weight = listed = listed_bytes = 0
    more = RowSetAside("", rows=0)
    hints: dict[tuple[str, int], DayFacts] = {}
    newest: dict[tuple[str, str, Kind], int] = {}
    for item in found:
        if isinstance(item, RowSetAside):
            listed += 1
            if listed > MOST_ASIDE:
                line, reason = more.line or item.line, more.reason or item.reason
                more = replace(more, line=line, reason=reason, rows=more.rows + item.rows)
                continue
            row = _row_of_aside(item, MOST_RAW_BYTES if listed_bytes < _LISTED_BYTES else 0, place)
            listed_bytes += len(row["body"])
            rows = [row]
        else:
            rows = list(_rows_of_record(item, carry_ms, place))
            for row in rows:
                hints.setdefault((item.cluster, row["day"]), DayFacts()).add(item)
            if item.kind is not Kind.SAMPLES:
                key = (item.cluster, item.broker, item.kind)
                last = newest.get(key, item.time_ms)
                hints[item.cluster, item.time_ms // DAY_MS].late += item.time_ms < last
                newest[key] = max(item.time_ms, last)
        waiting += rows
        weight += sum(len(row["body"]) for row in rows)
        if len(waiting) >= _BATCH_ROWS or weight >= _BATCH_BYTES:
            yield pa.RecordBatch.from_pylist(waiting, schema=SCHEMA)
            waiting, weight = [], 0
    if more.rows:
        reason = f"Further rows that cannot be read, from this line on, are only counted. The first: {more.reason}"
        waiting.append(_row_of_aside(replace(more, reason=reason), 0, place))
    waiting += _rows_of_hints(hints, list(tally.warnings)[:_MOST_WARNINGS], place)
    waiting.append(place | {"lane": Stream.BLOCK.value, "line": tally.lines, "rows": tally.rows})
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


_KINDS = {kind.value: kind for kind in Kind}
_BODY = msgpack.Decoder(tuple[str, str, Raw, bytes, bytes])


@lru_cache(maxsize=1 << 10)
def _names_of(packed: bytes) -> tuple[str, ...]:
    """Return the names of a record; most brokers speak of the same ones again and again."""
    return msgpack.decode(packed, type=tuple[str, ...])


def rows_of_batch(batch: pa.RecordBatch) -> Iterator[Row]:
    """Yield the records of a batch of the stream; numbers are arrays."""
    columns = ("kind", "cluster", "time_ms", "broker", "rows", "line", "carry", "digest_low", "digest_high", "body")
    for kind, cluster, time_ms, broker, rows, line, carry, low, high, body in zip(
        *(batch[name].to_pylist() for name in columns), strict=True
    ):
        metric, text, names, times, values = _BODY.decode(body)
        record = Record(
            _KINDS[kind],
            cluster,
            time_ms,
            broker,
            metric,
            _names_of(bytes(names)),
            np.frombuffer(times, "<i8"),
            np.frombuffer(values, "<f8"),
            text,
            rows,
            line,
        )
        yield Row(record, carry, (low, high))
