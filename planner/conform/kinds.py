"""The kinds of vectors the planner can decide, and what each asks for."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

from planner.cluster.errors import VectorError
from planner.cluster.pulsar_json import Json
from planner.conform import extensible, model_kinds, splits
from planner.conform.modular_shedders import shedding_steps
from planner.conform.placements import placement
from planner.conform.reader import Vector
from planner.conform.throttling import dispatch_throttle
from planner.pulsar.shedding import avg, overload, threshold, uniform


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


_STEPS: Mapping[str, type] = {"steps": list}

KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        "topic_to_bundle": Kind(model_kinds.topic_to_bundle, {"namespace": str, "topics": list}),
        "bundle_split": Kind(splits.bundle_split, {"algorithm": str, "bundle": str, "namespaceBoundaries": list}),
        "time_average": Kind(
            model_kinds.time_average, {"shortSamples": int, "longSamples": int, "samples": list, "checkpoints": list}
        ),
        "broker_time_average": Kind(
            model_kinds.broker_time_average, {"bundles": list, "bundleData": dict, "defaultStats": dict}
        ),
        "resource_usage": Kind(model_kinds.resource_usage, {}),
        "broker_load_data": Kind(extensible.broker_load_data, {"updates": list}),
        "top_k_bundles": Kind(extensible.top_k_bundles, {"bundleStats": dict}),
        "shedder_overload": Kind(partial(shedding_steps, overload.SHEDDER), _STEPS),
        "shedder_threshold": Kind(partial(shedding_steps, threshold.SHEDDER), _STEPS),
        "shedder_uniform": Kind(partial(shedding_steps, uniform.SHEDDER), _STEPS),
        "shedder_avg": Kind(partial(shedding_steps, avg.SHEDDER), _STEPS),
        "shedder_transfer": Kind(extensible.shedder_transfer, {"nowMs": int, **_STEPS}, sets=("decisions",)),
        "placement": Kind(placement, {"strategy": str, **_STEPS}, sets=("candidates",)),
        "auto_split_modular": Kind(splits.auto_split_modular, {"loadData": dict, "namespaceBundleCounts": dict}),
        "auto_split_extensible": Kind(extensible.auto_split_extensible, _STEPS, sets=("decisions",)),
        "dispatch_throttle": Kind(dispatch_throttle, {"limiter": str, "ops": list}),
    }
)
"""Decisions of the planner, by kind."""


def kind_of(vector: Vector) -> Kind:
    """Return the kind of a vector.

    Raises:
        VectorError: The kind is unknown, or `input` lacks a field that it needs.
    """
    kind = KINDS.get(vector.kind)
    if kind is None:
        remedy = f"Known kinds are {', '.join(sorted(KINDS))}."
        raise VectorError(f"Unknown kind '{vector.kind}'.", where=vector.where, remedy=remedy)
    for name, needed in kind.needs.items():
        if not isinstance(vector.input.get(name), needed):
            what = f"'input.{name}' of '{vector.kind}' is missing or of the wrong type."
            remedy = "Write it as described in the documentation of vectors."
            raise VectorError(what, where=vector.where, remedy=remedy)
    return kind
