"""Captures of a simulated cluster: what a watcher would have seen, and what its leader really did."""

from dataclasses import replace

import numpy as np

from planner.cluster.arrays import Int64Array, frozen
from planner.cluster.snapshot import Snapshot
from planner.simulate.run import Simulation
from planner.simulate.scenario import Scenario
from planner.simulate.trace import Cycle


class Watched(Simulation):
    """A simulation that is captured after each load report."""

    def __init__(self, start: Snapshot, scenario: Scenario) -> None:
        super().__init__([start], scenario)
        self.captures: list[Snapshot] = []
        self.capture(self.start_ms - 1_000)

    def report(self, now: int, who: Int64Array) -> None:
        super().report(now, who)
        self.capture(now)

    def capture(self, now: int) -> None:
        seen, real = self.cluster.leader_view.view(now), self.cluster.owner
        reported = seen.bundles.has_stats & (seen.bundles.owner == real)
        bundles = replace(seen.bundles, owner=frozen(real.astype(np.int32)), has_stats=frozen(reported))
        topics = self.cluster.traffic.topics_at(now)
        self.captures.append(replace(seen.with_columns(bundles=bundles), topics=topics))


def watched(start: Snapshot, scenario: Scenario) -> tuple[list[Snapshot], list[Cycle]]:
    """Return the captures of a run, and its cycles."""
    run = Watched(start, scenario)
    cycles = list(run.cycles(scenario.cycles))
    return run.captures, cycles
