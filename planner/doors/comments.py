"""Blanks the comments of settings files: they may hold anything, and none of it is set."""

import re
from typing import Final

from planner.cluster.units import MIB
from planner.doors.terminal import WORDS
from planner.doors.vocabulary import NAMED

_LARGEST: Final = 4 * MIB
"""More than any settings file has."""
_SETS: Final = re.compile(rf"(?m)^{NAMED}=".encode())
_COMMENT: Final = re.compile(rb"(?m)^[ \t]*#.*")
_OF_ROOT: Final = re.compile(rf"# (?:\S*/)?(?:{WORDS}|sudo|cat|docker|podman|helm|oc|grep|env|printenv)\s".encode())
"""A command behind the prompt of root, which looks like a comment."""
_PRINTS: Final = re.compile(rf"\b(?:{WORDS}|cat|grep|env|printenv|inspect|get)\b".encode())
"""What prints settings, so that they may stand below it."""


def without_comments(text: bytes) -> bytes:
    """Return a text with empty lines for its comments, where it is a settings file; another text as it is.

    Where each `#` may be the prompt of root, and a command prints settings, nothing is taken for a comment.
    """
    if len(text) > _LARGEST or b"#" not in text or _SETS.search(text) is None:
        return text
    marked = [found[0] for found in _COMMENT.finditer(text)]
    if all(map(_OF_ROOT.match, marked)) and any(map(_PRINTS.search, marked)):
        return text
    return _COMMENT.sub(b"", text)
