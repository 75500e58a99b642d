"""What shadow mode knows after a capture."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from planner.cluster.relocation import Relocation
from planner.cluster.snapshot import Snapshot
from planner.pulsar.load.top_bundles import StatisticsMap
from planner.pulsar.manager.leader import LeaderMemory
from planner.shadow.memory import remembering
from planner.shadow.prediction import Prediction
from planner.shadow.record import Cause, Deviation, Split
from planner.shadow.rhythm import Rhythm
from planner.shadow.splits import SplitShadow, SplitsSeen

Metrics = Mapping[str, float]
"""Metrics of the leader, by name."""

UNLOADED = "unloaded"
"""Text of a deviation about a bundle that was unloaded and not predicted."""

_MOST_OUTSIDE = 1_000


class Leadership(NamedTuple):
    """Who leads, as a capture tells.

    Attributes:
        broker: Broker id of the leader; empty unknown.
        started_ms: When it started, ms since 1970; 0 unknown.
        elected_ms: When it was elected; 0 unknown.
    """

    broker: str = ""
    started_ms: int = 0
    elected_ms: int = 0

    def differs(self, now: "Leadership") -> bool:
        """Say whether another leader decides now, or the same one after a restart or another election."""
        if not self.broker or not now.broker:
            return False
        return any(a != b and bool(a) and bool(b) for a, b in zip(self, now, strict=True))


@dataclass(frozen=True, eq=False, slots=True)
class OpenCycle:
    """A prediction that waits to be judged: from the moment its cycle is due, or the first unload, until it is over.

    Attributes:
        prediction: From the last capture before the cycle.
        around: From the captures shortly before and after that one, oldest first.
        stable: Whether the capture before that one gave the same prediction.
        from_ms: That capture, ms since 1970.
        seen_ms: The first capture in which something had happened; the one that made it due when nothing has.
        later: That capture's content.
        last_ms: The last capture in which something more had happened.
        gap_ms: Time between the captures before and after.
        sources: Bundles that were unloaded, with the broker that had them.
        destinations: The first broker that had them then; empty for none.
        taken_ms: When they had a broker again, as far as the metadata store shows.
        returned: Those of them that the same broker took again.
        disturbed: What else happened meanwhile that makes the prediction void.
    """

    prediction: Prediction
    around: tuple[Prediction, ...]
    stable: bool
    from_ms: int
    seen_ms: int
    later: Snapshot
    last_ms: int
    gap_ms: int
    sources: Mapping[str, str] = field(default_factory=dict)
    destinations: Mapping[str, str] = field(default_factory=dict)
    taken_ms: Mapping[str, int] = field(default_factory=dict)
    returned: frozenset[str] = frozenset()
    disturbed: Cause | None = None


@dataclass(frozen=True, eq=False, slots=True)
class BetweenCycles:
    """What happened since the last cycle, but not in one.

    Attributes:
        outside: Bundles that left their broker.
        differences: What was not as predicted.
        predicted_splits: Splits that were predicted and happened, or are overdue.
        actual_splits: Splits that happened.
    """

    outside: tuple[Relocation, ...] = ()
    differences: tuple[Deviation, ...] = ()
    predicted_splits: tuple[Split, ...] = ()
    actual_splits: tuple[Split, ...] = ()

    def with_splits(self, seen: SplitsSeen) -> "BetweenCycles":
        """Add splits."""
        return replace(
            self,
            differences=(*self.differences, *seen.differences),
            predicted_splits=(*self.predicted_splits, *seen.predicted),
            actual_splits=(*self.actual_splits, *seen.actual),
        )

    def with_unloads(self, unloads: Collection[Relocation], cause: Cause) -> "BetweenCycles":
        """Add bundles that left their broker, as many as there is room for."""
        found = tuple(unloads)[: max(_MOST_OUTSIDE - len(self.outside), 0)]
        differences = tuple(Deviation(unload.bundle, UNLOADED, cause) for unload in found)
        return replace(self, outside=(*self.outside, *found), differences=(*self.differences, *differences))

    def without_unloads(self, bundles: Collection[str]) -> "BetweenCycles":
        """Leave out bundles that turned out to belong to a cycle."""
        return replace(
            self,
            outside=tuple(unload for unload in self.outside if unload.bundle not in bundles),
            differences=tuple(d for d in self.differences if d.bundle not in bundles or d.what != UNLOADED),
        )

    @property
    def causes(self) -> Mapping[str, Cause]:
        """Why each bundle left its broker."""
        return {d.bundle: d.cause for d in self.differences if d.what == UNLOADED}


@dataclass(frozen=True, eq=False)
class ShadowState:
    """What shadow mode knows after a capture; a new one knows nothing. Every moment is in ms since 1970.

    Attributes:
        rhythm: When cycles are due.
        leader: Who leads.
        memory: What the leader remembers; None before the first cycle, and after an election.
        preallocated: Bundles that the leader gave to itself, and still counts as if they were in transit to it.
        counted: What the leader's metrics reported when the last cycle was judged; empty unknown.
        counted_at_begin: The same at `began_ms`.
        first_ms: The first capture.
        began_ms: The first capture since the election; 0 before there is one.
        cycles_followed: Cycles since then; after an election, when the memory is known to be empty, more than enough.
        samples: Samples of the leader's averages since one that no capture may hold.
        maps: What is known of the brokers' maps of bundle statistics, by broker id.
        predictions: From the last captures with the same memory, oldest first; the last one is the valid one.
        acting_since_ms: Since when the prediction has been one with unloads; 0 when it is not.
        cycle: The cycle that is open, if there is one.
        between: What happened since the last cycle.
        number: Cycles judged.
        splits: What is known of splits.
    """

    rhythm: Rhythm = field(default_factory=Rhythm)
    leader: Leadership = field(default_factory=Leadership)
    memory: LeaderMemory | None = None
    preallocated: Mapping[str, str] = field(default_factory=dict)
    counted: Metrics = field(default_factory=dict)
    counted_at_begin: Metrics = field(default_factory=dict)
    first_ms: int = 0
    began_ms: int = 0
    cycles_followed: int = 0
    samples: int = 0
    maps: Mapping[str, StatisticsMap] = field(default_factory=dict)
    predictions: tuple[Prediction, ...] = ()
    acting_since_ms: int = 0
    cycle: OpenCycle | None = None
    between: BetweenCycles = field(default_factory=BetweenCycles)
    number: int = 0
    splits: SplitShadow = field(default_factory=SplitShadow)

    @property
    def prediction(self) -> Prediction:
        """The valid prediction; there is one after the first capture."""
        return self.predictions[-1]

    def continues(self, capture: Snapshot) -> bool:
        """Say whether the valid prediction is from this capture."""
        return bool(self.predictions) and self.prediction.captured_at_ms == capture.info.captured_at_ms

    def known_view(self, capture: Snapshot) -> Snapshot:
        """Return the last capture as the leader knew the cluster; as captured, when nothing is predicted from it."""
        return self.prediction.view if self.continues(capture) else capture

    def remembered(self, view: Snapshot) -> LeaderMemory | None:
        """Return what the leader remembers when it decides the next cycle, with what it counts for itself."""
        due_ms = max(self.rhythm.due_ms, view.info.captured_at_ms)
        return remembering(self.memory, view, self.preallocated, due_ms)
