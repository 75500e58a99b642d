"""Addresses at which several brokers answer, as behind a gateway, a collector or a forwarded port.

`instance` is then one address for all of them, so that it names none. Their series are told apart by the pod, or by the
host that a broker gives as its own. Only some series have that host; others belong to the host whose series have the
same unknown labels, such as `hostname`. A pod that replaces another one at an address is not there at the same time.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from typing import Final, TypeAlias

from planner.cluster.units import HOUR_MS, MS_PER_MIN
from planner.history.assumed import Hosts, listed
from planner.history.labels import HOST, HOST_LABEL, POD_LABELS, WEB_PORT, has_port, own_host, pod_of, unpacked

_OF_PULSAR: Final = (HOST_LABEL, "metric")
"""Labels of the usage of brokers and bundles, which their other series do not have."""
OF_SCRAPES: Final = frozenset(["job", "endpoint", "service", "namespace", "container", "scrape_job", "monitor"])
"""Labels of what collects series; several of one broker are copies."""
_TAIL_MS: Final = 5 * MS_PER_MIN
"""How long Prometheus shows a series after its last sample."""

Target: TypeAlias = tuple[str, str, str, int]
"""Address, pod, the host of a broker itself, and hour."""
Targets: TypeAlias = dict[Target, tuple[int, int]]
"""First and last sample of each target, in ms."""


@lru_cache(maxsize=1 << 12)
def names_in(text: str) -> tuple[str, str]:
    """Return the pod of a series, and the host that its broker gives as its own; empty where it names none.

    Instead of a pod there may be all labels whose meaning is not known, as JSON.

    Args:
        text: What tells the series apart (`planner.history.labels.packed`).
    """
    others = unpacked(text)[1]
    labels: Mapping[str, str] = json.loads(others) if others else {}
    unknown = {name: value for name, value in sorted(labels.items()) if name not in _OF_PULSAR}
    return pod_of(labels)[0] or (json.dumps(unknown) if unknown else ""), own_host(labels)


def told_apart_by(usage: Iterable[tuple[str, Mapping[str, str]]]) -> list[str]:
    """Return the labels that tell brokers at one address apart: each of their values has each metric once.

    Nothing where no metric is there twice, because labels of a single broker prove nothing.

    Args:
        usage: Series of which a broker has one: the metric, and the labels without a meaning.
    """
    every = {(metric, tuple(sorted(labels.items()))): (metric, labels) for metric, labels in usage}.values()
    if len({metric for metric, _ in every}) == len(every):
        return []
    found = []
    for label in dict.fromkeys(label for _, labels in every for label in labels):
        pairs = {(metric, labels[label]) for metric, labels in every if labels.get(label)}
        if len(pairs) == len(every):
            found.append(label)
    return found


def is_host(name: str) -> bool:
    """Say whether a name may be that of a host, or of a broker with its port."""
    return HOST.fullmatch(name.rpartition(":")[0] if has_port(name) else name) is not None


def several_labels(address: str, labels: Sequence[str]) -> str:
    """Return the sentence about an address of several brokers that more than one label tells apart."""
    return (
        f"the series at {address or 'one address'}, the address of several brokers; each of the labels {listed(labels)}"
        f" distinguishes these. Choose one with --broker-names '{{{labels[0]}}}:{WEB_PORT}'"
    )


def _is_name(pod: str) -> bool:
    return pod != "" and not pod.startswith("{")


@lru_cache(maxsize=1 << 12)
def _value_in(text: str, label: str) -> str:
    """Return the value of a label of a series; empty where it has none."""
    others = unpacked(text)[1]
    return str(json.loads(others).get(label, "")) if others else ""


def add_target(found: Targets, address: str, text: str, times_ms: tuple[int, int], *, is_usage: bool = False) -> None:
    """Take note that series of an address were sampled.

    Args:
        found: What is known.
        address: The address.
        text: What tells the series apart.
        times_ms: First and last sample.
        is_usage: Whether they are the usage of brokers, of which each has one.
    """
    first_ms, last_ms = times_ms
    if not (is_usage or any(label in text for label in (*POD_LABELS, HOST_LABEL))) or not has_port(address):
        return
    names = names_in(text)
    if _is_name(names[0]) or names[1] or (is_usage and names[0]):
        widen(found, (address, *names, first_ms // HOUR_MS), first_ms, last_ms)


def widen(found: Targets, target: Target, first_ms: int, last_ms: int) -> None:
    """Let the time of a target reach from one sample to another one."""
    before = found.get(target, (first_ms, last_ms))
    found[target] = (min(before[0], first_ms), max(before[1], last_ms))


def unnamed_series(addresses: Iterable[str]) -> str:
    """Return the sentence about series at addresses of several brokers that name none of them."""
    return (
        f"Some series at {listed(addresses)}, the address of several brokers, do not say which of them they are of."
        " They were left out. Keep the label pod, or scrape each broker at its own address."
    )


class Gateways:
    """The addresses at which several brokers answered at one time.

    Args:
        targets: What was sampled there.

    Attributes:
        unclear: Addresses with series that name no broker.
        several: Labels each of which tells the brokers of an address apart, where there is more than one.
    """

    def __init__(self, targets: Targets) -> None:
        self.unclear: dict[str, None] = {}
        self.several: dict[str, tuple[str, ...]] = {}
        self._labels: dict[str, str] = {}
        times: dict[tuple[str, bool], dict[str, list[tuple[int, int]]]] = {}
        hosts: dict[tuple[str, str], set[str]] = {}
        for (address, pod, host, _), time_ms in sorted(targets.items()):
            for name, is_pod in ((pod, True), (host, False)):
                if name and not (is_pod and not _is_name(name)):
                    times.setdefault((address, is_pod), {}).setdefault(name, []).append(time_ms)
            if pod and host:
                hosts.setdefault((address, pod), set()).add(host)
        self.brokers: dict[str, tuple[str, ...]] = {}
        for (address, is_pod), of_names in sorted(times.items()):
            if is_pod or (address, True) not in times:
                together = dict.fromkeys(name for pair in _together(of_names) for name in pair)
                if together:
                    self.brokers[address] = tuple(together)
        self._hosts = {key: next(iter(found)) for key, found in hosts.items() if len(found) == 1}
        self._by_labels(targets)

    def _by_labels(self, targets: Targets) -> None:
        """Tell brokers apart by a label without a meaning, where there is a single one that does."""
        usage: dict[str, dict[str, list[tuple[int, int]]]] = {}
        places: dict[tuple[str, str], set[str]] = {}
        for (address, text, host, _), time_ms in sorted(targets.items()):
            if text and not _is_name(text) and not host:
                usage.setdefault(address, {}).setdefault(text, []).append(time_ms)
                for pair in json.loads(text).items():
                    places.setdefault(pair, set()).add(address)
        for address, times in usage.items():
            both = [pair for pair in _together(times) if address not in self.brokers]
            sources = {text: json.loads(text) for pair in both for text in pair}
            labels = [
                label
                for label in told_apart_by(("", found) for found in sources.values())
                if label not in OF_SCRAPES
                and all(len(places[label, one[label]]) == 1 and is_host(one[label]) for one in sources.values())
            ]
            if len(labels) == 1:
                self._labels[address] = labels[0]
                self.brokers[address] = tuple(one[labels[0]] for one in sources.values())
            elif labels:
                self.several[address] = tuple(labels)

    def name_of(self, address: str, text: str) -> str:
        """Return the broker, host or pod of a series at an address; empty where it does not say which one of them."""
        if address in self.several:
            return ""
        if address not in self.brokers:
            return address
        pod, host = names_in(text)
        label = self._labels.get(address)
        found = (
            _value_in(text, label) if label else host or self._hosts.get((address, pod), pod if _is_name(pod) else "")
        )
        if not found:
            self.unclear[address] = None
        return found

    def notes(self, hosts: Hosts) -> Iterator[str]:
        """Yield what there is to know about these addresses, one sentence each."""
        for address, names in self.brokers.items():
            called = dict.fromkeys(hosts.broker_of(self._hosts.get((address, name), name)) or name for name in names)
            by = (
                f"The label {self._labels[address]} distinguishes"
                if address in self._labels
                else "Their pods or hosts distinguish"
            )
            yield f"{address} is the address of several brokers: {listed(called)}. {by} them."
        for address, labels in self.several.items():
            yield f"Not placed: {several_labels(address, labels)} and --prometheus, or export it as the label pod."
        if self.unclear:
            yield unnamed_series(self.unclear)


def _together(times: Mapping[str, list[tuple[int, int]]]) -> Iterator[tuple[str, str]]:
    """Yield pairs of names that were there at the same time for most of the time of one of them."""
    for one, other in combinations(times, 2):
        both = _overlap_ms(times[one], times[other])
        if both <= _TAIL_MS and _follow(times[one], times[other]):
            continue
        if both >= 0 and 2 * both >= min(_length_ms(times[one]), _length_ms(times[other])):
            yield one, other


def _follow(one: Iterable[tuple[int, int]], other: Iterable[tuple[int, int]]) -> bool:
    """Say whether one begins and ends before the other does by more than a scrape, as a pod that is replaced."""
    (first, last), (begun, ended) = _span_ms(one), _span_ms(other)
    begins, ends = begun - first, ended - last
    return min(abs(begins), abs(ends)) >= MS_PER_MIN and (begins > 0) == (ends > 0)


def _span_ms(times: Iterable[tuple[int, int]]) -> tuple[int, int]:
    starts, stops = zip(*times, strict=True)
    return min(starts), max(stops)


def _length_ms(times: Iterable[tuple[int, int]]) -> int:
    return sum(last - first for first, last in times)


def _overlap_ms(one: Iterable[tuple[int, int]], other: Iterable[tuple[int, int]]) -> int:
    """Return how long two lists of times have in common; below 0 where they have no moment."""
    common = [min(a[1], b[1]) - max(a[0], b[0]) for a in one for b in other]
    shared = [length for length in common if length >= 0]
    return sum(shared) if shared else -1
