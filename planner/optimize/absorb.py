"""Plans for what is to come: more traffic, what a scenario leaves, and the loss of any one broker."""

import math
from collections.abc import Callable
from dataclasses import replace

from planner.cluster.errors import ScenarioError
from planner.cluster.snapshot import Snapshot
from planner.explain.failure_review import FailureReview, at_the_end, review_losses
from planner.optimize.answer import best_plan
from planner.optimize.plan import Plan
from planner.optimize.question import Question
from planner.optimize.waves import HELD
from planner.simulate.edits.registry import Traffic
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario, Step

_LOOKS = 10


def left_by(snapshot: Snapshot, scenario: Scenario) -> Snapshot:
    """Return the cluster that a scenario leaves when the load balancer sheds and splits nothing meanwhile.

    Bundles of brokers that leave are placed as Pulsar places them; demand beyond what a machine has is kept.

    Raises:
        ScenarioError: An edit does not fit the cluster.
    """
    trace = simulate(snapshot, replace(scenario, settings={**scenario.settings, **HELD}))
    return replace(at_the_end(trace), settings=scenario.settings_over(snapshot))


def with_traffic(snapshot: Snapshot, factor: float) -> Snapshot:
    """Return a cluster with so many times the traffic; what each machine uses by itself stays.

    Raises:
        ScenarioError: The factor is no positive number.
    """
    if not 0 < factor < math.inf:
        raise ScenarioError(f"Traffic cannot be multiplied by {factor:g}.", remedy="Give a factor above 0.")
    if factor == 1.0:
        return snapshot
    return left_by(snapshot, Scenario(steps=(Step(Traffic(factor=factor)),), cycles=1))


def losses_after(plan: Plan) -> FailureReview:
    """Return the cluster after a plan and the loss of each broker, placed as Pulsar places what it lost."""
    return review_losses(plan.after(), plan.snapshot.settings)


def surviving(snapshot: Snapshot, question: Question, cancelled: Callable[[], bool] = lambda: False) -> Plan:
    """Find a plan with few moves after which the loss of any one broker puts nobody above the limit.

    The limit is `loadBalancerBrokerOverloadedThresholdPercentage`. What a lost broker served goes where Pulsar places
    it, as the failure review supposes. Plans of several sizes are tried; where none of them does it, the one with the
    mildest worst loss is the answer. A note says how far it gets.

    Args:
        snapshot: The cluster.
        question: Budgets and rules; the budget of moves is the most that is tried.
        cancelled: Is asked now and then whether to stop.

    Raises:
        ScenarioError: The question makes no sense, or has no answer.
    """
    limit = snapshot.settings.integer("loadBalancerBrokerOverloadedThresholdPercentage") / 100
    before = float(review_losses(snapshot, snapshot.settings).peak_usage.max(initial=0.0))

    def tried(moves: int) -> tuple[float, Plan]:
        plan = best_plan(snapshot, replace(question, moves=moves), cancelled=cancelled)
        return float(losses_after(plan).peak_usage.max(initial=0.0)), plan

    most = best_plan(snapshot, question, cancelled=cancelled)
    found = [(float(losses_after(most).peak_usage.max(initial=0.0)), most)]
    for part in range(1, _LOOKS):
        moves = round(len(most.moves) * (part / _LOOKS) ** 2)
        if moves > 0 and not cancelled():
            found.append(tried(moves))
    safe = [plan for worst, plan in found if worst <= limit]
    best = min(safe, key=lambda plan: len(plan.moves)) if safe else min(found, key=lambda pair: pair[0])[1]
    worst = next(usage for usage, plan in found if plan is best)
    note = (
        f"Losing the worst broker leads to {worst * 100:.1f} %, now to {before * 100:.1f} %, where Pulsar places what"
        f" it served; the limit is {limit * 100:.0f} %."
    )
    return replace(best, notes=(*best.notes, note))
