"""The topics of a simulated cluster whose bundles were cut: where each of them is, worked out when somebody asks.

There are many more topics than bundles, and a simulation seldom asks about all of them. It keeps the table that it
started with, where each of its bundles went, and only of the bundles that were cut, where their topics went.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from planner.cluster.arrays import Int64Array, frozen
from planner.cluster.ranges import bundles_of_hashes
from planner.cluster.tables import TopicTable
from planner.simulate.renumbering import Renumbering


@dataclass(frozen=True, eq=False, slots=True)
class _Cuts:
    """What happened to the bundles of a table.

    Attributes:
        base: The table.
        origin: For each bundle now, its position in that table; -1 where it is new. Shape (bundles,).
        rows: Positions of the topics whose bundles were cut. Shape (such topics,).
        bundle: The bundle that each of these is in now. Shape (such topics,).
    """

    base: TopicTable
    origin: Int64Array
    rows: Int64Array
    bundle: Int64Array

    def of_bundle(self, bundle: int) -> Int64Array:
        """See `TopicTable.of_bundle`."""
        origin = int(self.origin[bundle]) if bundle >= 0 else bundle
        if origin < 0 <= bundle:
            return np.sort(self.rows[self.bundle == bundle])
        return self.base.of_bundle(origin)

    def column(self) -> Any:
        """Return the bundle of each topic now; see `TopicTable`."""
        kept, bundles = np.flatnonzero(self.origin >= 0), self.base.bundle
        place = np.full(max(int(bundles.max()), int(self.origin.max(initial=-1))) + 2, -1, dtype=bundles.dtype)
        place[self.origin[kept]] = kept  # the last one is for topics of no bundle
        found = place[bundles]
        found[self.rows] = self.bundle
        return frozen(found)


class CutTopics(TopicTable):
    """A table with other bundles than the one it came from. A copy with other columns is as any other table."""

    cuts: _Cuts | None = None
    """What happened to the bundles of the table that it came from."""

    @classmethod
    def of(cls, topics: TopicTable, change: Renumbering, low: Int64Array) -> TopicTable:
        """Return topics after bundles were cut: those of bundles that are gone are in the new ones, by their hash.

        Args:
            topics: The topics before.
            change: How bundles were renumbered.
            low: First hash of each bundle now. Shape (bundles,).
        """
        if not len(topics):
            return topics
        known = topics.cuts if isinstance(topics, CutTopics) else None
        before = len(change.parent) - len(change.made) + len(change.gone)
        if known is None:
            none = np.zeros(0, dtype=np.int64)
            known = _Cuts(topics, np.arange(before), none, none)
        origin, made = change.follow(known.origin), change.made
        origin[made] = -1
        made = made[np.argsort(low[made], kind="stable")]
        moved = np.concatenate([np.zeros(0, dtype=np.int64), *(known.of_bundle(at) for at in change.gone.tolist())])
        place = bundles_of_hashes(low[made], topics.hash[moved].astype(np.int64))
        stay = ~np.isin(known.bundle, change.gone)
        now = np.zeros(before, dtype=np.int64)
        now[change.parent[~change.new]] = np.flatnonzero(~change.new)
        rows = np.append(known.rows[stay], moved)
        bundle = np.append(now[known.bundle[stay]], made[np.clip(place, 0, None)])
        table = object.__new__(cls)
        table.__dict__.update(
            {name: getattr(known.base, name) for name in cls.__dataclass_fields__ if name != "bundle"}
        )
        table.__dict__["cuts"] = _Cuts(known.base, origin, rows, bundle)
        return table

    def __getattr__(self, name: str) -> Any:
        """Work out the column `bundle`, the first time that somebody asks for it."""
        if name != "bundle" or self.cuts is None:
            raise AttributeError(name)
        self.__dict__["bundle"] = found = self.cuts.column()
        return found

    def of_bundle(self, bundle: int) -> Int64Array:
        """See `TopicTable.of_bundle`."""
        return super().of_bundle(bundle) if self.cuts is None else self.cuts.of_bundle(bundle)
