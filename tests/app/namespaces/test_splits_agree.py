"""Whether a namespace will split: the table of numbers of bundles and the split forecast, on random clusters."""

import numpy as np
import pytest

from planner.cluster.ranges import equal_boundaries
from planner.namespaces.costs import cost_rows
from planner.namespaces.outlook import will_split
from planner.namespaces.population import population_of
from tests.app.namespaces.random_clusters import random_cluster


@pytest.mark.parametrize("seeds", [range(20), range(20, 40), range(40, 60)], ids=str)
def test_the_table_and_the_forecast_agree(seeds: range) -> None:
    said = []
    for seed in seeds:
        snapshot = random_cluster(seed)
        manager = snapshot.info.load_manager
        for at, namespace in enumerate(snapshot.namespaces):
            bundles = int(np.count_nonzero(snapshot.bundles.namespace == at))
            topics = population_of(snapshot, namespace)
            assert topics.boundaries == equal_boundaries(bundles)
            (row,) = cost_rows(topics, [bundles], snapshot.settings, manager, len(snapshot.brokers))
            said.append(will_split(snapshot, namespace))
            assert said[-1] is (row.above_limits > 0), (seed, namespace)
    assert len(set(said)) == 2
