"""Where each of many names stands while positions change, without a new dictionary for every change."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import repeat
from types import MappingProxyType

import numpy as np

from planner.cluster.arrays import Int64Array


class Positions(Mapping[str, int]):
    """The position of each name. What one holds never changes; those made from it share its dictionary of names.

    Args:
        known: A number for each name that ever was, which only grows.
        number: The number of each name, by position. Shape (names,).
    """

    __slots__ = ("_known", "_number", "_place")

    def __init__(self, known: dict[str, int], number: Int64Array) -> None:
        self._known, self._number = known, number
        self._place: Int64Array = np.full(len(known), -1, dtype=np.int64)
        self._place[number] = np.arange(len(number))

    @staticmethod
    def of(position: Mapping[str, int]) -> "Positions":
        """Return what a mapping of each of so many names to its position tells; one of these as it is."""
        if isinstance(position, Positions):
            return position
        # A dictionary copies itself in one piece; `dict` asks any other mapping for each of its names.
        known = position.copy() if isinstance(position, MappingProxyType) else dict(position)
        return Positions(known, np.arange(len(known)))

    def renumbered(self, new: Sequence[str], followed: Int64Array, made: Sequence[int]) -> "Positions":
        """Return the positions after a renumbering.

        Args:
            new: The names that are made.
            followed: For each name now, where it stood before; anything for those made. Shape (names,).
            made: Positions of those that are made.
        """
        number = self._number[followed]
        for at, name in zip(made, new, strict=True):
            number[at] = self._known.setdefault(name, len(self._known))
        return Positions(self._known, number)

    def get(self, name: str, default: int = -1) -> int:  # type: ignore[override]
        """Return the position of a name, or the default."""
        at = self._known.get(name, -1)
        place = int(self._place[at]) if 0 <= at < len(self._place) else -1
        return place if place >= 0 else default

    def of_each(self, names: Collection[str]) -> Int64Array:
        """Return the position of each of many names, -1 for one that is none. Shape (names,)."""
        at = np.fromiter(map(self._known.get, names, repeat(-1)), dtype=np.int64, count=len(names))
        at[at >= len(self._place)] = -1  # a name that came later
        return np.where(at >= 0, self._place[at], -1) if len(self._place) else at

    def __getitem__(self, name: str) -> int:
        place = self.get(name)
        if place < 0:
            raise KeyError(name)
        return place

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.get(name) >= 0

    def __iter__(self) -> Iterator[str]:
        every = tuple(self._known)
        return (every[number] for number in self._number.tolist())

    def __len__(self) -> int:
        return len(self._number)


def positions_of(names: Collection[str], known: Mapping[str, int]) -> Int64Array:
    """Return the position of each of many names, -1 for one that is unknown. Shape (names,)."""
    if isinstance(known, Positions):
        return known.of_each(names)
    return np.fromiter(map(known.get, names, repeat(-1)), dtype=np.int64, count=len(names))
