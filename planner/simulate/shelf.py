"""Past cycles of a run on disk, so that a run of any length takes little memory.

A cycle knows the cluster as the leader did, which is megabytes of columns. They go into a file without a name, each
column once however many cycles share it, and are read from there when somebody looks at that cycle.
"""

import mmap
import os
import tempfile
import weakref
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from planner.cluster.errors import ScenarioError
from planner.cluster.files import writing
from planner.cluster.snapshot import Snapshot
from planner.cluster.units import GIB
from planner.simulate.trace import Cycle

MOST_DISK_BYTES = GIB
"""Most bytes of the columns of a run."""

MOST_CYCLES = 8_000
"""Most cycles of a run; each keeps about 16 kB in memory."""

_Kept: TypeAlias = dict[int, tuple[npt.NDArray[Any], npt.NDArray[Any]]]
"""Columns of a cycle by their identities, each with its copy on disk."""

_MOST_EVENTS = 200_000
_ALIGNED = 64


class CycleStore:
    """Keeps the cycles of one run.

    Args:
        cycles: How many the run has, for the messages.
        start: The cluster that it starts from, whose own columns need no copy.
        folder: Where the file lies; the system's own place for such files when None.

    Attributes:
        disk_bytes: How much of the file is used.
    """

    def __init__(self, cycles: int, start: Snapshot, folder: Path | None = None) -> None:
        self._cycles = cycles
        tables = (start.brokers, start.bundles, start.topics)
        self._start = {
            id(column): column
            for table in tables
            for column in (getattr(table, field.name) for field in fields(table))
            if isinstance(column, np.ndarray)
        }
        self._events = 0
        self.disk_bytes = 0
        self._last: _Kept = {}
        with writing(folder or tempfile.gettempdir(), ScenarioError, "Free some disk space on the server."):
            self._file, name = tempfile.mkstemp(dir=folder)
            weakref.finalize(self, os.close, self._file)  # the map has its own hold on the file
            Path(name).unlink()
            os.ftruncate(self._file, MOST_DISK_BYTES)
            self._map = mmap.mmap(self._file, MOST_DISK_BYTES, prot=mmap.PROT_READ)

    def keep(self, cycle: Cycle) -> Cycle:
        """Return the same cycle with its columns on disk.

        Raises:
            ScenarioError: There is no room for more.
        """
        self._events += len(cycle.events) + len(cycle.unloads)
        if self._events > _MOST_EVENTS:
            raise self._too_long(cycle.index, f"{self._events:,} moves and other events")
        before, self._last = self._last, {}
        view = self._shelved(cycle.view, before, cycle.index)
        return replace(cycle, view=view, owner=self._column(cycle.owner, before, cycle.index))

    def keep_end(self, end: Snapshot) -> Snapshot:
        """Return the cluster after the last cycle with its columns on disk.

        Raises:
            ScenarioError: There is no room for more.
        """
        return self._shelved(end, {}, self._cycles)

    def rest(self) -> None:
        """Take no memory for now: the file is read again when somebody looks, and nothing more comes."""
        self._last = {}
        self._map.madvise(mmap.MADV_DONTNEED)

    def _shelved(self, view: Snapshot, before: _Kept, at: int) -> Snapshot:
        tables = {part: self._put(getattr(view, part), before, at) for part in ("brokers", "bundles", "topics")}
        return replace(view, **tables).naming(view.bundle_names, view.bundle_name_hashes)

    def _put(self, table: Any, before: _Kept, at: int) -> Any:
        columns = {field.name: getattr(table, field.name) for field in fields(table)}
        arrays = {
            name: self._column(column, before, at) for name, column in columns.items() if isinstance(column, np.ndarray)
        }
        return replace(table, **arrays)

    def _column(self, column: npt.NDArray[Any], before: _Kept, at: int) -> npt.NDArray[Any]:
        if id(column) in self._start:
            return column
        _, kept = before.get(id(column)) or self._last.get(id(column)) or (None, None)
        if kept is None and not column.nbytes:
            kept = column
        if kept is None:
            start = -(-self.disk_bytes // _ALIGNED) * _ALIGNED
            if start + column.nbytes > MOST_DISK_BYTES:
                raise self._too_long(at, f"{MOST_DISK_BYTES >> 20:,} MiB")
            with writing("temporary files", ScenarioError, "Free some disk space on the server."):
                os.pwrite(self._file, np.ascontiguousarray(column).data, start)
            self.disk_bytes = start + column.nbytes
            kept = np.frombuffer(self._map, column.dtype, column.size, start).reshape(column.shape)
        self._last[id(column)] = column, kept  # the column itself, so that no other one gets its identity
        return kept

    def _too_long(self, done: int, what: str) -> ScenarioError:
        return ScenarioError(
            f"After {done:,} of {self._cycles:,} cycles there are {what}, more than the server can keep.",
            remedy=f"Simulate at most {max(done, 1):,} cycles, or a smaller cluster.",
        )
