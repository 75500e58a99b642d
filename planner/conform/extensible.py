"""Answers vectors about the extensible load manager with the planner's own functions."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from planner.cluster.errors import VectorError
from planner.cluster.hashing import topic_hashes
from planner.cluster.load_manager import LoadManager
from planner.cluster.memory import SheddingMemory
from planner.cluster.pulsar_json import RATES, Json
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.cluster.tables import BrokerTable, TopicTable, make_topics
from planner.conform.load_data import config_of, snapshot_of_load_data
from planner.pulsar.load import broker_load
from planner.pulsar.load.broker_load import BrokerLoadData
from planner.pulsar.load.top_bundles import top_bundles
from planner.pulsar.placement.protocol import Placement
from planner.pulsar.placement.registry import PLACEMENTS
from planner.pulsar.shedding.transfer import SHEDDER, TransferState
from planner.pulsar.shedding.transfer_reasons import UNLOAD_REASONS
from planner.pulsar.splitting import automatic_extensible
from planner.pulsar.splitting.automatic_extensible import SPLIT_REASONS, AutoSplitState, Visit


def broker_load_data(vector: Json) -> Json:
    """Answer a vector of kind `broker_load_data`."""
    config = config_of(vector)
    data = broker_load.fresh(1)
    answers = []
    for now_ms, report in enumerate(vector["input"]["updates"], start=1):
        if report.get("clear"):
            data = broker_load.clear(data)
        else:
            brokers = _snapshot({"brokers": {"broker": report}}, config).brokers
            data = broker_load.update(data, brokers, config, now_ms)
        answers.append(
            {
                "maxResourceUsage": float(data.max_resource_usage[0]),
                "weightedMaxEMA": float(data.weighted_max_ema[0]),
                "msgThroughputEMA": float(data.msg_throughput_ema_bytes_per_s[0]),
            }
        )
    return {"updates": answers}


def _snapshot(load_data: Json, config: Settings, now_ms: int = 0) -> Snapshot:
    return snapshot_of_load_data(load_data, config, load_manager=LoadManager.EXTENSIBLE, now_ms=now_ms)


def top_k_bundles(vector: Json) -> Json:
    """Answer a vector of kind `top_k_bundles`."""
    config = config_of(vector)
    snapshot = _snapshot({"brokers": {"broker": {"lastStats": vector["input"]["bundleStats"]}}}, config)
    names = snapshot.bundle_names
    return {"topBundles": [names[position] for position in top_bundles(snapshot, config)[0]]}


def _load_data(
    known: dict[str, tuple[float, ...]], reports: Mapping[str, Json], brokers: BrokerTable, config: Settings
) -> BrokerLoadData:
    """Update every broker that reports, then set the time of its data to what the vector says.

    Args:
        known: Load data of each broker while the steps of a vector go by; those that report are put in.
        reports: What brokers report in a step.
        brokers: The same as a table.
        config: Settings in force.

    Raises:
        VectorError: An average has become NaN, which means unknown in a snapshot.
    """
    before = broker_load.fresh(len(brokers))
    if before:
        rows = [known.get(name, (1.0, 1.0, 0.0, 0)) for name in brokers.name]
        before = BrokerLoadData(*map(np.array, zip(*rows, strict=True)))
    reporting = np.array([name in reports for name in brokers.name], dtype=bool)
    after = broker_load.clear(broker_load.update(before, brokers, config, 1), ~reporting)
    if np.isnan(after.weighted_max_ema).any() or np.isnan(after.msg_throughput_ema_bytes_per_s).any():
        raise VectorError("Usage or throughput of a broker has no average.", remedy="Record numbers of a broker.")
    updated = np.array([reports.get(name, {}).get("updatedAtMs", 0) for name in brokers.name], dtype=np.int64)
    columns = (after.max_resource_usage, after.weighted_max_ema, after.msg_throughput_ema_bytes_per_s, updated)
    rows_after = zip(*(column.tolist() for column in columns), strict=True)
    known |= {name: row for name, row in zip(brokers.name, rows_after, strict=True) if name in reports}
    return replace(after, updated_at_ms=updated)


def _transfer_snapshot(step: Json, config: Settings, now_ms: int, known: dict[str, tuple[float, ...]]) -> Snapshot:
    top: Mapping[str, Any] = step.get("topBundles", {})
    loads: Mapping[str, Json] = step.get("brokerLoad", {})
    available = step["availableBrokers"]
    brokers = {
        name: {**loads.get(name, {}), "lastStats": {entry["bundle"]: entry for entry in top.get(name, ())}}
        for name in dict.fromkeys([*loads, *available, *top])
    }
    snapshot = _snapshot({"brokers": brokers}, config, now_ms)
    data = _load_data(known, loads, snapshot.brokers, config)
    position = snapshot.bundle_position
    rank = np.full(len(snapshot.bundles), -1, dtype=np.int32)
    for report in top.values():
        for place, entry in enumerate(report):
            rank[position[entry["bundle"]]] = place
    names = snapshot.brokers.name
    return replace(
        snapshot,
        bundles=replace(snapshot.bundles, top_rank=rank),
        brokers=replace(
            snapshot.brokers,
            weighted_max_ema=data.weighted_max_ema,
            msg_throughput_ema_bytes_per_s=data.msg_throughput_ema_bytes_per_s,
            # 0 means unknown in a snapshot; a vector that says 0 means 1970.
            updated_at_ms=np.maximum(data.updated_at_ms, 1),
            has_load_data=np.array([name in loads for name in names], dtype=bool),
            registered=np.array([name in set(available) for name in names], dtype=bool),
        ),
    )


def shedder_transfer(vector: Json) -> Json:
    """Answer a vector of kind `shedder_transfer`: one strategy object lives through its steps."""
    config, now_ms = config_of(vector), vector["input"]["nowMs"]
    known: dict[str, tuple[float, ...]] = {}
    state: TransferState = SHEDDER.initial()
    answers = []
    for step in vector["input"]["steps"]:
        snapshot = _transfer_snapshot(step, config, now_ms, known)
        memory, decision = SHEDDER.decide(
            snapshot,
            SheddingMemory(
                state,
                recently_unloaded_bundles=step.get("recentlyUnloadedBundles", {}),
                recently_unloaded_brokers=step.get("recentlyUnloadedBrokers", {}),
            ),
            config,
        )
        state = memory.state
        decisions = [
            {
                "sourceBroker": move.source,
                "bundle": move.bundle,
                "destBroker": move.destination,
                "reason": UNLOAD_REASONS[move.reason.code],
            }
            for move in decision.moves
        ]
        loaded = [i for i, here in enumerate(snapshot.brokers.has_load_data.tolist()) if here]
        names, brokers = snapshot.brokers.name, snapshot.brokers
        answers.append(
            {
                "decisions": sorted(decisions, key=lambda d: (d["sourceBroker"], d["bundle"])),
                "counters": {
                    name.replace("/", "."): count
                    for name, count in decision.counters.items()
                    if not name.startswith("Success/")
                },
                "unloadConditionHitCount": state.hit_count,
                "recentlyUnloadedBrokersAfter": sorted(memory.recently_unloaded_brokers),
                "loadAvg": state.load_avg,
                "loadStd": state.load_std,
                "weightedMaxEMA": {names[i]: float(brokers.weighted_max_ema[i]) for i in loaded},
                "msgThroughputEMA": {names[i]: float(brokers.msg_throughput_ema_bytes_per_s[i]) for i in loaded},
            }
        )
    return {"steps": answers}


def _topic_table(step: Json, snapshot: Snapshot) -> TopicTable:
    stats: Mapping[str, Json] = step.get("topicStats") or {}
    position = snapshot.bundle_position
    rows = [
        (position[bundle], name)
        for bundle, names in (step.get("bundleTopics") or {}).items()
        if bundle in position
        for name in names
    ]
    names = [name for _, name in rows]

    columns: dict[str, Any] = {
        column: [stats.get(name, {}).get(key, 0.0) for name in names] for key, column in RATES.items()
    }
    return make_topics(
        topic_hashes([name.encode() for name in names]),
        name=pa.array(names, type=pa.large_string()),
        bundle=[bundle for bundle, _ in rows],
        has_stats=[name in stats for name in names],
        **columns,
    )


def auto_split_extensible(vector: Json) -> Json:
    """Answer a vector of kind `auto_split_extensible`: one splitter lives through its steps."""
    config, state = config_of(vector), AutoSplitState()
    answers = []
    for step in vector["input"]["steps"]:
        snapshot = _snapshot({"brokers": {"broker": {"lastStats": step["bundleStats"]}}}, config)
        snapshot = replace(snapshot, topics=_topic_table(step, snapshot))
        counts = step["namespaceBundleCounts"]
        visit = Visit(
            broker=0,
            bundles=np.arange(len(snapshot.bundles)),
            owned=np.array([name not in step["notOwned"] for name in snapshot.bundle_names], dtype=bool),
            bundle_counts=np.array([counts.get(name, 0) for name in snapshot.namespaces], dtype=np.int64),
            splitting=tuple(step["splitting"]),
        )
        state, decision = automatic_extensible.decide(snapshot, visit, state, config)
        answers.append(
            {
                "decisions": sorted(
                    (
                        {
                            "bundle": order.bundle,
                            "reason": SPLIT_REASONS[order.reason.code],
                            "children": [child.rpartition("/")[2] for child in order.children],
                        }
                        for order in decision.splits
                    ),
                    key=lambda found: str(found["bundle"]),
                ),
                "splitConditionHitCounts": dict(state.hit_counts),
                "failures": decision.counters.get("Failure/Unknown", 0),
            }
        )
    return {"steps": answers}


_MODULAR = {one.name for one in PLACEMENTS if one.load_manager is LoadManager.MODULAR}
EXTENSIBLE_PLACEMENTS: Mapping[str, Placement] = {
    f"extensions.{one.name}" if one.name in _MODULAR else one.name: one
    for one in PLACEMENTS
    if one.load_manager is LoadManager.EXTENSIBLE
}
"""The strategies of the extensible load manager as vectors name them."""


def placement_answer(vector: Json) -> Json:
    """Answer a vector of kind `placement` about a strategy of the extensible load manager.

    Raises:
        VectorError: The strategy is another one.
    """
    name = vector["input"]["strategy"]
    strategy = EXTENSIBLE_PLACEMENTS.get(name)
    if strategy is None:
        raise VectorError(
            f"'{name}' is not a placement strategy of the extensible load manager.",
            where=str(vector.get("id", "")),
            remedy=f"Use one of {', '.join(EXTENSIBLE_PLACEMENTS)}.",
        )
    config, state = config_of(vector), strategy.initial()
    answers: list[Json] = []
    for step in vector["input"]["steps"]:
        loads: Mapping[str, Json] = step.get("brokerLoad", {})
        snapshot = _snapshot({"brokers": loads}, config)
        data = broker_load.update(broker_load.fresh(len(loads)), snapshot.brokers, config, 1)
        snapshot = replace(snapshot, brokers=broker_load.write(data, snapshot.brokers))
        state, decision = strategy.select("", step["candidates"], snapshot, state, config, 0)
        if strategy.measure == "turns":
            answers.append({"selected": decision.selected})
            continue
        chosen: Json = {"candidates": sorted(decision.acceptable)} if decision.acceptable else {"selected": None}
        emas = zip(snapshot.brokers.name, data.weighted_max_ema.tolist(), strict=True)
        answers.append({**chosen, "weightedMaxEMA": dict(emas)})
    return {"steps": answers}
