"""One Spark for all tests of the package, since starting it takes seconds."""

from typing import TYPE_CHECKING

import pytest

from planner.replay.session import local_session

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> "Iterator[SparkSession]":
    """Spark in this process, on two cores."""
    session = local_session("tests", 2)
    yield session
    session.stop()
