"""Ingest on real Spark servers makes the history that it makes here."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from planner.history.generate import snapshots_of_day
from planner.history.manifest import DAY_MS, complete_days
from planner.history.raw import write_raw
from planner.history.spec import HistorySpec
from planner.simulate.cluster_spec import ClusterSpec
from tests.data.history.test_history_bad_rows import report
from tests.data.replay.spark_servers import connect_server, python_without_planner, standalone

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
ROOT = Path(__file__).parents[3]
SPEC = HistorySpec(cluster=ClusterSpec(brokers=3, bundles=24, topics=40, cluster="k"), days=2, interval_s=600)


def ingest(raw: Path, out: Path, **environment: str) -> str:
    """Run the command; return what it says."""
    arguments = [
        sys.executable,
        "-m",
        "planner",
        "history",
        "ingest",
        str(raw),
        "--interval-s",
        "600",
        "--out",
        str(out),
    ]
    done = subprocess.run(
        arguments, cwd=ROOT, env=os.environ | environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.replace(str(out), "")


def parts(root: Path) -> list[list[str]]:
    return [sorted(part.sha256 for part in day.manifest.parts.values()) for day in complete_days(root)]


def test_on_a_standalone_cluster_and_on_a_connect_server(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    last = [write_raw(raw, snapshots_of_day(SPEC, 1, day), "reports") for day in range(2)][-1]
    moment = next(snapshots_of_day(SPEC, 1, 1)).info.captured_at_ms
    strays = [b"oops", report(moment + 4_000 * DAY_MS, "b:1"), report(moment, "b:1"), report(moment, "b:1", 9 * DAY_MS)]
    last.write_bytes(last.read_bytes() + b"\n".join(strays))
    here = ingest(raw, tmp_path / "here")
    assert "years off" in here
    python = str(python_without_planner(tmp_path))
    with standalone(tmp_path / "cluster", 2) as cluster:
        there = ingest(raw, tmp_path / "master", PLANNER_SPARK_MASTER=cluster.address, PYSPARK_PYTHON=python)
        assert list(cluster.folder.rglob("work/**/planner-code.zip"))
    assert there == here
    with connect_server(tmp_path / "server", PYSPARK_PYTHON=python) as address:
        there = ingest(raw, tmp_path / "connect", SPARK_REMOTE=address, JAVA_HOME="/nowhere", PATH="/nowhere")
    assert there == here
    assert parts(tmp_path / "here") == parts(tmp_path / "master") == parts(tmp_path / "connect")
    assert len(parts(tmp_path / "here")) == 3  # two of one cluster, and one of the rows that were added
