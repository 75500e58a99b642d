"""A namespace is recreated."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from planner.cluster.text import count
from planner.simulate.admin_commands import Command, creation_by_hand
from planner.simulate.edits.edit import Ask, Edit, NamespaceName
from planner.simulate.edits.running import Running


@dataclass(frozen=True, slots=True, kw_only=True)
class SetBundleCount(Edit):
    """A namespace is recreated with a number of equal bundles, which are looked up and placed again."""

    title: ClassVar[str] = "Recreate a namespace"
    namespace: NamespaceName
    bundles: Annotated[int, Field(ge=1, le=100_000), Ask(label="Bundles", start=16)]
    kind: Literal["set_bundle_count"] = "set_bundle_count"

    def what(self) -> str:
        return f"recreate {self.namespace} with {count(self.bundles, 'bundle')}"

    def apply(self, run: Running, now: int) -> None:
        run.cluster.recut(self.namespace, self.bundles)
        run.retry(now)

    def commands(self, cluster: str, program: Sequence[str]) -> Iterator[Command]:
        note = (
            "Pulsar cannot change the number of bundles of an existing namespace, and splits only "
            f"add bundles. To get {count(self.bundles, 'bundle')}, recreate {self.namespace} and "
            "move its topics there."
        )
        yield creation_by_hand(f"{self.namespace}-new", self.bundles, program, note)

    def recreated(self) -> tuple[str, ...]:
        return (self.namespace,)
