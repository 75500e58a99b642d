"""`python -m planner conform`: compares the planner's decisions with recorded ones."""

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

_PASSED, _FAILED, _UNREADABLE = 0, 1, 2


def conform(files: Annotated[list[Path], Parameter(name="FILE")], /) -> int:
    """Compare the planner's decisions with recorded ones.

    Decides recorded vectors with the planner and compares. Prints a line for each step that differs: kind, id, step
    (counted from 0; - when the kind has none), place, expected, got. Exit status: 0 all equal, 1 some differ, 2 a file
    cannot be read.

    Args:
        files: Vectors, FILE.jsonl or FILE.jsonl.gz; one or more.
    """
    from planner.cluster.errors import VectorError
    from planner.conform.mismatches import mismatches
    from planner.conform.reader import read_vectors

    passed = failed = 0
    unreadable = False
    for path in files:
        try:
            for vector in read_vectors(path):
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
