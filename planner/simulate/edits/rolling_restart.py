"""Brokers are restarted one after the other."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, ClassVar, Literal

from planner.cluster.units import MS_PER_MIN
from planner.simulate.admin_commands import SHOWN, Command
from planner.simulate.edits.edit import Ask, AtMinute, BrokerNames, Edit, Minutes, some_of
from planner.simulate.edits.running import Running


@dataclass(frozen=True, slots=True, kw_only=True)
class RollingRestart(Edit):
    """Brokers are restarted one after the other, each shut down in order.

    Attributes:
        brokers: Broker ids in their order; empty for all.
        at_min: When the first goes down.
        down_min: How long each is away.
        pause_min: How long after one is back the next goes down.
    """

    title: ClassVar[str] = "Rolling restart"
    kind: Literal["rolling_restart"] = "rolling_restart"
    brokers: BrokerNames = ()
    at_min: AtMinute = 0.0
    down_min: Annotated[Minutes, Ask(label="Downtime (min)", half=True)] = 2.0
    pause_min: Annotated[Minutes, Ask(label="Pause (min)", half=True)] = 3.0

    def what(self) -> str:
        return f"restart {some_of(self.brokers, 'all brokers')} one by one, {self.down_min:g} min each"

    def emptied(self) -> tuple[str, ...]:
        return self.brokers or ("every broker",)

    def plan(self, run: Running) -> None:
        for number, name in enumerate(self.brokers or run.cluster.present_names()):
            down = run.minute(self.at_min + number * (self.down_min + self.pause_min))
            run.at(down, partial(self._stop, run, name))
            run.at(down + self.down_min * MS_PER_MIN, partial(self._start, run, name))

    def _stop(self, run: Running, name: str, now: int) -> None:
        """Shut a broker down, unless it has left for good."""
        broker = run.cluster.broker(name)
        if run.cluster.present[broker] and run.cluster.alive[broker]:
            run.remove(name, now, why="shut down for its restart")
            run.cluster.restarting.add(broker)
        elif name in self.brokers and broker not in run.cluster.restarting:
            run.notes.append(f"{name} has left before, and is not restarted: {self.phrase()}.")

    @staticmethod
    def _start(run: Running, name: str, now: int) -> None:
        """Bring a broker back that this edit shut down."""
        broker = run.cluster.broker(name)
        if broker in run.cluster.restarting:
            run.cluster.restarting.discard(broker)
            run.back(name, now)

    def commands(self, cluster: str, program: Sequence[str]) -> Iterator[Command]:
        text = (
            f"By hand: restart {some_of(self.brokers, 'all brokers', SHOWN)} one by one, each down for "
            f"{self.down_min:g} min and {self.pause_min:g} min apart. Continue only then: a restart moves "
            "bundles by itself."
        )
        yield Command(section="brokers", note=text, by_hand=True)
