"""Who owns which hash range: colours that stay, marks where something happens."""

import numpy as np
import pytest

from planner.cluster.ranges import HASH_SPACE
from planner.figures.hash_space import make_raster
from planner.figures.ownership import MOST_COLOURS, Mark, ownership_map
from planner.figures.theme import CATEGORICAL
from tests.app.simulate.traces import cluster

OWNERS = ("b1:8080", "b2:8080")


def test_a_broker_keeps_its_colour_when_it_owns_nothing() -> None:
    view = cluster([0.5, 0.5], {0: (10.0,), 1: (10.0,)})
    for owner in (view.bundles.owner.astype(np.float64), np.zeros(2)):
        raster = make_raster(view.bundles, np.array([0]), owner)
        figure = ownership_map(raster, view.namespaces, OWNERS)
        heat = figure.data[0]
        assert (heat.zmin, heat.zmax) == (-0.5, 1.5)
        assert [tuple(step) for step in heat.colorscale] == [
            (0, CATEGORICAL[0]),
            (0.5, CATEGORICAL[0]),
            (0.5, CATEGORICAL[1]),
            (1, CATEGORICAL[1]),
        ]
        half = np.asarray(heat.z).shape[1] // 2
        assert (heat.z[0][0], heat.z[0][half + 1]) == (owner[0], owner[1])
        assert [trace.name for trace in figure.data if trace.showlegend] == ["b1", "b2"]
        assert (figure.layout.legend.yref, figure.layout.legend.yanchor) == ("container", "bottom"), "below the map"


def test_usage_has_one_scale() -> None:
    view = cluster([0.5, 0.5])
    figure = ownership_map(make_raster(view.bundles, np.array([0]), np.full(6, 30.0)), view.namespaces)
    assert (figure.data[0].zmin, figure.data[0].zmax) == (0, 100)


def test_marks_stand_where_it_happens() -> None:
    view = cluster([0.5, 0.5])
    raster = make_raster(view.bundles, np.array([0]), np.zeros(6))
    figure = ownership_map(raster, view.namespaces, OWNERS, [Mark(0, HASH_SPACE / 4, "shed: x")])
    marks = figure.data[-1]
    assert (list(marks.x), list(marks.y), list(marks.customdata)) == ([HASH_SPACE / 4], [0], ["shed: x"])


def test_more_owners_than_colours_are_refused() -> None:
    view = cluster([0.5])
    raster = make_raster(view.bundles, np.array([0]), np.zeros(3))
    with pytest.raises(ValueError, match="at most 8"):
        ownership_map(raster, view.namespaces, [f"b{i}" for i in range(MOST_COLOURS + 1)])
