"""Shedding and automatic splits are held for a while."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from planner.simulate.admin_commands import Command, waiting
from planner.simulate.edits.edit import Ask, AtMinute, Edit
from planner.simulate.edits.running import Running


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldBalancer(Edit):
    """Shedding and automatic splits are held, as the scripts of this planner do while they move bundles.

    Attributes:
        duration_min: How long.
        at_min: From when on.
    """

    title: ClassVar[str] = "Hold shedding and splits"
    kind: Literal["hold_balancer"] = "hold_balancer"
    duration_min: Annotated[
        float, Field(gt=0, le=100_000), Ask(label="Duration (min)", help="Scripts hold both while they move bundles")
    ] = 10.0
    at_min: AtMinute = 0.0

    def what(self) -> str:
        return f"hold shedding and splits for {self.duration_min:g} min"

    def plan(self, run: Running) -> None:
        """Plan nothing: the scenario says at each moment whether both are held."""

    def commands(self, cluster: str, program: Sequence[str]) -> Iterator[Command]:
        yield Command(section="notes", note=f"Shedding and automatic splits are held for {self.duration_min:g} min.")
        yield waiting(self.duration_min)

    def held_min(self) -> tuple[float, float] | None:
        return self.at_min, self.at_min + self.duration_min
