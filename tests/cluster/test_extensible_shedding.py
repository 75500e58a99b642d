"""TransferShedder of a real leader moves what the planner predicts, and to where."""

import json
import time

import pytest

from planner.cluster.load_manager import LoadManager
from planner.pulsar.manager.cycle import next_cycle
from tests.cluster.launch import wait_for
from tests.cluster.raw import rewound
from tests.cluster.scene import ONLY_DIRECT_MEMORY, SHED, Scene

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

SETTINGS = {
    **ONLY_DIRECT_MEMORY,
    "loadBalancerSheddingEnabled": True,
    "loadBalancerSheddingConditionHitCountThreshold": 0,
    "loadBalancerBrokerLoadTargetStd": 0.02,
    "loadBalanceSheddingDelayInSeconds": 1,
}


def captured_at_ms(files: dict[str, bytes]) -> int:
    return int(max(line["time_ms"] for line in json.loads(files["index.json"])))


def test_transfer_shedder(extensible: Scene) -> None:
    heard = extensible.heard
    assert heard is not None
    brokers = {broker.id for broker in extensible.cluster.brokers}
    wait_for("load data of every broker", lambda: heard.brokers() == brokers, seconds=120)
    seen: list[dict[str, bytes]] = []
    start_ms = time.time_ns() // 1_000_000
    owners = extensible.cluster.owners()

    def moving() -> bool:
        seen.append(extensible.raw())
        return bool(heard.released(start_ms))

    with extensible.settings(SETTINGS):
        wait_for("a transfer", moving, seconds=150, every=1.5)
        time.sleep(10)
    began_ms = heard.released(start_ms)[0]["publish_time_ms"]
    last = [files for files in seen if captured_at_ms(files) < began_ms][-1]
    before = rewound(last, heard.content(), began_ms - 1)
    assert before.info.load_manager is LoadManager.EXTENSIBLE
    _, cycle = next_cycle(before, None, before.settings, seed=0)
    expected = {move.bundle: (move.source, move.destination) for move in cycle.shedding.moves}
    now = extensible.cluster.owners()
    both = owners.keys() & now.keys()  # bundles of system topics get owners when they are asked for
    assert {name: (owners[name], now[name]) for name in both if now[name] != owners[name]} == expected
    assert {source for source, _ in expected.values()} >= {extensible.cluster.brokers[0].id}
    assert all(name.startswith(f"{SHED}/") for name in expected)
