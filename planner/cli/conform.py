"""`python -m planner conform`: compares the planner's decisions with recorded ones."""

import argparse
import sys
from pathlib import Path

from planner.cluster.errors import VectorError
from planner.conform.mismatches import mismatches
from planner.conform.reader import read_vectors

_PASSED, _FAILED, _UNREADABLE = 0, 1, 2


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "conform",
        help="compare the planner's decisions with recorded ones",
        description=(
            "Decide recorded vectors with the planner and compare. Prints a line for each step that differs: kind, id,"
            " step (counted from 0; - when the kind has none), place, expected, got. Exit status: 0 all equal, 1 some"
            " differ, 2 a file cannot be read."
        ),
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="vectors: FILE.jsonl or FILE.jsonl.gz")


def run(args: argparse.Namespace) -> int:
    """Decide the vectors of all files and print how they compare.

    Returns:
        0 when every decision is equal, 1 when one differs, 2 when a file cannot be read.
    """
    passed = failed = 0
    unreadable = False
    for path in args.files:
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
