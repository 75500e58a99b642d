"""Which release of Pulsar the images in a settings file are of."""

import re
from collections.abc import Sequence
from typing import Final

from planner.cluster.units import MIB
from planner.doors.pieces import Configuration
from planner.history.assumed import listed

_LOOKED_AT: Final = 4 * MIB
_COMMENT: Final = re.compile(r"(?m)^[ \t]*(?:#|//).*\n?|[ \t]#.*$")
_OF_PULSAR: Final = (
    r"(?:pulsar(?:-all|-broker|-standalone)?|lunastreaming(?:-all|-core|-core-all)?|sn-platform|private-cloud)"
)
"""Names of images of brokers; those of the manager, the dashboard or an operator count releases of their own."""
_TAG: Final = r"(?:\$\{\w+:?-)?v?([2-9]\.\d+(?:\.\d+)?(?:-M\d+)?)(?![\d-])"
"""A tag, or the default of a variable; what vendors put behind it is a count of their own."""
_IS: Final = r"[\"']?\s*[:=]\s*[\"']?"
_NEXT: Final = r"[\"']?,?[ \t]*\n[ \t]*[\"']?"
_REPOSITORY: Final = rf"repository{_IS}(?:\S*/)?{_OF_PULSAR}"
_FORMS: Final = tuple(
    re.compile(form)
    for form in (
        rf"(?<![^\s\"'/=\[]){_OF_PULSAR}:{_TAG}",
        rf"{_REPOSITORY}{_NEXT}tag{_IS}{_TAG}",
        rf"tag{_IS}{_TAG}{_NEXT}{_REPOSITORY}(?![\w-])",
        rf"\b(?:broker(?:\.image)?\.tag|defaultPulsarImageTag){_IS}{_TAG}",
        rf"\bbroker[\"']?[ \t]{{0,9}}[:=]?[ \t]{{0,9}}\{{?\n\s{{0,80}}[\"']?tag{_IS}{_TAG}",
    )
)
"""An image with its tag, and how values of charts part the two."""

_NUMBERS: Final = re.compile(r"\d+")
_PARTS: Final = 3


def releases_in(data: memoryview) -> tuple[str, ...]:
    """Return the releases that the images in a text are of, in the order of appearance of each form."""
    text = _COMMENT.sub("", bytes(data[:_LOOKED_AT]).decode("utf-8", "replace"))
    return tuple(dict.fromkeys(found[1] for form in _FORMS for found in form.finditer(text)))


def release_of_images(files: Sequence[Configuration]) -> tuple[str, str]:
    """Return the release that the images of settings files are of, and the file; empty where they do not agree.

    Of several files the last one with an image counts, as for their settings.
    """
    named = [one for one in files if one.releases]
    if not named or len(named[-1].releases) > 1:
        return "", ""
    return named[-1].releases[0], str(named[-1].source)


def without_release(files: Sequence[Configuration], where: str = "") -> str:
    """Return a sentence on images of several releases, of which none counts; empty where there are no such images.

    Args:
        files: The settings files; the last one with an image counts.
        where: What to call it; by default where its settings were found.
    """
    named = [one for one in files if one.releases]
    if not named or len(named[-1].releases) == 1:
        return ""
    several = listed(named[-1].releases)
    return f"{where or named[-1].source} has images of several releases of Pulsar ({several}), so that none counts."


def is_one_release(one: str, other: str) -> bool:
    """Say whether two versions are of one release, or of one line where a version names only that."""
    pairs = zip(_NUMBERS.findall(one)[:_PARTS], _NUMBERS.findall(other), strict=False)
    return all(first == second for first, second in pairs)
