"""Reads objects, maps and lists as Java prints them: `Name(key=value, …)`, `Name{key=value}`, `{key=value}`, `[a, b]`.

Java quotes nothing, so a text is read only where it is unambiguous: brackets are balanced, and a value of an object or
map ends where `, key=` follows.
"""

import re
from itertools import pairwise
from typing import Any, Final

_CLOSES: Final = {"(": ")", "{": "}", "[": "]"}
_OBJECT: Final = re.compile(r"(?:[A-Z][\w$]*(?:\.[A-Z][\w$]*)*[({]|\{)")
_KEY: Final = re.compile(r"([\w.:/-]+(?:=[\w.:-]*/[\w.:=/-]+)?)=")
_NEXT_KEY: Final = re.compile(r", (?=[\w.:=/-]+=)")
_NUMBER: Final = re.compile(r"-?\d+(?:\.\d+(?:E-?\d+)?)?")
_PLAIN: Final = {"null": None, "true": True, "false": False}
_NAMES: Final = {"autoFailoverPolicy": "auto_failover_policy", "policyType": "policy_type"}
"""Names of fields that JSON writes otherwise."""
_OF_ROW: Final = re.compile(r"(?:  |\t)(?=[A-Z][\w$]*[({])")
"""Between the name and the object of a row."""
_WIDENED: Final = re.compile(r",  +")
"""What `column -t` makes of the blank between fields."""
_DEEPEST: Final = 20
_ENDS: Final = (")", "}")
_LONGEST: Final = 200_000


class _NoJavaError(ValueError):
    """The text is none."""


def value_of(line: str) -> Any:
    """Return what a line says as JSON would: an object, or a row `NAME    Object(…)` by its name; None for others."""
    if len(line) > _LONGEST:
        return None
    line = line.strip()
    row = _OF_ROW.search(line) if line[-1:] in _ENDS else None
    text = _WIDENED.sub(", ", line[row.end() :] if row else line)
    if not _OBJECT.match(text):
        return None
    try:
        found = _value(text, 0)
    except _NoJavaError:
        return None
    if not isinstance(found, dict) or not found:
        return None
    return {line[: row.start()].rstrip(): found} if row else found


def _value(text: str, depth: int) -> Any:
    if depth > _DEEPEST:
        raise _NoJavaError
    opening = _OBJECT.match(text)
    if opening is not None and text[-1] == _CLOSES[text[opening.end() - 1]] and _is_one(text, opening.end() - 1):
        return _fields(text[opening.end() : -1], depth)
    if text[:1] == "[" and text[-1:] == "]" and _is_one(text, 0):
        return [_value(part, depth + 1) for part in _parts(text[1:-1])]
    if _NUMBER.fullmatch(text):
        return float(text) if "." in text else int(text)
    return _PLAIN.get(text, text)


def _fields(text: str, depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for part in _parts(text, between_keys=True):
        key = _KEY.match(part)
        if key is None:
            raise _NoJavaError
        found[_NAMES.get(key[1], key[1])] = _value(part[key.end() :], depth + 1)
    return found


def _is_one(text: str, start: int) -> bool:
    """Say whether the bracket at a place closes at the end."""
    return all(depth for depth in _depths(text[start:-1]))


def _depths(text: str) -> list[int]:
    depth, found = 0, []
    for sign in text:
        depth += (sign in "([{") - (sign in ")]}")
        found.append(depth)
    return found


def _parts(text: str, *, between_keys: bool = False) -> list[str]:
    """Return what commas part outside brackets; of fields only those that a key follows."""
    depths = _depths(text)
    if depths and depths[-1]:
        raise _NoJavaError
    cuts = [found.start() for found in (_NEXT_KEY if between_keys else re.compile(", ")).finditer(text)]
    places = [-2, *(at for at in cuts if depths[at] == 0), len(text)]
    return [text[low + 2 : high] for low, high in pairwise(places) if high > low + 2]
