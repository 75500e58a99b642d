"""Rates out of counters, and the ranges of bundles over time."""

from itertools import pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.cluster.hashing import topic_hash
from planner.cluster.ranges import FULL_HIGH, bundle_of_hash
from planner.history.layout import Layout
from planner.history.rates import CounterRates, increases

MINUTE = 60_000


def rates_of(times: list[int], values: list[float], moved: list[bool] | None = None) -> list[float]:
    found = increases(
        np.zeros(len(times), dtype=np.int64),
        np.array(times) * MINUTE,
        np.array(values),
        max_gap_ms=5 * MINUTE,
        moved=None if moved is None else np.array(moved),
    )
    with np.errstate(invalid="ignore"):
        rates: list[float] = (found.amount / found.seconds).tolist()
    return rates


def test_counter_that_fell_began_anew_at_zero() -> None:
    assert rates_of([0, 1, 2, 3], [600, 1_200, 120, 180])[1:] == [10.0, 2.0, 1.0]


def test_moved_topic_began_anew_even_if_it_shows_more() -> None:
    assert rates_of([0, 1, 2], [600, 1_200, 1_800], [False, True, False])[1:] == [20.0, 10.0]


def test_nothing_is_known_over_a_gap_nor_at_the_first_sample() -> None:
    first, second, third = rates_of([0, 6, 7], [0, 600, 660])
    assert np.isnan([first, second]).all()
    assert third == 1.0


def test_samples_of_the_same_moment_count_once() -> None:
    found = increases(
        np.zeros(4, dtype=np.int64),
        np.array([0, 1, 1, 2]) * MINUTE,
        np.array([0.0, 9.0, 60.0, 120.0]),
        max_gap_ms=10**9,
    )
    assert found.repeated.tolist() == [False, True, False, False]
    assert found.amount.tolist() == [0.0, 0.0, 60.0, 60.0]


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(1, 4 * MINUTE), st.integers(0, 10**6), st.booleans()), max_size=40
    ),
    st.integers(1, 5),
)
def test_what_was_counted_is_found_however_it_is_fed(steps: list[tuple[int, int, int, bool]], pieces: int) -> None:
    """Counters with restarts at known moments: the sum of all increases is what was counted since the first look."""
    shown = dict.fromkeys(range(4), 0)
    seen: set[int] = set()
    expected = np.zeros(4)
    rows: list[tuple[int, int, int, bool]] = []
    at = 0
    last = dict.fromkeys(range(4), 0)
    for counter, gap, amount, restart in steps:
        at += gap
        if at - last[counter] > 5 * MINUTE and counter in seen:
            seen.discard(counter)  # a gap: what was counted over it is not known
        shown[counter] = amount if restart else shown[counter] + amount
        if counter in seen:
            expected[counter] += amount
        seen.add(counter)
        last[counter] = at
        rows.append((counter, at, shown[counter], restart))
    rates = CounterRates(5 * MINUTE)
    rates.grow(4)
    for piece in np.array_split(np.arange(len(rows)), pieces):
        chosen = [rows[i] for i in piece]
        columns = [np.array([row[i] for row in chosen]) for i in range(4)]
        rates.feed(columns[0].astype(np.int64), columns[1], columns[2].astype(float), columns[3].astype(bool))
    assert rates.amount[:4].tolist() == expected.tolist()


def test_rate_is_kept_until_the_next_sample_and_forgotten_when_asked() -> None:
    rates = CounterRates(5 * MINUTE)
    one = np.array([1])
    rates.feed(one, np.array([0]), np.array([0.0]))
    assert np.isnan(rates.take()[1])
    rates.feed(one, np.array([MINUTE]), np.array([60.0]))
    assert rates.take()[1] == rates.take()[1] == 1.0
    rates.forget(one)
    rates.feed(one, np.array([2 * MINUTE]), np.array([90.0]))
    assert np.isnan(rates.take()[1])


def name(low: int, high: int, namespace: str = "a/b") -> str:
    return f"{namespace}/0x{low:08x}_0x{high:08x}"


def shape(layout: Layout) -> list[tuple[int, int]]:
    ranges = layout.ranges()
    return list(zip(ranges.low.tolist(), ranges.high.tolist(), strict=True))


def claim(layout: Layout, numbers: list[int], time_ms: int) -> list[bool]:
    there: list[bool] = layout.claim(np.array(numbers), np.full(len(numbers), time_ms)).tolist()
    return there


HALF, QUARTER = 0x80000000, 0x40000000


def test_bundle_that_loads_late_was_there_before() -> None:
    layout = Layout(10)
    layout.start({name(0, QUARTER): 0, name(QUARTER, HALF): 500})
    assert shape(layout) == [(0, QUARTER), (QUARTER, HALF), (HALF, FULL_HIGH)]
    assert layout.changes == 0


def test_split_shows_when_a_child_is_spoken_of() -> None:
    layout = Layout(1_000)
    layout.start({name(0, HALF): 0, name(HALF, FULL_HIGH): 0, name(0, QUARTER): 50, name(QUARTER, HALF): 55})
    parent, child, sibling = (layout.number[name(*r)] for r in ((0, HALF), (0, QUARTER), (QUARTER, HALF)))
    assert shape(layout) == [(0, HALF), (HALF, FULL_HIGH)]
    assert claim(layout, [parent], 40) == [True]
    assert claim(layout, [child], 50) == [True]
    assert shape(layout) == [(0, QUARTER), (QUARTER, HALF), (HALF, FULL_HIGH)]
    assert layout.ranges().bundle.tolist()[1] == -1  # nobody spoke of the sibling yet
    assert claim(layout, [parent], 60) == [False]  # by a broker that does not know of the split yet
    assert claim(layout, [sibling], 65) == [True]
    assert shape(layout) == [(0, QUARTER), (QUARTER, HALF), (HALF, FULL_HIGH)]
    assert layout.changes == 1


def test_namespace_made_anew_gets_its_coarse_bundles_back() -> None:
    layout = Layout(100)
    layout.start({name(0, QUARTER): 0, name(QUARTER, FULL_HIGH): 0, name(0, FULL_HIGH): 500})
    numbers = [layout.number[n] for n in (name(0, QUARTER), name(QUARTER, FULL_HIGH), name(0, FULL_HIGH))]
    claim(layout, numbers[:2], 0)
    assert claim(layout, [numbers[2]], 100) == [False]
    assert claim(layout, [numbers[2]], 500) == [True]
    assert shape(layout) == [(0, FULL_HIGH)]


@settings(deadline=None)
@given(st.lists(st.integers(1, FULL_HIGH - 1), max_size=12, unique=True), st.randoms(use_true_random=False))
def test_splits_in_any_order_of_reports_always_tile(cuts: list[int], random: Random) -> None:
    edges = [0, FULL_HIGH]
    spoken = [(0, FULL_HIGH, 0)]
    for step, cut in enumerate(cuts, 1):
        at = next(i for i in range(len(edges) - 1) if edges[i] < cut < edges[i + 1])
        spoken += [(edges[at], cut, step), (cut, edges[at + 1], step)]
        edges.insert(at + 1, cut)
    random.shuffle(spoken)
    layout = Layout(10**9)
    layout.start({name(low, high): at for low, high, at in spoken})
    for low, high, at in sorted(spoken, key=lambda s: s[2]):
        claim(layout, [layout.number[name(low, high)]], at)
        found = shape(layout)
        assert found[0][0] == 0
        assert found[-1][1] == FULL_HIGH
        assert all(a[1] == b[0] for a, b in pairwise(found))
    assert shape(layout) == list(pairwise(edges))
    for topic in ("persistent://a/b/x", "persistent://a/b/y"):
        where = layout.ranges().of_hashes(np.array([0]), np.array([topic_hash(topic)]))
        assert where.tolist() == [bundle_of_hash(edges, topic_hash(topic))]


def test_snapshot_says_what_there_is() -> None:
    layout = Layout(10**6)
    layout.start({name(0, FULL_HIGH): 0, name(0, HALF): 5})
    claim(layout, [layout.number[name(0, HALF)]], 5)
    layout.replace([layout.number[name(0, FULL_HIGH)]], 6)
    assert shape(layout) == [(0, FULL_HIGH)]
    assert layout.knows("a/b")
    assert not layout.knows("a/c")
    assert layout.ranges().of_hashes(np.array([0]), np.array([FULL_HIGH])).tolist() == [-1]


def test_several_namespaces_are_apart() -> None:
    layout = Layout(10)
    layout.start({name(0, FULL_HIGH, "a/z"): 0, name(0, HALF, "a/b"): 0})
    assert layout.ranges().namespaces == ("a/b", "a/z")
    assert shape(layout) == [(0, HALF), (HALF, FULL_HIGH), (0, FULL_HIGH)]
    with pytest.raises(KeyError):
        claim(layout, [layout.number["a/c"]], 0)
