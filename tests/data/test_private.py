"""What was captured is its owner's alone: no other user of the host gets to a file with names of topics."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from planner.__main__ import main
from planner.capture.options import CaptureOptions
from planner.capture.run import capture_cluster
from planner.shadow.record import ShadowRecord
from tests.app.pages.test_shadow_page import cycle
from tests.data.recorded_cluster import Cluster
from tests.data.test_faults import make_day, watch

OTHERS = 0o077


def open_to_others(root: Path) -> Iterator[Path]:
    """Yield the files below that another user can open: all folders on the way let them in."""
    for path in (p for p in root.rglob("*") if p.is_file() and p.stat().st_size):
        if all(folder.stat().st_mode & OTHERS for folder in (path, *path.parents) if folder.is_relative_to(root)):
            yield path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder that everybody may look into, as `/var/lib/planner` is."""
    made = tmp_path / "root"
    made.mkdir()
    made.chmod(0o755)
    return made


def test_a_capture(cluster: Cluster, options: Callable[..., CaptureOptions], root: Path) -> None:
    capture_cluster(options(cluster, out=root / "monday"))
    assert (root / "monday" / "snapshot" / "bundles.parquet").is_file()
    assert list(open_to_others(root)) == []


def test_a_watch(cluster: Cluster, root: Path) -> None:
    seen: list[Path] = []
    asked = ["--admin-url", cluster.url, "--history", str(root), "--captures", "2", "--interval", "0.05", "--shadow"]
    assert main(["watch", *asked]) == 0
    watch(root, *range(1, 70))
    ShadowRecord(root / "cluster=other").add(cycle(1))
    seen = list(open_to_others(root))
    assert seen == []


def test_days(root: Path) -> None:
    make_day(root, 1, 2, 3)
    assert list(root.glob("cluster=*/day=*/manifest.json"))
    assert list(open_to_others(root)) == []
