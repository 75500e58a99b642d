"""Answers vectors about split algorithms and about automatic splitting in the modular load manager."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from planner.cluster.errors import PulsarError
from planner.cluster.hashing import topic_hash
from planner.cluster.pulsar_json import Json
from planner.cluster.ranges import format_range, parse_bundle
from planner.cluster.topic_names import full_topic_name
from planner.conform.load_data import config_of, snapshot_of_load_data
from planner.pulsar.splitting import automatic_modular
from planner.pulsar.splitting.factory import apply_split
from planner.pulsar.splitting.protocol import SplitRequest
from planner.pulsar.splitting.registry import split_algorithm


def split_request_of(
    bundle: tuple[int, int], topics: list[str] | None, stats: Mapping[str, Json], **extra: Any
) -> SplitRequest:
    """Build the request for a bundle whose topics and statistics a vector lists.

    Args:
        bundle: Range of the bundle.
        topics: Full topic names, or None when they could not be listed.
        stats: `traffic` of each topic that has some, by name.
        extra: Further fields of the request.
    """
    listed = topics or []
    rows = [stats.get(t) or {} for t in listed]
    return SplitRequest(
        low=bundle[0],
        high=bundle[1],
        topic_hashes=None if topics is None else np.array([topic_hash(t) for t in listed], dtype=np.int64),
        has_stats=np.array([t in stats for t in listed], dtype=np.bool_),
        msg_rate_per_s=np.array([r.get("msgRateIn", 0.0) + r.get("msgRateOut", 0.0) for r in rows], dtype=np.float64),
        throughput_bytes_per_s=np.array(
            [r.get("msgThroughputIn", 0.0) + r.get("msgThroughputOut", 0.0) for r in rows], dtype=np.float64
        ),
        **extra,
    )


def bundle_split(vector: Json) -> Json:
    """Answer a `bundle_split` vector."""
    given = vector["input"]
    _, low, high = parse_bundle(given["bundle"])
    complete = partial(full_topic_name, release=config_of(vector).release)
    names = None if given.get("topics") is None else [complete(t) for t in given["topics"]]
    stats = {complete(t): s for t, s in (given.get("topicStats") or {}).items()}
    positions = given.get("positions")
    request = split_request_of(
        (low, high),
        names,
        stats,
        positions=None if positions is None else tuple(_hash(p) for p in positions),
        force=bool(given.get("force", False)),
    )
    answer: dict[str, Any] = {} if names is None else {"topicHashes": {t: topic_hash(t) for t in names}}
    try:
        cuts = split_algorithm(given["algorithm"]).boundaries(request, config_of(vector)).boundaries
    except PulsarError as error:
        return {**answer, "error": error.exception}
    answer["splitBoundaries"] = None if cuts is None else list(cuts)
    if not cuts:
        return {**answer, "newBundles": None}
    try:
        result = apply_split([_hash(b) for b in given["namespaceBoundaries"]], (low, high), cuts)
    except PulsarError as error:
        return {**answer, "splitError": error.exception}
    answer["newBundles"] = [format_range(*child) for child in result.children]
    answer["namespaceBoundariesAfter"] = [f"0x{b:08x}" for b in result.boundaries]
    return answer


def auto_split_modular(vector: Json) -> Json:
    """Answer an `auto_split_modular` vector."""
    given, config = vector["input"], config_of(vector)
    snapshot = snapshot_of_load_data(given["loadData"], config)
    visit = None
    if given.get("visitInListedOrder"):
        brokers = given["loadData"].get("brokers", {}).values()
        listed = [snapshot.bundle_position[name] for broker in brokers for name in broker.get("lastStats") or ()]
        visit = np.array(listed, dtype=np.int64)
    decision = automatic_modular.decide(snapshot, config, visit=visit, bundle_counts=given["namespaceBundleCounts"])
    return {"bundlesToSplit": {order.bundle: order.broker for order in decision.splits}}


def _hash(value: int | str) -> int:
    return int(value, 16) if isinstance(value, str) else value
