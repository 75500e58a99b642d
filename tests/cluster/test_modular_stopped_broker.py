"""A broker that dies while a real cluster is captured; the last test of its cluster."""

from pathlib import Path

import pytest

from planner.capture.options import CaptureOptions, Limits, Progress
from planner.capture.run import capture_cluster
from tests.cluster.launch import wait_for
from tests.cluster.scene import Scene

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]


def test_broker_killed_during_capture(modular: Scene, tmp_path: Path) -> None:
    """The rest is captured; what the dead broker did not answer comes from the metadata store, with a warning."""
    leader = modular.cluster.leader
    asked = next(broker for broker in modular.cluster.brokers if broker is not leader)
    victim = next(broker for broker in modular.cluster.brokers if broker not in (leader, asked))

    def kill_in_the_middle(progress: Progress) -> None:
        if progress.done == 12:
            victim.stop()

    limits = Limits(in_flight=2, connect_s=2.0, request_s=10.0, attempts=2)
    options = CaptureOptions(asked.url, tmp_path, metadata_store=modular.cluster.store_url, limits=limits)
    result = capture_cluster(options, kill_in_the_middle)
    assert victim.process.poll() is not None
    assert any(victim.id in warning for warning in result.snapshot.info.warnings)
    known = set(result.snapshot.brokers.name)
    assert {leader.id, asked.id} <= known
    left = {leader.id, asked.id}
    wait_for("the cluster to miss it", lambda: set(modular.cluster.admin_of(asked).brokers()) == left, seconds=90)
    later = capture_cluster(CaptureOptions(asked.url, tmp_path / "later", metadata_store=modular.cluster.store_url))
    assert set(later.snapshot.brokers.name) == left
