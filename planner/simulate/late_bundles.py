"""Bundles whose columns are worked out when somebody asks for one.

A leader that places a bundle, or looks whether one is to be split, reads few columns of all bundles. To copy every
column for each such look takes far longer than the look.
"""

from typing import Any, Protocol
from weakref import proxy

from planner.cluster.tables import BundleTable


class Columns(Protocol):
    """Knows the columns of bundles as they are now."""

    def column(self, name: str, version: int) -> Any:
        """Return a column, if nothing has changed since a version."""


class LateBundles(BundleTable):
    """A table that holds until something changes. A copy with other columns is as any other table."""

    source: tuple[Columns, int] | None = None
    """Who knows the columns, and the version that they are of."""

    @classmethod
    def of(cls, columns: Columns, version: int) -> "LateBundles":
        """Return a table with no column yet.

        Args:
            columns: Is asked at most once for each. It may hold the table: the table does not keep it alive.
            version: The version that the table is of.
        """
        table = object.__new__(cls)
        table.__dict__["source"] = (proxy(columns), version)
        return table

    def __getattr__(self, name: str) -> Any:
        """Work out a column, the first time that somebody asks for it."""
        if self.source is None or name not in self.__dataclass_fields__:
            raise AttributeError(name)
        columns, version = self.source
        self.__dict__[name] = found = columns.column(name, version)
        return found
