"""Every namespace of a cluster in a row: how large it is, how evenly brokers share it, and what binds it."""

from collections.abc import Mapping
from typing import Final

import numpy as np
import pandas as pd
import pyarrow as pa

from planner.cluster.arrays import FloatArray, Int64Array
from planner.cluster.internal_bundles import internal_bundles
from planner.cluster.names import DEFAULT_NAMESPACE_BUNDLE_SPLIT_ALGORITHM
from planner.cluster.snapshot import DispatchRate, IsolationPolicy, Snapshot
from planner.cluster.text import count, rounded
from planner.cluster.units import MIB
from planner.explain.cluster_tables import bundles_of_namespace
from planner.explain.isolation import allowed_brokers
from planner.pulsar.load.namespace_policies import isolation_policy

_TOP: Final = 3
"""Most brokers whose shares are shown."""


def bundle_weight(snapshot: Snapshot) -> FloatArray:
    """Return the share of its namespace's load that each bundle is, as `Population.weight` has it. Shape (bundles,).

    The mean of its shares of messages and of throughput; 0 where a namespace has no traffic.
    """
    bundles = snapshot.bundles
    shares = [_shares(snapshot, one) for one in (bundles.msg_rate_per_s(), bundles.throughput_bytes_per_s())]
    known = np.sum([total > 0 for total in _totals(snapshot, shares)], axis=0)
    mean: FloatArray = np.sum(shares, axis=0) / np.maximum(known, 1)[snapshot.bundles.namespace]
    return mean


def _shares(snapshot: Snapshot, values: FloatArray) -> FloatArray:
    space = snapshot.bundles.namespace
    total = np.bincount(space, weights=values, minlength=len(snapshot.namespaces))
    shares: FloatArray = np.divide(values, total[space], out=np.zeros(len(values)), where=total[space] > 0)
    return shares


def _totals(snapshot: Snapshot, columns: list[FloatArray]) -> list[FloatArray]:
    space, spaces = snapshot.bundles.namespace, len(snapshot.namespaces)
    return [np.bincount(space, weights=one, minlength=spaces).astype(np.float64) for one in columns]


def owner_shares(snapshot: Snapshot, namespace: str) -> pd.DataFrame:
    """Return the brokers of a namespace, the one with most of its load first; bundles without an owner in a row."""
    rows = bundles_of_namespace(snapshot, namespace)
    bundles = snapshot.bundles
    names = (*snapshot.brokers.name, "unowned")
    frame = pd.DataFrame(
        {
            "broker": [names[at] for at in bundles.owner[rows].tolist()],
            "share (%)": bundle_weight(snapshot)[rows] * 100,
            "bundles": 1,
            "topics": bundles.topics[rows],
            "MiB/s": bundles.throughput_bytes_per_s(rows) / MIB,
            "msg/s": bundles.msg_rate_per_s(rows),
            "clients": bundles.producers[rows] + bundles.consumers[rows],
        }
    )
    return frame.groupby("broker", sort=False).sum().sort_values("share (%)", ascending=False).reset_index()


def namespaces_frame(snapshot: Snapshot) -> pd.DataFrame:
    """Return a row for each namespace that Pulsar does not keep for itself, the worst first.

    Worst is where most of the cluster's load lies above an even part: the share that the busiest broker of the
    namespace has of it, less an even part, times the namespace's share of the cluster. `brokers` are those that its
    policies allow.
    """
    bundles = snapshot.bundles
    columns = [
        np.ones(len(bundles)),
        bundles.topics.astype(np.float64),
        bundles.throughput_bytes_per_s() / MIB,
        bundles.msg_rate_per_s(),
        (bundles.producers + bundles.consumers).astype(np.float64),
        internal_bundles(snapshot).astype(np.float64),
    ]
    number, topics, size, rate, clients, own = _totals(snapshot, columns)
    weight = bundle_weight(snapshot)
    heaviest = np.zeros(len(snapshot.namespaces))
    np.maximum.at(heaviest, bundles.namespace, weight)
    top, words = _brokers(snapshot, weight)
    allowed = _allowed(snapshot)
    load = _of_cluster(rate, size)
    above = load * np.maximum(top - 1 / np.maximum(allowed, 1), 0) * 100
    hottest, share = _hottest(snapshot)
    spaces = snapshot.namespaces
    limits = _limits(snapshot)
    isolation = [policy.name if policy is not None else "" for policy in _policies(snapshot)]
    frame = pd.DataFrame(
        {
            "namespace": spaces,
            "tenant": [name.partition("/")[0] for name in spaces],
            "above an even part (%)": above,
            "bundles": number.astype(np.int64),
            "topics": topics.astype(np.int64),
            "MiB/s": size,
            "msg/s": rate,
            "clients": clients.astype(np.int64),
            "brokers": allowed,
            "busiest broker (%)": top * 100,
            "shares": words,
            "largest bundle (%)": heaviest * 100,
            "hottest topic (%)": share * 100,
            "hottest topic": hottest,
            "isolation": isolation,
            "anti-affinity": [snapshot.policies.anti_affinity_group.get(name, "") for name in spaces],
            "dispatch limits": [limits.get(name, "") for name in spaces],
            "split algorithm": snapshot.settings.text(DEFAULT_NAMESPACE_BUNDLE_SPLIT_ALGORITHM),
        }
    )[own == 0]
    ordered: pd.DataFrame = frame.sort_values(["above an even part (%)", "MiB/s"], ascending=False, kind="stable")
    return ordered.reset_index(drop=True)


def tenants_frame(namespaces: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each tenant of `namespaces_frame`, the worst first."""
    summed = ["above an even part (%)", "bundles", "topics", "MiB/s", "msg/s", "clients"]
    grouped = namespaces.groupby("tenant", sort=False)
    frame = grouped[summed].sum()
    frame.insert(1, "namespaces", grouped.size())
    return frame.sort_values(summed[0], ascending=False, kind="stable").reset_index()


def _of_cluster(rate: FloatArray, size: FloatArray) -> FloatArray:
    """Return the share of the cluster's load that each namespace is: the mean of messages and of throughput."""
    parts = [values / values.sum() for values in (rate, size) if values.sum() > 0]
    mean: FloatArray = np.sum(parts, axis=0) / len(parts) if parts else np.zeros(len(rate))
    return mean


def _brokers(snapshot: Snapshot, weight: FloatArray) -> tuple[FloatArray, list[str]]:
    """Return the largest share of each namespace that one broker has, and the largest few in words."""
    bundles, brokers = snapshot.bundles, len(snapshot.brokers)
    owned = bundles.owner >= 0
    key = bundles.namespace[owned].astype(np.int64) * max(brokers, 1) + bundles.owner[owned]
    pairs, at = np.unique(key, return_inverse=True)
    share = np.bincount(at, weights=weight[owned], minlength=len(pairs))
    space, broker = pairs // max(brokers, 1), pairs % max(brokers, 1)
    order = np.lexsort((-share, space))
    top = np.zeros(len(snapshot.namespaces))
    told: list[list[str]] = [[] for _ in snapshot.namespaces]
    for one in order.tolist():
        found = told[int(space[one])]
        if len(found) < _TOP and share[one] > 0:
            top[space[one]] = max(top[space[one]], share[one])
            found.append(f"{snapshot.brokers.name[int(broker[one])]} {share[one] * 100:.0f} %")
    return top, [", ".join(found) for found in told]


def _policies(snapshot: Snapshot) -> list[IsolationPolicy | None]:
    return [isolation_policy(snapshot.policies, name) for name in snapshot.namespaces]


def _allowed(snapshot: Snapshot) -> Int64Array:
    """Return how many brokers the isolation policies leave to each namespace: asked once for each policy."""
    known: dict[IsolationPolicy | None, int] = {}
    for name, policy in zip(snapshot.namespaces, policies := _policies(snapshot), strict=True):
        if policy not in known:
            known[policy] = len(allowed_brokers(snapshot, name))
    return np.array([known[policy] for policy in policies], dtype=np.int64)


def _hottest(snapshot: Snapshot) -> tuple[list[str], FloatArray]:
    """Return the topic with most of each namespace's load, and its share; empty where none is listed."""
    topics, spaces = snapshot.topics, len(snapshot.namespaces)
    held = np.flatnonzero(topics.bundle >= 0)
    space = snapshot.bundles.namespace[topics.bundle[held]]
    totals = _totals(snapshot, [snapshot.bundles.msg_rate_per_s(), snapshot.bundles.throughput_bytes_per_s()])
    weight = np.zeros(len(held))
    for values, total in zip(
        (topics.msg_rate_per_s()[held], topics.throughput_bytes_per_s()[held]), totals, strict=True
    ):
        weight += np.divide(values, total[space], out=np.zeros(len(held)), where=total[space] > 0) / 2
    order = np.lexsort((-weight, space))
    firsts, at = np.unique(space[order], return_index=True)
    name, share = [""] * spaces, np.zeros(spaces)
    chosen = order[at]
    taken = topics.name.take(pa.array(held[chosen])).to_pylist() if len(chosen) else []
    for one, place, text in zip(firsts.tolist(), chosen.tolist(), taken, strict=True):
        name[one], share[one] = text, min(weight[place], 1.0)
    return name, share


def _limits(snapshot: Snapshot) -> Mapping[str, str]:
    """Return the dispatch limits of each namespace in words, and how many of its topics have their own."""
    found: dict[str, list[str]] = {}
    own: dict[str, int] = {}
    for policy in snapshot.policies.dispatch_rates:
        if "://" in policy.target:
            space = "/".join(policy.target.partition("://")[2].split("/")[:-1])
            own[space] = own.get(space, 0) + 1
        else:
            found.setdefault(policy.target, []).append(f"{policy.kind} {_rate(policy.rate)}")
    for space, topics in own.items():
        found.setdefault(space, []).append(f"{count(topics, 'topic limit')}")
    return {space: ", ".join(parts) for space, parts in found.items()}


def _rate(rate: DispatchRate) -> str:
    parts = []
    if rate.msg_per_period > 0:
        parts.append(f"{rounded(rate.msg_per_period / max(rate.period_s, 1))} msg/s")
    if rate.bytes_per_period > 0:
        parts.append(f"{rounded(rate.bytes_per_period / max(rate.period_s, 1) / MIB)} MiB/s")
    return " and ".join(parts) or "without limit"
