"""Kinds of edits: each in one file and one line of the registry, and all that reads them reads the registry."""

import random
import re
from dataclasses import fields
from pathlib import Path
from typing import Any, cast, get_type_hints

import pytest

from planner.cluster.errors import ScenarioError
from planner.cluster.snapshot import Snapshot
from planner.explain.outcome import Outcome
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.edits.edit import Ask, Edit, EditContext
from planner.simulate.edits.registry import EDITS, KINDS
from planner.simulate.generate import generate
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario, Step, scenario_from_json, scenario_to_json
from tests.app.plan.random_scenarios import random_edit

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "planner" / "simulate" / "edits"
PRODUCT = [ROOT / "app.py", *(ROOT / "pages").rglob("*.py"), *(ROOT / "planner").rglob("*.py")]


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_is_named_in_its_file_and_the_registry_only(kind: str) -> None:
    name = KINDS[kind].__name__
    homes = {FOLDER / f"{kind}.py", FOLDER / "registry.py"}
    assert all(path.is_file() for path in homes)
    word = re.compile(rf"\b({name}|{kind})\b")
    naming = {path for path in PRODUCT if word.search(path.read_text(encoding="utf-8"))}
    assert naming == homes


def test_every_file_is_registered() -> None:
    files = {path.stem for path in FOLDER.glob("*.py")} - {"__init__", "edit", "registry", "running"}
    assert files == set(KINDS)
    assert len(KINDS) == len(EDITS)


@pytest.mark.parametrize("kind", KINDS)
def test_a_form_knows_how_to_ask_for_every_field(kind: str) -> None:
    hints = get_type_hints(KINDS[kind], include_extras=True)
    for field in fields(cast("Any", KINDS[kind])):
        if field.name != "kind":
            asks = [note for note in hints[field.name].__metadata__ if isinstance(note, Ask)]
            assert len(asks) == 1, field.name


@pytest.mark.parametrize("seed", range(40))
def test_an_edit_says_what_it_does_and_goes_through_json(seed: int) -> None:
    snapshot = generate(ClusterSpec(brokers=3, bundles=12, topics=30, namespaces=2), 1)
    edit = random_edit(snapshot, random.Random(seed))  # noqa: S311
    assert edit.phrase()
    assert edit.title
    assert edit.lacks(EditContext(snapshot)) == "" or edit.lacks(EditContext(snapshot)).endswith(".")
    (step,) = scenario_from_json(scenario_to_json(Scenario(steps=(Step(edit),)))).steps
    assert step.edit == edit
    assert all(command.note or command.words for command in edit.commands("c", ("pulsar-admin",)))


def _numbers(kind: str) -> list[str]:
    return [name for name, hint in get_type_hints(KINDS[kind]).items() if hint is float]


def _can_be_simulated(cluster: Snapshot, edit: Edit) -> bool:
    try:
        simulate(cluster, Scenario(steps=(Step(edit),), cycles=2))
    except ScenarioError:
        return False
    return True


@pytest.mark.parametrize(
    ("kind", "shape"),
    [
        (kind, shape)
        for kind in KINDS
        if _numbers(kind)
        for shape in (("step", "growth", "daily", "spike") if "shape" in get_type_hints(KINDS[kind]) else ("",))
    ],
)
def test_no_number_that_is_taken_makes_a_moment_infinite(kind: str, shape: str) -> None:
    """What is nearly nothing is refused by the name of its field where something is divided by it."""
    cluster = generate(ClusterSpec(brokers=3, namespaces=2, bundles=8, topics=20), 0)
    drawn = (random_edit(cluster, random.Random(seed)) for seed in range(500))  # noqa: S311
    edit = next(edit for edit in drawn if edit.kind == kind and _can_be_simulated(cluster, edit))
    refused = 0
    for field in _numbers(kind):
        for value in (5e-324, 1e-320, 1e-306, 1e-300, 1e-9, 1e-6, 0.0, 0.1, 4_096.0, 100_000.0):
            given = scenario_to_json(Scenario(steps=(Step(edit),), cycles=2))
            given["steps"][0]["edit"] |= {field: value, "at_min": 0.0, **({"shape": shape} if shape else {})}
            if field == "at_min":
                given["steps"][0]["edit"]["at_min"] = value
            try:
                scenario = scenario_from_json(given)
            except ScenarioError as error:
                refused += 1
                named = error.where.rpartition(".")[2] == field
                assert named, error  # noqa: PT017 - it need not be refused
                continue
            Outcome(simulate(cluster, scenario)).prepare()
    assert refused or kind in {"add_brokers", "change_capacity"}
