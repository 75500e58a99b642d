"""What a split algorithm is asked about a bundle of a snapshot."""

import numpy as np

from planner.cluster.snapshot import Snapshot
from planner.pulsar.splitting.protocol import SplitRequest


def split_request(
    snapshot: Snapshot,
    bundle: int,
    *,
    positions: tuple[int, ...] | None = None,
    force: bool = False,
    listed: bool | None = None,
) -> SplitRequest:
    """Return the request for a bundle, with the topics that the snapshot lists in it.

    When the snapshot does not list topics, neither does the request (`topic_hashes` is None); that is not the same as a
    bundle without topics.

    Args:
        snapshot: The cluster.
        bundle: Position of the bundle.
        positions: Boundaries asked for.
        force: Cut even when there are fewer than two topics.
        listed: Whether the snapshot lists the topics; None to find out.
    """
    table = snapshot.topics
    rows = table.of_bundle(bundle)
    known = topics_listed(snapshot) if listed is None else listed
    return SplitRequest(
        low=int(snapshot.bundles.low[bundle]),
        high=int(snapshot.bundles.high[bundle]),
        topic_hashes=table.hash[rows].astype(np.int64) if known else None,
        has_stats=table.has_stats[rows],
        msg_rate_per_s=table.msg_rate_per_s(rows),
        throughput_bytes_per_s=table.throughput_bytes_per_s(rows),
        positions=positions,
        force=force,
    )


def topics_listed(snapshot: Snapshot) -> bool:
    """Say whether a snapshot lists topics, or has none to list."""
    return len(snapshot.topics) > 0 or not snapshot.bundles.topics.any()


def namespace_boundaries(snapshot: Snapshot, namespace: int) -> tuple[int, ...]:
    """Return the boundaries of a namespace, ascending."""
    rows = np.flatnonzero(snapshot.bundles.namespace == namespace)
    edges = np.union1d(snapshot.bundles.low[rows], snapshot.bundles.high[rows])
    return tuple(edges.tolist())
