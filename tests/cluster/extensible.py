"""What is asked of every cluster with the extensible load manager, whatever its release."""

import json
import time
from pathlib import Path

from planner.capture.options import CaptureOptions
from planner.capture.run import capture_cluster
from planner.cluster.load_manager import LoadManager
from planner.pulsar.manager.cycle import next_cycle
from tests.cluster.launch import wait_for
from tests.cluster.raw import rewound
from tests.cluster.scene import ONLY_DIRECT_MEMORY, SCARCE_FIRST_MIB, SHED, Scene

SETTINGS = {
    **ONLY_DIRECT_MEMORY,
    "loadBalancerSheddingEnabled": True,
    "loadBalancerSheddingConditionHitCountThreshold": 0,
    "loadBalancerBrokerLoadTargetStd": 0.02,
    "loadBalanceSheddingDelayInSeconds": 1,
}


def captured_at_ms(files: dict[str, bytes]) -> int:
    return int(max(line["time_ms"] for line in json.loads(files["index.json"])))


def moves_as_the_leader(scene: Scene) -> None:
    """Let the leader shed, and compare it with what the planner says of the capture before."""
    heard = scene.heard
    assert heard is not None
    brokers = {broker.id for broker in scene.cluster.brokers}
    wait_for("load data of every broker", lambda: heard.brokers() == brokers, seconds=120)
    seen: list[dict[str, bytes]] = []
    start_ms = time.time_ns() // 1_000_000
    owners = scene.cluster.owners()

    def moving() -> bool:
        seen.append(scene.raw())
        return bool(heard.released(start_ms))

    with scene.settings(SETTINGS):
        wait_for("a transfer", moving, seconds=150, every=1.5)
        time.sleep(10)
    began_ms = heard.released(start_ms)[0]["publish_time_ms"]
    last = [files for files in seen if captured_at_ms(files) < began_ms][-1]
    before = rewound(last, heard.content(), began_ms - 1)
    assert before.info.load_manager is LoadManager.EXTENSIBLE
    _, cycle = next_cycle(before, None, before.settings, seed=0)
    expected = {move.bundle: (move.source, move.destination) for move in cycle.shedding.moves}
    now = scene.cluster.owners()
    both = owners.keys() & now.keys()  # bundles of system topics get owners when they are asked for
    assert {name: (owners[name], now[name]) for name in both if now[name] != owners[name]} == expected
    assert {source for source, _ in expected.values()} >= {scene.cluster.brokers[0].id}
    assert all(name.startswith(f"{SHED}/") for name in expected)


def captured_as_answered(scene: Scene, folder: Path, release: str) -> None:
    """Nobody reports loads over the admin API; metrics stand in, which the snapshot says."""
    before = topic_rates(scene)
    snapshot = capture_cluster(CaptureOptions(scene.cluster.brokers[1].url, folder)).snapshot
    after = topic_rates(scene)
    assert snapshot.info.load_manager is LoadManager.EXTENSIBLE
    assert snapshot.info.pulsar_version == snapshot.settings.release.name == release
    assert snapshot.info.leader == scene.admin.leader()
    owners = scene.cluster.owners()
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
    for topic in scene.flows:
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
