"""A plan compared with doing nothing for as long, as it is and under other seeds and traffic."""

from collections.abc import Callable, Hashable, Iterator
from dataclasses import replace

from planner.cluster.errors import PlannerError
from planner.cluster.snapshot import Snapshot
from planner.cluster.switches import shedding_is_off
from planner.optimize.stability import simulated
from planner.simulate.judge import Result, Verdict, gained, judge
from planner.simulate.scenario import Scenario
from planner.simulate.steadiness import VARIANTS, variants, why_lost
from planner.simulate.trace import Trace

MOST_BUNDLES = 20_000
"""Bundles up to which a plan is tried under all other seeds and traffic; beyond, with more traffic only."""


class Compared:
    """What doing nothing comes to, for each length of time once, and what plans of one cluster are compared with it.

    Args:
        cancelled: Says whether to stop.
    """

    def __init__(self, cancelled: Callable[[], bool] = lambda: False) -> None:
        self._cancelled = cancelled
        self._known: dict[tuple[Hashable, ...], Result] = {}

    def before(self, carried_out: Trace) -> Result:
        """Return what the time of a plan comes to without it."""
        return self._result(carried_out.start, _idle(carried_out.scenario))

    def verdict(self, carried_out: Trace) -> Verdict:
        """Return what the judge says of a plan."""
        return judge(self.before(carried_out), Result.of(carried_out))

    def why_lost(self, carried_out: Trace) -> str:
        """Return where a plan's gain does not hold, or that there is none, a clause; empty where it does."""
        before, after = self.before(carried_out), Result.of(carried_out)
        if judge(before, after).word == "same":
            return "doing nothing for as long has the same result"
        try:
            return why_lost(gained(before, after), self._others(carried_out))
        except PlannerError:  # a bundle was split before its turn came
            return f"{VARIANTS[-1]}, it cannot be carried out"

    def _others(self, carried_out: Trace) -> Iterator[tuple[Result, Result]]:
        start, scenario = carried_out.start, carried_out.scenario
        few = len(start.bundles) <= MOST_BUNDLES
        without = variants(_idle(scenario))
        for at, variant in enumerate(variants(scenario)[: None if few else 1]):
            if self._cancelled():
                return
            yield self._result(start, without[at]), Result.of(simulated(start, variant, self._cancelled))

    def _result(self, start: Snapshot, scenario: Scenario) -> Result:
        key = shedding_is_off(start.settings), scenario.seed, scenario.steps, scenario.cycles
        if key not in self._known:
            self._known[key] = Result.of(simulated(start, scenario, self._cancelled))
        return self._known[key]


def _idle(scenario: Scenario) -> Scenario:
    return replace(scenario.with_steps(), settings={})
