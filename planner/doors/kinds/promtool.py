"""Series as `promtool` prints them: `query range`, which puts samples below their series, and `tsdb dump`."""

import re
from collections.abc import Iterator
from typing import Final

from planner.cluster.text import count
from planner.doors.chunks import Chunk
from planner.doors.kind import NO, SURE, Kind
from planner.doors.pieces import NotUsed, Piece
from planner.doors.series_reader import SeriesItem, labels_in, pieces_of_series
from planner.doors.terminal import letters_of

_HEAD: Final = re.compile(r"(.*) =>")
_SAMPLE: Final = re.compile(r"(\S+) @\[([0-9.]+)\]")
_INSTANT: Final = re.compile(r"(.*) => (\S+) @\[([0-9.]+)\]")
_DUMPED: Final = re.compile(r"(\{__name__=.*\}) (\S+) ([0-9]{11,14})")
_LOOKED_AT: Final = 60


def _recognise(chunk: Chunk) -> int:
    if chunk.is_json:
        return NO
    lines = [line.strip() for line in chunk.first_lines[:_LOOKED_AT]]
    ranges = sum(bool(_HEAD.fullmatch(line) or _SAMPLE.fullmatch(line)) for line in lines)
    dumped = sum(bool(_DUMPED.fullmatch(line)) for line in lines)
    has_series = bool(dumped) or any(_HEAD.fullmatch(line) and labels_in(line[:-3]) for line in lines)
    return SURE if has_series and (ranges + dumped) * 2 > len(lines) else NO


def _read(chunk: Chunk) -> Iterator[Piece]:
    found: dict[str, list[list[object]]] = {}
    current: list[list[object]] | None = None
    odd: list[str] = []
    for line in map(str.strip, chunk.lines):
        if (head := _HEAD.fullmatch(line)) and labels_in(head[1]):
            current = found.setdefault(head[1], [])
        elif (sample := _SAMPLE.fullmatch(line)) and current is not None:
            current.append([sample[2], sample[1]])
        elif dumped := _DUMPED.fullmatch(line):
            found.setdefault(dumped[1], []).append([int(dumped[3]) / 1_000, dumped[2]])
        elif one := _INSTANT.fullmatch(line):
            found.setdefault(one[1], []).append([one[3], one[2]])
        elif line:
            odd.append(line)
    items = (SeriesItem(labels_in(text), values) for text, values in found.items() if values)
    yield from pieces_of_series(chunk.source, items, is_recording=False)
    if odd:
        yield NotUsed(
            source=chunk.source,
            why=f"{count(len(odd), 'line')} of an unknown kind among the rest",
            letters=letters_of(odd),
        )


KIND = Kind("series of promtool", "promtool query range PROMETHEUS 'QUERY'", _recognise, _read)
