"""Cuts what a file holds into chunks: JSON texts, and the lines of text around them.

Tools print more than their answer: log lines, banners, the prompt with the command. A copied terminal has several
answers in a row. So each JSON text that begins on a line of its own is a chunk, and so are the lines up to the next one
or up to the next command.
"""

import codecs
import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import msgspec

from planner.cluster.errors import FormatError
from planner.cluster.units import MIB
from planner.doors.pieces import Source
from planner.formats.encoding import parse_json
from planner.formats.folder import MAX_UNPACKED_BYTES
from planner.formats.tar import is_tar

HEAD_BYTES = 64_000
"""Bytes of a chunk that are looked at to recognise it."""

_GZIP = b"\x1f\x8b"
_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_OPENS = re.compile(rb"(?m)^[ \t]*([\[{])")
_NEXT = re.compile(rb"[ \t]*([\[{])")
_AT_BYTE = re.compile(r"\(byte (\d+)\)$")
_TRAILING = "trailing characters"
_JSON_FOLLOWS = re.compile(rb"\{\s*[\"}]|\[\s*(?:[\"{\[\]]|-?[0-9]+(?:\.[0-9]+)?\s*[,\]]|(?:true|false|null)\b)")
_WORDS = r"pulsar-admin|pulsar-client|pulsar-perf|pulsarctl|zookeeper-shell(?:\.sh)?|curl|kubectl"
_COMMAND = re.compile(rf"^(?:[^{{}}\"']{{0,120}}?[\s/])?((?:{_WORDS})\s.*|(?:get|ls)\s+(?:-s\s+)?/\S+.*)$")
_MAY_BE_COMMAND = re.compile(rf"(?:{_WORDS}|^(?:.{{0,80}}\] )?(?:get|ls)) ".encode(), re.MULTILINE)
_LOG_LINE = re.compile(
    r"^(?:SLF4J:|WARNING: |WATCHER::|WatchedEvent |Connecting to |Welcome to ZooKeeper|JLine support is "
    r"|```\w*\s*$|\+[-+]+\+\s*$|\[zk: |(?:\[.{1,60}\]|\S{0,60})[$%#>]\s*$|"
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d|\[\d{4}-\d\d-\d\d|\d\d:\d\d:\d\d[.,]\d{3} \[|"
    r"(?:cZxid|ctime|mZxid|mtime|pZxid|cversion|dataVersion|aclVersion|ephemeralOwner|dataLength|numChildren) = )"
)
_CELL = re.compile(r"\|\s*([^|\s][^|]*?)\s*\|")
"""A row of a table with one column, as `pulsarctl` draws it."""
_COLOUR = re.compile(rb"\x1b\[[0-9;]*[A-Za-z]")
_MOST_RATIO = 200
_RATIO_FREE_BYTES = 16 * MIB
_MOST_VALUE_BYTES = 64 * MIB
_MOST_CHUNKS = 200_000
_LONGEST_LINE = 4_096
_AGAIN = "Save the output again, or paste all of it."


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
        return _told(bytes(self.data).decode("utf-8", "replace"))

    @cached_property
    def first_lines(self) -> list[str]:
        """The same of the beginning alone."""
        return self.lines if len(self.data) <= HEAD_BYTES else _told(self.head)


def _told(text: str) -> list[str]:
    lines = (line.rstrip() for line in text.split("\n") if line.strip() and not _LOG_LINE.match(line.lstrip()))
    return [found[1] if (found := _CELL.fullmatch(line)) else line for line in lines]


def unpacked(data: bytes, file: str) -> bytes:
    """Return the content of a file as UTF-8 without a byte order mark; gzip is unpacked, within bounds.

    Raises:
        FormatError: It is damaged, unfolds to too much, or is not text.
    """
    if data[:2] == _GZIP:
        data = _gunzip(data, file)
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            plain = data[len(mark) :]
            if encoding == "utf-8":
                return _without_colours(plain)
            try:
                return _without_colours(plain.decode(encoding).encode())
            except UnicodeError as error:
                raise FormatError("The text is not valid UTF-16.", where=file, remedy=_AGAIN) from error
    return _without_colours(data)


def _without_colours(data: bytes) -> bytes:
    """Return a text without the colours of a terminal; a tar as it is."""
    return data if is_tar(data) or b"\x1b[" not in data else _COLOUR.sub(b"", data)


def _gunzip(data: bytes, file: str) -> bytes:
    parts: list[bytes] = []
    size = 0
    left = data
    try:
        while left[:2] == _GZIP:
            unpacker = zlib.decompressobj(wbits=31)
            while not unpacker.eof:
                part = unpacker.decompress(left, MIB)
                left = unpacker.unconsumed_tail
                parts.append(part)
                size += len(part)
                if size > MAX_UNPACKED_BYTES or (size > _RATIO_FREE_BYTES and size > _MOST_RATIO * len(data)):
                    raise FormatError("It unpacks to too much.", where=file, remedy="Use smaller files.")
                if not part and not left and not unpacker.eof:
                    raise FormatError("The gzip file is truncated.", where=file, remedy=_AGAIN)
            left = unpacker.unused_data
    except zlib.error as error:
        raise FormatError(f"The gzip file is damaged: {error}.", where=file, remedy=_AGAIN) from error
    return b"".join(parts)


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
    before = ""
    while at < len(view):
        opening = _next_json(data, at)
        start, end = opening if opening is not None else (len(view), len(view))
        for part in _texts(view[at:start], line, asked):
            count += 1
            before = bytes(part.data[-_LONGEST_LINE:]).rpartition(b"\n")[2].decode("utf-8", "replace")
            yield replace(part, source=_source(file, int(part.source.position), part.source.command))
        line += data.count(b"\n", at, start)
        if start < end:
            count += 1
            asked.is_answered = True
            yield Chunk(_source(file, line, asked.command), view[start:end], is_json=True, before=before)
            line += data.count(b"\n", start, end)
            before = ""
        if count > _MOST_CHUNKS:
            raise FormatError(f"It has more than {_MOST_CHUNKS:,} parts.", where=file, remedy="Use fewer answers.")
        at = end
    if not asked.is_answered:
        yield Chunk(_source(file, asked.line, asked.command), memoryview(b""), is_json=False)


@dataclass
class _Asked:
    """The last command, and whether something was printed since."""

    command: str
    line: int
    is_answered: bool = True


def _texts(text: memoryview, line: int, asked: _Asked) -> Iterator[Chunk]:
    """Yield the parts of a text; the position of each is the number of its first line alone."""
    plain = bytes(text)
    if not plain.strip():
        return
    if len(plain) <= _LONGEST_LINE and not _told(plain.decode("utf-8", "replace")):  # logs and prompts alone
        if not _MAY_BE_COMMAND.search(plain):
            return
    elif not _MAY_BE_COMMAND.search(plain):
        asked.is_answered = True
        yield Chunk(Source("", str(line), asked.command), text, is_json=False)
        return
    for at, (first_line, lines, above) in enumerate(_parts(plain.decode("utf-8", "replace"), line, asked.command)):
        if at:
            if not asked.is_answered:
                yield Chunk(Source("", str(asked.line), asked.command), memoryview(b""), is_json=False)
            asked.command, asked.line, asked.is_answered = above, first_line, False
        if _told("\n".join(lines)):
            asked.is_answered = True
            yield Chunk(Source("", str(first_line), above), memoryview("\n".join(lines).encode()), is_json=False)


def _source(file: str, line: int, command: str) -> Source:
    return Source(file, f"line {line}" if line > 1 else "", command)


def _next_json(data: bytes, at: int) -> tuple[int, int] | None:
    """Return where the next JSON text that begins on a line of its own starts and ends; None where there is none.

    One that is truncated or damaged ends with the next command or the file, so that its reader can say what is wrong.
    """
    while (found := _NEXT.match(data, at) or _OPENS.search(data, at)) is not None:
        start = found.start(1)
        end = _end_of_json(data, start)
        if end:
            return start, end
        at = start + 1
    return None


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
            # What follows on the same line belongs to it only if it is another JSON text, as when one is pasted twice.
            rest = data[end : end + 100].lstrip(b" \t")
            return end if rest[:1] in (b"", b"\n", b"\r", b"{", b"[", b",", b"]") else 0
        return _next_command(data, start) if _JSON_FOLLOWS.match(data, start) is not None else 0
    except (UnicodeDecodeError, RecursionError):
        return len(data)
    return len(data)


def _next_command(data: bytes, start: int) -> int:
    """Return where the line of the next command begins; the end where there is none."""
    for found in _MAY_BE_COMMAND.finditer(data, start):
        begin = data.rfind(b"\n", start, found.start()) + 1
        line = data[begin : begin + _LONGEST_LINE].partition(b"\n")[0].decode("utf-8", "replace").rstrip("\r")
        if begin > start and _COMMAND.match(line):
            return begin
    return len(data)


def _rstripped(data: bytes, end: int) -> int:
    """Return the end of a part of a text without the blanks before it."""
    while data[end - 1 : end].isspace():
        end -= 1
    return end


def _parts(text: str, line: int, command: str) -> Iterator[tuple[int, list[str], str]]:
    """Yield first line, lines and the command above of each part of a text; commands part them."""
    lines: list[str] = []
    first = line
    for number, one in enumerate(text.split("\n"), line):
        found = _COMMAND.match(one)
        if found is not None and (one.startswith("[zk: ") or not _LOG_LINE.match(one)):
            yield first, lines, command
            lines, first, command = [], number + 1, found[1]
        else:
            lines.append(one)
    yield first, lines, command


def quoted(value: object) -> str:
    """Return a short form of a value for a message."""
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= 80 else f"{text[:80]}…"  # noqa: PLR2004 - as much as fits in a line
