"""The history folder: one snapshot folder for each moment, in `cluster=<name>/day=<yyyy-mm-dd>/`.

A snapshot is there whole or not at all, whenever the writer is killed: it is written under a name that begins with a
dot, which readers of histories pass over, and then renamed. The oldest ones go when there are too many bytes.
"""

import re
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from planner.cluster.errors import CaptureError
from planner.cluster.snapshot import Snapshot
from planner.formats.folder import MANIFEST, write_folder

_STAMP = re.compile(r"[0-9]{8}T[0-9]{6}\.[0-9]{3}Z")
_DAY = re.compile(r"day=[0-9]{4}-[0-9]{2}-[0-9]{2}")
_UNFINISHED = ".part"
_GOING = ".going"


class HistoryFolder:
    """Snapshots of one cluster over time.

    Args:
        root: Folder of all histories.
        max_bytes: What the snapshots of one cluster may take; the oldest are deleted beyond that.
    """

    def __init__(self, root: Path, max_bytes: int) -> None:
        self.root = root
        self.max_bytes = max_bytes

    def folder_of(self, cluster: str) -> Path:
        """Return the folder of a cluster."""
        return self.root / f"cluster={quote(cluster, safe='')}"

    def add(self, snapshot: Snapshot) -> Path:
        """Write a snapshot, and make room for it.

        Args:
            snapshot: A validated snapshot, which says its cluster and moment.

        Returns:
            Its folder.

        Raises:
            CaptureError: The folder cannot be written.
            FormatError: The same.
        """
        moment = datetime.fromtimestamp(snapshot.info.captured_at_ms / 1000, UTC)
        stamp = f"{moment:%Y%m%dT%H%M%S}.{snapshot.info.captured_at_ms % 1000:03d}Z"
        day = self.folder_of(snapshot.info.cluster) / f"day={moment:%Y-%m-%d}"
        unfinished, target = day / f".{stamp}{_UNFINISHED}", day / stamp
        try:
            day.mkdir(parents=True, exist_ok=True)
            self.clear_leftovers(snapshot.info.cluster)
            write_folder(snapshot, unfinished)
            if target.exists():  # the same moment twice is the same snapshot twice
                shutil.rmtree(unfinished)
            else:
                unfinished.rename(target)
            self._make_room(snapshot.info.cluster, target)
        except OSError as error:
            raise CaptureError(
                f"Cannot write: {error.strerror}.", where=str(day), remedy="Make room, or choose another folder."
            ) from error
        return target

    def snapshots(self, cluster: str) -> Iterator[Path]:
        """Yield the folders of a cluster's snapshots, oldest first."""
        days = (p for p in _folders(self.folder_of(cluster)) if _DAY.fullmatch(p.name))
        for day in days:
            yield from (p for p in _folders(day) if _STAMP.fullmatch(p.name) and (p / MANIFEST).is_file())

    def bytes_of(self, cluster: str) -> int:
        """Return what the snapshots of a cluster take on disk."""
        return sum(map(_size, self.snapshots(cluster)))

    def clear_leftovers(self, cluster: str) -> None:
        """Delete what a writer that was killed left unfinished."""
        for day in _folders(self.folder_of(cluster)):
            for path in _folders(day):
                if path.name.startswith(".") and path.name.endswith((_UNFINISHED, _GOING)):
                    shutil.rmtree(path, ignore_errors=True)

    def _make_room(self, cluster: str, newest: Path) -> None:
        """Delete the oldest snapshots; the newest always stays."""
        sizes = [(path, _size(path)) for path in self.snapshots(cluster)]
        total = sum(size for _, size in sizes)
        for path, size in sizes:
            if total <= self.max_bytes or path == newest:
                return
            going = path.with_name(f".{path.name}{_GOING}")
            path.rename(going)
            shutil.rmtree(going)
            if not any(path.parent.iterdir()):
                path.parent.rmdir()
            total -= size


def _folders(path: Path) -> list[Path]:
    return sorted(p for p in path.iterdir() if p.is_dir()) if path.is_dir() else []


def _size(path: Path) -> int:
    return sum(file.stat().st_size for file in path.iterdir())
