"""The newest snapshots of a history that is being written, found by their names."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from planner.cluster.errors import CaptureError
from planner.formats.folder import MANIFEST

_STAMP = re.compile(r"[0-9]{8}T[0-9]{6}\.[0-9]{3}Z")


def moment_of(folder: Path) -> int:
    """Return the moment that the name of a snapshot's folder tells, ms since 1970; 0 when it is no such name."""
    if not _STAMP.fullmatch(folder.name):
        return 0
    try:
        moment = datetime.strptime(folder.name, "%Y%m%dT%H%M%S.%fZ").replace(tzinfo=UTC)
    except ValueError:
        return 0
    return round(moment.timestamp() * 1000)


def _newest_first(cluster: Path) -> Iterator[Path]:
    for day in sorted(cluster.glob("day=*"), reverse=True):
        yield from (p for p in sorted(day.iterdir(), reverse=True) if moment_of(p) and (p / MANIFEST).is_file())


def recent_snapshots(cluster: Path, cycles: int, interval_ms: int, cycle_ms: int = 0) -> list[Path]:
    """Return one snapshot for each of the last load-balancer cycles, oldest first: the last one before each.

    The newest one comes last: what the next cycle would see now.

    Args:
        cluster: Folder of the cluster in the histories.
        cycles: How many at most.
        interval_ms: Time from one cycle to the next.
        cycle_ms: The moment of any cycle; 0 when none is known.

    Raises:
        CaptureError: The folder cannot be read.
    """
    found: list[Path] = []
    last = -1
    try:
        for folder in _newest_first(cluster):
            number = (moment_of(folder) - cycle_ms) // interval_ms
            if found and number == last:
                continue
            if len(found) == cycles:
                break
            last = number
            found.append(folder)
    except OSError as error:
        raise CaptureError(
            f"The history cannot be read: {error.strerror}.", where=str(cluster), remedy="Check its name and rights."
        ) from error
    return found[::-1]
