"""What the leader knows at a capture, as far as captures tell.

The leader of the modular load manager of Pulsar 4.2.4 takes a sample of every bundle with each load report that
arrives, but writes its averages only every `loadBalancerResourceQuotaUpdateIntervalMinutes` (15). In between, what was
captured stands still; here it goes on with one sample for each broker that has reported anew. It differs where a broker
reported twice between two captures.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from planner.capture.estimate import average_columns, carried_on, new_reports
from planner.cluster.arrays import BoolArray, Int64Array, frozen
from planner.cluster.load_manager import LoadManager
from planner.cluster.snapshot import BundleTable, Snapshot
from planner.pulsar.load.averages import broker_averages, refresh


def after_reports(snapshot: Snapshot, reports: int) -> Snapshot:
    """Return a snapshot whose bundles have averages with so many further samples of their current values."""
    bundles = snapshot.bundles
    for _ in range(reports):
        bundles = refresh(bundles)
    return snapshot.with_columns(bundles=bundles)


def leader_view(known: Snapshot, before: Snapshot, after: Snapshot) -> Snapshot:
    """Return a capture as the leader knows the cluster, from the one before as known then (`known`) and as captured.

    Averages that have not changed since the capture before go on from what was known then; others are as captured.
    """
    if after.info.load_manager is not LoadManager.MODULAR:
        return after
    return _with_brokers(known, before, after, _with_samples(known, before, after))


def _with_samples(known: Snapshot, before: Snapshot, after: Snapshot) -> Snapshot:
    """Return a capture with the averages of bundles gone on."""
    rows = np.array([before.bundle_position.get(name, -1) for name in after.bundle_names], dtype=np.int64)
    stands = _unchanged(before.bundles, after.bundles, rows)
    if not stands.any():
        return after
    bundles = carried_on(after.bundles, known.bundles, rows, stands, new_reports(before, after))
    return after.with_columns(bundles=bundles)


def _with_brokers(known: Snapshot, before: Snapshot, after: Snapshot, view: Snapshot) -> Snapshot:
    """Return the view of a capture with the averages of brokers gone on, too; arguments are those of `leader_view`.

    The leader sums up those of the bundles that a broker reports, with each load report, and writes the sums as seldom
    as those of bundles. What the sums have beyond the captured bundles stays as it was written.
    """
    place = before.brokers.position
    rows = np.array([place.get(name, -1) for name in after.brokers.name], dtype=np.int64)
    was, written, now = (broker_averages(s) for s in (known, with_owners_of(before, after), view))
    columns: dict[str, Any] = {}
    for name, sums in now.items():
        column = getattr(after.brokers, name)
        if np.isnan(column).all():
            continue
        stands = (rows >= 0) & (np.append(getattr(before.brokers, name), np.nan)[rows] == column)
        beyond_then = (np.append(getattr(known.brokers, name), np.nan) - np.append(was[name], 0.0))[rows]
        beyond = np.maximum(np.where(stands, beyond_then, column - written[name]), 0.0)
        columns[name] = frozen(beyond + sums)
    return view.with_columns(brokers=replace(view.brokers, **columns)) if columns else view


def with_owners_of(before: Snapshot, after: Snapshot) -> Snapshot:
    """Return a capture with the owners of an earlier one, where the broker is still there."""
    names = (*before.brokers.name, "")
    owners = dict(zip(before.bundle_names, before.bundles.owner.tolist(), strict=True))
    place = after.brokers.position
    rows = zip(after.bundle_names, after.bundles.owner.tolist(), strict=True)
    owner = [place.get(names[owners[name]], now) if name in owners else now for name, now in rows]
    return after.with_owner(np.array(owner, dtype=np.int32))


def _unchanged(before: BundleTable, after: BundleTable, rows: Int64Array) -> BoolArray:
    """Say which bundles have the averages that they had. Shape (bundles,)."""
    same: BoolArray = (rows >= 0) & after.has_data & ~after.averages_estimated
    same &= np.append(before.has_data, False)[rows]
    for name in average_columns(after):
        same &= np.append(getattr(before, name), 0)[rows] == getattr(after, name)
    return same
