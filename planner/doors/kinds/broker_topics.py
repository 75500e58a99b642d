"""Topics of a broker: `pulsar-admin broker-stats topics`, of any size."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from planner.cluster.errors import FormatError
from planner.cluster.ranges import parse_range
from planner.doors.chunks import Chunk
from planner.doors.kind import NO, SURE, Kind
from planner.doors.kinds.load_report import TEXTS_READ
from planner.doors.pieces import Assumed, BrokerTopics
from planner.doors.slim import Topic, slim_topic
from planner.doors.words import NAMESPACE

if TYPE_CHECKING:
    from planner.cluster.pulsar_json import Json

_FIELD: Final = re.compile(r"Expected `(\w+)`.* at `\$.*\.(\w+)`$")
_PLAIN: Final = {"float": "a number", "int": "a whole number", "array": "a list", "object": "an object"}
_RANGES: Final = re.compile(r'\s*\{\s*(?:\}|"0x[0-9a-f]{8}_0x[0-9a-f]{8}"\s*:)')

_Topics: TypeAlias = dict[str, dict[str, dict[str, dict[str, Topic]]]]  # type: ignore[valid-type]
_Read: TypeAlias = Callable[[memoryview], dict[str, dict[str, dict[str, dict[str, Any]]]]]
_read_topics: _Read = msgspec.json.Decoder(_Topics).decode
_read_texts: _Read = msgspec.json.Decoder(_Topics, strict=False).decode
"""The same where numbers are texts, as scripts write them."""


def _recognise(chunk: Chunk) -> int:
    keys = chunk.keys
    if not keys or not all(NAMESPACE.fullmatch(name) for name in keys):
        return NO
    return (
        SURE
        if all(_RANGES.match(bytes(memoryview(part)[:200]).decode("utf-8", "replace")) for part in keys.values())
        else NO
    )


def _given(data: memoryview) -> tuple[Mapping[str, Any], bool]:
    """Return the topics, and whether their numbers are texts."""
    try:
        return _read_topics(data), False
    except msgspec.ValidationError as error:
        try:
            return _read_texts(data), True
        except msgspec.ValidationError:
            raise error from None


def _read(chunk: Chunk) -> Iterator[BrokerTopics | Assumed]:
    try:
        given, are_texts = _given(chunk.data)
    except msgspec.ValidationError as error:
        wrong = _FIELD.search(str(error))
        why = f"'{wrong[2]}' is not {_PLAIN.get(wrong[1], wrong[1])}" if wrong else str(error)
        what = f"The topics cannot be read: {why}."
        raise FormatError(what, where=str(chunk.source), remedy="Save the answer unchanged.") from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise FormatError(
            f"Not valid JSON: {error}.", where=str(chunk.source), remedy="Save the whole answer again."
        ) from error
    if are_texts:
        yield Assumed(source=chunk.source, text=f"{chunk.source}: {TEXTS_READ}")
    topics: dict[str, dict[str, dict[str, Json]]] = {}
    lacking: Counter[str] = Counter()
    apart: Counter[str] = Counter()
    for namespace, ranges in given.items():
        for span, domains in ranges.items():
            parse_range(span, str(chunk.source))
            found = topics.setdefault(namespace, {}).setdefault(span, {})
            for named in domains.values():
                for name, topic in named.items():
                    found[name] = slim_topic(topic, lacking, apart)
    broker = chunk.broker
    yield BrokerTopics(source=chunk.source, topics=topics, broker=broker, lacking=lacking, apart=apart)


KIND = Kind("topics of a broker", "pulsar-admin broker-stats topics", _recognise, _read)
