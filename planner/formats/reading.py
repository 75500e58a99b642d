"""Reads a snapshot from whatever a person has: a folder, a zip, a JSON document, a raw capture."""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

from planner.formats.archive import MAX_UNPACKED_BYTES, read_zip
from planner.formats.document import snapshot_of_document
from planner.formats.folder import MANIFEST, snapshot_of_parts
from planner.formats.raw_answers import INDEX
from planner.formats.raw_snapshot import snapshot_of_capture
from planner.model.errors import FormatError
from planner.model.snapshot import Snapshot

__all__ = ["MAX_UPLOAD_BYTES", "read_snapshot", "read_upload"]

MAX_UPLOAD_BYTES = 250 << 20
"""What an uploaded file may have."""

_ZIP_MAGIC = (b"PK\x03\x04", b"PK\x05\x06")


def _snapshot_of_files(files: Mapping[str, bytes], where: str) -> Snapshot:
    if MANIFEST in files:
        return snapshot_of_parts(files)
    if INDEX in files:
        return snapshot_of_capture(files)
    documents = [name for name in files if name.endswith(".json")]
    if len(files) == 1 and documents:
        return snapshot_of_document(files[documents[0]], documents[0])
    raise FormatError(
        "There is neither a manifest.json (snapshot) nor an index.json (raw capture).",
        where=where,
        remedy="Give a snapshot folder or zip, a JSON document, or a raw capture.",
    )


def read_upload(file_name: str, data: BinaryIO) -> Snapshot:
    """Read and validate an uploaded file.

    Args:
        file_name: What the person calls it; used in messages alone.
        data: Its content, seekable.

    Raises:
        FormatError: It is too large, cut off, or of no known format.
        SnapshotError: The content is not a cluster.
        SettingError: A setting is unknown or out of bounds.
    """
    name = Path(file_name).name or "upload"
    size = data.seek(0, io.SEEK_END)
    data.seek(0)
    if size > MAX_UPLOAD_BYTES:
        raise FormatError(
            f"The file has {size / (1 << 20):.0f} MiB; at most {MAX_UPLOAD_BYTES >> 20} MiB load.",
            where=name,
            remedy="Capture fewer namespaces, or leave out the topics.",
        )
    magic = data.read(4)
    data.seek(0)
    if not magic:
        raise FormatError("The file is empty.", where=name, remedy="Choose another file.")
    if magic in _ZIP_MAGIC:
        return _snapshot_of_files(read_zip(data, name), name)
    return snapshot_of_document(data.read(), name)


def _folder_files(path: Path) -> Mapping[str, bytes]:
    total = 0
    files: dict[str, bytes] = {}
    for entry in sorted(path.iterdir()):
        if entry.is_file():
            total += entry.stat().st_size
            if total > MAX_UNPACKED_BYTES:
                raise FormatError("The folder is too large.", where=str(path), remedy="Give the snapshot's own folder.")
            files[entry.name] = entry.read_bytes()
    return files


def read_snapshot(path: Path) -> Snapshot:
    """Read and validate a snapshot folder, a raw capture folder, a zip of either, or a JSON document.

    Raises:
        FormatError: It cannot be read or is of no known format.
        SnapshotError: The content is not a cluster.
        SettingError: A setting is unknown or out of bounds.
    """
    try:
        if path.is_dir():
            return _snapshot_of_files(_folder_files(path), path.name)
        with path.open("rb") as data:
            return read_upload(path.name, data)
    except OSError as error:
        raise FormatError(
            f"Cannot read it: {error.strerror}.", where=str(path), remedy="Check the name and the rights."
        ) from error
