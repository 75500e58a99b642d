"""What the bundle factory refuses, and that whatever it accepts still tiles the hash space."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.cluster.errors import PulsarError
from planner.cluster.ranges import FULL_HIGH, equal_boundaries
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.pulsar.splitting.factory import apply_split
from planner.pulsar.splitting.registry import SPLIT_ALGORITHMS
from planner.pulsar.splitting.request import namespace_boundaries, split_request, topics_listed

HALVES = (0, 0x80000000, FULL_HIGH)
boundaries = st.sets(st.integers(1, FULL_HIGH - 1), max_size=12).map(lambda inner: (0, *sorted(inner), FULL_HIGH))


@pytest.mark.parametrize(
    ("edges", "bundle", "cuts", "exception"),
    [
        ((0, 5, 6, FULL_HIGH), (5, 6), (5,), "IllegalArgumentException"),
        ((0, FULL_HIGH - 1, FULL_HIGH), (FULL_HIGH - 1, FULL_HIGH), (FULL_HIGH - 1,), "IllegalArgumentException"),
        (HALVES, (0, 0x80000000), (0,), "IllegalArgumentException"),
        (HALVES, (0, 0x80000000), (0x80000000,), "IllegalArgumentException"),
        (HALVES, (0x80000000, FULL_HIGH), (FULL_HIGH,), "IllegalArgumentException"),
        (HALVES, (0, 0x80000000), (5, 0x90000000), "IllegalArgumentException"),
        (HALVES, (0, 0x80000000), (-1,), "IllegalArgumentException"),
        (HALVES, (0, 0x80000000), (5, 9, 5), "IllegalArgumentException"),
        (HALVES, (0, 0x40000000), (5,), "ServiceUnitNotReadyException"),
        (HALVES, (0, FULL_HIGH), (5,), "ServiceUnitNotReadyException"),
        (HALVES, (0, 0x40000000), (0x40000000,), "IllegalArgumentException"),
    ],
)
def test_refused(edges: tuple[int, ...], bundle: tuple[int, int], cuts: tuple[int, ...], exception: str) -> None:
    with pytest.raises(PulsarError) as caught:
        apply_split(edges, bundle, cuts)
    assert caught.value.exception == exception


def test_unsorted_cuts_are_sorted() -> None:
    result = apply_split(HALVES, (0, 0x80000000), (9, 5))
    assert result.children == ((0, 5), (5, 9), (9, 0x80000000))
    assert result.boundaries == (0, 5, 9, 0x80000000, FULL_HIGH)


@given(boundaries, st.data())
def test_accepted_splits_tile(edges: tuple[int, ...], data: st.DataObject) -> None:
    """Children cover the parent exactly, boundaries lie strictly inside or are refused, and the rest is untouched."""
    at = data.draw(st.integers(0, len(edges) - 2))
    low, high = edges[at : at + 2]
    near = st.integers(max(low - 3, -1), min(high + 3, FULL_HIGH + 1))
    cuts = data.draw(st.lists(near | st.integers(low, high), min_size=1, max_size=5))
    inside = all(low < cut < high for cut in cuts) and len(set(cuts)) == len(cuts) and high - low > 1
    try:
        result = apply_split(edges, (low, high), cuts)
    except PulsarError:
        assert not inside
        return
    assert inside
    assert result.children == tuple(pairwise((low, *sorted(cuts), high)))
    assert result.boundaries == tuple(sorted({*edges, *cuts}))
    assert all(left < right for left, right in pairwise(result.boundaries))


@pytest.mark.parametrize("algorithm", SPLIT_ALGORITHMS, ids=lambda a: a.name)
def test_every_bundle_of_a_cluster(algorithm: Any, small: Snapshot) -> None:
    """Whatever an algorithm cuts from a real request, the namespace still tiles and no topic is lost."""
    config = Settings(
        {"loadBalancerNamespaceBundleMaxMsgRate": 100, "loadBalancerNamespaceBundleMaxBandwidthMbytes": 1}
    )
    cut = 0
    for bundle in range(len(small.bundles)):
        low, high = int(small.bundles.low[bundle]), int(small.bundles.high[bundle])
        request = split_request(small, bundle, positions=(low + (high - low) // 3,))
        cuts = algorithm.boundaries(request, config).boundaries
        if not cuts:
            continue
        result = apply_split(namespace_boundaries(small, int(small.bundles.namespace[bundle])), (low, high), cuts)
        assert result.boundaries[0] == 0
        assert result.boundaries[-1] == FULL_HIGH
        edges = [low, *(child[1] for child in result.children)]
        assert request.topic_hashes is not None
        counts, _ = np.histogram(request.topic_hashes, bins=edges)
        assert counts.sum() == len(request.topic_hashes) == small.bundles.topics[bundle]
        cut += 1
    assert cut > len(small.bundles) // 4


def test_request_of_a_snapshot_bundle(small: Snapshot) -> None:
    assert topics_listed(small)
    bundle = int(np.argmax(small.bundles.topics))
    request = split_request(small, bundle, force=True)
    rows = small.topics.of_bundle(bundle)
    assert request.topic_hashes is not None
    assert request.topic_hashes.tolist() == small.topics.hash[rows].tolist()
    rate = small.bundles.msg_rate_in_per_s[bundle] + small.bundles.msg_rate_out_per_s[bundle]
    assert request.msg_rate_per_s.sum() == pytest.approx(rate)
    assert request.force
    assert request.positions is None


def test_boundaries_of_every_namespace(small: Snapshot) -> None:
    for namespace in range(len(small.namespaces)):
        edges = namespace_boundaries(small, namespace)
        assert edges == equal_boundaries(len(edges) - 1)
        assert len(edges) == (small.bundles.namespace == namespace).sum() + 1
