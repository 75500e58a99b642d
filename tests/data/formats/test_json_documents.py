"""Documents as people write them, and as they should not."""

import contextlib
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from planner.cluster.errors import FormatError, SnapshotError
from planner.cluster.load_manager import LoadManager
from planner.cluster.snapshot import Snapshot
from planner.formats.document import FORMAT, write_document
from planner.formats.reading import read_snapshot, read_upload

Edit = Callable[[dict[str, Any]], Any]

SMALL: dict[str, Any] = {
    "format": FORMAT,
    "version": 1,
    "info": {"cluster": "small", "load_manager": "modular", "captured_at_ms": 1_800_000_000_000},
    "settings": {"loadBalancerBrokerThresholdShedderPercentage": 20},
    "brokers": [
        {"name": "b-1:8080", "cpu_percent": {"usage": 120, "limit": 400}, "weighted_max_ema": None},
        {"name": "b-2:8080", "cpu_percent": {"usage": 10.5, "limit": 400}},
    ],
    "bundles": [
        {"namespace": "acme/orders", "range": "0x00000000_0x80000000", "owner": "b-1:8080", "msg_rate_in_per_s": 5},
        {
            "namespace": "acme/orders",
            "range": "0x80000000_0xffffffff",
            "short_term": {"samples": 10, "msg_throughput_in_bytes_per_s": 1e6},
        },
    ],
    "topics": [{"name": "persistent://acme/orders/created", "producers": 2}],
}


def read(value: Any) -> Snapshot:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return read_upload("small.json", io.BytesIO(data))


def edited(edit: Edit) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(json.dumps(SMALL))
    edit(value)
    return value


def test_a_document_written_by_hand() -> None:
    snapshot = read(SMALL)
    assert snapshot.info.load_manager is LoadManager.MODULAR
    assert snapshot.settings.integer("loadBalancerBrokerThresholdShedderPercentage") == 20
    assert snapshot.brokers.cpu_usage_percent.tolist() == [120.0, 10.5]
    assert snapshot.bundle_names == ("acme/orders/0x00000000_0x80000000", "acme/orders/0x80000000_0xffffffff")
    assert snapshot.bundles.owner.tolist() == [0, -1]
    assert snapshot.bundles.short_term_samples.tolist() == [0, 10]
    assert snapshot.bundles.has_stats.tolist() == [True, True]
    assert snapshot.topics.bundle.tolist() == [0 if snapshot.topics.hash[0] < 0x8000_0000 else 1]


def test_without_topics_settings_and_policies() -> None:
    for key in ("topics", "settings"):
        read(edited(lambda v, key=key: v.pop(key)))  # type: ignore[misc]


def test_from_a_file_with_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_bytes(b"\xef\xbb\xbf" + json.dumps(SMALL).encode())
    assert len(read_snapshot(tmp_path / "s.json").brokers) == 2


def test_is_written_as_a_person_would(cluster: Snapshot) -> None:
    text = write_document(cluster)
    value = json.loads(text)
    assert set(value["brokers"][0]["cpu_percent"]) == {"usage", "limit"}
    assert set(value["bundles"][0]) >= {"namespace", "range"}
    assert not {"low", "high", "hash", "bundle"} & {*value["bundles"][0], *value["topics"][0]}
    assert all("owner" not in row or row["owner"] in cluster.brokers.name for row in value["bundles"])
    assert len(text.splitlines()) < 3 + 8 + 30 + 40  # one line for each row
    assert "has_stats" not in text.replace('"has_stats": false', "")  # defaults are left out


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "The file is empty"),
        (b"   \n", "The file is empty"),
        (b"\xff\xfe{\x00", "Byte 0 is not UTF-8"),
        (json.dumps(SMALL).encode().replace(b"small", b"sm\xe4ll"), "Byte .* is not UTF-8"),
        (
            b"<!DOCTYPE html><html><head><title>502 Bad Gateway</title></head></html>",
            "HTML page, not JSON: 502 Bad Gateway",
        ),
        (json.dumps(SMALL).encode()[:-40], "Not valid JSON: .* line 1, column .*incomplete"),
        (b"{'format': 1}", "Not valid JSON: .* line 1, column 2"),
        (b'{"a": NaN}', "NaN is not a number in JSON"),
        (b'{"a": -Infinity}', "-Infinity is not a number"),
        (b'{"a": 1e999}', "The number 1e999 is too large"),
        (b'{"a": ' + b"9" * 5_000 + b"}", "too many digits"),
        (b'{"a": 1, "b": {"c": 1, "c": 2}}', "The key 'c' occurs twice"),
        (b"[" * 200_000, "nested too deeply"),
        (b'{"a":' * 100_000, "nested too deeply"),
        (b'{"a": "\\ud800"}', "half of a surrogate pair"),
        (b"[]", "not a snapshot document"),
        (b"5", "not a snapshot document"),
        (b'{"cpu": {"usage": 1}}', "not a snapshot document.*Load your cluster"),
        (b"PAR1\x00\x00", "one Parquet file"),
        (b"\x89PNG\r\n\x1a\n", "not UTF-8"),
    ],
    ids=range(20),
)
def test_no_json_or_no_document(data: bytes, message: str) -> None:
    with pytest.raises(FormatError, match=rf"(?s)^small\.json: .*{message}") as caught:
        read(data)
    assert caught.value.remedy


def test_many_repeated_keys_take_no_time() -> None:
    keys = ", ".join(f'"{i}": 0' for i in range(200_000))
    with pytest.raises(FormatError, match="The key '199999' occurs twice"):
        read(f'{{{keys}, "199999": 0}}'.encode())


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda v: v.update(version=2), r"small.json: .* format version 2"),
        (lambda v: v.update(version=None), r"format version null"),
        (lambda v: v.update(brokerz=[]), r"The field 'brokerz' is unknown"),
        (lambda v: v.pop("info"), r"small.json: info: "),
        (lambda v: v["info"].update(cluster=""), r"small.json: info: cluster"),
        (lambda v: v.update(settings=[1]), r"small.json: settings: "),
        (
            lambda v: v["settings"].update(loadBalancerEnabld=True),
            r"settings.loadBalancerEnabld: .* loadBalancerEnabled",
        ),
        (lambda v: v["settings"].update(loadBalancerEnabled="perhaps"), r"settings.loadBalancerEnabled: 'perhaps'"),
        (lambda v: v.update(policies={"isolations": []}), r"small.json: policies: isolations"),
        (lambda v: v.update(brokers={}), r"small.json: brokers: 'brokers' is not a list"),
    ],
)
def test_head(edit: Edit, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        read(edited(edit))


@pytest.mark.parametrize(
    ("edit", "part", "row", "message"),
    [
        (lambda v: v["brokers"].append(5), "brokers", 3, "5 is not an object"),
        (lambda v: v["brokers"][1].pop("name"), "brokers", 2, "'name' is missing"),
        (lambda v: v["brokers"][1].update(name=7), "brokers", 2, "'name' is 7"),
        (lambda v: v["brokers"][0].update(cpu=1), "brokers", 1, "'cpu' is unknown. Did you mean 'cpu_percent"),
        (lambda v: v["brokers"][0].update(cpu_percent=7), "brokers", 1, "'cpu_percent' is 7, not an object"),
        (lambda v: v["brokers"][0]["cpu_percent"].update(used=7), "brokers", 1, "'cpu_percent.used' is unknown"),
        (
            lambda v: v["brokers"][0]["cpu_percent"].update(usage="high"),
            "brokers",
            1,
            "'cpu_percent.usage' is \"high\"",
        ),
        (lambda v: v["brokers"][0]["cpu_percent"].update(usage=None), "brokers", 1, "'cpu_percent.usage' is null"),
        (lambda v: v["brokers"][0]["cpu_percent"].update(usage=True), "brokers", 1, "is true"),
        (lambda v: v["brokers"][0]["cpu_percent"].update(usage=10**400), "brokers", 1, "is 1000"),
        (lambda v: v["brokers"][0]["cpu_percent"].update(usage=-5), "brokers", 1, "'cpu_usage_percent' is -5"),
        (lambda v: v["brokers"][0].update(topics=1.5), "brokers", 1, "'topics' is 1.5"),
        (lambda v: v["brokers"][0].update(topics=1 << 63), "brokers", 1, "'topics' is 9223372036854775808"),
        (lambda v: v["brokers"][1].update(name="b-1:8080"), "brokers", 2, "listed twice, first in row 1"),
        (lambda v: v["bundles"][1].update(owner="b-9:8080"), "bundles", 2, 'The owner "b-9:8080" is not one of the'),
        (lambda v: v["bundles"][1].update(owner=1), "bundles", 2, "'owner' is 1"),
        (lambda v: v["bundles"][1].update(range="0x8_0x9"), "bundles", 2, "'0x8_0x9' is not a bundle range"),
        (lambda v: v["bundles"][1].update(range="0x80000000_0x80000000"), "bundles", 2, "is empty"),
        (
            lambda v: v["bundles"][1].update(range="0x80000001_0xffffffff"),
            "bundles",
            2,
            "No bundle covers 0x80000000_0x80000001",
        ),
        (lambda v: v["bundles"][1].update(range="0x7fffffff_0xffffffff"), "bundles", 2, "overlaps .* of row 1"),
        (lambda v: v["bundles"].append(v["bundles"][0]), "bundles", 3, "listed twice, also in row 1"),
        (lambda v: v["bundles"][0].update(namespace="acme"), "bundles", 1, "'acme' is not a namespace"),
        (lambda v: v["bundles"][0].update(low=0), "bundles", 1, "'low' is unknown"),
        (lambda v: v["bundles"][0].update(top_rank=1 << 31), "bundles", 1, "'top_rank' is 2147483648"),
        (
            lambda v: v["topics"][0].update(name="persistent://acme/other/x"),
            "topics",
            1,
            "No bundle of the snapshot contains",
        ),
        (lambda v: v["topics"][0].update(name="created"), "topics", 1, "No bundle of the snapshot contains"),
        (lambda v: v["topics"][0].update(hash=5), "topics", 1, "'hash' is unknown"),
    ],
)
def test_rows(edit: Edit, part: str, row: int, message: str) -> None:
    with pytest.raises(SnapshotError, match=rf"^small\.json: {part}, row {row}: .*{message}") as caught:
        read(edited(edit))
    assert caught.value.violations[0].remedy


def test_all_bad_rows_are_listed() -> None:
    with pytest.raises(SnapshotError) as caught:
        read(edited(lambda v: [row.update(colour="red") for row in v["brokers"]]))
    assert [v.row for v in caught.value.violations] == [1, 2]
    with pytest.raises(SnapshotError) as caught:
        read(edited(lambda v: v.update(brokers=[{}] * 150)))
    assert (len(caught.value.violations), caught.value.total) == (100, 101)


@pytest.mark.parametrize("key", list(SMALL))
@pytest.mark.parametrize("value", [None, 0, "x", [], {}, [[]], [{}], [None], {"a": 1}, True, -1.5])
def test_any_nonsense_gives_a_message(key: str, value: Any) -> None:
    with contextlib.suppress(FormatError, SnapshotError):  # any other error fails the test
        read(edited(lambda v: v.update({key: value})))
