"""Numbers that cannot be in the units of Pulsar: usage above its limit, limits of no machine, empty messages."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from planner.cluster.pulsar_json import RATES, USAGE_METRICS, last_stats
from planner.cluster.text import count
from planner.cluster.units import MIB
from planner.doors.metrics_reader import TOTALS
from planner.doors.pieces import LoadReport, Metrics
from planner.doors.slim import APART
from planner.history.assumed import listed

_LEAST: Final = 1.0
_OF_MACHINES: Final[Mapping[str, tuple[str, float]]] = {
    "cpu": ("percent of a processor", 100 * 10_000),
    "memory": ("MiB", 1 << 24),
    "directMemory": ("MiB", 1 << 24),
    "bandwidthIn": ("kbit/s", 2e9),
    "bandwidthOut": ("kbit/s", 2e9),
}
"""Unit of each resource, and more than any machine has."""
_MOST_PERCENT: Final = 150.0
"""Usage of a container may pass its limit for a moment, by no more than this."""
_MOST_OF: Final = {USAGE_METRICS[name]: 101.0 for name in ("memory", "directMemory")}
"""No program has more memory than its limit; rounding aside."""
_SIZES: Final = ("jvm_memory_bytes_max", "jvm_memory_direct_bytes_max")
_LEAST_BYTES: Final = 16 * MIB
"""Less than the memory of any broker, and than it uses."""
TIMES: Final = ("lastUpdate", "updatedAt", "timestamp")
_BUSY: Final = 100.0
"""Messages per second that take more than a hundredth of a processor."""
_COLUMNS: Final = dict(RATES)
_METRICS: Final = {column: metric for metric, column in TOTALS.items()}


def time_ms_of(one: LoadReport) -> int:
    """Return when a broker wrote a load report, ms since 1970 as it says; 0 where it does not."""
    return next((at for key in TIMES if isinstance(at := one.report.get(key), int) and at > 0), 0)


def of_report(broker: str, one: LoadReport) -> Iterator[str]:
    """Yield what a load report says that cannot be."""
    for name, (unit, most) in _OF_MACHINES.items():
        usage, limit = (_plain(one.report.get(name), part) for part in ("usage", "limit"))
        if 0 < limit < usage:
            yield (
                f"The load report of {broker} says that {name} is {usage:,.6g} of {limit:,.6g}. Usage is above the "
                "limit: the limit or a unit may be wrong."
            )
        elif limit > most:
            yield f"The load report of {broker} says that the limit of {name} is {limit:,.6g} {unit}: check the unit."
    heap_mib, rate = _plain(one.report.get("memory"), "usage"), _plain(one.report, "msgRateIn")
    if 0 < heap_mib * MIB < _LEAST_BYTES and not one.parts:  # tables have percentages
        yield f"The load report of {broker} says that memory in use is {heap_mib:,.6g} MiB: check the unit."
    cpu_percent = _plain(one.report.get("cpu"), "usage")
    if rate > _BUSY and 0 < cpu_percent < 1:
        yield (
            f"The load report of {broker} says that cpu is {cpu_percent:,.6g} percent of a processor, with {rate:,.6g} "
            "messages per second: check that it is not a fraction."
        )
    yield from of_rows(f"the load report of {broker}", (one.report, *last_stats(one.report).values()))


def of_metrics(broker: str, one: Metrics) -> Iterator[str]:
    """Yield what the metrics of a broker say that cannot be."""
    names = set(USAGE_METRICS.values())
    usage = {name: value for name, _, value in one.plain if name in names}
    if above := {name: value for name, value in usage.items() if value > _MOST_OF.get(name, _MOST_PERCENT)}:
        shown = ", ".join(f"{name} {value:,.6g}" for name, value in above.items())
        yield f"The metrics of {broker} say {shown}. These are percentages; a limit or a unit is wrong."
    if len(usage) == len(names) and 0 < max(usage.values()) < 1:
        yield (
            f"The metrics of {broker} say that it uses less than 1 % of everything. They are percentages; check that "
            "these are not fractions of 1."
        )
    for name, _, value in one.plain:
        if name in _SIZES and value < _LEAST_BYTES:
            yield f"The metrics of {broker} say {name} {value:,.6g}. This is in bytes; check the unit."
    for what, rows in (("topics", one.topics), ("bundles", one.bundles)):
        yield from of_rows(f"the metrics of {what} of {broker}", rows.values())


def of_totals(broker: str, one: Metrics) -> Iterator[str]:
    """Yield where the topics of a broker do not add up to what it says of all of them, as in a scrape cut short."""
    if not one.topics or not one.totals:
        return
    rows = one.topics.values()
    sums = {name: sum(row.get(name, 0.0) for row in rows) for name in one.totals}
    sums["topics"] = len(one.topics)
    apart = [
        name
        for name, value in one.totals.items()
        if abs(value - sums[name]) > max(APART * max(value, sums[name]), _LITTLE.get(name, 0.0))
    ]
    if apart:
        shown = listed([f"{_METRICS[name]} {one.totals[name]:,.6g} and {sums[name]:,.6g}" for name in apart])
        yield (
            f"The metrics of {broker} say of all topics together, and topic by topic: {shown}. Some topics may be"
            " missing, or a unit is wrong."
        )


def of_rows(what: str, rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield that rates leave less than a byte for each message: they are swapped, or not in bytes.

    Args:
        what: What they are of.
        rows: Rates by the names of Pulsar's JSON, or by those of columns.
    """
    small = dict.fromkeys(("In", "Out"), 0)
    for row in rows:
        for way in small:
            rate, size = (_of(row, f"{name}{way}") for name in ("msgRate", "msgThroughput"))
            small[way] += _LEAST < rate > size > 0
    for way, number in small.items():
        if number:
            yield (
                f"In {what}, msgThroughput{way} is less than a byte for each message ({count(number, 'time')}). Rates "
                "may be swapped, or not in bytes per second."
            )


def far_apart(one: Mapping[str, float], other: Mapping[str, float]) -> list[str]:
    """Return the names of values of which one is more than twice the other, and more than a little."""
    return [
        name
        for name in one
        if name in other and max(one[name], other[name]) > 2 * min(one[name], other[name]) + _LITTLE.get(name, _LEAST)
    ]


_LITTLE: Final = {
    **{name: 10.0 for key, column in RATES.items() for name in (key, column)},
    **{name: 10_000.0 for key, column in RATES.items() if "Throughput" in key for name in (key, column)},
}
"""Rates that differ by no more are not named."""


def said(names: Iterable[str], one: Mapping[str, float], other: Mapping[str, float]) -> str:
    """Return names with both values."""
    return listed([f"{name} {one[name]:,.6g} and {other[name]:,.6g}" for name in names])


def _of(row: Mapping[str, Any], key: str) -> float:
    return _plain(row, key if key in row else _COLUMNS[key])


def _plain(row: Any, key: str) -> float:
    """Return a number of an object; 0 where there is none."""
    value = row.get(key) if isinstance(row, dict) else None
    return float(value) if isinstance(value, int | float) else 0.0
