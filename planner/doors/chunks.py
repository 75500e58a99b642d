"""Cuts what a file holds into chunks: JSON texts, and the lines of text around them.

Tools print more than their answer: log lines, banners, the prompt with the command. A copied terminal has several
answers in a row. So each JSON text that begins on a line of its own is a chunk, and so are the lines up to the next one
or up to the next command.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import msgspec

from planner.cluster.errors import FormatError
from planner.cluster.units import MIB
from planner.doors.comments import without_comments
from planner.doors.pieces import Source
from planner.doors.terminal import GLUED, WIDTHS, command_of, may_have_commands, places_of_commands, said, sets_settings
from planner.doors.words import BROKER, NAMESPACE, broker_in, namespace_in
from planner.doors.wrapped import begins_a_line
from planner.formats.encoding import parse_json

HEAD_BYTES = 64_000
"""Bytes of a chunk that are looked at to recognise it."""

_NAMED = rb"(?:[\w.%=-]+/[\w.%=:-]+(?:/[\w.%=:-]+)?|[\w.-]+:\d{2,5}):?[ \t]+"
_OPENS = re.compile(rb"(?m)^[ \t]*(" + _NAMED + rb")?([\[{])")
_NEXT = re.compile(rb"[ \t]*()([\[{])")
_OF_YAML = re.compile(rb"(?:^|\n)[ \t]*(?:- )?[\"']?([A-Za-z][\w./-]*)[\"']?:[ \t]*([|>][-+0-9]*)?[ \t]*\n[ \t]+$")
"""A key of YAML whose value is in the next lines, up to the sign that opens it."""
_AT_BYTE = re.compile(r"\(byte (\d+)\)$")
_TRAILING = "trailing characters"
_JSON_FOLLOWS = re.compile(rb"\{\s*[\"}]|\[\s*(?:[\"{\[\]]|-?[0-9]+(?:\.[0-9]+)?\s*[,\]]|(?:true|false|null)\b)")
_MOST_VALUE_BYTES = 64 * MIB
_MOST_CHUNKS = 200_000
_LONGEST_LINE = 4_096
_LONGEST_PROMPT = 400
_SURELY_ANSWER_BYTES = 200
"""Length from which on an object stands for itself, in a log line as well."""


@dataclass
class Chunk:
    """A part of a file that is one JSON text, or lines of text.

    Attributes:
        source: Where it is.
        data: Its bytes, UTF-8.
        is_json: Whether it is a JSON text.
        before: The line above a JSON text, where one stands directly before it.
        about: Broker or namespace that what surrounds it names; empty where none is.
        at_ms: When it was answered, ms since 1970, where what surrounds it says so; 0 unknown.
    """

    source: Source
    data: memoryview
    is_json: bool
    before: str = ""
    about: str = ""
    at_ms: int = 0

    @cached_property
    def head(self) -> str:
        """The beginning, as text."""
        return bytes(self.data[:HEAD_BYTES]).decode("utf-8", "replace")

    @cached_property
    def outline(self) -> Any:
        """The outermost level of a JSON text: an object or a list of texts that are not read yet; None for others."""
        if not self.is_json:
            return None
        shape: Any = dict[str, msgspec.Raw] if self.head.lstrip()[:1] == "{" else list[msgspec.Raw]
        try:
            return msgspec.json.decode(self.data, type=shape)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return None

    @property
    def keys(self) -> dict[str, msgspec.Raw]:
        """The keys of an object with their texts; nothing for other chunks."""
        return self.outline if isinstance(self.outline, dict) else {}

    @property
    def broker(self) -> str:
        """The broker that what surrounds it names; empty where none is."""
        named = next((one for one in (self.about, self.source.command) if BROKER.fullmatch(one)), "")
        return named or broker_in(f"x {self.source.command}")

    @property
    def namespace(self) -> str:
        """The namespace that what surrounds it names; empty where none is."""
        return self.about if NAMESPACE.fullmatch(self.about) else namespace_in(self.source.command)

    @cached_property
    def value(self) -> Any:
        """The JSON value.

        Raises:
            FormatError: It is not valid, or too large for an answer of its kind.
        """
        if len(self.data) > _MOST_VALUE_BYTES:
            raise FormatError(
                f"The JSON text has more than {_MOST_VALUE_BYTES >> 20} MiB.",
                where=str(self.source),
                remedy="Use a smaller part of the cluster.",
            )
        return parse_json(bytes(self.data), str(self.source))

    @cached_property
    def lines(self) -> list[str]:
        """The lines of a text without logs and banners of tools, without blanks at the end."""
        return said(bytes(self.data).decode("utf-8", "replace"))

    @cached_property
    def first_lines(self) -> list[str]:
        """The same of the beginning alone."""
        return self.lines if len(self.data) <= HEAD_BYTES else said(self.head)


def chunks_of(data: bytes, file: str) -> Iterator[Chunk]:
    """Yield the chunks of a text in their order; a command that printed nothing is an empty one.

    Args:
        data: The text, UTF-8.
        file: What messages call it.

    Raises:
        FormatError: It has more chunks than any output.
    """
    view = memoryview(data)
    asked = _Asked("", 1)
    at, line, count = 0, 1, 0
    while at < len(view):
        above, start, end = _next_json(data, at) or (len(view), len(view), len(view))
        before, lone = "", True
        for part in _texts(view[at:above], line, asked):
            count += 1
            text = bytes(part.data[-_LONGEST_LINE:]).decode("utf-8", "replace")
            before = text.rstrip().rpartition("\n")[2] or before
            lone = lone and len(part.data) <= _LONGEST_LINE and len(said(text)) == 1
            yield replace(part, source=_source(file, int(part.source.position), part.source.command))
        if above < start:
            before, lone = data[above:start].decode("utf-8", "replace"), True
        line += data.count(b"\n", at, start)
        if start < end:
            count += 1
            asked.is_answered = True
            yield Chunk(
                _source(file, line, asked.command),
                view[start:end],
                is_json=True,
                before=before,
                about=_name(before) if lone else "",
            )
            line += data.count(b"\n", start, end)
        if count > _MOST_CHUNKS:
            raise FormatError(f"It has more than {_MOST_CHUNKS:,} parts.", where=file, remedy="Use fewer answers.")
        at = end
    if not asked.is_answered:
        yield Chunk(_source(file, asked.line, asked.command), memoryview(b""), is_json=False)


def _name(line: str) -> str:
    """Return the broker or namespace that is all of a line, as scripts print it before each answer."""
    word = line.strip().rstrip(":").strip()
    return word if BROKER.fullmatch(word) or NAMESPACE.fullmatch(word) else ""


@dataclass
class _Asked:
    """The last command, and whether something was printed since."""

    command: str
    line: int
    is_answered: bool = True


def _texts(text: memoryview, line: int, asked: _Asked) -> Iterator[Chunk]:
    """Yield the parts of a text; the position of each is the number of its first line alone."""
    given = bytes(text)
    plain = without_comments(given)
    if not plain.strip():
        return
    if len(plain) <= _LONGEST_LINE and not said(plain.decode("utf-8", "replace")):  # logs and prompts alone
        if not may_have_commands(plain):
            return
    elif not may_have_commands(plain):
        asked.is_answered = True
        yield Chunk(Source("", str(line), asked.command), text if plain is given else memoryview(plain), is_json=False)
        return
    for at, (first_line, lines, above) in enumerate(_parts(plain.decode("utf-8", "replace"), line, asked.command)):
        if at:
            if not asked.is_answered:
                yield Chunk(Source("", str(asked.line), asked.command), memoryview(b""), is_json=False)
            asked.command, asked.line, asked.is_answered = above, first_line, False
        if said("\n".join(lines)):
            asked.is_answered = True
            yield Chunk(Source("", str(first_line), above), memoryview("\n".join(lines).encode()), is_json=False)


def _source(file: str, line: int, command: str) -> Source:
    return Source(file, f"line {line}" if line > 1 else "", command)


def _next_json(data: bytes, at: int) -> tuple[int, int, int] | None:
    """Return where the next JSON text that begins a line starts and ends, after the place of a name before it.

    One that is truncated or damaged ends with the next command or the file, so that its reader can say what is wrong.
    None where there is none.
    """
    while (found := _NEXT.match(data, at) or _OPENS.search(data, at)) is not None:
        start = found.start(2)
        end = _end_of_json(data, start)
        if end and _is_in_yaml(data, start):
            at = end
        elif end:
            return start if found[1] is None else found.start(1), start, end
        else:
            at = start + 1
    return None


def _is_in_yaml(data: bytes, start: int) -> bool:
    """Say whether what opens here is a value of YAML, such as the annotation with what was last applied."""
    found = _OF_YAML.search(data, max(0, start - _LONGEST_LINE), start)
    return found is not None and (found[2] is not None or not NAMESPACE.fullmatch(found[1].decode()))


def _end_of_json(data: bytes, start: int) -> int:
    view = memoryview(data)[start:]
    try:
        msgspec.json.decode(view, type=msgspec.Raw)
    except msgspec.DecodeError as error:
        what = str(error)
        place = _AT_BYTE.search(what)
        if _TRAILING in what and place is not None:
            end = start + int(place[1]) - 1  # it counts the first sign that follows
            end = _rstripped(data, end)
            # What follows on the same line belongs to it only if it is another JSON text, as when one is pasted twice,
            # or a prompt; or if this one is surely an answer, which tools print without an end of line.
            rest = data[end : end + _LONGEST_PROMPT]
            is_answer = end - start >= _SURELY_ANSWER_BYTES and data[start : start + 1] == b"{"
            goes_on = is_answer or rest.lstrip(b" \t")[:1] in (b"", b"\n", b"{", b"[", b",", b"]")
            return end if goes_on or GLUED.match(rest) else 0
        return _next_command(data, start) if _JSON_FOLLOWS.match(data, start) is not None else 0
    except (UnicodeDecodeError, RecursionError):
        return len(data)
    return len(data)


def _next_command(data: bytes, start: int) -> int:
    """Return where the line of the next command begins; the end where there is none."""
    for place in places_of_commands(data, start):
        begin = data.rfind(b"\n", start, place) + 1
        line = data[begin : begin + _LONGEST_LINE].partition(b"\n")[0].decode("utf-8", "replace")
        if begin > start and command_of(line) is not None:
            return begin
    return len(data)


def _rstripped(data: bytes, end: int) -> int:
    """Return the end of a part of a text without the blanks before it."""
    while data[end - 1 : end].isspace():
        end -= 1
    return end


def _parts(text: str, line: int, command: str) -> Iterator[tuple[int, list[str], str]]:
    """Yield first line, lines and the command above of each part of a text; commands part them.

    A command that changes settings is the first line of its own part.
    """
    lines: list[str] = []
    first, width = line, 0
    for number, one in enumerate(text.split("\n"), line):
        if len(lines) == 1 and lines[0].endswith("\\") and sets_settings(lines[0]):
            lines[0] = f"{lines[0][:-1].rstrip()} {one.strip()}"
            continue
        if len(lines) == 1 and width in WIDTHS and sets_settings(lines[0]) and _goes_on(lines[0], one):
            lines[0], width = f"{lines[0]}{one}", len(one)
            continue
        found, width = command_of(one), len(one)
        if found is not None:
            yield first, lines, command
            is_said = sets_settings(found)
            lines, first, command = [found] if is_said else [], number if is_said else number + 1, found
        else:
            lines.append(one)
    yield first, lines, command


def _goes_on(command: str, following: str) -> bool:
    """Say whether a line is the rest of a command that is as wide as a terminal, and not one of its own."""
    if command_of(following) is not None or not said(following):
        return False
    return command.endswith(" ") or not begins_a_line(following)


def quoted(value: object) -> str:
    """Return a short form of a value for a message."""
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= 80 else f"{text[:80]}…"  # noqa: PLR2004 - as much as fits in a line
