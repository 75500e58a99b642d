"""Finds the broker or namespace of pieces that do not name it: by their content, by other pieces, by the file name."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import PurePath
from typing import Any, Final

from planner.cluster.pulsar_json import last_stats, service_unit_owner, top_bundles, web_services
from planner.doors.pieces import (
    AntiAffinityGroup,
    Brokers,
    BrokerTopics,
    Configuration,
    Leader,
    LoadReport,
    Metrics,
    NamespaceBundles,
    NamespacePolicies,
    OwnedBundles,
    OwnershipChange,
    Piece,
    TopBundles,
)
from planner.doors.words import BUNDLE, NAMESPACE, RANGE, broker_in, broker_of_own_namespace, pods_in
from planner.history.assumed import Hosts
from planner.history.labels import has_port, with_port

_NOT_A_NAME: Final = re.compile(r"[^A-Za-z0-9]+")
_GENERIC: Final = re.compile(
    r"^(?:(?:pulsar-admin|namespaces?|bundles?|policies|policy|anti-?affinity|group|get|ns)[._ -]+)+", re.IGNORECASE
)
_LOOP: Final = re.compile(r"\bfor \w+ in |\bwhile |\bxargs\b|\bparallel\b|\$\{?\w+|--(?:admin-)?url\s*$")
"""What says that a command is asked of several brokers, one after the other."""
_DEFAULT_PORT: Final = 8080
_LOCAL: Final = ("", "localhost")
_OF_BROKERS = (LoadReport, TopBundles, OwnedBundles, BrokerTopics, Metrics, Configuration)
_ASKED = (OwnedBundles, BrokerTopics, Configuration)
"""Pieces whose broker is the address that was asked."""
_OF_NAMESPACES = (NamespaceBundles, NamespacePolicies, AntiAffinityGroup)


def bundles_of(piece: Piece) -> Iterator[str]:
    """Yield the bundles that a piece says a broker owns, in its order."""
    if isinstance(piece, LoadReport):
        yield from last_stats(piece.report)
        listed = piece.report.get("bundles")
        yield from (name for name in (listed if isinstance(listed, list) else ()) if isinstance(name, str))
    elif isinstance(piece, OwnedBundles):
        yield from piece.bundles
    elif isinstance(piece, BrokerTopics):
        yield from (f"{ns}/{span}" for ns, spans in piece.topics.items() for span, topics in spans.items() if topics)
    elif isinstance(piece, Metrics):
        yield from piece.bundles
    elif isinstance(piece, TopBundles):
        yield from (name for name, _ in top_bundles(piece.report))


def _own_broker(piece: Piece) -> str:
    """Return the broker whose own namespace is among the bundles of a piece; empty where there is not one."""
    namespaces = (name.rpartition("/")[0] for name in bundles_of(piece))
    own = {broker for namespace in namespaces if (broker := broker_of_own_namespace(namespace))}
    return own.pop() if len(own) == 1 else ""


class Who:
    """Names the broker or namespace of pieces.

    Attributes:
        brokers: Every broker that is known, in the order of appearance.
        assumed: What was concluded from little, one sentence each.
        unknown: Pieces whose broker or namespace was not found.
    """

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self.brokers: dict[str, None] = {}
        self.assumed: dict[str, None] = {}
        self.unknown: list[Piece] = []
        self._aliases: dict[str, str] = {}
        self._pieces = pieces
        for piece in pieces:
            if isinstance(piece, Brokers):
                self.brokers |= dict.fromkeys(piece.brokers)
            elif isinstance(piece, Leader):
                self.brokers.setdefault(piece.broker)
            elif isinstance(piece, OwnershipChange) and (owner := service_unit_owner(piece.message)):
                self.brokers.setdefault(owner)

    def named(self) -> list[Piece]:
        """Return the pieces, each with its broker or namespace; those without one are `unknown`."""
        sure = self._by_advertised_host([self._by_itself(piece) for piece in self._pieces])
        sure, addresses = self._without_addresses(sure)
        for piece in sure:
            if isinstance(piece, _OF_BROKERS) and piece.broker and has_port(piece.broker):
                self.brokers.setdefault(piece.broker)
                if alias := _alias(piece):
                    self._aliases.setdefault(alias, piece.broker)
        sure = [self._by_host(piece) for piece in sure]
        found = [self._by_others(piece, sure) for piece in sure]
        self._name_the_rest(found, addresses)
        ranges = _ranges_of(found)
        return [self._with_namespace(piece, ranges) for piece in found]

    def _by_itself(self, piece: Piece) -> Piece:
        """Name a broker by what the piece says of itself, which counts before the address that was asked."""
        if not isinstance(piece, _OF_BROKERS):
            return piece
        if isinstance(piece, LoadReport) and (urls := list(web_services(piece.report))):
            wanted = (*self.brokers, piece.broker)
            return replace(piece, broker=next((url for url in urls if url in wanted), urls[0]))
        # At the local address of a pod there is the broker of the pod.
        is_pod = piece.broker.rpartition(":")[0] == "localhost" and bool(_alias(piece))
        return replace(piece, broker=_own_broker(piece) or ("" if is_pod else piece.broker))

    def _without_addresses(self, pieces: list[Piece]) -> tuple[list[Piece], list[str]]:
        """Take the broker from pieces that were asked for at an address that is not known as one: a proxy, a tunnel.

        Returns:
            The pieces, and the address that was taken from each; empty where none was.
        """
        named = {one.broker for one in pieces if isinstance(one, LoadReport)}
        named |= {broker for one in pieces if (broker := _own_broker(one))} | set(self.brokers)
        named.discard("")
        addresses = [
            piece.broker
            if named and isinstance(piece, _ASKED) and piece.broker not in named and has_port(piece.broker)
            else ""
            for piece in pieces
        ]
        made = [
            replace(piece, broker="") if address and isinstance(piece, _ASKED) else piece
            for piece, address in zip(pieces, addresses, strict=True)
        ]
        return made, addresses

    def _by_advertised_host(self, pieces: list[Piece]) -> list[Piece]:
        """Call brokers whose metrics were scraped at another address as the other pieces call them."""
        others = {one.broker for one in pieces if isinstance(one, _OF_BROKERS) and not isinstance(one, Metrics)}
        known = Hosts({*self.brokers, *filter(None, others)})
        named = {*self.brokers, *others}
        own = _own_names([one for one in pieces if isinstance(one, Metrics) and one.broker not in named])
        made: list[Piece] = []
        for piece in pieces:
            if isinstance(piece, Metrics) and piece.host and piece.broker not in named:
                broker = known.broker_of(piece.host)
                if broker in named:
                    if piece.broker and piece.broker != piece.host:
                        self.assumed[f"{piece.source}: {piece.broker} is {broker}, as its label 'broker' says."] = None
                    made.append(replace(piece, broker=broker))
                    continue
                if (name := own.get(piece.broker, "")) and name not in named:
                    self.assumed[f"{piece.source}: {piece.broker} is {name}, as its label 'broker' says."] = None
                    piece = replace(piece, broker=name)  # noqa: PLW2901 - the one that counts
            made.append(piece)
        return made

    def _by_host(self, piece: Piece) -> Piece:
        if not isinstance(piece, _OF_BROKERS) or not piece.broker or has_port(piece.broker):
            return piece
        hosts = Hosts(self.brokers)
        pods = [one for one in self.brokers if one.partition(".")[0] == piece.broker]
        broker = pods[0] if len(pods) == 1 else hosts.broker_of(piece.broker)
        if hosts.assumed:
            self.assumed[f"{piece.source} names {piece.broker} without a port; {_DEFAULT_PORT} is assumed."] = None
        if hosts.unclear:
            self.assumed[f"{piece.source} names {piece.broker}, where several brokers run."] = None
        if broker:
            self.brokers.setdefault(broker)
            if alias := _alias(piece):
                self._aliases.setdefault(alias, broker)
        return replace(piece, broker=broker)

    def _by_others(self, piece: Piece, every: Sequence[Piece]) -> Piece:
        """Name a broker by the file name, or by the bundles that other pieces say it owns."""
        if not isinstance(piece, _OF_BROKERS) or piece.broker:
            return piece
        if isinstance(piece, OwnedBundles | Metrics) and _LOOP.search(piece.source.command):  # of all of them
            return piece
        if broker := self._by_file(piece):
            return replace(piece, broker=broker)
        mine = set(bundles_of(piece))
        shared = Counter(
            other.broker
            for other in every
            if isinstance(other, _OF_BROKERS) and other.broker and mine & set(bundles_of(other))
        )
        if len(shared) == 1:
            broker = next(iter(shared))
            self.assumed[f"{piece.source} does not name its broker; it has bundles of {broker}."] = None
            return replace(piece, broker=broker)
        return piece

    def _by_file(self, piece: Piece) -> str:
        name = PurePath(piece.source.file).name
        plain = _NOT_A_NAME.sub("_", name).lower()
        ids = [one for one in self.brokers if _NOT_A_NAME.sub("_", one).lower() in plain]
        hosts = [one for one in self.brokers if _NOT_A_NAME.sub("_", one.rpartition(":")[0]).lower() in plain]
        alias = _alias(piece)
        pods = [one for one in self.brokers if alias and one.partition(".")[0].lower() == alias]
        for found in (ids, hosts, pods):
            if len(found) == 1:
                return found[0]
        return self._aliases.get(alias, "")

    def _name_the_rest(self, pieces: list[Piece], addresses: Sequence[str]) -> None:
        """Give brokers to what is left: the address asked, the only one there is, or one called like the file."""
        for at, (piece, address) in enumerate(zip(pieces, addresses, strict=True)):
            if not isinstance(piece, _OF_BROKERS) or piece.broker or isinstance(piece, Configuration):
                continue
            if address:
                self.brokers.setdefault(address)
                pieces[at] = replace(piece, broker=address)
                continue
            alias = _alias(piece)
            if _LOOP.search(piece.source.command):
                self.unknown.append(piece)
                continue
            if len(self.brokers) == 1 and (not alias or not self._aliases):
                broker = next(iter(self.brokers))
                self.assumed[f"{piece.source} does not name its broker; it is taken for {broker}."] = None
            elif not self.brokers or (alias and not isinstance(piece, LoadReport)):
                broker = f"{(alias or 'broker').lower()}:{_DEFAULT_PORT}"
                self.assumed[f"{piece.source} does not name its broker; it is called {broker} here."] = None
                self._aliases.setdefault(alias, broker)
                self.brokers.setdefault(broker)
            else:
                self.unknown.append(piece)
                continue
            pieces[at] = replace(piece, broker=broker)

    def _with_namespace(self, piece: Piece, ranges: Mapping[str, set[str]]) -> Piece:
        if not isinstance(piece, _OF_NAMESPACES) or piece.namespace:
            return piece
        given = _boundaries(piece)
        fitting = [name for name, known in ranges.items() if not given or known <= given]
        like = _like_the_file(piece, fitting)
        guess = _spelled(piece)
        if len(like) == 1:
            found, why = like[0], f"it is taken for {like[0]}"
        elif guess:
            found, why = guess, f"its file name suggests {guess}"
        elif len(fitting) == 1 and given:
            found, why = fitting[0], f"only {fitting[0]} has such bundles"
        else:
            found, why = "", ""
        if found:
            self.assumed[f"{piece.source} does not name its namespace; {why}."] = None
            return replace(piece, namespace=found)
        self.unknown.append(piece)
        return piece


def _own_names(scraped: Sequence[Metrics]) -> dict[str, str]:
    """Return how Pulsar calls the brokers at addresses: by the host that each advertises, where no other one does."""
    hosts: dict[str, set[str]] = {}
    for one in scraped:
        if one.host and has_port(one.broker):
            hosts.setdefault(one.broker, set()).add(one.host)
    named = {at: with_port(next(iter(of)), at.rpartition(":")[2]) for at, of in hosts.items() if len(of) == 1}
    times = Counter(named.values())
    return {at: name for at, name in named.items() if times[name] == 1 and name != at}


def _alias(piece: Piece) -> str:
    """Return the pod or the short name of a broker in the command, heading or file name of a piece."""
    command = piece.source.command
    given = "" if broker_in(f"x {command}").rpartition(":")[0] not in _LOCAL else command
    found = pods_in(given) or pods_in(PurePath(piece.source.file).name)
    return found[-1].lower() if found else ""


def _ranges_of(pieces: Iterable[Piece]) -> dict[str, set[str]]:
    """Return the ranges that pieces of brokers name, by namespace."""
    found: dict[str, set[str]] = {}
    for piece in pieces:
        for name in bundles_of(piece):
            if BUNDLE.fullmatch(name):
                namespace, _, span = name.rpartition("/")
                found.setdefault(namespace, set()).add(span)
    return found


def _boundaries(piece: Piece) -> set[str]:
    """Return the ranges between the boundaries that a piece of a namespace gives."""
    given: Any = None
    if isinstance(piece, NamespaceBundles):
        given = piece.bundles.get("boundaries")
    elif isinstance(piece, NamespacePolicies) and isinstance(piece.policies.get("bundles"), dict):
        given = piece.policies["bundles"].get("boundaries")
    texts = [text for text in given if isinstance(text, str)] if isinstance(given, list) else []
    return {span for low, high in pairwise(texts) if RANGE.fullmatch(span := f"{low}_{high}")}


def _like_the_file(piece: Piece, names: Sequence[str]) -> list[str]:
    """Return the namespaces whose name stands in the name of the file, the longest alone; else those that begin so."""
    stem = _NOT_A_NAME.sub("_", PurePath(piece.source.file).stem).lower()
    plain = {name: _NOT_A_NAME.sub("_", name).strip("_").lower() for name in names}
    inside = [name for name in names if re.search(rf"(?:^|_){re.escape(plain[name])}$", stem)]
    if inside:
        longest = max(len(plain[name]) for name in inside)
        return [name for name in inside if len(plain[name]) == longest]
    endings = [stem.split("_", at)[-1] for at in range(1, stem.count("_"))]
    return next(
        (found for end in endings if len(found := [name for name in names if plain[name].startswith(end)]) == 1), []
    )


def _spelled(piece: Piece) -> str:
    """Return the namespace that a file name such as `bundles.acme_orders.json` suggests; empty where it does not."""
    stem = PurePath(piece.source.file).stem
    parts = _GENERIC.sub("", stem)
    if parts == stem:
        return ""
    for sign in ("%2F", "%2f", "__", "_", "."):
        tenant, found, rest = parts.partition(sign)
        if found and NAMESPACE.fullmatch(name := f"{tenant}/{rest}"):
            return name
    return ""
