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
from planner.doors.pieces import (
    Assumed,
    Brokers,
    Configuration,
    Metrics,
    Namespaces,
    NotUsed,
    OwnedBundles,
    Piece,
    TopicNames,
)
from planner.doors.terminal import WIDTHS, command_of, said
from planner.doors.vocabulary import NAMED
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
_OF_JAVA: Final = r"[^\s=,(\[{]+ {2,}[A-Z]\w*[({]"
"""A row of a table of objects, as Java prints them."""
_OF_CSV: Final = r"\"?(?:\d{10}|\d{13}|\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[\d.Z]*)\"?[,;]|\"?(?:pulsar|jvm)_\w+\"?,"
"""A row of a table as Grafana or VictoriaMetrics exports it: its time, or its metric."""
_OF_LOG: Final = r"(?:\d{4}-\d\d-\d\d[T ])?\d\d:\d\d:\d\d[.,]\d{3}\S* \["
_OF_PROMTOOL: Final = r"[-+\d.eE]+ @\[\d"
_OF_MONITOR: Final = r"----- got message -----|Broker Data for |\|\|[A-Z ]"
_SAFE: Final = re.compile(r"\s*[\[\]{}\"#]")
"""How lines of JSON and comments begin, which are not cut in silence."""
_CELLS: Final = re.compile(r"[A-Za-z][\w.-]* {4}")
"""A row of a table of names and values."""
_WORDS: Final = re.compile(r"[A-Za-z].* ")
_ASKED_FOR: Final = {
    Brokers: re.compile(r"\blist\b|^(?:ls|get) |/admin/v2/brokers/|/loadbalance/brokers"),
    OwnedBundles: re.compile(r"(?<!-data)/namespaces?\b|brokers .*namespaces|ownedNamespaces"),
    TopicNames: re.compile(r"\blist|/persistent/|/non-persistent/|topics\b"),
}
"""What commands say that print these lists."""
_NEW: Final = re.compile(r"\s*[\[{]|\s*$")
"""How a line begins that goes on with no command."""
_BEGINS: Final = re.compile(
    rf"\s*(?:#|\{{[%{{]|//\s|"
    rf"(?:export\s+|-e\s+|- )?{NAMED}\s*[=:]|\"?{TOPIC.pattern}|"
    rf"[a-z_:]\w*(?:\{{| [-+0-9NI])|\{{__name__=|{BUNDLE.pattern}\s|{BROKER.pattern}$|"
    rf"{_OF_JAVA}|{_OF_CSV}|{_OF_MONITOR}|{_OF_LOG}|{_OF_PROMTOOL})|"
    r"\s+(?:- )?[\w.-]+:(?:\s|$)"
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

    @property
    def is_whole(self) -> bool:
        """Whether all of the text was read."""
        return self.used > 0 and not self.not_read and not self.stray

    def is_better_than(self, other: "Worth") -> bool:
        """Say whether more of the text was read, and nothing less is of use."""
        if self.used and not other.used:
            return True
        is_known = self.used > 0 or self.not_read <= 1 < other.not_read
        mine, theirs = ((one.not_read, -one.used, one.stray) for one in (self, other))
        return is_known and self.used >= other.used and mine < theirs


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
            case Brokers() | OwnedBundles() | TopicNames() if _is_stray(one):
                stray += 1
            case Assumed():
                pass
            case _:
                used += 1
    return Worth(not_read, used, stray)


def _is_stray(one: Brokers | OwnedBundles | TopicNames) -> bool:
    """Say whether a list stands below a command that asks for something else, as the rest of its own line does."""
    return one.source.command != "" and _ASKED_FOR[type(one)].search(one.source.command) is None


def _is_odd(name: str, value: str) -> bool:
    """Say whether a value is of two words or lines, or less than the name of a class."""
    classes = OFFICIAL_CLASSES.get(name, ())
    return (
        "\n" in value
        or _TWO_WORDS.search(value) is not None
        or (value not in classes and any(c.startswith(value) or value.startswith(c) for c in classes))
    )


def readings_of(text: str) -> Iterator[list[tuple[str, int]]]:
    """Yield the texts that may have been broken into this one, and the widths: by a terminal, then by a mail program.

    The likeliest comes first. Those of the second list count only if none of the first does.
    """
    lines = text.split("\n")
    widths = widths_of(lines)
    commands = [command_of(line) is not None for line in lines]
    empty = [not line.strip() or of_command for line, of_command in zip(lines, commands, strict=True)]
    noise = [not stop and not said(line) for line, stop in zip(lines, empty, strict=True)]
    begins = [
        stop or begins_a_line(line) or (of_tool and _WORDS.search(line) is not None)
        for line, stop, of_tool in zip(lines, empty, noise, strict=True)
    ]
    if all(begins):  # as in a scrape, whose lines are alike because topics are called alike
        return
    whole = [
        (of_tool or of_command) and _NEW.match(following) is not None
        for of_tool, of_command, following in zip(noise, commands, [*lines[1:], ""], strict=True)
    ]
    ends = [*empty[2:], True, True][: len(lines)]  # the next line is the last one before a command or an empty line
    tried: list[tuple[str, int]] = []
    for width in widths:
        full = [len(line) == width and not one for line, one in zip(lines, whole, strict=True)]
        without = [one and not of_command for one, of_command in zip(full, commands, strict=True)]
        answered = [one and not (c and end) for one, c, end in zip(full, commands, ends, strict=True)]
        for kept in (without, answered, full):
            tried += [(_by_width(lines, kept, stops), width) for stops in (begins, empty)]
    yield [(found, width) for found, width in dict(tried).items() if found != text]
    widest = max((len(line) for line in lines if " " in line.strip()), default=0)  # words that fitted
    words = {_by_word(lines, begins, width): width for width in (*_OF_MAIL, *widths) if width >= widest}
    yield [(found, width) for found, width in words.items() if found != text]


def cut_at(text: str) -> int:
    """Return the width at which a terminal may have cut lines instead of breaking them; 0 where nothing looks so.

    Of JSON that is cut nothing can be read.
    """
    lines = text.split("\n")
    longest = max(map(len, lines))
    ends = [line for line in lines if len(line) == longest and not _SAFE.match(line)]
    return longest if longest in WIDTHS and len(ends) > _FEW else 0


def _by_width(lines: list[str], full: list[bool], stops: list[bool]) -> str:
    """Join each line that is as wide as the terminal with the next one, unless that one stops it."""
    parts: list[str] = []
    start, is_open = 0, False
    for at, (line, following) in enumerate(zip(lines, [*lines[1:], ""], strict=True)):
        parts.append(line)
        is_open = is_open != (line.count('"') % 2 == 1)
        stops_here = stops[at + 1 : at + 2] == [True] and not (is_open and following.strip())
        if at + 1 < len(lines) and (stops_here or not full[at] or _is_next_row(lines[start], following)):
            parts.append("\n")
            start, is_open = at + 1, False
    return "".join(parts)


def _is_next_row(row: str, following: str) -> bool:
    """Say whether a row of a table has its value already, so that one with a name and a value is the next row."""
    return _CELLS.match(following) is not None and _CELLS.match(row) is not None


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
