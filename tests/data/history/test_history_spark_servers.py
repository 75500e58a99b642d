"""Ingest on real Spark servers makes the history that it makes here."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from planner.cluster.units import DAY_MS
from planner.history.generate import snapshots_of_day
from planner.history.manifest import complete_days
from planner.history.raw import write_raw
from planner.history.spec import HistorySpec
from planner.simulate.cluster_spec import ClusterSpec
from tests.data.history.test_history_bad_rows import report
from tests.data.replay.spark_servers import connect_server, python_without_planner, standalone

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
ROOT = Path(__file__).parents[3]
SPEC = HistorySpec(cluster=ClusterSpec(brokers=3, bundles=24, topics=40, cluster="k"), days=2, interval_s=600)


CUT = """
import sys
from pathlib import Path
from planner.history.ingest import ingest
from planner.history.spec import Options
made = ingest([Path(sys.argv[1])], Path(sys.argv[2]), Options(interval_ms=600_000, run_rows=300))
print(len(made.days[0].runs))
"""


def ingest(raw: Path, out: Path, **environment: str) -> str:
    """Run the command; return what it says."""
    options = ["--interval-s", "600", "--out", str(out)]
    return run(["-m", "planner", "history", "ingest", str(raw), *options], out, **environment)


def run(arguments: list[str], out: Path, **environment: str) -> str:
    arguments = [sys.executable, *arguments]
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
    one = write_raw(tmp_path / "one", snapshots_of_day(SPEC, 1, 0), "reports")

    def cut(name: str, **environment: str) -> str:
        return run(["-c", CUT, str(one), str(tmp_path / name)], tmp_path, **environment)

    here, cut_here = ingest(raw, tmp_path / "here"), cut("here-cut")
    assert int(cut_here) > 4
    assert "years away" in here
    python = str(python_without_planner(tmp_path))
    with standalone(tmp_path / "cluster", 2) as cluster:
        where = {"PLANNER_SPARK_MASTER": cluster.address, "PYSPARK_PYTHON": python}
        there = ingest(raw, tmp_path / "master", **where)
        assert cut("master-cut", **where) == cut_here
        assert list(cluster.folder.rglob("work/**/planner-code.zip"))
    assert there == here
    with connect_server(tmp_path / "server", PYSPARK_PYTHON=python) as address:
        where = {"SPARK_REMOTE": address, "JAVA_HOME": "/nowhere", "PATH": "/nowhere"}
        there = ingest(raw, tmp_path / "connect", **where)
        assert cut("connect-cut", **where) == cut_here
    assert there == here
    assert parts(tmp_path / "here") == parts(tmp_path / "master") == parts(tmp_path / "connect")
    assert parts(tmp_path / "here-cut") == parts(tmp_path / "master-cut") == parts(tmp_path / "connect-cut")
    assert len(parts(tmp_path / "here")) == 3  # two of one cluster, and one of the rows that were added
