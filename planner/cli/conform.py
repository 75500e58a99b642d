"""`python -m planner conform`: compares the planner's decisions with recorded ones."""

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

_PASSED, _FAILED, _UNREADABLE = 0, 1, 2


def conform(files: Annotated[list[Path], Parameter(name="FILE")], /, *, release: str = "") -> int:
    """Compare the planner's decisions with recorded ones.

    Runs the planner on recorded vectors and compares the decisions. Prints a line for each step that differs: kind, id,
    step (counted from 0; - if the kind has none), place, expected, got. Exit status: 0 all equal, 1 some differ, 2 a
    file cannot be read.

    Args:
        files: Vectors, FILE.jsonl or FILE.jsonl.gz; one or more.
        release: Release of Pulsar whose rules and defaults apply, such as 4.0.8; by default the release of each vector,
            or the release that the planner follows elsewhere.
    """
    from planner.cluster.errors import VectorError, shown
    from planner.cluster.release_notes import release_notes
    from planner.cluster.releases import release as known
    from planner.cluster.settings import Settings
    from planner.conform.mismatches import mismatches
    from planner.conform.reader import read_vectors
    from planner.pulsar.release_rules import RELEASE_RULES

    if release:
        for note in release_notes(release, Settings({}, known(release)), RELEASE_RULES):
            sys.stderr.write(f"note: {shown(note)}\n")
    passed = failed = 0
    unreadable = False
    for path in files:
        try:
            for vector in read_vectors(path, release):
                lines = list(mismatches(vector))
                failed, passed = failed + bool(lines), passed + (not lines)
                sys.stdout.writelines(f"{line}\n" for line in lines)
        except VectorError as error:
            unreadable = True
            sys.stdout.flush()
            sys.stderr.write(f"error: {error}\n")
    sys.stdout.write(f"{passed} passed, {failed} failed\n")
    if unreadable:
        return _UNREADABLE
    return _FAILED if failed else _PASSED
