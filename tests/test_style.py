"""The style and type checks of the house, so that the one test command covers them."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize(
    "check",
    [("ruff", "check", "."), ("ruff", "format", "--check", "."), ("mypy",)],
    ids=["ruff check", "ruff format", "mypy"],
)
def test_clean(check: tuple[str, ...]) -> None:
    done = subprocess.run([sys.executable, "-m", *check], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]


def test_only_a_snapshot_touches_what_it_has_worked_out() -> None:
    """Names and orders of bundles go from one snapshot to another by `Snapshot.sharing` alone."""
    home = ROOT / "planner" / "cluster" / "snapshot.py"
    for path in sorted((ROOT / "planner").rglob("*.py")):
        assert path == home or "__dict__" not in path.read_text(encoding="utf-8"), path
