"""Bundles that Pulsar keeps for itself: they are never advised on, nor counted as harm.

Those of `pulsar/system`, which holds the load manager's own topics, and of the heartbeats and monitors of each broker,
which come and go with it.
"""

from functools import cache

import numpy as np

from planner.cluster.arrays import BoolArray
from planner.cluster.internal_namespaces import is_system_service_namespace
from planner.cluster.releases import Release
from planner.cluster.snapshot import Snapshot

_is_internal = cache(is_system_service_namespace)


def internal_bundles(snapshot: Snapshot) -> BoolArray:
    """Return which bundles Pulsar keeps for itself, by the release of the snapshot. Shape (bundles,)."""
    release = snapshot.settings.release
    spaces = np.array([_is_internal(name, release) for name in snapshot.namespaces], dtype=np.bool_)
    internal: BoolArray = spaces[snapshot.bundles.namespace] if len(spaces) else np.zeros(0, dtype=np.bool_)
    return internal


def internal_topics(snapshot: Snapshot) -> BoolArray:
    """Return which topics are in such bundles. Shape (topics,)."""
    bundle, internal = snapshot.topics.bundle, internal_bundles(snapshot)
    if not len(internal):
        return np.zeros(len(bundle), dtype=np.bool_)
    found: BoolArray = (bundle >= 0) & internal[bundle]
    return found


def is_internal_bundle(bundle: str, release: Release) -> bool:
    """Say whether Pulsar keeps a bundle for itself, by its full name."""
    return _is_internal(bundle.rpartition("/")[0], release)
