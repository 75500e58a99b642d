"""Files and folders that are there as a whole or not at all, and what to say when the disk refuses."""

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from planner.cluster.errors import PlannerError, ReplayError

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Give a file to write that takes the place of `path` at the end, at once and after it is on disk.

    The unfinished file stands beside it, under a name that begins with a dot and is this process' own.

    Raises:
        OSError: It cannot be written; the old file is still there.
    """
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with fresh.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def write_whole(path: Path, content: str | bytes) -> None:
    """Replace a file at once, so that nobody reads half of it.

    Raises:
        OSError: It cannot be written; the old file is still there.
    """
    with whole_file(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def put_in_place(complete: Path, final: Path) -> None:
    """Rename a complete file or folder to where nothing is, and see that the name survives a power failure.

    Raises:
        OSError: It cannot be renamed.
    """
    complete.rename(final)
    sync_folder(final.parent)


def sync_folder(path: Path) -> None:
    """See that the names in a folder survive a power failure.

    Raises:
        OSError: The disk refuses.
    """
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


@contextmanager
def only_writer(path: Path, *, wait: bool = True) -> Iterator[bool]:
    """Hold the lock of a file or folder meanwhile; a process that dies lets go of it.

    Args:
        path: The file or folder; it must exist.
        wait: Wait for another holder; otherwise give False when there is one.

    Raises:
        OSError: It cannot be opened.
    """
    number = os.open(path, os.O_RDONLY)
    try:
        try:
            fcntl.flock(number, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
            return
        yield True
    finally:
        os.close(number)


def is_full(error: object) -> bool:
    """Whether the disk refused because there is no room."""
    return getattr(error, "errno", None) in _FULL


@contextmanager
def writing(where: Path | str, kind: type[PlannerError], remedy: str = "Choose another folder.") -> Iterator[None]:
    """Turn what the disk refuses into one sentence.

    Args:
        where: The file or folder, for the message.
        kind: Class of the error.
        remedy: What to do about it.

    Raises:
        PlannerError: Of that kind.
    """
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise kind(f"Cannot write: {reason}.", where=str(where), remedy=remedy) from error


def cannot_write(error: Exception, folder: Path) -> ReplayError:
    """Return what to say when a file of a job cannot be written."""
    if is_full(error):
        return ReplayError(
            "The disk is full.",
            where=folder.name,
            remedy="Free some room, for example by deleting old jobs, and retry.",
        )
    reason = (str(error).splitlines() or [type(error).__name__])[0][:200].rstrip(".")
    return ReplayError(
        f"Results cannot be written: {reason}.",
        where=folder.name,
        remedy="See that the folder may be written, and retry.",
    )
