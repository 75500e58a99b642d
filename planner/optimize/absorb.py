"""Plans for what is to come: more traffic, what a scenario leaves, and the loss of any one broker."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from planner.cluster.errors import ScenarioError
from planner.cluster.names import BROKER_OVERLOADED_THRESHOLD_PERCENTAGE
from planner.cluster.snapshot import Snapshot
from planner.cluster.text import count
from planner.optimize.answer import best_plan
from planner.optimize.offer import without_moves
from planner.optimize.plan import Plan
from planner.optimize.question import Question
from planner.optimize.waves import HELD, scenario_of
from planner.simulate.edits.registry import TrafficGrowth
from planner.simulate.losses import simulate_losses
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario, Step, unchanged
from planner.simulate.trace import Trace
from planner.simulate.usage_model import at_the_end

_LOOKS = 6
_ROUNDS = 0
"""Rounds of the search for each plan that is tried."""
_FEW_CYCLES = 6
"""Cycles in which plans are compared: what a loss does, it mostly does at once."""
_DIGITS = 3
_NO_LIMIT = 1e9
"""A usage that every plan is under, %."""


def left_by(snapshot: Snapshot, scenario: Scenario, cancelled: Callable[[], bool] = lambda: False) -> Snapshot:
    """Return the cluster with the edits of a scenario made, and nothing shed or split by the load balancer meanwhile.

    Plans start from it, so that more brokers are never worse. Bundles of brokers that leave are placed as Pulsar places
    them; demand beyond what a machine has is kept.

    Raises:
        ScenarioError: An edit does not fit the cluster.
    """
    trace = simulate(snapshot, replace(scenario, settings={**scenario.settings, **HELD}), cancelled=cancelled)
    return replace(at_the_end(trace), settings=scenario.settings_over(snapshot))


def settled(trace: Trace) -> Snapshot:
    """Return the cluster at the end of a simulation, after what the load balancer shed and split in its cycles.

    Demand beyond what a machine has is kept.
    """
    return replace(at_the_end(trace), settings=trace.settings)


def with_traffic(snapshot: Snapshot, factor: float) -> Snapshot:
    """Return a cluster with so many times the traffic; what each machine uses by itself stays.

    Raises:
        ScenarioError: The factor is no positive number.
    """
    if not 0 < factor < math.inf:
        raise ScenarioError(f"Traffic cannot be multiplied by {factor:g}.", remedy="Use a factor above 0.")
    if factor == 1.0:
        return snapshot
    growth = unchanged(snapshot.settings.release.name, steps=(Step(TrafficGrowth(factor=factor)),), cycles=1)
    return left_by(snapshot, growth)


def surviving(snapshot: Snapshot, question: Question, cancelled: Callable[[], bool] = lambda: False) -> Plan:
    """Find a plan with few moves after which the loss of any one broker puts no broker above the limit.

    The budget of moves is the most that is tried. The limit is `loadBalancerBrokerOverloadedThresholdPercentage`.
    Losses are simulated as the failure review simulates them, first for a few cycles. Plans of several sizes are tried,
    then those between the smallest that does it and the one below; where none does it, the one with the mildest losses
    is the answer. Nothing moves where that helps nothing. A note says how far it gets.

    Raises:
        ScenarioError: The question makes no sense, or has no answer.
    """
    losses = _SimulatedLosses(snapshot, cancelled)
    under = _NO_LIMIT if question.under_percent is None else question.under_percent
    least = best_plan(snapshot, replace(question, under_percent=under), cancelled=cancelled)
    if question.under_percent is None:  # its bound is one of usage, not of what the fewest moves cost
        least = replace(least, question=question, bound=least.peak_bound)
    now = losses.of(snapshot, _FEW_CYCLES)
    found = [(losses.after(least, _FEW_CYCLES) if least.moves else now, least)]

    def try_moves(moves: int) -> None:
        asked = replace(question, moves=moves, rounds=min(question.rounds, _ROUNDS))
        plan = best_plan(snapshot, asked, cancelled=cancelled)
        found.append((losses.after(plan, _FEW_CYCLES), plan))

    if not losses.are_mild(found[0][0], now):
        most = best_plan(snapshot, replace(question, rounds=min(question.rounds, _ROUNDS)), cancelled=cancelled)
        found.append((losses.after(most, _FEW_CYCLES), most))
        for moves in sorted({round(len(most.moves) * (part / _LOOKS) ** 2) for part in range(1, _LOOKS)} - {0}):
            if not cancelled():
                try_moves(moves)
    while not cancelled():
        enough = min((len(plan.moves) for worst, plan in found if losses.are_mild(worst, now)), default=0)
        less = max((len(plan.moves) for _, plan in found if len(plan.moves) < enough), default=enough)
        if enough - less < 2:  # noqa: PLR2004 - nothing lies between
            break
        try_moves((enough + less) // 2)
        if not less < len(found[-1][1].moves) < enough:
            break
    safe = [plan for worst, plan in found if losses.are_mild(worst, now)]
    milder = [pair for pair in found[1:] if _is_milder(pair[0], now)]
    mildest = min(milder, key=lambda pair: (pair[0], len(pair[1].moves)), default=found[0])[1]
    best = min(safe, key=lambda plan: len(plan.moves), default=mildest)
    return losses.told(best, least)


def _is_milder(then: tuple[int, float], now: tuple[int, float]) -> bool:
    """Say whether losses leave fewer bundles without a broker, or a lower usage, and no more of the other."""
    return then != now and then[0] <= now[0] and then[1] <= now[1]


@dataclass(frozen=True, slots=True)
class _SimulatedLosses:
    """The losses of any one broker of a cluster, before and after plans: bundles that nobody can serve, and a usage."""

    snapshot: Snapshot
    cancelled: Callable[[], bool]

    @property
    def limit(self) -> float:
        """The limit of a broker as a fraction."""
        return self.snapshot.settings.integer(BROKER_OVERLOADED_THRESHOLD_PERCENTAGE) / 100

    def of(self, cluster: Snapshot, cycles: int | None = None) -> tuple[int, float]:
        """Return the most bundles that no broker can serve, and the highest usage, after any loss in so many cycles."""
        usual = unchanged(self.snapshot.settings.release.name)
        scenario = usual if cycles is None else replace(usual, cycles=cycles)
        found = simulate_losses(cluster, scenario, cancelled=self.cancelled).simulated
        highest = max((one.highest_percent for one in found), default=0.0)
        return max((one.unserved for one in found), default=0), round(highest / 100, _DIGITS)

    def after(self, plan: Plan, cycles: int | None = None) -> tuple[int, float]:
        """Return the same of the cluster that a plan leads to, when every broker has reported."""
        return self.of(left_by(self.snapshot, scenario_of(plan, held=False), self.cancelled), cycles)

    def are_mild(self, worst: tuple[int, float], now: tuple[int, float]) -> bool:
        """Say whether no broker is above the limit, and no more bundles are without a broker than now."""
        return worst[1] <= self.limit and worst[0] <= now[0]

    def told(self, best: Plan, least: Plan) -> Plan:
        """Return a plan with a note about the losses after it; the least that has to move where they are no milder."""
        now = self.of(self.snapshot)
        then = self.after(best) if best.moves else now
        if best is not least and not _is_milder(then, now):
            best = least
            then = self.after(best) if best.moves else now
        asked = best.question.drain or best.question.pins or best.question.under_percent is not None
        if best.moves and not asked and not _is_milder(then, now):  # repairs alone are no answer to this question
            return without_moves(best, self._as_now(now))
        limit = f"The limit is {self.limit * 100:.0f} %."
        if best.moves:
            usage = (
                f"is at most {then[1] * 100:.1f} % after the loss of any one broker, compared with {now[1] * 100:.1f} %"
            )
            note = f"With these moves, the highest usage {usage} without them. {limit}"
            if any((then[0], now[0])):
                note += f" At most {count(then[0], 'bundle')} cannot be served, compared with {now[0]:,}."
        else:
            note = self._as_now(now)
        return replace(best, notes=(*best.notes, note))

    def _as_now(self, now: tuple[int, float]) -> str:
        """Return what is said where nothing has to move, or no moves help."""
        limit = f"The limit is {self.limit * 100:.0f} %."
        if self.are_mild(now, now):
            return f"After the loss of any one broker, the highest usage is at most {now[1] * 100:.1f} %. {limit}"
        usage = f"the highest usage is up to {now[1] * 100:.1f} %"
        return f"No moves that were tried make the loss of a broker milder: {usage} after one. {limit}"
