"""Settings that a file changes although nothing that runs reads them."""

from collections.abc import Iterator
from typing import Final

from planner.cluster.load_manager import LoadManager
from planner.cluster.names import (
    AUTO_UNLOAD_SPLIT_BUNDLES_ENABLED,
    BANDWIDTH_IN_RESOURCE_WEIGHT,
    BANDWIDTH_OUT_RESOURCE_WEIGHT,
    BANDWITH_IN_RESOURCE_WEIGHT,
    BANDWITH_OUT_RESOURCE_WEIGHT,
    BROKER_MAX_TOPICS,
    BROKER_OVERLOADED_THRESHOLD_PERCENTAGE,
    CPU_RESOURCE_WEIGHT,
    DIRECT_MEMORY_RESOURCE_WEIGHT,
    DISTRIBUTE_BUNDLES_EVENLY_ENABLED,
    FAILURE_DOMAINS_ENABLED,
    LOAD_BALANCER_ENABLED,
    LOAD_MANAGER_CLASS_NAME,
    LOAD_PLACEMENT_STRATEGY,
    LOAD_SHEDDING_STRATEGY,
    MAX_NUMBER_OF_BUNDLES_IN_BUNDLE_LOAD_REPORT,
    MAX_NUMBER_OF_BUNDLES_TO_SPLIT_PER_CYCLE,
    MEMORY_RESOURCE_WEIGHT,
    NAMESPACE_BUNDLE_SPLIT_CONDITION_HIT_COUNT_THRESHOLD,
    PREFER_LATER_VERSIONS,
    SHEDDING_ENABLED,
    SHEDDING_EXCLUDED_NAMESPACES,
    SHEDDING_GRACE_PERIOD_MINUTES,
    SPLIT_INTERVAL_MINUTES,
)
from planner.cluster.settings import Settings
from planner.history.assumed import listed
from planner.pulsar.manager.class_names import MANAGER_CLASSES, SIMPLE_LOAD_MANAGER, class_name
from planner.pulsar.manager.cycle import effective_shedder
from planner.pulsar.placement.registry import PLACEMENTS
from planner.pulsar.shedding.registry import SHEDDERS

_NOT_SAID: Final = frozenset(
    [
        SHEDDING_GRACE_PERIOD_MINUTES,
        BROKER_MAX_TOPICS,
        BROKER_OVERLOADED_THRESHOLD_PERCENTAGE,
        PREFER_LATER_VERSIONS,
        FAILURE_DOMAINS_ENABLED,
        SHEDDING_EXCLUDED_NAMESPACES,
        MAX_NUMBER_OF_BUNDLES_IN_BUNDLE_LOAD_REPORT,
        CPU_RESOURCE_WEIGHT,
        DIRECT_MEMORY_RESOURCE_WEIGHT,
        BANDWIDTH_IN_RESOURCE_WEIGHT,
        BANDWIDTH_OUT_RESOURCE_WEIGHT,
        BANDWITH_IN_RESOURCE_WEIGHT,
        BANDWITH_OUT_RESOURCE_WEIGHT,
        MEMORY_RESOURCE_WEIGHT,
    ]
)
"""What load managers read beside their strategies, as the classes of 4.0.8 and 4.2.4 do.

The last one is a weight that Pulsar's own `broker.conf` changes.
"""
_OF_MANAGER: Final = {
    DISTRIBUTE_BUNDLES_EVENLY_ENABLED: LoadManager.MODULAR,
    LOAD_PLACEMENT_STRATEGY: LoadManager.MODULAR,
    AUTO_UNLOAD_SPLIT_BUNDLES_ENABLED: LoadManager.MODULAR,
    SPLIT_INTERVAL_MINUTES: LoadManager.EXTENSIBLE,
    MAX_NUMBER_OF_BUNDLES_TO_SPLIT_PER_CYCLE: LoadManager.EXTENSIBLE,
    NAMESPACE_BUNDLE_SPLIT_CONDITION_HIT_COUNT_THRESHOLD: LoadManager.EXTENSIBLE,
}
"""What only one load manager reads, outside its strategies."""
_OF_SIMPLE: Final = (
    "loadBalancerPlacementStrategy",
    "loadBalancerBrokerUnderloadedThresholdPercentage",
    "loadBalancerBrokerComfortLoadLevelPercentage",
)
"""What only the first load manager reads."""


def without_effect(config: Settings) -> Iterator[tuple[str, str]]:
    """Yield settings with another value than their default that nothing reads which runs, each with who would.

    Nothing is said where a class of one's own runs, which may read anything, or where the load balancer is off.
    """
    asked = config.text(LOAD_MANAGER_CLASS_NAME).strip()
    manager = next((one for one, name in MANAGER_CLASSES.items() if name == asked), None)
    strategies = (LOAD_SHEDDING_STRATEGY, LOAD_PLACEMENT_STRATEGY)
    official = all(class_name(one, config.text(one).strip()).kind == "official" for one in strategies if one in config)
    if manager is None or not official or not (config[LOAD_BALANCER_ENABLED] and config[SHEDDING_ENABLED]):
        return
    running = _running(manager, config)
    for name, setting in config.release.settings.items():
        if name in _NOT_SAID or config[name] == setting.default:
            continue
        if name in _OF_SIMPLE:
            simple = SIMPLE_LOAD_MANAGER.rpartition(".")[2]
            yield name, f"Only {simple} reads it, but the {manager} load manager runs."
            continue
        if name in _OF_MANAGER:
            if _OF_MANAGER[name] is not manager:
                yield name, f"Only the {_OF_MANAGER[name]} load manager reads it, but the {manager} one runs."
            continue
        readers = [one for one in (*SHEDDERS, *PLACEMENTS) if name in one.settings]
        if not readers or running & {one.name for one in readers}:
            continue
        if all(one.load_manager is not manager for one in readers):
            yield name, f"Only the {readers[0].load_manager} load manager reads it, but the {manager} one runs."
        else:
            names = dict.fromkeys(one.name for one in readers if one.load_manager is manager)
            reads = "reads" if len(names) == 1 else "read"
            yield name, f"Only {listed(names)} {reads} it, but {listed(sorted(running))} run."


def _running(manager: LoadManager, config: Settings) -> set[str]:
    """Return the strategies that decide."""
    of_manager = [one for one in PLACEMENTS if one.load_manager is manager]
    placed = config.text(LOAD_PLACEMENT_STRATEGY).rpartition(".")[2] if LOAD_PLACEMENT_STRATEGY in config else ""
    asked = [one.name for one in of_manager if one.name == placed] if manager is LoadManager.MODULAR else []
    return {effective_shedder(manager, config)[0].name, *(asked or [one.name for one in of_manager])}
