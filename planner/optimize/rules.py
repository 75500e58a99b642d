"""Where a bundle may go: the candidate filters of the load manager in force, kept up to date while a plan is made.

What no move changes (isolation, versions, load manager class) is asked of the product's filters once. Topics per
broker, anti-affinity groups and even distribution change with every move, and are counted here by the same functions.
Stricter than Pulsar in three things: a broker is never filled above its topic limit, candidates that the filters left
out are never taken back because nobody else is left, and secondary brokers of an isolation policy are not used because
an anti-affinity group has left no primary one.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache

import numpy as np

from planner.cluster.arrays import BoolArray, Int64Array, IntArray, frozen
from planner.cluster.load_manager import LoadManager
from planner.cluster.names import BROKER_MAX_TOPICS, DISTRIBUTE_BUNDLES_EVENLY_ENABLED, FAILURE_DOMAINS_ENABLED
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.cluster.tables import BrokerTable
from planner.pulsar.load.namespace_policies import anti_affinity_group
from planner.pulsar.placement.extensible_filters import ExtensibleFilters
from planner.pulsar.placement.filters import broker_domains, least_of_group
from planner.pulsar.placement.modular_filters import ModularFilters

_NONE: Int64Array = frozen(np.zeros(0, dtype=np.int64))


class Rules:
    """Which brokers may take a bundle of a namespace.

    Args:
        snapshot: The cluster.
        config: Settings in force.
        even: Whether the even distribution of the modular load manager is a rule.
        gone: Brokers that are no candidates any more, by position. Shape (such brokers,).
    """

    def __init__(self, snapshot: Snapshot, config: Settings, *, even: bool, gone: Int64Array = _NONE) -> None:
        self.snapshot = snapshot
        self._modular = snapshot.info.load_manager is LoadManager.MODULAR
        self.spreads = self._modular and config.flag(DISTRIBUTE_BUNDLES_EVENLY_ENABLED)
        """Whether placement spreads the bundles of a namespace."""
        self.even = even and self.spreads
        limit = config.integer(BROKER_MAX_TOPICS)
        self.most_topics = limit if self._modular else limit - 1
        brokers = snapshot.brokers
        free = replace(
            snapshot,
            brokers=replace(without(brokers, gone), topics=frozen(np.zeros(len(brokers), dtype=np.int64))),
            policies=replace(snapshot.policies, anti_affinity_group={}),
        ).sharing(snapshot)
        self._early, self._late = _static(free, config.changed(**{DISTRIBUTE_BUNDLES_EVENLY_ENABLED: False}))
        self.domains = broker_domains(snapshot.policies) if config.flag(FAILURE_DOMAINS_ENABLED) else {}
        groups = {at: anti_affinity_group(snapshot.policies, name) for at, name in enumerate(snapshot.namespaces)}
        self.group = {at: name.lower() for at, name in groups.items() if name is not None}
        """Anti-affinity group of the namespaces that are in one."""

    def static(self, namespace: int) -> BoolArray:
        """Return what filters that no move changes leave to a namespace. Shape (brokers,)."""
        return self._late(self.snapshot.namespaces[namespace])

    def before_group(self, namespace: int) -> BoolArray:
        """Return what is left when the anti-affinity filter has its turn, topics apart. Shape (brokers,)."""
        return self._early(self.snapshot.namespaces[namespace])

    def changes(self, namespace: int) -> bool:
        """Say whether moves of other bundles change where bundles of a namespace may go."""
        return self.even or namespace in self.group

    def most_of_groups(self, counts: IntArray, topics: int) -> Iterator[tuple[Int64Array, IntArray]]:
        """Yield the namespaces of groups, and how many of their bundles each broker has at most after any moves.

        Who takes one has the fewest of all candidates at its turn, so no more than their mean, and then one more; who
        takes none has no more than now. That holds where bundles are counted (the modular load manager counts
        namespaces), without failure domains, and while no candidate drops out for its topics.

        Args:
            counts: Bundles of each namespace on each broker. Shape (namespaces, brokers).
            topics: The most topics that a broker may ever have.

        Yields:
            Shapes (namespaces of the group,) and (brokers,).
        """
        if self._modular or self.domains or topics > self.most_topics:
            return
        for group in sorted(set(self.group.values())):
            members = np.array([at for at, other in self.group.items() if other == group], dtype=np.int64)
            candidates = min(int(self.before_group(at).sum()) for at in members.tolist())
            here = counts[members].sum(axis=0)
            if candidates:
                yield members, np.maximum(here, int(here.sum()) // candidates + 1)

    def dynamic(self, namespace: int, counts: IntArray, topics: Int64Array) -> BoolArray:
        """Return where a bundle of a namespace may go now, apart from the topic limit. Shape (brokers,).

        Args:
            namespace: Its position.
            counts: Bundles of each namespace on each broker. Shape (namespaces, brokers).
            topics: Topics of each broker. Shape (brokers,).
        """
        left = self.before_group(namespace) & (topics <= self.most_topics)
        group = self.group.get(namespace)
        if group is not None:
            members = [at for at, other in self.group.items() if other == group]
            here = counts[members]
            of_group = ((here > 0) if self._modular else here).sum(axis=0)
            names = self.snapshot.brokers.name
            count = {names[at]: int(of_group[at]) for at in np.flatnonzero(left).tolist()}
            kept = set(least_of_group(count, self.domains).kept)
            left = np.array([name in kept for name in names], dtype=np.bool_)
        if self.even and left.any():
            left &= counts[namespace] == counts[namespace][left].min()
        return left & self.static(namespace)


def _static(free: Snapshot, config: Settings) -> tuple[Callable[[str], BoolArray], Callable[[str], BoolArray]]:
    """Return what is left before the anti-affinity filter, and after all of them."""
    brokers = free.brokers

    def mask(positions: Iterable[int]) -> BoolArray:
        found = np.zeros(len(brokers), dtype=np.bool_)
        found[list(positions)] = True
        return frozen(found)

    if free.info.load_manager is LoadManager.MODULAR:
        modular = ModularFilters(free, config)
        return (
            cache(lambda name: mask(modular.isolation(name)[1].tolist())),
            cache(lambda name: mask(modular.steps(f"{name}/", explain=False)[-1].kept.tolist())),
        )
    extensible = ExtensibleFilters(free, config)
    return (
        cache(lambda name: mask(brokers.position[one] for one in extensible.steps(name)[2].kept)),
        cache(lambda name: mask(brokers.position[one] for one in extensible.steps(name)[-1].kept)),
    )


def without(brokers: BrokerTable, gone: Int64Array) -> BrokerTable:
    """Return brokers of which some, by position, are no candidates any more."""
    return replace(brokers, registered=frozen(brokers.registered & ~np.isin(np.arange(len(brokers)), gone)))
