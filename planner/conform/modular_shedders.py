"""Answers vectors about the modular shedding strategies."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from planner.cluster.memory import SheddingMemory
from planner.cluster.pulsar_json import Json
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.conform.load_data import config_of, snapshot_of_load_data
from planner.pulsar.load.usage import weighted_usage
from planner.pulsar.placement.avg import PLACEMENT, PLANNED_DESTINATIONS, Bindings, Plans
from planner.pulsar.shedding import avg, overload, threshold, uniform
from planner.pulsar.shedding.protocol import Shedder


def _threshold_memory(memory: SheddingMemory[Any], snapshot: Snapshot, config: Settings) -> Json:
    del snapshot, config
    return {"brokerAvgResourceUsage": dict(memory.state.usage_ema)}


def _avg_memory(memory: SheddingMemory[Any], snapshot: Snapshot, config: Settings) -> Json:
    scores = weighted_usage(snapshot.brokers, config, snapshot.info.load_manager) * 100
    return {
        "scores": dict(zip(snapshot.brokers.name, scores.tolist(), strict=True)),
        "hitCountHigh": {b: n for b, n in memory.state.hits_high.items() if n},
        "hitCountLow": {b: n for b, n in memory.state.hits_low.items() if n},
    }


def _nothing(memory: SheddingMemory[Any], snapshot: Snapshot, config: Settings) -> Json:
    del memory, snapshot, config
    return {}


def shedding_steps(
    vector: Json, shedder: Shedder, remembered: Callable[[SheddingMemory[Any], Snapshot, Settings], Json]
) -> Json:
    """Answer a vector of a modular shedding strategy: one strategy object lives through its steps.

    Args:
        vector: The vector; its `expected` is not read.
        shedder: The strategy.
        remembered: What of its memory is part of the answer.
    """
    config = config_of(vector)
    memory: SheddingMemory[Any] = SheddingMemory(shedder.initial())
    steps: list[Json] = []
    for step in vector["input"]["steps"]:
        data = step["loadData"]
        snapshot = snapshot_of_load_data(data, config)
        recent = dict.fromkeys(data.get("recentlyUnloadedBundles") or (), snapshot.info.captured_at_ms)
        memory = memory.with_state(memory.state, recently_unloaded_bundles=recent)
        memory, decision = shedder.decide(snapshot, memory, config)
        answer: dict[str, Any] = {"unload": decision.unload(), **remembered(memory, snapshot, config)}
        if shedder is avg.SHEDDER:
            plans = {move.bundle: (move.source, move.destination or "") for move in decision.moves}
            planned = config.release.has(PLANNED_DESTINATIONS)
            bindings = Plans(plans) if planned else Bindings(memory.state.broker)
            answer["placements"] = {
                move.bundle: PLACEMENT.select(move.bundle, snapshot.brokers.name, snapshot, bindings, config, 0)[
                    1
                ].selected
                for move in decision.moves
            }
        steps.append(answer)
    return {"steps": steps}


ANSWERS: Mapping[str, Callable[[Json], Json]] = {
    "shedder_overload": partial(shedding_steps, shedder=overload.SHEDDER, remembered=_nothing),
    "shedder_threshold": partial(shedding_steps, shedder=threshold.SHEDDER, remembered=_threshold_memory),
    "shedder_uniform": partial(shedding_steps, shedder=uniform.SHEDDER, remembered=_nothing),
    "shedder_avg": partial(shedding_steps, shedder=avg.SHEDDER, remembered=_avg_memory),
}
