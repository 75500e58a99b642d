"""Reads days of history: exactly the snapshots that were written; one row group is in memory at a time.

A watch may add to a day meanwhile, compact it, or make room. `planner.history.day_writer` and `watched` write days.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from heapq import merge
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from planner.cluster.errors import FormatError, PlannerError
from planner.cluster.snapshot import Snapshot
from planner.cluster.tables import make_topics
from planner.formats.reading import read_snapshot
from planner.formats.rows import MOMENTS, SCHEMAS, snapshots_of_rows
from planner.formats.validate import TABLES, fitting_notes
from planner.history.manifest import (
    DayFolder,
    check_parts,
    damaged,
    open_day,
    read_manifest,
    times_of_run,
)

Columns: TypeAlias = Mapping[str, Sequence[str] | None]
"""Names of columns by table, None for all of them."""
_MOMENT = attrgetter("info.captured_at_ms")


def read_day(
    folder: Path,
    *,
    start_ms: int = 0,
    end_ms: int | None = None,
    topics: bool = True,
    columns: Columns | None = None,
) -> Iterator[Snapshot]:
    """Yield the snapshots of a day in the order of time, as they were written, one row group in memory at a time.

    What the manifest notes about the day is among the warnings of each.

    A watch may add to the day meanwhile, compact it, or make room: what it had when it was opened is read, as far as
    it is still there.

    Args:
        folder: The day's folder, `cluster=<name>/day=<yyyy-mm-dd>`.
        start_ms: The first moment wanted, ms since 1970.
        end_ms: The first moment no longer wanted.
        topics: Whether the snapshots have their topics; reading is faster without.
        columns: What has to be read of runs, table by table; everything else may have its default. All without.

    Raises:
        FormatError: There is no such day, or it is damaged.
    """
    day = _day_at(folder)
    if day is None:
        read_manifest(folder)  # says what is missing
        return
    high = day.manifest.last_ms + 1 if end_ms is None else end_ms
    low = start_ms
    while day is not None:
        try:
            for snapshot in _in_order(day, low, high, columns or _everything(topics=topics)):
                low = snapshot.info.captured_at_ms + 1
                yield _noted(snapshot, day.manifest.notes)
        except FormatError:
            now = _day_at(folder)
            if now == day:
                raise
            day = now  # it was compacted, or made room
        else:
            return


def _noted(snapshot: Snapshot, notes: Sequence[str]) -> Snapshot:
    """Return a snapshot with the notes of its day among its warnings."""
    new = [note for note in notes if note not in snapshot.info.warnings]
    if not new:
        return snapshot
    return snapshot.with_columns(info=replace(snapshot.info, warnings=fitting_notes((*snapshot.info.warnings, *new))))


def _day_at(folder: Path) -> DayFolder | None:
    try:
        return open_day(folder)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise damaged(folder, error) from error


def snapshot_at(folder: Path, time_ms: int) -> Snapshot:
    """Return a moment of a day.

    Raises:
        FormatError: There is no such moment, or it is damaged.
    """
    for snapshot in read_day(folder, start_ms=time_ms, end_ms=time_ms + 1):
        return snapshot
    raise FormatError(
        "The snapshot is no longer in the history.",
        where=f"{folder.parent.name}/{folder.name}",
        remedy="Choose another snapshot.",
    )


def times_of_day(folder: Path) -> list[int]:
    """Return the moments of a day, ms since 1970, in the order of time; none where there is no day.

    Raises:
        FormatError: The day is damaged.
        OSError: The folder cannot be read.
    """
    day = open_day(folder)
    if day is None:
        return []
    try:
        runs = (times_of_run(folder, day.manifest, run) for run in day.manifest.runs)
        return sorted([*day.segments, *(at for times in runs for at in times)])
    except FormatError:
        if open_day(folder) != day:  # a watch made room
            return times_of_day(folder)
        raise


def _everything(*, topics: bool) -> Columns:
    return {part: None for part in TABLES if topics or part != "topics"}


def _in_order(day: DayFolder, low: int, high: int, columns: Columns) -> Iterator[Snapshot]:
    """Yield the snapshots of a day within a time: runs and segments one after the other, side by side where they mix.

    They mix when the clock of a cluster was set back while it was watched.
    """
    pieces: list[tuple[int, int, str | Path]] = [(at, at, path) for at, path in day.segments.items()]
    for run in day.manifest.runs:
        bounds = [day.manifest.first_ms, day.manifest.last_ms]
        if len(day.manifest.runs) > 1 or day.is_watched:
            bounds = times_of_run(day.path, day.manifest, run)
        pieces.append((bounds[0], bounds[-1], run))
    together: list[Iterator[Snapshot]] = []
    until = -1
    for first, last, piece in sorted((p for p in pieces if p[0] < high and p[1] >= low), key=lambda p: p[:2]):
        if first > until:
            yield from merge(*together, key=_MOMENT)
            together = []
        until = max(until, last)
        together.append(
            _read_run(day, piece, low, high, columns)
            if isinstance(piece, str)
            else _read_segment(piece, "topics" in columns)
        )
    yield from merge(*together, key=_MOMENT)


def _read_segment(path: Path, topics: bool) -> Iterator[Snapshot]:  # noqa: FBT001 - private
    try:
        snapshot = read_snapshot(path)
    except PlannerError as error:
        raise damaged(path, error) from error
    yield snapshot if topics else replace(snapshot, topics=make_topics())


def _read_run(day: DayFolder, run: str, low: int, high: int, columns: Columns) -> Iterator[Snapshot]:
    names = {part: name for part, name in day.manifest.files_of(run).items() if part == MOMENTS or part in columns}
    check_parts(day.path, day.manifest, names.values())
    try:
        moments = pq.read_table(day.path / names[MOMENTS], page_checksum_verification=True)
        inside = pc.and_(pc.greater_equal(moments["time_ms"], low), pc.less(moments["time_ms"], high))
        files = {part: _open(day.path / names[part], part) for part in TABLES if part in names}
        wanted = {part: chosen and ["time_ms", "position", *chosen] for part, chosen in columns.items()}
    except (pa.ArrowException, OSError, KeyError) as error:
        raise damaged(day.path, error) from error
    with contextlib.ExitStack() as stack:
        for file in files.values():
            stack.enter_context(file)
        for group in pc.unique(moments.filter(inside)["row_group"]).to_pylist():
            members = moments.filter(pc.equal(moments["row_group"], group)).to_pylist()
            try:
                tables = {part: file.read_row_group(group, wanted[part]) for part, file in files.items()}
                yield from _wanted(members, tables, low, high)
            except (pa.ArrowException, OSError, ArithmeticError, LookupError, TypeError, ValueError) as error:
                raise damaged(day.path, error) from error


def _open(path: Path, part: str) -> pq.ParquetFile:
    texts = [f.name for f in SCHEMAS[part] if pa.types.is_dictionary(f.type)]
    return pq.ParquetFile(path, read_dictionary=texts, page_checksum_verification=True)


def _wanted(members: list[dict[str, Any]], tables: Mapping[str, pa.Table], low: int, high: int) -> Iterator[Snapshot]:
    """Yield the snapshots of a row group within the time; rows of the others are cut off before they are decoded."""
    first = next(i for i, m in enumerate(members) if m["time_ms"] >= low)
    last = next((i for i, m in enumerate(members) if m["time_ms"] >= high), len(members))
    cut = {
        part: table.slice(sum(m[part] for m in members[:first]), sum(m[part] for m in members[first:last]))
        for part, table in tables.items()
    }
    yield from snapshots_of_rows(members[first:last], cut)
