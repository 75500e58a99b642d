"""Answers with a time, or with all that a logger writes, before each line are read as without it."""

import io
from pathlib import Path

import pytest

from planner.cluster.digest import snapshot_digest
from planner.doors.read import Given, read_given
from planner.doors.reading import Reading
from planner.doors.stamps import without_stamps

INPUTS = Path(__file__).parent / "inputs"
LOGGED = "2026-11-25T03:12:{:02},004+0000 [main] INFO  org.acme.Report - "
PREFIXES = {
    "date": "2026-11-25 03:12:{:02} ",
    "time": "03:12:{:02} ",
    "iso": "2026-11-25T03:12:{:02}Z ",
    "in brackets": "[2026-11-25 03:12:{:02}] ",
    "iso in brackets": "[2026-11-25T03:12:{:02}.123Z] ",
    "ts": "Nov 25 03:12:{:02} ",
    "seconds": "17952257{:02} ",
    "ms": "17952257{:02}123: ",
    "log4j": LOGGED,
    "time, thread, level and class": "03:12:{:02}.123 [main] INFO  org.acme.Report - ",
    "level before thread": "2026-11-25 03:12:{:02},004 INFO  [main] org.acme.Report: ",
    "klog": "I1125 03:12:{:02}.123456       1 main.go:12] ",
    "level": "INFO: ",
    "logging of Python": "INFO:root:",
}
ANSWERS = ("metrics/scrape_4_2.prom", "load_report/pretty_4_0.json", "load_report/one_line_4_2.jsonl")
OTHERS = ("owned/lines_4_2.txt", "topic_names/list_4_0.txt", "brokers/lines_4_2.txt", "settings_file/broker_4_0.conf")


def read(text: str) -> Reading:
    return read_given([Given("pasted text", io.BytesIO(text.encode()))], now_ms=1795225800000)


def stamped(prefix: str, text: str) -> str:
    return "\n".join(prefix.format(10 + at // 20 % 40) + line for at, line in enumerate(text.split("\n")))


@pytest.mark.parametrize("prefix", PREFIXES.values(), ids=PREFIXES.keys())
@pytest.mark.parametrize("name", ANSWERS)
def test_what_stands_before_each_line_changes_nothing(name: str, prefix: str) -> None:
    """Most were called log lines alone, or lines of an unknown kind."""
    text = (INPUTS / name).read_text()
    bare, found = read(text), read(stamped(prefix, text))
    assert bare.snapshot is not None
    assert found.snapshot is not None
    assert snapshot_digest(found.snapshot) == snapshot_digest(bare.snapshot)
    assert found.not_used == bare.not_used


@pytest.mark.parametrize("prefix", PREFIXES.values(), ids=PREFIXES.keys())
@pytest.mark.parametrize("name", OTHERS)
def test_lists_and_settings_are_read_as_well(name: str, prefix: str) -> None:
    text = (INPUTS / name).read_text()
    bare, found = read(text), read(stamped(prefix, text))
    assert found.found == bare.found
    assert [one.values for one in found.configurations] == [one.values for one in bare.configurations]


def test_the_message_of_one_record_is_read() -> None:
    """The lines of a message after the first one have no time; others log JSON behind a few words."""
    text = (INPUTS / "load_report/pretty_4_0.json").read_text()
    lines = (INPUTS / "load_report/one_line_4_2.jsonl").read_text().splitlines()
    start, end = LOGGED.format(1) + "started\n", LOGGED.format(9) + "done\n"
    assert read(LOGGED.format(5) + text).found == ("load reports of 1 broker",)
    said = "\n".join(f"{LOGGED.format(5)}report of a broker: {line}" for line in lines)
    assert read(f"{start}{said}\n{end}").found == ("load reports of 2 brokers",)


@pytest.mark.parametrize("path", sorted((INPUTS / "log_of_broker").iterdir()), ids=lambda path: path.name)
def test_the_log_of_a_broker_stays_one(path: Path) -> None:
    found = read(path.read_text()).found
    assert any("setting" in one or "release" in one for one in found)


def test_a_log_without_any_answer_is_called_so() -> None:
    text = stamped(LOGGED, "started\nconnected to 10.0.0.1:6650\nclosed")
    assert read(text).not_used == ("pasted text: it holds log lines, prompts and headings alone.",)
    assert list(without_stamps(b"loadBalancerEnabled=true\n")) == []
