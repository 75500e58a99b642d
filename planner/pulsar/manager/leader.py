"""Everything that the brokers remember between load-balancer cycles, as visible and serialisable data."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from types import MappingProxyType
from typing import Any

from planner.cluster.errors import PlannerError
from planner.cluster.memory import SheddingMemory
from planner.cluster.settings import Settings
from planner.cluster.snapshot import LoadManager
from planner.pulsar.placement import modular
from planner.pulsar.placement.avg import Bindings, BundleKey
from planner.pulsar.placement.extensible import ExtensibleMemory
from planner.pulsar.placement.least_long_term_message_rate import Preallocated
from planner.pulsar.placement.least_resource_usage import UsageAverages
from planner.pulsar.placement.modular import ModularMemory
from planner.pulsar.placement.rotation import Rotation
from planner.pulsar.shedding.avg import AvgState
from planner.pulsar.shedding.protocol import Shedder
from planner.pulsar.shedding.registry import SHEDDERS
from planner.pulsar.splitting.automatic_extensible import AutoSplitState

_NO_HITS: Mapping[str, AutoSplitState] = MappingProxyType({})


class MemoryFormatError(PlannerError):
    """What was given is no memory of a leader."""


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


_PLACEMENT_STATES: Mapping[str, type] = {
    kind.__name__: kind for kind in (Preallocated, UsageAverages, Rotation, Bindings)
}
_SHEDDING_STATES: Mapping[str, type] = {
    kind.__name__: kind for kind in (type(shedder.initial()) for shedder in SHEDDERS)
}


def _state_to_json(state: Any) -> Any:
    if state is None:
        return None
    content = {name: value for name, value in asdict(state).items() if not isinstance(value, Mapping)}
    for part in fields(state):
        value = getattr(state, part.name)
        if isinstance(value, Mapping):
            by_value = isinstance(state, Bindings | AvgState) and part.name == "broker"
            content[part.name] = [[list(k), v] for k, v in value.items()] if by_value else dict(value)
    return {"kind": type(state).__name__, **content}


def _state_from_json(document: Any, kinds: Mapping[str, type]) -> Any:
    if document is None:
        return None
    content = dict(document)
    kind = kinds[content.pop("kind")]
    if kind in {Bindings, AvgState}:
        content["broker"] = {_key(key): broker for key, broker in content["broker"]}
    if kind is Rotation:
        content["listed"] = tuple(content["listed"])
    if kind is Preallocated:
        content["bundles"] = {broker: tuple(names) for broker, names in content["bundles"].items()}
    return kind(**content)


def _key(numbers: list[float]) -> BundleKey:
    return tuple(float(number) for number in numbers)


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
            "affinities": dict(place.affinities),
        },
        "extensible": {"rotation": _state_to_json(memory.extensible.rotation)},
        "split_hits": {broker: dict(state.hit_counts) for broker, state in memory.split_hits.items()},
    }


def memory_from_json(document: Any) -> LeaderMemory:
    """Return the memory that `memory_to_json` wrote.

    Raises:
        MemoryFormatError: The document is something else.
    """
    read: Callable[[Any], LeaderMemory] = _read
    try:
        return read(document)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise MemoryFormatError(
            f"This is no memory of a leader: {type(error).__name__} {error}.",
            remedy="Give a file that the planner wrote.",
        ) from error


def _read(document: Any) -> LeaderMemory:
    shed, place = document["shedding"], document["modular"]
    return LeaderMemory(
        SheddingMemory(
            _state_from_json(shed["state"], _SHEDDING_STATES),
            {str(name): int(at) for name, at in shed["recently_unloaded_bundles"].items()},
            {str(name): int(at) for name, at in shed["recently_unloaded_brokers"].items()},
        ),
        ModularMemory(
            _state_from_json(place["placement"], _PLACEMENT_STATES),
            _state_from_json(place["rotation"], _PLACEMENT_STATES),
            dict(place["promised"]),
            dict(place["preallocated"]),
            dict(place["affinities"]),
        ),
        ExtensibleMemory(_state_from_json(document["extensible"]["rotation"], _PLACEMENT_STATES)),
        {broker: AutoSplitState(dict(hits)) for broker, hits in document["split_hits"].items()},
    )
