"""Statistics of single topics: `topics stats` and `topics partitioned-stats`."""

from collections import Counter
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any, Final
from urllib.parse import unquote

from planner.cluster.pulsar_json import host_and_port, objects
from planner.doors.chunks import Chunk
from planner.doors.kind import LIKELY, NO, SURE, Kind
from planner.doors.pieces import NotUsed, Piece, TopicStatsOf
from planner.doors.slim import slim_stats
from planner.doors.words import BROKER, TOPIC, topic_in

_OF_TOPICS: Final = frozenset(["subscriptions", "publishers", "replication", "averageMsgSize", "storageSize"])
_INTERNAL: Final = frozenset(["entriesAddedCounter", "ledgers", "cursors", "lastConfirmedEntry"])
_MANY: Final = 3


def _recognise(chunk: Chunk) -> int:
    keys = chunk.keys.keys()
    if len(_INTERNAL & keys) >= _MANY:
        return SURE
    if "msgRateIn" in keys and "subscriptions" in keys:
        return SURE
    return LIKELY if "msgRateIn" in keys and len(_OF_TOPICS & keys) > 1 else NO


def _read(chunk: Chunk) -> Iterator[Piece]:
    value = chunk.value
    if len(_INTERNAL & value.keys()) >= _MANY:
        yield NotUsed(
            source=chunk.source, why="internal statistics of a topic, which no decision reads", is_expected=True
        )
        return
    topic = topic_in(f"x {chunk.source.command}") or _of_file(chunk.source.file)
    partitions = dict(objects(value.get("partitions")))
    for name, stats in partitions.items():
        yield _piece(chunk, name, stats)
    if partitions:
        return
    metadata = value.get("metadata")
    if isinstance(metadata, dict) and metadata.get("partitions"):
        why = "totals of a partitioned topic; use --per-partition, which shows the load of each partition"
        yield NotUsed(source=chunk.source, why=why)
    elif topic:
        yield _piece(chunk, topic, value)
    else:
        why = "statistics that do not name their topic; put the command above them"
        yield NotUsed(source=chunk.source, why=why)


def _piece(chunk: Chunk, topic: str, stats: Any) -> TopicStatsOf:
    owner = stats.get("ownerBroker")
    broker = (host_and_port(owner) or owner) if isinstance(owner, str) else ""
    lacking: Counter[str] = Counter()
    apart: Counter[str] = Counter()
    return TopicStatsOf(
        source=chunk.source,
        topic=topic,
        stats=slim_stats(stats, str(chunk.source), lacking, apart),
        broker=broker if BROKER.fullmatch(broker) else "",
        lacking=lacking,
        apart=apart,
    )


def _of_file(file: str) -> str:
    """Return the topic that a file is called after, as in `persistent%3A%2F%2Fa%2Fb%2Fc.json`."""
    name = unquote(PurePath(file).stem)
    return name if TOPIC.fullmatch(name) else ""


KIND = Kind("statistics of a topic", "pulsar-admin topics stats TOPIC", _recognise, _read)
