"""The filters that a broker passes before the modular load manager places a bundle on it, and what lets a bundle leave.

Mirrors `ModularLoadManagerImpl.selectBroker` up to the placement strategy, `shouldNamespacePoliciesUnload`,
`shouldAntiAffinityNamespaceUnload`, `LoadManagerShared`, `BrokerLoadManagerClassFilter` and `BrokerVersionFilter` of
Pulsar 4.2.4. It differs in that bundles count as persistent unless told otherwise: whether a non-persistent topic was
ever looked up is known to the broker process only; and in that the class filter drops nobody where no broker's class is
known.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from planner.cluster.arrays import BoolArray, Int64Array, frozen
from planner.cluster.decisions import ReasonBlock, ReasonCode, block
from planner.cluster.errors import PulsarError
from planner.cluster.hashing import hash_map_order
from planner.cluster.internal_namespaces import SYSTEM_NAMESPACE
from planner.cluster.load_manager import LoadManager
from planner.cluster.names import (
    BROKER_MAX_TOPICS,
    BROKER_OVERLOADED_THRESHOLD_PERCENTAGE,
    DISTRIBUTE_BUNDLES_EVENLY_ENABLED,
    FAILURE_DOMAINS_ENABLED,
    LOAD_MANAGER_CLASS_NAME,
    PREFER_LATER_VERSIONS,
)
from planner.cluster.positions import positions_of
from planner.cluster.settings import Settings
from planner.cluster.snapshot import IsolationPolicy, Snapshot
from planner.pulsar.load.namespace_policies import anti_affinity_group, isolation_policy
from planner.pulsar.load.usage import weighted_usage
from planner.pulsar.placement.candidates import Candidates
from planner.pulsar.placement.filters import NO_DOMAIN, Isolation, broker_domains, isolate, latest, least_of_group
from planner.pulsar.placement.least_long_term_message_rate import Preallocated
from planner.pulsar.placement.selection import FilterStep

SETTINGS = (
    BROKER_MAX_TOPICS,
    FAILURE_DOMAINS_ENABLED,
    DISTRIBUTE_BUNDLES_EVENLY_ENABLED,
    LOAD_MANAGER_CLASS_NAME,
    PREFER_LATER_VERSIONS,
)
"""Real names of the settings that the filters read."""

_MOST_CANDIDATES = 64
"""Sets of candidates that are remembered while bundles are promised."""

_NOT_SERVING = ReasonCode("place_modular.not_serving", "it does not serve this kind of topic, or has no load report")
_RESERVED = ReasonCode(
    "place_modular.reserved",
    "it is a primary broker of an isolation policy, reserved for the namespaces of that policy",
)
_NOT_IN_POLICY = ReasonCode(
    "place_modular.not_in_policy", "it is neither a primary nor a secondary broker of the namespace's isolation policy"
)
_SECONDARY = ReasonCode(
    "place_modular.secondary",
    (
        "a secondary broker of the isolation policy, not needed: {primary:.0f} primary brokers are "
        "available, at least {min_limit:.0f} are required"
    ),
)
_TOPICS = ReasonCode(
    "place_modular.topics", "{topics:.0f} topics, including those of bundles in transit, > {limit:.0f}"
)
_DOMAIN = ReasonCode(
    "place_modular.domain",
    "its failure domain has {members:.0f} namespaces of the anti-affinity group, another domain has {least:.0f}",
)
_GROUP = ReasonCode(
    "place_modular.group",
    "it has {members:.0f} namespaces of the anti-affinity group, another broker has {least:.0f}",
)
_UNEVEN = ReasonCode(
    "place_modular.uneven", "it has {bundles:.0f} bundles of the namespace, another broker has {least:.0f}"
)
_CLASS = ReasonCode("place_modular.class", "it runs a different load manager class from the leader")
_VERSION = ReasonCode("place_modular.version", "another broker runs a later version")
_RESTORED = ReasonCode(
    "place_modular.restored", "a candidate again, because the filters failed or excluded all brokers"
)


@dataclass(frozen=True, slots=True)
class GroupVerdict:
    """Whether the anti-affinity rule lets a bundle leave its broker.

    Attributes:
        allowed: Whether it may leave.
        members: Namespaces of the group on the broker.
        least: Fewest on any candidate.
    """

    allowed: bool
    members: int = 0
    least: int = 0


class ModularFilters:
    """The filters at one moment; what no bundle changes is worked out once."""

    def __init__(
        self,
        snapshot: Snapshot,
        config: Settings,
        preallocated: Mapping[str, str] | None = None,
        split: Mapping[str, str] | None = None,
    ) -> None:
        """Prepare the filters.

        Args:
            snapshot: The cluster; its registered brokers are the candidates.
            config: Settings in force.
            preallocated: Broker of each bundle that was promised and is not reported yet, by full bundle name.
            split: Broker whose last report lists a bundle that was split since, by full bundle name.
        """
        self.snapshot = snapshot
        self.config = config
        brokers = snapshot.brokers
        self._promised = dict(preallocated or {})
        self.preallocated = self._to_known_brokers()
        self._split = split or {}
        self._hashes = brokers.name_hashes
        registered = np.flatnonzero(brokers.registered)
        self._table_size = 16
        while len(registered) > self._table_size * 3 // 4:
            self._table_size *= 2
        self.available: Int64Array = self.in_set_order(registered)
        """Registered brokers in the order in which Pulsar's set visits them. Shape (registered,)."""
        self._policies: dict[str, IsolationPolicy | None] = {}
        self._isolated: dict[tuple[IsolationPolicy | None, bool], tuple[Isolation, Int64Array]] = {}
        self._group_counts: dict[str, Int64Array] = {}
        self._bundle_counts: dict[str, Int64Array] = {}
        self._steps: dict[tuple[str, bool, bool], tuple[FilterStep, ...]] = {}
        self._candidates: dict[bytes, Candidates] = {}
        self._waiting: Preallocated | None = None
        self._topic_counts: Int64Array | None = None

    def _to_known_brokers(self) -> dict[str, str]:
        known = self.snapshot.brokers.position
        return {bundle: to for bundle, to in self._promised.items() if to in known}

    def promise(self, bundle: str, broker: str) -> None:
        """Count one more bundle that is on its way, as filters that are made after it do.

        Args:
            bundle: Full bundle name.
            broker: The broker of the snapshot where it will be.
        """
        to = self.snapshot.brokers.position[broker]
        self._steps.clear()
        self._group_counts.clear()
        if len(self._candidates) > _MOST_CANDIDATES:
            self._candidates.clear()
        again, self._promised[bundle] = bundle in self._promised, broker
        if again:  # it counted for another broker, and keeps its place among the bundles
            self.preallocated = self._to_known_brokers()
            self._bundle_counts.clear()
            self._waiting = self._topic_counts = None
            return
        self.preallocated[bundle] = broker
        at, namespace = self.snapshot.bundle_position.get(bundle, -1), bundle.rpartition("/")[0]
        if namespace in self._bundle_counts:
            counts = self._bundle_counts[namespace].copy()
            counts[to] += at < 0 or self.snapshot.bundles.owner[at] != to or not self._is_reported(np.array([at]))[0]
            self._bundle_counts[namespace] = frozen(counts)
        if self._waiting is not None:
            self._waiting = self._waiting.with_one(bundle, broker)
        if self._topic_counts is not None:
            self._topic_counts = self._topic_counts.copy()
            self._add_topics(self._topic_counts, np.array([at]), np.array([to]))

    def in_set_order(self, *positions: Int64Array) -> Int64Array:
        """Return brokers in the order of Pulsar's candidate set, which keeps the size it grew to. Shape as given.

        Args:
            positions: Distinct brokers; in several parts when the set got them one part after the other.
        """
        added = np.concatenate(positions)
        return added[hash_map_order(self._hashes[added], self._table_size)]

    def candidates(self, positions: Int64Array) -> Candidates:
        """Return brokers, in the order given, as a placement strategy takes them."""
        key = positions.tobytes()
        if key not in self._candidates:
            self._candidates[key] = Candidates(self.snapshot.brokers, positions)
        return self._candidates[key]

    @property
    def waiting(self) -> Preallocated:
        """The bundles on their way, by the broker that they count for."""
        if self._waiting is None:
            bundles: dict[str, list[str]] = {}
            for bundle, broker in self.preallocated.items():
                bundles.setdefault(broker, []).append(bundle)
            self._waiting = Preallocated({broker: tuple(mine) for broker, mine in bundles.items()})
        return self._waiting

    @cached_property
    def overloaded(self) -> frozenset[str]:
        """The brokers that are too busy to be the last word."""
        usage = weighted_usage(self.snapshot.brokers, self.config, LoadManager.MODULAR)
        limit = self.config.integer(BROKER_OVERLOADED_THRESHOLD_PERCENTAGE) / 100
        names = self.snapshot.brokers.name
        return frozenset([names[at] for at in np.flatnonzero(usage > limit).tolist()])

    # Isolation

    def isolation(self, namespace: str, *, non_persistent: bool = False) -> tuple[Isolation, Int64Array]:
        """Return what the isolation policies leave to a namespace, and the candidates in the order of Pulsar's set.

        Shape (candidates,).
        """
        policy = self._policy(namespace)
        key = (policy, non_persistent)
        if key not in self._isolated:
            names, brokers = self.snapshot.brokers.name, self.snapshot.brokers
            enabled = brokers.non_persistent_topics_enabled if non_persistent else brokers.persistent_topics_enabled
            serving = {names[at] for at in np.flatnonzero(enabled & brokers.has_load_data).tolist()}
            available = [names[at] for at in self.available.tolist()]
            found = isolate(self.snapshot.policies, namespace, available, serving.__contains__)
            parts = (found.primary, found.secondary if found.uses_secondary else ())
            candidates = self.in_set_order(*(self._positions(part) for part in parts))
            self._isolated[key] = (found, frozen(candidates))
        return self._isolated[key]

    def _policy(self, namespace: str) -> IsolationPolicy | None:
        if namespace not in self._policies:
            self._policies[namespace] = isolation_policy(self.snapshot.policies, namespace)
        return self._policies[namespace]

    def _positions(self, names: Sequence[str]) -> Int64Array:
        position = self.snapshot.brokers.position
        return np.array([position[name] for name in names], dtype=np.int64)

    def may_leave_isolation(self, namespace: str, broker: int) -> bool:
        """Say whether the isolation policies leave another broker than this one to a namespace."""
        _, candidates = self.isolation(namespace)
        return len(candidates) > 1 or bool((candidates != broker).any())

    # Anti-affinity

    def group_counts(self, namespace: str) -> Int64Array | None:
        """Return how many namespaces of a namespace's anti-affinity group each broker has bundles of.

        Shape (brokers,); None when the namespace is in no group.
        """
        policies = self.snapshot.policies
        group = anti_affinity_group(policies, namespace)
        if group is None:
            return None
        folded = group.lower()
        if folded not in self._group_counts:
            groups = {name: anti_affinity_group(policies, name) for name in policies.anti_affinity_group}
            members = {name for name, other in groups.items() if other is not None and other.lower() == folded}
            counts = np.zeros(len(self.snapshot.brokers), dtype=np.int64)
            for member in members:
                counts += self.bundle_counts(member) > 0
            self._group_counts[folded] = frozen(counts)
        return self._group_counts[folded]

    def may_leave_group(self, namespace: str, broker: int) -> GroupVerdict:
        """Say whether the anti-affinity rule lets a bundle of a namespace leave a broker."""
        counts = self.group_counts(namespace)
        if counts is None or not counts.any():
            return GroupVerdict(allowed=True)
        _, candidates = self.isolation(namespace)
        here = counts[candidates]
        least = int(here.min(initial=2**31 - 1))
        members = int(counts[broker]) if (candidates == broker).any() else 0
        allowed = least == 0 or members > least or int((here == least).sum()) != len(here)
        return GroupVerdict(allowed, members, least)

    def may_leave(self, bundle: str, broker: str) -> bool:
        """Say whether isolation and the anti-affinity rule let a bundle leave a broker."""
        namespace, owner = bundle.rpartition("/")[0], self.snapshot.brokers.position[broker]
        return self.may_leave_isolation(namespace, owner) and self.may_leave_group(namespace, owner).allowed

    def _domains(self) -> dict[str, str]:
        enabled = self.config.flag(FAILURE_DOMAINS_ENABLED)
        return broker_domains(self.snapshot.policies) if enabled else {}

    # Even distribution

    def bundle_counts(self, namespace: str) -> Int64Array:
        """Return how many bundles of a namespace each broker has: those on their way, and those reported, split or not.

        Shape (brokers,).
        """
        if namespace not in self._bundle_counts:
            place = self._namespace_places.get(namespace, -1)
            mine = self.snapshot.bundles_in(place) if place >= 0 else np.zeros(0, dtype=np.int64)
            owners = self.snapshot.bundles.owner[mine[self._is_reported(mine)]]
            counts = np.bincount(owners, minlength=len(self.snapshot.brokers)).astype(np.int64, copy=False)
            prefix, cut = f"{namespace}/", len(namespace)
            coming = [one for one in self.preallocated if one.startswith(prefix) and one.rfind("/") == cut]
            if coming:
                brokers = self._brokers([self.preallocated[bundle] for bundle in coming])
                at = positions_of(coming, self.snapshot.bundle_position)
                there = at >= 0
                there[there] = self._is_reported(at[there]) & (self.snapshot.bundles.owner[at[there]] == brokers[there])
                counts += np.bincount(brokers[~there], minlength=len(counts))
            for bundle, broker in self._split.items():
                known = broker in self.snapshot.brokers.position and self.preallocated.get(bundle) != broker
                if known and bundle.rpartition("/")[0] == namespace:
                    counts[self.snapshot.brokers.position[broker]] += 1
            self._bundle_counts[namespace] = frozen(counts)
        return self._bundle_counts[namespace]

    @cached_property
    def _namespace_places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.snapshot.namespaces)}

    def _is_reported(self, bundles: Int64Array) -> BoolArray:
        """Return which of some bundles stand in a load report. Shape (bundles asked about,)."""
        owner = self.snapshot.bundles.owner[bundles]
        listed: BoolArray = self.snapshot.bundles.has_stats[bundles] & (owner >= 0)
        listed[listed] &= self.snapshot.brokers.has_load_data[owner[listed]]
        return listed

    # All of them

    def steps(self, bundle: str, *, explain: bool = True, non_persistent: bool = False) -> tuple[FilterStep, ...]:
        """Return what each filter leaves for a bundle, in Pulsar's order.

        The last step holds the candidates that the placement strategy gets: those of the isolation policies join again
        when a filter failed or nobody was left.

        Args:
            bundle: Full bundle name.
            explain: Whether to give reasons.
            non_persistent: Whether the leader knows that the bundle holds non-persistent topics.
        """
        namespace = bundle.rpartition("/")[0]
        key = (namespace, non_persistent, explain)
        if key not in self._steps:
            self._steps[key] = self._of_namespace(namespace, explain=explain, non_persistent=non_persistent)
        if not explain:
            return self._steps[key]
        at = self.snapshot.bundle_position.get(bundle, -1)
        return tuple([step.about(at) for step in self._steps[key]])

    def _of_namespace(self, namespace: str, *, explain: bool, non_persistent: bool) -> tuple[FilterStep, ...]:
        run = _Run(self, explain=explain)
        found, isolated = self.isolation(namespace, non_persistent=non_persistent)
        run.isolation(found, isolated)
        run.topics(self._topics)
        counts = self.group_counts(namespace)
        if counts is not None:
            run.group(counts, self._domains())
        if self.config.flag(DISTRIBUTE_BUNDLES_EVENLY_ENABLED) or namespace == SYSTEM_NAMESPACE:
            run.even(self.bundle_counts(namespace))
        run.same_class(self._class_differs)
        if self.config.flag(PREFER_LATER_VERSIONS):
            run.version()
        run.restore(isolated)
        return tuple(run.steps)

    @property
    def _topics(self) -> Int64Array:
        """Topics of each broker, with those of bundles on their way; 0 where there is no load report."""
        if self._topic_counts is None:
            brokers = self.snapshot.brokers
            topics = np.where(brokers.has_load_data, brokers.topics, 0)
            at = positions_of(self.preallocated, self.snapshot.bundle_position)
            self._add_topics(topics, at, self._brokers(self.preallocated.values()))
            self._topic_counts = topics
        return self._topic_counts

    def _add_topics(self, topics: Int64Array, bundles: Int64Array, brokers: Int64Array) -> None:
        """Add the topics of bundles on their way to the counts of their brokers."""
        snapshot = self.snapshot
        brokers, at = brokers[bundles >= 0], bundles[bundles >= 0]
        counts = snapshot.bundles.has_data[at] & snapshot.brokers.has_load_data[brokers]
        np.add.at(topics, brokers[counts], snapshot.bundles.data_topics[at[counts]])

    def _brokers(self, names: Collection[str]) -> Int64Array:
        """Return the positions of known brokers. Shape (names,)."""
        return np.fromiter(map(self.snapshot.brokers.position.__getitem__, names), dtype=np.int64, count=len(names))

    @cached_property
    def _class_differs(self) -> BoolArray:
        """Whether a broker with a load report runs another class than the leader; nobody where no class is known."""
        brokers = self.snapshot.brokers
        classes = np.array(brokers.load_manager_class, dtype=np.object_)
        if not any(brokers.load_manager_class):
            return np.zeros(len(brokers), dtype=np.bool_)
        leader = brokers.position.get(self.snapshot.info.leader, -1)
        wanted = brokers.load_manager_class[leader] if leader >= 0 else ""
        differs: BoolArray = (classes != (wanted or self.config.text(LOAD_MANAGER_CLASS_NAME))) & brokers.has_load_data
        return differs

    @property
    def max_topics(self) -> int:
        """The setting in force."""
        return self.config.integer(BROKER_MAX_TOPICS)


class _Run:
    """The filters over any bundle of one namespace."""

    def __init__(self, filters: ModularFilters, *, explain: bool) -> None:
        self.filters = filters
        self.explain = explain
        self.kept: Int64Array = np.zeros(0, dtype=np.int64)
        self.steps: list[FilterStep] = []
        self.failed = False

    def step(self, name: str, keep: BoolArray, code: ReasonCode, *values: "Int64Array | float") -> None:
        """Keep some of the candidates; the others are given a reason.

        Args:
            name: Of the filter.
            keep: Which ones stay. Shape (candidates,).
            code: Reason of those that leave.
            values: Numbers of the reason: one for all, or by broker.
        """
        if np.count_nonzero(keep) == len(keep):
            self.steps.append(FilterStep(name, self.kept))
            return
        out = self.kept[~keep]
        self.kept = self.kept[keep]
        self.steps.append(FilterStep(name, self.kept, self.because(code, out, *values)))

    def because(self, code: ReasonCode, brokers: Int64Array, *values: "Int64Array | float") -> tuple[ReasonBlock, ...]:
        if not self.explain or not len(brokers):
            return ()
        columns = [v[brokers].astype(np.float64) if isinstance(v, np.ndarray) else float(v) for v in values]
        return (block(code, brokers, values=columns),)

    def isolation(self, found: Isolation, candidates: Int64Array) -> None:
        self.kept = candidates
        if not self.explain:
            self.steps.append(FilterStep("isolation", candidates))
            return
        position = self.filters.snapshot.brokers.position

        def of(names: Sequence[str]) -> Int64Array:
            return np.array([position[name] for name in names], dtype=np.int64)

        reasons: list[ReasonBlock] = []
        for code, names in ((_NOT_SERVING, found.unable), (_RESERVED, found.reserved)):
            reasons += self.because(code, of(names)) if names else ()
        if found.policy is not None:
            members = np.concatenate([of(found.primary), of(found.secondary)])
            outside = np.setdiff1d(self.filters.available, members)
            numbers = (float(len(found.primary)), float(found.policy.min_limit))
            spare = () if found.uses_secondary else found.secondary
            reasons += self.because(_NOT_IN_POLICY, outside)
            reasons += self.because(_SECONDARY, of(spare), *numbers)
        self.steps.append(FilterStep("isolation", candidates, tuple(reasons)))

    def topics(self, topics: Int64Array) -> None:
        limit = self.filters.max_topics
        keep = topics[self.kept] <= limit
        if not np.count_nonzero(keep):
            keep[:] = True
        self.step("topics", keep, _TOPICS, topics, float(limit))

    def group(self, counts: Int64Array, domains: Mapping[str, str]) -> None:
        names = self.filters.snapshot.brokers.name
        left = least_of_group({names[i]: int(counts[i]) for i in self.kept.tolist()}, domains)
        position = self.filters.snapshot.brokers.position
        inside = np.isin(self.kept, [position[name] for name in left.in_domain])
        kept = np.isin(self.kept, [position[name] for name in left.kept])
        reasons: tuple[ReasonBlock, ...] = ()
        if self.explain and not inside.all():
            out = self.kept[~inside]
            sums = [float(left.domain_sums[domains.get(names[i], NO_DOMAIN)]) for i in out.tolist()]
            code = (sums, float(min(left.domain_sums.values())))
            reasons = (block(_DOMAIN, out, values=code),)
        reasons += self.because(_GROUP, self.kept[inside & ~kept], counts, float(left.least))
        self.kept = self.kept[kept]
        self.steps.append(FilterStep("anti-affinity", self.kept, reasons))

    def even(self, counts: Int64Array) -> None:
        here = counts[self.kept]
        least = int(here.min(initial=2**31 - 1))
        self.step("even distribution", here == least, _UNEVEN, counts, float(least))

    def same_class(self, differs: BoolArray) -> None:
        self.step("load manager class", ~differs[self.kept], _CLASS)

    def version(self) -> None:
        brokers = self.filters.snapshot.brokers
        here = self.kept.tolist()
        try:
            newest = latest({brokers.name[i]: brokers.version[i] if brokers.has_load_data[i] else "" for i in here})
        except PulsarError as error:
            self.failed = True
            self.steps.append(FilterStep("version", self.kept, (), str(error)))
            return
        keep = np.isin(self.kept, [brokers.position[name] for name in newest])
        self.step("version", keep, _VERSION)

    def restore(self, isolated: Int64Array) -> None:
        if not self.failed and len(self.kept):
            return
        back = isolated[~np.isin(isolated, self.kept)]
        self.kept = self.filters.in_set_order(self.kept, back)
        self.steps.append(FilterStep("restored", self.kept, self.because(_RESTORED, back)))
