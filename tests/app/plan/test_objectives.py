"""Numbers of several days become one as their meaning asks."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.advise.objectives import OBJECTIVES, index_of, objective_by_name, references, value_of
from planner.cluster.errors import SettingError
from planner.replay.aggregate import AGGREGATION, DayRow, aggregate, totals_of
from planner.simulate.measures import MEASURES


def day(cycles: int = 10, **measures: float | None) -> DayRow:
    return DayRow(cluster="c", scenario="s", day="2027-01-01", cycles=cycles, measures=measures)


def test_every_measure_has_its_way() -> None:
    assert set(AGGREGATION) == {measure.name for measure in MEASURES}
    better = {measure.name: measure.better for measure in MEASURES}
    for objective in OBJECTIVES:
        assert all(better[name] != "higher" for name in objective.measures)


@pytest.mark.parametrize(
    ("measure", "values", "expected"),
    [
        ("shed", (3, 4), 7),
        ("mean_std_percent", (10.0, 20.0), 10 * 0.25 + 20 * 0.75),
        ("peak_usage_percent", (90.0, 70.0), 90),
        ("final_std_percent", (1.0, 2.0), 1.5),
        ("final_headroom_factor", (math.inf, 2.0), 2),
        ("settled_after_min", (5, 9), 9),
        ("settled_after_min", (5, None), None),
        ("mean_std_percent", (math.nan, 4.0), 4),
        ("mean_std_percent", (None, None), None),
    ],
)
def test_aggregation(measure: str, values: tuple[float | None, float | None], expected: float | None) -> None:
    rows = [day(10, **{measure: values[0]}), day(30, **{measure: values[1]})]
    assert aggregate(rows, measure) == expected


def test_thrashing_counts_by_the_traffic_that_was_shed() -> None:
    rows = [day(thrashing_percent=50.0, shed_bytes_per_s=1.0), day(thrashing_percent=0.0, shed_bytes_per_s=3.0)]
    assert aggregate(rows, "thrashing_percent") == 12.5
    assert (
        aggregate([day(thrashing_percent=50.0, shed=1), day(thrashing_percent=0.0, shed=4)], "thrashing_percent") == 10
    )
    assert aggregate([day(thrashing_percent=0.0, shed=0)], "thrashing_percent") == 0


def test_an_index_is_the_mean_share_of_the_average() -> None:
    objectives = [objective_by_name("unloads"), objective_by_name("topics"), objective_by_name("thrashing")]
    totals = [
        totals_of([day(shed=10, moved=0, topics_disconnected=100, thrashing_percent=0.0)]),
        totals_of([day(shed=20, moved=10, topics_disconnected=300, thrashing_percent=0.0)]),
    ]
    reference = references(totals, objectives)
    assert reference == {"unloads": 20, "topics": 200, "thrashing": 0}
    assert index_of(totals[0], objectives, reference) == 50
    assert index_of(totals[1], objectives, reference) == 150
    assert index_of(totals_of([day(shed=1)]), objectives, reference) is None


COUNTS = st.tuples(st.integers(0, 50), st.integers(0, 50))


@given(st.lists(COUNTS, min_size=2, max_size=8))
def test_who_is_better_in_an_objective_and_worse_in_none_has_the_smaller_index(given_: list[tuple[int, int]]) -> None:
    objectives = [objective_by_name("unloads"), objective_by_name("topics")]
    totals = [totals_of([day(shed=a, moved=0, topics_disconnected=b)]) for a, b in given_]
    reference = references(totals, objectives)
    for one in totals:
        for other in totals:
            values = [(value_of(one, o) or 0, value_of(other, o) or 0) for o in objectives]
            if all(a <= b for a, b in values) and any(a < b for a, b in values):
                mine, theirs = index_of(one, objectives, reference), index_of(other, objectives, reference)
                assert mine is not None
                assert theirs is not None
                assert mine < theirs


def test_an_unknown_objective_is_said() -> None:
    with pytest.raises(SettingError, match="Unknown objective"):
        objective_by_name("beauty")
