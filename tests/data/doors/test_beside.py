"""Outputs beside a whole snapshot: what people set replaces what it has; loads are not taken, and that is said."""

import io
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from planner.cluster.pulsar_json import RESOURCES
from planner.cluster.snapshot import Snapshot
from planner.doors.read import Given, read_given
from planner.doors.reading import Reading
from planner.formats.document import write_document
from tests.data.doors.printed import capture

INPUTS = Path(__file__).parent / "inputs"


@pytest.fixture(scope="module")
def whole() -> bytes:
    names = (
        "load_report/one_line_4_2.jsonl",
        "isolation/java_2_10.txt",
        "settings_of_broker/dynamic_3_0.txt",
        "anti_affinity/terminal_4_0.txt",
    )
    reading = read_given((Given(name, io.BytesIO((INPUTS / name).read_bytes())) for name in names), cluster="east")
    assert reading.snapshot is not None
    return write_document(reading.snapshot).encode()


def read(whole: bytes, text: str) -> tuple[Reading, Snapshot]:
    reading = read_given([Given("east.json", io.BytesIO(whole)), Given("more.txt", io.BytesIO(text.encode()))])
    assert reading.snapshot is not None
    return reading, reading.snapshot


def test_dynamic_settings_replace_those_of_the_snapshot(whole: bytes) -> None:
    before = read(whole, "")[1]
    assert before.settings["loadBalancerSheddingEnabled"] is False
    reading, after = read(
        whole, "$ pulsar-admin brokers get-all-dynamic-config\nloadBalancerSheddingIntervalMinutes    7\n"
    )
    assert after.settings["loadBalancerSheddingIntervalMinutes"] == 7
    assert after.settings["loadBalancerSheddingEnabled"] is True
    assert after.info.dynamic_settings == {"loadBalancerSheddingIntervalMinutes": "7"}
    assert "dynamic settings" in reading.found
    assert any("loadBalancerSheddingEnabled" in text for text in reading.contradictions)
    assert set(reading.contradictions) <= set(after.info.warnings)


def test_settings_of_a_running_broker_count_below_dynamic_ones(whole: bytes) -> None:
    _, after = read(
        whole,
        "$ pulsar-admin brokers get-runtime-config\n" + (INPUTS / "settings_of_broker/runtime_4_2.txt").read_text(),
    )
    assert after.settings["loadBalancerBrokerThresholdShedderPercentage"] == 20
    assert after.settings["loadBalancerSheddingEnabled"] is False
    assert after.info.settings_from == "brokers"


def test_policies_replace_those_of_the_snapshot(whole: bytes) -> None:
    text = "$ pulsar-admin ns-isolation-policy list c\n" + (INPUTS / "isolation/java_4_2.txt").read_text()
    text += "$ pulsar-admin namespaces get-anti-affinity-group shop/orders\nblue\n"
    text += "$ pulsar-admin clusters list-failure-domains c\n" + (INPUTS / "domains/java_4_2.txt").read_text()
    reading, after = read(whole, text)
    assert [one.name for one in after.policies.isolation] == ["billing only"]
    assert after.policies.anti_affinity_group == {"shop/orders": "blue", "shop/stock": "red"}
    assert list(after.policies.failure_domains) == ["zone-a", "zone-b"]
    assert "The snapshot has other isolation policies; the outputs beside it count." in reading.contradictions


def test_one_isolation_policy_replaces_the_one_of_its_name(whole: bytes) -> None:
    policy = (INPUTS / "isolation/get_3_0.txt").read_text().replace("east orders", "east p1")
    _, after = read(whole, policy)
    assert {one.name: one.namespaces for one in after.policies.isolation} == {
        "p2": ("shop/orders",),
        "p1": ("shop/orders",),
    }


def test_policies_of_a_namespace_give_its_limits(whole: bytes) -> None:
    policies = (INPUTS / "policies_of_namespace/policies.shop_orders.json").read_text()
    _, after = read(whole, f"$ pulsar-admin namespaces policies shop/orders\n{policies}")
    [rate] = after.policies.dispatch_rates
    assert (rate.target, rate.rate.msg_per_period) == ("shop/orders", 1000)


def test_bundles_that_were_split_since_are_named(whole: bytes) -> None:
    text = (INPUTS / "policies_of_namespace/terminal_2_10.txt").read_text()
    split = text.replace('"0x80000000",', '"0x40000000", "0x80000000",').replace('"numBundles": 2', '"numBundles": 3')
    reading, after = read(whole, split)
    assert [text for text in reading.contradictions if "shop/stock has 3 bundles there, and 2 in the snapshot" in text]
    assert len(after.bundles) == 6


def test_the_release_and_the_leader_are_taken(whole: bytes) -> None:
    text = "$ pulsar-admin brokers version\n3.0.7\n" + (INPUTS / "leader/pretty_4_2.json").read_text()
    reading, after = read(whole, text)
    assert after.info.pulsar_version == after.settings.release.name == "3.0.7"
    assert after.info.leader == "mq-1.mq.east.svc:8080"
    assert any("but the brokers run 3.0.7, which counts" in text for text in reading.contradictions)


def test_loads_are_not_mixed_and_named(whole: bytes) -> None:
    before = read(whole, "")[1]
    text = (INPUTS / "load_report/two_in_a_row_3_3.txt").read_text()
    reading, after = read(whole, text + (INPUTS / "broker_topics/terminal_3_0.txt").read_text())
    [left] = [text for text in reading.not_used if "not taken into the snapshot" in text]
    assert left.startswith("more.txt: load reports of 2 brokers, topics of 1 broker not taken")
    assert np.array_equal(before.bundles.msg_rate_in_per_s, after.bundles.msg_rate_in_per_s)
    assert left in after.info.warnings


def test_another_list_of_brokers_is_named(whole: bytes) -> None:
    reading, _ = read(whole, "mq-0.mq.east.svc:8080\nmq-7.mq.east.svc:8080\n")
    assert [text for text in reading.contradictions if "mq-7.mq.east.svc:8080 not in the snapshot" in text]
    same = read(whole, "mq-0.mq.east.svc:8080\nmq-1.mq.east.svc:8080\n")[0]
    assert not same.contradictions


def zipped(files: dict[str, bytes]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return data.getvalue()


def consumed(brokers: Sequence[str], updated_ms: int) -> str:
    """What `pulsar-client consume` prints of the loads of brokers, the first one with the highest usage."""
    text = ""
    for at, broker in enumerate(brokers):
        usage = {name: {"usage": 300.0 - 100 * at, "limit": 400.0} for name in RESOURCES}
        load = {
            **usage,
            "msgRateIn": 1.0,
            "weightedMaxEMA": 0.5,
            "topics": 1,
            "bundleCount": 1,
            "updatedAt": updated_ms,
        }
        text += f"----- got message -----\npublishTime:[{updated_ms}], eventTime:[0], key:[{broker}], properties:[], "
        text += f"content:{json.dumps(load)}\n"
    return text


def test_a_capture_behind_a_proxy_takes_its_loads_from_the_system_topic() -> None:
    """With the extensible load manager it has owners and no loads; nothing else can give them."""
    files = {
        n: c
        for n, c in capture("extensible.zip").items()
        if not n.startswith(("metrics.", "prometheus.", "system-topics."))
    }
    raw = zipped(files)
    before = read(raw, "")[1]
    assert not before.brokers.has_load_data.any()
    text = consumed(before.brokers.name, before.info.captured_at_ms + 120_000)
    reading, after = read(raw, text)
    assert after.brokers.has_load_data.all()
    assert after.brokers.cpu_usage_percent[:2].tolist() == [300.0, 200.0]
    assert after.bundles.owner.tolist() == before.bundles.owner.tolist()
    assert [
        text for text in reading.contradictions if "from the system topic, up to 2 min apart from the capture" in text
    ]
    assert f"load reports of {len(after.brokers)} brokers" in reading.found
    assert not [text for text in reading.not_used if "not taken" in text]


def test_a_capture_that_has_loads_takes_no_others() -> None:
    raw = zipped(capture("extensible.zip"))
    before = read(raw, "")[1]
    reading, after = read(raw, consumed(before.brokers.name, before.info.captured_at_ms))
    assert np.array_equal(before.brokers.cpu_usage_percent, after.brokers.cpu_usage_percent)
    assert [text for text in reading.not_used if text.startswith("more.txt: load reports of")]


def test_a_broker_in_two_failure_domains_is_named(whole: bytes) -> None:
    """The admin API refuses such domains, but a metadata store may have them: Pulsar takes the last one by name."""
    domains = {"zone-b": {"brokers": ["10.2.0.11:8080"]}, "zone-a": {"brokers": ["10.2.0.11:8080", "10.2.0.12:8080"]}}
    text = f"$ pulsar-admin clusters list-failure-domains east\n{json.dumps(domains)}\n"
    reports = (INPUTS / "load_report/two_in_a_row_3_3.txt").read_bytes()
    alone = read_given([Given("r.json", io.BytesIO(reports)), Given("d.txt", io.BytesIO(text.encode()))])
    for reading in (alone, read(whole, text)[0]):
        said = [one for one in reading.contradictions if "several failure domains" in one]
        assert len(said) == 1
        assert "Pulsar takes the last one by name, zone-b, and not zone-a." in said[0]
        assert reading.snapshot is not None
        assert said[0] in reading.snapshot.info.warnings


def test_a_document_with_a_broker_in_two_failure_domains_is_noted_once(whole: bytes) -> None:
    """Such a document was opened without a note when a person had written the domains into it."""
    document = json.loads(whole)
    document["policies"]["failure_domains"] = {"zone-a": ["10.2.0.11:8080"], "zone-b": ["10.2.0.11:8080"]}
    for _ in range(2):
        reading = read_given([Given("east.json", io.BytesIO(json.dumps(document).encode()))])
        assert reading.snapshot is not None
        notes = [one for one in reading.snapshot.info.warnings if "several failure domains" in one]
        assert len(notes) == 1
        document = json.loads(write_document(reading.snapshot))
    assert not reading.contradictions
