"""The contract of a shedding strategy."""

from typing import Any, Protocol

from planner.cluster.decisions import ReasonCode, SheddingDecision
from planner.cluster.memory import SheddingMemory
from planner.cluster.settings import Settings
from planner.cluster.snapshot import LoadManager, Snapshot
from planner.pulsar.shedding.profile import Profile


class Shedder(Protocol):
    """Chooses the bundles to unload. Pure: the same snapshot, memory and settings give the same answer.

    Attributes:
        name: Simple class name in Pulsar, such as `ThresholdShedder`.
        java_class: Full class name, the value of `loadBalancerLoadSheddingStrategy`.
        load_manager: The load manager that can run it.
        summary: One sentence for people.
        settings: Real names of the settings it reads, in the order a form shows them.
        reasons: Every kind of reason it can give.
        profile: What else is known about it.
    """

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def java_class(self) -> str: ...  # noqa: D102
    @property
    def load_manager(self) -> LoadManager: ...  # noqa: D102
    @property
    def summary(self) -> str: ...  # noqa: D102
    @property
    def settings(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def reasons(self) -> tuple[ReasonCode, ...]: ...  # noqa: D102
    @property
    def profile(self) -> Profile: ...  # noqa: D102

    def initial(self) -> Any:
        """Return the state of a strategy object that was just created; a frozen dataclass."""

    def decide(
        self, snapshot: Snapshot, memory: SheddingMemory[Any], config: Settings
    ) -> tuple[SheddingMemory[Any], SheddingDecision]:
        """Decide one cycle.

        Brokers are visited in `snapshot.brokers.map_order` and bundles in the order of Java's maps, so that ties fall
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
