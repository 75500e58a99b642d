"""JSON that somebody marked up, edited or cut is read where only one reading is possible."""

import io
import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from planner.cluster.digest import snapshot_digest
from planner.doors.mended import mended
from planner.doors.read import Given, read_given
from planner.doors.reading import Reading
from planner.doors.unpack import plain

INPUTS = Path(__file__).parent / "inputs"
REPORT = (INPUTS / "load_report/pretty_4_0.json").read_text()
ISOLATION = json.dumps(json.loads((INPUTS / "isolation/rest.json").read_text()), indent=2)
CPU = '"usage": 420.0'
BROKER_OF_POLICY = json.dumps(
    {"brokerName": "10.1.2.3:8080", "policyName": "p1", "isPrimary": True, "namespaceRegex": ["acme/.*"]}, indent=2
)


def read(text: str) -> Reading:
    return read_given([Given("x.txt", io.BytesIO(text.encode()))], now_ms=1)


def colours(text: str, escape: str) -> str:
    return f"{escape}[1;39m" + text.replace('":', f'"{escape}[0m{escape}[1;39m:{escape}[0m')


MARKED: dict[str, tuple[Callable[[str], str], str]] = {
    "bold field": (lambda text: text.replace(CPU, f"**{CPU}**"), "stars around values"),
    "bold line": (lambda text: text.replace(f"{CPU},", f"**{CPU},**"), "stars around values"),
    "bold value": (lambda text: text.replace("420.0", "**420.0**"), "stars around values"),
    "bold object": (lambda text: f"**{text.rstrip()}**\n", "stars around objects"),
    "bold object on lines of its own": (lambda text: f"** {text.rstrip()} **\n", "stars around objects"),
    "arrow": (lambda text: text.replace(f"{CPU},", f"{CPU},   <--- too high"), "remarks at the end of lines"),
    "hash": (lambda text: text.replace(f"{CPU},", f"{CPU}, # here"), "remarks at the end of lines"),
    "slashes": (lambda text: text.replace(f"{CPU},", f"{CPU}, // here"), "remarks at the end of lines"),
    "remark between lines": (lambda text: text.replace(f"{CPU},", f"{CPU},\n  // too high"), "remarks between lines"),
    "hard blanks after colons": (lambda text: text.replace('": ', '":\u00a0'), ""),
    "comma at the end": (lambda text: text.rstrip()[:-1].rstrip() + ",\n}\n", "spare commas"),
    "two commas": (lambda text: text.replace(f"{CPU},", f"{CPU},,"), "spare commas"),
    "no comma": (lambda text: text.replace(f"{CPU},", CPU), "missing commas"),
    "thousands": (lambda text: text.replace("1140750.0", "1,140,750.0"), "commas that part thousands"),
    "whole thousands": (lambda text: text.replace("1140750.0", "1,140,750"), "commas that part thousands"),
    "no last bracket": (lambda text: text.rstrip()[:-1], "its last bracket is missing"),
    "no last bracket in a fence": (lambda text: f"```\n{text.rstrip()[:-1]}```\n", "its last bracket is missing"),
    "colours without their first sign": (lambda text: colours(text, ""), ""),
    "colours written out": (lambda text: colours(text, "^["), ""),
    "curled keys": (lambda text: text.replace('"usage"', "“usage”").replace('"cpu"', "“cpu”"), ""),
}


@pytest.mark.parametrize("name", MARKED)
def test_what_people_do_to_json_changes_nothing(name: str) -> None:
    change, said = MARKED[name]
    before, text = read(REPORT), change(REPORT)
    assert text != REPORT
    after = read(text)
    assert before.snapshot is not None
    assert after.snapshot is not None
    assert after.snapshot.brokers.cpu_usage_percent.tolist() == [420.0]
    strings = [replaced.snapshot.info.warnings for replaced in (before, after) if replaced.snapshot]
    assert set(strings[0]) <= set(strings[1])
    assert [one for one in after.assumed if said in one and one not in before.assumed] or not said
    assert snapshot_digest(after.snapshot) == snapshot_digest(before.snapshot)
    assert not after.not_used


def test_a_command_as_wide_as_a_terminal_is_not_taken_for_a_broken_line() -> None:
    """Joined with the stars after it, it seemed to be read better than as it is."""
    reading = read(f"$ bin/pulsar-admin ns-isolation-policy brokers pulsar-cluster\n**{BROKER_OF_POLICY}**\n{REPORT}")
    assert reading.snapshot is not None
    assert not any("columns" in one for one in reading.assumed)
    assert any("stars around objects" in one for one in reading.assumed)


def test_policies_without_their_last_bracket_are_read() -> None:
    text = f"$ pulsar-admin ns-isolation-policy list east\n{ISOLATION.rstrip()[:-1]}$ date\n"
    reading = read(f"{REPORT}\n{text}")
    assert reading.snapshot is not None
    assert [one.name for one in reading.snapshot.policies.isolation] == list(json.loads(ISOLATION))
    assert any("its last bracket is missing, and was added" in one for one in reading.assumed)


@pytest.mark.parametrize("last", ['"limit": 800.0', '"usage": 420.0,', "},"])
def test_where_more_may_have_followed_nothing_is_added(last: str) -> None:
    lines = REPORT.split("\n")
    at = next(number for number, line in enumerate(lines) if line.strip() == last)
    reading = read("\n".join([*lines[: at + 1], ""]))
    assert reading.snapshot is None
    assert "Not valid JSON" in " ".join(reading.not_used)


def test_one_line_that_was_cut_is_not_completed() -> None:
    reading = read(json.dumps(json.loads(REPORT))[:-1])
    assert reading.snapshot is None


@pytest.mark.parametrize("value", ["420,0", "1,140"])
def test_a_comma_that_may_be_a_point_is_named_with_its_line(value: str) -> None:
    text = f"$ date\n{REPORT.replace('420.0', value)}"
    line = next(number for number, one in enumerate(text.split("\n"), 1) if value in one)
    [why] = read(text).not_used
    assert f"line {line} has a number with a comma" in why


def test_a_mistake_is_at_its_line_of_the_file() -> None:
    text = f"$ date\n\n{REPORT.replace(CPU, '?')}"
    line = next(number for number, one in enumerate(text.split("\n"), 1) if "?" in one)
    [why] = read(text).not_used
    assert f", line {line}, column" in why


@pytest.mark.parametrize(
    "text",
    [
        '{\n "name": "a // b",\n "other": "**x**",\n "url": "http://x", \n "more": "1,234.5"\n}',
        "a,,b\n1,,2\n",
        "loadBalancerEnabled=true # here\n",
    ],
)
def test_what_is_no_slip_stays(text: str) -> None:
    assert mended(text) == (text, "")


def test_a_mail_with_an_answer_in_its_quotation_is_read() -> None:
    quoted = "\n".join(f"> {line}" for line in f"Hi,\nhere it is:\n\n{REPORT}\nThanks".split("\n"))
    reading = read(f"On Monday somebody wrote:\n{quoted}\nSee below.\n")
    assert reading.found == ("load reports of 1 broker",)
    assert any("signs of a quotation" in one for one in reading.assumed)


@pytest.mark.parametrize(("before", "after"), [("{code:java}", "{code}"), ("{noformat}", "{noformat}"), ("", "(END)")])
def test_marks_of_trackers_and_pagers_are_no_lines(before: str, after: str) -> None:
    reading = read(f"{before}\n{REPORT}\n{after}\n")
    assert reading.snapshot is not None
    assert not reading.not_used


@pytest.mark.parametrize(
    "line",
    [
        ",",
        ", ",
        ",\n",
        " ,",
        "``` ",
        "```",
        '**"',
        "** ",
        ": ",
        "> ",
        "1,111",
        '"a": ',
        '" \n',
        "“",
        "[0m",
        "{ ",
        "] ,",
    ],
)
def test_long_texts_end(line: str) -> None:
    """A run of commas took hours: the limit is far above what any machine needs, and far below that."""
    many = 100_000 // len(line)
    for text in ("{\n" + line * many, "{\n```" + line * many + "\n", "[\n" + (line * 20 + "\n") * (many // 20)):
        start = time.process_time()
        mended(text)
        plain(text.encode())
        assert time.process_time() - start < 5
