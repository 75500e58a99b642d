"""Expressions and names that match nothing: why, and what would."""

import difflib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from planner.cluster.broker_meant import SCHEME, ipv6
from planner.explain.isolation import literal
from planner.pulsar.load.java_pattern import java_pattern

_ALIKE: Final = 0.75
"""From which likeness on a name is offered for a misspelt one."""
_LISTED: Final = 3
"""Names at most that are written one by one instead of one expression for all of them."""
_GLOB: Final = re.compile(r"(?<![.\\)\]}\w])\*|(?<=[\w-])\*")
_NUMBERS: Final = re.compile(r"[0-9]+")
"""What alone differs in the names of brokers of a kind: another number is another broker, not a mistake."""
_PORT: Final = re.compile(r":(?:\d+|\.[*+]|\\d[*+]|\[0-9\][*+]?|\(.*\)|\{.*\})$")
_AROUND: Final = " \t\r\n\"'`"
_SPACED: Final = re.compile(r"[,;\s]+")
_SPECIAL: Final = re.compile(r"[*+?|()\[\]{}^$]")
_REST: Final = re.compile(r"(?:\\?\.)?\.[*+]$")
_ENDINGS: Final = (r"\..*", "/.*", "-.*")
"""What may follow where an expression is only the beginning of a name."""


@dataclass(frozen=True, slots=True)
class Miss:
    """An expression that matches nothing.

    Attributes:
        expression: As it was written.
        why: What is wrong with it, as far as that can be told.
        better: What matches instead; empty where nothing is known.
        guessed: Whether that is only the name nearest by its letters.
    """

    expression: str
    why: str
    better: tuple[str, ...]
    guessed: bool = False


def miss(expression: str, known: Sequence[str], matched: Sequence[str] = ()) -> Miss:
    """Return why an expression matches none of some names.

    Args:
        expression: The expression, which matches none of the names.
        known: The names.
        matched: Those that other expressions match already. They are offered for no misspelt one.
    """
    for mend in (_cleaned, _in_other_capitals, _with_brackets, _from_a_list, _of_a_part):
        if (found := mend(expression, known)) is not None:
            return found
    if problem := java_pattern(expression).problem:
        return Miss(expression, f"it is not a valid regular expression: {problem}", ())
    near = _nearest(expression, known)
    if near and near not in matched:
        return Miss(expression, f"the nearest host is {near}", (literal(near),), guessed=True)
    return Miss(expression, "", ())


def matches(names: Sequence[str], *expressions: str) -> bool:
    """Say whether an expression matches one of some names whole."""
    return any(java_pattern(expression).matches(name) for expression in expressions for name in names)


_STEPS: Final[tuple[tuple[str, Callable[[str], str]], ...]] = (
    ("it has blanks or quotes around it", lambda text: text.strip(_AROUND)),
    ("it is an address", lambda text: SCHEME.sub("", text).rstrip("/")),
    ("it has a port, and Pulsar matches the host alone", lambda text: _PORT.sub("", text)),
    ("it ends with a dot", lambda text: text[:-1] if text.endswith(".") and not text.endswith("\\.") else text),
    ("its backslashes are doubled", lambda text: text.replace("\\\\", "\\")),
    ("it is written as a glob, and Pulsar reads a regular expression", lambda text: _GLOB.sub(".*", text)),
)
"""Each mistake that is made beside the name itself, and what takes it away."""


def _forms(expression: str) -> list[tuple[str, tuple[str, ...]]]:
    """Return an expression without any of the mistakes beside the name, with them, fewest mistakes first."""
    forms: dict[str, tuple[str, ...]] = {expression: ()}
    for why, step in _STEPS:
        for text, mistakes in list(forms.items()):
            if (without := step(text)) and without not in forms:
                forms[without] = (*mistakes, why)
    return sorted(forms.items(), key=lambda form: len(form[1]))


def _cleaned(expression: str, known: Sequence[str]) -> Miss | None:
    for text, mistakes in _forms(expression):
        if mistakes and matches(known, text):
            return Miss(expression, "; ".join(mistakes), (text,))
    return None


def _in_other_capitals(expression: str, known: Sequence[str]) -> Miss | None:
    for text, mistakes in _forms(expression):
        meant = [name for name in known if java_pattern(f"(?i){text}").matches(name)]
        if meant:
            why = "; ".join((*mistakes, f"capitals count: the {'name is' if len(meant) == 1 else 'names are'} "))
            named = tuple(map(literal, meant)) if len(meant) <= _LISTED else (f"(?i){text}",)
            return Miss(expression, why + ", ".join(meant[:_LISTED]), named)
    return None


def _with_brackets(expression: str, known: Sequence[str]) -> Miss | None:
    """Return an IPv6 address that is written otherwise than the host: without brackets, or at length."""
    for text, _ in _forms(expression.replace("\\", "")):
        address = ipv6(text)
        host = next((name for name in known if address is not None and ipv6(name) == address), None)
        if host is not None:
            why = f"the host is {host}, and its brackets have to be escaped"
            return Miss(expression, why, (literal(host),))
    return None


def _from_a_list(expression: str, known: Sequence[str]) -> Miss | None:
    parts = [part for part in _SPACED.split(expression.strip(_AROUND)) if part]
    if len(parts) == 1 or any(java_pattern(part).problem for part in parts):
        return None
    mended = [(part,) if matches(known, part) else miss(part, known).better for part in parts]
    if not any(mended):
        return None
    better = [one for part, found in zip(parts, mended, strict=True) for one in found or (part,)]
    return Miss(expression, "it is a list, and each expression stands by itself", tuple(dict.fromkeys(better)))


def _of_a_part(expression: str, known: Sequence[str]) -> Miss | None:
    """Return what matches whole names where an expression matches a part of them, or they are a part of it."""
    for text, mistakes in _forms(expression):
        for whole in _extended(text):
            if matches(known, whole):
                return Miss(expression, "; ".join((*mistakes, "it has to match the whole name")), (whole,))
    for text, mistakes in _forms(expression):
        plain = text.replace("\\", "")
        short = [name for name in known if not _SPECIAL.search(plain) and plain.startswith(f"{name}.")]
        if short:
            return Miss(expression, "; ".join((*mistakes, f"the host is called {short[0]}")), (literal(short[0]),))
    return None


def _extended(text: str) -> Iterator[str]:
    endings = _ENDINGS if text[-1:].isalnum() else (*_ENDINGS, ".*")
    if text[-1:].isalpha():
        endings = (*endings, "[0-9].*")
    yield from (f"{text}{ending}" for ending in endings)
    if text[:1].isalnum():
        yield from (f"{start}{text}" for start in (r".*\.", ".*-", ".*/"))


def _nearest(expression: str, known: Sequence[str]) -> str:
    """Return the name that was misspelt, with the same numbers; empty where there is none."""
    text = _forms(expression)[-1][0].replace("\\", "")
    stem = _REST.sub("", text)
    if _SPECIAL.search(stem):
        return ""
    by_label = {name.partition(".")[0]: name for name in reversed(known)}
    near = difflib.get_close_matches(text, known, n=1, cutoff=_ALIKE)
    near = near or [by_label[one] for one in difflib.get_close_matches(stem, by_label, n=1, cutoff=_ALIKE)]
    return near[0] if near and _with_its_numbers(stem, near[0]) else ""


def _with_its_numbers(text: str, name: str) -> bool:
    """Say whether all numbers of the shorter one of two names are those of the other one, in the same order."""
    one, other = _NUMBERS.findall(text), _NUMBERS.findall(name)
    shared = min(len(one), len(other))
    return one[:shared] == other[:shared] and bool(one) == bool(other)
