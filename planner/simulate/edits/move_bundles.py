"""An operator unloads many bundles, each with its destination: a wave of a plan."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from planner.cluster.text import plain
from planner.simulate.edits.edit import Ask, AtMinute, Edit, EditContext, Name
from planner.simulate.edits.running import Running


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveBundles(Edit):
    """An operator unloads many bundles, each with its destination.

    Attributes:
        moves: Full bundle names, each with the broker id that is to have it.
        at_min: When.
    """

    title: ClassVar[str] = "Move many bundles"
    moves: Annotated[tuple[tuple[Name, Name], ...], Field(max_length=100_000), Ask(label="Moves", pick="pairs")]
    kind: Literal["move_bundles"] = "move_bundles"
    at_min: AtMinute = 0.0

    def what(self) -> str:
        return f"move {len(self.moves):,} bundle{'' if len(self.moves) == 1 else 's'}"

    def apply(self, run: Running, now: int) -> None:
        for bundle, destination in self.moves:
            run.check()
            run.move(bundle, destination, now)

    def lacks(self, context: EditContext) -> str:
        known = set(context.brokers)
        for line, (bundle, broker) in enumerate(self.moves, 1):
            if not broker:
                return f"Move {line} ({plain(bundle)}) names no broker: write the bundle, then the broker."
            if broker not in known:
                return f"Move {line}: the cluster has no broker {plain(broker)}."
        return "" if self.moves else "Enter the moves."
