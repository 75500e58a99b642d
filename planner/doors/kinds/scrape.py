"""Metrics as brokers expose them: Prometheus' text, OpenMetrics, and `/federate` of a server."""

import math
import re
from collections.abc import Iterator
from typing import Final

from planner.cluster.moments import SECONDS_BELOW
from planner.cluster.text import count
from planner.doors.chunks import Chunk
from planner.doors.kind import NO, SURE, Kind
from planner.doors.metrics_reader import USED, MetricsReader, Place
from planner.doors.pieces import Metrics, NotUsed, Piece
from planner.doors.terminal import letters_of, said
from planner.history.assumed import listed
from planner.history.labels import broker_of

_SAMPLE: Final = re.compile(
    r"([A-Za-z_:][A-Za-z0-9_:]*)(?:\{(.*)\})?[ \t]+([-+0-9.eEnNaAiIfF]+)(?:[ \t]+(-?[0-9.]+))?(?:[ \t]+# .*)?"
)
_PROMTOOL: Final = re.compile(r"=> (\S+) @\[([0-9.]+)\]")
_HEADER: Final = re.compile(r"# (?:TYPE|HELP|UNIT) \S+|# EOF")
_LABEL: Final = re.compile(r'([A-Za-z_][A-Za-z0-9_]*)="((?:[^"\\]|\\.)*)"')
_IN_SINGLE: Final = re.compile(r"='((?:[^'\\\n]|\\.)*)'")
_TYPE: Final = "# TYPE "
_NUMBER_BEGINS: Final = tuple("0123456789-+.NIni@")
"""First signs of a number, or of a time of `promtool`."""
_WITH_UNIT: Final = re.compile(
    r"[A-Za-z_:][A-Za-z0-9_:]*(?:\{.*\})?[ \t]+(?:[-+]?[\d.]+(?:[eE][-+]?\d+)?[ \t]?(%|[A-Za-z]+(?:/[A-Za-z]+)?)|"
    r"\d+(?:,\d+)+(?:\.\d+)?)"
)
"""A sample as people rewrite it: with a unit behind its value, or with a comma in it."""
_LOOKED_AT: Final = 60


def _recognise(chunk: Chunk) -> int:
    if chunk.is_json:
        return NO
    lines = [line.strip() for line in chunk.first_lines[:_LOOKED_AT]]
    found = sum(bool(_HEADER.match(line) or _is_sample(line)) for line in lines)
    return SURE if found and found * 2 > len(lines) else NO


def _is_sample(line: str) -> bool:
    found = _SAMPLE.fullmatch(re.sub(r"=> (\S+) @\[[0-9.]+\]$", r"\1", line))
    if found is None and "{" in line:
        return _WITH_UNIT.fullmatch(line) is not None
    return found is not None and ("{" in line or found[1].startswith(("pulsar_", "jvm_", "process_")))


def _read(chunk: Chunk) -> Iterator[Piece]:
    text = bytes(chunk.data).decode("utf-8", "replace")
    if '"' not in text:  # as Python prints labels
        text = _IN_SINGLE.sub(r'="\1"', text)
    parts = list(_parts(text))
    given = chunk.broker
    for part in parts:
        yield from _read_part(chunk, part, given)


def _parts(text: str) -> Iterator[str]:
    """Yield the scrapes of a text that has several in a row: each begins with the same metric."""
    start = text.find(_TYPE)
    first = text[start : text.find("\n", start) + 1] if start >= 0 else ""
    if not first or text.count(first) == 1:
        yield text
        return
    places = [0, *(found.start() for found in re.finditer(rf"(?m)^{re.escape(first)}", text))]
    several = [
        part for low, high in zip(places, [*places[1:], len(text)], strict=True) if _TYPE in (part := text[low:high])
    ]
    brokers = [_brokers(part) for part in several]
    # Older releases repeat a header in one scrape; parts are scrapes only if each is of a broker of its own.
    if all(len(one) == 1 for one in brokers) and len({*map(tuple, brokers)}) == len(brokers):
        yield from several
    else:
        yield text


def _brokers(text: str) -> list[str]:
    named = {
        broker
        for line in text.split("\n")
        if line.startswith(("pulsar_lb_", "pulsar_bundle_")) and (broker := broker_of(dict(_LABEL.findall(line)))[0])
    }
    return sorted(named)


def _read_part(chunk: Chunk, text: str, given: str) -> Iterator[Piece]:
    named = _brokers(text)
    alone = given or (named[0] if len(named) == 1 else "")
    reader = MetricsReader(chunk.source, alone)
    places: dict[str, Place] = {}
    odd: list[str] = []
    units: list[str] = []
    for line in text.split("\n"):
        name = line.lstrip().partition("{")[0].partition(" ")[0]
        if name not in USED:
            if name and name[:1] != "#" and not _is_like_sample(name, line):
                odd.append(line)
            continue
        labels, value, at_ms = _sample(line.strip())
        if math.isnan(value) and (rewritten := _WITH_UNIT.fullmatch(line.strip())):
            units.append(rewritten[1] or ",")
            continue
        place = places.get(labels)
        if place is None:
            pairs = _LABEL.findall(labels)
            found = {label: _plain(text) for label, text in pairs}
            if len(found) < len(pairs):  # two samples in one line
                odd.append(line)
                continue
            place = places[labels] = reader.place(found)
        reader.take(name, place, value, at_ms)
    pieces = list(reader.pieces())
    if units:
        pieces.append(NotUsed(source=chunk.source, why=_why_of_units(units)))
    if pieces and odd and (odd := said("\n".join(odd))):
        why = f"{count(len(odd), 'line')} of an unknown kind among the rest"
        pieces.append(NotUsed(source=chunk.source, why=why, letters=letters_of(odd)))
    if len(named) > 1 and any(isinstance(one, Metrics) and not one.broker for one in pieces):
        pieces = [one for one in pieces if not isinstance(one, Metrics) or one.broker]
        why = f"{len(named)} brokers are in one text, and its topics do not name theirs; use one file for each broker"
        pieces.append(NotUsed(source=chunk.source, why=why))
    yield from pieces or [NotUsed(source=chunk.source, why="metrics, none of which the planner uses")]


def _why_of_units(units: list[str]) -> str:
    shown = listed([f"{unit!r}" for unit in dict.fromkeys(units)])
    return (
        f"{count(len(units), 'value')} left out, with {shown} in them. Brokers print numbers alone, in the unit of the"
        " metric; save what they print at /metrics"
    )


def _is_like_sample(name: str, line: str) -> bool:
    """Say, as quickly as for a million lines, whether a line is of some metric."""
    return name.replace(":", "_").isidentifier() and line.rstrip().rpartition(" ")[2][:1] in _NUMBER_BEGINS


def _sample(line: str) -> tuple[str, float, int]:
    """Return the text of the labels, the value, and the time in ms, 0 where there is none; the value may be NaN."""
    head, sign, tail = line.rpartition("} ")
    if (promtool := _PROMTOOL.fullmatch(tail)) is not None:
        tail = f"{promtool[1]} {promtool[2]}"
        line = f"{head}{sign}{tail}"
    try:
        if sign and "#" not in tail and " " not in tail:  # as nearly all lines are
            return head.partition("{")[2], float(tail), 0
        found = _SAMPLE.fullmatch(line)
        if found is None:
            return "", math.nan, 0
        at = float(found[4]) if found[4] else 0.0
        return found[2] or "", float(found[3]), int(at * 1_000 if 0 < at < SECONDS_BELOW else at)
    except ValueError:
        return "", math.nan, 0


def _plain(text: str) -> str:
    return text.replace('\\"', '"').replace("\\\\", "\\") if "\\" in text else text


KIND = Kind("metrics", "curl -s http://BROKER/metrics/", _recognise, _read)
