"""LeastResourceUsageWithWeight of the extensible load manager: a draw among the brokers well below the average.

Mirrors `extensions.strategy.LeastResourceUsageWithWeight` of Pulsar 4.2.4.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from planner.cluster.decisions import PlacementDecision, ReasonBlock, ReasonCode, add_reasons
from planner.cluster.load_manager import LoadManager
from planner.cluster.names import (
    AVERAGE_RESOURCE_USAGE_DIFFERENCE_THRESHOLD_PERCENTAGE,
    BANDWIDTH_IN_RESOURCE_WEIGHT,
    BANDWIDTH_OUT_RESOURCE_WEIGHT,
    CPU_RESOURCE_WEIGHT,
    DIRECT_MEMORY_RESOURCE_WEIGHT,
    HISTORY_RESOURCE_PERCENTAGE,
    MEMORY_RESOURCE_WEIGHT,
)
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.pulsar.load.broker_load import averages
from planner.pulsar.placement.candidates import Candidates
from planner.pulsar.placement.draw import draw
from planner.pulsar.placement.protocol import Measure

_BELOW = ReasonCode(
    "least_resource_extensible.below",
    "score {load_percent:.1f} % + {difference_percent:.1f} % <= average score {average_percent:.1f} %: may be drawn",
    acts=True,
)
_ABOVE = ReasonCode(
    "least_resource_extensible.above",
    "score {load_percent:.1f} % + {difference_percent:.1f} % > average score {average_percent:.1f} %",
)
_ABOVE_ALL = ReasonCode(
    "least_resource_extensible.fallback",
    (
        "score {load_percent:.1f} % + {difference_percent:.1f} % > average score {average_percent:.1f} %; no "
        "candidate is that far below the average, so any may be drawn"
    ),
    acts=True,
)
_NO_DATA = ReasonCode(
    "least_resource_extensible.no_load_data", "no load data: drawn only if no other candidate stands out"
)
_NO_DATA_ALL = ReasonCode(
    "least_resource_extensible.no_load_data_fallback",
    "no load data, but no candidate is well below the average, so any may be drawn",
    acts=True,
)


@dataclass(frozen=True, slots=True)
class Stateless:
    """What a strategy without memory remembers: nothing."""


class LeastResourceUsageExtensible:
    """The strategy; see the module. Attributes as in `planner.pulsar.placement.protocol.Placement`."""

    name = "LeastResourceUsageWithWeight"
    java_class = "org.apache.pulsar.broker.loadbalance.extensions.strategy.LeastResourceUsageWithWeight"
    load_manager = LoadManager.EXTENSIBLE
    summary = (
        "Draws from the candidates whose load is well below the candidates' average, or from all if there are none."
    )
    judges_by = "averaged resource usage"
    measure: ClassVar[Measure] = "averaged_usage"
    settings = (
        AVERAGE_RESOURCE_USAGE_DIFFERENCE_THRESHOLD_PERCENTAGE,
        HISTORY_RESOURCE_PERCENTAGE,
        CPU_RESOURCE_WEIGHT,
        MEMORY_RESOURCE_WEIGHT,
        DIRECT_MEMORY_RESOURCE_WEIGHT,
        BANDWIDTH_IN_RESOURCE_WEIGHT,
        BANDWIDTH_OUT_RESOURCE_WEIGHT,
    )

    def initial(self) -> Stateless:
        """Return the state of a strategy object that was just created."""
        return Stateless()

    def select(
        self,
        bundle: str,
        candidates: Sequence[str],
        snapshot: Snapshot,
        state: Stateless,
        config: Settings,
        seed: int,
    ) -> tuple[Stateless, PlacementDecision]:
        """Pick a broker; see `planner.pulsar.placement.protocol.Placement.select`.

        The load of a broker is its `weighted_max_ema`; brokers without load data are not averaged and are drawn only
        when nobody is well below the average.
        """
        brokers = snapshot.brokers
        among = Candidates.named(brokers, candidates)
        here, known = among.positions, among.reporting
        usages = averages(brokers, config).weighted_max_ema[here[known]]
        total = 0.0
        for usage in usages.tolist():  # left to right, as Pulsar sums
            total += usage
        average = total / len(usages) if len(usages) else np.nan
        difference = config.number(AVERAGE_RESOURCE_USAGE_DIFFERENCE_THRESHOLD_PERCENTAGE) / 100
        below = np.zeros(len(candidates), dtype=np.bool_)
        below[known] = usages + difference <= average

        chosen = below if below.any() else np.ones_like(below)
        acceptable = among.those(chosen)
        subject = snapshot.bundle_position.get(bundle, -1)
        with_data, without = (_ABOVE, _NO_DATA) if below.any() else (_ABOVE_ALL, _NO_DATA_ALL)
        reasons: list[ReasonBlock] = []
        add_reasons(reasons, without, ~known & (here >= 0), here, bundles=subject)
        for code, which in ((_BELOW, below[known]), (with_data, ~below[known])):
            add_reasons(
                reasons, code, which, here[known], usages * 100, difference * 100, average * 100, bundles=subject
            )
        return state, PlacementDecision(bundle, acceptable, draw(acceptable, bundle, seed), tuple(reasons))


PLACEMENT = LeastResourceUsageExtensible()
"""The strategy."""
