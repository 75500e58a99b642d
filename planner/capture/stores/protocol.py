"""What a capture asks of a metadata store, and what is known of each kind of store."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from planner.capture.answer_filter import NamespaceFilter, only_settings
from planner.capture.catalogue import STORE_FOLDERS, StoreFolder
from planner.capture.options import CaptureOptions
from planner.cluster.errors import FormatError
from planner.cluster.units import MIB

_NODE_BYTES = MIB


@dataclass(frozen=True, slots=True)
class Dump:
    """What was read of a metadata store.

    Attributes:
        nodes: `path` and `data` of each node, in the order of `STORE_FOLDERS`.
        notes: What could not be read, one sentence each.
    """

    nodes: tuple[Mapping[str, Any], ...]
    notes: tuple[str, ...]

    def to_json(self) -> bytes:
        """Return the dump as the raw capture reader expects it."""
        return json.dumps(list(self.nodes), ensure_ascii=False).encode()


class MetadataStore(Protocol):
    """Reads a metadata store; nothing is written, and every call has an end."""

    def dump(self, cluster: str, wanted: NamespaceFilter, folders: tuple[StoreFolder, ...] = STORE_FOLDERS) -> Dump:
        """Read the nodes of the load balancer and of the policies.

        Raises:
            CaptureError: There are more nodes than allowed, or it takes too long.
        """
        ...

    def close(self) -> None:
        """End the session, within seconds whatever the other side does."""
        ...


@dataclass(frozen=True, slots=True)
class StoreKind:
    """A kind of metadata store.

    Attributes:
        name: What people call it.
        scheme: How its addresses begin, as Pulsar's `metadataStoreUrl` does.
        address: Matches a whole address.
        example: An address, for messages and forms.
        open: Connects; raises `CaptureError` when the address is none, or nobody answers there.
    """

    name: str
    scheme: str
    address: re.Pattern[str]
    example: str
    open: Callable[[CaptureOptions], MetadataStore]


def wanted_below(root: str, wanted: NamespaceFilter) -> Callable[[str], bool]:
    """Return whether a node below a folder belongs to a namespace that is wanted, or may lead to one."""
    tenants = wanted.tenants

    def wants(path: str) -> bool:
        parts = path[len(root) + 1 :].split("/")
        if len(parts) == 1:
            return tenants is None or parts[0] in tenants
        return wanted.wants("/".join(parts[:2]))

    return wants


def node_of(
    path: str, data: bytes, folder: StoreFolder, notes: dict[str, None], facts: Mapping[str, Any]
) -> Mapping[str, Any] | None:
    """Return a node as a dump keeps it; None where it is empty, or not a text that Pulsar writes, which is noted.

    Args:
        path: Its path.
        data: Its content.
        folder: The folder that it belongs to.
        notes: Where to note what is left out.
        facts: What else the store knows: `version`, `ctime` and `mtime` in ms since 1970 (0 unknown), `ephemeral`.
    """
    if not data:
        return None
    if len(data) > _NODE_BYTES:
        notes[f"{path}: the node is longer than {_NODE_BYTES >> 20} MiB. It was left out."] = None
        return None
    try:
        text = (only_settings(data, path) if folder.only_settings else data).decode()
    except (UnicodeDecodeError, FormatError):
        notes[f"{path}: the node is not a text that Pulsar writes. It was left out."] = None
        return None
    return {"path": path, **facts, "data": text}
