"""Folders of a history that look like days and are none, which readers pass over."""

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from planner.cluster.errors import shown
from planner.cluster.files import content_of_file
from planner.history.manifest import FORMAT, MANIFEST, is_day_folder, segments_of

_MOST = 20
_MOST_FOLDERS = 20_000
_DAY = "day="
_NAMED = "cluster=NAME/day=YYYY-MM-DD"


def passed_over(root: Path) -> list[str]:
    """Return a sentence for each folder that looks like a day and is none, the first twenty.

    That is one named as a day without a manifest and without a moment of a watch, and one of another name, or in
    another place, that has the manifest of a day.
    """
    return [f"{shown(str(path.relative_to(root)))}: {why}" for path, why in islice(_found(root), _MOST)]


def _found(root: Path) -> Iterator[tuple[Path, str]]:
    for path in islice(_folders(root), _MOST_FOLDERS):
        try:
            if not is_day_folder(path):
                if path.name.startswith(_DAY) or _has_manifest_of_a_day(path):
                    yield path, f"This folder looks like a day but is skipped. Name it {_NAMED}."
            elif not path.is_dir():
                yield path, "This has the name of a day but is not a folder. Move it away."
            elif not _has(path / MANIFEST) and not segments_of(path) and _holds_something(path):
                yield (
                    path,
                    (
                        f"This folder has the name of a day but no {MANIFEST}. Restore that file, or move the "
                        "folder away."
                    ),
                )
        except OSError:
            continue  # what reads days says so


def _folders(root: Path) -> Iterator[Path]:
    """Yield what may be a day: what is in a history, and one folder further down."""
    for path in sorted(_visible(root)):
        yield path
        if path.is_dir():
            yield from sorted(_visible(path))


def _visible(folder: Path) -> Iterator[Path]:
    try:
        yield from (path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError:
        return


def _has(path: Path) -> bool:
    return path.is_symlink() or path.exists()


def _holds_something(folder: Path) -> bool:
    """Whether there is more than what a watch begins with, or leaves."""
    return any(True for _ in _visible(folder))


def _has_manifest_of_a_day(path: Path) -> bool:
    if not (path / MANIFEST).is_file():
        return False
    try:
        manifest = json.loads(content_of_file(path / MANIFEST))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(manifest, dict) and manifest.get("format") == FORMAT
