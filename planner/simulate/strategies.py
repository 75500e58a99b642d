"""The same scenario under another shedding strategy."""

from dataclasses import replace
from typing import Final

from planner.cluster.settings import Settings
from planner.cluster.snapshot import LoadManager
from planner.pulsar.placement.registry import PLACEMENTS
from planner.pulsar.shedding.registry import shedder_by_name
from planner.simulate.scenario import Scenario

_SHEDDING: Final = "loadBalancerLoadSheddingStrategy"
_PLACEMENT: Final = "loadBalancerLoadPlacementStrategy"
_AVG: Final = "AvgShedder"


def placement_of_others(config: Settings) -> str:
    """Return the placement strategy, by its simple name, that runs beside any other strategy than `AvgShedder`.

    It is the configured one; Pulsar's default where that is `AvgShedder`, which no other strategy takes.
    """
    placed = config.text(_PLACEMENT).rpartition(".")[2]
    return PLACEMENTS[0].name if placed == _AVG else placed


def under_strategy(scenario: Scenario, config: Settings, load_manager: LoadManager, shedder: str) -> Scenario:
    """Return a scenario under a shedding strategy, with the load manager and the placement that it needs.

    `AvgShedder` brings its own placement, which no other strategy takes; there the cluster's own comes instead.

    Args:
        scenario: The scenario.
        config: Settings of the cluster without the scenario.
        load_manager: Load manager of the cluster.
        shedder: Simple or full class name of the strategy.

    Raises:
        SettingError: There is no such strategy.
    """
    chosen = shedder_by_name(shedder)
    settings: dict[str, str | int | float | bool] = {**scenario.settings, _SHEDDING: chosen.name}
    if chosen.load_manager is LoadManager.MODULAR:
        placed = config.changed(**scenario.settings).text(_PLACEMENT).rpartition(".")[2]
        others = placement_of_others(config) if placed == _AVG else placed
        settings[_PLACEMENT] = _AVG if chosen.name == _AVG else others
    manager = chosen.load_manager
    return replace(
        scenario,
        name=chosen.name,
        settings=settings,
        load_manager="" if manager is load_manager else "modular" if manager is LoadManager.MODULAR else "extensible",
    )
