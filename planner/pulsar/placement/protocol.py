"""The contract of a placement strategy."""

from collections.abc import Sequence
from typing import Any, Literal, Protocol, TypeAlias

from planner.cluster.decisions import PlacementDecision, ReasonCode
from planner.cluster.settings import Settings
from planner.cluster.snapshot import LoadManager, Snapshot

Measure: TypeAlias = Literal["msg_rate", "averaged_usage", "turns", "pair"]
"""What a strategy compares candidates by."""


class Placement(Protocol):
    """Picks a broker among candidates that passed the load manager's filters. Pure; draws by seed.

    Attributes:
        name: Simple class name in Pulsar, such as `LeastLongTermMessageRate`.
        java_class: Full class name.
        load_manager: The load manager that can run it.
        summary: One sentence for people.
        settings: Real names of the settings it reads.
        reasons: Every kind of reason it can give.
        judges_by: What it compares candidates by, in words.
        measure: The same as data.
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
    def judges_by(self) -> str: ...  # noqa: D102
    @property
    def measure(self) -> Measure: ...  # noqa: D102

    def initial(self) -> Any:
        """Return the state of a strategy object that was just created; a frozen dataclass."""

    def select(
        self,
        bundle: str,
        candidates: Sequence[str],
        snapshot: Snapshot,
        state: Any,
        config: Settings,
        seed: int,
    ) -> tuple[Any, PlacementDecision]:
        """Pick a broker.

        Args:
            bundle: Full bundle name.
            candidates: Broker ids in the order Pulsar's set would be visited.
            snapshot: The cluster.
            state: What the strategy remembers; start with `initial()`.
            config: Settings in force.
            seed: Decides where Pulsar draws at random.

        Returns:
            The state afterwards, and the decision with the whole set of acceptable brokers.
        """
