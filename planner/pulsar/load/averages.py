"""The moving averages that the leader of the modular load manager keeps of bundles and brokers.

Mirrors `TimeAverageMessageData`, `BundleData` and `TimeAverageBrokerData` of Pulsar 4.2.4, and the steps of
`ModularLoadManagerImpl` that update them whenever a load report changes. It differs in that all bundles, or all
brokers, are updated at once.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from planner.cluster.arrays import FloatArray, Int64Array, frozen
from planner.cluster.snapshot import Snapshot
from planner.cluster.tables import TRAFFIC_COLUMNS, BrokerTable, BundleTable

SHORT_TERM_SAMPLES = 10
"""Samples in the window of the short-term average; a constant of Pulsar."""

LONG_TERM_SAMPLES = 1000
"""Samples in the window of the long-term average; a constant of Pulsar."""

_TERMS = (("short_term_", SHORT_TERM_SAMPLES), ("long_term_", LONG_TERM_SAMPLES))


@dataclass(frozen=True, eq=False)
class Traffic:
    """Traffic of bundles. Shape of every column: (bundles,), or scalars that hold for all."""

    msg_rate_in_per_s: FloatArray | float = 0.0
    msg_rate_out_per_s: FloatArray | float = 0.0
    msg_throughput_in_bytes_per_s: FloatArray | float = 0.0
    msg_throughput_out_bytes_per_s: FloatArray | float = 0.0


DEFAULT_TRAFFIC = Traffic(50.0, 50.0, 50_000.0, 50_000.0)
"""Pulsar's assumption about an unknown bundle: 50 msg/s and 50,000 bytes/s, in and out each."""


@dataclass(frozen=True, eq=False)
class TimeAverage:
    """One average of each bundle (`TimeAverageMessageData`).

    Attributes:
        max_samples: Window.
        samples: Samples taken, at most `max_samples`. Shape (bundles,).
        traffic: The averages.
    """

    max_samples: int
    samples: Int64Array
    traffic: Traffic


def start(count: int, max_samples: int, default: Traffic | None = None) -> TimeAverage:
    """Return the averages of bundles without a sample.

    Args:
        count: How many bundles.
        max_samples: Window.
        default: What is assumed of them; nothing when None. The first sample replaces it.
    """
    given = default or Traffic()
    columns = {name: frozen(np.full(count, getattr(given, name), dtype=np.float64)) for name in TRAFFIC_COLUMNS}
    return TimeAverage(max_samples, frozen(np.zeros(count, dtype=np.int64)), Traffic(**columns))


def update(before: TimeAverage, sample: Traffic) -> TimeAverage:
    """Take one sample of every bundle.

    The plain mean until the window is full, then each sample counts 1 / `max_samples`.
    """
    samples = _one_more(before.samples, before.max_samples)
    columns = {name: _mean(getattr(before.traffic, name), getattr(sample, name), samples) for name in TRAFFIC_COLUMNS}
    return TimeAverage(before.max_samples, frozen(samples), Traffic(**columns))


def _one_more(samples: Int64Array, window: int) -> Int64Array:
    return np.minimum(samples, window - 1) + 1


def _mean(before: FloatArray, sample: FloatArray | float, samples: Int64Array) -> FloatArray:
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # as Java's doubles do
        return frozen(np.asarray(((samples - 1) * before + sample) / samples))


def refresh(bundles: BundleTable) -> BundleTable:
    """Take the current values of every reported bundle as one sample, as each change of any load report does.

    A bundle without averages starts from nothing, which its first sample replaces whatever Pulsar assumes. The averages
    of bundles that no broker reports are dropped. Averages that were estimated stay marked so.
    """
    reported = bundles.has_stats & (bundles.owner >= 0)
    columns: dict[str, Any] = {
        "has_data": frozen(reported),
        "data_topics": frozen(np.where(reported, bundles.topics, 0)),
        "averages_estimated": frozen(bundles.averages_estimated & reported & bundles.has_data),
    }
    current = np.stack([getattr(bundles, name) for name in TRAFFIC_COLUMNS])
    for prefix, window in _TERMS:
        names = [prefix + name for name in TRAFFIC_COLUMNS]
        known = np.where(bundles.has_data, np.stack([getattr(bundles, name) for name in names]), 0.0)
        samples = _one_more(np.where(bundles.has_data, getattr(bundles, f"{prefix}samples"), 0), window)
        columns[f"{prefix}samples"] = frozen(np.where(reported, samples, 0))
        columns |= zip(names, frozen(np.where(reported, _mean(known, current, samples), 0.0)), strict=True)
    return replace(bundles, **columns)


BROKER_AVERAGES: Mapping[str, str] = {prefix + name: name for prefix, _ in _TERMS for name in TRAFFIC_COLUMNS}
"""The columns of `TimeAverageBrokerData`, and the traffic that each is of."""


def broker_averages(
    snapshot: Snapshot,
    default: Traffic = DEFAULT_TRAFFIC,
    columns: Iterable[str] = BROKER_AVERAGES,
    brokers: Int64Array | None = None,
) -> dict[str, FloatArray]:
    """Return the sums of the bundle averages of each broker (`TimeAverageBrokerData`).

    Summed are the bundles in each broker's report, from left to right in the order of its map, so that the last bit is
    Pulsar's too.

    Args:
        snapshot: The cluster.
        default: What a bundle without averages counts.
        columns: Which of the eight columns `short_term_…` and `long_term_…` of `BrokerTable`.
        brokers: Whose sums are needed, by position: those of others stay 0; of all by default. Shape (needed,).

    Returns:
        These columns. Shape (brokers,).
    """
    bundles = snapshot.bundles
    visited = snapshot.reported if brokers is None else snapshot.reported_by(brokers)
    owner, size = bundles.owner[visited].astype(np.intp), len(snapshot.brokers)
    unknown = np.flatnonzero(~bundles.has_data[visited])

    def total(column: str) -> FloatArray:
        values = getattr(bundles, column)[visited]
        values[unknown] = getattr(default, BROKER_AVERAGES[column])
        return frozen(np.bincount(owner, values, minlength=size).astype(np.float64, copy=False))

    return {column: total(column) for column in columns}


def with_broker_averages(snapshot: Snapshot) -> BrokerTable:
    """Return the broker table with `broker_averages` in it."""
    columns: dict[str, Any] = {**broker_averages(snapshot)}
    return replace(snapshot.brokers, **columns)


LONG_TERM_RATES: tuple[str, ...] = ("long_term_msg_rate_in_per_s", "long_term_msg_rate_out_per_s")


def with_known_rates(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with unknown long-term message rates of brokers summed up, so that it is done only once."""
    brokers = snapshot.brokers
    if not any(np.isnan(getattr(brokers, name)).any() for name in LONG_TERM_RATES):
        return snapshot
    sums = broker_averages(snapshot, columns=LONG_TERM_RATES)
    filled: dict[str, Any] = {
        n: np.where(np.isnan(getattr(brokers, n)), sums[n], getattr(brokers, n)) for n in LONG_TERM_RATES
    }
    return snapshot.with_columns(brokers=replace(brokers, **filled))
