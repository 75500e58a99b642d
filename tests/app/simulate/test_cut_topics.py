"""Topics are in the bundle whose range holds their hash, however often bundles were cut."""

import pickle
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.cluster.arrays import FloatArray, Int64Array
from planner.cluster.tables import TopicTable, make_topics
from planner.simulate.cut_topics import CutTopics
from planner.simulate.renumbering import Renumbering

_WIDTH = 8
"""Width of a bundle at the start."""


def _table(place: list[int], *, known: list[bool]) -> TopicTable:
    """Return topics at places of 4 bundles; one that is not known is in no bundle."""
    names = pa.array([str(at) for at in range(len(place))], pa.large_string())
    bundle = [at // _WIDTH if is_known else -1 for at, is_known in zip(place, known, strict=True)]
    return make_topics(place, name=names, bundle=np.array(bundle, dtype=np.int32))


def _cut(low: Int64Array, rows: Int64Array, edges: list[int]) -> tuple[Renumbering, Int64Array]:
    """Return how bundles are renumbered where some get other edges, and where the bundles begin afterwards."""
    others = np.delete(np.arange(len(low)), rows)
    at = int((others < rows[0]).sum())
    made = at + np.arange(len(edges))
    new = np.zeros(len(others) + len(edges), dtype=np.bool_)
    new[made] = True
    return Renumbering(np.insert(others, at, np.full(len(edges), rows[0])), new, rows), np.insert(
        low[others], at, edges
    )


@given(
    st.lists(st.tuples(st.integers(0, 4 * _WIDTH - 1), st.booleans()), max_size=30),
    st.lists(st.tuples(st.floats(0, 0.999), st.integers(1, 3), st.integers(1, 3)), min_size=1, max_size=5),
)
def test_each_is_where_its_hash_is(topics: list[tuple[int, bool]], cuts: list[tuple[float, int, int]]) -> None:
    table: TopicTable = _table([at for at, _ in topics], known=[known for _, known in topics])
    low: Int64Array = np.arange(4, dtype=np.int64) * _WIDTH
    for share, width, parts in cuts:
        rows = np.arange(int(share * len(low)), min(int(share * len(low)) + width, len(low)))
        end = int(low[rows[-1] + 1]) if rows[-1] + 1 < len(low) else 4 * _WIDTH
        begin = int(low[rows[0]])
        edges = sorted({begin, *(begin + (end - begin) * part // parts for part in range(1, parts))})
        change, low = _cut(low, rows, edges)
        table = CutTopics.of(table, change, low)
        right = [int(np.searchsorted(low, at, side="right")) - 1 if known else -1 for at, known in topics]
        for bundle in range(-1, len(low)):
            assert table.of_bundle(bundle).tolist() == [at for at, place in enumerate(right) if place == bundle]
        if parts == 3:  # a table that somebody asked goes on as one that nobody asked
            assert table.bundle.tolist() == right
    assert table.bundle.tolist() == right
    assert table.by_bundle.tolist() == sorted(range(len(right)), key=right.__getitem__)


def _halved() -> TopicTable:
    low = np.arange(4, dtype=np.int64) * _WIDTH
    change, low = _cut(low, np.array([1]), [_WIDTH, _WIDTH + _WIDTH // 2])
    return CutTopics.of(_table([9, 14, 31], known=[True, True, True]), change, low)


def test_nothing_is_worked_out_before_somebody_asks() -> None:
    table = _halved()
    assert "bundle" not in vars(table)
    assert table.of_bundle(2).tolist() == [1]
    assert "bundle" not in vars(table)
    assert table.bundle.tolist() == [1, 2, 4]
    assert table.bundle is table.bundle


def test_a_copy_with_other_columns_is_cut_again() -> None:
    rates: FloatArray = np.array([1.0, 2.0, 3.0])
    copy = replace(_halved(), msg_rate_in_per_s=rates)
    low = np.array([0, 8, 12, 16, 24], dtype=np.int64)
    change, low = _cut(low, np.array([0]), [0, 4])
    again = CutTopics.of(copy, change, low)
    assert again.bundle.tolist() == [2, 3, 5]
    assert again.msg_rate_in_per_s is rates


def test_it_survives_the_way_to_another_process() -> None:
    assert pickle.loads(pickle.dumps(_halved())).bundle.tolist() == [1, 2, 4]  # noqa: S301 - made here


def test_it_has_no_other_columns_than_every_table() -> None:
    with pytest.raises(AttributeError, match="owner"):
        _ = _halved().owner  # type: ignore[attr-defined]
