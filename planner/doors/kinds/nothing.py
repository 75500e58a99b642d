"""Commands that printed nothing, or an empty object: there is nothing of the kind that they ask for."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from planner.doors.chunks import Chunk
from planner.doors.kind import NO, SURE, Kind
from planner.doors.pieces import (
    AntiAffinityGroup,
    BrokerTopics,
    Configuration,
    FailureDomains,
    IsolationPolicies,
    OwnedBundles,
    Piece,
)

_EMPTY: Final[Mapping[str, Callable[[Chunk], Piece]]] = {
    "ns-isolation-policy list": lambda chunk: IsolationPolicies(source=chunk.source, policies={}),
    "namespaceIsolationPolicies": lambda chunk: IsolationPolicies(source=chunk.source, policies={}),
    "list-failure-domains": lambda chunk: FailureDomains(source=chunk.source, domains={}),
    "failureDomains": lambda chunk: FailureDomains(source=chunk.source, domains={}),
    "get-all-dynamic-config": lambda chunk: Configuration(source=chunk.source, values={}, form="dynamic"),
    "configuration/values": lambda chunk: Configuration(source=chunk.source, values={}, form="dynamic"),
    "get-anti-affinity-group": lambda chunk: AntiAffinityGroup(
        source=chunk.source, group="", namespace=chunk.namespace
    ),
    "broker-stats topics": lambda chunk: BrokerTopics(source=chunk.source, topics={}, broker=chunk.broker),
    "brokers namespaces": lambda chunk: OwnedBundles(source=chunk.source, bundles=(), broker=chunk.broker),
}
"""What the absence of an answer says, by words of the command."""


_NOT_THERE: Final = re.compile(r"NamespaceIsolationPolic\w+ for cluster \S+ does not exist")
"""What brokers answer of a cluster that never had any."""


def _recognise(chunk: Chunk) -> int:
    if not chunk.is_json and _NOT_THERE.search(chunk.head):
        return SURE
    is_empty = chunk.outline in ({}, []) if chunk.is_json else not chunk.first_lines
    return SURE if is_empty and any(words in chunk.source.command for words in _EMPTY) else NO


def _read(chunk: Chunk) -> Iterator[Piece]:
    if _NOT_THERE.search(chunk.head):
        yield IsolationPolicies(source=chunk.source, policies={})
        return
    yield next(make for words, make in _EMPTY.items() if words in chunk.source.command)(chunk)


KIND = Kind("empty answer", "", _recognise, _read)
