"""Simulations of a small generated cluster."""

from typing import Any

from planner.cluster.load_manager import LoadManager
from planner.cluster.snapshot import Snapshot
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.generate import generate
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario, Step
from planner.simulate.trace import Trace

QUIET = {"loadBalancerSheddingEnabled": False, "loadBalancerAutoBundleSplitEnabled": False}


def small(load_manager: LoadManager = LoadManager.MODULAR, seed: int = 1, **changes: Any) -> Snapshot:
    spec = {"brokers": 5, "bundles": 40, "topics": 400, "namespaces": 4, "ownership_skew": 0.8, **changes}
    return generate(ClusterSpec(load_manager=load_manager, **spec), seed)


def run(snapshot: Snapshot, *edits: Any, cycles: int = 8, **changes: Any) -> Trace:
    return simulate(snapshot, Scenario(steps=tuple(Step(edit) for edit in edits), cycles=cycles, **changes))


def quiet(snapshot: Snapshot, *edits: Any, cycles: int = 8) -> Trace:
    return run(snapshot, *edits, cycles=cycles, settings=QUIET)
