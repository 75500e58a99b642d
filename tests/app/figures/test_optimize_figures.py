"""Figures of the best plan."""

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
