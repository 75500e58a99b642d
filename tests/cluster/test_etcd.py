"""A real etcd gives a capture what was put into it, with and without a login."""

import base64
import json
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from planner.capture.answer_filter import NamespaceFilter
from planner.capture.options import CaptureOptions, Credentials
from planner.capture.stores.etcd import EtcdStore
from planner.cluster.errors import CaptureError

pytestmark = pytest.mark.cluster
SECRET = "s3cret"  # noqa: S105 - of an etcd that lives as long as the test
NODES = {
    "/loadbalance/leader": '{"brokerId": "b-1:8080"}',
    **{f"/loadbalance/brokers/b-{at}:8080": json.dumps({"at": at}) for at in range(700)},
    "/loadbalance/brokerage": "not a child of brokers",
    "/loadbalance/bundle-data/acme/orders/0x00000000_0xffffffff": '{"topics": 3}',
    "/loadbalance/bundle-data/globex/x/0x00000000_0xffffffff": '{"topics": 4}',
    "/admin/policies/acme/orders": "{}",
}


class Etcd:
    """An etcd process, and what a test asks it to do."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as one, socket.socket() as two:
            one.bind(("127.0.0.1", 0))
            two.bind(("127.0.0.1", 0))
            self.url, peer = (f"http://127.0.0.1:{each.getsockname()[1]}" for each in (one, two))
        found = shutil.which("etcd")
        assert found is not None, "etcd is not installed: apt-get install etcd-server"
        words = [
            "--data-dir",
            str(folder / "etcd"),
            "--listen-client-urls",
            self.url,
            "--advertise-client-urls",
            self.url,
        ]
        words += ["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer]
        words += ["--initial-cluster", f"default={peer}", "--log-level", "error"]
        self.process = subprocess.Popen([found, *words], stderr=subprocess.DEVNULL)
        self.token = ""
        until = time.monotonic() + 60
        while time.monotonic() < until:
            try:
                self.ask("/v3/maintenance/status", {})
                break
            except httpx.HTTPError:
                time.sleep(0.2)

    def ask(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        answer = httpx.post(self.url + path, json=body, headers={"Authorization": self.token} if self.token else {})
        answer.raise_for_status()
        said: dict[str, Any] = answer.json()
        return said

    def put(self, key: str, value: str) -> None:
        self.ask("/v3/kv/put", {"key": _text(key), "value": _text(value)})

    def require_login(self) -> None:
        for name in ("root", "reader"):
            self.ask("/v3/auth/user/add", {"name": name, "password": SECRET})
        self.ask("/v3/auth/role/add", {"name": "root"})
        self.ask("/v3/auth/role/add", {"name": "read"})
        everything = {"permType": "READ", "key": _text("/"), "range_end": _text("0")}
        self.ask("/v3/auth/role/grant", {"name": "read", "perm": everything})
        self.ask("/v3/auth/user/grant", {"user": "root", "role": "root"})
        self.ask("/v3/auth/user/grant", {"user": "reader", "role": "read"})
        self.ask("/v3/auth/enable", {})


def _text(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.fixture
def etcd(tmp_path: Path) -> Iterator[Etcd]:
    found = Etcd(tmp_path)
    try:
        for key, value in NODES.items():
            found.put(key, value)
        yield found
    finally:
        found.process.terminate()
        found.process.wait(30)


def test_a_real_etcd_is_read(etcd: Etcd, tmp_path: Path) -> None:
    asked = CaptureOptions("http://b-1:8080", metadata_store=f"etcd:{etcd.url}")
    with closing(EtcdStore(asked)) as store:
        everything = store.dump("planner", NamespaceFilter(()))
        some = store.dump("planner", NamespaceFilter(("acme/*",)))
    expected = {path: data for path, data in NODES.items() if path != "/loadbalance/brokerage"}
    assert {node["path"]: node["data"] for node in everything.nodes} == expected
    assert {node["path"] for node in some.nodes} == {path for path in expected if "globex" not in path}
    assert not everything.notes

    etcd.require_login()
    login = tmp_path / "login"
    login.write_text(f"reader:{SECRET}\n")
    with closing(EtcdStore(CaptureOptions(asked.admin_url, metadata_store=asked.metadata_store))) as store:
        denied = store.dump("planner", NamespaceFilter(()))
    assert not denied.nodes
    assert all("denies access" in note for note in denied.notes)
    known = CaptureOptions(
        asked.admin_url, metadata_store=asked.metadata_store, credentials=Credentials(store_auth_file=login)
    )
    with closing(EtcdStore(known)) as store:
        assert len(store.dump("planner", NamespaceFilter(())).nodes) == len(expected)
    login.write_text("reader:wrong\n")
    with pytest.raises(CaptureError, match="etcd refused the login"):
        EtcdStore(known)
