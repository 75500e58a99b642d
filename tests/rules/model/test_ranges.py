"""Bundle ranges: their text, equal bundles, and in which one a hash lies."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.cluster.errors import FormatError, PulsarError
from planner.cluster.ranges import (
    FULL_HIGH,
    HASH_SPACE,
    bundle_name,
    bundle_of_hash,
    bundles_of_hashes,
    equal_boundaries,
    format_range,
    parse_bundle,
    parse_range,
)

hashes = st.integers(0, FULL_HIGH)
namespaces = st.sets(st.integers(1, FULL_HIGH - 1), max_size=20).map(lambda inner: (0, *sorted(inner), FULL_HIGH))


@given(hashes, hashes)
def test_range_text_round_trips(one: int, other: int) -> None:
    low, high = sorted((one, other))
    if low == high:
        with pytest.raises(FormatError, match="empty"):
            parse_range(format_range(low, high))
    else:
        assert parse_range(format_range(low, high)) == (low, high)
        for namespace in ("t/n", "t/cluster/n"):
            assert parse_bundle(bundle_name(namespace, low, high)) == (namespace, low, high)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0x00000000",
        "0x0_0x1",
        "0x00000000_0xFFFFFFFF",
        "0x00000000-0x40000000",
        " 0x00000000_0x40000000",
        "0x00000000_0x400000000",
        "0x40000000_0x00000000",
    ],
)
def test_other_texts_are_no_range(text: str) -> None:
    with pytest.raises(FormatError) as caught:
        parse_range(text, where="bundles.json")
    assert caught.value.where == "bundles.json"
    assert caught.value.remedy


@pytest.mark.parametrize(
    "name",
    [
        "n/0x00000000_0x40000000",
        "t/n",
        "t/c/n/x/0x00000000_0x40000000",
        "t/c//0x00000000_0x40000000",
        "t /n/0x00000000_0x40000000",
        "t/n/0x40000000_0x0",
    ],
)
def test_other_texts_are_no_bundle(name: str) -> None:
    with pytest.raises(FormatError):
        parse_bundle(name)


def test_equal_bundles_of_the_documents() -> None:
    assert equal_boundaries(1) == (0, FULL_HIGH)
    assert equal_boundaries(3) == (0, 0x55555555, 0xAAAAAAAA, FULL_HIGH)
    assert equal_boundaries(4) == (0, 0x40000000, 0x80000000, 0xC0000000, FULL_HIGH)
    assert equal_boundaries(12)[3] == 0x3FFFFFFF


@pytest.mark.parametrize("count", [0, -1, HASH_SPACE + 1])
def test_impossible_numbers_of_bundles(count: int) -> None:
    with pytest.raises(PulsarError) as caught:
        equal_boundaries(count)
    assert caught.value.exception == "IllegalArgumentException"


@given(st.integers(1, 3000))
def test_equal_bundles_tile(count: int) -> None:
    edges = equal_boundaries(count)
    assert len(edges) == count + 1
    assert (edges[0], edges[-1]) == (0, FULL_HIGH)
    widths = [high - low for low, high in pairwise(edges)]
    assert set(widths[:-1]) <= {HASH_SPACE // count}
    assert 0 <= widths[-1] + 1 - HASH_SPACE // count < count


@given(namespaces, st.lists(st.integers(0, FULL_HIGH - 1), max_size=20))
def test_every_hash_lies_in_exactly_one_bundle(edges: tuple[int, ...], places: list[int]) -> None:
    probes = [*places, *edges[:-1], *(edge - 1 for edge in edges[1:])]
    found = bundles_of_hashes(np.array(edges), np.array(probes, dtype=np.int64))
    for probe, index in zip(probes, found.tolist(), strict=True):
        assert index == bundle_of_hash(edges, probe)
        assert [i for i, (low, high) in enumerate(pairwise(edges)) if low <= probe < high] == [index]


@given(namespaces)
def test_the_very_last_hash_has_no_bundle(edges: tuple[int, ...]) -> None:
    with pytest.raises(PulsarError) as caught:
        bundle_of_hash(edges, FULL_HIGH)
    assert caught.value.exception == "IndexOutOfBoundsException"
    assert bundles_of_hashes(np.array(edges), np.array([FULL_HIGH])).tolist() == [len(edges) - 1]
