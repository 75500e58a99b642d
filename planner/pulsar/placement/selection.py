"""How a broker was found for a bundle: what each filter left, what the strategy answered, and which broker it is."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from planner.cluster.arrays import Int64Array
from planner.cluster.decisions import PlacementDecision, ReasonBlock

How: TypeAlias = Literal["named", "owner", "affinity", "preallocated", "strategy"]
"""What decided: the bundle's own name, its present owner, an unload that named the destination, an earlier promise, or
the filters and the placement strategy."""


@dataclass(frozen=True, eq=False, slots=True)
class FilterStep:
    """What one filter left.

    Attributes:
        name: The filter, such as `isolation` or `topics`.
        kept: Positions of the brokers that are left, in the order in which Pulsar's set visits them.
        reasons: Why each broker that the step dropped, or took back, is out or in.
        failure: Why the filter failed; empty when it did not.
    """

    name: str
    kept: Int64Array
    reasons: tuple[ReasonBlock, ...] = ()
    failure: str = ""

    def about(self, bundle: int) -> "FilterStep":
        """Return the step with its reasons about a bundle by its position."""
        reasons = tuple([reason.about(bundle) for reason in self.reasons])
        return FilterStep(self.name, self.kept, reasons, self.failure) if reasons else self


@dataclass(frozen=True, eq=False, slots=True)
class Selection:
    """How a broker was found.

    Attributes:
        decision: The answer: the brokers that Pulsar might answer, and the one drawn. Its reasons are those of the
            filters and of the strategy.
        how: What decided.
        steps: What each filter left; empty when no filter was asked.
        strategy: Name of the placement strategy; empty when none was asked.
        calls: What the strategy answered. The second call is made when a broker of the first answer is overloaded.
    """

    decision: PlacementDecision
    how: How
    steps: tuple[FilterStep, ...] = ()
    strategy: str = ""
    calls: tuple[PlacementDecision, ...] = ()
