"""`python -m planner conform` over every recorded decision that is kept here, whatever its kind."""

from collections import Counter
from pathlib import Path

import pytest

from planner.__main__ import main
from planner.conform.kinds import KINDS
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


@pytest.fixture(scope="module")
def vectors() -> list[Vector]:
    return [vector for path in files() for vector in read_vectors(path)]


def test_all_are_decided_alike(vectors: list[Vector], capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["conform", *map(str, files())])
    assert capsys.readouterr().out == f"{len(vectors)} passed, 0 failed\n"
    assert status == 0


def test_every_kind_is_there(vectors: list[Vector]) -> None:
    counts = Counter(vector.kind for vector in vectors)
    assert set(counts) == set(KINDS)
    assert min(counts.values()) >= 60


def test_every_placement_strategy_is_there(vectors: list[Vector]) -> None:
    counts = Counter(vector.input["strategy"] for vector in vectors if vector.kind == "placement")
    assert set(counts) == {
        "LeastLongTermMessageRate",
        "LeastResourceUsageWithWeight",
        "RoundRobinBrokerSelector",
        "AvgShedder",
        "extensions.LeastResourceUsageWithWeight",
        "RoundRobinBrokerSelectionStrategy",
    }
    assert min(counts.values()) >= 10
