"""What the planner uses of a topic's statistics, checked, in the form of `TopicStats`."""

from collections import Counter
from collections.abc import Iterator, Mapping
from operator import attrgetter
from typing import Annotated, Any, Final, TypeAlias

import msgspec

from planner.cluster.errors import FormatError
from planner.cluster.pulsar_json import MOST, RATES, Json

_Rate: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=MOST)]
_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=2**31)]
_UNSET: Final = msgspec.UNSET
APART: Final = 0.05
"""Share by which sums that are worked out at the same time may differ."""
_LEAST: Final = 1.0


class _Client(msgspec.Struct):
    """A consumer or replicator, of which nothing is read."""


class _Producer(msgspec.Struct, rename="camel"):
    msg_rate_in: Any = None
    msg_throughput_in: Any = None


class _Subscription(msgspec.Struct, rename="camel"):
    consumers: list[_Client] | msgspec.UnsetType = _UNSET
    msg_rate_out: Any = None
    msg_throughput_out: Any = None


Topic = msgspec.defstruct(
    "Topic",
    [
        *((key, _Rate | msgspec.UnsetType, _UNSET) for key in RATES),
        ("producerCount", _Count | msgspec.UnsetType, _UNSET),
        ("publishers", list[_Producer] | msgspec.UnsetType, _UNSET),
        ("subscriptions", dict[str, _Subscription] | msgspec.UnsetType, _UNSET),
        ("averageMsgSize", Any, None),
        ("replication", Any, None),
    ],
)
"""The fields of `TopicStats` that are used, or compared with them."""

_rates_of = attrgetter(*RATES)


def slim(producers: int, consumers: int, rates: Json) -> Json:
    """Return statistics that say only this."""
    return {**rates, "producerCount": producers, "subscriptions": {"": {"consumers": [0] * consumers}}}


def slim_topic(topic: Any, lacking: Counter[str], apart: Counter[str]) -> Json:
    """Return what is used of a `Topic`; count what it lacks, and the rates that its parts do not add up to."""
    rates: dict[str, float] = {}
    for key, value in zip(RATES, _rates_of(topic), strict=True):
        rates[key] = 0.0 if value is _UNSET else value
        lacking[key] += value is _UNSET
    producers, consumers = topic.producerCount, 0
    if producers is _UNSET:
        lacking["publishers"] += topic.publishers is _UNSET
        producers = 0 if topic.publishers is _UNSET else len(topic.publishers)
    if topic.subscriptions is _UNSET:
        lacking["subscriptions"] += 1
    else:
        for one in topic.subscriptions.values():
            lacking["consumers"] += one.consumers is _UNSET
            consumers += 0 if one.consumers is _UNSET else len(one.consumers)
    apart.update(_apart(topic, rates))
    return slim(producers, consumers, rates)


def _apart(topic: Any, rates: Mapping[str, float]) -> Iterator[str]:
    """Yield the rates that producers, subscriptions or the size of a message contradict.

    Pulsar sums a topic up whenever it updates these, so that they agree but for replication.
    """
    size, rate = topic.averageMsgSize, rates["msgRateIn"]
    if isinstance(size, float) and size > 0 and _differ(size * rate, rates["msgThroughputIn"]):
        yield "averageMsgSize"
    if topic.replication:
        return
    for parts, names in ((topic.publishers, _OF_PRODUCERS), (topic.subscriptions, _OF_SUBSCRIPTIONS)):
        if parts:
            rows = parts.values() if isinstance(parts, dict) else parts
            for key, value_of in names.items():
                values = list(map(value_of, rows))
                if all(isinstance(one, float) for one in values) and _differ(sum(values), rates[key]):
                    yield key


_OF_PRODUCERS: Final = {"msgRateIn": attrgetter("msg_rate_in"), "msgThroughputIn": attrgetter("msg_throughput_in")}
_OF_SUBSCRIPTIONS: Final = {
    "msgRateOut": attrgetter("msg_rate_out"),
    "msgThroughputOut": attrgetter("msg_throughput_out"),
}


def _differ(one: float, other: float) -> bool:
    return abs(one - other) > APART * max(one, other) + _LEAST


def slim_stats(stats: Json, where: str, lacking: Counter[str], apart: Counter[str]) -> Json:
    """Return what is used of the statistics of a topic as Pulsar answers them; see `slim_topic`.

    Raises:
        FormatError: A value is not what it must be.
    """
    try:
        return slim_topic(msgspec.convert(stats, Topic), lacking, apart)
    except msgspec.ValidationError as error:
        raise FormatError(
            f"The statistics cannot be read: {error}.", where=where, remedy="Save the answer unchanged."
        ) from error
