"""Series over time: answers of Prometheus, Thanos and Mimir, and exports of VictoriaMetrics."""

import io
from collections.abc import Iterator
from typing import Any, Final

import ijson
import msgspec

from planner.cluster.errors import FormatError
from planner.cluster.units import MIB
from planner.doors.chunks import Chunk, quoted
from planner.doors.kind import NO, SURE, Kind
from planner.doors.pieces import NotUsed, Piece
from planner.doors.series_reader import ASK_PROMETHEUS, SeriesItem, pieces_of_series

_AGAIN: Final = "Query again, and save the whole answer."
_OF_SERIES: Final = frozenset(["metric", "value", "values", "timestamps", "group"])
_MOST_WARNINGS: Final = 3
_AT_ONCE_BYTES = 16 * MIB
"""Largest answer that is read in one go; lists of samples take ten times their text."""


class _Data(msgspec.Struct):
    result: list[SeriesItem] = []
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
        why = f"one number without a series; {ASK_PROMETHEUS}"
        yield NotUsed(source=chunk.source, why=why)
        return
    if len(chunk.data) > _AT_ONCE_BYTES:
        yield from pieces_of_series(chunk.source, _streamed(chunk))
        return
    answer = _decoded(chunk, _Answer)
    if answer.data is None or not answer.data.result:
        reason = quoted(answer.error or "it contains no series").rstrip(".")
        yield NotUsed(source=chunk.source, why=f"Prometheus answered without data: {reason}")
        return
    yield from pieces_of_series(chunk.source, answer.data.result)


def _read_export(chunk: Chunk) -> Iterator[Piece]:
    yield from pieces_of_series(chunk.source, [_decoded(chunk, SeriesItem)])


def _streamed(chunk: Chunk) -> Iterator[SeriesItem]:
    """Yield the series of a large answer, one at a time in memory.

    Raises:
        FormatError: It is damaged.
    """
    try:
        for item in ijson.items(io.BytesIO(chunk.data), "data.result.item", use_float=True):
            yield msgspec.convert(item, SeriesItem)
    except (ijson.JSONError, UnicodeError, msgspec.MsgspecError) as error:
        what = " ".join(str(error).split())[:200]
        raise FormatError(f"The series cannot be read: {what}.", where=str(chunk.source), remedy=_AGAIN) from error


def _decoded(chunk: Chunk, shape: Any) -> Any:
    try:
        return msgspec.json.decode(chunk.data, type=shape)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise FormatError(f"The series cannot be read: {error}.", where=str(chunk.source), remedy=_AGAIN) from error


ANSWER = Kind("answer of Prometheus", "curl -s 'PROMETHEUS/api/v1/query?query=…'", _recognise_answer, _read_answer)
EXPORT = Kind("export of VictoriaMetrics", "curl -s 'VICTORIA/api/v1/export?match=…'", _recognise_export, _read_export)
