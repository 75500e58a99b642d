"""Newer loads of all brokers renew a snapshot; those of some, or older ones, are not taken, and it is said why."""

import io
import json

import numpy as np
import pytest

from planner.cluster.snapshot import Snapshot
from planner.doors.read import Given, read_given
from planner.doors.reading import Reading
from planner.formats.document import write_document
from tests.data.doors.printed import capture
from tests.data.doors.test_beside import consumed, zipped

FILES = capture("modular.zip")
RAW = zipped(FILES)
TAGS = {
    line["file"].split(".")[1]: line["asked"].removeprefix("http://")
    for line in json.loads(FILES["index.json"])
    if line["file"].startswith("load-report.b")
}


def read(*texts: str, raw: bytes = RAW, now_ms: int = 0) -> tuple[Reading, Snapshot]:
    given = [Given("east.zip", io.BytesIO(raw))]
    given += [Given(f"more{at}.txt", io.BytesIO(text.encode())) for at, text in enumerate(texts)]
    reading = read_given(given, now_ms=now_ms)
    assert reading.snapshot is not None
    return reading, reading.snapshot


OLD = read()[1]
CPU = {broker: json.loads(FILES[f"load-report.{tag}.json"])["cpu"]["usage"] for tag, broker in TAGS.items()}
"""Usage as the brokers themselves answered, a moment after the reports in the metadata store."""
LATER_MS = OLD.info.captured_at_ms + 20 * 60_000


def reports(factor: float = 2.0, at_ms: int = LATER_MS, leave_out: str = "") -> str:
    """The load reports of all brokers later, with more traffic and usage."""
    text = ""
    for tag, broker in TAGS.items():
        report = json.loads(FILES[f"load-report.{tag}.json"])
        report["lastUpdate"] = at_ms
        report["cpu"]["usage"] *= factor
        report["msgRateIn"] *= factor
        for stats in report["lastStats"].values():
            stats["msgRateIn"] *= factor
        if broker != leave_out:
            text += f"$ curl -s http://{broker}/admin/v2/broker-stats/load-report\n{json.dumps(report)}\n"
    return text


def scrapes(leave_out: str = "") -> str:
    return "".join(
        f"$ curl -s http://{broker}/metrics/\n{FILES[f'prometheus.{tag}.txt'].decode()}\n"
        for tag, broker in TAGS.items()
        if broker != leave_out
    )


def owners(snapshot: Snapshot) -> dict[str, str]:
    """The owner of each bundle that has one."""
    rows = zip(snapshot.bundle_names, snapshot.bundles.owner.tolist(), strict=True)
    return {name: snapshot.brokers.name[at] for name, at in rows if at >= 0}


def not_taken(reading: Reading) -> list[str]:
    return [text for text in reading.not_used if "not taken into the snapshot" in text]


def test_load_reports_of_all_brokers_renew_the_loads_alone() -> None:
    reading, after = read(reports())
    assert after.info.captured_at_ms == LATER_MS
    assert after.brokers.cpu_usage_percent.tolist() == pytest.approx([2 * CPU[name] for name in after.brokers.name])
    assert set(after.bundle_names) == set(OLD.bundle_names)
    stats = [json.loads(FILES[f"load-report.{tag}.json"])["lastStats"] for tag in TAGS]
    rates = {name: 2 * one["msgRateIn"] for found in stats for name, one in found.items()}
    assert sum(rates.values()) > 1
    found = dict(zip(after.bundle_names, after.bundles.msg_rate_in_per_s.tolist(), strict=True))
    assert {name: found[name] for name in rates} == pytest.approx(rates)
    assert owners(after) == owners(OLD)
    assert after.settings == OLD.settings
    assert after.policies == OLD.policies
    assert (after.info.leader, after.info.pulsar_version) == (OLD.info.leader, OLD.info.pulsar_version)
    [said] = [text for text in reading.contradictions if text.startswith("Rates, usage and owners are of")]
    assert "(load reports of 3 brokers)" in said
    assert "of the snapshot, 20 min before" in said
    assert said in after.info.warnings
    assert not not_taken(reading)
    assert "load reports of 3 brokers" in reading.found


def test_scrapes_of_all_brokers_renew_it_and_idle_bundles_keep_their_owner() -> None:
    reading, after = read(scrapes(), now_ms=LATER_MS)
    assert after.info.captured_at_ms == LATER_MS
    assert owners(after) == owners(OLD)
    assert any("do not name have the owner of the snapshot" in text for text in reading.contradictions)
    assert any("do not say when they were printed" in text for text in reading.contradictions)
    assert after.settings == OLD.settings
    share = after.brokers.cpu_usage_percent / after.brokers.cpu_limit_percent
    limits = OLD.brokers.cpu_limit_percent.tolist()[0]
    assert share.tolist() == pytest.approx([CPU[name] / limits for name in after.brokers.name], abs=0.02)


@pytest.mark.parametrize("broker", TAGS.values())
def test_loads_of_some_brokers_alone_are_not_taken(broker: str) -> None:
    for text in (reports(leave_out=broker), scrapes(leave_out=broker)):
        reading, after = read(text, now_ms=LATER_MS)
        assert np.array_equal(after.brokers.cpu_usage_percent, OLD.brokers.cpu_usage_percent)
        assert np.array_equal(after.bundles.msg_rate_in_per_s, OLD.bundles.msg_rate_in_per_s)
        assert after.info.captured_at_ms == OLD.info.captured_at_ms
        [left] = not_taken(reading)
        assert f"they lack the load or the topics of {broker}." in left
        assert left in after.info.warnings


def test_a_broker_that_is_gone_is_not_waited_for() -> None:
    """A newer list of brokers says which there are."""
    gone = list(TAGS.values())[-1]
    names = "".join(f"{broker}\n" for broker in TAGS.values() if broker != gone)
    _, after = read(f"$ pulsar-admin brokers list c\n{names}\n{reports(leave_out=gone)}")
    assert gone not in after.brokers.name
    assert after.info.captured_at_ms == LATER_MS


def test_topics_alone_are_not_taken() -> None:
    """Rates beside the usage of another moment would be a cluster that never was."""
    text = "".join(
        f"$ pulsar-admin --admin-url http://{broker} broker-stats topics\n{FILES[f'topics.{tag}.json'].decode()}\n"
        for tag, broker in TAGS.items()
    )
    reading, after = read(text, now_ms=LATER_MS)
    [left] = not_taken(reading)
    assert "topics of 3 brokers not taken" in left
    assert "they lack the load or the topics of" in left
    assert after.info.captured_at_ms == OLD.info.captured_at_ms


@pytest.mark.parametrize("apart_ms", [0, -60_000])
def test_older_loads_are_not_taken(apart_ms: int) -> None:
    reading, after = read(reports(at_ms=OLD.info.captured_at_ms + apart_ms))
    [left] = not_taken(reading)
    assert "and the snapshot is not older" in left
    assert np.array_equal(after.brokers.cpu_usage_percent, OLD.brokers.cpu_usage_percent)


def test_damaged_loads_leave_the_snapshot_as_it_was() -> None:
    text = reports().replace('"msgRateIn":', '"msgRateIn": -1, "x":')
    assert text != reports()
    reading, after = read(text)
    assert after.info.captured_at_ms == OLD.info.captured_at_ms
    assert np.array_equal(after.brokers.cpu_usage_percent, OLD.brokers.cpu_usage_percent)
    assert any("msgRateIn" in one for one in reading.not_used)


def test_loads_of_an_unknown_moment_are_not_taken() -> None:
    reading, after = read(scrapes())
    [left] = not_taken(reading)
    assert "they do not say when they were printed" in left
    assert after.info.captured_at_ms == OLD.info.captured_at_ms


def test_what_people_set_is_taken_beside_newer_loads() -> None:
    text = "$ pulsar-admin brokers get-all-dynamic-config\nloadBalancerSheddingIntervalMinutes    7\n"
    _, after = read(reports(), text)
    assert after.settings["loadBalancerSheddingIntervalMinutes"] == 7
    assert after.info.captured_at_ms == LATER_MS


def test_a_snapshot_document_is_renewed_as_a_capture_is() -> None:
    _, after = read(reports(), raw=write_document(OLD).encode())
    assert after.info.captured_at_ms == LATER_MS
    assert after.brokers.cpu_usage_percent.tolist() == pytest.approx([2 * CPU[name] for name in after.brokers.name])


def test_the_extensible_load_manager_is_renewed_from_its_system_topic() -> None:
    """Usage without rates does not do; with the topics of the brokers it does."""
    files = capture("extensible.zip")
    raw = zipped(files)
    before = read(raw=raw)[1]
    later_ms = before.info.captured_at_ms + 120_000
    usage = consumed(before.brokers.name, later_ms)
    reading, _ = read(usage, raw=raw)
    assert "they lack the load or the topics of" in not_taken(reading)[0]
    tags = {
        line["file"].split(".")[1]: line["asked"].removeprefix("http://")
        for line in json.loads(files["index.json"])
        if line["file"].startswith("topics.b")
    }
    topics = "".join(
        f"$ pulsar-admin --admin-url http://{broker} broker-stats topics\n{files[f'topics.{tag}.json'].decode()}\n"
        for tag, broker in tags.items()
    )
    _, after = read(usage, topics, raw=raw)
    assert after.info.captured_at_ms == later_ms
    assert after.brokers.cpu_usage_percent[:2].tolist() == [300.0, 200.0]
    assert after.info.load_manager is before.info.load_manager


def long_term(snapshot: Snapshot) -> dict[str, tuple[int, float]]:
    """The samples and the rate of the long-term average of each bundle that has one."""
    bundles = snapshot.bundles
    rows = zip(bundles.long_term_samples.tolist(), bundles.long_term_msg_rate_in_per_s.tolist(), strict=True)
    return {name: row for name, row in zip(snapshot.bundle_names, rows, strict=True) if row[0]}


@pytest.mark.parametrize(
    ("minutes", "longest", "each"), [(1, 15, 1), (44, 15, 2), (45, 15, 3), (4, 1, 4), (1e6, 1, 999)]
)
def test_long_term_averages_go_on(minutes: float, longest: int, each: int) -> None:
    """With the fewest samples that the leader took: each broker reports at least once in a time that is a setting."""
    document = json.loads(write_document(OLD))
    document["settings"]["loadBalancerReportUpdateMaxIntervalMinutes"] = longest
    text = reports(at_ms=OLD.info.captured_at_ms + int(minutes * 60_000))
    reading, after = read(text, raw=json.dumps(document).encode())
    taken = min(each * len(TAGS), 1_000)
    before, now = long_term(OLD), dict(zip(after.bundle_names, after.bundles.msg_rate_in_per_s.tolist(), strict=True))
    found = long_term(after)
    going_on = set(found) & set(before)
    assert len(going_on) > 5
    for name in going_on:
        samples, rate = before[name]
        for _ in range(taken):
            samples = min(samples + 1, 1_000)
            rate += (now[name] - rate) / samples
        assert found[name][0] == samples
        assert found[name][1] == pytest.approx(rate)
    assert after.bundles.averages_estimated[after.bundles.has_data].all()
    assert set(after.bundles.short_term_samples[after.bundles.has_data].tolist()) == {1}
    [said] = [text for text in reading.contradictions if text.startswith("Long-term averages go on")]
    assert f"with {taken:,} samples of the newer rates" in said
    assert said in after.info.warnings


def test_averages_beside_newer_loads_count() -> None:
    name = next(iter(long_term(OLD)))
    terms = {"numSamples": 7, "msgRateIn": 77.0, "msgRateOut": 0.0, "msgThroughputIn": 7.0, "msgThroughputOut": 0.0}
    data = json.dumps({"shortTermData": terms, "longTermData": terms, "topics": 1})
    _, after = read(reports(), f"get /loadbalance/bundle-data/{name}\n{data}\n")
    assert long_term(after)[name] == (7, 77.0)


def test_bundles_without_averages_take_none() -> None:
    """A bundle that the snapshot has no samples of starts with one."""
    document = json.loads(write_document(OLD))
    for bundle in document["bundles"]:
        for key in ("short_term", "long_term"):
            bundle.pop(key, None)
    reading, after = read(reports(), raw=json.dumps(document).encode())
    assert {samples for samples, _ in long_term(after).values()} == {1}
    assert not any(text.startswith("Long-term averages") for text in reading.contradictions)
