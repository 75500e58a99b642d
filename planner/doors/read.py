"""Reads whatever an operator has: files, zips of them, pasted text."""

import io
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import BinaryIO, Final

from planner.cluster.errors import FormatError, PlannerError
from planner.cluster.files import reading
from planner.cluster.host_names import web_address
from planner.cluster.snapshot import Snapshot
from planner.cluster.text import count, moment
from planner.cluster.units import DAY_MS, MIB
from planner.doors.behind import named_by_labels
from planner.doors.beside import mixed
from planner.doors.chunks import chunks_of
from planner.doors.found import found_in
from planner.doors.images import release_of_images, without_release
from planner.doors.kinds import manifests
from planner.doors.mended import MENDED_BYTES, mended
from planner.doors.metrics_reader import lacking_of
from planner.doors.missing import missing_of
from planner.doors.pieces import (
    Assumed,
    BrokerTopics,
    Configuration,
    Metrics,
    NotUsed,
    OwnedBundles,
    Piece,
    Source,
    TopicStatsOf,
    WholeSnapshot,
)
from planner.doors.reading import Missing, Reading
from planner.doors.recognise import kind_of, pieces_of
from planner.doors.settings import against_runtime, among_files, applied, spelling
from planner.doors.stamps import without_stamps
from planner.doors.terminal import may_have_commands
from planner.doors.together import Together, capture_of, moment_of, together
from planner.doors.unpack import unpacked
from planner.doors.vocabulary import is_before_and_after
from planner.doors.wrapped import BROKEN_BYTES, cut_at, readings_of, worth_of
from planner.explain.health import within
from planner.formats.archive import members_of_zip
from planner.formats.folder import MAX_UNPACKED_BYTES
from planner.formats.raw_capture.policies import domain_notes
from planner.formats.raw_capture.snapshot import snapshot_of_capture
from planner.formats.reading import is_own, note_on, raw_capture_in, read_snapshot, read_upload
from planner.formats.tar import is_tar, members_of_tar
from planner.formats.validate import fitting_notes
from planner.history.assumed import listed
from planner.history.labels import BrokerRule

STANDARD_INPUT: Final = Path("-")
"""Stands for standard input among the files."""

PASTED: Final = "pasted text"
"""Name of what was pasted."""

_ZIP: Final = (b"PK\x03\x04", b"PK\x05\x06")
_MOST_FILES: Final = 10_000
_LOOKED_AT: Final = 4_096
_DEEPEST: Final = 4
_STAMPED_BYTES: Final = 64 * MIB
"""Largest text whose lines are tried without what a logger writes before them."""
_ENOUGH: Final = "A snapshot needs bundles and their owners, as in load reports of brokers that own some."


@dataclass(frozen=True, slots=True)
class Given:
    """A file to read.

    Attributes:
        name: What the person calls it; it decides only where the content leaves two readings.
        data: Its content, seekable.
    """

    name: str
    data: BinaryIO


def read_outputs(
    *files: str | Path,
    cluster: str = "",
    release: str = "",
    broker_names: Sequence[str] = (),
    now_ms: int = 0,
    progress: Callable[[str], None] = lambda _: None,
) -> Reading:
    """Read files and folders of outputs.

    Args:
        files: Paths; of a folder every file in it is read.
        cluster: Name of the cluster, where the files do not say it.
        release: The release that its brokers run, where the files do not say it.
        broker_names: Names of brokers with labels of series in braces, such as `{hostname}:8080`; the first whose
            labels a series has counts.
        now_ms: Moment of the outputs, ms since 1970, where they do not say it; the newest time of the files by default.
        progress: Called with the name of each file before it is read.

    Raises:
        FormatError: There is no such file, or nothing in it can be read.
        SnapshotError: The files contradict each other so that they are not one cluster.
    """
    return read_with_outputs(
        (), *files, cluster=cluster, release=release, broker_names=broker_names, now_ms=now_ms, progress=progress
    )


def read_with_outputs(
    first: Iterable[Given],
    *files: str | Path,
    cluster: str = "",
    release: str = "",
    broker_names: Sequence[str] = (),
    now_ms: int = 0,
    progress: Callable[[str], None] = lambda _: None,
) -> Reading:
    """Read what is opened already, then files and folders of outputs; see `read_outputs`."""
    paths = [path for given in files for path in _paths(Path(given))]
    if len(paths) > _MOST_FILES:
        raise FormatError(f"There are more than {_MOST_FILES:,} files.", remedy="Use fewer files.")
    changed_ms = max((int(path.stat().st_mtime * 1_000) for path in paths if path != STANDARD_INPUT), default=0)
    every = chain(first, _opened(paths))
    now_ms = now_ms or changed_ms
    return read_given(
        every, cluster=cluster, release=release, broker_names=broker_names, now_ms=now_ms, progress=progress
    )


def _paths(path: Path) -> Iterator[Path]:
    if path == STANDARD_INPUT:
        yield path
        return
    with reading(path, FormatError, "Check the permissions of the file."):
        if path.is_dir() and not is_own(path):
            yield from sorted(one for one in path.rglob("*") if one.is_file() and not one.name.startswith("."))
            return
        if path.exists():
            yield path
            return
    raise FormatError("There is no such file or folder.", where=str(path), remedy="Check the name.")


def _opened(paths: Sequence[Path]) -> Iterator[Given | WholeSnapshot]:
    for path in paths:
        if path == STANDARD_INPUT:
            yield Given(PASTED, io.BytesIO(sys.stdin.buffer.read(MAX_UNPACKED_BYTES + 1)))
            continue
        if path.is_dir():
            capture = raw_capture_in(path, path.name)
            yield WholeSnapshot(source=Source(path.name), snapshot=read_snapshot(path), capture=capture)
            continue
        with reading(path, FormatError, "Check the permissions of the file."), path.open("rb") as data:
            yield Given(path.name, data)


def read_given(
    files: Iterable[Given | WholeSnapshot],
    *,
    cluster: str = "",
    release: str = "",
    broker_names: Sequence[str] = (),
    now_ms: int = 0,
    progress: Callable[[str], None] = lambda _: None,
) -> Reading:
    """Read opened files; see `read_outputs`. Each is read when the one before it is done.

    Raises:
        FormatError: One has more than any file may have, or a name of brokers has no label.
        SnapshotError: They are not one cluster.
    """
    rules = [BrokerRule(one) for one in broker_names]
    pieces: list[Piece] = []
    for given in files:
        if isinstance(given, WholeSnapshot):
            pieces.append(given)
            continue
        progress(given.name)
        pieces += _pieces_of_file(given)
    return _reading(named_by_labels(pieces, rules), cluster, release, now_ms)


def _pieces_of_file(given: Given, depth: int = 0) -> Iterator[Piece]:
    source = Source(given.name)
    try:
        yield from _of_file(given, depth)
    except FormatError as error:
        yield NotUsed(source=source, why=f"{error.what.rstrip('.')}. {error.remedy}".rstrip("."))
    except MemoryError:
        yield NotUsed(source=source, why="there is not enough memory to read it")


def _of_file(given: Given, depth: int) -> Iterator[Piece]:
    size = given.data.seek(0, io.SEEK_END)
    if size > MAX_UNPACKED_BYTES:
        raise FormatError(f"It has more than {MAX_UNPACKED_BYTES >> 20} MiB.", where=given.name, remedy="Split it.")
    given.data.seek(0)
    magic = given.data.read(4)
    given.data.seek(0)
    if magic in _ZIP:
        yield from _of_zip(given, depth)
        return
    data = unpacked(given.data.read(), given.name)
    if is_tar(data):
        yield from _inside(given.name, members_of_tar(data, given.name), depth)
    elif not data.strip():
        yield NotUsed(source=Source(given.name), why="the file is empty", is_expected=True)
    elif is_own(data, given.name):
        yield WholeSnapshot(source=Source(given.name), snapshot=_whole(replace(given, data=io.BytesIO(data))))
    elif len(data) <= BROKEN_BYTES:
        yield from _best_of(data, given.name)
    else:
        yield from _of_text(data, given.name)


def _of_text(data: bytes, name: str) -> Iterator[Piece]:
    """Yield the pieces of a text, if nothing of it is known without what stands before each line."""
    waiting: list[Piece] = []
    is_known = False
    for piece in _as_it_is(data, name):
        is_known = is_known or not isinstance(piece, NotUsed) or piece.is_expected
        if is_known:
            yield from waiting
            waiting = []
            yield piece
        else:
            waiting.append(piece)
    if not is_known and len(data) <= _STAMPED_BYTES:
        for stamped in without_stamps(data):
            with suppress(FormatError):  # of too many parts
                pieces = list(_as_it_is(stamped, name))
                if worth_of(pieces).used:
                    yield from pieces
                    return
    yield from waiting


def _as_it_is(data: bytes, name: str) -> Iterator[Piece]:
    found = False
    for chunk in chunks_of(data, name):
        for piece in pieces_of(chunk):
            found = True
            yield piece
    if not found:
        what = "commands without their answers" if may_have_commands(data) else "log lines, prompts and headings alone"
        yield NotUsed(source=Source(name), why=f"it holds {what}")


def _best_of(data: bytes, name: str) -> list[Piece]:
    """Return the pieces of a text; lines that were broken are joined again where it can be read better so."""
    best = list(_of_text(data, name))
    text = data.decode("utf-8", "replace")
    as_it_is = worth = worth_of(best)
    width = 0
    for readings in readings_of(text) if not (as_it_is.is_whole and _has_grammar(data, name)) else ():
        for joined, at in readings if not width else ():
            pieces = list(_of_text(joined.encode(), name))
            found = worth_of(pieces)
            if found.is_better_than(worth):
                best, worth, width = pieces, found, at
    without, what = mended(text) if as_it_is.not_read and len(data) <= MENDED_BYTES else ("", "")
    if what:
        pieces = list(_of_text(without.encode(), name))
        if worth_of(pieces).is_better_than(worth):
            return [
                *pieces,
                Assumed(source=Source(name), text=f"{name}: it is read without what people added or left out: {what}."),
            ]
    if width:
        said = f"{name}: its lines were broken at {width} columns, and are joined again."
        best.append(Assumed(source=Source(name), text=said))
    elif cut := cut_at(text):
        said = f"{name}: its longest lines end at column {cut}. If a terminal cut them, save the output to a file."
        best.append(Assumed(source=Source(name), text=said))
    return best


def _has_grammar(data: bytes, name: str) -> bool:
    """Say whether a text is JSON or YAML alone, which cannot be read as a whole if its lines were broken."""
    return all(chunk.is_json or kind_of(chunk) is manifests.KIND for chunk in chunks_of(data, name))


def _of_zip(given: Given, depth: int) -> Iterator[Piece]:
    if is_own(given.data, given.name):
        capture = raw_capture_in(given.data, given.name)
        whole = _whole(given)
        yield WholeSnapshot(source=Source(given.name), snapshot=whole, capture=capture)
        if note := note_on(given.data, given.name):
            yield NotUsed(source=Source(given.name), why=within(note).rstrip("."))
        return
    given.data.seek(0)
    if b"[Content_Types].xml" in given.data.read(_LOOKED_AT):
        what = "It is a document of Office, not text."
        raise FormatError(what, where=given.name, remedy="Save it as plain text or CSV.")
    yield from _inside(given.name, members_of_zip(given.data, given.name), depth)


def _inside(archive: str, members: Iterable[tuple[str, bytes]], depth: int) -> Iterator[Piece]:
    if depth == _DEEPEST:
        what = f"There are more than {_DEEPEST} archives inside each other."
        raise FormatError(what, where=archive, remedy="Unpack the outer ones.")
    for name, content in members:
        yield from _pieces_of_file(Given(f"{archive}: {name}", io.BytesIO(content)), depth + 1)


def _whole(given: Given) -> Snapshot:
    try:
        return read_upload(given.name, given.data, max_bytes=MAX_UNPACKED_BYTES)
    except PlannerError as error:
        raise FormatError(error.what, where=error.where, remedy=error.remedy) from error


def _reading(pieces: Sequence[Piece], cluster: str, release: str, now_ms: int) -> Reading:
    files = tuple(one for one in pieces if isinstance(one, Configuration) and one.form == "file")
    answered = tuple(one for one in pieces if isinstance(one, Configuration) and one.form != "file")
    left = [one for one in pieces if isinstance(one, NotUsed)]
    not_used = tuple(_left_out(left))
    expected = tuple(_left_out([one for one in left if one.is_expected]))
    not_used = (*not_used, *spelling([one for one in pieces if isinstance(one, Configuration)]))
    wholes = [one for one in pieces if isinstance(one, WholeSnapshot)]
    if wholes:
        return replace(_of_whole(wholes, pieces, files, not_used, now_ms), expected=expected)
    made = together(pieces, cluster, release)
    found = found_in(made.pieces)
    assumed = [*(one.text for one in pieces if isinstance(one, Assumed)), *made.who.assumed]
    if not (made.told or made.running) and (several := without_release(made.files)):
        assumed.append(f"{several} Add the answer to brokers version, or use --release.")
    assumed += [
        f"{one.source}: it does not say which broker or namespace it is about. Put the command above it, or name the "
        "file after it. A loop must print the name before each answer."
        for one in made.who.unknown
        if not isinstance(one, Configuration) and (one.bundles if isinstance(one, OwnedBundles) else True)
    ]
    said = tuple(made.said.texts)
    reading = Reading(None, found, (), tuple(assumed), said, not_used, files, expected=expected, running=answered)
    if not made.brokers or not (any(made.owned.values()) or made.placed.topics or (made.owned and made.known)):
        return replace(reading, missing=tuple(_needed(made)), not_enough=_not_enough(made))
    missing = tuple(missing_of(made))
    snapshot, assumptions = _built(made, reading, missing, now_ms)
    return replace(reading, missing=missing, snapshot=snapshot, assumed=assumptions)


def _left_out(pieces: Sequence[NotUsed]) -> Iterator[str]:
    """Yield what was not read; what is the same of many parts of a file is said once."""
    alike: dict[tuple[str, str], list[NotUsed]] = {}
    for one in pieces:
        alike.setdefault((one.source.file, one.why), []).append(one)
    for (_, why), found in alike.items():
        yield f"{found[0].source}: {why}{f' ({len(found):,} times)' if len(found) > 1 else ''}."


def _built(
    made: Together, reading: Reading, missing: Sequence[Missing], now_ms: int
) -> tuple[Snapshot, tuple[str, ...]]:
    """Return the snapshot, and what is assumed with it."""
    at_ms, assumed = moment_of(made), list(reading.assumed)
    if not at_ms:
        at_ms = now_ms
        assumed.append(f"The files do not say when they were written; {moment(at_ms)} is assumed.")
    elif 0 < now_ms < at_ms - DAY_MS:
        assumed.append(
            f"The outputs say that they are of {moment(at_ms)}, but the files are of {moment(now_ms)}. A clock may be"
            " wrong."
        )
    assumed += _placed_notes(made)
    snapshot = snapshot_of_capture(capture_of(made, at_ms), source=f"Outputs: {reading.text}")
    assumed += among_files(reading.configurations)
    notes = [*(one.note for one in missing), *assumed, *reading.contradictions, *reading.not_used]
    notes += against_runtime(made.file, reading.configurations, made.runtime.values())
    info = replace(snapshot.info, warnings=fitting_notes([*notes, *snapshot.info.warnings]))
    return replace(snapshot, info=info), tuple(dict.fromkeys(assumed))


def _placed_notes(made: Together) -> Iterator[str]:
    of_images, where = release_of_images(made.files)
    if of_images and not (made.told or made.running):
        yield f"{where} has images of Pulsar {of_images}; the brokers are assumed to run it."
    for one in made.reports.values():
        if one.is_simple:
            yield (
                f"{one.broker} runs SimpleLoadManagerImpl. Its cluster is decided as with the modular load manager,"
                " whose strategies differ."
            )
    if made.unowned:
        yield (
            f"The files name no owner of {count(len(made.unowned), 'bundle')}, shown as unowned: "
            f"{listed(made.unowned)}."
        )
    if made.placed.nameless:
        yield f"{count(made.placed.nameless, 'topic')} left out, whose names the release does not accept."
    if made.placed.of_no_bundle:
        yield f"{count(made.placed.of_no_bundle, 'topic')} with the hash 0xffffffff, for which Pulsar finds no bundle."
    lacking = [(one.source, one.lacking) for kind in (BrokerTopics, TopicStatsOf) for one in made.of(kind)]
    lacking += [(one.source, lacking_of(one)) for one in made.metrics.values()]
    for source, found in lacking:
        if any(found.values()):
            shown = ", ".join(f"{name} ({number:,})" for name, number in found.items() if number)
            yield f"{source}: some topics or bundles lack {shown}; 0 is shown there."
    times = [one.at_ms for one in made.of(Metrics) if one.at_ms]
    if times and max(times) - min(times) > _LONGEST_MS:
        yield f"The metrics are {(max(times) - min(times)) / 60e3:,.0f} min apart, so rates and owners may not match."


_LONGEST_MS: Final = 15 * 60 * 1_000


def _of_whole(
    wholes: Sequence[WholeSnapshot],
    pieces: Sequence[Piece],
    files: tuple[Configuration, ...],
    not_used: tuple[str, ...],
    now_ms: int,
) -> Reading:
    """Return a snapshot of the planner's own, with the outputs beside it that count."""
    said = [f"There are {len(wholes)} snapshots; the last one counts."] if len(wholes) > 1 else []
    beside = mixed(
        wholes[-1], [one for one in pieces if not isinstance(one, WholeSnapshot | NotUsed | Assumed)], now_ms
    )
    said += [one.text for one in pieces if isinstance(one, Assumed)]
    known = {*beside.said, *beside.snapshot.info.warnings}
    domains = [note for note in domain_notes(beside.snapshot.policies.failure_domains) if note not in known]
    said += [*beside.said, *domains]
    not_used = (*not_used, *beside.left)
    snapshot, more = applied(beside.snapshot, files[:1] if is_before_and_after(files) else files)
    more = [*beside.said, *domains, *beside.left, *more, *among_files(files)]
    if more:
        info = replace(snapshot.info, warnings=fitting_notes([*snapshot.info.warnings, *more]))
        snapshot = replace(snapshot, info=info)
    found = found_in([wholes[-1], *beside.taken, *files])
    return Reading(snapshot, found, contradictions=tuple(said), not_used=not_used, configurations=files)


def _not_enough(made: Together) -> str:
    if not made.brokers and not any(one.is_of_brokers for one in made.of(Configuration)):
        return f"Nothing in the files says what brokers there are. {_ENOUGH}"
    if not made.brokers:
        return "The files hold settings alone."
    return f"The files name {count(len(made.brokers), 'broker')} and no bundle. {_ENOUGH}"


def _needed(made: Together) -> Iterator[Missing]:
    broker = next(iter(made.brokers), "BROKER:8080")
    yield Missing(
        "load",
        "the brokers, their bundles and their load",
        "Nothing can be assumed.",
        "There is no cluster to decide about.",
        f"curl -s {web_address(broker)}/admin/v2/broker-stats/load-report",
    )
