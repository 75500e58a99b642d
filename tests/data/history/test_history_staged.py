"""Rows of an ingest that lie aside: read once, and given back in order whatever the runs."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from planner.cluster.units import DAY_MS
from planner.history import staged
from planner.history.records import Kind, Record, Stream, Tally, batches
from planner.history.staged import RunPart, hint_of, rows_in_order

START = 20_000 * DAY_MS
BUNDLE = "a/b/0x00000000_0xffffffff"


def report(time_ms: int, broker: str) -> Record:
    text = json.dumps({"complete": True})
    return Record(Kind.REPORT, "c", time_ms, broker, names=[BUNDLE], values=[1.0], text=text, clock_lag_ms=time_ms % 7)


def pieces_of(folder: Path, name: str, records: list[Record]) -> list[RunPart]:
    return staged.staged(folder, name, lambda: batches(iter(records), 0, 960_000, Tally(rows=len(records))))


def test_rows_of_several_runs_come_in_order_and_every_day_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(staged, "_BATCH_ROWS", 3)
    blocks = [
        [report(START + minute * 60_000, broker) for minute in range(start, start + 40) for broker in ("y:1", "x:1")]
        for start in (30, 0, 1_420, 20)
    ]
    pieces = [piece for n, rows in enumerate(blocks) for piece in pieces_of(tmp_path, str(n), rows)]
    every = [record for rows in blocks for record in rows]
    for day in (20_000, 20_001):
        mine = [p for p in pieces if p.day == day and p.lane == Stream.ROW]
        found = [(row.record.time_ms, row.record.broker) for row in rows_in_order(mine)]
        carried = START + DAY_MS - 960_000
        wanted = [r for r in every if r.time_ms // DAY_MS == day or (day == 20_001 and r.time_ms >= carried)]
        assert found == sorted((r.time_ms, r.broker) for r in wanted)
        assert len(found) == sum(piece.rows + piece.carried for piece in mine)
    hint = hint_of(p for p in pieces if p.day == 20_000 and p.lane == Stream.HINT)
    assert hint.first_ms == {BUNDLE: START}
    assert len(hint.lag_ms["x:1"]) == 40 * 3 + 20


def test_what_is_there_is_not_read_again(tmp_path: Path) -> None:
    first = pieces_of(tmp_path, "a", [report(START, "x:1")])

    def nothing() -> list[pa.RecordBatch]:
        raise AssertionError

    assert staged.staged(tmp_path, "a", nothing) == first
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]
    with pytest.raises(AssertionError):
        staged.staged(tmp_path, "b", nothing)
