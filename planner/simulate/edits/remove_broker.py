"""A broker is shut down."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from planner.simulate.admin_commands import Command, shutdown_command
from planner.simulate.edits.edit import AtMinute, BrokerName, Edit
from planner.simulate.edits.running import Running


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveBroker(Edit):
    """A broker is shut down in order: it leaves the cluster and gives all its bundles up at once."""

    title: ClassVar[str] = "Shut a broker down"
    broker: BrokerName
    kind: Literal["remove_broker"] = "remove_broker"
    at_min: AtMinute = 0.0

    def what(self) -> str:
        return f"shut down {self.broker}"

    def emptied(self) -> tuple[str, ...]:
        return (self.broker,)

    def apply(self, run: Running, now: int) -> None:
        if not self.has_left(run, self.broker):
            run.gone(run.cluster.broker(self.broker), now, "broker_removed", "shut down")

    def commands(self, cluster: str, program: Sequence[str]) -> Iterator[Command]:
        yield shutdown_command(self.broker, program)
