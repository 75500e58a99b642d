"""Asks Pulsar's own classes about fresh random cycles of the modular load manager's shedding strategies.

Where bundles or brokers are equal, Pulsar takes them as its maps visit them, and keys of one bucket are visited as the
map's history has it. Pulsar tells that order, and the planner gets it as the order of its tables.
"""

import pytest

from tests.oracle.cases import SHEDDERS, Case, modular_case, seeded
from tests.oracle.harness import Oracle, compare

pytestmark = [pytest.mark.oracle, pytest.mark.timeout(900)]


def as_visited(vector: Case, answer: Case) -> Case:
    """Return a case with its load data in the order told, which is taken out of the answer."""
    steps = []
    for step, told in zip(vector["input"]["steps"], answer["steps"], strict=True):
        data = dict(step["loadData"])
        for key, names in told.pop("visited").items():
            assert set(names) == set(data[key])
            data[key] = {name: data[key][name] for name in names}
        steps.append({**step, "loadData": data})
    return {**vector, "input": {**vector["input"], "steps": steps}}


def check(oracle: Oracle, cases: list[Case]) -> list[Case]:
    answers = oracle([{**one, "input": {**one["input"], "tellVisited": True}} for one in cases])
    compare([as_visited(one, answer) for one, answer in zip(cases, answers, strict=True)], answers)
    return answers


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
