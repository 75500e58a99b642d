"""Lists of names: brokers, owned bundles, namespaces, topics; a line each, or a JSON list."""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

from planner.cluster.pulsar_json import host_and_port
from planner.doors.chunks import Chunk
from planner.doors.kind import LIKELY, NO, SURE, Kind, no_chunk
from planner.doors.pieces import Brokers, Leader, Namespaces, NotUsed, OwnedBundles, Piece, Source, TopicNames, Version
from planner.doors.words import BROKER, BUNDLE, NAMESPACE, RANGE, TOPIC

_QUOTED: Final = r"[\"']?{}[\"']?,?"
_OWNED_LINE: Final = re.compile(rf"\s*({BUNDLE.pattern})(?:\s+\[?broker_assignment[=:].*|\s+\[.*\])?\s*")
_VERSION_LINE: Final = re.compile(r"\s*\"?([1-9]\.[0-9]+\.[0-9]+(?:\.[0-9]+)?(?:[-+][\w.+-]*)?)\"?\s*")
_PARTITIONED: Final = "list-partitioned-topics"


def _plain(line: str) -> str:
    return line.strip().strip(",").strip("\"'")


def _lines_of(pattern: re.Pattern[str]) -> re.Pattern[str]:
    return re.compile(rf"\s*{_QUOTED.format(f'(?:{pattern.pattern})')}\s*")


def _names(chunk: Chunk) -> Sequence[str]:
    if chunk.is_json:
        return [name for name in chunk.value if isinstance(name, str)]
    return [_plain(line) for line in chunk.lines]


def _recognise_list(pattern: re.Pattern[str], chunk: Chunk) -> int:
    names = chunk.outline
    if not isinstance(names, list) or not names:
        return NO
    texts = [bytes(memoryview(name)[:2_000]).decode("utf-8", "replace").strip() for name in names[:200]]
    return SURE if all(text[:1] == '"' and pattern.fullmatch(text.strip('"')) for text in texts) else NO


def _read_list(make: Callable[[Source, Sequence[str]], Piece], chunk: Chunk) -> Iterator[Piece]:
    yield make(chunk.source, tuple(dict.fromkeys(_names(chunk))))


def _topics(source: Source, names: Sequence[str]) -> Piece:
    return TopicNames(source=source, names=names, are_partitioned=_PARTITIONED in source.command)


def _list(name: str, command: str, pattern: re.Pattern[str], make: Callable[[Source, Sequence[str]], Piece]) -> Kind:
    return Kind(name, command, partial(_recognise_list, pattern), partial(_read_list, make), _lines_of(pattern))


_ZOOKEEPER_LIST: Final = rf"\s*\[{BROKER.pattern}(?:, {BROKER.pattern})*\]\s*"


def _read_brokers(chunk: Chunk) -> Iterator[Piece]:
    """Read brokers, a line each; ZooKeeper's shell lists those of a folder on one line."""
    names = _names(chunk)
    if not chunk.is_json:
        names = [part for line in names for part in (line[1:-1] if line[-1:] == "]" else line).split(", ")]
    yield Brokers(source=chunk.source, brokers=tuple(dict.fromkeys(names)))


BROKERS = Kind(
    "list of brokers",
    "pulsar-admin brokers list CLUSTER",
    partial(_recognise_list, BROKER),
    _read_brokers,
    re.compile(f"{_lines_of(BROKER).pattern}|{_ZOOKEEPER_LIST}"),
)
NAMESPACES = _list(
    "list of namespaces",
    "pulsar-admin namespaces list TENANT",
    re.compile(rf"(?!\S*/{RANGE.pattern}){NAMESPACE.pattern}"),  # a bundle of a broken list is no namespace
    lambda at, names: Namespaces(source=at, namespaces=names),
)
TOPICS = _list(
    "list of topics",
    "pulsar-admin topics list TENANT/NAMESPACE",
    re.compile(rf"(?!.*\s\"?pulsar(?:\+ssl)?://){TOPIC.pattern}"),  # a damaged lookup is no topic
    _topics,
)


def _read_lookup(chunk: Chunk) -> Iterator[Piece]:
    what = (
        "the owner of a single bundle"
        if "/namespace/" in f"{chunk.source.command} {chunk.before}"
        else "lookups of topics, which name the service address of the owner"
    )
    why = f"{what}; use brokers namespaces for the owners"
    yield NotUsed(source=chunk.source, why=why, is_expected=True)


_OF_LOOKUP: Final = frozenset(["httpUrl", "nativeUrl"])
"""What `/lookup/v2` answers, and the node of a bundle under `/namespace` in the metadata store."""


def _recognise_lookup(chunk: Chunk) -> int:
    return SURE if chunk.keys.keys() >= _OF_LOOKUP else NO


LOOKUP = Kind(
    "lookup",
    "pulsar-admin topics partitioned-lookup TOPIC",
    _recognise_lookup,
    _read_lookup,
    re.compile(rf"\s*\"?(?:{TOPIC.pattern}\s+\"?)?pulsar(?:\+ssl)?://\S+\s*"),
)


def _recognise_owned(chunk: Chunk) -> int:
    keys = chunk.keys
    if not keys or not all(BUNDLE.fullmatch(name) for name in keys):
        return NO
    return SURE if all(b"broker_assignment" in bytes(memoryview(part)[:500]) for part in keys.values()) else LIKELY


def _read_owned(chunk: Chunk) -> Iterator[OwnedBundles]:
    if chunk.is_json:
        names = list(chunk.value)
    else:
        names = [found[1] for line in chunk.lines if (found := _OWNED_LINE.fullmatch(line))]
    broker = chunk.broker
    yield OwnedBundles(source=chunk.source, bundles=tuple(dict.fromkeys(names)), broker=broker)


OWNED = Kind(
    "bundles of a broker",
    "pulsar-admin brokers namespaces CLUSTER --url BROKER",
    _recognise_owned,
    _read_owned,
    _OWNED_LINE,
)


_OF_LEADER: Final = frozenset(["serviceUrl", "brokerId", "leaderReady"])
"""The last one is of releases before 2.8, in the metadata store."""


def _recognise_leader(chunk: Chunk) -> int:
    keys = chunk.keys.keys()
    return SURE if keys and keys <= _OF_LEADER else NO


def _read_leader(chunk: Chunk) -> Iterator[Piece]:
    value = chunk.value
    address = value.get("serviceUrl")
    broker = value.get("brokerId") or host_and_port(address)
    if not broker and isinstance(address, str) and BROKER.fullmatch(address):
        broker = address  # the documentation of older releases has it without http://
    if isinstance(broker, str) and broker:
        yield Leader(source=chunk.source, broker=broker)
    else:
        yield NotUsed(source=chunk.source, why="a leader without a valid address")


LEADER = Kind("leader", "pulsar-admin brokers leader-broker", _recognise_leader, _read_leader)


def _read_version(chunk: Chunk) -> Iterator[Version]:
    for line in chunk.lines:
        if found := _VERSION_LINE.fullmatch(line):
            yield Version(source=chunk.source, version=found[1])


VERSION = Kind("version", "pulsar-admin brokers version", no_chunk, _read_version, _VERSION_LINE)
