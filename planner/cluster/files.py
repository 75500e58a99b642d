"""Files that are there as a whole or not at all, and what to say when the disk refuses."""

import errno
import os
from pathlib import Path

from planner.cluster.errors import ReplayError

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def write_whole(path: Path, text: str) -> None:
    """Replace a file at once, so that nobody reads half of it.

    Raises:
        OSError: It cannot be written; the old file is still there.
    """
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with fresh.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise


def cannot_write(error: Exception, folder: Path) -> ReplayError:
    """Return what to say when a file of a job cannot be written."""
    number = getattr(error, "errno", None)
    if number in _FULL:
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
