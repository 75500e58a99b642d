"""A leader's map of brokers that once held more of them visits those that are left in another order, for good."""

from dataclasses import replace
from typing import Any

import numpy as np

from planner.cluster.hashing import hash_map_order, hash_map_size, java_string_hashes
from planner.cluster.load_manager import LoadManager
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.conform.extensible import _transfer_snapshot
from planner.pulsar.manager.cycle import next_cycle, once_larger

TIED = (
    "broker-30.pulsar.svc:8080",
    "broker-20.pulsar.svc:8080",
    "broker-11.pulsar.svc:8080",
    "broker-39.pulsar.svc:8080",
)
NOW_MS = 1_700_000_000_000
PHRASE = "the order of the leader's map of brokers"


def tied(apart: float = 0.0) -> Snapshot:
    """Two brokers tied as the highest, and two as the lowest, as a step of a recorded case of TransferShedder has them.

    Over a store that once held 12 brokers the official class unloads from broker-30, over one of 11 from broker-20.
    """
    settings = Settings(
        {
            "loadBalancerLoadSheddingStrategy": "TransferShedder",
            "loadBalancerSheddingConditionHitCountThreshold": 0,
            "loadBalancerMaxNumberOfBrokerSheddingPerCycle": 1,
            "loadBalancerHistoryResourcePercentage": 0.0,
        }
    )
    loads: dict[str, Any] = {}
    top: dict[str, Any] = {}
    for at, name in enumerate(TIED):
        busy = at < 2
        size = 5e6 if busy else 5e5
        loads[name] = {
            "cpu": {"usage": (90.0 if busy else 20.0) + apart * at, "limit": 100.0},
            "msgThroughputIn": size,
            "msgThroughputOut": size,
            "updatedAtMs": NOW_MS - 5_000,
        }
        if busy:
            top[name] = [
                {
                    "bundle": f"t/n/0x{8 * at + k:08x}_0x{8 * at + k + 1:08x}",
                    "msgThroughputIn": 1e6 + k / 2,
                    "msgThroughputOut": 1e6 + k / 2,
                }
                for k in range(3)
            ]
    step = {"availableBrokers": list(TIED), "brokerLoad": loads, "topBundles": top}
    made = _transfer_snapshot(step, settings, NOW_MS, {})
    return replace(made, settings=settings, info=replace(made.info, load_manager=LoadManager.EXTENSIBLE))


def test_the_order_is_that_of_the_larger_table() -> None:
    snapshot = tied()
    hashes = java_string_hashes(TIED)
    assert np.array_equal(snapshot.broker_map_order, hash_map_order(hashes, concurrent=True))
    assert np.array_equal(replace(snapshot, most_brokers=11).broker_map_order, snapshot.broker_map_order)
    grown = replace(snapshot, most_brokers=12)
    assert np.array_equal(grown.broker_map_order, hash_map_order(hashes, 32, concurrent=True))
    assert not np.array_equal(grown.broker_map_order, snapshot.broker_map_order)
    for larger in once_larger(snapshot):
        assert larger.broker_table_size(4) in {32, 64}
        assert hash_map_size(larger.most_brokers, concurrent=True) == larger.broker_table_size(4)


def test_the_note_says_that_a_larger_map_would_decide_otherwise() -> None:
    snapshot = tied()
    _, decision = next_cycle(snapshot, None, snapshot.settings, 0)
    here = [(move.source, move.bundle) for move in decision.shedding.moves]
    grown = replace(snapshot, most_brokers=12)
    there = [(m.source, m.bundle) for m in next_cycle(grown, None, grown.settings, 0)[1].shedding.moves]
    assert (here[0][0], there[0][0]) == (TIED[1], TIED[0])
    (note,) = (note for note in decision.notes if PHRASE in note)
    assert f"({there[0][1]} from {there[0][0]}" in note


def test_without_a_tie_there_is_no_such_note() -> None:
    snapshot = tied(apart=1.0)
    _, decision = next_cycle(snapshot, None, snapshot.settings, 0)
    assert decision.shedding.moves
    assert not [note for note in decision.notes if PHRASE in note]
