"""In which order a plan is carried out: waves that overload no broker and disconnect few clients at once."""

import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from planner.cluster.arrays import FloatArray
from planner.cluster.errors import ScenarioError
from planner.cluster.names import AUTO_BUNDLE_SPLIT_ENABLED, SHEDDING_ENABLED, SHEDDING_INTERVAL_MINUTES
from planner.cluster.ranges import middle_of, parse_bundle
from planner.cluster.relocation import Relocation
from planner.cluster.text import count
from planner.optimize.plan import Plan
from planner.optimize.question import COSTS, model_of
from planner.optimize.splits import Split
from planner.optimize.state import EPSILON, State
from planner.pulsar.splitting.registry import HALVES, SPLIT_ALGORITHMS
from planner.simulate.edits.registry import BalancerHold, BundleMoves, BundleSplit
from planner.simulate.scenario import MOST_STEPS, Scenario, Step, unchanged

HELD: Mapping[str, str | int | float | bool] = {
    SHEDDING_ENABLED: False,
    AUTO_BUNDLE_SPLIT_ENABLED: False,
}
"""Settings while a plan is carried out: nothing crosses it."""

REPORTED = 20
"""Cycles until every broker has reported what it serves now (`loadBalancerReportUpdateMaxIntervalMinutes`)."""

WAVE_CLIENTS = 1_000
"""Most clients that a wave disconnects, unless somebody asks for another number."""

_CLIENTS = COSTS.index("clients")
_SPECIFIED = next(algorithm.name for algorithm in SPLIT_ALGORITHMS if algorithm.needs_positions)
_FULL = 0.95


@dataclass(frozen=True, slots=True)
class Wave:
    """Moves that are made together.

    Attributes:
        moves: The moves; a bundle that needs a temporary place moves in two waves.
        clients: Producers and consumers that are disconnected.
        over: Brokers that are above their limit on the way because there is no other order; empty nearly always.
    """

    moves: tuple[Relocation, ...]
    clients: int
    over: tuple[str, ...] = ()


def waves_of(plan: Plan, most_clients: int = 1_000) -> tuple[Wave, ...]:
    """Put the moves of a plan into waves.

    While a wave runs a receiver may have everything that arrives before anything has left it; even so it stays at or
    below its limit: `loadBalancerBrokerOverloadedThresholdPercentage`, or what it uses before or after the plan where
    that is more. Moves may overtake each other; where that leaves some without an order, they keep that of the plan,
    in which the filters allow each.

    Args:
        plan: The plan.
        most_clients: Producers and consumers disconnected in a wave at most; a single bundle may have more.
    """
    found = _waves(plan, most_clients, overtaking=True)
    if any(wave.over for wave in found):
        in_order = _waves(plan, most_clients, overtaking=False)
        found = min(found, in_order, key=lambda waves: sum(len(wave.over) for wave in waves))
    return found


def _waves(plan: Plan, most_clients: int, *, overtaking: bool) -> tuple[Wave, ...]:
    rules = replace(plan.question, moves=None, topics=None, clients=None, bytes_per_s=None, pins={})
    model = model_of(plan.at_start, rules)
    state = State(model)
    position, broker = plan.at_start.bundle_position, plan.at_start.brokers.position
    waiting = {position[move.bundle]: (broker[move.destination], move) for move in plan.moves}
    limits = np.maximum(np.maximum(model.limit, plan.usage_before), plan.usage_after) + EPSILON
    found: list[Wave] = []
    tried: set[tuple[int, int]] = set()
    while waiting:
        chosen = _next(state, waiting, limits, most_clients, overtaking=overtaking)
        over: tuple[str, ...] = ()
        moves: list[tuple[int, int, Relocation]]
        if chosen:
            moves = [(at, *waiting.pop(at)) for at in chosen]
        elif overtaking and (place := _temporary(state, waiting, limits, tried)) is not None:
            at, to = place
            tried.add(place)
            move = waiting[at][1]
            name = plan.at_start.brokers.name[to]
            why = f"temporary destination: {move.destination} has no room for it yet"
            moves = [(at, to, replace(move, destination=name, acceptable=(name,), why=why))]
            waiting[at] = (waiting[at][0], replace(move, source=name))
        else:
            candidates = waiting if overtaking else [next(iter(waiting))]
            at = min(candidates, key=lambda one: _excess(state, one, waiting[one][0], limits))
            moves = [(at, *waiting.pop(at))]
            over = (moves[0][2].destination,)
        for bundle, to, _ in moves:
            state.move(bundle, to)
        clients = round(float(model.cost[_CLIENTS, [at for at, _, _ in moves]].sum()))
        found.append(Wave(tuple(move for _, _, move in moves), clients, over))
    return tuple(found)


def _excess(state: State, bundle: int, to: int, limits: FloatArray) -> float:
    """Return by how much a bundle would take a broker over its limit; infinite where the filters refuse it."""
    return float(state.arriving(np.array([bundle]))[0, to] - limits[to])


def _next(
    state: State,
    waiting: Mapping[int, tuple[int, Relocation]],
    limits: FloatArray,
    most_clients: int,
    *,
    overtaking: bool,
) -> list[int]:
    """Return bundles that may move together now: with all that arrives, and nothing gone, nobody is above its limit."""
    model, usage = state.model, state.model.usage
    served, clients = state.served.copy(), 0.0
    chosen: list[int] = []
    for at, (to, _) in waiting.items():
        cost = float(model.cost[_CLIENTS, at])
        if chosen and clients + cost > most_clients:
            if clients >= _FULL * most_clients or not overtaking:
                break
            continue
        load = usage.own[:, to] + served[:, to] + usage.bundle[:, at]
        fits = max(float((load * model.scale[:, to]).max()), float(usage.fixed[to])) <= limits[to]
        # Moves of a namespace with a group go one after the other, so that the filters see each.
        alone = not state.changing[state.space[at]] or not any(state.changing[state.space[one]] for one in chosen)
        if fits and alone and state.allowed(np.array([at]))[0, to]:
            served[:, to] += usage.bundle[:, at]
            clients += cost
            chosen.append(at)
        elif not overtaking:
            break
    return chosen


def _temporary(
    state: State, waiting: Mapping[int, tuple[int, Relocation]], limits: FloatArray, tried: AbstractSet[tuple[int, int]]
) -> tuple[int, int] | None:
    """Return a bundle and a broker that can have it until its own has room; bundles with few clients first."""
    cost = state.model.cost[_CLIENTS]
    for at in sorted(waiting, key=lambda one: (float(cost[one]), one)):
        after = state.arriving(np.array([at]))[0]
        after[[waiting[at][0], *(to for bundle, to in tried if bundle == at)]] = np.inf
        to = int(after.argmin())
        if after[to] <= limits[to]:
            return at, to
    return None


def scenario_of(
    plan: Plan, waves: Sequence[Wave] = (), *, pause_min: float = 1.0, held: bool = True, cycles: int = 30
) -> Scenario:
    """Return a plan as a scenario: its splits at the start, then its waves, or all its moves at once without them.

    Args:
        plan: The plan.
        waves: Its waves.
        pause_min: Minutes from one wave to the next.
        held: Whether shedding and splitting are off all the time, instead of until Pulsar knows of the last wave.
        cycles: Cycles to watch, from the last wave on.

    Raises:
        ScenarioError: It has more splits and waves than a scenario may have edits.
    """
    steps = [Step(_edit_of(split)) for split in plan.splits]
    groups = [wave.moves for wave in waves] or [plan.moves]
    for number, moves in enumerate(groups):
        pairs = tuple((one.bundle, one.destination) for one in moves)
        steps += [Step(BundleMoves(moves=pairs, at_min=number * pause_min))] if pairs else []
    if len(steps) > MOST_STEPS:
        raise ScenarioError(
            f"A scenario can have at most {MOST_STEPS:,} edits; this plan has {len(steps):,} waves and splits.",
            remedy="Allow more clients per wave.",
        )
    every_min = max(plan.snapshot.settings.integer(SHEDDING_INTERVAL_MINUTES), 1)
    lasts = math.ceil((len(groups) - 1) * pause_min / every_min)
    if not held and len(steps) < MOST_STEPS:
        steps.insert(0, Step(BalancerHold(duration_min=float((lasts + REPORTED) * every_min))))
    return unchanged(
        plan.snapshot.settings.release.name,
        name=f"Best plan: {count(round(plan.spent['moves']), 'move')}",
        steps=tuple(steps),
        settings=HELD if held else {},
        cycles=cycles + lasts + (0 if held else REPORTED),
    )


def _edit_of(split: Split) -> BundleSplit:
    """Return a split of a plan as an edit. One in the middle asks for no topics, which a snapshot may not list."""
    _, low, high = parse_bundle(split.bundle)
    if split.boundary == middle_of(low, high):
        return BundleSplit(bundle=split.bundle, algorithm=HALVES)
    return BundleSplit(bundle=split.bundle, algorithm=_SPECIFIED, positions=(split.boundary,))


def on_top_of(base: Scenario, plan: Scenario, *, settled_min: float = 0.0, made_min: float = 0.0) -> Scenario:
    """Return a plan that starts from the edits of a scenario as one scenario: the edits, and then the plan.

    Args:
        base: The scenario with the edits.
        plan: The plan as a scenario.
        settled_min: Minutes of the load balancer's own cycles before the plan; without them it is held from the start,
            and the plan begins with the last edit.
        made_min: Minutes until the edits are made: a broker is drained bundle by bundle, and a dead one noticed later.

    Raises:
        ScenarioError: They have more edits than a scenario may have.
    """
    begins_min = settled_min or base.last_edit_min
    begins_min = begins_min if settled_min else max(begins_min, math.ceil(made_min))
    steps = [*base.steps]
    for step in plan.steps:
        edit = step.edit
        if isinstance(edit, BalancerHold) and not settled_min:
            later: Any = replace(edit, duration_min=edit.duration_min + begins_min)
        else:
            later = replace(edit, at_min=getattr(edit, "at_min", 0.0) + begins_min)  # type: ignore[call-arg]
        steps.append(Step(later, step.on))
    if len(steps) > MOST_STEPS:
        raise ScenarioError(
            f"A scenario can have at most {MOST_STEPS:,} edits; this plan and its scenario have {len(steps):,}.",
            remedy="Allow more clients per wave.",
        )
    name, cycles = plan.name or base.name, plan.cycles + math.ceil(begins_min)
    return replace(base, name=name, steps=tuple(steps), settings={**base.settings, **plan.settings}, cycles=cycles)
