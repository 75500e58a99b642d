"""Answers vectors about placement strategies."""

from dataclasses import replace
from typing import Any

import numpy as np

from planner.cluster.errors import SettingError, VectorError
from planner.cluster.load_manager import LoadManager
from planner.cluster.pulsar_json import Json
from planner.cluster.snapshot import Snapshot
from planner.conform.extensible import EXTENSIBLE_PLACEMENTS, placement_answer
from planner.conform.load_data import config_of, snapshot_of_load_data
from planner.pulsar.placement.least_long_term_message_rate import Preallocated
from planner.pulsar.placement.least_resource_usage import UsageAverages
from planner.pulsar.placement.registry import PLACEMENTS, placement_by_name


def placement(vector: Json) -> Json:
    """Answer a vector of kind `placement`: one strategy object lives through its steps.

    Raises:
        VectorError: The strategy is unknown.
    """
    name: str = vector["input"]["strategy"]
    if name in EXTENSIBLE_PLACEMENTS:
        return placement_answer(vector)
    try:
        strategy = placement_by_name(name, LoadManager.MODULAR)
    except SettingError as error:
        known = [p.name for p in PLACEMENTS if p.load_manager is LoadManager.MODULAR]
        remedy = f"Use one of {', '.join((*known, *EXTENSIBLE_PLACEMENTS))}."
        raise VectorError(f"Unknown strategy '{name}'.", where=str(vector.get("id", "")), remedy=remedy) from error
    config, state = config_of(vector), strategy.initial()
    steps: list[Json] = []
    for step in vector["input"]["steps"]:
        data: Json = step.get("loadData", {})
        if isinstance(state, UsageAverages) and "activeBrokers" in step:
            state = state.of_active(step["activeBrokers"])
        if isinstance(state, Preallocated):
            state = Preallocated({b: tuple(d.get("preallocatedBundles", ())) for b, d in data["brokers"].items()})
        snapshot = _known_averages(snapshot_of_load_data(data, config))
        state, decision = strategy.select(step.get("bundle", ""), step["candidates"], snapshot, state, config, 0)
        answer: dict[str, Any] = {}
        if strategy.measure == "turns" or not decision.acceptable:
            answer["selected"] = decision.selected
        else:
            answer["candidates"] = sorted(decision.acceptable)
        if isinstance(state, UsageAverages):
            answer["brokerAvgResourceUsageWithWeight"] = dict(state.usage)
        steps.append(answer)
    return {"steps": steps}


def _known_averages(snapshot: Snapshot) -> Snapshot:
    """Return a vector's snapshot with the averages of brokers that it leaves out: they are 0, not unknown."""
    known = {
        column: np.nan_to_num(getattr(snapshot.brokers, column))
        for column in ("long_term_msg_rate_in_per_s", "long_term_msg_rate_out_per_s")
    }
    return replace(snapshot, brokers=replace(snapshot.brokers, **known))
