"""The dump of the metadata store in a raw capture: `zookeeper.json`, a list of nodes with their path and text.

The file has this name whatever store it is of; the paths are those of Pulsar, the same in every store.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from planner.cluster.errors import FormatError
from planner.formats.encoding import parse_json
from planner.formats.raw_capture.answers import Answers

DUMP = "zookeeper"
"""Name of the dump without ending, also in the index as its request."""

_CLOCKS_MS = 10_000
_LAST_MS = 253_402_300_800_000


@dataclass(frozen=True)
class MetadataStore:
    """Nodes of the metadata store.

    Attributes:
        nodes: Text of each node by its path.
        created_ms: When each node was made, ms since 1970, where the dump says so.
        changed_ms: When it was written last, likewise.
        answers: Where warnings go.
    """

    nodes: Mapping[str, str]
    created_ms: Mapping[str, int]
    changed_ms: Mapping[str, int]
    answers: Answers
    _read: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    def below(self, folder: str) -> Iterator[str]:
        """Yield what follows `folder/` in the path of each node below it."""
        start = f"{folder}/"
        return (path[len(start) :] for path in self.nodes if path.startswith(start))

    def node(self, path: str) -> Mapping[str, Any]:
        """Return a node that holds an object; an empty one when there is none, with a warning when it is unreadable."""
        if path not in self._read:
            self._read[path] = self._parse(path)
        return self._read[path]

    def is_newer(self, path: str, stem: str) -> bool:
        """Say whether a node was written after an answer about the same was asked for, or shortly before.

        A watch reads the nodes at every capture, and asks about policies only now and then.
        """
        return path in self.nodes and self.changed_ms.get(path, 0) > self.answers.time_ms(stem) - _CLOCKS_MS

    def _parse(self, path: str) -> Mapping[str, Any]:
        text = self.nodes.get(path)
        if not text:
            return {}
        try:
            value = parse_json(text, path)
        except FormatError as error:
            self.answers.warn(f"{DUMP}, {path}: {error.what} It was left out.")
            return {}
        return value if isinstance(value, dict) else {}


def read_metadata_store(answers: Answers) -> MetadataStore:
    """Return the nodes of the dump; none when the capture has no dump."""
    dump = answers.json(DUMP, list, "Data that only the metadata store has is missing or estimated.") or []
    whole = [
        node
        for node in dump
        if isinstance(node, dict) and isinstance(node.get("path"), str) and isinstance(node.get("data"), str)
    ]
    created, changed = (
        {node["path"]: at for node in whole if isinstance(at := node.get(key), int) and 0 < at < _LAST_MS}
        for key in ("ctime", "mtime")
    )
    return MetadataStore({node["path"]: node["data"] for node in whole}, created, changed, answers)
