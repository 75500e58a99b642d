"""What cannot be right about the measurements that advice rests on: one home for everything that recommends."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from planner.cluster.snapshot import Snapshot
from planner.explain.diagnosis import diagnose
from planner.explain.finding import MEASUREMENT, Finding
from planner.explain.health import within
from planner.explain.outcome import Outcome
from planner.explain.unlike import beyond_at_first, beyond_limits, unseen_usage
from planner.pulsar.load.usage import RESOURCES, deciding_resource, weighted_usage
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario


@dataclass(frozen=True, slots=True)
class Doubt:
    """What is known to be wrong about the measurements of a cluster.

    Attributes:
        sentence: It as a sentence for a plan; empty where nothing is.
        everywhere: Whether no usage is true, so that nothing may be advised by it.
    """

    sentence: str
    everywhere: bool

    def instead_of(self, what: str) -> str:
        """Return why something is not offered, such as `moves`; empty where usage may be true."""
        return f"No {what} are offered. {self.sentence}" if self.everywhere else ""


NO_DOUBT: Final = Doubt("", everywhere=False)


def doubt_of(outcome: Outcome) -> str:
    """Return what cannot be right about the broker that is used most or least, first or last; empty for nothing.

    What is shed from the most used one at first, and every move off it, rests on the wrong measurement. So does what
    moves to the least used one, where it only looks so because its usage is not seen.
    """
    usages = [usage for usage in (outcome.reported_usage[0], outcome.reported_usage[-1]) if np.isfinite(usage).any()]
    names = outcome.series.brokers
    busiest = {names[int(np.nanargmax(usage))] for usage in usages}
    if found := next((one.title for one in _wrong(outcome) if not busiest.isdisjoint(one.brokers)), ""):
        return found
    table = outcome.trace.start.brokers
    hidden = unseen_usage(table) & unseen_usage(outcome.trace.cycles[0].view.brokers)
    idle = hidden & {names[int(np.nanargmin(usage))] for usage in usages}
    odd = diagnose(outcome) if idle else ()
    return next((one.title for one in odd if one.code == MEASUREMENT and not idle.isdisjoint(one.brokers)), "")


def untrue(outcome: Outcome) -> str:
    """Return what cannot be right about every broker that answers; empty where the usage of one may be true.

    Of each, the resource that decides is above its limit: no usage is true then, and no remedy can be judged by it.
    """
    trace = outcome.trace
    table = trace.start.brokers
    if not may_be_untrue(trace.start):
        return ""
    decides = deciding_resource(table, trace.settings, outcome.load_manager)
    above = beyond_at_first(trace)
    counts = weighted_usage(table, trace.settings, outcome.load_manager) > 0
    there = np.flatnonzero(table.registered & table.has_load_data).tolist()
    if not all(counts[at] and above[RESOURCES.index(decides[at]), at] for at in there):
        return ""
    return next((one.title for one in _wrong(outcome)), "")


def may_be_untrue(captured: Snapshot) -> bool:
    """Say whether every broker that answers reports some usage above its limit: else that of one may be true."""
    there = captured.brokers.registered & captured.brokers.has_load_data
    return bool(there.any() and beyond_limits(captured.brokers)[:, there].any(axis=0).all())


def doubt_about(captured: Snapshot, scenario: Scenario | None = None) -> Doubt:
    """Return the doubt about a cluster as captured, with what a scenario mends at its start."""
    if not _is_suspect(captured):
        return NO_DOUBT
    return doubt_in(Outcome(simulate(captured, replace(scenario or Scenario(), cycles=1))))


def doubt_in(outcome: Outcome) -> Doubt:
    """Return the doubt about what a simulation started from."""
    if not _is_suspect(outcome.trace.start):
        return NO_DOUBT
    first = "Correct that and capture again first."
    if found := untrue(outcome):
        return Doubt(f"The reported usage is untrue: {within(found)}. {first}", everywhere=True)
    found = doubt_of(outcome)
    return Doubt(f"The reported usage may be untrue: {within(found)}. {first}", everywhere=False) if found else NO_DOUBT


def doubt_in_any(outcomes: Iterable[Outcome]) -> Doubt:
    """Return the doubt about simulations that are compared."""
    return worst_of(map(doubt_in, outcomes))


def worst_of(doubts: Iterable[Doubt]) -> Doubt:
    """Return the doubt that counts most: that no usage is true, before that of one broker."""
    return max(doubts, key=lambda one: (one.everywhere, bool(one.sentence)), default=NO_DOUBT)


def _is_suspect(captured: Snapshot) -> bool:
    """Say whether any usage is above its limit, or not seen, without which nothing is doubted, before a simulation."""
    return bool(beyond_limits(captured.brokers).any() or unseen_usage(captured.brokers))


def _wrong(outcome: Outcome) -> list[Finding]:
    return [one for one in diagnose(outcome) if one.code == MEASUREMENT and one.severity == "high"]
