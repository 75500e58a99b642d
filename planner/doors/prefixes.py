"""Takes away what tools write before each line: the pod or container it is from, the number of the line."""

import re
from typing import Final

_PREFIXES: Final = (
    re.compile(rb"\[pod/[\w.-]+/[\w.-]+\] "),  # kubectl logs --prefix
    re.compile(rb"[\w.-]+[ ]+\| "),  # docker compose logs
    re.compile(
        rb"(?:[A-Z][a-z]{2} [ \d]\d [\d:]{8}|\d{4}-\d\d-\d\dT[\d:.]{8,}\S*) \S+ [^\s:\[]+(?:\[\d+\])?: "
    ),  # syslog
    re.compile(rb"[a-z0-9-]+-(?:\d+|[a-z0-9]{5,10}-[a-z0-9]{5}) (?:[\xe2\x80\xba+] )?[a-z][a-z0-9-]* "),  # stern
)
_TIME: Final = re.compile(rb"[A-Z][a-z]{2} [ \d]\d [\d:]{8}|^\d{4}-\d\d-\d\dT[\d:.]{8,}\S*")
_NUMBERED: Final = (re.compile(rb" +(\d+)\t"), re.compile(rb"(\d+):"))
"""`cat -n` and `grep -n`."""
_LEAST_LINES: Final = 2


def without_prefixes(data: bytes) -> bytes:
    """Return a text without what stands before each of its lines; as it is where one line has another or none.

    Lines of several pods stay as they are: together they are no answer.
    """
    lines = data.split(b"\n")
    filled = [line for line in lines if line.strip()]
    for prefix in _PREFIXES:
        first = prefix.match(filled[0]) if filled else None
        if first is None:
            continue
        start = _TIME.sub(b"", first[0])
        matches = [prefix.match(line) or prefix.match(line + b" ") for line in filled]
        if all(one is not None and _TIME.sub(b"", one[0]) == start for one in matches):
            return b"\n".join(_cut(prefix, line) for line in lines)
    for number in _NUMBERED[: 1 if len(filled) < _LEAST_LINES else 2]:
        numbers = [int(found[1]) if (found := number.match(line)) else -1 for line in filled]
        if numbers and numbers[0] >= 0 and numbers == list(range(numbers[0], numbers[0] + len(numbers))):
            return b"\n".join(number.sub(b"", line, count=1) for line in lines)
    return data


def _cut(prefix: re.Pattern[bytes], line: bytes) -> bytes:
    found = prefix.match(line) or prefix.match(line + b" ")
    return line[found.end() :] if found else line
