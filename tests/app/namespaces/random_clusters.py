"""Small random clusters of both load managers: few or many bundles, calm or busy, even or skewed topics."""

from random import Random

from planner.cluster.load_manager import LoadManager
from planner.cluster.snapshot import Snapshot
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.generate import generate


def random_cluster(seed: int) -> Snapshot:
    """Return a cluster; the same seed gives the same one."""
    return _drawn(seed, (2, 6), (4, 40), (1, 3), (50, 600), (5_000, 30_000, 60_000, 120_000), 1.3)


def few_bundles(seed: int) -> Snapshot:
    """Return a cluster with fewer bundles than its brokers can share; the same seed gives the same one."""
    return _drawn(seed, (3, 8), (2, 6), (1, 2), (100, 600), (20_000, 60_000, 120_000), 0.8)


def _drawn(
    seed: int,
    brokers: tuple[int, int],
    bundles: tuple[int, int],
    namespaces: tuple[int, int],
    topics: tuple[int, int],
    rates_per_s: tuple[int, ...],
    skew: float,
) -> Snapshot:
    """Return a cluster with numbers from ranges, one of some message rates, and at most so much skew."""
    random = Random(seed)  # noqa: S311 - no secret
    spec = ClusterSpec(
        brokers=random.randint(*brokers),
        bundles=random.randint(*bundles),
        namespaces=random.randint(*namespaces),
        topics=random.randint(*topics),
        msg_rate_per_s=random.choice(rates_per_s),
        topic_skew=random.uniform(0, skew),
        load_manager=random.choice(list(LoadManager)),
    )
    return generate(spec, seed)
