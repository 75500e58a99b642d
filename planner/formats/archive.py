"""Zips: read without trust, written plainly."""

import io
import stat
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import BinaryIO

from planner.formats.folder import parts_of_snapshot
from planner.model.errors import FormatError
from planner.model.snapshot import Snapshot

__all__ = ["MAX_UNPACKED_BYTES", "read_zip", "write_zip"]

MAX_UNPACKED_BYTES = 2 << 30
"""What a zip may unpack to."""

_MAX_MEMBERS = 5_000
_MAX_RATIO = 200
_RATIO_FREE_BYTES = 16 << 20
_CHUNK = 1 << 20
_MIB = 1 << 20


def write_zip(snapshot: Snapshot, target: BinaryIO) -> None:
    """Write a snapshot folder as a zip; the same snapshot gives the same bytes."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for name, data in parts_of_snapshot(snapshot).items():
            archive.writestr(zipfile.ZipInfo(name, (2000, 1, 1, 0, 0, 0)), data)


def _refuse(what: str, file: str, remedy: str = "Make the zip again from the snapshot's own files.") -> FormatError:
    return FormatError(what, where=file, remedy=remedy)


def _safe_name(info: zipfile.ZipInfo, file: str) -> str:
    name = info.filename
    path = PurePosixPath(name)
    windows = "\\" in name or ":" in name.split("/", maxsplit=1)[0]
    if path.is_absolute() or ".." in path.parts or "\0" in name or windows or not path.parts:
        raise _refuse(f"The member '{name[:80]}' points outside the zip.", file)
    if stat.S_ISLNK(info.external_attr >> 16):
        raise _refuse(f"The member '{name[:80]}' is a link.", file)
    if info.flag_bits & 0x1:
        raise _refuse(f"The member '{name[:80]}' is encrypted.", file, "Make the zip without a password.")
    return str(path)


def _read_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, room: int, file: str) -> bytes:
    sink = io.BytesIO()
    with archive.open(info) as source:
        while chunk := source.read(_CHUNK):
            sink.write(chunk)
            size = sink.tell()
            if size > room:
                raise _refuse(
                    f"It unpacks to more than {MAX_UNPACKED_BYTES // _MIB} MiB.", file, "Capture less at once."
                )
            if size > _RATIO_FREE_BYTES and size > _MAX_RATIO * max(1, info.compress_size):
                raise _refuse(f"The member '{info.filename[:80]}' is a zip bomb.", file)
    return sink.getvalue()


def read_zip(source: BinaryIO, file: str) -> Mapping[str, bytes]:
    """Return the files of a zip by their path, without a folder that all of them share.

    Refused: names that leave the zip, links, encryption, repeated names, thousands of members, and more bytes than
    `MAX_UNPACKED_BYTES` or than 200 times the packed ones.

    Args:
        source: The zip, seekable.
        file: Its name, for the messages.

    Raises:
        FormatError: It is refused, or cut off, or no zip.
    """
    try:
        with zipfile.ZipFile(source) as archive:
            members = [info for info in archive.infolist() if not info.is_dir()]
            if len(members) > _MAX_MEMBERS:
                raise _refuse(f"It has {len(members)} members; at most {_MAX_MEMBERS} load.", file)
            files: dict[str, bytes] = {}
            room = MAX_UNPACKED_BYTES
            for info in members:
                name = _safe_name(info, file)
                if name in files:
                    raise _refuse(f"The member '{name[:80]}' occurs twice.", file)
                files[name] = _read_member(archive, info, room, file)
                room -= len(files[name])
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError, RuntimeError) as error:
        raise FormatError(
            f"Not a whole zip: {str(error)[:200]}.", where=file, remedy="The file may be cut off; upload it again."
        ) from error
    if not files:
        raise _refuse("The zip is empty.", file)
    return _without_shared_folder(files)


def _without_shared_folder(files: Mapping[str, bytes]) -> Mapping[str, bytes]:
    tops = {PurePosixPath(name).parts[0] for name in files}
    if len(tops) == 1 and all("/" in name for name in files):
        cut = len(next(iter(tops))) + 1
        return {name[cut:]: data for name, data in files.items()}
    return files
