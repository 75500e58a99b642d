"""Whether a day of a history is whole."""

from pathlib import Path

from planner.history.manifest import DayManifest, check_parts, read_manifest


def check_day(folder: Path) -> DayManifest:
    """Compare the files of a day with its manifest; a `FormatError` says which is missing or changed."""
    manifest = read_manifest(folder)
    check_parts(folder, manifest, manifest.parts)
    return manifest
