"""Answers that hold nothing for the planner: of other monitoring tools, of consoles, and about other things."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from planner.doors.chunks import Chunk
from planner.doors.kind import LIKELY, MAYBE, NO, Kind
from planner.doors.pieces import NotUsed, Piece
from planner.doors.vocabulary import NAMED

_METRICS: Final = "use what brokers print at /metrics, or a Prometheus that asks for it"
_UNREAD: Final = "which no decision reads"
_OBJECTS: Final[Mapping[str, tuple[frozenset[str], ...]]] = {
    f"an answer of CloudWatch; {_METRICS}": (frozenset(["MetricDataResults"]), frozenset(["Label", "Datapoints"])),
    f"an answer of Datadog; {_METRICS}": (frozenset(["res_type", "series"]), frozenset(["series", "from_date"])),
    f"an answer of InfluxDB; {_METRICS}": (frozenset(["results", "statement_id"]),),
    f"an answer of New Relic; {_METRICS}": (frozenset(["facets", "metadata"]), frozenset(["results", "metadata"])),
    "a table of Pulsar Manager, which has no bundles; use brokers list, and the load report of each broker": (
        frozenset(["total", "data", "pageNum"]),
        frozenset(["total", "data", "pageSize"]),
    ),
    f"the addresses of a cluster, {_UNREAD}": (frozenset(["serviceUrl", "brokerServiceUrl"]),),
    f"the rights of a tenant, {_UNREAD}": (frozenset(["adminRoles", "allowedClusters"]),),
    "targets of Prometheus without values; query the values, as with api/v1/query": (frozenset(["activeTargets"]),),
}
"""What an object is, by the keys that it has."""
_LINES: Final[Mapping[str, re.Pattern[str]]] = {
    "pods or other resources of Kubernetes; use brokers list, and the load report of each broker": re.compile(
        r"NAME\s+(?:READY\s+STATUS\s|DATA\s+AGE|TYPE\s+CLUSTER-IP\s|READY\s+AGE|DESIRED\s)"
    ),
    "usage of pods as Kubernetes measures it; use the load report of each broker, which brokers compare": re.compile(
        r"(?:NAMESPACE\s+)?(?:POD\s+)?NAME\s+CPU\(cores\)\s+MEMORY\(bytes\)"
    ),
    "a map as Groovy prints it, without quotation marks; print it with JsonOutput.toJson": re.compile(
        r"(?!\[[^][\s:,]+:(\d{2,5})(?:, [^][\s:,]+:\1)*\]$)\[\[?[A-Za-z_][\w/.-]*:(?!/).*:.*\]?"
    ),
    f"a table of CloudWatch; {_METRICS}": re.compile(r"Label,\S+|Full label,\S*"),
    f"a table of Datadog; {_METRICS}": re.compile(r"(?:host|time|timestamp|scope),.*\bmetric\b.*,.*"),
    f"lines of InfluxDB; {_METRICS}": re.compile(
        r"[A-Za-z_]\w*(?:,[^\s,=]+=[^\s,=]+)+ \w+=[^\s,]+(?:,\w+=[^\s,]+)* \d{10,19}"
    ),
    "processes of a machine; use the settings that brokers print, with brokers get-runtime-config": re.compile(
        r"(?:UID\s+PID\s+PPID|USER\s+PID\s+%CPU).*|\S+\s+\d+\s.*\bjava\s.*"
    ),
    "an object of JavaScript, whose names have no quotation marks; print it with JSON.stringify, or jq": re.compile(
        r"(?:\w[\w.]*\s*=\s*|>\s*)?[\[{]\s*(?:\{\s*)?(?:[A-Za-z_$][\w$]*|'[^']*')\s*:(?!/).*|[A-Za-z_]\w* ?: [{\[]$"
    ),
    "a comparison of two answers, whose other lines are not shown; save both answers whole": re.compile(
        r"--- \S.*|\+\+\+ \S.*|@@ -\d.*|diff --git .*|diff -\S+ .*"
    ),
}
"""What the first line of a text shows it to be."""
_OF_POWERSHELL: Final = re.compile(r"(?m)^\w+ *: (?:@\{\w+=|\{[^{}\n]*\.\.\.\})")
_NO_POWERSHELL: Final = "an object as PowerShell prints it, which leaves parts out; add | ConvertTo-Json -Depth 9"
_SETTING: Final = re.compile(rf"(?m)^\s*{NAMED}\s*[=:]")
_LOOKED_AT: Final = 4_096
_NAMES: Final = re.compile(rb'\s*"[\w.-]+"\s*')


def _what(chunk: Chunk) -> str:
    if chunk.is_json:
        keys = chunk.keys.keys()
        return next((what for what, every in _OBJECTS.items() if any(wanted <= keys for wanted in every)), "")
    if _OF_POWERSHELL.search(chunk.head):
        return _NO_POWERSHELL
    if _SETTING.search(chunk.head):  # which follows what the first line shows
        return ""
    first = next(iter(chunk.first_lines), "")[:_LOOKED_AT].strip()
    return next((what for what, form in _LINES.items() if form.match(first)), "")


def _recognise(chunk: Chunk) -> int:
    if isinstance(chunk.outline, list):
        return MAYBE if chunk.outline and all(map(_NAMES.fullmatch, map(bytes, chunk.outline[:200]))) else NO
    return LIKELY if _what(chunk) else NO


def _read(chunk: Chunk) -> Iterator[Piece]:
    what = _what(chunk)
    if not what:
        number = len(chunk.outline)
        what = f"a list of {number:,} names alone, as of tenants or clusters; put the command above it"
    yield NotUsed(source=chunk.source, why=what, is_expected=what.endswith(_UNREAD))


KIND = Kind("answer of another tool", "", _recognise, _read)
