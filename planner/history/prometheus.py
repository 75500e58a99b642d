"""Reads range exports of Prometheus: answers to `/api/v1/query_range`, of any size, one series at a time.

Used are the metrics of Pulsar 4.2.4 that say how much load there is on a broker, a bundle or a topic. The broker of a
series is its label `instance` (the address that was scraped, which is the broker's web address), else `broker`, else
the pod or host that is named without a port.
"""

import math
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Any, BinaryIO

import ijson
import numpy as np

from planner.cluster import pulsar_json
from planner.cluster.arrays import FloatArray, Int64Array
from planner.cluster.errors import FormatError
from planner.cluster.moments import LAST_MS, SECONDS_BELOW, TIMES_RESCALED
from planner.cluster.pulsar_json import BUNDLE_STATS, RESOURCES, USAGE_METRICS
from planner.cluster.ranges import parse_bundle
from planner.cluster.topic_names import namespace_of_topic
from planner.cluster.units import HOUR_MS
from planner.history.labels import broker_or_pod, normalised, others_of, packed, topic_of, unpacked
from planner.history.records import MOST_RAW_BYTES, Kind, Record, RowSetAside, Tally, check_cluster, check_name
from planner.history.whole_answer import INCOMPLETE, Said, said_in, said_in_file

BROKER_METRICS: Mapping[str, str] = {
    **{metric: RESOURCES[resource][0] for resource, metric in USAGE_METRICS.items()},
    "jvm_memory_bytes_max": "memory_limit_mib",
    "jvm_memory_direct_bytes_max": "direct_memory_limit_mib",
    "process_start_time_seconds": "started_at_ms",
    "pulsar_lb_resource_usage": "weighted_max_ema",
}
"""Metrics of a broker, and the column each is about; usages are percentages of a limit."""

JAVA_METRICS = ("jvm_memory_bytes_max", "jvm_memory_direct_bytes_max", "process_start_time_seconds")
"""Metrics of any Java program, which are no sign of a broker."""

BUNDLE_METRICS: Mapping[str, str] = {metric: BUNDLE_STATS[key] for metric, key in pulsar_json.BUNDLE_METRICS.items()}
"""Metrics of a bundle (modular load manager, with `exposeBundlesMetricsInPrometheus`)."""

TOPIC_METRICS: Mapping[str, str] = {
    "pulsar_rate_in": "msg_rate_in_per_s",
    "pulsar_rate_out": "msg_rate_out_per_s",
    "pulsar_throughput_in": "msg_throughput_in_bytes_per_s",
    "pulsar_throughput_out": "msg_throughput_out_bytes_per_s",
    "pulsar_producers_count": "producers",
    "pulsar_consumers_count": "consumers",
}
"""Gauges of a topic."""

COUNTER_METRICS: Mapping[str, str] = {
    "pulsar_in_messages_total": "msg_rate_in_per_s",
    "pulsar_out_messages_total": "msg_rate_out_per_s",
    "pulsar_in_bytes_total": "msg_throughput_in_bytes_per_s",
    "pulsar_out_bytes_total": "msg_throughput_out_bytes_per_s",
}
"""Counters of a topic; those of what goes out are counted for each subscription."""

_KNOWN = frozenset(["__name__", "cluster", "metric"])
_KNOWN_OF_TOPICS = frozenset(["namespace", "partition", "topic"])
_OF_CONSUMERS = ("consumer_id", "consumer_name")
_ONLY = {"jvm_memory_bytes_max": ("area", "heap"), "pulsar_lb_resource_usage": ("feature", "max_ema")}
_LONGEST_SERIES = 32 << 20
_DEEPEST = 10_000
"""Most open brackets; more than any series has, because those in names count too."""
_STEPS = np.zeros(256, dtype=np.int8)
_STEPS[list(b"[{")], _STEPS[list(b"]}")] = 1, -1
_EXPORT = "Query /api/v1/query_range again, with a shorter time range if it is long."
_RESCALED = f"{TIMES_RESCALED[0].upper()}{TIMES_RESCALED[1:]}."
_WHOLE = "Query again when all stores answer."


class _Metered:
    """A file that is read until a series is longer or deeper than any is: none fills the memory or takes for ever.

    The parser writes down the way to every value, which takes the square of the depth.
    """

    def __init__(self, data: BinaryIO) -> None:
        self.data = data
        self.of_series = 0
        self.depth = 0

    def read(self, size: int) -> bytes:
        """Read on.

        Raises:
            FormatError: The series is too long or too deep.
        """
        piece = self.data.read(size)
        signs = np.frombuffer(piece, dtype=np.uint8)
        deeper = self.depth + np.cumsum(_STEPS[signs], dtype=np.int64)
        if deeper.max(initial=0) > _DEEPEST:
            raise FormatError(f"is nested deeper than {_DEEPEST:,}; the rest of the file was not read.", remedy=_EXPORT)
        self.depth = int(deeper[-1]) if len(deeper) else self.depth
        self.of_series += len(piece)
        if self.of_series > _LONGEST_SERIES:
            raise FormatError(
                f"has more than {_LONGEST_SERIES >> 20} MiB; the rest of the file was not read.", remedy=_EXPORT
            )
        return piece


def records_of_export(data: BinaryIO, cluster: str, tally: Tally) -> Iterator[Record | RowSetAside]:
    """Read an export, of the cluster named where a series has no label `cluster`; one series is in memory at a time.

    What follows a place that is no JSON cannot be read, and counts as one row put aside. So does an answer that says
    that it is partial: what is missing would be gaps in silence.
    """
    series, metered = 0, _Metered(data)
    try:
        _take(said_in_file(data), tally)
        for item in ijson.items(metered, "data.result.item", use_float=True):
            series += 1
            metered.of_series = metered.depth = 0
            yield from _records_of_series(item, cluster, series, tally)
    except _PartialError as error:
        yield RowSetAside.of(error, 0)
        return
    except FormatError as error:
        tally.rows += 1
        yield RowSetAside(f"Series {series + 1} {error.what} {error.remedy}", series + 1)
        return
    except (ijson.JSONError, UnicodeError) as error:
        tally.rows += 1
        reason = " ".join(str(error).split())[:120]
        yield RowSetAside(
            f"Not valid JSON after series {series}: {reason}. The file is incomplete or damaged. {_EXPORT}", series + 1
        )
        return
    if not series:
        tally.rows += 1
        data.seek(0)
        head = data.read(2_000)
        yield RowSetAside(f"The export has no series. {_EXPORT}", 0, raw=head)


class _PartialError(FormatError):
    """An answer lacks what a part of the storage has."""


def _take(said: Said, tally: Tally) -> None:
    """Keep what a server warns about.

    Raises:
        FormatError: The answer is partial; it counts as a row.
    """
    if said.is_partial:
        tally.rows += 1
        raise _PartialError(INCOMPLETE, remedy=_WHOLE)
    tally.warnings |= dict.fromkeys(said.notes)


def records_of_answer(
    answer: Mapping[str, Any], cluster: str, line: int, tally: Tally
) -> Iterator[Record | RowSetAside]:
    """Read an answer that stands on one line.

    Raises:
        FormatError: It is an error of Prometheus, partial, or no matrix.
    """
    _take(said_in(answer), tally)
    data = answer.get("data")
    result = data.get("result") if isinstance(data, dict) else None
    if not isinstance(result, list) or not result:
        reason = str(answer.get("error") or "it contains no series")[:200].rstrip(".")
        tally.rows += 1
        raise FormatError(f"Prometheus answered without data: {reason}.", remedy=_EXPORT)
    for item in result:
        yield from _records_of_series(item, cluster, line, tally)


def records_of_line(item: Mapping[str, Any], cluster: str, line: int, tally: Tally) -> Iterator[Record | RowSetAside]:
    """Read a series that stands on one line, with pairs of time and number, or as VictoriaMetrics exports it.

    VictoriaMetrics writes times in ms, apart from the values.
    """
    times, values = item.get("timestamps"), item.get("values")
    if isinstance(times, list) and isinstance(values, list):
        unit = 1 if any(0 < at < SECONDS_BELOW for at in times if type(at) in (int, float)) else 1_000
        tally.warnings |= {_RESCALED: None} if unit == 1 else {}
        seconds = [at / unit if type(at) in (int, float) else None for at in times]
        values = [list(pair) for pair in zip_longest(seconds, values)]
    yield from _records_of_series({"metric": item["metric"], "values": values}, cluster, line, tally)


def _records_of_series(item: Any, cluster: str, line: int, tally: Tally) -> Iterator[Record | RowSetAside]:
    values = item.get("values") if isinstance(item, dict) else None
    rows = len(values) if isinstance(values, list) and values else 1
    tally.rows += rows
    if isinstance(values, list) and any(_is_in_ms(pair) for pair in values[:1]):
        tally.warnings |= {_RESCALED: None}
        item = {**item, "values": [[pair[0] / 1_000, *pair[1:]] if _is_in_ms(pair) else pair for pair in values]}
    try:
        found = list(_of_series(item, cluster, line))
    except Exception as error:  # noqa: BLE001 - one series must not stop an ingest
        found = [RowSetAside.of(error, line, _shown(item), rows)]
    yield from found


def _is_in_ms(pair: Any) -> bool:
    return isinstance(pair, list) and bool(pair) and type(pair[0]) in (int, float) and pair[0] >= SECONDS_BELOW


def _of_series(item: Any, cluster: str, line: int) -> Iterator[Record | RowSetAside]:
    labels = item.get("metric") if isinstance(item, dict) else None
    values = item.get("values") if isinstance(item, dict) else None
    if not isinstance(labels, dict) or not isinstance(values, list) or not values:
        yield RowSetAside(f"The series has no labels, or no values over time. {_EXPORT}", line, raw=_shown(item))
        return
    rows, labels = len(values), normalised(labels)
    try:
        metric, broker, name, other = _meaning(labels)
        named = str(labels.get("cluster", cluster))
        check_cluster(named)
        for text in (broker, name, unpacked(other)[0]):
            check_name(text)
    except FormatError as error:
        yield RowSetAside.of(error, line, _shown(labels), rows)
        return
    times, numbers, wrong = _samples(values)
    if wrong:
        first, reason = wrong[0]
        yield RowSetAside(
            f"{reason} {_EXPORT}", line, f"values[{first + 1}]", len(wrong), _shown([values[i] for i, _ in wrong])
        )
    hours = times // HOUR_MS
    cuts = np.flatnonzero(np.diff(hours)) + 1
    for some_times, some_numbers in zip(np.split(times, cuts), np.split(numbers, cuts), strict=True):
        if not len(some_times):
            continue
        yield Record(
            Kind.SAMPLES,
            named,
            int(some_times[0]) // HOUR_MS * HOUR_MS,
            broker=broker,
            metric=metric,
            names=[name] if name else [],
            times=some_times,
            values=some_numbers,
            text=other,
            rows=len(some_times),
            line=line,
        )


def _samples(values: list[Any]) -> tuple[Int64Array, FloatArray, list[tuple[int, str]]]:
    """Return times in ms and values of the samples, in order, and place and reason of those that are none."""
    try:
        seconds, texts = zip(*values, strict=True)
        times = np.round(np.array(seconds, dtype=np.float64) * 1_000)
        numbers = np.array(list(map(float, texts)))
        usual = np.isfinite(numbers) & (numbers >= 0) & (times >= HOUR_MS) & (times <= LAST_MS)
        plain = times.ndim == 1 and bool(usual.all())
        wrong: list[tuple[int, str]] = []
    except (TypeError, ValueError, OverflowError):
        plain = False
    if not plain:  # find out which ones are wrong
        times, numbers, wrong = _checked_samples(values)
    whole = times.astype(np.int64)
    if (np.diff(whole) < 0).any():
        order = np.argsort(whole, kind="stable")
        whole, numbers = whole[order], numbers[order]
    return whole, numbers, wrong


def _checked_samples(values: list[Any]) -> tuple[FloatArray, FloatArray, list[tuple[int, str]]]:
    rows: list[tuple[float, float]] = []
    wrong: list[tuple[int, str]] = []
    for at, pair in enumerate(values):
        try:
            second, text = pair
            value, time_ms = float(text), round(float(second) * 1_000)
        except (TypeError, ValueError, OverflowError):
            wrong.append((at, "The sample is not a pair of time and number."))
            continue
        if not HOUR_MS <= time_ms <= LAST_MS:
            wrong.append((at, "The sample has no time."))
        elif not math.isfinite(value) or value < 0:
            wrong.append((at, f"The value {str(text)[:40]} is not a finite number of 0 or more."))
        else:
            rows.append((time_ms, value))
    table = np.array(rows, dtype=np.float64).reshape(-1, 2)
    return table[:, 0], table[:, 1], wrong


def _meaning(labels: Mapping[str, Any]) -> tuple[str, str, str, str]:
    """Return metric, broker, bundle or topic, and what else tells two series apart.

    Raises:
        FormatError: The planner has no use for it, or a label is missing.
    """
    metric = str(labels.get("__name__", ""))
    only = _ONLY.get(metric)
    used = (BROKER_METRICS, BUNDLE_METRICS, TOPIC_METRICS, COUNTER_METRICS)
    if not any(metric in group for group in used) or (only and labels.get(only[0]) != only[1]):
        raise FormatError(
            f"The planner does not use {metric[:80] or 'a series without a name'}.",
            where=metric[:80],
            remedy="You can leave it out of the export.",
        )
    broker, label = broker_or_pod(labels)
    if not broker:
        raise FormatError(
            "The series has no broker label.", where=metric, remedy="Keep the label instance (host:port), or pod."
        )
    known = _KNOWN | {label}
    if metric in BROKER_METRICS:
        return metric, broker, "", packed("", others_of(labels, known | ({only[0]} if only else set())))
    if metric in BUNDLE_METRICS:
        bundle = str(labels.get("bundle", ""))
        parse_bundle(bundle, metric)
        return metric, broker, bundle, packed("", others_of(labels, known | {"bundle"}))
    return metric, broker, *_of_topic(metric, labels, known | _KNOWN_OF_TOPICS)


def _of_topic(metric: str, labels: Mapping[str, Any], known: frozenset[str]) -> tuple[str, str]:
    """Return the topic, and what else tells two series apart; of what goes out each subscription is counted.

    Raises:
        FormatError: It is of a namespace, or of a consumer.
    """
    topic = topic_of(labels)
    if not topic:
        raise FormatError(
            f"{metric} is about a namespace, not a topic.",
            where=metric,
            remedy="Set exposeTopicLevelMetricsInPrometheus, or leave it out.",
        )
    if any(labels.get(name) for name in _OF_CONSUMERS):
        raise FormatError(
            f"{metric} is about a single consumer; the planner uses the series of its subscription.",
            where=metric,
            remedy="You can leave it out of the export.",
        )
    namespace_of_topic(topic)
    if metric not in COUNTER_METRICS:
        return topic, packed("", others_of(labels, known))
    return topic, packed(str(labels.get("subscription", "")), others_of(labels, known | {"subscription"}))


def _shown(value: Any) -> bytes:
    try:
        return repr(value).encode("utf-8", "backslashreplace")[:MOST_RAW_BYTES]
    except RecursionError:
        return b""
