"""What is offered of a best plan: tried in the simulation, judged, and with what Pulsar leaves alone instead."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from planner.cluster.errors import ScenarioError
from planner.cluster.names import BROKER_OVERLOADED_THRESHOLD_PERCENTAGE
from planner.cluster.text import count
from planner.optimize.answer import best_plan
from planner.optimize.compared import Compared
from planner.optimize.constraint import Constraint, constraint_of
from planner.optimize.plan import Plan
from planner.optimize.stability import (
    CYCLES,
    LEFT_OFF,
    Stability,
    Watched,
    left_alone,
    simulated,
    stability_of,
    watch,
)
from planner.simulate.judge import Result, Verdict
from planner.simulate.trace import Trace

LEAST_POINTS = 1.0
"""Points of the highest usage that a plan must gain to be offered, unless it does what has to be done."""
_MUCH_FEWER = 2 / 3
"""Share of a plan's moves up to which fewer ones that do nearly as well are worth a word."""
_ROUNDS = 2
_UNTRUE = "No move is offered for balance, because no usage is true."
_SIZES = (1, 2, 3, 5, 8, 13, 21, 34, 55, 89)
"""Numbers of moves that are tried for a plan that Pulsar leaves alone."""
_MOST_BUNDLES = 20_000
"""Bundles up to which a stable alternative is looked for."""


@dataclass(frozen=True, eq=False, slots=True)
class Alternative:
    """What to do instead of a plan that Pulsar undoes, or whose gain is luck.

    Attributes:
        plan: Fewer moves; None where only settings keep the plan.
        settings: Settings that keep the plan; none where there are fewer moves.
        stable: Pulsar leaves it alone.
    """

    plan: Plan | None
    settings: Mapping[str, str | int | float | bool]
    stable: bool = True

    @property
    def sentence(self) -> str:
        """What there is to know, in a sentence."""
        if self.plan is None:
            changes = ", ".join(f"{name} = {value}" for name, value in self.settings.items())
            return f"Stable alternative: the same moves with {changes}."
        moves = f"{count(round(self.plan.spent['moves']), 'move')} to {self.plan.peak * 100:.1f} %"
        if self.stable:
            return f"Stable alternative: {moves}, which Pulsar leaves alone for {CYCLES} cycles."
        return f"Steady alternative: {moves}. The gain holds under other seeds, and with 10 % more or less traffic."


@dataclass(frozen=True, eq=False, slots=True)
class Offer:
    """A best plan after it was tried.

    Attributes:
        first: The plan that was found.
        plan: What is offered: the plan, else fewer moves that are no worse than doing nothing, else none.
        stability: What the load balancer makes of it.
        verdict: What the judge says of the last plan that was tried, compared with doing nothing; None without one.
        tried: Why the plan that was found first is not offered, one sentence; empty where it is.
        alternative: What is better to do; None where the plan is stable and steady, nothing was found, or it was not
            asked.
        constraint: What makes the lower bound.
        before: What doing nothing comes to; None without a plan.
        lost: Where the gain of the plan does not hold, a clause; empty where it does, or the plan has to be.
        untrue: No usage is true.
    """

    first: Plan
    plan: Plan
    stability: Stability
    verdict: Verdict | None
    tried: str
    alternative: Alternative | None
    constraint: Constraint | None
    before: Result | None
    lost: str = ""
    untrue: bool = False

    @property
    def lasting(self) -> str:
        """Whether Pulsar undoes the plan, in a few words; empty without a plan."""
        return self.stability.lasting if self.plan.moves else ""

    @property
    def recommended(self) -> bool:
        """Whether there is something to do, and its gain is no luck."""
        return bool(self.plan.moves) and not self.lost

    @property
    def too_full(self) -> str:
        """That no moves bring every broker under the limit, as the lower bound proves; empty where they may."""
        plan, limit = self.first, self.constraint
        if self.untrue:
            return ""
        if self.before is not None:
            percent = self.before.limit_percent
        else:
            percent = plan.at_start.settings.number(BROKER_OVERLOADED_THRESHOLD_PERCENTAGE)
        other = None if limit is None or limit.kind == "budget" else limit.without_percent
        if min(plan.floor * 100, plan.floor * 100 if other is None else other) <= percent:
            return ""
        return f"No moves bring every broker under {percent:g} %: Fix it looks for what does."

    @property
    def caution(self) -> str:
        """Why the plan is not recommended although it is better here, one sentence; empty where it is recommended."""
        return f"Not recommended: {self.lost}." if self.lost else ""


def offer_of(
    plan: Plan, *, asked: bool = False, untrue: bool = False, cancelled: Callable[[], bool] = lambda: False
) -> Offer:
    """Try a plan, and say what is offered of it; `with_alternative` adds what is better to do.

    Args:
        plan: The plan. One that has to be, such as one that drains a broker, is always offered.
        asked: It was asked for another reason than the highest usage, and is offered as well.
        untrue: No usage is true, so that only what has to move is offered: off drained brokers, to where it is pinned,
            and back to where its isolation policy wants it.
        cancelled: Says whether to stop.
    """
    if untrue and plan.moves:
        needed = _that_must(plan, cancelled)
        tried, stability = "" if needed is plan else _UNTRUE, stability_of(needed, cancelled=cancelled)
        if stability.keeps:  # no threshold either is known to keep it
            stability = replace(stability, keeps=LEFT_OFF)
        return Offer(plan, needed, stability, None, tried, None, None, None, untrue=True)
    limit, watched = constraint_of(plan), watch(plan, cancelled)
    if not plan.moves:
        return Offer(plan, plan, stability_of(plan, watched=watched), None, "", None, limit, None, untrue=untrue)
    compared = Compared(cancelled)
    before, verdict = compared.before(watched.as_set), compared.verdict(watched.as_set)
    tried = "" if asked else _declined(plan, verdict)
    if not tried:
        lost = "" if asked or required(plan) else compared.why_lost(watched.as_set)
        stability = stability_of(plan, watched=watched, cancelled=cancelled)
        return Offer(plan, plan, stability, verdict, "", None, limit, before, lost)
    found: list[tuple[Plan, Watched, Verdict, str]] = []
    for fewer, seen in _smaller(plan, reversed(_SIZES), cancelled):
        verdict = compared.verdict(seen.as_set)
        if verdict.word != "worse":
            found.append((fewer, seen, verdict, compared.why_lost(seen.as_set)))
            if not found[-1][-1]:
                break
    if found:
        fewer, seen, verdict, lost = min(found, key=lambda one: bool(one[-1]))
        offered = replace(fewer, notes=(*fewer.notes, tried))
        stability = stability_of(offered, watched=seen, cancelled=cancelled)
        return Offer(plan, offered, stability, verdict, tried, None, limit, before, lost)
    offered = without_moves(plan, tried)
    stability = stability_of(offered, cancelled=cancelled)
    return Offer(plan, offered, stability, verdict, tried, None, limit, before)


def with_alternative(offer: Offer, cancelled: Callable[[], bool] = lambda: False) -> Offer:
    """Return an offer with what is better to do where Pulsar undoes its plan, or where the gain is luck.

    That is the fewest moves that gain a point and that Pulsar leaves alone, else settings that keep the plan, else the
    most moves whose gain holds. Each is no worse than doing nothing, and its gain holds. The same offer where its plan
    is stable and steady, or nothing was found.
    """
    plan, stability = offer.plan, offer.stability
    if not plan.moves or offer.before is None or not (offer.lost or not stability.stable):
        return offer
    compared, steady = Compared(cancelled), None
    for fewer, seen in _smaller(plan, _SIZES, cancelled):
        stays = left_alone(fewer, seen)
        if (stays or offer.lost) and _holds(seen.trace, compared):
            steady = fewer
            if stays:
                return replace(offer, alternative=Alternative(fewer, {}))
    undone = stability.divided or stability.risen_in
    if stability.keeps and stability.keeps != LEFT_OFF and not undone:
        seen = watch(plan, cancelled)
        kept = simulated(seen.start, replace(seen.trace.scenario, settings=stability.keeps), cancelled)
        if _holds(kept, compared):
            return replace(offer, alternative=Alternative(None, stability.keeps))
    return replace(offer, alternative=Alternative(steady, {}, stable=False)) if steady is not None else offer


def _holds(carried_out: Trace, compared: Compared) -> bool:
    """Say whether a plan is no worse than doing nothing, and its gain holds."""
    return compared.verdict(carried_out).word != "worse" and not compared.why_lost(carried_out)


def required(plan: Plan) -> bool:
    """Say whether a plan does what was asked for or has to be done, whatever it gains."""
    question = plan.question
    return bool(plan.repairs or question.drain or question.pins or question.under_percent is not None)


def gain_points(plan: Plan) -> float:
    """Return by how many points a plan lowers the highest usage."""
    return (float(plan.usage_before[plan.counts].max(initial=0.0)) - plan.peak) * 100


def nearly_as_low(plan: Plan) -> str:
    """Return how few moves come within a point of a plan without a budget; empty where nearly all are needed."""
    question = plan.question
    if required(plan) or question.moves is not None or not plan.frontier:
        return ""
    near = next(step for step in plan.frontier if (step.peak - plan.peak) * 100 <= LEAST_POINTS)
    if not 0 < near.moves <= _MUCH_FEWER * len(plan.moves):
        return ""
    return f"With {count(near.moves, 'move')}, it is at most {near.peak * 100:.1f} %: --moves {near.moves}."


def without_moves(plan: Plan, note: str) -> Plan:
    """Return a plan with nothing to do, and a note why."""
    before = float(plan.usage_before[plan.counts].max(initial=0.0))
    return replace(
        plan,
        at_start=plan.snapshot,
        moves=(),
        splits=(),
        usage_after=plan.usage_before,
        spent=dict.fromkeys(plan.spent, 0.0),
        peak=before,
        demand_after=plan.demand_before,
        notes=(*plan.notes, note),
    )


def _that_must(plan: Plan, cancelled: Callable[[], bool]) -> Plan:
    """Return a plan with only those moves that have to be, whatever the usage."""
    found, drained = plan, set(plan.question.drain)
    while found.moves:
        must = sum(
            move.source in drained or move.bundle in plan.question.pins or move.bundle in found.repairs
            for move in found.moves
        )
        if not must:
            break
        if must == len(found.moves) and not found.splits:
            return found if found is plan else replace(found, notes=(*found.notes, _UNTRUE))
        asked = replace(plan.question, moves=must, splits=0, under_percent=None, rounds=_ROUNDS)
        found = best_plan(plan.snapshot, asked, cancelled=cancelled)
    return without_moves(replace(plan, notes=()), _UNTRUE)


def _declined(plan: Plan, verdict: Verdict) -> str:
    """Return why a plan is not offered, empty where it is."""
    if required(plan):
        return ""
    found = f"Tried: {count(len(plan.moves), 'move')} to {plan.peak * 100:.1f} %."
    if gain_points(plan) < LEAST_POINTS:
        return f"{found} Not recommended: that gains less than one point."
    if verdict.word == "worse":
        return f"{found} Not recommended: {verdict.text[:1].lower()}{verdict.text[1:]}"
    return ""


def _smaller(plan: Plan, sizes: Iterable[int], cancelled: Callable[[], bool]) -> Iterator[tuple[Plan, Watched]]:
    """Yield plans with fewer moves that gain a point, and what the load balancer makes of each."""
    question = plan.question
    if required(plan) or len(plan.snapshot.bundles) > _MOST_BUNDLES or gain_points(plan) < LEAST_POINTS:
        return
    for moves in (size for size in sizes if size < len(plan.moves)):
        if cancelled():
            return
        try:
            fewer = best_plan(plan.snapshot, replace(question, moves=moves, rounds=_ROUNDS), cancelled=cancelled)
        except ScenarioError:
            continue
        if gain_points(fewer) >= LEAST_POINTS:
            yield fewer, watch(fewer, cancelled)
