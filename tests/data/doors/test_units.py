"""Numbers in other units, or swapped, are said where they cannot be those of a broker."""

import copy
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from planner.doors.read import Given, read_given
from planner.doors.reading import Reading

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
        (change("cpu.limit", 1.0), "Usage is above the limit"),
        (change("memory.limit", 1.0), "Usage is above the limit"),
        (change("memory.limit", 8.0 * 2**30), "MiB: check the unit"),
        (change("bandwidthIn.limit", 1e10), "kbit/s: check the unit"),
        (change("directMemory.usage", 1e9), "Usage is above the limit"),
        (change("memory.usage", 2.5), "memory in use is 2.5 MiB: check the unit"),
        (change("cpu.usage", 0.25), "check that it is not a fraction"),
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


SCRAPE = (INPUTS / "metrics" / "scrape_4_2.prom").read_text()
BROKER = "mq-0.mq.east.svc:8080"


def scaled(names: str, factor: float, text: str = SCRAPE) -> str:
    """The scrape with some metrics multiplied."""
    return re.sub(rf"(?m)^((?:{names})\{{.*\}}) (\S+)$", lambda found: f"{found[1]} {float(found[2]) * factor!r}", text)


def scraped(*texts: str) -> Reading:
    data = "".join(f"$ curl -s http://{BROKER}/metrics/\n{text}\n" for text in texts).encode()
    return read_given([Given("x", io.BytesIO(data))], now_ms=1795225795494)


@pytest.mark.parametrize(
    ("names", "factor", "said"),
    [
        (r"pulsar_lb_\w+_usage", 0.01, "less than 1 % of everything"),
        ("pulsar_lb_cpu_usage", 10, "pulsar_lb_cpu_usage 555. These are percentages"),
        (r"jvm_memory_\w+_max", 1 / 2**20, "in bytes; check the unit"),
        (r"pulsar_throughput_in", 1 / 2**20, "In the metrics of topics of"),
        (r"pulsar_bundle_msg_throughput_out", 1 / 2**20, "In the metrics of bundles of"),
        (r"pulsar_rate_in", 60, "do not agree with those of the topics in them: msgRateIn (1 bundle)"),
        (r"pulsar_bundle_topics_count", 0, "do not agree with those of the topics in them: topics (1 bundle)"),
        (r"pulsar_broker_rate_\w+", 60, "pulsar_broker_rate_in 24,810 and 413.5"),
        (r"pulsar_producers_count", 3, "pulsar_broker_producers_count 5 and 15"),
    ],
)
def test_metrics_in_another_unit_are_said(names: str, factor: float, said: str) -> None:
    assert said not in " ".join(scraped(SCRAPE).contradictions)
    assert said in " ".join(scraped(scaled(names, factor)).contradictions)


def test_a_scrape_that_was_cut_short_is_said() -> None:
    """What a broker says of all its topics is more than those that are there."""
    lines = [line for line in SCRAPE.splitlines() if "partition-3" not in line]
    assert "pulsar_broker_topics_count 5 and 4" in " ".join(scraped("\n".join(lines)).contradictions)


def test_metrics_of_two_clusters_are_said() -> None:
    other = SCRAPE.replace("east", "west").replace("mq-0", "mq-1").replace("shop/", "pay/")
    data = f"{SCRAPE}\n$ curl -s http://mq-1.mq.west.svc:8080/metrics/\n{other}".encode()
    reading = read_given([Given("x", io.BytesIO(data))], now_ms=1795225795494)
    said = "several clusters: east, west. Those of east count; to read another one, read all of it again with the name"
    assert said in " ".join(reading.contradictions)
    assert reading.snapshot is not None
    assert {name.partition("/")[0] for name in reading.snapshot.bundle_names} == {"shop"}
    west = read_given([Given("x", io.BytesIO(data))], cluster="west", now_ms=1795225795494).snapshot
    assert west is not None
    assert {name.partition("/")[0] for name in west.bundle_names} == {"pay"}
    neither = read_given([Given("x", io.BytesIO(data))], cluster="wset", now_ms=1795225795494)
    assert "Those of east count, as none is called wset; to read" in " ".join(neither.contradictions)


def test_brokers_of_two_clusters_with_one_name_are_not_put_together() -> None:
    """The values of one were shown for the other."""
    other = scaled(r"pulsar_\w+", 3).replace('cluster="east"', 'cluster="west"')
    reading = scraped(f"{SCRAPE}\n{other}")
    assert reading.snapshot is not None
    assert "several clusters" in " ".join(reading.contradictions)
    alone = scraped(SCRAPE).snapshot
    assert alone is not None
    assert reading.snapshot.topics.msg_rate_in_per_s.tolist() == alone.topics.msg_rate_in_per_s.tolist()


def test_of_two_scrapes_of_a_broker_the_last_counts_as_a_whole() -> None:
    """A topic that moved away in between is not there, but what another text adds is."""
    later = scaled(r"pulsar_rate_in", 2)
    gone = "\n".join(line for line in later.splitlines() if "partition-3" not in line)
    reading = scraped(SCRAPE, gone)
    assert reading.snapshot is not None
    assert "metrics of several moments of" in " ".join(reading.contradictions)
    rates = dict(zip(reading.snapshot.topics.name.to_pylist(), reading.snapshot.topics.msg_rate_in_per_s, strict=True))
    assert rates.keys() == {*(f"persistent://shop/orders/t-partition-{at}" for at in range(3)), LONE}
    assert rates[LONE] == 15.0
    apart = [line for line in SCRAPE.splitlines() if "pulsar_rate_in" in line]
    others = [line for line in SCRAPE.splitlines() if "pulsar_rate_in" not in line]
    together = scraped("\n".join(apart[:3]), "\n".join(apart[3:]), "\n".join(others))
    assert together.snapshot is not None
    assert not any("several moments" in text for text in together.contradictions)
    assert len(together.snapshot.topics) == 5


LONE = "persistent://shop/stock/lone"


@pytest.mark.parametrize("program", ["zookeeper-0:8000", "bookie-0:8000", "proxy-0:80"])
def test_other_programs_are_no_brokers(program: str) -> None:
    """A Prometheus has metrics of Java of every program."""
    texts = [
        'pulsar_lb_cpu_usage{instance="broker-0:8080"} 40',
        f'pulsar_rate_in{{instance="broker-0:8080",topic="{LONE}"}} 4',
        *(f'jvm_memory_bytes_max{{area="heap",instance="{name}"}} 2147483648' for name in ("broker-0:8080", program)),
    ]
    reading = read_given([Given("x", io.BytesIO("\n".join(texts).encode()))], now_ms=1795225795494)
    assert reading.snapshot is not None
    assert reading.snapshot.brokers.name == ("broker-0:8080",)
    assert f"{program} left out" in " ".join(reading.contradictions)
    listed = read_given(
        [Given("x", io.BytesIO("\n".join([*texts, "$ pulsar-admin brokers list c", program]).encode()))],
        now_ms=1795225795494,
    )
    assert listed.snapshot is not None
    assert program in listed.snapshot.brokers.name


@pytest.mark.parametrize("key", ["msgRateIn", "msgThroughputIn", "msgRateOut", "msgThroughputOut"])
@pytest.mark.parametrize("factor", [60, 1 / 1024])
def test_rates_of_a_topic_that_its_parts_do_not_add_up_to_are_said(key: str, factor: float) -> None:
    """Producers and subscriptions of a topic say what its rates are made of."""
    consumer = {"msgRateOut": 1000.0, "msgThroughputOut": 1e6, "consumerName": "c"}
    topic = {
        "msgRateIn": 1000.0,
        "msgThroughputIn": 1e6,
        "msgRateOut": 2000.0,
        "msgThroughputOut": 2e6,
        "averageMsgSize": 1000.0,
        "publishers": [{"msgRateIn": 500.0, "msgThroughputIn": 5e5, "producerId": at} for at in range(2)],
        "subscriptions": {
            f"s{at}": {"msgRateOut": 1000.0, "msgThroughputOut": 1e6, "consumers": [consumer]} for at in range(2)
        },
        "replication": {},
    }
    said = f"{key} (1 topic)"
    name = "persistent://a/b/t"
    for wrap in (lambda one: {"a/b": {"0x00000000_0xffffffff": {"persistent": {name: one}}}}, lambda one: one):
        command = f"$ pulsar-admin topics stats {name}\n" if wrap(topic) is topic else ""

        def of(one: dict[str, Any], wrap: Any = wrap, command: str = command) -> str:
            text = f"{json.dumps(REPORT)}\n{command}{json.dumps(wrap(one))}"
            return " ".join(read_given([Given("x", io.BytesIO(text.encode()))], now_ms=1795225795494).contradictions)

        assert said not in of(topic)
        assert said in of({**topic, key: topic[key] * factor})  # type: ignore[operator]
        replicated = {**topic, key: topic[key] * factor, "averageMsgSize": 0, "replication": {"west": {}}}  # type: ignore[operator]
        assert said not in of(replicated)


def test_topics_of_other_rates_than_the_report_are_said() -> None:
    said = "reports other rates than its topics add up to: msgRateIn"
    total = sum(row["msgRateIn"] for row in rows(TOPICS) if "subscriptions" in row)
    for factor, is_said in ((1, False), (1.5, False), (60, True), (1 / 60, True)):
        assert (said in contradictions({**REPORT, "msgRateIn": total * factor}, TOPICS)) is is_said


def test_outputs_of_the_future_are_said() -> None:
    report = {**REPORT, "lastUpdate": REPORT["lastUpdate"] + 366 * 86_400_000}
    for now_ms, is_said in ((REPORT["lastUpdate"], True), (report["lastUpdate"], False), (0, False)):
        found = read_given([Given("x", io.BytesIO(json.dumps(report).encode()))], now_ms=now_ms)
        assert any("A clock may be wrong" in text for text in found.assumed) is is_said


def test_brokers_of_two_load_managers_are_said() -> None:
    """As in a migration that was cut short, or in reports of two clusters."""
    said = "Brokers run several load managers, ModularLoadManagerImpl and ExtensibleLoadManagerImpl"
    pair = [
        {**REPORT, "webServiceUrl": f"http://b-{at}:8080", "loadManagerClassName": f"org.apache.pulsar.{name}"}
        for at, name in enumerate(("ModularLoadManagerImpl", "ExtensibleLoadManagerImpl"))
    ]
    assert said in contradictions(*pair)
    assert "several load managers" not in contradictions(pair[0], {**pair[1], "loadManagerClassName": None})


def owned(broker: str, *spans: str) -> str:
    """What releases before 2.10 print, whose rows are in quotation marks."""
    rows = [f'"shop/orders/{span}    [broker_assignment=shared is_controlled=false is_active=true]"' for span in spans]
    return "\n".join([f"$ pulsar-admin brokers namespaces c --url {broker}", *rows, ""])


HALVES = ("0x00000000_0x80000000", "0x80000000_0xffffffff")


def owners_of(text: str) -> Reading:
    return read_given([Given("x", io.BytesIO(f"{SCRAPED}{text}".encode()))], now_ms=1)


SCRAPED = "".join(f'pulsar_lb_cpu_usage{{instance="b{at}:8080"}} {at + 1}\n' for at in range(2))


def test_bundles_that_overlap_are_said() -> None:
    whole = owners_of(owned("b0:8080", HALVES[0]) + owned("b1:8080", HALVES[1]))
    assert whole.snapshot is not None
    assert whole.snapshot.bundles.owner.tolist() == [0, 1]
    assert not whole.contradictions
    split = owners_of(owned("b0:8080", *HALVES) + owned("b1:8080", "0x80000000_0xc0000000"))
    assert "shop/orders/0x80000000_0xffffffff overlaps with other bundles" in " ".join(split.contradictions)


def test_brokers_without_a_valid_bundle_are_not_enough() -> None:
    reading = owners_of(owned("b0:8080", "0x80000000_0x40000000"))
    assert reading.snapshot is None
    assert "The files name 2 brokers and no bundle" in reading.not_enough


def test_brokers_with_an_address_of_ipv6() -> None:
    reading = owners_of("$ pulsar-admin brokers list c\n[2001:db8::1]:8080\n[2001:db8::2]:8080\n")
    assert "a list of 2 brokers" in reading.found
    assert not any("left out" in text for text in reading.contradictions)


def test_topics_below_a_range_that_is_empty_are_named() -> None:
    wrong = {"shop/orders": {"0x80000000_0x40000000": {"persistent": {LONE: {"msgRateIn": 1.0}}}}}
    reading = owners_of(f"$ pulsar-admin broker-stats topics\n{json.dumps(wrong)}\n{owned('b0:8080', *HALVES)}")
    assert reading.snapshot is not None
    assert "The range 0x80000000_0x40000000 is empty".lower() in " ".join(reading.not_used).lower()


def test_the_time_of_a_report_in_seconds_is_said() -> None:
    """The cluster was shown as of 1970."""
    changed = copy.deepcopy(REPORT)
    changed["lastUpdate"] //= 1_000
    reading = read_given([Given("x", io.BytesIO(json.dumps(changed).encode()))], now_ms=1795225795494)
    assert "check that this is in ms" in " ".join(reading.contradictions)
    assert reading.snapshot is not None
    assert reading.snapshot.info.captured_at_ms == 1795225795494


def test_a_report_with_a_time_that_is_none_leaves_the_others() -> None:
    """Nothing at all was read."""
    changed = copy.deepcopy(REPORT)
    changed["lastUpdate"] *= 1_000_000
    changed["webServiceUrl"] = "http://mq-9.mq.east.svc:8080"
    data = f"{json.dumps(REPORT)}\n{json.dumps(changed)}".encode()
    reading = read_given([Given("x", io.BytesIO(data))], now_ms=1795225795494)
    assert reading.found == ("load reports of 1 broker",)
    assert "lastUpdate: the value is not a time in ms since 1970" in " ".join(reading.not_used)


def test_reports_of_different_days_are_said() -> None:
    changed = copy.deepcopy(REPORT)
    changed["lastUpdate"] -= 3 * 24 * 3_600_000
    changed["webServiceUrl"] = "http://mq-9.mq.east.svc:8080"
    assert "mq-9.mq.east.svc:8080 is 4,320 min older than the newest one" in contradictions(REPORT, changed)
    changed["lastUpdate"] = REPORT["lastUpdate"] - 15 * 60_000
    assert "older than the newest" not in contradictions(REPORT, changed)


def test_topics_of_another_namespace_are_said() -> None:
    """They were said to be shown in the bundle of their hash."""
    topics = {"shop/orders": {"0x00000000_0xffffffff": {"persistent": {"persistent://shop/other/x": {"msgRateIn": 1}}}}}
    said = contradictions(REPORT, topics)
    assert "lists 1 topic under another namespace (persistent://shop/other/x)" in said
    assert "does not hold the hash" not in said
