"""Takes away the time, and what else a logger writes before each line of an answer.

Lines with a time are those of a log as a rule, which is no answer. So `planner.doors.read` tries what is proposed here
only on a text of which nothing is known as it is.
"""

import re
from collections.abc import Iterator
from typing import Final

_CLOCK: Final = rb"\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
_LEVELS: Final = rb"(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR)"
_TIMES: Final = tuple(
    re.compile(form)
    for form in (
        rb"\[?\d{4}[-/]\d\d[-/]\d\d[T ]" + _CLOCK + rb"(?: ?(?:Z|UTC|[-+]\d\d:?\d\d))?\]?",
        rb"\[?(?:[A-Z][a-z]{2} )?[A-Z][a-z]{2} [ \d]\d " + _CLOCK + rb"(?: \d{4})?\]?",
        rb"\[?" + _CLOCK + rb"\]?",
        rb"\[?\d{10}(?:\.\d{1,9}|\d{3})?\]?(?=[ \t:])",
        rb"[IWEF]\d{4} " + _CLOCK + rb" +\d+ [^\s\]]+\]",
        _LEVELS + rb":(?:[\w.$]+:)?",
    )
)
"""Forms of a time, of `klog`, and of loggers without a time."""
_GAP: Final = re.compile(rb"[ \t]*(?:[-:|][ \t]+)?")
_CLASS: Final = rb"[A-Za-z_$][\w$]*(?:(?:\.[\w$]+)+|(?=[ \t]*[-:|][ \t]))"
_JSON: Final = re.compile(rb"^[^{\[\"]{1,200}[ :=](?=\{\"|\[\{|\[\"|\{$|\[$)")
"""What a message has before the JSON that it ends with."""
_LOGGER: Final = re.compile(
    rb"[ \t]*(?:(?:\[[^\]\n]{0,120}\]|" + _LEVELS + rb"|" + _CLASS + rb")(?:[ \t]+|[ \t]*(?=[-:|])))*(?:[-:|][ \t]+)?"
)
"""Thread, level and class of a logger, in any order."""


def without_stamps(data: bytes) -> Iterator[bytes]:
    """Yield a text without the time before each line, then without all that a logger writes, then its JSON alone.

    Lines without a time belong to the message above them. Nothing if the first line has none. What is indented behind
    the time stays so.
    """
    lines = data.split(b"\n")
    filled = [line for line in lines if line.strip()]
    for time in _TIMES:
        found = time.match(filled[0]) if filled else None
        if found is None:
            continue
        if all(time.match(line) for line in filled):
            gap = _GAP.match(filled[0], found.end())
            width = gap.end() - gap.start() if gap is not None else 0
            yield b"\n".join(line[_after(time, line) :][width:] for line in lines)
        messages = [_message(time, line) for line in lines]
        yield b"\n".join(messages)
        yield b"\n".join(_JSON.sub(b"", message, count=1) for message in messages)
        return


def _after(time: re.Pattern[bytes], line: bytes) -> int:
    found = time.match(line)
    return found.end() if found is not None else 0


def _message(time: re.Pattern[bytes], line: bytes) -> bytes:
    start = _after(time, line)
    found = _LOGGER.match(line, start) if start else None
    return line[found.end() :] if found is not None else line
