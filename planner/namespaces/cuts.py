"""Where to cut a namespace, so that the fewest bundles carry equal loads."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from planner.cluster.arrays import FloatArray, Int64Array
from planner.cluster.errors import ScenarioError
from planner.cluster.ranges import FULL_HIGH
from planner.namespaces.counts import loads_of
from planner.namespaces.population import Population
from planner.namespaces.spread import least_share, reached_share
from planner.simulate.planned_spec import MOST_BUNDLES

NEAR: Final = 1.05
"""How many times the bound of single topics is near enough."""
_HALVINGS: Final = 48


@dataclass(frozen=True, slots=True)
class Cuts:
    """Boundaries that even out the load of a namespace.

    Attributes:
        boundaries: All boundaries, from 0 to 0xffffffff.
        new: Those that the namespace does not have yet.
        placed_percent: Share of the broker with most under the best placement that is known.
        bound_percent: Share below which nothing brings it, however many bundles there are: single topics limit it.
        limited_by_topic: Whether the heaviest topic alone makes that bound.
    """

    boundaries: tuple[int, ...]
    new: tuple[int, ...]
    placed_percent: float
    bound_percent: float
    limited_by_topic: bool

    @property
    def is_near(self) -> bool:
        """Whether no other cuts could be much better."""
        return self.placed_percent <= self.bound_percent * NEAR


@dataclass(frozen=True, eq=False)
class _Places:
    """Distinct hashes: topics with the same hash cannot be cut apart."""

    hash: Int64Array
    before: Int64Array
    """Topics before each distinct hash, and all of them. Shape (hashes + 1,)."""

    @staticmethod
    def of(population: Population) -> "_Places":
        places, first = np.unique(population.hash, return_index=True)
        return _Places(places, np.concatenate((first, [len(population)])))


def even_boundaries(population: Population, bundles: int, kept: Sequence[int] = (0, FULL_HIGH)) -> tuple[int, ...]:
    """Return the boundaries of at most so many bundles, each as light as can be.

    A place that alone carries more than that has a bundle of its own. It is exact: a load is possible when cutting as
    late as it allows needs few enough bundles.

    Args:
        population: The topics.
        bundles: How many bundles there may be.
        kept: Boundaries that stay: bundles are never merged.

    Raises:
        ScenarioError: There are more boundaries than that already, or the number is out of range.
    """
    if not len(kept) - 1 <= bundles <= MOST_BUNDLES:
        raise ScenarioError(
            f"{bundles:,} bundles are not possible.",
            remedy=f"Use {len(kept) - 1:,} (the bundles there are; they never merge) to {MOST_BUNDLES:,}.",
        )
    places = _Places.of(population)
    running = population.running[places.before].tolist()
    stops = np.searchsorted(places.hash, np.asarray(kept, dtype=np.int64), side="left").tolist()
    stops[-1] = len(places.hash)
    low, high = 0.0, running[-1]
    best: list[int] = []
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        found = _latest(running, stops, middle, bundles)
        if found is None:
            low = middle
        else:
            high, best = middle, found
    return _with_cuts(places.hash, best, kept)


def _latest(running: list[float], stops: list[int], most: float, bundles: int) -> list[int] | None:
    """Return the places before which to cut so that no bundle carries more, unless a single place does.

    None when that needs too many bundles.

    Args:
        running: Load of the first places: none, one, two …
        stops: Places at the boundaries that stay.
        most: The load that a bundle may carry.
        bundles: How many bundles there may be.
    """
    cuts: list[int] = []
    left = bundles - (len(stops) - 1)
    for start, stop in pairwise(stops):
        at = start
        while at < stop - 1 and running[stop] - running[at] > most:
            at = max(bisect_right(running, running[at] + most, at + 1, stop) - 1, at + 1)
            cuts.append(at)
            if len(cuts) > left:
                return None
    return cuts


def _with_cuts(places: Int64Array, cuts: Sequence[int], kept: Sequence[int]) -> tuple[int, ...]:
    """Return boundaries with a cut halfway before each of some places, so that new topics do not fall on it."""
    new = [int(places[at - 1]) + (int(places[at]) - int(places[at - 1]) + 1) // 2 for at in cuts]
    return tuple(sorted({*kept, *new}))


def topic_bound(population: Population, brokers: int) -> float:
    """Return the share of the load, from 0 to 1, below which nothing brings the broker with most: topics are whole."""
    return least_share(_alone(population), brokers)


def _alone(population: Population) -> FloatArray:
    """Return the load of each distinct hash. Shape (hashes,)."""
    return np.diff(population.running[_Places.of(population).before])


def cuts_hold(boundaries: Sequence[int], before: Sequence[int], population: Population, brokers: int) -> bool:
    """Say whether cuts are worth it at another moment as well: they bring at least half of what any cuts could there.

    Where the old boundaries are near the bound already, they only have to stay there.

    Args:
        boundaries: With the cuts.
        before: Without them.
        population: The topics at that moment.
        brokers: How many brokers may serve the namespace.
    """
    was, after = (reached_share(loads_of(population, edges), brokers) for edges in (before, boundaries))
    bound = topic_bound(population, brokers)
    return after <= max(bound * NEAR, was - (was - bound) / 2)


def recommended_cuts(population: Population, brokers: int, kept: Sequence[int] = (0, FULL_HIGH)) -> Cuts:
    """Return the fewest bundles that brokers can share about as evenly as single topics allow.

    Args:
        population: The topics.
        brokers: How many brokers may serve the namespace.
        kept: Boundaries that stay.
    """
    alone = _alone(population)
    bound = least_share(alone, brokers)
    now = len(kept) - 1

    def reached(bundles: int) -> tuple[float, tuple[int, ...]]:
        found = even_boundaries(population, bundles, kept)
        return reached_share(loads_of(population, found), brokers), found

    best = reached(now)
    most = min(max(len(alone) + now, now), MOST_BUNDLES)
    wanted = max(now, min(brokers, most))
    tried = now
    while best[0] > bound * NEAR and wanted <= most:
        found = reached(wanted)
        if found[0] < best[0] - 1e-9:
            best = found
        tried, wanted = wanted, max(wanted + 1, min(wanted * 5 // 4, most))
    if best[0] <= bound * NEAR and tried > now:
        best = _fewest(reached, max(now, tried * 4 // 5), tried, bound * NEAR) or best
    boundaries = best[1]
    return Cuts(
        boundaries,
        tuple(sorted(set(boundaries) - set(kept))),
        best[0] * 100,
        bound * 100,
        bool(len(alone)) and float(alone.max()) >= bound - 1e-12,
    )


def _fewest(
    reached: Callable[[int], tuple[float, tuple[int, ...]]], low: int, high: int, enough: float
) -> tuple[float, tuple[int, ...]] | None:
    """Return the first number of bundles from one to another that is near enough."""
    for bundles in range(low, high + 1):
        found = reached(bundles)
        if found[0] <= enough:
            return found
    return None
