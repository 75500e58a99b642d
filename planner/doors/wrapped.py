"""Joins lines again that a terminal or a mail program broke at its width.

A broken line is exactly as long as the terminal is wide, or its next word did not fit. Lines that are as long by chance
look alike, so `planner.doors.read` tries what is proposed here only on a text that cannot be read well as it is.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from planner.cluster.units import MIB
from planner.doors.pieces import Assumed, Configuration, Metrics, Namespaces, NotUsed, Piece
from planner.doors.terminal import WIDTHS, command_of
from planner.doors.vocabulary import KNOWN, PREFIX
from planner.doors.words import BROKER, BUNDLE, TOPIC
from planner.pulsar.manager.class_names import OFFICIAL_CLASSES

BROKEN_BYTES: Final = MIB
"""More than a person copies from a terminal. Each reading of a longer text would take long."""

_NARROWEST: Final = 40
_WIDEST: Final = 400
_OF_MAIL: Final = (72, 76, 78, 80)
"""Widths at which mail programs break lines."""
_FEW: Final = 2
_TWO_WORDS: Final = re.compile(r"[^\s,;] +[^\s,;]")
"""As no value of a setting of the load balancer has."""
_NOT_A_WORD: Final = ("", "=", "{", "[")
_NEW: Final = re.compile(r"\s*[\[{]|\s*$")
"""How a line begins that goes on with no command."""
_BEGINS: Final = re.compile(
    rf"\s*(?:#|\{{[%{{]|//\s|"
    rf"(?:export\s+|-e\s+|- )?(?:{PREFIX})?(?:{'|'.join(sorted(KNOWN))})\s*[=:]|\"?{TOPIC.pattern}|"
    rf"[a-z_:]\w*(?:\{{| [-+0-9NI])|\{{__name__=|{BUNDLE.pattern}\s|{BROKER.pattern}$)|\s+(?:- )?[\w.-]+:(?:\s|$)"
)
"""How a line begins that goes on with none before it."""


def begins_a_line(line: str) -> bool:
    """Say whether a line begins as only one does that goes on with none before it."""
    return _BEGINS.match(line) is not None


def widths_of(lines: list[str]) -> list[int]:
    """Return the widths at which lines may be broken: that of the longest, and the most frequent one."""
    lengths = Counter(len(line) for line in lines if _NARROWEST <= len(line) <= _WIDEST)
    longest = max(map(len, lines), default=0)
    often = [width for width, times in lengths.most_common(1) if times > _FEW]
    return list(dict.fromkeys([*([longest] if longest in lengths else []), *often]))


def may_be_broken(text: str) -> bool:
    """Say whether the longest lines are as wide as a terminal, or several are of the same width as it may be."""
    lengths = Counter(map(len, text.split("\n")))
    longest = max(lengths)
    return longest in WIDTHS or (_NARROWEST <= longest <= _WIDEST and lengths[longest] >= _FEW)


@dataclass(frozen=True, slots=True)
class Worth:
    """How well a text was read.

    Attributes:
        not_read: Letters of lines, values and answers that are of no use.
        used: Values and answers that are of use.
        stray: Pieces that lines may make which are part of another.
    """

    not_read: int
    used: int
    stray: int

    def is_better_than(self, other: "Worth") -> bool:
        """Say whether more of the text was read, and nothing less is of use."""
        return 0 < self.used >= other.used and (self.not_read, -self.used, self.stray) < (
            other.not_read,
            -other.used,
            other.stray,
        )


def worth_of(pieces: Iterable[Piece]) -> Worth:
    """Return how well the pieces of a text were read."""
    not_read = used = stray = 0
    for one in pieces:
        match one:
            case NotUsed():
                not_read += 0 if one.is_expected else one.letters
                used += one.is_expected
            case Configuration():
                odd = sum(map(_is_odd, one.values, one.values.values()))
                used += len(one.values) - odd
                not_read += len(one.invalid) + len(one.read_false) + odd
                stray += not one.values
            case Metrics():
                rows = (*one.bundles.values(), *one.topics.values())
                used += len(one.plain) + sum(map(len, rows))
            case Namespaces() if " list" not in one.source.command:
                stray += 1
            case Assumed():
                pass
            case _:
                used += 1
    return Worth(not_read, used, stray)


def _is_odd(name: str, value: str) -> bool:
    """Say whether a value is of two words or lines, or less than the name of a class."""
    classes = OFFICIAL_CLASSES.get(name, ())
    return (
        "\n" in value
        or _TWO_WORDS.search(value) is not None
        or (value not in classes and any(c.startswith(value) for c in classes))
    )


def readings_of(text: str) -> Iterator[list[tuple[str, int]]]:
    """Yield the texts that may have been broken into this one, and the widths: by a terminal, then by a mail program.

    The likeliest comes first. Those of the second list count only if none of the first does.
    """
    lines = text.split("\n")
    widths = widths_of(lines)
    commands = [command_of(line) is not None for line in lines]
    empty = [not line.strip() or of_command for line, of_command in zip(lines, commands, strict=True)]
    begins = [stop or begins_a_line(line) for line, stop in zip(lines, empty, strict=True)]
    if all(begins):  # as in a scrape, whose lines are alike because topics are called alike
        return
    tried: list[tuple[str, int]] = []
    for width in widths:
        full = [len(line) == width for line in lines]
        kept = [one and not of_command for one, of_command in zip(full, commands, strict=True)]
        tried += [(_by_width(lines, kept, stops), width) for stops in (begins, empty)]
        if any(kept):
            follows = zip(full, commands, [*lines[1:], ""], strict=True)
            going_on = [one and not (c and _NEW.match(following)) for one, c, following in follows]
            tried += [(_by_width(lines, going_on, stops), width) for stops in (begins, empty)]
    yield [(found, width) for found, width in dict(tried).items() if found != text]
    widest = max((len(line) for line in lines if " " in line.strip()), default=0)  # words that fitted
    words = {_by_word(lines, begins, width): width for width in (*_OF_MAIL, *widths) if width >= widest}
    yield [(found, width) for found, width in words.items() if found != text]


def _by_width(lines: list[str], full: list[bool], stops: list[bool]) -> str:
    """Join each line that is as wide as the terminal with the next one, unless that one stops it."""
    parts: list[str] = []
    for at, line in enumerate(lines):
        parts.append(line)
        if at + 1 < len(lines) and not (full[at] and not stops[at + 1]):
            parts.append("\n")
    return "".join(parts)


def _by_word(lines: list[str], stops: list[bool], width: int) -> str:
    """Join each line with the next one where its first word did not fit, or where a blank at the end says so."""
    parts: list[str] = []
    for at, line in enumerate(lines):
        parts.append(line)
        if at + 1 == len(lines):
            break
        following = lines[at + 1]
        word = following.partition(" ")[0]
        if stops[at + 1] or not line.strip() or word[:1] in _NOT_A_WORD:
            parts.append("\n")
        elif line.endswith(" "):
            continue
        else:
            parts.append(" " if len(line) + 1 + len(word) > width else "\n")
    return "".join(parts)
