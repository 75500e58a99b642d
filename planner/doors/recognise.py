"""Finds the kind of each chunk by its content, and reads it into pieces."""

import base64
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import msgspec

from planner.cluster.errors import FormatError
from planner.cluster.text import count
from planner.doors.chunks import HEAD_BYTES, Chunk
from planner.doors.images import releases_in
from planner.doors.java_text import value_of
from planner.doors.kind import LIKELY, NO, Kind
from planner.doors.kinds import configuration, manifests
from planner.doors.mended import closed
from planner.doors.notations import in_json
from planner.doors.pieces import Assumed, Configuration, NotUsed, Piece, Source
from planner.doors.registry import KINDS
from planner.doors.terminal import letters_of
from planner.doors.words import BROKER, NAMESPACE

_SETTINGS: Final = (configuration.JSON, manifests.KIND)
_ABOUT: Final = ("broker", "namespace", "key")
_INSIDE: Final = ("report", "topics", "value", "bundles", "policies", "response")
"""Under which a line that was recorded, and what *Inspect* of Grafana shows, have the answer."""
_AT_MS: Final = ("time_ms", "publish_time_ms")
_COMMENT: Final = re.compile(r"\s*(?:#|//|;|!)")
_ASKED: Final = re.compile(
    r"(?:pulsar-admin|pulsarctl) .*?\b(brokers|broker-stats|clusters|tenants|namespaces|topics|bookies|functions|"
    r"sources|sinks|schemas|packages|resourcegroups|topicPolicies|transactions|proxy-stats) ([a-z][a-z-]+)"
)
_USED: Final[Mapping[str, frozenset[str]]] = {
    "broker-stats": frozenset(["topics", "load-report", "monitoring-metrics", "allocator-stats"]),
    "brokers": frozenset(
        ["list", "leader-broker", "version", "namespaces", "get-runtime-config", "get-all-dynamic-config"]
    ),
    "clusters": frozenset(["list-failure-domains", "get-failure-domain"]),
    "namespaces": frozenset(["bundles", "policies", "get-dispatch-rate", "get-anti-affinity-group", "list"]),
    "topics": frozenset(["list", "stats", "partitioned-stats", "lookup", "partitioned-lookup"]),
}
"""Commands whose answers are read."""
_NODES: Final = "kvs"
_TEMPLATE: Final = re.compile(r"\s*(?:\{%.*%\}|\{\{.*\}\}|<%.*%>)\s*")
"""What a template leaves out or fills in: whole lines of Jinja, of Helm or of ERB."""
_MOST_MAPPED: Final = 10_000
_DEEPEST: Final = 3
_SHOWN: Final = 40
_STARTS: Final = re.compile(r"^line (\d+)$")
_LINE: Final = re.compile(r"line (\d+), column")
_COMMA_IN_NUMBER: Final = re.compile(rb'":[ \t]*(-?\d+,\d[\d,.]*)(?=[ \t]*[,}\n])')


def kind_of(chunk: Chunk) -> Kind | None:
    """Return the kind that is surest of a chunk; None where none is."""
    best, found = NO, None
    for kind in KINDS:
        sure = kind.recognise(chunk)
        if sure > best:
            best, found = sure, kind
    return found


def pieces_of(chunk: Chunk, depth: int = 0) -> Iterator[Piece]:
    """Yield what a chunk says; a part that cannot be read is a `NotUsed` with the reason, and the others are read."""
    for one in _pieces_of(chunk, depth):
        if isinstance(one, Configuration) and one.form == "file":
            yield replace(one, releases=releases_in(chunk.data))
        else:
            yield one


def _pieces_of(chunk: Chunk, depth: int) -> Iterator[Piece]:
    if (other := in_json(chunk)) is not None and _is_answer(other):
        chunk = other
    elif (whole := closed(chunk)) is not None and _is_answer(whole[0]):
        chunk = whole[0]
        yield Assumed(source=chunk.source, text=whole[1])
    kind = kind_of(chunk)
    if kind is not None:
        yield from _read(kind, chunk)
    elif not chunk.is_json:
        yield from _of_lines(chunk)
    elif depth < _DEEPEST and (inside := list(_inside(chunk))):
        for part in inside:
            yield from pieces_of(part, depth + 1)
    else:
        yield NotUsed(source=chunk.source, why=_unknown(chunk))


def _is_answer(chunk: Chunk) -> bool:
    """Say whether what was turned into JSON is an answer, or some; settings in YAML have a kind of their own."""
    kind = kind_of(chunk)
    if kind is None:
        return any(_is_answer(part) for part in _inside(chunk))
    is_other = kind not in _SETTINGS or (kind is configuration.JSON and configuration.is_asked(chunk.source.command))
    return is_other and kind.recognise(chunk) >= LIKELY


def _read(kind: Kind, chunk: Chunk) -> Iterator[Piece]:
    try:
        yield from kind.read(chunk)
    except FormatError as error:
        place = error.where.removeprefix(str(chunk.source)).strip(": ")
        what = f"{kind.name}: {place + ': ' if place else ''}{error.what[:1].lower()}{error.what[1:].rstrip('.')}"
        yield NotUsed(source=chunk.source, why=f"{what}. {error.remedy}".rstrip("."))
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        what = "it is nested too deeply" if isinstance(error, RecursionError) else f"it is damaged: {str(error)[:200]}"
        yield NotUsed(source=chunk.source, why=f"{kind.name}: {what}. Save the output again")


def _unknown(chunk: Chunk) -> str:
    if chunk.outline is None:
        try:
            _ = chunk.value
        except FormatError as error:
            return _damage(chunk, error)
    which, is_used = _asked(chunk.source)
    if which and not is_used:
        return f"the answer to {which}, which the planner does not use"
    if chunk.outline == {}:
        return "an empty object, which may be the answer to anything; put the command above it"
    if chunk.outline == []:
        return "an empty list"
    keys = ", ".join(key[:_SHOWN] for key in list(chunk.keys)[:3])
    return f"JSON of an unknown kind{f', with the keys {keys}' if keys else ''}"


def _damage(chunk: Chunk, error: FormatError) -> str:
    """Return what is wrong with a JSON text, with the lines of the file that it is in."""
    start = _STARTS.search(chunk.source.position)
    above = int(start[1]) - 1 if start else 0
    text = bytes(chunk.data[:HEAD_BYTES])
    if found := _COMMA_IN_NUMBER.search(text):
        line = above + text.count(b"\n", 0, found.start(1)) + 1
        return f"line {line} has a number with a comma; write a decimal point, and nothing between thousands"
    what = _LINE.sub(lambda of: f"line {int(of[1]) + above}, column", error.what.rstrip("."))
    return f"{what}. {error.remedy}".rstrip(".")


def _inside(chunk: Chunk) -> Iterator[Chunk]:
    """Yield the parts of a JSON text that wraps others: a list, a map by broker or namespace, a recorded line."""
    outline = chunk.outline
    if isinstance(outline, list):
        for at, part in enumerate(outline, 1):
            position = ", ".join(filter(None, (chunk.source.position, f"item {at}")))
            yield _part(chunk, part, chunk.about, position)
        return
    keys = chunk.keys
    if _NODES in keys:
        yield from _nodes(chunk)
        return
    named = _named(keys, _ABOUT)
    for name in _INSIDE:
        if name in keys and bytes(memoryview(keys[name])[:1]) == b"{":
            part = _part(chunk, keys[name], named or chunk.about, chunk.source.position)
            part.at_ms = next((int(at) for key in _AT_MS if isinstance(at := _plain(keys.get(key)), int)), 0)
            part.before = str(_plain(keys.get("topic")) or "")
            yield part
            return
    if 0 < len(keys) <= _MOST_MAPPED and all(BROKER.fullmatch(n) or NAMESPACE.fullmatch(n) for n in keys):
        for name, part in keys.items():
            yield _part(chunk, part, name, ", ".join(filter(None, (chunk.source.position, name))))


def _nodes(chunk: Chunk) -> Iterator[Chunk]:
    """Yield the nodes of a store as `etcdctl -w json` prints them: path and value in base64."""
    nodes = chunk.value[_NODES]
    for at, node in enumerate(nodes if isinstance(nodes, list) else (), 1):
        source = replace(chunk.source, position=", ".join(filter(None, (chunk.source.position, f"item {at}"))))
        try:
            path, value = (base64.b64decode(node[name], validate=True).decode() for name in ("key", "value"))
        except (KeyError, TypeError, ValueError):
            yield Chunk(source, memoryview(msgspec.json.encode(node)), is_json=True)
            continue
        source = replace(source, command=path)
        yield Chunk(source, memoryview(value.encode()), is_json=value.lstrip()[:1] in ("{", "["))


def _named(keys: dict[str, msgspec.Raw], names: tuple[str, ...]) -> str:
    return next((text for name in names if isinstance(text := _plain(keys.get(name)), str)), "")


def _plain(part: msgspec.Raw | None) -> Any:
    if part is None or len(memoryview(part)) > 10_000:  # noqa: PLR2004 - longer than any name
        return None
    try:
        return msgspec.json.decode(part)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None


def _part(chunk: Chunk, part: msgspec.Raw, about: str, position: str) -> Chunk:
    source = replace(chunk.source, position=position)
    return Chunk(source, memoryview(part), is_json=True, about=about)


def _of_lines(chunk: Chunk) -> Iterator[Piece]:
    """Give each line to the first kind that it matches."""
    by_kind: dict[str, list[str]] = {}
    java: list[dict[str, Any]] = []
    unknown: list[str] = []
    kinds = [kind for kind in KINDS if kind.line is not None]
    for line in configuration.parted(chunk.lines, chunk.source.command):
        found = next((kind for kind in kinds if kind.line is not None and kind.line.fullmatch(line)), None)
        if found is not None:
            by_kind.setdefault(found.name, []).append(line)
        elif (value := value_of(line)) is not None:
            java.append(value)
        elif not _COMMENT.match(line):
            unknown.append(line)
    for kind in kinds:
        if kind.name in by_kind:
            data = memoryview("\n".join(by_kind[kind.name]).encode())
            yield from _read(kind, Chunk(chunk.source, data, is_json=False, before=chunk.before))
    for value in _rows(java):
        data = memoryview(msgspec.json.encode(value))
        yield from pieces_of(
            Chunk(chunk.source, data, is_json=True, before=chunk.before, about=chunk.about), depth=_DEEPEST
        )
    if unknown:
        yield _not_known(chunk.source, unknown, is_all=not by_kind and not java)


def _rows(values: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield objects that Java printed; rows of a table, each an object by its name, as one."""
    table = {
        name: part for value in values if len(value) == 1 for name, part in value.items() if isinstance(part, dict)
    }
    if table:
        yield table
    yield from (value for value in values if not (len(value) == 1 and isinstance(next(iter(value.values())), dict)))


def _not_known(source: Source, lines: list[str], *, is_all: bool) -> NotUsed:
    """Say that lines are of no kind; what stands in them is not repeated, because it may be a secret."""
    what = f"{count(len(lines), 'line')} of an unknown kind{'' if is_all else ' among the rest'}"
    if all(map(_TEMPLATE.fullmatch, lines)):
        what = f"{count(len(lines), 'line')} of a template, which decides what stands there; use what it writes"
    which, is_used = _asked(source) if is_all else ("", False)
    if which and is_used:
        what = f"{count(len(lines), 'line')} that {which} does not print; save its answer unchanged"
    elif which:
        what = f"the answer to {which}, which the planner does not use ({count(len(lines), 'line')})"
    return NotUsed(source=source, why=what, letters=letters_of(lines))


def _asked(source: Source) -> tuple[str, bool]:
    """Return the command of `pulsar-admin` above an answer, empty where there is none, and whether it is read."""
    found = _ASKED.search(source.command)
    return (f"{found[1]} {found[2]}", found[2] in _USED.get(found[1], ())) if found else ("", False)
