"""AvgShedder's placement: a bundle goes to the broker it is bound to, else to one drawn at random and bound to it.

Mirrors `AvgShedder.selectBroker` of Pulsar 4.2.4. Bindings are kept by the *value* of the bundle's averages: bundles
with equal averages share one, and it is lost as soon as the averages change.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeAlias

import numpy as np

from planner.cluster.arrays import Int64Array
from planner.cluster.decisions import PlacementDecision, ReasonCode, block
from planner.cluster.errors import PulsarError
from planner.cluster.load_manager import LoadManager
from planner.cluster.releases import Release, Switch
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.pulsar.placement.candidates import Candidates
from planner.pulsar.placement.protocol import Measure

BundleKey: TypeAlias = tuple[float, ...] | str
"""Topics, samples and the eight rates of a bundle's averages: what Pulsar compares. See `BOUND_BY_NAME`."""

BOUND_BY_NAME = Switch(
    "AvgShedder's placement binds the bundle itself, not the value of its averages: equal bundles share no binding, and"
    " it is not lost when the averages change.",
    until="4.0.0",
)

_BOUND = ReasonCode("avg.bound", "the bundle's averages are bound to this broker", acts=True)
_DRAWN = ReasonCode(
    "avg.drawn", "the bundle's averages are bound to no candidate: drawn at random from all of them", acts=True
)

_DEFAULT_RATE = 50.0
_DEFAULT_THROUGHPUT = 50_000.0


@dataclass(frozen=True, slots=True)
class Bindings:
    """What the placement remembers.

    Attributes:
        broker: Broker by the value of a bundle's averages.
    """

    broker: Mapping[BundleKey, str] = field(default_factory=dict)


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
        rates = (_DEFAULT_RATE, _DEFAULT_RATE, _DEFAULT_THROUGHPUT, _DEFAULT_THROUGHPUT)
        return (0.0, 0.0, *rates, 0.0, *rates)
    return bundle_keys(snapshot, np.array([bundle]), release)[0]


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
    columns = (
        table.data_topics,
        table.short_term_samples,
        table.short_term_msg_rate_in_per_s,
        table.short_term_msg_rate_out_per_s,
        table.short_term_msg_throughput_in_bytes_per_s,
        table.short_term_msg_throughput_out_bytes_per_s,
        table.long_term_samples,
        table.long_term_msg_rate_in_per_s,
        table.long_term_msg_rate_out_per_s,
        table.long_term_msg_throughput_in_bytes_per_s,
        table.long_term_msg_throughput_out_bytes_per_s,
    )
    return list(zip(*(column[bundles].astype(np.float64).tolist() for column in columns), strict=True))


def placed(broker: Mapping[BundleKey, str], key: BundleKey, candidates: Sequence[str]) -> str | None:
    """Return the broker that a value is bound to, when it is a candidate."""
    bound = broker.get(key)
    return bound if bound in candidates else None


class AvgPlacement:
    """The strategy; its contract is `Placement`."""

    name = "AvgShedder"
    java_class = "org.apache.pulsar.broker.loadbalance.impl.AvgShedder"
    load_manager = LoadManager.MODULAR
    summary = (
        "Sends a bundle that AvgShedder shed to the other broker of the pair; any other bundle to a random broker."
    )
    judges_by = "what AvgShedder paired"
    measure: Measure = "pair"
    settings: tuple[str, ...] = ()

    def initial(self) -> Bindings:
        """Return the state of a strategy that was just created."""
        return Bindings()

    def select(
        self, bundle: str, candidates: Sequence[str], snapshot: Snapshot, state: Any, config: Settings, seed: int
    ) -> tuple[Any, PlacementDecision]:
        """Pick a broker; see `Placement`. The state is `Bindings`.

        Raises:
            PulsarError: There is no candidate; Pulsar ends in an ArithmeticException.
        """
        key = bundle_key(snapshot, bundle, config.release)
        bound = placed(state.broker, key, candidates)
        if bound is not None:
            reason = block(_BOUND, snapshot.brokers.position.get(bound, -1))
            return state, PlacementDecision(bundle, (bound,), bound, (reason,))
        if not candidates:
            raise PulsarError(
                "ArithmeticException",
                "No broker is a candidate, with which Pulsar's AvgShedder fails: it divides by their number.",
                remedy="Start a broker, or change the isolation policy that leaves none.",
            )
        ordered = Candidates.named(snapshot.brokers, candidates).ordered
        drawn = ordered[Random(f"{seed}:{bundle}").randrange(len(ordered))]  # noqa: S311 - a choice, no secret
        reason = block(_DRAWN, snapshot.brokers.position.get(drawn, -1))
        bindings = Bindings({**state.broker, key: drawn})
        return bindings, PlacementDecision(bundle, ordered, drawn, (reason,))


PLACEMENT = AvgPlacement()
