"""What CI relies on when several workers run the tests."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
_TESTS = """
import pytest

@pytest.mark.xdist_group("grouped")
@pytest.mark.parametrize("name", ["a@b", "c"])
def test_grouped(name):
    assert name == "c"

@pytest.mark.parametrize("number", range(6))
def test_single(number):
    pass
"""
_WINDOWS = """
import pytest

@pytest.mark.xdist_group("windows")
@pytest.mark.parametrize("number", range(9))
def test_window(number):
    pass
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with our set-up of tests and a few tests of its own."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    folder = tmp_path / "tests"
    (folder / "e2e").mkdir(parents=True)
    for name in ("conftest.py", "chromium.py"):
        shutil.copy(ROOT / "tests" / name, folder)
    (folder / "test_few.py").write_text(_TESTS, encoding="utf-8")
    (folder / "e2e" / "test_windows.py").write_text(_WINDOWS, encoding="utf-8")
    (tmp_path / "planner").symlink_to(ROOT / "planner")
    return tmp_path


def run(project: Path, *options: str) -> list[str]:
    """Return the lines that pytest prints in a project."""
    command = [sys.executable, "-m", "pytest", "-vv", *options]
    return subprocess.run(command, cwd=project, capture_output=True, text=True, check=False).stdout.splitlines()


def test_only_what_failed_runs_again(project: Path) -> None:
    """xdist puts the group of a test into its id, which no run without workers knows."""
    first = run(project, "-n", "2", "--dist", "loadgroup", "tests/test_few.py")
    assert "1 failed, 7 passed" in first[-1]
    again = run(project, "--last-failed", "--last-failed-no-failures", "none", "tests/test_few.py")
    assert [line for line in again if line.startswith("FAILED")]
    assert "1 failed, 7 deselected" in again[-1]


def test_no_window_opens_before_the_last_other_test(project: Path) -> None:
    """However many are in a group: a browser keeps an event loop, beside which none of a capture can begin."""
    lines = run(project, "-n", "1", "--dist", "loadgroup", "-m", "", "tests")
    begun = [line for line in lines if "PASSED" in line or "FAILED" in line]
    ran = ["e2e" in line for line in begun if "[gw0]" in line]
    assert len(ran) == 17
    assert ran == sorted(ran)
