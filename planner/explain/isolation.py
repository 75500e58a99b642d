"""What isolation policies and anti-affinity groups come to on the brokers and bundles that a cluster has."""

import re
from collections.abc import Iterable, Sequence

import numpy as np

from planner.cluster.internal_namespaces import is_heartbeat_or_sla_namespace
from planner.cluster.load_manager import LoadManager
from planner.cluster.settings import Settings
from planner.cluster.snapshot import IsolationPolicy, Snapshot
from planner.pulsar.load.namespace_policies import anti_affinity_group, isolation_policy
from planner.pulsar.load.usage import weighted_usage
from planner.pulsar.placement.filters import broker_host, isolate, matches_any
from planner.simulate.edits.registry import IsolationChange

_SPECIAL = re.compile(r"[\\^$.|?*+()\[\]{}]")


def policies_of(snapshot: Snapshot, namespaces: Iterable[str]) -> tuple[IsolationPolicy, ...]:
    """Return the isolation policies of some namespaces, each once; none for a namespace without one."""
    found = (isolation_policy(snapshot.policies, namespace) for namespace in namespaces)
    return tuple(dict.fromkeys(policy for policy in found if policy is not None))


def allowed_hosts(snapshot: Snapshot, expressions: Sequence[str]) -> tuple[str, ...]:
    """Return the hosts of the registered brokers that some expressions match."""
    return tuple(host for host in hosts(snapshot) if matches_any(expressions, host))


def hosts(snapshot: Snapshot) -> tuple[str, ...]:
    """Return the hosts of the registered brokers, each once."""
    table = snapshot.brokers
    names = (name for name, here in zip(table.name, table.registered.tolist(), strict=True) if here)
    return tuple(dict.fromkeys(broker_host(name) for name in names))


def even_usage_percent(snapshot: Snapshot, config: Settings) -> float:
    """Return the usage of every broker if all carried the same share, in percent."""
    usage = weighted_usage(snapshot.brokers, config, snapshot.info.load_manager)
    there = snapshot.brokers.registered & snapshot.brokers.has_load_data
    return float(usage[there].mean()) * 100 if there.any() else 0.0


def allowed_brokers(snapshot: Snapshot, namespace: str) -> tuple[str, ...]:
    """Return the registered brokers that the isolation policies may leave to a namespace when it is placed.

    Secondary ones are among them only where there can be too few primary ones. The extensible load manager asks the
    policies last, about the brokers that an anti-affinity group has left, so that there the primary ones can be gone.
    """
    table, policies = snapshot.brokers, snapshot.policies
    here = [name for name, there in zip(table.name, table.registered.tolist(), strict=True) if there]
    rule = isolate(policies, namespace, here, lambda _: True)
    groups_first = snapshot.info.load_manager is LoadManager.EXTENSIBLE
    if groups_first and anti_affinity_group(policies, namespace) is not None:
        return (*rule.primary, *rule.secondary)
    return rule.candidates


def literal(host: str) -> str:
    """Return a host as an expression of Java that matches nothing else."""
    return _SPECIAL.sub(r"\\\g<0>", host)


def widened(snapshot: Snapshot, policy: IsolationPolicy) -> IsolationChange | None:
    """Return the edit that lets a policy also use brokers that no policy reserves; None where none can be spared.

    Namespaces without a policy are left only what no policy reserves, so the two share those brokers by their load: the
    least used ones are added, as many as make the fuller of both sides least full, and at least one stays. Secondary
    brokers that are in use become primary ones: with more of these, they would no longer be used.
    """
    reserved = [expression for other in snapshot.policies.isolation for expression in other.primary]
    mine = allowed_hosts(snapshot, policy.primary)
    if len(mine) < policy.min_limit:
        mine = tuple(dict.fromkeys((*mine, *allowed_hosts(snapshot, policy.secondary))))
    free = [host for host in hosts(snapshot) if not matches_any(reserved, host) and host not in mine]
    if _serves_others(snapshot):
        free = _spared(snapshot, mine, free)
    if not free:
        return None
    kept = [host for host in mine if not matches_any(policy.primary, host)]
    return IsolationChange(
        name=policy.name,
        namespaces=policy.namespaces,
        primary=(*policy.primary, *map(literal, (*kept, *free))),
        secondary=policy.secondary,
        min_limit=policy.min_limit,
    )


def narrowed(snapshot: Snapshot, policy: IsolationPolicy) -> IsolationChange | None:
    """Return the edit that leaves brokers which only this policy reserves to others; None where it reserves too few.

    It keeps the half of them with most traffic of its own namespaces.
    """
    others = [one for other in snapshot.policies.isolation if other is not policy for one in other.primary]
    alone = [host for host in allowed_hosts(snapshot, policy.primary) if not matches_any(others, host)]
    leaves = len(alone) // 2
    if not leaves:
        return None
    own = np.array([isolation_policy(snapshot.policies, name) is policy for name in snapshot.namespaces])
    table = snapshot.bundles
    rows = np.flatnonzero(own[table.namespace] & (table.owner >= 0))
    traffic = dict.fromkeys(alone, 0.0)
    for at, size in zip(table.owner[rows].tolist(), table.throughput_bytes_per_s()[rows].tolist(), strict=True):
        host = broker_host(snapshot.brokers.name[at])
        traffic[host] = traffic.get(host, 0.0) + size
    left_out = sorted(alone, key=lambda host: traffic[host])[:leaves]
    kept = [host for host in allowed_hosts(snapshot, policy.primary) if host not in left_out]
    return IsolationChange(
        name=policy.name,
        namespaces=policy.namespaces,
        primary=tuple(map(literal, kept)),
        secondary=policy.secondary,
        min_limit=min(policy.min_limit, len(kept)),
    )


def _serves_others(snapshot: Snapshot) -> bool:
    """Say whether a namespace with bundles has no isolation policy, so that it needs brokers that none reserves."""
    used = (snapshot.namespaces[at] for at in np.unique(snapshot.bundles.namespace).tolist())
    release = snapshot.settings.release
    return any(
        isolation_policy(snapshot.policies, name) is None
        for name in used
        if not is_heartbeat_or_sla_namespace(name, release)
    )


def _spared(snapshot: Snapshot, inside: Sequence[str], free: Sequence[str]) -> list[str]:
    """Return the brokers of no policy, by host, that join those inside one while others stay for other namespaces."""
    usage = dict.fromkeys(hosts(snapshot), 0.0)
    weighted = weighted_usage(snapshot.brokers, snapshot.settings, snapshot.info.load_manager)
    for name, value in zip(snapshot.brokers.name, np.nan_to_num(weighted).tolist(), strict=True):
        host = broker_host(name)
        usage[host] = max(usage.get(host, 0.0), value)
    mine = [usage[host] for host in inside]
    order = sorted(free, key=lambda host: usage[host])
    whole = sum(usage[host] for host in free)
    fuller = [max(sum(mine) / (len(mine) + at), whole / (len(free) - at)) for at in range(1, len(free))]
    return order[: int(np.argmin(fuller)) + 1] if fuller else []


def lone_groups(snapshot: Snapshot) -> dict[str, tuple[str, ...]]:
    """Return the groups of which fewer than two namespaces have bundles, so that they keep nothing apart.

    By name in lower case, each with all its namespaces; those with bundles first.
    """
    served = {snapshot.namespaces[i] for i in np.unique(snapshot.bundles.namespace).tolist()}
    members: dict[str, list[str]] = {}
    for namespace in sorted(snapshot.policies.anti_affinity_group, key=lambda name: name not in served):
        group = anti_affinity_group(snapshot.policies, namespace)
        if group is not None:
            members.setdefault(group.lower(), []).append(namespace)
    return {group: tuple(names) for group, names in members.items() if len(names) < 2 or names[1] not in served}  # noqa: PLR2004
