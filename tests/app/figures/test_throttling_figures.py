"""Figures of the Throttling page draw the numbers they are given."""

import numpy as np

from planner.figures.throttling import broker_bars, dispatch_timeline, scenario_lines

ENDS = np.array([1.0, 2.0, 3.0])


def test_the_timeline_has_all_five_lines() -> None:
    figure = dispatch_timeline(
        ENDS,
        demand=np.array([30.0, 30, 30]),
        allowed=np.array([10.0, 0, np.nan]),
        delivered=np.array([11.0, 0, 9]),
        debt=np.array([0.0, 1, 0, 0]),
        waiting=np.array([10.0, 20, 40, 61]),
        unit="messages in 1 s",
    )
    by_name = {trace.name: trace for trace in figure.data}
    assert set(by_name) == {"demand", "allowed", "delivered", "debt", "backlog"}
    assert list(by_name["delivered"].y) == [11, 0, 9]
    assert list(by_name["delivered"].x) == [0, 1, 2]
    assert list(by_name["debt"].x) == [0, 1, 2, 3]
    assert figure.layout.yaxis.title.text == "messages in 1 s"


def test_a_demand_far_beyond_does_not_press_the_rest_flat() -> None:
    much = np.array([3000.0, 3000, 3000])
    few = np.array([10.0, 0, 10])
    flat = np.zeros(4)
    figure = dispatch_timeline(ENDS, demand=much, allowed=few, delivered=few, debt=flat, waiting=flat, unit="messages")
    assert tuple(figure.layout.yaxis.range) == (0, 20)
    assert "3,000" in figure.layout.annotations[0].text


def test_scenarios_keep_their_order() -> None:
    figure = scenario_lines(ENDS, {"now": ENDS, "edited": ENDS * 2}, "backlog (messages)")
    assert [trace.name for trace in figure.data] == ["now", "edited"]
    assert list(figure.data[1].y) == [2, 4, 6]


def test_unknown_bandwidths_are_left_out() -> None:
    values = np.array([1.0, 2.0])
    nothing = np.full(2, np.inf)
    figure = broker_bars(["b1", "b2"], values, values, values, np.array([np.nan, 9.0]), nothing)
    bandwidth = next(trace for trace in figure.data if trace.name == "bandwidth")
    assert list(bandwidth.y) == ["b2"]
    assert list(bandwidth.x) == [9]
    assert "broker's own limit" not in {trace.name for trace in figure.data}
    stacked = next(trace for trace in figure.data if trace.name == "dispatched without a limit")
    assert list(stacked.base) == [1, 2]
