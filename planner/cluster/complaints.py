"""What is wrong with values that do not have the shape of a format, in the words of an operator."""

import difflib
from dataclasses import dataclass
from typing import Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails

_UNKNOWN: Final = frozenset({"unexpected_keyword_argument", "extra_forbidden"})
_SHOWN: Final = 80
_MOST: Final = 300


@dataclass(frozen=True, slots=True)
class Complaint:
    """The first thing that is wrong.

    Attributes:
        place: Where it is: names of fields, and positions in lists from 0.
        text: What is wrong, a sentence.
        remedy: What to do, as far as that is known; else empty.
        others: How many more things are wrong.
    """

    place: tuple[str | int, ...]
    text: str
    remedy: str
    others: int


def first_complaint(error: ValidationError) -> Complaint:
    """Return what is wrong first; a field that is misspelt comes before the one that is missing for it."""
    every = error.errors(include_url=False, include_input=False)
    unknown = [one for one in every if one["type"] in _UNKNOWN]
    first = (unknown or every)[0]
    text, remedy = _in_words(first, every)
    place = tuple(part[:_SHOWN] if isinstance(part, str) else part for part in first["loc"])
    return Complaint(place, text, remedy, len(every) - 1)


def _in_words(one: ErrorDetails, every: list[ErrorDetails]) -> tuple[str, str]:
    """Return what is wrong, and what to do."""
    context = one.get("ctx", {})
    kind = str(context.get("discriminator", "")).strip("'")
    if one["type"] in _UNKNOWN:
        wanted = [str(other["loc"][-1]) for other in every if other["type"] == "missing"]
        near = difflib.get_close_matches(str(one["loc"][-1]), wanted, n=1)
        return "There is no such field.", f"Did you mean {near[0]}?" if near else "Leave it out, or correct its name."
    if one["type"] == "missing":
        return "This field is missing.", ""
    if one["type"] == "union_tag_not_found":
        return f"The field {kind} is missing, which says what this is.", ""
    if one["type"] == "union_tag_invalid":
        known = [tag.strip().strip("'") for tag in str(context["expected_tags"]).split(",")]
        near = difflib.get_close_matches(str(context["tag"]), known, n=1, cutoff=0.0)
        return f"There is no {kind} '{str(context['tag'])[:_SHOWN]}'.", f"Did you mean {near[0]}?"
    text = (
        str(one["msg"])
        .replace("Input should", "It should")
        .replace("String should", "It should")
        .replace("valid tuple", "list")[:_MOST]
    )
    return f"{text.removesuffix('.')}.", ""
