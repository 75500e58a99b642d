"""What commands that make a plan share: one form on standard output, files beside it."""

from pathlib import Path

from cyclopts import ArgumentCollection, Group


def _not_both(forms: ArgumentCollection) -> None:
    if len(forms.filter_by(value_set=True)) > 1:
        raise ValueError("Give one of them.")


SHOWN = Group("What is printed", validator=_not_both, sort_key=1)
"""Options that choose what is printed; one of them at most."""


def write_file(path: Path, content: str | bytes) -> None:
    """Write a file that a person asked for, whole or not at all.

    Raises:
        FormatError: It cannot be written there.
    """
    from planner.cluster.errors import FormatError
    from planner.cluster.files import write_whole, writing

    with writing(path, FormatError, "Choose another place."):
        write_whole(path, content)
