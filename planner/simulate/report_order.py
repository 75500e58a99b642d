"""The order of the bundles in the reports that a leader knows, kept up to date where bundles move and split."""

import numpy as np

from planner.cluster.arrays import BoolArray, Int64Array, IntArray, frozen, sorted_places
from planner.cluster.hashing import grouped_map_order
from planner.cluster.snapshot import Snapshot
from planner.simulate.renumbering import Renumbering

_UNKNOWN = -2
"""Stands for the broker of a bundle whose place is not known; -1 for none."""


class ReportOrder:
    """`Snapshot.reported` of one view after the other: only reports that list other bundles are put in order anew.

    Args:
        snapshot: What was reported at the start.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        bundles = snapshot.bundles
        self._order: Int64Array = snapshot.reported
        self._by: IntArray = np.where(bundles.has_stats, bundles.owner, -1).astype(np.int32)
        """Who reported each bundle then, `_UNKNOWN` where the order of its report is not known. Shape (bundles,)."""
        self._brokers = len(snapshot.brokers)

    def rebuilt(self, change: Renumbering) -> None:
        """Follow a renumbering; the reports that list what is gone are put in order anew."""
        by = self._by
        by[self._of(by[change.gone])[by]] = _UNKNOWN
        before = change.follow(np.arange(len(by)))
        before[change.made] = -1
        stays = np.flatnonzero(before >= 0)
        now = np.full(len(by), -1)
        now[before[stays]] = stays
        self._by = change.follow(by)
        self._by[change.made] = _UNKNOWN
        self._order = now[self._order[by[self._order] != _UNKNOWN]]  # what is gone was in one of those reports

    def of(self, by: IntArray, hashes: IntArray) -> Int64Array:
        """Return positions of the bundles that are reported: by broker, then in the order of the report's map.

        Args:
            by: Broker that reports each bundle, -1 where none does. Shape (bundles,).
            hashes: `String.hashCode` of their names. Shape (bundles,).
        """
        differs = np.flatnonzero(by != self._by)
        if len(differs):
            self._brokers = max(self._brokers, int(by[differs].max()) + 1)
            anew = self._of(by[differs]) | self._of(self._by[differs])
            kept = self._order[~anew[by[self._order]] & ~anew[self._by[self._order]]]
            listed = np.flatnonzero(anew[by])
            listed = listed[grouped_map_order(hashes[listed], by[listed], concurrent=True)]
            order = np.concatenate((kept, listed))
            self._order = frozen(order[sorted_places(by[order], self._brokers)])
            self._by = by.copy()
        return self._order

    def _of(self, brokers: IntArray) -> BoolArray:
        """Mark some brokers, by position; the marks of -1 and `_UNKNOWN`, the last two, stay unset.

        Shape (brokers + 2,).
        """
        marks = np.zeros(self._brokers + 2, dtype=np.bool_)
        marks[brokers[brokers >= 0]] = True
        return marks
