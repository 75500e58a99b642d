"""Every recorded decision that is kept here is decided once, as `python -m planner conform` does."""

from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from planner.conform.kinds import KINDS
from planner.conform.mismatches import mismatches
from planner.conform.reader import Vector, read_vectors

GOLDENS = Path(__file__).parent.parent.parent / "goldens"
# In a schema of their own: answered by tests next to what they are about.
OTHER_FOLDERS = {"captures", "dispatch_limits", "manual_splits", "modular_manager"}
OTHER_FILES = {
    "placement_extensible/filters.jsonl.gz",
    "transfer_shedder/policies.jsonl.gz",  # asks for policies that the schema cannot tell
}


def files() -> list[Path]:
    every = sorted(GOLDENS.glob("*/*.jsonl.gz"))
    return [
        path
        for path in every
        if path.parent.name not in OTHER_FOLDERS and str(path.relative_to(GOLDENS)) not in OTHER_FILES
    ]


@cache
def vectors() -> tuple[Vector, ...]:
    return tuple(vector for path in files() for vector in read_vectors(path))


@pytest.mark.parametrize("path", files(), ids=lambda path: str(path.relative_to(GOLDENS)))
def test_all_are_decided_as_pulsar_did(path: Path) -> None:
    """The one place where recorded decisions are decided."""
    assert [line for vector in read_vectors(path) for line in mismatches(vector)] == []


def test_every_kind_is_there() -> None:
    counts = Counter(vector.kind for vector in vectors())
    assert set(counts) == set(KINDS)
    assert min(counts.values()) >= 60


def test_every_placement_strategy_is_there() -> None:
    counts = Counter(vector.input["strategy"] for vector in vectors() if vector.kind == "placement")
    assert set(counts) == {
        "LeastLongTermMessageRate",
        "LeastResourceUsageWithWeight",
        "RoundRobinBrokerSelector",
        "AvgShedder",
        "extensions.LeastResourceUsageWithWeight",
        "RoundRobinBrokerSelectionStrategy",
    }
    assert min(counts.values()) >= 10
