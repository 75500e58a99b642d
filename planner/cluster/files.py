"""Files and folders that are there as a whole or not at all, and what to say when the disk refuses."""

import csv
import errno
import fcntl
import hashlib
import io
import os
import re
import stat
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import BinaryIO

from planner.cluster.errors import PlannerError, ReplayError, escaped

PRIVATE = 0o700
"""Rights of the folders that hold what was captured: names of topics and addresses are their owner's alone."""

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_UNFINISHED = re.compile(r"\..+\.[0-9]+")
NO_FILE = "It is a pipe or a device, not a file"
"""Names of things other than files in the errors of `opened` and `plain_file`."""
_MOST_FACTS_BYTES = 256 << 20
_CANNOT_SYNC = {errno.EINVAL, errno.ENOTSUP}


def packaged_rows(package: str, name: str) -> Iterator[dict[str, str]]:
    """Yield the rows of a CSV file that comes with a package, which on a Spark worker is inside a zip."""
    yield from csv.DictReader(resources.files(package).joinpath(name).read_text(encoding="utf-8").splitlines())


def check_spelling(path: Path) -> Path:
    """Return a path that what runs elsewhere is told of, absolute.

    Raises:
        ReplayError: Its name is not UTF-8, so that no job and no worker can be told of it.
    """
    found = path.resolve()
    if escaped(str(found)) != str(found):
        raise ReplayError(
            "The name of this folder or of a parent folder is not UTF-8.",
            where=str(found),
            remedy="Rename it, or choose another one.",
        )
    return found


@contextmanager
def whole_file(path: Path, mode: int = 0) -> Iterator[BinaryIO]:
    """Give a file to write that takes the place of `path` at the end, at once and after it is on disk.

    The unfinished file stands beside it, under a name that begins with a dot and is this process' own.

    Args:
        path: The file.
        mode: Its rights; those of any new file by default.

    Raises:
        OSError: It cannot be written; the old file is still there.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        raise OSError(errno.EINVAL, NO_FILE)  # else a file would take the place of `/dev/null`
    fresh = path.parent / f".{path.name}.{os.getpid()}"
    try:
        with fresh.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if mode:
            fresh.chmod(mode)
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def clear_unfinished(folder: Path) -> None:
    """Delete what processes that were killed left of files that `whole_file` gives; whoever calls it writes alone.

    Raises:
        OSError: The folder cannot be read or written.
    """
    for path in folder.iterdir():
        if _UNFINISHED.fullmatch(path.name) and path.is_file():
            path.unlink(missing_ok=True)


def is_unfinished(name: str) -> bool:
    """Whether a file is named as an unfinished one of `whole_file`."""
    return bool(_UNFINISHED.fullmatch(name))


def write_whole(path: Path, content: str | bytes, mode: int = 0) -> None:
    """Replace a file at once, so that nobody reads half of it (see `whole_file`).

    Raises:
        OSError: It cannot be written; the old file is still there.
    """
    with whole_file(path, mode) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def put_in_place(complete: Path, final: Path) -> None:
    """Rename a complete file or folder to where nothing is, and see that the name survives a power failure.

    Raises:
        OSError: It cannot be renamed.
    """
    complete.rename(final)
    sync_folder(final.parent)


def sync_folder(path: Path) -> None:
    """See that the names in a folder survive a power failure, where the file system can do that.

    Raises:
        OSError: The disk refuses.
    """
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    except OSError as error:
        if error.errno not in _CANNOT_SYNC:
            raise
    finally:
        os.close(number)


@lru_cache(maxsize=1 << 14)
def _check(path: str, sha256: str, _size: int, _changed_ns: int, _inode: int) -> None:
    if file_digest(Path(path)) != sha256:
        raise OSError(f"{Path(path).name} has changed since it was written: its SHA-256 differs")


def opened(path: Path, *, stream: bool = False) -> io.BufferedReader:
    """Open a file to read; a pipe would be waited for, and a device need have no end.

    Args:
        path: The file.
        stream: A pipe or a device will do, as the reader bounds what it takes; a pipe that nobody writes is empty.

    Raises:
        OSError: It cannot be read, or is no file.
    """
    file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK))  # noqa: SIM115
    if stream:
        os.set_blocking(file.fileno(), True)
    elif not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, NO_FILE)
    return file


def plain_file(path: Path) -> Path:
    """Return the path of a file for what opens it by name; a pipe would be waited for, and a device need have no end.

    Raises:
        OSError: It is not there, or is no file.
    """
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError(errno.EINVAL, NO_FILE)
    return path


def content_of_file(path: Path) -> bytes:
    """Return what a file of a few facts holds.

    Raises:
        OSError: It cannot be read, or is no such file.
    """
    with opened(path) as file:
        if os.fstat(file.fileno()).st_size > _MOST_FACTS_BYTES:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
        return file.read()


def file_digest(path: Path) -> str:
    """Return SHA-256 of a file.

    Raises:
        OSError: It cannot be read.
    """
    with opened(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_file(path: Path, sha256: str) -> None:
    """See that a file is what was written; one that does not change is read once in a process.

    Raises:
        OSError: It is not, or it is gone.
    """
    status = path.stat()
    _check(str(path), sha256, status.st_size, status.st_mtime_ns, status.st_ino)


@contextmanager
def only_writer(lock: Path, *, wait: bool = True) -> Iterator[bool]:
    """Hold a lock meanwhile; a process that dies lets go of it.

    Args:
        lock: The lock: a file that is made when it does not exist, and stays.
        wait: Wait for another holder; otherwise give False when there is one.

    Raises:
        OSError: It cannot be opened.
    """
    # To lock it alone, NFS wants it open for writing; a pipe in its place would be waited for.
    with open(lock, "ab", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK, 0o666)) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
            return
        yield True


@contextmanager
def writing(
    where: Path | str,
    kind: type[PlannerError],
    remedy: str = "Choose another folder.",
    *,
    what: str = "Cannot write",
    full: tuple[str, str] | None = None,
    also: tuple[type[Exception], ...] = (),
) -> Iterator[None]:
    """Turn what the disk refuses into one sentence.

    Args:
        where: The file or folder, for the message.
        kind: Class of the error.
        remedy: What to do about it.
        what: How the sentence begins.
        full: What to say and what to do when there is no room; the same as otherwise by default.
        also: Other exceptions to turn, such as those of a library that writes.

    Raises:
        PlannerError: Of that kind.
    """
    caught: tuple[type[Exception], ...] = (OSError, *also)
    try:
        yield
    except caught as error:
        if full is not None and getattr(error, "errno", None) in _FULL:
            raise kind(full[0], where=str(where), remedy=full[1]) from error
        reason = getattr(error, "strerror", None) or (str(error).splitlines() or [type(error).__name__])[0]
        raise kind(f"{what}: {reason[:200].rstrip('.')}.", where=str(where), remedy=remedy) from error


def reading(
    where: Path | str,
    kind: type[PlannerError],
    remedy: str = "Check its name and permissions.",
    *,
    what: str = "It cannot be read",
) -> AbstractContextManager[None]:
    """Turn what the disk refuses while something is read into one sentence (see `writing`)."""
    return writing(where, kind, remedy, what=what)


def writing_results(folder: Path, *also: type[Exception]) -> AbstractContextManager[None]:
    """Turn what the disk refuses while a job writes into a `ReplayError` (see `writing`)."""
    return writing(
        folder.name,
        ReplayError,
        "Check that the folder is writable, and retry.",
        what="Results cannot be written",
        full=("The disk is full.", "Free some disk space, for example by deleting old jobs, and retry."),
        also=also,
    )
