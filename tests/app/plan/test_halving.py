"""Splits in two that divide a namespace: as few as its topics need."""

import numpy as np
import pytest

from planner.cluster.ranges import parse_range
from planner.cluster.snapshot import Snapshot
from planner.explain.diagnosis import diagnose
from planner.explain.halving import halved
from planner.explain.outcome import Outcome
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.edits.registry import BundleSplit
from planner.simulate.generate import generate
from planner.simulate.run import simulate
from planner.simulate.scenario import unchanged


def few_topics(seed: int, topics: int = 8) -> Snapshot:
    return generate(ClusterSpec(brokers=6, bundles=2, namespaces=1, topics=topics, msg_rate_per_s=20_000), seed)


def topics_in(snapshot: Snapshot, bundle: str) -> int:
    low, high = parse_range(bundle.rpartition("/")[2])
    hashes = snapshot.topics.hash.astype(np.int64)
    return int(((hashes >= low) & (hashes < high)).sum())


@pytest.mark.parametrize("seed", range(4))
def test_no_split_is_advised_of_a_range_with_a_single_topic(seed: int) -> None:
    """Splits of 39 bundles had been advised for 8 topics."""
    snapshot = few_topics(seed, topics=20)
    found = diagnose(Outcome(simulate(snapshot, unchanged(snapshot.info.pulsar_version))))
    (finding,) = (one for one in found if one.code == "bundle_count_too_low")
    splits = [one for one in finding.edits if isinstance(one, BundleSplit)]
    assert len(splits) > 1
    assert all(topics_in(snapshot, one.bundle) > 1 for one in splits)
    assert f"into {len(snapshot.bundles) + len(splits)}." in finding.remedy


@pytest.mark.parametrize("seed", range(8))
def test_topics_are_as_far_apart_as_in_equal_bundles(seed: int) -> None:
    """Whatever stays wide has one topic at most, which no split would divide."""
    snapshot = few_topics(seed)
    (space,) = snapshot.namespaces
    few, many = halved(snapshot, space, 64, least_topics=2), halved(snapshot, space, 64)
    assert len(few) < len(many) == 62
    assert {one.bundle for one in few} <= {one.bundle for one in many}
    left = {one.bundle for one in many} - {one.bundle for one in few}
    assert all(topics_in(snapshot, bundle) <= 1 for bundle in left)
