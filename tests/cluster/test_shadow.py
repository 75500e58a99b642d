"""Shadow mode follows a real leader: what it predicts from each capture, the next cycle does."""

import contextlib
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from planner.capture.options import CaptureOptions
from planner.capture.shadow_record import Cause, ShadowRecord, read_next
from planner.capture.shadow_watch import ShadowWatch
from planner.capture.watch import Watched, WatchOptions, watch_cluster
from planner.model.snapshot import Snapshot
from tests.cluster.conftest import Stage
from tests.cluster.launch import start_cluster, wait_for
from tests.cluster.scene import ONLY_DIRECT_MEMORY, SCARCE_FIRST_MIB, Scene, one_in_each_bundle
from tests.cluster.traffic import Flow, traffic

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(3600), pytest.mark.xdist_group("shadow")]

NAMESPACE = "globex/shadow"
BUNDLES = 64
CYCLES = 20
LONGEST_S = 40 * 60.0

SETTINGS: Mapping[str, object] = {
    **ONLY_DIRECT_MEMORY,
    "loadBalancerHistoryResourcePercentage": 0.5,
    "loadBalancerSheddingEnabled": True,
    "loadBalancerBundleUnloadMinThroughputThreshold": 0.001,
    "loadBalancerDistributeBundlesEvenlyEnabled": False,
}
"""One broker has little direct memory and stays the busiest, so that some bundles leave it in each cycle."""


def scene(running: contextlib.ExitStack, paths: str, folder: Path) -> Scene:
    """Start three brokers; all bundles are on the first one, their rates 4 % apart."""
    cluster = running.enter_context(start_cluster(paths, folder, {}, direct_mib=SCARCE_FIRST_MIB))
    cluster.admin().create_namespace(NAMESPACE, BUNDLES)
    flows = {topic: Flow(3.0 * 1.04**rank) for rank, topic in enumerate(one_in_each_bundle(NAMESPACE, BUNDLES))}
    running.enter_context(traffic(cluster.brokers[0].service_url, flows))
    made = Scene(cluster, flows)
    wait_for("every bundle has an owner", lambda: len(owned(made)) == BUNDLES, seconds=90, every=1.0)
    made.put(dict.fromkeys(owned(made), cluster.brokers[0].id))
    return made


def owned(of: Scene) -> dict[str, str]:
    return {name: broker for name, broker in of.cluster.owners().items() if name.startswith(f"{NAMESPACE}/")}


def excess_percent(snapshot: Snapshot) -> float:
    """Return by how much the usage of the first broker's direct memory is above the average, in points."""
    brokers = snapshot.brokers
    usage = 100 * brokers.direct_memory_usage_mib / brokers.direct_memory_limit_mib
    return float(usage.max() - usage.mean())


def tell(line: str) -> None:
    sys.stderr.write(f"{line}\n")


class Operator:
    """Gives some bundles back to the first broker, once."""

    def __init__(self, of: Scene, shadow: ShadowWatch) -> None:
        self.scene = of
        self.shadow = shadow
        self.given: dict[str, str] = {}

    def act(self) -> None:
        """Act halfway between two cycles, after the fifth one that unloaded something."""
        acting = [cycle for cycle in self.shadow.cycles if cycle.actual]
        half_past = self.shadow.state.due_ms - time.time_ns() // 1_000_000
        if self.given or len(acting) < 5 or not 20_000 < half_past < 35_000:
            return
        first = self.scene.cluster.brokers[0].id
        self.given = dict.fromkeys([unload.bundle for cycle in acting for unload in cycle.actual][:3], first)
        self.scene.put(self.given)


def test_what_the_leader_does_next_is_predicted(stage: Stage, tmp_path: Path) -> None:
    live = stage.show("shadow", scene)
    cluster = live.cluster
    history = tmp_path / "history"
    shadow = ShadowWatch(history, tell)
    operator = Operator(live, shadow)
    stop = threading.Event()
    capture = CaptureOptions(
        cluster.brokers[0].url, history, metadata_store=cluster.store_url, namespaces=("globex/*",)
    )
    until_s = time.monotonic() + LONGEST_S

    def follow(watched: Watched) -> None:
        assert watched.error is None or time.monotonic() < until_s, str(watched.error)
        if watched.snapshot is not None:
            shadow.add(watched.snapshot)
            operator.act()
        if shadow.score.acting >= CYCLES or time.monotonic() > until_s:
            stop.set()

    name = "loadBalancerBrokerThresholdShedderPercentage"
    wait_for("steady usage", lambda: excess_percent(live.snapshot()) > 3, seconds=120, every=5)
    above = excess_percent(live.snapshot())
    with live.settings({**SETTINGS, name: max(0, int(above) - 2)}):
        watch_cluster(WatchOptions(capture, history, interval_s=5.0, refresh_s=60.0), follow, stop)
    score = shadow.score
    record = ShadowRecord(history / f"cluster={cluster.name}")
    assert record.read() == tuple(shadow.cycles)
    assert read_next(history / f"cluster={cluster.name}") is not None
    assert score.acting >= CYCLES
    assert score.in_time >= 0.8 * CYCLES
    assert score.in_time_right >= 0.95 * score.in_time
    assert score.destinations_right >= 0.95 * score.destinations > 0
    assert operator.given
    by_hand = {d.bundle for c in shadow.cycles for d in c.differences if d.cause is Cause.MANUAL}
    assert by_hand == set(operator.given)
