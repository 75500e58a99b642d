"""Asks Pulsar's own classes about cases with numbers that no broker should report, and some that Java cannot hold.

What Pulsar answers is answered alike, or refused in words. Needs Java 17 and Maven: `pytest -m oracle`.
"""

import json
import random
import re
from collections.abc import Iterator
from typing import Any

import pytest

from planner.cluster.errors import VectorError
from planner.conform.mismatches import mismatches
from planner.conform.reader import Vector, refuse_long_counts
from tests.oracle.cases import Case, seeded
from tests.oracle.harness import Oracle
from tests.oracle.test_releases_oracle import DRAWS

pytestmark = [pytest.mark.oracle, pytest.mark.timeout(1800)]

_REFUSED = re.compile(r"got error (Vector|Pulsar)Error: ")
FLOATS = (
    *(float(text) for text in ("inf", "-inf", "nan", "-0", "5e-324", "1e-300", "1e20", "1e300")),
    -1.0,
    -1e9,
    2.0**31,
)
COUNTS = (0, 1, -1, -5, 2**31 - 1, 2**31, -(2**31), 2**63 - 1)
ASKED = {
    "atNanos",
    "createdAtNanos",
    "checkpoints",
    "nowMs",
    "updatedAtMs",
    "shortSamples",
    "longSamples",
    "maxSamples",
}
"""What a case asks for, and not what a broker reports."""


def numbers(given: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], float]]:
    """Yield where a number stands in JSON, and the number."""
    if isinstance(given, dict | list):
        for key, value in given.items() if isinstance(given, dict) else enumerate(given):
            yield from numbers(value, (*path, key))
    elif isinstance(given, int | float) and not isinstance(given, bool) and not ASKED.intersection(path):
        yield path, given


def special(rng: random.Random, case: Case) -> Case:
    """Return a case with one to three of its numbers replaced."""
    odd: Case = json.loads(json.dumps(case))
    there = list(numbers(odd["input"]))
    for (*way, last), number in rng.sample(there, min(len(there), rng.choice([1, 1, 2, 3]))):
        place = odd["input"]
        for key in way:
            place = place[key]
        place[last] = rng.choice(FLOATS if isinstance(number, float) else COUNTS)
    return odd


def _refusals(vector: Vector) -> list[str]:
    """Return in which words a case is refused that Pulsar's classes fail on; none when it is answered."""
    try:
        refuse_long_counts(vector.input)
    except VectorError as error:
        return [str(error)]
    return [line for line in mismatches(vector) if _REFUSED.search(line)]


@pytest.mark.parametrize("draw", [draw for draw in DRAWS if draw not in {"bundle_split", "topic_to_bundle"}])
def test_answers_alike_or_refuses_in_words(oracle: Oracle, draw: str) -> None:
    rng = seeded()
    cases = [special(rng, DRAWS[draw](rng, number)) for number in range(300)]
    wrong, same = [], 0
    for case, said in zip(cases, oracle.lines(cases), strict=True):
        if "failure" in said:
            refused = _refusals(Vector(case["kind"], case["id"], case["config"], case["input"], {}, ""))
            wrong += [] if refused else [f"{case['id']}: not refused, and Pulsar says {said['failure']}"]
            continue
        said["expected"].pop("order", None)
        vector = Vector(case["kind"], case["id"], case["config"], case["input"], said["expected"], "")
        lines = list(mismatches(vector))
        same += not lines
        wrong += [line for line in lines if not _REFUSED.search(line)]
    assert wrong == []
    assert same > len(cases) / 2
