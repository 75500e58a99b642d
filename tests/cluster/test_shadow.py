"""Shadow mode follows a real leader: what it predicts from each capture, the next cycle does."""

import contextlib
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from planner.capture.options import CaptureOptions
from planner.capture.watch import Watched, WatchOptions, watch_cluster
from planner.cluster.snapshot import Snapshot
from planner.shadow.record import Cause, ShadowRecord, read_next
from planner.shadow.watched import ShadowWatch
from tests.cluster.conftest import Stage
from tests.cluster.launch import start_cluster, wait_for
from tests.cluster.scene import ONLY_DIRECT_MEMORY, SCARCE_FIRST_MIB, Scene, one_in_each_bundle
from tests.cluster.traffic import Flow, traffic

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(3600), pytest.mark.xdist_group("shadow")]

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
    # All bundles are stored then, and not just the busiest.
    settings = {"loadBalancerMaxNumberOfBundlesInBundleLoadReport": 0}
    cluster = running.enter_context(start_cluster(paths, folder, settings, direct_mib=SCARCE_FIRST_MIB))
    cluster.admin().create_namespace(NAMESPACE, BUNDLES)
    flows = {topic: Flow(3.0 * 1.04**rank) for rank, topic in enumerate(one_in_each_bundle(NAMESPACE, BUNDLES))}
    running.enter_context(traffic(cluster.brokers[0].service_url, flows))
    made = Scene(cluster, flows)
    wait_for("every bundle has an owner", lambda: len(owned(made)) == BUNDLES, seconds=90, every=1.0)
    made.put(dict.fromkeys(owned(made), cluster.brokers[0].id))
    wait_for("steady averages", lambda: steady(made), seconds=400, every=5.0)
    return made


def steady(of: Scene) -> bool:
    """Say whether the leader's averages, as it wrote them last, are those of steady traffic."""
    bundles = of.snapshot().bundles
    if bundles.averages_estimated.any() or len(bundles) < BUNDLES:
        return False
    averages = np.sort(bundles.short_term_msg_rate_in_per_s)[-BUNDLES:]
    rates = np.array([flow.msg_per_s for flow in of.flows.values()])
    return bool((np.abs(averages / rates - 1) < 0.05).all())


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
    """Gives bundles back to the first broker, between two cycles.

    After some cycles three of those that the leader remembers to have unloaded, which it therefore leaves there; later,
    when it remembers none any more, all of them, so that there is enough to unload.
    """

    def __init__(self, of: Scene, shadow: ShadowWatch) -> None:
        self.scene = of
        self.shadow = shadow
        self.given: set[str] = set()
        self.all_given = False

    def act(self) -> None:
        left_ms = self.shadow.state.rhythm.due_ms - time.time_ns() // 1_000_000
        if not 25_000 < left_ms < 40_000:
            return
        acting = [cycle for cycle in self.shadow.cycles if cycle.actual]
        idle = not any(cycle.acts for cycle in self.shadow.cycles[-2:])
        first = self.scene.cluster.brokers[0].id
        if not self.given and len(acting) >= 5:
            self.give([unload.bundle for cycle in acting for unload in cycle.actual][:3], first)
        elif self.given and not self.all_given and (len(acting) >= 10 or idle):
            self.all_given = True
            self.scene.admin.set_dynamic({"loadBalancerSheddingGracePeriodMinutes": 0})
            self.give([name for name, broker in owned(self.scene).items() if broker != first], first)

    def give(self, bundles: list[str], broker: str) -> None:
        self.given |= set(bundles)
        self.scene.put(dict.fromkeys(bundles, broker))


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
    grace = {"loadBalancerSheddingGracePeriodMinutes": 30}
    with live.settings({**SETTINGS, **grace, name: max(0, int(above) - 2)}):
        watch_cluster(WatchOptions(capture, history, interval_s=5.0, refresh_s=60.0), follow, stop)
    score = shadow.score
    record = ShadowRecord(history / f"cluster={cluster.name}")
    assert record.read() == tuple(shadow.cycles)
    assert read_next(history / f"cluster={cluster.name}") is not None
    assert score.acting >= CYCLES
    assert score.in_time >= 0.8 * CYCLES
    assert score.in_time_right >= 0.95 * score.in_time
    assert score.destinations_right >= 0.9 * score.destinations > 0
    assert operator.all_given
    by_hand = {d.bundle for c in shadow.cycles for d in c.differences if d.cause is Cause.MANUAL}
    assert by_hand == operator.given
