"""Plans for what is to come: more traffic, what a scenario leaves, and the loss of any one broker."""

import math
from collections.abc import Callable
from dataclasses import replace

from planner.cluster.errors import ScenarioError
from planner.cluster.names import BROKER_OVERLOADED_THRESHOLD_PERCENTAGE
from planner.cluster.snapshot import Snapshot
from planner.optimize.answer import best_plan
from planner.optimize.plan import Plan
from planner.optimize.question import Question
from planner.optimize.waves import HELD
from planner.simulate.edits.registry import TrafficGrowth
from planner.simulate.failure_review import FailureReview, review_losses
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario, Step, unchanged
from planner.simulate.trace import Trace
from planner.simulate.usage_model import at_the_end

_LOOKS = 10
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


def losses_after(plan: Plan) -> FailureReview:
    """Return the cluster after a plan and the loss of each broker, placed as Pulsar places what it lost."""
    return review_losses(plan.after(), plan.snapshot.settings)


def surviving(snapshot: Snapshot, question: Question, cancelled: Callable[[], bool] = lambda: False) -> Plan:
    """Find a plan with few moves after which the loss of any one broker puts no broker above the limit.

    The budget of moves is the most that is tried. The limit is `loadBalancerBrokerOverloadedThresholdPercentage`. What
    a lost broker served goes where Pulsar places it, as the failure review supposes. Plans of several sizes are tried,
    then those between the smallest that does it and the one below; where none does it, the one with the mildest worst
    loss is the answer. Nothing moves where that helps nothing. A note says how far it gets.

    Raises:
        ScenarioError: The question makes no sense, or has no answer.
    """
    limit = snapshot.settings.integer(BROKER_OVERLOADED_THRESHOLD_PERCENTAGE) / 100
    before = float(review_losses(snapshot, snapshot.settings).peak_usage.max(initial=0.0))

    def tried(moves: int) -> tuple[float, Plan]:
        plan = best_plan(snapshot, replace(question, moves=moves), cancelled=cancelled)
        return worst_after(plan), plan

    def worst_after(plan: Plan) -> float:
        return float(losses_after(plan).peak_usage.max(initial=0.0))

    under = _NO_LIMIT if question.under_percent is None else question.under_percent
    least = best_plan(snapshot, replace(question, under_percent=under), cancelled=cancelled)
    if question.under_percent is None:  # its bound is one of usage, not of what the fewest moves cost
        least = replace(least, question=question, bound=least.peak_bound)
    found = [(worst_after(least), least)]
    if found[0][0] > limit:
        most = best_plan(snapshot, question, cancelled=cancelled)
        found.append((worst_after(most), most))
        sizes = {round(len(most.moves) * (part / _LOOKS) ** 2) for part in range(1, _LOOKS)} - {0}
        for moves in sorted(sizes):
            found += [] if cancelled() else [tried(moves)]
    while not cancelled():
        enough = min((len(plan.moves) for worst, plan in found if worst <= limit), default=0)
        less = max((len(plan.moves) for worst, plan in found if len(plan.moves) < enough), default=enough)
        if enough - less < 2:  # noqa: PLR2004 - nothing lies between
            break
        found.append(tried((enough + less) // 2))
        if not less < len(found[-1][1].moves) < enough:
            break
    safe = [plan for worst, plan in found if worst <= limit]
    mildest = min(found, key=lambda pair: (round(pair[0], 3), len(pair[1].moves)))[1]
    best = min(safe, key=lambda plan: len(plan.moves), default=mildest)
    worst = next(usage for usage, plan in found if plan is best)
    note = (
        f"After these moves, the worst loss of a broker raises the highest usage to {worst * 100:.1f} %, compared"
        f" with {before * 100:.1f} % now. The limit is {limit * 100:.0f} %."
    )
    return replace(best, notes=(*best.notes, note))
