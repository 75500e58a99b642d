"""What tests of several packages share."""

from pathlib import Path

import hypothesis
import pytest

from planner.cluster.snapshot import Snapshot
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.generate import generate

ROOT = Path(__file__).parent.parent

hypothesis.settings.register_profile("house", deadline=None)  # how fast a machine is decides no test
hypothesis.settings.load_profile("house")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--rewrite` writes the goldens that are text anew; look at the difference before it is kept."""
    parser.addoption("--rewrite", action="store_true", help="write goldens that are text anew")


@pytest.fixture(scope="session")
def small() -> Snapshot:
    """A generated cluster of five brokers."""
    return generate(ClusterSpec(brokers=5, bundles=60, topics=400, msg_rate_per_s=50_000, cluster="small"), 7)


@pytest.fixture
def workspace_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace of its own for a test; the file does not exist yet."""
    path = tmp_path / "planner.duckdb"
    monkeypatch.setenv("PLANNER_WORKSPACE", str(path))
    return path
