"""Which broker and which cluster metrics are of where their address does not say it, as behind a gateway.

`instance` is one address then. Pods tell brokers apart. So does another label, if usage proves that there are several
brokers, each value of the label has the usage of one broker, and the values share no topics. Values that share most of
their topics are copies of one broker, as of two jobs that scrape it. Values with several addresses each are clusters.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from planner.cluster.pulsar_json import BUNDLE_METRICS, USAGE_METRICS
from planner.cluster.text import count
from planner.doors.metrics_reader import VALID_MS
from planner.doors.pieces import Assumed, Metrics, NotUsed, Piece, Source
from planner.history.assumed import listed
from planner.history.gateways import OF_SCRAPES, is_host, several_labels, told_apart_by, unnamed_series
from planner.history.labels import POD_LABELS, BrokerRule
from planner.history.prometheus import TOPIC_METRICS

_NAMED: Final = frozenset(["instance", *POD_LABELS])
"""Labels with a meaning of their own."""
_OF_CLUSTERS: Final = re.compile(r"(?:^|_)(?:cluster|tenant|env|environment)(?:_|$)")
_METRIC_OF: Final = {column: name for table in (BUNDLE_METRICS, TOPIC_METRICS) for name, column in table.items()}

_SEVERAL: Final = 2

_Address: TypeAlias = tuple[str, str]
"""Cluster, and address."""


@dataclass
class _Behind:
    """Pieces, and what was concluded about them or left out, one sentence each."""

    pieces: list[Piece]
    assumed: dict[str, Source] = field(default_factory=dict)
    left: list[NotUsed] = field(default_factory=list)


def named_by_labels(pieces: Sequence[Piece], rules: Sequence[BrokerRule] = ()) -> list[Piece]:
    """Name metrics by the rules, else by their pods or another label, where several brokers have one address.

    Args:
        pieces: All pieces.
        rules: Make the name of a broker of labels; the first whose labels there are counts.

    Returns:
        The pieces, and what is assumed or left out.
    """
    made = _Behind(list(pieces))
    if rules:
        made.pieces = [_by_rule(made, one, rules) if isinstance(one, Metrics) else one for one in pieces]
    _name_clusters(made)
    for address, found in _by_address(made.pieces).items():
        _name_brokers(made, address, found)
    _merge(made)
    return [*made.pieces, *(Assumed(source=at, text=text) for text, at in made.assumed.items()), *made.left]


def _by_rule(made: _Behind, one: Metrics, rules: Sequence[BrokerRule]) -> Metrics:
    labels = {"instance": one.broker, "broker": one.host, "cluster": one.cluster, **one.labels}
    if broker := next(filter(None, (rule.of(labels) for rule in rules)), ""):
        return replace(one, broker=broker, pod="", host="")
    made.assumed[f"{one.source}: some series have none of the labels of --broker-names."] = one.source
    return one


def _by_address(pieces: Iterable[Piece]) -> dict[_Address, list[Metrics]]:
    """Return the metrics of each address that are not older than the newest ones there."""
    found: dict[_Address, list[Metrics]] = {}
    for one in pieces:
        if isinstance(one, Metrics):
            found.setdefault((one.cluster, one.broker), []).append(one)
    newest_ms = {address: max(one.at_ms for one in metrics) for address, metrics in found.items()}
    return {
        address: [one for one in metrics if one.at_ms >= newest_ms[address] - VALID_MS]
        for address, metrics in found.items()
    }


def _name_clusters(made: _Behind) -> None:
    """Take a label for the cluster whose values are at several addresses, or that is called so and parts clusters."""
    addresses = _by_address(made.pieces)
    metrics = [one for found in addresses.values() for one in found]
    apart = dict.fromkeys(label for found in addresses.values() for label in _labels_apart(found))
    addresses_of = {label: _addresses_of(metrics, label).values() for label in apart}
    names_brokers = any(all(len(at) == 1 for at in found) for found in addresses_of.values())
    wanted = [label for label, found in addresses_of.items() if not names_brokers and all(len(at) > 1 for at in found)]
    called_so = dict.fromkeys(label for one in metrics for label in one.labels if _OF_CLUSTERS.search(label))
    wanted = [label for label in called_so if label in wanted or _parts_clusters(metrics, label)] or wanted
    if not wanted:
        return
    label = wanted[0]
    values = dict.fromkeys(value for one in metrics if (value := one.labels.get(label)))
    made.assumed[f"The label {label} is taken for the name of the cluster: {listed(values)}."] = metrics[0].source
    made.pieces = [
        replace(one, cluster=value) if isinstance(one, Metrics) and (value := one.labels.get(label)) else one
        for one in made.pieces
    ]


def _addresses_of(metrics: Iterable[Metrics], label: str) -> dict[str, set[str]]:
    """Return the addresses with usage of each value of a label."""
    found: dict[str, set[str]] = {}
    for one in metrics:
        if (value := one.labels.get(label)) and _usage(one):
            found.setdefault(value, set()).add(one.broker)
    return found


def _parts_clusters(metrics: Sequence[Metrics], label: str) -> bool:
    """Say whether two values of a label are at one address, or name one topic or bundle: in a cluster one broker does.

    No, if they are copies, or if Pulsar's own names of the clusters differ.
    """
    served = _served(metrics, label)
    if len(served) < _SEVERAL or len({one.cluster for one in metrics}) > 1 or _are_copies(served):
        return False
    shared = Counter(name for names in served.values() for name in names)
    at = Counter(broker for found in _addresses_of(metrics, label).values() for broker in found)
    return max([*shared.values(), *at.values()], default=0) > 1


def _labels_apart(found: Sequence[Metrics]) -> list[str]:
    """Return the labels that tell the sources of usage at one address apart, and are not those of copies."""
    rows = [(name, _unknown(one)) for one in found for name in _usage(one)]
    return [label for label in told_apart_by(rows) if not _are_copies(_served(found, label))]


def _usage(one: Metrics) -> list[str]:
    return [name for name, *_ in one.plain if name in USAGE_METRICS.values()]


def _unknown(one: Metrics) -> dict[str, str]:
    return {label: value for label, value in one.labels.items() if label not in _NAMED}


def _served(metrics: Iterable[Metrics], label: str) -> dict[str, set[str]]:
    """Return the topics and bundles of each value of a label."""
    found: dict[str, set[str]] = {}
    for one in metrics:
        if value := one.labels.get(label):
            found.setdefault(value, set()).update(one.topics, one.bundles)
    return found


def _are_copies(served: Mapping[str, set[str]]) -> bool:
    """Say whether two of several sources have most of their topics and bundles in common."""
    filled = [names for names in served.values() if names]
    return any(
        2 * len(one & other) > min(len(one), len(other)) for at, one in enumerate(filled) for other in filled[:at]
    )


def _name_brokers(made: _Behind, address: _Address, found: Sequence[Metrics]) -> None:
    """Name the metrics of an address at which several brokers answer."""
    pods = {one.pod for one in found if one.pod}
    if len(pods) > 1:
        _rename(made, address, lambda one: one.pod)
        return
    metrics = [one for one in made.pieces if isinstance(one, Metrics) and one.cluster == address[0]]
    labels = [
        label
        for label in _labels_apart(found)
        if _may_name_brokers(found, label) and all(len(at) == 1 for at in _addresses_of(metrics, label).values())
    ]
    if len(labels) == 1:
        (label,) = labels
        names = dict.fromkeys(one.labels[label] for one in found if label in one.labels)
        made.assumed[
            f"{address[1] or 'One address'} is the address of several brokers: {listed(names)}. The label {label}"
            " distinguishes them."
        ] = found[0].source
        _rename(made, address, lambda one: one.labels.get(label, ""))
    elif labels:
        _leave_out(made, address, several_labels(address[1], labels))


def _may_name_brokers(found: Sequence[Metrics], label: str) -> bool:
    if label in OF_SCRAPES and not any(_served(found, label).values()):
        return False
    return all(is_host(value) for one in found if (value := one.labels.get(label)))


def _rename(made: _Behind, address: _Address, name_of: Callable[[Metrics], str]) -> None:
    kept: list[Piece] = []
    for one in made.pieces:
        if not isinstance(one, Metrics) or (one.cluster, one.broker) != address:
            kept.append(one)
        elif name := name_of(one):
            kept.append(replace(one, broker=name))
        else:
            made.assumed[unnamed_series([address[1]])] = one.source
    made.pieces = kept


def _leave_out(made: _Behind, address: _Address, why: str) -> None:
    there = [one for one in made.pieces if isinstance(one, Metrics) and (one.cluster, one.broker) == address]
    gone = {id(one) for one in there}
    made.pieces = [one for one in made.pieces if id(one) not in gone]
    made.left.append(NotUsed(source=there[0].source, why=f"left out: {why}"))


def _merge(made: _Behind) -> None:
    """Put metrics of one text together that differ only in labels without a meaning; the last value counts."""
    places: dict[tuple[Source, str, str], dict[str, list[Metrics]]] = {}
    for one in made.pieces:
        if isinstance(one, Metrics):
            pods = places.setdefault((one.source, one.cluster, one.broker), {})
            pods.setdefault(one.pod, []).append(one)
    groups: list[list[Metrics]] = []
    for pods in places.values():
        if len(pods.keys() - {""}) > 1:  # one after the other
            groups += pods.values()
        else:
            groups.append([one for found in pods.values() for one in found])
    merged = {id(found[0]): _merged(made, found) for found in groups}
    made.pieces = [merged.get(id(one), one) for one in made.pieces if not isinstance(one, Metrics) or id(one) in merged]


def _merged(made: _Behind, found: Sequence[Metrics]) -> Metrics:
    first = found[0]
    if len(found) == 1:
        return first
    again: Counter[str] = Counter()
    plain: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
    tables: dict[str, dict[str, dict[str, float]]] = {"bundles": {}, "topics": {}}
    totals: dict[str, float] = {}
    for one in found:
        for name, labels, value in one.plain:
            again[name] += plain.get(key := (name, tuple(labels.items())), value) != value
            plain[key] = value
        for what, table in tables.items():
            for name, values in getattr(one, what).items():
                row = table.setdefault(name, {})
                again.update(_METRIC_OF.get(key, key) for key, value in values.items() if row.get(key, value) != value)
                row.update(values)
        totals.update(one.totals)
    if again.total():
        made.left.append(NotUsed(source=first.source, why=differing(again)))
    return replace(
        first,
        pod=next((one.pod for one in found if one.pod), ""),
        host=next((one.host for one in found if one.host), ""),
        at_ms=max(one.at_ms for one in found),
        plain=[(name, dict(labels), value) for (name, labels), value in plain.items()],
        totals=totals,
        bundles=tables["bundles"],
        topics=tables["topics"],
    )


def differing(again: Mapping[str, int]) -> str:
    """Return the sentence about values that are said otherwise as well, by their metric."""
    metrics = [name for name, times in again.items() if times]
    return (
        f"{count(sum(again.values()), 'value')} of {listed(metrics)} differ from another one of the same broker, bundle"
        " or topic; the last one counts. Their labels may tell tenants or servers apart"
    )
