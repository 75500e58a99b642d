"""What `diff` prints of two settings files: the settings before and after a change."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import PurePath
from typing import Final

from planner.doors.chunks import Chunk
from planner.doors.kind import NO, SURE, Kind
from planner.doors.kinds.configuration import pairs_of
from planner.doors.kinds.manifests import is_other
from planner.doors.pieces import Configuration
from planner.doors.vocabulary import NAMED, configuration

_MARK: Final = re.compile(r"@@ -\d|\d+(?:,\d+)?[acd]\d+(?:,\d+)?$|\+\+\+ ")
_CHANGED: Final = re.compile(rf"[-+<>] *{NAMED}\s*[=:]")
_OF_YAML: Final = re.compile(r"(\s*[\w.-]+): +([\"'])(.*)\2\s*")
"""A value in quotation marks, which YAML takes away."""
_HEADER: Final = re.compile(r"(?:---|\+\+\+) ")
_ABOUT: Final = re.compile(
    r"(?:---|\+\+\+|diff -\S+ \S+|diff --git \S+|[ +-] *# Source:) (\S+)|\S+, (\S+), ConfigMap \("
)
"""What names the file or resource of the lines that follow: `diff`, `git`, `helm`."""
_BEFORE: Final = "-< "
_AFTER: Final = "+> "


def _recognise(chunk: Chunk) -> int:
    if chunk.is_json:
        return NO
    # What is posted may lack its marks; lists of YAML have minus signs, but no plus signs.
    signs = {line[0] for line in chunk.first_lines if _CHANGED.match(line)}
    if "+" not in signs and not any(_MARK.match(line) for line in chunk.first_lines):
        return NO
    return SURE if any(_CHANGED.match(line) for line in chunk.first_lines) else NO


def _of_brokers(lines: Iterable[str]) -> Iterator[str]:
    """Yield lines without headers, and without the parts about files or resources of other components."""
    is_used = True
    for line in lines:
        if found := _ABOUT.match(line):
            is_used = not is_other(PurePath(found[1] or found[2]).name)
        if is_used and not _HEADER.match(line) and not _MARK.match(line):
            yield line


def _read(chunk: Chunk) -> Iterator[Configuration]:
    lines = list(_of_brokers(chunk.lines))
    for name, signs in (("before", _BEFORE), ("after", _AFTER)):
        source = replace(chunk.source, file=f"{chunk.source.file} ({name})")
        kept = [_OF_YAML.sub(r"\1: \3", line[1:]) for line in lines if line[0] in signs]
        yield configuration(pairs_of(kept), source, "file")


KIND = Kind("differences of settings files", "diff -u OLD/broker.conf NEW/broker.conf", _recognise, _read)
