"""Numbers in other units, or swapped, are said where they cannot be those of a broker."""

import copy
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from planner.doors.read import Given, read_given

INPUTS = Path(__file__).parent / "inputs"
REPORT: dict[str, Any] = json.loads((INPUTS / "load_report" / "pretty_4_0.json").read_text())
TOPICS: dict[str, Any] = json.loads((INPUTS / "broker_topics" / "one_line_4_0.broker-0.json").read_text())


def contradictions(*values: Any) -> str:
    data = "\n".join(map(json.dumps, values)).encode()
    return " ".join(read_given([Given("x", io.BytesIO(data))], now_ms=1795225795494).contradictions)


def rows(value: Any) -> list[dict[str, Any]]:
    """Return every object of a JSON value that has a rate."""
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    found = [row for one in inside for row in rows(one)]
    return [*found, value] if isinstance(value, dict) and "msgThroughputIn" in value else found


def swap(row: dict[str, Any]) -> None:
    row["msgRateIn"], row["msgThroughputIn"] = row["msgThroughputIn"], row["msgRateIn"]


def in_mib(row: dict[str, Any]) -> None:
    row["msgThroughputIn"] /= 1 << 20


def change(path: str, value: float) -> Callable[[dict[str, Any]], None]:
    resource, part = path.split(".")
    return lambda report: report[resource].__setitem__(part, value)


@pytest.mark.parametrize(
    ("falsify", "said"),
    [
        (change("cpu.limit", 1.0), "Usage above the limit cannot be"),
        (change("memory.limit", 1.0), "Usage above the limit cannot be"),
        (change("memory.limit", 8.0 * 2**30), "MiB: check the unit"),
        (change("bandwidthIn.limit", 1e10), "kbit/s: check the unit"),
        (change("directMemory.usage", 1e9), "Usage above the limit cannot be"),
    ],
)
def test_a_limit_in_another_unit_is_said(falsify: Callable[[dict[str, Any]], None], said: str) -> None:
    assert said not in contradictions(REPORT)
    changed = copy.deepcopy(REPORT)
    falsify(changed)
    assert said in contradictions(changed)


@pytest.mark.parametrize("falsify", [swap, in_mib])
@pytest.mark.parametrize("values", [(REPORT,), (REPORT, TOPICS)], ids=["report", "topics"])
def test_rates_that_are_swapped_everywhere_are_said(
    values: tuple[Any, ...], falsify: Callable[[dict[str, Any]], None]
) -> None:
    """Sums agree as before, so that the size of a message alone shows it."""
    said = "less than a byte for each message"
    assert said not in contradictions(*values)
    changed = copy.deepcopy(values[-1])
    for row in rows(changed):
        falsify(row)
    assert said in contradictions(*values[:-1], changed)
