"""What no broker does ends in a sentence, soon, whoever does it."""

import gzip
import json
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from planner.__main__ import main
from planner.capture.options import CaptureOptions, Credentials
from planner.capture.run import capture_cluster
from planner.cluster.digest import snapshot_digest
from planner.cluster.errors import CaptureError, PlannerError
from planner.formats.reading import read_snapshot
from tests.data.recorded_cluster import RECORDED, Cluster, Handler, Special, ZooKeeper

Options = Callable[..., CaptureOptions]

BROKERS = "/admin/v2/brokers"
REPORT = "/admin/v2/broker-stats/load-report"
SECRET = "".join(["hunter", "2", "-token"])


def endless_body(handler: Handler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    while True:
        handler.wfile.write(b"10000\r\n" + b" " * 0x10000 + b"\r\n")


def endless_headers(handler: Handler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
    while True:
        handler.wfile.write(b"X-More: " + b"a" * 1000 + b"\r\n")


def drop_by_drop(handler: Handler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000000")
    handler.end_headers()
    for _ in range(1000):
        handler.wfile.write(b"[")
        handler.wfile.flush()
        time.sleep(0.05)


def silence(handler: Handler) -> None:
    time.sleep(6)
    handler.close_connection = True


def cut_off(handler: Handler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'["127.0')
    handler.close_connection = True


def no_http(handler: Handler) -> None:
    handler.wfile.write(b"SSH-2.0-OpenSSH_9.2\r\n")
    handler.close_connection = True


def in_circles(handler: Handler) -> None:
    handler.give(307, b"", Location=handler.path)


def page(handler: Handler) -> None:
    handler.give(200, b"<!doctype html><title>Sign in</title>", "text/html")


def deep(handler: Handler) -> None:
    handler.give(200, b"[" * 200_000)


def compressed(handler: Handler) -> None:
    handler.give(200, gzip.compress(b" " * 10_000_000), Content_Encoding="gzip")


def elsewhere(handler: Handler) -> None:
    handler.give(307, b"", Location="http://192.0.2.1/admin/v2/brokers")


def to_a_file(handler: Handler) -> None:
    handler.give(302, b"", Location="file:///etc/passwd")


def nowhere(handler: Handler) -> None:
    handler.give(302, b"")


def to_nonsense(handler: Handler) -> None:
    handler.give(302, b"", Location="http://[::1")


def says(body: bytes) -> Special:
    return lambda handler: handler.give(200, body)


HOSTILE: dict[str, tuple[Special, str]] = {
    "endless body": (endless_body, "longer than 1 MiB"),
    "endless headers": (endless_headers, "cannot be reached"),
    "slow loris": (drop_by_drop, "not complete after 2 s"),
    "silence": (silence, "not complete after 2 s|cannot be reached"),
    "cut off": (cut_off, "cannot be reached"),
    "another protocol": (no_http, "cannot be reached"),
    "redirects in circles": (in_circles, "redirects more than 3 times"),
    "another host": (elsewhere, "redirects to http://192.0.2.1:80, which is not a broker"),
    "a file": (to_a_file, "redirects to file://:0, which is not a broker"),
    "no location": (nowhere, "redirects without an address"),
    "nonsense": (to_nonsense, "Invalid URL in location header"),
    "a web page": (page, "HTML page, not JSON: Sign in"),
    "compressed": (compressed, "compressed"),
}
JSON: dict[str, tuple[Special, str]] = {
    "deep": (deep, "nested too deeply"),
    "no JSON": (says(b"hello"), "Not valid JSON"),
    "an object": (says(b'{"brokers": []}'), "not a list"),
    "a number": (says(b"7"), "not a list"),
    "numbers": (says(b"[1, 2]"), "not a broker id"),
    "addresses": (says(b'["http://192.0.2.1:80/"]'), "not a broker id"),
    "nothing": (says(b"[]"), "lists no broker"),
    "empty": (says(b""), "empty"),
    "too many": (says(b"[" + b",".join(b'"b%d:1"' % i for i in range(2_001)) + b"]"), "2,001 brokers"),
    "half a character": (says(b'["\xff"]'), "not UTF-8"),
}
LATE = ("slow loris", "silence")


def bounds(kind: str) -> dict[str, Any]:
    """Return short bounds, which leave a busy machine the time that the kind of trouble does not need."""
    return {"request_s": 2.0 if kind in LATE else 30.0, "answer_bytes": 1 << 20, "attempts": 2}


@pytest.mark.parametrize("kind", [*HOSTILE, *JSON])
def test_the_list_of_brokers(cluster: Cluster, options: Options, kind: str) -> None:
    special, said = (HOSTILE | JSON)[kind]
    cluster.special["", BROKERS] = special
    began = time.monotonic()
    with pytest.raises(PlannerError, match=said) as refused:
        capture_cluster(options(cluster, limits=bounds(kind)))
    assert refused.value.remedy
    assert time.monotonic() - began < 30


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_load_report(cluster: Cluster, options: Options, kind: str) -> None:
    special, _ = HOSTILE[kind]
    cluster.special[RECORDED[1], REPORT] = special
    result = capture_cluster(options(cluster, limits=bounds(kind)))
    brokers = result.snapshot.brokers
    place = brokers.position[cluster.ids[RECORDED[1]]]
    assert brokers.has_load_data.all()  # the metrics stand in, which know usages as percentages only
    assert brokers.cpu_limit_percent[place] == 100
    assert any("returned no load report" in warning for warning in result.snapshot.info.warnings)
    (missing,) = result.missing
    assert missing.note
    assert any(missing.note.split(".")[0] in warning for warning in result.snapshot.info.warnings)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (REPORT, b'{"cpu": {"usage": "much", "limit": 100}}'),
        (REPORT, b'{"cpu": {"usage": 1e999, "limit": 100}}'),
        (REPORT, b'{"cpu": {"usage": 5, "limit": 100}, "lastStats": {"acme/orders/0x0_0x1": {"msgRateIn": []}}}'),
        (
            "/admin/v2/namespaces/acme/orders",
            b'{"topicDispatchRate":{"planner":{"dispatchThrottlingRateInByte":false}}}',
        ),
        (REPORT, b"[" * 200_000),
        ("/admin/v2/broker-stats/topics", b'{"a": {"b": {"c": {"persistent://a/b/c": {"msgRateIn": "x"}}}}}'),
        ("/admin/v2/broker-stats/topics", b'{"a": ' * 100_000),
        (
            "/admin/v2/broker-stats/topics",
            b'{"acme/orders":{"0x00000000_0x40000000":{"persistent":{"persistent://acme/orders/t":{"producerCount":%d}}}}}'
            % (2**63 - 1),
        ),
        ("/admin/v2/namespaces/acme", b'["../../etc", 7, null, "acme/or\\u0000ders", "x"]'),
        ("/admin/v2/namespaces/acme", b'{"acme": 1}'),
        ("/admin/v2/tenants", b'["../..", {}, "acme"]'),
        ("/admin/v2/namespaces/acme/orders/bundles", b'{"boundaries": ["0x00000000", 5]}'),
        ("/admin/v2/namespaces/acme/orders", b'{"bundles": 3, "topicDispatchRate": [1]}'),
        ("/admin/v2/clusters/planner/namespaceIsolationPolicies", b'{"p": {"namespaces": 7}}'),
        ("/admin/v2/brokers/configuration/runtime", b"[]"),
        ("/admin/v2/brokers/configuration/values", b'{"loadBalancerEnabled": [1]}'),
        ("/admin/v2/brokers/leaderBroker", b'{"brokerId": {"a": 1}}'),
        ("/admin/v2/persistent/acme/orders", b'[1, {}, "persistent://acme/orders/\\ud800"]'),
    ],
)
def test_wrong_types_give_a_snapshot_or_a_sentence(cluster: Cluster, options: Options, path: str, body: bytes) -> None:
    cluster.special["", path] = says(body)
    with suppress(PlannerError):  # any other error fails the test
        result = capture_cluster(options(cluster))
        assert result.snapshot.info.warnings
        assert snapshot_digest(read_snapshot(result.folder / "snapshot")) == snapshot_digest(result.snapshot)
    assert not any(".." in path for path in cluster.paths())


def test_a_redirect_to_a_broker_is_followed(cluster: Cluster, options: Options) -> None:
    path = "/admin/v2/namespaces/acme/orders/bundles"
    there = cluster.url_of(RECORDED[2]) + path + "?authoritative=true"
    cluster.special[RECORDED[0], path] = lambda handler: handler.give(307, b"", Location=there)
    result = capture_cluster(options(cluster))
    assert not result.missing
    (part,) = [p for p in result.parts if p.path == path]
    assert part.answered == cluster.url_of(RECORDED[2])
    assert "acme/orders" in result.snapshot.namespaces


def test_a_redirect_to_another_question_is_refused(cluster: Cluster, options: Options) -> None:
    path = "/admin/v2/brokers/version"
    there = cluster.url_of(RECORDED[2]) + "/admin/v2/brokers/shutdown"
    cluster.special["", path] = lambda handler: handler.give(307, b"", Location=there)
    result = capture_cluster(options(cluster))
    assert "redirects to another path" in result.missing[0].note
    assert "/admin/v2/brokers/shutdown" not in cluster.paths()


def test_no_other_host_learns_the_token(start: Callable[..., Cluster], options: Options, tmp_path: Path) -> None:
    cluster, stranger = start(token=SECRET), start(token=SECRET)
    token = tmp_path / "token"
    token.write_text(f"{SECRET}\n")
    for path in ("/admin/v2/brokers/version", "/admin/v2/namespaces/acme/orders/bundles", REPORT):
        there = stranger.url + path
        cluster.special["", path] = lambda handler, there=there: handler.give(307, b"", Location=there)  # type: ignore[misc]
    capture_cluster(options(cluster, credentials=Credentials(token_file=token)))
    assert stranger.asked == []


def test_all_answers_together_are_bounded(cluster: Cluster, options: Options) -> None:
    with pytest.raises(CaptureError, match="All answers together"):
        capture_cluster(options(cluster, limits={"total_bytes": 100_000}))


def test_the_whole_capture_ends(cluster: Cluster, options: Options) -> None:
    cluster.special["", "/admin/v2/brokers/version"] = drop_by_drop
    began = time.monotonic()
    with pytest.raises(CaptureError, match=r"not complete after 1 s.*same --out"):
        capture_cluster(options(cluster, limits={"total_s": 1.0, "request_s": 60.0}))
    assert time.monotonic() - began < 30


def test_too_many_namespaces(cluster: Cluster, options: Options) -> None:
    with pytest.raises(CaptureError, match="--max-namespaces"):
        capture_cluster(options(cluster, limits={"namespaces": 3}))


def test_a_long_error_is_cut_off(cluster: Cluster, options: Options) -> None:
    cluster.answers["", "/admin/v2/brokers/version"] = (404, b"x" * 5_000_000, "text/plain")
    result = capture_cluster(options(cluster))
    assert result.missing[0].bytes <= 64 << 10


def test_the_command_says_it_in_one_line(cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.special["", BROKERS] = page
    status = main(["capture", "--admin-url", cluster.url, "--out", str(tmp_path / "out"), "--attempts", "1"])
    assert status == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("error: ")
    assert "Sign in" in error


@pytest.mark.parametrize("trouble", ["silent", "absent", "endless"])
def test_a_metadata_store_that_does_not_answer(
    cluster: Cluster, zookeeper: ZooKeeper, options: Options, trouble: str
) -> None:
    given: dict[str, Any] = {"metadata_store": zookeeper.address}
    limits: dict[str, Any] = {"connect_s": 0.5, "attempts": 1}
    if trouble == "silent":
        zookeeper.silent = True
    elif trouble == "absent":
        zookeeper.close()
        given["metadata_store"] = "zk:127.0.0.1:1"
    else:
        limits = {"store_nodes": 20}
    began = time.monotonic()
    with pytest.raises(CaptureError, match="more than 20 nodes" if trouble == "endless" else "did not answer"):
        capture_cluster(options(cluster, limits=limits, **given))
    assert time.monotonic() - began < 30


def test_a_node_that_may_not_be_read_is_said(cluster: Cluster, zookeeper: ZooKeeper, options: Options) -> None:
    zookeeper.forbidden.add("/loadbalance/broker-time-average")
    result = capture_cluster(options(cluster, metadata_store=zookeeper.address))
    said = "/loadbalance/broker-time-average: the metadata store denies access"
    assert any(said in warning for warning in result.snapshot.info.warnings)


def test_a_bad_answer_about_tenants_or_namespaces_ends_no_capture(cluster: Cluster, options: Options) -> None:
    """Namespaces that nobody lists are those that brokers own bundles of."""
    for path in ("/admin/v2/tenants", "/admin/v2/namespaces/acme"):
        good = cluster.answers["", path]
        for body in (b'{"no": "list"}', b"[" * 50_000, b'["../..", 7, "acme/orders"]'):
            cluster.answers["", path] = (200, body, "application/json")
            out = options(cluster).out.parent / f"{len(body)}{path.replace('/', '-')}"
            result = capture_cluster(options(cluster, out=out))
            assert "acme/orders" in result.snapshot.namespaces
            assert any(w.startswith(path) for w in result.snapshot.info.warnings)
        cluster.answers["", path] = good


@pytest.mark.parametrize(("version", "asked"), [("4.0.8", 1), ("4.2.4", 0)])
def test_whose_monitors_are_no_namespaces_is_for_the_release(
    version: str, asked: int, cluster: Cluster, options: Options
) -> None:
    """Up to 4.0.8 `sla-monitor/<broker>` is a namespace like any other."""
    cluster.answers["", "/admin/v2/brokers/version"] = (200, f'"{version}"'.encode(), "application/json")
    owned = next(key for key in cluster.answers if key[1].endswith("/ownedNamespaces"))
    bundles = json.loads(cluster.answers[owned][1]) | {"sla-monitor/b:8080/0x00000000_0xffffffff": {}}
    cluster.answers[owned] = (200, json.dumps(bundles).encode(), "application/json")
    capture_cluster(options(cluster))
    assert cluster.paths().count("/admin/v2/namespaces/sla-monitor/b:8080/bundles") == asked


def test_brokers_outside_of_the_pattern_are_not_asked(cluster: Cluster, options: Options) -> None:
    token = options(cluster).out.parent / "token"
    token.write_text("secret-token-of-the-operator")
    wanted = cluster.ids[RECORDED[0]]
    credentials = Credentials(token_file=token)
    result = capture_cluster(options(cluster, brokers_in=(wanted,), credentials=credentials))
    asked = {broker for broker, _, _, headers in cluster.asked if "Authorization" in headers}
    assert asked == {RECORDED[0]}
    notes = [w for w in result.snapshot.info.warnings if "not covered by --brokers-in" in w]
    assert len(notes) == len(RECORDED) - 1


LIES = {
    "a name that is no UTF-8": b"\x00\x00\x00\x1bXID!"
    + bytes(7)
    + b"\x01"
    + bytes(4)
    + b"\x00\x00\x00\x01\x00\x00\x00\x03\xff\xfe\xfd",
    "a length that lies": b"\x00\x00\x00\x14XID!" + bytes(7) + b"\x01" + bytes(4) + b"\x7f\xff\xff\xff",
    "a short frame": b"\x00\x00\x00\x02ab",
    "a frame of 2 GiB": b"\x7f\xff\xff\xff" + bytes(1000),
    "a frame of less than nothing": b"\xff\xff\xff\xf0" + bytes(100),
    "another answer": b"\x00\x00\x00\x10ABCD" + bytes(12),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_metadata_store_that_lies_is_named(
    lie: str, cluster: Cluster, zookeeper: ZooKeeper, options: Options, capfd: pytest.CaptureFixture[str]
) -> None:
    zookeeper.lies["/loadbalance/bundle-data"] = LIES[lie]
    limits = {"request_s": 5.0, "connect_s": 1.0, "attempts": 1}
    with pytest.raises(CaptureError, match="ZooKeeper did not answer") as error:
        capture_cluster(options(cluster, metadata_store=zookeeper.address, limits=limits))
    assert "without the metadata store" in str(error.value)
    assert "Traceback" not in capfd.readouterr().err


def test_a_child_of_a_node_that_no_path_leads_to_is_passed_over(
    cluster: Cluster, zookeeper: ZooKeeper, options: Options, tmp_path: Path
) -> None:
    before = capture_cluster(options(cluster, metadata_store=zookeeper.address)).snapshot
    zookeeper.children["/loadbalance/brokers"] |= {"..", ".", "", "a/b"}
    after = capture_cluster(options(cluster, metadata_store=zookeeper.address, out=tmp_path / "again")).snapshot
    assert after.brokers.name == before.brokers.name
