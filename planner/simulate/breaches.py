"""Bundles on brokers that their own isolation policy excludes."""

import numpy as np

from planner.cluster.arrays import Int64Array
from planner.cluster.internal_bundles import internal_bundles
from planner.cluster.snapshot import Snapshot
from planner.pulsar.load.namespace_policies import isolation_policy
from planner.pulsar.placement.filters import isolate


def breaches(snapshot: Snapshot) -> Int64Array:
    """Return the positions of the bundles that a broker serves against the isolation policy of their namespace.

    Secondary brokers are no breach: Pulsar itself uses them. Neither is a namespace without a policy on a broker that
    other policies list, nor a policy that matches no broker at all, as no move could heed it. Bundles that Pulsar
    keeps for itself are left out. Shape (found,), ascending.
    """
    if not snapshot.policies.isolation:
        return np.empty(0, dtype=np.int64)
    names, bundles = snapshot.brokers.name, snapshot.bundles
    excluded = np.zeros((len(snapshot.namespaces), len(names)), dtype=np.bool_)
    for at, namespace in enumerate(snapshot.namespaces):
        if isolation_policy(snapshot.policies, namespace) is None:
            continue
        rule = isolate(snapshot.policies, namespace, names, lambda _: True)
        allowed = {*rule.primary, *rule.secondary}
        excluded[at] = [bool(allowed) and name not in allowed for name in names]
    owned = np.flatnonzero((bundles.owner >= 0) & ~internal_bundles(snapshot))
    found: Int64Array = owned[excluded[bundles.namespace[owned], bundles.owner[owned]]].astype(np.int64)
    return found
