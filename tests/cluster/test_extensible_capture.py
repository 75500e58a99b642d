"""A capture of a real cluster with the extensible load manager, by the admin API alone."""

from pathlib import Path

import pytest

from planner.capture.options import CaptureOptions
from planner.capture.run import capture_cluster
from planner.cluster.load_manager import LoadManager
from tests.cluster.scene import SCARCE_FIRST_MIB, SHED, Scene

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]


def test_capture_equals_answers(extensible: Scene, tmp_path: Path) -> None:
    """Nobody reports loads over the admin API; metrics stand in, which the snapshot says."""
    before = topic_rates(extensible)
    snapshot = capture_cluster(CaptureOptions(extensible.cluster.brokers[1].url, tmp_path)).snapshot
    after = topic_rates(extensible)
    assert snapshot.info.load_manager is LoadManager.EXTENSIBLE
    assert snapshot.info.leader == extensible.admin.leader()
    owners = extensible.cluster.owners()
    found = dict(zip(snapshot.bundle_names, snapshot.bundles.owner.tolist(), strict=True))
    for name, owner in owners.items():
        assert snapshot.brokers.name[found[name]] == owner
    assert sum(name.startswith(f"{SHED}/") for name in owners) == 16
    assert snapshot.brokers.has_load_data.all()
    used, there = snapshot.brokers.direct_memory_usage_mib, snapshot.brokers.direct_memory_limit_mib
    assert sorted(there) == [*SCARCE_FIRST_MIB]
    assert (used > 0).all()
    assert (snapshot.brokers.weighted_max_ema >= 0).all()
    assert any("metrics" in warning or "percentage" in warning for warning in snapshot.info.warnings)
    rates = dict(zip(snapshot.topics.name.to_pylist(), snapshot.topics.msg_rate_in_per_s, strict=True))
    for topic in extensible.flows:
        assert rates[topic] in {before[topic], after[topic]}


def topic_rates(scene: Scene) -> dict[str, float]:
    """Return what the brokers say about their topics; they count anew every five seconds."""
    rates: dict[str, float] = {}
    for number in range(len(scene.cluster.brokers)):
        for bundles in scene.cluster.admin(number).ask("/broker-stats/topics").values():
            for domains in bundles.values():
                for topics in domains.values():
                    rates |= {topic: stats["msgRateIn"] for topic, stats in topics.items()}
    return rates
