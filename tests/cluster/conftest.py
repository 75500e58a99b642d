"""Real clusters for the tests; each starts with the first test that wants it and ends with its module or session."""

from collections.abc import Iterator

import pytest

from tests.cluster.launch import Cluster, classpath, start_cluster


@pytest.fixture(scope="session")
def pulsar_classpath(tmp_path_factory: pytest.TempPathFactory) -> str:
    return classpath(tmp_path_factory.mktemp("pulsar"))


@pytest.fixture(scope="module")
def modular(pulsar_classpath: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three brokers with the modular load manager."""
    with start_cluster(pulsar_classpath, tmp_path_factory.mktemp("modular") / "run", {}) as cluster:
        yield cluster
