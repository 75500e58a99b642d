"""Series as CSV: what *Inspect* of a Grafana panel downloads, and exports of VictoriaMetrics, which have no header."""

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from urllib.parse import unquote

from planner.cluster.moments import parse_moment
from planner.cluster.text import count
from planner.doors.chunks import Chunk, quoted
from planner.doors.kind import NO, SURE, Kind
from planner.doors.metrics_reader import COUNTERS, USED
from planner.doors.pieces import NotUsed, Piece
from planner.doors.series_reader import ASK_PROMETHEUS, NAME, SeriesItem, labels_in, pieces_of_series
from planner.doors.terminal import said
from planner.doors.words import BROKER, BUNDLE
from planner.history.assumed import listed

_TIMES: Final = frozenset(["time", "timestamp", "_time"])
_VALUE: Final = re.compile(r"_?values?(?: #[A-Z]+)?", re.IGNORECASE)
_NUMBER: Final = re.compile(r"[-+]?[0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?")
_NO_NUMBER: Final = re.compile(r"[-+]?(?:nan|inf(?:inity)?)", re.IGNORECASE)
_COMMA: Final = re.compile(r"(-?[0-9]+),([0-9]+)")
_TOPIC: Final = re.compile(r"(?:non-)?persistent://\S+")
_FORMAT: Final = re.compile(r"format=([^&\s'\"]+)")
_OF_FORMAT: Final = ("__value__", "__timestamp__")
_UNCERTAIN: Final = (
    "an export of VictoriaMetrics without a header, whose columns cannot be told apart with certainty. Put a first line"
    " above it with the `format` of the request, such as __name__,instance,topic,__value__,__timestamp__"
)
_DELIMITERS: Final = (",", ";", "\t")
_LOOKED_AT: Final = 20
_ROWS_LOOKED_AT: Final = 200
_DIGITS: Final = {10: 1, 13: 1_000, 16: 1_000_000, 19: 1_000_000_000}
"""Units of a whole second by the digits that a time of these years has."""


@dataclass(frozen=True, slots=True)
class _Table:
    """How a text is to be read.

    Attributes:
        delimiter: What parts cells.
        head: The line of the header, from 0; -1 where there is none.
        columns: What each cell is: the name of a label, a series, `__value__`, `__timestamp__`, or empty for none; none
            where they cannot be told.
        is_guessed: Whether what the cells hold is all that shows what they are.
    """

    delimiter: str
    head: int
    columns: tuple[str, ...]
    is_guessed: bool = False

    @property
    def is_wide(self) -> bool:
        """Whether each series has a column."""
        return _OF_FORMAT[0] not in self.columns


def _lines(chunk: Chunk) -> list[str]:
    # Rows begin with a time, as the lines of logs do.
    return [line for line in bytes(chunk.data).decode("utf-8", "replace").split("\n") if line.strip()]


def _cells(line: str, delimiter: str) -> list[str]:
    return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter), [])]


def _table_of(lines: Sequence[str], command: str) -> _Table | None:
    for delimiter in _DELIMITERS:
        for at, line in enumerate(lines[:_LOOKED_AT]):
            cells = _cells(line, delimiter)
            if len(cells) > 1 and (columns := _header(cells, _cells("".join(lines[at + 1 : at + 2]), delimiter))):
                return _Table(delimiter, at, columns)
    rows = [cells for line in lines[:_ROWS_LOOKED_AT] if len(cells := _cells(line, ",")) > 2]  # noqa: PLR2004
    if not rows:
        return None
    if columns := _asked(command, len(rows[-1])):
        return _Table(",", -1, columns)
    rows = [one for one in rows if len(one) == len(rows[-1])]
    return _Table(",", -1, _guessed(rows), is_guessed=True) if _is_export(rows) else None


def _header(cells: Sequence[str], below: Sequence[str]) -> tuple[str, ...]:
    """Return what the columns under a header are; nothing where it is none.

    Args:
        cells: The cells of the header.
        below: Those of the next line.
    """
    plain = [cell.removeprefix("\ufeff").strip('"') for cell in cells]
    if of_format := _columns_in(plain):
        return of_format
    times = [cell.lower() in _TIMES for cell in plain]
    if not any(times):
        return ()
    values = [_VALUE.fullmatch(cell) is not None for cell in plain]
    is_table = len(below) == len(cells) and times[0] and below[0][:1].isdecimal()
    if any(values) and (NAME in plain or is_table):
        columns = [
            _OF_FORMAT[1] if t else _OF_FORMAT[0] if v else c for c, t, v in zip(plain, times, values, strict=True)
        ]
        return tuple(columns)
    if is_table or any(NAME in labels_in(cell) for cell in plain):
        return tuple(_OF_FORMAT[1] if t else c for c, t in zip(plain, times, strict=True))
    return ()


def _asked(command: str, length: int) -> tuple[str, ...]:
    """Return the columns that a command asked VictoriaMetrics for."""
    found = _FORMAT.search(unquote(command))
    columns = _columns_in(found[1].split(",")) if found else ()
    return columns if len(columns) == length else ()


def _columns_in(cells: Sequence[str]) -> tuple[str, ...]:
    """Return the columns of VictoriaMetrics' `format`; nothing where these are none."""
    columns = tuple(one.partition(":")[0] for one in cells)
    return columns if set(_OF_FORMAT) <= set(columns) else ()


def _is_export(rows: Sequence[Sequence[str]]) -> bool:
    """Say whether rows have a metric and a moment each, as an export without a header has."""
    columns = [{_meaning(cell) for cell in cells if cell} for cells in zip(*rows, strict=True)]
    return {NAME} in columns and any(_OF_FORMAT[1] in found for found in columns)


def _guessed(rows: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return what the cells of an export without a header are, by what they hold; nothing where that is not certain.

    A column with some numbers may be the value or a label, such as a partition; so there may be only one of them.
    """
    columns: list[str] = []
    for cells in zip(*rows, strict=True):
        found = {_meaning(cell) for cell in cells if cell}
        if _OF_FORMAT[0] in found:  # a value may look like a time
            found = {_OF_FORMAT[0]}
        columns.append(next(iter(found)) if len(found) == 1 else "")
    is_certain = all(columns.count(name) == 1 for name in (NAME, *_OF_FORMAT))
    is_certain &= all(columns.count(name) < 2 for name in ("instance", "topic", "bundle"))  # noqa: PLR2004
    return tuple(columns) if is_certain else ()


def _meaning(cell: str) -> str:
    """Return what a cell of an export is; empty where it may be any label."""
    for name, is_meant in (
        (NAME, cell in USED or cell in COUNTERS),
        ("topic", _TOPIC.fullmatch(cell)),
        ("bundle", BUNDLE.fullmatch(cell)),
        ("instance", BROKER.fullmatch(cell)),
        (_OF_FORMAT[1], _moment_ms(cell)),
        (_OF_FORMAT[0], _NUMBER.fullmatch(cell) or _NO_NUMBER.fullmatch(cell)),
    ):
        if is_meant:
            return name
    return ""


def _moment_ms(text: str) -> int:
    """Return a moment, ms since 1970; 0 where the text is none."""
    if text.isdecimal():
        return int(text) * 1_000 // _DIGITS[len(text)] if len(text) in _DIGITS else 0
    try:
        return int(datetime.strptime(text, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC).timestamp() * 1_000)
    except ValueError:
        pass
    try:
        return parse_moment(text, 0) if text[:4].isdecimal() else 0
    except ValueError:
        return 0


def _recognise(chunk: Chunk) -> int:
    if chunk.is_json:
        return NO
    lines = [line for line in chunk.head.split("\n") if line.strip()]
    return SURE if _table_of(lines, chunk.source.command) else NO


def _read(chunk: Chunk) -> Iterator[Piece]:
    lines = _lines(chunk)
    table = _table_of(lines, chunk.source.command)
    if table is None:  # pragma: no cover - it was recognised
        return
    rows = _Rows(table)
    for line in lines[table.head + 1 :] if table.columns else ():
        rows.take(line)
    if not table.columns or (table.is_guessed and rows.has_two_values):
        yield NotUsed(source=chunk.source, why=_UNCERTAIN)
        return
    if table.is_guessed:
        what = ", ".join(name or "not used" for name in table.columns)
        yield NotUsed(source=chunk.source, why=f"it has no header; its columns are taken for {what}", is_expected=True)
    yield from pieces_of_series(chunk.source, rows.items(), is_recording=False)
    if rows.is_local:
        yield NotUsed(source=chunk.source, why="its times have no zone, and are taken for UTC", is_expected=True)
    if rows.legends:
        why = (
            f"{listed(rows.legends)} left out: columns without the name of a metric; set the legend to Verbose, or "
            f"{ASK_PROMETHEUS}"
        )
        yield NotUsed(source=chunk.source, why=why)
    if rows.odd:
        why = f"{count(rows.odd, 'value')} left out: not plain numbers; switch Formatted data off"
        yield NotUsed(source=chunk.source, why=why)
    if rows.without_time:
        many, time = count(rows.without_time, "row"), quoted(rows.odd_time)
        why = f"{many} left out: the time {time!r} cannot be read; write it as 2026-11-27 10:00:00, or in ms since 1970"
        yield NotUsed(source=chunk.source, why=why)
    if rows.short:
        yield NotUsed(source=chunk.source, why=f"{count(rows.short, 'line')} left out, which are not part of the table")


class _Rows:
    """Samples of the rows of a table.

    Attributes:
        odd: Values that are no numbers.
        short: Lines that are no rows.
        without_time: Rows whose time cannot be read.
        odd_time: The first such time.
        legends: Columns that do not name their series.
        is_local: Whether times have no zone.
    """

    def __init__(self, table: _Table) -> None:
        self._table = table
        self._series: dict[tuple[tuple[str, str], ...], list[list[object]]] = {}
        self.odd = self.short = self.without_time = 0
        self.odd_time = ""
        self.is_local = False
        self.legends: dict[str, None] = {}
        self._wide: Mapping[int, tuple[tuple[str, str], ...]] = {}
        if table.is_wide:
            named = {at: labels_in(one) for at, one in enumerate(table.columns) if one != _OF_FORMAT[1]}
            self._wide = {at: tuple(labels.items()) for at, labels in named.items() if NAME in labels}
            self.legends |= dict.fromkeys(table.columns[at][:80] for at in named if at not in self._wide)

    def take(self, line: str) -> None:
        """Take a row; what tools print around rows is passed over."""
        columns = self._table.columns
        cells = _cells(line, self._table.delimiter)
        if len(cells) != len(columns):
            self.short += bool(said(line))
            return
        time = cells[columns.index(_OF_FORMAT[1])]
        at_ms = _moment_ms(time)
        if not at_ms:
            self.without_time += 1
            self.odd_time = self.odd_time or time
            return
        self.is_local = self.is_local or time[10:11] == " "
        if self._table.is_wide:
            for at, labels in self._wide.items():
                self._add(labels, at_ms, cells[at])
            return
        plain = [
            (name, cell) for name, cell in zip(columns, cells, strict=True) if name and name not in _OF_FORMAT and cell
        ]
        self._add(tuple(plain), at_ms, cells[columns.index(_OF_FORMAT[0])])

    def _add(self, labels: tuple[tuple[str, str], ...], at_ms: int, text: str) -> None:
        if not text:  # this series has no sample at that time
            return
        if self._table.delimiter == ";" and (comma := _COMMA.fullmatch(text)):
            text = f"{comma[1]}.{comma[2]}"
        if _NUMBER.fullmatch(text) or _NO_NUMBER.fullmatch(text):  # the reader names the latter
            self._series.setdefault(labels, []).append([at_ms / 1_000, text])
        else:
            self.odd += 1

    @property
    def has_two_values(self) -> bool:
        """Whether a series has two values at one time, because what tells it from another is in none of its columns."""
        return any(len({(at, text) for at, text in one}) > len({at for at, _ in one}) for one in self._series.values())

    def items(self) -> Iterator[SeriesItem]:
        """Yield the series."""
        for labels, values in self._series.items():
            yield SeriesItem(dict(labels), values)


KIND = Kind("series as CSV", "curl 'VICTORIA/api/v1/export/csv?format=…'", _recognise, _read)
