"""A raw capture: files with what a cluster answered, and an index that says who was asked what."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

from planner.formats.encoding import parse_json
from planner.model.errors import FormatError

__all__ = ["INDEX", "RawAnswers"]

INDEX = "index.json"

_PER_BROKER = re.compile(r"(?P<kind>[A-Za-z-]+)\.(?P<label>b[0-9]+)\.(?:json|txt)")
_NAMESPACE_PATH = re.compile(r"/admin/v2/namespaces/([^/]+/[^/]+)/?(.*)")
_FIRST_ERROR = 400
_FORBIDDEN = (401, 403)


@dataclass(frozen=True)
class RawAnswers:
    """Answers by file name, read without trust.

    Attributes:
        files: Content by path; folders inside a capture (recorded decisions) are not looked at.
        warnings: What could not be used, one sentence each; grows while the answers are read.
    """

    files: Mapping[str, bytes]
    warnings: list[str] = field(default_factory=list)

    @cached_property
    def index(self) -> tuple[Mapping[str, Any], ...]:
        """The entries of `index.json`.

        Raises:
            FormatError: There is none, or it is not a list of objects with `file`.
        """
        value = parse_json(self.files[INDEX], INDEX) if INDEX in self.files else None
        if not isinstance(value, list) or not all(
            isinstance(e, dict) and isinstance(e.get("file"), str) for e in value
        ):
            raise FormatError(
                "It is not a list of objects with the field 'file'.", where=INDEX, remedy="Capture the cluster again."
            )
        return tuple(value)

    @cached_property
    def entry(self) -> Mapping[str, Mapping[str, Any]]:
        """Entry of the index by file."""
        return {e["file"]: e for e in self.index}

    def warn(self, text: str) -> None:
        """Add a warning once."""
        if text not in self.warnings:
            self.warnings.append(text)

    def json(self, file: str, *, needed: str = "") -> Any:
        """Return an answer, or None when there is none or Pulsar refused; an unreadable one becomes a warning.

        Args:
            file: Its name.
            needed: What is missing without it; then its absence is a warning too.
        """
        status = self.entry.get(file, {}).get("status")
        if isinstance(status, int) and status >= _FIRST_ERROR:
            if status in _FORBIDDEN:
                self.warn(f"{file}: the cluster refused the request (HTTP {status}); give the capture more rights.")
            elif needed:
                self.warn(f"{file}: HTTP {status}. {needed}")
            return None
        data = self.files.get(file)
        if data is None or not data.strip():
            if needed:
                self.warn(f"{file}: no answer. {needed}")
            return None
        try:
            return parse_json(data, file)
        except FormatError as error:
            self.warn(f"{error} {needed}".strip())
            return None

    def text(self, file: str) -> str:
        """Return a text answer, empty when there is none."""
        return self.files.get(file, b"").decode("utf-8", "replace")

    def object(self, file: str, *, needed: str = "") -> Mapping[str, Any]:
        """Return an answer that is an object, empty otherwise."""
        value = self.json(file, needed=needed)
        if value is not None and not isinstance(value, dict):
            self.warn(f"{file}: an object was expected. {needed}".strip())
        return value if isinstance(value, dict) else {}

    @cached_property
    def labels(self) -> Mapping[str, str]:
        """Label in file names (`b1`) of each broker id, from who was asked."""
        found: dict[str, str] = {}
        for entry in self.index:
            match = _PER_BROKER.fullmatch(entry["file"])
            asked = entry.get("asked")
            if match and isinstance(asked, str) and "://" in asked:
                netloc = urlsplit(asked).netloc
                found.setdefault(netloc, match["label"])
        return found

    def of_namespaces(self, suffix: str) -> Iterator[tuple[str, str]]:
        """Yield (namespace, file) of each answer to `/admin/v2/namespaces/{tenant}/{namespace}[/suffix]`."""
        for entry in self.index:
            path = entry.get("path")
            match = _NAMESPACE_PATH.fullmatch(path) if isinstance(path, str) else None
            if match and match[2] == suffix:
                yield match[1], entry["file"]

    @cached_property
    def metadata(self) -> Mapping[str, Any]:
        """Nodes of the metadata store by path, parsed where they hold JSON."""
        value = self.json("zookeeper.json") if "zookeeper.json" in self.files else None
        nodes: dict[str, Any] = {}
        for node in value if isinstance(value, list) else ():
            if not isinstance(node, dict) or not isinstance(node.get("path"), str):
                continue
            data = node.get("data")
            try:
                nodes[node["path"]] = parse_json(data, node["path"]) if isinstance(data, str) and data else None
            except FormatError:
                nodes[node["path"]] = data
        return nodes

    def below(self, prefix: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield (rest of the path, node) of the metadata nodes below a path that hold an object."""
        for path, data in self.metadata.items():
            if path.startswith(prefix) and isinstance(data, dict):
                yield path[len(prefix) :], data

    def times_ms(self) -> list[int]:
        """Return when the answers came, ascending."""
        times = [e.get("time_ms") for e in self.index]
        return sorted(t for t in times if isinstance(t, int) and not isinstance(t, bool) and 0 < t < 1 << 53)
