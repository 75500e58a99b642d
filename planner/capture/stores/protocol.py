"""What a capture asks of a metadata store, and what is known of each kind of store."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from planner.capture.answer_filter import NamespaceFilter
from planner.capture.catalogue import STORE_FOLDERS, StoreFolder
from planner.capture.options import CaptureOptions


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
