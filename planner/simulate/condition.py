"""How the brokers of a simulated cluster are at a moment, worked out once for as long as nothing changes."""

from typing import TYPE_CHECKING
from weakref import proxy

import numpy as np

from planner.cluster.arrays import FloatArray, frozen
from planner.cluster.tables import BrokerTable
from planner.pulsar.load.usage import weighted_usage
from planner.simulate.load_model import COUNTS, LIMIT_COLUMNS, MACHINE, TRAFFIC, BrokerSums, rows_of, with_usage
from planner.simulate.renumbering import Renumbering
from planner.simulate.report_inputs import ReportInputs, reported_usage
from planner.simulate.trace import BrokerState

if TYPE_CHECKING:
    from planner.simulate.cluster import Cluster

_DUST = 1e-9
"""Share of a machine's use up to which a difference is rounding, not traffic."""


class Condition:
    """What the machines use, what brokers measure, and how they are.

    Args:
        cluster: The cluster; it outlives this.
    """

    def __init__(self, cluster: "Cluster") -> None:
        self._cluster: Cluster = proxy(cluster)
        self._traffic, self._machines, self._counts = BrokerSums(TRAFFIC), BrokerSums(MACHINE), BrokerSums()
        self._counted: tuple[FloatArray, FloatArray] | None = None
        """What bundles bring, and what brokers count of it, which no change of traffic changes."""
        self.touch()

    def touch(self) -> None:
        """Forget what was worked out; something has changed."""
        self._usage: tuple[int, FloatArray, FloatArray] | None = None
        self._table: tuple[int, BrokerTable] | None = None
        self._measurable: tuple[int, ReportInputs] | None = None
        self._state: tuple[int, BrokerState] | None = None

    def cut(self, before: FloatArray, after: FloatArray, change: Renumbering) -> None:
        """Follow a renumbering, with what each bundle brought and brings. Shapes (10, bundles)."""
        for sums in (self._traffic, self._machines, self._counts):
            sums.cut(before, after, change.gone, change.follow)

    def machines(self, at_ms: int) -> tuple[FloatArray, FloatArray]:
        """Return what machines use, at most what they have, and the demand, which may be more.

        Returns:
            CPU (percent of one core), inbound and outbound bandwidth (kbit/s), each of shape (3, brokers).
        """
        moment = self._cluster.traffic.moment(at_ms)
        if self._usage is None or self._usage[0] != moment:
            self._usage = (moment, *self._used(at_ms))
        return self._usage[1:]

    def _used(self, at_ms: int) -> tuple[FloatArray, FloatArray]:
        cluster = self._cluster
        load = cluster.traffic.load(at_ms)
        demand = cluster.machine * cluster.alive + self._on_brokers(self._machines, load)
        limits = rows_of(cluster.brokers, LIMIT_COLUMNS)
        return np.where((limits > 0) & ~cluster.beyond, np.minimum(demand, limits), demand), demand

    def _growth(self, demand: FloatArray) -> FloatArray:
        """Return how many times the traffic of each broker fits. Shape (brokers,)."""
        cluster = self._cluster
        limits, own = rows_of(cluster.brokers, LIMIT_COLUMNS), cluster.machine * cluster.alive
        served = demand - own
        factors = np.full(served.shape, np.inf)
        known = (limits > 0) & (served > np.maximum(own, 1.0) * _DUST)
        np.divide(np.maximum(limits - own, 0.0), served, out=factors, where=known)
        least: FloatArray = factors.min(axis=0)
        return least

    def state(self, at_ms: int) -> BrokerState:
        """Return how the brokers are at a moment."""
        moment = self._cluster.traffic.moment(at_ms)
        if self._state is None or self._state[0] != moment:
            self._state = (moment, self._worked_out(at_ms))
        return self._state[1]

    def _worked_out(self, at_ms: int) -> BrokerState:
        cluster = self._cluster
        demand = self.machines(at_ms)[1]
        table = self.brokers(at_ms)
        there = cluster.present & cluster.alive
        usage = np.where(there, weighted_usage(table, cluster.config, cluster.info.load_manager), 0.0)
        sums = self._on_brokers(self._traffic, cluster.traffic.load(at_ms))
        owned = cluster.owner[cluster.owner >= 0]
        return BrokerState(
            frozen(usage),
            frozen(demand[0]),
            frozen(self._growth(demand)),
            frozen(sums[0] + sums[1]),
            frozen(sums[2] + sums[3]),
            frozen(np.bincount(owned, minlength=len(cluster.brokers)).astype(np.int64)),
            frozen(there.copy()),
        )

    def brokers(self, at_ms: int) -> BrokerTable:
        """Return the brokers with what their machines use at a moment."""
        cluster = self._cluster
        moment = self._cluster.traffic.moment(at_ms)
        if self._table is None or self._table[0] != moment:
            self._table = (moment, with_usage(cluster.brokers, self.machines(at_ms)[0]))
        return self._table[1]

    def measurable(self, at_ms: int) -> ReportInputs:
        """Return what brokers measure of their bundles at a moment."""
        cluster = self._cluster
        moment = self._cluster.traffic.moment(at_ms)
        if self._measurable is None or self._measurable[0] != moment:
            load, base, owner = cluster.traffic.load(at_ms), cluster.traffic.base, cluster.owners()
            if self._counted is None or self._counted[0] is not base:
                self._counted = base, np.round(base[COUNTS])
            counts, table = self._counted[1], self.brokers(at_ms)
            sums = self._traffic.of(load, owner, len(table))[:-1]
            totals = np.vstack([sums, self._counts.of(counts, owner, len(table), known_as=base)])
            usage = reported_usage(table, cluster.config, cluster.info.load_manager)
            self._measurable = moment, ReportInputs(load[TRAFFIC], counts, owner, totals, usage)
        return self._measurable[1]

    def _on_brokers(self, sums: BrokerSums, load: FloatArray) -> FloatArray:
        """Sum up rows of the load by the broker that serves the bundle. Shape (rows, brokers)."""
        cluster = self._cluster
        owner = cluster.owners()
        if not cluster.alive.all():
            owner = np.where((owner >= 0) & cluster.alive[owner], owner, -1)
        return sums.of(load, owner, len(cluster.brokers))[:-1]
