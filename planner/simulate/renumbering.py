"""How the bundles of a simulated cluster are renumbered, where one is split or a namespace is made anew."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from planner.cluster.arrays import BoolArray, FloatArray, Int64Array

_T = TypeVar("_T", bound=np.generic)

_MORE_BUNDLES = 256
"""Bundles that may be added before new memory is needed."""


@dataclass(frozen=True, eq=False, slots=True)
class Renumbering:
    """How the bundles of a cluster were renumbered.

    Attributes:
        parent: For each bundle now, its position before; that of its parent when it is new. Shape (bundles,).
        new: Which bundles are new. Shape (bundles,).
        gone: Positions, before, of those that the new ones replace, in order; none where they are put behind all.
            Shape (replaced,).
    """

    parent: Int64Array
    new: BoolArray
    gone: Int64Array

    @property
    def side_by_side(self) -> bool:
        """Whether new bundles replace bundles that stood side by side."""
        return bool(len(self.gone)) and int(self.gone[-1] - self.gone[0]) + 1 == len(self.gone)

    @property
    def made(self) -> Int64Array:
        """Positions of the new bundles, which stand side by side. Shape (new bundles,)."""
        return np.flatnonzero(self.new)

    def follow(self, values: np.ndarray[Any, np.dtype[_T]]) -> np.ndarray[Any, np.dtype[_T]]:
        """Return values of each bundle after the renumbering, a new bundle with those of its parent.

        Shape (..., bundles). Bundles side by side are copied in one piece, which is quicker than one by one.

        Args:
            values: What follows. Shape (..., bundles before).
        """
        if not self.side_by_side:
            return values.take(self.parent, axis=-1)
        first, last = int(self.gone[0]), int(self.gone[-1])
        behind = len(self.parent) - (values.shape[-1] - last - 1)
        found = np.empty((*values.shape[:-1], len(self.parent)), dtype=values.dtype)
        found[..., :first] = values[..., :first]
        found[..., first:behind] = values[..., first : first + 1]
        found[..., behind:] = values[..., last + 1 :]
        return found


class Names(list[str]):
    """The names of bundles, which are changed in place: that is far quicker than to copy them at each renumbering."""

    _kept: tuple[str, ...] | None = None

    def follow(self, change: Renumbering, new: Sequence[str]) -> None:
        """Let the name of each bundle follow a renumbering, given those of the new ones."""
        self._kept = None
        if change.side_by_side:
            self[int(change.gone[0]) : int(change.gone[-1]) + 1] = new
            return
        followed = [self[at] for at in change.parent.tolist()]
        for at, name in zip(change.made.tolist(), new, strict=True):
            followed[at] = name
        self[:] = followed

    def as_tuple(self) -> tuple[str, ...]:
        """Return the names as they are now."""
        if self._kept is None:
            self._kept = tuple(self)
        return self._kept

    @staticmethod
    def kept(names: Sequence[str]) -> tuple[str, ...]:
        """Return some names as they are now, for keeping."""
        return names.as_tuple() if isinstance(names, Names) else tuple(names)


class Room:
    """Memory in which numbers of bundles follow renumberings: to take new memory takes longer than to move them."""

    def __init__(self) -> None:
        self._memory = np.empty((0, 0))

    def follow(self, values: FloatArray, change: Renumbering) -> FloatArray:
        """Return what `Renumbering.follow` does; what this returned before is overwritten. Shape (rows, bundles)."""
        before, now = values.shape[1], len(change.parent)
        if values.base is not self._memory or now > self._memory.shape[1]:
            self._memory = np.empty((len(values), max(before, now) + _MORE_BUNDLES))
            self._memory[:, :before] = values
        found: FloatArray = self._memory[:, :now]
        if not change.side_by_side:
            found[:] = self._memory[:, :before].take(change.parent, axis=1)
            return found
        first, last = int(change.gone[0]), int(change.gone[-1])
        behind = now - (before - last - 1)
        for row in self._memory:  # of one row, nothing is copied on the way
            row[behind:now] = row[last + 1 : before]
            row[first:behind] = row[first]
        return found
