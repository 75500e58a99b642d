"""Numbers of bundles and cuts, against every possibility where those are few, and on random namespaces."""

from itertools import combinations, product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.cluster.arrays import FloatArray
from planner.cluster.errors import PlannerError
from planner.cluster.hashing import topic_hash
from planner.cluster.ranges import FULL_HIGH, bundle_of_hash, equal_boundaries
from planner.namespaces.counts import count_rows, loads_of, topics_of
from planner.namespaces.cuts import even_boundaries, recommended_cuts
from planner.namespaces.population import Population, population_of_pattern
from planner.namespaces.spread import least_share, reached_share, shares
from planner.simulate.planned_spec import Distribution, PlannedTopics

loads = st.lists(st.floats(0, 100).map(lambda x: round(x, 2)), min_size=1, max_size=7)


def population(hashes: list[int], weights: list[float]) -> Population:
    order = np.argsort(hashes, kind="stable")
    rate = np.array(weights, dtype=np.float64)[order]
    names = pa.array([f"persistent://a/b/{at}" for at in range(len(hashes))])
    return Population("a/b", names, np.array(hashes, dtype=np.int64)[order], rate, rate, np.ones(len(rate), np.int64))


def best_share(values: FloatArray, brokers: int) -> float:
    """The share of the broker with most under the best of all placements."""
    ways = product(range(brokers), repeat=len(values))
    return float(min(np.bincount(way, values, minlength=brokers).max() for way in ways) / values.sum())


@settings(max_examples=150, deadline=None)
@given(loads, st.integers(1, 3))
def test_no_placement_beats_the_bound(values: list[float], brokers: int) -> None:
    given_loads = np.array(values)
    if given_loads.sum() > 0:
        best = best_share(given_loads, brokers)
        assert least_share(given_loads, brokers) == pytest.approx(best, abs=1e-9), "of so few loads it is the best one"
        assert reached_share(given_loads, brokers) == pytest.approx(best, abs=1e-9)


def test_bound_and_placement_of_many_loads_enclose_the_best() -> None:
    """Loads of which every placement is as good as the best known one, by construction: all brokers are full."""
    rng = np.random.default_rng(5)
    for brokers in (2, 5, 12):
        for parts in (3, 8, 40):
            full = [np.diff([0.0, *np.sort(rng.random(parts - 1)), 1.0]) for _ in range(brokers)]
            least, reached = shares(np.concatenate(full), brokers)
            assert least == pytest.approx(1 / brokers)
            assert reached >= 1 / brokers - 1e-9


FEW = {
    "pareto": ([31.33, 21.91, 17.78, 15.32, 13.66], 2),
    "one hot topic of twenty": ([16.8, *[4.38] * 19], 3),
    "one hot topic and nineteen for four brokers": ([18.23, *[4.3] * 19], 5),
}


@pytest.mark.parametrize("kind", FEW)
def test_cuts_of_few_topics_are_as_near_the_bound_as_of_many(kind: str) -> None:
    """Placed heaviest first, these were more than 5 % above the bound, and cut into more bundles than it takes."""
    weights, brokers = FEW[kind]
    hashes = np.linspace(1_000, 2**32 - 1_000, len(weights), dtype=np.int64).tolist()
    cuts = recommended_cuts(population(hashes, weights), brokers)
    assert cuts.is_near
    assert cuts.bound_percent <= cuts.placed_percent + 1e-9


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(1, 50)), min_size=1, max_size=9), st.integers(1, 5), st.data()
)
def test_no_other_cuts_have_a_lighter_heaviest_bundle(
    topics: list[tuple[int, int]], bundles: int, data: st.DataObject
) -> None:
    found = population([place * 1000 + 7 for place, _ in topics], [float(weight) for _, weight in topics])
    inner = data.draw(st.sets(st.integers(1, 40_000), max_size=min(bundles - 1, 2)))
    kept = (0, *sorted(inner), FULL_HIGH)
    boundaries = even_boundaries(found, bundles, kept)
    assert set(kept) <= set(boundaries)
    assert len(boundaries) - 1 <= bundles
    reached = loads_of(found, boundaries).max()
    places = sorted({place * 1000 + 7 for place, _ in topics})[1:]
    tried = [
        loads_of(found, sorted({*kept, *extra})).max()
        for n in range(bundles - (len(kept) - 1) + 1)
        for extra in combinations([place for place in places if place not in inner], n)
    ]
    assert reached <= min(tried) + 1e-9


@pytest.mark.parametrize("count", [1, 3, 4, 32, 1000])
def test_counts_are_those_of_the_map_of_bundles(count: int) -> None:
    names = [f"persistent://a/b/thème-{at}-partition-{at % 7}" for at in range(500)]
    hashes = [topic_hash(name) for name in names]
    found = population(hashes, [1.0] * len(names))
    boundaries = equal_boundaries(count)
    expected = np.bincount([bundle_of_hash(boundaries, one) for one in hashes], minlength=count)
    assert topics_of(found, boundaries).tolist() == expected.tolist()
    (row,) = count_rows(found, [count], 4)
    assert row.topics_most == expected.max()
    assert row.empty == np.count_nonzero(expected == 0)
    assert row.largest_share_percent == pytest.approx(expected.max() / len(names) * 100)


@pytest.mark.parametrize("seed", range(60))
def test_recommended_cuts_are_near_the_bound(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kinds: tuple[Distribution, ...] = ("equal", "skewed", "few carry most")
    group = PlannedTopics(
        pattern=f"persistent://t/n{seed}/x-%d", count=int(rng.integers(30, 3000)), distribution=kinds[seed % 3]
    )
    found, brokers = population_of_pattern(group, seed), int(rng.integers(2, 30))
    cuts = recommended_cuts(found, brokers)
    assert cuts.placed_percent >= cuts.bound_percent - 1e-9
    assert cuts.is_near or cuts.limited_by_topic
    # As many equal ranges are not better.
    (equal,) = count_rows(found, [len(cuts.boundaries) - 1], brokers)
    assert cuts.placed_percent <= max(equal.placed_percent, cuts.bound_percent * 1.05) + 1e-9
    # Bundles never merge: with what there is already, all of it stays.
    kept = recommended_cuts(found, brokers, equal_boundaries(8))
    assert set(equal_boundaries(8)) <= set(kept.boundaries)
    assert set(kept.boundaries) == {*equal_boundaries(8), *kept.new}


@pytest.mark.parametrize("count", [0, -1, 70_000])
def test_a_number_of_bundles_that_cannot_be_is_refused(count: int) -> None:
    with pytest.raises(PlannerError, match=r"cannot have .* bundles"):
        count_rows(population([5], [1.0]), [count], 2)


def test_topics_of_one_hash_stay_together() -> None:
    found = population([100, 100, 100], [1.0, 2.0, 3.0])
    assert even_boundaries(found, 3) == (0, FULL_HIGH)


@pytest.mark.parametrize(("bundles", "brokers"), [(30, 2), (30, 3), (9, 2), (100, 12)])
def test_topics_that_share_one_of_many_bundles_are_cut_apart(bundles: int, brokers: int) -> None:
    """The numbers looked at grew past the last one that can help, and it was never tried."""
    last = equal_boundaries(bundles)[-2]
    found = population([last + 1_000, last + 9_000], [5.0, 5.0])
    cuts = recommended_cuts(found, brokers, equal_boundaries(bundles))
    assert len(cuts.new) == 1
    assert cuts.placed_percent == cuts.bound_percent == 50
