"""What the next cycle does, predicted from one capture, and what else the leader might have decided."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import partial

from planner.cluster.load_manager import LoadManager
from planner.cluster.relocation import Relocation
from planner.cluster.snapshot import Snapshot
from planner.pulsar.load.top_bundles import StatisticsMap
from planner.pulsar.manager.cycle import CycleDecision, next_cycle
from planner.pulsar.manager.leader import LeaderMemory
from planner.shadow.memory import fitting, other_memories
from planner.shadow.record import Cause
from planner.shadow.rhythm import Rhythm
from planner.shadow.view import at_decision, other_orders, with_loads_of

_SEED = 0


@dataclass(frozen=True, eq=False, slots=True)
class Prediction:
    """What the next cycle does, as of one capture.

    Attributes:
        view: The capture, as the leader knows the cluster.
        before: What the leader remembers, as far as is known.
        after: What it remembers if it carries that out.
        decision: What it does.
    """

    view: Snapshot
    before: LeaderMemory | None
    after: LeaderMemory
    decision: CycleDecision

    @property
    def captured_at_ms(self) -> int:
        """The capture, ms since 1970."""
        return self.view.info.captured_at_ms

    @property
    def unloads(self) -> tuple[Relocation, ...]:
        """The bundles that are unloaded, with the brokers that may get them; those included that a draw decides."""
        found = []
        for unload in self.decision.unloads:
            move, others = unload.move, tuple(name for name in unload.acceptable if name != unload.move.source)
            drawn = bool(others) and len(others) < len(unload.acceptable)
            if unload.carried_out or drawn:
                found.append(Relocation(move.bundle, move.source, move.destination or "", others, may_stay=drawn))
        return tuple(found)

    @property
    def bundles(self) -> frozenset[str]:
        """The bundles that are unloaded, or may be."""
        return frozenset(unload.bundle for unload in self.unloads)

    @property
    def sure(self) -> frozenset[str]:
        """The bundles that are unloaded for certain."""
        return frozenset(unload.bundle for unload in self.unloads if not unload.may_stay)

    @property
    def acceptable(self) -> Mapping[str, tuple[str, ...]]:
        """The brokers that may get each bundle which is unloaded."""
        return {unload.bundle: unload.acceptable for unload in self.unloads}

    def explains(self, unloaded: AbstractSet[str]) -> bool:
        """Say whether exactly these bundles may have been unloaded."""
        return self.sure <= unloaded <= self.bundles


def predict(view: Snapshot, remembered: LeaderMemory | None) -> Prediction:
    """Return what the next cycle does.

    Args:
        view: The cluster, as the leader knows it.
        remembered: What the leader remembers; None for a newly elected one.

    Raises:
        SettingError: A strategy of the cluster is unknown.
    """
    memory = fitting(remembered, view)
    after, decision = next_cycle(view, memory, view.settings, _SEED, explain=False)
    return Prediction(view, memory, after, decision)


Alternative = tuple[Cause, Callable[[], Prediction]]
"""Another possible decision of the leader, computed when called, and the cause that it represents."""


def alternatives(
    made: Prediction,
    around: Sequence[Prediction],
    later: Snapshot,
    rhythm: Rhythm,
    maps: Mapping[str, StatisticsMap],
) -> list[Alternative]:
    """Return what else the leader might have decided, the most likely cause first.

    Args:
        made: The prediction.
        around: Predictions from the captures around that one, oldest first.
        later: A capture after the cycle.
        rhythm: When the cycle was due.
        maps: What is known of the brokers' maps of bundle statistics, by broker id.
    """
    after = [one for one in around if one.captured_at_ms > made.captured_at_ms]
    following = after[0].view if after else later
    memories = other_memories(made.decision, made.before, made.view)
    return [
        *_of_other_inputs(made, later),
        (Cause.LATE_REPORT, lambda: predict(at_decision(made.view, following, rhythm.due_ms), made.before)),
        *((Cause.LATE_REPORT, partial(_as_made, one)) for one in after),
        (Cause.LATE_REPORT, lambda: predict(with_loads_of(made.view, later, maps), made.before)),
        *((Cause.EARLIER, partial(_as_made, one)) for one in _earlier(made, around, rhythm)),
        *((Cause.MEMORY, partial(predict, made.view, other)) for other in memories),
    ]


def _of_other_inputs(made: Prediction, later: Snapshot) -> Iterator[Alternative]:
    """Yield decisions by the settings and the policies of a later capture, where they changed."""
    view, changed_settings = made.view, made.view.settings.overrides != later.settings.overrides
    if changed_settings:
        yield Cause.SETTINGS, partial(predict, replace(view, settings=later.settings), made.before)
    if view.policies != later.policies:
        yield Cause.POLICIES, partial(predict, replace(view, policies=later.policies), made.before)
        if changed_settings:
            both = replace(view, policies=later.policies, settings=later.settings)
            yield Cause.POLICIES, partial(predict, both, made.before)


def _earlier(made: Prediction, around: Sequence[Prediction], rhythm: Rhythm) -> list[Prediction]:
    """Return predictions from earlier captures, the latest first.

    A modular leader whose rhythm is known had read every report that the capture found in the metadata store.
    """
    if rhythm.known and made.view.info.load_manager is LoadManager.MODULAR:
        return []
    return [one for one in reversed(around) if one.captured_at_ms < made.captured_at_ms]


def _as_made(made: Prediction) -> Prediction:
    return made


def in_other_orders(
    made: Prediction, maps: Mapping[str, StatisticsMap], bundles: AbstractSet[str]
) -> Iterator[Prediction]:
    """Yield what the leader decides when tied bundles, among them these, came to it in other orders."""
    return (predict(view, made.before) for view in other_orders(made.view, maps, bundles))
