"""Writes days of history, which `planner.history.days` reads back exactly as they were.

A whole day is written aside, in `.staging` of the history; it comes into being, in place of a former one, when its
manifest is replaced. A large one is cut into runs, where what it holds says and not who makes it, so that several can
be at it. Memory is bounded by one row group, not by the day. Only this module and `watched` write into
`cluster=<name>/day=<yyyy-mm-dd>/`, both while they hold the lock of the cluster, and neither replaces what the
other wrote.
"""

import contextlib
import hashlib
import io
import json
import os
import re
import shutil
import uuid
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from planner.cluster.errors import FormatError, ReplayError
from planner.cluster.files import PRIVATE, clear_unfinished, only_writer, sync_folder, write_whole, writing
from planner.cluster.snapshot import Snapshot
from planner.cluster.units import DAY_MS
from planner.formats.rows import MOMENTS, SCHEMAS, row_of_moment, rows_of_moments
from planner.history.manifest import (
    LOCK,
    MANIFEST,
    DayManifest,
    Part,
    day_folder,
    day_start_ms,
    open_day,
    read_manifest,
)
from planner.history.spec import RUN_ROWS

STAGING = ".staging"
"""Folder of a history in which days are written before they are complete."""

_GROUP_ROWS = {"brokers": 50_000, "bundles": 100_000, "topics": 500_000}
_GROUP_MOMENTS = 1_440
_RUN_MS = 3_600_000
_OTHER_RUN = "-b"
_PART_NAME = re.compile(rf"(?:{'|'.join(SCHEMAS)})(?:-[0-9]+)?(?:{_OTHER_RUN})?\.parquet")


def writing_history(root: Path) -> AbstractContextManager[None]:
    """Turn what the disk refuses while a history is written into a `ReplayError` (see `writing`)."""
    return writing(
        root,
        ReplayError,
        full=(
            "The disk is full. Days that were complete before are unchanged.",
            "Free some disk space, or choose another folder, and run the same command again.",
        ),
    )


class _Hashed(io.BufferedWriter):
    """A file that is written once from start to end, and hashed on the way."""

    def __init__(self, path: Path) -> None:
        super().__init__(io.FileIO(path, "wb"))
        self.hash = hashlib.sha256()
        self.abandoned = False

    def write(self, data: Any) -> int:
        if self.abandoned:
            return len(data)
        self.hash.update(data)
        return super().write(data)

    def close(self) -> None:
        if not (self.closed or self.abandoned):
            self.flush()
            os.fsync(self.fileno())
        super().close()


class _PartFile:
    """One Parquet file of a run."""

    def __init__(self, path: Path, part: str) -> None:
        self.rows = 0
        self.sink = _Hashed(path)
        texts = [f.name for f in SCHEMAS[part] if not pa.types.is_floating(f.type)]
        self.writer = pq.ParquetWriter(
            pa.PythonFile(self.sink, mode="w"),
            SCHEMAS[part],
            compression="zstd",
            use_dictionary=texts,
            write_page_checksum=True,
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
                self.sink.close()


class RunWriter:
    """Writes moments into files of a folder, which `run` tells from those of other runs; one row group is in memory.

    Raises:
        OSError: The disk refuses; any method may say so.
    """

    def __init__(self, folder: Path, run: str = "") -> None:
        self.folder, self.run = folder, run
        self.moments: list[dict[str, Any]] = []
        self._group = 0
        self._waiting: list[Snapshot] = []
        self._held = dict.fromkeys(_GROUP_ROWS, 0)
        self._files = {part: self._open(part) for part in ("brokers", "bundles")}

    def _open(self, part: str) -> _PartFile:
        return _PartFile(self.folder / f"{part}{self.run}.parquet", part)

    def add(self, snapshot: Snapshot) -> None:
        """Add the next moment."""
        self.moments.append(row_of_moment(snapshot, self._group))
        self._waiting.append(snapshot)
        for part in _GROUP_ROWS:
            self._held[part] += self.moments[-1][part]
        if len(self._waiting) >= _GROUP_MOMENTS or any(self._held[p] >= most for p, most in _GROUP_ROWS.items()):
            self._flush()

    def _flush(self) -> None:
        if "topics" not in self._files and any(m["topics"] for m in self.moments):
            self._files["topics"] = self._open("topics")
            for _ in range(self._group):  # so that row groups of all files cover the same moments
                self._files["topics"].write(SCHEMAS["topics"].empty_table())
        tables = rows_of_moments(self._waiting)
        for part, file in self._files.items():
            file.write(tables[part])
        self._waiting = []
        self._held = dict.fromkeys(_GROUP_ROWS, 0)
        self._group += 1

    def close(self) -> dict[str, Part]:
        """Complete the files, and return what a manifest says of each."""
        if self._waiting:
            self._flush()
        self._files[MOMENTS] = self._open(MOMENTS)
        self._files[MOMENTS].write(pa.Table.from_pylist(self.moments, schema=SCHEMAS[MOMENTS]))
        return {f"{part}{self.run}.parquet": file.close() for part, file in self._files.items()}

    def abandon(self) -> None:
        """Close the files, whatever is in them; nothing happens after `close`."""
        for file in self._files.values():
            file.abandon()


@dataclass
class RunLength:
    """Says after which moments of a day a run is complete: once it has so many rows, and spans an hour."""

    most_rows: int = RUN_ROWS
    _rows: int = 0
    _first_ms: int | None = None

    def ends(self, time_ms: int, rows: int) -> bool:
        """Count the next moment, ms since 1970, with its rows in all tables; return whether it is the last of a run."""
        self._first_ms = time_ms if self._first_ms is None else self._first_ms
        self._rows += rows
        if self._rows < self.most_rows or time_ms - self._first_ms < _RUN_MS:
            return False
        self._rows, self._first_ms = 0, None
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """Complete runs of a day, whose files wait in staging.

    Attributes:
        cluster: Name of the cluster.
        day: `yyyy-mm-dd`.
        folder: Where the files are.
        parts: What the manifest says of each.
        moments: How many snapshots.
        first_ms: The first of them, ms since 1970.
        last_ms: The last of them.
    """

    cluster: str
    day: str
    folder: str
    parts: dict[str, Part]
    moments: int
    first_ms: int
    last_ms: int


class DayWriter:
    """Takes the snapshots of a day (`yyyy-mm-dd`, UTC) one by one, and makes the day of them at the end.

    Used as a context manager; when it is left without `commit` or `hand_over`, nothing remains of the day. The history
    is made when it does not exist.

    Args:
        root: The history.
        cluster: Name of the cluster.
        day: The day.
        run_rows: See `RunLength`.
        run: Number of the first run, from 0, where others make those before.

    Raises:
        ReplayError: The folder cannot be written, or the disk is full; any method may say so.
    """

    def __init__(self, root: Path, cluster: str, day: str, run_rows: int = RUN_ROWS, run: int = 0) -> None:
        self.root, self.cluster, self.day = root, cluster, day
        self.start_ms = day_start_ms(day)
        self.folder = root / STAGING / f"{day_folder(root, cluster, day).parent.name}-{day}-{uuid.uuid4().hex[:12]}"
        self.run_is_complete = False
        self._number, self._length = run, RunLength(run_rows)
        self._times: list[int] = []
        self._parts: dict[str, Part] = {}
        self._stays = False
        with writing_history(root):
            self.folder.mkdir(mode=PRIVATE, parents=True)
            self.run = self._next_run()

    def _next_run(self) -> RunWriter:
        return RunWriter(self.folder, f"-{self._number:02d}" if self._number else "")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.run.abandon()
        if not self._stays:
            shutil.rmtree(self.folder, ignore_errors=True)

    def add(self, snapshot: Snapshot) -> None:
        """Add the next snapshot.

        Raises:
            FormatError: It belongs to another cluster or day, or is not later than the one before.
        """
        at, where = snapshot.info.captured_at_ms, f"{self.cluster}, {self.day}"
        if snapshot.info.cluster != self.cluster or not self.start_ms <= at < self.start_ms + DAY_MS:
            raise FormatError(
                f"A snapshot of {snapshot.info.cluster} at {at} does not belong to this day.",
                where=where,
                remedy="Write each day of each cluster separately.",
            )
        if self._times and at <= self._times[-1]:
            raise FormatError(
                f"The snapshot at {at} is not later than the one before.",
                where=where,
                remedy="Write snapshots in the order of time.",
            )
        with writing_history(self.root):
            if self.run_is_complete:
                self._parts |= self.run.close()
                self._number += 1
                self.run = self._next_run()
            self.run.add(snapshot)
        self._times.append(at)
        self.run_is_complete = self._length.ends(at, snapshot.rows)

    def hand_over(self) -> Runs:
        """Complete the runs there are, whose files stay in staging for `commit_day`.

        Raises:
            FormatError: There is no snapshot.
        """
        if not self._times:
            raise FormatError("A day needs a snapshot.", where=f"{self.cluster}, {self.day}", remedy="Add a snapshot.")
        with writing_history(self.root):
            self._parts |= self.run.close()
        self._stays = True
        return Runs(
            cluster=self.cluster,
            day=self.day,
            folder=str(self.folder),
            parts=self._parts,
            moments=len(self._times),
            first_ms=self._times[0],
            last_ms=self._times[-1],
        )

    def commit(self, manifest: DayManifest) -> DayManifest:
        """Complete the day, in place of one made in the same way; moments and parts of the manifest are filled in.

        Returns:
            The manifest as written.

        Raises:
            FormatError: There is no snapshot.
            ReplayError: The day that is there was not read into this one.
        """
        runs = self.hand_over()
        self._stays = False
        return commit_day(self.root, manifest, [runs])


def commit_day(root: Path, manifest: DayManifest, made: Sequence[Runs]) -> DayManifest:
    """Make a day of all its runs, as `DayWriter.commit` does.

    Returns:
        The manifest as written.

    Raises:
        ReplayError: The day that is there was not read into this one, or the disk refuses.
    """
    final = day_folder(root, manifest.cluster, manifest.day)
    made = sorted(made, key=lambda runs: runs.first_ms)
    whole = manifest.model_copy(
        update={
            "parts": {name: part for runs in made for name, part in runs.parts.items()},
            "moments": sum(runs.moments for runs in made),
            "first_ms": min(runs.first_ms for runs in made),
            "last_ms": max(runs.last_ms for runs in made),
        }
    )
    files = [Path(runs.folder) / name for runs in made for name in runs.parts]
    with writing_history(root):
        final.parent.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
        with only_writer(final.parent / LOCK):
            check_replaceable(final, whole.made_by)
            return _put_in_place(files, whole, final)


def manifest_text(manifest: DayManifest) -> str:
    """Return a manifest as it is written."""
    return json.dumps(manifest.sealed().model_dump(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def check_replaceable(folder: Path, made_by: str) -> None:
    """Refuse to replace a day that was watched, or made in another way: nobody has read it into its successor.

    Raises:
        ReplayError: The day has to stay.
        FormatError: It cannot be read.
    """
    there = open_day(folder) if folder.is_dir() else None
    if there is not None and (there.is_watched or there.manifest.made_by != made_by):
        how = "watched" if there.is_watched else {"ingest": "ingested", "generate": "generated"}[there.manifest.made_by]
        raise ReplayError(
            f"The {there.manifest.moments:,} snapshots of this day were {how}, and would be lost.",
            where=f"{folder.parent.name}/{folder.name}",
            remedy="Choose another folder with --out. `history ingest` also reads the days of a history.",
        )


def _put_in_place(complete: Sequence[Path], manifest: DayManifest, final: Path) -> DayManifest:
    """Make complete files the only ones of a day: files first, then the manifest, then the former ones go.

    The former files stay until the manifest names the new ones, which therefore have other names.

    Returns:
        The manifest as written.

    Raises:
        OSError: The disk refuses.
    """
    final.mkdir(exist_ok=True)
    clear_unfinished(final)
    before = open_day(final)
    if before is not None and before.manifest.sealed() == _like(manifest, before.manifest).sealed():
        whole = before.manifest  # another attempt of the same task was faster
    else:
        run = _OTHER_RUN if before is not None and "" in before.manifest.runs else ""
        names = {name: name.replace(".parquet", f"{run}.parquet") for name in manifest.parts}
        for path in complete:
            path.replace(final / names[path.name])
        sync_folder(final)
        whole = manifest.model_copy(update={"parts": {names[name]: part for name, part in manifest.parts.items()}})
        write_whole(final / MANIFEST, manifest_text(whole))
        sync_folder(final)
    for path in final.iterdir():
        if _PART_NAME.fullmatch(path.name) and path.name not in whole.parts:
            path.unlink()
    return whole


def _like(manifest: DayManifest, other: DayManifest) -> DayManifest:
    """Return a manifest with the names of files of another one, where the files are the same."""
    names = {part.sha256: name for name, part in other.parts.items()}
    return manifest.model_copy(update={"parts": {names.get(p.sha256, n): p for n, p in manifest.parts.items()}})


def delete_day(folder: Path) -> None:
    """Delete the files of a day that a manifest names; whatever else lies there stays.

    Raises:
        ReplayError: The disk refuses.
    """
    with writing_history(folder), only_writer(folder.parent / LOCK):
        names = read_manifest(folder).parts
        (folder / MANIFEST).unlink()
        for name in names:
            (folder / name).unlink(missing_ok=True)
        if not any(folder.iterdir()):
            folder.rmdir()


def clear_staging(root: Path, keep: str = "") -> None:
    """Delete what a run that was killed left behind in a history, but for the folder that is to be kept.

    Call it only while no other run writes to the history.

    Raises:
        ReplayError: The folder cannot be written.
    """
    with writing_history(root):
        if root.is_dir():
            clear_unfinished(root)
        for path in (root / STAGING).glob("*"):
            if path.is_dir() and path.name != keep:
                shutil.rmtree(path, ignore_errors=True)
            elif path.suffix == ".parquet":
                path.unlink(missing_ok=True)
