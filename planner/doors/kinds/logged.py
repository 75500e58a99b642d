"""The log of a broker, which prints its settings and its release when it starts."""

import re
from collections.abc import Iterator
from typing import Final

from planner.doors.chunks import Chunk
from planner.doors.kind import Kind, no_chunk
from planner.doors.pieces import NotUsed, Piece, Version
from planner.doors.terminal import LOGGED_RELEASE, LOGGED_SETTINGS
from planner.doors.vocabulary import configuration, is_known

_RELEASE: Final = re.compile(rf".*{LOGGED_RELEASE}; version: '([\w.-]+)'.*")
_LINE: Final = re.compile(rf".*\b{LOGGED_SETTINGS}(?:@[0-9a-f]+)?[(\[].*=.*|{_RELEASE.pattern}")
_GIVEN_TWICE: Final = re.compile(r"\bproperties=\{[^{}]*\}")
"""The file as it was read; what counts are the fields."""
_FIELD: Final = re.compile(r"(?<=[(\[, ])([A-Za-z]\w*)=(.*?)(?=, ?[A-Za-z]\w*=|[)\]]$|$)")
_CLOSED: Final = (")", "]")
_OPTIONAL: Final = re.compile(r"Optional\[(.*)\]")
_LIST: Final = re.compile(r"\[(.*)\]")
_NOTHING: Final = frozenset(["null", "<null>", "Optional.empty"])


def _read(chunk: Chunk) -> Iterator[Piece]:
    for line in chunk.lines:
        if release := _RELEASE.fullmatch(line):
            yield Version(source=chunk.source, version=release[1])
            continue
        text = _GIVEN_TWICE.sub("", line.partition(LOGGED_SETTINGS)[2].rstrip())
        found = _FIELD.findall(text)
        if not text.endswith(_CLOSED):  # containers cut lines of 16 KiB
            why = "the line of the log that has the settings is cut; settings that follow are missing"
            yield NotUsed(source=chunk.source, why=why)
            found = found[:-1]
        pairs = [(name, _value(value)) for name, value in found if value not in _NOTHING]
        yield configuration([one for one in pairs if is_known(one[0])], chunk.source, "runtime", chunk.broker)


def _value(text: str) -> str:
    found = _OPTIONAL.fullmatch(text) or _LIST.fullmatch(text)
    return found[1].replace(", ", ",") if found else text


KIND = Kind("log of a broker", "kubectl logs POD", no_chunk, _read, _LINE)
