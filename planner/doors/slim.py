"""What the planner uses of a topic's statistics, checked, in the form of `TopicStats`."""

from collections import Counter
from operator import attrgetter
from typing import Annotated, Any, Final, TypeAlias

import msgspec

from planner.cluster.errors import FormatError
from planner.cluster.pulsar_json import MOST, RATES, Json

_Rate: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=MOST)]
_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=2**31)]
_UNSET: Final = msgspec.UNSET


class _Client(msgspec.Struct):
    """A producer or consumer, of which nothing is read."""


class _Subscription(msgspec.Struct):
    consumers: list[_Client] | msgspec.UnsetType = _UNSET


Topic = msgspec.defstruct(
    "Topic",
    [
        *((key, _Rate | msgspec.UnsetType, _UNSET) for key in RATES),
        ("producerCount", _Count | msgspec.UnsetType, _UNSET),
        ("publishers", list[_Client] | msgspec.UnsetType, _UNSET),
        ("subscriptions", dict[str, _Subscription] | msgspec.UnsetType, _UNSET),
    ],
)
"""The fields of `TopicStats` that are used."""

_rates_of = attrgetter(*RATES)


def slim(producers: int, consumers: int, rates: Json) -> Json:
    """Return statistics that say only this."""
    return {**rates, "producerCount": producers, "subscriptions": {"": {"consumers": [0] * consumers}}}


def slim_topic(topic: Any, lacking: Counter[str]) -> Json:
    """Return what is used of a `Topic`, and count what it lacks."""
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
    return slim(producers, consumers, rates)


def slim_stats(stats: Json, where: str, lacking: Counter[str]) -> Json:
    """Return what is used of the statistics of a topic as Pulsar answers them, and count what they lack.

    Raises:
        FormatError: A value is not what it must be.
    """
    try:
        return slim_topic(msgspec.convert(stats, Topic), lacking)
    except msgspec.ValidationError as error:
        raise FormatError(
            f"The statistics cannot be read: {error}.", where=where, remedy="Save the answer unchanged."
        ) from error
