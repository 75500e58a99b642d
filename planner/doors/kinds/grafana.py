"""Data of Grafana: answers of its server, and what *Inspect* of a panel shows as JSON."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from planner.cluster.errors import FormatError
from planner.doors.chunks import Chunk, quoted
from planner.doors.kind import LIKELY, NO, SURE, Kind
from planner.doors.pieces import NotUsed, Piece
from planner.doors.series_reader import ASK_PROMETHEUS, NAME, SeriesItem, labels_in, pieces_of_series
from planner.history.assumed import listed

_FRAME: Final = ({"schema", "data"}, {"fields", "refId"}, {"fields", "length"})
_PANEL: Final = {"targets", "type", "gridPos"}
_DASHBOARD: Final = {"panels", "schemaVersion"}
_STORED: Final = {"dashboard", "meta"}
"""What the server stores of a dashboard, or of a snapshot of one."""
_KEPT: Final = "snapshotData"
"""The data of a panel in a snapshot of a dashboard."""
_TIMES: Final = "time"
_TIME: Final = "Time"
_FORMATTED: Final = f"data of a panel as it shows them, with units; switch Formatted data off, or {ASK_PROMETHEUS}"
_MOST_DEEP: Final = 5
_NUMBERS: Final = "number"
_VALUE: Final = "Value"


def _recognise(chunk: Chunk) -> int:
    outline = chunk.outline
    if isinstance(outline, list):
        first = _keys(outline[0]) if outline else ()
        return SURE if _is_frame(first) else LIKELY if _TIME in first and len(first) > 1 else NO
    keys = chunk.keys
    if keys.keys() >= _PANEL or keys.keys() >= _DASHBOARD or keys.keys() >= _STORED:
        return LIKELY
    if _is_frame(keys.keys()):
        return SURE
    if "series" in keys and {"state", "request", "timeRange"} & keys.keys():
        return SURE
    results = _decoded(keys["results"]) if keys.keys() <= {"results", "message"} and "results" in keys else None
    one = next(iter(results.values()), None) if isinstance(results, dict) else None
    return SURE if isinstance(one, dict) and {"frames", "series", "tables", "error"} & one.keys() else NO


def _is_frame(keys: Any) -> bool:
    return any(wanted <= set(keys) for wanted in _FRAME)


def _decoded(part: msgspec.Raw) -> Any:
    try:
        return msgspec.json.decode(part)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _keys(part: msgspec.Raw) -> Any:
    found = _decoded(part)
    return found.keys() if isinstance(found, dict) else ()


def _read(chunk: Chunk) -> Iterator[Piece]:
    value = chunk.value
    if isinstance(value, dict) and value.keys() >= _STORED:
        value = value["dashboard"]
    if kept := list(_kept(value, 0)):
        value = kept
    elif isinstance(value, dict) and (value.keys() >= _PANEL or "panels" in value):
        why = "the definition of a panel or dashboard, which has no data; use Inspect, Data of the panel"
        yield NotUsed(source=chunk.source, why=why)
        return
    if isinstance(value, list) and all(isinstance(row, dict) and _TIME in row for row in value):
        if any(type(row[_TIME]) is str for row in value):
            yield NotUsed(source=chunk.source, why=_FORMATTED)
            return
        value = [_frame_of_rows(value)]
    results: list[Any] = [value]
    if isinstance(value, dict) and isinstance(value.get("results"), dict):
        results = list(value["results"].values())
    where = str(chunk.source)
    frames: list[Any] = []
    items: list[SeriesItem] = []
    for one in results:
        if isinstance(one, dict) and one.get("error"):
            yield NotUsed(source=chunk.source, why=f"Grafana answered without data: {quoted(one['error']).rstrip('.')}")
            continue
        every = _frames_of(one, where)
        items += [_old(each) for each in every if _is_old(each)]
        frames += [each for each in every if not _is_old(each)]
    yield from _pieces_of(chunk, frames, items)


def _frame_of_rows(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the rows of *Inspect*, *Data*, each with its time and the values of series, as a frame."""
    names = dict.fromkeys(name for row in rows for name in row)
    kinds = {name: _TIMES if name == _TIME else _kind_of(row.get(name) for row in rows) for name in names}
    return {"fields": [{"name": n, "type": kinds[n], "values": [row.get(n) for row in rows]} for n in names]}


def _kind_of(values: Iterable[Any]) -> str:
    """Return the type of a column; numbers with units are texts."""
    return _NUMBERS if all(value is None or type(value) in (int, float) for value in values) else "string"


def _frames_of(result: Any, where: str) -> list[Any]:
    """Return the frames, or the series of older servers, of the answer to a query."""
    if isinstance(result, list):
        return result
    if isinstance(result, dict) and ("frames" in result or "series" in result):
        return [each for key in ("frames", "series") for each in _several(result.get(key), where)]
    return [result]


def _is_old(frame: Any) -> bool:
    return isinstance(frame, dict) and "points" in frame


def _pieces_of(chunk: Chunk, frames: list[Any], items: list[SeriesItem]) -> Iterator[Piece]:
    legends: dict[str, None] = {}
    for frame in frames:
        fields = _fields(frame, str(chunk.source))
        items += [*_columns(fields, legends), *_rows(fields)]
        yield from _notices(chunk, frame)
    yield from pieces_of_series(chunk.source, items, is_recording=False)
    if legends:
        why = f"{listed(legends)} left out: series without the name of their metric; {ASK_PROMETHEUS}"
        yield NotUsed(source=chunk.source, why=why)
    elif not items and frames:
        yield NotUsed(source=chunk.source, why="frames without series")


def _kept(node: Any, depth: int) -> Iterator[Any]:
    """Yield the frames that a snapshot of a dashboard has; panels may be in rows."""
    if not isinstance(node, dict) or depth > _MOST_DEEP:
        return
    data = node.get(_KEPT)
    yield from data if isinstance(data, list) else ()
    panels = node.get("panels")
    for panel in panels if isinstance(panels, list) else ():
        yield from _kept(panel, depth + 1)


def _several(value: Any, where: str) -> list[Any]:
    """Return a list that may be absent.

    Raises:
        FormatError: It is something else.
    """
    if value is None or isinstance(value, list):
        return value or []
    raise FormatError("The frames are not a list.", where=where, remedy="Save the answer unchanged.")


def _notices(chunk: Chunk, frame: Any) -> Iterator[Piece]:
    schema = frame.get("schema", frame) if isinstance(frame, dict) else {}
    meta = schema.get("meta") if isinstance(schema, dict) else None
    notices = meta.get("notices") if isinstance(meta, dict) else None
    for one in notices if isinstance(notices, list) else []:
        if isinstance(one, dict) and isinstance(one.get("text"), str) and one.get("severity") != "info":
            said = quoted(" ".join(one["text"].split())).rstrip(".")
            yield NotUsed(source=chunk.source, why=f"the server warns, so series may be missing or inexact: {said}")


def _old(series: Mapping[str, Any]) -> SeriesItem:
    """Return a series as Grafana 7 and earlier answer it: points are value and ms."""
    points = series.get("points")
    pairs = [one for one in points if isinstance(one, list) and len(one) == 2] if isinstance(points, list) else []  # noqa: PLR2004
    labels = {**labels_in(str(series.get("name", ""))), **_texts(series.get("tags"))}
    return SeriesItem(labels, [_pair(at, value) for value, at in pairs if value is not None])


def _texts(labels: Any) -> dict[str, str]:
    return {str(name): str(value) for name, value in labels.items()} if isinstance(labels, dict) else {}


def _pair(at_ms: Any, value: Any) -> list[Any]:
    return [at_ms / 1_000 if type(at_ms) in (int, float) else None, value]


def _fields(frame: Any, where: str) -> list[dict[str, Any]]:
    """Return the fields of a frame with their values.

    Raises:
        FormatError: It is damaged.
    """
    schema = frame.get("schema", frame) if isinstance(frame, dict) else None
    fields = schema.get("fields") if isinstance(schema, dict) else None
    if not isinstance(fields, list) or not all(isinstance(one, dict) for one in fields):
        raise FormatError("A frame has no fields.", where=where, remedy="Save the answer unchanged.")
    data = frame.get("data")
    columns = _several(data.get("values"), where) if isinstance(data, dict) else [one.get("values") for one in fields]
    columns = [one.get("buffer") if isinstance(one, dict) else one for one in columns]
    if len(columns) != len(fields) or not all(isinstance(one, list) for one in columns):
        raise FormatError("A frame has not the values of each field.", where=where, remedy="Save the answer unchanged.")
    if len({len(one) for one in columns}) > 1:
        raise FormatError("The fields of a frame differ in length.", where=where, remedy="Save the answer unchanged.")
    return [{**one, "values": values} for one, values in zip(fields, columns, strict=True)]


def _of_type(fields: Sequence[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [one for one in fields if one.get("type") == kind]


def _columns(fields: Sequence[dict[str, Any]], legends: dict[str, None]) -> Iterator[SeriesItem]:
    """Yield the series of a frame that has one in each column."""
    times = _of_type(fields, _TIMES)
    if not times or _of_type(fields, "string"):
        return
    for one in _of_type(fields, _NUMBERS):
        labels = {**labels_in(str(one.get("name", ""))), **_texts(one.get("labels"))}
        if NAME not in labels:
            labels |= labels_in(_shown_name(one))
        if NAME not in labels:
            legends[_shown_name(one) or str(one.get("name", ""))] = None
            continue
        pairs = zip(times[0]["values"], one["values"], strict=True)
        yield SeriesItem(labels, [_pair(at, value) for at, value in pairs if value is not None])


def _shown_name(field: Mapping[str, Any]) -> str:
    config = field.get("config")
    found = config.get("displayNameFromDS") if isinstance(config, dict) else ""
    return found if isinstance(found, str) else ""


def _rows(fields: Sequence[dict[str, Any]]) -> Iterator[SeriesItem]:
    """Yield the series of a table, which has labels in columns and a sample in each row."""
    times, texts = _of_type(fields, _TIMES), _of_type(fields, "string")
    numbers = [one for one in _of_type(fields, _NUMBERS) if str(one.get("name", "")).startswith(_VALUE)]
    if not times or not texts or not numbers:
        return
    names = [str(one.get("name", "")) for one in texts]
    for at, value, *labels in zip(
        times[0]["values"], numbers[0]["values"], *(one["values"] for one in texts), strict=True
    ):
        metric = {name: text for name, text in zip(names, labels, strict=True) if isinstance(text, str) and text}
        yield SeriesItem(metric, [_pair(at, value)])


KIND = Kind("data of Grafana", "curl GRAFANA/api/ds/query", _recognise, _read)
