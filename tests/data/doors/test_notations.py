"""Whatever a tool writes before lines, or in whatever notation or compression: the answer is the same, or refused."""

import base64
import bz2
import gzip
import html
import io
import json
import lzma
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
import yaml

from planner.doors.pieces import Configuration
from planner.doors.read import Given, read_given
from tests.data.doors.test_kinds import FILES, INPUTS, pieces, shown

SOME = [path for path in FILES if path.parent.name not in ("options_of_commands", "differences")]
"""Their own lines begin with what may be a prefix, or continue the one before."""
ANSWERS = [path for path in FILES if path.suffix == ".json" and not path.parent.name.startswith("settings_")]


def before_each(prefix: str) -> Callable[[str], str]:
    return lambda text: "".join(f"{prefix}{line}" for line in text.splitlines(keepends=True))


def numbered(text: str) -> str:
    return "".join(f"{at:6}\t{line}" for at, line in enumerate(text.splitlines(keepends=True), 1))


PREFIXES: dict[str, Callable[[str], str]] = {
    "kubectl logs --prefix": before_each("[pod/pulsar-broker-0/broker] "),
    "stern": before_each("pulsar-broker-0 broker "),
    "docker compose": before_each("broker-1  | "),
    "syslog": before_each("Nov 25 03:12:11 host pulsar[123]: "),
    "cat -n": numbered,
}


@pytest.mark.parametrize("name", PREFIXES)
@pytest.mark.parametrize("path", SOME, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_what_tools_write_before_each_line_is_taken_away(path: Path, name: str) -> None:
    text = path.read_text(encoding="utf-8-sig")
    assert shown(pieces(PREFIXES[name](text).encode(), path.name)) == shown(pieces(text.encode(), path.name))


@pytest.mark.parametrize("path", ANSWERS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_answers_in_yaml_python_and_a_text_of_json(path: Path) -> None:
    """As `yq`, `print(json.loads(…))` and a log of JSON write them."""
    value = json.loads(path.read_text(encoding="utf-8-sig"))
    if not isinstance(value, dict | list) or path.parent.name == "terraform" or not value:
        pytest.skip("YAML of it has a meaning of its own")
    plain = shown(pieces(path.read_bytes(), path.name))
    if "NotUsed" in plain[0] and "JSON of an unknown kind" in plain[0]:
        pytest.skip("it is no answer")
    named = path.parent.name in ("lookups", "errors")
    for other in (yaml.safe_dump(value, sort_keys=False), f"{value!r}\n", json.dumps(json.dumps(value))):
        assert named or shown(pieces(other.encode(), path.name)) == plain


@pytest.mark.parametrize("form", ["runtime", "dynamic"])
def test_settings_of_a_running_broker_stay_so_in_another_notation(form: str) -> None:
    """In YAML they were taken for a file, and in the others they were of an unknown kind."""
    command = {"runtime": "get-runtime-config", "dynamic": "get-all-dynamic-config"}[form]
    value = {"loadBalancerSheddingEnabled": "false", "clusterName": "east"}
    lines = "".join(f"{key}={one}\n" for key, one in value.items())
    for text in (yaml.safe_dump(value), f"{value!r}\n", json.dumps(json.dumps(value)), json.dumps(value), lines):
        (found,) = pieces(f"$ pulsar-admin brokers {command} | jq .\n{text}\n".encode(), "1.txt")
        assert isinstance(found, Configuration)
        assert (found.form, found.values) == (form, {"loadBalancerSheddingEnabled": "false"})


def test_nodes_that_etcdctl_prints_as_json_are_read() -> None:
    """Its keys and values are in base64; they were JSON of an unknown kind."""
    plain = (INPUTS / "averages/etcdctl_4_0.txt").read_text()
    lines = [line for line in plain.splitlines() if line]
    start = next(at for at, line in enumerate(lines) if line.startswith("/"))
    nodes = list(zip(lines[start::2], lines[start + 1 :: 2], strict=False))
    assert all(path.startswith("/") for path, _ in nodes)
    pairs = [
        {"key": base64.b64encode(a.encode()).decode(), "value": base64.b64encode(b.encode()).decode()} for a, b in nodes
    ]
    command = "$ etcdctl get --prefix /loadbalance -w json\n"
    text = command + json.dumps({"header": {"revision": 5}, "kvs": pairs, "count": len(pairs)})
    assert shown(pieces(text.encode(), "1.txt")) == shown(pieces(plain.encode(), "1.txt"))
    pairs[0]["value"] = "???"
    damaged = pieces((command + json.dumps({"kvs": pairs})).encode(), "1.txt")
    assert "JSON of an unknown kind, with the keys key, value" in str(damaged[0])
    assert len(damaged) == len(pairs)


def test_policies_in_yaml_are_no_settings_of_brokers() -> None:
    """Their dispatch limits have the names of settings."""
    value = json.loads((INPUTS / "policies_of_namespace" / "policies.shop_orders.json").read_text())
    reading = read_given([Given("policies.shop_orders.yaml", io.BytesIO(yaml.safe_dump(value).encode()))])
    assert reading.configurations == ()
    assert reading.found == ("policies of 1 namespace",)


def zstd(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return bytes(sink.getvalue().to_pybytes())


@pytest.mark.parametrize("pack", [bz2.compress, lzma.compress, zstd], ids=range(3))
def test_other_compressions_are_unpacked_within_bounds(pack: Callable[[bytes], bytes]) -> None:
    path = INPUTS / "load_report" / "pretty_4_0.json"
    data = path.read_bytes()
    assert shown(pieces(pack(data), path.name)) == shown(pieces(data, path.name))
    assert shown(pieces(gzip.compress(pack(data)), path.name)) == shown(pieces(data, path.name))
    for packed, said in ((pack(b"x" * 40_000_000), "unpacks to too much"), (pack(data)[:-20], "file is")):
        [why] = read_given([Given("x", io.BytesIO(packed))]).not_used
        assert said in why


def test_resources_in_base64_and_sources_of_pages_are_read() -> None:
    path = INPUTS / "load_report" / "pretty_4_0.json"
    plain = shown(pieces(path.read_bytes(), path.name))
    assert shown(pieces(base64.encodebytes(path.read_bytes()), path.name)) == plain
    packed = base64.b64encode(base64.b64encode(gzip.compress(path.read_bytes())))
    assert shown(pieces(packed, path.name)) == plain  # as Helm stores a release in a Secret
    assert shown(pieces(html.escape(path.read_text()).encode(), path.name)) == plain


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"7z\xbc\xaf\x27\x1c\x00\x04xyz", "a 7z archive"),
        (b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj", "a PDF document"),
        (bytes(range(256)) * 4, "It is not text"),
    ],
)
def test_what_is_no_text_is_called_so(data: bytes, said: str) -> None:
    [why] = read_given([Given("x", io.BytesIO(data))]).not_used
    assert said in why
    assert "plain text" in why


def test_a_document_of_office_is_called_so() -> None:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("xl/workbook.xml", "<workbook/>")
    [why] = read_given([Given("x.xlsx", data)]).not_used
    assert "a document of Office" in why


def test_a_damaged_answer_is_not_called_useless() -> None:
    """It said that the planner does not use the answer to a command whose answer it does use."""
    text = "$ pulsar-admin broker-stats topics\nsomething else\nthat is no answer\n"
    [why] = read_given([Given("x", io.BytesIO(text.encode()))]).not_used
    assert "that broker-stats topics does not print; save its answer unchanged" in why
