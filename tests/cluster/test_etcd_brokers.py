"""Brokers whose metadata is in a real etcd are captured as those on ZooKeeper are, with either load manager."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from planner.capture.options import CaptureOptions
from planner.capture.run import capture_cluster
from planner.cluster.snapshot import Snapshot
from tests.cluster.conftest import EXTENSIBLE
from tests.cluster.etcd import running_etcd
from tests.cluster.launch import HERE, Cluster, classpath, start_cluster, wait_for
from tests.cluster.scene import Scene, one_in_each_bundle
from tests.cluster.traffic import Flow, traffic

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]
NAMESPACE = "acme/orders"


def capture(cluster: Cluster, out: Path) -> Snapshot:
    return capture_cluster(CaptureOptions(cluster.brokers[0].url, out, metadata_store=cluster.store_url)).snapshot


@pytest.mark.parametrize("settings", [{}, EXTENSIBLE], ids=["modular", "extensible"])
def test_a_capture_has_what_the_brokers_say(settings: Mapping[str, object], tmp_path: Path) -> None:
    flows = {topic: Flow(5.0 * (at + 1)) for at, topic in enumerate(one_in_each_bundle(NAMESPACE, 4))}
    paths = classpath(tmp_path, HERE / "etcd-client")
    with (
        running_etcd(tmp_path) as etcd,
        start_cluster(paths, tmp_path / "cluster", settings, direct_mib=(256, 256), etcd_url=etcd.url) as cluster,
    ):
        cluster.admin().create_namespace(NAMESPACE, 4)
        with traffic(cluster.brokers[0].service_url, flows):
            Scene(cluster, flows)
            wait_for("all bundles are owned", lambda: len(owners(cluster)) == 4, seconds=90, every=1)
            number = iter(range(100))

            def settled() -> Snapshot | None:
                found = capture(cluster, tmp_path / f"capture-{next(number)}")
                rates = dict(zip(found.topics.name.to_pylist(), found.topics.msg_rate_in_per_s.tolist(), strict=True))
                flowing = all(rates.get(topic, 0) > flow.msg_per_s / 2 for topic, flow in flows.items())
                return found if flowing and found.brokers.has_load_data.all() else None

            found = wait_for("rates and loads", settled, seconds=180, every=5)
            assert set(found.brokers.name) == {broker.id for broker in cluster.brokers}
            owned = {
                name: found.brokers.name[owner]
                for name, owner in zip(found.bundle_names, found.bundles.owner.tolist(), strict=True)
                if name.startswith(f"{NAMESPACE}/")
            }
            assert owned == owners(cluster)
            assert found.info.leader == cluster.leader.id
            assert not [text for text in found.info.warnings if "etcd" in text]


def owners(cluster: Cluster) -> dict[str, str]:
    return {name: broker for name, broker in cluster.owners().items() if name.startswith(f"{NAMESPACE}/")}
