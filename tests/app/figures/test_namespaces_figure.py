"""The hash space of one namespace: all of its topics, in few elements, so that a browser draws it quickly."""

import numpy as np
import pytest

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
    stems, heavy, light = (trace for trace in figure.data if trace.type == "scatter")
    # Without gaps it is one element of the page; with gaps it would be one for each topic.
    assert np.isfinite(np.asarray(stems.x, dtype=float)).all()
    assert list(stems.x[1::3]) == hashes.tolist()
    assert list(stems.y[1::3]) == share.tolist()
    assert not np.any(stems.y[::3])
    assert not np.any(stems.y[2::3])
    told = dict(zip([*heavy.x, *light.x], [*heavy.customdata, *light.customdata], strict=True))
    assert told == dict(zip(hashes.tolist(), names, strict=True))
    assert (heavy.mode, light.mode) == ("markers", "none")
    assert len(heavy.x) == min(topics, MARKED)
    assert min(heavy.y, default=1.0) >= max(light.y, default=0.0)
    assert light.hovertemplate == heavy.hovertemplate
    assert "0x%{x:08x}" in heavy.hovertemplate
