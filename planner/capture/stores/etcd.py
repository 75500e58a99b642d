"""etcd as the metadata store: keys are read through its own JSON gateway and never written."""

import base64
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from typing import Any, Final

from planner.capture.answer_filter import NamespaceFilter
from planner.capture.catalogue import STORE_FOLDERS, StoreFolder
from planner.capture.credentials import read_store_login, tls_context
from planner.capture.options import CaptureOptions
from planner.capture.stores.protocol import Dump, MetadataStore, StoreKind, node_of, wanted_below
from planner.cluster.errors import CaptureError
from planner.cluster.units import MIB

_ADDRESS = re.compile(r"etcd:(https?://[-\w.\[\]:]+(?:,https?://[-\w.\[\]:]+)*)/?")
_PAGE: Final = 500
"""Keys of one request."""
_ANSWER_BYTES: Final = 64 * MIB
_DENIED: Final = {3, 7, 16}
"""Codes of gRPC: no user or a wrong password (an invalid argument), permission denied, not authenticated."""
_FORBIDDEN: Final = {401, 403}
_DEPTH: Final = 6


class EtcdStore(MetadataStore):
    """Reads etcd; every call has an end.

    Raises:
        CaptureError: None of its addresses answers, or the login is refused.
    """

    def __init__(self, options: CaptureOptions) -> None:
        self._options, self._limits = options, options.limits
        self._deadline = time.monotonic() + options.limits.total_s
        self._next_s = 0.0
        found = _ADDRESS.fullmatch(options.metadata_store)
        self._places = found[1].split(",") if found else []
        import httpx  # noqa: PLC0415 - pages name the kinds of stores, and need no client for that

        self._no_transport = httpx.HTTPError
        secure = any(place.startswith("https:") for place in self._places)
        self._client = httpx.Client(
            verify=tls_context(options.credentials) if secure else False,
            timeout=httpx.Timeout(self._limits.request_s, connect=self._limits.connect_s),
            trust_env=False,
            follow_redirects=False,
        )
        try:
            if options.credentials.store_auth_file is not None:
                self._log_in(read_store_login(options.credentials.store_auth_file))
            self._post("/v3/kv/range", _range(b"/", b"/", 1), "/")
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """See the protocol."""
        self._client.close()

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
        """Yield the nodes of a folder: the key itself, and the keys below it in their order."""
        ranges = [(root.encode(), root.encode() + b"\0")]
        if folder.below:
            ranges.append((f"{root}/".encode(), f"{root}0".encode()))  # 0 is the character after /
        for first, end in ranges:
            for key, kv in self._keys(first, end, root, notes):
                steps = key.count("/") - root.count("/")
                if steps > _DEPTH or not all(wants(part) for part in _parents(root, key)):
                    continue
                facts = {
                    "version": _number(kv, "version") - 1,  # etcd counts from 1, ZooKeeper from 0
                    "ctime": 0,
                    "mtime": 0,
                    "ephemeral": _number(kv, "lease") != 0,
                }
                if node := node_of(key, _bytes(kv.get("value")), folder, notes, facts):
                    yield node

    def _keys(
        self, first: bytes, end: bytes, where: str, notes: dict[str, None]
    ) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield keys and what etcd has of them, from one to another, page by page."""
        seen = 0
        while True:
            answer = self._post("/v3/kv/range", _range(first, end, _PAGE), where)
            if answer is None:
                notes[f"{where}: the metadata store denies access. Use a login that may read it."] = None
                return
            listed = answer.get("kvs") or []
            if not isinstance(listed, list) or not all(isinstance(kv, dict) for kv in listed):
                raise self._no_answer(where, "no keys")
            for kv in listed:
                key = _bytes(kv.get("key"))
                if not first <= key < end:
                    raise self._no_answer(where, "a key that was not asked for")
                seen += 1
                if seen > self._limits.store_nodes:
                    raise self._too_many(where)
                try:
                    yield key.decode(), kv
                except UnicodeDecodeError:
                    notes[f"{where}: a key is not a text that Pulsar writes. It was left out."] = None
            if not answer.get("more") or not listed:
                return
            first = _bytes(listed[-1].get("key")) + b"\0"

    def _log_in(self, login: str) -> None:
        name, _, password = login.partition(":")
        answer = self._post("/v3/auth/authenticate", {"name": name, "password": password}, "the login")
        token = (answer or {}).get("token")
        if not isinstance(token, str) or not token:
            raise CaptureError(
                "etcd refused the login.",
                where=self._options.metadata_store,
                remedy="Check the file of --metadata-store-login (user:password).",
            )
        self._client.headers["Authorization"] = token

    def _post(self, path: str, body: Mapping[str, Any], where: str) -> dict[str, Any] | None:
        """Return an answer of the first address that gives one; None where it is denied.

        Raises:
            CaptureError: No address answers.
        """
        reason = "no address"
        for place in list(self._places):
            self._pace()
            try:
                with self._client.stream("POST", place + path, json=body) as answer:
                    content = bytearray()
                    for piece in answer.iter_bytes():
                        content += piece
                        if len(content) > _ANSWER_BYTES:
                            raise self._no_answer(where, f"more than {_ANSWER_BYTES >> 20} MiB")
                    status = answer.status_code
                found = json.loads(content)
            except self._no_transport as error:
                reason = type(error).__name__
                self._places.append(self._places.pop(0))  # the next call asks another one first
                continue
            except (ValueError, RecursionError):
                reason = f"HTTP {status}, not JSON"
                continue
            if not isinstance(found, dict):
                reason = "not an object"
                continue
            if status in _FORBIDDEN or found.get("code") in _DENIED:
                return None
            if status == HTTPStatus.OK:
                return found
            reason = f"HTTP {status}"
        raise self._no_answer(where, reason)

    def _pace(self) -> None:
        now_s = time.monotonic()
        if now_s > self._deadline:
            raise self._no_answer("all of it", "the time is over")
        if self._next_s > now_s:
            time.sleep(self._next_s - now_s)
        self._next_s = max(now_s, self._next_s) + _PAGE / self._limits.store_per_second

    def _no_answer(self, where: str, reason: str) -> CaptureError:
        return CaptureError(
            f"etcd did not answer ({reason}).",
            where=f"{self._options.metadata_store}, {where}",
            remedy="Check the address and network, or capture without the metadata store.",
        )

    def _too_many(self, where: str) -> CaptureError:
        return CaptureError(
            f"There are more than {self._limits.store_nodes:,} nodes.",
            where=f"{self._options.metadata_store}, {where}",
            remedy="Capture fewer namespaces.",
        )


def _range(first: bytes, end: bytes, limit: int) -> dict[str, Any]:
    return {"key": base64.b64encode(first).decode(), "range_end": base64.b64encode(end).decode(), "limit": limit}


def _bytes(value: object) -> bytes:
    """Return what a text in base64 stands for; empty where it is none."""
    try:
        return base64.b64decode(value, validate=True) if isinstance(value, str) else b""
    except ValueError:
        return b""


def _number(kv: Mapping[str, Any], name: str) -> int:
    """Return a number of a key; the gateway writes 64 bits as text, and leaves zeros out."""
    value = str(kv.get(name, "0"))
    return int(value) if re.fullmatch(r"\d{1,19}", value) else 0


def _parents(root: str, key: str) -> Iterator[str]:
    """Yield a key, and what lies between it and a folder."""
    at = len(root)
    while (at := key.find("/", at + 1)) >= 0:
        yield key[:at]
    if key != root:
        yield key


STORE = StoreKind(
    name="etcd",
    scheme="etcd",
    address=_ADDRESS,
    example="etcd:http://host:2379",
    open=EtcdStore,
)
