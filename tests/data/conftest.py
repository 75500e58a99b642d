"""One Spark and one history for all tests of this folder, since making them takes seconds."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from planner.spark.session import local_session
from tests.data.recorded_cluster import _no_token_of_mine, cluster, options, start, zookeeper
from tests.data.replay.replays import make_history

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


__all__ = ["_no_token_of_mine", "cluster", "options", "start", "zookeeper"]


@pytest.fixture(scope="session", autouse=True)
def _java_of_short_jobs() -> "Iterator[None]":
    """Spark, here and in children, does not optimize code that runs for seconds: that takes longer than it saves."""
    options = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_SUBMIT_ARGS", f"--driver-java-options '{options}' pyspark-shell")
        yield


@pytest.fixture(scope="session")
def spark() -> "Iterator[SparkSession]":
    """Spark in this process, on two cores."""
    session = local_session("tests", 2)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def replay_history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two days of two small clusters; to be read only."""
    return make_history(tmp_path_factory.mktemp("histories") / "small")


@pytest.fixture
def jobs_folder(tmp_path: Path) -> Path:
    """Where the jobs of a test live."""
    return tmp_path / "jobs"
