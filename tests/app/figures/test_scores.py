"""Scores of brokers against what they are compared with."""

import numpy as np

from planner.cluster.decisions import Line
from planner.figures.scores import broker_scores


def test_scores_are_ranked_and_every_line_is_named() -> None:
    lines = (Line("average", 0.5), Line("average + threshold", 0.6))
    shedding = np.array([False, True, False])
    figure = broker_scores(["a", "b", "c"], np.array([0.2, 0.8, np.nan]), shedding, lines, "fraction")
    bar = figure.data[0]
    assert list(bar.x) == ["b", "a", "c"]
    assert list(bar.y)[:2] == [80.0, 20.0]
    assert bar.customdata[0] == "sheds in the next cycle"
    assert [shape.name for shape in figure.layout.shapes] == ["average 50.0 %", "average + threshold 60.0 %"]
    assert [shape.y0 for shape in figure.layout.shapes] == [50.0, 60.0]
    assert figure.layout.showlegend


def test_of_many_brokers_every_second_or_third_is_named() -> None:
    for brokers, step in ((24, 1), (25, 2), (100, 5)):
        figure = broker_scores(
            [f"b-{at}" for at in range(brokers)], np.ones(brokers), np.zeros(brokers, np.bool_), (), "fraction"
        )
        assert figure.layout.xaxis.dtick == step
        assert figure.layout.xaxis.showticklabels is not False


def test_without_lines_there_is_no_legend() -> None:
    figure = broker_scores(["a"], np.array([30.0]), np.array([False]), (), "msg/s")
    assert not figure.layout.showlegend
    assert figure.layout.yaxis.title.text == "score (msg/s)"
