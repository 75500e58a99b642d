"""Snapshots of a cluster over time, whose traffic and brokers a simulation follows."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from planner.cluster.errors import ScenarioError
from planner.cluster.internal_namespaces import is_heartbeat_or_sla_namespace
from planner.cluster.releases import Release
from planner.cluster.snapshot import Snapshot
from planner.cluster.tables import BrokerTable
from planner.cluster.units import KBIT_PER_GBIT


class Frames:
    """The snapshots, read as time goes on.

    Args:
        frames: The cluster at the start, and later snapshots of it, oldest first.

    Attributes:
        last: The last one that was due; at first the start.

    Raises:
        ScenarioError: There is no snapshot.
    """

    def __init__(self, frames: Iterable[Snapshot]) -> None:
        self._frames = iter(frames)
        start = next(self._frames, None)
        if start is None:
            raise ScenarioError("There is no snapshot to start from.", remedy="Choose one.")
        self.last = start
        self._next = next(self._frames, None)
        self._unknown_namespaces: set[str] = set()

    def due(self, now: int) -> Iterator[tuple[Snapshot, Snapshot]]:
        """Yield the snapshots up to a moment, ms since 1970, each behind the one before it."""
        while self._next is not None and self._next.info.captured_at_ms <= now:
            before, self.last = self.last, self._next
            self._next = next(self._frames, None)
            yield before, self.last

    def new_namespaces(self, frame: Snapshot, known: Collection[str], release: Release) -> list[str]:
        """Return namespaces of a later snapshot that the start did not have, each once: their traffic is left out."""
        if frame.namespaces == known:
            return []
        named = {*known, *self._unknown_namespaces}
        fresh = [n for n in frame.namespaces if n not in named and not is_heartbeat_or_sla_namespace(n, release)]
        self._unknown_namespaces.update(fresh)
        return fresh


@dataclass(frozen=True, slots=True)
class BrokerChange:
    """Which brokers came and went between two snapshots.

    Attributes:
        left: Ids of those that left, sorted.
        came: Those that came, sorted, with CPU cores and Gbit/s of a new one; None for one that was there before.
    """

    left: tuple[str, ...] = ()
    came: Mapping[str, tuple[float, float] | None] = field(default_factory=dict)


def change_of_brokers(before: BrokerTable, after: BrokerTable, known: Collection[str]) -> BrokerChange:
    """Return which brokers came and went.

    Args:
        before: The brokers of a snapshot.
        after: Those of a later one.
        known: Every broker that was in the simulation so far.
    """
    if after.name == before.name and np.array_equal(after.registered, before.registered):
        return BrokerChange()
    earlier, later = _registered(before), _registered(after)
    came: dict[str, tuple[float, float] | None] = {}
    for name in sorted(later - earlier):
        at = after.position[name]
        cores = float(after.cpu_limit_percent[at]) / 100
        gbps = float(after.bandwidth_in_limit_kbit_per_s[at]) / KBIT_PER_GBIT
        came[name] = None if name in known else (max(cores, 0.0), max(gbps, 0.0))
    return BrokerChange(tuple(sorted(earlier - later)), came)


def _registered(brokers: BrokerTable) -> set[str]:
    """Return the brokers that are part of a cluster."""
    return {name for name, here in zip(brokers.name, brokers.registered.tolist(), strict=True) if here}
