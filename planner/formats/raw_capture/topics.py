"""The topics of a raw capture: those that brokers report with their rates, and those that namespaces list."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from planner.cluster.hashing import partition_index, topic_hashes
from planner.cluster.pulsar_json import RATES, TopicStats, bundles_of_topics, host_and_port
from planner.cluster.tables import BundleTable, TopicTable, make_topics
from planner.formats.raw_capture.answers import Answers
from planner.formats.raw_capture.identity import OTHER_ANSWERED, CapturedBrokers
from planner.formats.rows import bundle_of_topics

_LISTING = r"/admin/v2/(?:non-)?persistent/([^/]+/[^/]+)"


@dataclass(frozen=True, slots=True)
class ServedTopic:
    """A topic that a broker has loaded.

    Attributes:
        broker: The broker; empty where nothing shows which one answered.
        bundle: Full name of the bundle that it reports the topic under.
        stats: What it reports.
    """

    broker: str
    bundle: str
    stats: TopicStats


def read_topic_stats(
    answers: Answers, brokers: CapturedBrokers, claims: Mapping[str, Iterable[str]]
) -> dict[str, ServedTopic]:
    """Return what brokers report about their topics, by full topic name; the first broker that reports one counts.

    The answer does not name its broker, and behind one address another one than was meant may give it. The owners of
    the bundles in it tell.

    Args:
        answers: The capture.
        brokers: Its brokers.
        claims: Bundles that each broker owns, as others than this answer say.

    Raises:
        FormatError: A value is no number.
    """
    found: dict[str, ServedTopic] = {}
    owners = {name: broker for broker, names in claims.items() for name in names}
    for broker, tag in brokers.aliases.items():
        stem = f"topics.{tag}"
        reported = answers.json(stem, dict, f"Rates of the topics of {broker} are unknown.")
        answers.forget(stem)
        votes = Counter(owners.get(f"{namespace}/{span}", "") for namespace, span, _ in bundles_of_topics(reported))
        server = _who_answered(answers, stem, broker, votes)
        twice = 0
        for namespace, span, topics in bundles_of_topics(reported):
            for name, stats in topics:
                twice += name in found
                read = TopicStats.of(stats, f"{stem}: {name}")
                found.setdefault(name, ServedTopic(server, f"{namespace}/{span}", read))
        if twice and server == broker:
            answers.warn(
                f"{stem}: {twice} topics moved during the capture. They are shown as the other broker reports them."
            )
    return found


def _who_answered(answers: Answers, stem: str, broker: str, votes: Mapping[str, int]) -> str:
    """Return the broker whose topics an answer has, and say so where it is not the one that was meant.

    Args:
        answers: The capture.
        stem: The answer.
        broker: Who was meant.
        votes: How many of the bundles in the answer each broker owns; those of nobody under an empty name.
    """
    others = {name: count for name, count in votes.items() if name and name != broker}
    if votes.get(broker) or not votes:
        return broker
    if others:
        other = max(others, key=lambda name: others[name])
        answers.warn(
            f"{stem} has bundles of {other} and none of {broker}: {OTHER_ANSWERED}. Rates of topics of {broker} are "
            "unknown."
        )
        return other
    asked = answers.asked_at(stem)
    if not asked or host_and_port(asked) == broker:
        return broker
    answers.warn(
        f"{stem}: nothing shows that {broker} answered at {asked}. Bundles that only this answer has are shown as "
        "unowned."
    )
    return ""


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
