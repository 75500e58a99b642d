"""Saved answers of Prometheus are checked as live ones are: partial ones are put aside, warnings become notes."""

import gzip
import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from planner.history.assemble import DayAssembler
from planner.history.lines import records_of_lines
from planner.history.prometheus import records_of_export
from planner.history.records import DayFacts, Record, RowSetAside, Tally, batches
from planner.history.sources import SourceKind, blocks_of, find_sources, read_block
from planner.history.spec import Options
from planner.history.whole_answer import said_in_file
from tests.data.history.test_history_assemble import DAY, START

WARNING = "store sidecar-1: rpc error\n code = Unavailable"
SAID = "The server warns, so series may be missing or inexact: store sidecar-1: rpc error code = Unavailable."
SAMPLES = [(START / 1_000 + 60 * i, str(i)) for i in range(5)]
LABELS = {"__name__": "pulsar_lb_cpu_usage", "instance": "b:8080", "cluster": "c"}


def answer(*, more: dict[str, Any], labels: dict[str, str] | None = None, series: int = 1) -> dict[str, Any]:
    result = [{"metric": LABELS | (labels or {}) | {"pod": str(i)}, "values": SAMPLES} for i in range(series)]
    return {"status": "success", **more, "data": {"resultType": "matrix", "result": result}}


def read(text: str, tally: Tally) -> list[Record | RowSetAside]:
    return list(records_of_export(io.BytesIO(text.encode()), "c", tally))


@pytest.mark.parametrize("name", ["isPartial", "partial"])
@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("is_sorted", [False, True], ids=["as it came", "jq -S"])
def test_a_partial_answer_is_put_aside(name: str, indent: int | None, is_sorted: bool) -> None:  # noqa: FBT001
    value = answer(more={name: True}, series=2_000 if is_sorted else 1)
    tally = Tally()
    (found,) = read(json.dumps(value, indent=indent, sort_keys=is_sorted), tally)
    assert isinstance(found, RowSetAside)
    assert "incomplete: a part of the storage did not answer" in found.reason
    assert tally.rows == found.rows == 1
    tally = Tally()
    (found,) = records_of_lines([json.dumps(value).encode()], "c", tally)
    assert isinstance(found, RowSetAside)
    assert "incomplete" in found.reason
    assert tally.rows == found.rows == 1


@pytest.mark.parametrize(
    ("more", "labels"),
    [
        ({"isPartial": False}, {}),
        ({}, {"topic": '","isPartial":true,"x":"'}),
        ({}, {"isPartial": "true"}),
        ({}, {"warnings": "[a]"}),
        ({"infos": ["PromQL info: metric might not be a counter"]}, {}),
        ({"warnings": []}, {}),
    ],
)
def test_a_whole_answer_is_read_whatever_its_labels_say(more: dict[str, Any], labels: dict[str, str]) -> None:
    tally = Tally()
    found = read(json.dumps(answer(more=more, labels=labels)), tally)
    assert all(isinstance(one, Record) for one in found)
    assert sum(one.rows for one in found) == tally.rows == len(SAMPLES)
    assert not tally.warnings


@pytest.mark.parametrize("series", [1, 9_000], ids=["small", "larger than a piece"])
@pytest.mark.parametrize("is_last", [False, True])
def test_a_warning_is_found_wherever_it_stands(series: int, is_last: bool) -> None:  # noqa: FBT001
    value = answer(more={"warnings": [WARNING, WARNING, "b"]}, series=series)
    if is_last:
        value["warnings"] = value.pop("warnings")
    data = io.BytesIO(json.dumps(value).encode())
    assert said_in_file(data).warnings == (WARNING, WARNING, "b")
    assert data.tell() == 0


def test_a_warning_becomes_a_note_of_the_day() -> None:
    """By way of the stream, as an ingest does it."""
    for lines in (False, True):
        text = json.dumps(answer(more={"warnings": [WARNING, WARNING]}))
        tally = Tally()
        found = list(records_of_lines([text.encode()], "c", tally)) if lines else read(text, tally)
        hint = DayFacts()
        for row in pa.Table.from_batches(list(batches(found, 0, 0, tally))).to_pylist():
            if row["lane"] == "hint" and row["day"] == DAY:
                hint.take(row)
        notes = DayAssembler("c", DAY, hint, Options()).notes()
        assert notes.count(SAID) == 1


def test_a_truncated_file_keeps_what_comes_before(tmp_path: Path) -> None:
    packed = gzip.compress(json.dumps(answer(more={}, series=3_000)).encode())
    (tmp_path / "cut.json.gz").write_bytes(packed[:-200])
    (source,) = find_sources([tmp_path], tmp_path / "none")
    found = list(read_block(blocks_of(source)[0], "c", Tally()))
    assert len(found) > 100
    assert isinstance(found[-1], RowSetAside)


def test_an_answer_is_recognised_with_its_keys_in_any_order(tmp_path: Path) -> None:
    """`jq -S` puts `data` first, and the type of the result after thousands of samples."""
    (tmp_path / "sorted.json").write_text(json.dumps(answer(more={}, series=200), sort_keys=True, indent=2))
    (source,) = find_sources([tmp_path], tmp_path / "none")
    assert source.kind is SourceKind.EXPORT
    assert all(isinstance(one, Record) for one in read_block(blocks_of(source)[0], "c", Tally()))


def test_series_as_victoria_metrics_exports_them() -> None:
    times = [at * 1_000 for at, _ in SAMPLES]
    plain = [{"metric": LABELS, "values": SAMPLES}]
    exported = {"metric": LABELS, "values": [float(text) for _, text in SAMPLES], "timestamps": times}
    short = {**exported, "timestamps": times[:-2]}
    nothing = {"metric": LABELS, "values": "x", "timestamps": times}
    of_answer = read(json.dumps({"status": "success", "data": {"resultType": "matrix", "result": plain}}), Tally())
    tally = Tally()
    (found,) = records_of_lines([json.dumps(exported).encode()], "c", tally)
    assert isinstance(found, Record)
    assert isinstance(of_answer[0], Record)
    assert (found.broker, found.metric, list(found.times), list(found.values)) == (
        of_answer[0].broker,
        of_answer[0].metric,
        list(of_answer[0].times),
        list(of_answer[0].values),
    )
    assert tally.rows == found.rows == len(SAMPLES)
    aside, kept = records_of_lines([json.dumps(short).encode()], "c", Tally())
    assert isinstance(aside, RowSetAside)
    assert (aside.rows, kept.rows) == (2, 3)
    (wrong,) = records_of_lines([json.dumps(nothing).encode()], "c", Tally())
    assert isinstance(wrong, RowSetAside)
