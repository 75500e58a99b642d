"""Series over time as one moment: the newest sample of each, the rate of a counter between its last two."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from planner.cluster.moments import LAST_MS, SECONDS_BELOW, TIMES_RESCALED
from planner.cluster.text import count
from planner.doors.metrics_reader import COUNTERS, USED, VALID_MS, MetricsReader, of_another_time
from planner.doors.pieces import NotUsed, Piece, Source
from planner.history.labels import REPLICA_LABELS, normalised

NAME: Final = "__name__"
"""Label with the name of the metric."""
ASK_PROMETHEUS: Final = (
    "ask Prometheus for the metrics themselves: curl -sG PROMETHEUS/api/v1/query --data-urlencode "
    """'query={__name__=~"(pulsar|jvm_memory|process)_.+"}'"""
)
"""What to do where a panel shows something that was made of metrics, and no more the metrics."""

_LABEL: Final = re.compile(r'("?)([A-Za-z_][\w.:-]*)\1\s*=\s*"((?:[^"\\]|\\.)*)"')
_SERIES: Final = re.compile(r'\s*([A-Za-z_:][\w:]*)?\s*(?:\{\s*(?:"([A-Za-z_][\w.:]*)"\s*,?)?(.*)\})?\s*', re.DOTALL)
_ESCAPED: Final = re.compile(r"\\(.)")


def labels_in(text: str) -> dict[str, str]:
    """Return the labels of a series that is written as in a query, `name{label="value"}`, its name among them.

    Nothing where the text is none: a name alone counts only if it is one of a metric that the planner uses.
    """
    found = _SERIES.fullmatch(text)
    if found is None:
        return {}
    labels = {name: _ESCAPED.sub(_unescaped, value) for _, name, value in _LABEL.findall(found[3] or "")}
    if name := found[1] or found[2]:
        labels[NAME] = name
    return labels if "{" in text or labels.get(NAME) in USED or labels.get(NAME) in COUNTERS else {}


def _unescaped(found: re.Match[str]) -> str:
    return "\n" if found[1] == "n" else found[1]


@dataclass
class _Series:
    labels: Mapping[str, str]
    first_ms: int
    samples: list[tuple[int, float]]
    """The last two."""


class SeriesItem(msgspec.Struct):
    """A series as Prometheus answers it, or as VictoriaMetrics exports it.

    Attributes:
        metric: Its labels, with its name.
        values: Pairs of seconds since 1970 and value over time; with `timestamps` the values alone.
        value: One pair, of one moment.
        timestamps: Times in ms since 1970, of an export.
        histograms: Samples of a native histogram.
    """

    metric: dict[str, str]
    values: list[Any] = []
    value: list[Any] | None = None
    timestamps: list[Any] = []
    histograms: list[Any] = []


@dataclass
class _Read:
    """The samples of a series: time in ms and value, how many are none, and whether times are in another unit."""

    samples: list[tuple[int, float]]
    wrong: int
    is_rescaled: bool = False


def _samples(item: SeriesItem) -> _Read:
    """Return the samples of a series in order of time."""
    if item.timestamps:
        pairs = list(zip(item.timestamps, item.values, strict=False))
        unit_ms, wrong = 1, abs(len(item.timestamps) - len(item.values))
    else:
        pairs = [tuple(pair) if isinstance(pair, list) else (pair,) for pair in item.values or [item.value]]
        unit_ms, wrong = 1_000, 0
    found: list[tuple[int, float]] = []
    is_rescaled = False
    for pair in pairs:
        try:
            at, text = pair
            given, value = float(at), float(text)
            meant_ms = 1_000 if 0 < given < SECONDS_BELOW else 1
            time_ms = round(given * meant_ms)
        except (TypeError, ValueError, OverflowError):
            wrong += 1
            continue
        if 0 < time_ms <= LAST_MS:
            found.append((time_ms, value))
            is_rescaled = is_rescaled or meant_ms != unit_ms
        else:
            wrong += 1
    return _Read(sorted(found), wrong, is_rescaled)


def pieces_of_series(source: Source, items: Iterable[SeriesItem], *, is_recording: bool = True) -> Iterator[Piece]:
    """Yield the metrics of each broker at the newest moment, and what was left out.

    Args:
        source: Where they are from.
        items: The series.
        is_recording: Whether an ingest reads it, too.
    """
    seen: Counter[str] = Counter()
    every: list[_Series] = []
    for item in items:
        labels = normalised(item.metric)
        name = labels.get(NAME, "")
        seen["nameless"] += not name
        if item.histograms and not item.values:
            seen["native"] += 1
            continue
        read = _samples(item)
        seen["wrong"] += read.wrong
        seen["rescaled"] += read.is_rescaled
        if name in USED or name in COUNTERS:
            if read.samples:
                every.append(_Series(labels, read.samples[0][0], read.samples[-2:]))
        else:
            seen["useless"] += 1
    if every:
        yield from _of_moment(source, every, is_recording=is_recording)
    yield from (NotUsed(source=source, why=why) for why in _left_out(seen, is_empty=not every))


def _left_out(seen: Mapping[str, int], *, is_empty: bool) -> Iterator[str]:
    """Yield what is odd about series, by how many of them are."""
    if seen["wrong"]:
        yield f"{count(seen['wrong'], 'sample')} left out: not pairs of time and number"
    if seen["rescaled"]:
        yield f"its {TIMES_RESCALED}"
    if seen["native"]:
        yield f"{count(seen['native'], 'histogram')} left out, which no decision reads"
    if seen["nameless"] and is_empty:
        yield f"series without the name of a metric, as rates and sums have them; {ASK_PROMETHEUS}"
    elif seen["useless"] and is_empty:
        yield "series, none of which the planner uses"


def _of_moment(source: Source, every: Sequence[_Series], *, is_recording: bool) -> Iterator[Piece]:
    newest = max(one.samples[-1][0] for one in every)
    oldest = min(one.first_ms for one in every)
    reader = MetricsReader(source)
    stale, lonely = 0, 0
    seen: dict[tuple[tuple[str, str], ...], float] = {}
    for one in every:
        at, value = one.samples[-1]
        name = one.labels[NAME]
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
    yield from of_another_time(source, newest, oldest, is_range=newest > oldest, stale=stale, is_recording=is_recording)
    if lonely:
        why = f"{count(lonely, 'counter')} have one sample, which gives no rate; query a range"
        yield NotUsed(source=source, why=why)


def _rate(samples: Sequence[tuple[int, float]]) -> float | None:
    """Return the rate of a counter per second between its last two samples; after a restart it counts from 0."""
    if len(samples) < 2:  # noqa: PLR2004 - a rate needs two
        return None
    (before_ms, before), (after_ms, after) = samples[-2:]
    grown = after - before if after >= before else after
    return grown / (after_ms - before_ms) * 1_000 if after_ms > before_ms else None
