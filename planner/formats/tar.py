"""Tars: read without trust. Nothing is ever unpacked to disk."""

import io
import tarfile
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Final

from planner.cluster.errors import FormatError
from planner.formats.archive import MAX_MEMBERS, member_shown

_MAGIC: Final = slice(257, 262)
_APPLE_DOUBLE: Final = "._"


def is_tar(data: bytes) -> bool:
    """Say whether data, already decompressed, is a tar."""
    return data[_MAGIC] == b"ustar"


def members_of_tar(data: bytes, file: str) -> Iterator[tuple[str, bytes]]:
    """Yield path and content of every file of a tar, in the order of the tar.

    Refused are: names that lead out of the tar, links, devices, and too many members. The content is part of `data`, so
    that whoever bounds `data` bounds it.

    Raises:
        FormatError: It is refused, or damaged.
    """
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            for number, info in enumerate(archive):
                _check(info, number, file)
                path = PurePosixPath(info.name)
                if info.isfile() and not path.name.startswith(_APPLE_DOUBLE) and (content := archive.extractfile(info)):
                    yield str(path), content.read()
    except (tarfile.TarError, EOFError, OSError, ValueError) as error:
        raise FormatError(
            f"The tar is damaged: {str(error)[:200].rstrip('.') or 'it ends too early'}.",
            where=file,
            remedy="Part of it may be missing. Copy or upload it again.",
        ) from error


def _check(info: tarfile.TarInfo, number: int, file: str) -> None:
    """Refuse a member that is no plain file or folder inside the tar.

    Raises:
        FormatError: It is.
    """
    shown = member_shown(info.name)
    remedy = "Create the tar again from the files themselves."
    if number >= MAX_MEMBERS:
        raise FormatError(f"The tar has more than {MAX_MEMBERS:,} members.", where=file, remedy="Split it.")
    path = PurePosixPath(info.name)
    if path.is_absolute() or ".." in path.parts or not info.name.isprintable():
        raise FormatError(f"{shown} does not have a valid name.", where=file, remedy=remedy)
    if not (info.isfile() or info.isdir()):
        raise FormatError(f"{shown} is a link or a device, not a file.", where=file, remedy=remedy)
