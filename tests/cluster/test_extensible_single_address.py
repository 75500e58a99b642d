"""Through a real Pulsar proxy, owners of the extensible load manager are known, and `pulsar-client` adds its loads."""

from pathlib import Path

import pytest

from planner.capture.options import CaptureOptions, Limits
from planner.capture.run import capture_cluster
from planner.cluster.load_manager import LoadManager
from planner.cluster.snapshot import Snapshot
from planner.doors.read import read_outputs
from tests.cluster.launch import Cluster, free_port
from tests.cluster.pulsar_client import consumed
from tests.cluster.pulsar_proxy import pulsar_proxy
from tests.cluster.scene import SCARCE_FIRST_MIB, SHED, Scene
from tests.cluster.test_modular_single_address import machines, owners

_LOADS = "non-persistent://pulsar/system/loadbalancer-broker-load-data"
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]


def test_a_proxy_hides_the_brokers(extensible: Scene, tmp_path: Path) -> None:
    cluster = extensible.cluster
    nowhere = tuple(f"{broker.id}=http://127.0.0.1:{free_port()}" for broker in cluster.brokers)
    with pulsar_proxy(cluster, tmp_path / "proxy") as running:
        proxy = f"http://127.0.0.1:{running.port}"
        options = CaptureOptions(
            proxy,
            tmp_path / "capture",
            metadata_store=cluster.store_url,
            broker_at=nowhere,
            limits=Limits(back_off_s=0.1),
        )
        captured = capture_cluster(options)
        brokers = [broker.id for broker in cluster.brokers]
        loads = consumed(running.service_url, _LOADS, tmp_path / "client", brokers, seconds=180)
    (tmp_path / "loads.txt").write_text(loads)
    assert_owners_are_known(captured.snapshot, cluster, proxy)

    reading = read_outputs(captured.folder / "raw", tmp_path / "loads.txt")
    complete = reading.snapshot
    assert complete is not None, loads[-3000:]
    assert machines(complete) == {
        broker.id: float(mib) for broker, mib in zip(cluster.brokers, SCARCE_FIRST_MIB, strict=True)
    }, loads[-3000:]
    assert owners(complete) == owners(captured.snapshot)
    assert not reading.not_used, reading.not_used
    assert "Its load is unknown" not in " ".join(complete.info.warnings)


def assert_owners_are_known(found: Snapshot, cluster: Cluster, proxy: str) -> None:
    assert found.info.load_manager is LoadManager.EXTENSIBLE
    assert found.info.settings_from == "brokers"
    assert set(found.brokers.name) == {broker.id for broker in cluster.brokers}
    assert machines(found) == {}
    mine = {name: owner for name, owner in owners(found).items() if name.startswith(f"{SHED}/")}
    assert len(mine) == 16
    assert mine == {name: owner for name, owner in cluster.owners().items() if name.startswith(f"{SHED}/")}
    said = " ".join(found.info.warnings)
    assert f"so {proxy} alone was asked" in said
    assert said.count("Its load is unknown") == len(cluster.brokers)
