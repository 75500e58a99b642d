"""The raster shows what the bundles hold."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.cluster.ranges import FULL_HIGH, HASH_SPACE
from planner.cluster.snapshot import Snapshot
from planner.cluster.tables import make_bundles
from planner.explain.cluster_tables import measure
from planner.figures.hash_space import COLUMNS, MAX_BARS, bundle_bars, make_raster, raster_map, topic_positions


def reference(low: list[int], high: list[int], value: list[float]) -> np.ndarray:
    cells = np.full(COLUMNS, np.nan)
    width = HASH_SPACE // COLUMNS
    for a, b, v in zip(low, high, value, strict=True):
        for cell in range(COLUMNS):
            if a < (cell + 1) * width and b > cell * width:
                cells[cell] = v if np.isnan(cells[cell]) else max(cells[cell], v)
    return cells


@given(
    cuts=st.lists(st.integers(1, FULL_HIGH - 1), unique=True, max_size=12),
    values=st.lists(st.floats(0, 1e9), min_size=13, max_size=13),
)
@settings(max_examples=40, deadline=None)
def test_cells_are_the_largest_of_their_bundles(cuts: list[int], values: list[float]) -> None:
    edges = [0, *sorted(cuts), FULL_HIGH]
    low, high = edges[:-1], edges[1:]
    table = make_bundles(low, high=high, namespace=np.zeros(len(low), np.int32))
    raster = make_raster(table, np.array([0]), np.array(values[: len(low)]))
    np.testing.assert_array_equal(raster.values[0], reference(low, high, values[: len(low)]))


def test_narrow_hot_bundle_stays_visible() -> None:
    low, high = [0, 1_000, 1_010], [1_000, 1_010, FULL_HIGH]
    table = make_bundles(low, high=high, namespace=[0, 0, 0])
    raster = make_raster(table, np.array([0]), np.array([1.0, 99.0, 2.0]))
    assert raster.values[0, 0] == 99.0
    assert raster.bundles.tolist() == [3]


def test_rows_come_in_the_order_asked(small: Snapshot) -> None:
    value = small.bundles.topics.astype(float)
    order = np.arange(len(small.namespaces))[::-1].copy()
    one, two = make_raster(small.bundles, order, value), make_raster(small.bundles, order[::-1].copy(), value)
    np.testing.assert_array_equal(one.values, two.values[::-1])
    figure = raster_map(one, [small.namespaces[i] for i in order], "topics")
    assert figure.data[1].customdata[0][0] == small.namespaces[order[0]]


def test_what_nobody_loads_is_no_low_traffic(small: Snapshot) -> None:
    owner = small.bundles.owner.copy()
    owner[0] = -1
    none = np.zeros(len(owner))
    bundles = small.with_owner(owner).bundles
    idle = replace(bundles, msg_throughput_in_bytes_per_s=none, msg_throughput_out_bytes_per_s=none)
    value = measure(replace(small, bundles=idle), "throughput")
    assert np.flatnonzero(np.isnan(value)).tolist() == [0]
    figure = raster_map(make_raster(idle, np.arange(len(small.namespaces)), value), small.namespaces, "MiB/s")
    assert np.isnan(figure.data[0].z).any()
    assert figure.layout.plot_bgcolor != "rgba(0,0,0,0)"


def test_never_more_bars_than_a_browser_draws() -> None:
    low = np.arange(5_000, dtype=np.int64)
    figure = bundle_bars(low, low + 1, np.ones(5_000), "MiB/s", 3)
    assert len(figure.data[0].x) == MAX_BARS


def test_cuts_are_drawn() -> None:
    figure = topic_positions((0, 100), np.array([1, 50]), np.array([1.0, 2.0]), ["a", "b"], "MiB/s", (40, 60))
    assert [s.x0 for s in figure.layout.shapes] == [40, 60]


def test_a_long_namespace_leaves_room_for_the_map(small: Snapshot) -> None:
    long = f"{'t' * 40}/n"
    figure = raster_map(make_raster(small.bundles, np.arange(1), np.ones(len(small.bundles))), [long], "x")
    assert list(figure.layout.yaxis.ticktext) == [f"{'t' * 11}…{'t' * 12}/n"]
    assert {names[0] for names in figure.data[1].customdata} == {long}
