"""Settings in Terraform: `helm_release` with `set` and `values`, and namespaces of Pulsar's provider; HCL and state."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

from planner.cluster.names import DISPATCH_THROTTLING_RATE_IN_BYTE, DISPATCH_THROTTLING_RATE_IN_MSG
from planner.doors.chunks import Chunk
from planner.doors.kind import NO, SURE, Kind
from planner.doors.kinds.manifests import SettingsFound, documents_in
from planner.doors.pieces import AntiAffinityGroup, Configuration, DispatchLimit, NotUsed, Piece
from planner.doors.vocabulary import NAMED, PREFIX, configuration, is_known
from planner.doors.words import NAMESPACE
from planner.history.assumed import listed

_BLOCK: Final = re.compile(
    r'(?m)^(?:resource|module|data|provider|locals|terraform|variable|output|inputs|job|group)\b(?:\s+"[^"\n]+"){0,2}'
    r"\s*(?:=\s*)?\{|^\s*[a-z]\w*\s*=\s*\{\s*$"
)
"""A block of Terraform, Terragrunt or Nomad, or a map as files of variables have it."""
_OURS: Final = re.compile(
    rf'(?m)^\s*resource\s+"(?:helm_release|pulsar_\w+)"|^\s*"?{NAMED}"?\s*=|[\s{{(]name\s*=\s*"(?:[\w-]+\.)*{NAMED}"'
)
_OF_JSON: Final = re.compile(rf'"(?:helm_release|pulsar_namespace)"|"(?:[\w-]+\.)*{NAMED}"')
_ROOTS: Final = frozenset(["resource", "module", "locals", "variable", "provider", "terraform", "data", "output", "//"])
_HEREDOC: Final = re.compile(r"<<-?\s*([A-Za-z_]\w*)\s*$")
_TOKEN: Final = re.compile(
    r'(?P<text>"(?:[^"\\]|\\.)*")|(?P<open>[\[{(])|(?P<close>[\]})])|(?P<sign>[=:,])|(?P<word>[^\s\[\]{}()=:,"]+)'
)
_COMMENT: Final = re.compile(r"(?s)/\*.*?\*/")
_LINE_COMMENT: Final = re.compile(r'^((?:[^"#/]|"(?:[^"\\]|\\.)*"|/(?!/))*)(?:#|//).*$')
_UNKNOWN: Final = re.compile(r"\$\{")
_LITERAL: Final = re.compile(r"true|false|null|-?[0-9.]+(?:[eE][-+]?[0-9]+)?")
_STATE: Final = frozenset(["terraform_version", "resources"])
_SHOWN: Final = frozenset(["format_version", "values"])
_PLANNED: Final = frozenset(["format_version", "planned_values"])
_RATES: Final = {
    "dispatch_msg_throttling_rate": DISPATCH_THROTTLING_RATE_IN_MSG,
    "dispatch_byte_throttling_rate": DISPATCH_THROTTLING_RATE_IN_BYTE,
    "rate_period_seconds": "ratePeriodInSecond",
}
_SETS: Final = ("set", "set_list", "set_sensitive")
_HANDS_ON: Final = ("yamlencode", "jsonencode", "tostring", "tomap", "tolist", "toset", "sensitive", "nonsensitive")
"""Functions whose value is the one they are given, in another type."""
_MOST_DEEP: Final = 60


def _recognise(chunk: Chunk) -> int:
    keys = chunk.keys.keys()
    if chunk.is_json:
        is_written = keys and keys <= _ROOTS and _OF_JSON.search(chunk.head)
        return SURE if is_written or keys >= _STATE or keys >= _SHOWN or keys >= _PLANNED else NO
    return SURE if _OURS.search(chunk.head) and _BLOCK.search(chunk.head) else NO


def _read(chunk: Chunk) -> Iterator[Piece]:
    if not chunk.is_json:
        yield from pieces_of_text(chunk, bytes(chunk.data).decode("utf-8", "replace"))
        return
    value = chunk.value
    if value.keys() >= _PLANNED:
        prior = value.get("prior_state")
        yield from before_and_after(_pieces_of(chunk, prior), _pieces_of(chunk, value["planned_values"]))
    else:
        yield from _pieces_of(chunk, value)


def pieces_of_text(chunk: Chunk, text: str) -> Iterator[Piece]:
    """Yield what a text in HCL says."""
    reader = _Reader(text)
    if reader.is_truncated:
        yield NotUsed(source=chunk.source, why="the text ends inside a block, so the rest is missing")
    yield from _pieces_of(chunk, reader.tree, reader.unknown)


def before_and_after(before: Iterable[Piece], after: Iterable[Piece]) -> Iterator[Piece]:
    """Yield the pieces of a plan: the settings of both sides where they differ, and of the rest what is planned."""
    old = [one for one in before if isinstance(one, Configuration)]
    new = list(after)
    planned = [one for one in new if isinstance(one, Configuration)]
    if not old or [one.values for one in old] == [one.values for one in planned]:
        yield from new
        return
    for name, found in (("before", old), ("after", planned)):
        for one in found:
            yield replace(one, source=replace(one.source, file=f"{one.source.file} ({name})"))
    yield from (one for one in new if not isinstance(one, Configuration))


def _pieces_of(chunk: Chunk, tree: Any, unknown: Iterable[str] = ()) -> Iterator[Piece]:
    found = _Found(chunk)
    found.unknown |= dict.fromkeys(unknown)
    found.visit(tree, 0)
    found.take_maps(tree)
    if found.settings.values:
        settings = found.settings
        yield configuration(settings.values.items(), chunk.source, "file", unprefixed=settings.unprefixed)
    yield from found.pieces
    if found.unknown:
        why = f"{listed(found.unknown)} left out: variables, whose values stand elsewhere; use terraform show -json"
        yield NotUsed(source=chunk.source, why=why)
    if found.odd:
        yield NotUsed(source=chunk.source, why=f"{listed(found.odd)} left out, which cannot be read")
    if found.settings.differing:
        why = f"{listed(found.settings.differing)} are set several times; the one counts that Helm takes"
        yield NotUsed(source=chunk.source, why=why)
    if not (found.settings.values or found.pieces or found.unknown):
        yield NotUsed(source=chunk.source, why="Terraform without settings of brokers that the planner uses")


class _Reader:
    """Reads HCL as far as it holds values: a block or map is an object, and blocks of one name are a list.

    Attributes:
        tree: What it holds, as JSON would have it; an expression is a text that begins with `${`.
        is_truncated: Whether it ends inside a block.
        unknown: What stands elsewhere and belongs to what it holds.
    """

    def __init__(self, text: str) -> None:
        self._heredocs: list[str] = []
        self._tokens = list(_TOKEN.finditer(self._plain(_COMMENT.sub("", text))))
        self._at = 0
        self.is_truncated = False
        self.unknown: list[str] = []
        self.tree = self._body("", 0)

    def _plain(self, text: str) -> str:
        """Return the text without comments, with a mark for each text that goes over several lines."""
        kept: list[str] = []
        lines = iter(text.split("\n"))
        for line in lines:
            if (found := _HEREDOC.search(line)) is None:
                comment = _LINE_COMMENT.match(line)
                kept.append(comment[1] if comment else line)
                continue
            inside: list[str] = []
            for one in lines:
                if one.strip().rstrip(",") == found[1]:  # what Terraform shows has a comma there
                    break
                inside.append(one)
            kept.append(f'{line[: found.start()]}"\x00{len(self._heredocs)}",')
            self._heredocs.append("\n".join(inside))
        return "\n".join(kept)

    def _next(self) -> re.Match[str] | None:
        token = self._tokens[self._at] if self._at < len(self._tokens) else None
        self._at += 1
        return token

    def _text(self, token: re.Match[str]) -> str:
        if token["text"] is None:
            return token[0]
        inside = token["text"][1:-1]
        if inside.startswith("\x00"):
            return self._heredocs[int(inside[1:])]
        return inside.replace('\\"', '"').replace("\\\\", "\\")

    def _body(self, close: str, depth: int) -> dict[str, Any]:
        """Read entries up to a sign; labels of a block are its path, outermost first."""
        made: dict[str, Any] = {}
        names: list[str] = []
        while (token := self._next()) is not None and token[0] != close:
            if token["sign"] in ("=", ":"):
                value = self._value(depth)
                if names:
                    made[names[-1]] = value
                names = []
            elif token[0] == "{" and names and depth < _MOST_DEEP:
                body = self._body("}", depth + 1)
                for name in reversed(names[1:]):
                    body = {name: body}
                made.setdefault(names[0], []).append(body) if isinstance(made.get(names[0], []), list) else None
                names = []
            elif token["text"] is not None or token["word"] is not None:
                names.append(self._text(token))
            else:
                names = []
        self.is_truncated = self.is_truncated or (token is None and bool(close))
        return made

    def _value(self, depth: int) -> Any:
        token = self._next()
        if token is None or depth >= _MOST_DEEP:
            return None
        if token[0] == "{":
            return self._body("}", depth + 1)
        if token[0] == "[":
            return self._values("]", depth + 1)
        text = self._text(token)
        following = self._tokens[self._at] if self._at < len(self._tokens) else None
        if token["word"] is not None and following is not None and following[0] == "(":
            self._at += 1
            return self._called(text, self._values(")", depth + 1))
        if token["word"] is not None and not _LITERAL.fullmatch(text):
            return f"${{{text}}}"  # the name of something else
        return None if text == "null" and token["word"] is not None else text

    def _called(self, function: str, given: list[Any]) -> Any:
        """Return what a function makes of its values, as far as it hands them on."""
        if function in _HANDS_ON and given:
            return given[0]
        known = [one for one in given if isinstance(one, dict)]
        if function != "merge" or not known:
            return f"${{{function}()}}"
        if len(known) < len(given):
            self.unknown.append("a part of merge()")
        return {name: value for part in known for name, value in part.items()}

    def _values(self, end: str, depth: int) -> list[Any]:
        """Return the values up to a sign, which is taken as well."""
        found: list[Any] = []
        while (token := self._peek()) is not None and token[0] != end:
            if token["sign"]:
                self._at += 1
            else:
                found.append(self._value(depth))
        self._at += 1
        return found

    def _peek(self) -> re.Match[str] | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None


@dataclass
class _Found:
    """What a tree of Terraform says of brokers and namespaces."""

    chunk: Chunk
    pieces: list[Piece] = field(default_factory=list)
    unknown: dict[str, None] = field(default_factory=dict)
    odd: dict[str, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.settings = SettingsFound(str(self.chunk.source))

    def visit(self, node: Any, depth: int) -> None:
        """Look for settings and namespaces in a part of a tree."""
        if depth > _MOST_DEEP:
            return
        if isinstance(node, list):
            for one in node:
                self.visit(one, depth + 1)
            return
        if not isinstance(node, dict):
            return
        for key in _SETS:
            for one in reversed(_listed(node.get(key))):  # later ones count, and they count above values
                self._take_set(one)
        for text in reversed(_listed(node.get("values"))):
            self._take_values(text)
        self._take_namespace(node)
        for key, value in node.items():
            if key not in _SETS:
                self.visit(value, depth + 1)

    def take_maps(self, tree: Any) -> None:
        """Take settings that are keys of a map, wherever it stands."""
        self.settings.visit(self._without_unknown(tree, 0), (), 0)

    def _take_set(self, given: Any) -> None:
        name, value = (given.get("name"), given.get("value")) if isinstance(given, dict) else (None, None)
        if not isinstance(name, str) or not isinstance(value, str | int | float):
            self.odd |= {"set": None} if given != {} else {}
            return
        path = name.replace("\\.", "\x00").split(".")
        setting = path[-1].replace("\x00", ".")
        tree: Any = {setting: self._known(setting, value)}
        for part in reversed(path[:-1]):
            tree = {part.replace("\x00", "."): tree}
        self.settings.visit(self._without_unknown(tree, 0), (), 0)

    def _take_values(self, given: Any) -> None:
        if isinstance(given, str) and not _UNKNOWN.search(given):
            for document in documents_in(given, str(self.chunk.source)):
                self.settings.visit(document, (), 0)
                if not isinstance(document, dict | None):
                    self.odd["values"] = None
        elif isinstance(given, str):
            self.unknown["values"] = None
        elif isinstance(given, dict):
            self.take_maps(given)
        else:
            self.odd["values"] = None

    def _without_unknown(self, node: Any, depth: int) -> Any:
        if isinstance(node, list):
            return [self._without_unknown(one, depth + 1) for one in node] if depth < _MOST_DEEP else []
        if isinstance(node, dict) and depth < _MOST_DEEP:
            known = {key: self._without_unknown(self._known(key, one), depth + 1) for key, one in node.items()}
            return {key: one for key, one in known.items() if one is not None}
        return node

    def _known(self, name: str, value: Any) -> Any:
        if isinstance(value, str) and _UNKNOWN.search(value):
            if is_known(name.removeprefix(PREFIX)):
                self.unknown[name] = None
            return None
        return value

    def _take_namespace(self, node: dict[str, Any]) -> None:
        """Take the limits and the group of a namespace of Pulsar's provider."""
        target = f"{node.get('tenant')}/{node.get('namespace')}"
        rates = [one for one in _listed(node.get("dispatch_rate")) if isinstance(one, dict)]
        groups = [one for one in _listed(node.get("namespace_config")) if isinstance(one, dict)]
        if not rates and not any(one.get("anti_affinity") for one in groups):
            return
        if not NAMESPACE.fullmatch(target):
            self.unknown["the name of a namespace"] = None
            return
        for one in rates:
            given = {name: str(one.get(key, "")) for key, name in _RATES.items()}
            if all(text.lstrip("-").isdecimal() for text in given.values()):
                rate = {name: int(text) for name, text in given.items()}
                source = self.chunk.source
                self.pieces.append(DispatchLimit(source=source, kind="dispatch", target=target, rate=rate))
            else:
                self.unknown[f"the dispatch rate of {target}"] = None
        for one in groups:
            if group := self._known("anti_affinity", str(one.get("anti_affinity") or "")):
                self.pieces.append(AntiAffinityGroup(source=self.chunk.source, group=group, namespace=target))


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


KIND = Kind("Terraform", "terraform show -json", _recognise, _read)
