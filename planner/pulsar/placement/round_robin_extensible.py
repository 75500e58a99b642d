"""RoundRobinBrokerSelectionStrategy: the brokers in turn, whatever their load.

Mirrors `RoundRobinBrokerSelectionStrategy` of the extensible load manager of Pulsar 4.2.4, which places bundles of
`loadBalancerSheddingExcludedNamespaces`.
"""

from collections.abc import Sequence
from typing import ClassVar

from planner.cluster.decisions import PlacementDecision, ReasonCode, block
from planner.cluster.load_manager import LoadManager
from planner.cluster.names import SHEDDING_EXCLUDED_NAMESPACES
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.pulsar.placement.protocol import Measure
from planner.pulsar.placement.rotation import Rotation, rotate

_TURN = ReasonCode("round_robin.turn", "its turn: call {call:.0f} takes place {place:.0f} in the list", acts=True)
_WAITS = ReasonCode("round_robin.waits", "it is the turn of {other}")


class RoundRobinExtensible:
    """The strategy; see the module. Attributes as in `planner.pulsar.placement.protocol.Placement`."""

    name = "RoundRobinBrokerSelectionStrategy"
    java_class = "org.apache.pulsar.broker.loadbalance.extensions.strategy.RoundRobinBrokerSelectionStrategy"
    load_manager = LoadManager.EXTENSIBLE
    summary = "Takes the candidates in turn; places bundles of namespaces that are excluded from shedding."
    judges_by = "turns"
    measure: ClassVar[Measure] = "turns"
    settings = (SHEDDING_EXCLUDED_NAMESPACES,)

    def initial(self) -> Rotation:
        """Return the state of a strategy object that was just created."""
        return Rotation()

    def select(
        self,
        bundle: str,
        candidates: Sequence[str],
        snapshot: Snapshot,
        state: Rotation,
        config: Settings,
        seed: int,
    ) -> tuple[Rotation, PlacementDecision]:
        """Pick a broker, whatever seed and settings; see `planner.pulsar.placement.protocol.Placement.select`."""
        del config, seed
        after, turn = rotate(state, candidates)
        if turn.selected is None:
            return after, PlacementDecision(bundle, (), None)
        position = snapshot.brokers.position
        chosen = position.get(turn.selected, -1)
        subject = snapshot.bundle_position.get(bundle, -1)
        waiting = [position[name] for name in candidates if name != turn.selected and name in position]
        reasons = (
            block(_TURN, chosen, subject, (state.counter + 1, turn.index + 1)),
            block(_WAITS, waiting, subject, (), chosen),
        )
        return after, PlacementDecision(bundle, (turn.selected,), turn.selected, reasons)


PLACEMENT = RoundRobinExtensible()
"""The strategy."""
