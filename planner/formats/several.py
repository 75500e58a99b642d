"""A zip of several snapshots or captures of a cluster: when each was taken, and which one is opened."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import BinaryIO, Final

from planner.cluster.errors import FormatError
from planner.cluster.moments import LAST_MS
from planner.cluster.snapshot import Snapshot
from planner.cluster.text import count, moment
from planner.formats.archive import marks_of_zip
from planner.formats.encoding import parse_json
from planner.formats.folder import MANIFEST
from planner.formats.raw_capture.answers import INDEX, read_answers
from planner.formats.raw_capture.identity import UNNAMED, cluster_of
from planner.formats.raw_capture.metadata_store import read_metadata_store
from planner.formats.raw_capture.snapshot import moment_of
from planner.formats.validate import fitting_notes

MARKS: Final = (MANIFEST, INDEX)
"""Files of which each is in the folder of a snapshot or a raw capture."""

_SHOWN: Final = 3
_NAME: Final = 60


@dataclass(frozen=True, slots=True)
class Held:
    """A snapshot or capture in a zip of several.

    Attributes:
        folder: Its folder.
        cluster: Its cluster; empty where its mark does not say.
        captured_at_ms: When it was captured, ms since 1970; 0 where its mark does not say.
        is_readable: Whether its mark can be read.
    """

    folder: str
    cluster: str = ""
    captured_at_ms: int = 0
    is_readable: bool = True


def held_in(source: BinaryIO, file: str) -> tuple[Held, ...]:
    """Return what a zip of several holds, by the time of the capture and then by name; nothing for any other zip.

    Raises:
        FormatError: The zip is refused.
    """
    return tuple(sorted(_held_in(source, file), key=lambda one: (one.captured_at_ms, one.folder)))


def _held_in(source: BinaryIO, file: str) -> Iterator[Held]:
    for folder, name, content in marks_of_zip(source, file, MARKS):
        try:
            yield _of_manifest(folder, content) if name == MANIFEST else _of_index(folder, content)
        except FormatError:
            yield Held(folder, is_readable=False)


def _of_manifest(folder: str, content: bytes) -> Held:
    value = parse_json(content, MANIFEST)
    info = value.get("info") if isinstance(value, dict) else None
    cluster, at_ms = (info.get("cluster"), info.get("captured_at_ms")) if isinstance(info, dict) else ("", 0)
    if not isinstance(cluster, str) or type(at_ms) is not int or not 0 < at_ms <= LAST_MS:
        return Held(folder, is_readable=False)
    return Held(folder, cluster, at_ms)


def _of_index(folder: str, content: bytes) -> Held:
    answers = read_answers({INDEX: content})
    cluster = cluster_of(answers, read_metadata_store(answers))
    return Held(folder, "" if cluster == UNNAMED else cluster, moment_of(answers))


def last_of(held: Sequence[Held], file: str) -> str:
    """Return the folder of the last of several.

    Raises:
        FormatError: They are of different clusters, or nobody knows which is the last.
    """
    clusters: dict[str, str] = {}
    for one in held:
        if one.cluster:
            clusters.setdefault(one.cluster, one.folder)
    what = f"The zip contains {len(held):,} snapshots or captures"
    if len(clusters) > 1:
        named = ", ".join(f"'{folder}' of {_shown(name)}" for name, folder in [*clusters.items()][:_SHOWN])
        raise FormatError(
            f"{what} of {len(clusters):,} clusters: {named}.", where=file, remedy="Zip those of one cluster."
        )
    if not held[-1].captured_at_ms:
        names = ", ".join(f"'{one.folder}'" for one in held[:_SHOWN])
        raise FormatError(
            f"{what}, and none says when it was captured: {names}.", where=file, remedy="Zip one of them."
        )
    return held[-1].folder


def note_of(held: Sequence[Held]) -> str:
    """Return the note on the last of several: that it is, and how to use all of them; empty for none."""
    known = [one.captured_at_ms for one in held if one.captured_at_ms]
    if not known:
        return ""
    unread = sum(not one.is_readable for one in held)
    left = f" ({count(unread, 'other')} cannot be read)" if unread else ""
    return (
        f"The last of the {count(len(held) - unread, 'capture')} in the zip was opened{left}: they are of"
        f" {moment(known[0])} to {moment(known[-1])}; `python -m planner history ingest` makes a history of the zip,"
        " whose moments the button History opens."
    )


def with_note(snapshot: Snapshot, held: Sequence[Held]) -> Snapshot:
    """Return the last of several with the note on it."""
    notes = fitting_notes((note_of(held), *snapshot.info.warnings))
    return replace(snapshot, info=replace(snapshot.info, warnings=notes))


def _shown(name: str) -> str:
    return "".join(sign if sign.isprintable() else "?" for sign in name[:_NAME])
