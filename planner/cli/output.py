"""What commands that make a plan share: one form on standard output, files beside it."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from cyclopts import ArgumentCollection, Group

if TYPE_CHECKING:
    from planner.cluster.snapshot import Snapshot
    from planner.simulate.scenario import Scenario


def _not_both(forms: ArgumentCollection) -> None:
    if len(forms.filter_by(value_set=True)) > 1:
        raise ValueError("Use only one of them.")


SHOWN = Group("What is printed", validator=_not_both, sort_key=1)
"""Options that choose the output; at most one."""


def write_file(path: Path, content: str | bytes) -> None:
    """Write a file that a person asked for, whole or not at all.

    Raises:
        FormatError: It cannot be written there.
    """
    from planner.cluster.errors import FormatError
    from planner.cluster.files import write_whole, writing

    with writing(path, FormatError, "Choose another place."):
        write_whole(path, content)


class _LookedAt(Exception):  # noqa: N818 - nothing went wrong
    """Leaves a file as it is."""


def check_writable(path: Path) -> None:
    """Refuse a file that could not be written, before long work is done for it. It stays as it is.

    Raises:
        FormatError: It cannot be written there.
    """
    import errno
    import os
    from contextlib import suppress

    from planner.cluster.errors import FormatError
    from planner.cluster.files import whole_file, writing

    with writing(path, FormatError, "Choose another place."):
        if path.is_dir():
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
        with suppress(_LookedAt), whole_file(path):
            raise _LookedAt


def write_snapshot(snapshot: "Snapshot", out: Path) -> None:
    """Write a snapshot: as a zip or a JSON document where the name ends so, else as a folder.

    Raises:
        FormatError: It cannot be written there.
    """
    from planner.cluster.errors import FormatError
    from planner.cluster.files import whole_file, writing
    from planner.formats.archive import write_zip
    from planner.formats.document import write_document
    from planner.formats.folder import write_folder

    with writing(out, FormatError, "Choose another place with --out."):
        if out.suffix not in (".zip", ".json"):
            write_folder(snapshot, out)
            return
        out.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(out) as target:
            if out.suffix == ".zip":
                write_zip(snapshot, target)
            else:
                target.write(write_document(snapshot).encode())


def say_where(history: Path) -> None:
    """Say on standard error whether the dashboard reads a folder of histories."""
    from planner.replay.jobs import where_shown

    sys.stderr.write(f"{where_shown(history)}\n")
    sys.stderr.flush()


def warn(*sentences: str) -> None:
    """Write warnings on standard error, a line each."""
    sys.stderr.writelines(f"warning: {sentence}\n" for sentence in sentences)


def opened(text: str) -> "tuple[str, Snapshot]":
    """Open a snapshot; say on standard error where it is one of several, or its settings are not those of its cluster.

    Raises:
        PlannerError: There is none, or it cannot be read (see `planner.workspace.opening.open_snapshot`).
    """
    from planner.explain.captured_settings import settings_warning
    from planner.formats.reading import note_on
    from planner.workspace.opening import open_snapshot

    name, snapshot = open_snapshot(text)
    path = Path(text)
    if path.is_file() and (note := note_on(path, path.name)):
        sys.stderr.write(f"note: {note}\n")
    if warning := settings_warning(snapshot.info):
        warn(warning)
    return name, snapshot


def warn_switched_off(snapshot: "Snapshot") -> None:
    """Say on standard error what of the load balancer is off."""
    from planner.explain.switched_off import switched_off

    for one in switched_off(snapshot):
        sys.stderr.write(f"{'warning' if one.stops_shedding else 'note'}: {one.text}\n")


def show_price(snapshot: "Snapshot", *scenarios: "Scenario") -> None:
    """Say on standard error how long simulations will take, where that is long."""
    from planner.simulate.price import price_of, price_text

    if text := price_text([price_of(snapshot, scenario) for scenario in scenarios]):
        sys.stderr.write(f"note: {text} on this machine. Press Ctrl+C to stop.\n")
