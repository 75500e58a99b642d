"""Answers to one question that was asked several times, as before and after a change: the last one counts."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from planner.doors import pieces as kinds
from planner.doors.contradictions import Contradictions
from planner.doors.pieces import Piece

_OF_BROKERS: Final = ("brokers list", "/admin/v2/brokers/", "ls /loadbalance/brokers")
_OF_POLICIES: Final = ("ns-isolation-policy list", "namespaceIsolationPolicies")
_OF_DOMAINS: Final = ("list-failure-domains", "failureDomains")

_SAYS: Final[Mapping[type[Piece], str]] = {
    kinds.Brokers: "brokers",
    kinds.IsolationPolicies: "policies",
    kinds.FailureDomains: "domains",
    kinds.Leader: "broker",
    kinds.Version: "version",
    kinds.Configuration: "values",
    kinds.OwnedBundles: "bundles",
    kinds.AntiAffinityGroup: "group",
    kinds.NamespacePolicies: "policies",
    kinds.DispatchLimit: "rate",
}
"""The field of a piece that is the answer."""


def of_cluster(piece: Piece) -> str:
    """Return what a piece answers about the cluster; empty where it is no whole answer."""
    command = piece.source.command
    for kind, commands, what in (
        (kinds.Brokers, _OF_BROKERS, "the list of brokers"),
        (kinds.IsolationPolicies, _OF_POLICIES, "the isolation policies"),
        (kinds.FailureDomains, _OF_DOMAINS, "the failure domains"),
    ):
        if isinstance(piece, kind) and any(words in command for words in commands):
            return what
    match piece:
        case kinds.Leader():
            return "the leader"
        case kinds.Version():
            return "the release"
        case kinds.Configuration(form="dynamic"):
            return "dynamic settings"
    return ""


def of_part(piece: Piece) -> str:
    """Return what a piece, whose broker or namespace is known, answers about it; empty where it is no whole answer."""
    match piece:
        case kinds.OwnedBundles():
            return f"the bundles of {piece.broker}"
        case kinds.AntiAffinityGroup():
            return f"the anti-affinity group of {piece.namespace}"
        case kinds.NamespacePolicies():
            return f"the policies of {piece.namespace}"
        case kinds.DispatchLimit():
            return f"the {piece.kind} limit of {piece.target}"
    return ""


def last_answers(
    pieces: Sequence[Piece], question_of: Callable[[Piece], str], said: Contradictions
) -> tuple[Piece, ...]:
    """Return pieces without the answers to a question that was asked again later; note those that differ."""
    last: dict[str, Piece] = {}
    for one in pieces:
        if question := question_of(one):
            if question in last and _content(last[question]) != _content(one):
                said.add(f"Several answers give {question}; the last one counts.")
            last[question] = one
    kept = {id(one) for one in last.values()}
    return tuple(one for one in pieces if not question_of(one) or id(one) in kept)


def _content(piece: Piece) -> object:
    """Return what a piece says, without where it was found and the order of names."""
    said = getattr(piece, _SAYS[type(piece)])
    return frozenset(said) if isinstance(said, tuple | list) else said
