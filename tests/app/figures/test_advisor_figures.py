"""The figures of the advisor hold its numbers, and their words say the same."""

import pytest

from planner.advise.advice import Advice
from planner.advise.advice_text import front_text, holdout_text
from planner.advise.advisor import advise
from planner.advise.objectives import Question
from planner.figures.advisor import front_figure, holdout_figure, sensitivity_figure
from planner.replay.aggregate import DayRow
from planner.simulate.scenario import Scenario

THRESHOLD = "loadBalancerBrokerThresholdShedderPercentage"


def advice(values: dict[int, list[tuple[float, float]]], *, current: bool = True, **asked: object) -> Advice:
    """Deviation and unloads by threshold and day; 10 is the current threshold."""
    names = {value: "now" if value == 10 and current else f"<b>{value}</b>" for value in values}
    rows = [
        DayRow(
            cluster="c",
            scenario=names[value],
            day=f"2027-01-{day:02}",
            cycles=5,
            measures={"mean_std_percent": std, "shed": shed, "moved": 0.0, "topics_disconnected": shed},
        )
        for value, days in values.items()
        for day, (std, shed) in enumerate(days, start=1)
    ]
    scenarios = [
        Scenario(name=name, settings={} if name == "now" else {THRESHOLD: value}) for value, name in names.items()
    ]
    question = Question(**{"balance": ("deviation",), "disruption": ("unloads",), **asked})  # type: ignore[arg-type]
    return advise(rows, scenarios, question)


FOUR = {10: [(10.0, 10.0)] * 6, 90: [(20.0, 0.0)] * 6, 5: [(6.0, 3.0)] * 6, 1: [(5.0, 40.0)] * 6}


class TestFront:
    def test_marks_and_lines(self) -> None:
        figure = front_figure(advice(FOUR))
        traces = {trace.name: trace for trace in figure.data}
        assert list(traces["Pareto front"].x) == [5, 6, 20]
        assert list(traces["Pareto front"].y) == [240, 18, 0]
        assert (list(traces["current settings"].x), list(traces["recommended"].x)) == ([10], [6])
        said = [note.text for note in figure.layout.annotations]
        assert said == ["<b>Recommended</b>", "<b>Current</b>", "&lt;b&gt;1&lt;/b&gt;", "&lt;b&gt;90&lt;/b&gt;"]
        ways = [(note.ay > 0) for note in figure.layout.annotations[:2]]
        assert ways[0] is not ways[1]
        assert "Mean deviation of usage (points)" in figure.layout.xaxis.title.text

    def test_names_are_no_markup(self) -> None:
        (mark,) = [trace for trace in front_figure(advice(FOUR)).data if trace.name == "recommended"]
        assert list(mark.text) == ["&lt;b&gt;5&lt;/b&gt;"]

    def test_several_objectives_are_an_index(self) -> None:
        figure = front_figure(advice(FOUR, disruption=("unloads", "topics")))
        assert "disruption index (lower is better)" in figure.layout.yaxis.title.text

    def test_the_knee_is_marked_where_a_weight_chooses_another(self) -> None:
        names = [trace.name for trace in front_figure(advice(FOUR, weight=1.0)).data]
        assert "balanced choice" in names
        assert "balanced choice" not in [trace.name for trace in front_figure(advice(FOUR)).data]

    def test_words(self) -> None:
        said = front_text(advice(FOUR))
        assert "3 of 4 settings are Pareto-optimal" in said
        assert "The current settings are not Pareto-optimal" in said
        mean = (10 + 20 + 6 + 5) / 4
        assert f"balance {100 * 4 / mean:.1f} % better" in said
        assert "current settings are among them" in front_text(advice({10: [(1, 1)], 5: [(2, 2)]}))
        assert "Recommended: <b>5</b>" in said
        assert "Best candidate: <b>5</b>" in front_text(advice(FOUR, current=False))

    def test_only_one_label_where_the_current_settings_are_recommended(self) -> None:
        figure = front_figure(advice({10: [(1, 1)], 5: [(2, 2)]}))
        assert [note.text for note in figure.layout.annotations] == ["<b>Keep current</b>"]


def test_sensitivity_shows_how_far_a_setting_can_move() -> None:
    (found,) = advice(FOUR, loss_percent=400).sensitivity
    figure = sensitivity_figure(found)
    assert [list(trace.x) for trace in figure.data] == [["1", "5", "10", "90"]] * 2
    assert list(figure.data[0].marker.symbol) == ["circle", "star", "circle-open", "circle"]
    (band,) = figure.layout.shapes
    assert (band.x0, band.x1) == pytest.approx((-0.4, 1.4))


class TestHoldout:
    def test_days_and_band(self) -> None:
        found = advice({10: [(10, 10)] * 3, 5: [(1, 1), (1, 1), (20, 20)]}).holdout
        assert found is not None
        figure = holdout_figure(found)
        assert [trace.name for trace in figure.data] == ["current settings", "chosen on the first days"] * 2
        assert list(figure.data[0].x) == [f"2027-01-{day:02}" for day in (1, 2, 3)]
        now, chosen = figure.data[0].y, figure.data[1].y
        assert chosen[0] < now[0]
        assert chosen[2] > now[2]
        assert {(shape.x0, shape.x1) for shape in figure.layout.shapes} == {(1.5, 2.5)}
        said = holdout_text(found)
        assert "Chosen on the first 2 of 3 days, tested on the rest" in said
        assert "does not hold up" in said

    def test_a_choice_that_holds_is_said(self) -> None:
        found = advice({10: [(10, 10)] * 3, 5: [(1, 1)] * 3}).holdout
        assert found is not None
        assert "holds up. On the remaining days, no other setting" in holdout_text(found)
