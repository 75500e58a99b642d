"""Averages of bundles from repeated captures, where nobody may read those of the leader.

Mirrors what `ModularLoadManagerImpl` of Pulsar 4.2.4 does with each load report that changes: one sample of every
bundle. It differs in that the leader may have seen reports that came and went between two captures, and that the
samples before the first capture are unknown. What is estimated is therefore marked as such.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from planner.cluster.arrays import BoolArray, Int64Array, frozen
from planner.cluster.load_manager import LoadManager
from planner.cluster.snapshot import BundleTable, Snapshot
from planner.pulsar.load.averages import refresh

_MOST_REFRESHES = 1_000
_CARRIED = ("short_term_", "long_term_")


def with_estimated_averages(snapshot: Snapshot, before: Snapshot | None) -> Snapshot:
    """Return a snapshot whose estimated averages go on from those of the capture before, None for the first one.

    Each broker whose report is a new one counts as one refresh of the leader, which takes the current values of every
    bundle as a sample. Averages that were read are left as they are, and so are those of bundles that are new.
    """
    estimated = snapshot.bundles.averages_estimated
    if before is None or snapshot.info.load_manager is LoadManager.EXTENSIBLE or not estimated.any():
        return snapshot
    earlier = np.array([before.bundle_position.get(name, -1) for name in snapshot.bundle_names], dtype=np.int64)
    known = estimated & (earlier >= 0)
    known &= before.bundles.has_data[earlier] & before.bundles.averages_estimated[earlier]
    if not known.any():
        return snapshot
    refreshes = new_reports(before, snapshot)
    bundles = carried_on(snapshot.bundles, before.bundles, earlier, known, refreshes)
    apart_s = (snapshot.info.captured_at_ms - before.info.captured_at_ms) / 1000
    note = (
        f"Averages of {int(known.sum()):,} bundles are estimated from repeated captures, the last one {apart_s:,.0f} s"
        f" earlier with {refreshes} new load reports since; those of the leader may differ."
    )
    info = replace(snapshot.info, warnings=(note, *snapshot.info.warnings))
    return replace(snapshot, info=info, bundles=bundles)


def average_columns(bundles: BundleTable) -> list[str]:
    """Return the names of the columns that hold short-term and long-term averages."""
    return [name for name in bundles.__dataclass_fields__ if name.startswith(_CARRIED)]


def carried_on(
    now: BundleTable, before: BundleTable, rows: Int64Array, stands: BoolArray, refreshes: int
) -> BundleTable:
    """Return bundles whose averages go on from earlier ones, with so many further samples of the current values.

    Args:
        now: The bundles.
        before: Where they had the earlier averages.
        rows: The row of each bundle there. Shape (bundles,).
        stands: Which averages go on; the others stay. Shape (bundles,).
        refreshes: How many samples are taken.
    """
    names = average_columns(now)
    bundles = replace(now, **_where(names, stands, {name: getattr(before, name)[rows] for name in names}, now))
    for _ in range(refreshes):
        bundles = refresh(bundles)
    return replace(now, **_where(names, stands, {name: getattr(bundles, name) for name in names}, now))


def _where(names: list[str], stands: BoolArray, values: dict[str, Any], now: BundleTable) -> dict[str, Any]:
    return {name: frozen(np.where(stands, values[name], getattr(now, name))) for name in names}


def new_reports(before: Snapshot, after: Snapshot) -> int:
    """Return how many brokers have reported since an earlier capture."""
    updated = dict(zip(before.brokers.name, before.brokers.updated_at_ms.tolist(), strict=True))
    now = zip(after.brokers.name, after.brokers.updated_at_ms.tolist(), strict=True)
    return min(sum(1 for name, at_ms in now if updated.get(name) != at_ms), _MOST_REFRESHES)
