"""In which order bundles of equal traffic are looked at: that of the map that the strategies walk."""

from dataclasses import replace

import numpy as np
import pytest

from planner.cluster.arrays import frozen
from planner.cluster.memory import SheddingMemory
from planner.pulsar.shedding.selection import rank_donors
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.generate import generate


@pytest.mark.parametrize("bundles", [8, 40, 4_000])
@pytest.mark.parametrize("values", [1, 2, 400])
def test_equal_bundles_are_in_the_order_of_the_map(bundles: int, values: int) -> None:
    """Buckets alone tell it of few bundles; of many equal ones some share a bucket."""
    cluster = generate(ClusterSpec(brokers=2, bundles=bundles, topics=bundles * 20, namespaces=4), seed=values)
    draw = np.random.default_rng(values)
    traffic = draw.integers(0, values, len(cluster.bundles)).astype(np.float64)
    known = frozen(draw.random(len(cluster.bundles)) < 0.9)
    cluster = cluster.with_columns(bundles=replace(cluster.bundles, has_data=known))
    rank = cluster.shedding_rank(cluster.settings.release)
    found = rank_donors(cluster, np.array([0, 1]), traffic, SheddingMemory(None), cluster.settings, [])
    expected = [
        sorted((at for at in cluster.bundles_of(broker).tolist() if known[at]), key=lambda at: (-traffic[at], rank[at]))
        for broker in (0, 1)
    ]
    assert sum(map(len, expected)) > bundles / 2
    assert found.bundles.tolist() == [at for mine in expected for at in mine]
