"""Captures through a real Pulsar proxy, which leads to any broker, take no answer of one broker for that of another."""

from dataclasses import replace
from pathlib import Path

import pytest

from planner.capture.options import CaptureOptions, Limits
from planner.capture.run import capture_cluster
from planner.cluster.errors import CaptureError
from planner.cluster.snapshot import Snapshot
from tests.cluster.launch import free_port
from tests.cluster.pulsar_proxy import pulsar_proxy
from tests.cluster.scene import SCARCE_FIRST_MIB, Scene

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]


def owners(snapshot: Snapshot) -> dict[str, str]:
    return {
        name: snapshot.brokers.name[owner]
        for name, owner in zip(snapshot.bundle_names, snapshot.bundles.owner.tolist(), strict=True)
        if owner >= 0
    }


def machines(snapshot: Snapshot) -> dict[str, float]:
    """Return the direct memory of each broker whose load is known, in MiB: no two have the same."""
    brokers = snapshot.brokers
    known = zip(brokers.name, brokers.direct_memory_limit_mib.tolist(), brokers.has_load_data.tolist(), strict=True)
    return {name: limit for name, limit, has in known if has}


def test_a_proxy_hides_the_brokers(modular: Scene, tmp_path: Path) -> None:
    cluster = modular.cluster
    ids = [broker.id for broker in cluster.brokers]
    limits = {name: float(mib) for name, mib in zip(ids, SCARCE_FIRST_MIB, strict=True)}
    with pulsar_proxy(cluster, tmp_path / "proxy") as running:
        port = running.port
        proxy = f"http://127.0.0.1:{port}"
        nowhere = tuple(f"{name}=http://127.0.0.1:{free_port()}" for name in ids)
        options = CaptureOptions(proxy, tmp_path / "hidden", broker_at=nowhere, limits=Limits(back_off_s=0.1))
        with pytest.raises(CaptureError, match=r"--broker-at or --broker-url.*--metadata-store"):
            capture_cluster(options)

        stored = capture_cluster(replace(options, out=tmp_path / "stored", metadata_store=cluster.store_url))
        assert sorted(stored.snapshot.brokers.name) == sorted(ids)
        assert machines(stored.snapshot) == limits
        assert cluster.owners().items() == owners(stored.snapshot).items()
        assert stored.snapshot.info.settings_from == "brokers"
        assert f"so {proxy} alone was asked" in " ".join(stored.snapshot.info.warnings)

        # Names of their own that all lead to the proxy, as a wildcard of an ingress does.
        same = tuple(f"{name}=http://127.0.0.{at}:{port}" for at, name in enumerate(ids, 11))
        mixed = 0
        for attempt in range(4):
            asked = replace(options, out=tmp_path / f"mixed-{attempt}", broker_at=same, metrics="admin")
            found = capture_cluster(asked).snapshot
            assert machines(found).items() <= limits.items()
            assert owners(found).items() <= cluster.owners().items()
            mixed += "another broker answered" in " ".join(found.info.warnings)
        assert mixed, "the proxy led each request to the very broker that was meant, four times"

        # The same address for two of them.
        with pytest.raises(CaptureError, match="cannot be told apart"):
            capture_cluster(replace(options, out=tmp_path / "same", broker_at=tuple(f"{name}={proxy}" for name in ids)))


def test_addresses_that_were_mixed_up(modular: Scene, tmp_path: Path) -> None:
    """Two forwarded ports in the wrong order: what each broker answers is still its own."""
    cluster = modular.cluster
    first, second, third = cluster.brokers
    mixed = f"{first.id}={second.url}", f"{second.id}={first.url}", f"{third.id}={third.url}"
    options = CaptureOptions(third.url, tmp_path / "capture", broker_at=mixed, metrics="admin")
    found = capture_cluster(options).snapshot
    assert machines(found) == {
        broker.id: float(mib) for broker, mib in zip(cluster.brokers, SCARCE_FIRST_MIB, strict=True)
    }
    assert owners(found) == cluster.owners()
    assert found.topics.has_stats.sum() >= len(modular.flows)
    said = " ".join(found.info.warnings)
    for broker, other in ((first, second), (second, first)):
        assert f"is about {other.id}, not about {broker.id}: another broker answered" in said
        assert f"has bundles of {other.id} and none of {broker.id}: another broker answered" in said
