"""Recorded captures of a real cluster become the cluster that its brokers knew."""

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from planner.cluster.errors import SnapshotError
from planner.cluster.internal_namespaces import is_heartbeat_or_sla_namespace
from planner.cluster.load_manager import LoadManager
from planner.cluster.pulsar_json import BUNDLE_METRICS
from planner.cluster.releases import release
from planner.cluster.snapshot import DispatchRate, IsolationPolicy, Snapshot
from planner.formats.raw_capture.snapshot import snapshot_of_capture
from planner.formats.reading import read_snapshot
from planner.pulsar.load.namespace_policies import expression_notes
from planner.pulsar.load.top_bundles import with_top_ranks

Capture = Callable[[str], dict[str, bytes]]

GOLDENS = Path(__file__).parent.parent.parent / "goldens" / "captures"
HANDED = json.loads((GOLDENS / "handed-to-threshold-shedder.json").read_text())
TRAFFIC = {
    "msgRateIn": "msg_rate_in_per_s",
    "msgRateOut": "msg_rate_out_per_s",
    "msgThroughputIn": "msg_throughput_in_bytes_per_s",
    "msgThroughputOut": "msg_throughput_out_bytes_per_s",
}
RESOURCES = {
    "cpu": "cpu_{}_percent",
    "memory": "memory_{}_mib",
    "directMemory": "direct_memory_{}_mib",
    "bandwidthIn": "bandwidth_in_{}_kbit_per_s",
    "bandwidthOut": "bandwidth_out_{}_kbit_per_s",
}


def row_of(snapshot: Snapshot, bundle: str) -> dict[str, Any]:
    at = snapshot.bundle_position[bundle]
    return {
        name: column[at].item() for name, column in vars(snapshot.bundles).items() if isinstance(column, np.ndarray)
    }


def node(files: dict[str, bytes], path: str) -> Any:
    return next(json.loads(n["data"]) for n in json.loads(files["zookeeper.json"]) if n["path"] == path)


class TestModular:
    @pytest.fixture
    def files(self, capture: Capture) -> dict[str, bytes]:
        return capture("modular")

    @pytest.fixture
    def snapshot(self, files: dict[str, bytes]) -> Snapshot:
        return snapshot_of_capture(files)

    def test_info(self, snapshot: Snapshot) -> None:
        info = snapshot.info
        assert (info.cluster, info.load_manager, info.pulsar_version) == ("planner", LoadManager.MODULAR, "4.2.4")
        assert info.leader == "127.0.0.2:18082"
        assert info.captured_at_ms == 1795225842792
        assert snapshot.brokers.name == ("127.0.0.2:18082", "127.0.0.3:18083", "127.0.0.1:18081")
        assert set(snapshot.brokers.version) == {"4.2.4"}

    def test_settings_of_a_recording_strategy(self, snapshot: Snapshot) -> None:
        config = snapshot.settings
        assert (
            config.text("loadBalancerLoadSheddingStrategy")
            == "org.apache.pulsar.broker.loadbalance.impl.ThresholdShedder"
        )
        assert config["loadBalancerOverrideBrokerNicSpeedGbps"] == 1.0
        assert config.names("loadBalancerSheddingExcludedNamespaces") == ()
        assert config.integer("loadBalancerSheddingGracePeriodMinutes") == 0
        assert set(config.overrides) == {
            "exposeBundlesMetricsInPrometheus",
            "loadBalancerAutoBundleSplitEnabled",
            "loadBalancerAutoUnloadSplitBundlesEnabled",
            "loadBalancerOverrideBrokerNicSpeedGbps",
            "loadBalancerReportUpdateMaxIntervalMinutes",
            "loadBalancerResourceQuotaUpdateIntervalMinutes",
            "loadBalancerSheddingGracePeriodMinutes",
            "statsUpdateFrequencyInSecs",
        }

    def test_brokers_are_what_the_metadata_store_holds(self, snapshot: Snapshot, files: dict[str, bytes]) -> None:
        for at, broker in enumerate(snapshot.brokers.name):
            report = node(files, f"/loadbalance/brokers/{broker}")
            for resource, column in RESOURCES.items():
                for side in ("usage", "limit"):
                    assert getattr(snapshot.brokers, column.format(side))[at] == report[resource][side]
            for key, column in TRAFFIC.items():
                assert getattr(snapshot.brokers, column)[at] == report[key]
            assert snapshot.brokers.reported_bundles[at] == report["numBundles"]
            average = node(files, f"/loadbalance/broker-time-average/{broker}")
            assert snapshot.brokers.long_term_msg_rate_in_per_s[at] == average["longTermMsgRateIn"]
            assert math.isnan(snapshot.brokers.weighted_max_ema[at])

    def test_bundles(self, snapshot: Snapshot, files: dict[str, bytes]) -> None:
        assert len(snapshot.bundles) == 4 + 16 + 16 + 4 + 8 + 16 + 16 + 3
        assert snapshot.namespaces.count("pulsar/system") == 1
        assert sum(map(is_heartbeat_or_sla_namespace, snapshot.namespaces)) == 3
        for tag, broker in (("b1", "127.0.0.1:18081"), ("b2", "127.0.0.2:18082"), ("b3", "127.0.0.3:18083")):
            owned = snapshot.bundles_of(snapshot.brokers.position[broker])
            assert {snapshot.bundle_names[i] for i in owned} == set(json.loads(files[f"owned.{tag}.json"]))

    def test_monitors_that_name_the_cluster(self, files: dict[str, bytes]) -> None:
        """Up to 4.0.8 each broker has two namespaces of its own; health checks write into the older one."""
        monitor, whole, name = "pulsar/planner/127.0.0.1:18081", "0x00000000_0xffffffff", "owned.b1.json"
        topic = f"persistent://{monitor}/healthcheck"
        topics = {**json.loads(files["topics.b1.json"]), monitor: {whole: {"persistent": {topic: {"msgRateIn": 1.0}}}}}
        owned = {**json.loads(files[name]), f"{monitor}/{whole}": {}, f"old/use/v1/{whole}": {}}
        more = {"topics.b1.json": json.dumps(topics).encode(), name: json.dumps(owned).encode()}
        snapshot = snapshot_of_capture({**files, **more, "version.json": b"4.0.8"})
        bundle = snapshot.bundle_position[f"{monitor}/{whole}"]
        assert snapshot.brokers.name[snapshot.bundles.owner[bundle]] == "127.0.0.1:18081"
        row = snapshot.topics.name.to_pylist().index(topic)
        assert snapshot.topics.bundle[row] == bundle
        assert snapshot.brokers.name[snapshot.bundles.owner[snapshot.bundle_position[f"old/use/v1/{whole}"]]] == (
            "127.0.0.1:18081"
        )
        assert not [warning for warning in snapshot.info.warnings if "left out" in warning]
        newer = snapshot_of_capture({**files, **more, "version.json": b"4.2.4"})
        assert f"old/use/v1/{whole}" not in newer.bundle_position
        assert any(f"{monitor}/{whole} and 1 more" in w for w in newer.info.warnings if "left out" in w)
        for decides in ("4.0.8", "4.2.4"):  # a newer release has no such names; the cluster's own still counts
            assert snapshot.shedding_rank(release(decides))[bundle] == -1

    def test_current_values_and_averages(self, snapshot: Snapshot, files: dict[str, bytes]) -> None:
        name = "acme/audit/0x00000000_0x40000000"
        row = row_of(snapshot, name)
        stats = node(files, "/loadbalance/brokers/127.0.0.3:18083")["lastStats"][name]
        data = node(files, f"/loadbalance/bundle-data/{name}")
        assert row["has_stats"]
        assert row["has_data"]
        assert not row["averages_estimated"]
        assert (row["topics"], row["producers"], row["consumers"]) == (3, 2, 2)
        assert row["cache_size_bytes"] == stats["cacheSize"] == 140794
        assert (row["short_term_samples"], row["long_term_samples"]) == (10, data["longTermData"]["numSamples"])
        for key, column in TRAFFIC.items():
            assert row[column] == stats[key]
            assert row[f"short_term_{column}"] == data["shortTermData"][key]
            assert row[f"long_term_{column}"] == data["longTermData"][key]

    def test_averages_nobody_stored_are_estimated(self, snapshot: Snapshot, files: dict[str, bytes]) -> None:
        stored = {n["path"] for n in json.loads(files["zookeeper.json"])}
        estimated = [n for n, e in zip(snapshot.bundle_names, snapshot.bundles.averages_estimated, strict=True) if e]
        assert len(estimated) == 2
        for name in estimated:
            assert f"/loadbalance/bundle-data/{name}" not in stored
            row = row_of(snapshot, name)
            assert row["short_term_msg_rate_in_per_s"] == row["long_term_msg_rate_in_per_s"] == row["msg_rate_in_per_s"]
            assert (row["short_term_samples"], row["long_term_samples"]) == (1, 1)

    def test_topics(self, snapshot: Snapshot, files: dict[str, bytes]) -> None:
        topics = snapshot.topics
        names = topics.name.to_pylist()
        at = names.index("persistent://acme/audit/audit-05")
        assert topics.msg_rate_in_per_s[at] == 16.899
        assert topics.msg_throughput_out_bytes_per_s[at] == 69982.909
        assert (topics.producers[at], topics.consumers[at]) == (1, 1)
        assert "persistent://acme/clicks/web-partition-5" in names
        assert "persistent://acme/clicks/web" not in names
        reported = {
            t
            for tag in ("b1", "b2", "b3")
            for spans in json.loads(files[f"topics.{tag}.json"]).values()
            for domains in spans.values()
            for topics_ in domains.values()
            for t in topics_
        }
        assert reported == {n for n, has in zip(names, topics.has_stats, strict=True) if has}

    def test_policies(self, snapshot: Snapshot) -> None:
        policies = snapshot.policies
        assert policies.isolation == (
            IsolationPolicy("audit-isolation", ("acme/audit",), (r"127\.0\.0\.3",), (r"127\.0\.0\.[12]",), 1, 100),
        )
        assert policies.anti_affinity_group == {"globex/alerts": "globex-pair", "globex/telemetry": "globex-pair"}
        assert [(p.kind, p.target, p.rate) for p in policies.dispatch_rates] == [
            ("dispatch", "acme/clicks", DispatchRate(50, -1, 2, relative_to_publish_rate=True)),
            ("dispatch", "acme/orders", DispatchRate(5000, 8388608)),
            ("subscription", "acme/orders", DispatchRate(2000)),
        ]  # the publish rate of acme/clicks is no dispatch rate

    def test_warnings(self, snapshot: Snapshot) -> None:
        assert [w.split(";")[0] for w in snapshot.info.warnings] == [
            "loadBalancerLoadPlacementStrategy is RecLeastLongTermMessageRate, a class of your own",
            "loadBalancerLoadSheddingStrategy is RecThresholdShedder, a class of your own",
            "The metadata store does not have averages of some bundles yet",
        ]


class TestExtensible:
    @pytest.fixture
    def files(self, capture: Capture) -> dict[str, bytes]:
        return capture("extensible")

    @pytest.fixture
    def snapshot(self, files: dict[str, bytes]) -> Snapshot:
        return snapshot_of_capture(files)

    def message(self, files: dict[str, bytes], topic: str, key: str, captured_at_ms: int) -> Any:
        messages = json.loads(files["system-topics.json"])["topics"][f"non-persistent://pulsar/system/{topic}"]
        return [m["value"] for m in messages if m["key"] == key and m["publish_time_ms"] <= captured_at_ms][-1]

    def test_brokers_are_what_their_system_topic_said(self, snapshot: Snapshot, files: dict[str, bytes]) -> None:
        assert snapshot.info.load_manager is LoadManager.EXTENSIBLE
        assert snapshot.info.leader == "127.0.0.1:18081"
        for at, broker in enumerate(snapshot.brokers.name):
            load = self.message(files, "loadbalancer-broker-load-data", broker, snapshot.info.captured_at_ms)
            for resource, column in RESOURCES.items():
                for side in ("usage", "limit"):
                    assert getattr(snapshot.brokers, column.format(side))[at] == load[resource][side]
            assert snapshot.brokers.weighted_max_ema[at] == load["weightedMaxEMA"]
            assert snapshot.brokers.msg_throughput_ema_bytes_per_s[at] == load["msgThroughputEMA"]
            assert snapshot.brokers.reported_bundles[at] == load["bundleCount"]
            assert snapshot.brokers.updated_at_ms[at] == load["updatedAt"]
            if snapshot.info.captured_at_ms - load["updatedAt"] < 20_000:
                # Brokers count their bundles as we do, those of pulsar/system among them.
                owned = snapshot.bundles_of(at)
                assert np.count_nonzero(snapshot.bundles.has_stats[owned]) == load["bundleCount"]

    def test_top_bundles_are_those_reported(self, snapshot: Snapshot, files: dict[str, bytes]) -> None:
        for at, broker in enumerate(snapshot.brokers.name):
            top = self.message(files, "loadbalancer-top-bundles-load-data", broker, snapshot.info.captured_at_ms)
            names = [row["bundleName"] for row in top["topBundlesLoadData"]]
            ranked = [i for i in snapshot.bundles_of(at) if snapshot.bundles.top_rank[i] >= 0]
            ranked.sort(key=lambda i: int(snapshot.bundles.top_rank[i]))
            assert [snapshot.bundle_names[i] for i in ranked] == names
            for row in top["topBundlesLoadData"]:
                assert row_of(snapshot, row["bundleName"])["msg_rate_in_per_s"] == row["stats"]["msgRateIn"]

    def test_what_a_broker_said_before_it_lost_a_bundle_does_not_count(
        self, snapshot: Snapshot, files: dict[str, bytes]
    ) -> None:
        topics = json.loads(files["system-topics.json"])
        messages = topics["topics"]["non-persistent://pulsar/system/loadbalancer-top-bundles-load-data"]
        bundle = next(n for n, top in zip(snapshot.bundle_names, snapshot.bundles.top_rank, strict=True) if top == 0)
        now = row_of(snapshot, bundle)
        owner = snapshot.brokers.name[now["owner"]]
        for message in messages:
            if message["key"] != owner and message["value"]:
                old = {"bundleName": bundle, "stats": {"msgRateIn": now["msg_rate_in_per_s"] + 12_345.0}}
                message["value"]["topBundlesLoadData"].insert(0, old)
        files["system-topics.json"] = json.dumps(topics).encode()
        assert row_of(snapshot_of_capture(files), bundle)["msg_rate_in_per_s"] == now["msg_rate_in_per_s"]

    def test_top_bundles_reported_are_those_computed(self, snapshot: Snapshot) -> None:
        computed = with_top_ranks(snapshot, snapshot.settings)
        assert computed.bundles.top_rank.tolist() == snapshot.bundles.top_rank.tolist()

    def test_averages_are_estimated(self, snapshot: Snapshot) -> None:
        bundles = snapshot.bundles
        assert bundles.averages_estimated.tolist() == bundles.has_stats.tolist()
        np.testing.assert_array_equal(bundles.short_term_msg_rate_in_per_s, bundles.msg_rate_in_per_s)
        assert sum("keeps no averages" in w for w in snapshot.info.warnings) == 1

    def test_without_system_topics_metrics_count(self, snapshot: Snapshot, files: dict[str, bytes]) -> None:
        del files["system-topics.json"]
        other = snapshot_of_capture(files)
        brokers = other.brokers
        assert other.info.load_manager is LoadManager.EXTENSIBLE
        # Metrics and system topic were read up to 40 s apart; two brokers used the same direct memory then.
        both = [s.direct_memory_usage_mib[1:] for s in (brokers, snapshot.brokers)]
        np.testing.assert_allclose(both[0], both[1], rtol=1e-6)
        np.testing.assert_array_equal(brokers.direct_memory_limit_mib, snapshot.brokers.direct_memory_limit_mib)
        np.testing.assert_array_equal(brokers.memory_limit_mib, snapshot.brokers.memory_limit_mib)
        np.testing.assert_array_equal(brokers.bandwidth_in_limit_kbit_per_s, [1e6] * 3)  # from the settings
        assert set(brokers.cpu_limit_percent.tolist()) == {100.0}
        at = brokers.position["127.0.0.3:18083"]
        assert brokers.cpu_usage_percent[at] == pytest.approx(2.4942298)
        assert brokers.weighted_max_ema[at] == 0.02266039282252149
        assert math.isnan(brokers.msg_throughput_ema_bytes_per_s[at])
        np.testing.assert_allclose(brokers.msg_rate_in_per_s, snapshot.brokers.msg_rate_in_per_s, rtol=0.05)
        assert sum("known only as a percentage" in w for w in other.info.warnings) == 1
        assert sum("computed from current values" in w for w in other.info.warnings) == 1
        assert np.count_nonzero(other.bundles.top_rank >= 0) == 20

    def test_prometheus_counts_where_the_admin_api_did_not_answer(self, files: dict[str, bytes]) -> None:
        for name in [n for n in files if n.startswith(("system-topics", "metrics."))]:
            del files[name]
        brokers = snapshot_of_capture(files).brokers
        at = brokers.position["127.0.0.3:18083"]
        assert brokers.weighted_max_ema[at] == 0.022406847809969897
        assert brokers.memory_limit_mib[at] == 371.25
        assert brokers.memory_usage_mib[at] == pytest.approx(0.35623478 * 371.25)

    @pytest.mark.parametrize("number", ["9" * 400, "-" + "9" * 400, "9" * 5_000, "1e400"])
    @pytest.mark.parametrize("stem", ["metrics.b2", "topics.b2"])
    def test_a_number_that_is_no_double_costs_its_answer_alone(
        self, files: dict[str, bytes], stem: str, number: str
    ) -> None:
        name = f"{stem}.json"
        files[name] = re.sub(rb'(":) ?[0-9][0-9.E]*', rb"\g<1>" + number.encode(), files[name], count=3)
        assert number.encode() in files[name]
        snapshot = snapshot_of_capture(files)
        assert len(snapshot.brokers) == 3
        assert [w for w in snapshot.info.warnings if re.match(rf"{stem}: (the|a) number .* too", w)]

    @pytest.mark.parametrize("value", ["+Inf", "-Inf", "NaN", "1e999"])
    def test_a_metric_that_is_no_finite_number_is_none(
        self, snapshot: Snapshot, files: dict[str, bytes], value: str
    ) -> None:
        del files["system-topics.json"]
        for name in [n for n in files if n.startswith("metrics.")]:
            del files[name]
        for name in [n for n in files if n.startswith("prometheus.")]:
            lines = [f'{of}{{bundle="{bundle}"}} {value}' for of in BUNDLE_METRICS for bundle in snapshot.bundle_names]
            files[name] = b"\n".join([*(line.encode() for line in lines), files[name]])
        assert np.isfinite(snapshot_of_capture(files).bundles.msg_rate_in_per_s).all()

    def test_the_refusal_tells_the_load_manager(self, files: dict[str, bytes]) -> None:
        for name in [n for n in files if n.startswith(("system-topics", "runtime-config", "zookeeper"))]:
            del files[name]
        assert snapshot_of_capture(files).info.load_manager is LoadManager.EXTENSIBLE

    def test_isolation_that_cannot_be_followed(self, files: dict[str, bytes]) -> None:
        """Pulsar checks the expressions for brokers alone when it stores a policy."""
        del files["system-topics.json"]
        policy = {"namespaces": ["acme/("], "primary": ["x"]}
        files["isolation-policies.json"] = json.dumps({"p": policy}).encode()
        snapshot = snapshot_of_capture(files)
        assert [p.namespaces for p in snapshot.policies.isolation] == [("acme/(",)]
        (note,) = expression_notes(snapshot.policies)
        assert "Isolation policy p: the namespace expression 'acme/(' is not a valid regular expression" in note
        files["isolation-policies.json"] = json.dumps({"p": policy | {"primary": ["("]}}).encode()
        with pytest.raises(SnapshotError, match=r"capture: policies: '\(' of .* is not a valid regular expression"):
            snapshot_of_capture(files)

    @pytest.mark.parametrize("state", ["Assigning", "Releasing"])
    def test_a_bundle_that_is_given_away_belongs_to_who_takes_it(
        self, snapshot: Snapshot, files: dict[str, bytes], state: str
    ) -> None:
        """As a history reads such messages, and as brokers answer lookups, where no broker says what it owns."""
        for name in [n for n in files if n.startswith("owned.")]:
            del files[name]
        content = json.loads(files["system-topics.json"])
        channel = content["topics"]["persistent://pulsar/system/loadbalancer-service-unit-state"]
        source, taker = snapshot.brokers.name[:2]
        bundle = next(snapshot.bundle_names[i] for i in snapshot.bundles_of(0))
        value = {"state": state, "sourceBroker": source, "dstBroker": taker}
        channel.append({"key": bundle, "publish_time_ms": snapshot.info.captured_at_ms, "value": value})
        files["system-topics.json"] = json.dumps(content).encode()
        assert row_of(snapshot_of_capture(files), bundle)["owner"] == 1

    def test_a_deleted_message_is_no_message(self, files: dict[str, bytes]) -> None:
        content = json.loads(files["system-topics.json"])
        load = content["topics"]["non-persistent://pulsar/system/loadbalancer-broker-load-data"]
        load.append({"key": "127.0.0.3:18083", "publish_time_ms": 1795234050100, "value": ""})
        files["system-topics.json"] = json.dumps(content).encode()
        snapshot = snapshot_of_capture(files)
        assert snapshot.brokers.cpu_limit_percent.tolist() == [200.0, 100.0, 200.0]  # the second one from its metrics


class TestBeforeADecision:
    @pytest.fixture
    def snapshot(self, capture: Capture) -> Snapshot:
        return snapshot_of_capture(capture("modular-before-threshold-shedder"))

    def test_brokers_are_what_the_strategy_was_handed(self, snapshot: Snapshot) -> None:
        assert set(snapshot.brokers.name) == set(HANDED["brokers"])
        for at, broker in enumerate(snapshot.brokers.name):
            handed = HANDED["brokers"][broker]
            for resource, column in RESOURCES.items():
                for side in ("usage", "limit"):
                    assert getattr(snapshot.brokers, column.format(side))[at] == handed[resource][side]
            for key, column in TRAFFIC.items():
                assert getattr(snapshot.brokers, column)[at] == handed[key]
            assert snapshot.brokers.updated_at_ms[at] == handed["lastUpdate"]
            owned = {snapshot.bundle_names[i] for i in snapshot.bundles_of(at) if snapshot.bundles.has_stats[i]}
            assert owned == set(handed["lastStats"])
            for name, stats in handed["lastStats"].items():
                row = row_of(snapshot, name)
                assert {column: row[column] for column in TRAFFIC.values()} == {c: stats[k] for k, c in TRAFFIC.items()}

    def test_the_leader_keeps_data_of_what_is_reported(self, snapshot: Snapshot) -> None:
        kept = [name for name, has in zip(snapshot.bundle_names, snapshot.bundles.has_data, strict=True) if has]
        assert sorted(kept) == HANDED["bundleData"]

    def test_what_is_missing_is_said(self, snapshot: Snapshot) -> None:
        assert snapshot.info.warnings == ("The settings in force were not captured; the defaults of 4.2.4 are shown.",)
        assert snapshot.info.pulsar_version == "4.2.4"
        assert snapshot.info.cluster == "planner"


def test_after_a_split(capture: Capture) -> None:
    snapshot = snapshot_of_capture(capture("modular-after-auto-split"))
    assert len(snapshot.bundles) > 67
    assert np.count_nonzero(snapshot.bundles.averages_estimated) == 4


def test_a_folder_reads_as_its_zip(capture: Capture, tmp_path: Path) -> None:
    files = capture("modular")
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    (tmp_path / "decision-x").mkdir()
    (tmp_path / "decision-x" / "index.json").write_text("not looked at")
    from_folder, from_zip = read_snapshot(tmp_path), read_snapshot(GOLDENS / "modular.zip")
    assert from_folder.info == from_zip.info
    assert from_folder.bundle_names == from_zip.bundle_names


def test_a_capture_of_an_old_release_has_its_defaults(capture: Callable[[str], dict[str, bytes]]) -> None:
    files = capture("extensible")
    files["version.json"] = b"3.0.7"
    found = snapshot_of_capture(files)
    assert (found.info.pulsar_version, found.settings.release.name) == ("3.0.7", "3.0.7")
    assert found.settings.number("loadBalancerDirectMemoryResourceWeight") == 0.0  # the brokers say so
    assert "loadBalancerMultiPhaseBundleUnload" not in found.settings
