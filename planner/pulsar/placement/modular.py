"""Which broker the modular load manager's leader gives a bundle to, and what it remembers of it.

Mirrors `ModularLoadManagerWrapper.getLeastLoaded`, `ModularLoadManagerImpl.selectBrokerForAssignment`, `selectBroker`,
`preallocateBundle` and the part of `updateBundleData` that forgets preallocations, of Pulsar 4.2.4.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np

from planner.cluster.decisions import PlacementDecision
from planner.cluster.internal_namespaces import is_heartbeat_or_sla_namespace
from planner.cluster.load_manager import LoadManager
from planner.cluster.names import LOAD_PLACEMENT_STRATEGY, LOAD_SHEDDING_STRATEGY, SHEDDING_EXCLUDED_NAMESPACES
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.cluster.tables import BrokerTable
from planner.pulsar.manager.class_names import class_name
from planner.pulsar.placement import avg, least_long_term_message_rate, round_robin
from planner.pulsar.placement.avg import Bindings
from planner.pulsar.placement.candidates import no_load_report
from planner.pulsar.placement.least_long_term_message_rate import Preallocated
from planner.pulsar.placement.least_resource_usage import UsageAverages
from planner.pulsar.placement.modular_filters import ModularFilters
from planner.pulsar.placement.protocol import Placement
from planner.pulsar.placement.registry import PLACEMENTS, placement_by_name
from planner.pulsar.placement.rotation import Rotation
from planner.pulsar.placement.selection import FilterStep, How, Selection

_NONE: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Report:
    """A load report that the leader has read.

    Attributes:
        broker: Who wrote it.
        at_ms: When, ms since 1970 (`BrokerTable.updated_at_ms`).
    """

    broker: str
    at_ms: int

    def is_latest(self, brokers: BrokerTable) -> bool:
        """Return whether its broker is still there and has written none since."""
        at = brokers.position.get(self.broker, -1)
        return at >= 0 and bool(brokers.has_load_data[at]) and int(brokers.updated_at_ms[at]) == self.at_ms


_NO_REPORTS: Mapping[str, Report] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ModularMemory:
    """What the leader remembers of bundles that it placed.

    Attributes:
        placement: State of the configured placement strategy.
        rotation: State of the round robin that places bundles of namespaces excluded from shedding.
        promised: Broker that every further request for a bundle is answered with (`preallocatedBundleToBroker`).
        preallocated: Broker that a bundle counts for until it reports the bundle (`preallocatedBundleData`).
        split: The report that lists a bundle that was split. The bundle still counts for that broker as one of its
            namespace (`brokerToNamespaceToBundleRange`) until the leader reads a newer report of that broker.
        affinities: Broker that an unload named as a bundle's destination; used up by the next request.
    """

    placement: Any
    rotation: Rotation = field(default_factory=Rotation)
    promised: Mapping[str, str] = field(default_factory=lambda: _NONE)
    preallocated: Mapping[str, str] = field(default_factory=lambda: _NONE)
    split: Mapping[str, Report] = field(default_factory=lambda: _NO_REPORTS)
    affinities: Mapping[str, str] = field(default_factory=lambda: _NONE)

    def without_affinity(self, bundle: str) -> "ModularMemory":
        """Return the memory after the request that uses a bundle's affinity up."""
        if bundle not in self.affinities:
            return self
        left = dict(self.affinities)
        del left[bundle]
        return replace(self, affinities=left)

    @property
    def heeds_reports(self) -> bool:
        """Whether there is something that new load reports make the leader forget."""
        bound = isinstance(self.placement, Bindings) and self.placement.broker
        return bool(self.promised or self.preallocated or self.split or bound)

    def filters(self, snapshot: Snapshot, config: Settings) -> ModularFilters:
        """Return the filters of this moment."""
        split = {bundle: report.broker for bundle, report in self.split.items()}
        return ModularFilters(snapshot, config, self.preallocated, split)

    def after_split(self, bundle: str, report: Report) -> "ModularMemory":
        """Return the memory after a bundle was split that a report lists."""
        return replace(self, split={**self.split, bundle: report})


@lru_cache(maxsize=64)
def configured_placement(config: Settings) -> Placement:
    """Return the placement strategy in force; see `UNPAIRED`.

    A class that is none of Pulsar's counts as the one whose name it ends with, else as the default: with a name that it
    cannot load, Pulsar's load manager does not start, and what an own class does is unknown.
    """
    given = class_name(LOAD_PLACEMENT_STRATEGY, config.text(LOAD_PLACEMENT_STRATEGY))
    found = placement_by_name(given.like, LoadManager.MODULAR) if given.ends_like else PLACEMENTS[0]
    alone = found is avg.PLACEMENT and not config.text(LOAD_SHEDDING_STRATEGY).endswith(found.name)
    return least_long_term_message_rate.PLACEMENT if alone and config.release.has(avg.UNPAIRED) else found


def fresh_memory(config: Settings) -> ModularMemory:
    """Return the memory of a leader that was just elected.

    Raises:
        SettingError: There is no such placement strategy.
    """
    return ModularMemory(configured_placement(config).initial())


def unreported(snapshot: Snapshot) -> dict[str, str]:
    """Return the bundles that the modular load manager's leader owns and does not report, as none has a topic.

    When the leader gave them to itself it counts them as bundles that are on their way, for good, with the rates that
    it supposes of a new bundle; what it gave to other brokers it forgets when they report (`updateBundleData`). A
    snapshot does not tell which of them it gave to itself.
    """
    leader = snapshot.brokers.position.get(snapshot.info.leader, -1)
    if leader < 0 or snapshot.info.load_manager is not LoadManager.MODULAR:
        return {}
    rows = np.flatnonzero((snapshot.bundles.owner == leader) & ~snapshot.bundles.has_stats).tolist()
    names, decides = (snapshot.bundle_names[row] for row in rows), snapshot.settings.release
    counted = (n for n in names if not is_heartbeat_or_sla_namespace(n.rpartition("/")[0], decides))
    return dict.fromkeys(counted, snapshot.info.leader)


def select_broker(
    snapshot: Snapshot,
    bundle: str,
    memory: ModularMemory,
    config: Settings,
    seed: int,
    *,
    filters: ModularFilters | None = None,
    explain: bool = True,
) -> tuple[ModularMemory, Selection]:
    """Pick a broker for a bundle by the filters and the placement strategy; nothing is promised yet.

    When a broker of the strategy's answer is overloaded the strategy is asked again about all brokers that isolation
    allows. Which brokers Pulsar might answer is the union over its draws.

    Args:
        snapshot: The cluster.
        bundle: Full bundle name; it may have an owner, as a bundle that is shed has.
        memory: What the leader remembers.
        config: Settings in force.
        seed: Decides where Pulsar draws at random.
        filters: The filters of this moment, when many bundles are placed; `memory.filters` makes them.
        explain: Whether to give a reason for every broker.

    Returns:
        The memory afterwards, and how the broker was found.

    Raises:
        PulsarError: A candidate, or the one drawn, has no load report; Pulsar ends in a NullPointerException. Or there
            is no candidate for AvgShedder.
        SettingError: There is no such placement strategy.
    """
    prepared = filters if filters is not None else memory.filters(snapshot, config)
    steps = prepared.steps(bundle, explain=explain)
    namespace = bundle.rpartition("/")[0]
    in_turn = namespace in config.names(SHEDDING_EXCLUDED_NAMESPACES)
    strategy: Placement = round_robin.PLACEMENT if in_turn else configured_placement(config)
    ask = _Ask(prepared, bundle, seed)
    after, first = ask.turn(memory, steps[-1]) if in_turn else ask.strategy(memory, steps[-1])
    if first.selected is None:
        return after, _selection(bundle, steps, strategy, (first,), (), None)
    if not snapshot.brokers.has_load_data[snapshot.brokers.position[first.selected]]:
        raise no_load_report(first.selected)
    reporting = prepared.candidates(steps[-1].kept).those_reporting(first.acceptable)
    first = replace(first, acceptable=reporting)
    overloaded = prepared.overloaded.intersection(reporting)
    if not overloaded:
        return after, _selection(bundle, steps, strategy, (first,), first.acceptable, first.selected)
    _, isolated = prepared.isolation(namespace)
    kept = steps[-1].kept
    everyone = prepared.in_set_order(kept, isolated[~np.isin(isolated, kept)])
    later, second = ask.strategy(after, FilterStep("overloaded", everyone))
    acceptable = list(first.acceptable)
    bound = isinstance(after.placement, Bindings) and not config.release.has(avg.PLANNED_DESTINATIONS)
    if in_turn or not bound:  # else the bundle is bound to whichever broker was drawn
        acceptable = [name for name in first.acceptable if name not in overloaded]
        acceptable += [name for name in second.acceptable or first.acceptable if name not in acceptable]
    again = first.selected in overloaded
    selected = (second.selected or first.selected) if again else first.selected
    selection = _selection(bundle, steps, strategy, (first, second), tuple(acceptable), selected)
    return later if again else after, selection


def _selection(
    bundle: str,
    steps: tuple[FilterStep, ...],
    strategy: Placement,
    calls: tuple[PlacementDecision, ...],
    acceptable: tuple[str, ...],
    selected: str | None,
) -> Selection:
    reasons = [reason for step in steps for reason in step.reasons]
    reasons += [reason for call in calls for reason in call.reasons]
    decision = PlacementDecision(bundle, acceptable, selected, tuple(reasons))
    return Selection(decision, "strategy", steps, strategy.name, calls)


@dataclass(frozen=True, eq=False, slots=True)
class _Ask:
    """Calls of a placement strategy about one bundle."""

    filters: ModularFilters
    bundle: str
    seed: int

    def _answer(self, strategy: Placement, state: Any, step: FilterStep) -> tuple[Any, PlacementDecision]:
        filters = self.filters
        among = filters.candidates(step.kept)
        return strategy.select(self.bundle, among, filters.snapshot, state, filters.config, self.seed)

    def turn(self, memory: ModularMemory, step: FilterStep) -> tuple[ModularMemory, PlacementDecision]:
        """Ask the round robin of excluded namespaces."""
        rotation, decision = self._answer(round_robin.PLACEMENT, memory.rotation, step)
        return replace(memory, rotation=rotation), decision

    def strategy(self, memory: ModularMemory, step: FilterStep) -> tuple[ModularMemory, PlacementDecision]:
        """Ask the configured strategy, telling it what is preallocated if it wants to know."""
        state = self.filters.waiting if isinstance(memory.placement, Preallocated) else memory.placement
        after, decision = self._answer(configured_placement(self.filters.config), state, step)
        return memory if after is memory.placement else replace(memory, placement=after), decision


def least_loaded(
    snapshot: Snapshot,
    bundle: str,
    memory: ModularMemory,
    config: Settings,
    seed: int,
    *,
    filters: ModularFilters | None = None,
    explain: bool = True,
) -> tuple[ModularMemory, Selection]:
    """Answer a request for a bundle that nobody owns, as the leader does, and remember the promise.

    A bundle of a heartbeat or SLA namespace goes to the broker that it names. An affinity is used up, without filters;
    a promise is repeated; otherwise `select_broker` decides, and its answer is promised.

    Args:
        snapshot: The cluster.
        bundle: Full bundle name.
        memory: What the leader remembers.
        config: Settings in force.
        seed: Decides where Pulsar draws at random.
        filters: The filters of this moment, when many bundles are placed one after the other; they are told of the
            promise.
        explain: Whether to give a reason for every broker.

    Raises:
        PulsarError: As `select_broker` does.
        SettingError: As `select_broker` does.
    """
    namespace = bundle.rpartition("/")[0]
    if is_heartbeat_or_sla_namespace(namespace, config.release):
        return memory, _determined(bundle, namespace.rpartition("/")[2], "named")
    if memory.affinities.get(bundle, "").strip():
        return memory.without_affinity(bundle), _determined(bundle, memory.affinities[bundle], "affinity")
    if bundle in memory.promised:
        return memory, _determined(bundle, memory.promised[bundle], "preallocated")
    after, selection = select_broker(snapshot, bundle, memory, config, seed, filters=filters, explain=explain)
    selected = selection.decision.selected
    if selected is not None:
        if not snapshot.brokers.has_load_data[snapshot.brokers.position[selected]]:
            raise no_load_report(selected)
        after = replace(
            after,
            promised={**after.promised, bundle: selected},
            preallocated={**after.preallocated, bundle: selected},
        )
        if filters is not None:
            filters.promise(bundle, selected)
    return after, selection


def _determined(bundle: str, broker: str, how: How) -> Selection:
    return Selection(PlacementDecision(bundle, (broker,), broker), how)


def after_refresh(memory: ModularMemory, snapshot: Snapshot) -> ModularMemory:
    """Return what is left of the promises after the leader has read new load reports.

    Promises to brokers that report, and to brokers that left, are forgotten; one to a broker without a report is kept.
    The bundle goes on counting for a broker that reports only if the leader itself owns the bundle and the broker does
    not report it yet. A split bundle counts until its own broker reports: until then, the leader reads that broker's
    last report again. AvgShedder loses its bindings, as their keys are averages that take another sample.

    Differs where a bundle is reported by nobody: Pulsar goes on counting it with the averages that it had when it was
    promised, and finds its binding by them, while the snapshot has none any more.

    Args:
        memory: What the leader remembers.
        snapshot: The cluster, with the new reports.
    """
    brokers, bundles = snapshot.brokers, snapshot.bundles
    leader = brokers.position.get(snapshot.info.leader, -1)
    here = set(np.array(brokers.name, dtype=np.object_)[brokers.registered].tolist())
    reporting = set(np.array(brokers.name, dtype=np.object_)[brokers.registered & brokers.has_load_data].tolist())
    preallocated = {}
    for bundle, broker in memory.preallocated.items():
        to = brokers.position.get(broker, -1)
        at = snapshot.bundle_position.get(bundle, -1)
        if broker not in reporting or at < 0 or leader < 0 or bundles.owner[at] != leader:
            continue
        if not (bundles.owner[at] == to and bundles.has_stats[at] and bundles.has_data[at]):
            preallocated[bundle] = broker
    promised = {
        bundle: broker
        for bundle, broker in memory.promised.items()
        if broker in here and not (broker in reporting and memory.preallocated.get(bundle) == broker)
    }
    placement = Bindings() if isinstance(memory.placement, Bindings) else memory.placement
    split = {bundle: report for bundle, report in memory.split.items() if report.is_latest(brokers)}
    return replace(memory, placement=placement, promised=promised, preallocated=preallocated, split=split)


def with_active_brokers(memory: ModularMemory, snapshot: Snapshot) -> ModularMemory:
    """Return the memory as it is when the leader notices which brokers are there.

    Averages of brokers that left are forgotten, and so is what was promised to them
    (`ModularLoadManagerImpl.reapDeadBrokerPreallocations` of Pulsar 4.2.4).
    """
    here = {
        name for name, active in zip(snapshot.brokers.name, snapshot.brokers.registered.tolist(), strict=True) if active
    }
    state = memory.placement
    placement = state.of_active(here) if isinstance(state, UsageAverages) else state
    promised, preallocated = (
        given if here.issuperset(given.values()) else {bundle: to for bundle, to in given.items() if to in here}
        for given in (memory.promised, memory.preallocated)
    )
    return replace(memory, placement=placement, promised=promised, preallocated=preallocated)
