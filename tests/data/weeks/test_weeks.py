"""Advice on bundles over weeks: equal rows with every runner, and what pages say of the busiest moment."""

import csv
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from planner.__main__ import main
from planner.cluster.errors import ReplayError
from planner.history.days import snapshot_at
from planner.history.generate import write_day
from planner.history.spec import HistorySpec
from planner.namespaces.advice import bundle_advice
from planner.namespaces.counts import count_row
from planner.namespaces.cuts import cuts_hold, topic_bound
from planner.namespaces.population import Population, population_of
from planner.share.bundle_advice import advice_scenario
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.planned import plan_cluster
from planner.simulate.planned_spec import PlannedCluster, PlannedTopics
from planner.simulate.run import simulate
from planner.spark.runners import run_spark
from planner.spark.session import OpenSession, SparkPlace
from planner.weeks.advice import WeekRow, WeekTask, _row, advise_weeks, result_from_json, run_task, task_to_json
from planner.weeks.growth import rates_at
from planner.weeks.run import WEEKS, run_weeks, spread, weeks_tasks
from planner.weeks.spec import Weeks
from tests.app.namespaces.asked import advice_on

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")  # all have the rows that Spark is compared with
SPEC = HistorySpec(
    cluster=ClusterSpec(brokers=2, bundles=6, topics=48, namespaces=2, msg_rate_per_s=40_000),
    days=2,
    interval_s=4 * 3_600,
    splits_per_day=0,
    topics=True,
)


@pytest.fixture(scope="module", autouse=True)
def _advice_is_worked_out_once() -> Iterator[None]:
    """Runs in this process ask for the same advice; those of a pool and of Spark work it out themselves."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("planner.weeks.advice.bundle_advice", advice_on)
        yield


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("weeks")
    for seed, name in enumerate(("east", "west"), start=1):
        for day in range(2):
            write_day(root, replace(SPEC, cluster=replace(SPEC.cluster, cluster=name)), seed, day)
    return root


@pytest.fixture(scope="module")
def rows(history: Path) -> tuple[WeekRow, ...]:
    return run_weeks(Weeks(history=history, moments_per_day=2, runner="local")).rows


def test_a_row_for_each_namespace_of_each_cluster(rows: tuple[WeekRow, ...]) -> None:
    assert {(row.cluster, row.namespace) for row in rows} == {
        (cluster, name) for cluster in ("east", "west") for name in ("acme/orders", "globex/orders")
    }
    assert {row.moments for row in rows} == {4}
    assert all(row.first_ms < row.last_ms and row.first_ms <= row.busiest_ms <= row.last_ms for row in rows)


def test_the_busiest_moment_has_the_advice_of_the_page(history: Path, rows: tuple[WeekRow, ...]) -> None:
    row = next(one for one in rows if one.cluster == "east")
    moments = next(task.moments for task in weeks_tasks(asked(history)) if task.cluster == "east")
    taken = {at_ms: snapshot_at(history / folder, at_ms) for folder, at_ms in moments}
    rates = {at_ms: population_of(one, row.namespace).msg_per_s.sum() for at_ms, one in taken.items()}
    assert row.busiest_ms == max(rates, key=lambda at_ms: rates[at_ms])
    alone = advice_on(taken[row.busiest_ms], row.namespace)
    assert (row.recommended_bundles, row.new_cuts) == (alone.recommended, len(alone.cuts.new) if alone.cuts_help else 0)
    every = [population_of(one, row.namespace) for one in taken.values()]
    now = [count_row(one, every[-1].boundaries, row.brokers) for one in every]
    assert row.placed_percent == max(one.placed_percent for one in now)
    assert row.even_least <= row.even_bundles
    assert row.even_least <= row.even_most


def asked(history: Path) -> Weeks:
    return Weeks(history=history, moments_per_day=2)


def test_spark_and_a_pool_give_the_same_rows(history: Path, rows: tuple[WeekRow, ...], spark: "SparkSession") -> None:
    tasks = weeks_tasks(asked(history))
    on_spark = list(run_spark(WEEKS, tasks, OpenSession(spark, SparkPlace("local"), 2, fixed=True), lambda: False))
    assert {row for one in on_spark for row in one.rows} == set(rows)
    assert run_weeks(replace(asked(history), runner="processes", workers=2)).rows == rows


def test_moments_are_spread_over_a_day() -> None:
    assert spread(range(24), 4) == [3, 9, 15, 21]
    assert spread([5, 6], 4) == [5, 6]
    assert spread(range(1_440), 24)[0] == 30


def test_a_task_that_fails_leaves_the_others(history: Path) -> None:
    good, other = weeks_tasks(asked(history))
    bad = replace(other, moments=(("cluster=east/day=2020-01-01", 1),))
    results = [result_from_json(run_task(task_to_json(one))) for one in (good, bad)]
    assert [bool(one.error) for one in results] == [False, True]
    assert results[0].rows == advise_weeks(good)
    assert "day=2020-01-01" in results[1].error


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"moments_per_day": 0}, "0 moments per day are out of range"),
        ({"horizon_weeks": 0}, "A horizon of 0 weeks is out of range"),
        ({"horizon_weeks": 105}, "105 weeks is out of range"),
        ({"cluster": ("north",)}, "no day of 'north'"),
        ({"first_day": "2030-01-01"}, "no days in this period"),
    ],
)
def test_what_a_history_does_not_have(history: Path, change: dict[str, object], said: str) -> None:
    with pytest.raises(ReplayError, match=said):
        weeks_tasks(replace(asked(history), **change))  # type: ignore[arg-type]


def test_a_history_without_topics_is_named(tmp_path: Path) -> None:
    write_day(tmp_path, replace(SPEC, topics=False), 1, 0)
    with pytest.raises(ReplayError, match="lists no topics"):
        weeks_tasks(Weeks(history=tmp_path))


def test_the_command_prints_a_line_for_each(
    history: Path, rows: tuple[WeekRow, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["bundles", "--history", str(history), "--cluster", "west", "--moments-per-day", "2", "--runner", "local"]
    assert main(words) in (0, 1)
    said = capsys.readouterr()
    assert said.out.startswith("2 namespaces of 1 cluster")
    assert "1 of 1 tasks done" in said.err
    main([*words, "--json", "--csv", str(tmp_path / "weeks.csv")])
    found = json.loads(capsys.readouterr().out)["weeks"]
    assert [one["namespace"] for one in found] == [row.namespace for row in rows if row.cluster == "west"]
    assert "too short to measure the growth of 2 namespaces" in said.out
    assert {one["growth_percent_per_week"] for one in found} == {None}
    with (tmp_path / "weeks.csv").open(newline="") as file:
        written = list(csv.DictReader(file))
    assert [one["namespace"] for one in written] == [one["namespace"] for one in found]
    assert written[0].keys() == found[0].keys()
    assert written[0]["outlook"].startswith("The history is too short to measure growth")
    assert main([*words, "--snapshot", "story.zip"]) == 2
    assert "Use one of --snapshot, --pattern and --history." in capsys.readouterr().err
    assert main([*words, "--namespace", "acme/orders"]) == 2
    assert "Leave out --namespace" in capsys.readouterr().err


def test_cuts_that_were_made_since_are_not_recommended_again() -> None:
    group = PlannedTopics(pattern="persistent://iot/home/dev-%04d", msg_rate_per_s=10, bundles=2)
    busiest = plan_cluster(PlannedCluster(brokers=4, topics=(group,)), 0)
    advice = bundle_advice(busiest, "iot/home")
    assert advice.edits
    last = simulate(busiest, advice_scenario(advice)).end
    assert last.info.captured_at_ms > busiest.info.captured_at_ms
    moments = [(one.info.captured_at_ms, population_of(one, "iot/home")) for one in (busiest, last)]
    rates = [rates_at(one, ["iot/home"]) for one in (busiest, last)]
    task = WeekTask(task="1", history="", cluster="east", namespaces=("iot/home",), moments=())
    first = _row(task, busiest, busiest, moments[:1], rates[:1])
    assert (first.new_cuts, first.is_steady) == (len(advice.cuts.new), True)
    later = _row(task, last, busiest, moments, rates)
    assert (later.new_cuts, later.is_steady) == (0, False)
    assert later.sentence.startswith("Keep its bundles")


def population(loads: list[float]) -> Population:
    """Topics with these loads, evenly over the hash space."""
    places = np.arange(len(loads), dtype=np.int64) * (2**32 // len(loads)) + 1
    names = np.array([f"persistent://a/b/{at}" for at in range(len(loads))])
    rates = np.array(loads, dtype=float)
    return Population("a/b", names, places, rates, rates, np.ones(len(loads), dtype=np.int64), (0, 2**31, 2**32 - 1))


def cases() -> Iterator[tuple[list[float], bool]]:
    yield [4, 4, 1, 1], True  # the cut in the first half brings 50 %, the best there is
    yield [1, 1, 4, 4], False  # the load is elsewhere: the cut brings nothing of what one there could
    yield [1, 1, 1, 1], True  # it is even already, and stays so
    yield [8, 0, 1, 1], True  # one topic alone: no cut could bring more


@pytest.mark.parametrize(("loads", "holds"), list(cases()))
def test_cuts_hold_where_they_bring_half_of_what_cuts_can(loads: list[float], holds: bool) -> None:  # noqa: FBT001
    now = population(loads)
    assert cuts_hold((0, 2**30, *now.boundaries[1:]), now.boundaries, now, 2) is holds
    assert 0.5 <= topic_bound(now, 2) <= 1


def test_a_namespace_that_is_gone_is_named(tmp_path: Path) -> None:
    for day, namespaces in enumerate((3, 2)):
        write_day(tmp_path, replace(SPEC, cluster=replace(SPEC.cluster, cluster="east", namespaces=namespaces)), 1, day)
    found = run_weeks(Weeks(history=tmp_path, moments_per_day=1, runner="local"))
    assert found.notes == (
        "east: initech/orders had topics at the first moment and none at the last, so there is no advice on it.",
    )
    assert {row.namespace for row in found.rows} == {"acme/orders", "globex/orders"}
