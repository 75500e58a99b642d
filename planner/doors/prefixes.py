"""Takes away what tools write before each line: the pod or container it is from, the number of the line."""

import re
from typing import Final

_OF_KUBECTL: Final = re.compile(rb"\[pod/([\w.-]+)/[\w.-]+\] ")
_OF_COMPOSE: Final = re.compile(rb"([\w.@-]+)[ ]+\| ")
_OF_SYSLOG: Final = re.compile(
    rb"(?:[A-Z][a-z]{2} [ \d]\d [\d:]{8}|\d{4}-\d\d-\d\dT[\d:.]{8,}\S*) (\S+) [^\s:\[]+(?:\[\d+\])?: "
)
_OF_STERN: Final = re.compile(
    rb"(?:[a-z0-9-]+ )?([a-z0-9-]+-(?:\d+|[a-z0-9]{5,10}-[a-z0-9]{5})) (?:[\xe2\x80\xba+] )?[a-z][a-z0-9-]* "
)
_OF_PDSH: Final = re.compile(rb"(?!\d+:)([A-Za-z0-9][\w.-]*): ")
"""`pdsh` and `clush`; a key of YAML looks alike, and a time of digits alone is none."""
_PREFIXES: Final = (_OF_KUBECTL, _OF_COMPOSE, _OF_SYSLOG, _OF_STERN)
_MIXED: Final = (*_PREFIXES, _OF_PDSH)
_ANNOUNCED: Final = re.compile(rb"[-+] (?:[\w.-]+ )?[\w.-]+ (?:\xe2\x80\xba|>) [\w.-]+\s*$")
"""What `stern` prints where it begins or ends to follow a container."""
_STAMP: Final = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6,9}(?:Z|[-+]\d\d:\d\d) ")
_TIME: Final = re.compile(rb"[A-Z][a-z]{2} [ \d]\d [\d:]{8}|^\d{4}-\d\d-\d\dT[\d:.]{8,}\S*")
_NUMBERED: Final = tuple(
    re.compile(form)
    for form in (rb" +(\d+)\t", rb"(\d+):", rb" *(\d+) ?(?:\||\xe2\x94\x82) ?", rb" *(\d+)[.)] ", rb" *(\d+) ")
)
"""`cat -n`, `grep -n`, `bat`, lists of Markdown, and editors with the numbers of lines."""
_LEAST_LINES: Final = 2
_LOOKED_AT: Final = 4_096


def without_prefixes(data: bytes) -> bytes:
    """Return a text without what stands before each of its lines; as it is where a line has none.

    Lines of several pods are sorted by pod, each below a heading with its name.
    """
    lines = data.split(b"\n")
    filled = [line for line in lines if line.strip() and not _ANNOUNCED.match(line)]
    for prefix in _PREFIXES:
        first = prefix.match(filled[0]) if filled else None
        if first is None:
            continue
        start = _TIME.sub(b"", first[0])
        matches = [prefix.match(line) or prefix.match(line + b" ") for line in filled]
        if all(one is not None and _TIME.sub(b"", one[0]) == start for one in matches):
            return b"\n".join(_without_stamps([_cut(prefix, line) for line in lines if not _ANNOUNCED.match(line)]))
    for number in _NUMBERED[: 1 if len(filled) < _LEAST_LINES else None]:
        if not filled or not (number.match(filled[0]) or number.match(filled[0] + b" ")):
            continue  # most texts have no numbers, and many lines
        numbers = [
            int(found[1]) if (found := number.match(line) or number.match(line + b" ")) else -1 for line in filled
        ]
        if numbers and numbers[0] >= 0 and numbers == list(range(numbers[0], numbers[0] + len(numbers))):
            return b"\n".join(number.sub(b"", line + b" ", count=1)[:-1] for line in lines)
    return next((sorted_ for prefix in _MIXED if (sorted_ := _by_pod(prefix, filled))), data)


def begins_with_pod(data: bytes) -> bool:
    """Say quickly whether a text is the log of a container, however long it is."""
    first = data[:_LOOKED_AT].lstrip().partition(b"\n")[0]
    return any(prefix.match(first) for prefix in (_OF_KUBECTL, _OF_COMPOSE, _OF_STERN, _ANNOUNCED))


def _by_pod(prefix: re.Pattern[bytes], lines: list[bytes]) -> bytes:
    """Return the lines of each pod below its name; nothing where a line has no such prefix, or it may be a key."""
    pods: dict[bytes, list[bytes]] = {}
    names: dict[bytes, bytes] = {}
    for line in lines:
        found = prefix.match(line) or prefix.match(line + b" ")
        if found is None:
            return b""
        start = _TIME.sub(b"", found[0]).rstrip()
        names[start] = found[1]
        pods.setdefault(start, []).append(line[found.end() :])
    of_one_line = sum(len(own) == 1 and own[0][:2] not in (b'{"', b'["', b"[{") for own in pods.values())
    if len(pods) < _LEAST_LINES or (prefix in (_OF_COMPOSE, _OF_PDSH) and of_one_line):
        return b""
    parts = [b"\n".join([b"== %b ==" % names[start], *_without_stamps(own)]) for start, own in pods.items()]
    return b"\n".join(parts) + b"\n"


def _without_stamps(lines: list[bytes]) -> list[bytes]:
    """Return lines without the time before each of them, as `kubectl logs --timestamps` prints it."""
    if all(_STAMP.match(line + b" ") for line in lines if line.strip()):
        return [_STAMP.sub(b"", line + b" ", count=1)[:-1] for line in lines]
    return lines


def _cut(prefix: re.Pattern[bytes], line: bytes) -> bytes:
    found = prefix.match(line) or prefix.match(line + b" ")
    return line[found.end() :] if found else line
