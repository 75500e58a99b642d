"""Answers that a script, a console or a person wrote anew are read, or refused with what they are and why."""

import difflib
import io
import json
import re
from pathlib import Path

import pytest

from planner.cluster.digest import snapshot_digest
from planner.cluster.load_manager import LoadManager
from planner.doors.read import Given, read_given
from planner.doors.reading import Reading

INPUTS = Path(__file__).parent / "inputs"
REPORT = (INPUTS / "load_report/pretty_4_0.json").read_text()
TOPICS = (INPUTS / "broker_topics/one_line_4_0.broker-0.json").read_text()
SAMPLES = """# TYPE pulsar_lb_cpu_usage gauge
pulsar_lb_cpu_usage{broker="10.2.0.11",metric="loadBalancing"} 38.5%
pulsar_lb_memory_usage{broker="10.2.0.11",metric="loadBalancing"} 20
pulsar_rate_in{namespace="shop/orders",topic="persistent://shop/orders/o1"} 12.5 msg/s
pulsar_throughput_in{namespace="shop/orders",topic="persistent://shop/orders/o1"} 1,200,500
pulsar_rate_in{namespace="shop/orders",topic="persistent://shop/orders/o2"} 12.5
"""


def read(text: str, name: str = "x.txt") -> Reading:
    return read_given([Given(name, io.BytesIO(text.encode()))], now_ms=1795225795494)


def digest(reading: Reading) -> str:
    assert reading.snapshot is not None
    return snapshot_digest(reading.snapshot)


def bare(text: str, mark: str = '"') -> str:
    """Return JSON as JavaScript or `jq` have it: names that need none have no quotation marks."""
    text = re.sub(r'"([A-Za-z_]\w*)"(?=\s*:)', r"\1", text)
    return text.replace('"', mark)


@pytest.mark.parametrize("mark", ['"', "'"])
@pytest.mark.parametrize("form", ["{}", "> reports[0]\n{}", "```js\n{}```\n"])
def test_names_without_quotation_marks(mark: str, form: str) -> None:
    for text in (REPORT, json.dumps(json.loads(REPORT))):
        found = read(form.format(bare(text, mark)))
        assert digest(found) == digest(read(REPORT, "x.txt"))


def test_what_cannot_be_quoted_is_named() -> None:
    (why,) = read("{webServiceUrl: 'http://10.2.0.11:8080', cpu: {usage: 1 limit: 2}\n").not_used
    assert "whose names have no quotation marks; print it with JSON.stringify" in why
    (why,) = read("[webServiceUrl:http://10.2.0.11:8080, cpu:[usage:120.5, limit:400.0]]\n").not_used
    assert "a map as Groovy prints it" in why


def compared(context: int) -> str:
    before = REPORT.replace('"usage" : 420.0', '"usage" : 20.0').replace('"usage": 420.0', '"usage": 20.0')
    assert before != REPORT
    return "\n".join(difflib.unified_diff(before.split("\n"), REPORT.split("\n"), "a", "b", n=context, lineterm=""))


def test_a_report_in_a_comparison_is_the_one_after_the_change() -> None:
    found = read(compared(10_000))
    assert digest(found) == digest(read(REPORT))
    assert any("what was there before a change" in one for one in found.assumed)


def test_parts_of_a_comparison_are_named() -> None:
    found = read(compared(3))
    assert found.snapshot is None
    assert any("a comparison of two answers" in one for one in found.not_used)


def test_samples_with_units_are_left_out_and_named() -> None:
    found = read(SAMPLES)
    assert any("3 values left out, with '%', 'msg/s', ','" in one for one in found.not_used)
    assert found.snapshot is not None
    assert found.snapshot.topics.name.to_pylist() == ["persistent://shop/orders/o2"]


def test_numbers_of_a_report_that_are_texts() -> None:
    """As a script or `jq` writes them; the report was refused, and so were bundles whose number was a text."""
    given = json.loads((INPUTS / "load_report" / "pretty_4_0.json").read_text())
    texts = json.loads(json.dumps(given), parse_int=str, parse_float=str)
    assert texts["cpu"] != given["cpu"]
    plain, written = read(json.dumps(given)), read(json.dumps(texts))
    assert plain.snapshot is not None
    assert written.snapshot is not None
    assert snapshot_digest(plain.snapshot) == snapshot_digest(written.snapshot)
    assert [one for one in written.assumed if one not in plain.assumed] == [
        'x.txt: texts such as "12.5" are read as the numbers in them.'
    ]
    bundles = '{"boundaries": ["0x00000000", "0xffffffff"], "numBundles": "1"}'
    assert not read(f"$ pulsar-admin namespaces bundles a/b\n{bundles}\n").not_used


def test_values_that_are_no_numbers_leave_the_others() -> None:
    """All topics of a broker were lost for one of them, in a field that is not used."""
    topics = (INPUTS / "broker_topics" / "one_line_4_0.broker-0.json").read_text()
    other = topics.replace('"averageMsgSize":', '"averageMsgSize":NaN,"was":')
    assert other != topics
    plain, found = read(topics), read(other)
    assert found.text == plain.text
    assert "values that are no numbers, and count as 0 or unknown" in " ".join(found.assumed)


def test_numbers_of_topics_that_are_texts() -> None:
    texts = re.sub(r'(":\s*)(-?\d+(?:\.\d+)?(?:[eE]-?\d+)?)(?=\s*[,}])', r'\1"\2"', TOPICS)
    assert texts != TOPICS
    found = read(texts, "broker-0.json")
    assert digest(found) == digest(read(TOPICS, "broker-0.json"))
    assert any("are read as the numbers in them" in one for one in found.assumed)
    assert read(texts.replace('"msgRateIn":"', '"msgRateIn":"x', 1).replace('": "', '": "x', 1)).snapshot is None


@pytest.mark.parametrize("name", ["broker_load_data_4_2.txt", "top_bundles_3_0.txt", "service_unit_state_4_0.txt"])
@pytest.mark.parametrize("widths", [(97, 93), (120, 119), (60, 200)])
def test_messages_over_lines_of_any_length(name: str, widths: tuple[int, int]) -> None:
    text = (INPUTS / "load_balancer_topic" / name).read_text()
    lines: list[str] = []
    for line in text.split("\n"):
        rest, number = line, 0
        while "content:" in line and len(rest) > widths[number % 2]:
            rest, number = rest[widths[number % 2] :], number + 1
            lines.append(line[: len(line) - len(rest)][-widths[(number - 1) % 2] :])
        lines.append(rest)
    broken = "\n".join(lines)
    assert broken != text
    assert read(broken).found == read(text).found
    assert read(broken).not_used == read(text).not_used


@pytest.mark.parametrize(
    "log",
    [
        "2026-11-25T03:12:11,004+0000 [main] WARN  x.y.Z - some warning",
        'SLF4J: Failed to load class "org.slf4j.impl.StaticLoggerBinder".',
        "OpenJDK 64-Bit Server VM warning: Options -Xverify:none and -noverify were deprecated",
    ],
)
def test_log_lines_inside_an_answer(log: str) -> None:
    """Tools write both to the terminal, each when it is ready."""
    lines = REPORT.split("\n")
    found = read("\n".join([*lines[:6], log, *lines[6:40], log, *lines[40:]]))
    assert digest(found) == digest(read(REPORT))
    assert any("log lines between" in one for one in found.assumed)


def test_objects_of_powershell_are_named() -> None:
    rows = "webServiceUrl : http://10.2.0.11:8080\ncpu           : @{usage=120.5; limit=400.0}\n"
    (why,) = read(f"{rows}loadManagerClassName : org.apache.pulsar.broker.loadbalance.impl.X\n").not_used
    assert "add | ConvertTo-Json" in why


def test_a_command_continued_at_the_start_of_the_next_line() -> None:
    """The page of Pulsar's documentation has it so; the broker was called `broker:8080`."""
    rows = "shop/orders/0x00000000_0xffffffff [broker_assignment=shared]\n"
    found = read(f"pulsar-admin brokers namespaces use \\\n--url mq-7:8080\n\n{rows}")
    assert found.snapshot is not None
    assert found.snapshot.brokers.name == ("mq-7:8080",)
    assert not found.not_used


def test_usage_alone_shows_no_load_manager() -> None:
    """A script for the usage of a host prints this; it was taken for a report of the extensible load manager."""
    usage = {name: {"usage": 1.0, "limit": 100.0} for name in ("cpu", "memory", "bandwidthIn", "bandwidthOut")}
    owned = "$ pulsar-admin brokers namespaces use --url mq-7:8080\nshop/orders/0x00000000_0xffffffff\n"
    found = read(f"{owned}{json.dumps(usage)}\n")
    assert found.snapshot is not None
    assert found.snapshot.info.load_manager is LoadManager.MODULAR


def test_series_and_values_on_lines_of_their_own() -> None:
    """The page of Prometheus shows them so."""
    start = 'pulsar_rate_in{instance="10.2.0.11:8080", namespace="shop/orders", topic="persistent://shop/orders/'
    names = ("o", "orders-of-yesterday")
    found = read("".join(f'{start}{name}"}}\n12.5\n' for name in names))
    assert found.snapshot is not None
    assert found.snapshot.topics.msg_rate_in_per_s.tolist() == [12.5, 12.5]
    assert not found.not_used


def test_labels_in_single_quotation_marks() -> None:
    text = SAMPLES.replace("%", "").replace(" msg/s", "").replace("1,200,500", "1200500")
    assert digest(read(text.replace('"', "'"))) == digest(read(text))


def test_more_memory_than_there_is_is_named() -> None:
    found = read(SAMPLES.replace("} 20", "} 120"))
    assert any("pulsar_lb_memory_usage 120. These are percentages" in one for one in found.contradictions)


def test_a_value_that_is_none_is_named() -> None:
    (why,) = read(TOPICS.replace('"msgRateIn": ', '"msgRateIn": true, "x": ', 1)).not_used
    assert "'msgRateIn' is not a number" in why


OWNED = "$ pulsar-admin brokers namespaces use --url mq-7:8080\nshop/orders/0x00000000_0xffffffff\n"
AVERAGES = {
    **dict.fromkeys(("maxSamples", "numSamples"), 10),
    **dict.fromkeys(("msgRateIn", "msgRateOut", "msgThroughputIn", "msgThroughputOut"), 1.0),
}


@pytest.mark.parametrize(("field", "value"), [("msgRateOut", -1.0), ("msgRateIn", "1"), ("numSamples", 20)])
def test_wrong_averages_leave_the_other_outputs(field: str, value: object) -> None:
    """The first two ended all of the reading, with the name of a file that nobody gave; the last was not named."""
    data = {"shortTermData": AVERAGES | {field: value}, "longTermData": AVERAGES, "topics": 1}
    path = "[zk: zk:2181(CONNECTED) 0] get /loadbalance/bundle-data/shop/orders/0x00000000_0xffffffff\n"
    found = read(f"{OWNED}{path}{json.dumps(data)}\n")
    assert found.snapshot is not None
    assert any(f"averages: shortTermData.{field}" in one or f"averages: {field}" in one for one in found.not_used)


def test_a_policy_without_secondary_brokers() -> None:
    policy = json.loads((INPUTS / "isolation/rest.json").read_text())
    for one in policy.values():
        one["secondary"] = None
    found = read(json.dumps(policy))
    assert not found.not_used
    assert found.found == read(json.dumps(policy).replace("null", "[]")).found


def test_a_table_without_its_broker_is_named() -> None:
    text = (INPUTS / "monitor_brokers/modular_4_0.txt").read_text()
    table = "\n".join(line for line in text.split("\n") if "Broker" not in line)
    (why,) = read(table).not_used
    assert "does not name its broker" in why


def test_a_release_with_the_prompt_behind_it() -> None:
    text = "$ curl -s http://mq-7:8080/admin/v2/brokers/version\n3.0.1-SNAPSHOT$ curl -s http://mq-7:8080/x\n"
    assert read(f"{text}\n{OWNED}").found == ("bundles of 1 broker", "the release")


@pytest.mark.parametrize("value", ["-1", '"x"', "[]", "1e20"])
@pytest.mark.parametrize("name", ["msgRateIn", "msgThroughputOut"])
def test_a_wrong_number_of_a_message_leaves_the_others(name: str, value: str) -> None:
    """It ended all of the reading."""
    text = (INPUTS / "load_balancer_topic/top_bundles_3_0.txt").read_text()
    found = read(re.sub(rf'"{name}": ?[\d.]+', f'"{name}": {value}', text, count=1) + OWNED)
    assert found.snapshot is not None
    assert any(f"{name}:" in one for one in found.not_used)
    assert "top bundles of 1 broker" in " ".join(found.found)


def test_a_number_that_is_too_large_leaves_the_others() -> None:
    found = read(REPORT.replace("420.0", "1e20", 1) + OWNED)
    assert found.snapshot is not None
    assert any("cpu.usage: 1e+20 is more than 1e+18" in one for one in found.not_used)
