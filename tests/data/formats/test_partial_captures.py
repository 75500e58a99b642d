"""Captures with something missing, refused, late or odd: one clear warning each, or one clear refusal."""

import json
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planner.cluster.errors import FormatError, SnapshotError
from planner.cluster.snapshot import DispatchRate, Snapshot
from planner.formats.raw_capture.answers import read_answers
from planner.formats.raw_capture.metrics import leader_metrics
from planner.formats.raw_capture.snapshot import snapshot_of_capture

Files = dict[str, bytes]

B1, B2, B3 = "127.0.0.1:18081", "127.0.0.2:18082", "127.0.0.3:18083"

IMPL = "org.apache.pulsar.broker.loadbalance.impl."


@pytest.fixture
def files(capture: Callable[[str], Files]) -> Files:
    return capture("modular")


def drop(files: Files, *names: str, listed: bool = True) -> None:
    """Take files away, and out of the index as well unless `listed`."""
    for name in names:
        files.pop(name, None)
    if not listed:
        edit_index(files, lambda index: [e for e in index if e["file"] not in names])


def of_broker(files: Files, tag: str) -> list[str]:
    return [e["file"] for e in json.loads(files["index.json"]) if f".{tag}." in e["file"]]


def edit_index(files: Files, edit: Callable[[list[dict[str, Any]]], Any]) -> None:
    index = json.loads(files["index.json"])
    files["index.json"] = json.dumps(edit(index) or index).encode()


def refuse(files: Files, name: str, status: int, body: bytes = b"") -> None:
    def edit(index: list[dict[str, Any]]) -> None:
        next(e for e in index if e["file"] == name)["status"] = status

    edit_index(files, edit)
    files[name] = body


def edit_json(files: Files, name: str, edit: Callable[[Any], Any]) -> None:
    value = json.loads(files[name])
    files[name] = json.dumps(edit(value) or value).encode()


def edit_node(files: Files, path: str, edit: Callable[[Any], Any]) -> None:
    def of_dump(nodes: list[dict[str, Any]]) -> None:
        for node in nodes:
            if node["path"] == path:
                data = json.loads(node["data"])
                node["data"] = json.dumps(edit(data) or data)

    edit_json(files, "zookeeper.json", of_dump)


def without_nodes(files: Files, start: str) -> None:
    edit_json(files, "zookeeper.json", lambda nodes: [n for n in nodes if not n["path"].startswith(start)])


def new_warnings(snapshot: Snapshot) -> list[str]:
    usual = ("class of your own", "does not have averages of some bundles yet")
    return [w for w in snapshot.info.warnings if not any(u in w for u in usual)]


def only_warning(snapshot: Snapshot) -> str:
    (warning,) = new_warnings(snapshot)
    return warning


class TestBrokers:
    @pytest.mark.parametrize("listed", [True, False], ids=["still listed", "never asked"])
    def test_one_did_not_answer(self, files: Files, *, listed: bool) -> None:
        drop(files, *of_broker(files, "b3"), listed=listed)
        snapshot = snapshot_of_capture(files)
        assert only_warning(snapshot) == (
            f"Broker {B3} did not answer. Its load comes from the metadata store or system topic."
        )
        at = snapshot.brokers.position[B3]
        assert snapshot.brokers.cpu_usage_percent[at] == 5.019399991666806
        assert len(snapshot.bundles_of(at)) == 5  # from the metadata store, heartbeat included
        assert snapshot.bundles.has_stats[snapshot.bundles_of(at)].sum() == 4
        audit = [n.startswith("persistent://acme/audit/") for n in snapshot.topics.name.to_pylist()]
        assert sum(audit) == 6
        assert not snapshot.topics.has_stats[audit].any()

    def test_one_did_not_answer_and_nobody_knows_it(self, files: Files) -> None:
        drop(files, *of_broker(files, "b3"), "zookeeper.json", listed=False)
        snapshot = snapshot_of_capture(files)
        at = snapshot.brokers.position[B3]
        assert snapshot.brokers.has_load_data.tolist() == [True, False, True]
        assert len(snapshot.bundles_of(at)) == 0
        assert f"Broker {B3} did not answer. Its load is unknown and shown as 0" in new_warnings(snapshot)[0]
        assert sum(B3 in w for w in new_warnings(snapshot)) == 1

    def test_unauthorised(self, files: Files) -> None:
        refuse(files, "owned.b2.json", 401, b'{"reason": "Not authorized"}')
        snapshot = snapshot_of_capture(files)
        assert only_warning(snapshot) == (
            "owned.b2: refused with HTTP 401; capture again with a token that may read it."
            " Its bundles come from the metadata store and its last report."
        )
        assert len(snapshot.bundles_of(snapshot.brokers.position[B2])) == 17

    def test_html_instead_of_json(self, files: Files) -> None:
        files["topics.b2.json"] = b"<html><head><title>Sign in</title></head><body/></html>"
        snapshot = snapshot_of_capture(files)
        assert only_warning(snapshot) == (
            f"topics.b2: this is an HTML page, not JSON: Sign in. Rates of the topics of {B2} are unknown."
        )
        assert not snapshot.topics.has_stats.all()

    def test_no_load_report_anywhere(self, files: Files) -> None:
        without_nodes(files, "/loadbalance/brokers")
        drop(files, "load-report.b1.json")
        snapshot = snapshot_of_capture(files)
        found = new_warnings(snapshot)
        assert found[0].startswith("load-report.b1: the answer is missing.")
        assert found[1].startswith(f"Broker {B1} (b1) returned no load report. Usage of cpu")
        place = snapshot.brokers.position[B1]
        assert snapshot.brokers.cpu_limit_percent[place] == 100  # the metrics stand in, as percentages
        assert 0 < snapshot.brokers.cpu_usage_percent[place] < 100
        owned = snapshot.bundles_of(snapshot.brokers.position[B1])
        stats = json.loads(files["metrics.b1.json"])
        rates = {
            m["dimensions"]["bundle"]: m["metrics"]["brk_bundle_msg_rate_in"]
            for m in stats
            if m["dimensions"].get("metric") == "bundle"
        }
        for at in owned:
            if snapshot.bundles.has_stats[at]:  # the bundle metrics stand in
                assert snapshot.bundles.msg_rate_in_per_s[at] == rates[snapshot.bundle_names[at]]
        assert snapshot.brokers.msg_rate_in_per_s[snapshot.brokers.position[B1]] == pytest.approx(sum(rates.values()))

    @pytest.mark.parametrize("fallback", ["prometheus", "topics"])
    def test_rates_come_from_the_next_best_source(self, files: Files, fallback: str) -> None:
        whole = snapshot_of_capture(files)
        without_nodes(files, "/loadbalance/brokers")
        gone = ["load-report", "metrics"] + (["prometheus"] if fallback == "topics" else [])
        drop(
            files, *[f"{stem}.b{i}.{end}" for stem in gone for i in (1, 2, 3) for end in ("json", "txt")], listed=False
        )
        snapshot = snapshot_of_capture(files)
        assert snapshot.bundles.has_stats.tolist() == whole.bundles.has_stats.tolist()
        for column in ("topics", "producers", "consumers"):
            np.testing.assert_array_equal(getattr(snapshot.bundles, column), getattr(whole.bundles, column))
        # Reports, metrics and topic statistics are snapshots of the same counters, up to a minute apart.
        np.testing.assert_allclose(
            snapshot.bundles.msg_rate_in_per_s, whole.bundles.msg_rate_in_per_s, rtol=0.2, atol=1
        )
        if fallback == "topics":
            sums = np.bincount(snapshot.topics.bundle, snapshot.topics.msg_rate_in_per_s, len(snapshot.bundles))
            np.testing.assert_allclose(snapshot.bundles.msg_rate_in_per_s, sums)

    def test_a_load_report_is_about_the_broker_asked(self, files: Files) -> None:
        """Behind a load balancer, the same broker may answer twice."""
        without_nodes(files, "/loadbalance/brokers")
        files["load-report.b2.json"] = files["load-report.b1.json"]
        found = new_warnings(snapshot_of_capture(files))
        assert found[0] == f"load-report.b2: it is about {B1}, like load-report.b1. It was left out."
        assert found[1].startswith(f"Broker {B2} (b2) returned no load report")

    def test_asked_under_another_address(self, files: Files) -> None:
        def forwarded(index: list[dict[str, Any]]) -> None:
            for entry in index:
                entry["asked"] = entry["asked"].replace("127.0.0.", "10.9.9.").replace("zookeeper", "zk")

        whole = snapshot_of_capture(dict(files))
        edit_index(files, forwarded)
        snapshot = snapshot_of_capture(files)
        assert snapshot.bundles.owner.tolist() == whole.bundles.owner.tolist()
        assert new_warnings(snapshot) == []

    def test_one_that_the_cluster_does_not_list(self, files: Files) -> None:
        files["brokers.json"] = json.dumps([B1, B2]).encode()
        without_nodes(files, f"/loadbalance/brokers/{B3}")
        snapshot = snapshot_of_capture(files)
        assert snapshot.brokers.name == (B1, B2)
        found = new_warnings(snapshot)
        assert found[0] == "b3 is not one of the brokers that the cluster lists. Its answers were left out."
        assert found[1] == f"{B3} owns bundles but is not among the brokers. Those bundles are shown as unowned."

    def test_nic_speed_unknown(self, files: Files) -> None:
        edit_node(files, f"/loadbalance/brokers/{B2}", lambda r: r["bandwidthIn"].update(limit=-1000.0))
        snapshot = snapshot_of_capture(files)
        assert only_warning(snapshot).startswith(f"Broker {B2} does not know the speed of its NIC (limit -1000)")
        assert snapshot.brokers.bandwidth_in_limit_kbit_per_s.min() == -1000.0

    def test_list_of_brokers_missing(self, files: Files) -> None:
        drop(files, "brokers.json", listed=False)
        snapshot = snapshot_of_capture(files)
        assert set(snapshot.brokers.name) == {B1, B2, B3}
        drop(files, "zookeeper.json", listed=False)
        assert set(snapshot_of_capture(files).brokers.name) == {B1, B2, B3}

    def test_no_broker_at_all(self, files: Files) -> None:
        drop(
            files,
            "brokers.json",
            "zookeeper.json",
            *[n for t in ("b1", "b2", "b3") for n in of_broker(files, t)],
            listed=False,
        )
        with pytest.raises(FormatError, match=r"^brokers\.json: The capture does not name a broker\. Also capture the"):
            snapshot_of_capture(files)


class TestBundles:
    def test_refused_and_taken_from_the_metadata_store(self, files: Files) -> None:
        refuse(files, "bundles.acme-audit.json", 403)
        snapshot = snapshot_of_capture(files)
        assert only_warning(snapshot).startswith(
            "bundles.acme-audit: refused with HTTP 403; capture again with a token"
        )
        assert sum(n.startswith("acme/audit/") for n in snapshot.bundle_names) == 4

    def test_known_from_policies_alone(self, files: Files) -> None:
        drop(files, "bundles.acme-audit.json", "zookeeper.json", listed=False)
        snapshot = snapshot_of_capture(files)
        assert sum(n.startswith("acme/audit/") for n in snapshot.bundle_names) == 4

    def test_known_from_their_owners_alone(self, files: Files) -> None:
        drop(files, "bundles.acme-clicks.json", "policies.acme-clicks.json", "zookeeper.json", listed=False)
        snapshot = snapshot_of_capture(files)
        clicks = [n for n in snapshot.bundle_names if n.startswith("acme/clicks/")]
        assert "acme/clicks/0x20000000_0x60000000" in clicks  # three bundles that are not loaded
        assert any(
            "The ranges between the owned bundles are shown as unowned bundles" in w for w in new_warnings(snapshot)
        )

    def test_known_from_nowhere(self, files: Files) -> None:
        drop(files, "bundles.public-default.json", "policies.public-default.json", listed=False)
        without_nodes(files, "/admin/policies/public/default")
        snapshot = snapshot_of_capture(files)
        assert "public/default" not in snapshot.namespaces
        assert only_warning(snapshot) == (
            "The bundles of public/default were not captured, and no broker owns one. The namespace was left out."
        )

    @pytest.mark.parametrize(
        "boundaries",
        [["0x00000000", "0x40000000"], ["0x00000000", "0x80000000", "0x40000000", "0xffffffff"], ["0"], [1], "x"],
    )
    def test_boundaries_that_are_none(self, files: Files, boundaries: Any) -> None:
        files["bundles.acme-audit.json"] = json.dumps({"boundaries": boundaries}).encode()
        snapshot = snapshot_of_capture(files)
        assert only_warning(snapshot).startswith("bundles.acme-audit: the boundaries do not ascend")
        assert sum(n.startswith("acme/audit/") for n in snapshot.bundle_names) == 4

    def test_very_many_warnings_are_counted(self, files: Files) -> None:
        files["namespaces.acme.json"] = json.dumps([f"acme/n{i}" for i in range(300)]).encode()
        found = snapshot_of_capture(files).info.warnings
        assert len(found) == 201
        assert found[-1] == "… and 103 more of this kind."  # with the three of the whole capture

    def test_split_meanwhile(self, files: Files) -> None:
        edges = ["0x00000000", "0x20000000", "0x40000000", "0x80000000", "0xc0000000", "0xffffffff"]
        files["bundles.acme-audit.json"] = json.dumps({"boundaries": edges}).encode()
        snapshot = snapshot_of_capture(files)
        assert only_warning(snapshot).startswith(
            f"acme/audit/0x00000000_0x40000000, owned by {B3}, is not among the bundles captured for its namespace"
        )

    def test_moved_meanwhile(self, files: Files) -> None:
        edit_json(files, "owned.b1.json", lambda v: v.update({"acme/audit/0xc0000000_0xffffffff": {}}))
        snapshot = snapshot_of_capture(files)
        assert "both claim" in only_warning(snapshot)
        assert "moved during the capture" in only_warning(snapshot)

    def test_no_namespace_at_all(self, files: Files) -> None:
        gone = [n for n in files if n.startswith(("bundles.", "policies.", "owned.", "load-report."))]
        drop(files, *gone, "zookeeper.json", listed=False)
        with pytest.raises(FormatError, match=r"^bundles\.\*\.json: The capture does not contain the bundles of any"):
            snapshot_of_capture(files)

    def test_without_metadata_store(self, files: Files) -> None:
        drop(files, "zookeeper.json", listed=False)
        snapshot = snapshot_of_capture(files)
        assert snapshot.info.warnings[-1] == (
            "Averages exist only in the metadata store, which was not captured; those of 35 bundles are estimated from"
            " current values."
        )
        assert np.isnan(snapshot.brokers.short_term_msg_rate_in_per_s).all()
        assert snapshot.brokers.cpu_limit_percent.tolist() == [200.0] * 3
        assert snapshot.policies.anti_affinity_group == {
            "globex/alerts": "globex-pair",
            "globex/telemetry": "globex-pair",
        }

    @pytest.mark.parametrize("value", ["NaN", -5, True, [1], 1e400, {}])
    def test_numbers_that_are_none(self, files: Files, value: Any) -> None:
        path = f"/loadbalance/brokers/{B3}"
        name = "acme/audit/0x00000000_0x40000000"
        text = json.dumps(value).replace("Infinity", "1e400")
        edit_node(files, path, lambda r: r["lastStats"][name].update(msgRateIn="@@"))
        files["zookeeper.json"] = files["zookeeper.json"].replace(b'\\"@@\\"', text.replace('"', '\\"').encode())
        if value == 1e400:  # the whole node cannot be read
            assert any("1e400 is too large" in w for w in new_warnings(snapshot_of_capture(files)))
            return
        with pytest.raises(
            FormatError, match=rf"^zookeeper, {path}: lastStats {name}: msgRateIn: .* finite number of 0 or more"
        ):
            snapshot_of_capture(files)


class TestSettings:
    def test_not_captured(self, files: Files) -> None:
        drop(files, *[f"runtime-config.b{i}.json" for i in (1, 2, 3)], listed=False)
        snapshot = snapshot_of_capture(files)
        assert "The settings in force were not captured; the defaults of 4.2.4 are shown." in snapshot.info.warnings
        assert not snapshot.settings.overrides
        assert snapshot.info.settings_from == "defaults"

    def test_captured_of_one_broker_alone(self, files: Files) -> None:
        drop(files, "runtime-config.b1.json", "runtime-config.b3.json", listed=False)
        assert snapshot_of_capture(files).info.settings_from == "brokers"

    @pytest.mark.parametrize(
        ("text", "value"),
        [("true", True), ("TRUE", True), ("false.held-by.xyz", False), ("yes", False), (" true", False), ("", False)],
    )
    def test_switches_are_read_as_java_reads_them(self, files: Files, text: str, *, value: bool) -> None:
        files["dynamic-config-values.json"] = json.dumps({"loadBalancerSheddingEnabled": text}).encode()
        snapshot = snapshot_of_capture(files)
        assert snapshot.settings.flag("loadBalancerSheddingEnabled") is value
        assert snapshot.info.dynamic_settings == {"loadBalancerSheddingEnabled": text}
        assert not any("loadBalancerSheddingEnabled" in warning for warning in snapshot.info.warnings)

    def test_switches_of_the_brokers_own_files_are_read_so_as_well(self, files: Files) -> None:
        for tag in ("b1", "b2", "b3"):
            edit_json(files, f"runtime-config.{tag}.json", lambda v: v.update(loadBalancerSheddingEnabled="no"))
        snapshot = snapshot_of_capture(files)
        assert not snapshot.settings.flag("loadBalancerSheddingEnabled")
        assert new_warnings(snapshot) == []

    def test_dynamic_settings_of_the_admin_api_of_the_store_and_of_neither(self, files: Files) -> None:
        files["dynamic-config-values.json"] = b"{}"
        assert snapshot_of_capture(files).info.dynamic_settings == {}
        files["dynamic-config-values.json"] = b'{"loadBalancerSheddingEnabled": "false", "unknownToUs": "1"}'
        assert snapshot_of_capture(files).info.dynamic_settings == {"loadBalancerSheddingEnabled": "false"}
        drop(files, "dynamic-config-values.json", listed=False)
        stored = files["zookeeper.json"]
        without_nodes(files, "/admin/configuration")
        assert snapshot_of_capture(files).info.dynamic_settings is None
        files["zookeeper.json"] = stored
        edit_node(files, "/admin/configuration", lambda _: {"loadBalancerSheddingEnabled": "true"})
        assert snapshot_of_capture(files).info.dynamic_settings == {"loadBalancerSheddingEnabled": "true"}

    def test_value_that_no_snapshot_can_hold_is_left_out(self, files: Files) -> None:
        values = {"loadBalancerSheddingEnabled": "x" * 10_001, "loadBalancerSheddingIntervalMinutes": [1]}
        files["dynamic-config-values.json"] = json.dumps(values).encode()
        assert snapshot_of_capture(files).info.dynamic_settings == {}

    def test_dynamic_overrides_count(self, files: Files) -> None:
        files["dynamic-config-values.json"] = b'{"loadBalancerSheddingEnabled": "false", "unknownToUs": "1"}'
        assert not snapshot_of_capture(files).settings.flag("loadBalancerSheddingEnabled")
        drop(files, "dynamic-config-values.json", listed=False)
        edit_node(files, "/admin/configuration", lambda _: {"loadBalancerSheddingEnabled": "false"})
        assert not snapshot_of_capture(files).settings.flag("loadBalancerSheddingEnabled")

    def test_brokers_differ(self, files: Files) -> None:
        def minutes(value: str) -> Callable[[Any], Any]:
            return lambda v: v.update(loadBalancerSheddingIntervalMinutes=value)

        for value in ("1", "2", "3"):
            edit_json(files, f"runtime-config.b{value}.json", minutes(value))
        snapshot = snapshot_of_capture(files)
        assert only_warning(snapshot) == (
            "The brokers differ in loadBalancerSheddingIntervalMinutes (2, 3, 1); 2 is shown."
        )  # that of the leader, b2

    def test_out_of_bounds(self, files: Files) -> None:
        for tag in ("b1", "b2", "b3"):
            edit_json(
                files, f"runtime-config.{tag}.json", lambda v: v.update(loadBalancerSheddingIntervalMinutes="soon")
            )
        snapshot = snapshot_of_capture(files)
        assert only_warning(snapshot) == (
            "loadBalancerSheddingIntervalMinutes: 'soon' is not a valid value of this setting."
            " Use a whole number (min)."
            " The default, 1, is shown."
        )

    @pytest.mark.parametrize(
        ("value", "shown", "warning"),
        [
            (
                "com.acme.MyAvgShedder",
                "org.apache.pulsar.broker.loadbalance.impl.AvgShedder",
                "MyAvgShedder, a class of your own",
            ),
            (
                "com.acme.UniformLoadShedder",
                "org.apache.pulsar.broker.loadbalance.impl.UniformLoadShedder",
                "UniformLoadShedder, a class of your own",
            ),
            ("UniformLoadShedder", "UniformLoadShedder", "a class that Pulsar cannot load"),
            (f"{IMPL}UnifromLoadShedder", f"{IMPL}UnifromLoadShedder", f"It may mean {IMPL}UniformLoadShedder"),
            (f"{IMPL}UniformLoadShedder", f"{IMPL}UniformLoadShedder", ""),
            ("com.acme.Mine", "com.acme.Mine", "is com.acme.Mine, which is not one of Pulsar's own classes"),
        ],
    )
    def test_classes(self, files: Files, value: str, shown: str, warning: str) -> None:
        for tag in ("b1", "b2", "b3"):
            edit_json(files, f"runtime-config.{tag}.json", lambda v: v.update(loadBalancerLoadSheddingStrategy=value))
        snapshot = snapshot_of_capture(files)
        assert snapshot.settings.text("loadBalancerLoadSheddingStrategy") == shown
        about = [w for w in snapshot.info.warnings if w.startswith("loadBalancerLoadSheddingStrategy")]
        assert len(about) == bool(warning)
        assert all(warning in w for w in about)


class TestTheRest:
    def test_far_apart(self, files: Files) -> None:
        edit_index(files, lambda index: index[-2].update(time_ms=index[-2]["time_ms"] + 600_000))
        snapshot = snapshot_of_capture(files)
        apart, *old = new_warnings(snapshot)
        assert apart.startswith("The answers were gathered over 60")
        assert "so rates and owners may not match" in apart
        assert all("minutes old, older than the report interval allows" in w for w in old)
        assert len(old) == 3

    def test_times_in_microseconds(self, files: Files) -> None:
        edit_index(files, lambda index: [e.update(time_ms=e["time_ms"] * 1_000) for e in index if "time_ms" in e][:0])
        snapshot = snapshot_of_capture(files)
        assert snapshot.info.captured_at_ms == 0
        assert "The index has times that are not milliseconds since 1970. They were left out." in snapshot.info.warnings

    def test_no_times(self, files: Files) -> None:
        edit_index(files, lambda index: [e.pop("time_ms", None) for e in index] and None)
        snapshot = snapshot_of_capture(files)
        assert snapshot.info.captured_at_ms == 0
        assert "the time of the capture is unknown" in only_warning(snapshot)

    @pytest.mark.parametrize("index", [b"", b"{}", b"[1]", b'[{"path": "/"}]', b"<html>", b"[" * 100_000])
    def test_no_index(self, files: Files, index: bytes) -> None:
        files["index.json"] = index
        with pytest.raises(FormatError, match=r"^index\.json: "):
            snapshot_of_capture(files)

    def test_isolation_from_the_metadata_store(self, files: Files) -> None:
        whole = snapshot_of_capture(dict(files)).policies
        drop(files, "isolation-policies.json")
        gone = [n for n in files if "ispatchRate" in n or n.startswith(("policies.", "anti-affinity."))]
        drop(files, *gone, listed=False)
        snapshot = snapshot_of_capture(files)
        assert only_warning(snapshot) == (
            "isolation-policies: the answer is missing. Isolation policies come from the metadata store."
        )
        assert snapshot.policies == whole

    def test_a_broker_of_several_failure_domains_is_named(self, files: Files) -> None:
        domains = {"rack-2": {"brokers": [B1]}, "rack-1": {"brokers": [B1, B2]}}
        files["failure-domains.json"] = json.dumps(domains).encode()
        [note] = [one for one in snapshot_of_capture(files).info.warnings if "several failure domains" in one]
        assert f"{B1} is in several failure domains. Pulsar takes the last one by name, rack-2, and not rack-1." in note

    def test_failure_domains(self, files: Files) -> None:
        files["failure-domains.json"] = json.dumps({"rack-1": {"brokers": [B1, B2]}}).encode()
        assert snapshot_of_capture(files).policies.failure_domains == {"rack-1": (B1, B2)}

    def test_rate_of_a_topic(self, files: Files) -> None:
        path = "/admin/v2/persistent/acme/orders/order-00/dispatchRate"
        edit_index(files, lambda index: index.append({"file": "topic-rate.json", "path": path, "status": 200}))
        files["topic-rate.json"] = b'{"dispatchThrottlingRateInMsg": 7, "dispatchThrottlingRateInByte": -1}'
        (found,) = [p for p in snapshot_of_capture(files).policies.dispatch_rates if "://" in p.target]
        assert (found.target, found.rate) == ("persistent://acme/orders/order-00", DispatchRate(7))

    def test_topics_nobody_can_place(self, files: Files) -> None:
        edit_json(
            files, "persistent-topics.acme-audit.json", lambda v: [*v, "not-a-topic", "persistent://gone/ns/x", 5]
        )
        snapshot = snapshot_of_capture(files)
        assert only_warning(snapshot) == "2 topics are not in any captured bundle. They were left out."

    def test_partitioned_topic_without_partitions(self, files: Files) -> None:
        edit_json(files, "partitioned-topics.acme-audit.json", lambda v: [*v, "persistent://acme/audit/new"])
        assert only_warning(snapshot_of_capture(files)) == (
            "1 partitioned topics have no partition in the capture. They were left out."
        )

    def test_what_no_cluster_could_have_answered(self, files: Files) -> None:
        edit_json(files, "brokers.json", lambda v: [*v, "http://b:1"])
        with pytest.raises(SnapshotError, match=r"^capture: brokers, row 4: 'http://b:1' is not a broker id"):
            snapshot_of_capture(files)


ODD = [b"", b"null", b"[]", b"{}", b"5", b'"x"', b"[{}]", b'{"x": 1}', b"<html>", b"\xff\xfe", b'[{"metrics": 1}]']


def read_or_refuse(files: Files) -> None:
    """Read a capture, which either loads or is refused with a message; any other error fails the test."""
    try:
        snapshot_of_capture(files)
    except (FormatError, SnapshotError) as error:
        if not error.remedy:
            pytest.fail(f"no remedy: {error}")


def test_any_file_may_hold_nonsense(files: Files) -> None:
    kinds: dict[str, str] = {}
    for name in files:
        kinds.setdefault(name.split(".")[0], name)
    pick = random.Random(4)  # noqa: S311 - a reproducible choice
    for name in kinds.values():
        for content in pick.sample(ODD, 5):
            read_or_refuse({**files, name: content})


JSON_VALUES = st.sampled_from([None, True, 0, -1, 3.5, "", "x", "NaN", [], {}, [None], {"a": None}, 10**30])


def spoil(value: Any, draw: Callable[[Any], Any]) -> Any:
    """Put something odd at a random place of a JSON value, or of the JSON inside one of its texts."""
    if isinstance(value, dict | list) and value and draw(st.integers(0, 9)):
        key = draw(st.sampled_from(list(value) if isinstance(value, dict) else list(range(len(value)))))
        value[key] = spoil(value[key], draw)
        return value
    if isinstance(value, str) and value.startswith("{") and draw(st.integers(0, 9)):
        return json.dumps(spoil(json.loads(value), draw))
    return draw(JSON_VALUES)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_value_may_be_nonsense(capture: Callable[[str], Files], data: st.DataObject) -> None:
    files = capture(data.draw(st.sampled_from(["modular-before-threshold-shedder", "extensible"])))
    name = data.draw(st.sampled_from([n for n, content in files.items() if content[:1] in {b"{", b"["}]))
    spoilt = json.dumps(spoil(json.loads(files[name]), data.draw))
    read_or_refuse({**files, name: spoilt.encode()})


def test_what_a_leader_says_of_its_unloads() -> None:
    """Groups as two leaders of 4.2.4 answered them; the second one runs the extensible load manager."""
    modular = [
        {"metrics": {"brk_lb_cpu_usage": 99.10239}, "dimensions": {"broker": "127.0.0.1", "metric": "loadBalancing"}},
        {
            "metrics": {"brk_lb_unload_broker_total": 6, "brk_lb_unload_bundle_total": 10},
            "dimensions": {"metric": "bundleUnloading"},
        },
    ]
    labels = {"broker": "127.0.0.4", "metric": "bundleUnloading"}
    reasons = {("HitCount", "Skip"): 4, ("Admin", "Success"): 2, ("Overloaded", "Success"): 19, ("CoolDown", "Skip"): 0}
    extensible: list[dict[str, Any]] = [
        {"metrics": {"brk_lb_unload_broker_total": 4, "brk_lb_unload_bundle_total": 21}, "dimensions": labels},
        *(
            {"metrics": {"brk_lb_unload_broker_breakdown_total": n}, "dimensions": {**labels, "reason": r, "result": e}}
            for (r, e), n in reasons.items()
        ),
        {
            "metrics": {"brk_lb_resource_usage_stats": 0.17880696702734916},
            "dimensions": {**labels, "feature": "max_ema", "stat": "std"},
        },
    ]
    for groups, said in (
        (modular, {"unloaded": 10.0}),
        (modular[:1], {"unloaded": 0.0}),
        (extensible, {"unloaded": 19.0, "Skip/HitCount": 4, "Skip/CoolDown": 0, "load_std": 0.17880696702734916}),
        ([], {}),
    ):
        answers = read_answers({"index.json": b"[]", "metrics.b2.json": json.dumps(groups).encode()})
        assert leader_metrics(answers, "b2") == said
    assert leader_metrics(answers, "") == {}


@pytest.mark.parametrize("namespace", ["acme/clicks", "public/default", "globex/alerts"])
def test_namespaces_that_name_a_cluster_are_served_up_to_4_0(files: Files, namespace: str) -> None:
    plain = snapshot_of_capture(files)
    tenant, local = namespace.split("/")
    old = f"{tenant}/east/{local}"
    renamed = {
        name: content.replace(namespace.encode(), old.encode()).replace(b"4.2.4", b"4.0.8")
        for name, content in files.items()
    }
    snapshot = snapshot_of_capture(renamed)
    assert snapshot.info.pulsar_version == "4.0.8"
    assert set(snapshot.namespaces) == {old if name == namespace else name for name in plain.namespaces}
    assert len(snapshot.bundles) == len(plain.bundles)
    assert len(snapshot.topics) == len(plain.topics)
    assert not [note for note in snapshot.info.warnings if old in note]
