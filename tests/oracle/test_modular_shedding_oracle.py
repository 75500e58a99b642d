"""Asks Pulsar's own classes about fresh random cycles of the modular load manager's shedding strategies."""

import pytest

from tests.oracle.cases import SHEDDERS, modular_case, seeded, tied_in_a_bucket
from tests.oracle.harness import Oracle, check

pytestmark = [pytest.mark.oracle, pytest.mark.timeout(900)]


@pytest.mark.parametrize("kind", sorted(SHEDDERS))
def test_small_clusters(oracle: Oracle, kind: str) -> None:
    rng = seeded()
    drawn = (modular_case(kind, rng, number) for number in range(4000))
    cases = [vector for vector in drawn if not tied_in_a_bucket(vector)]
    assert len(cases) >= 1000
    answers = check(oracle, cases)
    shed = [sum(bool(step["unload"]) for step in answer["steps"]) for answer in answers]
    assert sum(map(bool, shed)) > len(cases) / 20
    assert any(count > 1 for count in shed)


@pytest.mark.parametrize("kind", sorted(SHEDDERS))
def test_large_clusters(oracle: Oracle, kind: str) -> None:
    rng = seeded()
    drawn = (modular_case(kind, rng, number, (200, 20_000)) for number in range(4))
    check(oracle, list(drawn))
