"""All that a cycle is judged by, and what that shows of the moment when the leader decided and of its inputs."""

from collections.abc import Iterator
from dataclasses import dataclass

from planner.cluster.snapshot import Snapshot
from planner.shadow.observe import Observation
from planner.shadow.prediction import Alternative, Prediction, alternatives, in_other_orders, predict
from planner.shadow.rhythm import Rhythm
from planner.shadow.state import OpenCycle, ShadowState
from planner.shadow.view import at_decision, with_loads_of

TAKES_MS = 100
"""From a decision until a broker has the first bundle."""


@dataclass(frozen=True, eq=False, slots=True)
class Case:
    """A cycle that is complete, with all that it is judged by.

    Attributes:
        cycle: The cycle.
        state: What was known before the later capture.
        seen: What the last two captures show.
    """

    cycle: OpenCycle
    state: ShadowState
    seen: Observation

    @property
    def made(self) -> Prediction:
        """The prediction."""
        return self.cycle.prediction

    @property
    def rhythm(self) -> Rhythm:
        """When the cycle was due."""
        return self.state.rhythm

    @property
    def next_view(self) -> Snapshot:
        """The capture after the one that the cycle is predicted from."""
        views = (one.view for one in self.cycle.around if one.captured_at_ms > self.made.captured_at_ms)
        return next(views, self.cycle.later)

    @property
    def happened(self) -> bool:
        """Whether something was unloaded, or to be unloaded."""
        return bool(self.made.bundles or self.cycle.sources)

    def moment_ms(self, explained: Prediction | None = None) -> int:
        """Return about when the leader decided: before a broker had the first bundle, after the capture it knew.

        Args:
            explained: The decision that explains what happened, if that is not the prediction.
        """
        cycle, rhythm, made = self.cycle, self.rhythm, explained or self.made
        from_ms = min(cycle.from_ms, made.captured_at_ms)
        began_ms = min(cycle.taken_ms.values(), default=0)
        if began_ms and not rhythm.is_long_after_due(began_ms):
            return max(began_ms - TAKES_MS, from_ms)
        if rhythm.known and from_ms <= rhythm.due_ms <= cycle.seen_ms:
            return rhythm.due_ms
        return (from_ms + cycle.seen_ms) // 2

    def alternatives(self) -> list[Alternative]:
        """Return what else the leader might have decided, with the cause of each."""
        return alternatives(self.made, self.cycle.around, self.cycle.later, self.rhythm, self.seen.maps)

    def in_other_orders(self, bundles: frozenset[str]) -> Iterator[Prediction]:
        """Yield what the leader decides when tied bundles, among them these, came to it in other orders."""
        return in_other_orders(self.made, self.seen.maps, bundles)

    def loads_of(self, later: Snapshot) -> Snapshot:
        """Return a later capture with the owners of the one that the cycle is predicted from."""
        return with_loads_of(self.made.view, later, self.seen.maps)

    def by_later_loads(self) -> tuple[Prediction, Prediction]:
        """Return what the loads of the capture after a decision decide: all, and those reported until the decision."""
        then = at_decision(self.made.view, self.next_view, self.moment_ms())
        return predict(self.loads_of(self.next_view), self.made.before), predict(then, self.made.before)

    def loads_change_decision(self) -> bool:
        """Say whether the loads that the capture after a decision shows would have made it another one."""
        if not self.happened:
            return False
        made = self.made
        if self.seen.counted.names_loads:
            loads = self.loads_of(self.next_view).with_columns(brokers=made.view.brokers)
            return not self.seen.counted.agrees(made) or predict(loads, made.before).bundles != made.bundles
        return {one.bundles for one in self.by_later_loads()} != {made.bundles}

    def order_changes_decision(self) -> bool:
        """Say whether the order of tied bundles, which no capture shows, would have made a decision another one."""
        if not self.happened:
            return False
        others = self.in_other_orders(self.made.bundles | self.cycle.sources.keys())
        return any(other.bundles != self.made.bundles for other in others)
