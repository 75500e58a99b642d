"""`python -m planner conform`: compares the planner's decisions with recorded ones."""

import argparse
import json
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from planner.cluster.errors import VectorError
from planner.conform.compare import MISSING, Difference, differences
from planner.conform.kinds import kind_of
from planner.conform.reader import Vector, read_vectors

_PASSED, _FAILED, _UNREADABLE = 0, 1, 2
_LONGEST_VALUE = 500


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "conform",
        help="compare the planner's decisions with recorded ones",
        description=(
            "Decide recorded vectors with the planner and compare. Prints a line for each step that differs: kind, id,"
            " step (counted from 0; - when the kind has none), place, expected, got. Exit status: 0 all equal, 1 some"
            " differ, 2 a file cannot be read."
        ),
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="vectors: FILE.jsonl or FILE.jsonl.gz")


def run(args: argparse.Namespace) -> int:
    """Decide the vectors of all files and print how they compare.

    Returns:
        0 when every decision is equal, 1 when one differs, 2 when a file cannot be read.
    """
    passed = failed = 0
    unreadable = False
    for path in args.files:
        try:
            for vector in read_vectors(path):
                lines = list(mismatches(vector))
                failed, passed = failed + bool(lines), passed + (not lines)
                sys.stdout.writelines(f"{line}\n" for line in lines)
        except VectorError as error:
            unreadable = True
            sys.stdout.flush()
            sys.stderr.write(f"error: {error}\n")
    sys.stdout.write(f"{passed} passed, {failed} failed\n")
    if unreadable:
        return _UNREADABLE
    return _FAILED if failed else _PASSED


def mismatches(vector: Vector) -> Iterator[str]:
    """Decide a vector and yield one line for each of its steps that differs from what was recorded.

    Raises:
        VectorError: Its kind is unknown or its input has the wrong shape.
    """
    kind = kind_of(vector)
    try:
        found = list(differences(vector.expected, kind.answer(vector.question()), kind.sets))
    except Exception as error:  # noqa: BLE001 - whatever fails in one vector is that vector's mismatch
        failure = f"{type(error).__name__}: {error}".replace("\n", " ")
        yield _line(vector, "-", "", _text(vector.expected), f"error {failure}")
        return
    for step, group in groupby(found, _step):
        first, *others = group
        place = Difference(first.path[2:], None, None).where if step != "-" else first.where
        more = f" (and {len(others)} more in this step)" if others else ""
        yield _line(vector, step, place, _text(first.expected), _text(first.got) + more)


def _step(difference: Difference) -> str:
    """Return the index of the step a difference lies in: that of the array directly below the answer's top."""
    path = difference.path
    return str(path[1]) if len(path) > 1 and isinstance(path[1], int) else "-"


def _line(vector: Vector, step: str, place: str, expected: str, got: str) -> str:
    at = f" {place}" if place else ""
    name = vector.id if vector.id.isprintable() else json.dumps(vector.id)
    return f"{vector.kind} {name} step {step}{at}: expected {expected}, got {got}"


def _text(value: Any) -> str:
    if value == MISSING:
        return MISSING
    text = json.dumps(value, default=repr)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}..."
