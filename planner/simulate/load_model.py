"""How the load of brokers follows from the traffic of their bundles: the assumptions of a simulation as arithmetic.

Nothing here mirrors Pulsar. A snapshot tells what a broker uses now; what it will use with other bundles is supposed,
as `Assumptions` says.
"""

from dataclasses import dataclass, fields
from typing import Literal, TypeAlias

import numpy as np

from planner.cluster.arrays import FloatArray, Int64Array
from planner.cluster.snapshot import BrokerTable, BundleTable, Snapshot
from planner.simulate.assumptions import Assumptions

TRAFFIC_COLUMNS = (
    "msg_rate_in_per_s",
    "msg_rate_out_per_s",
    "msg_throughput_in_bytes_per_s",
    "msg_throughput_out_bytes_per_s",
)
"""The traffic of a bundle, as the columns of `BundleTable` are named."""

TRAFFIC = slice(0, 4)
"""Rows of `BundleLoad.matrix`: message rate in and out, throughput in and out."""

COUNTS = slice(7, 10)
"""Rows of it: topics, producers, consumers."""

_MB = 1e6
_THOUSAND = 1e3


@dataclass(frozen=True, eq=False)
class BundleLoad:
    """What each bundle brings to the broker that serves it. Shape of every column: (bundles,).

    Attributes:
        msg_rate_in_per_s: Publish rate.
        msg_rate_out_per_s: Dispatch rate.
        msg_throughput_in_bytes_per_s: Publish throughput.
        msg_throughput_out_bytes_per_s: Dispatch throughput.
        cpu_percent: CPU, percent of one core.
        bandwidth_in_kbit_per_s: Share of the broker's inbound bandwidth, with everything that goes along with it.
        bandwidth_out_kbit_per_s: The same, outbound.
        topics: Topics loaded.
        producers: Producers connected.
        consumers: Consumers connected.
    """

    msg_rate_in_per_s: FloatArray
    msg_rate_out_per_s: FloatArray
    msg_throughput_in_bytes_per_s: FloatArray
    msg_throughput_out_bytes_per_s: FloatArray
    cpu_percent: FloatArray
    bandwidth_in_kbit_per_s: FloatArray
    bandwidth_out_kbit_per_s: FloatArray
    topics: FloatArray
    producers: FloatArray
    consumers: FloatArray

    def matrix(self) -> FloatArray:
        """Return all columns as one array. Shape (columns, bundles)."""
        return np.array([getattr(self, column.name) for column in fields(self)], dtype=np.float64)

    @staticmethod
    def of_matrix(rows: FloatArray) -> "BundleLoad":
        """Return the columns that `matrix` made an array of."""
        return BundleLoad(*rows)


@dataclass(frozen=True, eq=False)
class MachineLoad:
    """What brokers use whatever they serve. Shape of every column: (brokers,).

    Attributes:
        cpu_percent: Percent of one core.
        bandwidth_in_kbit_per_s: Inbound.
        bandwidth_out_kbit_per_s: Outbound.
    """

    cpu_percent: FloatArray
    bandwidth_in_kbit_per_s: FloatArray
    bandwidth_out_kbit_per_s: FloatArray


def traffic_weight(bundles: BundleTable) -> FloatArray:
    """Return how much of the cluster's traffic each bundle is: half by messages, half by bytes. Shape (bundles,)."""
    messages = bundles.msg_rate_in_per_s + bundles.msg_rate_out_per_s
    size = bundles.msg_throughput_in_bytes_per_s + bundles.msg_throughput_out_bytes_per_s
    weight = np.zeros(len(bundles))
    for column in (messages, size):
        total = float(column.sum())
        if total > 0:
            weight += column / total / 2
    return weight


def _share(total: FloatArray, weight: FloatArray, owner: Int64Array) -> tuple[FloatArray, FloatArray]:
    """Hand totals of brokers out to their bundles by weight; return the shares, and what nobody could be given."""
    sums = np.bincount(owner[owner >= 0], weight[owner >= 0], minlength=len(total))
    per_weight = np.divide(total, sums, out=np.zeros(len(total)), where=sums > 0)
    share = np.where(owner >= 0, per_weight[owner] * weight, 0.0)
    return share, np.where(sums > 0, 0.0, total)


def machine_load(
    brokers: BrokerTable, bundles: BundleTable, assumptions: Assumptions
) -> tuple[MachineLoad, FloatArray, FloatArray, FloatArray]:
    """Split what each machine uses into its own part and the parts of its bundles.

    Returns:
        The machines' own part; CPU (percent of one core), inbound and outbound bandwidth (kbit/s) of each bundle.
        Shape (bundles,) each.
    """
    owner = bundles.owner.astype(np.int64)
    idle = np.minimum(brokers.cpu_usage_percent, brokers.cpu_limit_percent * assumptions.idle_cpu_percent / 100)
    if assumptions.cpu_model == "fixed":
        messages = bundles.msg_rate_in_per_s + bundles.msg_rate_out_per_s
        size = bundles.msg_throughput_in_bytes_per_s + bundles.msg_throughput_out_bytes_per_s
        cpu = messages / _THOUSAND * assumptions.cpu_percent_per_1000_msg_per_s
        cpu = cpu + size / _MB * assumptions.cpu_percent_per_mb_per_s
        served = np.bincount(owner[owner >= 0], cpu[owner >= 0], minlength=len(brokers))
        own_cpu = np.maximum(brokers.cpu_usage_percent - served, 0.0)
    else:
        cpu, left = _share(brokers.cpu_usage_percent - idle, traffic_weight(bundles), owner)
        own_cpu = idle + left
    inbound, own_in = _share(brokers.bandwidth_in_usage_kbit_per_s, bundles.msg_throughput_in_bytes_per_s, owner)
    outbound, own_out = _share(brokers.bandwidth_out_usage_kbit_per_s, bundles.msg_throughput_out_bytes_per_s, owner)
    return MachineLoad(own_cpu, own_in, own_out), cpu, inbound, outbound


def load_of(snapshot: Snapshot, assumptions: Assumptions) -> tuple[MachineLoad, BundleLoad]:
    """Return what the machines and the bundles of a snapshot bring.

    A bundle that nobody serves brings the traffic it has; where a snapshot tells its topics, theirs.
    """
    bundles = snapshot.bundles
    machines, cpu, inbound, outbound = machine_load(snapshot.brokers, bundles, assumptions)
    unserved = bundles.owner < 0
    if unserved.any() and not unserved.all():
        weight = traffic_weight(bundles)
        served_weight = float(weight[~unserved].sum())
        if served_weight > 0:
            cpu = np.where(unserved, weight * float(cpu[~unserved].sum()) / served_weight, cpu)
    rows = [getattr(bundles, name) for name in TRAFFIC_COLUMNS]
    counts = [bundles.topics, bundles.producers, bundles.consumers]
    columns = [*rows, cpu, inbound, outbound, *counts]
    return machines, BundleLoad.of_matrix(np.array([column.astype(np.float64) for column in columns]))


ShapeKind: TypeAlias = Literal["step", "growth", "daily", "spike"]
"""How traffic changes."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How a change of traffic goes over time.

    Attributes:
        kind: Which form it has.
        times: Traffic after the change relative to before it.
        start_ms: When the simulation began, ms since 1970.
        at_min: When the change begins, minutes after that.
        duration_min: How long it takes; 0 with `step` is for ever.
    """

    kind: ShapeKind
    times: float
    start_ms: int
    at_min: float
    duration_min: float

    def factor(self, at_ms: int) -> float:
        """Return the factor at a moment; 1 before the change begins."""
        minute = (at_ms - self.start_ms) / 60_000 - self.at_min
        length = self.duration_min
        if minute < 0:
            return 1.0
        if self.kind == "step" or length <= 0:
            return self.times if length <= 0 or minute < length else 1.0
        if self.kind == "growth":
            return 1.0 + (self.times - 1.0) * min(minute / length, 1.0)
        if self.kind == "daily":
            return 1.0 + (self.times - 1.0) * (1.0 - float(np.cos(2 * np.pi * minute / length))) / 2
        if minute >= length:
            return 1.0
        return 1.0 + (self.times - 1.0) * (1.0 - abs(2 * minute / length - 1.0))

    def changes_within(self, from_ms: int, to_ms: int) -> bool:
        """Say whether the factor may differ between two moments."""
        if self.kind == "step" and self.duration_min <= 0:
            return from_ms < self.start_ms + self.at_min * 60_000 <= to_ms
        return self.factor(from_ms) != self.factor(to_ms) or self.kind in {"daily", "spike"}
