"""What `terraform plan` prints: the settings of brokers before and after a change."""

import re
from collections.abc import Iterator
from typing import Final

from planner.doors.chunks import Chunk
from planner.doors.kind import NO, SURE, Kind
from planner.doors.kinds.terraform import before_and_after, pieces_of_text
from planner.doors.pieces import Piece

_PLANNED: Final = re.compile(
    r'(?m)^\s*(?:~|-/\+|\+/-|[-+]) resource "|^\s*# [\w-]+(?:\.[^\s.]+)+(?: \([^)\n]*\))? (?:will|must) be [a-z]'
)
_MARKED: Final = re.compile(r"(\s*)([-+~]|-/\+|\+/-) (?=\S)(.*)")
_CHANGE: Final = re.compile(r"(.*?=\s*|\s*)((?:\"(?:[^\"\\]|\\.)*\"|\S+)) -> (.*)")
_NOT_SHOWN: Final = re.compile(r"\((?:known after apply|sensitive value)\)")
_COMMENT: Final = re.compile(r"\s+# .*$")
_OPENS_TEXT: Final = re.compile(r"<<[-~]?\s*(\w+)\s*$")
_OPENS: Final = re.compile(r"[\[{(]\s*$")
_CLOSES: Final = re.compile(r"\s*[\]})]")
_SIGNS: Final = ("+", "-")


def _recognise(chunk: Chunk) -> int:
    return SURE if not chunk.is_json and _PLANNED.search(chunk.head) else NO


def _read(chunk: Chunk) -> Iterator[Piece]:
    before, after = sides_of(bytes(chunk.data).decode("utf-8", "replace"))
    yield from before_and_after(pieces_of_text(chunk, before), pieces_of_text(chunk, after))


def sides_of(text: str) -> tuple[str, str]:
    """Return the text as it would be before the plan, and after it.

    What is added has a plus sign, what is removed a minus sign; both values of what is changed stand beside an arrow.
    """
    sides = _Sides()
    for line in text.split("\n"):
        sides.take(line)
    return "\n".join(sides.before), "\n".join(sides.after)


class _Sides:
    """The lines of both sides.

    Attributes:
        before: As it is.
        after: As it would be.
    """

    def __init__(self) -> None:
        self.before: list[str] = []
        self.after: list[str] = []
        self._both: tuple[list[str], ...] = (self.before, self.after)
        self._open: list[tuple[list[str], ...]] = []
        self._text = ""
        self._into: tuple[list[str], ...] = self._both

    def take(self, line: str) -> None:
        """Take a line."""
        ends = line.strip().rstrip(",") == self._text
        if self._text and self._into != self._both:  # the lines of a text that is added or removed have no signs
            self._add(line, self._into)
            self._text = "" if ends else self._text
            return
        found = _MARKED.fullmatch(line)
        sign = found[2] if found else ""
        into: tuple[list[str], ...] = (
            self._both if sign not in _SIGNS else (self.before,) if sign == "-" else (self.after,)
        )
        plain = f"{found[1]}  {found[3]}" if found else line
        if self._text:
            self._text = "" if ends else self._text
            self._add(plain, into)
            return
        plain = _NOT_SHOWN.sub("null", _COMMENT.sub("", plain))
        if (closed := _CLOSES.match(plain)) and self._open:  # what closes a block has no sign
            self._add(f"{closed[0]}{',' if plain.rstrip().endswith(',') else ''}", self._open.pop())
        elif changed := _CHANGE.fullmatch(plain):
            self._add(f"{changed[1]}{changed[2]}", (self.before,))
            if into != (self.before,):
                self._add(f"{changed[1]}{changed[3]}", (self.after,))
        else:
            self._add(plain, into)
            if opens := _OPENS_TEXT.search(plain):
                self._text, self._into = opens[1], into
            elif _OPENS.search(plain):
                self._open.append(into)

    @staticmethod
    def _add(line: str, into: tuple[list[str], ...]) -> None:
        for side in into:
            side.append(line)


KIND = Kind("plan of Terraform", "terraform plan -no-color", _recognise, _read)
