"""A broker dies."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from planner.simulate.edits.edit import AtMinute, BrokerName, Edit
from planner.simulate.edits.running import Running


@dataclass(frozen=True, slots=True, kw_only=True)
class KillBroker(Edit):
    """A broker dies. The others notice when its metadata session ends; until then nobody serves its bundles."""

    title: ClassVar[str] = "Kill a broker"
    happens: ClassVar[bool] = True
    broker: BrokerName
    kind: Literal["kill_broker"] = "kill_broker"
    at_min: AtMinute = 0.0

    def what(self) -> str:
        return f"kill {self.broker}"

    def apply(self, run: Running, now: int) -> None:
        if self.has_left(run, self.broker):
            return
        broker = run.cluster.broker(self.broker)
        run.cluster.die(broker)
        timeout = run.assumptions.session_timeout_s
        why = f"died {timeout:g} s ago; its session has ended"
        run.at(now + timeout * 1000, lambda then: run.gone(broker, then, "broker_lost", why))

    def assumption(self) -> str:
        return f"{self.broker} dies at minute {self.at_min:g}."

    def emptied(self) -> tuple[str, ...]:
        return (self.broker,)

    def dying(self) -> tuple[str, ...]:
        return (self.broker,)
