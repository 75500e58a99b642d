"""What cannot be right about the measurements that advice rests on: one home for everything that recommends."""

import numpy as np

from planner.cluster.snapshot import Snapshot
from planner.explain.diagnosis import diagnose
from planner.explain.health import within
from planner.explain.outcome import Outcome
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario


def doubt_of(outcome: Outcome) -> str:
    """Return what cannot be right about the broker that is used most, first or last; empty for nothing.

    What is shed from it at first, and every move off it, rests on the wrong measurement.
    """
    usages = [usage for usage in (outcome.reported_usage[0], outcome.reported_usage[-1]) if np.isfinite(usage).any()]
    busiest = {outcome.series.brokers[int(np.nanargmax(usage))] for usage in usages}
    wrong = (one for one in diagnose(outcome) if one.code == "impossible_measurement" and one.severity == "high")
    return next((one.title for one in wrong if not busiest.isdisjoint(one.brokers)), "")


def doubt_sentence(snapshot: Snapshot) -> str:
    """Return the doubt about a cluster as a sentence for a plan; empty where nothing is known to be wrong."""
    found = doubt_of(Outcome(simulate(snapshot, Scenario(cycles=1))))
    return f"This may be untrue: {within(found)}. Correct that and capture again first." if found else ""
