"""A bundle is kept on a broker."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from planner.simulate.admin_commands import Command
from planner.simulate.edits.edit import BrokerName, BundleName, Edit
from planner.simulate.edits.running import Running


@dataclass(frozen=True, slots=True, kw_only=True)
class PinBundle(Edit):
    """A bundle is kept on a broker: moved there at the start, never shed, and given back to it whenever it is there.

    Pulsar cannot pin a bundle; the nearest it has is an isolation policy for its namespace.
    """

    title: ClassVar[str] = "Pin a bundle"
    hint: ClassVar[str] = "Pulsar cannot pin a bundle. The closest equivalent is an isolation policy for its namespace."
    bundle: BundleName
    broker: BrokerName
    kind: Literal["pin_bundle"] = "pin_bundle"

    def what(self) -> str:
        return f"pin {self.bundle} to {self.broker}"

    def apply(self, run: Running, now: int) -> None:
        cluster = run.cluster
        at, target = cluster.bundle(self.bundle), cluster.broker(self.broker)
        cluster.pin(self.bundle, self.broker)
        if cluster.owner[at] != target and cluster.present[target]:
            run.give(at, self.broker, now, "moved", (self.broker,), "pinned by the scenario")
        if not cluster.present[target]:
            run.notes.append(f"Without effect while {self.broker} is not in the cluster: {self.phrase()}.")

    def commands(self, cluster: str, program: Sequence[str]) -> Iterator[Command]:
        text = (
            f"Pulsar cannot pin {self.bundle} to {self.broker}. This plan moves the bundle there, but it "
            "stays only until shedding or a restart moves it away. The closest equivalent to a pin is an "
            "isolation policy for its namespace."
        )
        yield Command(section="notes", note=text)
