"""Will Pulsar undo it? The cluster after a plan, watched under the settings in force, and what keeps the plan."""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from planner.cluster.errors import SettingError
from planner.cluster.names import SHEDDING_ENABLED, SHEDDING_EXCLUDED_NAMESPACES, SHEDDING_GRACE_PERIOD_MINUTES
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.cluster.switches import shedding_is_off
from planner.cluster.text import count
from planner.optimize.plan import Plan
from planner.optimize.waves import WAVE_CLIENTS, scenario_of, waves_of
from planner.pulsar.manager.cycle import effective_shedder
from planner.simulate.event import Event
from planner.simulate.run import simulate
from planner.simulate.scenario import MOST_STEPS, Scenario
from planner.simulate.shelf import CycleStore
from planner.simulate.trace import Cycle, Trace
from planner.simulate.what_if import Change, Target, what_if

CYCLES: Final = 30
"""Cycles without an unload after which a plan is called stable."""

_TRIES = 6
_RISE = 0.01
"""Rise of the highest usage, as a fraction, from which on splits undo what a plan gained."""
LEFT_OFF: Final[Mapping[str, str | int | float | bool]] = MappingProxyType({SHEDDING_ENABLED: False})
"""Setting that keeps a plan where no threshold does."""

_NO_CHANGE: Mapping[str, str | int | float | bool] = MappingProxyType({})


@dataclass(frozen=True, eq=False, slots=True)
class Stability:
    """What the load balancer makes of a plan.

    Attributes:
        stable: In `CYCLES` cycles nothing was shed, nothing split that the plan had moved, and the highest usage never
            rose by a point.
        cycle: The first cycle that shed something, from 1; 0 where none did.
        shed: Everything that was shed in those cycles, in order.
        undone: How many of these bundles the plan had moved.
        splits: Bundles that were split automatically meanwhile.
        why: Why the first one was shed, one sentence; empty where nothing was.
        keeps: Settings with which nothing is shed, so that the plan stays; none where it is stable anyway.
        was_off: Shedding is off in the cluster; all this is what happens once it is on.
        divided: Cycles, from 1, in which a bundle was split that the plan had moved, one for each such bundle.
        risen_in: The cycle, from 1, in which splits alone bring the highest usage a point above that after the plan;
            where something is shed, with the settings that keep the plan. 0 where they never do.
        risen_to: The highest that it is from then on, as a fraction.
    """

    stable: bool
    cycle: int
    shed: tuple[Event, ...]
    undone: int
    splits: int
    why: str
    keeps: Mapping[str, str | int | float | bool]
    was_off: bool = False
    divided: tuple[int, ...] = ()
    risen_in: int = 0
    risen_to: float = 0.0

    @property
    def lasting(self) -> str:
        """Whether Pulsar undoes the plan, in a few words for a headline."""
        if self.stable:
            return f"Pulsar leaves it alone for {CYCLES} cycles"
        if not self.shed and not self.divided:
            return f"Pulsar's own splits raise it to {self.risen_to * 100:.1f} % from cycle {self.risen_in}"
        first = min(self.divided, default=self.cycle)
        if not self.undone and not self.divided:
            return f"Pulsar sheds other bundles from cycle {first}"
        return f"Pulsar would undo part of it from cycle {min(first, self.cycle or first)}"

    @property
    def sentence(self) -> str:
        """What there is to know, in a sentence or two."""
        text = self._once_on
        return (
            f"Shedding is off, so nothing undoes the plan for now. Once shedding is on: {text}"
            if self.was_off
            else text
        )

    @property
    def _once_on(self) -> str:
        splits = ""
        if self.splits:
            theirs = f", {len(self.divided):,} of which the plan had moved" if self.divided else ""
            splits = f" Pulsar splits {count(self.splits, 'bundle')} automatically{theirs}."
            if self.risen_in and not self.shed:
                splits += (
                    f" Because of where the parts go, the highest usage rises to {self.risen_to * 100:.1f} % from cycle"
                    f" {self.risen_in}."
                )
        if not self.shed:
            stable = "Stable" if self.stable else "Not stable"
            return f"{stable}: with the current settings, nothing is shed in {CYCLES} cycles.{splits}"
        text = (
            f"Not stable: Pulsar sheds {count(len(self.shed), 'bundle')} within {CYCLES} cycles, starting in cycle"
            f" {self.cycle}; the plan had moved {self.undone:,} of them.{splits}"
        )
        if self.keeps == LEFT_OFF:
            return (
                f"{text} No single threshold prevents this; the script can leave shedding off (--leave-shedding-off)."
            )
        changes = ", ".join(f"{name} = {value}" for name, value in self.keeps.items())
        if self.risen_in:
            rise = f"Pulsar's own splits then raise the highest usage to {self.risen_to * 100:.1f} %"
            return f"{text} To stop the shedding, set {changes}; {rise} from cycle {self.risen_in}."
        return f"{text} To {'stop the shedding' if self.divided else 'make the plan stable'}, set {changes}."


def simulated(start: Snapshot, scenario: Scenario, cancelled: Callable[[], bool]) -> Trace:
    """Simulate a plan with the cycles on disk: thirty of a large cluster are a gigabyte."""
    shelf = CycleStore(scenario.cycles, start)
    trace = simulate(start, scenario, cancelled=cancelled, keep=shelf.keep)
    shelf.rest()
    return trace


@dataclass(frozen=True, eq=False, slots=True)
class Watched:
    """A plan and the load balancer after it: the scenario that the plan opens as, so that both say the same.

    Attributes:
        start: The cluster before the plan, with shedding on.
        trace: The plan with shedding held until every broker has reported, and `CYCLES` cycles.
        as_set: The same with the settings of the cluster: another one where shedding is off.
    """

    start: Snapshot
    trace: Trace
    as_set: Trace

    @property
    def was_off(self) -> bool:
        """Whether shedding is off in the cluster."""
        return self.as_set is not self.trace

    @property
    def after(self) -> Sequence[Cycle]:
        """The cycles after the hold."""
        return self.trace.cycles[self.trace.scenario.cycles - CYCLES :]


def watch(plan: Plan, cancelled: Callable[[], bool] = lambda: False) -> Watched:
    """Carry a plan out in the simulation, wave by wave, wait for reports, and let the load balancer run."""
    start = plan.snapshot
    waves = waves_of(plan, WAVE_CLIENTS)
    fits = len(waves) + len(plan.splits) < MOST_STEPS
    opened = scenario_of(plan, waves if fits else (), held=False, cycles=CYCLES)
    as_set = simulated(start, opened, cancelled)
    if not shedding_is_off(start.settings):
        return Watched(start, as_set, as_set)
    start = replace(start, settings=start.settings.changed(loadBalancerEnabled=True, **{SHEDDING_ENABLED: True}))
    return Watched(start, simulated(start, opened, cancelled), as_set)


def left_alone(plan: Plan, watched: Watched) -> bool:
    """Say whether a plan is stable: nothing is shed, nothing split that it had moved, and it keeps what it gained."""
    return not _shed(watched) and not _split_of_moved(plan, watched) and not _risen(watched)[0]


def stability_of(
    plan: Plan, *, watched: Watched | None = None, cancelled: Callable[[], bool] = lambda: False
) -> Stability:
    """Carry a plan out in the simulation and let the load balancer go on, with the settings in force.

    Where shedding is off in the cluster, the answer is about the time when it is on again.
    """
    seen = watched or watch(plan, cancelled)
    shed = _shed(seen)
    moved = {move.bundle for move in plan.moves}
    keeps, kept = _keeping(seen, cancelled) if shed else (_NO_CHANGE, seen.trace)
    divided = _split_of_moved(plan, seen)
    risen_in, risen_to = (0, 0.0) if keeps == LEFT_OFF else _risen(replace(seen, trace=kept))
    return Stability(
        stable=not shed and not divided and not risen_in,
        cycle=shed[0][0] if shed else 0,
        shed=tuple(event for _, event in shed),
        undone=len({event.bundle for _, event in shed} & moved),
        splits=sum(event.kind == "split" for cycle in seen.after for event in cycle.events),
        why=f"{shed[0][1].bundle}: {shed[0][1].why}" if shed else "",
        keeps=keeps,
        was_off=seen.was_off,
        divided=divided,
        risen_in=risen_in,
        risen_to=risen_to,
    )


def _shed(watched: Watched) -> list[tuple[int, Event]]:
    """Return what is shed after a plan, each with its cycle, from 1."""
    cycles = enumerate(watched.after, start=1)
    return [(number, event) for number, cycle in cycles for event in cycle.events if event.kind == "shed"]


def _split_of_moved(plan: Plan, watched: Watched) -> tuple[int, ...]:
    """Return the cycles, from 1, in which a bundle is split that a plan had moved: its parts may go elsewhere."""
    moved = {move.bundle for move in plan.moves}
    return tuple(
        number
        for number, cycle in enumerate(watched.after, start=1)
        for event in cycle.events
        if event.kind == "split" and event.bundle in moved
    )


def _risen(watched: Watched) -> tuple[int, float]:
    """Return the cycle, from 1, in which the highest usage is a point above that after the plan, and what it rises to.

    Zeros where it never is. The parts of a bundle that was split may all go to one broker.
    """
    highest = [float(cycle.state.usage.max(initial=0.0)) for cycle in watched.after]
    number = next((at for at, usage in enumerate(highest, start=1) if usage >= highest[0] + _RISE), 0)
    return (number, max(highest)) if number else (0, 0.0)


def _keeping(watched: Watched, cancelled: Callable[[], bool]) -> tuple[Mapping[str, str | int | float | bool], Trace]:
    """Return settings with which nothing is shed, and the last simulation with some.

    They are what flips the decision about each broker that sheds, one by one.
    """
    start, trace = watched.start, watched.trace
    shedder, _ = effective_shedder(start.info.load_manager, start.settings)
    changes: dict[str, str | int | float | bool] = {}
    for _ in range(_TRIES):
        cycle = next((one for one in trace.cycles if any(event.kind == "shed" for event in one.events)), None)
        if cycle is None:
            return dict(changes), trace
        if cancelled():
            break
        sources = [event.source for event in cycle.events if event.kind == "shed"]
        usage = dict(zip(cycle.view.brokers.name, cycle.state.usage.tolist(), strict=True))
        hottest = max(sources, key=lambda name: usage.get(name, 0.0))
        found = what_if(trace, cycle.index, Target(broker=hottest), [shedder])
        single = [
            answer.changes[0]
            for one in found
            for answer in one.answers
            if len(answer.changes) == 1 and answer.changes[0].setting not in {SHEDDING_ENABLED, *_NO_REMEDY}
        ]
        usable = [one for one in single if isinstance(one.value, int | float)]
        if not usable:
            break
        first = next((one for one in usable if one.setting in changes), usable[0])
        changes[first.setting] = _enough(first, start.settings, again=first.setting in changes)
        trace = simulated(start, replace(trace.scenario, settings=changes), cancelled)
    if changes and not any(event.kind == "shed" for event in trace.events) and trace.complete:
        return dict(changes), trace
    return LEFT_OFF, trace


def _enough(change: Change, config: Settings, *, again: bool) -> int | float:
    """Return a value of a change that holds; twice as far from the own one where the averages caught up with it."""
    value, own = _rounded(change), config[change.setting]
    if again and change.relation == ">=" and isinstance(own, int | float):
        farther = value + (value - own)
        with suppress(SettingError):  # out of bounds
            config.changed(**{change.setting: farther})
            return farther
    return value


def _rounded(change: Change) -> int | float:
    """Return the value of a change with two digits, on the side on which it holds."""
    value = change.value
    if isinstance(value, int):
        return value
    assert isinstance(value, float)  # noqa: S101 - for mypy: those chosen are numbers
    return (math.floor if change.relation == "<=" else math.ceil)(value * 100) / 100


_NO_REMEDY: Final = (SHEDDING_EXCLUDED_NAMESPACES, SHEDDING_GRACE_PERIOD_MINUTES)
"""Remedy that leaves other brokers to shed as before."""
