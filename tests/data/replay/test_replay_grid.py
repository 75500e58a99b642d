"""Grids: which scenarios come of strategies and values, and what a file may say."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planner.cluster.errors import PlannerError, ReplayError
from planner.cluster.load_manager import LoadManager
from planner.cluster.snapshot import Snapshot
from planner.pulsar.manager.cycle import effective_shedder
from planner.pulsar.shedding.registry import SHEDDERS
from planner.replay.estimate import Estimate, estimate, measure_pace
from planner.replay.grid import Grid, first_snapshot, grid_from_json, scenarios_of, values_of
from planner.replay.spec import grid, tasks_of
from planner.simulate.scenario import Scenario
from planner.simulate.strategies import under_strategy
from tests.data.replay.replays import HOURLY, SHEDDING, grid_to_json, make_job

FORMAT = {"format": "pulsar-bundle-planner scenarios", "version": 1}


def test_every_strategy_is_the_one_that_runs(small: Snapshot) -> None:
    for shedder in SHEDDERS:
        made = under_strategy(Scenario(name="x"), small.settings, small.info.load_manager, shedder.name)
        manager = made.load_manager_over(small)
        assert manager is shedder.load_manager
        running, notes = effective_shedder(manager, made.settings_over(small))
        assert (running.name, notes) == (shedder.name, ())
        assert made.name == shedder.name


def test_a_strategy_varies_with_what_it_reads(small: Snapshot) -> None:
    settings = {
        SHEDDING: (5, 10),
        "loadBalancerCPUResourceWeight": (1.0, 2.0),
        "loadBalancerSheddingIntervalMinutes": (1, 5),
    }
    names = [
        s.name for s in scenarios_of(Grid(strategies=("ThresholdShedder", "AvgShedder"), settings=settings), small)
    ]
    assert len(names) == len(set(names)) == 1 + 8 + 4
    assert (
        "ThresholdShedder, BrokerThresholdShedderPercentage=5, CPUResourceWeight=2.0, SheddingIntervalMinutes=1"
        in names
    )
    assert "AvgShedder, CPUResourceWeight=1.0, SheddingIntervalMinutes=5" in names


def test_nothing_asked_for_is_decided_by_the_release_of_the_history(small: Snapshot) -> None:
    old = replace(small, info=replace(small.info, pulsar_version="4.0.8"))
    assert {one.pulsar_version for one in scenarios_of(Grid(strategies=("AvgShedder",)), old)} == {"4.0.8"}
    for base, decides in ((Scenario(seed=3), "4.0.8"), (Scenario(seed=3, pulsar_version="4.2.4"), "4.2.4")):
        assert {one.pulsar_version for one in scenarios_of(Grid(base=base), old)} == {decides}


def test_each_scenario_is_decided_by_other_releases_too(small: Snapshot) -> None:
    wanted = Grid(strategies=("AvgShedder",), releases=("4.0.8", "4.2.4"))
    made = {one.name: one.pulsar_version for one in scenarios_of(wanted, small)}
    assert made == {
        "as it is": "4.2.4",
        "AvgShedder": "4.2.4",
        "as it is, on 4.0.8": "4.0.8",
        "AvgShedder, on 4.0.8": "4.0.8",
    }
    assert grid_from_json(grid_to_json(wanted).encode(), "x") == wanted
    unknown = json.dumps({**FORMAT, "releases": ["9.9"]}).encode()
    with pytest.raises(ReplayError, match="is unknown"):
        grid_from_json(unknown, "x")


def test_names_stay_apart_when_they_are_long() -> None:
    many = {
        f"loadBalancer{name}ResourceWeight": (1.0, 2.0) for name in ("CPU", "DirectMemory", "Memory", "BandwidthIn")
    }
    made = grid(Scenario(), {**many, SHEDDING: (5, 10), "loadBalancerSheddingIntervalMinutes": (1, 2)})
    assert len({scenario.name for scenario in made}) == len(made) == 64
    assert max(len(scenario.name) for scenario in made) <= 100


def test_a_file_says_the_same(small: Snapshot) -> None:
    wanted = Grid(
        base=HOURLY, strategies=("AvgShedder",), settings={SHEDDING: (5, 10)}, more=(Scenario(name="x", seed=3),)
    )
    again = grid_from_json(grid_to_json(wanted).encode(), "f.json")
    assert again == wanted
    assert scenarios_of(again, small) == scenarios_of(wanted, small)
    listed = grid_from_json(json.dumps([{"version": 1, "name": "a"}, {"version": 1, "name": "b"}]).encode(), "f")
    assert [scenario.name for scenario in scenarios_of(listed, small)] == ["a", "b"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "f.json"),
        ({"format": "x"}, "This is not a grid"),
        ({**FORMAT, "strategies": ["NoShedder"]}, "not a shedding strategy"),
        ({**FORMAT, "settings": {"loadBalancerNo": [1]}}, "cannot vary in a grid"),
        ({**FORMAT, "settings": {SHEDDING: [-1]}}, SHEDDING),
        ({**FORMAT, "settings": {SHEDDING: []}}, "no value"),
        ({**FORMAT, "settings": {SHEDDING: 5}}, "This is not a list of values"),
        ({**FORMAT, "settings": 5}, "This is not a valid object of names and lists"),
        ({**FORMAT, "scenarios": [{"version": 9}]}, "format version"),
        (
            {**FORMAT, "settings": {SHEDDING: list(range(1, 99)), "loadBalancerCPUResourceWeight": list(range(9))}},
            "the maximum is 500",
        ),
        ([{"version": 1, "name": "a"}, {"version": 1, "name": "a", "seed": 2}], "same name"),
    ],
)
def test_what_a_file_may_not_say(content: Any, said: str, small: Snapshot) -> None:
    data = content if isinstance(content, str) else json.dumps(content)
    with pytest.raises(PlannerError, match=said):
        scenarios_of(grid_from_json(data.encode(), "f.json"), small)


def test_as_many_scenarios_as_are_allowed_and_one_more(small: Snapshot, replay_history: Path) -> None:
    listed = [{"version": 1, "name": f"number {number}"} for number in range(500)]
    found = scenarios_of(grid_from_json(json.dumps(listed).encode(), "f.json"), small)
    assert len(found) == 500
    replace(make_job(replay_history), scenarios=found).check()
    with pytest.raises(ReplayError, match="501 scenarios; the maximum is 500"):
        replace(make_job(replay_history), scenarios=(*found, Scenario(name="one more"))).check()


def test_values(small: Snapshot) -> None:
    assert small.info.load_manager is LoadManager.MODULAR
    assert values_of("loadBalancerEnabled", "true, false, true") == (True, False)
    assert values_of("loadBalancerCPUResourceWeight", "1,0.5, ") == (1.0, 0.5)


def test_first_snapshot_and_estimate(replay_history: Path) -> None:
    assert first_snapshot(replay_history, "west").info.cluster == "west"
    with pytest.raises(PlannerError, match="no cluster north"):
        first_snapshot(replay_history, "north")
    job = make_job(replay_history)
    pace = measure_pace(tasks_of(job)[0])
    assert pace.cycles == 24 or pace.cycle_s > 0
    found = estimate(job, {"east": pace})
    assert (found.tasks, found.cycles) == (12, 12 * 24)
    assert found.rows == 3 * 2 * 2 * 24 * 24  # scenarios, clusters, days, hours, bundles
    assert found.work_s == pytest.approx(12 * pace.start_s + 12 * 24 * pace.cycle_s)
    assert found.longest_s == pytest.approx(pace.start_s + 24 * pace.cycle_s)


def test_an_estimate_is_a_range() -> None:
    found = Estimate(tasks=12, cycles=1, rows=1, work_s=120.0, longest_s=10.0)
    idle = found.span_s("processes", 4, 4, 0.0)
    assert idle[0] < 120 / 4 < idle[1]
    busy = found.span_s("processes", 4, 4, 4.0)
    assert busy[0] == idle[0], "the others may end at once"
    assert busy[1] == pytest.approx(2 * idle[1])
    assert found.span_s("processes", 100, 4, 0.0)[0] == idle[0], "more at once than cores are no faster"
    assert found.span_s("processes", 100, 200, 0.0)[0] == found.span_s("processes", 12, 200, 0.0)[0]
    assert found.span_s("spark", 4, 4, 0.0)[0] > idle[0]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("strategies", "AvgShedder"),
        ("settings", ["a"]),
        ("settings", {"loadBalancerSheddingIntervalMinutes": 5}),
        ("scenarios", 5),
        ("scenarios", [{"version": 1, "cycles": 0}]),
        ("releases", "4.0.8"),
        ("with_base", "no"),
        ("base", None),
    ],
)
def test_what_is_wrong_in_a_grid_is_told_by_file_and_place(field: str, value: object) -> None:
    text = json.dumps({"format": "pulsar-bundle-planner scenarios", "version": 1, field: value})
    with pytest.raises(PlannerError) as refused:
        grid_from_json(text.encode(), "grid.json")
    assert refused.value.where.startswith("grid.json")
    assert refused.value.remedy
    assert "object is not" not in str(refused.value)
