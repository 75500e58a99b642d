"""Adds what is watched to the days of a history.

Each capture is a segment: a snapshot folder, written under a name that begins with a dot, synced and renamed; from then
on it survives whatever happens. Once there are enough of them, or when their day is over, they are compacted into a run
of Parquet files beside them: the files come first, then the manifest that names them, and only then do the segments go.
So an append costs one capture, and each moment is rewritten once. The oldest moments go when there are too many bytes.
"""

import contextlib
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Final

from planner.cluster.errors import CaptureError, FormatError, PlannerError
from planner.cluster.files import (
    PRIVATE,
    clear_unfinished,
    only_writer,
    put_in_place,
    sync_folder,
    write_whole,
    writing,
)
from planner.cluster.snapshot import Snapshot
from planner.formats.folder import write_folder
from planner.formats.reading import read_snapshot
from planner.history.day_writer import RunWriter, manifest_text
from planner.history.manifest import (
    LOCK,
    MANIFEST,
    DayFolder,
    DayManifest,
    day_folder,
    day_of,
    is_day_folder,
    moment_of,
    open_day,
    segments_of,
    stamp_of,
    times_of_run,
)

SEGMENTS_OF_A_RUN: Final = 60
"""Segments that are compacted into one run."""

_UNFINISHED = ".part"
_GOING = ".going"


class HistoryFolder:
    """Where the captures of a watch go; beyond `max_bytes` for a cluster, the oldest watched moments are deleted."""

    def __init__(self, root: Path, max_bytes: int) -> None:
        self.root = root
        self.max_bytes = max_bytes

    def folder_of(self, cluster: str) -> Path:
        """Return the folder of a cluster."""
        return day_folder(self.root, cluster, "").parent

    def add(self, snapshot: Snapshot) -> Path:
        """Append a validated snapshot, compact earlier ones where that is due, and make room.

        Returns:
            Its segment, which stays until the next call at least.

        Raises:
            CaptureError: The folder cannot be written.
            FormatError: The same.
        """
        at, cluster = snapshot.info.captured_at_ms, self.folder_of(snapshot.info.cluster)
        folder = day_folder(self.root, snapshot.info.cluster, day_of(at))
        target = folder / stamp_of(at)
        unfinished = folder / f".{target.name}{_UNFINISHED}"
        with writing(folder, CaptureError, "Free some disk space, or choose another folder."):
            cluster.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
            folder.mkdir(exist_ok=True)
            with only_writer(cluster / LOCK):
                _clear_leftovers(cluster)
                write_folder(snapshot, unfinished)
                if target.exists():  # the same moment twice is the same snapshot twice
                    shutil.rmtree(unfinished)
                else:
                    put_in_place(unfinished, target)
                    sync_folder(cluster)
                with contextlib.suppress(OSError):  # a full disk: the segments stay, and the next append says so
                    _compact(cluster, at)
                self._make_room(cluster, target)
        return target

    def bytes_of(self, cluster: str) -> int:
        """Return what the watched moments of a cluster take on disk."""
        return sum(piece.size for piece in _pieces(self.folder_of(cluster)))

    def _make_room(self, cluster: Path, newest: Path) -> None:
        """Delete the oldest segments and runs; the newest segment always stays."""
        pieces = sorted(_pieces(cluster), key=lambda piece: piece.first_ms)
        total = sum(piece.size for piece in pieces)
        for piece in pieces:
            if total <= self.max_bytes:
                return
            if piece.paths != (newest,):
                _delete(piece)
                total -= piece.size


@dataclass(frozen=True, slots=True)
class _Piece:
    """A segment, or the files of a run of a watch; what tells these from others is empty for a segment."""

    day: Path
    run: str
    paths: tuple[Path, ...]
    first_ms: int
    size: int


def _days(cluster: Path) -> Iterator[DayFolder]:
    for path in sorted(p for p in cluster.iterdir() if is_day_folder(p) and p.is_dir()):
        with contextlib.suppress(FormatError):  # a damaged day is left alone
            day = open_day(path)
            if day is not None:
                yield day


def _pieces(cluster: Path) -> Iterator[_Piece]:
    for day in _days(cluster):
        for at, path in day.segments.items():
            yield _Piece(day.path, "", (path,), at, sum(file.lstat().st_size for file in path.iterdir()))
        for run in (run for run in day.manifest.runs if moment_of(run[1:])):
            paths = tuple(day.path / name for name in day.manifest.files_of(run).values())
            yield _Piece(day.path, run, paths, moment_of(run[1:]), sum(path.stat().st_size for path in paths))


def _delete(piece: _Piece) -> None:
    day = open_day(piece.day)
    if piece.run and day is not None:
        parts = {name: part for name, part in day.manifest.parts.items() if piece.day / name not in piece.paths}
        _write_manifest(piece.day, day.manifest.model_copy(update={"parts": parts}))
        for path in piece.paths:
            path.unlink()
    else:
        for path in piece.paths:
            _delete_segment(path)
    if not any(piece.day.iterdir()):
        piece.day.rmdir()


def _delete_segment(path: Path) -> None:
    going = path.with_name(f".{path.name}{_GOING}")
    path.rename(going)
    shutil.rmtree(going)


def _write_manifest(folder: Path, manifest: DayManifest) -> None:
    """Write the manifest of a day, with the moments that its runs hold; delete it when there are none."""
    times = sorted(at for run in manifest.runs for at in times_of_run(folder, manifest, run))
    if not times:
        (folder / MANIFEST).unlink(missing_ok=True)
        return
    bounds = {"moments": len(times), "first_ms": times[0], "last_ms": times[-1]}
    write_whole(folder / MANIFEST, manifest_text(manifest.model_copy(update=bounds)))
    sync_folder(folder)


def _clear_leftovers(cluster: Path) -> None:
    """Delete what a writer that was killed left: what is unfinished or going, and what the manifest decides.

    That is a run that it does not name yet, whose segments are all there, and segments that a run holds by now.
    """
    for folder in (p for p in cluster.iterdir() if is_day_folder(p) and p.is_dir()):
        clear_unfinished(folder)
        for path in folder.iterdir():
            if path.name.startswith(".") and path.name.endswith((_UNFINISHED, _GOING)):
                shutil.rmtree(path, ignore_errors=True)
    for day in _days(cluster):
        for path in day.path.glob("*-*.parquet"):
            if path.name not in day.manifest.parts and moment_of(path.stem.partition("-")[2]):
                path.unlink()
        for at, path in segments_of(day.path).items():
            if at not in day.segments:
                _delete_segment(path)


def _compact(cluster: Path, newest_ms: int) -> None:
    """Make a run of the oldest segments, where there are enough of them or their day is over; one run for each call.

    The segment that was added last stays, so that whoever was told its name can read it.
    """
    for day in _days(cluster):
        older = {at: path for at, path in sorted(day.segments.items()) if at != newest_ms}
        is_over = day.manifest.day < day_of(newest_ms)
        if (len(older) >= SEGMENTS_OF_A_RUN or (older and is_over)) and _make_run(day, older):
            return


def _make_run(day: DayFolder, segments: Mapping[int, Path]) -> bool:
    """Compact the first segments that can be read; say whether there was one. A damaged one stays as it is."""
    readable = _readable(day, segments)
    first = next(readable, None)
    if first is None:
        return False
    run = f"-{stamp_of(first[1].info.captured_at_ms)}"  # no other run holds this moment, nor has the name
    unfinished = day.path / f".run{run}{_UNFINISHED}"
    unfinished.mkdir()
    writer = RunWriter(unfinished, run)
    done: list[Path] = []
    try:
        for path, snapshot in islice(chain([first], readable), SEGMENTS_OF_A_RUN):
            writer.add(snapshot)
            done.append(path)
        parts = writer.close()
        for name in parts:
            (unfinished / name).replace(day.path / name)
    finally:
        writer.abandon()
        shutil.rmtree(unfinished, ignore_errors=True)
    sync_folder(day.path)
    _write_manifest(day.path, day.manifest.model_copy(update={"parts": day.manifest.parts | parts}))
    for path in done:
        _delete_segment(path)
    return True


def _readable(day: DayFolder, segments: Mapping[int, Path]) -> Iterator[tuple[Path, Snapshot]]:
    for at, path in segments.items():
        with contextlib.suppress(PlannerError):
            snapshot = read_snapshot(path)
            if (snapshot.info.cluster, snapshot.info.captured_at_ms) == (day.manifest.cluster, at):
                yield path, snapshot
