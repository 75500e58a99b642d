"""etcd as the metadata store gives what ZooKeeper gives; whatever it answers, a capture ends with one sentence."""

import base64
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from planner.capture.answer_filter import NamespaceFilter
from planner.capture.options import CaptureOptions, Credentials
from planner.capture.run import capture_cluster
from planner.capture.stores import registry
from planner.capture.stores.etcd import EtcdStore
from planner.capture.stores.protocol import Dump
from planner.capture.stores.zookeeper import ZooKeeperStore
from planner.cluster.errors import CaptureError
from tests.data.recorded_cluster import Cluster, ZooKeeper

Options = Callable[..., CaptureOptions]
TOKEN, SECRET = "t.1", "s3cret"


class Etcd:
    """Speaks as much of etcd's JSON gateway as reading takes, from a dictionary of keys."""

    def __init__(self, nodes: dict[str, bytes]) -> None:
        self.nodes = {path.encode(): data for path, data in nodes.items()}
        self.calls: list[tuple[str, dict[str, Any], str]] = []
        self.password = ""
        self.page = 0
        self.says: tuple[int, bytes] | None = None
        etcd = self

        class Gateway(BaseHTTPRequestHandler):
            wbufsize = -1  # an answer in two pieces waits for a delayed acknowledgement

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                etcd.calls.append((self.path, body, self.headers.get("Authorization", "")))
                status, content = etcd.says or etcd.answer(self.path, body, self.headers.get("Authorization", ""))
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Gateway)
        self.address = f"etcd:http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def answer(self, path: str, body: dict[str, Any], token: str) -> tuple[int, bytes]:
        if path == "/v3/auth/authenticate":
            good = body == {"name": "reader", "password": self.password}
            said = {"token": TOKEN} if good else {"error": "authentication failed", "code": 3}
            return (200 if good else 400), json.dumps(said).encode()
        if self.password and token != TOKEN:
            return 400, json.dumps({"error": "etcdserver: user name is empty", "code": 3}).encode()
        first, end = (base64.b64decode(body[name]) for name in ("key", "range_end"))
        inside = sorted(key for key in self.nodes if first <= key < end)
        limit = min(body["limit"], self.page or body["limit"])
        kvs = [
            {"key": _text(key), "value": _text(self.nodes[key]), "version": "3", "mod_revision": "7"}
            for key in inside[:limit]
        ]
        said = {"header": {}, "kvs": kvs, "more": len(inside) > limit, "count": str(len(inside))}
        return 200, json.dumps(said).encode()


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def dump_of(asked: CaptureOptions) -> Dump:
    with closing(EtcdStore(asked)) as store:
        return store.dump("planner", NamespaceFilter(()))


@pytest.fixture
def etcd(zookeeper: ZooKeeper) -> Iterator[Etcd]:
    """An etcd with the nodes that the ZooKeeper has."""
    found = Etcd(zookeeper.nodes)
    yield found
    found.server.shutdown()
    found.server.server_close()


@pytest.mark.parametrize("page", [0, 1, 7])
@pytest.mark.parametrize("wanted", [(), ("acme/*",), ("acme/orders",)])
def test_both_stores_give_the_same(
    zookeeper: ZooKeeper, etcd: Etcd, options: Options, cluster: Cluster, page: int, wanted: tuple[str, ...]
) -> None:
    etcd.page = page
    of_zookeeper = ZooKeeperStore(options(cluster, metadata_store=zookeeper.address))
    of_etcd = EtcdStore(options(cluster, metadata_store=etcd.address))
    try:
        dumps = [store.dump("planner", NamespaceFilter(wanted)) for store in (of_zookeeper, of_etcd)]
    finally:
        of_zookeeper.close()
        of_etcd.close()
    one, two = ({node["path"]: node["data"] for node in dump.nodes} for dump in dumps)
    assert len(one) > 10
    assert one == two
    assert dumps[1].notes == dumps[0].notes
    assert all(path == "/v3/kv/range" for path, _, _ in etcd.calls), "nothing is written"


def test_a_capture_from_etcd_is_that_from_zookeeper(
    zookeeper: ZooKeeper, etcd: Etcd, options: Options, cluster: Cluster
) -> None:
    one = capture_cluster(options(cluster, metadata_store=zookeeper.address)).snapshot
    other = capture_cluster(
        options(cluster, metadata_store=etcd.address, out=Path(options(cluster).out) / "e")
    ).snapshot
    assert one.bundle_names == other.bundle_names
    for name in ("owner", "long_term_msg_rate_in_per_s", "long_term_samples", "averages_estimated"):
        assert getattr(one.bundles, name).tolist() == getattr(other.bundles, name).tolist(), name
    assert one.policies == other.policies


def test_a_login_is_sent_once_and_its_token_after_that(
    etcd: Etcd, options: Options, cluster: Cluster, tmp_path: Path
) -> None:
    etcd.password = SECRET
    login = tmp_path / "login"
    login.write_text(f"reader:{SECRET}\n")
    asked = options(cluster, metadata_store=etcd.address, credentials=Credentials(store_auth_file=login))
    assert dump_of(asked).nodes
    assert [path for path, _, _ in etcd.calls].count("/v3/auth/authenticate") == 1
    assert {token for path, _, token in etcd.calls if path == "/v3/kv/range"} == {TOKEN}
    login.write_text("reader:wrong\n")
    with pytest.raises(CaptureError) as caught:
        EtcdStore(options(cluster, metadata_store=etcd.address, credentials=Credentials(store_auth_file=login)))
    assert "wrong" not in str(caught.value)


def test_without_a_login_it_says_what_is_denied(etcd: Etcd, options: Options, cluster: Cluster) -> None:
    etcd.password = SECRET
    dump = dump_of(options(cluster, metadata_store=etcd.address))
    assert not dump.nodes
    assert all("denies access" in note for note in dump.notes)


@pytest.mark.parametrize(
    "says",
    [
        (200, b""),
        (200, b"[]"),
        (200, b"[" * 100_000),
        (500, b"{}"),
        (302, b"{}"),
        (200, b'{"kvs": 7}'),
        (200, b'{"kvs": [7]}'),
        (200, b'{"kvs": [{"key": "L2V0Yw==", "value": "e30="}]}'),
        (200, b'{"kvs": [{"key": "not base 64", "value": "e30="}]}'),
    ],
)
def test_what_is_not_an_answer_is_one_sentence(
    etcd: Etcd, options: Options, cluster: Cluster, says: tuple[int, bytes]
) -> None:
    with closing(EtcdStore(options(cluster, metadata_store=etcd.address))) as store:
        etcd.says = says
        with pytest.raises(CaptureError, match="etcd did not answer"):
            store.dump("planner", NamespaceFilter(()))


def test_the_next_address_is_asked_when_one_is_silent(etcd: Etcd, options: Options, cluster: Cluster) -> None:
    address = etcd.address.replace("etcd:", "etcd:http://127.0.0.1:1,")
    limits = {"connect_s": 2.0}
    assert dump_of(options(cluster, metadata_store=address, limits=limits)).nodes
    with pytest.raises(CaptureError, match="etcd did not answer"):
        dump_of(options(cluster, metadata_store="etcd:http://127.0.0.1:1", limits=limits))


@pytest.mark.parametrize("address", ["etcd:", "etcd:e1:2379", "etcd:http://u:p@e1:2379", "etcd:http://e1:2379/x?y"])
def test_what_is_not_its_address_is_refused(address: str) -> None:
    with pytest.raises(CaptureError, match="not an address of etcd"):
        registry.kind_of(address)
