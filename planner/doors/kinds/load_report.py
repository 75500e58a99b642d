"""Load reports of brokers: `LocalBrokerData` (modular), `LoadReport` (simple), `BrokerLoadData` (extensible)."""

import re
from collections.abc import Iterator
from typing import Any, Final

from planner.cluster.errors import FormatError
from planner.cluster.moments import LAST_MS
from planner.cluster.pulsar_json import BUNDLE_METRICS, RESOURCES, Json, broker_numbers, bundle_numbers, last_stats
from planner.doors.chunks import Chunk
from planner.doors.kind import LIKELY, NO, SURE, Kind
from planner.doors.pieces import Assumed, LoadReport, Metrics, Piece
from planner.doors.plausible import TIMES
from planner.doors.words import BUNDLE, broker_in

_LOCAL: Final = frozenset(["lastStats", "webServiceUrl", "webServiceUrlTls", "bundles"])
_EXTENSIBLE: Final = frozenset(["updatedAt", "weightedMaxEMA", "bundleCount", "msgThroughputEMA"])
_OF_TEXTS: Final = ("protocols", "advertisedListeners")
_NUMBER: Final = re.compile(r"-?\d{1,300}(?:\.\d+)?(?:[eE][-+]?\d{1,3})?")
TEXTS_READ: Final = 'texts such as "12.5" are read as the numbers in them.'
"""What is assumed of numbers that are texts."""
_SIMPLE: Final = "systemResourceUsage"
_OF_SIMPLE: Final = {"timestamp": "lastUpdate", "bundleStats": "lastStats"}


def _recognise(chunk: Chunk) -> int:
    keys = chunk.keys.keys()
    if keys and all(map(BUNDLE.fullmatch, keys)):  # `lastStats` alone, as `jq` prints it
        return SURE if all(b'"msgRateIn"' in bytes(memoryview(part)[:500]) for part in chunk.keys.values()) else NO
    if _SIMPLE in keys or ("cpu" in keys and _LOCAL & keys):
        return SURE
    return LIKELY if "cpu" in keys and (_EXTENSIBLE & keys or "memory" in keys) else NO


def _read(chunk: Chunk) -> Iterator[Piece]:
    broker = chunk.broker or broker_in(f"x {chunk.before}")
    value, are_texts = _with_numbers(chunk.value)
    if are_texts:
        yield Assumed(source=chunk.source, text=f"{chunk.source}: {TEXTS_READ}")
    if all(map(BUNDLE.fullmatch, value)):
        yield _of_bundles(value, chunk, broker)
    else:
        yield report_of(value, chunk, broker)


def _with_numbers(value: Any) -> tuple[Any, bool]:
    """Return a report whose numbers are texts, as scripts write them, with the numbers, and whether there are any."""
    if not isinstance(value, dict):
        return value, False
    made: dict[str, Any] = {}
    any_text = False
    for name, given in value.items():
        made[name], is_text = given, False
        if isinstance(given, dict) and name not in _OF_TEXTS:
            made[name], is_text = _with_numbers(given)
        elif isinstance(given, str) and "ersion" not in name and _NUMBER.fullmatch(given):
            made[name], is_text = (float(given) if set(given) & set(".eE") else int(given)), True
        any_text = any_text or is_text
    return made, any_text


def _of_bundles(value: dict[str, Any], chunk: Chunk, broker: str) -> Metrics:
    """Return the rates of bundles, which say nothing of the usage of the broker.

    Raises:
        FormatError: A value is not a number.
    """
    rows: dict[str, dict[str, float]] = {}
    for name, stats in value.items():
        bundle_numbers(stats, f"{chunk.source}: {name}: ")
        rows[name] = {key: stats[key] for key in BUNDLE_METRICS.values() if key in stats}
    return Metrics(source=chunk.source, broker=broker, bundles=rows)


def report_of(value: dict[str, Any], chunk: Chunk, broker: str = "") -> LoadReport:
    """Return the piece of a report in any of the three forms; the simple one in the shape of the modular one.

    Raises:
        FormatError: A value is not a number.
    """
    where = str(chunk.source)
    value = {key: given for key, given in value.items() if given is not None}
    if _SIMPLE not in value:
        _check(value, where)
        is_extensible = not _LOCAL & value.keys() and bool(_EXTENSIBLE & value.keys())
        return LoadReport(source=chunk.source, report=value, broker=broker, is_extensible=is_extensible)
    usage = value[_SIMPLE] if isinstance(value[_SIMPLE], dict) else {}
    report = {key: usage[key] for key in RESOURCES if key in usage}
    report = {_OF_SIMPLE.get(key, key): given for key, given in value.items() if key != _SIMPLE} | report
    _check(report, where)
    return LoadReport(source=chunk.source, report=report, broker=broker, is_simple=True)


def _check(report: Json, where: str) -> None:
    """Refuse a report with something that is not a number, so that others are read all the same.

    Raises:
        FormatError: Naming the field.
    """
    broker_numbers(report, f"{where}: ")
    for name, stats in last_stats(report).items():
        bundle_numbers(stats, f"{where}: {name}: ")
    for name in TIMES:
        if isinstance(at_ms := report.get(name), int) and at_ms > LAST_MS:
            what = "The value is not a time in ms since 1970."
            raise FormatError(what, where=f"{where}: {name}", remedy="Save the report unchanged.")
    given = report.get("lastStats")
    if given is not None and not isinstance(given, dict):
        raise FormatError(
            "The value is not an object.", where=f"{where}: lastStats", remedy="Save the report unchanged."
        )


KIND = Kind("load report", "pulsar-admin broker-stats load-report", _recognise, _read)
