"""What machines use by themselves, what each bundle adds, and how near a cluster is to its limits."""

from dataclasses import dataclass, replace

import numpy as np

from planner.cluster.arrays import BoolArray, FloatArray, Int64Array
from planner.cluster.internal_bundles import internal_bundles
from planner.cluster.load_manager import LoadManager
from planner.cluster.names import BROKER_OVERLOADED_THRESHOLD_PERCENTAGE
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.pulsar.load.usage import ResourceWeights, percent_usage
from planner.simulate.assumptions import Assumptions
from planner.simulate.load_model import COUNTS, LIMIT_COLUMNS, MACHINE, broker_sums, load_of, rows_of, with_usage
from planner.simulate.measuring import measured_by
from planner.simulate.trace import Trace

_RESOURCES = ("cpu", "bandwidthIn", "bandwidthOut")
MOST_USAGE = 1e9
"""Usage of a machine that has next to nothing, so that no number becomes infinite."""


@dataclass(frozen=True, slots=True)
class Growth:
    """Growth of all traffic until the first broker saturates.

    Attributes:
        factor: Multiple of the present traffic; infinite when nothing is used, 0 when no broker is left.
        broker: Broker that saturates first; empty for none.
        resource: Its resource: `cpu`, `bandwidthIn` or `bandwidthOut`.
    """

    factor: float
    broker: str
    resource: str


@dataclass(frozen=True, slots=True)
class Standing:
    """How near a cluster is to its limits.

    Attributes:
        peak_usage: Weighted usage of the most used broker (1.0 = 100 %; above it demand exceeds capacity).
        std: Standard deviation of the weighted usage of the brokers (1.0 = 100 %).
        balanced_usage: What each broker would use in perfect balance (1.0 = 100 %), on average; see `balanced_usage`.
        over_threshold: Brokers above `loadBalancerBrokerOverloadedThresholdPercentage`.
        growth: Growth of all traffic until the first broker saturates.
        unserved: Bundles in use that no broker owns, without those that Pulsar keeps for itself.
    """

    peak_usage: float
    std: float
    balanced_usage: float
    over_threshold: int
    growth: Growth
    unserved: int


@dataclass(frozen=True, eq=False)
class UsageModel:
    """A cluster as columns: what machines use by themselves, what each bundle adds, and the weighted usage of both."""

    snapshot: Snapshot
    config: Settings
    own: FloatArray
    """Usage of the machines without their bundles. Shape (resources, brokers)."""
    bundle: FloatArray
    """Demand of each bundle. Shape (resources, bundles)."""
    limit: FloatArray
    """Shape (resources, brokers); infinite where unknown."""
    weight: FloatArray
    """Weight of each resource. Shape (resources, 1)."""
    fixed: FloatArray
    """Weighted usage of memory, which does not depend on bundles. Shape (brokers,)."""
    alive: BoolArray
    clients: Int64Array

    @staticmethod
    def of(snapshot: Snapshot, config: Settings, assumptions: Assumptions) -> "UsageModel":
        """Return the columns of a snapshot."""
        own, load = load_of(snapshot, assumptions)
        brokers, manager = snapshot.brokers, snapshot.info.load_manager
        clients = np.rint(load[COUNTS][1] + load[COUNTS][2]).astype(np.int64)
        limits = rows_of(brokers, LIMIT_COLUMNS)
        weights = ResourceWeights.of(config, manager)
        heap = percent_usage(brokers.memory_usage_mib, brokers.memory_limit_mib) * weights.memory
        direct = percent_usage(brokers.direct_memory_usage_mib, brokers.direct_memory_limit_mib)
        fixed = direct * weights.direct_memory
        if manager is LoadManager.EXTENSIBLE:
            fixed = np.maximum(fixed, heap)
        return UsageModel(
            snapshot,
            config,
            own,
            load[MACHINE],
            np.where(limits > 0, limits, np.inf),
            np.array([[weights.cpu], [weights.bandwidth_in], [weights.bandwidth_out]]),
            np.nan_to_num(fixed.astype(np.float64)) / 100,
            brokers.registered & brokers.has_load_data,
            np.where(internal_bundles(snapshot), 0, clients),
        )

    def narrowed(self, brokers: Int64Array) -> "UsageModel":
        """Return the columns of some brokers only, by position, for `usage` and `growth` of loads of that width."""
        return replace(
            self,
            own=self.own[:, brokers],
            limit=self.limit[:, brokers],
            fixed=self.fixed[brokers],
            alive=self.alive[brokers],
        )

    def served(self) -> FloatArray:
        """Return the demand of each broker's bundles. Shape (resources, brokers)."""
        return broker_sums(self.bundle, self.snapshot.bundles.owner, len(self.snapshot.brokers))[:-1]

    def usage(self, served: FloatArray) -> FloatArray:
        """Return weighted usage. Shape (..., brokers) for loads of shape (resources, ..., brokers)."""
        shape = (len(_RESOURCES),) + (1,) * (served.ndim - 2) + (len(self.fixed),)
        with np.errstate(over="ignore"):
            part = (self.own.reshape(shape) + served) / self.limit.reshape(shape)
        np.minimum(part, MOST_USAGE, out=part)
        usage: FloatArray = (part * self.weight.reshape(shape[0], *(1,) * (served.ndim - 1))).max(axis=0)
        np.maximum(usage, self.fixed, out=usage)
        return usage

    def balanced_usage(self, of: BoolArray | None = None) -> float:
        """Return the mean weighted usage of the brokers that answer if they shared all load by their size.

        No balancing leaves less: memory stays where it is, and machines of unlike sizes may be used alike. The mean of
        what they use says less, as it is higher wherever the smaller ones are the busier ones.

        Args:
            of: Those among which load is shared, all by default. Shape (brokers,).
        """
        there = self.alive if of is None else self.alive & of
        if not there.any():
            return 0.0
        demand = self.own[:, there].sum(axis=1) + self.served()[:, there].sum(axis=1)
        part = np.minimum(demand / self.limit[:, there].sum(axis=1), MOST_USAGE)
        return float(np.maximum((part * self.weight[:, 0]).max(), self.fixed[there]).mean())

    def growth(self, served: FloatArray) -> FloatArray:
        """Return the growth at which each resource saturates, without weights. Shape as `served`."""
        shape = (len(_RESOURCES),) + (1,) * (served.ndim - 2) + (len(self.fixed),)
        own, limit = self.own.reshape(shape), self.limit.reshape(shape)
        never = np.full(served.shape, np.inf)
        with np.errstate(invalid="ignore"):
            room = np.maximum(limit - own, 0.0)
            np.divide(room, served, out=never, where=served > 0)
        return never


def _growth(cluster: UsageModel) -> Growth:
    factors = np.where(cluster.alive, cluster.growth(cluster.served()), np.inf)
    if not factors.size or not np.isfinite(factors).any():
        return Growth(float("inf") if cluster.snapshot.brokers.registered.any() else 0.0, "", "")
    resource, broker = np.unravel_index(int(factors.argmin()), factors.shape)
    return Growth(float(factors.min()), cluster.snapshot.brokers.name[int(broker)], _RESOURCES[int(resource)])


def at_the_end(trace: Trace) -> Snapshot:
    """Return the cluster at the end of a simulation, with the demand on its machines as their usage.

    Usage in `Trace.end` is capped at capacity, which would hide how far demand exceeds it.
    """
    if trace.end_demand is None:
        return trace.end
    return replace(trace.end, brokers=with_usage(trace.end.brokers, trace.end_demand)).sharing(trace.end)


def settled(trace: Trace) -> Snapshot:
    """Return the cluster at the end of a simulation, after what the load balancer shed and split in its cycles.

    Demand beyond what a machine has is kept.
    """
    return replace(at_the_end(trace), settings=trace.settings)


def end_by_capture(trace: Trace) -> Snapshot:
    """Return the cluster at the end of a simulation, with the settings by which its usage is measured (`measured_by`).

    Demand beyond what a machine has is kept.
    """
    return replace(at_the_end(trace), settings=measured_by(trace.start.settings, trace.settings))


def standing(snapshot: Snapshot, config: Settings, assumptions: Assumptions) -> Standing:
    """Return how near a cluster is to its limits.

    Args:
        snapshot: The cluster; with more than 100 % where demand exceeds capacity (see `at_the_end`).
        config: Settings with the weights and the threshold.
        assumptions: How CPU follows traffic.
    """
    cluster = UsageModel.of(snapshot, config, assumptions)
    return standing_of(cluster, cluster.usage(cluster.served()))


def standing_of(cluster: UsageModel, usages: FloatArray) -> Standing:
    """Return how near a cluster is to its limits, by the weighted usage of its brokers. Shape (brokers,)."""
    usage = usages[cluster.alive]
    limit = cluster.config.integer(BROKER_OVERLOADED_THRESHOLD_PERCENTAGE) / 100
    return Standing(
        peak_usage=float(usage.max(initial=0.0)),
        std=float(usage.std()) if len(usage) else 0.0,
        balanced_usage=cluster.balanced_usage(),
        over_threshold=int((usage > limit).sum()),
        growth=_growth(cluster),
        unserved=_unserved(cluster.snapshot),
    )


def _unserved(snapshot: Snapshot) -> int:
    """Return how many bundles with topics, clients or traffic have no owner; what is not in use waits for a lookup."""
    table = snapshot.bundles
    used = (table.topics > 0) | (table.producers + table.consumers > 0) | (table.throughput_bytes_per_s() > 0)
    return int((used & (table.owner < 0) & ~internal_bundles(snapshot)).sum())
