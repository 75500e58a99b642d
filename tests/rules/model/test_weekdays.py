"""Days of the week against the calendar, and their one home."""

import re
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from planner.cluster.units import DAY_MS
from planner.cluster.weekdays import in_weekend

PLANNER = Path(__file__).parents[3] / "planner"
WORKED_OUT = re.compile(r"_SATURDAY\b.*=|\bweekday\(|\bisoweekday\(")


def test_weekends_are_those_of_the_calendar() -> None:
    """Twenty years, at the first and the last ms of each day."""
    start_ms = int(datetime(2015, 1, 1, tzinfo=UTC).timestamp()) * 1_000
    firsts = start_ms + np.arange(20 * 365) * DAY_MS
    expected = [datetime.fromtimestamp(at_ms / 1_000, tz=UTC).weekday() >= 5 for at_ms in firsts.tolist()]
    assert in_weekend(firsts).tolist() == expected
    assert in_weekend(firsts + DAY_MS - 1).tolist() == expected


def test_the_day_of_the_week_is_worked_out_in_one_place() -> None:
    found = [path for path in PLANNER.rglob("*.py") if WORKED_OUT.search(path.read_text(encoding="utf-8"))]
    assert found == [PLANNER / "cluster" / "weekdays.py"]
