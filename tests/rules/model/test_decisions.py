"""Reasons as columns, and their text."""

import pickle

import numpy as np
import pytest

from planner.cluster.arrays import FloatArray, IntArray, frozen
from planner.cluster.decisions import Move, Reason, ReasonBlock, ReasonCode, SheddingDecision, block

FULL = ReasonCode("x.full", "{broker} has {usage:.1f} % > {limit:.0f} %, {other} {usage:.2f} %", acts=True)
PLAIN = ReasonCode("x.plain", "nothing to see")
CUT = ReasonCode("x.cut", "cut {bundle} at 0x{boundary:08x}")


def test_fields_are_the_numbers_of_the_template() -> None:
    assert FULL.fields == ("usage", "limit")
    assert PLAIN.fields == ()
    assert CUT.fields == ("boundary",)


def test_text_names_subjects_and_numbers() -> None:
    reason = Reason(FULL, "b1", None, {"usage": 91.25, "limit": 85.0}, other="b2")
    assert reason.text == "b1 has 91.2 % > 85 %, b2 91.25 %"
    assert Reason(FULL, None, None, {"usage": 1.0, "limit": 2.0}).text == "? has 1.0 % > 2 %, ? 1.00 %"


@pytest.mark.parametrize("boundary", [0xFFFFFFFF, float(0xFFFFFFFF)])
def test_hashes_are_written_in_hexadecimal_whatever_they_travelled_as(boundary: float) -> None:
    assert Reason(CUT, None, "t/n/0x00000000_0xffffffff", {"boundary": boundary}).text.endswith(" at 0xffffffff")


def test_block_repeats_single_numbers() -> None:
    rows = block(FULL, [0, 1], values=([90.0, 95.0], 85.0), others=1)
    assert len(rows) == 2
    assert rows.values.tolist() == [[90.0, 85.0], [95.0, 85.0]]
    assert rows.bundles.tolist() == [-1, -1]
    first, second = rows.rows(["b0", "b1"], [])
    assert (first.broker, first.other, first.bundle) == ("b0", "b1", None)
    assert second.values == {"usage": 95.0, "limit": 85.0}


def test_block_without_rows_or_numbers() -> None:
    assert len(block(FULL, [], values=([], 85.0))) == 0
    assert len(block(PLAIN, [0, 1, 2])) == 3
    assert list(block(PLAIN, [], [3]).rows([], [])) == []


def test_block_wants_a_column_for_each_number() -> None:
    with pytest.raises(ValueError, match="usage"):
        block(FULL, [0], values=([90.0],))


def test_moves_as_pulsar_answers() -> None:
    why = Reason(PLAIN, None, None, {})
    moves = tuple(
        Move(bundle, source, None, 1.0, 1.0, why) for bundle, source in (("x", "b2"), ("y", "b1"), ("z", "b2"))
    )
    decision = SheddingDecision(moves, (), np.array([0.5, 0.5]))
    assert decision.unload() == {"b2": ["x", "z"], "b1": ["y"]}
    with pytest.raises(TypeError):
        decision.measures["average"] = 1.0  # type: ignore[index]


def test_frozen_arrays_refuse_writes() -> None:
    array = frozen(np.zeros(3))
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1.0


def test_columns_are_put_together_once_and_when_they_are_read() -> None:
    made = []

    def columns() -> tuple[IntArray, IntArray, FloatArray, IntArray]:
        made.append(True)
        ids = np.array([0, 1], dtype=np.int32)
        return ids, np.full(2, -1, dtype=np.int32), np.array([[90.0, 85.0], [95.0, 85.0]]), ids[::-1]

    lazy = ReasonBlock(FULL, columns)
    copy = pickle.loads(pickle.dumps(about := lazy.about(7)))  # noqa: S301 - its own
    assert len(made) == 1
    assert len(lazy) == len(about) == len(copy) == 2
    assert about.bundles.tolist() == copy.bundles.tolist() == [7, 7]
    only = lazy.only(np.array([1]))
    assert [(one.broker, one.other, one.values["usage"]) for one in only.rows(["b0", "b1"], [])] == [("b1", "b0", 95.0)]
    assert len(made) == 1
