"""Tables of `pulsar-perf monitor-brokers`: usage and totals of each broker."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from planner.cluster.pulsar_json import MOST
from planner.doors.chunks import Chunk
from planner.doors.kind import NO, SURE, Kind
from planner.doors.pieces import LoadReport, NotUsed, Piece
from planner.doors.words import BROKER

_TITLE: Final = re.compile(r"(?:Broker Data|Load Report) for (\S+):\s*")
_ROW: Final = re.compile(r"\s*\|\|(.*)\|\|\s*")
_SUMMARY: Final = re.compile(r"\|\|BROKER\s*\|(?:[^|\n]+\|)+MAX %\s*\|\|")
_SYSTEM: Final = re.compile(r"\|\|(?:RAW )?SYSTEM\s*\|CPU %\s*\|")
_USAGE: Final = {"CPU %": "cpu", "MEMORY %": "memory", "DIRECT %": "directMemory"} | {
    "BW IN %": "bandwidthIn",
    "BW OUT %": "bandwidthOut",
}
_COUNTS: Final = {"TOPIC": "numTopics", "BUNDLE": "numBundles", "PRODUCER": "numProducers", "CONSUMER": "numConsumers"}
_RATES: Final = {"MSG/S IN": ("msgRateIn", 1.0), "MSG/S OUT": ("msgRateOut", 1.0)} | {
    "KB/S IN": ("msgThroughputIn", 1_024.0),
    "KB/S OUT": ("msgThroughputOut", 1_024.0),
}
_USED: Final = ("SYSTEM", "RAW SYSTEM", "COUNT", "LATEST", "RAW MSG")


def _recognise(chunk: Chunk) -> int:
    if chunk.is_json:
        return NO
    of_brokers = "Broker Data for" in chunk.head or "Load Report for" in chunk.head
    return SURE if of_brokers or _SUMMARY.search(chunk.head) or _SYSTEM.search(chunk.head) else NO


def _cells(line: str) -> list[str]:
    found = _ROW.fullmatch(line)
    return [cell.strip() for cell in found[1].split("|")] if found else []


def _number(text: str) -> float | None:
    point = max(text.rfind(","), text.rfind("."))  # some locales write a comma, and some part thousands with either
    if point >= 0 and text.count(text[point]) > 1:
        return None  # which of them is the point is not certain
    whole = text[: max(point, 0)].replace(",", "").replace(".", "")
    try:
        value = float(f"{whole}.{text[point + 1 :]}" if point >= 0 else text)
    except ValueError:
        return None
    return value if 0 <= value <= MOST else None


def _read(chunk: Chunk) -> Iterator[Piece]:
    broker, head = "", list[str]()
    reports: dict[str, dict[str, Any]] = {}
    for line in chunk.lines:
        if title := _TITLE.search(line):
            broker, head = title[1], []
            reports[broker] = {}
        elif broker and (cells := _cells(line)):
            if cells[0]:
                head = cells
            elif head and head[0] in _USED:
                _take(reports[broker], head, cells)
                head = []
    if not reports:
        why = "a summary of brokers without the usage of each resource; use the table that is printed for each broker"
        if _SYSTEM.search(chunk.head):
            why = "a table that does not name its broker; copy the line above it as well, Broker Data for HOST:PORT"
        yield NotUsed(source=chunk.source, why=why)
    for name, report in reports.items():
        if not BROKER.fullmatch(name) or "cpu" not in report:
            yield NotUsed(source=chunk.source, why=f"the table of {name[:100]!r} has no usage of a broker")
            continue
        yield LoadReport(source=chunk.source, report=report, broker=name, parts="usage and totals")


def _take(report: dict[str, Any], head: Sequence[str], cells: Sequence[str]) -> None:
    for title, text in zip(head[1:], cells[1:], strict=False):
        value = _number(text)
        if value is None:
            continue
        if title in _USAGE:
            report[_USAGE[title]] = {"usage": value, "limit": 100.0}
        elif title in _COUNTS:
            report[_COUNTS[title]] = int(value)
        elif title in _RATES:
            key, factor = _RATES[title]
            report[key] = value * factor


KIND = Kind("tables of brokers", "pulsar-perf monitor-brokers --connect-string ZOOKEEPER", _recognise, _read)
