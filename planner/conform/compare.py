"""Compares what Pulsar decided with what the planner decided."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["RELATIVE_TOLERANCE", "Difference", "differences"]

RELATIVE_TOLERANCE = 1e-9
"""How far numbers may lie apart; decisions must be equal."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One place at which two answers differ.

    Attributes:
        where: Path into the answer, such as `steps[2].decisions[0].bundle`; empty for the whole.
        expected: What Pulsar answered there, or `MISSING`.
        got: What the planner answered there, or `MISSING`.
    """

    where: str
    expected: Any
    got: Any


MISSING = "(nothing)"


def differences(expected: Any, got: Any, where: str = "") -> Iterator[Difference]:
    """Yield every place at which two JSON-like values differ; the order of keys does not matter.

    Numbers are equal within `RELATIVE_TOLERANCE`. NaN, which JSON lacks, equals null and the text `NaN`.
    """
    if isinstance(expected, Mapping) and isinstance(got, Mapping):
        for key in dict.fromkeys([*expected, *got]):
            place = f"{where}.{key}" if where else str(key)
            yield from differences(expected.get(key, MISSING), got.get(key, MISSING), place)
    elif isinstance(expected, list | tuple) and isinstance(got, list | tuple):
        for at in range(max(len(expected), len(got))):
            place = f"{where}[{at}]"
            left = expected[at] if at < len(expected) else MISSING
            yield from differences(left, got[at] if at < len(got) else MISSING, place)
    elif not _same(expected, got):
        yield Difference(where, expected, got)


def _same(expected: Any, got: Any) -> bool:
    if _is_number(expected) and _is_number(got):
        return (math.isnan(expected) and math.isnan(got)) or math.isclose(expected, got, rel_tol=RELATIVE_TOLERANCE)
    if isinstance(got, float) and math.isnan(got):
        return expected is None or expected == "NaN"
    return type(expected) is type(got) and bool(expected == got)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
