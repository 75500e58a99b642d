"""One thing that happens in a simulation."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from planner.cluster.decisions import Exceeded
from planner.cluster.relocation import Relocation

EventKind: TypeAlias = Literal[
    "shed", "placed", "moved", "split", "split_refused", "broker_added", "broker_removed", "broker_lost", "unserved",
    "handed_over",
]  # fmt: skip
"""What happened: a bundle was shed; a bundle without owner was placed; an operator moved one; a bundle was split, or
Pulsar refused to; a broker joined, left in order, or was noticed to be dead; no broker may take a bundle;
clients left a bundle, all or some of them, for another namespace."""


@dataclass(frozen=True, slots=True)
class Event(Relocation):
    """One thing that happened: a relocation, or something else about a bundle or a broker.

    `bundle` is empty when it is about a broker, which is the `source` then; a split has `destination` as `source`.

    Attributes:
        at_ms: When, ms since 1970; of a relocation when the bundle left.
        kind: What.
        children: Full names of the bundles that a split made.
        arrived_at_ms: When the receiver had the bundle, where that was later.
        exceeded: The limit for which the load manager split a bundle; None of any other event.
    """

    at_ms: int = 0
    kind: EventKind = "moved"
    children: tuple[str, ...] = ()
    arrived_at_ms: int | None = None
    exceeded: Exceeded | None = None

    @property
    def served_from_ms(self) -> int:
        """When the receiver had the bundle, ms since 1970."""
        return self.at_ms if self.arrived_at_ms is None else self.arrived_at_ms
