"""The contract of a shedding strategy."""

from typing import Any, Protocol

from planner.cluster.decisions import SheddingDecision
from planner.cluster.memory import SheddingMemory
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.pulsar.protocol import Strategy
from planner.pulsar.shedding.profile import Profile


class Shedder(Strategy, Protocol):
    """Chooses the bundles to unload. Pure: the same snapshot, memory and settings give the same answer.

    Attributes:
        profile: What else is known about it.
    """

    @property
    def profile(self) -> Profile: ...  # noqa: D102

    def initial(self) -> Any:
        """Return the state of a strategy object that was just created; a frozen dataclass."""

    def decide(
        self, snapshot: Snapshot, memory: SheddingMemory[Any], config: Settings
    ) -> tuple[SheddingMemory[Any], SheddingDecision]:
        """Decide one cycle.

        Brokers are visited in `snapshot.broker_map_order` and bundles in the order of Java's maps, so that ties fall
        as they do in Pulsar. The clock is `snapshot.info.captured_at_ms`. Brokers that left since the last call are
        forgotten first (`onActiveBrokersChange`).

        Args:
            snapshot: The cluster.
            memory: What the leader remembers; start with `SheddingMemory(shedder.initial())`.
            config: Settings in force (not necessarily those of the snapshot).

        Returns:
            The memory afterwards (recently unloaded bundles and brokers are *not* added here: a shed bundle counts as
            unloaded only when the frame has unloaded it), and the decision.
        """
