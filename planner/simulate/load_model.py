"""How the load of brokers follows from the traffic of their bundles: the assumptions of a simulation as arithmetic.

Nothing here mirrors Pulsar. A snapshot tells what a broker uses now; what it will use with other bundles is supposed,
as `Assumptions` says.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from planner.cluster.arrays import BoolArray, FloatArray, Int64Array, IntArray, frozen
from planner.cluster.snapshot import Snapshot
from planner.cluster.tables import TRAFFIC_COLUMNS, BrokerTable, BundleTable, TopicTable
from planner.cluster.units import KBIT_PER_BYTE, MS_PER_MIN
from planner.simulate.assumptions import Assumptions

COUNT_COLUMNS = ("topics", "producers", "consumers")
"""Clients of a bundle, likewise."""

USAGE_COLUMNS = ("cpu_usage_percent", "bandwidth_in_usage_kbit_per_s", "bandwidth_out_usage_kbit_per_s")
LIMIT_COLUMNS = ("cpu_limit_percent", "bandwidth_in_limit_kbit_per_s", "bandwidth_out_limit_kbit_per_s")
"""Usage and limit of each resource that traffic uses, as columns of `BrokerTable`."""

TRAFFIC, MACHINE, COUNTS = slice(0, 4), slice(4, 7), slice(7, 10)
"""Rows of what `load_of` returns of bundles."""

COPIES = 3
"""How often a message may pass the network for each time that it comes in or goes out: to bookies, and back."""

_FEW_BROKERS = 4
"""Brokers up to which it is quicker to compare owners with each than to look owners up."""

_MB = 1e6
_THOUSAND = 1e3


def rows_of(table: BrokerTable | BundleTable | TopicTable, columns: Sequence[str]) -> FloatArray:
    """Return some columns of a table as one array. Shape (columns, rows of the table)."""
    return np.array([getattr(table, name) for name in columns], dtype=np.float64)


def with_values(brokers: BrokerTable, which: Int64Array | int, values: Mapping[str, Any]) -> BrokerTable:
    """Return brokers of which some, by position, have other values in some columns."""
    columns = {name: getattr(brokers, name).copy() for name in values}
    for name, column in columns.items():
        column[which] = values[name]
    return replace(brokers, **{name: frozen(column) for name, column in columns.items()})


def with_usage(brokers: BrokerTable, usage: FloatArray) -> BrokerTable:
    """Return brokers that use something else of their machines, rows as `USAGE_COLUMNS`. Shape (3, brokers)."""
    used: dict[str, Any] = dict(zip(USAGE_COLUMNS, map(frozen, usage), strict=True))
    return replace(brokers, **used)


def broker_sums(
    load: FloatArray, owner: Int64Array | IntArray, brokers: int, *, bundles: FloatArray | None = None
) -> FloatArray:
    """Sum up columns of bundles, and the bundles themselves, by broker.

    Args:
        load: What each bundle brings. Shape (rows, bundles).
        owner: Owner of each bundle, -1 for none. Shape (bundles,).
        brokers: How many brokers there are.
        bundles: How many bundles each has, where that is known. Shape (brokers,).

    Returns:
        The sums, and how many bundles, in floating point even where nothing is summed up. Shape (rows + 1, brokers).
    """
    by = owner.astype(np.intp)  # or each sum would convert it
    by[by < 0] = brokers  # behind all brokers; to leave these bundles out, every row would be copied
    sums = np.empty((len(load) + 1, brokers))
    for at, row in enumerate(load):
        sums[at] = np.bincount(by, row, minlength=brokers + 1)[:brokers]
    sums[-1] = np.bincount(by, minlength=brokers + 1)[:brokers] if bundles is None else bundles
    return sums


def served_by(some: Int64Array, owner: Int64Array | IntArray, brokers: int) -> BoolArray:
    """Return which bundles belong to some brokers, of so many, given the owner of each. Shape (bundles,)."""
    if len(some) > _FEW_BROKERS:
        which = np.zeros(brokers + 1, dtype=np.bool_)  # the last one is nobody
        which[some] = True
        return which[owner]
    found = np.zeros(len(owner), dtype=np.bool_)
    for broker in some.tolist():
        found |= owner == broker
    return found


def with_sums(sums: FloatArray, some: Int64Array, load: FloatArray, owner: Int64Array | IntArray) -> FloatArray:
    """Return sums as `broker_sums` has them, with those of some brokers summed up again. Shape as `sums`.

    To the last bit they are what summing all up gives.
    """
    rows = np.flatnonzero(served_by(some, owner, sums.shape[1]))
    found = sums.copy()
    found[:, some] = broker_sums(load[:, rows], owner[rows], sums.shape[1])[:, some]
    return found


class BrokerSums:
    """Sums as `broker_sums` has them, for as long as bundles bring the same: only brokers that changed are summed up.

    Args:
        rows: Which rows of the load.
    """

    def __init__(self, rows: slice = slice(None)) -> None:
        self._rows = rows
        self._last: tuple[FloatArray, Int64Array | IntArray, FloatArray] | None = None
        self._cut = np.zeros(0, dtype=np.int64)
        """Brokers whose bundles were cut since; -1 for bundles without an owner."""

    def of(
        self, load: FloatArray, owner: Int64Array | IntArray, brokers: int, *, known_as: FloatArray | None = None
    ) -> FloatArray:
        """Return the sums.

        Args:
            load: What each bundle brings; the same array is taken to hold the same. Shape (rows, bundles).
            owner: Owner of each bundle, -1 for nobody; it must not change afterwards. Shape (bundles,).
            brokers: How many brokers there are.
            known_as: An array that `load` was made from, which is compared in place of it.
        """
        last, key = self._last, load if known_as is None else known_as
        if last is None or last[2].shape[1] != brokers:
            sums = broker_sums(load[self._rows], owner, brokers)
        elif last[0] is not key:
            known = last[2][-1] if last[1] is owner else None
            sums = broker_sums(load[self._rows], owner, brokers, bundles=known)
        else:
            moved = np.flatnonzero(last[1] != owner)
            some = np.unique(np.concatenate([last[1][moved], owner[moved], self._cut]))
            some = some[some >= 0]
            sums = with_sums(last[2], some, load[self._rows], owner) if len(some) else last[2]
        self._last, self._cut = (key, owner, sums), self._cut[:0]
        return sums

    def cut(self, before: FloatArray, after: FloatArray, gone: Int64Array, follow: Callable[[Any], Any]) -> None:
        """Note that new bundles stand in place of some, and that all others bring the same, in the same order.

        Args:
            before: What each bundle brought. Shape (rows, bundles before).
            after: What each brings now. Shape (rows, bundles).
            gone: Positions, before, of the bundles that were replaced. Shape (replaced,).
            follow: Returns values of each bundle after it, a new bundle with those of one that is gone.
        """
        if self._last is None or self._last[0] is not before:
            return
        _, owner, sums = self._last
        self._cut = np.append(self._cut, owner[gone].astype(np.int64))
        self._last = after, follow(owner), sums


def traffic_weight(bundles: BundleTable) -> FloatArray:
    """Return how much of the cluster's traffic each bundle is: half by messages, half by bytes. Shape (bundles,)."""
    messages = bundles.msg_rate_per_s()
    size = bundles.throughput_bytes_per_s()
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


def network_of_bundles(brokers: BrokerTable, bundles: BundleTable) -> FloatArray:
    """Return how much of the network of each broker its bundles can use, either way, in kbit/s. Shape (brokers,).

    Whatever is above that is of something else on its machine, or of the broker itself, and no bundle takes it along.
    What a broker says of all its traffic counts where bundles say less, as a report need not have all bundles.
    """
    served = bundles.owner >= 0
    owner, size = bundles.owner[served].astype(np.intp), bundles.throughput_bytes_per_s()[served]
    carried = np.maximum(np.bincount(owner, size, minlength=len(brokers)), brokers.throughput_bytes_per_s())
    most: FloatArray = carried * KBIT_PER_BYTE * COPIES
    return most


def load_of(snapshot: Snapshot, assumptions: Assumptions) -> tuple[FloatArray, FloatArray]:
    """Return what machines use whatever they serve, and what each bundle brings to the broker that serves it.

    A bundle that nobody serves brings the traffic it has; where a snapshot tells its topics, theirs. What a simulation
    knows (`Snapshot.known_load`) is not supposed again.

    Returns:
        CPU (percent of one core), inbound and outbound bandwidth (kbit/s) of the machines themselves, shape
        (3, brokers); traffic as `TRAFFIC_COLUMNS`, then the same three with everything that goes along with it, then
        `COUNT_COLUMNS` of each bundle, shape (10, bundles).
    """
    brokers, bundles, known = snapshot.brokers, snapshot.bundles, snapshot.known_load
    if known is not None:
        found = rows_of(bundles, TRAFFIC_COLUMNS), known.bundles, rows_of(bundles, COUNT_COLUMNS)
        return known.machines.copy(), np.vstack(found)
    owner = bundles.owner.astype(np.int64)
    idle = np.minimum(brokers.cpu_usage_percent, brokers.cpu_limit_percent * assumptions.idle_cpu_percent / 100)
    if assumptions.cpu_model == "fixed":
        messages = bundles.msg_rate_per_s()
        size = bundles.throughput_bytes_per_s()
        cpu = messages / _THOUSAND * assumptions.cpu_percent_per_1000_msg_per_s
        cpu = cpu + size / _MB * assumptions.cpu_percent_per_mb_per_s
        served = np.bincount(owner[owner >= 0], cpu[owner >= 0], minlength=len(brokers))
        own_cpu = np.maximum(brokers.cpu_usage_percent - served, 0.0)
    else:
        cpu, left = _share(brokers.cpu_usage_percent - idle, traffic_weight(bundles), owner)
        own_cpu = idle + left
    most = network_of_bundles(brokers, bundles)
    used_in, used_out = brokers.bandwidth_in_usage_kbit_per_s, brokers.bandwidth_out_usage_kbit_per_s
    inbound, own_in = _share(np.minimum(used_in, most), bundles.msg_throughput_in_bytes_per_s, owner)
    outbound, own_out = _share(np.minimum(used_out, most), bundles.msg_throughput_out_bytes_per_s, owner)
    own_in, own_out = own_in + np.maximum(used_in - most, 0.0), own_out + np.maximum(used_out - most, 0.0)
    unserved = bundles.owner < 0
    if unserved.any() and not unserved.all():
        weight = traffic_weight(bundles)
        served_weight = float(weight[~unserved].sum())
        if served_weight > 0:
            cpu = np.where(unserved, weight * float(cpu[~unserved].sum()) / served_weight, cpu)
    load = np.vstack([rows_of(bundles, TRAFFIC_COLUMNS), cpu, inbound, outbound, rows_of(bundles, COUNT_COLUMNS)])
    return np.array([own_cpu, own_in, own_out]), load


ShapeKind: TypeAlias = Literal["step", "growth", "daily", "spike"]
"""Shapes of a change of traffic."""


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
        minute = (at_ms - self.start_ms) / MS_PER_MIN - self.at_min
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
            return from_ms < self.start_ms + self.at_min * MS_PER_MIN <= to_ms
        return self.factor(from_ms) != self.factor(to_ms) or self.kind in {"daily", "spike"}
