"""The newest moments of a history that is being written."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from planner.cluster.errors import CaptureError
from planner.cluster.files import reading
from planner.cluster.snapshot import Snapshot
from planner.history.days import snapshot_at, times_of_day


@dataclass(frozen=True, slots=True)
class Moment:
    """A snapshot of a history, by its place.

    Attributes:
        day: The folder of its day.
        time_ms: Its moment, ms since 1970.
    """

    day: Path
    time_ms: int

    def read(self) -> Snapshot:
        """Return the snapshot.

        Raises:
            FormatError: It cannot be read, or is gone.
            SnapshotError: It is no cluster.
        """
        return snapshot_at(self.day, self.time_ms)


def _newest_first(cluster: Path) -> Iterator[Moment]:
    for day in sorted(cluster.glob("day=*"), reverse=True):
        yield from (Moment(day, time_ms) for time_ms in reversed(times_of_day(day)))


def recent_moments(cluster: Path, cycles: int, interval_ms: int, cycle_ms: int = 0) -> list[Moment]:
    """Return one moment for each of the last load-balancer cycles, oldest first: the last one before each.

    The newest one comes last: what the next cycle would see now.

    Args:
        cluster: Folder of the cluster in the histories.
        cycles: How many at most.
        interval_ms: Time from one cycle to the next.
        cycle_ms: The moment of any cycle; 0 when none is known.

    Raises:
        CaptureError: The folder cannot be read.
        FormatError: A day is damaged.
    """
    found: list[Moment] = []
    last = -1
    with reading(cluster, CaptureError, what="The history cannot be read"):
        for moment in _newest_first(cluster):
            number = (moment.time_ms - cycle_ms) // interval_ms
            if found and number == last:
                continue
            if len(found) == cycles:
                break
            last = number
            found.append(moment)
    return found[::-1]
