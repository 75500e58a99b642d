"""Zips: read without trust, written plainly. Nothing is ever unpacked to disk."""

import io
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import BinaryIO

from planner.cluster.errors import FormatError
from planner.cluster.snapshot import Snapshot
from planner.cluster.units import MIB
from planner.formats.folder import MAX_UNPACKED_BYTES, parts_of_snapshot

MAX_MEMBERS = 50_000
"""Most members of a zip or tar."""

_MAX_DIRECTORY_BYTES = 16 << 20
_MAX_RATIO = 200
_RATIO_FREE_BYTES = 16 << 20
_CHUNK = MIB
_END = struct.Struct("<4s4H2LH")
_END_SIGNATURE = b"PK\x05\x06"
_ZIP64_SIGNATURE = b"PK\x06\x07"
_ZIP64_LOCATOR_BYTES = 20
_MAX_COMMENT_BYTES = 0xFFFF
_PLAIN = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
_LEFT_BY_SYSTEMS = {".DS_Store", "Thumbs.db", "desktop.ini"}
_AGAIN = "Create the zip again from the files of the snapshot or capture."


def write_zip(snapshot: Snapshot, target: BinaryIO) -> None:
    """Write a snapshot folder as a zip to a target, seekable or not; the same snapshot gives the same bytes."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for name, data in parts_of_snapshot(snapshot).items():
            archive.writestr(zipfile.ZipInfo(name, (2000, 1, 1, 0, 0, 0)), data)


def read_zip(source: BinaryIO, file: str, marks: Sequence[str], folder: str = "") -> Mapping[str, bytes]:
    """Return the files of the one folder of a zip that holds a mark, or the only file of a zip without one.

    Refused are: names that lead out of the zip, links, encryption, rare compressions, repeated names, zips in zips, too
    many members, and more bytes than `MAX_UNPACKED_BYTES` or than 200 times the packed ones - counted while unpacking,
    whatever the zip claims.

    Args:
        source: The zip, seekable.
        file: Its name, for the messages.
        marks: Names of which one is in the folder looked for, such as `manifest.json`.
        folder: Which one, where several hold a mark (see `marks_of_zip`).

    Raises:
        FormatError: It is refused, cut off, or no zip, or holds no such folder, or several and none was chosen.
    """
    _check_directory(source, file)
    with _whole(file), zipfile.ZipFile(source) as archive:
        members = _members(archive, file)
        wanted = PurePosixPath(folder) if folder else _folder(members, file, marks)
        files: dict[str, bytes] = {}
        room = MAX_UNPACKED_BYTES
        for path, info in members.items():
            if path.parent == wanted:
                files[path.name] = _unpack(archive, info, room, file)
                room -= len(files[path.name])
    return files


def marks_of_zip(source: BinaryIO, file: str, marks: Sequence[str]) -> Iterator[tuple[str, str, bytes]]:
    """Yield the folders of a zip that hold a mark, each with its first mark and its content, by name.

    Nothing where fewer than two hold one; a folder inside another one that does is left alone. Refused is what
    `read_zip` refuses; all marks together may take as many bytes as one folder.

    Raises:
        FormatError: It is refused, truncated, or not a zip.
    """
    _check_directory(source, file)
    with _whole(file), zipfile.ZipFile(source) as archive:
        members = _members(archive, file)
        folders = _outermost(members, marks)
        room = MAX_UNPACKED_BYTES
        for folder in folders if len(folders) > 1 else ():
            path = next(folder / mark for mark in marks if folder / mark in members)
            content = _unpack(archive, members[path], room, file)
            room -= len(content)
            yield str(folder), path.name, content


def members_of_zip(source: BinaryIO, file: str) -> Iterator[tuple[str, bytes]]:
    """Yield path and content of every file of a zip, in the order of the zip; refused is what `read_zip` refuses.

    Raises:
        FormatError: It is refused, truncated, or not a zip.
    """
    _check_directory(source, file)
    with _whole(file), zipfile.ZipFile(source) as archive:
        room = MAX_UNPACKED_BYTES
        for path, info in _members(archive, file).items():
            content = _unpack(archive, info, room, file)
            room -= len(content)
            yield str(path), content


def names_in_zip(source: BinaryIO, file: str) -> tuple[str, ...]:
    """Return the names of the files of a zip without their folders.

    Raises:
        FormatError: It is refused, truncated, or not a zip.
    """
    _check_directory(source, file)
    with _whole(file), zipfile.ZipFile(source) as archive:
        return tuple(path.name for path in _members(archive, file))


def member_shown(name: str) -> str:
    """Return how messages name a member of a zip or tar, whatever its name holds."""
    return f"The member '{''.join(c if c.isprintable() else '?' for c in name[:80])}'"


@contextmanager
def _whole(file: str) -> Iterator[None]:
    """Say what is wrong with a zip that cannot be read.

    Raises:
        FormatError: Something is.
    """
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError, RuntimeError, ValueError) as error:
        raise FormatError(
            f"The zip is not complete: {str(error)[:200].rstrip('.') or 'it ends too early'}.",
            where=file,
            remedy="Part of it may be missing or damaged. Copy or upload it again.",
        ) from error


def _refuse(what: str, file: str, remedy: str = _AGAIN) -> FormatError:
    return FormatError(what, where=file, remedy=remedy)


def _check_directory(source: BinaryIO, file: str) -> None:
    """Refuse an endless table of contents before it is read into memory."""
    size = source.seek(0, io.SEEK_END)
    source.seek(max(0, size - _MAX_COMMENT_BYTES - _END.size - _ZIP64_LOCATOR_BYTES))
    tail = source.read()
    at = tail.rfind(_END_SIGNATURE)
    if at < 0 or len(tail) < at + _END.size:
        raise _refuse(
            "The zip is not complete: its table of contents is missing.",
            file,
            "Part of it may be missing. Copy or upload it again.",
        )
    _, _, _, _, members, directory_bytes, _, _ = _END.unpack_from(tail, at)
    if tail[: at - _ZIP64_LOCATOR_BYTES + 4].endswith(_ZIP64_SIGNATURE) and at >= _ZIP64_LOCATOR_BYTES:
        raise _refuse("The zip uses the format for more than 4 GiB or 65,535 members.", file)
    if members > MAX_MEMBERS or directory_bytes > _MAX_DIRECTORY_BYTES:
        raise _refuse(f"The zip has {members:,} members or long names; the maximum is {MAX_MEMBERS:,}.", file)


def _check_name(info: zipfile.ZipInfo, path: PurePosixPath, shown: str, file: str) -> None:
    name = info.filename
    if path.is_absolute() or ".." in path.parts or "\\" in name or ":" in name.split("/", maxsplit=1)[0]:
        raise _refuse(f"The path of {shown} leads out of the zip.", file)
    if not path.parts or not name.isprintable() or not info.orig_filename.isprintable():
        raise _refuse(f"{shown} does not have a valid name.", file)


def _members(archive: zipfile.ZipFile, file: str) -> dict[PurePosixPath, zipfile.ZipInfo]:
    """Return the files of a zip by their path, each of which stays inside."""
    found: dict[PurePosixPath, zipfile.ZipInfo] = {}
    for info in archive.infolist():
        path = PurePosixPath(info.filename)
        shown = member_shown(info.filename)
        _check_name(info, path, shown, file)
        if info.is_dir() or "__MACOSX" in path.parts or path.name in _LEFT_BY_SYSTEMS:
            continue
        if stat.S_IFMT(info.external_attr >> 16) not in {0, stat.S_IFREG}:
            raise _refuse(f"{shown} is a link or a device, not a file.", file)
        if info.flag_bits & 0x1:
            raise _refuse(f"{shown} is encrypted.", file, "Create the zip without a password.")
        if info.compress_type not in _PLAIN:
            raise _refuse(
                f"{shown} uses an unsupported compression method.", file, "Create the zip with the deflate method."
            )
        if path in found:
            raise _refuse(f"{shown} occurs twice.", file)
        found[path] = info
    if len(found) > MAX_MEMBERS:
        raise _refuse(f"The zip has {len(found):,} members; the maximum is {MAX_MEMBERS:,}.", file)
    if not found:
        raise _refuse("The zip is empty.", file)
    return found


def _folder(members: Mapping[PurePosixPath, zipfile.ZipInfo], file: str, marks: Sequence[str]) -> PurePosixPath:
    """Return the outermost folder with a mark."""
    folders = _outermost(members, marks)
    if not folders and len(members) == 1:
        path = next(iter(members))
        if path.suffix == ".zip":
            raise _refuse("The zip contains another zip.", file, "Unpack the outer zip, and use the inner one.")
        return path.parent
    if not folders:
        return PurePosixPath()
    if len(folders) > 1:
        names = ", ".join(f"'{folder}'" for folder in folders[:3])
        raise _refuse(f"The zip contains {len(folders)} snapshots or captures: {names}.", file, "Zip one of them.")
    return folders[0]


def _outermost(members: Mapping[PurePosixPath, zipfile.ZipInfo], marks: Sequence[str]) -> list[PurePosixPath]:
    """Return the folders with a mark that are in no other one with a mark, by name."""
    folders = {path.parent for path in members if path.name in marks}
    return sorted(folder for folder in folders if folders.isdisjoint(folder.parents))


def _unpack(archive: zipfile.ZipFile, info: zipfile.ZipInfo, room: int, file: str) -> bytes:
    sink = io.BytesIO()
    with archive.open(info) as source:
        while chunk := source.read(_CHUNK):
            sink.write(chunk)
            size = sink.tell()
            if size > room:
                raise _refuse(
                    f"The zip unpacks to more than {MAX_UNPACKED_BYTES >> 20} MiB.",
                    file,
                    "Capture fewer namespaces, or leave out the topics.",
                )
            if size > _RATIO_FREE_BYTES and size > _MAX_RATIO * max(1, info.compress_size):
                raise _refuse(f"The member '{info.filename[:80]}' unpacks to over {_MAX_RATIO} times its size.", file)
    return sink.getvalue()
