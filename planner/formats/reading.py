"""Reads a snapshot from whatever a person has: a folder, a zip, a JSON document, a raw capture."""

import io
import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePath
from typing import BinaryIO

from planner.cluster.errors import FormatError, SnapshotError
from planner.cluster.files import reading
from planner.cluster.snapshot import Snapshot
from planner.formats.archive import names_in_zip, read_zip
from planner.formats.document import is_document, snapshot_of_document
from planner.formats.folder import FILES, MANIFEST, MAX_UNPACKED_BYTES, snapshot_of_parts
from planner.formats.raw_capture.answers import INDEX
from planner.formats.raw_capture.snapshot import snapshot_of_capture
from planner.formats.several import MARKS, Held, held_in, last_of, note_of, with_note

MAX_UPLOAD_BYTES = 250_000_000
"""Default limits of an uploaded file."""

TOO_LARGE = "Capture fewer namespaces, or leave out the topics."
"""Remedy for a file that is too large."""

_ZIP_MAGIC = (b"PK\x03\x04", b"PK\x05\x06")
_PARQUET_MAGIC = b"PAR1"
_ANSWER = re.compile(r"\.b[0-9]+\.(?:json|txt)$")
_REMEDY = "Use a snapshot (folder or zip), a JSON document, or a raw capture (folder or zip)."


def read_upload(
    file_name: str, data: BinaryIO, *, max_bytes: int = MAX_UPLOAD_BYTES, trusted: bool = False
) -> Snapshot:
    """Read and validate an uploaded file: a zip of a snapshot or of a raw capture, or a JSON document.

    What it is shows in its content; the name is not trusted.

    Args:
        file_name: What the person calls it; used in messages alone.
        data: Its content, seekable.
        max_bytes: What it may have.
        trusted: A small file need not be suspected of unfolding to a large one (see `snapshot_of_parts`).

    Raises:
        FormatError: It is too large, cut off, or of no known format.
        SnapshotError: The content is not a cluster.
    """
    name = PurePath(file_name.replace("\\", "/")).name[:120] or "upload"
    try:
        return _read_upload(name, data, max_bytes, trusted=trusted)
    except MemoryError as error:
        raise FormatError("Not enough memory to read it.", where=name, remedy=TOO_LARGE) from error


def _read_upload(name: str, data: BinaryIO, max_bytes: int, *, trusted: bool) -> Snapshot:
    size = data.seek(0, io.SEEK_END)
    if size > max_bytes:
        raise FormatError(
            f"The file has {size / 1000000.0:,.0f} MB; the maximum is {max_bytes / 1000000.0:,.0f} MB.",
            where=name,
            remedy=TOO_LARGE,
        )
    data.seek(0)
    magic = data.read(4)
    data.seek(0)
    if not magic:
        raise FormatError("The file is empty.", where=name, remedy=_REMEDY)
    if magic in _ZIP_MAGIC:
        return _snapshot_of_zip(data, name, trusted=trusted)
    if magic == _PARQUET_MAGIC:
        raise FormatError(
            "This is only one Parquet file of a snapshot.",
            where=name,
            remedy=f"Zip it together with {MANIFEST} and the other parts.",
        )
    return snapshot_of_document(data.read(max_bytes + 1), name)


def _snapshot_of_zip(data: BinaryIO, name: str, *, trusted: bool) -> Snapshot:
    """Read the snapshot of a zip; of several of one cluster the last one, with a note that says so."""
    held = held_in(data, name)
    if not held:
        return _snapshot_of_files(read_zip(data, name, MARKS), name, trusted=trusted)
    files = read_zip(data, name, MARKS, last_of(held, name))
    return with_note(_snapshot_of_files(files, name, trusted=trusted), held)


def note_on(given: BinaryIO | Path, name: str) -> str:
    """Return the note on what is opened of a zip of several; empty for anything else.

    Args:
        given: A file, seekable, or its path.
        name: What messages call it.

    Raises:
        FormatError: The zip is refused.
    """
    if isinstance(given, Path):
        return note_of(_held_by(given))
    given.seek(0)
    return note_of(held_in(given, name)) if given.read(4) in _ZIP_MAGIC else ""


def read_snapshots(path: Path) -> Iterator[Snapshot | FormatError | SnapshotError]:
    """Yield the snapshots of a zip of several, of whatever clusters, by the time of their capture; else the only one.

    In place of one of several that cannot be read, the error is yielded.

    Raises:
        FormatError: It cannot be read, or is of no known format.
        SnapshotError: The content of the only one is not a cluster.
    """
    held = _held_by(path)
    if not held:
        yield read_snapshot(path)
    for one in held:
        try:
            yield _read_one(path, one)
        except (FormatError, SnapshotError) as error:
            yield error


def snapshot_of_moment(path: Path, cluster: str, time_ms: int) -> Snapshot:
    """Read the snapshot that was captured at a moment, where a zip holds several; else the only one.

    Raises:
        FormatError: It cannot be read, or there is none.
        SnapshotError: The content is not a cluster.
    """
    held = _held_by(path)
    if not held:
        return read_snapshot(path)
    for one in reversed(held):
        if one.captured_at_ms == time_ms and one.cluster in {cluster, ""}:
            return _read_one(path, one)
    raise FormatError("The zip no longer holds this capture.", where=path.name, remedy="Restore the zip.")


def _held_by(path: Path) -> tuple[Held, ...]:
    with reading(path, FormatError, "Check the permissions of the file."):
        if not path.is_file():
            return ()
        with path.open("rb") as data:
            return held_in(data, path.name) if data.read(4) in _ZIP_MAGIC else ()


def _read_one(path: Path, one: Held) -> Snapshot:
    with reading(path, FormatError, "Check the permissions of the file."), path.open("rb") as data:
        where = f"{path.name}: {one.folder}"
        return _snapshot_of_files(read_zip(data, path.name, MARKS, one.folder), where, trusted=False)


def read_snapshot(path: Path) -> Snapshot:
    """Read and validate a snapshot folder, a raw capture folder, a zip of either, or a JSON document.

    A folder is taken for the person's own (see `snapshot_of_parts`); a zip may come from anywhere. Of a zip of several
    of one cluster the last one is read, and a note says so.

    Raises:
        FormatError: It cannot be read, or is of no known format.
        SnapshotError: The content is not a cluster.
    """
    with reading(path, FormatError, "Check the permissions of the file."):
        if path.is_dir():
            return _snapshot_of_files(_Folder(path), path.name, trusted=True)
        if path.is_file():
            with path.open("rb") as data:
                return read_upload(path.name, data, max_bytes=MAX_UNPACKED_BYTES)
    raise FormatError("There is no such file or folder.", where=str(path), remedy="Check the name.")


def is_own(given: BinaryIO | bytes | Path, name: str = "") -> bool:
    """Say whether a zip, a text or a folder is a snapshot or raw capture of the planner's own, by its content.

    Args:
        given: A zip, seekable; or the content of a text; or a folder.
        name: What messages call a zip.

    Raises:
        FormatError: The zip is refused.
    """
    if isinstance(given, Path):
        return given.is_dir() and any((given / mark).is_file() for mark in MARKS)
    if isinstance(given, bytes):
        return is_document(given)
    names = names_in_zip(given, name)
    given.seek(0)
    return any(mark in names for mark in MARKS)


def raw_capture_in(given: BinaryIO | Path, name: str) -> Mapping[str, bytes] | None:
    """Return the files of a raw capture in a zip or folder; None where it is something else.

    Args:
        given: A zip, seekable; or the folder.
        name: What messages call it.

    Raises:
        FormatError: The zip is refused.
    """
    if isinstance(given, Path):
        return _Folder(given) if (given / INDEX).is_file() and not (given / MANIFEST).is_file() else None
    given.seek(0)
    is_zip = given.read(4) in _ZIP_MAGIC
    given.seek(0)
    held = held_in(given, name) if is_zip else ()
    files = read_zip(given, name, MARKS, last_of(held, name) if held else "") if is_zip else {}
    return files if INDEX in files and MANIFEST not in files else None


def _snapshot_of_files(files: Mapping[str, bytes], where: str, *, trusted: bool) -> Snapshot:
    if MANIFEST in files:
        return snapshot_of_parts(files, trusted=trusted)
    if INDEX in files:
        return snapshot_of_capture(files)
    names = list(files)
    if any(_ANSWER.search(name) for name in names):
        raise FormatError(
            f"This looks like part of a raw capture, but {INDEX} is missing, which lists the requests.",
            where=where,
            remedy="Use the whole capture folder.",
        )
    if len(names) == 1 and names[0].endswith(".json"):
        return snapshot_of_document(files[names[0]], names[0])
    if set(FILES.values()) & set(names):
        raise FormatError(f"The file {MANIFEST} is missing.", where=where, remedy="Copy the whole snapshot.")
    raise FormatError(
        f"There is neither a {MANIFEST} (snapshot) nor an {INDEX} (raw capture).", where=where, remedy=_REMEDY
    )


class _Folder(Mapping[str, bytes]):
    """The files of a folder by name, read when asked for; folders inside are left alone."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.names = sorted(entry.name for entry in path.iterdir() if entry.is_file())

    def __getitem__(self, name: str) -> bytes:
        if name not in self:
            raise KeyError(name)
        path = self.path / name
        if path.stat().st_size > MAX_UNPACKED_BYTES:
            raise FormatError(
                f"It has more than {MAX_UNPACKED_BYTES >> 20} MiB.", where=name, remedy="Capture fewer namespaces."
            )
        return path.read_bytes()

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)
