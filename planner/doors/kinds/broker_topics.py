"""Topics of a broker: `pulsar-admin broker-stats topics`, of any size."""

import re
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Final, TypeAlias

import msgspec

from planner.cluster.errors import FormatError
from planner.cluster.pulsar_json import RATES, Json
from planner.doors.chunks import Chunk
from planner.doors.kind import NO, SURE, Kind
from planner.doors.pieces import BrokerTopics
from planner.doors.slim import slim
from planner.doors.words import NAMESPACE, broker_in

_RANGES: Final = re.compile(r'\s*\{\s*(?:\}|"0x[0-9a-f]{8}_0x[0-9a-f]{8}"\s*:)')
_MOST: Final = 1e18
_Rate: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=_MOST)]
_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=2**31)]


class _Client(msgspec.Struct):
    """A producer or consumer, of which nothing is read."""


class _Subscription(msgspec.Struct):
    consumers: list[_Client] = []


_Topic = msgspec.defstruct(
    "_Topic",
    [
        *((key, _Rate, 0.0) for key in RATES),
        ("producerCount", _Count | None, None),
        ("publishers", list[_Client], msgspec.field(default_factory=list)),
        ("subscriptions", dict[str, _Subscription], msgspec.field(default_factory=dict)),
    ],
)
_Topics: TypeAlias = dict[str, dict[str, dict[str, dict[str, _Topic]]]]  # type: ignore[valid-type]
_read_topics: Callable[[memoryview], dict[str, dict[str, dict[str, dict[str, Any]]]]] = msgspec.json.Decoder(
    _Topics
).decode


def _recognise(chunk: Chunk) -> int:
    keys = chunk.keys
    if not keys or not all(NAMESPACE.fullmatch(name) for name in keys):
        return NO
    return (
        SURE
        if all(_RANGES.match(bytes(memoryview(part)[:200]).decode("utf-8", "replace")) for part in keys.values())
        else NO
    )


def _read(chunk: Chunk) -> Iterator[BrokerTopics]:
    try:
        given = _read_topics(chunk.data)
    except msgspec.ValidationError as error:
        raise FormatError(
            f"The topics cannot be read: {error}.", where=str(chunk.source), remedy="Save the answer unchanged."
        ) from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise FormatError(
            f"Not valid JSON: {error}.", where=str(chunk.source), remedy="Save the whole answer again."
        ) from error
    topics: dict[str, dict[str, dict[str, Json]]] = {}
    for namespace, ranges in given.items():
        for span, domains in ranges.items():
            found = topics.setdefault(namespace, {}).setdefault(span, {})
            for named in domains.values():
                for name, topic in named.items():
                    consumers = sum(len(one.consumers) for one in topic.subscriptions.values())
                    producers = len(topic.publishers) if topic.producerCount is None else topic.producerCount
                    found[name] = slim(producers, consumers, {key: getattr(topic, key) for key in RATES})
    broker = chunk.about or broker_in(f"x {chunk.source.command}")
    yield BrokerTopics(source=chunk.source, topics=topics, broker=broker)


KIND = Kind("topics of a broker", "pulsar-admin broker-stats topics", _recognise, _read)
