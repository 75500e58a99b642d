"""The newest moments of a history that is being written."""

from pathlib import Path

from planner.cluster.errors import CaptureError
from planner.cluster.files import reading
from planner.history.days import times_of_day


def recent_moments(cluster: Path, cycles: int, interval_ms: int, cycle_ms: int = 0) -> list[tuple[Path, int]]:
    """Return one moment for each of the last load-balancer cycles, oldest first: the last one before each.

    The newest one comes last: what the next cycle would see now. A moment is the folder of its day, and its time in ms
    since 1970, as `snapshot_at` takes them.

    Args:
        cluster: Folder of the cluster in the histories.
        cycles: How many at most.
        interval_ms: Time from one cycle to the next.
        cycle_ms: The moment of any cycle; 0 when none is known.

    Raises:
        CaptureError: The folder cannot be read.
        FormatError: A day is damaged.
    """
    found: list[tuple[Path, int]] = []
    last = -1
    with reading(cluster, CaptureError, what="The history cannot be read"):
        days = sorted(cluster.glob("day=*"), reverse=True)
        newest_first = ((day, at) for day in days for at in reversed(times_of_day(day)))
        for day, time_ms in newest_first:
            number = (time_ms - cycle_ms) // interval_ms
            if found and number == last:
                continue
            if len(found) == cycles:
                break
            last = number
            found.append((day, time_ms))
    return found[::-1]
