"""The official classes, compiled into one program for all tests that ask them."""

import pytest

from tests.oracle.harness import Oracle, available


@pytest.fixture(scope="session")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> Oracle:
    if not available():
        pytest.skip("Java and Maven are needed")
    return Oracle(tmp_path_factory.mktemp("oracle"))
