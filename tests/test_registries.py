"""What is registered keeps its contract: members by name, recorded decisions, random draws, and something to do."""

import gzip
import inspect
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, get_type_hints

import pytest

from planner.cluster.snapshot import Snapshot
from planner.pulsar.placement.protocol import Placement
from planner.pulsar.placement.registry import PLACEMENTS
from planner.pulsar.shedding.protocol import Shedder
from planner.pulsar.shedding.registry import SHEDDERS
from planner.pulsar.splitting.protocol import SplitAlgorithm
from planner.pulsar.splitting.registry import SPLIT_ALGORITHMS
from planner.simulate.admin_commands import PROGRAM
from planner.simulate.edits.registry import EDITS
from tests.app.plan.random_scenarios import random_edit

GOLDENS = Path(__file__).parent / "goldens"
DOCS = Path(__file__).parent.parent / "docs"
REGISTERED: list[tuple[type, Sequence[Any]]] = [
    (Shedder, SHEDDERS),
    (Placement, PLACEMENTS),
    (SplitAlgorithm, SPLIT_ALGORITHMS),
]
UNLOADED = {"move_bundle", "move_bundles", "split_bundle"}
"""Kinds whose commands follow from the simulation: unloads and splits."""


def members(contract: type) -> Iterator[str]:
    """Yield the names of the members that a protocol asks for."""
    for base in contract.__mro__:
        if base is not Protocol and getattr(base, "_is_protocol", False):
            yield from (name for name in {**vars(base), **get_type_hints(base)} if not name.startswith("_"))


def lacking(contract: type, one: object) -> list[str]:
    return sorted({name for name in members(contract) if not hasattr(one, name)})


def test_a_missing_member_is_named() -> None:
    class Half:
        name = "Half"

    assert {"load_manager", "select", "judges_by", "measure"} <= set(lacking(Placement, Half()))


@pytest.mark.parametrize("contract", [contract for contract, _ in REGISTERED], ids=lambda one: one.__name__)
def test_everything_registered_has_every_member(contract: type) -> None:
    registered = dict(REGISTERED)[contract]
    missing = {one.name: lacking(contract, one) for one in registered if lacking(contract, one)}
    assert not missing, f"{contract.__name__} asks for members that these lack: {missing}"
    for one in registered:
        for name in members(contract):
            wanted, found = getattr(contract, name, None), getattr(one, name)
            if inspect.isfunction(wanted):
                asked = list(inspect.signature(wanted).parameters)[1:]
                assert list(inspect.signature(found).parameters) == asked, f"{one.name}.{name} takes {asked}"


def recorded() -> str:
    """Return every recorded decision as one text."""
    files = sorted(GOLDENS.rglob("*.jsonl.gz"))
    return "\n".join(gzip.decompress(path.read_bytes()).decode("utf-8", "replace") for path in files)


def test_every_strategy_has_recorded_decisions() -> None:
    """A strategy without recordings of the official class is a guess; the Java program of tests/oracle records it."""
    text = recorded()
    kinds = {path.name for path in GOLDENS.iterdir()}
    for one in SHEDDERS:
        folder = f"{one.name.removesuffix('LoadShedder').removesuffix('Shedder').lower()}_shedder"
        assert folder in kinds, f"tests/goldens/{folder} has the recorded decisions of {one.name}; it is missing."
    unrecorded = [one.name for one in (*PLACEMENTS, *SPLIT_ALGORITHMS) if f'"{one.name}"' not in text]
    assert not unrecorded, f"No recorded decision names {unrecorded}."


def test_every_kind_of_edit_is_drawn_at_random(small: Snapshot) -> None:
    """Invariants, links and round trips are tested with the edits that tests/app/plan/random_scenarios.py draws."""
    draw = random.Random(5)  # noqa: S311
    drawn = {type(random_edit(small, draw)) for _ in range(2_000)}
    missing = [kind.__name__ for kind in EDITS if kind not in drawn]
    assert not missing, f"Add these kinds to random_edit of tests/app/plan/random_scenarios.py: {missing}."


def test_every_kind_of_edit_says_what_to_do(small: Snapshot) -> None:
    """An edit yields commands, or a sentence about what it assumes: a plan is never silent about it."""
    draw = random.Random(7)  # noqa: S311
    silent: set[str] = set()
    for _ in range(2_000):
        edit = random_edit(small, draw)
        kind = edit.kind
        if kind not in UNLOADED and not [*edit.commands("c", PROGRAM)] and not edit.assumption():
            silent.add(kind)
    assert not silent, f"These kinds of edits tell an operator nothing to do: {sorted(silent)}."
