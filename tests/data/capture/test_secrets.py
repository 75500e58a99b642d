"""Secrets open doors, and are found nowhere afterwards."""

import base64
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
import trustme

from planner.__main__ import main
from planner.capture.options import CaptureOptions, Credentials
from planner.capture.run import capture_cluster
from planner.capture.watch import WatchOptions, watch_cluster
from planner.cluster.errors import CaptureError
from planner.history.days import read_day
from planner.history.manifest import complete_days
from tests.data.recorded_cluster import RECORDED, Cluster, ZooKeeper

Options = Callable[..., CaptureOptions]

SECRET = "eyJhbGciOiJIUzI1NiJ9." + base64.urlsafe_b64encode(b'{"sub":"planner"}').decode().rstrip("=") + ".c2ln"


def found_below(folder: Path, secret: str) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]


@pytest.fixture
def guarded(start: Callable[..., Cluster]) -> Cluster:
    """A cluster that wants a token."""
    return start(token=SECRET)


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text(SECRET + "\n")
    return path


def test_a_token_from_a_file(guarded: Cluster, options: Options, token_file: Path) -> None:
    given = options(guarded, credentials=Credentials(token_file=token_file))
    result = capture_cluster(given)
    assert not result.missing
    assert found_below(result.folder, SECRET) == []
    assert SECRET not in repr(result) + repr(given)


def test_a_token_from_the_environment(
    guarded: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MY_TOKEN", SECRET)
    out = tmp_path / "out"
    assert main(["capture", "--admin-url", guarded.url, "--out", str(out), "--token-env", "MY_TOKEN"]) == 0
    said = capsys.readouterr()
    assert "3 brokers" in said.out
    assert SECRET not in said.out + said.err
    assert found_below(out, SECRET) == []


def test_a_wrong_token(guarded: Cluster, options: Options, token_file: Path) -> None:
    token_file.write_text("another")
    with pytest.raises(CaptureError, match=r"refused with HTTP 401.*token with the permission"):
        capture_cluster(options(guarded, credentials=Credentials(token_file=token_file)))


@pytest.mark.parametrize("content", ["", "two words", "line\nline", "\xff\xfe", "x" * 100_000])
def test_a_file_that_holds_no_token(guarded: Cluster, options: Options, token_file: Path, content: str) -> None:
    token_file.write_bytes(content.encode("latin-1"))
    with pytest.raises(CaptureError) as caught:
        capture_cluster(options(guarded, credentials=Credentials(token_file=token_file)))
    assert str(token_file) in str(caught.value)
    assert not guarded.asked


def test_an_answer_that_repeats_the_token_is_not_kept(guarded: Cluster, options: Options, token_file: Path) -> None:
    def echo(handler: Any) -> None:
        handler.give(200, json.dumps({"you said": handler.headers["Authorization"]}).encode())

    guarded.special["", "/admin/v2/broker-stats/load-report"] = echo
    guarded.special["", "/admin/v2/brokers/version"] = lambda h: h.give(404, h.headers["Authorization"].encode())
    result = capture_cluster(options(guarded, credentials=Credentials(token_file=token_file)))
    assert sum("repeats a secret" in part.note for part in result.missing) == 4
    assert found_below(result.folder, SECRET) == []


def test_passwords_of_the_brokers_are_not_kept(cluster: Cluster, zookeeper: ZooKeeper, options: Options) -> None:
    for broker in RECORDED:
        key = broker, "/admin/v2/brokers/configuration/runtime"
        status, body, kind = cluster.answers[key]
        told = json.loads(body) | {
            "brokerClientAuthenticationParameters": "token:hunter2",
            "tlsKeyStorePassword": "hunter2",
        }
        cluster.answers[key] = (status, json.dumps(told).encode(), kind)
    dynamic = json.dumps({"loadBalancerEnabled": "true", "brokerClientAuthenticationParameters": "hunter2"})
    cluster.answers["", "/admin/v2/brokers/configuration/values"] = (200, dynamic.encode(), "application/json")
    zookeeper.nodes["/admin/configuration"] = dynamic.encode()
    result = capture_cluster(options(cluster, metadata_store=zookeeper.address))
    assert found_below(result.folder, "hunter2") == []
    assert result.snapshot.settings.integer("loadBalancerReportUpdateMaxIntervalMinutes") == 1, "settings are kept"


RUNTIME = "/admin/v2/brokers/configuration/runtime"
VALUES = "/admin/v2/brokers/configuration/values"


def configure(cluster: Cluster, **changes: str) -> None:
    """Let each broker's own settings differ from Pulsar's defaults."""
    for broker in RECORDED:
        status, body, kind = cluster.answers[broker, RUNTIME]
        cluster.answers[broker, RUNTIME] = (status, json.dumps(json.loads(body) | changes).encode(), kind)


def test_settings_are_captured_where_the_brokers_use_the_token_of_whoever_captures(
    guarded: Cluster, options: Options, token_file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    configure(
        guarded,
        loadBalancerBrokerThresholdShedderPercentage="4",
        brokerClientAuthenticationParameters=f"token:{SECRET}",
    )
    own = {"loadBalancerSheddingEnabled": "false.held-by.xyz", "brokerClientAuthenticationParameters": SECRET}
    guarded.answers["", VALUES] = (200, json.dumps(own).encode(), "application/json")
    result = capture_cluster(options(guarded, credentials=Credentials(token_file=token_file)))
    assert not result.missing
    snapshot = result.snapshot
    assert snapshot.settings.number("loadBalancerBrokerThresholdShedderPercentage") == 4
    assert not snapshot.settings.flag("loadBalancerSheddingEnabled")
    assert snapshot.info.settings_from == "brokers"
    assert snapshot.info.dynamic_settings == {"loadBalancerSheddingEnabled": "false.held-by.xyz"}
    said = "The brokers use the same token as you. Their configuration was read; secrets were removed."
    assert said in snapshot.info.warnings
    assert not any("Settings were not captured" in warning for warning in snapshot.info.warnings)
    assert found_below(result.folder, SECRET) == []
    assert SECRET not in repr(result) + caplog.text


@pytest.mark.parametrize("how", ["plain", "escaped"])
def test_a_setting_that_is_the_token_is_not_kept(
    guarded: Cluster, options: Options, token_file: Path, how: str
) -> None:
    configure(guarded, loadBalancerLoadSheddingStrategy=SECRET)
    if how == "escaped":
        for broker in RECORDED:
            status, body, kind = guarded.answers[broker, RUNTIME]
            hidden = "".join(f"\\u{ord(c):04x}" for c in SECRET)
            guarded.answers[broker, RUNTIME] = (status, body.replace(SECRET.encode(), hidden.encode()), kind)
    result = capture_cluster(options(guarded, credentials=Credentials(token_file=token_file)))
    notes = [part.note for part in result.missing]
    assert len(notes) == 3
    assert all("A setting that the planner needs contains a secret" in note for note in notes)
    assert result.snapshot.info.settings_from == "defaults"
    assert found_below(result.folder, SECRET) == []


@pytest.mark.parametrize("body", ['{"a": 1, "%s": 1, "%s": 2}', '{"%s', "[%s]", "<html>%s</html>", '"%s"'])
def test_a_broken_configuration_with_the_token_says_nothing_of_it(
    guarded: Cluster, options: Options, token_file: Path, body: str
) -> None:
    for broker in RECORDED:
        answer = body.replace("%s", SECRET).encode()
        guarded.answers[broker, RUNTIME] = (200, answer, "application/json")
    result = capture_cluster(options(guarded, credentials=Credentials(token_file=token_file)))
    assert len(result.missing) == 3
    assert SECRET not in " ".join(part.note for part in result.parts) + repr(result.snapshot.info)
    assert found_below(result.folder, SECRET) == []


def test_watched_moments_say_where_their_settings_come_from(
    guarded: Cluster, options: Options, token_file: Path, tmp_path: Path
) -> None:
    configure(guarded, brokerClientAuthenticationParameters=f"token:{SECRET}")
    guarded.answers["", VALUES] = (200, b'{"loadBalancerSheddingEnabled": "true"}', "application/json")
    capture = options(guarded, credentials=Credentials(token_file=token_file))
    history = tmp_path / "history"
    watch_cluster(WatchOptions(capture, history, interval_s=0.05, captures=2), lambda _: None)
    found = [s.info for day in complete_days(history) for s in read_day(day.path)]
    assert len(found) == 2
    assert {info.settings_from for info in found} == {"brokers"}
    assert all(info.dynamic_settings == {"loadBalancerSheddingEnabled": "true"} for info in found)
    assert found_below(tmp_path / "history", SECRET) == []


def test_a_configuration_that_cannot_be_cut_is_not_kept(cluster: Cluster, options: Options) -> None:
    for broker in RECORDED:
        body = b'{"tlsKeyStorePassword": "hunter2"'
        cluster.answers[broker, "/admin/v2/brokers/configuration/runtime"] = (200, body, "application/json")
    result = capture_cluster(options(cluster))
    assert len(result.missing) == 3
    assert found_below(result.folder, "hunter2") == []


def test_a_login_of_the_metadata_store(
    cluster: Cluster, zookeeper: ZooKeeper, options: Options, tmp_path: Path
) -> None:
    login = tmp_path / "login"
    login.write_text("reader:hunter2\n")
    given = options(cluster, metadata_store=zookeeper.address, credentials=Credentials(store_auth_file=login))
    result = capture_cluster(given)
    assert any(b"digest" in sent and b"reader:hunter2" in sent for sent in zookeeper.logins)
    assert found_below(result.folder, "hunter2") == []


# TLS


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def ca_file(authority: trustme.CA, tmp_path: Path) -> Path:
    path = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(path))
    return path


def server_context(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    return context


def test_tls_with_an_authority_of_ones_own(
    start: Callable[..., Cluster], options: Options, authority: trustme.CA, ca_file: Path
) -> None:
    cluster = start(tls=server_context(authority))
    result = capture_cluster(options(cluster, credentials=Credentials(ca_file=ca_file)))
    assert not result.missing
    assert all(part.asked.startswith("https://") for part in result.parts)


def test_an_authority_that_is_not_trusted(
    start: Callable[..., Cluster], options: Options, authority: trustme.CA, tmp_path: Path
) -> None:
    other = tmp_path / "other.pem"
    trustme.CA().cert_pem.write_to_path(str(other))
    cluster = start(tls=server_context(authority))
    with pytest.raises(CaptureError, match="CERTIFICATE_VERIFY_FAILED"):
        capture_cluster(options(cluster, credentials=Credentials(ca_file=other)))
    assert cluster.asked == []


def test_a_certificate_for_another_name(
    start: Callable[..., Cluster], options: Options, authority: trustme.CA, ca_file: Path
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("broker.example.org").configure_cert(context)
    cluster = start(tls=context)
    with pytest.raises(CaptureError, match="CERTIFICATE_VERIFY_FAILED"):
        capture_cluster(options(cluster, credentials=Credentials(ca_file=ca_file)))


def test_a_client_certificate(
    start: Callable[..., Cluster], options: Options, authority: trustme.CA, ca_file: Path, tmp_path: Path
) -> None:
    context = server_context(authority)
    context.verify_mode = ssl.CERT_REQUIRED
    authority.configure_trust(context)
    cluster = start(tls=context)
    mine, cert, key = authority.issue_cert("planner@example.org"), tmp_path / "cert.pem", tmp_path / "key.pem"
    mine.cert_chain_pems[0].write_to_path(str(cert))
    mine.private_key_pem.write_to_path(str(key))
    credentials = Credentials(ca_file=ca_file, cert_file=cert, key_file=key)
    assert not capture_cluster(options(cluster, credentials=credentials)).missing
    with pytest.raises(CaptureError, match="cannot be reached"):
        capture_cluster(options(cluster, out=tmp_path / "without", credentials=Credentials(ca_file=ca_file)))


def test_a_redirect_does_not_leave_tls(
    start: Callable[..., Cluster], options: Options, authority: trustme.CA, ca_file: Path
) -> None:
    cluster = start(tls=server_context(authority))
    path = "/admin/v2/brokers/version"
    plain = f"http://{cluster.ids[RECORDED[1]]}{path}"
    cluster.special["", path] = lambda handler: handler.give(307, b"", Location=plain)
    result = capture_cluster(options(cluster, credentials=Credentials(ca_file=ca_file)))
    assert "which is not a broker of the cluster" in result.missing[0].note


def test_addresses_over_tls_come_from_the_metadata_store(
    start: Callable[..., Cluster], options: Options, authority: trustme.CA, ca_file: Path
) -> None:
    cluster = start(tls=server_context(authority))
    plain = {broker: f"127.0.0.1:{18081 + i}" for i, broker in enumerate(RECORDED)}
    cluster.answers["", "/admin/v2/brokers"] = (200, json.dumps(list(plain.values())).encode(), "application/json")
    nodes = {f"/loadbalance/brokers/{plain[b]}": json.dumps({"webServiceUrlTls": cluster.url_of(b)}) for b in RECORDED}
    for broker in RECORDED:
        body = cluster.answers[broker, f"/admin/v2/brokers/planner/{cluster.ids[broker]}/ownedNamespaces"]
        cluster.answers[broker, f"/admin/v2/brokers/planner/{plain[broker]}/ownedNamespaces"] = body
    store = ZooKeeper(nodes)
    result = capture_cluster(options(cluster, credentials=Credentials(ca_file=ca_file), metadata_store=store.address))
    store.close()
    asked = {part.asked for part in result.parts if part.file.startswith("load-report")}
    assert asked == {cluster.url_of(broker) for broker in RECORDED}


@pytest.mark.parametrize("content", ["", "-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n"])
def test_a_file_that_holds_no_certificate(cluster: Cluster, options: Options, tmp_path: Path, content: str) -> None:
    path = tmp_path / "bad.pem"
    path.write_text(content)
    for credentials in (Credentials(ca_file=path), Credentials(cert_file=path)):
        with pytest.raises(CaptureError, match=r"bad\.pem: The certificate or key cannot be used"):
            capture_cluster(options(cluster, credentials=credentials))


# OAuth2


class Issuer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        self.forms: list[dict[str, list[str]]] = []
        self.token: dict[str, Any] = {"access_token": SECRET, "token_type": "Bearer", "expires_in": 3600}
        self.status = 200
        super().__init__(("127.0.0.1", 0), IssuerHandler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}/realm"


class IssuerHandler(BaseHTTPRequestHandler):
    server: Issuer

    def give(self, status: int, value: object) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        assert self.path == "/realm/.well-known/openid-configuration"
        self.give(200, {"token_endpoint": self.server.url + "/token"})

    def do_POST(self) -> None:
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self.server.forms.append(form)
        self.give(self.server.status, self.server.token)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's own name
        pass


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    server = Issuer()
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def key_file(issuer: Issuer, tmp_path: Path) -> Path:
    path = tmp_path / "client.json"
    key = {"type": "client_credentials", "client_id": "planner", "client_secret": "hunter2", "issuer_url": issuer.url}
    path.write_text(json.dumps(key))
    return path


def test_client_credentials(guarded: Cluster, issuer: Issuer, options: Options, key_file: Path) -> None:
    credentials = Credentials(oauth2_file=key_file, oauth2_audience="urn:pulsar", oauth2_scope="read")
    result = capture_cluster(options(guarded, credentials=credentials))
    assert not result.missing
    assert issuer.forms == [
        {
            "grant_type": ["client_credentials"],
            "client_id": ["planner"],
            "client_secret": ["hunter2"],
            "audience": ["urn:pulsar"],
            "scope": ["read"],
        }
    ]
    assert found_below(result.folder, "hunter2") == found_below(result.folder, SECRET) == []


def test_a_token_that_expires_is_asked_for_again(
    guarded: Cluster, issuer: Issuer, options: Options, key_file: Path
) -> None:
    issuer.token["expires_in"] = 0.001
    assert not capture_cluster(options(guarded, credentials=Credentials(oauth2_file=key_file))).missing
    assert len(issuer.forms) > 1


@pytest.mark.parametrize(
    ("status", "answer"),
    [(401, {"error": "invalid_client"}), (200, {}), (200, {"access_token": 7, "token_type": "Bearer"}), (200, [])],
)
def test_an_issuer_that_refuses(
    guarded: Cluster, issuer: Issuer, options: Options, key_file: Path, status: int, answer: Any
) -> None:
    issuer.status, issuer.token = status, answer
    with pytest.raises(CaptureError, match="The issuer returned no token") as caught:
        capture_cluster(options(guarded, credentials=Credentials(oauth2_file=key_file)))
    assert "hunter2" not in str(caught.value)
    assert not guarded.asked


def test_a_key_file_that_is_none(guarded: Cluster, options: Options, key_file: Path) -> None:
    for content in ("hunter2", "[]", '{"client_id": "a", "client_secret": "hunter2"}'):
        key_file.write_text(content)
        with pytest.raises(CaptureError) as caught:
            capture_cluster(options(guarded, credentials=Credentials(oauth2_file=key_file)))
        assert "hunter2" not in str(caught.value)
