"""Asks Pulsar's own classes about fresh random cycles of the modular load manager's shedding strategies.

Where bundles or brokers are equal, Pulsar takes them as its maps visit them, which follows from the order of the case.
"""

import pytest

from tests.oracle.cases import SHEDDERS, modular_case, seeded
from tests.oracle.harness import Oracle, check

pytestmark = [pytest.mark.oracle, pytest.mark.timeout(900)]


@pytest.mark.parametrize("kind", sorted(SHEDDERS))
def test_small_clusters(oracle: Oracle, kind: str) -> None:
    rng = seeded()
    answers = check(oracle, [modular_case(kind, rng, number) for number in range(2500)])
    shed = [sum(bool(step["unload"]) for step in answer["steps"]) for answer in answers]
    assert sum(map(bool, shed)) > len(answers) / 20
    assert any(count > 1 for count in shed)


@pytest.mark.parametrize("kind", sorted(SHEDDERS))
def test_large_clusters(oracle: Oracle, kind: str) -> None:
    rng = seeded()
    check(oracle, [modular_case(kind, rng, number, (200, 20_000)) for number in range(4)])
