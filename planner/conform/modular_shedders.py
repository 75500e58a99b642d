"""Answers vectors about the modular shedding strategies."""

from typing import Any

from planner.cluster.decisions import SheddingDecision
from planner.cluster.memory import SheddingMemory
from planner.cluster.pulsar_json import Json
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.conform.load_data import config_of, snapshot_of_load_data
from planner.pulsar.load.usage import weighted_usage
from planner.pulsar.placement.avg import PLACEMENT, PLANNED_DESTINATIONS, Bindings, Plans
from planner.pulsar.shedding import avg, threshold
from planner.pulsar.shedding.protocol import Shedder


def shedding_steps(shedder: Shedder, vector: Json) -> Json:
    """Answer a vector of a modular shedding strategy: one strategy object lives through its steps."""
    config = config_of(vector)
    memory: SheddingMemory[Any] = SheddingMemory(shedder.initial())
    steps: list[Json] = []
    for step in vector["input"]["steps"]:
        data = step["loadData"]
        snapshot = snapshot_of_load_data(data, config)
        recent = dict.fromkeys(data.get("recentlyUnloadedBundles") or (), snapshot.info.captured_at_ms)
        memory = memory.with_state(memory.state, recently_unloaded_bundles=recent)
        memory, decision = shedder.decide(snapshot, memory, config)
        answer: dict[str, Any] = {"unload": decision.unload()}
        if shedder is threshold.SHEDDER:
            answer["brokerAvgResourceUsage"] = dict(memory.state.usage_ema)
        if shedder is avg.SHEDDER:
            answer |= _pairing(snapshot, memory.state, decision, config)
        steps.append(answer)
    return {"steps": steps}


def _pairing(snapshot: Snapshot, state: Any, decision: SheddingDecision, config: Settings) -> Json:
    """Return what of the strategy that pairs brokers is part of the answer: scores, hits, and where it places."""
    plans = {move.bundle: (move.source, move.destination or "") for move in decision.moves}
    bindings = Plans(plans) if config.release.has(PLANNED_DESTINATIONS) else Bindings(state.broker)
    names = snapshot.brokers.name
    scores = weighted_usage(snapshot.brokers, config, snapshot.info.load_manager) * 100
    return {
        "scores": dict(zip(names, scores.tolist(), strict=True)),
        "hitCountHigh": {b: n for b, n in state.hits_high.items() if n},
        "hitCountLow": {b: n for b, n in state.hits_low.items() if n},
        "placements": {
            bundle: PLACEMENT.select(bundle, names, snapshot, bindings, config, 0)[1].selected for bundle in plans
        },
    }
