"""Everything that the brokers remember between load-balancer cycles, as visible and serialisable data."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from types import MappingProxyType
from typing import Any

from planner.cluster.load_manager import LoadManager
from planner.cluster.memory import SheddingMemory
from planner.cluster.settings import Settings
from planner.pulsar.placement import modular
from planner.pulsar.placement.extensible import ExtensibleMemory
from planner.pulsar.placement.modular import ModularMemory
from planner.pulsar.shedding.protocol import Shedder
from planner.pulsar.splitting.automatic_extensible import AutoSplitState

_NO_HITS: Mapping[str, AutoSplitState] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class LeaderMemory:
    """What is remembered between cycles.

    Attributes:
        shedding: Of the shedding strategy and its frame.
        modular: Of placement by the modular load manager.
        extensible: Of placement by the extensible load manager.
        split_hits: Extensible: how often each broker saw its bundles above a limit, by broker id.
    """

    shedding: SheddingMemory[Any]
    modular: ModularMemory
    extensible: ExtensibleMemory = field(default_factory=ExtensibleMemory)
    split_hits: Mapping[str, AutoSplitState] = field(default_factory=lambda: _NO_HITS)


def elected(shedder: Shedder, load_manager: LoadManager, config: Settings) -> LeaderMemory:
    """Return the memory of a leader that was just elected: it knows nothing.

    Args:
        shedder: The strategy that the load manager runs.
        load_manager: Which load manager it is.
        config: Settings in force.

    Raises:
        SettingError: The modular load manager has no such placement strategy.
    """
    placement = modular.fresh_memory(config) if load_manager is LoadManager.MODULAR else ModularMemory(None)
    return LeaderMemory(SheddingMemory(shedder.initial()), placement)


def _state_to_json(state: Any) -> Any:
    if state is None:
        return None
    content = {name: value for name, value in asdict(state).items() if not isinstance(value, Mapping)}
    for part in fields(state):
        value = getattr(state, part.name)
        if isinstance(value, Mapping):
            by_value = any(isinstance(key, tuple) for key in value)
            content[part.name] = [[list(k), v] for k, v in value.items()] if by_value else dict(value)
    return {"kind": type(state).__name__, **content}


def memory_to_json(memory: LeaderMemory) -> dict[str, Any]:
    """Return the memory as plain JSON data."""
    shed, place = memory.shedding, memory.modular
    return {
        "shedding": {
            "state": _state_to_json(shed.state),
            "recently_unloaded_bundles": dict(shed.recently_unloaded_bundles),
            "recently_unloaded_brokers": dict(shed.recently_unloaded_brokers),
        },
        "modular": {
            "placement": _state_to_json(place.placement),
            "rotation": _state_to_json(place.rotation),
            "promised": dict(place.promised),
            "preallocated": dict(place.preallocated),
            "split": dict(place.split),
            "affinities": dict(place.affinities),
        },
        "extensible": {"rotation": _state_to_json(memory.extensible.rotation)},
        "split_hits": {broker: dict(state.hit_counts) for broker, state in memory.split_hits.items()},
    }
