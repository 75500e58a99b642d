"""The load data that a broker of the extensible load manager reports, as pure functions over columns.

Mirrors `BrokerLoadData` of Pulsar 4.2.4: `update`, `clear` and the features it derives. It differs in that it holds all
brokers at once, and that the clock is a parameter.
"""

from dataclasses import dataclass, fields, replace

import numpy as np

from planner.cluster.arrays import BoolArray, FloatArray, Int64Array, frozen
from planner.cluster.load_manager import LoadManager
from planner.cluster.names import HISTORY_RESOURCE_PERCENTAGE
from planner.cluster.settings import Settings
from planner.cluster.tables import BrokerTable
from planner.pulsar.load.usage import max_usage, weighted_usage

_FRESH_USAGE = 1.0
"""Assumed usage of a broker without a report: full, so that it receives no bundles."""


@dataclass(frozen=True, eq=False)
class BrokerLoadData:
    """Derived load data of each broker. Shape of every column: (brokers,).

    Attributes:
        max_resource_usage: `maxResourceUsage`, unweighted, without heap memory (1.0 = 100 %).
        weighted_max_ema: `weightedMaxEMA`, moving average of the weighted usage (1.0 = 100 %).
        msg_throughput_ema_bytes_per_s: `msgThroughputEMA`, moving average of throughput in + out.
        updated_at_ms: `updatedAt`, ms since 1970; 0 when nothing was reported since the start or the last `clear`.
    """

    max_resource_usage: FloatArray
    weighted_max_ema: FloatArray
    msg_throughput_ema_bytes_per_s: FloatArray
    updated_at_ms: Int64Array

    def __len__(self) -> int:
        return len(self.updated_at_ms)


def fresh(count: int) -> BrokerLoadData:
    """Return the data of brokers that have not reported yet: usages 1.0, throughput 0."""
    return BrokerLoadData(
        frozen(np.full(count, _FRESH_USAGE)),
        frozen(np.full(count, _FRESH_USAGE)),
        frozen(np.zeros(count)),
        frozen(np.zeros(count, dtype=np.int64)),
    )


def clear(data: BrokerLoadData, which: BoolArray | None = None) -> BrokerLoadData:
    """Reset brokers to `fresh`, as Pulsar does when a bundle of theirs is released, split or received.

    Args:
        data: What was known.
        which: The brokers to reset, all when None. Shape (brokers,).
    """
    new = fresh(len(data))
    if which is None:
        return new
    names = (column.name for column in fields(data))
    return BrokerLoadData(*(frozen(np.where(which, getattr(new, n), getattr(data, n))) for n in names))


def update(data: BrokerLoadData, brokers: BrokerTable, config: Settings, now_ms: int) -> BrokerLoadData:
    """Take one report of every broker.

    The first report after the start or a `clear` replaces the averages; each later one counts
    1 - `loadBalancerHistoryResourcePercentage`.

    Args:
        data: What was known.
        brokers: The reports: resource usages and throughput.
        config: Settings in force: the resource weights and the share of the history.
        now_ms: The moment, ms since 1970, greater than 0.
    """
    history = config.number(HISTORY_RESOURCE_PERCENTAGE)
    first = data.updated_at_ms == 0
    usage = weighted_usage(brokers, config, LoadManager.EXTENSIBLE)
    throughput = brokers.throughput_bytes_per_s()
    return BrokerLoadData(
        max_usage(brokers, LoadManager.EXTENSIBLE),
        frozen(_average(data.weighted_max_ema, usage, history, first)),
        frozen(_average(data.msg_throughput_ema_bytes_per_s, throughput, history, first)),
        frozen(np.full(len(brokers), now_ms, dtype=np.int64)),
    )


def _average(before: FloatArray, sample: FloatArray, history: float, first: BoolArray) -> FloatArray:
    with np.errstate(over="ignore", invalid="ignore"):  # 0 * inf, as in Java
        blend = before * history + (1 - history) * sample
    return np.where(first, sample, blend)


def read(brokers: BrokerTable) -> BrokerLoadData:
    """Return the load data that a broker table carries; brokers whose averages are unknown (NaN) are `fresh`."""
    known = ~(np.isnan(brokers.weighted_max_ema) | np.isnan(brokers.msg_throughput_ema_bytes_per_s))
    carried = BrokerLoadData(
        max_usage(brokers, LoadManager.EXTENSIBLE),
        brokers.weighted_max_ema,
        brokers.msg_throughput_ema_bytes_per_s,
        frozen(np.maximum(brokers.updated_at_ms, 1)),
    )
    return clear(carried, ~known)


@dataclass(frozen=True, eq=False)
class Averages:
    """The moving averages that decisions read. Shape of every column: (brokers,).

    Attributes:
        weighted_max_ema: Of the weighted usage (1.0 = 100 %).
        msg_throughput_ema_bytes_per_s: Of throughput in + out.
        assumed: Whether one of them was not known and the current value stands for it.
    """

    weighted_max_ema: FloatArray
    msg_throughput_ema_bytes_per_s: FloatArray
    assumed: BoolArray


def averages(brokers: BrokerTable, config: Settings) -> Averages:
    """Return the averages of a broker table; where they are unknown (NaN), what a first report would make them."""
    load, throughput = brokers.weighted_max_ema, brokers.msg_throughput_ema_bytes_per_s
    no_load, no_throughput = np.isnan(load), np.isnan(throughput)
    if no_load.any():
        load = np.where(no_load, weighted_usage(brokers, config, LoadManager.EXTENSIBLE), load)
    if no_throughput.any():
        current = brokers.throughput_bytes_per_s()
        throughput = np.where(no_throughput, current, throughput)
    return Averages(load, throughput, no_load | no_throughput)


def write(data: BrokerLoadData, brokers: BrokerTable) -> BrokerTable:
    """Return the broker table with its averages and report times replaced; who was reset has no load data at all.

    Pulsar publishes a tombstone when it resets a broker (at most one in 10 s), so that nobody reads its old data.
    """
    return replace(
        brokers,
        has_load_data=frozen(data.updated_at_ms > 0),
        weighted_max_ema=data.weighted_max_ema,
        msg_throughput_ema_bytes_per_s=data.msg_throughput_ema_bytes_per_s,
        updated_at_ms=data.updated_at_ms,
    )
