"""Raw rows are read, or put aside with line and reason; nothing is lost on the way."""

import gzip
import hashlib
import io
import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.cluster.errors import FormatError
from planner.cluster.snapshot import Snapshot
from planner.cluster.units import DAY_MS
from planner.formats.folder import write_folder
from planner.history import sources
from planner.history.lines import records_of_lines
from planner.history.prometheus import records_of_export
from planner.history.records import (
    BROKER_VALUES,
    BUNDLE_VALUES,
    SCHEMA,
    TOPIC_VALUES,
    DayFacts,
    Kind,
    Record,
    RowSetAside,
    Stream,
    Tally,
    batches,
)
from planner.history.sources import Block, SourceKind, blocks_of, find_sources, lines_of_block, read_block

AT = 1_800_000_000_000
BUNDLE = "acme/orders/0x00000000_0x80000000"
STATS = {
    "msgRateIn": 1.5,
    "msgRateOut": 3.0,
    "msgThroughputIn": 150.0,
    "msgThroughputOut": 300.0,
    "topics": 2,
    "producerCount": 3,
    "consumerCount": 4,
    "cacheSize": 5,
}
REPORT: dict[str, Any] = {
    "webServiceUrl": "http://10.0.0.1:8080",
    "cpu": {"usage": 120.0, "limit": 400.0},
    "memory": {"usage": 100.0, "limit": 200.0},
    "bandwidthIn": {"usage": -1.0, "limit": -1.0},
    "msgRateIn": 1.5,
    "lastUpdate": AT - 7,
    "numTopics": 2,
    "lastStats": {BUNDLE: STATS},
    "brokerVersionString": "4.2.4",
    "loadManagerClassName": "org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl",
}
TOPIC = "persistent://acme/orders/one"
TOPIC_STATS = {"msgRateIn": 1.0, "producerCount": 2, "subscriptions": {"s": {"consumers": [{}, {}]}}, "msgInCount": 77}


def lines(*rows: Any) -> list[Record | RowSetAside]:
    return list(records_of_lines([r if isinstance(r, bytes) else json.dumps(r).encode() for r in rows], "c", Tally()))


def only(row: Any) -> Record:
    (found,) = lines(row)
    assert isinstance(found, Record), found
    return found


def test_load_report_with_and_without_its_time_of_arrival() -> None:
    bare = only(REPORT)
    assert (bare.kind, bare.cluster, bare.time_ms, bare.broker) == (Kind.REPORT, "c", AT - 7, "10.0.0.1:8080")
    values = dict(zip(BROKER_VALUES, bare.values, strict=False))
    assert values["cpu_usage_percent"] == 120.0
    assert values["bandwidth_in_limit_kbit_per_s"] == values["reported_bundles"] == -1.0
    assert list(bare.names) == [BUNDLE]
    assert dict(zip(BUNDLE_VALUES, bare.values[len(BROKER_VALUES) :], strict=True))["consumers"] == 4
    around = only({"time_ms": AT, "cluster": "other", "broker": "b:1", "report": REPORT})
    assert (around.cluster, around.time_ms, around.broker, around.clock_lag_ms) == ("other", AT, "b:1", 7)


def test_topics_with_their_counters() -> None:
    answer = {"acme/orders": {BUNDLE.rpartition("/")[2]: {"persistent": {TOPIC: TOPIC_STATS}}}}
    found = only({"time_ms": AT, "broker": "b:1", "topics": answer})
    values = dict(zip(TOPIC_VALUES, found.values, strict=True))
    assert (values["producers"], values["consumers"], values["messages_in"]) == (2, 2, 77)
    assert values["bytes_out"] != values["bytes_out"]
    assert json.loads(found.text) == [BUNDLE]


def test_messages_of_the_extensible_load_manager() -> None:
    def message(topic: str, key: str, value: Any) -> Record:
        name = f"persistent://pulsar/system/loadbalancer-{topic}"
        return only({"topic": name, "key": key, "publish_time_ms": AT, "value": value})

    load = message("broker-load-data", "b:1", {**REPORT, "weightedMaxEMA": 0.25, "updatedAt": AT - 1})
    assert (load.kind, load.broker) == (Kind.REPORT, "b:1")
    assert load.values[BROKER_VALUES.index("weighted_max_ema")] == 0.25
    top = message("top-bundles-load-data", "b:1", {"topBundlesLoadData": [{"bundleName": BUNDLE, "stats": STATS}]})
    assert (top.kind, list(top.names), top.values[0]) == (Kind.TOP, [BUNDLE], 1.5)
    for value, owner in (
        ({"state": "Owned", "dstBroker": "b:2", "sourceBroker": "b:1"}, "b:2"),
        ({"state": "Assigning", "dstBroker": "b:2", "sourceBroker": "b:1"}, "b:2"),
        ({"state": "Assigning", "dstBroker": "b:2"}, "b:2"),
        ({"state": "Releasing", "dstBroker": "b:2", "sourceBroker": "b:1"}, "b:2"),
        ({"state": "Releasing", "sourceBroker": "b:1"}, ""),
        ({"state": "Splitting", "sourceBroker": "b:1"}, "b:1"),
        ({"state": "Deleted", "sourceBroker": "b:1"}, ""),
        ({"state": "Free"}, ""),
        ("", ""),
    ):
        state = message("service-unit-state", BUNDLE, value)
        assert (state.kind, state.broker, list(state.names)) == (Kind.STATE, owner, [BUNDLE])
    assert message("top-bundles-load-data", "b:1", "").text == "withdrawn"


_USUAL = json.dumps({"time_ms": AT, "cluster": "c", "broker": "b:1", "report": REPORT})
_TOPICS = json.dumps({"time_ms": AT, "broker": "b:1", "topics": {"acme/orders": {BUNDLE.rpartition("/")[2]: {}}}})


@pytest.mark.parametrize(
    ("line", "was", "now"),
    [
        (_USUAL, '"time_ms"', '"time_ms": 5, "time_ms"'),
        (_USUAL, '"broker"', '"broker": "x:1", "br\\u006fker"'),
        (_USUAL, '"cpu"', '"cpu": {"usage": 1, "limit": 2}, "cpu"'),
        (_USUAL, '"usage"', '"usage": 1, "usage"'),
        (_USUAL, f'"{BUNDLE}"', f'"{BUNDLE}": {{}}, "{BUNDLE}"'),
        (_USUAL, f'"{BUNDLE}"', f'"{BUNDLE}": {json.dumps(STATS)}, "{BUNDLE}"'),
        (_USUAL, '"topics"', '"topics": 9, "topics"'),
        (_USUAL, '"topics"', '"topics" : 9, "topics"'),
        (_USUAL, '"topics": 2', '"topics": 9, "topics": 2, "nobody": 1'),
        (_USUAL, '"cacheSize": 5', '"topics": 9'),
        (_USUAL, '"numTopics"', '"protocols": {"a": 1, "a": 2}, "numTopics"'),
        (_USUAL, '"numTopics"', '"gains": [{"a": 1, "a": 2}], "numTopics"'),
        (_USUAL.replace("4.2.4", 'a\\"b\\\\'), '"cpu"', '"cpu": {}, "cpu"'),
        (_TOPICS, '"time_ms"', '"time_ms": 5, "time_ms"'),
        (_TOPICS, '"acme/orders"', '"acme/orders": {}, "acme/orders"'),
    ],
)
def test_a_key_that_occurs_twice_is_put_aside(line: str, was: str, now: str) -> None:
    assert was in line
    (found,) = lines(line.replace(was, now, 1).encode())
    assert isinstance(found, RowSetAside)
    assert "occurs twice in one object" in found.reason
    assert isinstance(only(line.encode()), Record)


@pytest.mark.parametrize(
    "extra", ['"a\\":b": 1', '"a\\\\": 1', '"a" : 1', '"a": "x\\":y"', '"a": ":", "b": {"c": [{"d": 1}]}']
)
def test_what_looks_like_a_key_is_none(extra: str) -> None:
    assert isinstance(only(_USUAL.replace('"cpu"', f'{extra}, "cpu"', 1).encode()), Record)
    assert isinstance(only(_TOPICS.replace('"time_ms"', f'{extra}, "time_ms"', 1).encode()), Record)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (b"{\n", "Not valid JSON"),
        (b"[1]", "not a JSON object"),
        (b'{"cpu": NaN}', "NaN is not a number"),
        (b"\xff\xfe", "not UTF-8"),
        ({"a": 1}, "no known form"),
        ({**REPORT, "lastUpdate": 0}, "time is missing"),
        ({**REPORT, "webServiceUrl": None}, "broker is not named"),
        ({**REPORT, "cpu": {"usage": -4, "limit": 5}}, "not a finite number"),
        ({**REPORT, "cpu": {"usage": "4", "limit": 5}}, "not a finite number"),
        ({**REPORT, "cpu": {"usage": 1e39, "limit": 5}}, "cpu.usage 1e+39 is more than 1e+18"),
        ({**REPORT, "cpu": {"usage": 4, "limit": 1e-40}}, "not a valid percentage"),
        ({**REPORT, "lastStats": {"acme/orders/0x0_0x1": STATS}}, "not a bundle name"),
        ({**REPORT, "lastStats": {BUNDLE: {**STATS, "msgRateIn": -1}}}, "not a finite number"),
        ({**REPORT, "lastStats": {BUNDLE: {**STATS, "topics": 1.5}}}, "not a whole number"),
        ({**REPORT, "lastStats": {BUNDLE: {**STATS, "topics": "2"}}}, "not a whole number"),
        ({**REPORT, "lastStats": {BUNDLE: 3}}, "not an object"),
        ({"time_ms": AT, "broker": "b:1", "topics": {"a/b": {"0x00000000_0xffffffff": {"p": {"x": {}}}}}}, "topic"),
        ({"time_ms": AT, "topics": {}}, "broker is not named"),
        ({"status": "error", "error": "query timed out"}, "query timed out"),
        ({"topic": "persistent://a/b/c", "key": "k", "publish_time_ms": AT, "value": {}}, "not from a load balancer"),
    ],
)
def test_bad_line_is_put_aside_with_its_reason(row: Any, words: str) -> None:
    good, bad, again = lines(REPORT, row, REPORT)
    assert isinstance(good, Record)
    assert isinstance(again, Record)
    assert isinstance(bad, RowSetAside)
    assert words in f"{bad.place} {bad.reason}"
    assert (bad.line, again.line, bad.rows) == (2, 3, 1)
    assert bad.raw == (row if isinstance(row, bytes) else json.dumps(row).encode())


@settings(deadline=None)
@given(st.lists(st.one_of(st.binary(max_size=30), st.just(json.dumps(REPORT).encode())), max_size=8))
def test_every_line_is_a_record_or_put_aside(rows: list[bytes]) -> None:
    tally = Tally()
    found = list(records_of_lines(rows, "c", tally))
    assert len(found) == tally.rows == sum(bool(r.strip()) for r in rows)
    assert tally.lines == len(rows)


def export(*series: Any) -> bytes:
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": series}}).encode()


def series(name: str, values: list[Any], **labels: str) -> dict[str, Any]:
    return {"metric": {"__name__": name, "instance": "b:8080", "cluster": "p", **labels}, "values": values}


def test_export_is_read_series_by_series_and_cut_by_the_hour() -> None:
    start = AT // 3_600_000 * 3_600
    samples = [[start + 60 * i, str(i)] for i in range(90)]
    found = list(
        records_of_export(io.BytesIO(export(series("pulsar_bundle_msg_rate_in", samples, bundle=BUNDLE))), "c", Tally())
    )
    assert all(isinstance(r, Record) for r in found)
    records = [r for r in found if isinstance(r, Record)]
    assert [(r.cluster, r.broker, r.rows, r.time_ms) for r in records] == [
        ("p", "b:8080", 60, start * 1_000),
        ("p", "b:8080", 30, start * 1_000 + 3_600_000),
    ]
    assert list(records[1].values) == [float(i) for i in range(60, 90)]
    assert records[0].times[1] == start * 1_000 + 60_000


def test_bad_series_and_samples_are_counted() -> None:
    good = [[AT / 1_000, "1"], [AT / 1_000 + 60, "2"]]
    data = export(
        series("pulsar_rate_in", [*good, [AT / 1_000, "NaN"], ["x", "1"], [1]], topic=TOPIC),
        series("up", good),
        series("pulsar_rate_in", good, namespace="acme/orders"),
        {"metric": {"__name__": "pulsar_lb_cpu_usage"}, "values": good},
        {"values": 3},
    )
    found = list(records_of_export(io.BytesIO(data), "c", Tally()))
    aside = [a for a in found if isinstance(a, RowSetAside)]
    assert [(a.line, a.rows) for a in aside] == [(1, 3), (2, 2), (3, 2), (4, 2), (5, 1)]
    assert "NaN is not a finite number" in aside[0].reason
    assert sum(r.rows for r in found) == 12


def test_export_that_is_cut_off_keeps_what_comes_before() -> None:
    data = export(*(series("pulsar_rate_in", [[AT / 1_000, "1"]], topic=f"{TOPIC}{i}") for i in range(5)))
    found = list(records_of_export(io.BytesIO(data[: len(data) * 3 // 5]), "c", Tally()))
    assert [isinstance(r, Record) for r in found[:-1]] == [True] * (len(found) - 1)
    assert isinstance(found[-1], RowSetAside)
    assert "incomplete or damaged" in found[-1].reason
    (error,) = records_of_export(io.BytesIO(b'{"status":"error","error":"too many points"}'), "c", Tally())
    assert isinstance(error, RowSetAside)
    assert b"too many points" in error.raw


def test_sources_are_told_apart(tmp_path: Path, small: Snapshot) -> None:
    write_folder(small, tmp_path / "in" / "snap")
    (tmp_path / "in" / "a.jsonl").write_bytes(b"{}\n")
    with gzip.open(tmp_path / "in" / "b.ndjson.gz", "wb") as file:
        file.write(json.dumps(REPORT).encode())
    (tmp_path / "in" / "c.json").write_bytes(export())
    (tmp_path / "in" / "readme.md").write_text("x")
    os.mkfifo(tmp_path / "in" / "pipe.json")
    (tmp_path / "in" / ".hidden").write_text("x")
    history = tmp_path / "in" / "history"
    history.mkdir()
    (history / "x.jsonl").write_text("{}")
    days = tmp_path / "in" / "watched"
    (days / "cluster=a" / "day=2027-01-11").mkdir(parents=True)
    for name in ("ledger.json", "set_aside/x.jsonl"):  # what tells of a history is no part of it
        (days / name).parent.mkdir(exist_ok=True)
        (days / name).write_text("{}")
    found = find_sources([tmp_path / "in"], history)
    assert [(Path(s.path).name, s.kind) for s in found] == [
        ("a.jsonl", SourceKind.LINES),
        ("b.ndjson.gz", SourceKind.LINES),
        ("c.json", SourceKind.EXPORT),
        ("pipe.json", SourceKind.UNKNOWN),
        ("readme.md", SourceKind.UNKNOWN),
        ("snap", SourceKind.SNAPSHOT),
    ]
    kinds = [[type(item).__name__ for item in read_block(blocks_of(s)[0], "c", Tally())] for s in found]
    assert kinds == [["RowSetAside"], ["Record"], ["RowSetAside"], ["RowSetAside"], ["RowSetAside"], ["Record"]]
    for wrong in ([tmp_path / "absent"], [history]):
        with pytest.raises(FormatError):
            find_sources(wrong, history)


def test_damaged_files_are_put_aside(tmp_path: Path, small: Snapshot) -> None:
    packed = gzip.compress(json.dumps(REPORT).encode() * 50)
    (tmp_path / "cut.jsonl.gz").write_bytes(packed[:-30])
    write_folder(small, tmp_path / "snap")
    (tmp_path / "snap" / "bundles.parquet").write_bytes(b"x")
    for source in find_sources([tmp_path], tmp_path / "none"):
        found = list(read_block(blocks_of(source)[0], "c", Tally()))
        assert isinstance(found[-1], RowSetAside)
        assert found[-1].reason


@settings(deadline=None)
@given(st.lists(st.text(alphabet="ab\n", max_size=6), max_size=12), st.integers(1, 9))
def test_blocks_share_the_lines_out_without_loss(
    tmp_path_factory: pytest.TempPathFactory, parts: list[str], size: int
) -> None:
    path = tmp_path_factory.mktemp("blocks") / "x.jsonl"
    text = "".join(parts).encode()
    path.write_bytes(text)
    kept, sources.BLOCK_BYTES = sources.BLOCK_BYTES, size
    try:
        source = sources.Source(str(path), SourceKind.LINES, len(text), 0)
        found = [line for block in blocks_of(source) for line in lines_of_block(block)]
    finally:
        sources.BLOCK_BYTES = kept
    assert found == text.splitlines(keepends=True)


def test_stream_has_the_declared_types_and_carries_the_last_minutes() -> None:
    midnight = (AT // DAY_MS + 1) * DAY_MS
    early = Record(Kind.REPORT, "c", midnight - 600_000, "b:1", names=[BUNDLE], values=[1.0], clock_lag_ms=5)
    late = Record(Kind.REPORT, "c", midnight - 1_000, "b:1", clock_lag_ms=-3)
    found = list(batches([late, early, RowSetAside("bad", 9, raw=b"\xff")], 4, 60_000, Tally()))
    assert all(b.schema == SCHEMA for b in found)
    rows = pa.Table.from_batches(found).to_pylist()
    kept = [(r["day"] - midnight // DAY_MS, r["carry"]) for r in rows if r["lane"] == Stream.ROW]
    assert kept == [(-1, False), (0, True), (-1, False)]
    hints = {(r["kind"], r["day"] - midnight // DAY_MS): r for r in rows if r["lane"] == Stream.HINT}
    hint = DayFacts()
    for row in (hints["bundles", -1], hints["clocks", -1]):
        hint.take(row)
    assert hint.first_ms == {BUNDLE: midnight - 600_000}
    assert hint.late == 1  # one row stands after a later one
    assert hint.lag_ms == {"b:1": [-3, 5]}
    (aside,) = [r for r in rows if r["lane"] == Stream.ASIDE]
    assert (aside["line"], aside["body"], aside["source"], aside["measure"]) == (9, b"\xff", 4, 1)
    assert aside["subject"] == hashlib.sha256(b"\xff").hexdigest()


def test_digest_depends_on_content_alone() -> None:
    def digest(record: Record) -> tuple[int, int]:
        row = pa.Table.from_batches(list(batches(iter([record]), 0, 0, Tally()))).to_pylist()[0]
        return row["digest_low"], row["digest_high"]

    one = Record(Kind.TOP, "c", AT, "b:1", names=[BUNDLE], values=[1.0, 2.0], line=3)
    same = Record(Kind.TOP, "c", AT, "b:1", names=[BUNDLE], values=[1.0, 2.0], line=8)
    other = Record(Kind.TOP, "c", AT, "b:1", names=[BUNDLE], values=[1.0, 2.5], line=3)
    assert digest(one) == digest(same) != digest(other)
    assert Block("p", SourceKind.LINES, 0, 1) == Block("p", SourceKind.LINES, 0, 1)
