"""Packs a raw capture as a zip of the files that the planner reads, and no others.

Usage: python tools/pack_capture.py CAPTURE_FOLDER TARGET.zip
"""

import sys
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from planner.formats.raw_capture.snapshot import snapshot_of_capture

_ALSO = ("metrics.", "prometheus.", "load-report.")
"""Files that the planner falls back on when others are missing."""


class Recorder(Mapping[str, bytes]):
    """The files of a folder, and which of them were read."""

    def __init__(self, path: Path) -> None:
        self.files = {entry.name: entry for entry in sorted(path.iterdir()) if entry.is_file()}
        self.read: set[str] = set()

    def __getitem__(self, name: str) -> bytes:
        self.read.add(name)
        return self.files[name].read_bytes()

    def __contains__(self, name: object) -> bool:
        return name in self.files

    def __iter__(self) -> Iterator[str]:
        return iter(self.files)

    def __len__(self) -> int:
        return len(self.files)


def main() -> None:
    """Read the capture, and pack what was read."""
    source, target = Path(sys.argv[1]), Path(sys.argv[2])
    recorder = Recorder(source)
    snapshot_of_capture(recorder)
    names = sorted(recorder.read | {name for name in recorder if name.startswith(_ALSO)})
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in names:
            archive.writestr(zipfile.ZipInfo(name, (2000, 1, 1, 0, 0, 0)), recorder[name], zipfile.ZIP_DEFLATED, 9)
    print(f"{target}: {len(names)} of {len(recorder)} files, {target.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
