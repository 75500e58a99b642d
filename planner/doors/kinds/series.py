"""Series over time: answers of Prometheus, Thanos and Mimir, and exports of VictoriaMetrics."""

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import ijson
import msgspec

from planner.cluster.errors import FormatError
from planner.cluster.moments import LAST_MS
from planner.cluster.text import count
from planner.cluster.units import MIB
from planner.doors.chunks import Chunk, quoted
from planner.doors.kind import NO, SURE, Kind
from planner.doors.metrics_reader import COUNTERS, USED, VALID_MS, MetricsReader, of_another_time
from planner.doors.pieces import NotUsed, Piece
from planner.history.labels import REPLICA_LABELS

_AGAIN: Final = "Query again, and save the whole answer."
_NAME: Final = "__name__"
_OF_SERIES: Final = frozenset(["metric", "value", "values", "timestamps", "group"])
_MOST_WARNINGS: Final = 3
_AT_ONCE_BYTES = 16 * MIB
"""Largest answer that is read in one go; lists of samples take ten times their text."""


@dataclass
class _Series:
    labels: Mapping[str, str]
    first_ms: int
    samples: list[tuple[int, float]]
    """The last two."""


class _Item(msgspec.Struct):
    metric: dict[str, str]
    values: list[Any] = []
    value: list[Any] | None = None
    timestamps: list[Any] = []
    histograms: list[Any] = []


class _Data(msgspec.Struct):
    result: list[_Item] = []
    resultType: str = ""  # noqa: N815 - Prometheus' name


class _Shape(msgspec.Struct):
    resultType: str = ""  # noqa: N815 - Prometheus' name


class _Answer(msgspec.Struct):
    data: _Data | None = None
    status: str = ""
    error: str = ""


def _recognise_answer(chunk: Chunk) -> int:
    keys = chunk.keys.keys()
    if chunk.is_json and chunk.outline is None:  # truncated
        return SURE if "".join(chunk.head[:200].split()).startswith('{"status":"success","data":{') else NO
    return SURE if "status" in keys and ("data" in keys or "error" in keys) else NO


def _recognise_export(chunk: Chunk) -> int:
    keys = chunk.keys.keys()
    return SURE if "metric" in keys and {"values", "value"} & keys and keys <= _OF_SERIES else NO


def _read_answer(chunk: Chunk) -> Iterator[Piece]:
    yield from _of_answer(chunk)
    if warned := _warnings(chunk):
        yield NotUsed(source=chunk.source, why=f"the server warns, so series may be missing or inexact: {warned}")


def _warnings(chunk: Chunk) -> str:
    """Return what a server says about stores that did not answer; empty where it says nothing."""
    found = [quoted(" ".join(text.split())).rstrip(".") for text in _small(chunk, "warnings", list[str]) or []]
    if _small(chunk, "isPartial", bool):
        found.insert(0, "the answer is partial")
    return "; ".join(found[:_MOST_WARNINGS])


def _small(chunk: Chunk, key: str, shape: Any) -> Any:
    try:
        return msgspec.json.decode(chunk.keys[key], type=shape) if key in chunk.keys else None
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _of_answer(chunk: Chunk) -> Iterator[Piece]:
    if _small(chunk, "data", list[msgspec.Raw]) is not None:
        why = "names of series or labels without values; query the values, as with api/v1/query"
        yield NotUsed(source=chunk.source, why=why)
        return
    shape = _small(chunk, "data", _Shape) if len(chunk.data) <= _AT_ONCE_BYTES else None
    if shape is not None and shape.resultType in ("scalar", "string"):
        why = "one number without a series; query the metrics themselves"
        yield NotUsed(source=chunk.source, why=why)
        return
    if len(chunk.data) > _AT_ONCE_BYTES:
        yield from _pieces(chunk, _streamed(chunk))
        return
    answer = _decoded(chunk, _Answer)
    if answer.data is None or not answer.data.result:
        reason = quoted(answer.error or "it contains no series").rstrip(".")
        yield NotUsed(source=chunk.source, why=f"Prometheus answered without data: {reason}")
        return
    yield from _pieces(chunk, answer.data.result)


def _read_export(chunk: Chunk) -> Iterator[Piece]:
    yield from _pieces(chunk, [_decoded(chunk, _Item)])


def _streamed(chunk: Chunk) -> Iterator[_Item]:
    """Yield the series of a large answer, one at a time in memory.

    Raises:
        FormatError: It is damaged.
    """
    try:
        for item in ijson.items(io.BytesIO(chunk.data), "data.result.item", use_float=True):
            yield msgspec.convert(item, _Item)
    except (ijson.JSONError, UnicodeError, msgspec.MsgspecError) as error:
        what = " ".join(str(error).split())[:200]
        raise FormatError(f"The series cannot be read: {what}.", where=str(chunk.source), remedy=_AGAIN) from error


def _decoded(chunk: Chunk, shape: Any) -> Any:
    try:
        return msgspec.json.decode(chunk.data, type=shape)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise FormatError(f"The series cannot be read: {error}.", where=str(chunk.source), remedy=_AGAIN) from error


def _samples(item: _Item) -> tuple[list[tuple[int, float]], int]:
    """Return time in ms and value of the samples of a series in order, and how many are none."""
    if item.timestamps:
        pairs = list(zip(item.timestamps, item.values, strict=False))
        factor, wrong = 1, abs(len(item.timestamps) - len(item.values))
    else:
        pairs = [tuple(pair) if isinstance(pair, list) else (pair,) for pair in item.values or [item.value]]
        factor, wrong = 1_000, 0
    found: list[tuple[int, float]] = []
    for pair in pairs:
        try:
            at, text = pair
            time_ms, value = round(float(at) * factor), float(text)
        except (TypeError, ValueError, OverflowError):
            wrong += 1
            continue
        if 0 < time_ms <= LAST_MS:
            found.append((time_ms, value))
        else:
            wrong += 1
    return sorted(found), wrong


def _pieces(chunk: Chunk, items: Iterable[_Item]) -> Iterator[Piece]:
    wrong, useless, nameless, native = 0, 0, 0, 0
    every: list[_Series] = []
    for item in items:
        name = item.metric.get(_NAME, "")
        nameless += not name
        if item.histograms and not item.values:
            native += 1
            continue
        samples, bad = _samples(item)
        wrong += bad
        if name in USED or name in COUNTERS:
            if samples:
                every.append(_Series(item.metric, samples[0][0], samples[-2:]))
        else:
            useless += 1
    if every:
        yield from _of_moment(chunk, every)
    if wrong:
        yield NotUsed(source=chunk.source, why=f"{count(wrong, 'sample')} left out: not pairs of time and number")
    if native:
        yield NotUsed(source=chunk.source, why=f"{count(native, 'histogram')} left out, which no decision reads")
    if nameless and not every:
        why = "series without the name of a metric, as rates and sums have them; query the metrics themselves"
        yield NotUsed(source=chunk.source, why=why)
    elif useless and not every:
        yield NotUsed(source=chunk.source, why="series, none of which the planner uses")


def _of_moment(chunk: Chunk, every: Sequence[_Series]) -> Iterator[Piece]:
    newest = max(one.samples[-1][0] for one in every)
    oldest = min(one.first_ms for one in every)
    reader = MetricsReader(chunk.source)
    stale, lonely = 0, 0
    seen: dict[tuple[tuple[str, str], ...], float] = {}
    for one in every:
        at, value = one.samples[-1]
        name = one.labels[_NAME]
        if at < newest - VALID_MS:
            stale += 1
            continue
        if name in COUNTERS:
            rate = _rate(one.samples)
            lonely += rate is None
            if rate is None:
                continue
            value = rate
        key = tuple(sorted((k, v) for k, v in one.labels.items() if k not in REPLICA_LABELS))
        if key in seen:  # the same series of another server
            continue
        seen[key] = value
        reader.add(name, one.labels, value, at)
    yield from reader.pieces()
    yield from of_another_time(chunk.source, newest, oldest, is_range=newest > oldest, stale=stale)
    if lonely:
        why = f"{count(lonely, 'counter')} have one sample, which gives no rate; query a range"
        yield NotUsed(source=chunk.source, why=why)


def _rate(samples: Sequence[tuple[int, float]]) -> float | None:
    """Return the rate of a counter per second between its last two samples; after a restart it counts from 0."""
    if len(samples) < 2:  # noqa: PLR2004 - a rate needs two
        return None
    (before_ms, before), (after_ms, after) = samples[-2:]
    grown = after - before if after >= before else after
    return grown / (after_ms - before_ms) * 1_000 if after_ms > before_ms else None


ANSWER = Kind("answer of Prometheus", "curl -s 'PROMETHEUS/api/v1/query?query=…'", _recognise_answer, _read_answer)
EXPORT = Kind("export of VictoriaMetrics", "curl -s 'VICTORIA/api/v1/export?match=…'", _recognise_export, _read_export)
