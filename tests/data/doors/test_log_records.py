"""Lines that containers and collectors keep in records of their own are read as they were printed."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from planner.cluster.digest import snapshot_digest
from planner.doors.read import Given, read_given
from planner.doors.reading import Reading

INPUTS = Path(__file__).parent / "inputs"
REPORT = (INPUTS / "load_report" / "pretty_4_0.json").read_text().strip()
AT = "2026-11-21T01:49:55.123456789Z"


def read(text: str) -> Reading:
    return read_given([Given("pasted text", io.BytesIO(text.encode()))], now_ms=1795225795494)


def objects(record: Callable[[str], dict[str, Any]]) -> Callable[[str], str]:
    return lambda text: "\n".join(json.dumps(record(line)) for line in text.split("\n"))


def cut(text: str) -> str:
    """Return a line in parts of 100 signs, as Docker cuts those of 16 KiB."""
    line = json.dumps(json.loads(text)) + "\n"
    return "\n".join(json.dumps({"log": line[at : at + 100], "stream": "stdout"}) for at in range(0, len(line), 100))


def cut_by_kubernetes(text: str) -> str:
    line = json.dumps(json.loads(text))
    parts = [line[at : at + 100] for at in range(0, len(line), 100)]
    return "\n".join([*(f"{AT} stdout P {part}" for part in parts), f"{AT} stdout F "])


def newest_first(text: str) -> str:
    rows = [
        {"insertId": f"{at}", "timestamp": f"2026-11-21T01:{at // 60:02}:{at % 60:02}Z", "textPayload": line}
        for at, line in enumerate(text.split("\n"))
    ]
    return json.dumps(rows[::-1], indent=2)


KEPT: dict[str, Callable[[str], str]] = {
    "docker": objects(lambda line: {"log": f"{line}\n", "stream": "stdout", "time": AT}),
    "docker below a command": lambda text: "$ sudo cat 1f-json.log\n" + KEPT["docker"](text),
    "docker, cut": cut,
    "kubernetes": lambda text: "\n".join(f"{AT} stdout F {line}" for line in text.split("\n")),
    "kubernetes, cut": cut_by_kubernetes,
    "fluent bit": objects(lambda line: {"@timestamp": AT, "log": line, "kubernetes": {"pod_name": "mq-0"}}),
    "elastic": objects(lambda line: {"@timestamp": AT, "message": line, "kubernetes": {"pod": {"name": "mq-0"}}}),
    "journal": objects(lambda line: {"__REALTIME_TIMESTAMP": "1", "MESSAGE": line, "_HOSTNAME": "mq-0"}),
    "cloud logging": newest_first,
    "cloud watch": lambda text: json.dumps(
        {"events": [{"timestamp": 1, "message": line, "ingestionTime": 2} for line in text.split("\n")]}
    ),
    "loki": lambda text: "\n".join(f'{AT} {{app="broker", pod="mq-0"}} {line}' for line in text.split("\n")),
}


@pytest.mark.parametrize("kept", KEPT.values(), ids=KEPT.keys())
def test_a_report_in_records_is_read(kept: Callable[[str], str]) -> None:
    found, bare = read(kept(REPORT)), read(REPORT)
    assert found.snapshot is not None
    assert bare.snapshot is not None
    assert snapshot_digest(found.snapshot) == snapshot_digest(bare.snapshot)
    assert not found.not_used


@pytest.mark.parametrize("name", ["metrics/scrape_4_2.prom", "settings_file/broker_4_0.conf"])
def test_other_texts_in_records_are_read(name: str) -> None:
    text = (INPUTS / name).read_text()
    assert read(KEPT["docker"](text)).found == read(text).found


def test_what_a_broker_logs_in_json_is_read() -> None:
    message = "ServiceConfiguration(loadBalancerEnabled=true, loadBalancerSheddingIntervalMinutes=7)"
    lines = [
        {"level": "INFO", "thread": "main", "message": "Starting Pulsar Broker service; version: '3.0.4'"},
        {"level": "INFO", "thread": "main", "message": message},
        {"level": "INFO", "thread": "main", "message": "messaging service is ready"},
    ]
    reading = read("\n".join(map(json.dumps, lines)))
    assert reading.found == ("the release", "settings of a running broker")
    assert not reading.not_used


def test_each_pod_is_read_on_its_own() -> None:
    rows = [
        {"log": f"loadBalancerSheddingIntervalMinutes={at + 1}\n", "stream": "stdout", "kubernetes": {"pod_name": pod}}
        for at, pod in enumerate(("mq-broker-0", "mq-broker-1"))
    ]
    values = [one.values for one in read("\n".join(map(json.dumps, rows))).configurations]
    assert values == [{"loadBalancerSheddingIntervalMinutes": "1"}, {"loadBalancerSheddingIntervalMinutes": "2"}]


@pytest.mark.parametrize(
    "text",
    [
        '{"message": "Unauthorized", "status": 401}\n',
        '{"timestamp": 1, "status": 404, "error": "Not Found", "message": "no", "path": "/admin"}\n',
    ],
)
def test_an_error_of_a_server_is_no_log(text: str) -> None:
    [why] = read(text).not_used
    assert "line" not in why
