"""Cycles that the leader of a real cluster decided, from the load data it had to the destinations."""

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planner.cluster.memory import SheddingMemory
from planner.cluster.settings import Settings
from planner.cluster.snapshot import IsolationPolicy, Policies, Snapshot
from planner.conform.load_data import snapshot_of_load_data
from planner.pulsar.manager.class_names import in_full
from planner.pulsar.manager.cycle import CycleDecision, next_cycle
from planner.pulsar.manager.leader import LeaderMemory, elected
from planner.pulsar.shedding.avg import AvgState
from planner.pulsar.shedding.registry import shedder_by_name
from planner.pulsar.shedding.threshold import ThresholdState

GOLDENS = sorted((Path(__file__).parents[2] / "goldens" / "recorded_cycles").glob("*.json.gz"))


def recorded(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    return content


def before(case: dict[str, Any]) -> tuple[Snapshot, LeaderMemory, Settings]:
    config = Settings(in_full({**case["config"], "loadBalancerLoadSheddingStrategy": case["strategy"]}))
    snapshot = snapshot_of_load_data(case["loadData"], config, now_ms=case["nowMs"])
    policies = Policies(
        isolation=tuple(
            IsolationPolicy(
                p["name"], tuple(p["namespaces"]), tuple(p["primary"]), tuple(p["secondary"]), p["min_limit"]
            )
            for p in case["isolation"]
        ),
        anti_affinity_group=case["antiAffinity"],
        failure_domains={name: tuple(brokers) for name, brokers in case["failureDomains"].items()},
    )
    snapshot = replace(snapshot, policies=policies, info=replace(snapshot.info, leader=case["leader"]))
    shedder = shedder_by_name(case["strategy"])
    memory = elected(shedder, snapshot.info.load_manager, config)
    state = case["stateBefore"]
    if "brokerAvgResourceUsage" in state:
        remembered: Any = ThresholdState(state["brokerAvgResourceUsage"])
    else:
        remembered = AvgState(
            {b: int(n) for b, n in state["brokerHitCountForHigh"].items()},
            {b: int(n) for b, n in state["brokerHitCountForLow"].items()},
        )
    return snapshot, replace(memory, shedding=SheddingMemory(remembered)), config


def decided(case: dict[str, Any]) -> CycleDecision:
    snapshot, memory, config = before(case)
    return next_cycle(snapshot, memory, config, seed=0)[1]


@pytest.mark.parametrize("path", GOLDENS, ids=lambda path: path.name)
class TestRecordedCycles:
    def test_chooses_the_same_bundles(self, path: Path) -> None:
        case = recorded(path)
        assert decided(case).shedding.unload() == case["chosen"]

    def test_asks_placement_about_the_same_candidates(self, path: Path) -> None:
        case = recorded(path)
        asked = [unload.selection for unload in decided(case).unloads if unload.selection is not None]
        names = list(case["loadData"]["brokers"])
        found = [{names[i] for i in selection.steps[-1].kept.tolist()} for selection in asked]
        assert found == [set(call["candidates"]) for call in case["placements"]]

    def test_sends_them_to_the_same_brokers(self, path: Path) -> None:
        case = recorded(path)
        unloads = [unload for unload in decided(case).unloads if unload.selection is not None]
        for unload, call in zip(unloads, case["placements"], strict=True):
            assert unload.acceptable == (call["result"],)
            stays = call["result"] == unload.move.source
            assert unload.move.destination == (None if stays else call["result"])
            assert unload.carried_out is not stays


def test_all_were_found() -> None:
    assert len(GOLDENS) == 4


def test_anti_affinity_keeps_the_bundle() -> None:
    case = recorded(next(path for path in GOLDENS if "vetoed" in path.name))
    decision = decided(case)
    assert [unload.reason.code.code for unload in decision.unloads] == ["cycle.anti_affinity"]
    assert decision.moves == ()
