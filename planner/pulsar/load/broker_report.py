"""What a broker's load report says of its bundles.

Mirrors `LocalBrokerData.update` of Pulsar 4.2.4.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np

from planner.cluster.arrays import FloatArray, Int64Array, frozen
from planner.cluster.snapshot import BrokerTable, Snapshot


@dataclass(frozen=True, eq=False)
class ReportTotals:
    """Totals over the bundles in each broker's report. Shape of every column: (brokers,)."""

    msg_rate_in_per_s: FloatArray
    msg_rate_out_per_s: FloatArray
    msg_throughput_in_bytes_per_s: FloatArray
    msg_throughput_out_bytes_per_s: FloatArray
    topics: Int64Array
    producers: Int64Array
    consumers: Int64Array
    bundles: Int64Array


def report_totals(snapshot: Snapshot) -> ReportTotals:
    """Return what the reports of all brokers sum up to.

    Rates are added from left to right in the order of each broker's map, so that the last bit is Pulsar's too.
    """
    visited = snapshot.reported
    owner, size = snapshot.bundles.owner[visited], len(snapshot.brokers)

    def total(name: str) -> FloatArray:
        return frozen(np.bincount(owner, getattr(snapshot.bundles, name)[visited], minlength=size).astype(np.float64))

    def count(name: str) -> Int64Array:
        sums = np.zeros(size, dtype=np.int64)
        np.add.at(sums, owner, getattr(snapshot.bundles, name)[visited])
        return frozen(sums)

    return ReportTotals(
        msg_rate_in_per_s=total("msg_rate_in_per_s"),
        msg_rate_out_per_s=total("msg_rate_out_per_s"),
        msg_throughput_in_bytes_per_s=total("msg_throughput_in_bytes_per_s"),
        msg_throughput_out_bytes_per_s=total("msg_throughput_out_bytes_per_s"),
        topics=count("topics"),
        producers=count("producers"),
        consumers=count("consumers"),
        bundles=frozen(np.bincount(owner, minlength=size).astype(np.int64)),
    )


def with_report_totals(snapshot: Snapshot) -> BrokerTable:
    """Return the broker table as the next load reports would have it; resource usages are not touched."""
    totals = report_totals(snapshot)
    return replace(
        snapshot.brokers,
        msg_rate_in_per_s=totals.msg_rate_in_per_s,
        msg_rate_out_per_s=totals.msg_rate_out_per_s,
        msg_throughput_in_bytes_per_s=totals.msg_throughput_in_bytes_per_s,
        msg_throughput_out_bytes_per_s=totals.msg_throughput_out_bytes_per_s,
        topics=totals.topics,
        producers=totals.producers,
        consumers=totals.consumers,
        reported_bundles=totals.bundles,
    )


def bundle_changes(before: Collection[str], now: Collection[str]) -> tuple[frozenset[str], frozenset[str]]:
    """Return `lastBundleGains` and `lastBundleLosses` of a report.

    Args:
        before: Bundles of the broker's previous report.
        now: Bundles of this one.
    """
    return frozenset(now) - frozenset(before), frozenset(before) - frozenset(now)
