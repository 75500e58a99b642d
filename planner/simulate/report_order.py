"""The order of the bundles in the reports that a leader knows, kept up to date where bundles move and split."""

import numpy as np

from planner.cluster.arrays import Int64Array, IntArray, frozen
from planner.cluster.hashing import grouped_map_order
from planner.cluster.snapshot import Snapshot
from planner.simulate.load_model import served_by
from planner.simulate.renumbering import Renumbering


class ReportOrder:
    """`Snapshot.reported` of one view after the other: only reports that list other bundles are put in order anew.

    Args:
        snapshot: What was reported at the start.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        bundles = snapshot.bundles
        self._order: Int64Array = snapshot.reported
        self._by: IntArray = np.where(bundles.has_stats, bundles.owner, -1).astype(np.int32)
        """Who reported each bundle then, -1 for no broker. Shape (bundles,)."""
        listed = np.bincount(self._by[self._by >= 0], minlength=len(snapshot.brokers))
        self._ends: Int64Array = np.cumsum(listed)
        """Where the report of each broker ends in the order. Shape (brokers,)."""
        self._cut = np.zeros(0, dtype=np.int64)
        """Brokers, by position, whose reports listed what is gone since."""

    def rebuilt(self, change: Renumbering) -> None:
        """Follow a renumbering; the reports that list what is gone are put in order anew."""
        by = np.unique(self._by[change.gone])
        self._cut = np.union1d(self._cut, by[by >= 0])
        self._by = change.follow(self._by)
        self._by[change.made] = -1
        if not len(change.gone):
            return
        if change.side_by_side:
            more = len(change.made) - len(change.gone)
            self._order = self._order + more * (self._order > int(change.gone[-1]))
            return
        stays = np.flatnonzero(~change.new)
        now = np.zeros(len(stays) + len(change.gone), dtype=np.int64)  # what is gone is in a report that is cut
        now[change.parent[stays]] = stays
        self._order = now[self._order]

    def of(self, by: IntArray, hashes: IntArray) -> Int64Array:
        """Return positions of the bundles that are reported: by broker, then in the order of the report's map.

        Args:
            by: Broker that reports each bundle, -1 where none does. Shape (bundles,).
            hashes: `String.hashCode` of their names. Shape (bundles,).
        """
        differs = np.flatnonzero(by != self._by)
        if not len(differs) and not len(self._cut):
            return self._order
        anew = np.unique(np.concatenate((by[differs], self._by[differs], self._cut)))
        anew = anew[anew >= 0]
        ends = self._ends
        if len(anew) and anew[-1] >= len(ends):  # a broker that joined
            ends = np.append(ends, np.full(int(anew[-1]) + 1 - len(ends), len(self._order)))
        listed = np.flatnonzero(served_by(anew, by, len(ends)))
        listed = listed[grouped_map_order(hashes[listed], by[listed], concurrent=True)]
        first = np.searchsorted(by[listed], anew)
        lengths = np.diff(ends, prepend=0)
        pieces, kept_from = [], 0
        for broker, own in zip(anew.tolist(), np.split(listed, first[1:]), strict=True):
            end = int(ends[broker])
            pieces += [self._order[kept_from : end - int(lengths[broker])], own]
            kept_from, lengths[broker] = end, len(own)
        self._order = frozen(np.concatenate((*pieces, self._order[kept_from:])))
        self._by, self._ends, self._cut = by.copy(), np.cumsum(lengths), self._cut[:0]
        return self._order
