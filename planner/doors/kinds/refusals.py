"""Answers that hold nothing: errors of a server or a tool, and statistics that no decision reads."""

import re
from collections.abc import Iterator
from typing import Final

from planner.doors.chunks import Chunk, quoted
from planner.doors.kind import LIKELY, NO, SURE, Kind
from planner.doors.pieces import NotUsed

_EXTENSIBLE: Final = "ExtensibleLoadManager"
_ERROR_LINE: Final = re.compile(
    r"^\s*(?:---.*error occurred|Stacktrace:|at [\w.$]+\(|\w+(?:\.\w+)+(?:Exception|Error)\b|HTTP \d{3}\b|Reason: |"
    r"Message: |null$|rc \d+$|Caused by: |\.\.\. \d+ more|command terminated with exit code|javax?\.|org\.|curl: \(|"
    r"Error from server |(?:The connection|Unable to connect) to the server|error: |OCI runtime exec failed|"
    r"Exception in thread |ssh: |(?:-?(?:ba|z|da|a|k)?sh): .*(?:not found|No such file|denied)|"
    r"Node does not exist: /|no org id$|err-mimir-|\[--- stacktrace|Error: |Error response)"
)
_ENDED: Final = re.compile(r"\s*command terminated with exit code \d+\s*")
"""What `kubectl` says below what a command printed before it failed."""
_OF_SERVER: Final = re.compile(r"\s*--- An unexpected error occurred in the server ---")
"""What brokers write above the trace of an error, whatever the width at which its lines were broken."""
_PAGE: Final = re.compile(
    r"(?i)<(?:title|h[1-3])>([^<]{0,100}(?:\b[345]\d\d\b|error|unauthorized|forbidden|redirect)[^<]{0,100})</"
)
"""What a page of a web server that is an error shows."""
_TRUNCATED: Final = re.compile(r'\s*\{\s*"reason"\s*:')
_ALLOCATOR: Final = frozenset(["numDirectArenas", "directArenas", "heapArenas", "numHeapArenas"])


def _recognise_error(chunk: Chunk) -> int:
    if chunk.is_json and chunk.outline is None:  # the text of an error is long, and often truncated
        return SURE if _TRUNCATED.match(chunk.head) else NO
    if chunk.is_json:
        return SURE if chunk.keys.keys() in ({"reason"}, {"reason", "requestId"}, {"message", "status"}) else NO
    if _PAGE.search(chunk.head) or _OF_SERVER.match(chunk.head):
        return LIKELY
    first = chunk.first_lines[:200]
    lines = [line for line in first if not _ENDED.fullmatch(line)] or first  # which may stand below an answer
    found = sum(_ERROR_LINE.match(line) is not None for line in lines)
    return LIKELY if found and found * 2 >= len(lines) else NO


def _reason(chunk: Chunk) -> str:
    if not chunk.is_json:
        page = _PAGE.search(chunk.head)
        return page[1] if page else "\n".join(chunk.lines)
    if chunk.outline is not None:
        return str(next(iter(chunk.value.values()), ""))
    return chunk.head.replace("\\n", "\n").partition(":")[2].strip(' "')


def _read_error(chunk: Chunk) -> Iterator[NotUsed]:
    shows = _EXTENSIBLE in chunk.head
    reason = _reason(chunk)
    first = next((line.strip() for line in reason.splitlines() if line.strip().strip("-")), "no text")
    if set(reason.split()) == {"null"}:
        yield NotUsed(source=chunk.source, why="null, which says that nothing is set there", is_expected=True)
        return
    why = (
        "an error of a broker with the extensible load manager, which has no load report"
        if shows
        else f"an error: {quoted(first.strip(' -')).rstrip('.')}"
    )
    yield NotUsed(source=chunk.source, why=why, shows_extensible=shows)


def _recognise_allocator(chunk: Chunk) -> int:
    return SURE if _ALLOCATOR & chunk.keys.keys() else NO


def _read_allocator(chunk: Chunk) -> Iterator[NotUsed]:
    yield NotUsed(
        source=chunk.source, why="statistics of a memory allocator, which no decision reads", is_expected=True
    )


ERROR = Kind("error", "", _recognise_error, _read_error, _ENDED)
ALLOCATOR = Kind(
    "allocator statistics", "pulsar-admin broker-stats allocator-stats ALLOCATOR", _recognise_allocator, _read_allocator
)
