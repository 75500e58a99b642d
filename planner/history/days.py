"""Writes and reads one day of history: snapshots in, snapshots out, exactly the same ones.

A day is written aside, in `.staging` of the history, and comes into being by one rename. Memory is bounded by one row
group, not by the day.
"""

import contextlib
import errno
import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from planner.cluster.errors import FormatError, ReplayError
from planner.cluster.snapshot import Snapshot
from planner.history.manifest import DAY_MS, MANIFEST, DayManifest, Part, day_folder, day_start_ms, read_manifest
from planner.history.tables import (
    FILES,
    MOMENTS,
    PARTS,
    SCHEMAS,
    rows_of_moment,
    rows_of_tables,
    snapshots_of_group,
)

STAGING = ".staging"
"""Folder of a history in which days are written before they are complete."""

_GROUP_ROWS = {"brokers": 50_000, "bundles": 100_000, "topics": 500_000}
_GROUP_MOMENTS = 1_440
_REPLACED = "replaced"
_CHUNK = 1 << 20


def cannot_write(error: OSError, where: Path) -> ReplayError:
    """Return what to tell people about a disk that does not take what is written."""
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return ReplayError(
            "The disk is full; the days that were complete before are untouched.",
            where=str(where),
            remedy="Make room, or choose another folder, and run the same command again.",
        )
    return ReplayError(f"Cannot write: {error.strerror or error}.", where=str(where), remedy="Choose another folder.")


class _Hashed:
    """A file that is written once from start to end, and hashed on the way."""

    def __init__(self, path: Path) -> None:
        self.file = path.open("wb")
        self.hash = hashlib.sha256()
        self.abandoned = False

    @property
    def closed(self) -> bool:
        return self.file.closed

    def write(self, data: Any) -> int:
        if self.abandoned:
            return len(data)
        self.hash.update(data)
        return self.file.write(data)

    def tell(self) -> int:
        return self.file.tell()

    def flush(self) -> None:
        self.file.flush()

    def close(self) -> None:
        if not self.file.closed:
            self.file.flush()
            os.fsync(self.file.fileno())
            self.file.close()


class _PartFile:
    """One Parquet file of a day."""

    def __init__(self, folder: Path, part: str) -> None:
        self.part = part
        self.rows = 0
        self.sink = _Hashed(folder / FILES[part])
        texts = [f.name for f in SCHEMAS[part] if not pa.types.is_floating(f.type)]
        self.writer = pq.ParquetWriter(
            pa.PythonFile(self.sink, mode="w"), SCHEMAS[part], compression="zstd", use_dictionary=texts
        )

    def write(self, table: pa.Table) -> None:
        self.rows += table.num_rows
        self.writer.write_table(table, row_group_size=max(table.num_rows, 1))

    def close(self) -> Part:
        self.writer.close()
        self.sink.close()
        return Part(rows=self.rows, sha256=self.sink.hash.hexdigest())

    def abandon(self) -> None:
        if not self.sink.closed:
            self.sink.abandoned = True  # the writer ends its file even so, on a disk that may be full
            self.writer.close()
            with contextlib.suppress(OSError):
                self.sink.file.close()


class DayWriter:
    """Takes the snapshots of a day one by one, and makes the day of them at the end.

    Used as a context manager; when it is left without `commit`, nothing remains of the day.

    Args:
        root: The history; made when it does not exist.
        cluster: Name of the cluster.
        day: `yyyy-mm-dd`, UTC.

    Raises:
        ReplayError: The folder cannot be written, or the disk is full; any method may say so.
    """

    def __init__(self, root: Path, cluster: str, day: str) -> None:
        self.root, self.cluster, self.day = root, cluster, day
        self.start_ms = day_start_ms(day)
        self.moments: list[dict[str, Any]] = []
        self.group = 0
        self.first_of_group = 0
        self.waiting: dict[str, list[pa.Table]] = {part: [] for part in PARTS}
        self.folder = root / STAGING / f"{day_folder(root, cluster, day).parent.name}-{day}-{uuid.uuid4().hex[:12]}"
        try:
            self.folder.mkdir(parents=True)
            self.files = {part: _PartFile(self.folder, part) for part in ("brokers", "bundles")}
        except OSError as error:
            raise cannot_write(error, root) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for file in self.files.values():
            file.abandon()
        shutil.rmtree(self.folder, ignore_errors=True)

    def add(self, snapshot: Snapshot) -> None:
        """Add the next snapshot.

        Raises:
            FormatError: It belongs to another cluster or day, or is not later than the one before.
        """
        at, where = snapshot.info.captured_at_ms, f"{self.cluster}, {self.day}"
        if snapshot.info.cluster != self.cluster or not self.start_ms <= at < self.start_ms + DAY_MS:
            raise FormatError(
                f"A snapshot of {snapshot.info.cluster} at {at} does not belong here.",
                where=where,
                remedy="Write each day of each cluster by itself.",
            )
        if self.moments and at <= self.moments[-1]["time_ms"]:
            raise FormatError(
                f"The snapshot at {at} is not later than the one before.", where=where, remedy="Give them in order."
            )
        self.moments.append(rows_of_moment(snapshot, self.group))
        for part, table in rows_of_tables(snapshot).items():
            self.waiting[part].append(table)
        held = self.moments[self.first_of_group :]
        if len(held) >= _GROUP_MOMENTS or any(sum(m[p] for m in held) >= most for p, most in _GROUP_ROWS.items()):
            self._flush()

    def _flush(self) -> None:
        try:
            if "topics" not in self.files and any(m["topics"] for m in self.moments):
                self.files["topics"] = _PartFile(self.folder, "topics")
                for _ in range(self.group):  # so that row groups of all files cover the same moments
                    self.files["topics"].write(SCHEMAS["topics"].empty_table())
            for part, file in self.files.items():
                whole = pa.concat_tables(self.waiting[part]).unify_dictionaries()
                file.write(whole)
        except OSError as error:
            raise cannot_write(error, self.root) from error
        self.waiting = {part: [] for part in PARTS}
        self.group += 1
        self.first_of_group = len(self.moments)

    def commit(self, manifest: DayManifest) -> DayManifest:
        """Complete the day.

        Args:
            manifest: What is known about it; moments and parts are filled in here.

        Returns:
            The manifest as written.

        Raises:
            FormatError: There is no snapshot.
        """
        if not self.moments:
            raise FormatError("A day needs a snapshot.", where=f"{self.cluster}, {self.day}", remedy="Add one.")
        if self.first_of_group < len(self.moments):
            self._flush()
        try:
            parts = {FILES[part]: file.close() for part, file in self.files.items()}
            moments = _PartFile(self.folder, MOMENTS)
            moments.write(pa.Table.from_pylist(self.moments, schema=SCHEMAS[MOMENTS]))
            parts[FILES[MOMENTS]] = moments.close()
            whole = manifest.model_copy(
                update={
                    "parts": parts,
                    "moments": len(self.moments),
                    "first_ms": self.moments[0]["time_ms"],
                    "last_ms": self.moments[-1]["time_ms"],
                }
            )
            with (self.folder / MANIFEST).open("w", encoding="utf-8") as file:
                json.dump(whole.model_dump(), file, indent=1, ensure_ascii=False, allow_nan=False)
                file.write("\n")
                file.flush()
                os.fsync(file.fileno())
            put_in_place(self.folder, day_folder(self.root, self.cluster, self.day), self.root)
        except OSError as error:
            raise cannot_write(error, self.root) from error
        return whole


def put_in_place(complete: Path, final: Path, root: Path) -> None:
    """Rename a complete day to its place; one that is there is moved aside first and deleted afterwards.

    Raises:
        OSError: It cannot be renamed.
    """
    final.parent.mkdir(parents=True, exist_ok=True)
    aside = root / STAGING / f"{complete.name}.{_REPLACED}"
    if final.exists():
        (complete / _REPLACED).write_text(f"{final.parent.name}/{final.name}", encoding="utf-8")
        final.rename(aside)
    complete.rename(final)
    (final / _REPLACED).unlink(missing_ok=True)
    shutil.rmtree(aside, ignore_errors=True)


def recover(root: Path) -> None:
    """Clear what a run that was killed left behind; call it only while no other run writes to the history.

    A complete day that was about to replace another gets its place; everything else in `.staging` is deleted.

    Raises:
        ReplayError: The folder cannot be written.
    """
    staging = root / STAGING
    try:
        for folder in sorted(staging.glob("cluster=*")) if staging.is_dir() else ():
            note = folder / _REPLACED
            if (folder / MANIFEST).is_file() and note.is_file():
                final = root / note.read_text(encoding="utf-8")
                if not final.exists():
                    folder.rename(final)
                    (final / _REPLACED).unlink(missing_ok=True)
                    continue
            shutil.rmtree(folder, ignore_errors=True)
        for note in root.glob(f"cluster=*/day=*/{_REPLACED}"):
            note.unlink(missing_ok=True)
    except OSError as error:
        raise cannot_write(error, root) from error


def _open(folder: Path, part: str) -> pq.ParquetFile:
    names = [f.name for f in SCHEMAS[part] if pa.types.is_dictionary(f.type)]
    return pq.ParquetFile(folder / FILES[part], read_dictionary=names)


def _damaged(folder: Path, error: Exception) -> FormatError:
    reason = (str(error).splitlines() or ["?"])[0][:200].rstrip(".")
    return FormatError(
        f"The day cannot be read: {reason}.",
        where=f"{folder.parent.name}/{folder.name}",
        remedy="Delete the folder of the day and ingest its raw files again.",
    )


def read_day(
    folder: Path, *, start_ms: int | None = None, end_ms: int | None = None, topics: bool = True
) -> Iterator[Snapshot]:
    """Yield the snapshots of a day, as they were written, one row group in memory at a time.

    Args:
        folder: The day's folder, `cluster=<name>/day=<yyyy-mm-dd>`.
        start_ms: The first moment wanted, ms since 1970.
        end_ms: The first moment no longer wanted.
        topics: Whether the snapshots have their topics; reading is faster without.

    Raises:
        FormatError: The day is not complete, or damaged.
    """
    manifest = read_manifest(folder)
    try:
        moments = pq.read_table(folder / FILES[MOMENTS])
        low = moments["time_ms"][0].as_py() if start_ms is None else start_ms
        high = manifest.last_ms + 1 if end_ms is None else end_ms
        inside = pc.and_(pc.greater_equal(moments["time_ms"], low), pc.less(moments["time_ms"], high))
        parts = [part for part in PARTS if FILES[part] in manifest.parts and (topics or part != "topics")]
        files = {part: _open(folder, part) for part in parts}
    except (pa.ArrowException, OSError, KeyError) as error:
        raise _damaged(folder, error) from error
    for group in pc.unique(moments.filter(inside)["row_group"]).to_pylist():
        members = moments.filter(pc.equal(moments["row_group"], group)).to_pylist()
        try:
            tables = {part: file.read_row_group(group) for part, file in files.items()}
        except (pa.ArrowException, OSError) as error:
            raise _damaged(folder, error) from error
        yield from _wanted(members, tables, low, high)


def _wanted(members: list[dict[str, Any]], tables: Mapping[str, pa.Table], low: int, high: int) -> Iterator[Snapshot]:
    """Yield the snapshots of a row group within the time; rows of the others are cut off before they are decoded."""
    first = next(i for i, m in enumerate(members) if m["time_ms"] >= low)
    last = next((i for i, m in enumerate(members) if m["time_ms"] >= high), len(members))
    cut = {
        part: table.slice(sum(m[part] for m in members[:first]), sum(m[part] for m in members[first:last]))
        for part, table in tables.items()
    }
    yield from snapshots_of_group(members[first:last], cut)


def check_day(folder: Path) -> DayManifest:
    """Compare the files of a day with its manifest.

    Raises:
        FormatError: One is missing or changed.
    """
    manifest = read_manifest(folder)
    for name, part in manifest.parts.items():
        digest = hashlib.sha256()
        try:
            with (folder / name).open("rb") as file:
                while data := file.read(_CHUNK):
                    digest.update(data)
        except OSError as error:
            raise _damaged(folder, error) from error
        if digest.hexdigest() != part.sha256:
            raise _damaged(folder, ValueError(f"{name} is not what the manifest says (its SHA-256 differs)"))
    return manifest
