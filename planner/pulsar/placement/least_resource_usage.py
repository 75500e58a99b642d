"""LeastResourceUsageWithWeight of the modular load manager: a draw among the candidates well below their average.

Mirrors `impl.LeastResourceUsageWithWeight` of Pulsar 4.2.4. The moving averages advance with every call, so that they
depend on how often bundles are placed.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from planner.cluster.arrays import BoolArray, frozen
from planner.cluster.decisions import PlacementDecision, ReasonBlock, ReasonCode, add_reasons
from planner.cluster.load_manager import LoadManager
from planner.cluster.names import AVERAGE_RESOURCE_USAGE_DIFFERENCE_THRESHOLD_PERCENTAGE, HISTORY_RESOURCE_PERCENTAGE
from planner.cluster.once import once
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.pulsar.load.usage import RESOURCE_WEIGHTS, weighted_usage
from planner.pulsar.placement.candidates import Candidates
from planner.pulsar.placement.draw import draw
from planner.pulsar.placement.protocol import Measure

_BELOW = ReasonCode(
    "least_resource.below",
    "score {usage_percent:.1f} % + {difference_percent:.0f} % <= {average_percent:.1f} %, the candidates' "
    "mean: may be drawn",
    acts=True,
)
_ABOVE = ReasonCode(
    "least_resource.above",
    "score {usage_percent:.1f} % + {difference_percent:.0f} % > {average_percent:.1f} %, the candidates' mean",
)
_FALLBACK = ReasonCode(
    "least_resource.fallback",
    (
        "score {usage_percent:.1f} % + {difference_percent:.0f} % > {average_percent:.1f} %, the "
        "candidates' mean; no candidate is that far below it, so any may be drawn"
    ),
    acts=True,
)


@dataclass(frozen=True, slots=True)
class UsageAverages:
    """What the strategy remembers.

    Attributes:
        usage: `brokerAvgResourceUsageWithWeight`: moving average of the weighted usage (1.0 = 100 %), by broker.
    """

    usage: Mapping[str, float] = field(default_factory=dict)

    def of_active(self, active: Collection[str]) -> "UsageAverages":
        """Return the averages without brokers that left (`onActiveBrokersChange`)."""
        return UsageAverages({broker: usage for broker, usage in self.usage.items() if broker in active})


class LeastResourceUsage:
    """The strategy; see the module. Attributes as in `planner.pulsar.placement.protocol.Placement`."""

    name = "LeastResourceUsageWithWeight"
    java_class = "org.apache.pulsar.broker.loadbalance.impl.LeastResourceUsageWithWeight"
    load_manager = LoadManager.MODULAR
    summary = "Draws from the candidates whose usage is well below the candidates' mean, or from all if there are none."
    judges_by = "usage averaged over lookups, which does not reflect recent moves"
    measure: Measure = "averaged_usage"
    settings: tuple[str, ...] = (
        AVERAGE_RESOURCE_USAGE_DIFFERENCE_THRESHOLD_PERCENTAGE,
        HISTORY_RESOURCE_PERCENTAGE,
        *RESOURCE_WEIGHTS,
    )

    def initial(self) -> UsageAverages:
        """Return the state of a strategy object that was just created."""
        return UsageAverages()

    @np.errstate(over="ignore", invalid="ignore")  # averages can run away, as in Java
    def select(
        self,
        bundle: str,
        candidates: Sequence[str],
        snapshot: Snapshot,
        state: UsageAverages,
        config: Settings,
        seed: int,
    ) -> tuple[UsageAverages, PlacementDecision]:
        """Pick a broker; see `planner.pulsar.placement.protocol.Placement.select`.

        Raises:
            PulsarError: A candidate has no load report; Pulsar ends in a NullPointerException.
        """
        if not candidates:
            return state, PlacementDecision(bundle, (), None)
        among = Candidates.named(snapshot.brokers, candidates)
        among.check_reports()
        here, names = among.positions, among.names
        current = weighted_usage(snapshot.brokers, config, LoadManager.MODULAR)[here]
        history = config.number(HISTORY_RESOURCE_PERCENTAGE)
        before, known = among.values_in(state.usage)
        new = _without_history(snapshot)[here] | ~known
        usage_here = np.where(new, current, before * history + (1 - history) * current)
        usages = {**state.usage, **dict(zip(names, usage_here.tolist(), strict=True))}
        average = float(np.add.accumulate(usage_here)[-1]) / len(names)  # left to right, as Pulsar sums
        difference = config.integer(AVERAGE_RESOURCE_USAGE_DIFFERENCE_THRESHOLD_PERCENTAGE) / 100
        below = usage_here + difference <= average
        acceptable = among.those(below) or names
        subject = snapshot.bundle_position.get(bundle, -1)
        reasons: list[ReasonBlock] = []
        for code, which in ((_BELOW, below), (_ABOVE if below.any() else _FALLBACK, ~below)):
            add_reasons(reasons, code, which, here, usage_here * 100, difference * 100, average * 100, bundles=subject)
        drawn = draw(acceptable, bundle, seed)
        return UsageAverages(usages), PlacementDecision(bundle, acceptable, drawn, tuple(reasons))


@once
def _without_history(snapshot: Snapshot) -> BoolArray:
    """Say which brokers have no bundles, or no message traffic: they start from the current usage. Shape (brokers,)."""
    brokers = snapshot.brokers
    bundles = snapshot.reported_counts()
    idle: BoolArray = (bundles == 0) | ((brokers.msg_rate_in_per_s == 0) & (brokers.msg_rate_out_per_s == 0))
    return frozen(idle)


PLACEMENT = LeastResourceUsage()
"""The strategy."""
