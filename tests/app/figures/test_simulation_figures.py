"""Figures of simulations hold the numbers that they are made from."""

import math

import numpy as np
import plotly.graph_objects as go
import pytest

from planner.cluster.decisions import Line
from planner.cluster.text import rounded
from planner.figures.flow import MOST_FLOW_BROKERS, flow_text, move_flow
from planner.figures.simulation import (
    Curve,
    brokers_over_cycles,
    cycle_scores,
    cycle_scores_text,
    heat_map,
    heat_map_text,
    overlaid_curves,
    overlaid_text,
    timeline_text,
)
from planner.figures.theme import CATEGORICAL, short_names
from planner.simulate.event import Event
from planner.simulate.measures import broker_series, cycle_counts
from planner.simulate.moves import relocations
from planner.simulate.trace import Trace
from tests.app.simulate.traces import MB as MIB
from tests.app.simulate.traces import START_MS, shed, trace_of

EVENTS = {
    0: [shed("x", "b1:8080", "b2:8080", 0, 30.0)],
    1: [Event(source="b3:8080", at_ms=START_MS, kind="broker_added"), shed("y", "b1:8080", "b3:8080", 1, 10.0)],
}


def story(brokers: int = 3) -> Trace:
    return trace_of([[0.9, *[0.1] * (brokers - 1)], [0.5] * brokers], EVENTS)


def way(source: str, destination: str, mb_per_s: float) -> Event:
    return Event("x", source, destination, throughput_bytes_per_s=mb_per_s * 1e6, at_ms=START_MS, kind="shed")


class TestTimeline:
    def test_lines_and_bars(self) -> None:
        trace = story()
        series, counts = broker_series(trace), cycle_counts(trace)
        figure = brokers_over_cycles(series, counts, [c.events for c in trace.cycles], limit=0.85, at=1)
        drawn = [one for one in figure.data if isinstance(one, go.Scatter)]
        lines = {line.name: list(line.y) for line in drawn if line.mode == "lines"}
        assert lines["b1"] == pytest.approx([90, 50])
        (bars,) = [bar for bar in figure.data if isinstance(bar, go.Bar)]
        assert list(bars.y) == [1, 1]
        (marks,) = [mark for mark in drawn if mark.mode == "markers"]
        assert (list(marks.x), list(marks.customdata)) == ([2], ["b3:8080 joins"])
        assert lines["mean"] == pytest.approx([(90 + 10 + 10) / 3, 50])
        assert [shape.y0 for shape in figure.layout.shapes if shape.y0 == shape.y1] == [85]

    def test_a_broker_has_the_colour_of_the_ownership_map(self) -> None:
        trace = trace_of([[0.9, 0.1, 0.2], [0.4, 0.6, 0.2]], EVENTS)
        figure = brokers_over_cycles(broker_series(trace), cycle_counts(trace))
        colours = {line.name: line.line.color for line in figure.data if line.name in {"b1", "b2", "b3"}}
        assert colours == dict(zip(("b1", "b2", "b3"), CATEGORICAL, strict=False))

    def test_many_brokers_are_a_band(self) -> None:
        trace = story(40)
        figure = brokers_over_cycles(broker_series(trace), cycle_counts(trace))
        names = [line.name for line in figure.data]
        assert "lowest to highest" in names
        assert "b7" not in names
        (mean,) = [line for line in figure.data if line.name == "mean"]
        assert mean.y[0] == pytest.approx((90 + 39 * 10) / 40)

    def test_a_cycle_without_any_broker_is_a_gap(self) -> None:
        trace = trace_of([[0.9] * 40, [0.0] * 40])
        for line in brokers_over_cycles(broker_series(trace), cycle_counts(trace)).data:
            if line.name in {"mean", "highest", "lowest"}:
                assert line.y[0] == pytest.approx(90)
                assert np.isnan(line.y[1])

    def test_in_words(self) -> None:
        trace = story()
        assert timeline_text(broker_series(trace), cycle_counts(trace)) == (
            "The usage of 3 brokers over 2 cycles: 10 to 90 % as the first begins, 50 to 50 % as the last begins;"
            " deviation 37.7 points, then 0 points; bundles: 2 shed."
        )


class TestHeatMap:
    def test_absent_brokers_are_blank(self) -> None:
        series = broker_series(trace_of([[0.9, 0.1], [0.9, 0.0]]))
        figure = heat_map(series, at=0)
        assert np.asarray(figure.data[0].z).shape == (2, 2)
        assert np.isnan(figure.data[0].z[1][1])
        assert (figure.data[0].zmin, figure.data[0].zmax) == (0, 100)
        assert "The highest is 90 %, on b1:8080 in cycle 1" in heat_map_text(series)


class TestFlow:
    def test_links_are_the_sums(self) -> None:
        figure = move_flow(relocations(story()))
        link, node = figure.data[0].link, figure.data[0].node
        got = {
            (node.customdata[s], node.customdata[t]): v
            for s, t, v in zip(link.source, link.target, link.value, strict=True)
        }
        assert got == {
            ("b1:8080", "b2:8080"): 30,
            ("b1:8080", "b3:8080"): 10,
        }
        assert [note.text for note in figure.layout.annotations] == ["b1", "b2", "b3"]

    def test_names_stand_beside_the_flow(self) -> None:
        figure = move_flow(relocations(story()))
        heights = [1 - note.y for note in figure.layout.annotations]
        assert heights == pytest.approx(list(figure.data[0].node.y))
        assert [note.xanchor for note in figure.layout.annotations] == ["right", "left", "left"]
        assert figure.layout.margin.l > len("b1") * 5

    def test_by_bundles(self) -> None:
        assert sum(move_flow(relocations(story()), by_bundles=True).data[0].link.value) == 2

    def test_many_brokers_are_drawn_together_and_nothing_is_lost(self) -> None:
        ways = [way(f"s{i}.example:1", f"t{i}.example:1", i + 1) for i in range(50)]
        node, link = move_flow(ways).data[0].node, move_flow(ways).data[0].link
        assert len(node.customdata) == 2 * (MOST_FLOW_BROKERS + 1)
        assert sum(link.value) == pytest.approx(50 * 51 / 2 * 1e6 / MIB)
        assert {"s49", "t49", "other brokers"} <= {note.text for note in move_flow(ways).layout.annotations}
        assert flow_text(ways).endswith("Showing the 10 busiest brokers on each side.")

    def test_bundles_without_traffic_are_seen(self) -> None:
        for ways in ([way("a:1", "b:1", 0.0)], [way("a:1", "b:1", 0.0), way("a:1", "c:1", 1e4)]):
            link = move_flow(ways).data[0].link
            assert min(link.value) > 0
            assert link.customdata[0] == ["a:1 → b:1", "1 bundle", 0.0]

    def test_places_go_down_and_stay_inside(self) -> None:
        node = move_flow([way("a:1", f"t{i}:1", i + 1) for i in range(9)]).data[0].node
        right = list(node.y)[1:]
        assert right == sorted(right)
        assert 0 < min(node.y) <= max(node.y) < 1

    def test_in_words(self) -> None:
        expected = "2 moves of 2 bundles with 40 MiB/s, from 1 broker to 2. The largest flow is 30 MiB/s from b1 to b2"
        assert flow_text(relocations(story())).startswith(expected)
        assert flow_text(()) == "No bundle moved from one broker to another."
        assert len(move_flow(()).data[0].link.value) == 0

    def test_what_comes_back_is_no_flow(self) -> None:
        """The largest flow was said to go from a broker to itself."""
        said = flow_text([way("a:1", "a:1", 9e6), way("a:1", "b:1", 1e6)])
        assert "from 1 broker to 2. Of them, 1 came back to the same broker. The largest flow is" in said
        assert said.endswith("from a to b.")
        assert "largest flow" not in flow_text([way("a:1", "a:1", 9e6)])


class TestCurves:
    def test_eight_are_told_apart(self) -> None:
        curves = [Curve(f"s{i}", np.arange(3.0), np.arange(3.0) + i) for i in range(8)]
        figure = overlaid_curves(curves, "cycle", "points")
        assert len({(line.line.color, line.line.dash) for line in figure.data}) == 8
        assert overlaid_text(curves[:2], "points") == "points: s0 from 0 to 2; s1 from 1 to 3."

    def test_nine_are_refused(self) -> None:
        with pytest.raises(ValueError, match="at most 8"):
            overlaid_curves([Curve("s", np.zeros(1), np.zeros(1))] * 9, "cycle", "points")


class TestScores:
    NAMES = ("b1:8080", "b2:8080")

    def test_the_axis_stays(self) -> None:
        drawn = [
            cycle_scores(self.NAMES, np.array(scores), np.array([True, False]), [Line("average", 0.4)], "fraction", 0.9)
            for scores in ([0.9, 0.1], [0.2, np.nan])
        ]
        assert drawn[0].layout.yaxis.range == drawn[1].layout.yaxis.range
        assert list(drawn[0].data[0].x) == list(drawn[1].data[0].x) == ["b1", "b2"]

    def test_what_is_really_used_is_marked(self) -> None:
        drawn = cycle_scores(
            self.NAMES, np.array([0.9, 0.1]), np.zeros(2, np.bool_), (), "fraction", 1.0, actual=np.array([0.5, np.nan])
        )
        (marks,) = [one for one in drawn.data if isinstance(one, go.Scatter)]
        assert marks.y[0] == pytest.approx(50)

    def test_in_words(self) -> None:
        said = cycle_scores_text(self.NAMES, np.array([0.9, 0.1]), np.array([True, False]), "fraction")
        assert said == ("Scores of 2 brokers: the highest 90.0 % (b1), the lowest 10.0 % (b2); b1 shed.")
        unknown = cycle_scores_text(self.NAMES, np.full(2, np.nan), np.array([False, False]), "msg/s")
        assert unknown == "No broker has a score in this cycle."


LONG = "pulsar-production-broker"


@pytest.mark.parametrize(
    ("names", "short"),
    [
        (("a.x.example:8080", "b.x.example:8080"), ["a", "b"]),
        (("a:8080", "b:8080"), ["a", "b"]),
        (("a:8080", "b:8081"), ["a:8080", "b:8081"]),
        (("a.x:8080",), ["a.x:8080"]),
        (("a.x:8080", "b.y:8081"), ["a", "b"]),
        (("a.x:8080", "a.y:8080"), ["a.x", "a.y"]),
        (("10.0.0.1:80", "11.0.0.2:80"), ["10.0.0.1", "11.0.0.2"]),
        (("10.0.0.1:80", "11.0.0.1:80"), ["10.0.0.1", "11.0.0.1"]),
        (("[::1]:80", "10.0.0.7:80", "a.x:80", "b.y.example:80"), ["[::1]", "10.0.0.7", "a", "b"]),
        (("[::1]:80", "10.0.0.7:81", "a.x:1"), ["[::1]:80", "10.0.0.7:81", "a"]),
        (("a.x.example:8080", "added-1:8080"), ["a", "added-1"]),
        ((f"{LONG}-1:80", f"{LONG}-2:80"), ["…broker-1", "…broker-2"]),
        ((f"1-{LONG}:80", f"2-{LONG}:80"), [f"1-{LONG}", f"2-{LONG}"]),
        ((), []),
    ],
)
def test_short_names_leave_out_what_all_share(names: tuple[str, ...], short: list[str]) -> None:
    assert short_names(names) == short


def test_equal_brokers_have_no_deviation_left_over() -> None:
    """Three equal fractions have a standard deviation of 1.4e-17."""
    deviation = float(np.std(np.full(3, 0.1)))
    assert 0 < deviation < 1e-9
    assert rounded(deviation * 100) == "0"
    values = (0.004, -2.5e-8, math.nan, math.inf)
    assert [rounded(value) for value in values] == ["0.004", "-2.5e-08", "unknown", "unlimited"]
