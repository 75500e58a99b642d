"""What each number of bundles costs: lookups when one moves, metadata, reports, and the splits that follow."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from planner.cluster.arrays import BoolArray, Int64Array
from planner.cluster.load_manager import LoadManager
from planner.cluster.names import MAX_NUMBER_OF_BUNDLES_IN_BUNDLE_LOAD_REPORT, NAMESPACE_MAXIMUM_BUNDLES
from planner.cluster.ranges import equal_boundaries
from planner.cluster.settings import Settings
from planner.namespaces.counts import topic_edges
from planner.namespaces.population import Population
from planner.pulsar.splitting.limits import DIVISIBLE_TOPICS, SplitLoads, limits_of

_NODES: Final = {LoadManager.MODULAR: 2, LoadManager.EXTENSIBLE: 1}
"""Entries in the metadata for each owned bundle: its owner and its averages; its state in the channel's topic."""


@dataclass(frozen=True, slots=True)
class CostRow:
    """What a number of equal bundles costs.

    Attributes:
        lookups_most: Producers and consumers of the bundle with most of them; each looks its topic up when it moves.
        metadata_entries: Entries that the load manager keeps for its bundles.
        reported_bundles: Bundles of it in the load reports of all brokers, if they share them evenly.
        above_limits: Bundles above a limit that automatic splits could divide; none where these are off.
        will_split: Those of them that are split before there are `loadBalancerNamespaceMaximumBundles`.
    """

    lookups_most: int
    metadata_entries: int
    reported_bundles: int
    above_limits: int
    will_split: int


def cost_rows(
    population: Population,
    counts: Sequence[int],
    config: Settings,
    manager: LoadManager,
    brokers: int,
    *,
    splits: bool = True,
) -> tuple[CostRow, ...]:
    """Return what each number of equal bundles costs.

    Args:
        population: The topics.
        counts: Numbers of bundles.
        config: Settings in force.
        manager: The load manager that runs.
        brokers: How many brokers may serve the namespace.
        splits: Whether the load manager splits bundles by itself (`splits_by_itself`).
    """
    found = []
    for bundles in counts:
        sessions, above = _divisible(population, equal_boundaries(bundles), config)
        number = int(np.count_nonzero(above)) if splits else 0
        reported = bundles
        if manager is LoadManager.EXTENSIBLE:
            reported = min(bundles, config.integer(MAX_NUMBER_OF_BUNDLES_IN_BUNDLE_LOAD_REPORT) * max(brokers, 1))
        found.append(
            CostRow(
                lookups_most=int(sessions.max()),
                metadata_entries=bundles * _NODES[manager],
                reported_bundles=reported,
                above_limits=number,
                will_split=_with_room(number, bundles, config),
            )
        )
    return tuple(found)


def splitting(population: Population, config: Settings) -> int:
    """Return how many of the bundles that a namespace has are split, where the load manager splits by itself.

    Args:
        population: The topics, with the boundaries there are.
        config: Settings in force.
    """
    _, above = _divisible(population, population.boundaries, config)
    return _with_room(int(np.count_nonzero(above)), len(above), config)


def _with_room(above: int, bundles: int, config: Settings) -> int:
    """Return how many of some bundles above a limit are split before a namespace has the most bundles."""
    return min(above, max(config.integer(NAMESPACE_MAXIMUM_BUNDLES) - bundles, 0))


def _divisible(population: Population, boundaries: Sequence[int], config: Settings) -> tuple[Int64Array, BoolArray]:
    """Return the clients of each bundle, and which are above a limit that automatic splits can divide.

    Shapes (bundles,).
    """
    edges = topic_edges(population, boundaries)
    rates, sizes = population.sums
    topics, sessions = np.diff(edges), np.diff(population.sessions[edges])
    loads = SplitLoads(topics, sessions, np.diff(rates[edges]), np.diff(sizes[edges]), limits_of(config))
    return sessions, (loads.exceeded() > 0) & (topics >= DIVISIBLE_TOPICS)


def after_splits(population: Population, bundles: int, config: Settings) -> int:
    """Return how many bundles automatic splits make of a number of equal ones: they halve ranges up to the maximum.

    Args:
        population: The topics.
        bundles: The number.
        config: Settings in force.
    """
    maximum = config.integer(NAMESPACE_MAXIMUM_BUNDLES)
    boundaries = np.asarray(equal_boundaries(bundles), dtype=np.int64)
    while (room := maximum - (len(boundaries) - 1)) > 0:
        _, above = _divisible(population, boundaries.tolist(), config)
        split = np.flatnonzero(above & (np.diff(boundaries) > 1))[:room]
        if not len(split):
            break
        middle = (boundaries[split] + boundaries[split + 1]) // 2
        boundaries = np.insert(boundaries, split + 1, middle)
    return len(boundaries) - 1
