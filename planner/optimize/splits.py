"""Splits as moves: a bundle that alone is the limit is cut by its topics' hashes and rates, or a topic is named."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.cluster.arrays import FloatArray, Int64Array
from planner.cluster.hashing import partitioned_topic
from planner.cluster.partitions import partitions_of, skewed
from planner.cluster.ranges import bundle_name, dividing_boundary, middle_of
from planner.cluster.snapshot import Snapshot
from planner.cluster.tables import TRAFFIC_COLUMNS
from planner.simulate.assumptions import Assumptions
from planner.simulate.cluster import Cluster

_ALL = 0.9
"""Share of a bundle's load that one topic has when cutting the bundle is of no use."""


@dataclass(frozen=True, slots=True)
class Split:
    """A bundle that is cut in two before anything moves; its children stay where they are until they move.

    Attributes:
        bundle: Full name.
        broker: Who serves it.
        boundary: Where it is cut.
        children: Full names of the two parts.
        why: One sentence.
    """

    bundle: str
    broker: str
    boundary: int
    children: tuple[str, str]
    why: str


def with_splits(snapshot: Snapshot, splits: Sequence[Split]) -> Snapshot:
    """Return a cluster with bundles cut; each topic brings its own load along."""
    cluster = Cluster(snapshot, Assumptions(), snapshot.info.load_manager, snapshot.settings)
    for split in splits:
        cluster.split(cluster.bundle(split.bundle), [split.boundary])
    return replace(cluster.snapshot(snapshot.info.captured_at_ms), settings=snapshot.settings, info=snapshot.info)


def _topic_shares(snapshot: Snapshot, bundle: int) -> tuple[Int64Array, FloatArray]:
    """Return the topics of a bundle in the order of their hashes, and the share of its traffic that each has."""
    topics = snapshot.topics
    members = topics.of_bundle(bundle)
    members = members[np.argsort(topics.hash[members], kind="stable")]
    rates = np.array([getattr(topics, name)[members] for name in TRAFFIC_COLUMNS])
    messages, size = rates[:2].sum(axis=0), rates[2:].sum(axis=0)
    weight = sum(part / part.sum() for part in (messages, size) if part.sum() > 0)
    total = np.sum(weight)
    return members, np.asarray(weight / total if total > 0 else np.zeros(len(members)), dtype=np.float64)


def cut(snapshot: Snapshot, bundle: int, usage: float) -> Split | None:
    """Return the cut that halves the traffic of a bundle best; None where one topic is nearly all of it.

    Args:
        snapshot: The cluster.
        bundle: Position of the bundle.
        usage: What it alone makes of the broker that suits it best (1.0 = 100 %).
    """
    table = snapshot.bundles
    low, high = int(table.low[bundle]), int(table.high[bundle])
    space = snapshot.namespaces[table.namespace[bundle]]
    boundary = middle_of(low, high)
    members, share = _topic_shares(snapshot, bundle)
    how = "it in the middle, because the snapshot lists none of its topics"
    if len(members) and share.sum() > 0:
        hashes = snapshot.topics.hash[members].astype(np.int64)
        middle = dividing_boundary(hashes, share)
        if middle is None or share.max() > _ALL:
            return None
        boundary = middle
        how = f"it so that the first child has {share[hashes < boundary].sum() * 100:.0f} % of its traffic"
    elif table.topics[bundle] == 1:  # it is not listed
        return None
    if not low < boundary < high:
        return None
    owner = int(table.owner[bundle])
    return Split(
        snapshot.bundle_names[bundle],
        snapshot.brokers.name[owner] if owner >= 0 else "",
        boundary,
        (bundle_name(space, low, boundary), bundle_name(space, boundary, high)),
        f"alone it uses {usage * 100:.1f} % of the broker that suits it best; split {how}",
    )


def topic_limit(snapshot: Snapshot, bundle: int, usage: float, target: float) -> str:
    """Return the sentence about a topic that alone is the limit, with the number of partitions that would do.

    Args:
        snapshot: The cluster.
        bundle: Position of its bundle.
        usage: What the bundle alone makes of the broker that suits it best (1.0 = 100 %).
        target: Usage that could be reached without it.
    """
    members, share = _topic_shares(snapshot, bundle)
    part, now = 1.0, 0
    if not len(members) and snapshot.bundles.topics[bundle] == 1:
        topic = f"the only topic of {snapshot.bundle_names[bundle]}, which is not listed"
    elif len(members) and share.max() > _ALL:
        row, part = int(members[int(share.argmax())]), float(share.max())
        name = str(snapshot.topics.name[row].as_py())
        topic = f"the topic {name}"
        siblings = partitions_of(snapshot.topics, base) if (base := partitioned_topic(name)) != name else members[:0]
        now = len(siblings)
        if skewed(snapshot.topics.throughput_bytes_per_s(siblings)):
            topic = f"{name}, which has far more than its share of {now} partitions"
            return (
                f"The lower bound is {usage * 100:.1f} % because of {topic}. More partitions help only if keys spread:"
                " look for a hot key, or use a larger broker."
            )
    else:
        return ""
    parts = max(math.ceil(usage * part / max(target, 0.01)), 2) * max(now, 1)
    instead = f" instead of {now}" if now else ""
    return (
        f"The lower bound is {usage * 100:.1f} % because of {topic}. Use at least {parts} partitions{instead} for this"
        " topic, or a larger broker."
    )
