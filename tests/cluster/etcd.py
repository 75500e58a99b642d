"""A real etcd, and what a test asks it to do."""

import base64
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

SECRET = "s3cret"  # noqa: S105 - of an etcd that lives as long as the test


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
        self.ask("/v3/kv/put", {"key": as_key(key), "value": as_key(value)})

    def require_login(self) -> None:
        for name in ("root", "reader"):
            self.ask("/v3/auth/user/add", {"name": name, "password": SECRET})
        self.ask("/v3/auth/role/add", {"name": "root"})
        self.ask("/v3/auth/role/add", {"name": "read"})
        everything = {"permType": "READ", "key": as_key("/"), "range_end": as_key("0")}
        self.ask("/v3/auth/role/grant", {"name": "read", "perm": everything})
        self.ask("/v3/auth/user/grant", {"user": "root", "role": "root"})
        self.ask("/v3/auth/user/grant", {"user": "reader", "role": "read"})
        self.ask("/v3/auth/enable", {})


def as_key(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@contextmanager
def running_etcd(folder: Path) -> Iterator[Etcd]:
    """Run an etcd on loopback, and end it."""
    found = Etcd(folder)
    try:
        yield found
    finally:
        found.process.terminate()
        found.process.wait(30)
