"""Anti-affinity groups whose namespaces share brokers or failure domains while others have none of them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from planner.cluster.snapshot import Snapshot
from planner.explain.isolation import allowed_brokers
from planner.pulsar.load.namespace_policies import anti_affinity_group
from planner.pulsar.placement.filters import NO_DOMAIN, broker_domains

_TOGETHER = 2
"""Namespaces of a group from which on they share a place."""


@dataclass(frozen=True, slots=True)
class Spread:
    """A group that is not spread.

    Attributes:
        group: Its name, in lower case, as Pulsar compares it.
        by_domain: Whether places are failure domains; otherwise brokers.
        namespaces: How many namespaces of the group each place serves, by its name.
        moves: Bundles and the brokers that leave no place without one, as long as another one has several.
    """

    group: str
    by_domain: bool
    namespaces: Mapping[str, int]
    moves: tuple[tuple[str, str], ...]


def spreading(snapshot: Snapshot, *, domains: bool) -> tuple[Spread, ...]:
    """Return the groups of which places serve several namespaces, and as many others, which could, none.

    Pulsar keeps namespaces of a group apart only when it places a bundle: what is assigned stays together. Places are
    those that all isolation policies of the group allow. A single broker without any among many, such as one that has
    just joined, is not counted: namespaces with many bundles are on every broker that was there.

    Args:
        snapshot: The cluster.
        domains: Whether failure domains count (`failureDomainsEnabled`), so that places are domains.
    """
    members: dict[str, list[int]] = {}
    if snapshot.policies.anti_affinity_group:
        for at in np.unique(snapshot.bundles.namespace[snapshot.bundles.owner >= 0]).tolist():
            group = anti_affinity_group(snapshot.policies, snapshot.namespaces[at])
            if group is not None:
                members.setdefault(group.lower(), []).append(at)
    by_domain = domains and bool(snapshot.policies.failure_domains)
    found = (_of_group(snapshot, group, spaces, by_domain=by_domain) for group, spaces in members.items())
    return tuple(one for one in found if one is not None)


def _of_group(snapshot: Snapshot, group: str, spaces: list[int], *, by_domain: bool) -> Spread | None:
    may = [set(allowed_brokers(snapshot, snapshot.namespaces[at])) for at in spaces]
    everywhere = set.intersection(*may)
    domain = broker_domains(snapshot.policies) if by_domain else {}
    place = {
        broker: domain.get(broker, NO_DOMAIN) if by_domain else broker
        for broker in snapshot.brokers.name
        if broker in everywhere
    }
    held = _held(snapshot, spaces, place)
    counted = {one: len(served) for one, served in held.items()}
    crowded = sum(number >= _TOGETHER for number in counted.values())
    empty = sum(number == 0 for number in counted.values())
    if not crowded or empty < crowded:
        return None
    return Spread(group, by_domain, counted, tuple(_moves(snapshot, place, held)))


def _held(snapshot: Snapshot, spaces: list[int], place: Mapping[str, str]) -> dict[str, dict[int, list[int]]]:
    """Return the bundles of each namespace in each place."""
    held: dict[str, dict[int, list[int]]] = {one: {} for one in place.values()}
    bundles = snapshot.bundles
    for bundle in np.flatnonzero(np.isin(bundles.namespace, spaces) & (bundles.owner >= 0)).tolist():
        where = place.get(snapshot.brokers.name[bundles.owner[bundle]])
        if where is not None:
            held[where].setdefault(int(bundles.namespace[bundle]), []).append(bundle)
    return held


def _moves(
    snapshot: Snapshot, place: Mapping[str, str], held: dict[str, dict[int, list[int]]]
) -> Iterator[tuple[str, str]]:
    """Yield moves of whole namespaces, those with the least traffic first, from the fullest place to an empty one."""
    load = dict(zip(snapshot.brokers.name, snapshot.brokers.throughput_bytes_per_s().tolist(), strict=True))
    traffic = snapshot.bundles.throughput_bytes_per_s()
    empty = [one for one, served in held.items() if not served]
    for to in empty:
        fullest = max(held, key=lambda one: len(held[one]))
        if len(held[fullest]) < _TOGETHER:
            return
        space = min(held[fullest], key=lambda at: float(traffic[held[fullest][at]].sum()))
        broker = min((one for one, where in place.items() if where == to), key=load.__getitem__)
        for bundle in held[fullest].pop(space):
            load[broker] += float(traffic[bundle])
            yield snapshot.bundle_names[bundle], broker
        held[to][space] = []
