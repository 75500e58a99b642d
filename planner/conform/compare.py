"""Compares what Pulsar decided with what the planner decided."""

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

RELATIVE_TOLERANCE: Final = 1e-9
"""Tolerance of measured numbers; whole numbers (hashes, counts) and everything else must be equal."""

MISSING: Final = "(nothing)"
"""Shown where one side has no value."""

_SPECIAL: Final = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """One place at which two answers differ.

    Attributes:
        path: Keys and indices from the whole answer down to the place; empty for the whole.
        expected: What Pulsar answered there, or `MISSING`.
        got: What the planner answered there, or `MISSING`.
    """

    path: Path
    expected: Any
    got: Any

    @property
    def where(self) -> str:
        """The path as text, such as `steps[2].decisions[0].bundle`."""
        text = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in self.path)
        return text.removeprefix(".")


def differences(expected: Any, got: Any, sets: Sequence[str] = (), path: Path = ()) -> Iterator[Difference]:
    """Yield every place at which two JSON-like values differ; the order of keys does not matter.

    Numbers are equal within `RELATIVE_TOLERANCE` when one of them is a float. What JSON lacks equals its text, such as
    `Infinity`, and NaN equals null too.

    Args:
        expected: What Pulsar answered.
        got: What the planner answered.
        sets: Keys whose arrays are sets: their order does not matter.
        path: Where in the whole answer the two values lie.
    """
    if isinstance(expected, Mapping) and isinstance(got, Mapping):
        for key in dict.fromkeys([*expected, *got]):
            yield from differences(expected.get(key, MISSING), got.get(key, MISSING), sets, (*path, str(key)))
    elif isinstance(expected, list | tuple) and isinstance(got, list | tuple):
        if path and path[-1] in sets:
            yield from _set_differences(expected, got, path)
            return
        for at in range(max(len(expected), len(got))):
            left = expected[at] if at < len(expected) else MISSING
            yield from differences(left, got[at] if at < len(got) else MISSING, sets, (*path, at))
    elif not _same(expected, got):
        yield Difference(path, expected, got)


def _set_differences(expected: Sequence[Any], got: Sequence[Any], path: Path) -> Iterator[Difference]:
    left, right = (Counter(json.dumps(one, sort_keys=True) for one in side) for side in (expected, got))
    for text in (left - right).elements():
        yield Difference(path, json.loads(text), MISSING)
    for text in (right - left).elements():
        yield Difference(path, MISSING, json.loads(text))


def _same(expected: Any, got: Any) -> bool:
    if isinstance(expected, float) or isinstance(got, float):
        if not (_is_number(expected) and _is_number(got)):
            special = isinstance(got, float) and not math.isfinite(got)
            return special and (expected == _SPECIAL[str(got)] or (expected is None and math.isnan(got)))
        return (math.isnan(expected) and math.isnan(got)) or math.isclose(expected, got, rel_tol=RELATIVE_TOLERANCE)
    return type(expected) is type(got) and bool(expected == got)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
