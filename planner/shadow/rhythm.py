"""When the leader decides: its rhythm, as far as captures show it.

No interface reports when the leader decides. Pulsar 4.2.4 decides `loadBalancerSheddingIntervalMinutes` after an
election and then in that rhythm (the modular load manager counts from the end of one cycle, the extensible one from its
begin). The rhythm is known from the leader's node in the metadata store, from the metrics of an extensible leader, or
from the first unload that a cycle explains. Until then, a cycle is assumed every interval from the first capture on.
"""

from dataclasses import dataclass, replace

from planner.cluster.load_manager import LoadManager
from planner.cluster.names import SHEDDING_INTERVAL_MINUTES
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.cluster.units import MS_PER_MIN

_STEADY_INTERVALS = 10
"""For this many intervals after an election the modular load manager is not noticeably late."""
_TOLERANCE_SHARE = 0.1
_DRIFT_SHARE = 0.02
_SHARP_SHARE = 0.02
_PROMPT_SHARE = 0.05


def shedding_interval_ms(config: Settings) -> int:
    """Return the time from one cycle to the next by the settings, ms."""
    return max(config.integer(SHEDDING_INTERVAL_MINUTES), 1) * MS_PER_MIN


@dataclass(frozen=True, slots=True)
class Rhythm:
    """When cycles are due. Every moment is in ms since 1970.

    Attributes:
        interval_ms: Time from one cycle to the next.
        due_ms: When the next cycle is expected; 0 before the first capture.
        known: Whether a cycle or an election was seen, so that `due_ms` is more than an assumption.
        cycles_unseen: Cycles since the last one that was seen.
        counted_ms: The last capture in which the leader had counted a cycle without unloads; 0 before one.
    """

    interval_ms: int = 0
    due_ms: int = 0
    known: bool = False
    cycles_unseen: int = 0
    counted_ms: int = 0

    def after_election(self, view: Snapshot, at_ms: int, until_ms: int) -> "Rhythm":
        """Expect the first cycle one interval after the election, if its moment is known; else after a capture.

        Args:
            view: A capture under the new leader.
            at_ms: The last capture in which it may have been elected already.
            until_ms: The last capture; an election after it is no moment to go by.
        """
        elected_ms = view.info.leader_since_ms
        if not 0 < elected_ms <= until_ms:
            return replace(self, due_ms=at_ms + self.interval_ms, known=False, cycles_unseen=0)
        passed = max((at_ms - elected_ms) // self.interval_ms, 0)
        # The modular load manager falls behind by what its unloads take.
        steady = view.info.load_manager is LoadManager.EXTENSIBLE or passed < _STEADY_INTERVALS
        return replace(self, due_ms=elected_ms + (passed + 1) * self.interval_ms, known=steady, cycles_unseen=0)

    def after_counted_cycle(self, from_ms: int, to_ms: int) -> "Rhythm":
        """Go by the leader's count of a cycle without unloads between two captures.

        The moment that was expected stays if it fits; else the cycle is put at the first of the captures.
        """
        fits = self.known and from_ms <= self.due_ms <= to_ms + _PROMPT_SHARE * self.interval_ms
        return replace(self, due_ms=self.due_ms if fits else from_ms, known=True, counted_ms=to_ms)

    def after_cycle(self, ended_ms: int, until_ms: int, *, seen: bool) -> "Rhythm":
        """Expect the next cycle after the last capture, whole intervals after a cycle that was judged.

        Args:
            ended_ms: When that cycle ended, for the load manager that counts from there; else when it began.
            until_ms: The last capture.
            seen: Whether the cycle unloaded something.
        """
        unseen = 0 if seen else self.cycles_unseen + 1
        next_ms = replace(self, due_ms=ended_ms + self.interval_ms).skipped_to(until_ms).due_ms
        return replace(self, due_ms=next_ms, known=self.known or seen, cycles_unseen=unseen)

    def skipped_to(self, until_ms: int) -> "Rhythm":
        """Leave out the cycles that were due by a capture."""
        due_ms = self.due_ms
        while due_ms <= until_ms:
            due_ms += self.interval_ms
        return replace(self, due_ms=due_ms)

    def lost(self) -> "Rhythm":
        """Go back to an assumption: cycles passed without a capture between them."""
        return replace(self, known=False)

    def is_due(self, at_ms: int) -> bool:
        """Say whether the next cycle is due by a moment."""
        return self.due_ms <= at_ms

    @property
    def near_ms(self) -> float:
        """How far from the moment it is due a cycle may be."""
        drift_share = min(_DRIFT_SHARE * self.cycles_unseen, _TOLERANCE_SHARE)
        return (_TOLERANCE_SHARE + drift_share) * self.interval_ms

    @property
    def sharp_ms(self) -> float:
        """How far from the moment it is due a cycle may be when its rhythm is known well."""
        return _SHARP_SHARE * self.interval_ms

    def may_hold_cycle(self, from_ms: int, to_ms: int) -> bool:
        """Say whether a cycle may lie between two captures: the next one, or the last one late."""
        return to_ms >= self.due_ms - self.near_ms or from_ms <= self.due_ms - self.interval_ms + self.near_ms

    def is_long_after_due(self, moment_ms: int) -> bool:
        """Say whether a moment is too late for a cycle whose rhythm is known."""
        return self.known and moment_ms - self.due_ms > _PROMPT_SHARE * self.interval_ms

    def is_at_cycle(self, moment_ms: int) -> bool:
        """Say whether a moment is about the one when the cycle was due."""
        late_share = (moment_ms - self.due_ms) / self.interval_ms
        return -_SHARP_SHARE <= late_share <= _TOLERANCE_SHARE
