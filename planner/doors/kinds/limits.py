"""Dispatch limits of a namespace or topic, and resource quotas of bundles."""

import re
from collections.abc import Iterator
from typing import Final, Literal

from planner.cluster.errors import FormatError
from planner.cluster.names import DISPATCH_THROTTLING_RATE_IN_BYTE, DISPATCH_THROTTLING_RATE_IN_MSG
from planner.cluster.pulsar_json import Json
from planner.doors.chunks import Chunk
from planner.doors.kind import NO, SURE, Kind
from planner.doors.pieces import DispatchLimit, NotUsed, Piece
from planner.doors.words import topic_in

_PERIOD: Final = "ratePeriodInSecond"
_RELATIVE: Final = "relativeToPublishRate"
_MOST: Final = 2**63
DEFAULT_RATE: Final[Json] = {
    DISPATCH_THROTTLING_RATE_IN_MSG: -1,
    DISPATCH_THROTTLING_RATE_IN_BYTE: -1,
    _RELATIVE: False,
    _PERIOD: 1,
}
"""What `DispatchRate` has where an answer leaves a field out."""
_OF_QUOTAS: Final = frozenset(["msgRateIn", "msgRateOut", "bandwidthIn", "bandwidthOut", "memory", "dynamic"])
_DEFAULT_QUOTA: Final = {
    "msgRateIn": 40.0,
    "msgRateOut": 120.0,
    "bandwidthIn": 1e5,
    "bandwidthOut": 3e5,
    "memory": 80.0,
}
_KINDS: Final[dict[str, Literal["dispatch", "subscription", "replicator"]]] = {
    "subscription": "subscription",
    "replicator": "replicator",
}
_WHICH: Final = re.compile(r"(subscription|replicator)-?[dD]ispatch-?[rR]ate")


def _recognise_rate(chunk: Chunk) -> int:
    return SURE if {DISPATCH_THROTTLING_RATE_IN_MSG, _PERIOD} <= chunk.keys.keys() else NO


def _read_rate(chunk: Chunk) -> Iterator[Piece]:
    command = chunk.source.command
    which = _WHICH.search(command)
    target = topic_in(f"x {command}") or chunk.namespace
    if not target:
        why = "a dispatch limit that does not name its namespace or topic; put the command above it"
        yield NotUsed(source=chunk.source, why=why)
        return
    kind = _KINDS[which[1]] if which else "dispatch"
    check_rate(chunk.value, str(chunk.source))
    yield DispatchLimit(source=chunk.source, kind=kind, target=target, rate=chunk.value)


def check_rate(rate: Json, where: str) -> None:
    """Refuse a limit with a value that is none.

    Raises:
        FormatError: Naming the field.
    """
    for name in (DISPATCH_THROTTLING_RATE_IN_MSG, DISPATCH_THROTTLING_RATE_IN_BYTE, _PERIOD):
        if type(rate.get(name)) is not int or abs(rate[name]) >= _MOST:
            what = f"'{name}' is not a whole number."
            raise FormatError(what, where=where, remedy="Save the answer unchanged.")
    if not isinstance(rate.get(_RELATIVE, False), bool):
        what = f"'{_RELATIVE}' is neither true nor false."
        raise FormatError(what, where=where, remedy="Save the answer unchanged.")


def _recognise_quota(chunk: Chunk) -> int:
    return SURE if chunk.keys.keys() >= _OF_QUOTAS else NO


def _read_quota(chunk: Chunk) -> Iterator[NotUsed]:
    """Say what quotas are for; brokers that have none of a bundle print the defaults."""
    value = chunk.value
    if all(value.get(name) == usual for name, usual in _DEFAULT_QUOTA.items()):
        yield NotUsed(source=chunk.source, why="the default resource quotas, which no decision reads", is_expected=True)
        return
    why = (
        "resource quotas, which the modular load manager reads only for a bundle without averages, as when it is first"
        " placed; Pulsar's default averages are taken there, and other decisions do not differ"
    )
    yield NotUsed(source=chunk.source, why=why)


RATE = Kind("dispatch limit", "pulsar-admin namespaces get-dispatch-rate TENANT/NAMESPACE", _recognise_rate, _read_rate)
QUOTA = Kind(
    "resource quotas",
    "pulsar-admin resource-quotas get -n TENANT/NAMESPACE -b RANGE",
    _recognise_quota,
    _read_quota,
)
