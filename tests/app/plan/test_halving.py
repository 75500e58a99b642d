"""Splits in two that divide a namespace: as few as its topics need."""

from collections.abc import Sequence

import numpy as np
import pytest

from planner.cluster.ranges import bundle_name, middle_of, parse_range
from planner.cluster.snapshot import Snapshot
from planner.explain.diagnosis import diagnose
from planner.explain.halving import parted
from planner.explain.outcome import Outcome
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.edits.registry import BundleSplit
from planner.simulate.generate import generate
from planner.simulate.run import simulate
from planner.simulate.scenario import unchanged
from tests.app.simulate.traces import cluster


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


def parts_after(snapshot: Snapshot, splits: Sequence[BundleSplit]) -> list[str]:
    """Return the bundles after splits in two."""
    names = list(snapshot.bundle_names)
    for one in splits:
        names.remove(one.bundle)
        space, _, ends = one.bundle.rpartition("/")
        low, high = parse_range(ends)
        names += [bundle_name(space, *half) for half in ((low, middle_of(low, high)), (middle_of(low, high), high))]
    return names


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("topics", [2, 3, 8, 12, 40])
def test_splits_part_topics_and_leave_few_bundles_without_any(seed: int, topics: int) -> None:
    """Of 22 bundles that were advised for 8 topics, 14 were empty."""
    snapshot = few_topics(seed, topics)
    (space,) = snapshot.namespaces
    splits = parted(snapshot, space, 64)
    used = sum(topics_in(snapshot, one) > 0 for one in snapshot.bundle_names)
    assert len(splits) <= topics - used
    assert all(topics_in(snapshot, one.bundle) > 1 for one in splits)
    after = parts_after(snapshot, splits)
    assert len(after) <= len(snapshot.bundles) + topics - used
    assert sum(topics_in(snapshot, one) > 0 for one in after) > used or not splits


def test_one_bundle_alone_is_divided() -> None:
    snapshot = few_topics(1, 40)
    (space,) = snapshot.namespaces
    first = snapshot.bundle_names[0]
    low, high = parse_range(first.rpartition("/")[2])
    splits = parted(snapshot, space, 8, first)
    assert splits
    for one in splits:
        start, end = parse_range(one.bundle.rpartition("/")[2])
        assert low <= start < end <= high


@pytest.mark.parametrize("bundle_topics", [2, 3, 5])
def test_where_topics_are_not_listed_there_are_no_more_bundles_than_topics(bundle_topics: int) -> None:
    """Only traffic counted, so that two topics were to be divided into eight bundles."""
    view = cluster((0.9, 0.1, 0.1, 0.1, 0.1, 0.1), {0: (30.0,), 1: (0.1,)}, topics=bundle_topics)
    still = {"loadBalancerAutoBundleSplitEnabled": "false", "loadBalancerSheddingEnabled": "false"}
    found = diagnose(Outcome(simulate(view, unchanged(view.info.pulsar_version, cycles=3, settings=still))))
    (finding,) = (one for one in found if one.code == "bundle_count_too_low")
    assert len(view.bundles) + len(finding.edits) <= 2 * bundle_topics
