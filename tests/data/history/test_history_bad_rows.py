"""Whatever a recording holds: rows that cannot be read are put aside, counted, and cost themselves alone."""

import gzip
import hashlib
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.cluster.errors import FormatError, ReplayError
from planner.cluster.moments import LAST_MS
from planner.cluster.units import DAY_MS
from planner.formats.reading import read_snapshot
from planner.history import lines as module
from planner.history import prometheus, records, sources
from planner.history.days import snapshot_at
from planner.history.ingest import SET_ASIDE, _plain_errors, ingest
from planner.history.ledger import read_ledger
from planner.history.manifest import MANIFEST, complete_days, day_folder, day_of
from planner.history.records import SCHEMA, RowSetAside, Stream, Tally, batches
from planner.history.sources import blocks_of, find_sources, read_block
from planner.history.spec import Options
from planner.history.watched import HistoryFolder
from planner.replay.grid import Grid, job_over
from planner.replay.kernel import frames_of
from planner.replay.spec import Job, tasks_of
from planner.shadow.record import clusters_of
from planner.simulate.scenario import Scenario
from tests.data.history.test_history_records import AT, BUNDLE, REPORT, STATS, TOPIC

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SAMPLES = Path(__file__).parent.parent.parent.parent / "sample_snapshots"
GOOD = {"time_ms": AT, "cluster": "c", "broker": "b:1", "report": REPORT}
LABELS = {"__name__": "pulsar_rate_in", "instance": "b:1", "topic": TOPIC}
SERIES: dict[str, Any] = {"metric": LABELS, "values": [[AT / 1_000, "1"]]}
STATE = {"topic": "persistent://p/s/loadbalancer-service-unit-state", "key": BUNDLE, "publish_time_ms": AT}


def export(*series: Any, **more: Any) -> str:
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": [*series, SERIES]}, **more})


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_objects_over_several_lines_are_rows(end: str, tmp_path: Path) -> None:
    """As `pulsar-admin` and `jq` print them, one after the other; each line was put aside as no JSON."""
    path = tmp_path / "reports.jsonl"
    printed = json.dumps(GOOD, indent=2)
    rows = [printed, json.dumps(GOOD), printed, '{\n  "torn": 1,', json.dumps(GOOD), printed]
    path.write_text(end.join(rows) + "\n", encoding="utf-8", newline="")
    found = list(read_block(blocks_of(find_sources([path], tmp_path / "none")[0])[0], "c", Tally()))
    assert [type(one).__name__ for one in found] == ["Record", "Record", "Record", "RowSetAside", "Record", "Record"]
    height = printed.count("\n") + 1
    assert [one.line for one in found] == [1, height + 1, height + 2, 2 * height + 2, 2 * height + 4, 2 * height + 5]


def test_a_large_file_of_such_objects_is_read_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "BLOCK_BYTES", 1_000)
    for indent, number in ((2, 1), (None, 3)):
        path = tmp_path / f"{number}.jsonl"
        path.write_text("\n".join([json.dumps(GOOD, indent=indent)] * 9), encoding="utf-8")
        (source,) = find_sources([path], tmp_path / "none")
        assert (len(blocks_of(source)) == 1) == (number == 1)


def stream_of(path: Path) -> list[dict[str, Any]]:
    """Do what the workers of the first stage do."""
    rows: list[dict[str, Any]] = []
    for source in find_sources([path], path.parent / "none"):
        for block in blocks_of(source):
            tally = Tally()
            found = batches(read_block(block, "c", tally), 0, 960_000, tally, block.first)
            rows += pa.Table.from_batches(list(found), SCHEMA).to_pylist()
    return rows


def check(path: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """See that every row is kept or put aside; return both."""
    rows = stream_of(path)
    kept = [r for r in rows if r["lane"] == Stream.ROW and not r["carry"]]
    aside = [r for r in rows if r["lane"] == Stream.ASIDE]
    assert sum(r["rows"] for r in rows if r["lane"] == Stream.BLOCK) == sum(r["rows"] for r in (*kept, *aside))
    for row in rows:
        assert len(row["body"]) <= records.MOST_RAW_BYTES or row["lane"] != Stream.ASIDE
        assert len(row["text"]) < 2_000
        if row["lane"] == Stream.ROW:
            assert day_of(row["day"] * DAY_MS)
            assert len(day_folder(Path("x"), row["cluster"], "2027-01-01").parent.name.encode()) < 255
    return kept, aside


@pytest.mark.parametrize(
    "bad",
    [
        {**GOOD, "time_ms": AT * 1_000},
        {**GOOD, "time_ms": LAST_MS + 1},
        {**REPORT, "lastUpdate": AT * 1_000},
        {**GOOD, "report": {**REPORT, "lastUpdate": AT * 1_000}},
        {**GOOD, "report": {**REPORT, "startTimestamp": 1 << 62}},
        {**GOOD, "cluster": "x" * 300},
        {**GOOD, "cluster": "\u00e4" * 100},
        {**GOOD, "cluster": "a\u202eb"},
        {**GOOD, "broker": "b" * 5_000 + ":1"},
        {**GOOD, "report": {**REPORT, "brokerVersionString": "4" * 5_000}},
        {**GOOD, "report": {**REPORT, "lastStats": [BUNDLE]}},
        {**GOOD, "report": {**REPORT, "lastStats": {BUNDLE: {**STATS, "topics": 1 << 60}}}},
        {**GOOD, "report": {**REPORT, "lastStats": {"a" * 9_000 + BUNDLE: STATS}}},
        '{"cluster": "\\ud800", ' + json.dumps(GOOD)[1:],
        {**STATE, "value": {"state": ["Owned"]}},
        {**STATE, "value": {"state": {"a": 1}}},
        {**STATE, "value": {"state": 3}},
        '{"a": ' + nested(100_000) + "}",
        {"status": "success", "data": {"result": [{**SERIES, "values": [[[AT], "1"]]}]}},
    ],
)
def test_a_line_that_cannot_be_is_put_aside_alone(tmp_path: Path, bad: Any) -> None:
    path, text = tmp_path / "x.jsonl", bad if isinstance(bad, str) else json.dumps(bad)
    path.write_text(f"{json.dumps(GOOD)}\n{text}\n{json.dumps(GOOD)}\n")
    kept, (aside,) = check(path)
    assert [row["line"] for row in kept] == [1, 3]
    assert aside["line"] == 2
    assert aside["text"].endswith(".")
    if "result" not in text:
        raw = f"{text}\n".encode()
        assert aside["body"] == raw[: records.MOST_RAW_BYTES]
        assert (aside["measure"], aside["subject"]) == (len(raw), hashlib.sha256(raw).hexdigest())


@pytest.mark.parametrize(
    ("series", "reason"),
    [
        ({**SERIES, "values": [[[AT / 1_000], "1"]]}, "not a pair of time and number"),
        ({**SERIES, "values": [[AT / 1_000, ["1"]]]}, "not a pair of time and number"),
        ({**SERIES, "values": [[AT * 1_000, "1"]]}, "no time"),  # microseconds
        ({**SERIES, "values": [[1, "1"]]}, "no time"),
        ({**SERIES, "metric": SERIES["metric"] | {"cluster": "x" * 300}}, "too long for a folder"),
        ({**SERIES, "metric": SERIES["metric"] | {"topic": TOPIC + "x" * 5_000}}, "too long"),
        ({**SERIES, "metric": SERIES["metric"] | {"topic": [TOPIC]}}, "no"),
        ({**SERIES, "values": "deep"}, "not a pair of time and number"),
    ],
)
def test_a_series_that_cannot_be_is_put_aside_alone(tmp_path: Path, series: Any, reason: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(export(series).replace('"deep"', nested(5_000)))
    kept, aside = check(path)
    assert len(kept) == 1
    assert len(aside) == 1
    assert reason in aside[0]["text"]


@pytest.mark.parametrize(
    "text", [export(error="\ud800"), export()[:-30] + "\\ud800", export({"metric": {"a": "\udfff"}})]
)
def test_half_of_a_pair_in_an_export(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    assert len(check(path)[1]) <= 2


@pytest.fixture
def small_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "BLOCK_BYTES", 20_000)
    monkeypatch.setattr(sources, "_LONGEST_LINE", 50_000)
    monkeypatch.setattr(sources, "_PIECE", 1_000)
    monkeypatch.setattr(prometheus, "_LONGEST_SERIES", 200_000)


@pytest.mark.usefixtures("small_bounds")
@pytest.mark.parametrize("zipped", [False, True])
def test_a_line_without_end_costs_itself_alone(tmp_path: Path, zipped: bool) -> None:  # noqa: FBT001 - a case
    good, long = json.dumps(GOOD).encode() + b"\n", b"x" * 300_000 + b"\n"
    path = tmp_path / ("x.jsonl.gz" if zipped else "x.jsonl")
    content = good + long + good * 30
    path.write_bytes(gzip.compress(content) if zipped else content)
    kept, (aside,) = check(path)
    assert len(kept) == 31
    assert (aside["measure"], aside["subject"]) == (len(long), hashlib.sha256(long).hexdigest())
    assert aside["body"] == long[:50_000]
    assert "more than" in aside["text"]


@pytest.mark.usefixtures("small_bounds")
def test_a_gzip_that_unfolds_without_end_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "_FARTHEST", 500_000)
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps(GOOD).encode() + b"\n" + bytes(30 << 20)))
    kept, (aside,) = check(path)
    assert len(kept) == 1
    assert "the rest of the file was not read" in aside["text"]
    assert aside["measure"] < 1_000_000


@pytest.mark.usefixtures("small_bounds")
def test_a_series_without_end_is_given_up(tmp_path: Path) -> None:
    path = tmp_path / "x.json.gz"
    path.write_bytes(gzip.compress(export(SERIES, {"metric": {}, "values": [[]] * 200_000}).encode()))
    kept, (aside,) = check(path)
    assert len(kept) == 1
    assert "Series 2 has more than" in aside["text"]


def test_a_series_without_bottom_is_given_up(tmp_path: Path) -> None:
    """The parser takes the square of the depth: 100 kB took 8 s, a few MB for ever."""
    path = tmp_path / "x.json"
    path.write_text(export(*[SERIES] * 200, {**SERIES, "values": "deep"}).replace('"deep"', nested(1_000_000)))
    _, (aside,) = check(path)
    assert "is nested deeper than 10,000" in aside["text"]


def test_many_bad_rows_are_listed_up_to_a_number_and_all_counted(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text("oops\n" * (records.MOST_ASIDE + 500) + json.dumps(GOOD))
    kept, aside = check(path)
    assert len(kept) == 1
    assert len(aside) == records.MOST_ASIDE + 1
    last = max(aside, key=lambda row: row["rows"])
    assert (last["rows"], last["line"]) == (500, records.MOST_ASIDE + 1)
    assert "The first: Not valid JSON" in last["text"]


numbers = st.one_of(st.floats(-2, 1e9), st.integers(-2, 1 << 64), st.sampled_from([None, "1", True, 1e308]))


@given(
    st.fixed_dictionaries(
        {}, optional=dict.fromkeys(("msgRateIn", "lastUpdate", "numTopics", "weightedMaxEMA"), numbers)
    ),
    st.dictionaries(st.sampled_from(sorted(STATS)), numbers),
    st.fixed_dictionaries({}, optional={"usage": numbers, "limit": numbers}),
    st.sampled_from([{}, {"brokerVersionString": None}, {"persistentTopicsEnabled": False}, {"cpu": None}]),
    st.sampled_from([{}, {"broker": ""}, {"broker": 3}, {"cluster": None}, {"status": "x"}, {"time_ms": 1.5}]),
)
def test_the_fast_reader_says_what_the_careful_one_says(
    own: Any, stats: Any, usage: Any, more: Any, around: Any
) -> None:
    report = {**REPORT, **own, "cpu": usage, "lastStats": {BUNDLE: stats}, **more}
    text = json.dumps({**GOOD, "report": report, **around}).encode()
    fast = list(module.records_of_lines([text], "c", Tally()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_usual", lambda *_: None)
        careful = list(module.records_of_lines([text], "c", Tally()))
    if isinstance(careful[0], RowSetAside):
        assert fast == careful
    else:
        schema = [pa.Table.from_batches(list(batches(found, 0, 0, Tally()))) for found in (fast, careful)]
        assert schema[0].drop_columns("body") == schema[1].drop_columns("body")
        assert schema[0]["body"].to_pylist() == schema[1]["body"].to_pylist()


def report(time_ms: int, broker: str, lag_ms: int = 0) -> bytes:
    return json.dumps(
        {**GOOD, "time_ms": time_ms, "broker": broker, "report": {**REPORT, "lastUpdate": time_ms - lag_ms}}
    ).encode()


def test_a_name_that_is_not_utf_8_costs_its_own_file(spark: "SparkSession", tmp_path: Path) -> None:
    raw, root, odd = tmp_path / "raw", tmp_path / "h", os.fsdecode(b"b\xffd")
    (raw / odd).mkdir(parents=True)
    for path in (raw / "good.jsonl", raw / f"{odd}.jsonl", raw / odd / "x.jsonl"):
        path.write_bytes(report(AT, "b:1"))
    for _ in range(2):
        done = ingest([raw], root, Options(), spark)
        assert done.files_read + done.files_unchanged == 3
    done = ingest([raw / odd, raw / "good.jsonl"], tmp_path / "other", Options(), spark)
    assert done.reasons == (("The name of the file or of a folder above it is not UTF-8. Rename it.", 1),)
    asides = [row for file in (root / SET_ASIDE).iterdir() for row in pq.read_table(file).to_pylist()]
    assert sorted(Path(row["file"]).relative_to(raw).parts for row in asides) == [
        ("b\\udcffd", "x.jsonl"),
        ("b\\udcffd.jsonl",),
    ]
    (day,) = complete_days(root)
    assert day.manifest.rows.kept == 1
    with pytest.raises(ReplayError, match=r"not UTF-8.*Rename it, or choose another one"):
        ingest([raw], tmp_path / odd, Options(), spark)


def test_a_history_whose_name_is_not_utf_8(tmp_path: Path) -> None:
    """It is read; a job is not told of it, and a cluster's own name is spelled."""
    odd = os.fsdecode(b"b\xffd")
    snapshot = read_snapshot(SAMPLES / "threshold-shedder.json")
    known = replace(snapshot, info=replace(snapshot.info, captured_at_ms=AT))
    HistoryFolder(tmp_path / odd, 1 << 30).add(known)
    (day,) = complete_days(tmp_path / odd)
    assert snapshot_at(day.path, AT).info == known.info
    with pytest.raises(ReplayError, match=r"not UTF-8.*Rename it, or choose another one"):
        job_over(tmp_path / odd, [Grid()])
    day.path.parent.rename(tmp_path / f"cluster={odd}")
    assert list(clusters_of(tmp_path)) == ["b\\udcffd"]
    assert [found.manifest.cluster for found in complete_days(tmp_path, "b\\udcffd")] == ["b\\udcffd"]
    with pytest.raises(FormatError) as caught:
        list(complete_days(tmp_path / f"{odd}, gone"))
    str(caught.value).encode()


def test_wrong_clocks_cost_their_rows_and_no_day(spark: "SparkSession", tmp_path: Path) -> None:
    """Two of 300 reports of a broker date from ten years ahead, one row was recorded ten years ahead."""
    start = AT - AT % DAY_MS
    rows = [report(start + minute * 60_000, f"b{b}:1", 200) for minute in range(300) for b in range(2)]
    ten_years = 3_650 * DAY_MS
    rows[100:100] = [report(start + 7, "b0:1", -ten_years), report(start + 9, "b0:1", -ten_years)]
    rows[50:50] = [report(start + ten_years, "b1:1")]
    rows += [report(start + minute * 60_000 + 5, "fast:1", -90_000) for minute in range(100)]
    rows += [report(start + minute * 60_000 + 6, "fast:1", -7_200_000) for minute in range(2)]
    (tmp_path / "x.jsonl").write_bytes(b"\n".join(rows))
    done = ingest([tmp_path / "x.jsonl"], tmp_path / "h", Options(), spark)
    assert [made.day for made in done.days] == [day_of(start)]
    assert done.days[0].clock_skew_ms == {"fast:1": 90_000}
    assert (done.rows_read, done.rows_set_aside) == (len(rows), 3)
    said = "\n".join(done.lines)
    assert "the clock of fast:1 is 90.0 s ahead" in said
    assert "1 set aside: The time is years away" in said
    assert "2 set aside: The broker's clock differs by more than a day" in said
    (file,) = (tmp_path / "h" / SET_ASIDE).iterdir()
    assert [row["line"] for row in pq.read_table(file).to_pylist()] == [51, 102, 103]
    (entry,) = read_ledger(tmp_path / "h").sources.values()
    assert entry.read == entry.kept + entry.set_aside
    again = ingest([tmp_path / "x.jsonl"], tmp_path / "h", Options(), spark)
    assert (again.days, again.days_unchanged) == ((), 1)


def test_one_damaged_manifest_costs_its_own_day(spark: "SparkSession", tmp_path: Path) -> None:
    raw, root = tmp_path / "raw", tmp_path / "h"
    raw.mkdir()
    for day in range(3):
        (raw / f"{day}.jsonl").write_bytes(report(AT + day * DAY_MS, "b:1"))
    ingest([raw], root, Options(), spark)
    folders = [day.path for day in complete_days(root)]
    (folders[1] / MANIFEST).write_text("{")
    job = Job(
        name="three days",
        history=str(root),
        clusters=("c",),
        first_day=folders[0].name[4:],
        last_day=folders[2].name[4:],
        scenarios=(Scenario(name="as it is"),),
        days_per_task=1,
    )
    tasks = tasks_of(job)
    assert len(tasks) == 3
    for number, task in enumerate(tasks):
        if number == 1:
            with pytest.raises(FormatError, match=r"manifest is damaged.*Delete the folder of the day"):
                list(frames_of(task))
        else:
            assert list(frames_of(task))
    (raw / "2.jsonl").write_bytes(report(AT + 2 * DAY_MS + 60_000, "b:1"))
    (raw / "1.jsonl").write_bytes(report(AT + 1 * DAY_MS + 60_000, "b:1"))
    done = ingest([raw], root, Options(), spark)
    assert [made.day for made in done.days] == [folders[2].name[4:]]
    assert "manifest is damaged" in done.damaged[0]
    assert any(line.startswith("not made: ") for line in done.lines)
    other = ingest([folders[0].parent], tmp_path / "other", Options(), spark)  # as an input it is put aside
    assert (len(other.days), other.rows_set_aside) == (2, 1)
    for path in folders[1].iterdir():
        path.unlink()
    assert [made.day for made in ingest([raw], root, Options(), spark).days] == [folders[1].name[4:]]


@pytest.mark.parametrize(
    "lost", [ConnectionRefusedError(111, "Connection refused"), ConnectionResetError(104, "reset")]
)
def test_a_lost_jvm_is_not_taken_for_the_disk(tmp_path: Path, lost: Exception) -> None:
    with pytest.raises(ReplayError, match="Java process has ended") as caught, _plain_errors(tmp_path):
        raise lost
    assert "run the same command again" in caught.value.remedy
    with pytest.raises(ReplayError, match="Cannot write"), _plain_errors(tmp_path):
        raise PermissionError(13, "Permission denied")
