"""The planner places every recorded case of the modular load manager as the official classes did."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from planner.cluster.errors import VectorError
from planner.conform.compare import differences
from planner.conform.load_data import Json
from planner.conform.placements import ANSWERS

GOLDENS = Path(__file__).parent.parent.parent / "goldens" / "placement"


def recorded(name: str) -> list[Any]:
    path = GOLDENS / f"{name}.jsonl.gz"
    vectors = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    return [pytest.param(vector, id=vector["id"]) for vector in vectors]


@pytest.mark.parametrize("vector", recorded("vectors"))
def test_places_as_recorded(vector: Json) -> None:
    asked = {key: value for key, value in vector.items() if key != "expected"}
    assert not list(differences(vector["expected"], ANSWERS["placement"](asked)))


def test_extensible_strategies_are_answered_too() -> None:
    given = {"strategy": "RoundRobinBrokerSelectionStrategy", "steps": [{"candidates": ["b:1"]}]}
    assert ANSWERS["placement"]({"config": {}, "input": given}) == {"steps": [{"selected": "b:1"}]}


def test_unknown_strategy_is_named() -> None:
    vector = {"id": "x", "config": {}, "input": {"strategy": "Magic", "steps": []}}
    with pytest.raises(VectorError, match=r"x: Unknown strategy 'Magic'.*RoundRobinBrokerSelectionStrategy"):
        ANSWERS["placement"](vector)
