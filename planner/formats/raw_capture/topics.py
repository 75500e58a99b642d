"""The topics of a raw capture: those that brokers report with their rates, and those that namespaces list."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from planner.cluster.hashing import partition_index, topic_hashes
from planner.cluster.pulsar_json import RATES, TopicStats, bundles_of_topics
from planner.cluster.tables import BundleTable, TopicTable, make_topics
from planner.formats.raw_capture.answers import Answers
from planner.formats.raw_capture.identity import CapturedBrokers
from planner.formats.rows import bundle_of_topics

_LISTING = r"/admin/v2/(?:non-)?persistent/([^/]+/[^/]+)"


@dataclass(frozen=True, slots=True)
class ServedTopic:
    """A topic that a broker has loaded.

    Attributes:
        broker: The broker.
        bundle: Full name of the bundle that it reports the topic under.
        stats: What it reports.
    """

    broker: str
    bundle: str
    stats: TopicStats


def read_topic_stats(answers: Answers, brokers: CapturedBrokers) -> dict[str, ServedTopic]:
    """Return what brokers report about their topics, by full topic name; the first broker that reports one counts.

    Raises:
        FormatError: A value is no number.
    """
    found: dict[str, ServedTopic] = {}
    for broker, tag in brokers.aliases.items():
        stem = f"topics.{tag}"
        reported = answers.json(stem, dict, f"Rates of the topics of {broker} are unknown.")
        answers.forget(stem)
        twice = 0
        for namespace, span, topics in bundles_of_topics(reported):
            for name, stats in topics:
                twice += name in found
                read = TopicStats.of(stats, f"{stem}: {name}")
                found.setdefault(name, ServedTopic(broker, f"{namespace}/{span}", read))
        if twice:
            answers.warn(
                f"{stem}: {twice} topics moved during the capture. They are shown as the other broker reports them."
            )
    return found


def _listed(answers: Answers) -> Iterator[str]:
    """Yield the topics that namespaces list, partitions one by one."""
    for stem, (namespace,) in answers.asked(_LISTING):
        for name in answers.json(stem, list, f"Topics of {namespace} that no broker has loaded are missing.") or ():
            if isinstance(name, str):
                yield name


def _without_partitions(answers: Answers, names: Sequence[str]) -> int:
    """Count the partitioned topics of which no partition is known."""
    bases = {name.rpartition("-partition-")[0] for name in names if partition_index(name) >= 0}
    partitioned = {
        name
        for stem, _ in answers.asked(f"{_LISTING}/partitioned")
        for name in answers.json(stem, list) or ()
        if isinstance(name, str)
    }
    return len(partitioned - bases)


def make_topic_table(
    answers: Answers, served: Mapping[str, ServedTopic], bundles: BundleTable, namespaces: Sequence[str]
) -> TopicTable:
    """Build the topic table: reported topics with their rates, then listed ones without."""
    names = list(dict.fromkeys([*served, *_listed(answers)]))
    if unknown := _without_partitions(answers, names):
        answers.warn(f"{unknown} partitioned topics have no partition in the capture. They were left out.")
    hashes = topic_hashes((name.encode() for name in names), len(names))
    inside = bundle_of_topics(names, hashes, bundles, namespaces)
    known = np.flatnonzero(inside >= 0)
    if len(known) < len(names):
        answers.warn(f"{len(names) - len(known)} topics are not in any captured bundle. They were left out.")
    kept = [names[row] for row in known.tolist()]
    found = [served.get(name) for name in kept]
    reported = [topic.stats if topic else None for topic in found]
    rates = {column: [s.rates[i] if s else 0.0 for s in reported] for i, column in enumerate(RATES.values())}
    return make_topics(
        hashes[known],
        name=pa.array(kept, type=pa.large_string()),
        bundle=inside[known],
        producers=[s.producers if s else 0 for s in reported],
        consumers=[s.consumers if s else 0 for s in reported],
        has_stats=[s is not None for s in reported],
        **rates,
    )
