"""A real Prometheus behind TLS, client certificates, logins and bearer tokens becomes a snapshot for who may ask."""

import http.client
import json
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from planner.__main__ import main
from planner.cluster.moments import iso_moment
from planner.formats.reading import read_snapshot
from planner.history.raw import prometheus_series
from tests.cluster.prometheus import as_open_metrics, prometheus, serving
from tests.cluster.secure import Keys, make_keys
from tests.cluster.test_prometheus import snapshots

pytestmark = pytest.mark.cluster

PASSWORD = "s3cret"  # noqa: S105 - of servers that live as long as the test
HASHED = "$2b$05$Iq6bA8ArOzZXunooEKGXpuz7IMKJevVorT1n0lWCAyX7N2gyIUVR2"
"""Bcrypt of the password, which is what Prometheus wants to be told."""

Asked = list[str]


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return make_keys(tmp_path_factory.mktemp("secrets") / "keys")


@pytest.fixture(scope="module")
def server(keys: Keys, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Prometheus that wants a certificate and a login."""
    folder = keys.folder
    tls = {
        "cert_file": str(folder / "server.pem"),
        "key_file": str(folder / "server.key"),
        "client_auth_type": "RequireAndVerifyClientCert",
        "client_ca_file": str(folder / "ca.pem"),
    }
    web = {"tls_server_config": tls, "basic_auth_users": {"operator": HASHED}}
    text = as_open_metrics(prometheus_series(snapshots()[:6], 300_000))
    with prometheus(tmp_path_factory.mktemp("prometheus"), filled=text, web=web, keys=str(folder)) as url:
        yield url


def asked(url: str, out: Path) -> Asked:
    at = iso_moment(snapshots()[5].info.captured_at_ms)
    return ["snapshot", "--prometheus", url, "--at", at, "--out", str(out)]


def of_client(keys: Keys) -> Asked:
    names = {"--ca-file": "ca.pem", "--cert-file": "client.pem", "--key-file": "client.key"}
    return [word for option, name in names.items() for word in (option, str(keys.folder / name))]


def login(folder: Path, password: str = PASSWORD) -> Asked:
    path = folder / f"login-{password}"
    path.write_text(f"operator:{password}")
    return ["--login-file", str(path)]


def test_a_certificate_and_a_login(server: str, keys: Keys, tmp_path: Path) -> None:
    out = tmp_path / "s.zip"
    assert main([*asked(server, out), *of_client(keys), *login(tmp_path)]) == 0
    assert read_snapshot(out).brokers.name == snapshots()[5].brokers.name


def test_a_history_behind_both(server: str, keys: Keys, tmp_path: Path) -> None:
    span = ["--from", "2026-01-05", "--to", "2026-01-05T00:20:00Z", "--step-s", "300", "--out", str(tmp_path / "h")]
    ingest = ["history", "ingest", "--prometheus", server, *span, "--interval-s", "300"]
    assert main([*ingest, *of_client(keys), *login(tmp_path)]) == 0
    kept = [path for path in (tmp_path / "h").rglob("*") if path.is_file()]
    assert kept
    assert not [path for path in kept if PASSWORD.encode() in path.read_bytes()]


def test_who_may_not_ask_is_told_why(
    server: str, keys: Keys, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, authority = tmp_path / "s.zip", ["--ca-file", str(keys.ca_file)]
    stranger = ["--ca-file", str(keys.folder / "other-ca.pem")]
    for given, said in (
        ([*of_client(keys), *login(tmp_path, "wrong")], "401"),
        (of_client(keys), "401"),
        ([*authority, *login(tmp_path)], "certificate"),
        ([*stranger, *login(tmp_path)], "certificate"),
    ):
        assert main([*asked(server, out), *given]) != 0
        told = capsys.readouterr().err
        assert said in told.lower(), told
        assert PASSWORD not in told.replace(str(tmp_path), "")
    assert not out.exists()


@contextmanager
def behind_a_token(server: str, keys: Keys, token: str) -> Iterator[str]:
    """Put in front of a Prometheus what operators put there: a TLS proxy that wants a bearer token."""
    place = urlsplit(server)
    inside = ssl.create_default_context(cafile=keys.ca_file)
    inside.load_cert_chain(keys.folder / "client.pem", keys.folder / "client.key")
    basic = "Basic b3BlcmF0b3I6czNjcmV0"

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.headers.get("Authorization") != f"Bearer {token}":
                status, body = 401, json.dumps({"status": "error", "error": "no token"}).encode()
            else:
                passed = http.client.HTTPSConnection(place.hostname or "", place.port, context=inside, timeout=30)
                passed.request("GET", self.path, headers={"Authorization": basic})
                answer = passed.getresponse()
                status, body = answer.status, answer.read()
                passed.close()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    outside = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    outside.load_cert_chain(keys.folder / "server.pem", keys.folder / "server.key")
    with serving(Handler, outside) as port:
        yield f"https://127.0.0.1:{port}"


def test_a_bearer_token(
    server: str, keys: Keys, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    token, out = "t0ken-of-a-reader", tmp_path / "s.zip"
    (tmp_path / "token").write_text(token)
    with behind_a_token(server, keys, token) as url:
        authority = ["--ca-file", str(keys.ca_file)]
        assert main([*asked(url, out), *authority]) != 0
        assert "401" in capsys.readouterr().err
        assert main([*asked(url, out), *authority, "--token-file", str(tmp_path / "token")]) == 0
        assert read_snapshot(out).brokers.name == snapshots()[5].brokers.name
        monkeypatch.setenv("PLANNER_PROMETHEUS_TOKEN", token)
        assert main([*asked(url, tmp_path / "again.zip"), *authority]) == 0
