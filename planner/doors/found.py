"""Says in a line what the files hold."""

from collections.abc import Iterable, Iterator
from typing import Final

from planner.cluster.text import count
from planner.doors import pieces as kinds
from planner.doors.pieces import Piece

_OF_BROKERS: Final = "/broker-time-average/"


def found_in(pieces: Iterable[Piece]) -> tuple[str, ...]:
    """Return what there is: `load reports of 3 brokers`, `topics of 2 brokers`, `9 settings in broker.conf`."""
    return tuple(dict.fromkeys(_found(list(pieces))))


def _brokers(pieces: list[Piece], kind: type[Piece]) -> int:
    return len({getattr(one, "broker", "") for one in pieces if isinstance(one, kind)})


def _namespaces(pieces: list[Piece], kind: type[Piece]) -> int:
    return len({getattr(one, "namespace", "") for one in pieces if isinstance(one, kind)})


def _found(pieces: list[Piece]) -> Iterator[str]:
    for one in pieces:
        if isinstance(one, kinds.WholeSnapshot):
            yield f"a snapshot of {one.snapshot.info.cluster}"
    for kind, what in (
        (kinds.LoadReport, "load reports"),
        (kinds.Metrics, "metrics"),
        (kinds.TopBundles, "top bundles"),
        (kinds.OwnedBundles, "bundles"),
        (kinds.BrokerTopics, "topics"),
    ):
        if number := _brokers(pieces, kind):
            yield f"{what} of {count(number, 'broker')}"
    for of_namespace, what in (
        (kinds.NamespaceBundles, "bundles"),
        (kinds.NamespacePolicies, "policies"),
        (kinds.AntiAffinityGroup, "anti-affinity group"),
    ):
        if number := _namespaces(pieces, of_namespace):
            yield f"{what} of {count(number, 'namespace')}"
    yield from _counted(pieces)
    yield from _names(pieces)
    yield from _configurations(pieces)


def _counted(pieces: list[Piece]) -> Iterator[str]:
    for one in pieces:
        match one:
            case kinds.Brokers():
                yield f"a list of {count(len(one.brokers), 'broker')}"
            case kinds.IsolationPolicies():
                yield f"isolation policies ({len(one.policies):,})"
            case kinds.FailureDomains():
                yield count(len(one.domains), "failure domain")
            case kinds.Leader():
                yield "the leader"
            case kinds.Version():
                yield "the release"


def _names(pieces: list[Piece]) -> Iterator[str]:
    for kind, what in ((kinds.TopicNames, "names"), (kinds.Namespaces, "namespaces")):
        names = {name for one in pieces if isinstance(one, kind) for name in getattr(one, what)}
        if names:
            yield count(len(names), "topic name" if kind is kinds.TopicNames else "namespace")
    if limits := {(one.kind, one.target) for one in pieces if isinstance(one, kinds.DispatchLimit)}:
        yield count(len(limits), "dispatch limit")
    averages = {one.path for one in pieces if isinstance(one, kinds.Averages)}
    of_brokers = {path for path in averages if _OF_BROKERS in path}
    for found, what in ((averages - of_brokers, "bundle"), (of_brokers, "broker")):
        if found:
            yield f"averages of {count(len(found), what)}"
    if stats := {one.topic for one in pieces if isinstance(one, kinds.TopicStatsOf)}:
        yield f"statistics of {count(len(stats), 'topic')}"
    if changes := {one.bundle for one in pieces if isinstance(one, kinds.OwnershipChange)}:
        yield f"owners of {count(len(changes), 'bundle')}"


def _configurations(pieces: list[Piece]) -> Iterator[str]:
    texts = {"runtime": "settings of a running broker", "dynamic": "dynamic settings"}
    for one in pieces:
        if isinstance(one, kinds.Configuration) and one.is_of_brokers:
            yield texts.get(one.form, f"{count(len(one.values), 'setting')} in {one.source.file}")
