"""Turns the bytes of a file into text that can be cut: unpacks, decodes, and takes out what terminals add."""

import base64
import bz2
import codecs
import html
import io
import lzma
import re
import textwrap
import zlib
from collections.abc import Callable, Mapping
from typing import BinaryIO, Final, cast

import pyarrow as pa

from planner.cluster.errors import FormatError
from planner.cluster.units import MIB
from planner.doors.log_records import without_records
from planner.doors.prefixes import begins_with_pod, without_prefixes
from planner.formats.folder import MAX_UNPACKED_BYTES
from planner.formats.tar import is_tar

_GZIP: Final = b"\x1f\x8b"
_COMPRESSED: Final = {_GZIP: "gzip", b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zstd"}
_FORMATS: Final = {
    b"7z\xbc\xaf\x27\x1c": "a 7z archive",
    b"Rar!": "a RAR archive",
    b"%PDF-": "a PDF document",
    b"\x89PNG": "a picture",
    b"\xff\xd8\xff": "a picture",
    b"GIF8": "a picture",
    b"\xd0\xcf\x11\xe0": "a document of Office",
    b"PAR1": "a Parquet file",
    b"{\\rtf": "a document in RTF",
}
"""How files begin that are no text."""
_SIGNS_OF_TEXT: Final = bytes([0, 7, 8, 9, 10, 12, 13, 27, *range(32, 256)])
_BASE64: Final = re.compile(rb"[A-Za-z0-9+/]+={0,2}")
_SHORTEST_BASE64: Final = 60
_TEXT_BYTES: Final = 4_096
_FEW: Final = 10
"""At most one sign in ten is odd in a text."""
_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
MARK: Final = "a byte order mark"
"""What editors of Windows write before a text in UTF-8."""
_LOOKED_AT: Final = 256
_MOST_RATIO: Final = 200
_RATIO_FREE_BYTES: Final = 16 * MIB
_DEEPEST: Final = 3
_AGAIN: Final = "Save the output again, or paste all of it."

_CONTROL: Final = re.compile(rb"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)|[()][A-Z0-9]|[=>78cM])")
"""Colours, titles and modes of a terminal."""
_LOST_CONTROL: Final = re.compile(rb"(?:\^\[|\\(?:e|x1b|u001b|033)|\xe2\x90\x9b)?\[(?:\d{1,3}(?:;\d{1,3}){0,4})?m")
"""Colours whose first sign was lost, or is written out."""
_WIDE: Final = re.compile(rb"(?:\xff\xfe)?(?:[\t\r\n -~]\x00){8,}")
"""A stretch of UTF-16 in another text, as `>>` of PowerShell appends it."""
_LINE_ENDS: Final = re.compile(rb"\r+\n?")
_MARK_INSIDE: Final = re.compile(rb"(?m)^\xef\xbb\xbf")
_NO_WIDTH: Final = re.compile(rb"\xe2\x80\x8b|\xe2\x81\xa0")
"""Blanks without a width, as chats and wikis put between words."""
_HARD_BLANKS: Final = re.compile(rb"(?m)(?:^|(?<=[ \t])|(?<=\":))(?:\xc2\xa0)+|(?:\xc2\xa0)+(?=[ \t])|(?:\xc2\xa0){2,}")
_STAMP: Final = re.compile(rb"(?m)^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6,9}(?:Z|[-+]\d\d:\d\d) ")
_QUOTE: Final = re.compile(rb"(?m)^[ \t]*(?:> ?)+")
_QUOTED_TEXT: Final = re.compile(rb"(?:[ \t]*>[^\n]*(?:\n|\Z)|[ \t]*\n)+\Z")
_MARKED_UP: Final = (
    (re.compile(rb"(?m)^([ \t]*(?:```|~~~))(?=[\w+-]*+[./:{}\[\]\"]|[\w+-]++[ \t]++[^\s`])"), rb"\1\n"),
    (re.compile(rb"(?m)(?<=[^\s`])(?=```[ \t]*$)"), b"\n"),
    (re.compile(rb"(?m)^[ \t]*(?:[*\-+][ \t]+|\xe2\x80\xa2[ \t]+|\d+[.)][ \t]+)?`([^`\n]+)`[,;.:]?[ \t]*$"), rb"\1"),
    (re.compile(rb"(?m)(?<=\S)[ \t]*`{1,3}(?=[\[{][ \t]*[\"\[{\n])"), b"\n"),
    (re.compile(rb"(?m)(?<=[\]}])`{1,3}(?=\W|$)"), b"\n"),
    (re.compile(rb"(?m)^(?:[ \t]*</?[a-z]+(?: [^<>\n]*)?>)+(?=[ \t]*(?:[\[{]|$))"), b""),
    (re.compile(rb"(?m)(?<=[\]}])(?:</[a-z]+>)+[ \t]*$"), b""),
)
"""Marks of Markdown and HTML on the line of an answer, and what to put there."""
_ECHOED: Final = re.compile(
    rb"(?m)^([A-Za-z0-9][\w.-]*:\d{2,5}):?[ \t]*\n"
    rb"(?=[^\s\[{]+/0x[0-9a-f]{8}_0x[0-9a-f]{8}[ \t]{2,}\[|# (?:HELP|TYPE) |(?:pulsar|jvm)_\w+\{)"
)
"""The name of a broker alone on a line, as a loop prints it before each answer."""
_ANSWERED: Final = re.compile(
    rb"(?m)((?:pulsar-admin|pulsarctl) [^\n{}\[\"']{3,300}?)[ \t]+(?=\{[ \t]*\"[^\n]*\}[ \t]*$)"
)
"""A command, and its answer on the same line, as pages without line ends show them."""
_RELEASE: Final = re.compile(rb"(?m)^(\"?\d+\.\d+\.\d+[\w.+-]*+\"?)(?=[$#] )")
"""A release without a line end, and the prompt after it."""
_OF_PAGE: Final = re.compile(rb"(?m)^([a-z_:]\w*+\{[^\n]*\})[ \t]*\n[ \t]*(?=[-+]?[\d.]+(?:[eE][-+]?\d+)?[ \t]*$)")
"""Between a series and its value, as the page of Prometheus shows them."""
_CURLED: Final = re.compile(rb"\xe2\x80[\x9c-\x9e]")
"""Typographic quotation marks."""
_CURLED_KEY: Final = re.compile(rb"(?m)^[ \t]*\xe2\x80[\x9c-\x9e][\w.-]+\xe2\x80[\x9c-\x9e][ \t]*:")
_CURLED_AROUND: Final = re.compile(
    rb"(?:(?<=[\s\[{,:])|^)\xe2\x80[\x9c-\x9e]|\xe2\x80[\x9c-\x9e](?=[ \t]*(?:[:,\]}\n]|\Z))", re.MULTILINE
)
"""Those at the edges of keys and values of JSON."""
_WHOSE: Final = re.compile(rb"(?m)^((?:I have no name!|[\w.-]+)@[\w.-]+):[~/]")
_BRACKETED: Final = re.compile(rb"(?m)(?<=[^\s(])(?=\[[\w.-]+@[\w.-]+ [^\]\n]{1,80}\][$#](?: |$))")
"""Between the end of an answer without a line end and the prompt after it."""
_GOES_ON: Final = re.compile(rb"(?<!\\)\\\n(?:[ \t]+(?:> )?|> |(?=--?[a-zA-Z]))")
PASTED_BYTES: Final = 4 * MIB
"""More than any person pastes."""
_LOGGED_BYTES: Final = 64 * MIB
"""More than any container logs of the answers to a few commands."""


def unpacked(data: bytes, file: str) -> bytes:
    """Return the content of a file as UTF-8 with plain line ends; gzip, bzip2, xz and zstd are unpacked, within bounds.

    Raises:
        FormatError: It is damaged, unfolds to too much, or is not text.
    """
    data = _as_utf8(data, file)
    if is_tar(data):
        return data
    data = _decoded(data, file)
    _check_is_text(data, file)
    return plain(data)


def as_written(data: bytes, file: str) -> tuple[str, bool]:
    """Return the text of a file line by line as it is, and whether other programs read it without unpacking it.

    Raises:
        FormatError: It is damaged, or unfolds to too much.
    """
    text = _as_utf8(data, file)
    return text.decode("utf-8", "replace"), data.removeprefix(codecs.BOM_UTF8) == text


def encoding_beside_utf8(data: bytes) -> str:
    """Return what makes a text another one for programs that read ASCII: `MARK`, or its encoding; empty for neither."""
    mark, encoding = next(((m, e) for m, e in _MARKS if data.startswith(m)), (b"", _unmarked(data)))
    return encoding[: len("utf-16")].upper() if encoding != "utf-8" else MARK if mark else ""


def _as_utf8(data: bytes, file: str) -> bytes:
    for _ in range(_DEEPEST):
        data = _decompressed(data, file)
    mark, encoding = next(((m, e) for m, e in _MARKS if data.startswith(m)), (b"", _unmarked(data)))
    data = data[len(mark) :]
    if encoding == "utf-8":
        return data
    try:
        return data.decode(encoding).encode()
    except UnicodeError as error:
        name = encoding[:6].upper()
        raise FormatError(f"The text is not valid {name}.", where=file, remedy=_AGAIN) from error


def _decoded(data: bytes, file: str) -> bytes:
    """Return the text in base64, as resources of Kubernetes and Helm hold it, packed or not; other data as it is."""
    for _ in range(_DEEPEST):
        lines = data.split()
        if len(data) > PASTED_BYTES or len(data) < _SHORTEST_BASE64 or not all(map(_BASE64.fullmatch, lines)):
            return data
        try:
            inner = base64.b64decode(b"".join(lines), validate=True)
        except ValueError:
            return data
        text = _decompressed(inner, file)
        if text is inner and (text.translate(None, _SIGNS_OF_TEXT) or not _is_utf8(text)):
            return data
        data = text
    return data


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeError:
        return False
    return True


def _check_is_text(data: bytes, file: str) -> None:
    """Refuse what is no text.

    Raises:
        FormatError: It is none.
    """
    known = next((what for start, what in _FORMATS.items() if data.startswith(start)), "")
    head = data[:_TEXT_BYTES]
    odd = len(head.translate(None, _SIGNS_OF_TEXT))
    wrong = head.decode("utf-8", "replace").count("\ufffd")
    if known or odd * _FEW > len(head) or wrong * _FEW > len(head):
        what = f"It is {known}, not text." if known else "It is not text."
        raise FormatError(what, where=file, remedy="Unpack it, or save the outputs as plain text.")


def _unmarked(data: bytes) -> str:
    """Return the encoding of a text without a mark: in UTF-16 every other byte of what tools print is 0."""
    head = data[:_LOOKED_AT]
    half = len(head) // 2
    for first, encoding in ((1, "utf-16-le"), (0, "utf-16-be")):
        if half and len(data) % 2 == 0 and head[first::2] == bytes(half) and 0 not in head[1 - first :: 2]:
            return encoding
    return "utf-8"


def plain(data: bytes) -> bytes:
    """Return a text without what containers, terminals, shells and mail programs add to it."""
    data = without_records(data)
    data = _without_colours(data)
    if b"\x00" in data:
        data = _WIDE.sub(lambda found: found[0].removeprefix(codecs.BOM_UTF16_LE).replace(b"\x00", b""), data)
    if b"\r" in data:
        data = _LINE_ENDS.sub(b"\n", data)
    if b"\x00" in data:  # parts the variables in /proc/PID/environ
        data = data.rstrip(b"\x00").replace(b"\x00", b"\n")
    if b"\xef\xbb\xbf" in data:  # two files in one
        data = _MARK_INSIDE.sub(b"", data)
    if b"\xe2\x80\x8b" in data or b"\xe2\x81\xa0" in data:
        data = _NO_WIDTH.sub(b"", data)
    if b"\xc2\xa0" in data:
        data = _HARD_BLANKS.sub(lambda found: b" " * (len(found[0]) // 2), data)
    if _STAMP.match(data):
        data = _STAMP.sub(b"", data)
    if len(data) <= PASTED_BYTES:
        data = _as_printed(data)
    elif len(data) <= _LOGGED_BYTES and begins_with_pod(data):
        data = without_prefixes(data)
    return _with_plain_quotes(data) if b"\xe2\x80" in data else data


def _without_colours(data: bytes) -> bytes:
    """Return a text without what steers a terminal, also where its first sign was lost."""
    if b"\x1b" in data:
        data = _CONTROL.sub(b"", data)
    return _LOST_CONTROL.sub(b"", data) if data.count(b"[0m") > 1 else data


def _with_plain_quotes(data: bytes) -> bytes:
    """Return a text with plain quotation marks where a word processor replaced all of them, or those of JSON."""
    if b'"' not in data:
        return _CURLED.sub(b'"', data)
    return _CURLED_AROUND.sub(b'"', data) if _CURLED_KEY.search(data) else data


def _as_printed(data: bytes) -> bytes:
    """Return pasted text without signs of a quotation, without indentation, and with each prompt on its own line."""
    data = without_prefixes(data)
    if data.lstrip()[:1] == b">" and _QUOTED_TEXT.match(data):
        data = _QUOTE.sub(b"", data)
    if b"\\\n" in data:  # properties and commands go on in the next line
        data = _GOES_ON.sub(b"", data)
    if data.count(b"&quot;") > data.count(b'"'):  # copied from the source of a page
        data = html.unescape(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
    if b"`" in data or b"<" in data:
        for mark, instead in _MARKED_UP:
            data = mark.sub(instead, data)
    data = _ANSWERED.sub(rb"\1\n", data)
    data = _ECHOED.sub(rb"== \1 ==\n", data)
    if len(_OF_PAGE.findall(data)) * 2 >= data.count(b"\n"):
        data = _OF_PAGE.sub(rb"\1 ", data)
    if data[:1] in (b" ", b"\t"):
        data = textwrap.dedent(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
    data = _RELEASE.sub(rb"\1\n", data)
    for name in set(_WHOSE.findall(data)):
        data = re.sub(rb"(?m)(?<=[^\s(])(?=" + re.escape(name) + rb":[~/][^\s$#]*[$#](?: |$))", b"\n", data)
    return _BRACKETED.sub(b"\n", data) if b"]# " in data or b"]$ " in data or data[-2:] in (b"]#", b"]$") else data


def _decompressed(data: bytes, file: str) -> bytes:
    """Unpack what is compressed, within bounds; other data as it is.

    Raises:
        FormatError: It is damaged, or unfolds to too much.
    """
    name = next((name for start, name in _COMPRESSED.items() if data.startswith(start)), "")
    if not name:
        return data
    if name == "gzip":
        return _gunzip(data, file)
    parts: list[bytes] = []
    size = 0
    try:
        with _OPENS[name](io.BytesIO(data)) as source:
            while part := source.read(MIB):
                parts.append(bytes(part))
                size += len(part)
                _check_size(size, len(data), file)
    except EOFError as error:
        raise FormatError(f"The {name} file is truncated.", where=file, remedy=_AGAIN) from error
    except (lzma.LZMAError, OSError, ValueError) as error:
        raise FormatError(f"The {name} file is damaged.", where=file, remedy=_AGAIN) from error
    return b"".join(parts)


def _unxz(data: io.BytesIO) -> BinaryIO:
    return cast("BinaryIO", lzma.LZMAFile(data))


def _unbzip2(data: io.BytesIO) -> BinaryIO:
    return cast("BinaryIO", bz2.BZ2File(data))


def _unzstd(data: io.BytesIO) -> BinaryIO:
    return cast("BinaryIO", pa.CompressedInputStream(data, "zstd"))


_OPENS: Final[Mapping[str, Callable[[io.BytesIO], BinaryIO]]] = {"bzip2": _unbzip2, "xz": _unxz, "zstd": _unzstd}


def _check_size(size: int, packed: int, file: str) -> None:
    if size > MAX_UNPACKED_BYTES or (size > _RATIO_FREE_BYTES and size > _MOST_RATIO * packed):
        raise FormatError("It unpacks to too much.", where=file, remedy="Use smaller files.")


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
                _check_size(size, len(data), file)
                if not part and not left and not unpacker.eof:
                    raise FormatError("The gzip file is truncated.", where=file, remedy=_AGAIN)
            left = unpacker.unused_data
    except zlib.error as error:
        raise FormatError(f"The gzip file is damaged: {error}.", where=file, remedy=_AGAIN) from error
    return b"".join(parts)
