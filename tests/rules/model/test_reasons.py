"""The numbers of every reason stand where its sentence says."""

import ast
import csv
from collections.abc import Iterator
from pathlib import Path

import pytest

from planner.cluster.decisions import ReasonCode

ROOT = Path(__file__).parents[3]
FIELDS = ROOT / "tests/goldens/reasons/fields.csv"


def codes() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield every code of the product with the numbers of its sentence in their order."""
    for file in sorted((ROOT / "planner").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "ReasonCode":
                code, template = map(ast.literal_eval, node.args[:2])
                yield code, ReasonCode(code, template).fields


def test_no_sentence_changes_the_order_of_its_numbers(request: pytest.FixtureRequest) -> None:
    """Call sites give numbers in the order of the sentence: whoever rewords one changes them too, or swaps the numbers.

    `--rewrite` takes the order of today, once every call site has been read.
    """
    found = dict(sorted(codes()))
    if request.config.getoption("--rewrite"):
        FIELDS.write_text("".join(f"{','.join((code, *fields))}\n" for code, fields in found.items()))
    with FIELDS.open() as file:
        assert found == {row[0]: tuple(row[1:]) for row in csv.reader(file)}
