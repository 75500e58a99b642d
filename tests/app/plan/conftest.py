"""A cluster with several brokers, for tests of plans."""

import pytest

from planner.cluster.snapshot import Snapshot
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.generate import generate


@pytest.fixture(scope="module")
def several() -> Snapshot:
    """A generated cluster of several namespaces."""
    return generate(ClusterSpec(brokers=5, namespaces=4, bundles=64, topics=300, msg_rate_per_s=40_000), 3)
