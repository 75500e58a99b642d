"""What cannot be right about the measurements that advice rests on: one home for everything that recommends."""

from dataclasses import dataclass, replace

import numpy as np

from planner.cluster.snapshot import Snapshot
from planner.explain.diagnosis import diagnose
from planner.explain.finding import Finding
from planner.explain.health import within
from planner.explain.outcome import Outcome
from planner.explain.unlike import beyond_at_first, beyond_limits
from planner.pulsar.load.usage import RESOURCES, deciding_resource, weighted_usage
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario

MEASUREMENT = "impossible_measurement"
"""The finding about what cannot be right."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """What is known to be wrong about the measurements of a cluster.

    Attributes:
        sentence: It as a sentence for a plan; empty where nothing is.
        everywhere: Whether no usage is true, so that nothing may be advised by it.
    """

    sentence: str
    everywhere: bool


def doubt_of(outcome: Outcome) -> str:
    """Return what cannot be right about the broker that is used most, first or last; empty for nothing.

    What is shed from it at first, and every move off it, rests on the wrong measurement.
    """
    usages = [usage for usage in (outcome.reported_usage[0], outcome.reported_usage[-1]) if np.isfinite(usage).any()]
    busiest = {outcome.series.brokers[int(np.nanargmax(usage))] for usage in usages}
    return next((one.title for one in _wrong(outcome) if not busiest.isdisjoint(one.brokers)), "")


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
    outcome = Outcome(simulate(captured, replace(scenario or Scenario(), cycles=1)))
    first = "Correct that and capture again first."
    if found := untrue(outcome):
        return Doubt(f"This is untrue: {within(found)}. {first}", everywhere=True)
    found = doubt_of(outcome)
    return Doubt(f"This may be untrue: {within(found)}. {first}" if found else "", everywhere=False)


def _wrong(outcome: Outcome) -> list[Finding]:
    return [one for one in diagnose(outcome) if one.code == MEASUREMENT and one.severity == "high"]
