"""What is said of a document that does not have the shape of its format: the place, and what to write."""

from typing import Any

import pytest

from planner.cluster.errors import ScenarioError
from planner.simulate.scenario import scenario_from_json


def step(**edit: Any) -> dict[str, Any]:
    return {"version": 1, "steps": [{"edit": edit}]}


@pytest.mark.parametrize(
    ("document", "where", "words"),
    [
        (step(kind="split", bundle="a"), "steps.0.edit", "there is no kind 'split'. Did you mean split_bundle?"),
        (step(kind="x" * 500), "steps.0.edit", f"there is no kind '{'x' * 80}'. Did you mean "),
        (step(bundle="a"), "steps.0.edit", "the field kind is missing"),
        (step(kind="split_bundle"), "steps.0.edit.split_bundle.bundle", "this field is missing"),
        (
            step(kind="split_bundle", bundel="a"),
            "steps.0.edit.split_bundle.bundel",
            "there is no such field. Did you mean bundle?",
        ),
        (step(kind="add_brokers", count="many"), "steps.0.edit.add_brokers.count", "it should be a valid integer"),
        (
            step(kind="add_brokers", name_prefix="a b"),
            "steps.0.edit.add_brokers.name_prefix",
            "it should match pattern",
        ),
        ({"version": 1, "setings": {}}, "setings", "there is no such field. Leave it out"),
        ({"version": 1, "cycles": 0}, "cycles", "it should be greater than or equal to 1"),
        ({"version": 1, "steps": {}}, "steps", "it should be a list"),
        ({"version": "1"}, "version", """format version '1'; this planner reads 1. Write "version": 1, a number."""),
        ({"version": 1, "pulsar_version": "2.10.1"}, "pulsar_version", "rules of Pulsar '2.10.1' here. Write 3.0.0, "),
        ({"version": 1, "pulsar_version": "v4.0.8"}, "pulsar_version", "Write 4.0.8, whose rules are the nearest"),
        ({"version": 1, "pulsar_version": "4.0"}, "pulsar_version", "Write 4.0.8, whose rules are the nearest"),
        ({}, "version", 'names no format version. Add "version": 1.'),
    ],
)
def test_the_place_and_what_to_write(document: dict[str, Any], where: str, words: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        scenario_from_json(document)
    assert caught.value.where == where
    assert words in str(caught.value)
    for inner in ("Unexpected", "discriminator", "Field required", "tag"):
        assert inner not in str(caught.value)
