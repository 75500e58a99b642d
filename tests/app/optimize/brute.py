"""Small random clusters, and every plan that there is for them."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import combinations, product
from random import Random

import numpy as np

from planner.cluster.arrays import BoolArray, FloatArray, Int64Array, frozen
from planner.cluster.load_manager import LoadManager
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.optimize.rules import without
from planner.pulsar.placement.extensible_filters import ExtensibleFilters
from planner.pulsar.placement.modular_filters import ModularFilters
from planner.simulate.assumptions import Assumptions
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.generate import generate
from planner.simulate.usage_model import UsageModel

FREE = {"loadBalancerDistributeBundlesEvenlyEnabled": False}
NOBODY: Int64Array = frozen(np.zeros(0, dtype=np.int64))


def small_cluster(seed: int, *, bundles: int = 14, grouped: bool = False) -> Snapshot:
    """Return a cluster of 2 to 5 unlike brokers with up to so many bundles, some of them isolated."""
    random = Random(seed)  # noqa: S311 - no secret
    spec = ClusterSpec(
        brokers=random.randint(2, 5),
        bundles=random.randint(4, bundles),
        namespaces=random.randint(1, 4),
        topics=random.randint(20, 200),
        msg_rate_per_s=random.choice([5_000, 30_000, 80_000]),
        topic_skew=random.uniform(0.0, 1.2),
        ownership_skew=random.random(),
        heterogeneity=random.choice([0.0, 0.5, 1.0]),
        load_manager=random.choice(list(LoadManager)),
        isolated_namespaces=random.choice([0, 0, 1]),
        anti_affinity_namespaces=random.choice([0, 2, 4]) if grouped else 0,
        cluster="brute",
    )
    spec = replace(spec, namespaces=min(spec.namespaces, spec.bundles))
    spec = replace(spec, isolated_namespaces=min(spec.isolated_namespaces, spec.namespaces))
    spec = replace(spec, anti_affinity_namespaces=min(spec.anti_affinity_namespaces, spec.namespaces))
    return generate(spec, seed)


def peaks_of(model: UsageModel, owners: Int64Array) -> FloatArray:
    """Return the peak of each of many placements. Shape (placements,) for (placements, bundles)."""
    peaks = np.zeros(len(owners))
    for broker in range(len(model.alive)):
        mine = (owners == broker).astype(np.float64)
        demand = mine @ model.bundle.T + model.own[:, broker]
        used = np.maximum((demand / model.limit[:, broker] * model.weight[:, 0]).max(axis=1), model.fixed[broker])
        peaks = np.maximum(peaks, used)
    return peaks


def refused(
    snapshot: Snapshot,
    config: Settings,
    moves: Iterable[tuple[str, str]],
    *,
    even: bool = False,
    gone: Int64Array = NOBODY,
) -> list[tuple[str, str]]:
    """Play moves one after the other and ask the load manager's own filters about each destination.

    Args:
        snapshot: The cluster before them.
        config: Settings in force.
        moves: Bundle and destination, in their order.
        even: Whether even distribution counts.
        gone: Brokers that are no candidates any more, by position. Shape (such brokers,).

    Returns:
        The moves that the filters refuse.
    """
    asked = config if even else config.changed(**FREE)
    modular, wrong, now = snapshot.info.load_manager is LoadManager.MODULAR, [], snapshot
    now = now.with_columns(brokers=without(now.brokers, gone))
    for bundle, destination in moves:
        at, to = now.bundle_position[bundle], now.brokers.position[destination]
        space = bundle.rpartition("/")[0]
        if modular:
            allowed = to in ModularFilters(now, asked).steps(bundle, explain=False)[-1].kept.tolist()
        else:
            allowed = destination in ExtensibleFilters(now, asked).steps(space)[-1].kept
        if not allowed:
            wrong.append((bundle, destination))
        owner, topics = now.bundles.owner.copy(), now.brokers.topics.copy()
        if owner[at] >= 0:
            topics[owner[at]] -= now.bundles.topics[at]
        topics[to] += now.bundles.topics[at]
        owner[at] = to
        brokers = replace(now.brokers, topics=frozen(topics))
        now = now.with_owner(owner).with_columns(brokers=brokers)
    return wrong


def every_placement(snapshot: Snapshot, moves: int) -> tuple[Int64Array, FloatArray]:
    """Return all placements with at most so many moves to brokers that the filters allow, and their peaks."""
    names, owner = snapshot.brokers.name, snapshot.bundles.owner.astype(np.int64)
    config = Settings({**snapshot.settings.overrides, **FREE})
    options = []
    for bundle, home in zip(snapshot.bundle_names, owner.tolist(), strict=True):
        free = [(bundle, name) for name in names if name != names[home]]
        wrong = {to for move in free for _, to in refused(snapshot, config, [move])}
        options.append([at for at, name in enumerate(names) if at != home and name not in wrong])
    found = [owner[np.newaxis]]
    for size in range(1, moves + 1):
        for chosen in combinations(range(len(owner)), size):
            targets = list(product(*(options[at] for at in chosen)))
            if targets:
                placed = np.repeat(owner[np.newaxis], len(targets), axis=0)
                placed[:, list(chosen)] = np.array(targets)
                found.append(placed)
    every = np.concatenate(found)
    model = UsageModel.of(snapshot, snapshot.settings, Assumptions())
    return frozen(every), frozen(peaks_of(model, every))


def kept_by_filters(snapshot: Snapshot, config: Settings, bundle: str) -> list[int]:
    """Return the brokers that the filters of the load manager leave to a bundle."""
    if snapshot.info.load_manager is LoadManager.MODULAR:
        kept: list[int] = ModularFilters(snapshot, config).steps(bundle, explain=False)[-1].kept.tolist()
        return kept
    names = ExtensibleFilters(snapshot, config).steps(bundle.rpartition("/")[0])[-1].kept
    return [snapshot.brokers.position[name] for name in names]


def every_reachable(snapshot: Snapshot, moves: int, movable: BoolArray | None = None) -> tuple[Int64Array, FloatArray]:
    """Return all placements that so many unloads can lead to, each allowed at its turn, and their peaks.

    Args:
        snapshot: The cluster before them.
        moves: How many unloads at most.
        movable: What may be unloaded; everything where it is not given. Shape (bundles,).
    """
    free_to_go = range(len(snapshot.bundles.owner)) if movable is None else np.flatnonzero(movable).tolist()
    config = Settings({**snapshot.settings.overrides, **FREE})
    spaces = dict(zip(snapshot.bundles.namespace.tolist(), snapshot.bundle_names, strict=True))
    free = replace(snapshot, policies=replace(snapshot.policies, anti_affinity_group={}))
    modular = snapshot.info.load_manager is LoadManager.MODULAR  # a plan takes nobody back that its filters left out
    every_broker = set(range(len(snapshot.brokers)))
    own = {at: set(kept_by_filters(free, config, one)) if modular else every_broker for at, one in spaces.items()}
    first = tuple(snapshot.bundles.owner.astype(np.int64).tolist())
    found, edge = {first}, [first]
    for _ in range(moves):
        following = set()
        for owners in edge:
            now = snapshot.with_owner(np.array(owners))
            kept = {at: own[at].intersection(kept_by_filters(now, config, bundle)) for at, bundle in spaces.items()}
            for at in free_to_go:
                space = int(snapshot.bundles.namespace[at])
                following |= {(*owners[:at], to, *owners[at + 1 :]) for to in kept[space]}
        edge = sorted(following - found)
        found |= following
    every = np.array(sorted(found))
    return frozen(every), frozen(peaks_of(UsageModel.of(snapshot, snapshot.settings, Assumptions()), every))
