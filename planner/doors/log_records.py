"""Takes the lines that a program printed out of the records in which containers and collectors keep them.

Docker and Fluent Bit write a JSON object for each line, Kubernetes writes its time, stream and a mark before it, and
Cloud Logging and CloudWatch answer with a list.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from planner.cluster.units import MIB

_MOST_BYTES: Final = 64 * MIB
_MOST_OF_LIST_BYTES: Final = 16 * MIB
"""Objects take many times their text."""
_LOOKED_AT: Final = 4_096
_TEXTS: Final = ("log", "message", "msg", "textPayload", "MESSAGE", "@message", "_raw", "line")
"""What the line stands under."""
_LOG: Final = "log"
_MARKS: Final = frozenset(
    ["stream", "time", "ts", "timestamp", "@timestamp", "level", "severity", "kubernetes", "thread"]
)
_MARKS_OF_LISTS: Final = frozenset(["insertId", "ingestionTime", "timestamp", "__REALTIME_TIMESTAMP"])
_NO_LOG: Final = frozenset(["status", "error", "errorType", "data"])
"""What only answers have."""
_LOGGERS: Final = ("logger", "loggerName", "logger_name", "thread")
_TIMES: Final = ("@timestamp", "timestamp", "time", "ts")
_NEEDED: Final = frozenset(
    [*_TEXTS, *_LOGGERS, *_TIMES, "jsonPayload", "kubernetes", "resource", "pod_name", "pod", "_HOSTNAME"]
)
_NO_TIME: Final = "1970-01-01T00:00:00"
_ISO: Final = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d")
_OF_KUBERNETES: Final = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]{8,}(?:Z|[-+]\d\d:\d\d) (?:stdout|stderr) ([FP]) ?(.*)")
_OF_LOKI: Final = re.compile(r"(\d{4}-\d\d-\d\dT[\d:.]{8,}(?:Z|[-+]\d\d:?\d\d)) \{([^{}]*)\}[ \t]?(.*)")
_POD_OF_LOKI: Final = re.compile(r'\b(?:pod|pod_name|instance)="([^"]+)"')
_HINT: Final = re.compile(
    rf'"(?:{"|".join(map(re.escape, _TEXTS))})"\s*:\s*"|"events"\s*:\s*\[|'.encode()
    + rb'[0-9Z] std(?:out|err) [FP]|[0-9Z] \{\w+="'
)
"""What stands in the first records."""
_OF_LIST: Final = re.compile(rb'\s*(?:\[\s*\{|\{\s*"(?:events|searchedLogStreams|next\w+Token)")')
_MOST_ABOVE: Final = 3
_LONGEST: Final = MIB

_Line: TypeAlias = tuple[str, str]
"""The pod, empty where it is not known, and a line."""


def without_records(data: bytes) -> bytes:
    """Return the lines that records hold, those of each pod below its name; another text as it is."""
    if len(data) > _MOST_BYTES or not _HINT.search(data, 0, _LOOKED_AT):
        return data
    lines = [line for line in data.split(b"\n") if line.strip()]
    start = next((at for at, line in enumerate(lines[: _MOST_ABOVE + 1]) if _may_be_record(line)), 0)
    above, lines = lines[:start], lines[start:]
    if found := _of_list(data):
        return _by_pod(found)
    found = _of_objects(lines) or _of_lines(lines)
    return b"\n".join([*above, _by_pod(found)]) if found else data


def _may_be_record(line: bytes) -> bool:
    return line.lstrip()[:1] == b"{" or line[:4].isdigit()


def _of_objects(lines: Sequence[bytes]) -> list[_Line]:
    """Return the lines of records that are an object each; nothing where one is none."""
    found: list[Mapping[str, Any]] = []
    for line in lines:
        record = _decoded(line) if line.lstrip()[:1] == b"{" and len(line) <= _LONGEST else None
        if not isinstance(record, dict) or not _is_record(record, _MARKS | _MARKS_OF_LISTS):
            return []
        found.append({name: record[name] for name in _NEEDED & record.keys()})
    return list(_lines_of(found))


def _of_list(data: bytes) -> list[_Line]:
    """Return the lines of an answer of Cloud Logging or CloudWatch, the oldest first."""
    value = _decoded(data) if len(data) <= _MOST_OF_LIST_BYTES and _OF_LIST.match(data) else None
    records = value.get("events") if isinstance(value, dict) else value
    if not isinstance(records, list) or not records:
        return []
    if not all(isinstance(one, dict) and _is_record(one, _MARKS_OF_LISTS) for one in records):
        return []
    return list(_lines_of(_oldest_first(records, lambda one: one.get("timestamp"))))


def _of_lines(lines: Sequence[bytes]) -> list[_Line]:
    """Return the lines behind the marks of Kubernetes or Loki."""
    texts = [line.decode("utf-8", "replace") for line in lines]
    for form in (_OF_KUBERNETES, _OF_LOKI):
        matches = []
        for text in texts:
            if (match := form.fullmatch(text)) is None:
                break
            matches.append(match)
        if texts and len(matches) == len(texts):
            return _joined(matches) if form is _OF_KUBERNETES else _of_loki(matches)
    return []


def _joined(matches: Iterable[re.Match[str]]) -> list[_Line]:
    """Join the parts of a line that Kubernetes cut: all but the last are marked with P."""
    found: list[_Line] = []
    part = ""
    for match in matches:
        part += match[2]
        if match[1] == "F":
            found.append(("", part))
            part = ""
    return [*found, ("", part)] if part else found


def _of_loki(matches: list[re.Match[str]]) -> list[_Line]:
    ordered = _oldest_first(matches, lambda one: one[1])
    return [(pod[1] if (pod := _POD_OF_LOKI.search(one[2])) else "", one[3]) for one in ordered]


def _oldest_first(records: list[Any], time_of: Any) -> list[Any]:
    first, last = time_of(records[0]), time_of(records[-1])
    is_newest_first = type(first) is type(last) and isinstance(first, str | int) and first > last
    return records[::-1] if is_newest_first else records


def _is_record(record: Mapping[str, Any], marks: frozenset[str]) -> bool:
    return bool(marks & record.keys()) and not _NO_LOG & record.keys() and _text_of(record) is not None


def _text_of(record: Mapping[str, Any]) -> str | None:
    payload = record.get("jsonPayload")
    every = (record, payload) if isinstance(payload, dict) else (record,)
    return next((text for one in every for name in _TEXTS if isinstance(text := one.get(name), str)), None)


def _lines_of(records: Sequence[Mapping[str, Any]]) -> Iterator[_Line]:
    """Yield what was printed; Docker cuts long lines, of which only the last part ends with a line end."""
    has_ends = any(str(one.get(_LOG, "")).endswith("\n") for one in records)
    part = ""
    for one in records:
        part += _text_of(one) or ""
        if has_ends and not part.endswith("\n"):
            continue
        yield _pod_of(one), _logged(one, part.rstrip("\n"))
        part = ""
    if part:
        yield _pod_of(records[-1]), part


def _logged(record: Mapping[str, Any], text: str) -> str:
    """Return a line with its time before it where a logger wrote it, so that it is no answer."""
    if not any(name in record for name in _LOGGERS):
        return text
    times = [str(record.get(name, "")) for name in _TIMES]
    return f"{next((one for one in times if _ISO.match(one)), _NO_TIME)} {text}"


def _pod_of(record: Mapping[str, Any]) -> str:
    resource = record.get("resource")
    places = [record.get("kubernetes"), resource.get("labels") if isinstance(resource, dict) else None, record]
    for place in places:
        for given in map(place.get, ("pod_name", "pod", "_HOSTNAME")) if isinstance(place, dict) else ():
            pod = given.get("name") if isinstance(given, dict) else given
            if isinstance(pod, str):
                return pod
    return ""


def _by_pod(lines: Sequence[_Line]) -> bytes:
    pods: dict[str, list[str]] = {}
    for pod, line in lines:
        pods.setdefault(pod, []).append(line)
    parts = [[*([f"== {pod} =="] if pod else []), *own] for pod, own in pods.items()]
    return "\n".join(line for part in parts for line in part).encode("utf-8", "replace") + b"\n"


def _decoded(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
