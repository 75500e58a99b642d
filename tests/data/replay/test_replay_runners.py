"""All runners give the same results, whatever the order in which tasks end."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pytest

from planner.advise.material import rows_of
from planner.cluster.digest import snapshot_digest
from planner.cluster.errors import ReplayError, StoreError
from planner.cluster.load_manager import LoadManager
from planner.cluster.snapshot import Snapshot
from planner.history.days import read_day
from planner.history.generate import write_history
from planner.history.spec import HistorySpec
from planner.replay import kernel, runners
from planner.replay.aggregate import totals_of
from planner.replay.kernel import TaskResult, combined_digest, frames_of, replay_one, task_from_json, task_to_json
from planner.replay.queries import SCENARIO_MEASURES, ReplayResults
from planner.replay.results import ResultWriter, read_summary, result_files
from planner.replay.runners import REPLAYS, pack_result, run_local, run_processes, run_spark, unpack_result
from planner.replay.runners import _work as work_of_the_pool
from planner.replay.spec import tasks_of
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.edits.kill_broker import KillBroker
from planner.simulate.scenario import Step
from planner.spark.runners import wave_size
from planner.spark.session import OpenSession, SparkPlace, check_workers, open_session, package_code, spark_place
from tests.data.replay.replays import CLUSTERS, HOURLY, OFTEN, make_job

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


DEADLY = "east/20830/hourly"


def never() -> bool:
    return False


def here_on(spark: "SparkSession") -> OpenSession:
    return OpenSession(spark, SparkPlace("local"), 2, fixed=True)


def same(one: TaskResult, other: TaskResult) -> None:
    assert (one.task, one.digest, one.error, len(one.days)) == (other.task, other.digest, other.error, len(other.days))
    for mine, theirs in zip(one.days, other.days, strict=True):
        assert mine.measures == theirs.measures
        assert mine.intervals.equals(theirs.intervals)
        assert mine.moves.equals(theirs.moves)
        assert (mine.notes, mine.digest, mine.cycles) == (theirs.notes, theirs.digest, theirs.cycles)


def by_name(results: Iterator[TaskResult]) -> dict[str, TaskResult]:
    return {result.task: result for result in results}


def test_all_runners_give_the_same(replay_history: Path, spark: "SparkSession") -> None:
    tasks = tasks_of(make_job(replay_history))
    here = by_name(run_local(tasks, never))
    assert len(here) == len(tasks) == 12
    assert sum(day.moves.num_rows for one in here.values() for day in one.days) > 20
    for there in (by_name(run_processes(tasks, 2, never)), by_name(run_spark(tasks, here_on(spark), never))):
        assert there.keys() == here.keys()
        for name, one in here.items():
            same(one, there[name])


@pytest.mark.parametrize(
    ("given", "tasks"),
    [
        ((2_000, 2, None, 1.0), 2),  # nothing is known yet: one for each core
        ((2_000, 2, 0.1, 7e3), 160),  # eight seconds of each core
        ((60, 2, 0.1, 7e3), 20),  # something is left for two more waves
        ((10**6, 2, 1e-6, 7e3), 1_000),  # at most 500 for each
        ((10**6, 4_000, 4.0, 70e3), 3_834),  # 256 MiB of results
        ((100, 8, 60.0, 1e9), 1),
        ((0, 2, 0.1, 7e3), 0),
    ],
)
def test_a_wave_takes_seconds_and_its_results_fit_into_the_driver(
    given: tuple[int, int, float | None, float], tasks: int
) -> None:
    assert wave_size(*given) == tasks


def test_a_task_over_many_days_goes_on_where_the_day_before_ended(replay_history: Path) -> None:
    days = tasks_of(make_job(replay_history, values=(), clusters=("east",)))
    (whole,) = tasks_of(make_job(replay_history, values=(), clusters=("east",), days_per_task=0))
    one, two = replay_one(days[0]), replay_one(whole)
    assert [day.day for day in two.days] == ["2027-01-11", "2027-01-12"]
    assert two.days[0].digest == one.days[0].digest
    assert two.days[1].digest != replay_one(days[1]).days[0].digest


def test_seeds_count_and_repeat(replay_history: Path) -> None:
    task = replace(tasks_of(make_job(replay_history))[0], scenario=replace(HOURLY, seed=3))
    assert replay_one(task).digest == replay_one(task_from_json(task_to_json(task))).digest


def test_results_travel_unchanged(replay_history: Path) -> None:
    result = replay_one(tasks_of(make_job(replay_history, days_per_task=0))[0])
    same(result, unpack_result(pack_result(result)))


def test_what_fails_is_a_result(replay_history: Path) -> None:
    lost = replace(HOURLY, name="lost", steps=(Step(KillBroker(broker="nobody:8080")),))
    job = make_job(replay_history, values=(), scenarios=(HOURLY, lost))
    results = by_name(run_local(tasks_of(job), never))
    failed = [one for one in results.values() if one.error]
    assert len(failed) == 4
    assert "nobody:8080" in failed[0].error
    assert not [one for one in results.values() if one.task.endswith("/hourly") and one.error]


def deadly(text: str) -> bytes:
    """Work as a process of the pool does, but for one task, which kills it."""
    if DEADLY in text:
        os.kill(os.getpid(), signal.SIGKILL)
    return work_of_the_pool(text)


@pytest.mark.parametrize("before", [1, 6])
def test_a_pool_that_breaks_just_before_it_is_given_a_task(
    before: int, replay_history: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = tasks_of(make_job(replay_history))
    asked: list[str] = []

    class Breaks(ProcessPoolExecutor):
        def submit(self, work: Any, text: str) -> "Future[Any]":  # type: ignore[override]
            asked.append(text)
            if len(asked) == before + 1:
                for process in list(self._processes.values()):
                    process.kill()
                until = time.monotonic() + 60
                while not self._broken:
                    assert time.monotonic() < until
                    time.sleep(0.01)
            return super().submit(work, text)

    monkeypatch.setattr("planner.spark.runners.ProcessPoolExecutor", Breaks)
    found = by_name(run_processes(tasks, 2, never))
    assert found.keys() == {task.task for task in tasks}
    assert not [one.task for one in found.values() if one.error]


def test_a_task_that_kills_its_process_fails_alone(
    replay_history: Path, spark: "SparkSession", monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = tasks_of(make_job(replay_history, values=()))
    killed = [task.task for task in tasks if DEADLY in task.task]
    assert len(killed) == 1

    def on_worker(text: str) -> bytes:  # of no module that workers would have to import
        if DEADLY in text:
            os.kill(os.getpid(), signal.SIGKILL)
        return pack_result(replay_one(task_from_json(text)))

    well = by_name(run_local([task for task in tasks if task.task not in killed], never))
    with monkeypatch.context() as patch:
        patch.setattr(runners, "REPLAYS", replace(REPLAYS, run=on_worker))
        on_spark = by_name(run_spark(tasks, here_on(spark), never))
    monkeypatch.setattr(runners, "REPLAYS", replace(REPLAYS, run=deadly))
    in_pool = by_name(run_processes(tasks, 2, never))
    for found in (on_spark, in_pool):
        assert found.keys() == {task.task for task in tasks}
        assert "was killed each time" in found[killed[0]].error
        for name, one in well.items():
            same(one, found[name])


class Lost:
    """A session of Spark that does nothing any more once it has made a frame."""

    def __init__(self, spark: "SparkSession") -> None:
        self.spark, self.frames = spark, 0

    def createDataFrame(self, table: pa.Table) -> Any:  # noqa: N802 - as Spark calls it
        self.frames += 1
        if self.frames > 1:
            raise RuntimeError("Nothing works here")
        return self.spark.createDataFrame(table)

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError("Nothing works here")


class OnConnect(OpenSession):
    """A session of a server that listens."""

    def answers(self) -> bool:
        return True


def test_no_task_is_blamed_for_a_spark_that_fails_at_anything(replay_history: Path, spark: "SparkSession") -> None:
    session = OnConnect(cast("SparkSession", Lost(spark)), SparkPlace("connect", "sc://127.0.0.1:15002"), 2)
    found: list[TaskResult] = []
    with pytest.raises(ReplayError, match="Nothing works here"):
        found.extend(run_spark(tasks_of(make_job(replay_history)), session, never))
    assert [one.error for one in found] == ["", ""]


@pytest.mark.parametrize("said", ["NO_ACTIVE_SESSION", "INVALID_HANDLE.SESSION_NOT_FOUND"])
def test_a_connect_server_that_was_started_anew_is_gone(said: str) -> None:
    session = OnConnect(cast("SparkSession", None), SparkPlace("connect", "sc://127.0.0.1:15002"), 2)
    gone = session.gone(RuntimeError(f"[{said}] No active Spark session found"))
    assert gone is not None
    assert "was restarted" in gone.what


def test_scenarios_of_a_small_day_share_its_decoding(replay_history: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks, read = tasks_of(make_job(replay_history))[:3], list[Path]()
    assert len({(task.cluster, task.start_ms) for task in tasks}) == 1

    def counted(folder: Path, **bounds: Any) -> Iterator[Snapshot]:
        read.append(folder)
        return read_day(folder, **bounds)

    monkeypatch.setattr(kernel, "read_day", counted)
    monkeypatch.setattr(kernel, "_MOST_ROWS_KEPT", 0)
    apart = [replay_one(task).digest for task in tasks]
    assert len(read) == 2 * len(tasks)  # the first snapshot, and those that are followed
    monkeypatch.undo()
    monkeypatch.setattr(kernel, "read_day", counted)
    kernel._kept.cache_clear()
    assert [replay_one(task).digest for task in tasks] == apart
    assert len(read) == 2 * len(tasks) + 1


@pytest.mark.parametrize("load_manager", list(LoadManager))
def test_of_later_snapshots_of_a_large_day_only_what_is_followed_is_read(
    load_manager: LoadManager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = ClusterSpec(
        brokers=4, bundles=24, topics=100, ownership_skew=0.6, load_manager=load_manager, cluster=CLUSTERS[0]
    )
    spec = HistorySpec(cluster=cluster, days=2, interval_s=900, restarts_per_day=6, splits_per_day=4, topics=True)
    list(write_history(tmp_path, spec, 1))
    job = make_job(tmp_path, clusters=CLUSTERS[:1], base=OFTEN, values=(), days_per_task=0)
    (task,) = tasks_of(job)
    kept, whole = replay_one(task), list(frames_of(task))
    monkeypatch.setattr(kernel, "_MOST_ROWS_KEPT", 0)
    first, *followed = frames_of(task)
    same(replay_one(task), kept)
    assert {"broker_removed", "broker_added"} < {kind for day in kept.days for kind in day.moves["kind"].to_pylist()}
    assert [s.info for s in (first, *followed)] == [s.info for s in whole]
    assert snapshot_digest(first) == snapshot_digest(whole[0])
    assert all(len(s.topics) and s.bundles.has_data.any() and s.bundles.short_term_samples.any() for s in whole)
    assert not any(len(s.topics) or s.bundles.short_term_samples.any() for s in followed)


def test_an_unexpected_fault_is_one_task_alone(replay_history: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = tasks_of(make_job(replay_history))[0]
    monkeypatch.setattr("planner.replay.kernel.replay_days", lambda _: 1 / 0)
    result = replay_one(task)
    assert result.error == "The planner failed with ZeroDivisionError. Report this task."


def test_workers_that_do_not_see_the_history(replay_history: Path, spark: "SparkSession") -> None:
    session = OpenSession(spark, SparkPlace("connect", "sc://127.0.0.1:15002/;token=x"), 2)
    check_workers(session, "planner.replay.kernel", [str(replay_history)])
    with pytest.raises(ReplayError, match="does not see the folder /nowhere") as caught:
        check_workers(session, "planner.replay.kernel", ["/nowhere"])
    assert caught.value.where == "Spark Connect at sc://127.0.0.1:15002"
    assert "at the same path" in caught.value.remedy


def test_where_spark_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    monkeypatch.delenv("PLANNER_SPARK_MASTER", raising=False)
    assert spark_place() == SparkPlace("local")
    monkeypatch.setenv("PLANNER_SPARK_MASTER", "yarn")
    assert spark_place().in_words == "Spark, master yarn"
    monkeypatch.setenv("SPARK_REMOTE", "sc://me:secret@host:15002/;token=secret")
    assert spark_place().in_words == "Spark Connect at sc://host:15002"


def test_a_cluster_that_grows_gets_more_tasks_at_once(replay_history: Path, spark: "SparkSession") -> None:
    tasks = tasks_of(make_job(replay_history))
    sizes = iter((1, 2, 0))
    asked: list[int] = []

    class Growing(OpenSession):
        def parallel_now(self) -> int:
            asked.append(next(sizes, 8))
            return asked[-1]

    session = Growing(spark, SparkPlace("local"), 2)
    assert by_name(run_spark(tasks, session, never)).keys() == {task.task for task in tasks}
    assert asked[:4] == [1, 2, 0, 8]
    master, server = SparkPlace("master", "spark://host:7077"), SparkPlace("connect", "sc://host")
    assert OpenSession(spark, master, 7).parallel_now() == spark.sparkContext.defaultParallelism == 2
    assert OpenSession(spark, master, 7, fixed=True).parallel_now() == 7
    assert OpenSession(spark, server, 7).parallel_now() == 7


@pytest.mark.parametrize(
    ("name", "value", "master", "said"),
    [
        ("HADOOP_CONF_DIR", "", "yarn", "The address of YARN is not configured"),
        ("PLANNER_SPARK_WAIT_S", "soon", "yarn", "is not a number of seconds"),
        ("PLANNER_SPARK_WAIT_S", "", "k8s://https://127.0.0.1:1", "No answer from Spark, master k8s://https://127"),
        ("PLANNER_SPARK_WAIT_S", "", "k8s://127.0.0.1:1", "No answer from"),
    ],
)
def test_a_master_that_cannot_be_there(
    name: str, value: str, master: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("SPARK_REMOTE", "HADOOP_CONF_DIR", "YARN_CONF_DIR"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PLANNER_SPARK_MASTER", master)
    monkeypatch.setenv(name, value)
    with pytest.raises(ReplayError, match=said), open_session("test", tmp_path):
        pass


def test_runners_stop_when_asked(replay_history: Path) -> None:
    tasks = tasks_of(make_job(replay_history))
    found: list[TaskResult] = []
    found.extend(run_local(tasks, lambda: len(found) >= 3))
    assert len(found) <= 3
    asked = iter((False, False))
    assert len(list(run_processes(tasks, 2, lambda: next(asked, True)))) < len(tasks)


class TestFiles:
    def test_parts_then_whole_and_digests(self, replay_history: Path, tmp_path: Path) -> None:
        tasks = tasks_of(make_job(replay_history))
        writer = ResultWriter(tmp_path, tasks, every_s=0)
        results = list(run_local(tasks, never))
        for result in results[:5]:
            writer.add(result)
        assert read_summary(tmp_path) is None
        assert len(result_files(tmp_path)["tasks"]) == 5
        assert sum(ReplayResults(result_files(tmp_path)).scenarios()["tasks"].to_pylist()) == 5

        again = ResultWriter(tmp_path, tasks)
        assert again.finished == {result.task for result in results[:5]}
        for result in reversed(results[5:]):
            again.add(result)
        summary = again.finish(1.5)
        assert summary == read_summary(tmp_path)
        assert summary.digest == combined_digest([result.digest for result in results])
        assert (summary.complete, summary.done, summary.failed, summary.seconds) == (True, 12, 0, 1.5)
        assert summary.cycles == 12 * 24
        assert not (tmp_path / "parts").exists()
        read = ReplayResults(result_files(tmp_path))
        moves = pa.concat_tables([day.moves for result in results for day in result.days])
        assert summary.moves == moves.num_rows
        scenario = tasks[0].scenario.name
        mine = {task.task for task in tasks if task.scenario.name == scenario}
        assert sum(read.kinds(scenario).values()) == sum(name in mine for name in moves["task"].to_pylist())

    def test_a_task_that_failed_counts_as_it_ended_last(self, replay_history: Path, tmp_path: Path) -> None:
        tasks = tasks_of(make_job(replay_history, values=()))
        writer = ResultWriter(tmp_path, tasks, every_s=0)
        well = [replay_one(task) for task in tasks]
        for one in well:
            writer.add(replace(one, days=(), error="Once."))
        assert writer.finish(1).failed == 4
        again = ResultWriter(tmp_path, tasks, every_s=0)
        assert not again.finished
        for one in well[:3]:
            again.add(one)
        again.add(replace(well[3], days=(), error="Twice."))
        summary = again.finish(1)
        assert (summary.done, summary.failed, summary.errors) == (3, 1, {well[3].task: "Twice."})
        read = ReplayResults(result_files(tmp_path))
        assert read.failed().to_pylist() == [{"task": well[3].task, "error": "Twice."}]
        assert read.scenarios()["tasks"].to_pylist() == [3]

    @pytest.mark.parametrize("asked_before", [False, True])
    def test_a_file_that_cannot_be_read_is_named_and_no_folder(
        self, replay_history: Path, tmp_path: Path, *, asked_before: bool
    ) -> None:
        tasks = tasks_of(make_job(replay_history, values=()))[:1]
        writer = ResultWriter(tmp_path, tasks)
        for result in run_local(tasks, never):
            writer.add(result)
        writer.finish(1)
        files = result_files(tmp_path)
        read = ReplayResults(files)
        if asked_before:
            read.scenarios()
        (days,) = files["days"]
        whole = days.read_bytes()
        for harm, said in (
            (days.unlink, "days.parquet is missing"),
            (lambda: days.write_bytes(whole[:100]), "days.parquet"),
            (lambda: days.write_bytes(b""), "days.parquet"),
        ):
            harm()
            with pytest.raises(StoreError, match=rf"^The results cannot be read: .*{said}.* Retry the job") as caught:
                read.scenarios()
            assert str(tmp_path) not in str(caught.value)

    def test_curves(self, replay_history: Path, tmp_path: Path) -> None:
        tasks = tasks_of(make_job(replay_history))
        writer = ResultWriter(tmp_path, tasks)
        results = list(run_local(tasks, never))
        for result in results:
            writer.add(result)
        writer.finish(1)
        read = ReplayResults(result_files(tmp_path))
        names = [scenario.name for scenario in make_job(replay_history).scenarios]
        assert read.clusters() == ["east", "west"]
        for name, row in zip(sorted(names), read.scenarios().to_pylist(), strict=True):
            assert row["scenario"] == name
            curve = read.curves("shed", [name])
            assert curve["value"][-1].as_py() == row["shed"]
            highest = read.curves("highest", [name])["value"].to_pylist()
            assert max(highest) == pytest.approx(row["peak_usage_percent"])
            assert len(highest) == 48
        both = read.curves("std", names)
        assert set(both["scenario"].to_pylist()) == set(names)
        east = read.curves("shed", names[:1], "east")["value"][-1].as_py()
        west = read.curves("shed", names[:1], "west")["value"][-1].as_py()
        assert east + west == read.curves("shed", names[:1])["value"][-1].as_py()

    def test_a_scenario_comes_to_what_the_advisor_says(self, replay_history: Path, tmp_path: Path) -> None:
        tasks = tasks_of(make_job(replay_history, values=(2,)))
        writer = ResultWriter(tmp_path, tasks)
        results = list(run_local(tasks, never))
        for result in results:
            writer.add(result)
        writer.finish(1)
        found = ReplayResults(result_files(tmp_path)).scenarios().to_pylist()
        assert len(found) == 2
        for row in found:
            totals = totals_of([one for one in rows_of(tasks, results) if one.scenario == row["scenario"]])
            assert row["shed"] > 0
            for measure in SCENARIO_MEASURES:
                assert row[measure.name] == pytest.approx(totals[measure.name], rel=1e-12), measure.name

    def test_moves_are_found(self, replay_history: Path, tmp_path: Path) -> None:
        tasks = tasks_of(make_job(replay_history, values=()))
        writer = ResultWriter(tmp_path, tasks)
        for result in run_local(tasks, never):
            writer.add(result)
        writer.finish(1)
        read = ReplayResults(result_files(tmp_path))
        shed = read.moves("hourly", kind="shed")
        assert shed.num_rows == read.kinds("hourly")["shed"] > 0
        assert shed["at_ms"].to_pylist() == sorted(shed["at_ms"].to_pylist())
        broker = shed["source"][0].as_py()
        found = read.moves("hourly", kind="shed", text=broker.upper())
        assert found.num_rows > 0
        assert all(broker in (row["source"], row["destination"]) for row in found.to_pylist())
        assert read.moves("hourly", limit=1).num_rows == 1
        assert read.moves("'; DROP TABLE moves; --").num_rows == 0


def test_code_for_workers_runs_from_its_zip(tmp_path: Path) -> None:
    """Tables included: a worker has neither the package nor its folder."""
    archive = package_code(tmp_path)
    code = "import planner.replay.kernel as k, planner.cluster.releases as r; print(k.__file__, len(r.RELEASES))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(archive)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert str(archive) in done.stdout
