"""Where a bundle may go: the candidate filters of the load manager in force, kept up to date while a plan is made.

What no move changes (isolation, versions, load manager class) is asked of the product's filters once. Topics per
broker, anti-affinity groups and even distribution change with every move, and are counted here by the same functions.
Stricter than Pulsar in two things: a broker is never filled above its topic limit, and candidates that the filters left
out are never taken back because nobody else is left.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from planner.cluster.arrays import BoolArray, Int64Array, IntArray, frozen
from planner.cluster.load_manager import LoadManager
from planner.cluster.names import BROKER_MAX_TOPICS, DISTRIBUTE_BUNDLES_EVENLY_ENABLED, FAILURE_DOMAINS_ENABLED
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.cluster.tables import BrokerTable
from planner.pulsar.load.namespace_policies import anti_affinity_group, isolation_policy
from planner.pulsar.placement.extensible_filters import ExtensibleFilters
from planner.pulsar.placement.filters import NO_DOMAIN, broker_domains, isolate, least_of_group
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
        self._early, self._isolated = _static(free, config.changed(**{DISTRIBUTE_BUNDLES_EVENLY_ENABLED: False}))
        self.domains = broker_domains(snapshot.policies) if config.flag(FAILURE_DOMAINS_ENABLED) else {}
        groups = {at: anti_affinity_group(snapshot.policies, name) for at, name in enumerate(snapshot.namespaces)}
        self.group = {at: name.lower() for at, name in groups.items() if name is not None}
        """Anti-affinity group of the namespaces that are in one."""
        self.members = {
            group: np.array([at for at, other in self.group.items() if other == group], dtype=np.int64)
            for group in sorted(set(self.group.values()))
        }
        """Namespaces of each group, by position."""

    def static(self, namespace: int) -> BoolArray:
        """Return who may ever take a bundle of a namespace, as far as no move changes it. Shape (brokers,).

        The extensible load manager asks for isolation after anti-affinity: a group may leave too few primary brokers,
        so that secondary ones are used.
        """
        found = self._isolated(self.snapshot.namespaces[namespace])
        if self._modular or namespace not in self.group or not found.enough:
            return found.of(self.before_group(namespace))
        either: BoolArray = self.before_group(namespace) & (found.primary | found.secondary)
        return frozen(either)

    def primary(self, namespace: int) -> tuple[BoolArray, int]:
        """Return the primary brokers of a namespace, and of how many of them no secondary one is used.

        The number is 0 where secondary brokers are never used. Shape (brokers,).
        """
        found = self._isolated(self.snapshot.namespaces[namespace])
        return found.primary, found.enough

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
        for members in self.members.values():
            candidates = min(int(self.before_group(at).sum()) for at in members.tolist())
            here = counts[members].sum(axis=0)
            if candidates:
                yield members, np.maximum(here, int(here.sum()) // candidates + 1)

    def group_counts(self, group: str, counts: IntArray) -> IntArray:
        """Return how many members of a group each broker has, as its load manager counts them. Shape (brokers,).

        The modular load manager counts namespaces, the extensible one bundles.
        """
        here = counts[self.members[group]]
        found: IntArray = ((here > 0) if self._modular else here).sum(axis=0)
        return found

    @property
    def counts_namespaces(self) -> bool:
        """Whether groups count namespaces with a bundle on a broker, rather than bundles."""
        return self._modular

    def mark(self, namespace: int) -> int:
        """Return what tells bundles of groups apart: the namespace where namespaces are counted, else the group.

        -1 for a namespace without a group.
        """
        if namespace not in self.group:
            return -1
        return namespace if self._modular else list(self.members).index(self.group[namespace])

    def domains_of(self, candidates: BoolArray) -> Int64Array:
        """Return a number for the failure domain of each broker; 0 for all where domains do not count.

        Shape (brokers,).
        """
        names = self.snapshot.brokers.name
        if not self.domains or not candidates.any():
            return np.zeros(len(names), dtype=np.int64)
        places = [self.domains.get(name, NO_DOMAIN) for name in names]
        return np.unique(places, return_inverse=True)[1].astype(np.int64)

    def least_of_group(self, group: str, counts: IntArray, left: BoolArray) -> BoolArray:
        """Return those of some brokers that have the fewest members of a group. Shape (brokers,)."""
        of_group, names = self.group_counts(group, counts), self.snapshot.brokers.name
        count = {names[at]: int(of_group[at]) for at in np.flatnonzero(left).tolist()}
        kept = np.zeros(len(names), dtype=np.bool_)
        kept[[self.snapshot.brokers.position[name] for name in least_of_group(count, self.domains).kept]] = True
        return kept

    def dynamic(
        self, namespace: int, counts: IntArray, topics: Int64Array, least: BoolArray | None = None
    ) -> BoolArray:
        """Return where a bundle of a namespace may go now, apart from the topic limit. Shape (brokers,).

        Args:
            namespace: Its position.
            counts: Bundles of each namespace on each broker. Shape (namespaces, brokers).
            topics: Topics of each broker. Shape (brokers,).
            least: What `least_of_group` says of those with room for topics, where that is known. Shape (brokers,).
        """
        left = self.before_group(namespace) & (topics <= self.most_topics)
        group = self.group.get(namespace)
        if group is not None:
            left = self.least_of_group(group, counts, left) if least is None else least
        if self.even and left.any():
            left = left & (counts[namespace] == counts[namespace][left].min())
        return self._isolated(self.snapshot.namespaces[namespace]).of(left)


@dataclass(frozen=True, eq=False, slots=True)
class _Isolated:
    """What isolation leaves to a namespace.

    Attributes:
        primary: Its primary brokers, or those that it may use without a policy. Shape (brokers,).
        secondary: Its secondary brokers. Shape (brokers,).
        enough: How many primary brokers it takes that no secondary one is used.
    """

    primary: BoolArray
    secondary: BoolArray
    enough: int

    def of(self, left: BoolArray) -> BoolArray:
        """Return who may take a bundle of those that other filters leave. Shape (brokers,)."""
        first: BoolArray = left & self.primary
        if self.enough and int(first.sum()) < self.enough:
            first = first | (left & self.secondary)
        return first


def _static(free: Snapshot, config: Settings) -> tuple[Callable[[str], BoolArray], Callable[[str], _Isolated]]:
    """Return what is left before the anti-affinity filter, and what isolation leaves."""
    brokers = free.brokers
    nobody = frozen(np.zeros(len(brokers), dtype=np.bool_))

    def mask(positions: Iterable[int]) -> BoolArray:
        found = np.zeros(len(brokers), dtype=np.bool_)
        found[list(positions)] = True
        return frozen(found)

    if free.info.load_manager is LoadManager.MODULAR:
        modular = ModularFilters(free, config)
        return (
            cache(lambda name: mask(modular.isolation(name)[1].tolist())),
            cache(lambda name: _Isolated(mask(modular.steps(f"{name}/", explain=False)[-1].kept.tolist()), nobody, 0)),
        )
    extensible = ExtensibleFilters(free, config)

    def of(names: Iterable[str]) -> BoolArray:
        return mask(brokers.position[one] for one in names)

    def isolated(name: str) -> _Isolated:
        steps = extensible.steps(name)
        policy = isolation_policy(free.policies, name)
        if policy is None:
            return _Isolated(of(steps[-1].kept), nobody, 0)
        found = isolate(free.policies, name, steps[2].kept, lambda _: True)
        return _Isolated(of(found.primary), of(found.secondary), policy.min_limit)

    return cache(lambda name: of(extensible.steps(name)[2].kept)), cache(isolated)


def without(brokers: BrokerTable, gone: Int64Array) -> BrokerTable:
    """Return brokers of which some, by position, are no candidates any more."""
    return replace(brokers, registered=frozen(brokers.registered & ~np.isin(np.arange(len(brokers)), gone)))
