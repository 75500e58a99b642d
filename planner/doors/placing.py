"""Places topics of which only the name is known into bundles, as Pulsar hashes them.

Metrics name a topic and its broker, not its bundle. Boundaries are those that other pieces give; of a namespace that no
other piece mentions the default number of bundles is assumed, and more where several brokers serve topics of one.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from planner.cluster.errors import FormatError
from planner.cluster.hashing import topic_hashes
from planner.cluster.pulsar_json import Json
from planner.cluster.ranges import FULL_HIGH, bundles_of_hashes, equal_boundaries, format_range, parse_range
from planner.cluster.releases import Release
from planner.cluster.topic_names import namespace_of_topic
from planner.history.assumed import cuts

Topics = Mapping[str, Json]
"""Statistics of topics by full name."""


@dataclass
class Placed:
    """Topics of brokers in bundles.

    Attributes:
        topics: By broker, namespace and range.
        boundaries: Boundaries of each namespace, assumed or not.
        assumed: Namespaces whose number of bundles is assumed.
        divided: Namespaces of which brokers prove that they have more bundles than assumed.
        nameless: How many topics have a name that the release does not accept.
        of_no_bundle: How many topics have a hash for which Pulsar finds no bundle.
    """

    topics: dict[str, dict[str, dict[str, dict[str, Json]]]] = field(default_factory=dict)
    boundaries: dict[str, tuple[int, ...]] = field(default_factory=dict)
    assumed: dict[str, None] = field(default_factory=dict)
    divided: dict[str, None] = field(default_factory=dict)
    nameless: int = 0
    of_no_bundle: int = 0


def edges_of(spans: Iterable[str]) -> tuple[int, ...]:
    """Return the boundaries of a namespace of which some ranges are known; what lies between them is one bundle."""
    edges = {0, FULL_HIGH}
    for span in spans:
        edges |= set(parse_range(span))
    return tuple(sorted(edges))


def place(
    of_brokers: Mapping[str, Topics],
    known: Mapping[str, tuple[int, ...]],
    bundles: int,
    release: Release,
) -> Placed:
    """Place topics.

    Args:
        of_brokers: Topics by broker.
        known: Boundaries by namespace, where they are known.
        bundles: Number of bundles of a namespace of which none is known.
        release: Whose names of topics count.
    """
    placed = Placed()
    by_namespace: dict[str, list[tuple[str, str]]] = {}
    for broker, topics in of_brokers.items():
        for name in topics:
            try:
                by_namespace.setdefault(namespace_of_topic(name, release), []).append((broker, name))
            except FormatError:
                placed.nameless += 1
    for namespace, rows in by_namespace.items():
        _place_namespace(placed, namespace, rows, of_brokers, known.get(namespace), bundles)
    return placed


def _place_namespace(
    placed: Placed,
    namespace: str,
    rows: list[tuple[str, str]],
    of_brokers: Mapping[str, Topics],
    known: tuple[int, ...] | None,
    bundles: int,
) -> None:
    hashes = topic_hashes((name.encode() for _, name in rows), len(rows)).astype(np.int64)
    edges = np.array(equal_boundaries(bundles) if known is None else known, dtype=np.int64)
    if known is None:
        placed.assumed[namespace] = None
        numbers = {broker: at for at, broker in enumerate(dict.fromkeys(broker for broker, _ in rows))}
        owner = np.array([numbers[broker] for broker, _ in rows], dtype=np.int64)
        inside = bundles_of_hashes(edges, hashes)
        fits = inside < len(edges) - 1
        more = [edge for _, edge in cuts(inside[fits], hashes[fits], owner[fits], np.ones(len(edges) - 1, dtype=bool))]
        if more:
            placed.divided[namespace] = None
            edges = np.unique(np.concatenate((edges, np.array(more, dtype=np.int64))))
    placed.boundaries[namespace] = tuple(edges.tolist())
    spans = [format_range(low, high) for low, high in pairwise(edges.tolist())]
    for (broker, name), at in zip(rows, bundles_of_hashes(edges, hashes).tolist(), strict=True):
        if at >= len(spans):
            placed.of_no_bundle += 1
            continue
        of_bundle = placed.topics.setdefault(broker, {}).setdefault(namespace, {}).setdefault(spans[at], {})
        of_bundle[name] = of_brokers[broker][name]
