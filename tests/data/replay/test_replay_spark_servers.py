"""Jobs on real Spark servers: a standalone cluster that loses a worker, and Spark Connect."""

import re
import tarfile
import time
from datetime import datetime
from pathlib import Path

import pytest

from planner.replay.jobs import log_tail, submit
from planner.replay.kernel import combined_digest
from planner.replay.runners import run_local
from planner.replay.spec import tasks_of
from tests.data.replay.replays import OFTEN, make_job, wait_for
from tests.data.replay.spark_servers import ConnectServer, connect_server, python_without_planner, standalone

pytestmark = pytest.mark.slow
TIMES_OUT = pytest.mark.timeout(900)


@TIMES_OUT
def test_a_standalone_cluster_loses_a_worker(
    replay_history: Path, jobs_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = make_job(replay_history, base=OFTEN, values=(4, 6, 8, 10, 12), runner="spark")
    monkeypatch.setenv("PYSPARK_PYTHON", str(python_without_planner(tmp_path)))
    with standalone(tmp_path / "cluster", 2) as cluster:
        monkeypatch.setenv("PLANNER_SPARK_MASTER", cluster.address)
        stored = submit(job, jobs_folder)
        running = wait_for(stored, lambda status: status.done > 0)
        assert running.where == f"Spark, master {cluster.address}, 2 tasks at once"
        assert list(cluster.folder.rglob("work/**/planner-code.zip"))
        cluster.workers[0].kill()
        left = running.tasks - running.done
        done = wait_for(stored)
    assert left > 4
    assert (done.state, done.done, done.failed) == ("done", 24, 0)
    assert "Lost executor" in log_tail(stored.folder) or "Lost task" in log_tail(stored.folder)
    assert done.digest == combined_digest([one.digest for one in run_local(tasks_of(job), lambda: False)])


@TIMES_OUT
def test_options_of_spark_submit_a_python_in_an_archive_and_a_worker_that_joins_late(
    replay_history: Path, jobs_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = make_job(replay_history, base=OFTEN, values=tuple(range(1, 25)), runner="spark")
    archive = tmp_path / "python-packages.tar.gz"
    with tarfile.open(archive, "w:gz") as packed:
        packed.add(python_without_planner(tmp_path), "bin/python")
    monkeypatch.setenv("PYSPARK_PYTHON", "./environment/bin/python")
    options = f"--archives {archive}#environment --conf spark.executor.memory=600m pyspark-shell"
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", options)
    with standalone(tmp_path / "cluster", 1) as cluster:
        monkeypatch.setenv("PLANNER_SPARK_MASTER", cluster.address)
        stored = submit(job, jobs_folder)
        wait_for(stored, lambda status: status.done > 0)
        cluster.add_worker()
        done = wait_for(stored)
        used = [worker for worker in cluster.folder.iterdir() if list(worker.rglob("planner-code.zip"))]
        assert "-Xmx600M" in cluster.workers[0].said()
    assert (done.state, done.done, done.failed) == ("done", 100, 0)
    assert sorted(worker.name for worker in used) == ["worker-0", "worker-1"]
    assert done.digest == combined_digest([one.digest for one in run_local(tasks_of(job), lambda: False)])


@TIMES_OUT
def test_a_cluster_without_workers_is_said_and_new_ones_go_on(
    replay_history: Path, jobs_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = make_job(replay_history, base=OFTEN, values=tuple(range(1, 13)), runner="spark")
    monkeypatch.setenv("PLANNER_SPARK_WAIT_S", "60")
    with standalone(tmp_path / "cluster", 1) as cluster:
        monkeypatch.setenv("PLANNER_SPARK_MASTER", cluster.address)
        stored = submit(job, jobs_folder)
        wait_for(stored, lambda status: status.done > 0)
        cluster.workers[0].kill()
        begin_s = time.monotonic()
        wait_for(stored, lambda status: status.stage == "No Spark worker is left: waiting")
        assert time.monotonic() - begin_s < 60
        cluster.add_worker()
        done = wait_for(stored)
    assert (done.state, done.failed) == ("done", 0)
    assert done.digest == combined_digest([one.digest for one in run_local(tasks_of(job), lambda: False)])


@TIMES_OUT
@pytest.mark.parametrize("then", ["stays away", "is started anew"])
def test_a_master_that_is_gone_for_its_workers(
    then: str, replay_history: Path, jobs_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = make_job(replay_history, base=OFTEN, values=tuple(range(1, 13)), runner="spark")
    monkeypatch.setenv("PLANNER_SPARK_WAIT_S", "15")
    with standalone(tmp_path / "cluster", 1) as cluster:
        monkeypatch.setenv("PLANNER_SPARK_MASTER", cluster.address)
        stored = submit(job, jobs_folder)
        wait_for(stored, lambda status: status.done > 0)
        cluster.master.kill()
        if then == "is started anew":
            cluster.start_master()
        else:
            cluster.workers[0].kill()
        ended = wait_for(stored)
        assert ended.state == "failed", ended
        assert "No Spark worker is left" in ended.what
        assert "retry" in ended.remedy
        assert 0 < ended.done < ended.tasks


@TIMES_OUT
@pytest.mark.parametrize("then", ["stays away", "is started anew"])
def test_a_connect_server_that_is_gone(
    then: str, replay_history: Path, jobs_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = make_job(replay_history, base=OFTEN, values=tuple(range(1, 13)), runner="spark")
    server = ConnectServer(tmp_path / "server")
    try:
        monkeypatch.setenv("SPARK_REMOTE", server.address)
        stored = submit(job, jobs_folder)
        wait_for(stored, lambda status: status.done > 0)
        server.kill()
        begin_s = time.monotonic()
        if then == "is started anew":
            server.start()
        ended = wait_for(stored)
        assert time.monotonic() - begin_s < 300
        assert ended.state == "failed", ended
        assert re.search("does not answer|was started anew", ended.what), ended.what
        assert 0 < ended.done < ended.tasks
    finally:
        server.kill()


@TIMES_OUT
def test_spark_connect(
    replay_history: Path, jobs_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = make_job(replay_history, runner="spark")
    with connect_server(tmp_path / "server", PYSPARK_PYTHON=str(python_without_planner(tmp_path))) as address:
        monkeypatch.setenv("SPARK_REMOTE", address)
        monkeypatch.setenv("JAVA_HOME", "/nowhere")  # the client needs no Java
        monkeypatch.setenv("PATH", "/nowhere")
        stored = submit(job, jobs_folder)
        done = wait_for(stored)
    lines = log_tail(stored.folder).splitlines()
    begin, end = (
        next(datetime.fromisoformat(line[:19]) for line in lines if mark in line) for mark in ("Running on", "Done.")
    )
    assert done.rate_per_min > done.done * 60 / ((end - begin).total_seconds() + 1)  # without the start of Spark
    assert (done.state, done.done, done.failed) == ("done", 12, 0)
    assert done.where == f"Spark Connect at {address}, 2 tasks at once"
    assert done.digest == combined_digest([one.digest for one in run_local(tasks_of(job), lambda: False)])
