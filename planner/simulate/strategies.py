"""The same scenario under another shedding strategy."""

from dataclasses import replace
from typing import Final

from planner.cluster.load_manager import LoadManager
from planner.cluster.names import LOAD_MANAGER_CLASS_NAME, LOAD_PLACEMENT_STRATEGY, LOAD_SHEDDING_STRATEGY
from planner.cluster.releases import Release, release
from planner.cluster.settings import Settings
from planner.pulsar.manager.class_names import in_full
from planner.pulsar.manager.pairing import PAIRED, offered_placements, placement_beside
from planner.pulsar.shedding.protocol import Shedder
from planner.pulsar.shedding.registry import SHEDDERS, has_shedder, shedder_by_name
from planner.simulate.scenario import Scenario

WITH_A_STRATEGY: Final = (LOAD_SHEDDING_STRATEGY, LOAD_PLACEMENT_STRATEGY, LOAD_MANAGER_CLASS_NAME)
"""Settings that a choice of shedding strategy decides: itself, its placement, its load manager."""


def obstacle(shedder: Shedder, load_manager: LoadManager, decides: Release) -> str:
    """Return why a cluster cannot change to a strategy by its settings alone, in a few words; empty when it can.

    Args:
        shedder: The strategy.
        load_manager: Load manager of the cluster.
        decides: Release whose rules are followed.
    """
    if shedder.load_manager is not load_manager:
        return f"needs the {shedder.load_manager} load manager: a migration"
    return "" if has_shedder(decides, shedder) else f"not in Pulsar {decides.name}: simulated as if it were"


def with_obstacle(name: str, obstacle: str) -> str:
    """Return a name and, in brackets, what stands in its way."""
    return f"{name} ({obstacle})" if obstacle else name


def under_strategy(scenario: Scenario, config: Settings, load_manager: LoadManager, shedder: str) -> Scenario:
    """Return a scenario under a shedding strategy, with the load manager and the placement that it needs.

    Args:
        scenario: The scenario.
        config: Settings of the cluster without the scenario.
        load_manager: Load manager of the cluster.
        shedder: Simple or full class name of the strategy.

    Raises:
        SettingError: There is no such strategy.
    """
    chosen = shedder_by_name(shedder)
    settings: dict[str, str | int | float | bool] = {**scenario.settings, LOAD_SHEDDING_STRATEGY: chosen.name}
    if chosen.load_manager is LoadManager.MODULAR:
        settings[LOAD_PLACEMENT_STRATEGY] = placement_beside(
            chosen, config.changed(**in_full(scenario.settings)), config
        )
    manager = chosen.load_manager
    return replace(
        scenario,
        name=chosen.name,
        settings=settings,
        load_manager="" if manager is load_manager else "modular" if manager is LoadManager.MODULAR else "extensible",
    )


def strategy_pairs(scenario: Scenario, config: Settings, load_manager: LoadManager) -> dict[str, Scenario]:
    """Return a scenario under every pair of shedding and placement strategy that goes together, by their names.

    What is given is as in `under_strategy`. What the release that decides does not have is left out.
    """
    found, decides = {}, release(scenario.pulsar_version) if scenario.pulsar_version else config.release
    for shedder in SHEDDERS:
        if not has_shedder(decides, shedder):
            continue
        under = under_strategy(scenario, config, load_manager, shedder.name)
        free = shedder.load_manager is LoadManager.MODULAR and not shedder.profile.paired_placement
        if not free:
            found[shedder.name] = under
            continue
        for place in offered_placements(LoadManager.MODULAR, decides):
            if place.name not in PAIRED:
                name = f"{shedder.name} + {place.name}"
                found[name] = replace(
                    under, name=name, settings={**under.settings, LOAD_PLACEMENT_STRATEGY: place.name}
                )
    return found
