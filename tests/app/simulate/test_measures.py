"""Measures of simulations, on traces made by hand and on random ones."""

import math
from collections.abc import Sequence
from dataclasses import fields
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.simulate.event import Event
from planner.simulate.measures import (
    MEASURES,
    Comparison,
    Summary,
    blast_radius,
    broker_series,
    compare,
    cycle_counts,
    imbalance,
    imbalance_series,
    settled_after,
    summary_of_cycles,
)
from planner.simulate.moves import disconnections, relocations, returns, thrashing_percent
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario
from planner.simulate.trace import Trace
from planner.simulate.usage_model import at_the_end
from tests.app.simulate.traces import MB, MINUTE_MS, START_MS, cluster, shed, trace_of


class TestOverTime:
    def test_each_broker_at_each_cycle(self) -> None:
        series = broker_series(trace_of([[0.8, 0.2], [0.6, 0.4]]))
        assert series.brokers == ("b1:8080", "b2:8080")
        assert series.usage.tolist() == [[0.8, 0.2], [0.6, 0.4]]
        assert series.minutes.tolist() == [0, 1]
        assert series.bundles.tolist() == [[3, 3], [3, 3]]
        assert series.throughput_bytes_per_s[0].tolist() == [40 * MB, 40 * MB]

    def test_brokers_that_come_and_go_keep_their_column(self) -> None:
        views = [cluster([0.5, 0.5]), cluster([0.5, 0.5, 0.1])]
        series = broker_series(trace_of([[0.5, 0.5], [0.5, 0.0, 0.1]], view=views))
        assert series.brokers == ("b1:8080", "b2:8080", "b3:8080")
        assert np.isnan(series.usage[0, 2])
        assert np.isnan(series.usage[1, 1])
        assert series.present.tolist() == [[True, True, False], [True, False, True]]

    def test_spread_over_those_that_are_there(self) -> None:
        spread = imbalance_series(broker_series(trace_of([[0.8, 0.2, 0.0], [0.5, 0.5, 0.5]])))
        assert spread.average.tolist() == [0.5, 0.5]
        assert spread.std == pytest.approx([0.3, 0.0])
        assert spread.spread == pytest.approx([0.6, 0.0])
        assert spread.max_over_average == pytest.approx([1.6, 1.0])

    @given(st.lists(st.lists(st.floats(0.01, 2), min_size=4, max_size=4), min_size=1, max_size=6))
    def test_equals_the_measure_of_one_moment(self, usage: list[list[float]]) -> None:
        series = broker_series(trace_of(usage))
        spread = imbalance_series(series)
        for at, row in enumerate(usage):
            one = imbalance(np.array(row))
            now = (spread.average[at], spread.std[at], spread.highest[at], spread.lowest[at])
            assert now == pytest.approx((one.average, one.std, one.highest, one.lowest))

    def test_events_by_cycle(self) -> None:
        placed = Event("new", "", "b2:8080", topics=99, at_ms=START_MS, kind="placed")
        events = {0: [shed("x", "b1:8080", "b2:8080", 0, topics=3, producers=4, consumers=5), placed], 1: []}
        counts = cycle_counts(trace_of([[0.8, 0.2]] * 2, events))
        assert counts.shed.tolist() == [1, 0]
        assert counts.placed.tolist() == [1, 0]
        assert (counts.topics[0], counts.producers[0], counts.consumers[0]) == (3, 4, 5)
        assert counts.shed_throughput_bytes_per_s.tolist() == [10 * MB, 0]


def story(*events: Event) -> Trace:
    return trace_of([[0.5, 0.5, 0.5]], {0: events})


X = cluster([0.5, 0.5, 0.5]).bundle_names[0]
"""A bundle that the first broker serves at the start."""


def placed(bundle: str, destination: str, minute: float = 0.0) -> Event:
    return Event(
        bundle, "", destination, topics=1, producers=2, at_ms=START_MS + int(minute * MINUTE_MS), kind="placed"
    )


class TestBlastRadius:
    def test_a_placement_after_an_unload_disconnects_nobody_again(self) -> None:
        (hit,) = disconnections(story(shed(X, "b1:8080", "", 0, topics=3), placed(X, "b2:8080")))
        assert blast_radius(hit).topics == 3

    def test_a_placement_because_the_broker_is_gone_does(self) -> None:
        (hit,) = disconnections(story(placed(X, "b2:8080")))
        assert (blast_radius(hit).bundles, blast_radius(hit).producers) == (1, 2)

    def test_a_bundle_that_nobody_served_had_no_clients(self) -> None:
        (hit,) = disconnections(story(placed("new", "b2:8080")))
        assert hit == ()

    def test_waiting_for_a_broker_counts_once(self) -> None:
        lost = Event(X, topics=3, at_ms=START_MS, kind="unserved")
        (hit,) = disconnections(story(lost, lost, placed(X, "b2:8080")))
        assert blast_radius(hit).topics == 3

    def test_a_split_counts_where_its_children_are_given_away(self) -> None:
        split = Event(X, "b1:8080", "b1:8080", children=("y", "z"), topics=2, at_ms=START_MS, kind="split")
        assert disconnections(story(split)) == ((),)
        (hit,) = disconnections(story(split, placed("y", "b2:8080"), placed("z", "b3:8080")))
        assert blast_radius(hit).topics == 2


class TestSettling:
    @pytest.mark.parametrize(
        ("shedding", "expected"), [((), 0), ((0,), 1), ((0, 2), 3), ((3,), None), ((0, 1, 2, 3), None)]
    )
    def test_first_cycle_after_which_nothing_is_shed(self, shedding: Sequence[int], expected: int | None) -> None:
        events = {at: [shed("x", "b1:8080", "b2:8080", at)] for at in shedding}
        assert settled_after(trace_of([[0.8, 0.2]] * 4, events)) == expected

    def test_placing_and_moving_is_no_shedding(self) -> None:
        events = {3: [Event("x", "b1:8080", "b2:8080", at_ms=START_MS, kind="moved")]}
        assert settled_after(trace_of([[0.8, 0.2]] * 4, events)) == 0


def to_and_fro(times: int, every_min: float = 10.0) -> list[Event]:
    ends = ("b1:8080", "b2:8080")
    return [shed("x", ends[i % 2], ends[1 - i % 2], i * every_min) for i in range(times)]


class TestPingPong:
    def test_ledger_has_each_return_with_its_times(self) -> None:
        ledger = returns(relocations(story(*to_and_fro(3))))
        assert [(e.broker, e.away_min, e.by_shedding) for e in ledger] == [
            ("b1:8080", 10.0, True),
            ("b2:8080", 10.0, True),
        ]

    def test_going_on_to_a_third_broker_is_no_return(self) -> None:
        ways = relocations(story(shed("x", "b1:8080", "b2:8080", 0), shed("x", "b2:8080", "b3:8080", 9)))
        assert returns(ways) == ()

    def test_a_placement_ends_the_way_of_a_bundle_shed_without_destination(self) -> None:
        (way,) = relocations(story(shed("x", "b1:8080", "", 0), placed("x", "b3:8080", 1)))
        assert (way.source, way.destination, way.arrived_at_ms) == ("b1:8080", "b3:8080", START_MS + MINUTE_MS)

    def test_a_bundle_whose_broker_left_comes_from_there(self) -> None:
        (way,) = relocations(story(placed(X, "b3:8080", 1)))
        assert (way.source, way.destination, way.kind) == ("b1:8080", "b3:8080", "placed")

    def test_children_come_from_where_their_parent_was(self) -> None:
        split = Event(X, "b1:8080", "b1:8080", children=("y", "z"), at_ms=START_MS, kind="split")
        (way,) = relocations(story(split, placed("y", "b2:8080")))
        assert (way.source, way.destination) == ("b1:8080", "b2:8080")

    def test_back_after_a_restart_is_listed_but_not_blamed_on_shedding(self) -> None:
        (entry,) = returns(relocations(story(placed(X, "b2:8080"), shed(X, "b2:8080", "b1:8080", 5))))
        assert entry.broker == "b1:8080"
        assert not entry.by_shedding

    def test_a_lookup_that_gives_it_back_at_once_is_a_return(self) -> None:
        (entry,) = returns(relocations(story(shed("x", "b1:8080", "", 0), placed("x", "b1:8080", 1))))
        assert entry.away_min == 1.0


class TestThrashing:
    def test_one_direction_is_none(self) -> None:
        ways = relocations(story(*(shed(f"x{i}", "b1:8080", "b2:8080", i) for i in range(5))))
        assert thrashing_percent(ways) == 0

    def test_to_and_fro_comes_near_all(self) -> None:
        assert thrashing_percent(relocations(story(*to_and_fro(2)))) == 50
        assert thrashing_percent(relocations(story(*to_and_fro(100)))) == 99

    def test_another_bundle_going_back_counts_as_well(self) -> None:
        ways = relocations(story(shed("x", "b1:8080", "b2:8080", 0), shed("y", "b2:8080", "b1:8080", 5)))
        assert thrashing_percent(ways) == 50

    def test_only_as_much_as_was_gained(self) -> None:
        ways = relocations(story(shed("x", "b1:8080", "b2:8080", 0, 10), shed("y", "b2:8080", "b3:8080", 5, 30)))
        assert thrashing_percent(ways) == pytest.approx(25)

    def test_after_the_window_it_is_no_thrashing(self) -> None:
        assert thrashing_percent(relocations(story(*to_and_fro(2, 61)))) == 0
        assert thrashing_percent(relocations(story(*to_and_fro(2, 61))), window_min=90) == 50

    def test_nothing_shed(self) -> None:
        assert thrashing_percent(()) == 0

    @given(
        st.lists(
            st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 300), st.floats(0, 1e9)).filter(
                lambda w: w[0] != w[1]
            ),
            max_size=40,
        )
    )
    def test_is_a_share_and_grows_with_the_window(self, rows: list[tuple[int, int, int, float]]) -> None:
        ways = [
            Event(f"x{i}", f"b{a}", f"b{b}", throughput_bytes_per_s=t, at_ms=START_MS + m * MINUTE_MS, kind="shed")
            for i, (a, b, m, t) in enumerate(sorted(rows, key=lambda row: row[2]))
        ]
        scores = [thrashing_percent(ways, window) for window in (0, 10, 60, 1000)]
        assert all(0 <= s <= 100 + 1e-9 for s in scores)
        assert all(a <= b + 1e-6 for a, b in pairwise(scores))


class TestSummary:
    def test_every_number_is_explained(self) -> None:
        assert [m.name for m in MEASURES] == [f.name for f in fields(Summary)]
        assert all(m.label and m.meaning.endswith(".") for m in MEASURES)
        assert len({(m.label, m.unit) for m in MEASURES}) == len(MEASURES)

    def test_numbers_of_a_small_story(self) -> None:
        events = {
            0: [shed("x", "b1:8080", "b2:8080", 0, topics=3, producers=4, consumers=5)],
            1: [shed("y", "b2:8080", "b1:8080", 1, topics=3)],
        }
        told = summary_of_cycles(trace_of([[0.9, 0.1], [0.2, 0.8], [0.5, 0.4]], events))
        assert (told.shed, told.topics_disconnected, told.most_clients_in_one_cycle) == (2, 6, 9)
        assert (told.settled_after_cycles, told.settled_after_min) == (2, 1.0)
        assert told.final_std_percent == pytest.approx(5)
        assert told.final_spread_percent == pytest.approx(10)
        assert told.peak_usage_percent == 90
        assert told.thrashing_percent == 50
        assert (told.most_brokers_over_threshold, told.final_brokers_over_threshold) == (1, 0)
        assert told.overloaded_broker_min == 1
        assert told.final_headroom_factor == 2
        assert told.returned_bundles == 0
        assert told.client_time_lost_min == pytest.approx(9 / 60)

    def test_one_cycle_and_an_idle_cluster(self) -> None:
        told = summary_of_cycles(trace_of([[0.5]]))
        assert (told.duration_min, told.final_std_percent, told.overloaded_broker_min) == (0, 0, 0)
        assert math.isfinite(told.final_headroom_factor)


def side_by_side(traces: dict[str, Trace]) -> Comparison:
    return compare(traces, {name: summary_of_cycles(trace) for name, trace in traces.items()})


class TestComparing:
    def test_marks_the_best_and_names_the_settings_that_differ(self) -> None:
        calm = trace_of([[0.5, 0.5]] * 2)
        storm = trace_of(
            [[0.9, 0.1]] * 2,
            {0: [shed("x", "b1:8080", "b2:8080", 0)]},
            settings={"loadBalancerBrokerThresholdShedderPercentage": 5},
        )
        table = side_by_side({"calm": calm, "storm": storm})
        rows = {row.measure.name: row for row in table.rows}
        assert list(rows["shed"].values) == [0, 1]
        assert list(rows["shed"].best) == [True, False]
        assert list(rows["final_headroom_factor"].best) == [True, False]
        assert not any(rows["cycles"].best)
        assert not any(rows["thrashing_percent"].best), "all alike: nobody is the best"
        assert table.settings == {"loadBalancerBrokerThresholdShedderPercentage": (10, 5)}

    def test_what_never_settles_is_not_the_best(self) -> None:
        never = trace_of([[0.9, 0.1]] * 2, {1: [shed("x", "b1:8080", "b2:8080", 1)]})
        at_once = trace_of([[0.9, 0.1]] * 2, {0: [shed("x", "b1:8080", "b2:8080", 0)]})
        rows = {r.measure.name: r for r in side_by_side({"a": never, "b": at_once}).rows}
        row = rows["settled_after_cycles"]
        assert list(row.values) == [None, 1]
        assert list(row.best) == [False, True]


def test_the_end_with_its_demand_has_the_names_that_are_known() -> None:
    """To make those of all bundles of a large cluster once more took a fifth of a diagnosis."""
    trace = simulate(cluster([0.6, 0.2]), Scenario(cycles=2))
    end = at_the_end(trace)
    assert end is not trace.end
    assert vars(end)["bundle_names"] is trace.end.bundle_names
