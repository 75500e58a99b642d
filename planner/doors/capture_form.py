"""Writes pieces as the answers of a raw capture, which is the one form that becomes a snapshot."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote

from planner.cluster.pulsar_json import SYSTEM_TOPICS
from planner.formats.raw_capture.answers import INDEX
from planner.formats.raw_capture.metadata_store import DUMP

TOPICS: Final = "system-topics"
"""Stem of the file with messages of system topics."""
_OK: Final = 200
_ADMIN: Final = "/admin/v2"


@dataclass
class CaptureForm:
    """The files of a raw capture that grows.

    Attributes:
        cluster: Name of the cluster.
        at_ms: Moment of all answers, ms since 1970.
        files: Content by name, without the index.
    """

    cluster: str
    at_ms: int
    files: dict[str, bytes] = field(default_factory=dict)
    _index: list[Mapping[str, Any]] = field(default_factory=list)

    def finished(self) -> Mapping[str, bytes]:
        """Return the files with their index."""
        return {**self.files, INDEX: json.dumps(self._index).encode()}

    def add(self, name: str, content: bytes | str, path: str, broker: str = "") -> None:
        """Take an answer as it is.

        Args:
            name: Name of the file.
            content: The answer.
            path: What was asked, below the address.
            broker: Who was asked; empty for any broker.
        """
        self.files[name] = content if isinstance(content, bytes) else content.encode()
        asked = f"http://{broker}" if broker else ""
        line = {"file": name, "path": path, "asked": asked, "status": _OK, "time_ms": self.at_ms or None}
        self._index.append(line)

    def add_json(self, stem: str, value: Any, path: str, broker: str = "") -> None:
        """Take an answer in JSON."""
        self.add(f"{stem}.json", json.dumps(value), path, broker)

    def brokers(self, names: "list[str]") -> None:
        """Take the list of brokers."""
        self.add_json("brokers", names, f"{_ADMIN}/brokers/{quote(self.cluster)}")

    def owned(self, tag: str, broker: str, bundles: "list[str]") -> None:
        """Take the bundles of a broker."""
        path = f"{_ADMIN}/brokers/{quote(self.cluster)}/{quote(broker)}/ownedNamespaces"
        self.add_json(f"owned.{tag}", {key: {} for key in bundles}, path, broker)

    def of_broker(self, stem: str, tag: str, broker: str, value: Any, path: str) -> None:
        """Take an answer of a broker about itself."""
        self.add_json(f"{stem}.{tag}", value, f"{_ADMIN}{path}", broker)

    def of_namespace(self, stem: str, number: int, namespace: str, value: Any, below: str = "") -> None:
        """Take an answer about a namespace; one that is a text is no JSON."""
        path = f"{_ADMIN}/namespaces/{quote(namespace)}{below}"
        if isinstance(value, str):
            self.add(f"{stem}.n{number}.txt", value, path)
        else:
            self.add_json(f"{stem}.n{number}", value, path)

    def dispatch_limit(self, number: int, kind: str, target: str, rate: Any) -> None:
        """Take a dispatch limit of a namespace or topic."""
        field = "dispatchRate" if kind == "dispatch" else f"{kind}DispatchRate"
        domain, is_topic, topic = target.partition("://")
        path = f"{_ADMIN}/{domain}/{quote(topic)}" if is_topic else f"{_ADMIN}/namespaces/{quote(target)}"
        self.add_json(f"limit.{number}", rate, f"{path}/{field}")

    def topics(self, number: int, namespace: str, names: "list[str]", *, are_partitioned: bool) -> None:
        """Take the names of topics of a namespace."""
        below = "/partitioned" if are_partitioned else ""
        stem = "partitioned-topics" if are_partitioned else "persistent-topics"
        self.add_json(f"{stem}.n{number}", names, f"{_ADMIN}/persistent/{quote(namespace)}{below}")

    def of_cluster(self, stem: str, value: Any, below: str) -> None:
        """Take an answer about the cluster."""
        self.add_json(stem, value, f"{_ADMIN}/clusters/{quote(self.cluster)}/{below}")

    def metadata_store(self, nodes: Mapping[str, str]) -> None:
        """Take nodes of the metadata store, by path."""
        self.add_json(DUMP, [{"path": path, "data": text} for path, text in nodes.items()], " ".join(nodes)[:1_000])

    def system_topics(self, messages: Mapping[str, "list[Mapping[str, Any]]"]) -> None:
        """Take messages of the system topics of the extensible load manager, by the name in `SYSTEM_TOPICS`."""
        topics = {f"non-persistent://pulsar/system/{SYSTEM_TOPICS[name]}": rows for name, rows in messages.items()}
        self.add_json(TOPICS, {"topics": topics}, "")
