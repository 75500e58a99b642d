"""A broker is drained."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from planner.cluster.units import MS_PER_MIN
from planner.simulate.admin_commands import Command, shutdown_command
from planner.simulate.edits.edit import LEAST, Ask, AtMinute, BrokerName, Edit
from planner.simulate.edits.running import Running


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainBroker(Edit):
    """A broker takes no new bundles and gives its own up one after the other, then leaves.

    Attributes:
        broker: Broker id.
        at_min: When it starts.
        bundles_per_min: How fast it unloads.
    """

    title: ClassVar[str] = "Drain a broker"
    broker: BrokerName
    kind: Literal["drain_broker"] = "drain_broker"
    at_min: AtMinute = 0.0
    bundles_per_min: Annotated[
        float, Field(ge=LEAST, le=1_000_000), Ask(label="Bundles per minute", step=10.0, least=0.1)
    ] = 60.0

    def what(self) -> str:
        return f"drain {self.broker} at {self.bundles_per_min:g} bundles per minute"

    def emptied(self) -> tuple[str, ...]:
        return (self.broker,)

    def apply(self, run: Running, now: int) -> None:
        if self.has_left(run, self.broker):
            return
        broker = run.cluster.broker(self.broker)
        if not run.cluster.present[broker]:
            run.notes.append(f"Without effect, as {self.broker} is being drained: {self.phrase()}.")
            return
        run.cluster.close(broker)
        run.note_broker(now, "broker_removed", self.broker, "takes no new bundles and is drained")
        mine = [run.cluster.names[at] for at in np.flatnonzero(run.cluster.owner == broker).tolist()]
        for number, name in enumerate(mine):
            run.at(now + number * MS_PER_MIN / self.bundles_per_min, partial(self._unload, run, name, broker))
        run.at(now + len(mine) * MS_PER_MIN / self.bundles_per_min, lambda _: run.cluster.leave(broker))

    @staticmethod
    def _unload(run: Running, name: str, broker: int, now: int) -> None:
        at = run.cluster.position.get(name, -1)
        if at >= 0 and run.cluster.owner[at] == broker:
            run.look_up(run.cluster.release(at), now)

    def commands(self, cluster: str, program: Sequence[str]) -> Iterator[Command]:
        per_s = max(round(self.bundles_per_min / 60), 1)
        yield shutdown_command(self.broker, program, "--max-concurrent-unload-per-sec", str(per_s))
