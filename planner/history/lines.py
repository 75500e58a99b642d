"""Reads JSON Lines: load reports, `broker-stats` topics, and messages of the extensible load manager's system topics.

One object a line, recorded over time, in one of these shapes (`time_ms` is when the answer came, by the clock of the
recorder; `cluster` may be left out):

- `{"time_ms": …, "cluster": …, "broker": "host:port", "report": {…}}`, the answer to `/broker-stats/load-report`;
- that answer alone, whose `lastUpdate` is the time then;
- `{"time_ms": …, "cluster": …, "broker": "host:port", "topics": {…}}`, the answer to `/broker-stats/topics`;
- `{"topic": …, "key": …, "publish_time_ms": …, "value": {…}}`, a message of `loadbalancer-broker-load-data`,
  `loadbalancer-top-bundles-load-data` or `loadbalancer-service-unit-state`;
- an answer of Prometheus, or a series as VictoriaMetrics exports it.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from operator import attrgetter
from typing import Annotated, Any, Final, TypeAlias

import msgspec
import numpy as np

from planner.cluster.errors import FormatError
from planner.cluster.moments import LAST_MS
from planner.cluster.pulsar_json import (
    BROKER_COLUMNS,
    BROKER_COUNTS,
    BUNDLE_COUNTS,
    BUNDLE_STATS,
    COUNTERS,
    EMAS,
    MOST,
    RATES,
    RESOURCES,
    SYSTEM_TOPICS,
    TopicStats,
    broker_facts,
    broker_numbers,
    bundle_numbers,
    bundles_of_topics,
    service_unit_owner,
    text_of,
    web_services,
    whole,
)
from planner.cluster.ranges import parse_bundle
from planner.cluster.topic_names import namespace_of_topic
from planner.formats.encoding import parse_json
from planner.history.prometheus import records_of_answer, records_of_line
from planner.history.records import Kind, Record, RowSetAside, Tally, check_name

_MOST = 1 << 53
_NAN = float("nan")
_AS_IT_CAME = "Record each answer unchanged."
_SHAPES = (
    "Write one load report, one answer to /broker-stats/topics, one message of a load balancer topic, one "
    "Prometheus answer, or one series of VictoriaMetrics per line."
)


_Rate: TypeAlias = Annotated[float, msgspec.Meta(ge=0)]
_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=_MOST)]
_ABSENT: Final = -1


class _Usage(msgspec.Struct, frozen=True, gc=False):
    usage: float = 0.0
    limit: float = 0.0


_Stats = msgspec.defstruct(
    "_Stats",
    [*((key, _Rate) for key in RATES), *((key, _Count) for key in BUNDLE_COUNTS)],
    gc=False,
    forbid_unknown_fields=True,  # and none is optional, so that its keys are known without a look at them
)
_Report = msgspec.defstruct(
    "_Report",
    [
        ("lastStats", dict[str, _Stats]),  # type: ignore[valid-type]
        *((key, _Usage, _Usage()) for key in RESOURCES),
        *((key, _Rate, 0.0) for key in RATES),
        *((key, _Count, _ABSENT) for keys in BROKER_COUNTS.values() for key in keys),
        *((key, _Rate, _NAN) for key in EMAS),
        *((key, str | None, None) for key in ("brokerVersionString", "brokerVersion", "loadManagerClassName")),
        *((key, bool, True) for key in ("persistentTopicsEnabled", "nonPersistentTopicsEnabled")),
    ],
)


class _Line(msgspec.Struct):
    """A report with its time and broker, as nearly all lines are; one that is odd in any way is read with more care."""

    time_ms: int
    broker: str
    report: _Report  # type: ignore[valid-type]
    cluster: str | msgspec.UnsetType = msgspec.UNSET
    status: msgspec.UnsetType = msgspec.UNSET


class _Outline(msgspec.Struct, forbid_unknown_fields=True):
    """The same, with the parts of the report as they are written."""

    time_ms: msgspec.Raw
    broker: msgspec.Raw
    report: dict[str, msgspec.Raw]
    cluster: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


_read_line = msgspec.json.Decoder(_Line).decode
_read_outline = msgspec.json.Decoder(_Outline).decode
_values_of = attrgetter(*BUNDLE_STATS)
_usages_of = attrgetter(*RESOURCES)
_rates_of = attrgetter(*RATES)
_emas_of = attrgetter(*EMAS)
_facts_of = attrgetter(*_Report.__struct_fields__[-5:])
_UPDATED, _STARTED = BROKER_COLUMNS.index("updated_at_ms"), BROKER_COLUMNS.index("started_at_ms")


def records_of_lines(
    lines: Iterable[bytes | RowSetAside], cluster: str, tally: Tally
) -> Iterator[Record | RowSetAside]:
    """Read lines in UTF-8, of the cluster named where one names none; what cannot be read comes back as `RowSetAside`.

    Blank lines are no rows.
    """
    for line, data in enumerate(lines, 1):
        tally.lines = line
        if isinstance(data, RowSetAside):
            tally.rows += 1
            yield replace(data, line=line)
            continue
        text = data.strip()
        if not text:
            continue
        tally.rows += 1
        try:
            if (usual := _usual(text, cluster, line)) is not None:
                yield usual
                continue
            value = _parse(text)
            if "status" in value and ("data" in value or "error" in value):
                tally.rows -= 1  # its samples count
                yield from records_of_answer(value, cluster, line, tally)
            elif "metric" in value and "values" in value:
                tally.rows -= 1
                yield from records_of_line(value, cluster, line, tally)
            else:
                yield _record(value, cluster, line)
        except Exception as error:  # noqa: BLE001 - one row must not stop an ingest
            yield RowSetAside.of(error, line, data)


def _usual(text: bytes, cluster: str, line: int) -> Record | None:
    """Read a report with nothing odd about it; None for any other line. It is what `_report` makes of it, but faster.

    Raises:
        FormatError: The report is of a moment, cluster or broker that cannot be, or of something that is no bundle.
    """
    try:
        given = _read_line(text)
        if not text.isascii():
            text.decode()
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    report: Any = given.report
    if _repeats_a_key(text, len(report.lastStats)):
        return None
    own: list[float] = []
    for pair in _usages_of(report):
        is_percentage = max(pair.usage, pair.limit) <= MOST and not 0 < pair.limit < 1 / MOST
        if pair.usage < (0.0 if pair.limit > 0 else -1.0) or not is_percentage:
            return None
        own += (pair.usage, pair.limit)
    own += _rates_of(report)
    for column, keys in BROKER_COUNTS.items():
        first = getattr(report, keys[0])
        value = first if first != _ABSENT else getattr(report, keys[-1])
        own.append(value if value != _ABSENT or column == "reported_bundles" else 0)
    if not given.broker or max(own[_UPDATED], own[_STARTED]) > LAST_MS:
        return None
    own += _emas_of(report)
    stats = report.lastStats
    values = chain(own, chain.from_iterable(map(_values_of, stats.values())))
    return Record(
        Kind.REPORT,
        cluster if given.cluster is msgspec.UNSET else given.cluster,
        _moment(given.time_ms, "time_ms"),
        broker=_broker(given.broker, {}),
        names=list(map(_checked, stats)),
        values=np.fromiter(values, np.float64, len(own) + len(stats) * len(BUNDLE_STATS)),
        text=_facts(*_facts_of(report)),
        line=line,
        clock_lag_ms=given.time_ms - int(own[_UPDATED]) if own[_UPDATED] else None,
    )


def _written_keys(text: bytes) -> int:
    """Return how many keys a valid JSON text has, as it is written; -1 where that takes a closer look."""
    if b" :" in text or b"\t:" in text or b"\r:" in text or b"\n:" in text:
        return -1
    if b"\\" in text:  # what is left of a text without its escapes has no quote inside
        text = text.replace(rb"\\", b"").replace(rb"\"", b"")
    return text.count(b'":')


def _keys(value: Any) -> int:
    """Return how many keys a JSON value has, each once in its object."""
    if isinstance(value, dict):
        return len(value) + sum(_keys(item) for item in value.values() if isinstance(item, (dict, list)))
    if isinstance(value, list):
        return sum(_keys(item) for item in value if isinstance(item, (dict, list)))
    return 0


def _repeats_a_key(text: bytes, bundles: int) -> bool:
    """Say whether a line with a report may hold a key twice, of which readers take the last; False is sure.

    Args:
        text: The line.
        bundles: How many bundles it has, each with the keys of `_Stats`: nearly all of it.
    """
    try:
        line = _read_outline(text)
    except msgspec.MsgspecError:  # it has more beside the report
        return True
    parts = (part for name, part in line.report.items() if name != "lastStats")
    around = 3 + (line.cluster is not msgspec.UNSET) + sum(_keys(msgspec.json.decode(part)) for part in parts)
    return _written_keys(text) != around + len(line.report) + bundles * (1 + len(BUNDLE_STATS))


@lru_cache(maxsize=1 << 10)
def _facts(*facts: Any) -> str:
    names = _Report.__struct_fields__[-len(facts) :]
    return _text_of_facts(dict(zip(names, facts, strict=True)), complete=True)


def _text_of_facts(report: Mapping[str, Any], *, complete: bool) -> str:
    facts = broker_facts(report)
    for name in ("version", "load_manager_class"):
        check_name(facts[name])
        if not facts[name].isprintable():
            raise FormatError(f"'{name}' is not a name.", remedy="Leave it out.")
    return json.dumps({"complete": complete, **facts}, sort_keys=True)


def _parse(text: bytes) -> dict[str, Any]:
    """Read an object; the slow reader, which tells what is wrong, only reads what the fast one refuses."""
    try:
        value = msgspec.json.decode(text)
        if _written_keys(text) != _keys(value):
            value = parse_json(text, "")
    except (msgspec.MsgspecError, ValueError, RecursionError):
        value = parse_json(text, "")
    if not isinstance(value, dict):
        raise FormatError("The line is not a JSON object.", remedy=_SHAPES)
    return value


def _record(value: Mapping[str, Any], cluster: str, line: int) -> Record:
    named = value.get("cluster", cluster)
    if not isinstance(named, str) or not named.strip():
        raise FormatError("The cluster has no name.", where="cluster", remedy="Set --cluster.")
    if isinstance(value.get("report"), dict):
        return _report(value["report"], named, line, value)
    if isinstance(value.get("topics"), dict) and "time_ms" in value:
        return _topics(value, named, line)
    if isinstance(value.get("topic"), str) and isinstance(value.get("key"), str):
        return _message(value, named, line)
    if isinstance(value.get("cpu"), dict):
        return _report(value, named, line, {})
    raise FormatError("The line has no known form.", remedy=_SHAPES)


def _moment(value: Any, where: str) -> int:
    at = whole(value, where)
    if not 0 < at <= LAST_MS:
        what = "The time is missing." if not at else f"{at} is not a valid timestamp."
        raise FormatError(what, where=where, remedy="Record when each answer was received, in milliseconds since 1970.")
    return at


def _broker(given: Any, report: Mapping[str, Any]) -> str:
    name = given if isinstance(given, str) and given else next(web_services(report), "")
    if not name.rpartition(":")[2].isdecimal():
        raise FormatError("The broker is not named.", where="broker", remedy="Write it as host:port.")
    return name


@lru_cache(maxsize=1 << 18)
def _checked(bundle: str) -> str:
    check_name(bundle)
    namespace, low, high = parse_bundle(bundle)
    return f"{namespace}/0x{low:08x}_0x{high:08x}"


def _rows(items: Mapping[str, Any], where: str) -> list[float]:
    """Return `BUNDLE_VALUES` of each bundle, one after the other."""
    try:
        rows = [[stats.get(key, 0) for key in BUNDLE_STATS] for stats in items.values()]
        array = np.array(rows or np.zeros((0, len(BUNDLE_STATS))))
        counts = array[:, len(RATES) :]
        plain = array.dtype.kind in "if" and np.isfinite(array).all() and (array >= 0).all()
        if plain and (counts == np.floor(counts)).all() and (counts <= _MOST).all():
            found: list[float] = array.astype(np.float64).reshape(-1).tolist()
            return found
    except (AttributeError, TypeError, ValueError):
        pass
    made: list[float] = []  # something is wrong, or null: find out what
    for name, stats in items.items():
        if not isinstance(stats, dict):
            raise FormatError("The value is not an object.", where=f"{where}.{name}", remedy=_AS_IT_CAME)
        numbers = bundle_numbers(stats, f"{where}.{name}.")
        if max(numbers[column] for column in BUNDLE_COUNTS.values()) > _MOST:
            raise FormatError("A count is above 2^53.", where=f"{where}.{name}", remedy=_AS_IT_CAME)
        made += map(float, numbers.values())
    return made


def _report(report: Mapping[str, Any], cluster: str, line: int, around: Mapping[str, Any]) -> Record:
    broker = _broker(around.get("broker"), report)
    values = broker_numbers(report)
    updated = int(values["updated_at_ms"])
    for column in ("updated_at_ms", "started_at_ms"):
        if values[column] > LAST_MS:
            raise FormatError(f"{column} is not a valid timestamp. Use milliseconds since 1970.", remedy=_AS_IT_CAME)
    at = _moment(around["time_ms"], "time_ms") if "time_ms" in around else _moment(updated or None, "lastUpdate")
    stats = report.get("lastStats")
    if stats is not None and not isinstance(stats, dict):
        raise FormatError("The value is not an object.", where="lastStats", remedy=_AS_IT_CAME)
    bundles: Mapping[str, Any] = stats or {}
    return Record(
        Kind.REPORT,
        cluster,
        at,
        broker=broker,
        names=[_checked(name) for name in bundles],
        values=[*map(float, values.values()), *_rows(bundles, "lastStats")],
        text=_text_of_facts(report, complete=stats is not None),
        line=line,
        clock_lag_ms=at - updated if "time_ms" in around and updated else None,
    )


def _topics(value: Mapping[str, Any], cluster: str, line: int) -> Record:
    at = _moment(value["time_ms"], "time_ms")
    broker = _broker(value.get("broker"), {})
    names: list[str] = []
    bundles: list[str] = []
    values: list[float] = []
    for namespace, span, topics in bundles_of_topics(value["topics"]):
        bundle, before = _checked(f"{namespace}/{span}"), len(names)
        for name, stats in topics:
            if namespace_of_topic(name) != namespace:
                raise FormatError(f"'{name[:120]}' is listed under {namespace}.", remedy=_AS_IT_CAME)
            check_name(name)
            names.append(name)
            values += _topic_values(stats, name)
        if len(names) > before:  # a bundle without topics may have left the broker
            bundles.append(bundle)
    return Record(
        Kind.TOPICS, cluster, at, broker=broker, names=names, values=values, text=json.dumps(bundles), line=line
    )


def _topic_values(stats: Mapping[str, Any], name: str) -> Sequence[float]:
    given = TopicStats.of(stats, name)
    counters = (_NAN if stats.get(key) is None else float(whole(stats[key], f"{name}: {key}")) for key in COUNTERS)
    return [*given.rates, float(given.producers), float(given.consumers), *counters]


def _message(value: Mapping[str, Any], cluster: str, line: int) -> Record:
    at = _moment(value.get("publish_time_ms"), "publish_time_ms")
    what = next((kind for kind, ending in SYSTEM_TOPICS.items() if value["topic"].endswith(ending)), None)
    key, given = value["key"], value.get("value")
    content: Mapping[str, Any] = given if isinstance(given, dict) else {}
    if what == "loads" and isinstance(content.get("cpu"), dict):
        return _report(content, cluster, line, {"broker": key, "time_ms": at})
    if what == "top_bundles" and isinstance(content.get("topBundlesLoadData"), list):
        rows = content["topBundlesLoadData"]
        if not all(isinstance(r, dict) and isinstance(r.get("bundleName"), str) for r in rows):
            raise FormatError("A top bundle has no name.", where="topBundlesLoadData", remedy=_AS_IT_CAME)
        items = {_checked(row["bundleName"]): row.get("stats") or {} for row in rows}
        values = _rows(items, "topBundlesLoadData")
        return Record(Kind.TOP, cluster, at, _broker(key, {}), names=list(items), values=values, line=line)
    if what == "ownership":
        state = text_of(content, "state")
        if content.get("state") is not None and not state:
            raise FormatError("The value is not a text.", where="state", remedy=_AS_IT_CAME)
        owner = service_unit_owner(content)
        return Record(Kind.STATE, cluster, at, owner, names=[_checked(key)], text=state or "Deleted", line=line)
    if what in ("loads", "top_bundles") and not content:  # a tombstone: the broker withdrew what it said
        return Record(Kind.TOP, cluster, at, _broker(key, {}), text="withdrawn", line=line)
    raise FormatError(
        "The message is not from a load balancer topic.",
        where=value["topic"][:200],
        remedy=f"Record the topics {', '.join(SYSTEM_TOPICS.values())}.",
    )
