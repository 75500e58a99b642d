"""An operator splits a bundle."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from planner.cluster.ranges import FULL_HIGH
from planner.pulsar.splitting.manual import SplitCommand, Verdict, answer
from planner.pulsar.splitting.registry import SPLIT_ALGORITHMS
from planner.simulate.edits.edit import Ask, AtMinute, BundleName, Edit, EditContext
from planner.simulate.edits.running import Running


def _needs_positions(algorithm: str) -> bool:
    return any(one.name == algorithm and one.needs_positions for one in SPLIT_ALGORITHMS)


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitBundle(Edit):
    """An operator splits a bundle (`pulsar-admin namespaces split-bundle`).

    Attributes:
        bundle: Full bundle name.
        algorithm: Split algorithm; empty for the default one.
        positions: Boundaries, for an algorithm that needs them.
        unload: Unload the children afterwards.
        at_min: When.
    """

    title: ClassVar[str] = "Split a bundle"
    bundle: BundleName
    kind: Literal["split_bundle"] = "split_bundle"
    algorithm: Annotated[str, Field(max_length=60), Ask(label="Algorithm", pick="algorithm")] = ""
    positions: Annotated[
        tuple[Annotated[int, Field(ge=0, le=FULL_HIGH)], ...],
        Field(max_length=1000),
        Ask(
            label="Positions",
            pick="positions",
            placeholder="0x20000000, 0x30000000",
            when=lambda values: _needs_positions(values["algorithm"]),
        ),
    ] = ()
    unload: Annotated[bool, Ask(label="Unload the children")] = False
    at_min: AtMinute = 0.0

    def what(self) -> str:
        return f"split {self.bundle}{f' by {self.algorithm}' if self.algorithm else ''}"

    def apply(self, run: Running, now: int) -> None:
        cluster = run.cluster
        at = cluster.bundle(self.bundle)
        namespace, _, ends = self.bundle.rpartition("/")
        command = SplitCommand(namespace, ends, self.algorithm, self.positions or None, self.unload)
        outcome = answer(cluster.snapshot(now), command, run.config)
        why = "; ".join(reason.text for reason in outcome.reasons) or "requested"
        if outcome.verdict is Verdict.SPLIT:
            run.split(at, outcome.boundaries, now, why, unload=outcome.children_unloaded)
        else:
            error = str(outcome.error) if outcome.error else why
            run.note(now, "split_refused", at, cluster.server_of(at), why=error)

    def lacks(self, context: EditContext) -> str:
        if any(not 0 <= position <= FULL_HIGH for position in self.positions):
            return f"A split position is a number from 0 to 0x{FULL_HIGH:x}, such as 0x20000000."
        return "Enter the split positions." if _needs_positions(self.algorithm) and not self.positions else ""
