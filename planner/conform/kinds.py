"""The kinds of vectors the planner can decide, and what each asks for."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from planner.cluster.errors import VectorError
from planner.cluster.pulsar_json import Json
from planner.conform import extensible, model_kinds, modular_shedders, placements, splits, throttling
from planner.conform.reader import Vector


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of vectors.

    Attributes:
        answer: Decides a vector of this kind with the planner's public functions.
        needs: Fields that `input` must have, each with its JSON type.
        sets: Names of the arrays in an answer whose order does not matter.
    """

    answer: Callable[[Json], Json]
    needs: Mapping[str, type]
    sets: tuple[str, ...] = ()


# Every adapter module; a kind belongs to exactly one of them.
_ANSWERS: Mapping[str, Callable[[Json], Json]] = {
    **modular_shedders.ANSWERS,
    **extensible.ANSWERS,
    **splits.ANSWERS,
    **model_kinds.ANSWERS,
    **throttling.ANSWERS,
    **placements.ANSWERS,
}

_STEPS: Mapping[str, type] = {"steps": list}

KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        "topic_to_bundle": Kind(_ANSWERS["topic_to_bundle"], {"namespace": str, "topics": list}),
        "bundle_split": Kind(_ANSWERS["bundle_split"], {"algorithm": str, "bundle": str, "namespaceBoundaries": list}),
        "time_average": Kind(
            _ANSWERS["time_average"],
            {"shortSamples": int, "longSamples": int, "samples": list, "checkpoints": list},
        ),
        "broker_time_average": Kind(
            _ANSWERS["broker_time_average"], {"bundles": list, "bundleData": dict, "defaultStats": dict}
        ),
        "resource_usage": Kind(_ANSWERS["resource_usage"], {}),
        "broker_load_data": Kind(_ANSWERS["broker_load_data"], {"updates": list}),
        "top_k_bundles": Kind(_ANSWERS["top_k_bundles"], {"bundleStats": dict}),
        "shedder_overload": Kind(_ANSWERS["shedder_overload"], _STEPS),
        "shedder_threshold": Kind(_ANSWERS["shedder_threshold"], _STEPS),
        "shedder_uniform": Kind(_ANSWERS["shedder_uniform"], _STEPS),
        "shedder_avg": Kind(_ANSWERS["shedder_avg"], _STEPS),
        "shedder_transfer": Kind(_ANSWERS["shedder_transfer"], {"nowMs": int, **_STEPS}, sets=("decisions",)),
        "placement": Kind(_ANSWERS["placement"], {"strategy": str, **_STEPS}, sets=("candidates",)),
        "auto_split_modular": Kind(_ANSWERS["auto_split_modular"], {"loadData": dict, "namespaceBundleCounts": dict}),
        "auto_split_extensible": Kind(_ANSWERS["auto_split_extensible"], _STEPS, sets=("decisions",)),
        "dispatch_throttle": Kind(_ANSWERS["dispatch_throttle"], {"limiter": str, "ops": list}),
    }
)
"""What the planner can decide, by kind."""


def kind_of(vector: Vector) -> Kind:
    """Return the kind of a vector.

    Raises:
        VectorError: The kind is unknown, or `input` lacks a field that it needs.
    """
    kind = KINDS.get(vector.kind)
    if kind is None:
        remedy = f"Known are {', '.join(sorted(KINDS))}."
        raise VectorError(f"Unknown kind '{vector.kind}'.", where=vector.where, remedy=remedy)
    for name, needed in kind.needs.items():
        if not isinstance(vector.input.get(name), needed):
            what = f"'input.{name}' of '{vector.kind}' is missing or of the wrong type."
            remedy = "Write it as the description of the vectors says."
            raise VectorError(what, where=vector.where, remedy=remedy)
    return kind
