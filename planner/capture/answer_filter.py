"""Filters answers before they are stored: settings without passwords, and only the namespaces that were asked for."""

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from planner.capture.catalogue import KEPT_CONFIGURATION
from planner.cluster.errors import FormatError
from planner.formats.encoding import parse_json

_KEYED_BY_NAMESPACE = ("owned", "topics")
_REPORT_BUNDLES = ("lastStats",)
_REPORT_LISTS = ("bundles", "lastBundleGains", "lastBundleLosses")


class NamespaceFilter:
    """Which namespaces are wanted: patterns `tenant/namespace`, with `*` for any text; none for all."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self.patterns = tuple(patterns)
        texts = ["".join(".*" if c == "*" else re.escape(c) for c in p) for p in self.patterns]
        self._any = re.compile("|".join(f"(?:{text})" for text in texts))

    def __bool__(self) -> bool:
        return bool(self.patterns)

    def wants(self, namespace: str) -> bool:
        """Say whether a namespace is wanted."""
        return not self.patterns or self._any.fullmatch(namespace) is not None

    def wants_bundle(self, name: str) -> bool:
        """Say whether a bundle, `tenant/namespace/range`, is wanted."""
        return self.wants(name.rpartition("/")[0])

    @property
    def tenants(self) -> tuple[str, ...] | None:
        """The tenants, when none is left open."""
        names = dict.fromkeys(pattern.partition("/")[0] for pattern in self.patterns)
        return tuple(names) if names and not any("*" in name for name in names) else None

    def named(self, tenant: str | None = None) -> tuple[str, ...]:
        """Return the namespaces that are named without a wildcard, of one tenant or of all."""
        plain = (p for p in self.patterns if "*" not in p)
        return tuple(p for p in plain if tenant is None or p.partition("/")[0] == tenant)

    def names_all(self, tenant: str) -> bool:
        """Say whether every namespace wanted of a tenant is named without a wildcard."""
        mine = [p for p in self.patterns if p.partition("/")[0] == tenant or "*" in p.partition("/")[0]]
        return bool(mine) and not any("*" in p for p in mine)


def only_settings(data: bytes, file: str) -> bytes:
    """Return a configuration with the settings that the planner knows, and nothing else.

    Raises:
        FormatError: It is no JSON object.
    """
    value = parse_json(data, file)
    if not isinstance(value, dict):
        raise FormatError("The answer is not an object.", where=file, remedy="Use the admin address of a broker.")
    return json.dumps({name: value[name] for name in value if name in KEPT_CONFIGURATION}, indent=1).encode()


def only_namespaces(name: str, data: bytes, wanted: NamespaceFilter) -> bytes:
    """Return an answer about many namespaces, to the request named, with those that are wanted.

    Raises:
        FormatError: It is no JSON.
    """
    if name == "prometheus":
        return _lines(data, wanted)
    value = parse_json(data, name)
    if name == "metrics":
        kept: Any = [g for g in value if _of_metrics(g, wanted)] if isinstance(value, list) else value
    elif name == "load-report" and isinstance(value, dict):
        kept = value | {key: _keys(value.get(key), wanted.wants_bundle) for key in _REPORT_BUNDLES if key in value}
        for key in _REPORT_LISTS:
            if isinstance(names := value.get(key), list):
                kept[key] = [n for n in names if isinstance(n, str) and wanted.wants_bundle(n)]
    elif name in _KEYED_BY_NAMESPACE:
        kept = _keys(value, wanted.wants if name == "topics" else wanted.wants_bundle)
    else:
        kept = value
    return json.dumps(kept, ensure_ascii=False).encode()


def _keys(value: Any, wants: Callable[[str], bool]) -> Any:
    return {key: item for key, item in value.items() if wants(key)} if isinstance(value, dict) else value


def _of_metrics(group: Any, wanted: NamespaceFilter) -> bool:
    labels = group.get("dimensions") if isinstance(group, dict) else None
    if not isinstance(labels, dict):
        return True
    bundle, namespace = labels.get("bundle"), labels.get("namespace")
    if isinstance(bundle, str):
        return wanted.wants_bundle(bundle)
    return wanted.wants(namespace) if isinstance(namespace, str) else True


_LABEL = re.compile(rb'[{,](bundle|namespace)="([^"]*)"')


def _lines(data: bytes, wanted: NamespaceFilter) -> bytes:
    kept = []
    for line in data.splitlines(keepends=True):
        label = _LABEL.search(line)
        if label is not None:
            text = label[2].decode("utf-8", "replace")
            if not (wanted.wants(text) if label[1] == b"namespace" else wanted.wants_bundle(text)):
                continue
        kept.append(line)
    return b"".join(kept)
