"""What a simulation found: every event, and how the cluster looked at each shedding cycle."""

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from planner.cluster.arrays import BoolArray, FloatArray, Int64Array, IntArray
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.cluster.units import MS_PER_MIN
from planner.pulsar.manager.cycle import CycleDecision, Unload, next_cycle
from planner.pulsar.manager.leader import LeaderMemory
from planner.simulate.event import Event
from planner.simulate.scenario import Scenario


def cycle_seed(seed: int, index: int) -> int:
    """Return the seed of one cycle, so that a bundle is drawn anew each time."""
    return seed + index * 1_000_003


@dataclass(frozen=True, eq=False, slots=True)
class BrokerState:
    """How the brokers really are at one moment. Shape of every column: (brokers,), in the order of the view's brokers.

    Attributes:
        usage: Weighted usage that the load manager's rule makes of the machine's state (1.0 = 100 %), 0 for a broker
            that is not there.
        cpu_demand_percent: CPU that the traffic asks for, percent of one core; more than the limit when saturated.
        growth_factor: Times that the traffic could grow until CPU or a direction of the network is used up; below 1 it
            asks for more than there is, infinite without traffic. Memory does not grow with traffic.
        msg_rate_per_s: Message rate in + out.
        throughput_bytes_per_s: Throughput in + out.
        bundles: Bundles served.
        present: Whether the broker is up and part of the cluster.
    """

    usage: FloatArray
    cpu_demand_percent: FloatArray
    growth_factor: FloatArray
    msg_rate_per_s: FloatArray
    throughput_bytes_per_s: FloatArray
    bundles: Int64Array
    present: BoolArray


@dataclass(frozen=True, eq=False, slots=True)
class Cycle:
    """One shedding cycle.

    Attributes:
        index: 0 for the first.
        at_ms: When.
        view: The cluster as the leader knew it; `view.bundles.owner` is the last reported one.
        memory: What the leader remembered before it decided.
        unloads: What it chose and what became of it (without the steps of placement; `Trace.decision` has them).
        scores: Score of each broker that the strategy compared, NaN where none.
        owner: Who really served each bundle of the view after the cycle, broker positions, -1 for nobody.
        state: How the brokers really were when the cycle began.
        events: What happened from this cycle on, up to the next one: edits of its moment, its own unloads, the rest.
    """

    index: int
    at_ms: int
    view: Snapshot
    memory: LeaderMemory
    unloads: tuple[Unload, ...]
    scores: FloatArray
    owner: IntArray
    state: BrokerState
    events: tuple[Event, ...]


@dataclass(frozen=True, eq=False)
class Stretch:
    """Cycles in a row: a simulation, or a part of one, and what can be measured of it.

    Attributes:
        scenario: What was changed.
        settings: Settings in force.
        start: The cluster at the start, with the edits of the first moment not yet made.
        cycles: The cycles in order.
    """

    scenario: Scenario
    settings: Settings
    start: Snapshot
    cycles: tuple[Cycle, ...]

    @property
    def events(self) -> tuple[Event, ...]:
        """Everything that happened, in order."""
        return tuple(event for cycle in self.cycles for event in cycle.events)

    def decision(self, index: int, view: Snapshot | None = None) -> CycleDecision:
        """Return the full decision of a cycle, every rule examined; it is decided again from what the leader knew.

        Args:
            index: 0 for the first.
            view: What the leader knew, where the caller has it with more worked out than the cycle's own.
        """
        cycle, seed = self.cycles[index], cycle_seed(self.scenario.seed, index)
        return next_cycle(view or cycle.view, cycle.memory, self.settings_at(index), seed)[1]

    def settings_at(self, index: int) -> Settings:
        """Return the settings in force at a cycle, from 0: shedding may be held."""
        minutes = (self.cycles[index].at_ms - self.start.info.captured_at_ms) / MS_PER_MIN
        return self.scenario.settings_at(self.settings, minutes)

    def digest(self) -> str:
        """Return a SHA-256 over everything that happened; equal plans have equal digests on every machine."""
        lines = [[e.at_ms, e.kind, e.bundle, e.source, e.destination, list(e.children)] for e in self.events]
        content: dict[str, Any] = {"cycles": len(self.cycles), "events": lines}
        return hashlib.sha256(json.dumps(content, separators=(",", ":"), sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, eq=False)
class Trace(Stretch):
    """What a simulation found.

    Attributes:
        end: Who served what at the end, as a snapshot with current values; its averages are the leader's.
        notes: What the user should know: settings without effect, edits that could not be made.
        complete: False when it was cancelled before the last cycle.
        end_demand: Demand on the machines at the end, also beyond what they have: CPU (percent of one core),
            inbound and outbound bandwidth (kbit/s). Shape (3, brokers of `end`); None where it is what they use.
    """

    end: Snapshot
    notes: tuple[str, ...] = ()
    complete: bool = True
    end_demand: FloatArray | None = None
