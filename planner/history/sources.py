"""Finds the raw files of a history, and reads each, or a block of a large one, into records."""

import gzip
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, cast

from planner.cluster.digest import snapshot_digest
from planner.cluster.errors import FormatError, PlannerError, escaped
from planner.cluster.files import opened, plain_file, reading
from planner.cluster.snapshot import Snapshot
from planner.cluster.units import GIB, MIB
from planner.formats.folder import MANIFEST
from planner.formats.raw_capture.answers import INDEX
from planner.formats.reading import read_snapshots, snapshot_of_moment
from planner.history.days import read_day, snapshot_at
from planner.history.lines import records_of_lines
from planner.history.manifest import DayFolder, DayManifest, is_day_folder, open_day
from planner.history.pretty import is_printed, one_a_line
from planner.history.prometheus import records_of_export
from planner.history.records import Kind, Record, RowSetAside, Tally

BLOCK_BYTES = 32 << 20
"""Bytes of a file of lines that one task reads."""

_LINES = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")
_EXPORT_MARKS = (b'"resultType"', b'"status"', b'"__name__"')
_OF_A_HISTORY = {"ledger.json", "set_aside", "fetched"}
_HEAD = 4_096
_LONGEST_LINE = 32 << 20
_FARTHEST = GIB
_PIECE = MIB


class SourceKind(StrEnum):
    """What a raw file is taken for."""

    LINES = "lines"
    EXPORT = "export"
    SNAPSHOT = "snapshot"
    HISTORY = "history"
    MISNAMED = "misnamed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Source:
    """A raw file, or a folder that is one snapshot or capture, or a day of a history.

    Attributes:
        path: Where it is, absolute.
        kind: What it is taken for.
        size: Its bytes, those of a folder summed up.
        changed_ns: When it was last changed, ns since 1970; of a folder, the latest of its files.
    """

    path: str
    kind: SourceKind
    size: int
    changed_ns: int


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a source that one task reads.

    Attributes:
        path: The source.
        kind: What it is taken for.
        first: First byte; a line belongs to the block in which it starts.
        last: First byte no longer in it.
    """

    path: str
    kind: SourceKind
    first: int
    last: int


def find_sources(inputs: Sequence[Path], leave_out: Path) -> list[Source]:
    """Return the raw files in some places, by path; `leave_out`, the history that is written, is not looked into.

    A folder with `manifest.json` or `index.json` is a snapshot or raw capture as a whole; captures inside it are found,
    too. A day of a history is a whole as well. Hidden files are left alone. A name that is not UTF-8 is spelled, and
    what it names will be put aside.

    Raises:
        FormatError: One does not exist or cannot be read, is part of the history that is written, or there is no file
            at all.
    """
    found: dict[str, Source] = {}
    for given in inputs:
        _check_is_raw(given, leave_out)
        with reading(given, FormatError, "Check the name and permissions."):
            for source in _inside(given.resolve(), leave_out.resolve()):
                path = escaped(source.path)
                found[path] = source if path == source.path else replace(source, path=path, kind=SourceKind.MISNAMED)
    if not found:
        raise FormatError(
            "No file was found.",
            where=", ".join(map(str, inputs))[:200],
            remedy="Use files or folders with snapshots, captures, JSON Lines or Prometheus exports.",
        )
    return [found[path] for path in sorted(found)]


def _check_is_raw(given: Path, history: Path) -> None:
    """Refuse the days of the history that is written: they are what an ingest makes."""
    path, root = given.resolve(), history.resolve()
    if path.is_relative_to(root) and any(part.startswith("cluster=") for part in path.relative_to(root).parts[:1]):
        raise FormatError(
            "The file is part of the history that is being written, so it needs no ingest.",
            where=str(given),
            remedy="Replay the history as it is, or choose another folder with --out.",
        )


def _inside(path: Path, leave_out: Path) -> Iterator[Source]:
    if path == leave_out:
        return
    if not path.is_dir():
        status = path.stat()
        kind = _kind(path) if path.is_file() else SourceKind.UNKNOWN  # a pipe would be waited for
        yield Source(str(path), kind, status.st_size, status.st_mtime_ns)
        return
    if is_day_folder(path) and (day := _day(path)) is not None:
        files = [path / name for name in day.manifest.parts]
        files += [file for segment in day.segments.values() for file in segment.iterdir()]
        states = [file.stat() for file in files or [path]]
        yield Source(str(path), SourceKind.HISTORY, sum(s.st_size for s in states), max(s.st_mtime_ns for s in states))
        return
    entries = sorted(p for p in path.iterdir() if not p.name.startswith("."))
    names = {p.name for p in entries}
    if any(name.startswith("cluster=") for name in names):  # a history: its days are read, not what tells of them
        entries = [p for p in entries if p.name not in _OF_A_HISTORY]
    whole = MANIFEST in names or INDEX in names
    if whole:
        states = [p.stat() for p in entries if p.is_file()]
        size = sum(s.st_size for s in states)
        yield Source(str(path), SourceKind.SNAPSHOT, size, max(s.st_mtime_ns for s in states))
    for entry in entries:
        if entry.is_dir() or not whole:
            yield from _inside(entry, leave_out)


def _day(path: Path) -> DayFolder | None:
    """Return a day; one that is damaged seems to hold nothing, and is put aside when it is read."""
    try:
        return open_day(path)
    except FormatError as error:
        return DayFolder(path, DayManifest(cluster="", day="1970-01-01", made_by="watch"), damage=error)


def _kind(path: Path) -> SourceKind:
    name = path.name.lower()
    if name.endswith(_LINES):
        return SourceKind.LINES
    if name.endswith(".zip"):
        return SourceKind.SNAPSHOT
    if name.endswith((".json", ".json.gz")):
        try:
            with _open(path) as file:
                head = file.read(_HEAD)
        except (EOFError, zlib.error, OSError):
            return SourceKind.EXPORT
        if any(mark in head for mark in _EXPORT_MARKS):
            return SourceKind.EXPORT
        return SourceKind.SNAPSHOT
    return SourceKind.UNKNOWN


def _open(path: Path) -> BinaryIO:
    if path.name.lower().endswith(".gz"):
        return cast("BinaryIO", gzip.open(plain_file(path), "rb"))
    return opened(path)


def blocks_of(source: Source) -> list[Block]:
    """Return the parts of a source that can be read by themselves; only plain files of lines have several."""
    if source.kind is not SourceKind.LINES or source.path.endswith(".gz") or source.size <= BLOCK_BYTES:
        return [Block(source.path, source.kind, 0, source.size)]
    with _open(Path(source.path)) as file:
        printed = is_printed(file.read(_HEAD))
    if printed:  # an object may go on in the next block
        return [Block(source.path, source.kind, 0, source.size)]
    starts = range(0, source.size, BLOCK_BYTES)
    return [Block(source.path, source.kind, at, min(at + BLOCK_BYTES, source.size)) for at in starts]


def lines_of_block(block: Block) -> Iterator[bytes | RowSetAside]:
    """Yield the lines that start in a block; in place of one of more than 32 MiB what to put aside, without its number.

    Such a line is read to its end for its digest, up to 1 GiB: more can only be a file that unfolds without end.
    """
    with _open(Path(block.path)) as file:
        at = block.first
        zipped = block.path.endswith(".gz")
        if at:
            file.seek(at - 1)
            at -= 1
            while at < block.last:  # to the end of a line that began before
                piece = file.readline(_PIECE)
                at += len(piece)
                if not piece or piece.endswith(b"\n"):
                    break
        while zipped or at < block.last:
            line = file.readline(_LONGEST_LINE)
            if not line:
                return
            at += len(line)
            if len(line) < _LONGEST_LINE or line.endswith(b"\n"):
                yield line
                continue
            aside, read, ended = _too_long(file, line)
            at += read
            yield aside
            if not ended:
                return


def _too_long(file: BinaryIO, start: bytes) -> tuple[RowSetAside, int, bool]:
    """Skip the rest of a line; return what to put aside, how many bytes were skipped, and whether it ended."""
    digest, skipped, ended = sha256(start), 0, False
    while not ended and skipped < _FARTHEST:
        piece = file.readline(_PIECE)
        digest.update(piece)
        skipped += len(piece)
        ended = len(piece) < _PIECE or piece.endswith(b"\n")
    size = len(start) + skipped
    reason = f"The line has more than {_LONGEST_LINE >> 20} MiB. Record one answer per line."
    if not ended:
        reason = (
            f"The line has more than {_FARTHEST >> 30} GiB; the rest of the file was not read. Record the file again."
        )
    return RowSetAside(reason, raw=start, size=size, sha256=digest.hexdigest()), skipped, ended


def read_block(block: Block, cluster: str, tally: Tally) -> Iterator[Record | RowSetAside]:
    """Read a block, of the cluster named where the data names none; what cannot be read comes back as `RowSetAside`."""
    try:
        yield from _read(block, cluster, tally)
    except Exception as error:  # noqa: BLE001 - one file must not stop an ingest
        tally.rows += 1
        yield _unread(error, tally.lines + 1)


def _unread(error: Exception, line: int) -> RowSetAside:
    """Say why a file cannot be read any further than to a line."""
    match error:
        case EOFError() | zlib.error() | gzip.BadGzipFile():
            return RowSetAside(f"The file is incomplete or damaged: {error}. Copy it again.", line)
        case OSError():
            return RowSetAside(
                f"The file cannot be read: {error.strerror or error}. Check its permissions, and run the command again."
            )
        case MemoryError():
            return RowSetAside("Not enough memory to read on. Record smaller files.", line)
        case _:
            return RowSetAside.of(error, 0 if isinstance(error, PlannerError) else line)


def _read(block: Block, cluster: str, tally: Tally) -> Iterator[Record | RowSetAside]:
    if block.kind is SourceKind.LINES:
        yield from records_of_lines(one_a_line(lines_of_block(block)), cluster, tally)
    elif block.kind is SourceKind.EXPORT:
        with _open(Path(block.path)) as file:
            yield from records_of_export(file, cluster, tally)
    elif block.kind is SourceKind.HISTORY:
        for snapshot in read_day(Path(block.path)):
            tally.rows += 1
            yield _record(snapshot, block.path)
    elif block.kind is SourceKind.SNAPSHOT:
        for found in read_snapshots(Path(block.path)):
            tally.rows += 1
            if isinstance(found, PlannerError):
                yield RowSetAside.of(found, 0)
            elif found.info.captured_at_ms:
                yield _record(found, block.path)
            else:
                yield RowSetAside(
                    "The time of the capture is unknown, so it has no place in a history. Add the time to its index."
                )
    elif block.kind is SourceKind.MISNAMED:
        tally.rows += 1
        yield RowSetAside("The name of the file or of a folder above it is not UTF-8. Rename it.")
    else:
        tally.rows += 1
        yield RowSetAside(
            "The kind of the file is unknown. Recordings end in .jsonl or .ndjson, exports and snapshots "
            "in .json, each optionally followed by .gz; zips contain snapshots."
        )


def _record(snapshot: Snapshot, path: str) -> Record:
    info = snapshot.info
    return Record(Kind.SNAPSHOT, info.cluster, info.captured_at_ms, metric=snapshot_digest(snapshot), text=path)


def snapshot_of_source(path: Path, cluster: str, time_ms: int) -> Snapshot:
    """Read a snapshot that was found in a source; of a day of a history, or a zip of several, that of a moment.

    Raises:
        FormatError: It cannot be read.
        SnapshotError: The content is not a cluster.
    """
    return snapshot_at(path, time_ms) if is_day_folder(path) else snapshot_of_moment(path, cluster, time_ms)
