"""What each number of bundles costs: lookups when one moves, metadata, reports, and the splits that follow."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from planner.cluster.load_manager import LoadManager
from planner.cluster.names import MAX_NUMBER_OF_BUNDLES_IN_BUNDLE_LOAD_REPORT
from planner.cluster.ranges import equal_boundaries
from planner.cluster.settings import Settings
from planner.namespaces.counts import topic_edges
from planner.namespaces.population import Population
from planner.pulsar.splitting.limits import DIVISIBLE_TOPICS, limits_of

_NODES: Final = {LoadManager.MODULAR: 2, LoadManager.EXTENSIBLE: 1}
"""Entries in the metadata for each owned bundle: its owner and its averages; its state in the channel's topic."""


@dataclass(frozen=True, slots=True)
class CostRow:
    """What a number of equal bundles costs.

    Attributes:
        lookups_most: Producers and consumers of the bundle with most of them; each looks its topic up when it moves.
        metadata_entries: Entries that the load manager keeps for its bundles.
        reported_bundles: Bundles of it in the load reports of all brokers, if they share them evenly.
        above_limits: Bundles above a limit that automatic splits can divide.
    """

    lookups_most: int
    metadata_entries: int
    reported_bundles: int
    above_limits: int


def cost_rows(
    population: Population, counts: Sequence[int], config: Settings, manager: LoadManager, brokers: int
) -> tuple[CostRow, ...]:
    """Return what each number of equal bundles costs.

    Args:
        population: The topics.
        counts: Numbers of bundles.
        config: Settings in force.
        manager: The load manager that runs.
        brokers: How many brokers may serve the namespace.
    """
    clients = np.concatenate(([0], np.cumsum(population.clients)))
    limits = limits_of(config)
    rates, sizes = population.sums
    found = []
    for bundles in counts:
        edges = topic_edges(population, equal_boundaries(bundles))
        topics, sessions = np.diff(edges), np.diff(clients[edges])
        loads = (topics, sessions, np.diff(rates[edges]), np.diff(sizes[edges]))
        above = np.any([load > limit for load, limit in zip(loads, limits, strict=True)], axis=0)
        reported = bundles
        if manager is LoadManager.EXTENSIBLE:
            reported = min(bundles, config.integer(MAX_NUMBER_OF_BUNDLES_IN_BUNDLE_LOAD_REPORT) * max(brokers, 1))
        found.append(
            CostRow(
                lookups_most=int(sessions.max()),
                metadata_entries=bundles * _NODES[manager],
                reported_bundles=reported,
                above_limits=int(np.count_nonzero(above & (topics >= DIVISIBLE_TOPICS))),
            )
        )
    return tuple(found)
