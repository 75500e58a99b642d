"""Asks Pulsar's own classes about fresh random splits, by algorithm, by the modular leader and by hand.

Needs Java 17 and Maven: `pytest -m oracle`. Another seed: `PLANNER_ORACLE_SEED=7 pytest -m oracle`.
"""

import random
from itertools import pairwise
from typing import Any
from urllib.parse import quote_plus

import numpy as np
import pyarrow as pa
import pytest

from planner.cluster.hashing import topic_hash
from planner.cluster.load_manager import LoadManager
from planner.cluster.pulsar_json import Json
from planner.cluster.ranges import bundles_of_hashes, equal_boundaries, format_range
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot, SnapshotInfo
from planner.cluster.tables import make_brokers, make_bundles, make_topics
from planner.conform import model_kinds, splits
from planner.pulsar.splitting.manual import SplitCommand, Verdict, answer
from tests.oracle.cases import seeded
from tests.oracle.harness import Oracle, check

pytestmark = [pytest.mark.oracle, pytest.mark.timeout(900)]

ALGORITHMS = [
    "range_equally_divide",
    "topic_count_equally_divide",
    "specified_positions_divide",
    "flow_or_qps_equally_divide",
]


def some_boundaries(rng: random.Random) -> tuple[int, ...]:
    return rng.choice([*map(equal_boundaries, (1, 2, 3, 4, 7, 16)), (0, 5, 6, 2**31, 2**32 - 2, 2**32 - 1)])


def hexadecimal(boundaries: tuple[int, ...]) -> list[str]:
    return [f"0x{boundary:08x}" for boundary in boundaries]


def random_split(rng: random.Random, number: int) -> dict[str, Any]:
    """Topics need not lie in their bundle: algorithms see their hashes only."""
    edges = some_boundaries(rng)
    at = rng.randrange(len(edges) - 1)
    low, high = edges[at : at + 2]
    topics = [f"persistent://t/n/x{rng.randrange(10**6)}" for _ in range(rng.choice([0, 1, 2, 3, 5, 9, 20]))]
    topics += rng.choices(topics, k=2) if topics and rng.random() < 0.2 else []
    # Small numbers, and numbers whose sum depends on the order of adding.
    rates = rng.choice([[0.0, 5.0, 10.0, rng.random() * 30], [0.0, -1.5, 2.0**53, 1.0, 3.0, rng.random() * 1e16]])
    positions = [
        None,
        [],
        [low, high],
        [low + 1, high - 1],
        [low + 2] * 2,
        [rng.randrange(-5, 2**33) for _ in range(3)],
    ]
    algorithm = rng.choice([*ALGORITHMS, "flow_or_qps_equally_divide"])
    return {
        "kind": "bundle_split",
        "id": f"split-{number}",
        "config": {
            "loadBalancerNamespaceBundleMaxMsgRate": rng.choice([0, 10, 20, 50, 100, 2**31 - 1, -1]),
            "loadBalancerNamespaceBundleMaxBandwidthMbytes": rng.choice([0, 1, 2, 100, 4096, 2**31 - 1]),
            "flowOrQpsDifferenceThresholdPercentage": rng.choice([0, 10, 25, 50, 100, 1000]),
        },
        "input": {
            "algorithm": algorithm,
            "bundle": f"t/n/{format_range(low, high)}",
            "namespaceBoundaries": hexadecimal(edges),
            "topics": None if rng.random() < 0.05 else topics,
            "topicStats": {
                name: {
                    key: rng.choice(rates) for key in ("msgRateIn", "msgRateOut", "msgThroughputIn", "msgThroughputOut")
                }
                for name in topics
                if rng.random() < 0.9
            },
            "positions": rng.choice(positions),
            "force": algorithm == "specified_positions_divide" and rng.random() < 0.3,
        },
    }


def random_cycle(rng: random.Random, number: int) -> dict[str, Any]:
    namespaces = [f"t/n{i}" for i in range(rng.randrange(1, 4))]
    names = [f"{n}/{format_range(*ends)}" for n in namespaces for ends in pairwise(some_boundaries(rng))]
    rng.shuffle(names)
    brokers: dict[str, Any] = {f"b{i}:8080": {"lastStats": {}} for i in rng.sample(range(1000), rng.randrange(1, 7))}
    for name in names:
        stats = {"topics": rng.choice([0, 1, 2, 3, 5, 9]), "producerCount": rng.randrange(6)}
        brokers[rng.choice(list(brokers))]["lastStats"][name] = {**stats, "consumerCount": rng.randrange(6)}
    long_term: dict[str, list[float]] = {
        "msgRateIn": [0, 5, 50],
        "msgRateOut": [0, 5],
        "msgThroughputIn": [0, 524288, 3e6],
    }
    return {
        "kind": "auto_split_modular",
        "id": f"cycle-{number}",
        "config": {
            "loadBalancerNamespaceBundleMaxTopics": rng.choice([-1, 0, 2, 4, 1000]),
            "loadBalancerNamespaceBundleMaxSessions": rng.choice([-1, 0, 1, 5, 1000]),
            "loadBalancerNamespaceBundleMaxMsgRate": rng.choice([5, 10, 30000]),
            "loadBalancerNamespaceBundleMaxBandwidthMbytes": rng.choice([0, 1, 2, 100, 2047, 2048, 4096, -1]),
            "loadBalancerNamespaceMaximumBundles": rng.choice([0, 5, 10, 20, 128]),
        },
        "input": {
            "loadData": {
                "brokers": brokers,
                "bundleData": {
                    name: {"longTermData": {key: rng.choice(values) for key, values in long_term.items()}}
                    for name in names
                    if rng.random() < 0.8
                },
            },
            "namespaceBundleCounts": {name: rng.choice([1, 4, 9, 15]) for name in namespaces},
            "visitInListedOrder": True,
        },
    }


def random_samples(rng: random.Random, number: int) -> dict[str, Any]:
    def stats() -> dict[str, float]:
        keys = ("msgRateIn", "msgRateOut", "msgThroughputIn", "msgThroughputOut")
        return {"topics": rng.randrange(9), **{key: rng.choice([0, 1, -5, rng.random() * 1e5]) for key in keys}}

    count = rng.randrange(40)
    return {
        "kind": "time_average",
        "id": f"samples-{number}",
        "config": {},
        "input": {
            "shortSamples": rng.choice([1, 2, 10]),
            "longSamples": rng.choice([1, 5, 1000]),
            "samples": [stats() for _ in range(count)],
            "checkpoints": list(range(count + 1)),
            **({"defaultStats": stats()} if rng.random() < 0.5 else {}),
        },
    }


def random_command(rng: random.Random, number: int) -> dict[str, Any]:
    edges = some_boundaries(rng)
    low, high = rng.choice(list(pairwise(edges)))
    ranges = [format_range(*ends) for ends in pairwise(edges)]
    locals_ = {f"{rng.choice(['x', 'ü ', '~a', 'A', 'a*', 'z-', '_'])}{rng.randrange(10**6)}" for _ in range(12)}
    # As the metadata store lists them: by their encoded names.
    ordered = sorted(locals_, key=lambda name: quote_plus(name, safe="*").replace("~", "%7E"))
    topics = [f"persistent://t/n/{name}" for name in ordered[: rng.choice([0, 1, 2, 4, 8, 12])]]
    middle = (low + high) // 2
    return {
        "kind": "manual_split",
        "id": f"command-{number}",
        "config": {
            "defaultNamespaceBundleSplitAlgorithm": rng.choice([*ALGORITHMS, *ALGORITHMS, "unheard_of"]),
            "loadBalancerNamespaceBundleMaxMsgRate": rng.choice([10, 20, 50, 30000]),
            "supportedNamespaceBundleSplitAlgorithms": rng.choice(
                [ALGORITHMS, ALGORITHMS, rng.sample([*ALGORITHMS, "unheard_of"], rng.randrange(5))]
            ),
        },
        "input": {
            "loadManager": rng.choice(["modular", "extensible"]),
            "namespace": "t/n",
            "boundaries": hexadecimal(edges),
            "bundle": rng.choice(
                [*[format_range(low, high)] * 6, "LARGEST", "LARGEST", "HOT", "HOT", "x", "0x00000000_0x00000001"]
            ),
            "algorithm": rng.choice([None, None, "", " ", "unheard_of", *ALGORITHMS, *ALGORITHMS, *ALGORITHMS]),
            "positions": rng.choice(
                [None, None, [], [low], [low + 1], [middle], [middle] * 2, [low + 1, high - 1], [7, high]]
            ),
            "topics": topics,
            "topicStats": {t: {"msgRateIn": rng.choice([0, 3, 8, 9, 30])} for t in topics if rng.random() < 0.9},
            "bundleData": {
                name: [rng.choice([0, 1, 3]), rng.choice([0, 1, 5, 9]), 0] for name in ranges if rng.random() < 0.8
            },
        },
    }


def cluster(given: Any, config: Settings, rng: random.Random) -> Snapshot:
    edges = [int(boundary, 16) for boundary in given["boundaries"]]
    ranges = [format_range(*ends) for ends in pairwise(edges)]
    names: list[str] = rng.sample(given["topics"], len(given["topics"]))
    hashes = np.array([topic_hash(name) for name in names], dtype=np.int64)
    topics = make_topics(
        hashes.astype(np.uint32),
        name=pa.array(names, pa.large_string()),
        bundle=bundles_of_hashes(np.array(edges), hashes),
        has_stats=[name in given["topicStats"] for name in names],
        msg_rate_in_per_s=[given["topicStats"].get(name, {}).get("msgRateIn", 0.0) for name in names],
    )
    data = [given["bundleData"].get(name) for name in ranges]
    bundles = make_bundles(
        edges[:-1],
        high=edges[1:],
        namespace=0,
        owner=0,
        has_data=[row is not None for row in data],
        data_topics=[row[0] if row else 0 for row in data],
        long_term_msg_throughput_in_bytes_per_s=[row[1] if row else 0.0 for row in data],
    )
    info = SnapshotInfo("test", LoadManager(given["loadManager"]), 0)
    return Snapshot(info, config, make_brokers(["b1:8080"]), ("t/n",), bundles, topics)


def manual(case: Json, rng: random.Random) -> Json:
    given, config = case["input"], Settings(case["config"])
    positions = None if given["positions"] is None else tuple(given["positions"])
    command = SplitCommand("t/n", given["bundle"], given["algorithm"] or "", positions)
    outcome = answer(cluster(given, config, rng), command, config)
    if outcome.verdict is not Verdict.SPLIT:
        return {"status": outcome.status}
    if given["loadManager"] == "modular":
        return {"accepted": outcome.bundle}
    return {"accepted": outcome.bundle, "children": sorted(child.rpartition("/")[2] for child in outcome.children)}


def test_algorithms_and_factory(oracle: Oracle) -> None:
    rng = seeded()
    check(oracle, [random_split(rng, number) for number in range(1500)], splits.bundle_split)


def test_automatic_splitting(oracle: Oracle) -> None:
    rng = seeded()

    def decide(case: Json) -> Json:
        found = splits.auto_split_modular(case)
        return {**found, "order": list(found["bundlesToSplit"])}

    check(oracle, [random_cycle(rng, number) for number in range(1500)], decide)


def test_averages(oracle: Oracle) -> None:
    rng = seeded()
    check(oracle, [random_samples(rng, number) for number in range(300)], model_kinds.time_average)


def test_manual_splits(oracle: Oracle) -> None:
    """The snapshot may list topics in any order."""
    rng = seeded()
    check(oracle, [random_command(rng, number) for number in range(500)], lambda case: manual(case, rng))
