"""Metrics of a broker in JSON: `pulsar-admin broker-stats monitoring-metrics`.

The server answers with a list of groups. Some releases of the tool print the groups without a list around them.
"""

from collections.abc import Iterator
from typing import Final

from planner.doors.chunks import Chunk
from planner.doors.kind import NO, SURE, Kind
from planner.doors.metrics_reader import USED, MetricsReader
from planner.doors.pieces import Metrics, NotUsed, Piece
from planner.formats.raw_capture.metrics import metrics_of_admin

_GROUP: Final = frozenset(["metrics", "dimensions"])


def _recognise(chunk: Chunk) -> int:
    groups = chunk.outline
    if chunk.keys.keys() == _GROUP:
        return SURE
    if chunk.is_json and groups is None:  # truncated
        start = "".join(chunk.head[:200].split()).removeprefix("[")
        return SURE if start.startswith('{"metrics":{') else NO
    if not isinstance(groups, list) or not groups:
        return NO
    first = bytes(memoryview(groups[0]))
    return SURE if b'"metrics"' in first and b'"dimensions"' in first else NO


def _read(chunk: Chunk) -> Iterator[Piece]:
    value, is_group = chunk.value, chunk.keys.keys() == _GROUP
    metrics = metrics_of_admin([value] if is_group else value)
    found = [(name, labels, number) for name, labels, number in metrics if name in USED]
    hosts = {host for _, labels, _ in found if isinstance(host := labels.get("broker"), str)}
    broker = chunk.broker or (next(iter(hosts)) if len(hosts) == 1 else "")
    reader = MetricsReader(chunk.source, broker)
    for name, labels, number in found:
        reader.add(name, {key: str(text) for key, text in labels.items()}, number)
    pieces = list(reader.pieces())
    if not any(isinstance(one, Metrics) for one in pieces):
        pieces.append(NotUsed(source=chunk.source, why="metrics, none of which the planner uses", is_expected=is_group))
    yield from pieces


KIND = Kind("metrics in JSON", "pulsar-admin broker-stats monitoring-metrics", _recognise, _read)
