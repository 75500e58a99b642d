"""Counters as cells, lines and pairs."""

import numpy as np

from planner.figures.counters import counter_grid, counter_lines, paired_scores


def test_cells_hold_counts_and_are_empty_where_nothing_counts() -> None:
    figure = counter_grid(["a", "b"], np.array([[1.0, 2.0, 0.0], [0.0, 1.0, 2.0]]), 3.0, [(0, 3)], "unloads")
    cells, marks = figure.data
    assert np.isnan(cells.z[0][2])
    assert cells.z[1][2] == 2
    assert [list(row) for row in cells.text] == [["1", "2", ""], ["", "1", "2"]]
    assert (cells.zmin, cells.zmax) == (0, 3)
    assert (list(marks.x), len(marks.y)) == ([3], 1)
    assert cells.y[0] == marks.y[0]
    assert [note.text for note in figure.layout.annotations] == ["a", "b"]


def test_many_cycles_are_not_numbered() -> None:
    figure = counter_grid(["a"], np.ones((1, 60)), 8.0, [], "unloads")
    assert figure.data[0].text is None
    assert figure.layout.xaxis.range == (0.5, 60.5)


def test_pairs_are_lines_from_the_lower_to_the_higher_score() -> None:
    figure = paired_scores([("a", 20.0, "b", 80.0), ("c", 50.0, "c", 50.0)], 15, 40)
    assert [list(trace.x) for trace in figure.data] == [[20.0, 80.0], [50.0, 50.0]]
    assert [note.text for note in figure.layout.annotations] == ["a ↔ b", "c"]
    assert figure.data[0].line.color != figure.data[1].line.color


def test_lines_show_the_limit_and_the_cycles_that_fire() -> None:
    figure = counter_lines({"hits": [1.0, 2.0, 0.0]}, 2.0, "needed", [3], "hits")
    assert list(figure.data[0].y) == [1.0, 2.0, 0.0]
    assert sorted(shape.x0 for shape in figure.layout.shapes if shape.x0 == shape.x1) == [3]


def test_no_title_stands_where_a_long_legend_begins() -> None:
    """On a phone each name has a line of its own, and the legend moves up to the axis."""
    figure = counter_lines({f"pulsar-broker-{at}": [1.0, 2.0] for at in range(4)}, 2.0, "needed", [], "hits")
    assert not figure.layout.xaxis.title.text
    assert (figure.layout.xaxis.tickprefix, figure.layout.xaxis.showtickprefix) == ("cycle ", "first")
