"""A cluster that can be asked: real servers on loopback that give the answers of a recorded one."""

import contextlib
import json
import socket
import ssl
import struct
import threading
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from planner.capture.options import CaptureOptions, Limits

GOLDENS = Path(__file__).parent.parent / "goldens" / "captures"
RECORDED = ("127.0.0.1:18081", "127.0.0.2:18082", "127.0.0.3:18083")
TENANTS = ["acme", "globex", "public", "pulsar"]

Special = Callable[["Handler"], None]


def recorded(name: str) -> dict[str, bytes]:
    with zipfile.ZipFile(GOLDENS / f"{name}.zip") as archive:
        return {info.filename: archive.read(info) for info in archive.infolist()}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16  # headers and body in one packet
    server: "BrokerServer"

    def do_GET(self) -> None:
        cluster = self.server.cluster
        with cluster.lock:
            cluster.in_flight += 1
            cluster.most_in_flight = max(cluster.most_in_flight, cluster.in_flight)
            cluster.asked.append((self.server.broker, self.command, self.path, dict(self.headers)))
        try:
            self.answer()
        except OSError:
            self.close_connection = True
        finally:
            with cluster.lock:
                cluster.in_flight -= 1

    do_POST = do_GET  # noqa: N815 - the name the library calls

    def answer(self) -> None:
        cluster = self.server.cluster
        path = self.path.partition("?")[0]
        special = cluster.special.get((self.server.broker, path)) or cluster.special.get(("", path))
        if special is not None:
            special(self)
            return
        if cluster.token and self.headers.get("Authorization") != f"Bearer {cluster.token}":
            self.give(401, b'{"reason":"Authentication required"}')
            return
        found = cluster.answers.get((self.server.broker, path), cluster.answers.get(("", path)))
        if found is None:
            self.give(404, b"<html><title>Error 404 Not Found</title></html>", "text/html")
        else:
            self.give(*found)

    def give(self, status: int, body: bytes, kind: str = "application/json", **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's own name
        pass


class BrokerServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, cluster: "Cluster", broker: str) -> None:
        self.cluster = cluster
        self.broker = broker
        super().__init__(("127.0.0.1", 0), Handler)
        if cluster.tls is not None:
            self.socket = cluster.tls.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # a client that hung up, or a handshake that failed, is what some tests are about


class Cluster:
    """Three brokers that answer as recorded ones did.

    Attributes:
        special: What answers a path instead, by recorded broker id (or "" for all) and path.
        asked: Broker, method, path and headers of each request.
    """

    def __init__(self, name: str, *, token: str = "", tls: ssl.SSLContext | None = None) -> None:
        self.token = token
        self.tls = tls
        self.lock = threading.Lock()
        self.in_flight = self.most_in_flight = 0
        self.asked: list[tuple[str, str, str, dict[str, str]]] = []
        self.special: dict[tuple[str, str], Special] = {}
        self.servers = {broker: BrokerServer(self, broker) for broker in RECORDED}
        self.ids = {broker: f"127.0.0.1:{server.server_address[1]}" for broker, server in self.servers.items()}
        self.files = {file: self.renamed(data) for file, data in recorded(name).items()}
        self.answers: dict[tuple[str, str], tuple[int, bytes, str]] = {
            ("", "/admin/v2/tenants"): (200, json.dumps(TENANTS).encode(), "application/json"),
            ("", "/admin/v2/clusters"): (200, b'["planner"]', "application/json"),
            ("", "/admin/v2/brokers"): (200, self.files["brokers.json"], "application/json"),
        }
        for line in json.loads(self.files["index.json"]):
            if line["file"] in self.files and line.get("method") == "GET" and not line.get("query"):
                tags = [line["file"].split(".")[-2]] if ".b" in line["file"] else [""]
                broker = RECORDED[int(tags[0][1:]) - 1] if tags[0][:1] == "b" and tags[0][1:].isdigit() else ""
                kind = line.get("content_type") or "text/plain"
                self.answers[broker, line["path"]] = (line["status"], self.files[line["file"]], kind)
        for server in self.servers.values():
            threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def renamed(self, data: bytes) -> bytes:
        for broker, name in self.ids.items():
            data = data.replace(broker.encode(), name.encode())
        return data

    @property
    def url(self) -> str:
        return self.url_of(RECORDED[0])

    def url_of(self, broker: str) -> str:
        return f"{'https' if self.tls else 'http'}://{self.ids[broker]}"

    def paths(self) -> list[str]:
        return [path for _, _, path, _ in self.asked]

    def stop(self, broker: str) -> None:
        self.servers[broker].shutdown()
        self.servers[broker].server_close()

    def close(self) -> None:
        for broker in RECORDED:
            self.stop(broker)


@pytest.fixture
def start() -> Iterator[Callable[..., Cluster]]:
    """Start clusters that end with the test."""
    started: list[Cluster] = []

    def make(name: str = "modular", **how: Any) -> Cluster:
        started.append(Cluster(name, **how))
        return started[-1]

    yield make
    for cluster in started:
        cluster.close()


@pytest.fixture
def cluster(start: Callable[..., Cluster]) -> Cluster:
    """A cluster with the modular load manager."""
    return start()


@pytest.fixture(autouse=True)
def _no_token_of_mine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PLANNER_PULSAR_TOKEN", raising=False)


@pytest.fixture
def options(tmp_path: Path) -> Callable[..., CaptureOptions]:
    """Return options for a cluster, with short waits."""

    def make(of: Cluster, /, **given: Any) -> CaptureOptions:
        bounds: dict[str, Any] = {"request_s": 30.0, "connect_s": 10.0, "back_off_s": 0.01, "per_second": 2000.0}
        bounds |= {"store_per_second": 1e6}
        bounds |= given.pop("limits", {})
        out = given.pop("out", tmp_path / "capture")
        return CaptureOptions(of.url, out, limits=Limits(**bounds), **given)

    return make


class ZooKeeper:
    """Speaks as much of ZooKeeper's protocol as reading takes, from a dictionary of nodes."""

    def __init__(self, nodes: Mapping[str, str]) -> None:
        self.nodes = {path: data.encode() for path, data in nodes.items()}
        self.children: dict[str, set[str]] = {}
        for path in nodes:
            parts = path.split("/")[1:]
            for i in range(len(parts)):
                self.children.setdefault("/" + "/".join(parts[:i]), set()).add(parts[i])
        self.operations: list[int] = []
        self.logins: list[bytes] = []
        self.forbidden: set[str] = set()
        self.silent = False
        self.written_ms: dict[str, int] = {}
        self.lies: dict[str, bytes] = {}
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"zk:127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self.listener.close()

    def write(self, path: str, data: str) -> None:
        """Write a node, now."""
        self.nodes[path] = data.encode()
        self.written_ms[path] = time.time_ns() // 1_000_000

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        gone = contextlib.suppress(OSError, struct.error, EOFError)
        with gone, connection, connection.makefile("rwb") as stream:
            self._frame(stream)
            if self.silent:
                threading.Event().wait(30)
            self._send(stream, struct.pack(">iiqi16s?", 0, 10_000, 1, 16, b"", False))
            while True:
                frame = self._frame(stream)
                xid, operation = struct.unpack_from(">ii", frame)
                self.operations.append(operation)
                path = frame[12:].split(b"\0")[0].decode(errors="replace")
                if lie := next((self.lies[key] for key in self.lies if path.startswith(key)), b""):
                    stream.write(lie.replace(b"XID!", frame[:4]))
                    stream.flush()
                    continue
                error, body = self._answer(operation, frame[8:])
                self._send(stream, struct.pack(">iqi", xid, 1, error) + body)

    @staticmethod
    def _frame(stream: Any) -> bytes:
        size = stream.read(4)
        if len(size) < 4:
            raise EOFError
        return bytes(stream.read(struct.unpack(">i", size)[0]))

    @staticmethod
    def _send(stream: Any, body: bytes) -> None:
        stream.write(struct.pack(">i", len(body)) + body)
        stream.flush()

    def _answer(self, operation: int, body: bytes) -> tuple[int, bytes]:
        if operation == 100:
            self.logins.append(body)
        if operation not in {4, 8}:
            return 0, b""
        path = body[4 : 4 + struct.unpack_from(">i", body)[0]].decode()
        children = sorted(self.children.get(path, ()))
        data = self.nodes.get(path, b"")
        if path in self.forbidden:
            return -102, b""
        if path not in self.nodes and not children:
            return -101, b""
        if operation == 8:
            names = b"".join(struct.pack(">i", len(name)) + name for name in map(str.encode, children))
            return 0, struct.pack(">i", len(children)) + names
        written_ms = self.written_ms.get(path, 2_000)
        stat = struct.pack(">qqqqiiiqiiq", 1, 1, 1_000, written_ms, 3, 0, 0, 0, len(data), len(children), 1)
        return 0, struct.pack(">i", len(data)) + data + stat


@pytest.fixture
def zookeeper(cluster: Cluster) -> Iterator[ZooKeeper]:
    """The metadata store of the cluster."""
    nodes = {node["path"]: node["data"] for node in json.loads(cluster.files["zookeeper.json"])}
    nodes["/admin/clusters/planner/secret"] = "must not be read"
    store = ZooKeeper(nodes)
    yield store
    store.close()
