"""Settings in YAML: values of Helm charts, ConfigMaps, resources of operators, Compose files."""

import base64
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import yaml

from planner.cluster.errors import FormatError
from planner.cluster.units import MIB
from planner.doors.chunks import Chunk
from planner.doors.kind import LIKELY, MAYBE, NO, SURE, Kind
from planner.doors.pieces import Assumed, NotUsed, Piece
from planner.doors.vocabulary import NAMED, PREFIX, configuration, is_known, is_of_balancer, unprefixed_in
from planner.history.assumed import listed

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MOST_BYTES: Final = 4 * MIB
_MOST_NODES: Final = 500_000
_DEEPEST: Final = 60
_KEY_LINE: Final = re.compile(r"\s*(?:- )?[\"']?[A-Za-z_][\w./-]*[\"']?:(?:\s|$)")
_MARKS: Final = (
    *("configData:", "kind: ConfigMap", "kind: Secret", "kind: PulsarBroker", "environment:", "valuesContent:"),
    PREFIX,
)
_NESTED: Final = frozenset(["valuesContent", "values"])
"""Keys of texts that are YAML themselves: of k3s, and of Argo CD."""
_VALUES: Final = '"configData"'
_FILES: Final = (".conf", ".properties", ".env")
_PROPERTY: Final = re.compile(r"\s*([A-Za-z_][\w.-]*)\s*=\s*(.*?)\s*")
_OTHERS: Final = re.compile(
    r"^(?:.*[-_.])?(?:proxy|proxies|book(?:keeper|ie)s?|zoo(?:keeper|kp)?|autorecovery|recovery|toolset|functions?|"
    r"functions?[-_]?worker|websocket|presto|trino|sql[-_]?worker|bastion|pulsar[-_]?manager|grafana|prometheus)"
    r"(?:[-_.]?[0-9]+)?$",
    re.IGNORECASE,
)
_SUFFIX: Final = re.compile(
    r"(?:[-_](?:config-?map|config|env))?(?:\.(?:ya?ml|conf|properties|env|tpl))*$", re.IGNORECASE
)
"""What follows the name of a component in that of its ConfigMap or file."""
_VARIABLE: Final = re.compile(rf'"{NAMED}='.encode())
_DESCRIBED: Final = re.compile(r"(?m)^Data\n====\n")
_ENTRY: Final = re.compile(r"(?ms)^([\w.-]+):\n----\n(.*?)\s*(?=^[\w.-]+:\n----\n|^BinaryData\n|^Events:|\Z)")
_NAMED: Final = re.compile(rf"(?:name|key|option|line|regexp): *[\"']?\^?{NAMED}\b")
"""A setting whose name is a value: of a list of variables, of a task of Ansible."""
_LINE: Final = "line"
_WITH_VALUES: Final = ("ConfigMap", "Secret")
_HOLDERS: Final = frozenset(["env", "envFrom", "environment", "literals", "configData", "args"])
"""What only a component has, so that its name counts."""
_OF_IMAGES: Final = frozenset(["env", "environment", "literals", "configData", "data"])
"""Under which the variables of a container stand."""
_SHOWN: Final = ("name", "component", "kind")


_SENTENCE: Final = re.compile(r"(?m)^(?!-|\.\.\.)[^\s#:{}\[\]%<@\"'|>][^:{}%<\n]*(?:\n|\Z)")
"""A line that is neither a key nor an item of a list, nor of a template."""


def _recognise(chunk: Chunk) -> int:
    if isinstance(chunk.outline, list):
        return LIKELY if any(_VARIABLE.match(bytes(memoryview(part)[:200])) for part in chunk.outline) else NO
    if chunk.is_json:
        if {"kind", "apiVersion"} <= chunk.keys.keys() or {"Id", "Config"} <= chunk.keys.keys():
            return LIKELY
        return MAYBE if _VALUES in chunk.head else NO
    return SURE if _DESCRIBED.search(chunk.head) else _sure_of_lines(chunk)


def _sure_of_lines(chunk: Chunk) -> int:
    lines = [line for line in chunk.first_lines[:400] if not line.lstrip().startswith("#")]
    found = sum(_KEY_LINE.match(line) is not None for line in lines)
    if not lines or found * 3 < len(lines):
        return NO
    if any(mark in chunk.head for mark in _MARKS):
        return SURE
    names = (line.partition(":")[0].strip(" -\"'") for line in chunk.first_lines)
    return LIKELY if found > 1 and (any(map(is_known, names)) or _NAMED.search(chunk.head)) else NO


def is_other(name: str) -> bool:
    """Say whether a component, resource or file of this name is of something else than brokers."""
    return _OTHERS.match(_SUFFIX.sub("", name)) is not None


def documents_in(text: str, where: str) -> list[Any]:
    """Read YAML; an alias is one object however often it stands there, and each is visited once.

    Raises:
        FormatError: It is too large, or not valid.
    """
    if len(text) > _MOST_BYTES:
        raise FormatError(
            f"The YAML text has more than {_MOST_BYTES >> 20} MiB.", where=where, remedy="Leave out other resources."
        )
    try:
        _check_depth(text, where)
        return list(yaml.load_all(text, Loader=_LOADER))
    except (yaml.YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f", line {mark.line + 1}" if mark is not None else ""
        what = getattr(error, "problem", None) or "a value cannot be read"
        raise FormatError(
            f"Not valid YAML: {str(what)[:120].rstrip('.')}{place}.",
            where=where,
            remedy="Use it after templates are filled in, as `helm template` or `helm get values --all` prints it.",
        ) from error


def _documents(text: str, where: str) -> tuple[list[Any], bool]:
    """Return YAML as `documents_in` does, and whether sentences of people were left out that made it none.

    Raises:
        FormatError: It is not valid without them either.
    """
    try:
        return documents_in(text, where), False
    except FormatError as error:
        without = _SENTENCE.sub("", text)
        if without == text:
            raise
        try:
            return documents_in(without, where), True
        except FormatError:
            raise error from None


def _described(text: str) -> Iterator[Any]:
    """Yield ConfigMaps as `kubectl describe` prints them."""
    for part in re.split(r"(?m)^(?=Name: )", text):
        name = re.match(r"Name:\s+(\S+)", part)
        data = {found[1]: found[2] for found in _ENTRY.finditer(part)}
        yield {"kind": "ConfigMap", "metadata": {"name": name[1] if name else ""}, "data": data}


def _check_depth(text: str, where: str) -> None:
    """Refuse a text whose parts would be built one inside the other without end: the loader ends the process then.

    Raises:
        FormatError: It is nested too deeply, or has too many parts.
    """
    depth = 0
    for number, event in enumerate(yaml.parse(text, Loader=_LOADER)):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST or number > _MOST_NODES:
            what = "is nested too deeply" if depth > _DEEPEST else "has too many parts"
            raise FormatError(f"The YAML text {what}.", where=where, remedy="Leave out other resources.")


def _read(chunk: Chunk) -> Iterator[Piece]:
    if chunk.is_json:
        documents = [chunk.value]
    elif _DESCRIBED.search(chunk.head):
        documents = list(_described(bytes(chunk.data).decode("utf-8", "replace")))
    else:
        documents, has_sentences = _documents("\n".join(chunk.lines), str(chunk.source))
        if has_sentences:
            yield Assumed(source=chunk.source, text=f"{chunk.source}: sentences among the lines of YAML are left out.")
    found = SettingsFound(str(chunk.source))
    for document in documents:
        found.visit(document, (), 0)
    if not found.values and not any(map(is_known, found.elsewhere)):
        why = "YAML without settings of brokers that the planner uses"
        yield NotUsed(source=chunk.source, why=why, is_expected=not found.others)
        return
    if found.others:
        why = f"settings of {listed(found.others)} are not those of brokers"
        yield NotUsed(source=chunk.source, why=why, is_expected=True)
    if missing := found.missing:
        why = f"left out: {listed(missing)}. The text names only where the values are; add the ConfigMap or Secret"
        yield NotUsed(source=chunk.source, why=why)
    if found.differing:
        why = f"brokers differ in {listed(found.differing)}; the first one counts"
        yield NotUsed(source=chunk.source, why=why)
    if found.values:
        yield configuration(found.values.items(), chunk.source, "file", unprefixed=found.unprefixed)


class SettingsFound:
    """Settings of brokers in a document.

    Attributes:
        values: The settings, the first value of each.
        differing: Those that have several values.
        others: Components that have settings of their own.
        elsewhere: Settings whose value is in a ConfigMap or Secret, and those of which all values are variables.
    """

    def __init__(self, where: str) -> None:
        self.values: dict[str, Any] = {}
        self.differing: dict[str, None] = {}
        self.others: dict[str, None] = {}
        self.elsewhere: dict[str, None] = {}
        self._bare: dict[str, None] = {}
        self._prefixed: set[str] = set()
        self._there: set[str] = set()
        self._where = where
        self._seen: set[int] = set()
        self._kept: list[Any] = []

    @property
    def unprefixed(self) -> list[str]:
        """Variables that images ignore, as they lack the prefix."""
        return [name for name in self._bare if name not in self._prefixed]

    @property
    def missing(self) -> list[str]:
        """Settings that are only named, and ConfigMaps and Secrets that the document does not hold."""
        return [name for name in self.elsewhere if name not in self.values and name not in self._there]

    def visit(self, node: Any, path: tuple[str, ...], depth: int) -> None:
        """Look for settings in a part of a document.

        Raises:
            FormatError: It has more parts than any.
        """
        if not isinstance(node, dict | list) or id(node) in self._seen or depth > _DEEPEST:
            return
        self._seen.add(id(node))
        self._kept.append(node)  # so that no other one gets its id
        if len(self._seen) > _MOST_NODES:
            raise FormatError("The YAML text has too many parts.", where=self._where, remedy="Leave out the others.")
        if isinstance(node, list):
            self._take(_of_list(node), path)
            self._note(node, path)
            for tree in _of_dotted(node):
                self.visit(tree, path, depth + 1)
            for item in node:
                self.visit(item, path, depth + 1)
            return
        names = (*path, *_called(node))
        if node.get("kind") in _WITH_VALUES:
            self._there.update(names)
        node = _unsealed(node)
        self._take(node, names)
        for key, value in node.items():
            self._visit_part(str(key), value, (*names, str(key)), depth + 1)

    def _visit_part(self, key: str, value: Any, path: tuple[str, ...], depth: int) -> None:
        if isinstance(value, str) and key in _NESTED:
            for document in documents_in(value, self._where):
                self.visit(document, path, depth)
        elif isinstance(value, str) and (key == _LINE or key.endswith(_FILES)):
            self._take(dict(_properties(value)), path, is_file=True)
        else:
            self.visit(value, path, depth)

    def _take(self, given: Mapping[Any, Any], path: tuple[str, ...], *, is_file: bool = False) -> None:
        plain = {str(name): value for name, value in given.items() if _is_plain(value)}
        if not any(map(is_known, plain)):
            return
        if other := next((name for name in reversed(path) if is_other(name)), ""):
            self.others[other] = None
            return
        if not is_file and not _OF_IMAGES.isdisjoint(path):
            self._bare |= dict.fromkeys(unprefixed_in(plain))
        with_prefix = {name.removeprefix(PREFIX) for name in plain if name.startswith(PREFIX)}
        self._prefixed |= with_prefix
        prefixed = bool(with_prefix)
        # Images write those with the prefix last, and the first value counts here.
        given_here: dict[str, Any] = {}
        for name in sorted(plain, key=lambda one: not one.startswith(PREFIX)):
            if not prefixed or name.startswith(PREFIX) or is_known(name) or is_of_balancer(name):
                given_here.setdefault(name.removeprefix(PREFIX), plain[name])
        for setting, value in given_here.items():
            if self.values.setdefault(setting, value) != value and is_known(setting):
                self.differing[setting] = None

    def _note(self, items: list[Any], path: tuple[str, ...]) -> None:
        """Take note of variables of brokers whose value is in another place."""
        if any(is_other(name) for name in path):
            return
        for item in items:
            if not isinstance(item, dict):
                continue
            name = str(item.get("name", "")).removeprefix(PREFIX)
            if isinstance(item.get("valueFrom"), dict) and is_known(name):
                self.elsewhere[name] = None
            for held in (item.get(kind) for kind in ("configMapRef", "secretRef")):
                if isinstance(held, dict) and isinstance(held.get("name"), str):
                    self.elsewhere[held["name"]] = None


def _is_plain(value: Any) -> bool:
    """Say whether something may be the value of a setting: a list may be, of texts."""
    return all(isinstance(one, str) for one in value) if isinstance(value, list) else not isinstance(value, dict)


def _unsealed(node: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """Return a Secret with its data as text, which it holds in base64; another part of a document as it is."""
    data = node.get("data")
    if node.get("kind") != "Secret" or not isinstance(data, dict):
        return node
    return {**node, "data": {name: _decoded(value) for name, value in data.items()}}


def _decoded(value: Any) -> Any:
    try:
        return base64.b64decode(value, validate=True).decode() if isinstance(value, str) else value
    except ValueError:
        return value


def _called(node: Mapping[Any, Any]) -> Iterator[str]:
    """Yield what a resource is called, and of which component it is."""
    if isinstance(node.get("name"), str) and _HOLDERS & node.keys():
        yield node["name"]
    if not {"kind", "metadata"} <= node.keys():
        return
    metadata = node["metadata"] if isinstance(node["metadata"], dict) else {}
    labels = metadata.get("labels")
    for given in (metadata, labels if isinstance(labels, dict) else {}):
        yield from (str(given[name]) for name in _SHOWN if isinstance(given.get(name), str))


_NAMES: Final = ("name", "key", "option")
"""What the name of a variable, or of a setting, stands under in a list."""


def _of_list(items: list[Any]) -> dict[str, Any]:
    """Return the variables of a list, written `NAME=value` or as name and value."""
    found: dict[str, Any] = {}
    for item in items:
        if isinstance(item, str) and (match := _PROPERTY.fullmatch(item)):
            found[match[1]] = match[2]
        elif isinstance(item, dict) and "value" in item:
            named = [given for key in _NAMES if isinstance(given := item.get(key), str)]
            found |= dict.fromkeys(named[:1], item["value"])
    return found


def _of_dotted(items: list[Any]) -> Iterator[dict[str, Any]]:
    """Yield the parameters of a chart in a list, whose names are paths: `broker.configData.NAME`."""
    for item in items:
        name = item.get("name") if isinstance(item, dict) else None
        if isinstance(name, str) and "." in name and "value" in item:
            parts = name.split(".")
            tree: dict[str, Any] = {parts[-1]: item["value"]}
            for part in reversed(parts[:-1]):
                tree = {part: tree}
            yield tree


def _properties(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        if not line.lstrip().startswith("#") and (match := _PROPERTY.fullmatch(line)):
            yield match[1], match[2]


KIND = Kind("settings in YAML", "helm get values --all RELEASE", _recognise, _read)
