"""Plans for what is to come: more traffic, what a scenario leaves, and the loss of any one broker."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from planner.cluster.errors import ScenarioError
from planner.cluster.names import BROKER_OVERLOADED_THRESHOLD_PERCENTAGE
from planner.cluster.snapshot import Snapshot
from planner.cluster.text import count
from planner.cluster.units import MS_PER_MIN
from planner.optimize.answer import best_plan
from planner.optimize.offer import without_moves
from planner.optimize.plan import Plan
from planner.optimize.question import Question
from planner.optimize.waves import HELD, on_top_of, scenario_of
from planner.simulate.edits.registry import TrafficGrowth
from planner.simulate.failure_review import review_losses
from planner.simulate.losses import Loss, simulate_losses
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario, Step, unchanged
from planner.simulate.trace import Trace
from planner.simulate.usage_model import at_the_end

_LOOKS = 6
_ROUNDS = 0
"""Rounds of the search for each plan that is tried."""
_FEW_CYCLES = 6
"""Cycles in which plans are compared: what a loss does, it mostly does at once."""
_FEW = 3
"""Losses in which plans are compared: those that are worst now, and as many with the highest estimates."""
_CHECKED = 3
"""Plans of which all losses are simulated."""
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
    trace = _only_edited(snapshot, scenario, cancelled)
    return replace(at_the_end(trace), settings=scenario.settings_over(snapshot))


def made_after_min(snapshot: Snapshot, scenario: Scenario) -> float:
    """Return the minutes until the edits of a scenario are made, and nothing is on the way any more.

    Raises:
        ScenarioError: An edit does not fit the cluster.
    """
    if not scenario.edits:
        return 0.0
    trace = _only_edited(snapshot, scenario)
    return max(((event.at_ms - trace.cycles[0].at_ms) / MS_PER_MIN for event in trace.events), default=0.0)


def on_its_edits(captured: Snapshot, base: Scenario, plan: Scenario, *, after_cycles: bool = False) -> Scenario:
    """Return a plan that starts from the edits of a scenario as one scenario: it begins when the edits are made.

    Args:
        captured: The cluster of the scenario.
        base: The scenario.
        plan: The plan as a scenario.
        after_cycles: The plan begins after the cycles of the scenario instead.

    Raises:
        ScenarioError: They have more edits than a scenario may have, or an edit does not fit the cluster.
    """
    base = base.within(captured)
    if after_cycles:
        return on_top_of(base, plan, settled_min=base.end_min(captured))
    return on_top_of(base, plan, made_min=made_after_min(captured, base))


def _only_edited(snapshot: Snapshot, scenario: Scenario, cancelled: Callable[[], bool] = lambda: False) -> Trace:
    """Simulate a scenario in which the load balancer sheds and splits nothing."""
    return simulate(snapshot, replace(scenario, settings={**scenario.settings, **HELD}), cancelled=cancelled)


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
    Plans of several sizes are tried, then those between the smallest that does it and the one below; of each, the
    losses that are worst now and those with the highest estimates are simulated for a few cycles. All losses are
    simulated of the best ones, as the failure review simulates them: the first that makes losses milder is the answer,
    or nothing moves. A note says how far it gets.

    Raises:
        ScenarioError: The question makes no sense, or has no answer.
    """
    losses = _SimulatedLosses.of(snapshot, cancelled)
    under = _NO_LIMIT if question.under_percent is None else question.under_percent
    least = best_plan(snapshot, replace(question, under_percent=under), cancelled=cancelled)
    if question.under_percent is None:  # its bound is one of usage, not of what the fewest moves cost
        least = replace(least, question=question, bound=least.peak_bound)
    found = [(losses.few_after(least) if least.moves else losses.now, least)]
    if not losses.are_mild(found[0][0]):
        quickly = replace(question, rounds=_ROUNDS)
        most = best_plan(snapshot, quickly, cancelled=cancelled)
        sizes = {round(len(most.moves) * (part / _LOOKS) ** 2) for part in range(1, _LOOKS)} - {0}
        plans = [most, *(best_plan(snapshot, replace(quickly, moves=moves), cancelled=cancelled) for moves in sizes)]
        found += [(losses.few_after(plan), plan) for plan in plans if not cancelled()]
        while not cancelled():
            enough = min((len(plan.moves) for worst, plan in found if losses.are_mild(worst)), default=0)
            less = max((len(plan.moves) for _, plan in found if len(plan.moves) < enough), default=enough)
            if enough - less < 2:  # noqa: PLR2004 - nothing lies between
                break
            plan = best_plan(snapshot, replace(quickly, moves=(enough + less) // 2), cancelled=cancelled)
            found.append((losses.few_after(plan), plan))
            if not less < len(plan.moves) < enough:
                break
    safe = sorted((plan for worst, plan in found if losses.are_mild(worst)), key=lambda plan: len(plan.moves))
    milder = sorted((pair for pair in found[1:] if losses.are_milder(pair[0])), key=_by_loss)
    return losses.told([*safe, *(plan for _, plan in milder if plan not in safe)][:_CHECKED], least)


def _by_loss(found: "tuple[_Worst, Plan]") -> "tuple[_Worst, int]":
    return found[0], len(found[1].moves)


_Worst: TypeAlias = tuple[int, float]
"""The most bundles that no broker can serve after a loss, and the highest usage, as a fraction."""


@dataclass(frozen=True, slots=True)
class _SimulatedLosses:
    """The losses of any one broker of a cluster, before and after plans.

    Attributes:
        snapshot: The cluster.
        cancelled: Asked between simulations whether to stop.
        now: The worst without a plan.
        worst: The brokers whose losses are worst then.
    """

    snapshot: Snapshot
    cancelled: Callable[[], bool]
    now: _Worst
    worst: tuple[str, ...]

    @classmethod
    def of(cls, snapshot: Snapshot, cancelled: Callable[[], bool]) -> "_SimulatedLosses":
        """Simulate the losses of a cluster without a plan."""
        found = simulate_losses(snapshot, unchanged(snapshot.settings.release.name), cancelled=cancelled).simulated
        return cls(snapshot, cancelled, _worst_of(found), tuple(one.broker for one in found[:_FEW]))

    @property
    def limit(self) -> float:
        """The limit of a broker as a fraction."""
        return self.snapshot.settings.integer(BROKER_OVERLOADED_THRESHOLD_PERCENTAGE) / 100

    def few_after(self, plan: Plan) -> _Worst:
        """Return what a few losses do for a few cycles, of the cluster that a plan leads to; they may do more."""
        cluster = left_by(self.snapshot, scenario_of(plan, held=False), self.cancelled)
        usual, review = unchanged(self.snapshot.settings.release.name), review_losses(cluster)
        few = [*self.worst, *(review.names(int(at))[0] for at in review.worst_first()[:_FEW])]
        scenario = replace(usual, cycles=_FEW_CYCLES)
        return _worst_of(simulate_losses(cluster, scenario, of=few, cancelled=self.cancelled).simulated)

    def after(self, plan: Plan) -> _Worst:
        """Return what losses do to the cluster that a plan leads to, when every broker has reported."""
        cluster = left_by(self.snapshot, scenario_of(plan, held=False), self.cancelled)
        usual = unchanged(self.snapshot.settings.release.name)
        return _worst_of(simulate_losses(cluster, usual, cancelled=self.cancelled).simulated)

    def are_mild(self, worst: _Worst) -> bool:
        """Say whether no broker is above the limit, and no more bundles are without a broker than now."""
        return worst[1] <= self.limit and worst[0] <= self.now[0]

    def are_milder(self, worst: _Worst) -> bool:
        """Say whether losses leave fewer bundles without a broker, or a lower usage, and no more of the other."""
        return worst != self.now and worst[0] <= self.now[0] and worst[1] <= self.now[1]

    def told(self, plans: Sequence[Plan], least: Plan) -> Plan:
        """Return the first plan with which losses are milder, with a note about them; else what has to move anyway."""
        for plan in plans:
            if plan.moves and not self.cancelled() and self.are_milder(then := self.after(plan)):
                return self._noted(plan, then)
        asked = least.question.drain or least.question.pins or least.question.under_percent is not None
        if not least.moves or not asked:  # repairs alone are no answer to this question
            return without_moves(least, self._as_now()) if least.moves else self._with_note(least, self._as_now())
        return self._noted(least, self.after(least))

    def _noted(self, plan: Plan, then: _Worst) -> Plan:
        usage = f"is at most {then[1] * 100:.1f} % after the loss of any one broker, compared with"
        note = f"With these moves, the highest usage {usage} {self.now[1] * 100:.1f} % without them. {self._limited}"
        if then[0] or self.now[0]:
            note += f" At most {count(then[0], 'bundle')} cannot be served, compared with {self.now[0]:,}."
        return self._with_note(plan, note)

    @staticmethod
    def _with_note(plan: Plan, note: str) -> Plan:
        return replace(plan, notes=(*plan.notes, note))

    def _as_now(self) -> str:
        """Return what is said where nothing has to move, or no moves help."""
        highest = f"{self.now[1] * 100:.1f} %"
        if self.are_mild(self.now):
            return f"After the loss of any one broker, the highest usage is at most {highest}. {self._limited}"
        usage = f"the highest usage is up to {highest}"
        return f"No moves that were tried make the loss of a broker milder: {usage} after one. {self._limited}"

    @property
    def _limited(self) -> str:
        return f"The limit is {self.limit * 100:.0f} %."


def _worst_of(found: Sequence[Loss]) -> _Worst:
    highest = max((one.highest_percent for one in found), default=0.0)
    return max((one.unserved for one in found), default=0), round(highest / 100, _DIGITS)
