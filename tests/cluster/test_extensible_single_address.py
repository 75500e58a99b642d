"""Through a real Pulsar proxy, owners of the extensible load manager are known, and its loads are said not to be."""

from pathlib import Path

import pytest

from planner.capture.options import CaptureOptions, Limits
from planner.capture.run import capture_cluster
from planner.cluster.load_manager import LoadManager
from tests.cluster.launch import free_port
from tests.cluster.pulsar_proxy import pulsar_proxy
from tests.cluster.scene import SHED, Scene
from tests.cluster.test_modular_single_address import machines, owners

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]


def test_a_proxy_hides_the_brokers(extensible: Scene, tmp_path: Path) -> None:
    cluster = extensible.cluster
    nowhere = tuple(f"{broker.id}=http://127.0.0.1:{free_port()}" for broker in cluster.brokers)
    with pulsar_proxy(cluster, tmp_path / "proxy") as port:
        proxy = f"http://127.0.0.1:{port}"
        options = CaptureOptions(
            proxy,
            tmp_path / "capture",
            metadata_store=cluster.store_url,
            broker_at=nowhere,
            limits=Limits(back_off_s=0.1),
        )
        found = capture_cluster(options).snapshot
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
