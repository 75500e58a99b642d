"""Which broker the extensible load manager gives an unowned bundle to.

Mirrors `ExtensibleLoadManagerImpl.selectAsync` of Pulsar 4.2.4 for a bundle that has no owner: the filters, then round
robin for namespaces that are excluded from shedding, LeastResourceUsageWithWeight for all others. It differs in that
every broker keeps its own round robin; here the one that answers the lookups has it.
"""

from dataclasses import dataclass, field

import numpy as np

from planner.cluster.decisions import PlacementDecision, ReasonBlock, ReasonCode, block
from planner.cluster.names import BROKER_MAX_TOPICS, SHEDDING_EXCLUDED_NAMESPACES
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.pulsar.placement import least_resource_usage_extensible, round_robin_extensible
from planner.pulsar.placement.extensible_filters import FILTERS, ExtensibleFilters
from planner.pulsar.placement.rotation import Rotation
from planner.pulsar.placement.selection import FilterStep, Selection

_DROPPED = {
    FILTERS[0]: ReasonCode("place_extensible.class", "it runs a different load manager class from the deciding broker"),
    FILTERS[1]: ReasonCode("place_extensible.topics", "{topics:.0f} topics >= {limit:.0f}"),
    FILTERS[2]: ReasonCode("place_extensible.version", "another broker runs a later version"),
    FILTERS[3]: ReasonCode(
        "place_extensible.group", "another broker owns fewer bundles of the namespace's anti-affinity group"
    ),
    FILTERS[4]: ReasonCode("place_extensible.isolation", "the isolation policies do not allow it for the namespace"),
}


@dataclass(frozen=True, slots=True)
class ExtensibleMemory:
    """What the broker that answers lookups remembers.

    Attributes:
        rotation: State of the round robin for excluded namespaces.
    """

    rotation: Rotation = field(default_factory=Rotation)


def assign(
    snapshot: Snapshot,
    bundle: str,
    memory: ExtensibleMemory,
    config: Settings,
    seed: int,
    *,
    filters: ExtensibleFilters | None = None,
    excluded: frozenset[str] = frozenset(),
    explain: bool = True,
) -> tuple[ExtensibleMemory, Selection]:
    """Pick a broker for a bundle that nobody owns.

    Args:
        snapshot: The cluster.
        bundle: Full bundle name.
        memory: What the deciding broker remembers.
        config: Settings in force.
        seed: Decides where Pulsar draws at random.
        filters: The filters of this moment, when many bundles are placed.
        excluded: Brokers that must not get it.
        explain: Whether to give a reason for every broker.

    Returns:
        The memory afterwards, and how the broker was found. A filter that fails leaves everybody, as in Pulsar.
    """
    prepared = filters if filters is not None else ExtensibleFilters(snapshot, config)
    namespace = bundle.rpartition("/")[0]
    names, position = snapshot.brokers.name, snapshot.brokers.position
    left = [i for i in np.flatnonzero(snapshot.brokers.registered).tolist() if names[i] not in excluded]
    steps: list[FilterStep] = []
    subject = snapshot.bundle_position.get(bundle, -1)
    for step in prepared.steps(namespace):
        kept = {position[name] for name in step.kept}
        out = [i for i in left if i not in kept]
        left = [i for i in left if i in kept]
        reasons: tuple[ReasonBlock, ...] = ()
        if out and explain:
            code = _DROPPED[step.name]
            limit = float(config.integer(BROKER_MAX_TOPICS))
            topics = snapshot.brokers.topics[out].astype(np.float64)
            reasons = (block(code, out, subject, (topics, limit) if code.fields else ()),)
        steps.append(FilterStep(step.name, np.array(left, dtype=np.int64), reasons, step.failure))
    candidates = tuple(names[i] for i in left)
    after, name, call = memory, "", PlacementDecision(bundle, (), None)
    if candidates and namespace in config.names(SHEDDING_EXCLUDED_NAMESPACES):
        rotation, call = round_robin_extensible.PLACEMENT.select(
            bundle, candidates, snapshot, memory.rotation, config, seed
        )
        after, name = ExtensibleMemory(rotation), round_robin_extensible.PLACEMENT.name
    elif candidates:
        strategy = least_resource_usage_extensible.PLACEMENT
        _, call = strategy.select(bundle, candidates, snapshot, strategy.initial(), config, seed)
        name = strategy.name
    every = tuple(reason for step in steps for reason in step.reasons) + call.reasons
    decision = PlacementDecision(bundle, call.acceptable, call.selected, every)
    return after, Selection(decision, "strategy", tuple(steps), name, (call,) if candidates else ())
