"""The contract of a placement strategy."""

from collections.abc import Sequence
from typing import Any, Literal, Protocol, TypeAlias

from planner.cluster.decisions import PlacementDecision
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.pulsar.protocol import Strategy

Measure: TypeAlias = Literal["msg_rate", "averaged_usage", "turns", "pair"]
"""Criteria by which a strategy compares candidates."""


class Placement(Strategy, Protocol):
    """Picks a broker among candidates that passed the load manager's filters. Pure; draws by seed.

    Attributes:
        judges_by: What it compares candidates by, in words.
        measure: The same as data.
    """

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
