"""Small random clusters of both load managers: few or many bundles, calm or busy, even or skewed topics."""

from random import Random

from planner.cluster.load_manager import LoadManager
from planner.cluster.snapshot import Snapshot
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.generate import generate


def random_cluster(seed: int) -> Snapshot:
    """Return a cluster; the same seed gives the same one."""
    random = Random(seed)  # noqa: S311 - no secret
    spec = ClusterSpec(
        brokers=random.randint(2, 6),
        bundles=random.randint(4, 40),
        namespaces=random.randint(1, 3),
        topics=random.randint(50, 600),
        msg_rate_per_s=random.choice([5_000, 30_000, 60_000, 120_000]),
        topic_skew=random.uniform(0, 1.3),
        load_manager=random.choice(list(LoadManager)),
    )
    return generate(spec, seed)


def few_bundles(seed: int) -> Snapshot:
    """Return a cluster with fewer bundles than its brokers can share; the same seed gives the same one."""
    random = Random(seed)  # noqa: S311 - no secret
    spec = ClusterSpec(
        brokers=random.randint(3, 8),
        bundles=random.randint(2, 6),
        namespaces=random.randint(1, 2),
        topics=random.randint(100, 600),
        msg_rate_per_s=random.choice([20_000, 60_000, 120_000]),
        topic_skew=random.uniform(0, 0.8),
        load_manager=random.choice(list(LoadManager)),
    )
    return generate(spec, seed)
