"""AvgShedder's placement: a bundle goes to the broker it is bound to, else to one drawn at random and bound to it.

Mirrors `AvgShedder.selectBroker` of Pulsar 4.2.4, and what 5.0.1 does instead (`PLANNED_DESTINATIONS`). Bindings are
kept by the *value* of the bundle's averages: bundles with equal averages share one, and it is lost as soon as the
averages change.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeAlias

import numpy as np

from planner.cluster.arrays import Int64Array
from planner.cluster.decisions import PlacementDecision, ReasonCode, block
from planner.cluster.errors import PulsarError
from planner.cluster.load_manager import LoadManager
from planner.cluster.names import BROKER_OVERLOADED_THRESHOLD_PERCENTAGE
from planner.cluster.releases import Release, Switch
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.cluster.tables import TRAFFIC_COLUMNS
from planner.pulsar.load.averages import DEFAULT_TRAFFIC
from planner.pulsar.load.usage import weighted_usage
from planner.pulsar.placement.candidates import Candidates
from planner.pulsar.placement.protocol import Measure

BundleKey: TypeAlias = tuple[float, ...] | str
"""Topics, samples and the eight rates of a bundle's averages: what Pulsar compares. See `BOUND_BY_NAME`."""

BOUND_BY_NAME = Switch(
    "AvgShedder's placement binds the bundle itself, not its average values: equal bundles do not share "
    "a binding, and a binding survives a change of the averages.",
    until="4.0.0",
)

PLANNED_DESTINATIONS = Switch(
    "AvgShedder plans destinations by bundle name, chooses another broker if the planned one is gone or "
    "overloaded, and drops every plan after the attempt. It places any other bundle at random without a "
    "binding, and chooses no broker, instead of failing, if there is no candidate.",
    since="5.0.1",
)

UNPAIRED = Switch(
    "AvgShedder as placement strategy, without being the shedding strategy, is replaced by "
    "LeastLongTermMessageRate. In older releases the load manager fails to start.",
    since="5.0.1",
)

_PLANNED = ReasonCode("avg.planned", "planned as the destination when the bundle was shed", acts=True)
_GONE = ReasonCode(
    "avg.planned_gone",
    "drawn at random from the other candidates: the planned broker, {other}, is not a candidate",
    acts=True,
)
_PLAN_OVERLOADED = ReasonCode(
    "avg.planned_overloaded",
    ("drawn at random from the candidates up to {threshold:.0f} %: the planned broker, {other}, is at {score:.1f} %"),
    acts=True,
)
_UNPLANNED = ReasonCode("avg.unplanned", "the bundle has no planned destination: drawn at random", acts=True)
_BOUND = ReasonCode("avg.bound", "the bundle's averages are bound to this broker", acts=True)
_DRAWN = ReasonCode(
    "avg.drawn", "the bundle's averages are bound to no candidate: drawn at random from all of them", acts=True
)

_AVERAGED = ("samples", *TRAFFIC_COLUMNS)
_COMPARED = ("data_topics", *(term + name for term in ("short_term_", "long_term_") for name in _AVERAGED))


@dataclass(frozen=True, slots=True)
class Bindings:
    """What the placement remembers.

    Attributes:
        broker: Broker by the value of a bundle's averages.
    """

    broker: Mapping[BundleKey, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Plans:
    """What the placement knows while one shedding cycle is carried out; see `PLANNED_DESTINATIONS`.

    Attributes:
        brokers: Source and planned destination by the full name of a bundle.
    """

    brokers: Mapping[str, tuple[str, str]]


def bundle_key(snapshot: Snapshot, name: str, release: Release) -> BundleKey:
    """Return the value by which a bundle is bound.

    Args:
        snapshot: The cluster.
        name: Full name of the bundle; an unknown one, or one without averages, has Pulsar's default averages.
        release: Whose rules are followed.
    """
    if release.has(BOUND_BY_NAME):
        return name
    bundle = snapshot.bundle_position.get(name, -1)
    if bundle < 0 or not snapshot.bundles.has_data[bundle]:
        rates = [float(getattr(DEFAULT_TRAFFIC, name)) for name in TRAFFIC_COLUMNS]
        return (0.0, 0.0, *rates, 0.0, *rates)
    # One of thousands that a cycle moves: columns of a single row take longer.
    key = tuple(float(getattr(snapshot.bundles, column)[bundle]) for column in _COMPARED)
    return _with_one_nan(key) if math.isnan(sum(key)) else key


def bundle_keys(snapshot: Snapshot, bundles: Int64Array, release: Release) -> Sequence[BundleKey]:
    """Return the values by which bundles with averages are bound.

    Args:
        snapshot: The cluster.
        bundles: Their positions.
        release: Whose rules are followed.
    """
    if release.has(BOUND_BY_NAME):
        return [snapshot.bundle_names[i] for i in bundles.tolist()]
    table = snapshot.bundles
    keys = zip(*(getattr(table, name)[bundles].astype(np.float64).tolist() for name in _COMPARED), strict=True)
    return [_with_one_nan(key) if math.isnan(sum(key)) else key for key in keys]


def _with_one_nan(key: tuple[float, ...]) -> tuple[float, ...]:
    """Return a key whose NaN are one object: equal to itself, as every NaN is in Java."""
    return tuple(math.nan if math.isnan(value) else value for value in key)


def placed(broker: Mapping[BundleKey, str], key: BundleKey, candidates: Sequence[str]) -> str | None:
    """Return the broker that a value is bound to, when it is a candidate."""
    bound = broker.get(key)
    return bound if bound in candidates else None


def _draw(bundle: str, ordered: Sequence[str], seed: int) -> str:
    return ordered[Random(f"{seed}:{bundle}").randrange(len(ordered))]  # noqa: S311 - a choice, no secret


def _planned(
    bundle: str,
    candidates: Sequence[str],
    snapshot: Snapshot,
    plan: tuple[str, str] | None,
    config: Settings,
    seed: int,
) -> PlacementDecision:
    """Follow the plan of a bundle, if there is one, as long as its destination can take the bundle.

    Args:
        bundle: Full bundle name.
        candidates: Broker ids.
        snapshot: The cluster.
        plan: Source and planned destination.
        config: Settings in force.
        seed: Decides where Pulsar draws at random.
    """
    ordered: tuple[str, ...] = Candidates.named(snapshot.brokers, candidates).ordered
    code, other = _UNPLANNED, -1
    values: tuple[float, ...] = ()
    if plan is not None:
        to = plan[1]
        other = snapshot.brokers.position.get(to, -1)
        others = [name for name in ordered if name not in plan]
        if to in ordered:
            score = weighted_usage(snapshot.brokers, config, LoadManager.MODULAR) * 100
            score[~snapshot.brokers.has_load_data] = np.nan  # neither too much nor little enough, as in Pulsar
            threshold = config.integer(BROKER_OVERLOADED_THRESHOLD_PERCENTAGE)
            healthy = [name for name in others if score[snapshot.brokers.position[name]] <= threshold]
            if not score[other] > threshold or not healthy:
                return PlacementDecision(bundle, (to,), to, (block(_PLANNED, other),))
            code, values, ordered = _PLAN_OVERLOADED, (threshold, float(score[other])), tuple(healthy)
        else:
            code, ordered = _GONE, tuple(others)
    if not ordered:
        return PlacementDecision(bundle, (), None)
    drawn = _draw(bundle, ordered, seed)
    reason = block(code, snapshot.brokers.position.get(drawn, -1), values=values, others=other)
    return PlacementDecision(bundle, ordered, drawn, (reason,))


class AvgPlacement:
    """The strategy; its contract is `Placement`."""

    name = "AvgShedder"
    java_class = "org.apache.pulsar.broker.loadbalance.impl.AvgShedder"
    load_manager = LoadManager.MODULAR
    summary = (
        "Sends a bundle that AvgShedder shed to the other broker of the pair; any other bundle to a random broker."
    )
    judges_by = "the pairs of AvgShedder"
    measure: Measure = "pair"
    settings: tuple[str, ...] = ()

    def initial(self) -> Bindings:
        """Return the state of a strategy that was just created."""
        return Bindings()

    def select(
        self, bundle: str, candidates: Sequence[str], snapshot: Snapshot, state: Any, config: Settings, seed: int
    ) -> tuple[Any, PlacementDecision]:
        """Pick a broker; see `Placement`. The state is `Bindings`, or `Plans` while a cycle is carried out.

        Raises:
            PulsarError: There is no candidate; Pulsar ends in an ArithmeticException, see `PLANNED_DESTINATIONS`.
        """
        if config.release.has(PLANNED_DESTINATIONS):
            plan = state.brokers.get(bundle) if isinstance(state, Plans) else None
            return state, _planned(bundle, candidates, snapshot, plan, config, seed)
        key = bundle_key(snapshot, bundle, config.release)
        bound = placed(state.broker, key, candidates)
        if bound is not None:
            reason = block(_BOUND, snapshot.brokers.position.get(bound, -1))
            return state, PlacementDecision(bundle, (bound,), bound, (reason,))
        if not candidates:
            raise PulsarError(
                "ArithmeticException",
                (
                    "No broker is a candidate. Pulsar's AvgShedder fails in this case, because it divides by "
                    "the number of candidates."
                ),
                remedy="Start a broker, or change the isolation policy that excludes all brokers.",
            )
        ordered = Candidates.named(snapshot.brokers, candidates).ordered
        drawn = _draw(bundle, ordered, seed)
        reason = block(_DRAWN, snapshot.brokers.position.get(drawn, -1))
        bindings = Bindings({**state.broker, key: drawn})
        return bindings, PlacementDecision(bundle, ordered, drawn, (reason,))


PLACEMENT = AvgPlacement()
