"""Which placement strategy runs beside which shedding strategy, as the modular load manager takes them."""

from typing import Final

from planner.cluster.load_manager import LoadManager
from planner.cluster.names import LOAD_MANAGER_CLASS_NAME, LOAD_PLACEMENT_STRATEGY, LOAD_SHEDDING_STRATEGY
from planner.cluster.releases import Release
from planner.cluster.settings import Settings
from planner.pulsar.manager.class_names import MANAGER_CLASSES
from planner.pulsar.placement.modular import configured_placement
from planner.pulsar.placement.protocol import Placement
from planner.pulsar.placement.registry import PLACEMENTS
from planner.pulsar.shedding.protocol import Shedder
from planner.pulsar.shedding.registry import SHEDDERS, default_shedder, has_shedder

PAIRED: Final = frozenset(filter(None, (shedder.profile.paired_placement for shedder in SHEDDERS)))
"""Placement strategies that only one shedding strategy takes, by name."""


def offered_placements(load_manager: LoadManager, release: Release) -> tuple[Placement, ...]:
    """Return the placement strategies of a load manager that a release has."""
    lacking = {one.profile.paired_placement for one in SHEDDERS if not has_shedder(release, one)}
    return tuple(one for one in PLACEMENTS if one.load_manager is load_manager and one.name not in lacking)


def default_settings(load_manager: LoadManager) -> Settings:
    """Return the settings of a cluster that runs a load manager and changes nothing else."""
    own = {
        LOAD_MANAGER_CLASS_NAME: MANAGER_CLASSES[load_manager],
        LOAD_SHEDDING_STRATEGY: default_shedder(load_manager).java_class,
    }
    return Settings(own)


def running_placement(load_manager: LoadManager, config: Settings) -> Placement:
    """Return the placement strategy that a load manager runs: the configured one, or the only one that places freely.

    Raises:
        SettingError: The modular load manager has no strategy of the configured name.
    """
    if load_manager is LoadManager.MODULAR:
        return configured_placement(config)
    return next(one for one in PLACEMENTS if one.load_manager is load_manager)


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
    placed = (settings.text(LOAD_PLACEMENT_STRATEGY).rpartition(".")[2] for settings in (config, own))
    return next((name for name in placed if name not in PAIRED), PLACEMENTS[0].name)
