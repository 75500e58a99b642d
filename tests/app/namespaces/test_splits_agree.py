"""Whether a namespace will split: the table of numbers of bundles and the split forecast, on random clusters."""

from random import Random

import numpy as np
import pytest

from planner.cluster.load_manager import LoadManager
from planner.cluster.ranges import equal_boundaries
from planner.namespaces.costs import cost_rows
from planner.namespaces.outlook import will_split
from planner.namespaces.population import population_of
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.generate import generate


@pytest.mark.parametrize("seeds", [range(20), range(20, 40), range(40, 60)], ids=str)
def test_the_table_and_the_forecast_agree(seeds: range) -> None:
    said = []
    for seed in seeds:
        random = Random(seed)  # noqa: S311 - no secret
        spec = ClusterSpec(
            brokers=random.randint(2, 6),
            bundles=random.randint(6, 60),
            namespaces=random.randint(1, 5),
            topics=random.randint(50, 900),
            msg_rate_per_s=random.choice([5_000, 60_000, 200_000]),
            topic_skew=random.uniform(0, 1.3),
            load_manager=random.choice(list(LoadManager)),
        )
        snapshot = generate(spec, seed)
        for at, namespace in enumerate(snapshot.namespaces):
            bundles = int(np.count_nonzero(snapshot.bundles.namespace == at))
            topics = population_of(snapshot, namespace)
            assert topics.boundaries == equal_boundaries(bundles)
            (row,) = cost_rows(topics, [bundles], snapshot.settings, spec.load_manager, spec.brokers)
            said.append(will_split(snapshot, namespace))
            assert said[-1] is (row.above_limits > 0), (seed, namespace)
    assert len(set(said)) == 2
