"""Outputs become a cluster: what public reports of operators had at hand, and what must be said about it."""

import io
import json
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from planner.__main__ import main
from planner.cluster.digest import snapshot_digest
from planner.cluster.load_manager import LoadManager
from planner.cluster.snapshot import Snapshot
from planner.doors.commands import script
from planner.doors.enough import NEEDS, enough_for
from planner.doors.read import Given, read_given, read_outputs
from planner.doors.reading import Reading
from planner.formats.reading import read_snapshot

INPUTS = Path(__file__).parent / "inputs"
REPORTS = ("load_report/one_line_4_2.jsonl",)


def read(*names: str) -> Reading:
    return read_outputs(*(INPUTS / name for name in names))


def cluster(reading: Reading) -> Snapshot:
    assert reading.snapshot is not None, reading.not_enough
    return reading.snapshot


def by_broker(snapshot: Snapshot, column: str = "msg_rate_in_per_s") -> dict[str, float]:
    """Return the sum of a column over the bundles of each broker."""
    values = getattr(snapshot.bundles, column)
    return {name: float(values[snapshot.bundles.owner == at].sum()) for at, name in enumerate(snapshot.brokers.name)}


def test_one_load_report_is_a_cluster_with_notes() -> None:
    reading = read("load_report/pretty_4_0.json")
    snapshot = cluster(reading)
    assert reading.found == ("load reports of 1 broker",)
    assert list(snapshot.brokers.name) == ["mq-0.mq.east.svc:8080"]
    assert snapshot.info.pulsar_version == snapshot.settings.release.name == "4.0.8"
    assert snapshot.info.captured_at_ms == 1795225795494
    assert snapshot.brokers.cpu_usage_percent.tolist() == [420.0]
    assert by_broker(snapshot) == {"mq-0.mq.east.svc:8080": 1140.75}
    whats = [one.what for one in reading.missing]
    assert whats[0] == "the list of brokers"
    assert "the full list of bundles of shop/orders, shop/stock" in whats
    for one in reading.missing:
        assert one.note in snapshot.info.warnings
        assert one.command.startswith(("pulsar-admin ", "curl ", "pulsar zookeeper-shell "))
        assert one.assumed.endswith(".")
        assert one.uncertain.endswith(".")


@pytest.mark.parametrize("name", ["load_report/two_in_a_row_3_3.txt", "load_report/one_line_4_2.jsonl"])
def test_two_reports_in_a_row_are_two_brokers(name: str) -> None:
    snapshot = cluster(read(name))
    assert list(by_broker(snapshot).values()) == [1140.75, 63.0]
    assert len(snapshot.bundles) == 6  # both namespaces are whole
    assert snapshot.bundles.has_stats.all()


def test_a_simple_load_report_is_read_as_modular() -> None:
    reading = read("load_report/simple_2_5.json")
    assert by_broker(cluster(reading)) == {"10.2.0.21:8080": 1140.75}
    assert cluster(reading).brokers.cpu_usage_percent.tolist() == [220.0]


def test_a_settings_file_beside_reports_is_in_force() -> None:
    reading = read(*REPORTS, "settings_file/broker_4_0.conf")
    snapshot = cluster(reading)
    assert snapshot.settings["loadBalancerSheddingIntervalMinutes"] == 5
    assert snapshot.settings["loadBalancerNamespaceMaximumBundles"] == 256
    assert snapshot.info.settings_from == "brokers"
    assert any(
        "loadBalancerBrokerThresholdSheddderPercentage" in text
        and "It may mean loadBalancerBrokerThresholdShedderPercentage" in text
        for text in reading.not_used
    )
    assert not any("settings of the brokers" in one.what for one in reading.missing)
    assert "SECRET" not in repr(reading)


def test_settings_of_running_brokers_count_before_a_file() -> None:
    reading = read(*REPORTS, "settings_file/broker_4_0.conf", "settings_of_broker/runtime_4_2.txt")
    snapshot = cluster(reading)
    assert snapshot.settings["loadBalancerBrokerThresholdShedderPercentage"] == 20
    assert snapshot.settings["loadBalancerNamespaceMaximumBundles"] == 128
    assert any("Those of the running brokers count" in text for text in snapshot.info.warnings)
    assert "SECRET" not in repr(reading)


def test_dynamic_settings_count_before_all_others() -> None:
    names = ("settings_of_broker/runtime_4_2.txt", "settings_of_broker/dynamic_3_0.txt")
    snapshot = cluster(read(*REPORTS, *names))
    assert snapshot.settings["loadBalancerSheddingEnabled"] is False
    assert snapshot.settings["loadBalancerBrokerOverloadedThresholdPercentage"] == 70
    assert snapshot.info.dynamic_settings is not None
    assert snapshot.info.dynamic_settings["loadBalancerSheddingEnabled"] == "false"


@pytest.mark.parametrize("name", ["metrics/scrape_4_2.prom", "metrics/scrape_split_labels_3_0.txt"])
def test_a_scrape_is_a_cluster_of_one_broker(name: str) -> None:
    reading = read(name)
    snapshot = cluster(reading)
    assert snapshot.info.cluster == "east"
    names = set(snapshot.topics.name.to_pylist())
    partitions = {f"persistent://shop/orders/t-partition-{at}" for at in range(4)}
    assert names == {*partitions, "persistent://shop/stock/lone"}
    assert snapshot.topics.msg_rate_in_per_s.sum() == pytest.approx(413.5)
    assert any("8080 is assumed" in text for text in reading.assumed)
    assert any(one.what.startswith("the bundles of shop/") for one in reading.missing)


@pytest.mark.parametrize("name", ["range_partition_label.json", "instant.json", "thanos_two_replicas.json"])
def test_answers_of_prometheus_keep_partitions_and_replicas_apart(name: str) -> None:
    reading = read(f"prometheus/{name}")
    snapshot = cluster(reading)
    assert len(snapshot.topics) == 4
    assert by_broker(snapshot) == {"broker-0.mq.svc:8080": 200.0, "broker-1.mq.svc:8080": 200.0}
    assert snapshot.brokers.cpu_usage_percent.tolist() == [80.0, 10.0]
    # Two brokers in one assumed bundle prove that there are more.
    owners = snapshot.bundles.owner[snapshot.topics.bundle]
    assert sorted(owners.tolist()) == [0, 0, 1, 1]
    assert any("assumed" in one.assumed for one in reading.missing if "bundles of shop/orders" in one.what)


def test_counters_of_a_range_give_rates() -> None:
    snapshot = cluster(read("prometheus/counters.json"))
    assert snapshot.topics.msg_rate_in_per_s.tolist() == [100.0]


def test_scrapes_in_one_file_are_told_apart_by_their_brokers() -> None:
    assert by_broker(cluster(read("metrics/two_scrapes_3_3.txt"))) == {"10.2.0.11:8080": 9.0, "10.2.0.12:8080": 3.0}


def test_the_extensible_load_manager_has_its_load_in_topics() -> None:
    names = ("broker_load_data_4_2.txt",)
    owned = "owned/lines_4_2.txt"
    reading = read(*(f"load_balancer_topic/{name}" for name in names), owned, "errors/java_4_0.txt")
    snapshot = cluster(reading)
    assert snapshot.info.load_manager is LoadManager.EXTENSIBLE
    assert snapshot.brokers.cpu_usage_percent.tolist() == [220.0, 40.0]
    assert snapshot.brokers.weighted_max_ema.tolist() == [0.55, 0.1]
    assert any("pulsar-client consume" in one.command or "brokers namespaces" in one.command for one in reading.missing)


def test_owners_of_the_extensible_load_manager() -> None:
    reading = read("load_balancer_topic/service_unit_state_4_0.txt", "load_balancer_topic/top_bundles_3_0.txt")
    snapshot = cluster(reading)
    assert snapshot.info.load_manager is LoadManager.EXTENSIBLE
    assert by_broker(snapshot) == {"10.2.0.11:8080": 1000.0, "10.2.0.12:8080": 40.0}


def test_a_list_of_bundles_with_owners_is_enough() -> None:
    reading = read("owned/lines_4_2.txt", "bundles_of_namespace/by_name.json", "brokers/lines_4_2.txt")
    snapshot = cluster(reading)
    assert len(snapshot.brokers) == 2
    assert (snapshot.bundles.owner >= 0).sum() == 4  # three, and that of its heartbeat
    assert any(one.what.startswith("the load of") for one in reading.missing)


@pytest.mark.parametrize(
    "names", [("brokers/lines_4_2.txt",), ("monitor_brokers/modular_4_0.txt",), ("version/line_4_0.txt",)]
)
def test_too_little_is_said_plainly_with_the_command(names: tuple[str, ...]) -> None:
    reading = read(*names)
    assert reading.snapshot is None
    assert "needs bundles and their owners" in reading.not_enough
    assert reading.missing[0].command.startswith("curl -s http://")
    assert not any("nothing that is known" in text for text in reading.found)


def test_usage_of_monitor_brokers_joins_bundles() -> None:
    snapshot = cluster(read("monitor_brokers/modular_4_0.txt", "owned/lines_4_2.txt"))
    assert snapshot.brokers.cpu_usage_percent[0] == 52.5
    assert snapshot.brokers.msg_rate_in_per_s[0] == 1140.75


def test_policies_isolation_and_domains_reach_the_snapshot() -> None:
    policies = cluster(
        read(
            *REPORTS,
            "policies_of_namespace/policies.shop_orders.json",
            "isolation/java_4_2.txt",
            "domains/java_4_2.txt",
            "anti_affinity/terminal_4_0.txt",
        )
    ).policies
    (isolation,) = policies.isolation
    assert isolation.name == "billing only"
    assert isolation.primary == (r"mq-0\.mq.*", r"mq-[23]\.mq.*")
    assert isolation.usage_threshold_percent == 80
    assert dict(policies.failure_domains) == {
        "zone-a": ("mq-0.mq.east.svc:8080",),
        "zone-b": ("mq-1.mq.east.svc:8080",),
    }
    assert dict(policies.anti_affinity_group) == {"shop/orders": "red", "shop/stock": "red"}
    (limit,) = policies.dispatch_rates
    assert (limit.target, limit.rate.msg_per_period) == ("shop/orders", 1000)


def test_pieces_that_name_nothing_are_named_by_the_others() -> None:
    reading = read(
        *REPORTS, "broker_topics/one_line_4_0.broker-0.json", "bundles_of_namespace/bundles.shop_orders.json"
    )
    snapshot = cluster(reading)
    assert set(snapshot.topics.name.to_pylist()) <= {f"persistent://shop/orders/order-{at}" for at in range(12)} | {
        "non-persistent://pulsar/mq-0.mq.east.svc:8080/healthcheck"
    }
    assert any("it is taken for shop/orders" in text for text in reading.assumed)


def test_what_does_not_agree_is_said() -> None:
    two = (INPUTS / "load_report/two_in_a_row_3_3.txt").read_text()
    first, _, second = two.partition("}\n{\n")
    reports = [json.loads(first + "}"), json.loads("{\n" + second)]
    stolen = next(iter(reports[0]["lastStats"]))
    reports[1]["lastStats"][stolen] = reports[0]["lastStats"][stolen]
    reports[0]["msgRateIn"] = 9_999.0
    text = "\n".join(map(json.dumps, reports)).encode()
    reading = read_given([Given("pasted text", io.BytesIO(text)), *given("brokers/lines_4_2.txt")])
    said = "\n".join(reading.contradictions)
    assert f"both name {stolen} as their own" in said
    assert "says msgRateIn 9,999, but its bundles add up to 1,140.75" in said
    assert "says numBundles 3, but lists 4 bundles" in said
    assert "is not in the list of brokers" in said
    assert set(reading.contradictions) <= set(cluster(reading).info.warnings)


def given(*names: str) -> list[Given]:
    return [Given(Path(name).name, io.BytesIO((INPUTS / name).read_bytes())) for name in names]


def test_a_zip_holds_any_of_them(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        for name in ("load_report/two_in_a_row_3_3.txt", "settings_file/environment.env", "isolation/java_2_10.txt"):
            archive.write(INPUTS / name, f"folder/{name}")
    reading = read_outputs(tmp_path / "all.zip")
    snapshot = cluster(reading)
    assert snapshot.settings["loadBalancerSheddingIntervalMinutes"] == 10
    assert len(snapshot.policies.isolation) == 2


def test_the_command_writes_a_snapshot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "s.json"
    assert (
        main(["snapshot", str(INPUTS / "load_report/one_line_4_2.jsonl"), "--out", str(out), "--cluster", "west"]) == 0
    )
    assert read_snapshot(out).info.cluster == "west"
    said = capsys.readouterr().err
    assert "found: load reports of 2 brokers" in said
    assert "pulsar-admin brokers list west" in said
    assert main(["snapshot", str(INPUTS / "brokers/rest.json")]) == 2
    assert "needs bundles and their owners" in capsys.readouterr().err


def test_the_command_reads_standard_input(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    text = (INPUTS / "load_report/pretty_4_0.json").read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    assert main(["snapshot"]) == 0
    assert "snapshot: cluster, 1 broker" in capsys.readouterr().err


def test_a_snapshot_of_the_planners_own_takes_the_settings_beside_it(tmp_path: Path) -> None:
    assert main(["snapshot", str(INPUTS / "load_report/one_line_4_2.jsonl"), "--out", str(tmp_path / "s.zip")]) == 0
    before = read_snapshot(tmp_path / "s.zip")
    after = cluster(read_outputs(tmp_path / "s.zip", INPUTS / "settings_file/standalone_2_10.conf"))
    assert np.array_equal(before.bundles.owner, after.bundles.owner)
    assert before.settings["loadBalancerEnabled"] is True
    assert after.settings["loadBalancerEnabled"] is False


def scenario(*names: str, tmp_path: Path) -> dict[str, object]:
    out = tmp_path / "scenario.json"
    files = [str(tmp_path / name if (tmp_path / name).exists() else INPUTS / name) for name in names]
    assert main(["snapshot", *files, "--scenario-out", str(out), "--base", "threshold-shedder"]) == 0
    found: dict[str, object] = json.loads(out.read_text())["scenario"].get("settings", {})
    return found


def test_a_settings_file_alone_is_a_scenario(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = scenario("settings_file/environment.env", tmp_path=tmp_path)
    assert found == {"loadBalancerSheddingIntervalMinutes": 10, "loadBalancerBrokerOverloadedThresholdPercentage": 70}
    assert main(["snapshot", str(INPUTS / "settings_file/environment.env")]) == 2
    said = capsys.readouterr().err
    assert "settings alone" in said
    assert "--scenario-out" in said


def test_two_settings_files_are_before_and_after(tmp_path: Path) -> None:
    (tmp_path / "before.conf").write_text(
        "loadBalancerSheddingIntervalMinutes=1\nloadBalancerNamespaceMaximumBundles=256\ndefaultNumberOfNamespaceBundles=8\n"
    )
    (tmp_path / "after.conf").write_text(
        "loadBalancerSheddingIntervalMinutes=5\ndefaultNumberOfNamespaceBundles=8\nloadBalancerAutoBundleSplitEnabled=maybe\n"
    )
    # What only the first has goes back to its default; what both have is not named.
    assert scenario("before.conf", "after.conf", tmp_path=tmp_path) == {
        "loadBalancerSheddingIntervalMinutes": 5,
        "loadBalancerNamespaceMaximumBundles": 128,
        "loadBalancerAutoBundleSplitEnabled": False,  # any text but true
    }


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("apache_chart_values.yaml", {"loadBalancerSheddingIntervalMinutes": 5}),
        (
            "streamnative_values.yaml",
            {
                "loadBalancerBrokerOverloadedThresholdPercentage": 70,
                "loadBalancerAutoBundleSplitEnabled": False,
                "loadBalancerSheddingExcludedNamespaces": ("shop/stock", "shop/orders"),
            },
        ),
        ("config_map.yaml", {"loadBalancerSheddingIntervalMinutes": 10, "loadBalancerNamespaceMaximumBundles": 512}),
        ("docker-compose.yaml", {"loadBalancerDebugModeEnabled": True, "loadBalancerSheddingIntervalMinutes": 2}),
    ],
)
def test_settings_in_yaml_are_those_of_the_brokers_alone(name: str, expected: dict[str, object]) -> None:
    reading = read(*REPORTS, f"settings_in_yaml/{name}")
    snapshot = cluster(reading)
    assert {setting: snapshot.settings[setting] for setting in expected} == expected
    assert snapshot.settings["loadBalancerEnabled"] is True
    assert "SECRET" not in repr(reading)


def test_the_load_manager_of_an_operators_resource() -> None:
    snapshot = cluster(read(*REPORTS, "settings_in_yaml/operator.yaml"))
    assert snapshot.settings["loadBalancerLoadSheddingStrategy"].rpartition(".")[2] == "TransferShedder"  # type: ignore[union-attr]


def test_hostile_yaml_is_named() -> None:
    bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n"
        for before, name in zip("abcdefghij", "bcdefghijk", strict=True)
    )
    code = "broker:\n  configData:\n    loadBalancerEnabled: !!python/object/apply:os.system [echo]\n"
    template = "broker:\n  configData:\n    loadBalancerEnabled: {{ .Values.enabled }}\n"
    for text in (f"{bomb}configData:\n", code, template, "configData:\n" + "- " * 100_000):
        reading = read_given([Given("values.yaml", io.BytesIO(text.encode()))])
        assert reading.snapshot is None
        assert reading.not_used


def test_averages_of_the_leader_come_from_the_shell_of_the_metadata_store() -> None:
    names = ("terminal_4_0.txt", "shell_2_10.txt", "broker_average_3_0.txt")
    reading = read(*REPORTS, *(f"averages/{name}" for name in names))
    snapshot = cluster(reading)
    at = snapshot.bundle_position["shop/orders/0x00000000_0x40000000"]
    assert snapshot.bundles.long_term_msg_rate_in_per_s[at] == 630.0
    assert snapshot.bundles.averages_estimated.sum() == 3
    assert snapshot.brokers.long_term_msg_rate_in_per_s[0] == 900.0
    (averages,) = (one for one in reading.missing if one.kind == "averages")
    assert averages.what.startswith("averages of 3 bundles")


def test_brokers_that_are_scraped_at_another_address_are_the_same_brokers() -> None:
    text = (INPUTS / "metrics/federate.txt").read_text()
    moved = text.replace('broker="10.2.0.1', 'broker="advertised-').replace("10.2.0.1", "172.16.0.1")
    reports = (INPUTS / "load_report/two_in_a_row_3_3.txt").read_text().replace("10.2.0.1", "advertised-")
    files = [Given("federate.txt", io.BytesIO(moved.encode())), Given("reports.txt", io.BytesIO(reports.encode()))]
    reading = read_given(files)
    assert sorted(cluster(reading).brokers.name) == ["advertised-1:8080", "advertised-2:8080"]
    assert any("172.16.0.11:8080 is advertised-1:8080" in text for text in reading.assumed)


def test_a_truncated_answer_in_a_terminal_leaves_the_next_one() -> None:
    text = (INPUTS / "broker_topics/terminal_3_0.txt").read_text()
    cut = text[: len(text) // 2] + "\nuser@host:~$ pulsar-admin brokers list east\n10.2.0.11:8080\n10.2.0.12:8080\n"
    reading = read_given([Given("terminal.txt", io.BytesIO(cut.encode()))])
    assert reading.found == ("a list of 2 brokers",)
    assert any("topics" in text or "Not valid JSON" in text for text in reading.not_used)


def test_a_command_that_printed_nothing_says_that_there_is_nothing() -> None:
    names = ("no_policies_4_0.txt", "no_overrides_3_0.txt")
    before, after = read(*REPORTS), read(*REPORTS, *(f"nothing/{name}" for name in names))
    assert {"isolation policies", "dynamic settings"} <= {one.what for one in before.missing}
    assert not {"isolation policies", "dynamic settings"} & {one.what for one in after.missing}


@pytest.mark.parametrize(
    "command",
    [
        "kubectl exec -it -n pulsar pod/toolset-0 -- ./bin/pulsar-admin namespaces bundles shop/stock",
        "/pulsar/bin/pulsar-admin namespaces bundles shop/stock",
        "curl -s http://10.2.0.11:8080/admin/v2/namespaces/shop/stock/bundles",
    ],
)
def test_the_command_names_the_namespace(command: str) -> None:
    text = f"$ {command}\n" + (INPUTS / "bundles_of_namespace/bundles.shop_orders.json").read_text()
    reading = read_given([*given(*REPORTS), Given("pasted text", io.BytesIO(text.encode()))])
    assert "shop/stock owns" not in "".join(reading.contradictions)
    assert any("which is not among the bundles of shop/stock" in one for one in reading.contradictions)


def test_an_address_of_a_tunnel_is_not_a_broker() -> None:
    """Through a forwarded port, the heartbeat or the bundles say which broker answered."""
    topics = (INPUTS / "broker_topics/one_line_4_0.broker-0.json").read_text()
    report = (INPUTS / "load_report/pretty_4_0.json").read_text()
    own = next(line for line in (INPUTS / "owned/lines_4_2.txt").read_text().splitlines() if "shop/orders" in line)
    text = (
        f"$ curl -s http://localhost:9001/admin/v2/broker-stats/load-report\n{report}\n"
        f"$ pulsar-admin --admin-url http://localhost:9001 broker-stats topics\n{topics}\n"
        f"$ pulsar-admin brokers namespaces east --url localhost:9001\n{own}\n"
        "$ pulsar-admin --admin-url http://localhost:9001 brokers get-runtime-config\n"
        "loadBalancerSheddingIntervalMinutes    7\n"
    )
    reading = read_given([Given("terminal.txt", io.BytesIO(text.encode()))])
    snapshot = cluster(reading)
    assert list(snapshot.brokers.name) == ["mq-0.mq.east.svc:8080"]
    assert snapshot.settings["loadBalancerSheddingIntervalMinutes"] == 7
    assert any("it has bundles of mq-0.mq.east.svc:8080" in one for one in reading.assumed)


def test_a_file_called_like_a_pod_is_of_that_broker() -> None:
    topics = (INPUTS / "broker_topics/terminal_3_0.txt").read_text().splitlines()[3]
    names = b"pulsar-broker-0.pulsar-broker.ns.svc:8080\npulsar-broker-1.pulsar-broker.ns.svc:8080\n"
    files = [Given("list.txt", io.BytesIO(names)), Given("pulsar-broker-1.topics.json", io.BytesIO(topics.encode()))]
    snapshot = cluster(read_given(files))
    assert set(by_broker(snapshot)) == {name.decode() for name in names.split()}
    assert by_broker(snapshot)["pulsar-broker-1.pulsar-broker.ns.svc:8080"] > 0


def test_a_large_answer_is_read_one_series_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("prometheus/range_partition_label.json", "prometheus/counters.json")
    before = [cluster(read(name)) for name in names]
    monkeypatch.setattr("planner.doors.kinds.series._AT_ONCE_BYTES", 0)
    for name, snapshot in zip(names, before, strict=True):
        assert snapshot_digest(cluster(read(name))) == snapshot_digest(snapshot)
    text = (INPUTS / names[0]).read_bytes()
    reading = read_given([Given("cut.json", io.BytesIO(text[: len(text) // 2]))])
    assert any("series" in one or "JSON" in one for one in reading.not_used)


def verdicts(reading: Reading) -> dict[str, str]:
    return {one.page: one.verdict for one in enough_for(reading.missing)}


def test_which_pages_the_files_are_good_enough_for() -> None:
    reports = verdicts(read(*REPORTS))
    assert reports["overview"] == "with assumptions"
    assert reports["split_lab"] == "no"
    metrics = verdicts(read("metrics/two_scrapes_3_3.txt"))
    assert metrics["overview"] == "with assumptions"
    assert metrics["split_lab"] == "with assumptions"
    owners = verdicts(read("owned/lines_4_2.txt", "bundles_of_namespace/by_name.json", "brokers/lines_4_2.txt"))
    assert owners["overview"] == "no"
    assert set(reports) <= set(NEEDS)


def pasted(text: str) -> Reading:
    return read_given([Given("pasted text", io.BytesIO(text.encode()))], now_ms=1795225800000)


def test_what_people_paste_around_outputs_is_passed_by() -> None:
    report = (INPUTS / "load_report/pretty_4_0.json").read_text()
    for text in (
        f"```json\n{report}```\n",
        report.replace('"cpu"', '\x1b[34;1m"cpu"\x1b[0m'),
        "    " + report.replace("\n", "\n    "),
        f"[{report.strip()}]",
        json.dumps({"mq-0.mq.east.svc:8080": json.loads(report)}),
    ):
        reading = pasted(text)
        assert reading.found == ("load reports of 1 broker",)
        assert not reading.not_used
        assert by_broker(cluster(reading)) == {"mq-0.mq.east.svc:8080": 1140.75}


def test_other_tools_that_print_the_same() -> None:
    table = "+---------+\n| BROKERS |\n+---------+\n| mq-0:8080 |\n| mq-1:8080 |\n+---------+\n"
    assert pasted(table).found == ("a list of 2 brokers",)
    promtool = (
        'pulsar_lb_cpu_usage{broker="b", instance="b:8080"} => 33 @[1795225500.5]\n'
        'pulsar_rate_in{instance="b:8080", namespace="a/b", topic="persistent://a/b/c"} => 5 @[1795225500.5]\n'
    )
    snapshot = cluster(pasted(promtool))
    assert snapshot.info.captured_at_ms == 1795225500500
    assert by_broker(snapshot) == {"b:8080": 5.0}
    inspected = [{"Id": "1", "Config": {"Env": ["PULSAR_PREFIX_loadBalancerSheddingIntervalMinutes=4", "A=SECRET"]}}]
    reading = pasted(json.dumps(inspected))
    assert [dict(one.values) for one in reading.configurations] == [{"loadBalancerSheddingIntervalMinutes": "4"}]
    assert "SECRET" not in repr(reading)


def test_properties_may_have_colons_and_spaces() -> None:
    reading = pasted("loadBalancerSheddingIntervalMinutes:5\nloadBalancerEnabled true\n")
    (one,) = reading.configurations
    assert dict(one.values) == {"loadBalancerSheddingIntervalMinutes": "5", "loadBalancerEnabled": "true"}
    assert not reading.not_used


def test_two_settings_files_beside_a_cluster_are_before_and_after() -> None:
    files = [
        Given(name, io.BytesIO(f"loadBalancerSheddingIntervalMinutes={minutes}\n".encode()))
        for name, minutes in (("old.conf", 3), ("new.conf", 4), ("third.conf", 5))
    ]
    reports = given(*REPORTS)
    two = read_given([*reports, *files[:2]])
    assert cluster(two).settings["loadBalancerSheddingIntervalMinutes"] == 3
    assert any("old.conf and new.conf are taken for settings before and after" in one for one in two.assumed)
    for one in (*files, *reports):
        one.data.seek(0)
    three = read_given([*reports, *files])
    assert cluster(three).settings["loadBalancerSheddingIntervalMinutes"] == 5
    assert any("differ in loadBalancerSheddingIntervalMinutes" in one for one in three.assumed)
    assert set(three.assumed) <= set(cluster(three).info.warnings)


def test_many_texts_of_one_kind_are_noted_once() -> None:
    lines = (INPUTS / "victoria_metrics/export.jsonl").read_text().splitlines()
    many = [line.replace("/o0", f"/o{at}") for at in range(300) for line in lines]
    reading = pasted("\n".join(many))
    assert len(cluster(reading).topics) == 300
    assert len(reading.not_used) == 1
    assert "(1,200 times)" in reading.not_used[0]
    reports = (INPUTS / "load_report/one_line_4_2.jsonl").read_text().splitlines()
    newer = [line.replace("1795225795494", str(1795225795494 + at)) for at in range(100) for line in reports]
    recorded = pasted("\n".join(newer))
    assert cluster(recorded).info.captured_at_ms == 1795225795494 + 99
    assert sum("several load reports" in one for one in recorded.contradictions) == 2


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            {"warnings": ["store sidecar-1: rpc error\n code = Unavailable"]},
            "store sidecar-1: rpc error code = Unavailable",
        ),
        ({"isPartial": True, "stats": {"seriesFetched": "2"}}, "the answer is partial"),
        ({"infos": ["PromQL info: metric might not be a counter"]}, ""),
    ],
)
def test_partial_answers_of_thanos_and_victoria_metrics_say_so(more: dict[str, object], said: str) -> None:
    answer = json.loads((INPUTS / "prometheus/instant.json").read_text())
    reading = read_given([Given("a.json", io.BytesIO(json.dumps({**answer, **more}).encode()))])
    assert reading.snapshot is not None
    warned = [text for text in reading.not_used if "series may be missing" in text]
    assert warned == ([f"a.json: the server warns, so series may be missing or inexact: {said}."] if said else [])
    assert set(warned) <= set(reading.snapshot.info.warnings)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (["pulsar_rate_in"], "names of series or labels without values"),
        ({"resultType": "scalar", "result": [1795225500, "1"]}, "one number without a series"),
        ({"resultType": "vector", "result": [{"metric": {"instance": "a:1"}, "value": [1, "2"]}]}, "without the name"),
        (
            {"resultType": "matrix", "result": [{"metric": {"__name__": "x"}, "histograms": [[1, {"count": "1"}]]}]},
            "1 histogram left out",
        ),
    ],
)
def test_answers_without_series_say_what_to_query(data: object, said: str) -> None:
    text = json.dumps({"status": "success", "data": data})
    assert said in read_given([Given("a.json", io.BytesIO(text.encode()))]).not_used[0]


def test_resource_quotas_are_told_from_the_defaults() -> None:
    """A broker without a quota of a bundle prints the defaults."""
    said = {}
    for path in sorted((INPUTS / "resource_quotas").iterdir()):
        reading = read_given([Given(path.name, io.BytesIO(path.read_bytes()))])
        said[path.name] = "".join(reading.not_used)
    assert "only for a bundle without averages" in said.pop("of_a_bundle_2_8.txt")
    assert all("which no decision reads" in text for text in said.values())


def test_commands_have_a_word_for_a_cluster_that_is_not_known() -> None:
    """They asked for a cluster called "cluster"."""
    reading = read_outputs(INPUTS / "load_report" / "pretty_4_0.json")
    assert reading.snapshot is not None
    commands = " ".join([*(one.command for one in reading.missing), script(reading.snapshot.info.cluster)])
    assert "brokers list CLUSTER" in commands
    assert "list cluster" not in commands


def test_topics_of_an_older_form_are_left_out_with_the_reason_and_what_brings_them_back() -> None:
    topics = (INPUTS / "broker_topics/one_line_4_0.broker-0.json").read_text().replace("shop/orders", "shop/use/orders")
    reports = "\n".join((INPUTS / one).read_text() for one in REPORTS)
    for version, said in (("4.2.4", True), ("4.0.8", False)):
        text = f"{reports}\n$ pulsar-admin brokers version\n{version}\n$ pulsar-admin broker-stats topics\n{topics}\n"
        reading = read_given([Given("x.txt", io.BytesIO(text.encode()))], now_ms=1)
        notes = " ".join((*reading.assumed, *cluster(reading).info.warnings))
        assert ("it has four parts, with a cluster, which Pulsar accepts up to 4.1" in notes) is said
        assert ("add what pulsar-admin brokers version prints" in notes) is said
