"""What each number of equal bundles gives: topics and load of the bundles, and how evenly brokers can share them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.cluster.arrays import FloatArray, Int64Array
from planner.cluster.errors import ScenarioError
from planner.cluster.ranges import equal_boundaries
from planner.namespaces.population import Population
from planner.namespaces.spread import shares
from planner.simulate.planned_spec import MOST_BUNDLES


@dataclass(frozen=True, slots=True)
class CountRow:
    """A namespace with a number of bundles.

    Attributes:
        bundles: The number.
        topics_most: Topics of the bundle with most of them.
        topics_mean: Mean number of topics of a bundle.
        empty: Bundles without a topic.
        largest_share_percent: Share of the namespace's load in the heaviest bundle.
        msg_per_s_most: Messages in and out of the bundle with most of them.
        bytes_per_s_most: Throughput in and out of the bundle with most of it.
        brokers: Over how many brokers it can spread.
        bound_percent: Share of the load below which no placement brings the broker with most of it.
        placed_percent: Share that broker has under the best placement that is known; of many bundles, one that places
            the heaviest first.
    """

    bundles: int
    topics_most: int
    topics_mean: float
    empty: int
    largest_share_percent: float
    msg_per_s_most: float
    bytes_per_s_most: float
    brokers: int
    bound_percent: float
    placed_percent: float


def loads_of(population: Population, boundaries: Sequence[int]) -> FloatArray:
    """Return the share of the load in each bundle. Shape (bundles,)."""
    return np.diff(population.running[topic_edges(population, boundaries)])


def topics_of(population: Population, boundaries: Sequence[int]) -> Int64Array:
    """Return the number of topics in each bundle, as Pulsar's own map of bundles has it. Shape (bundles,)."""
    return np.diff(topic_edges(population, boundaries))


def topic_edges(population: Population, boundaries: Sequence[int]) -> Int64Array:
    """Return how many topics come before each bundle, and before the end. Shape (bundles + 1,).

    Pulsar finds no bundle for the hash 0xffffffff; such a topic is counted in the last one.
    """
    edges = population.first_at(np.asarray(boundaries, dtype=np.int64))
    edges[-1] = len(population)
    return edges


def count_row(population: Population, boundaries: Sequence[int], brokers: int) -> CountRow:
    """Return what some boundaries give.

    Args:
        population: The topics.
        boundaries: Of all bundles, from 0 to 0xffffffff.
        brokers: How many brokers may serve the namespace.
    """
    edges = topic_edges(population, boundaries)
    loads = np.diff(population.running[edges])
    topics = np.diff(edges)
    sums = population.sums
    used = int(np.count_nonzero(topics))
    least, reached = shares(loads, brokers)
    return CountRow(
        bundles=len(topics),
        topics_most=int(topics.max()),
        topics_mean=len(population) / len(topics),
        empty=len(topics) - used,
        largest_share_percent=float(loads.max()) * 100,
        msg_per_s_most=float(np.diff(sums[0][edges]).max()),
        bytes_per_s_most=float(np.diff(sums[1][edges]).max()),
        brokers=min(used, brokers),
        bound_percent=least * 100,
        placed_percent=reached * 100,
    )


def count_rows(population: Population, counts: Sequence[int], brokers: int) -> tuple[CountRow, ...]:
    """Return what each number of equal bundles gives.

    Raises:
        ScenarioError: A number is out of range.
    """
    for one in counts:
        if not 1 <= one <= MOST_BUNDLES:
            raise ScenarioError(
                f"A namespace cannot have {one:,} bundles.", remedy=f"Use numbers from 1 to {MOST_BUNDLES:,}."
            )
    return tuple(count_row(population, equal_boundaries(one), brokers) for one in counts)
