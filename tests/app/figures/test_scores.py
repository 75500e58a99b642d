"""Scores of brokers against what they are compared with."""

from dataclasses import replace

import numpy as np
import pytest

from planner.cluster.decisions import Line
from planner.explain.cluster_tables import ResourceShares, resource_frame, resource_shares, resource_text
from planner.figures.scores import broker_scores, resource_map
from planner.figures.theme import LABEL_PX, NARROWEST_PX, number_size
from planner.workspace.samples import load_sample, samples

UPRIGHT_PX = 12
"""Height of a letter: room that a name needs that stands upright."""
COLOURS_AND_MARGINS_PX, LETTER_PX = 150, 6


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


def test_the_limit_is_drawn_once() -> None:
    scores, none = np.array([0.9, 0.5]), np.array([False, False])
    for lines, drawn in (
        ((Line("average", 0.7), Line("overloaded", 0.85)), ["average 70.0 %", "overloaded 85.0 %"]),
        ((Line("average", 0.7),), ["average 70.0 %", "limit 85 %"]),
    ):
        figure = broker_scores(["a", "b"], scores, none, lines, "fraction", limit=0.85)
        assert [shape.name for shape in figure.layout.shapes] == drawn


def test_of_many_brokers_every_second_or_third_is_named() -> None:
    for brokers, step in ((24, 1), (25, 2), (100, 5)):
        figure = broker_scores(
            [f"b-{at}" for at in range(brokers)], np.ones(brokers), np.zeros(brokers, np.bool_), (), "fraction"
        )
        assert figure.layout.xaxis.dtick == step
        assert figure.layout.xaxis.showticklabels is not False


def test_every_resource_of_every_broker_is_drawn_busiest_first() -> None:
    snapshot = load_sample(next(sample for sample in samples() if sample.file == "story.zip"))
    shares = resource_shares(snapshot)
    figure = resource_map(shares)
    drawn = figure.data[0]
    assert next(iter(drawn.x)) == "broker-14"
    names = ["CPU", "Heap memory (not counted)", "Direct memory (not counted)", "Bandwidth in", "Bandwidth out"]
    assert [note.text for note in figure.layout.annotations] == names
    assert [row[0] for row in drawn.customdata] == [name.partition(" (")[0] for name in names]
    frame = resource_frame(snapshot, snapshot.brokers.position[shares.brokers[3]])
    assert [row[3] for row in drawn.z] == frame["% of limit"].tolist()
    assert "broker-14" in resource_text(shares)
    assert "CPU: 76.0 % of the limit" in resource_text(shares)
    assert "Not counted: Heap memory, Direct memory." in resource_text(shares)


@pytest.mark.parametrize("brokers", [3, 12, 20, 30, 100])
def test_a_narrow_window_has_room_for_the_whole_map(brokers: int) -> None:
    """With 20 brokers at 390 px, numbers and names lay over each other: names of rows took most of the width."""
    shares = ResourceShares(
        tuple(f"broker-{at}" for at in range(brokers)),
        ("CPU", "Heap memory"),
        np.full((2, brokers), 88.0),
        (True, False),
    )
    figure = resource_map(shares)
    cells, rows = figure.data[0], figure.layout.yaxis
    assert not rows.showticklabels, "names stand above the rows, not beside them"
    cell_px = NARROWEST_PX / brokers
    assert cell_px * figure.layout.xaxis.dtick >= UPRIGHT_PX
    if cells.texttemplate:
        assert 2 * cells.textfont.size * 0.56 < cell_px
    assert bool(cells.texttemplate) == (brokers <= 20)
    row_px = (figure.layout.height - COLOURS_AND_MARGINS_PX - LETTER_PX * len("broker-99")) / 2
    assert row_px >= LABEL_PX + 12


def test_a_resource_without_a_limit_is_blank() -> None:
    snapshot = load_sample(next(sample for sample in samples() if sample.file == "story.zip"))
    brokers = replace(snapshot.brokers, cpu_limit_percent=np.zeros(len(snapshot.brokers)))
    shares = resource_shares(replace(snapshot, brokers=brokers))
    assert np.isnan(shares.percents[0]).all()
    assert np.isfinite(shares.percents[1:]).all()
    figure = resource_map(shares)
    assert figure.data[0].zmax == 100.0


def test_without_lines_there_is_no_legend() -> None:
    figure = broker_scores(["a"], np.array([30.0]), np.array([False]), (), "msg/s")
    assert not figure.layout.showlegend
    assert figure.layout.yaxis.title.text == "score (msg/s)"


def test_numbers_shrink_with_their_cells_until_they_are_left_out() -> None:
    sizes = [number_size(columns, 2) for columns in (1, 12, 18, 20, 24, 30, 100)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] == 12
    assert sizes[-1] == 0
    assert number_size(20, 3) < number_size(20, 2)
    assert number_size(0, 0) == 12
