"""What `diff` prints of two settings files: the settings before and after a change."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from planner.doors.chunks import Chunk
from planner.doors.kind import NO, SURE, Kind
from planner.doors.kinds.configuration import pairs_of
from planner.doors.pieces import Configuration
from planner.doors.vocabulary import KNOWN, PREFIX, configuration

_MARK: Final = re.compile(r"@@ -\d|\d+(?:,\d+)?[acd]\d+(?:,\d+)?$|\+\+\+ ")
_CHANGED: Final = re.compile(rf"[-+<>] *(?:{PREFIX})?(?:{'|'.join(sorted(KNOWN))})\s*[=:]")
_BARE: Final = re.compile(rf"[-+](?:{PREFIX})?(?:{'|'.join(sorted(KNOWN))})\s*[=:]")
_HEADER: Final = re.compile(r"(?:---|\+\+\+) ")
_BEFORE: Final = "-< "
_AFTER: Final = "+> "


def _recognise(chunk: Chunk) -> int:
    if chunk.is_json:
        return NO
    signs = {line[0] for line in chunk.first_lines if _BARE.match(line)}  # what is posted may lack its marks
    if len(signs) < len("-+") and not any(_MARK.match(line) for line in chunk.first_lines):
        return NO
    return SURE if any(_CHANGED.match(line) for line in chunk.first_lines) else NO


def _read(chunk: Chunk) -> Iterator[Configuration]:
    lines = [line for line in chunk.lines if not _HEADER.match(line) and not _MARK.match(line)]
    for name, signs in (("before", _BEFORE), ("after", _AFTER)):
        source = replace(chunk.source, file=f"{chunk.source.file} ({name})")
        yield configuration(pairs_of(line[1:] for line in lines if line[0] in signs), source, "file")


KIND = Kind("differences of settings files", "diff -u OLD/broker.conf NEW/broker.conf", _recognise, _read)
