"""What becomes of chosen bundles, and what a leader remembers, as pages show it."""

import json
from collections import Counter
from typing import Any

import numpy as np
import pytest

from planner.cluster.load_manager import LoadManager
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.explain.decision_tables import (
    before_and_after,
    candidate_frame,
    destination,
    memory_frame,
    moves_frame,
    reason_rows,
    step_lines,
    verdict,
)
from planner.pulsar.manager.class_names import in_full
from planner.pulsar.manager.cycle import CycleDecision, next_cycle
from planner.pulsar.manager.leader import LeaderMemory, memory_to_json
from planner.pulsar.shedding.registry import SHEDDERS
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.generate import generate

EAGER = {
    "loadBalancerBrokerThresholdShedderPercentage": 1,
    "loadBalancerBundleUnloadMinThroughputThreshold": 0.001,
    "minUnloadMessage": 1,
    "minUnloadMessageThroughput": 1,
    "loadBalancerAvgShedderLowThreshold": 1,
    "loadBalancerAvgShedderHitCountLowThreshold": 1,
    "loadBalancerBrokerOverloadedThresholdPercentage": 30,
    "loadBalancerMsgRateDifferenceShedderThreshold": 5.0,
    "loadBalancerBrokerLoadTargetStd": 0.01,
    "loadBalancerSheddingConditionHitCountThreshold": 0,
    "loadBalancerSheddingBundlesWithPoliciesEnabled": True,
}


def busy(shedder: str, **changes: Any) -> tuple[Snapshot, LeaderMemory, CycleDecision]:
    manager = next(s.load_manager for s in SHEDDERS if s.name == shedder)
    spec = ClusterSpec(
        load_manager=manager,
        brokers=6,
        bundles=80,
        topics=300,
        namespaces=8,
        isolated_namespaces=3,
        anti_affinity_namespaces=4,
        ownership_skew=0.8,
    )
    snapshot = generate(spec, 5)
    config = {**EAGER, "loadBalancerLoadSheddingStrategy": shedder, **changes}
    if shedder == "AvgShedder":
        config["loadBalancerLoadPlacementStrategy"] = shedder
    return snapshot, *next_cycle(snapshot, None, Settings(in_full(config)), 1)


@pytest.mark.parametrize("bundles", [False, True])
def test_what_acts_stands_first(*, bundles: bool) -> None:
    snapshot, _, decision = busy("ThresholdShedder")
    acts = [row["moves"] for row in reason_rows(snapshot, decision.shedding.reasons, bundles=bundles)]
    assert len({*acts}) == 2
    assert acts == sorted(acts, reverse=True)


@pytest.mark.parametrize("shedder", [s.name for s in SHEDDERS])
def test_every_chosen_bundle_has_a_row_with_its_fate(shedder: str) -> None:
    snapshot, _, decision = busy(shedder)
    frame = moves_frame(decision)
    assert len(decision.unloads) > 0
    assert frame["bundle"].tolist() == [u.move.bundle for u in decision.unloads]
    for row, unload in zip(frame.to_dict("records"), decision.unloads, strict=True):
        assert (row["to"] == "stays") == (not unload.carried_out)
        assert row["what happens"] == unload.reason.text
        if len(unload.acceptable) > 1 and unload.carried_out:
            assert row["to"].startswith(f"one of {len(unload.acceptable)} brokers: ")
    after = before_and_after(snapshot, decision)
    moved = Counter(u.carried_out for u in decision.unloads)[True]
    assert after["bundles after"].sum() == after["bundles before"].sum()
    assert (after["bundles before"] - after["bundles after"]).clip(lower=0).sum() <= moved
    assert np.isclose(after["MiB/s after"].sum(), after["MiB/s before"].sum())


def test_filters_and_candidates_account_for_every_broker() -> None:
    snapshot, _, decision = busy("ThresholdShedder")
    selections = [u.selection for u in decision.unloads if u.selection is not None]
    assert selections
    for selection in selections:
        assert len(step_lines(snapshot, selection)) == len(selection.steps)
        assert (
            "brokers left" in step_lines(snapshot, selection)[0]
            or "1 broker left" in step_lines(snapshot, selection)[0]
        )
        frame = candidate_frame(snapshot, selection)
        assert set(frame["broker"]) == set(snapshot.brokers.name)
        taken = frame[frame["verdict"] == "taken"]["broker"].tolist()
        assert selection.decision.selected in taken


def test_rules_that_keep_a_bundle_are_named() -> None:
    excluded = busy("ThresholdShedder")[2].unloads[0].move.bundle.rpartition("/")[0]
    _, _, decision = busy("ThresholdShedder", loadBalancerSheddingExcludedNamespaces=excluded)
    kept = [u for u in decision.unloads if not u.carried_out]
    assert any(u.reason.code.code == "cycle.excluded_namespace" for u in kept)
    assert {destination(u) for u in kept} == {"stays"}
    said = verdict(decision, "now")
    assert f"{len(kept)} more bundle" in said
    assert f"sheds {len(decision.moves)} bundle" in said


def leaves(value: Any) -> int:
    """Count what the table should have a row for."""
    if isinstance(value, dict):
        return sum(leaves(v) for k, v in value.items() if k != "kind")
    if isinstance(value, list):
        return len(value) if value and isinstance(value[0], list) else bool(value)
    return bool(value) if not isinstance(value, float) else 1


@pytest.mark.parametrize("shedder", [s.name for s in SHEDDERS])
@pytest.mark.parametrize("placement", ["LeastLongTermMessageRate", "LeastResourceUsageWithWeight"])
def test_memory_table_leaves_nothing_out(shedder: str, placement: str) -> None:
    changes = {} if shedder == "TransferShedder" else {"loadBalancerLoadPlacementStrategy": placement}
    snapshot, memory, decision = busy(shedder, **changes)
    frame = memory_frame(memory)
    assert len(frame) == leaves(json.loads(json.dumps(memory_to_json(memory))))
    unloaded = frame[frame["what"] == "unloaded at"]["of"].tolist()
    assert sorted(unloaded) == sorted(move.bundle for move in decision.moves)
    if snapshot.info.load_manager is LoadManager.MODULAR:
        named = frame[frame["what"] == "named as destination"]
        assert dict(zip(named["of"], named["value"], strict=True)) == {m.bundle: m.destination for m in decision.moves}
