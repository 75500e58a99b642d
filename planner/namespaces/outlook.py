"""What growth over weeks does to a namespace: the cluster as it is then, and when bundles split."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np

from planner.cluster.arrays import frozen
from planner.cluster.snapshot import Snapshot
from planner.cluster.tables import TRAFFIC_COLUMNS
from planner.namespaces.impact import growing, split_forecasts
from planner.optimize.absorb import left_by
from planner.pulsar.splitting.limits import SplitLoads
from planner.simulate.edits.registry import TrafficGrowth
from planner.simulate.leader_averages import TERMS
from planner.simulate.run import simulate
from planner.simulate.scenario import Step, unchanged

MOST_FACTOR: Final = 4.0
"""How many times the traffic of today is looked at most: beyond it, a cluster needs other machines anyway."""
_LEAST_TIMES: Final = 0.001
_MOST_TIMES: Final = 1_000.0
"""Least and most times that traffic is scaled: what is almost silent says nothing of how traffic is spread then."""
_LONG_TERM: Final = "long_term_"
_HOURS: Final = 1.0
"""How long each week is simulated: Pulsar splits within minutes."""


def weeks_ahead(factor: float, weeks: int) -> int:
    """Return how many of some weeks are looked at where traffic grows to a factor in each: until it is fourfold."""
    return weeks if factor <= 1 else min(weeks, max(int(math.log(MOST_FACTOR) / math.log(factor)), 1))


def grown(snapshot: Snapshot, namespace: str, factor: float, rest: float = 1.0, averages: float = 1.0) -> Snapshot:
    """Return a cluster after traffic has grown, before Pulsar answers.

    Args:
        snapshot: The cluster.
        namespace: The namespace.
        factor: How many times the traffic of the namespace is.
        rest: How many times that of the others is.
        averages: How many times the averages of bundles are that the leader keeps.
    """
    factor, rest = (min(max(one, _LEAST_TIMES), _MOST_TIMES) for one in (factor, rest))
    steps = (
        Step(TrafficGrowth(factor=rest)),
        Step(TrafficGrowth(scope="namespace", target=namespace, factor=factor / rest)),
    )
    after = left_by(snapshot, unchanged(snapshot.settings.release.name, steps=steps, cycles=1))
    names = [term + name for term in TERMS for name in TRAFFIC_COLUMNS]
    kept = {name: frozen(getattr(snapshot.bundles, name) * averages) for name in names}
    kept |= {name: getattr(snapshot.bundles, name) for name in ("has_data", *(f"{term}samples" for term in TERMS))}
    return after.with_columns(bundles=replace(after.bundles, **kept))


def will_split(snapshot: Snapshot, namespace: str) -> bool:
    """Say whether the split forecast has automatic splits of a namespace while traffic stays as it is."""
    table = snapshot.bundles
    mine = table.namespace == snapshot.namespaces.index(namespace)
    rates = (
        np.maximum(table.msg_rate_per_s(), table.msg_rate_per_s(term=_LONG_TERM)),
        np.maximum(table.throughput_bytes_per_s(), table.throughput_bytes_per_s(term=_LONG_TERM)),
    )
    if not (SplitLoads.of(table, *rates, snapshot.settings).exceeded()[mine] > 0).any():
        return False  # no bundle is above a limit, whatever the leader keeps of it
    trace = simulate(snapshot, growing(snapshot, _HOURS, 1.0))
    return any(one.namespace == namespace and one.splits for one in split_forecasts(trace, trace.end))


def first_week(happens: Callable[[int], bool], weeks: int) -> int | None:
    """Return the first week in which something happens that happens in every later one as well; None for no week."""
    if happens(0):
        return 0
    if weeks < 1 or not happens(weeks):
        return None
    low, high = 0, weeks
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if happens(middle) else (middle, high)
    return high
