"""What a kind of output is: how it is recognised by its content, and how it is read into pieces."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from planner.doors.chunks import Chunk
from planner.doors.pieces import Piece

NO: Final = 0
MAYBE: Final = 1
LIKELY: Final = 2
SURE: Final = 3
"""How sure a kind is that a chunk is of it."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of output.

    Attributes:
        name: What people call it.
        command: What prints it.
        recognise: Says how sure it is that a chunk is of this kind, from `NO` to `SURE`; looks at the beginning alone.
        read: Yields the pieces of a chunk. Raises `FormatError` where the chunk is damaged.
        line: Matches a whole line of it, where each line stands for itself; a text may then have lines of several
            kinds, and `read` gets its own lines.
    """

    name: str
    command: str
    recognise: Callable[[Chunk], int]
    read: Callable[[Chunk], Iterator[Piece]]
    line: re.Pattern[str] | None = None


def no_chunk(_: Chunk) -> int:
    """Recognise nothing: for kinds of lines."""
    return NO
