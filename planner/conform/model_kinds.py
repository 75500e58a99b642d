"""Answers vectors about hashes, usages and averages."""

from typing import Any

import numpy as np

from planner.cluster.errors import FormatError, PulsarError
from planner.cluster.hashing import partition_index, topic_hash
from planner.cluster.load_manager import LoadManager
from planner.cluster.pulsar_json import RATES, Json
from planner.cluster.ranges import bundle_name, bundle_of_hash, equal_boundaries, format_range
from planner.cluster.releases import Release
from planner.cluster.topic_names import full_topic_name, namespace_of_topic
from planner.conform.load_data import config_of, snapshot_of_load_data
from planner.pulsar.load import averages
from planner.pulsar.load.averages import TimeAverage, Traffic
from planner.pulsar.load.broker_report import bundle_changes, with_report_totals
from planner.pulsar.load.usage import RESOURCES, ResourceWeights, max_usage, usage_percent_by_resource, weighted_usage


def _traffic(stats: Json) -> Traffic:
    return Traffic(**{column: float(stats.get(key, 0.0)) for key, column in RATES.items()})


def _first(traffic: Traffic, key: str) -> float:
    return float(np.asarray(getattr(traffic, RATES[key])).reshape(-1)[0])


def time_average(vector: Json) -> Json:
    """Answer a vector of kind `time_average`."""
    given = vector["input"]
    default = _traffic(given["defaultStats"]) if "defaultStats" in given else None
    short = averages.start(1, given["shortSamples"], default)
    long = averages.start(1, given["longSamples"], default)
    answers = [_both(0, 0, short, long)]
    for taken, sample in enumerate(given["samples"], start=1):
        traffic = _traffic(sample)
        short, long = averages.update(short, traffic), averages.update(long, traffic)
        answers.append(_both(taken, int(sample.get("topics", 0)), short, long))
    return {"checkpoints": [answers[taken] for taken in given["checkpoints"]]}


def _both(taken: int, topics: int, short: TimeAverage, long: TimeAverage) -> Json:
    def one(average: TimeAverage) -> Json:
        values = {key: _first(average.traffic, key) for key in RATES}
        return {"maxSamples": average.max_samples, "numSamples": int(average.samples[0]), **values}

    return {
        "afterSamples": taken,
        "topics": topics,
        "shortTermData": one(short),
        "longTermData": one(long),
        "longTermTotalMsgRate": _first(long.traffic, "msgRateIn") + _first(long.traffic, "msgRateOut"),
        "longTermTotalMsgThroughput": _first(long.traffic, "msgThroughputIn")
        + _first(long.traffic, "msgThroughputOut"),
    }


def broker_time_average(vector: Json) -> Json:
    """Answer a vector of kind `broker_time_average`."""
    given = vector["input"]
    load_data = {
        "brokers": {"broker": {"lastStats": {bundle: {} for bundle in given["bundles"]}}},
        "bundleData": given["bundleData"],
    }
    snapshot = snapshot_of_load_data(load_data, config_of(vector))
    sums = averages.broker_averages(snapshot, _traffic(given["defaultStats"]))
    return {
        f"{term}TermM{key[1:]}": float(sums[f"{term}_term_{column}"][0])
        for term in ("short", "long")
        for key, column in RATES.items()
    }


def resource_usage(vector: Json) -> Json:
    """Answer a vector of kind `resource_usage`."""
    given, config = vector["input"], config_of(vector)
    snapshot = snapshot_of_load_data({"brokers": {"broker": {**given, "bundles": ()}}}, config)
    brokers = snapshot.brokers
    percents = usage_percent_by_resource(brokers)[:, 0].astype(np.float64).tolist()
    weights = ResourceWeights.of(config, LoadManager.MODULAR)
    answer: dict[str, Any] = {
        "percentUsage": dict(zip(RESOURCES, percents, strict=True)),
        "maxResourceUsage": float(max_usage(brokers, LoadManager.MODULAR)[0]),
        "maxResourceUsageWithWeight": float(weighted_usage(brokers, config, LoadManager.MODULAR)[0]),
        "effectiveBandwidthInWeight": weights.bandwidth_in,
        "effectiveBandwidthOutWeight": weights.bandwidth_out,
    }
    if "lastStats" not in given:
        return answer
    totals = with_report_totals(snapshot)
    gains, losses = bundle_changes(given.get("bundles", ()), given["lastStats"])
    return {
        **answer,
        "totals": {
            **{key: float(getattr(totals, column)[0]) for key, column in RATES.items()},
            "numTopics": int(totals.topics[0]),
            "numBundles": int(totals.reported_bundles[0]),
            "numConsumers": int(totals.consumers[0]),
            "numProducers": int(totals.producers[0]),
        },
        "bundlesSorted": sorted(given["lastStats"]),
        "lastBundleGainsSorted": sorted(gains),
        "lastBundleLossesSorted": sorted(losses),
    }


def topic_to_bundle(vector: Json) -> Json:
    """Answer a vector of kind `topic_to_bundle`."""
    given = vector["input"]
    namespace: str = given["namespace"]
    decides = config_of(vector).release
    if "boundaries" in given:
        boundaries = tuple(int(b, 16) if isinstance(b, str) else b for b in given["boundaries"])
    else:
        boundaries = equal_boundaries(given["numBundles"])
    return {
        "boundaries": [f"0x{b:08x}" for b in boundaries],
        "numBundles": len(boundaries) - 1,
        "assignments": [_assignment(topic, namespace, boundaries, decides) for topic in given["topics"]],
    }


def _assignment(topic: str, namespace: str, boundaries: tuple[int, ...], decides: Release) -> Json:
    try:
        name = full_topic_name(topic, release=decides)
    except FormatError:
        return {"topic": topic, "error": "IllegalArgumentException"}
    place = topic_hash(name)
    answer = {"topic": topic, "fullName": name, "partitionIndex": partition_index(name), "hash": place}
    if namespace_of_topic(name, decides) != namespace:
        return {**answer, "error": "IllegalArgumentException"}
    try:
        index = bundle_of_hash(boundaries, place)
    except PulsarError as error:
        return {**answer, "error": error.exception}
    low, high = boundaries[index : index + 2]
    return {**answer, "bundle": bundle_name(namespace, low, high), "bundleRange": format_range(low, high)}
