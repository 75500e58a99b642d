"""Raw answers of the last captures of a watch, so that those around a cycle that was predicted wrong can be kept."""

import os
import shutil
from collections import deque
from pathlib import Path

from planner.cluster.errors import CaptureError
from planner.cluster.files import writing
from planner.cluster.snapshot import SnapshotInfo
from planner.history.watched import HistoryFolder

_RING = ".answers"
_KEPT = ".wrong"
_MOST = 40
_JOURNALS = ("*.jsonl", "*.part")


class RawAnswers:
    """Keeps the last captures' answers, as links to their files, and those that matter for good, oldest going first.

    Both may take `max_bytes` in the folder of histories; answers that several captures share count for each.

    Raises:
        CaptureError: The folder cannot be written; any method may say so.
    """

    def __init__(self, root: Path, max_bytes: int) -> None:
        self.root = root
        self.max_bytes = max_bytes
        self._ring: deque[tuple[int, Path]] = deque()
        self._folder = root / f"{_RING}-{os.getpid()}"

    def add(self, info: SnapshotInfo, raw: Path) -> None:
        """Take over the answers of a capture."""
        target = self._folder / str(info.captured_at_ms)
        with writing(self._folder, CaptureError):
            if not target.exists():
                shutil.copytree(raw, target, copy_function=_link, ignore=shutil.ignore_patterns(*_JOURNALS))
                self._ring.append((info.captured_at_ms, target))
            while len(self._ring) > _MOST or (len(self._ring) > 1 and _size(self._folder) > self.max_bytes // 2):
                shutil.rmtree(self._ring.popleft()[1], ignore_errors=True)

    def keep(self, cluster: str, from_ms: int, to_ms: int) -> Path:
        """Keep the answers from the capture before `from_ms` to that after `to_ms`; return their folder."""
        kept = HistoryFolder(self.root, 1).folder_of(cluster) / _KEPT
        target = kept / str(from_ms)
        times = [at for at, _ in self._ring]
        first = max((at for at in times if at < from_ms), default=from_ms)
        last = min((at for at in times if at > to_ms), default=to_ms)
        with writing(kept, CaptureError):
            for at, folder in self._ring:
                if first <= at <= last and not (target / folder.name).exists():
                    shutil.copytree(folder, target / folder.name, copy_function=_link)
            for old in sorted(kept.iterdir(), key=lambda path: path.name):
                if old != target and _size(kept) > self.max_bytes // 2:
                    shutil.rmtree(old, ignore_errors=True)
        return target

    def close(self) -> None:
        """Delete the answers that nobody wanted."""
        shutil.rmtree(self._folder, ignore_errors=True)


def _link(source: str, target: str) -> None:
    """Link a file, which is never written twice, or copy it where the disk has no links."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
