"""What the first stage of an ingest read, in files aside: written in order by whoever read it, read by who makes a day.

The rows themselves pass through no other process. Of a block of a file there are runs, each sorted by `ORDER` and of
bounded size, and a summary that names their pieces: what is in one lane, of one cluster and day. The summary appears
when all runs are on disk, under a name that says what was read, so that an attempt that comes second, or an ingest
after one that was killed, finds it and reads nothing.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush, heapreplace, merge
from itertools import groupby
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import TypeAdapter

from planner.cluster.files import content_of_file, plain_file, whole_file
from planner.cluster.units import DAY_MS
from planner.history.records import EMPTY, SCHEMA, DayFacts, Kind, Row, Stream, rows_of_batch

READ = "read"
"""Folder for it, in the staging folder of a history."""

ORDER = ("lane", "cluster", "day", "time_ms", "broker", "kind", "subject", "line")
"""Sort order of the rows of a run; rows of a day are merged in this order, then by source and block."""

_RUN_BYTES = 64 << 20
_BATCH_BYTES = 512 << 10
_BATCH_ROWS = 256
_KEYS = ("lane", "cluster", "day")
_SUMS = ("rows", "carried", "low", "high", "least", "most", "lines", "first_ms", "count")
_PACKED = pa.ipc.IpcWriteOptions(compression="lz4")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPart:
    """What a run has in one lane, and where these are records, of one cluster and day.

    Attributes:
        path: The file of the run.
        batch: Its first batch there.
        batches: How many.
        lane: The lane.
        cluster: The cluster.
        day: The day, counted from 1970-01-01.
        rows: Rows of this day.
        carried: Rows of the day before.
        low: Sum of the lower halves of the digests.
        high: Sum of the upper halves.
        least: The shortest lag of any broker's clock; None where none is known.
        most: The longest.
        lines: The last line; in the lane of blocks how many the block has.
        first_ms: The first moment.
        snapshot: Moment, cluster and digest of the last snapshot, where the last row is one.
        source: Number of the file that was read.
        block: First byte of the block.
    """

    path: str
    batch: int
    batches: int
    lane: str
    cluster: str
    day: int
    rows: int
    carried: int
    low: int
    high: int
    least: int | None
    most: int | None
    lines: int
    first_ms: int
    snapshot: tuple[int, str, str] | None
    source: int = 0
    block: int = 0


_PIECES = TypeAdapter(list[RunPart])


def staged(folder: Path, name: str, rows: Callable[[], Iterable[pa.RecordBatch]]) -> list[RunPart]:
    """Return the pieces of a block, which are written unless they are there.

    Args:
        folder: Where they are, or go to.
        name: What was read, and how: whoever gives the same name gives the same rows.
        rows: Gives the rows of the block.

    Raises:
        OSError: The disk refuses.
    """
    summary = folder / f"{name}.json"
    if summary.exists():
        return _PIECES.validate_json(content_of_file(summary))
    found = list(_written(rows(), folder))
    fresh = folder / f"{uuid4().hex}.json"  # another attempt may be at it as well
    with whole_file(fresh) as file:
        file.write(_PIECES.dump_json(found))
    fresh.replace(summary)
    return found


def _written(rows: Iterable[pa.RecordBatch], folder: Path) -> Iterator[RunPart]:
    waiting: list[pa.RecordBatch] = []
    weight = 0
    for batch in rows:
        waiting.append(batch)
        weight += batch.nbytes
        if weight >= _RUN_BYTES:
            yield from _write_run(waiting, folder)
            waiting, weight = [], 0
    if waiting:
        yield from _write_run(waiting, folder)


def _write_run(batches: Sequence[pa.RecordBatch], folder: Path) -> Iterator[RunPart]:
    path = folder / f"{uuid4().hex}.arrow"
    table = pa.Table.from_batches(batches).sort_by([(name, "ascending") for name in ORDER]).combine_chunks()
    most = max(min(_BATCH_ROWS, _BATCH_BYTES * len(table) // max(table.nbytes, 1)), 1)
    zero, rows, carry = pa.scalar(0, pa.int64()), table["rows"], table["carry"]
    counted = table.select([*_KEYS, "digest_low", "digest_high", "measure", "line", "time_ms"])
    counted = counted.append_column("own", pc.if_else(carry, zero, rows))
    counted = counted.append_column("carried", pc.if_else(carry, rows, zero))
    sums = [(name, "sum") for name in ("own", "carried", "digest_low", "digest_high")]
    bounds = [("measure", "min"), ("measure", "max"), ("line", "max"), ("time_ms", "min"), ("own", "count")]
    groups = counted.group_by(_KEYS, use_threads=False).aggregate([*sums, *bounds]).rename_columns([*_KEYS, *_SUMS])
    at = batch = 0
    with whole_file(path) as file, pa.ipc.new_file(file, SCHEMA, options=_PACKED) as writer:
        for group in groups.sort_by([(key, "ascending") for key in _KEYS]).to_pylist():
            count = group.pop("count")
            parts = table.slice(at, count).to_batches(max_chunksize=most)
            for part in parts:
                writer.write_batch(part)
            last = table.slice(at + count - 1, 1).select(["kind", "time_ms", "cluster", "text"]).to_pylist()[0]
            yield RunPart(
                path=str(path),
                batch=batch,
                batches=len(parts),
                **group,
                snapshot=(last["time_ms"], last["cluster"], last["text"]) if last["kind"] == Kind.SNAPSHOT else None,
            )
            at, batch = at + count, batch + len(parts)


def batches_of(piece: RunPart, columns: Sequence[str] = ()) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a piece; no file is open in between. All columns unless some are named."""
    fields = [SCHEMA.get_field_index(name) for name in columns]
    only = pa.ipc.IpcReadOptions(included_fields=fields, use_threads=False)  # one column holds nearly everything
    for number in range(piece.batch, piece.batch + piece.batches):
        with pa.OSFile(str(plain_file(Path(piece.path)))) as file:
            batch = pa.ipc.open_file(file, options=only).get_batch(number)
        yield batch


def hint_of(pieces: Iterable[RunPart]) -> DayFacts:
    """Return what the records of a day have in common, from its pieces in the lane of hints."""
    hint = DayFacts()
    for piece in pieces:
        for batch in batches_of(piece):
            for row in batch.to_pylist():
                hint.take(row)
    return hint


def _since(piece: RunPart, time_ms: int) -> RunPart:
    """Return a piece of records without the batches that are before a time."""
    if piece.first_ms >= time_ms:
        return piece

    def last_ms(number: int) -> int:
        (batch,) = batches_of(replace(piece, batch=piece.batch + number, batches=1), ["time_ms"])
        last: int = batch["time_ms"][-1].as_py()
        return last

    before = bisect_left(range(piece.batches), time_ms, key=last_ms)
    return replace(piece, batch=piece.batch + before, batches=piece.batches - before)


def rows_in_order(pieces: Sequence[RunPart], since_ms: int = 0) -> Iterator[Row]:
    """Yield the records of pieces of one cluster and day from a time on, in the order of time."""

    def keyed(piece: RunPart) -> Iterator[tuple[tuple[Any, ...], Row]]:
        for batch in batches_of(piece):
            for row in rows_of_batch(batch):
                r = row.record
                if r.time_ms < since_ms:
                    continue
                subject = r.names[0] if r.names else ""
                yield (r.time_ms, r.broker, r.kind.value, subject, piece.source, piece.block, r.line), row

    later = [piece for piece in (_since(piece, since_ms) for piece in pieces) if piece.batches]
    left = sorted(later, key=lambda piece: piece.first_ms, reverse=True)
    heap: list[tuple[tuple[Any, ...], int, Row, Iterator[tuple[tuple[Any, ...], Row]]]] = []
    while heap or left:
        while left and (not heap or left[-1].first_ms <= heap[0][0][0]):
            coming = keyed(left.pop())
            key, row = next(coming)
            heappush(heap, (key, len(left), row, coming))
        _, number, row, coming = heap[0]
        yield row
        following = next(coming, None)
        if following is None:
            heappop(heap)
        else:
            heapreplace(heap, (following[0], number, following[1], coming))


def asides_in_order(pieces: Sequence[RunPart]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield what pieces of one file say of rows put aside, in the order of the file, each with its block."""
    for block, of_block in groupby(sorted(pieces, key=lambda piece: piece.block), key=lambda piece: piece.block):
        rows = ((row for batch in batches_of(piece) for row in batch.to_pylist()) for piece in of_block)
        for row in merge(*rows, key=lambda row: int(row["line"])):
            yield block, row


@dataclass(frozen=True, slots=True)
class Strays:
    """What of a file a wrong clock has dated.

    Attributes:
        first: The first day that is right, counted from 1970-01-01.
        last: The last one.
        lag_ms: How far the clock of each broker is off, by cluster and broker; rows a day off from that are wrong.
    """

    first: int
    last: int
    lag_ms: tuple[tuple[str, str, float], ...]


def lags_of(pieces: Iterable[RunPart]) -> tuple[tuple[str, str, float], ...]:
    """Return the median lag of the clock of each broker, by cluster and broker."""
    lags: dict[tuple[str, str], list[int]] = {}
    for piece in pieces:
        for batch in batches_of(piece, ("broker", "measure", "carry")):
            given = batch.filter(pc.and_(pc.invert(batch["carry"]), pc.is_valid(batch["measure"])))
            for broker, lag_ms in zip(given["broker"].to_pylist(), given["measure"].to_pylist(), strict=True):
                lags.setdefault((piece.cluster, broker), []).append(lag_ms)
    return tuple((*key, float(np.median(found))) for key, found in sorted(lags.items()))


def without_strays(
    pieces: Iterable[RunPart], strays: Strays, years_off: str, clock_off: str
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of pieces with those put aside that a wrong clock has dated, for the reasons given."""
    lag_ms = {(cluster, broker): lag for cluster, broker, lag in strays.lag_ms}
    empty = {**EMPTY, "lane": Stream.ASIDE.value}
    kept = ("source", "block", "line", "rows", "digest_low", "digest_high")
    for piece in pieces:
        for batch in batches_of(piece):
            if piece.lane != Stream.ROW:
                yield batch
                continue
            day = pc.floor(pc.divide(batch["time_ms"].cast(pa.float64()), DAY_MS))
            years = pc.or_(pc.less(day, strays.first), pc.greater(day, strays.last))
            right = pa.array(
                [lag_ms.get((piece.cluster, broker)) for broker in batch["broker"].to_pylist()], pa.float64()
            )
            off = pc.greater(pc.abs(pc.subtract(batch["measure"].cast(pa.float64()), right)), DAY_MS)
            bad = pc.or_(years, pc.fill_null(off, False))
            yield batch.filter(pc.invert(bad))
            wrong = pc.and_(bad, pc.invert(batch["carry"]))
            rows = batch.filter(wrong).select(kept).to_pylist()
            reasons = [years_off if far else clock_off for far in years.filter(wrong).to_pylist()]
            given = [empty | row | {"text": reason, "measure": 0} for row, reason in zip(rows, reasons, strict=True)]
            yield pa.RecordBatch.from_pylist(given, schema=SCHEMA)
