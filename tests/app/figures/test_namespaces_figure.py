"""The hash space of one namespace: all of its topics, in few elements, so that a browser draws it quickly."""

import re

import numpy as np
import pytest

from planner.cluster.ranges import equal_boundaries
from planner.figures.namespaces import hash_line

TOPICS = 1_500
MARKED = 200


@pytest.mark.parametrize("topics", [0, 1, MARKED, TOPICS])
def test_every_topic_has_a_stem_and_a_name_and_the_heaviest_a_point(topics: int) -> None:
    rng = np.random.default_rng(topics)
    hashes = np.sort(rng.choice(2**32, topics, replace=False)).astype(np.int64)
    share = rng.random(topics)
    names = [f"persistent://a/b/t-{at}" for at in range(topics)]
    figure = hash_line(
        (np.array([0, 2**31]), np.array([2**31, 2**32 - 1])),
        np.array([60.0, 40.0]),
        ["b1", "b2"],
        (hashes, share, names),
    )
    stems, ends = (trace for trace in figure.data if trace.type == "scatter")
    # Without gaps it is one element of the page; with gaps it would be one for each topic.
    assert np.isfinite(np.asarray(stems.x, dtype=float)).all()
    assert list(stems.x[1::3]) == hashes.tolist()
    assert list(stems.y[1::3]) == share.astype(np.float32).tolist()
    assert not np.any(stems.y[::3])
    assert not np.any(stems.y[2::3])
    assert dict(zip(ends.x, ends.customdata, strict=True)) == dict(zip(hashes.tolist(), names, strict=True))
    assert list(ends.y) == share.astype(np.float32).tolist()
    assert "0x%{x:08x}" in ends.hovertemplate
    # All points are one element too: as 200 markers they took a browser longer than 2,000 stems.
    assert not [trace for trace in figure.data if "markers" in (getattr(trace, "mode", None) or "")]
    paths = [shape.path for shape in figure.layout.shapes if shape.type == "path"]
    assert len(paths) == min(topics, 1)
    tops = re.findall(r"L(\d+),[0-9.e-]+L\d+,[0-9.e-]+L\1,", "".join(paths))
    heaviest = np.argsort(-share, kind="stable")[:MARKED]
    assert sorted(map(int, tops)) == sorted(hashes[heaviest].tolist())


@pytest.mark.parametrize(("bundles", "kind"), [(100, "bar"), (1_000, "scatter")])
def test_many_bundles_are_drawn_as_one_outline_for_each_broker(bundles: int, kind: str) -> None:
    """A browser drew a bar, with its border, for each of 1,000 bundles: 2,472 elements, and little of their colours."""
    edges = np.asarray(equal_boundaries(bundles), dtype=np.int64)
    share = np.linspace(0, 1, bundles)
    owners = [f"b{at % 5}" for at in range(bundles)]
    figure = hash_line((edges[:-1], edges[1:]), share, owners, (np.zeros(0, np.int64), np.zeros(0), []))
    upper = [one for one in figure.data if one.yaxis == "y"]
    drawn = [one for one in upper if one.type == kind and one.mode != "none"] if kind == "scatter" else upper
    assert [one.type for one in drawn] == [kind] * 5
    assert sorted(one.name for one in drawn) == sorted(set(owners))
    for one in drawn:
        mine = [at for at in range(bundles) if owners[at] == one.name]
        if kind == "bar":
            assert list(one.y) == share[mine].tolist()
            continue
        assert list(one.y[1::4]) == list(one.y[2::4]) == share[mine].tolist()
        assert list(one.x[::4]) == edges[:-1][mine].tolist()
        assert list(one.x[3::4]) == edges[1:][mine].tolist()
    # A pointer finds each bundle, drawn as one or not.
    told = [row[0] for one in upper if one.customdata is not None for row in one.customdata]
    assert len(told) == len(set(told)) == bundles


def test_titles_are_above_what_is_drawn() -> None:
    """They were written on the last bundle and the last topics, where these are as high as any."""
    edges = np.asarray(equal_boundaries(4), dtype=np.int64)
    figure = hash_line(
        (edges[:-1], edges[1:]), np.full(4, 25.0), ["b"] * 4, (edges[1:] - 5, np.full(4, 12.5), ["a", "b", "c", "d"])
    )
    assert figure.layout.yaxis.range[1] > 1.3 * 25
    assert figure.layout.yaxis2.range[1] > 1.3 * 12.5
