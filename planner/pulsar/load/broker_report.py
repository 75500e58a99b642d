"""What a broker's load report says of its bundles.

Mirrors `LocalBrokerData.update` of Pulsar 4.2.4.
"""

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np

from planner.cluster.arrays import frozen
from planner.cluster.snapshot import Snapshot
from planner.cluster.tables import TRAFFIC_COLUMNS, BrokerTable


def with_report_totals(snapshot: Snapshot) -> BrokerTable:
    """Return the broker table as the next load reports would have it; resource usages are not touched.

    Rates are added from left to right in the order of each broker's map, so that the last bit is Pulsar's too.
    Clients are counted in 32 bits, as in `LocalBrokerData` of 4.2.4: beyond them, counts are negative.
    """
    visited = snapshot.reported
    owner, size = snapshot.bundles.owner[visited], len(snapshot.brokers)
    columns: dict[str, Any] = {"reported_bundles": np.bincount(owner, minlength=size).astype(np.int64)}
    for name in TRAFFIC_COLUMNS:
        columns[name] = np.bincount(owner, getattr(snapshot.bundles, name)[visited], minlength=size).astype(np.float64)
    for name in ("topics", "producers", "consumers"):
        columns[name] = np.zeros(size, dtype=np.int64)
        np.add.at(columns[name], owner, getattr(snapshot.bundles, name)[visited])
    for name in ("producers", "consumers"):
        columns[name] = columns[name].astype(np.int32).astype(np.int64)
    return replace(snapshot.brokers, **{name: frozen(column) for name, column in columns.items()})


def bundle_changes(before: Collection[str], now: Collection[str]) -> tuple[frozenset[str], frozenset[str]]:
    """Return `lastBundleGains` and `lastBundleLosses` of a report.

    Args:
        before: Bundles of the broker's previous report.
        now: Bundles of this one.
    """
    return frozenset(now) - frozenset(before), frozenset(before) - frozenset(now)
