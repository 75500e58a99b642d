"""The planner answers every recorded request as the official modular load manager did, and remembers the same."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from planner.cluster.pulsar_json import Json
from tests.oracle.requests import mismatches

RECORDED = Path(__file__).parent.parent.parent / "goldens" / "modular_manager" / "requests.jsonl.gz"


def recorded() -> list[Any]:
    cases = [json.loads(line) for line in gzip.decompress(RECORDED.read_bytes()).splitlines()]
    return [pytest.param(case, id=case["id"]) for case in cases]


@pytest.mark.parametrize("case", recorded())
def test_answers_as_recorded(case: Json) -> None:
    assert not mismatches(case, case["expected"])


def test_goldens_cover_every_outcome() -> None:
    asked, errors, twice = set(), set(), False
    for parameters in recorded():
        case: Json = parameters.values[0]
        asked |= {request["do"] for request in case["input"]["requests"]}
        errors |= {answer.get("error") for answer in case["expected"]["requests"]}
        twice |= any(len(answer["calls"]) > 1 for answer in case["expected"]["requests"])
    assert asked == {"select", "lookup", "affinity", "may-leave", "refresh"}
    assert errors == {None, "ArithmeticException", "NullPointerException"}
    assert twice
