"""Metrics of a broker in JSON: `pulsar-admin broker-stats monitoring-metrics`."""

from collections.abc import Iterator

from planner.doors.chunks import Chunk
from planner.doors.kind import NO, SURE, Kind
from planner.doors.metrics_reader import USED, MetricsReader
from planner.doors.pieces import Metrics, NotUsed, Piece
from planner.formats.raw_capture.metrics import metrics_of_admin


def _recognise(chunk: Chunk) -> int:
    groups = chunk.outline
    if chunk.is_json and groups is None:  # truncated
        start = "".join(chunk.head[:200].split())
        return SURE if start.startswith('[{"metrics":{') else NO
    if not isinstance(groups, list) or not groups:
        return NO
    first = bytes(memoryview(groups[0]))
    return SURE if b'"metrics"' in first and b'"dimensions"' in first else NO


def _read(chunk: Chunk) -> Iterator[Piece]:
    found = [(name, labels, value) for name, labels, value in metrics_of_admin(chunk.value) if name in USED]
    hosts = {host for _, labels, _ in found if isinstance(host := labels.get("broker"), str)}
    broker = chunk.broker or (next(iter(hosts)) if len(hosts) == 1 else "")
    reader = MetricsReader(chunk.source, broker)
    for name, labels, value in found:
        reader.add(name, {key: str(text) for key, text in labels.items()}, value)
    pieces = list(reader.pieces())
    if not any(isinstance(one, Metrics) for one in pieces):
        pieces.append(NotUsed(source=chunk.source, why="metrics, none of which the planner uses"))
    yield from pieces


KIND = Kind("metrics in JSON", "pulsar-admin broker-stats monitoring-metrics", _recognise, _read)
