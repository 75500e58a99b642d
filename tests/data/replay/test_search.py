"""Search: bounds from the catalogue, the same proposals from the same seed, and that it finds what is there."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from planner.advise.advice import Configured
from planner.advise.advisor import advise
from planner.advise.material import configured_of, fits, material_of, read_rows, rows_of, snapshot_of
from planner.advise.objectives import Question
from planner.advise.search import (
    Parameter,
    SearchSpace,
    Trial,
    neighbours,
    parameter,
    propose,
    search,
    space_of,
    widened,
)
from planner.cluster.errors import ReplayError, SettingError
from planner.cluster.load_manager import LoadManager
from planner.cluster.releases import REFERENCE
from planner.cluster.settings import Settings
from planner.history.generate import write_day
from planner.history.spec import HistorySpec
from planner.pulsar.shedding.registry import SHEDDERS
from planner.replay.aggregate import AGGREGATION
from planner.replay.jobs import Status, StoredJob
from planner.replay.kernel import ReplayTask, TaskResult
from planner.replay.results import ResultWriter
from planner.replay.runners import run_local
from planner.replay.spec import Job, tasks_of
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.scenario import Scenario

THRESHOLD = "loadBalancerBrokerThresholdShedderPercentage"
SMALLEST = "loadBalancerBundleUnloadMinThroughputThreshold"
STRATEGY = "loadBalancerLoadSheddingStrategy"
PLACEMENT = "loadBalancerLoadPlacementStrategy"
NOW = Configured(Settings(), LoadManager.MODULAR)


def retold(file: Path, column: str, value: pa.Scalar) -> None:
    """Write a table anew with something else in a column."""
    table = pq.read_table(file)
    at = table.schema.get_field_index(column)
    pq.write_table(table.set_column(at, column, pa.array([value.as_py()] * len(table), value.type)), file)


class TestParameters:
    @pytest.mark.parametrize("shedder", [s.name for s in SHEDDERS])
    def test_every_strategy_has_a_space_of_settings_that_it_reads(self, shedder: str) -> None:
        one = next(s for s in SHEDDERS if s.name == shedder)
        space = space_of(Scenario(), Configured(Settings(), one.load_manager), [shedder])
        assert space.parameters
        for found in space.parameters:
            assert found.name in one.settings
            setting = REFERENCE.settings[found.name]
            if found.low is not None and found.high is not None:
                assert isinstance(setting.default, int | float)
                assert found.low <= setting.default <= found.high
                assert (setting.parse(found.low), setting.parse(found.high)) == (found.low, found.high)

    def test_suggested_bounds(self) -> None:
        assert parameter(THRESHOLD) == Parameter(THRESHOLD, 2, 50)
        assert parameter("loadBalancerBrokerOverloadedThresholdPercentage").high == 100
        assert parameter("maxUnloadPercentage") == Parameter("maxUnloadPercentage", 0.0, 1.0)
        assert parameter("lowerBoundarySheddingEnabled") == Parameter("lowerBoundarySheddingEnabled", None, None)
        assert parameter(THRESHOLD, 5, 7) == Parameter(THRESHOLD, 5, 7)

    @pytest.mark.parametrize(
        ("name", "low", "high", "says"),
        [
            ("loadBalancerThresholdShedder", None, None, "Did you mean"),
            (THRESHOLD, 9, 9, "must be below the highest"),
            (THRESHOLD, -5, 9, "0 to"),
            ("maxUnloadBundleNumPerShedding", None, None, "does not imply a range"),
            (STRATEGY, None, None, "numbers and switches"),
        ],
    )
    def test_bad_parameters_are_said(self, name: str, low: float | None, high: float | None, says: str) -> None:
        with pytest.raises(SettingError, match=says):
            parameter(name, low, high)

    def test_a_strategy_of_the_other_load_manager_is_said(self) -> None:
        with pytest.raises(SettingError, match="cannot run TransferShedder"):
            space_of(Scenario(), NOW, ["TransferShedder"])


def bowl(scenario: Scenario) -> tuple[float, float]:
    """Two costs with their best at 7 and at 9, whatever else."""
    value = float(scenario.settings.get(THRESHOLD, 10))
    return abs(value - 7), abs(value - 9)


class TestProposals:
    SPACE = space_of(Scenario(), NOW, parameters=[parameter(THRESHOLD), parameter(SMALLEST)])
    BOTH = space_of(Scenario(), NOW, ["ThresholdShedder", "AvgShedder"])

    def rounds(self, space: SearchSpace, method: str, seed: int, number: int = 3, size: int = 6) -> list[Trial]:
        trials: list[Trial] = []
        for _ in range(number):
            fresh = propose(space, trials, size, method=method, seed=seed)  # type: ignore[arg-type]
            trials += [Trial(one, bowl(one)) for one in fresh]
        return trials

    @pytest.mark.parametrize("method", ["bayesian", "random"])
    def test_the_same_seed_proposes_the_same(self, method: str) -> None:
        assert self.rounds(self.SPACE, method, 3) == self.rounds(self.SPACE, method, 3)
        assert self.rounds(self.SPACE, method, 3) != self.rounds(self.SPACE, method, 4)

    @pytest.mark.parametrize("method", ["bayesian", "random"])
    def test_proposals_are_new_and_within_bounds(self, method: str) -> None:
        trials = self.rounds(self.BOTH, method, 1)
        assert len({one.scenario.name for one in trials}) == len(trials)
        assert len({repr(sorted(one.scenario.settings.items())) for one in trials}) == len(trials)
        bounds = {one.name: one for one in self.BOTH.parameters}
        for one in trials:
            chosen = dict(one.scenario.settings)
            assert (chosen[STRATEGY] == "AvgShedder") is (chosen.get(PLACEMENT) == "AvgShedder")
            mine = {found.name for found in self.BOTH.parameters_of(str(chosen[STRATEGY]))}
            assert set(chosen) - {STRATEGY, PLACEMENT} == mine
            for name in mine:
                low, high = bounds[name].low, bounds[name].high
                assert low is None or high is None or low <= float(chosen[name]) <= high
            Settings(chosen)

    def test_bayesian_search_comes_nearer_than_random(self) -> None:
        """Over several seeds, the proposals after the start lie nearer to what is best."""

        def off(method: str) -> float:
            late = [
                sum(bowl(one.scenario)) for seed in range(4) for one in self.rounds(self.SPACE, method, seed, 5)[12:]
            ]
            return sum(late) / len(late)

        assert off("bayesian") < off("random") * 0.7

    def test_a_small_space_is_used_up(self) -> None:
        space = space_of(Scenario(), NOW, parameters=[parameter(THRESHOLD, 5, 7)])
        trials = self.rounds(space, "random", 0, number=2)
        assert sorted(int(one.scenario.settings[THRESHOLD]) for one in trials) == [5, 6, 7]

    def test_what_failed_is_not_proposed_again(self) -> None:
        space = space_of(Scenario(), NOW, parameters=[parameter(THRESHOLD, 5, 6)])
        failed = Trial(Scenario(name="x", settings={THRESHOLD: 5}), None)
        assert [one.settings[THRESHOLD] for one in propose(space, [failed], 4)] == [6]

    def test_what_lies_outside_is_passed_over(self) -> None:
        trials = [
            Trial(Scenario(name="x", settings={THRESHOLD: 99}), (1.0, 1.0)),
            Trial(Scenario(name="now"), (2.0, 2.0)),
        ]
        assert len(propose(self.SPACE, trials, 2)) == 2

    def test_a_bad_number_is_said(self) -> None:
        with pytest.raises(SettingError, match="Cannot propose 0 scenarios"):
            propose(self.SPACE, [], 0)


def test_neighbours_differ_in_one_setting() -> None:
    space = space_of(Scenario(), NOW)
    start = Scenario(name="a name that is long " * 6, settings={THRESHOLD: 20})
    found = neighbours(space, start)
    assert {one.settings[THRESHOLD] for one in found} >= {16, 12, 28, 33}
    before = space.config.changed(**start.settings)
    for one in found:
        after = space.config.changed(**one.settings)
        assert sum(1 for name in after if after[name] != before[name]) == 1
        assert len(one.name) <= 120
    assert len({one.name for one in found}) == len(found)
    assert neighbours(space, start, known=found) == ()
    less = neighbours(space, start, known=found[:1])
    assert [one.settings for one in less] == [one.settings for one in found[1:]]


def test_a_space_is_widened_to_what_was_tried() -> None:
    space = space_of(
        Scenario(), NOW, parameters=[parameter(THRESHOLD, 5, 20), parameter("lowerBoundarySheddingEnabled")]
    )
    tried = [Scenario(settings={THRESHOLD: 90}), Scenario(settings={THRESHOLD: 3}), Scenario()]
    assert [(one.low, one.high) for one in widened(space, tried).parameters] == [(3, 90), (None, None)]


DAYS = ("2027-01-11", "2027-01-12")


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two days of a small, skewed cluster, a snapshot every two hours."""
    root = tmp_path_factory.mktemp("history")
    cluster = ClusterSpec(
        brokers=4, bundles=24, topics=150, msg_rate_per_s=60_000, ownership_skew=0.9, heterogeneity=0.0, cluster="tiny"
    )
    spec = HistorySpec(cluster=cluster, days=2, interval_s=7_200, restarts_per_day=0, splits_per_day=0)
    for day in range(2):
        write_day(root, spec, 5, day)
    return root


def job_over(history: Path, *scenarios: Scenario) -> Job:
    return Job(
        name="tiny", history=str(history), clusters=("tiny",), first_day=DAYS[0], last_day=DAYS[1], scenarios=scenarios
    )


def local(tasks: Sequence[ReplayTask]) -> Iterator[TaskResult]:
    return run_local(tasks, lambda: False)


SLOW = {"loadBalancerSheddingIntervalMinutes": 120}
"""A cycle every two hours, as often as a snapshot, so that a day is soon replayed."""


@pytest.mark.timeout(300)
def test_a_real_search_and_its_advice(history: Path, tmp_path: Path) -> None:
    """History, replay, search, results on disk, advice: nothing in between is made up."""
    base = Scenario(name="as it is", settings=SLOW)
    off = Scenario(name="no shedding", settings={**SLOW, "loadBalancerSheddingEnabled": False})
    job = job_over(history, base, off)
    configured = {"tiny": Configured(Settings(SLOW), LoadManager.MODULAR)}
    space = space_of(
        Scenario(settings=SLOW), configured["tiny"], parameters=[parameter(THRESHOLD), parameter(SMALLEST, 0.001, 10)]
    )
    question = Question(balance=("deviation",), disruption=("topics",))

    kept: list[TaskResult] = []
    asked: list[ReplayTask] = []

    def evaluate(tasks: Sequence[ReplayTask]) -> Iterable[TaskResult]:
        asked.extend(tasks)
        kept.extend(local(tasks))
        return kept[-len(tasks) :]

    found = search(job, space, evaluate, rounds=2, size=2, seed=1, question=question, configured=configured)
    assert [len(names) for names in found.rounds] == [2, 2, 2]
    assert not found.errors
    assert {(row.scenario, row.day) for row in found.rows} == {
        (one.name, day) for one in found.scenarios for day in DAYS
    }

    again = search(job, space, local, rounds=1, size=2, seed=1, question=question, configured=configured)
    assert again.scenarios == found.scenarios[:4]
    assert [r.measures for r in again.rows] == [r.measures for r in found.rows[: len(again.rows)]]

    advice = advise(found.rows, found.scenarios, question, configured)
    assert advice.current == "as it is"
    assert advice.candidate("no shedding").totals["shed"] == 0
    assert advice.candidate("no shedding").more_overload  # the fewest moves are no reason to stay overloaded
    assert any((one.totals["shed"] or 0) > 0 for one in advice.candidates)
    assert advice.holdout is not None
    assert (advice.holdout.first_days, advice.holdout.rest_days) == (DAYS[:1], DAYS[1:])
    assert {one.setting for one in advice.sensitivity} >= {THRESHOLD, SMALLEST}

    writer = ResultWriter(tmp_path / "results", asked, every_s=60)
    for result in kept:
        writer.add(result)
    writer.finish(1.0)
    stored = StoredJob(
        name="job",
        folder=tmp_path,
        job=replace(job, scenarios=found.scenarios),
        status=Status(state="done", done=9),
    )
    material = material_of([stored])
    assert advise(material.rows, material.scenarios, question, configured) == advice


class TestMaterial:
    def result(self, folder: Path, scenarios: Sequence[Scenario], history: Path, failed: int = 0) -> StoredJob:
        job = job_over(history, *scenarios)
        (folder / "results").mkdir(parents=True)
        rows = [
            {"cluster": "tiny", "scenario": one.name, "day": day, "cycles": 3, **dict.fromkeys(AGGREGATION, 1.0)}
            | {"cycles": 3, "shed_bytes_per_s": 2.0}
            for one in scenarios
            for day in DAYS
        ]
        pq.write_table(pa.Table.from_pylist(rows), folder / "results" / "days.parquet")
        return StoredJob(name=folder.name, folder=folder, job=job, status=Status(state="done", done=9, failed=failed))

    def test_jobs_over_the_same_days_go_together(self, tmp_path: Path, history: Path) -> None:
        one = self.result(tmp_path / "a", [Scenario(name="as it is"), Scenario(name="x")], history)
        changed = Scenario(name="x", settings={THRESHOLD: 5})
        two = self.result(tmp_path / "b", [Scenario(name="as it is"), changed, Scenario(name="y")], history, failed=2)
        found = material_of([one, two])
        assert [scenario.name for scenario in found.scenarios] == ["as it is", "x", "y"]
        assert len(found.rows) == 6
        assert found.rows[0].measures["shed_bytes_per_s"] == 2
        assert found.notes == (
            "x of job b is left out because another job has a scenario with this name.",
            "2 tasks of job b failed. See its log.",
        )

    def test_jobs_over_other_days_do_not(self, tmp_path: Path, history: Path) -> None:
        one = self.result(tmp_path / "a", [Scenario(name="x")], history)
        assert one.job is not None
        two = replace(one, job=replace(one.job, last_day=DAYS[0]))
        assert two.job is not None
        assert not fits(one.job, two.job)
        with pytest.raises(ReplayError, match="cannot be compared"):
            material_of([one, two])

    @pytest.mark.parametrize(
        "damage",
        [
            lambda file: file.unlink(),
            lambda file: file.write_bytes(b"PAR1 no"),
            partial(retold, column="cycles", value=pa.scalar(None, pa.int64())),
            partial(retold, column="mean_std_percent", value=pa.scalar("9 %")),
        ],
    )
    def test_missing_and_damaged_results_are_said(
        self, tmp_path: Path, history: Path, damage: Callable[[Path], object]
    ) -> None:
        one = self.result(tmp_path / "a", [Scenario(name="x")], history)
        damage(one.folder / "results" / "days.parquet")
        with pytest.raises(ReplayError, match=r"no results yet|cannot be read"):
            read_rows(one.folder / "results")

    def test_settings_are_those_of_the_last_snapshot(self, history: Path) -> None:
        job = job_over(history, Scenario(name="x"))
        assert configured_of(job) == {"tiny": NOW}
        first, last = (snapshot_of(job, "tiny", last=late) for late in (False, True))
        assert first.info.captured_at_ms < last.info.captured_at_ms
        assert len(last.bundles) == 24
        gone = replace(job, history=str(history / "gone"))
        assert configured_of(gone) == {}

    def test_failed_tasks_have_no_days(self, history: Path) -> None:
        tasks = tasks_of(job_over(history, Scenario(name="x")))
        failed = TaskResult(tasks[0].task, (), "", 0.0, "It failed.")
        assert rows_of(tasks, [failed]) == []
