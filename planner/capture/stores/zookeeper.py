"""ZooKeeper as the metadata store: nodes are read and never written."""

import logging
import re
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionDropped, KazooException, NoAuthError, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.retry import KazooRetry

from planner.capture.answer_filter import NamespaceFilter
from planner.capture.catalogue import STORE_FOLDERS, StoreFolder
from planner.capture.credentials import read_store_login
from planner.capture.options import CaptureOptions
from planner.capture.stores.protocol import Dump, MetadataStore, StoreKind, node_of, wanted_below
from planner.cluster.errors import CaptureError

_HOSTS = re.compile(r"zk:(?:/{0,2})([-\w.\[\]:,]+)((?:/[-\w.]+)*)/?")
_DEPTH = 6
_SESSION_S = 10.0
_FRAME_BYTES = 64 << 20
_NO_ANSWER = (OSError, ValueError, LookupError, RuntimeError, struct.error)
_NO_NAMES = {"", ".", ".."}
"""Errors of kazoo about invalid answers."""

logging.getLogger("kazoo").addHandler(logging.NullHandler())


class ZooKeeperStore(MetadataStore):
    """Reads ZooKeeper; every call has an end.

    Raises:
        CaptureError: Nobody answers there.
    """

    def __init__(self, options: CaptureOptions) -> None:
        self._options = options
        self._limits = options.limits
        self._deadline = time.monotonic() + options.limits.total_s
        self._next_s = 0.0
        hosts = _HOSTS.fullmatch(options.metadata_store)
        login = options.credentials.store_auth_file
        self._client = KazooClient(
            hosts="".join(hosts.groups()) if hosts else "",
            timeout=_SESSION_S,
            read_only=True,
            auth_data=[("digest", read_store_login(login))] if login is not None else None,
            connection_retry=KazooRetry(max_tries=self._limits.attempts, max_delay=5.0),
            command_retry=KazooRetry(max_tries=self._limits.attempts, max_delay=5.0),
        )
        _bound_frames(self._client)
        # Not start(), which on a silent server waits for the whole session before it gives up.
        self._client.start_async().wait(self._limits.connect_s * self._limits.attempts)
        if not self._client.connected:
            self.close()
            raise CaptureError(
                "ZooKeeper did not answer.",
                where=options.metadata_store,
                remedy="Check the address and network, or capture without the metadata store.",
            )

    def close(self) -> None:
        """See the protocol."""

        def end() -> None:
            with suppress(Exception):  # the session is over either way
                self._client.stop()
                self._client.close()

        ending = threading.Thread(target=end, daemon=True)
        ending.start()
        ending.join(self._limits.connect_s)

    def dump(self, cluster: str, wanted: NamespaceFilter, folders: tuple[StoreFolder, ...] = STORE_FOLDERS) -> Dump:
        """See the protocol."""
        notes: dict[str, None] = {}
        found: list[Mapping[str, Any]] = []
        for folder in folders:
            path = folder.path.format(cluster=cluster)
            wants = wanted_below(path, wanted) if folder.by_namespace and wanted else (lambda _: True)
            for node in self._read(path, folder, wants, notes):
                found.append(node)
                if len(found) > self._limits.store_nodes:
                    raise self._too_many(path)
        return Dump(tuple(found), tuple(notes))

    def _read(
        self, root: str, folder: StoreFolder, wants: Callable[[str], bool], notes: dict[str, None]
    ) -> Iterator[Mapping[str, Any]]:
        """Yield the nodes of a folder; so many requests are under way at once."""
        waiting: deque[tuple[bool, str]] = deque([(False, root)])
        asked: deque[tuple[bool, str, Any]] = deque()
        while waiting or asked:
            while waiting and len(asked) < self._limits.in_flight:
                asked.append(self._ask(*waiting.popleft()))
            for_children, path, answer = asked.popleft()
            value = self._wait(answer, path, notes)
            if value is None:
                continue
            if for_children:
                names = sorted(name for name in value if name not in _NO_NAMES and "/" not in name)
                waiting.extend((False, child) for name in names if wants(child := f"{path}/{name}"))
                if len(waiting) > self._limits.store_nodes:
                    raise self._too_many(path)
                continue
            if folder.below and path.count("/") - root.count("/") < _DEPTH and value[1].numChildren:
                waiting.append((True, path))
            if node := _node(path, value, folder, notes):
                yield node

    def _ask(self, for_children: bool, path: str) -> tuple[bool, str, Any]:  # noqa: FBT001 - one of two calls
        now_s = time.monotonic()
        if self._next_s > now_s:
            time.sleep(self._next_s - now_s)
        self._next_s = max(now_s, self._next_s) + 1.0 / self._limits.store_per_second
        answer = self._client.get_children_async(path) if for_children else self._client.get_async(path)
        return for_children, path, answer

    def _too_many(self, where: str) -> CaptureError:
        return CaptureError(
            f"There are more than {self._limits.store_nodes:,} nodes.",
            where=f"{self._options.metadata_store}, {where}",
            remedy="Capture fewer namespaces.",
        )

    def _wait(self, answer: Any, path: str, notes: dict[str, None]) -> Any:
        left_s = min(self._limits.request_s, self._deadline - time.monotonic())
        try:
            return answer.get(timeout=max(left_s, 0.001))
        except NoNodeError:
            return None
        except NoAuthError:
            notes[f"{path}: the metadata store denies access. Use a login that may read it."] = None
            return None
        except (KazooTimeoutError, KazooException, *_NO_ANSWER) as error:
            raise CaptureError(
                f"ZooKeeper did not answer ({type(error).__name__}).",
                where=f"{self._options.metadata_store}, {path}",
                remedy="Capture again, or without the metadata store.",
            ) from error


def _bound_frames(client: KazooClient) -> None:
    """Drop the connection when it announces a frame longer than any answer, or sends what is none.

    kazoo itself reads whatever length is announced, and its thread ends with a traceback over the rest.
    """
    connection = client._connection  # noqa: SLF001 - kazoo has no setting for it
    read, read_socket = connection._read, connection._read_socket  # noqa: SLF001

    def bounded(length: int, timeout: float) -> Any:
        if not 0 <= length <= _FRAME_BYTES:
            raise ConnectionDropped(f"a frame of {length} bytes")
        return read(length, timeout)

    def guarded(timeout: float) -> Any:
        try:
            return read_socket(timeout)
        except _NO_ANSWER as error:
            raise ConnectionDropped("which is not an answer") from error

    connection._read, connection._read_socket = bounded, guarded  # noqa: SLF001


def _node(path: str, value: Any, folder: StoreFolder, notes: dict[str, None]) -> Mapping[str, Any] | None:
    data, stat = value
    facts = {
        "version": stat.version,
        "ctime": stat.ctime,
        "mtime": stat.mtime,
        "ephemeral": bool(stat.ephemeralOwner),
    }
    return node_of(path, data, folder, notes, facts)


STORE = StoreKind(
    name="ZooKeeper",
    scheme="zk",
    address=_HOSTS,
    example="zk:host:2181,host:2181/chroot",
    open=ZooKeeperStore,
)
