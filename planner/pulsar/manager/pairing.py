"""Which placement strategy runs beside which shedding strategy, as the modular load manager takes them."""

from typing import Final

from planner.cluster.settings import Settings
from planner.pulsar.placement.registry import PLACEMENTS
from planner.pulsar.shedding.protocol import Shedder
from planner.pulsar.shedding.registry import SHEDDERS

PLACEMENT: Final = "loadBalancerLoadPlacementStrategy"
PAIRED: Final = frozenset(filter(None, (shedder.profile.paired_placement for shedder in SHEDDERS)))
"""Placement strategies that only one shedding strategy takes, by name."""


def placement_beside(shedder: Shedder, config: Settings, own: Settings) -> str:
    """Return the name of the placement strategy that a shedding strategy is tried with.

    Its own pair where it has one. Else the configured one; where that is the pair of another strategy, what the
    cluster itself is set to; where that is one as well, the default.

    Args:
        shedder: The shedding strategy.
        config: Settings in force, with those of a scenario.
        own: The cluster's own settings.
    """
    if shedder.profile.paired_placement:
        return shedder.profile.paired_placement
    placed = (settings.text(PLACEMENT).rpartition(".")[2] for settings in (config, own))
    return next((name for name in placed if name not in PAIRED), PLACEMENTS[0].name)
