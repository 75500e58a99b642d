"""Growth over weeks: the fit, the split that it brings, and whether advice lasts."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from planner.cluster.snapshot import Snapshot
from planner.cluster.units import DAY_MS, HOUR_MS
from planner.history.generate import write_day
from planner.history.spec import HistorySpec
from planner.namespaces.advice import BundleAdvice, bundle_advice
from planner.namespaces.impact import growing, split_forecasts
from planner.namespaces.outlook import first_week, grown, weeks_ahead, will_split
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.edits.registry import TrafficGrowth
from planner.simulate.planned import plan_cluster
from planner.simulate.planned_spec import PlannedCluster, PlannedTopics
from planner.simulate.run import simulate
from planner.simulate.scenario import Step, unchanged
from planner.weeks.growth import Rates, growth_per_week, rates_at
from planner.weeks.outlook import outlook
from planner.weeks.run import run_weeks
from planner.weeks.spec import Weeks

MONDAY_MS = 1_799_625_600_000 - 1_799_625_600_000 % DAY_MS
WEEKLY = 1.05


def moments(days: int, rate: Callable[[int, int], float], hours: Sequence[int] = (3, 9, 15, 21)) -> list[Rates]:
    """Traffic at some hours of each day; `rate` is given the day and the hour."""
    found = []
    for day in range(days):
        for hour in hours:
            value = (rate(day, hour), 10 * rate(day, hour))
            found.append(Rates(MONDAY_MS + day * DAY_MS + hour * HOUR_MS, {"a/b": value}, value))
    return found


def shaped(day: int, hour: int) -> float:
    """A day and a week of very unlike loads, which grow by 5 % a week."""
    weekend = 0.3 if (MONDAY_MS // DAY_MS + day + 3) % 7 >= 5 else 1.0
    return float(1_000 * weekend * (1 + 0.9 * np.sin(hour)) * WEEKLY ** ((day + hour / 24) / 7))


@pytest.mark.parametrize("days", [5, 7, 9, 13, 14, 30])
def test_no_shape_of_day_or_week_is_taken_for_growth(days: int) -> None:
    assert growth_per_week(moments(days, shaped), "a/b") == pytest.approx(WEEKLY)
    assert growth_per_week(moments(days, shaped)) == pytest.approx(WEEKLY)


@pytest.mark.parametrize("factor", [0.01, 50.0])
def test_one_odd_day_does_not_bend_the_fit(factor: float) -> None:
    def odd(day: int, hour: int) -> float:
        return shaped(day, hour) * (factor if day == 20 else 1)

    assert growth_per_week(moments(21, odd), "a/b") == pytest.approx(WEEKLY, rel=0.002)


def test_the_faster_of_messages_and_bytes_counts() -> None:
    given = [
        replace(one, of={"a/b": (100.0, 1_000 * 1.2 ** ((one.at_ms - MONDAY_MS) / 7 / DAY_MS))})
        for one in moments(9, shaped)
    ]
    assert growth_per_week(given, "a/b") == pytest.approx(1.2)


def test_few_days_are_too_short() -> None:
    assert growth_per_week(moments(4, shaped), "a/b") is None
    assert growth_per_week([], "a/b") is None
    assert growth_per_week(moments(20, shaped), "a/other") is None
    quiet = moments(20, lambda day, hour: shaped(day, hour) if day >= 17 else 0.0)
    assert growth_per_week(quiet, "a/b") is None


@pytest.fixture(scope="module")
def two_namespaces() -> Snapshot:
    groups = [
        PlannedTopics(pattern=f"persistent://a/{name}/t-%d", count=60, bundles=6, msg_rate_per_s=rate)
        for name, rate in (("b", 30_000.0), ("c", 9_000.0))
    ]
    return plan_cluster(PlannedCluster(brokers=3, topics=tuple(groups)))


@pytest.fixture(scope="module")
def advice(two_namespaces: Snapshot) -> BundleAdvice:
    return bundle_advice(two_namespaces, "a/b")


def test_a_namespace_grows_by_its_own_factor_and_the_others_by_theirs(two_namespaces: Snapshot) -> None:
    names = two_namespaces.namespaces
    before, after = (rates_at(one, names).of for one in (two_namespaces, grown(two_namespaces, "a/b", 3.0, 2.0, 3.0)))
    assert after["a/b"] == pytest.approx([3 * one for one in before["a/b"]])
    assert after["a/c"] == pytest.approx([2 * one for one in before["a/c"]])
    later = grown(two_namespaces, "a/b", 3.0, 2.0, 1.5)
    assert later.bundles.long_term_msg_rate_in_per_s == pytest.approx(
        two_namespaces.bundles.long_term_msg_rate_in_per_s * 1.5
    )
    assert later.brokers.cpu_usage_percent.max() > two_namespaces.brokers.cpu_usage_percent.max()


@pytest.mark.parametrize("factor", [1.0, 3.0, 12.0])
def test_a_split_is_due_where_the_split_forecast_has_one(two_namespaces: Snapshot, factor: float) -> None:
    later = grown(two_namespaces, "a/c", factor, 1.0, factor)
    trace = simulate(later, growing(later, 1.0, 1.0))
    splits = {one.namespace for one in split_forecasts(trace, trace.end) if one.splits}
    assert will_split(later, "a/c") is ("a/c" in splits)
    assert ("a/c" in splits) is (factor > 10)


@pytest.mark.parametrize(("due", "answer"), [(0, 0), (1, 1), (7, 7), (12, 12), (13, None)])
def test_the_first_week_is_found(due: int, answer: int | None) -> None:
    assert first_week(lambda week: week >= due, 12) == answer
    assert first_week(lambda week: week >= due, 0) == (0 if due == 0 else None)


def test_the_horizon_ends_where_traffic_is_fourfold() -> None:
    assert [weeks_ahead(one, 12) for one in (0.5, 1.0, 1.05, 1.5, 2.0, 9.0)] == [12, 12, 12, 3, 2, 1]


def test_rows_say_growth_the_next_split_and_whether_advice_lasts(tmp_path: Path) -> None:
    cluster = ClusterSpec(cluster="east", brokers=3, bundles=9, topics=90, namespaces=1, msg_rate_per_s=40_000)
    growth_percent = 1.5
    spec = HistorySpec(
        cluster=cluster,
        days=6,
        interval_s=6 * 3_600,
        splits_per_day=0,
        spikes_per_day=0,
        restarts_per_day=0,
        growth_percent_per_day=growth_percent,
        topics=True,
    )
    for day in range(6):
        write_day(tmp_path, spec, 1, day)
    (row,) = run_weeks(Weeks(history=tmp_path, moments_per_day=4, horizon_weeks=10, runner="local")).rows
    assert row.growth_percent_per_week == pytest.approx(((1 + growth_percent / 100) ** 7 - 1) * 100, abs=1)
    assert row.horizon_weeks == 10
    assert row.split_due_weeks is not None
    assert f"The next automatic split is due in {row.split_due_weeks} week" in row.outlook
    assert isinstance(row.is_lasting, bool)
    assert (row.later_bundles == row.recommended_bundles) or not row.is_lasting
    assert row.outlook.startswith(f"Its traffic grows by {row.growth_percent_per_week:.1f} % a week.")


def test_advice_that_does_not_last_says_what_comes_instead(
    two_namespaces: Snapshot, advice: BundleAdvice, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_ms = two_namespaces.info.captured_at_ms
    given = [replace(one, at_ms=start_ms - MONDAY_MS + one.at_ms) for one in moments(6, shaped)]
    end_ms = given[-1].at_ms
    given = [replace(one, at_ms=one.at_ms - end_ms + start_ms) for one in given]
    monkeypatch.setattr("planner.weeks.outlook.advice_then", lambda *_: (advice.recommended * 2, advice.cuts_help))
    found = outlook(advice, two_namespaces, given, 8)
    assert (found.is_lasting, found.later_bundles) == (False, 2 * advice.recommended)
    assert f"will be better than {advice.recommended} if it is recreated" in found.text
    short = outlook(advice, two_namespaces, given[-1:], 8)
    assert (short.growth_percent_per_week, short.later_bundles, short.is_lasting, short.horizon_weeks) == (
        None,
        None,
        None,
        0,
    )
    assert "The history is too short to measure growth: it takes traffic on 5 days." in short.text


@pytest.mark.parametrize("before", [1e-9, 1e9])
@pytest.mark.parametrize("last", [0.0, 1e-9, 1.0])
def test_extreme_growth_and_silence_are_looked_at_all_the_same(
    two_namespaces: Snapshot, advice: BundleAdvice, before: float, last: float
) -> None:
    """Traffic that begins or ends within the history, and is silent at its last moment."""
    busiest_ms = two_namespaces.info.captured_at_ms
    rates = [
        replace(one, at_ms=busiest_ms - (10 - at) * DAY_MS, of={"a/b": (before ** (10 - at), before ** (10 - at))})
        for at, one in enumerate(moments(10, shaped, (9,)))
    ]
    rates.append(rates_at(two_namespaces, ["a/b"]))
    factor = Step(TrafficGrowth(scope="namespace", target="a/b", factor=last))
    quiet = simulate(two_namespaces, unchanged(two_namespaces.info.pulsar_version, cycles=2).with_steps(factor)).end
    rates.append(rates_at(quiet, ["a/b"]))
    found = outlook(advice, quiet, rates, 12)
    assert found.growth_percent_per_week is not None
    assert (found.horizon_weeks, found.split_due_weeks) == ((1, 1) if before < 1 else (12, None))
