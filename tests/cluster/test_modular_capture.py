"""A capture of a real modular cluster holds what its brokers and its metadata store answer."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from planner.capture.options import CaptureOptions
from planner.capture.run import capture_cluster
from planner.cluster.load_manager import LoadManager
from planner.cluster.ranges import bundle_name
from planner.cluster.snapshot import Snapshot
from planner.formats.reading import read_snapshot
from tests.cluster.launch import wait_for
from tests.cluster.scene import Scene

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

RATES = {
    "msgRateIn": "msg_rate_in_per_s",
    "msgRateOut": "msg_rate_out_per_s",
    "msgThroughputIn": "msg_throughput_in_bytes_per_s",
    "msgThroughputOut": "msg_throughput_out_bytes_per_s",
}


def nodes(scene: Scene, folder: str) -> dict[str, Any]:
    """Return the nodes of a folder of the metadata store by what follows its name."""
    return {
        node["path"].removeprefix(f"{folder}/"): json.loads(node["data"]) for node in scene.cluster.metadata(folder)
    }


def captured_between_reports(scene: Scene, folder: Path) -> tuple[Snapshot, dict[str, Any], dict[str, Any]]:
    """Capture while no broker writes a report, which each does every five seconds.

    Returns:
        The snapshot, the reports of the brokers, and the averages of the bundles.
    """
    folders = iter(range(100))

    def attempt() -> tuple[Snapshot, dict[str, Any], dict[str, Any]] | None:
        reports, averages = (nodes(scene, f"/loadbalance/{name}") for name in ("brokers", "bundle-data"))
        if not averages:  # the leader writes them once a minute
            return None
        out = folder / str(next(folders))
        options = CaptureOptions(scene.cluster.brokers[1].url, out, metadata_store=scene.cluster.store_url)
        snapshot = capture_cluster(options).snapshot
        after = nodes(scene, "/loadbalance/brokers"), nodes(scene, "/loadbalance/bundle-data")
        return (snapshot, reports, averages) if after == (reports, averages) else None

    found: tuple[Snapshot, dict[str, Any], dict[str, Any]] = wait_for("a capture between reports", attempt, seconds=180)
    return found


def test_capture_equals_answers(modular: Scene, tmp_path: Path) -> None:
    snapshot, reports, averages = captured_between_reports(modular, tmp_path)
    assert snapshot.info.load_manager is LoadManager.MODULAR
    assert snapshot.info.cluster == modular.cluster.name
    assert snapshot.info.leader == modular.admin.leader()
    assert snapshot.info.pulsar_version == "4.2.4"
    assert sorted(snapshot.brokers.name) == sorted(broker.id for broker in modular.cluster.brokers)
    for place, name in enumerate(snapshot.brokers.name):
        for key, column in RATES.items():
            assert getattr(snapshot.brokers, column)[place] == reports[name][key]
        assert snapshot.brokers.updated_at_ms[place] == reports[name]["lastUpdate"]
        assert snapshot.brokers.direct_memory_usage_mib[place] == reports[name]["directMemory"]["usage"]
        assert snapshot.brokers.bandwidth_in_limit_kbit_per_s[place] == reports[name]["bandwidthIn"]["limit"] == 1e7
    expected: dict[str, str | None] = {}
    for namespace in modular.namespaces:
        expected |= dict.fromkeys(
            bundle_name(namespace, *ends) for ends in pairwise(modular.admin.boundaries(namespace))
        )
    expected |= modular.cluster.owners()
    found = dict(zip(snapshot.bundle_names, snapshot.bundles.owner.tolist(), strict=True))
    for name, owner in expected.items():
        assert (snapshot.brokers.name[found[name]] if found[name] >= 0 else None) == owner
    stats = {name: values for report in reports.values() for name, values in report["lastStats"].items()}
    for name in stats.keys() & expected.keys():
        row = snapshot.bundle_position[name]
        assert snapshot.bundles.topics[row] == stats[name]["topics"]
        for key, column in RATES.items():
            assert getattr(snapshot.bundles, column)[row] == stats[name][key]
    for name, data in averages.items():
        row = snapshot.bundle_position[name]
        for term, prefix in (("shortTermData", "short_term_"), ("longTermData", "long_term_")):
            for key, column in RATES.items():
                assert getattr(snapshot.bundles, prefix + column)[row] == data[term][key]
    listed = {topic for namespace in modular.namespaces for topic in modular.admin.ask(f"/persistent/{namespace}")}
    assert set(modular.flows) <= listed <= set(snapshot.topics.name.to_pylist())


def test_settings_and_folder(modular: Scene, tmp_path: Path) -> None:
    """Dynamic settings count, and the folder that is written loads as the same snapshot."""
    with modular.settings({"loadBalancerNamespaceBundleMaxTopics": 4321}):
        options = CaptureOptions(modular.cluster.brokers[0].url, tmp_path, namespaces=("acme/*",))
        result = capture_cluster(options)
    settings = result.snapshot.settings
    assert settings["loadBalancerNamespaceBundleMaxTopics"] == 4321
    assert settings["loadBalancerOverrideBrokerNicSpeedGbps"] == 10.0
    assert settings["loadBalancerReportUpdateThresholdPercentage"] == 0
    assert {name.partition("/")[0] for name in result.snapshot.namespaces} >= {"acme"}
    assert result.snapshot.bundles.averages_estimated.any()
    assert any("estimated" in warning for warning in result.snapshot.info.warnings)
    again = read_snapshot(tmp_path / "snapshot")
    assert again.bundle_names == result.snapshot.bundle_names
    for column in ("updated_at_ms", "direct_memory_usage_mib", *RATES.values()):
        assert np.array_equal(getattr(again.brokers, column), getattr(result.snapshot.brokers, column))
