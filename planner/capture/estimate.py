"""Averages of bundles from repeated captures, where nobody may read those of the leader.

Mirrors what `ModularLoadManagerImpl` of Pulsar 4.2.4 does with each load report that changes: one sample of every
bundle. It differs in that the leader may have seen reports that came and went between two captures, and that the
samples before the first capture are unknown. What is estimated is therefore marked as such.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from planner.cluster.arrays import IntArray, frozen
from planner.cluster.snapshot import BundleTable, LoadManager, Snapshot
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
    earlier = _rows_before(snapshot, before)
    known = estimated & (earlier >= 0)
    known &= before.bundles.has_data[earlier] & before.bundles.averages_estimated[earlier]
    bundles = _carried(snapshot.bundles, before.bundles, earlier, known)
    refreshes = _new_reports(snapshot, before)
    for _ in range(refreshes):
        bundles = refresh(bundles)
    columns = {
        name: frozen(np.where(known, getattr(bundles, name), getattr(snapshot.bundles, name)))
        for name in _columns(bundles)
    }
    apart_s = (snapshot.info.captured_at_ms - before.info.captured_at_ms) / 1000
    note = (
        f"Averages of {int(known.sum()):,} bundles are estimated from repeated captures, the last one {apart_s:,.0f} s"
        f" earlier with {refreshes} new load reports since; those of the leader may differ."
    )
    info = replace(snapshot.info, warnings=(note, *snapshot.info.warnings))
    return replace(snapshot, info=info, bundles=replace(snapshot.bundles, **columns))


def _columns(bundles: BundleTable) -> list[str]:
    return [name for name in bundles.__dataclass_fields__ if name.startswith(_CARRIED)]


def _rows_before(snapshot: Snapshot, before: Snapshot) -> IntArray:
    """Return the row that each bundle had in the capture before; -1 when it is new. Shape (bundles,)."""
    place = {name: row for row, name in enumerate(_ranges(before))}
    return np.array([place.get(name, -1) for name in _ranges(snapshot)], dtype=np.int32)


def _ranges(snapshot: Snapshot) -> Iterator[tuple[str, int, int]]:
    b = snapshot.bundles
    for namespace, low, high in zip(b.namespace.tolist(), b.low.tolist(), b.high.tolist(), strict=True):
        yield snapshot.namespaces[namespace], low, high


def _carried(now: BundleTable, before: BundleTable, earlier: IntArray, known: Any) -> BundleTable:
    columns = {
        name: frozen(np.where(known, getattr(before, name)[earlier], getattr(now, name))) for name in _columns(now)
    }
    return replace(now, **columns)


def _new_reports(snapshot: Snapshot, before: Snapshot) -> int:
    """Return how many brokers have reported since."""
    updated = dict(zip(before.brokers.name, before.brokers.updated_at_ms.tolist(), strict=True))
    brokers = zip(snapshot.brokers.name, snapshot.brokers.updated_at_ms.tolist(), strict=True)
    new = sum(1 for name, at_ms in brokers if updated.get(name) != at_ms)
    return min(new, _MOST_REFRESHES)
