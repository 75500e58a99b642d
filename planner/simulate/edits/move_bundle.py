"""An operator unloads a bundle."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from planner.simulate.edits.edit import Ask, AtMinute, BundleName, Edit, OptionalName
from planner.simulate.edits.running import Running


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveBundle(Edit):
    """An operator unloads a bundle.

    Attributes:
        bundle: Full bundle name.
        destination: Broker id; empty lets placement decide.
        at_min: When.
    """

    title: ClassVar[str] = "Move or unload a bundle"
    bundle: BundleName
    kind: Literal["move_bundle"] = "move_bundle"
    destination: Annotated[OptionalName, Ask(label="To", pick="destination")] = ""
    at_min: AtMinute = 0.0

    def what(self) -> str:
        return f"move {self.bundle} to {self.destination}" if self.destination else f"unload {self.bundle}"

    def apply(self, run: Running, now: int) -> None:
        cluster = run.cluster
        at = cluster.bundle(self.bundle)
        if not self.destination:
            source = cluster.server_of(at)
            freed = cluster.unload(at)
            run.note(now, "moved", at, source, why="unloaded by hand")
            run.look_up(freed, now)
            return
        run.move(self.bundle, self.destination, now)
