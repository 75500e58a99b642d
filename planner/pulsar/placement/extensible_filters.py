"""The filters that a broker must pass before the extensible load manager places a bundle on it, or sheds one to it.

Mirrors, in this order, `BrokerLoadManagerClassFilter`, `BrokerMaxTopicCountFilter`, `BrokerVersionFilter`,
`AntiAffinityGroupPolicyFilter` and `BrokerIsolationPoliciesFilter` of Pulsar 4.2.4. It differs in that bundles count as
persistent: whether a non-persistent topic was ever looked up is known to the broker process only.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from planner.cluster.errors import PulsarError
from planner.cluster.names import (
    BROKER_MAX_TOPICS,
    FAILURE_DOMAINS_ENABLED,
    LOAD_MANAGER_CLASS_NAME,
    PREFER_LATER_VERSIONS,
)
from planner.cluster.settings import Settings
from planner.cluster.snapshot import IsolationPolicy, Snapshot
from planner.pulsar.load.namespace_policies import anti_affinity_group, isolation_failure, isolation_policy
from planner.pulsar.placement.filters import broker_domains, isolate, latest, least_of_group

FILTERS = (
    "broker_load_manager_class_filter",
    "broker_max_topic_count_filter",
    "broker_version_filter",
    "broker_anti_affinity_group_filter",
    "broker_isolation_policies_filter",
)
"""Pulsar's names of the filters, in the order in which they run."""


@dataclass(frozen=True, slots=True)
class FilterStep:
    """What one filter left.

    Attributes:
        name: Pulsar's name of the filter.
        kept: Broker ids that are left, in the order of the snapshot.
        failure: Why the filter failed and dropped nothing; empty when it did not fail.
    """

    name: str
    kept: tuple[str, ...]
    failure: str = ""


_Rules: TypeAlias = tuple[str | None, IsolationPolicy | None, str]


class ExtensibleFilters:
    """The filters over one snapshot; what no namespace changes is worked out once."""

    def __init__(self, snapshot: Snapshot, config: Settings) -> None:
        """Prepare the filters.

        Args:
            snapshot: The cluster; the registered brokers are the candidates.
            config: Settings in force.
        """
        self._snapshot = snapshot
        self._config = config
        brokers = snapshot.brokers
        self._position = brokers.position
        self._last: dict[_Rules, tuple[FilterStep, FilterStep]] = {}
        self._allowed: dict[_Rules, frozenset[str]] = {}
        names = [name for name, here in zip(brokers.name, brokers.registered.tolist(), strict=True) if here]
        by_class = self._of_class(names)
        below_limit = self._below_topic_limit(by_class)
        try:
            newest, failure = self._latest(below_limit), ""
        except PulsarError as error:
            newest, failure = below_limit, str(error)
        steps = ((by_class, ""), (below_limit, ""), (newest, failure))
        self._first = tuple(
            FilterStep(name, tuple(kept), why) for name, (kept, why) in zip(FILTERS[:3], steps, strict=True)
        )

    def steps(self, namespace: str) -> tuple[FilterStep, ...]:
        """Return what each filter leaves for a bundle of a namespace; one that fails leaves all, as when placing."""
        key = self._rules(namespace)
        if key not in self._last:
            apart = self._apart(key[0], self._first[-1].kept)
            isolated = apart if key[2] else self._isolated(namespace, apart)
            self._last[key] = (FilterStep(FILTERS[3], tuple(apart)), FilterStep(FILTERS[4], tuple(isolated), key[2]))
        return (*self._first, *self._last[key])

    def allowed(self, namespace: str) -> frozenset[str]:
        """Return the brokers that pass every filter.

        Raises:
            PulsarError: A filter fails; shedding then leaves the bundle where it is.
        """
        key = self._rules(namespace)
        if key not in self._allowed:
            steps = self.steps(namespace)
            for step in steps:
                if step.failure:
                    raise PulsarError("BrokerFilterException", step.failure, where=step.name)
            self._allowed[key] = frozenset(steps[-1].kept)
        return self._allowed[key]

    def _rules(self, namespace: str) -> _Rules:
        """Return what tells namespaces apart here.

        It is the anti-affinity group in lower case, the isolation policy, and why Pulsar cannot look for one.
        """
        policies = self._snapshot.policies
        group = anti_affinity_group(policies, namespace)
        policy, failure = isolation_policy(policies, namespace), isolation_failure(policies, namespace)
        return None if group is None else group.lower(), policy, failure

    def _of_class(self, names: Sequence[str]) -> list[str]:
        classes, leader = self._snapshot.brokers.load_manager_class, self._position.get(self._snapshot.info.leader, -1)
        there = set(classes)
        wanted = (classes[leader] if leader >= 0 else "") or self._config.text(LOAD_MANAGER_CLASS_NAME)
        if wanted not in there or there <= {wanted, ""}:
            return list(names)  # nobody says what the deciding broker runs, or nobody runs another one
        return [name for name in names if classes[self._position[name]] in {wanted, ""}]

    def _below_topic_limit(self, names: Iterable[str]) -> list[str]:
        limit, brokers = self._config.integer(BROKER_MAX_TOPICS), self._snapshot.brokers
        topics = np.where(brokers.has_load_data, brokers.topics, 0)
        if topics.max(initial=0) < limit:
            return list(names)
        return [name for name in names if topics[self._position[name]] < limit]

    def _latest(self, names: list[str]) -> list[str]:
        if not self._config.flag(PREFER_LATER_VERSIONS) or not names:
            return names
        return list(latest({name: self._snapshot.brokers.version[self._position[name]] for name in names}))

    def _apart(self, group: str | None, names: Sequence[str]) -> Sequence[str]:
        """Keep the brokers that own the fewest bundles of an anti-affinity group."""
        policies, bundles = self._snapshot.policies, self._snapshot.bundles
        if group is None or not names:
            return names
        groups = [anti_affinity_group(policies, name) for name in self._snapshot.namespaces]
        member = np.array([g is not None and g.lower() == group.lower() for g in groups], dtype=np.bool_)
        owners = bundles.owner[member[bundles.namespace] & (bundles.owner >= 0)]
        counts = np.bincount(owners, minlength=len(self._position)).tolist()
        count = {name: counts[self._position[name]] for name in names}
        domains = broker_domains(policies) if self._config.flag(FAILURE_DOMAINS_ENABLED) else {}
        return least_of_group(count, domains).kept

    def _isolated(self, namespace: str, names: Sequence[str]) -> list[str]:
        """Keep the brokers of an isolation policy; without one, those that are primary brokers of none."""
        policies, enabled = self._snapshot.policies, self._snapshot.brokers.persistent_topics_enabled
        if not policies.isolation and enabled.all():
            return list(names)
        found = isolate(policies, namespace, names, lambda name: bool(enabled[self._position[name]]))
        candidates = frozenset(found.candidates)
        return [name for name in names if name in candidates]
