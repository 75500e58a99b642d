"""Joins JSON that was printed over several lines, as most tools print it, where a line is expected for each."""

from collections.abc import Iterable, Iterator
from typing import Final

from planner.cluster.units import MIB
from planner.history.records import RowSetAside

_OPENS: Final = b"{"
_CLOSES: Final = b"}"
_NEXT: Final = b'{"'
"""How another row begins, which no part of a printed object does at the start of a line."""
_LONGEST: Final = 32 * MIB
_LONGEST_OPENING: Final = 200
"""Blanks before a bracket that stands alone."""


def is_printed(head: bytes) -> bool:
    """Say whether a file begins with an object over several lines."""
    return head.lstrip().partition(b"\n")[0].rstrip() == _OPENS and b"\n" in head.lstrip()


def one_a_line(lines: Iterable[bytes | RowSetAside]) -> Iterator[bytes | RowSetAside]:
    """Yield lines, each object that is over several lines as one, and blank ones for the others, so that they count.

    It begins with a bracket alone on its line and ends with one that is indented alike. Where its end is missing, what
    is there comes as one line, too.
    """
    parts: list[bytes] = []
    indent, size = b"", 0
    for line in lines:
        if not parts and (isinstance(line, RowSetAside) or len(line) > _LONGEST_OPENING):  # as nearly all lines are
            yield line
            continue
        plain = b"" if isinstance(line, RowSetAside) else line.rstrip()
        if not parts:
            if plain.lstrip() != _OPENS:
                yield line
                continue
            parts, indent, size = [plain], plain[: -len(_OPENS)], 0
            continue
        if isinstance(line, RowSetAside) or plain.startswith(_NEXT) or size > _LONGEST:
            yield from _joined(parts)
            parts = []
            yield line
            continue
        parts.append(plain)
        size += len(plain)
        if plain == indent + _CLOSES:
            yield from _joined(parts)
            parts = []
    yield from _joined(parts)


def _joined(parts: list[bytes]) -> Iterator[bytes]:
    if parts:
        yield b" ".join(parts)
        yield from [b""] * (len(parts) - 1)
