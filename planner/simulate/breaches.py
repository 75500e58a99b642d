"""Bundles on brokers that their own isolation policy excludes, and bundles that isolation policies leave no broker."""

import numpy as np

from planner.cluster.arrays import Int64Array
from planner.cluster.internal_bundles import internal_bundles
from planner.cluster.load_manager import LoadManager
from planner.cluster.snapshot import Snapshot
from planner.pulsar.load.namespace_policies import anti_affinity_group, isolation_policy
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


def stranded(snapshot: Snapshot) -> Int64Array:
    """Return the positions of the bundles that no broker may own once the one that serves them unloads them.

    Their isolation policy matches no broker; or they have none, and every broker is reserved for other namespaces.
    Bundles that Pulsar keeps for itself are left out. Shape (found,), ascending.
    """
    if not snapshot.policies.isolation:
        return np.empty(0, dtype=np.int64)
    table, bundles = snapshot.brokers, snapshot.bundles
    here = [name for name, there in zip(table.name, table.registered.tolist(), strict=True) if there]
    none = np.array([not _may_own(snapshot, namespace, here) for namespace in snapshot.namespaces], dtype=np.bool_)
    owned = np.flatnonzero((bundles.owner >= 0) & ~internal_bundles(snapshot))
    found: Int64Array = owned[none[bundles.namespace[owned]]].astype(np.int64)
    return found


def _may_own(snapshot: Snapshot, namespace: str, brokers: list[str]) -> bool:
    """Say whether isolation policies leave a namespace a broker; those of a group may have to use secondary ones."""
    rule = isolate(snapshot.policies, namespace, brokers, lambda _: True)
    groups_first = snapshot.info.load_manager is LoadManager.EXTENSIBLE
    if groups_first and anti_affinity_group(snapshot.policies, namespace) is not None:
        return bool(rule.primary or rule.secondary)
    return bool(rule.candidates)
