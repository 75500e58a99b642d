"""Mends JSON that somebody marked up, edited, or copied without its end, where only one reading is possible."""

import json
import re
from collections.abc import Iterator
from typing import Final

import msgspec

from planner.cluster.units import MIB
from planner.doors.chunks import Chunk
from planner.doors.terminal import command_of, said

MENDED_BYTES: Final = 4 * MIB
"""More than any person pastes or edits."""
_STRING: Final = r'"(?:[^"\\\n]|\\.)*+"'
_TOKEN: Final = re.compile(rf'{_STRING}|[\[{{\]}}]|"')
_JSON: Final = re.compile(r"(?m)^[ \t]*+\*{0,3}+ ?[\[{]")
_QUOTED: Final = re.compile(r"(?m)^[ \t]*(?:> ?)+")
_MANY: Final = 3
_CLOSING: Final = {"{": "}", "[": "]"}
_VALUE: Final = rf"(?:{_STRING}|-?\d[\d.eE+-]*+|true|false|null|[\]}}])"
_NUMBER: Final = r"\d{1,3}(?:,\d{3})++(?=\.\d)|\d{1,3}(?:,\d{3}){2,}+"

_SLIPS: Final = (
    (
        "stars around objects",
        re.compile(r"(?m)^([ \t]*+)\*{1,3}+ ?(?=[\[{])|(?<=[\]}]) ?\*{1,3}+(?=[ \t]*+$)"),
        r"\1",
    ),
    (
        "stars around values",
        re.compile(
            rf'(?m)^([ \t]*)(\*{{1,3}})("[^\n]{{1,400}}?)\2(,?[ \t]{{0,80}}+)$|(:[ \t]*)(\*{{1,3}})({_VALUE})\6'
        ),
        r"\1\3\4\5\7",
    ),
    (
        "remarks at the end of lines",
        re.compile(
            rf"(?m)^([ \t]*+(?:{_STRING}[ \t]*+:[ \t]*+)?(?:{_VALUE}|[\[{{])[ \t]*+,?)[ \t]*+(?:<[-=<]|←|⟵|//|#)[^\n]*$"
        ),
        r"\1",
    ),
    (
        "remarks between lines",
        re.compile(r"(?m)(?<=[,{\[]\n)[ \t]*+(?://|#)[^\n]*\n"),
        "",
    ),
    ("spare commas", re.compile(r"(?<![,\s])\s{0,80}+(?:,\s{0,80}+){1,20}+(?=[\]}])|,(?=[ \t]{0,80}+,)"), ""),
    (
        "values that are no numbers, and count as 0 or unknown",
        re.compile(r"(?<=[:\[,])([ \t]*+)[-+]?(?:NaN|Infinity)\b(?=[ \t]*+[,\]}\n])"),
        r"\1null",
    ),
    (
        "missing commas",
        re.compile(rf"(?m)(?<=[\w\"\]}}])([ \t]*\n[ \t]*)(?={_STRING}[ \t]*:)"),
        r",\1",
    ),
)
"""What people leave in JSON: its name, where it is, and what stands there without it."""
_OF_SCRIPT: Final = re.compile(rf"{_STRING}|'((?:[^'\\\n]|\\.)*+)'|(?<![\w.\"'])([A-Za-z_$][\w$]*+)(?=[ \t]*+:(?!/))")
"""Texts, and names before a colon, as JavaScript and `jq` write them."""
_BARE: Final = re.compile(r"(?m)^[ \t]*+[{\[]\s*+(?:\{\s*+)?(?:[A-Za-z_$][\w$]*+|'[^'\n]*+')[ \t]*+:")
"""How an object of JavaScript begins."""
_HUNK: Final = re.compile(r"(?m)^@@ -1(?:,\d+)? \+1(?:,\d+)? @@.*\n")
_ANY_HUNK: Final = re.compile(r"(?m)^@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@")
_GROUPED: Final = re.compile(rf"(?<=:)([ \t]*)((?:{_NUMBER})(?:\.\d+)?)(?=[ \t]*[,\]}}\n])")


def mended(text: str) -> tuple[str, str]:
    """Return a text without signs of quotations and the slips of people in its JSON, and the names of what was there.

    Only one reading is possible of all of them. A comma in a number parts its thousands if there is a point as well, or
    another comma.
    """
    done: list[str] = []
    if len(_QUOTED.findall(text)) >= _MANY:
        text, done = _QUOTED.sub("", text), ["signs of a quotation"]
    if len(_ANY_HUNK.findall(text)) == 1 and (hunk := _HUNK.search(text)):
        lines = text[hunk.end() :].split("\n")
        text, done = "\n".join(line[1:] for line in lines if line[:1] in (" ", "+")), ["what was there before a change"]
    if not _JSON.search(text):
        return text, ", ".join(done)
    if text != (without := _without_logs(text)):
        text, done = without, [*done, "log lines between"]
    if _BARE.search(text):
        text, done = _OF_SCRIPT.sub(_quoted, text), [*done, "names without quotation marks"]
    for name, pattern, instead in _SLIPS:
        text, times = pattern.subn(instead, text)
        done += [name] * bool(times)
    text, times = _GROUPED.subn(lambda found: f"{found[1]}{found[2].replace(',', '')}", text)
    done += ["commas that part thousands"] * bool(times)
    return text, ", ".join(done)


def _without_logs(text: str) -> str:
    """Return a text without what tools log between the lines of an answer; commands and headings stay."""
    lines = text.split("\n")
    return "\n".join(line for line in lines if said(line) or not line.strip() or command_of(line.strip()) is not None)


def _quoted(found: re.Match[str]) -> str:
    """Return a text or a name of JavaScript as JSON has it."""
    text = found[1] if found[1] is not None else found[2]
    return found[0] if text is None else json.dumps(text.replace("\\'", "'"))


def closed(chunk: Chunk) -> tuple[Chunk, str] | None:
    """Return a JSON text that lacks nothing but its last bracket with it, and what was added; None for others.

    What ends with a whole value and no comma was the last one there, as tools write the comma on the same line. Where
    more brackets are missing, more may have stood between them.
    """
    if not chunk.is_json or len(chunk.data) > MENDED_BYTES or chunk.outline is not None:
        return None
    text = bytes(chunk.data).decode("utf-8", "replace")
    lines = text.split("\n")
    while lines and not said(lines[-1]):
        lines.pop()
    kept = "\n".join(lines).rstrip()
    is_whole = kept[-1:] in ('"', "}", "]") or text[len(kept) :].lstrip(" \t")[:1] == "\n"
    missing = "".join(_open_in(kept)) if is_whole and "\n" in kept else ""
    if len(missing) != 1:
        return None
    data = f"{kept}\n{missing}".encode()
    try:
        msgspec.json.decode(data, type=msgspec.Raw)
        json.loads(data)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    made = Chunk(chunk.source, memoryview(data), is_json=True, before=chunk.before, about=chunk.about)
    made.at_ms = chunk.at_ms
    return made, f"{chunk.source}: its last bracket is missing, and was added."


def _open_in(text: str) -> Iterator[str]:
    """Return the brackets that would close what is open at the end of a text, the innermost first; none in a string."""
    stack: list[str] = []
    for found in _TOKEN.finditer(text):
        sign = found[0]
        if sign == '"':  # of a string that does not end
            return iter(())
        if sign in _CLOSING:
            stack.append(_CLOSING[sign])
        elif sign in ("}", "]") and (not stack or stack.pop() != sign):
            return iter(())
    return reversed(stack)
