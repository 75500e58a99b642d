"""Traffic changes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from planner.cluster.errors import ScenarioError
from planner.simulate.edits.edit import Ask, AtMinute, Edit, EditContext, Minutes, OptionalName
from planner.simulate.edits.running import Running
from planner.simulate.load_model import Shape, ShapeKind

_SHAPES = {
    "step": "changes at once, permanently or for a while",
    "growth": "grows to the factor",
    "daily": "swings up to the factor and back",
    "spike": "spikes to the factor once",
}


def _length(_: EditContext, values: Mapping[str, Any]) -> float:
    return 0.0 if values["shape"] == "step" else 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleTraffic(Edit):
    """Traffic of the cluster, a namespace, a bundle or a topic changes by a factor or over time.

    Attributes:
        scope: What is scaled.
        target: Namespace, full bundle name or full topic name (a partitioned topic: all its partitions); empty for the
            cluster.
        factor: Traffic after the change relative to before it; 0 stops it.
        shape: `step`: from `at_min` on (for `duration_min`, if that is not 0); `growth`: reaches the factor linearly
            within `duration_min`; `daily`: swings between 1 and the factor with a period of `duration_min`, lowest at
            `at_min`; `spike`: rises to the factor and falls back within `duration_min`.
        at_min: When it begins.
        duration_min: See `shape`; 0 with `step` is for ever.
    """

    title: ClassVar[str] = "Change traffic"
    happens: ClassVar[bool] = True
    kind: Literal["scale_traffic"] = "scale_traffic"
    scope: Annotated[Literal["cluster", "namespace", "bundle", "topic"], Ask(label="Of", pick="tabs")] = "cluster"
    target: Annotated[
        OptionalName, Ask(pick=lambda values: values["scope"], help="For a partitioned topic: all its partitions")
    ] = ""
    factor: Annotated[float, Field(ge=0, le=1_000_000), Ask(label="Factor", step=0.5, half=True, help="0 stops it")] = (
        2.0
    )
    shape: Annotated[ShapeKind, Ask(label="How", options=_SHAPES)] = "step"
    at_min: AtMinute = 0.0
    duration_min: Annotated[
        Minutes, Ask(label="Duration (min)", step=10.0, half=True, start=_length, help="0 with step: permanent")
    ] = 0.0

    def what(self) -> str:
        target, length = self.target or "the cluster", f"{self.duration_min:g} min"
        match self.shape:
            case "growth":
                return f"traffic of {target} grows to {self.factor:g}x within {length}"
            case "daily":
                return f"traffic of {target} swings up to {self.factor:g}x every {length}"
            case "spike":
                return f"traffic of {target} spikes to {self.factor:g}x within {length}"
        lasts = f" for {length}" if self.duration_min else ""
        if self.factor == 0:
            return f"stop the traffic of {target}{lasts}"
        return f"{self.factor:g}x traffic of {target}{lasts}"

    def when(self) -> str:
        lasting = bool(self.duration_min) and self.shape != "step"
        return f" {'from' if lasting else 'at'} minute {self.at_min:g}" if self.at_min else ""

    def plan(self, run: Running) -> None:
        run.at(run.start_ms, lambda now: self.apply(run, now))

    def apply(self, run: Running, now: int) -> None:
        if self.target and self.scope == "cluster":
            raise ScenarioError(
                f"It changes the traffic of the cluster, but names {self.target}.",
                where="target",
                remedy="Set scope to namespace, bundle or topic, or leave target out.",
            )
        run.cluster.scale(
            self.scope, self.target, Shape(self.shape, self.factor, run.start_ms, self.at_min, self.duration_min)
        )

    def assumption(self) -> str:
        lasts = f" over {self.duration_min:g} min" if self.duration_min else ""
        return (
            f"traffic of {self.target or 'the cluster'} changes to {self.factor:g}x ({self.shape}) from "
            f"minute {self.at_min:g}{lasts}."
        )

    def lacks(self, context: EditContext) -> str:
        return "" if self.target or self.scope == "cluster" else "Name the topic."
