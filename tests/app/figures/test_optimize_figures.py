"""Figures of the best plan."""

from itertools import combinations

from planner.figures.optimize import frontier_figure
from planner.optimize.answer import best_plan
from planner.optimize.question import Question
from tests.app.namespaces.random_clusters import random_cluster


def test_names_of_strategies_do_not_lie_on_each_other() -> None:
    plan = best_plan(random_cluster(0), Question(moves=2, rounds=1))
    others = {"UniformLoadShedder": (4, 21.0), "AvgShedder": (4, 21.4), "OverloadShedder": (0, 21.0)}
    notes = {note.text: (note.x, note.y) for note in frontier_figure(plan, plan, 85.0, others).layout.annotations}
    assert notes["UniformLoadShedder<br>AvgShedder"] == (4, 21.0)
    assert notes["OverloadShedder"] == (0, 21.0)
    apart = {**others, "AvgShedder": (4, 40.0)}
    notes = {note.text: (note.x, note.y) for note in frontier_figure(plan, plan, 85.0, apart).layout.annotations}
    assert notes["AvgShedder"] == (4, 40.0)


def test_names_of_strategies_beside_each_other_do_not_overlap_in_a_narrow_window() -> None:
    plan = best_plan(random_cluster(0), Question(moves=2, rounds=1))
    others = {
        "ThresholdShedder": (14, 78.4),
        "OverloadShedder": (2, 77.4),
        "UniformLoadShedder": (9, 75.9),
        "AvgShedder": (12, 77.9),
    }
    boxes = []
    for note in frontier_figure(plan, plan, 85.0, others).layout.annotations:
        if note.text in others:
            side = -1 if note.xanchor == "right" else 1
            near, width = note.x / 14 * 280, len(note.text) * 6
            up = note.y / 5 * 13 + (note.yshift or 0)
            boxes.append((min(near, near + side * width), max(near, near + side * width), up))
    assert len(boxes) == len(others)
    for one, other in combinations(boxes, 2):
        assert one[1] <= other[0] or other[1] <= one[0] or abs(one[2] - other[2]) >= 12
