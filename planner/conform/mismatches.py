"""Decides a recorded vector and says where the planner differs from Pulsar."""

import json
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import numpy as np

from planner.cluster.errors import shown
from planner.conform.compare import MISSING, Difference, differences
from planner.conform.kinds import kind_of
from planner.conform.reader import Vector, refuse_long_counts

_LONGEST_VALUE = 500


def mismatches(vector: Vector) -> Iterator[str]:
    """Decide a vector and yield one line for each of its steps that differs from what was recorded.

    Raises:
        VectorError: Its kind is unknown or its input has the wrong shape.
    """
    kind = kind_of(vector)
    try:
        refuse_long_counts(vector.input)
        with np.errstate(all="ignore"):  # as in Java
            found = list(differences(vector.expected, kind.answer(vector.question()), kind.sets))
    except Exception as error:  # noqa: BLE001 - whatever fails in one vector is that vector's mismatch
        yield _line(vector, "-", "", _text(vector.expected), f"error {type(error).__name__}: {error}")
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
    return shown(f"{vector.kind} {name} step {step}{at}: expected {expected}, got {got}").replace("\n", " ")


def _text(value: Any) -> str:
    if value == MISSING:
        return MISSING
    text = json.dumps(value, default=repr)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}..."
