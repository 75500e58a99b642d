"""The loss of any one broker, simulated: right after it, and within the cycles that follow."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from planner.cluster.names import BROKER_OVERLOADED_THRESHOLD_PERCENTAGE, SHEDDING_INTERVAL_MINUTES
from planner.cluster.once import once
from planner.cluster.snapshot import Snapshot
from planner.cluster.units import MS_PER_MIN, MS_PER_S
from planner.simulate.demand import demand
from planner.simulate.edits.registry import BrokerLoss
from planner.simulate.failure_review import FailureReview, review_losses
from planner.simulate.measures import summary_of_cycles
from planner.simulate.price import price_of
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario, Step, unchanged
from planner.simulate.trace import Trace
from planner.simulate.usage_model import end_by_capture

LOSS_AT_MIN: Final = 2.0
"""Minute of a simulation at which a broker dies, everywhere that a loss is one click away."""
BUDGET_S: Final = 10.0
"""Price of the simulations of losses; with more losses the estimate chooses which are simulated."""


@dataclass(frozen=True, slots=True)
class Loss:
    """What the loss of a broker does.

    Attributes:
        broker: Its id.
        right_after_percent: Highest usage of a broker when others have taken its bundles, in percent.
        right_after_on: That broker.
        highest_percent: Highest usage from then on, in percent.
        highest_on: That broker.
        highest_at_min: Minutes after the loss at which it is that high.
        before_percent: Highest usage before that, as captured or later, which is none of the loss's doing, in percent.
        before_on: That broker.
        over_threshold: Brokers above `loadBalancerBrokerOverloadedThresholdPercentage` after the loss, when there are
            most.
        peak_percent: Highest usage from the first moves on, the peak that What-if shows, in percent.
        topics: Topics disconnected, each as often as it is.
        unserved: Bundles that nobody could serve.
    """

    broker: str
    right_after_percent: float
    right_after_on: str
    highest_percent: float
    highest_on: str
    highest_at_min: float
    before_percent: float
    before_on: str
    over_threshold: int
    peak_percent: float
    topics: int
    unserved: int


@dataclass(frozen=True, eq=False, slots=True)
class Losses:
    """The losses of a cluster.

    Attributes:
        simulated: Those that were simulated, the worst first.
        review: The estimate of all.
        limit_percent: `loadBalancerBrokerOverloadedThresholdPercentage`.
        minutes: How long each was watched after the loss.
        left: How many were not simulated, as their estimates are lower.
        without: What comes in the same time without any loss; None where that was too much work.
    """

    simulated: tuple[Loss, ...]
    review: FailureReview
    limit_percent: int
    minutes: float
    left: int
    without: Loss | None = None

    @property
    def raises(self) -> bool:
        """Whether the worst loss does more than what happens without any, as far as that is known."""
        if not self.simulated or self.without is None:
            return True
        idle = self.without
        highest = max(round(one.highest_percent) for one in self.simulated) > round(idle.highest_percent)
        over = max(one.over_threshold for one in self.simulated) > idle.over_threshold
        return highest or over or max(one.unserved for one in self.simulated) > idle.unserved

    @property
    def number(self) -> int:
        """How many losses there are."""
        return len(self.simulated) + self.left


def with_loss(scenario: Scenario, *brokers: str, after_min: float = 0.0) -> Scenario:
    """Return a scenario in which brokers die soon after the start, or so many minutes later; it lasts as long."""
    steps = (Step(BrokerLoss(broker=broker, at_min=after_min + LOSS_AT_MIN)) for broker in brokers)
    longer = replace(scenario, cycles=max(scenario.cycles, int(after_min + LOSS_AT_MIN) + 1))
    return longer.with_steps(*scenario.steps, *steps)


def with_loss_at_its_end(trace: Trace, *brokers: str) -> Scenario:
    """Return the scenario of a simulation, and what brokers that die after its cycles cause in as many as are usual."""
    own, every_min = trace.scenario, max(trace.settings.integer(SHEDDING_INTERVAL_MINUTES), 1)
    longer = replace(own, cycles=own.cycles + at_its_end(trace)[1].cycles)
    return with_loss(longer, *brokers, after_min=float(own.cycles * every_min))


def simulate_losses(
    snapshot: Snapshot,
    scenario: Scenario,
    *,
    of: Iterable[str] = (),
    budget_s: float = BUDGET_S,
    cancelled: Callable[[], bool] = lambda: False,
) -> Losses:
    """Simulate the loss of every broker; where that is too much work, of those with the highest estimates.

    Anti-affinity, isolation, splits and later shedding all count, as in any simulation.

    Args:
        snapshot: The cluster.
        scenario: What else happens, and how many cycles are watched.
        of: The brokers whose losses are simulated, by id; of all by default.
        budget_s: Price of all simulations together, that without a loss as well; at least one loss is simulated.
        cancelled: Asked between simulations whether to stop.

    Raises:
        PlannerError: The scenario does not fit the cluster.
    """
    config = scenario.settings_over(snapshot)
    review = review_losses(snapshot, config, assumptions=scenario.assumptions)
    worst_first = [review.names(int(at))[0] for at in review.worst_first()]
    asked = set(of)
    order = [broker for broker in worst_first if not asked or broker in asked]
    each_s = price_of(snapshot, scenario).seconds
    most = max(int(budget_s / each_s), 1) if each_s > 0 else len(order)
    without = None
    limit = snapshot.settings.integer(BROKER_OVERLOADED_THRESHOLD_PERCENTAGE)
    found: list[Loss] = []
    minutes = 0.0
    if order and not asked and most > 1 and not cancelled():
        without = _loss(simulate(snapshot, scenario), "", limit)
        most -= 1
    for broker in order[:most]:
        if cancelled():
            break
        trace = simulate(snapshot, with_loss(scenario, broker))
        minutes = (trace.cycles[-1].at_ms - trace.cycles[0].at_ms) / MS_PER_MIN - LOSS_AT_MIN
        found.append(_loss(trace, broker, limit))
    found.sort(key=lambda one: (-one.unserved, -one.highest_percent, -one.right_after_percent))
    return Losses(tuple(found), review, limit, minutes, len(order) - len(found), without)


@once
def losses_now(trace: Trace) -> Losses:
    """Simulate the losses of the cluster that a simulation starts from, as pages do without a scenario; once."""
    release = trace.start.settings.release.name
    return simulate_losses(trace.start, unchanged(release, assumptions=trace.scenario.assumptions))


@once
def losses_after(trace: Trace) -> Losses:
    """Simulate the losses of the cluster at the end of a simulation; once for a trace."""
    return simulate_losses(*at_its_end(trace))


def at_its_end(trace: Trace) -> tuple[Snapshot, Scenario]:
    """Return the cluster at the end of a simulation, and the scenario that goes on with its settings and release.

    Demand beyond what a machine has is kept: it does not go away with the broker that is lost. The settings of the
    simulation are those of that scenario, so that usage is measured by the capture's, as in the simulation.
    """
    own = trace.scenario
    then = unchanged(own.pulsar_version, seed=own.seed, assumptions=own.assumptions, settings=own.settings)
    return end_by_capture(trace), then


def _loss(trace: Trace, broker: str, limit: int) -> Loss:
    found, numbers = demand(trace), summary_of_cycles(trace)
    start_ms = trace.cycles[0].at_ms
    settled_ms = start_ms + LOSS_AT_MIN * MS_PER_MIN + trace.scenario.assumptions.session_timeout_s * MS_PER_S
    taken = min(int(np.searchsorted(found.at_ms[:-1], settled_ms)), len(found.usage) - 1)
    state = trace.cycles[0].state
    captured = np.zeros((1, len(found.brokers)))
    captured[0, : len(state.usage)] = np.where(state.present, state.usage, 0.0)
    after, until = found.usage[taken:], np.concatenate([captured, found.usage[:taken]])
    at, on = np.unravel_index(int(after.argmax()), after.shape)
    return Loss(
        broker=broker,
        right_after_percent=float(after[0].max()) * 100,
        right_after_on=found.brokers[int(after[0].argmax())],
        highest_percent=float(after.max()) * 100,
        highest_on=found.brokers[int(on)],
        highest_at_min=(int(found.at_ms[taken + int(at)]) - start_ms) / MS_PER_MIN - LOSS_AT_MIN,
        before_percent=float(until.max()) * 100,
        before_on=found.brokers[int(until.max(axis=0).argmax())],
        over_threshold=int((after > limit / 100).sum(axis=1).max()),
        peak_percent=float(found.usage.max()) * 100,
        topics=numbers.topics_disconnected,
        unserved=numbers.unserved,
    )
