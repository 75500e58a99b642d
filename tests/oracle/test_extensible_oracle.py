"""Asks Pulsar's own classes about fresh random cases of the extensible load manager.

Needs Java 17 and Maven: `pytest -m oracle`. Another seed: `PLANNER_ORACLE_SEED=7 pytest -m oracle`.
"""

import random
import re
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from planner.cluster.errors import PulsarError
from planner.cluster.pulsar_json import Json
from planner.cluster.settings import Settings
from planner.cluster.snapshot import IsolationPolicy, Policies, Snapshot
from planner.conform import extensible
from planner.conform.extensible import auto_split_extensible, placement_answer, shedder_transfer, top_k_bundles
from planner.pulsar.shedding.transfer import TransferShedder
from tests.oracle.cases import seeded
from tests.oracle.harness import Oracle, check

pytestmark = [pytest.mark.oracle, pytest.mark.timeout(900)]

NOW = 1_700_000_000_000
NAMESPACES = tuple(f"t/n{i}" for i in range(5))


def sometimes(rng: random.Random, chance: float, choices: dict[str, list[Any]]) -> dict[str, Any]:
    return {name: rng.choice(values) for name, values in choices.items() if rng.random() < chance}


def random_bundles(rng: random.Random, brokers: list[str], *, whole: bool) -> dict[str, list[tuple[str, float]]]:
    bundles = {}
    for at, broker in enumerate(brokers):
        count = rng.choice([0, 1, 2, 3, 4, 6, 10])
        choices = [0.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 8.0, 10.0, 20.0, 30.0]
        sizes = sorted(rng.choice(choices) if whole else rng.random() * 30 for _ in range(count))
        ranges = [f"0x{at * 16 + i:08x}_0x{at * 16 + i + 1:08x}" for i in range(count)]
        bundles[broker] = [(f"{rng.choice(NAMESPACES)}/{r}", size) for r, size in zip(ranges, sizes, strict=True)]
    return bundles


def random_transfer_step(
    rng: random.Random, bundles: dict[str, list[tuple[str, float]]], usage: dict[str, float], unit: float
) -> dict[str, Any]:
    loads, top = {}, {}
    for broker, offered in bundles.items():
        total = rng.choice([sum(size for _, size in offered)] * 4 + [50.0]) * unit
        inbound = rng.choice([0.0, 0.5, 1.0]) * total
        loads[broker] = {
            "cpu": {"usage": usage[broker], "limit": 100.0},
            "msgThroughputIn": inbound,
            "msgThroughputOut": total - inbound,
            "updatedAtMs": NOW - rng.choice([0, *[5000] * 24, 1_770_000, 1_802_000]),
        }
        halves = [(name, size * unit / 2) for name, size in offered]
        top[broker] = [{"bundle": name, "msgThroughputIn": half, "msgThroughputOut": half} for name, half in halves]
    everything = [name for offered in bundles.values() for name, _ in offered]
    return {
        "availableBrokers": [b for b in bundles if rng.random() < 0.98],
        "brokerLoad": {b: load for b, load in loads.items() if rng.random() < 0.98},
        "topBundles": {b: report for b, report in top.items() if rng.random() < 0.95},
        "recentlyUnloadedBundles": {name: NOW - 1000 for name in everything if rng.random() < 0.05},
        "recentlyUnloadedBrokers": {
            b: NOW - rng.choice([1000, 185_000, 184_999, 200_000]) for b in bundles if rng.random() < 0.02
        },
    }


def random_transfer(rng: random.Random, number: int) -> dict[str, Any]:
    names = [f"b{i}.x:8080" for i in rng.sample(range(1000), rng.choice([1, 2, 2, 3, 4, 5, 8, 12, 24, 48]))]
    whole = rng.random() < 0.7
    unit = rng.choice([1e6, 1.0, 1e5, 1048576.0, 123456.789])
    usage = {b: float(rng.choice([0, 10, 20, 50, 80, 90, 100, 120])) + (not whole) * rng.random() for b in names}
    bundles = random_bundles(rng, names, whole=whole)
    policies: dict[str, list[Any]] = {
        "isolated": [[name] for name in NAMESPACES],
        "antiAffinity": [[name] for name in NAMESPACES],
        "filterKeeps": [{name: rng.sample(names, rng.randrange(len(names) + 1))} for name in NAMESPACES],
    }
    given = {
        "nowMs": NOW,
        "steps": [random_transfer_step(rng, bundles, usage, unit) for _ in range(rng.choice([1, 1, 2, 3, 5]))],
        **sometimes(rng, 0.3, policies),
        **sometimes(rng, 0.1, {"filterFails": [[name] for name in NAMESPACES]}),
    }
    choices: dict[str, list[Any]] = {
        "loadBalancerBrokerLoadTargetStd": [0.0, 0.05, 0.1, 0.25, 0.5, 2.0],
        "loadBalancerBrokerOverloadedThresholdPercentage": [50, 70, 100],
        "loadBalancerTransferEnabled": [True, False],
        "loadBalancerDebugModeEnabled": [True, False],
        "loadBalancerMaxNumberOfBrokerSheddingPerCycle": [0, 1, 2, 10],
        "loadBalancerSheddingBundlesWithPoliciesEnabled": [True, False],
        "loadBalancerHistoryResourcePercentage": [0.0, 0.5, 1.0, 90.0],
        "loadBalancerSheddingExcludedNamespaces": [[], [], list(NAMESPACES[:2])],
    }
    config = {
        "loadBalancerSheddingConditionHitCountThreshold": rng.choice([0, 0, 0, 0, 1, 2]),
        **sometimes(rng, 0.5, choices),
    }
    return {"kind": "shedder_transfer", "id": f"transfer-{number}", "config": config, "input": given}


def test_transfer_shedder(oracle: Oracle, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = seeded()
    vectors = [random_transfer(rng, number) for number in range(900)]
    plain, asked = extensible._transfer_snapshot, {"input": vectors[0]["input"]}

    def with_policies(*args: Any) -> Snapshot:
        isolated, grouped = (asked["input"].get(name, ()) for name in ("isolated", "antiAffinity"))
        policies = Policies(
            isolation=tuple(IsolationPolicy("p", (re.escape(name),), ("x",)) for name in isolated),
            anti_affinity_group=dict.fromkeys(grouped, "group"),
        )
        return replace(plain(*args), policies=policies)

    def filters(snapshot: Snapshot, config: Settings) -> Callable[[str], frozenset[str]]:
        del config

        def allowed(namespace: str) -> frozenset[str]:
            if namespace in asked["input"].get("filterFails", ()):
                raise PulsarError("BrokerFilterException", "The filter failed.")
            brokers = snapshot.brokers
            registered = {name for name, here in zip(brokers.name, brokers.registered.tolist(), strict=True) if here}
            return frozenset(registered & set(asked["input"].get("filterKeeps", {}).get(namespace, registered)))

        return allowed

    def answer(vector: Json) -> Json:
        asked["input"] = vector["input"]
        return shedder_transfer(vector)

    monkeypatch.setattr(extensible, "SHEDDER", TransferShedder(filters))
    monkeypatch.setattr(extensible, "_transfer_snapshot", with_policies)
    check(oracle, vectors, answer)


def random_split(rng: random.Random, number: int) -> dict[str, Any]:
    cuts = [0, 1, 2, 16, 17, 2**30, 2**31, 2**32 - 2, 2**32 - 1]
    names = []
    for namespace in ("t/n", "t/n1", "t/n10", "t/m"):
        inner = [*rng.sample(cuts[1:-1], rng.randrange(5)), rng.randrange(3, 2**32 - 2)]
        ends = sorted({0, 2**32 - 1, *inner})
        names += [f"{namespace}/0x{a:08x}_0x{b:08x}" for a, b in pairwise(ends)]

    def step() -> dict[str, Any]:
        seen = [name for name in names if rng.random() < 0.85]
        return {
            "bundleStats": {
                name: {
                    "topics": rng.choice([0, 1, 2, 3, 4, 8]),
                    "producerCount": rng.choice([0, 3, 6]),
                    "consumerCount": rng.choice([0, 3, 6]),
                    "msgRateIn": rng.choice([0.0, 4.0, 8.0, 70.0]),
                    "msgRateOut": rng.choice([0.0, 2.0, 8.0]),
                    "msgThroughputIn": rng.choice([0.0, 1e6, 1048576.0, 2e7]),
                    "msgThroughputOut": rng.choice([0.0, 1.0]),
                }
                for name in seen
            },
            "namespaceBundleCounts": {
                n: sum(name.startswith(f"{n}/") for name in names) for n in ("t/n", "t/n1", "t/n10", "t/m")
            },
            "notOwned": [name for name in seen if rng.random() < 0.1],
            "splitting": [name for name in names if rng.random() < 0.06],
            "bundleTopics": {
                name: [f"persistent://{name.rpartition('/')[0]}/{rng.random()}" for _ in range(rng.randrange(5))]
                for name in seen
            },
        }

    config = {
        "loadBalancerNamespaceBundleSplitConditionHitCountThreshold": rng.choice([0, 0, 1, 2]),
        "loadBalancerNamespaceBundleMaxTopics": rng.choice([1, 3, 5]),
        "loadBalancerNamespaceBundleMaxSessions": rng.choice([-1, 0, 5, 10]),
        "loadBalancerNamespaceBundleMaxMsgRate": rng.choice([0, 10, 100]),
        "loadBalancerNamespaceBundleMaxBandwidthMbytes": rng.choice([1, 10, 2048, 4096, -1, 0]),
        "loadBalancerNamespaceMaximumBundles": rng.choice([3, 5, 128]),
        "loadBalancerMaxNumberOfBundlesToSplitPerCycle": rng.choice([0, 1, 2, 10]),
        "defaultNamespaceBundleSplitAlgorithm": rng.choice(
            ["range_equally_divide", "topic_count_equally_divide", "specified_positions_divide", "unheard_of"]
        ),
    }
    steps = [step() for _ in range(rng.choice([1, 2, 4, 6]))]
    return {"kind": "auto_split_extensible", "id": f"split-{number}", "config": config, "input": {"steps": steps}}


def test_automatic_splitting(oracle: Oracle) -> None:
    """Topics need not lie in their bundle: the algorithm and the failing cycle see their hashes only."""
    rng = seeded()
    check(oracle, [random_split(rng, number) for number in range(400)], auto_split_extensible)


def random_report(rng: random.Random, number: int) -> dict[str, Any]:
    spaces = ["t/n", "t/n", "t/m", "pulsar/system", "pulsar/b:1", "sla-monitor/b:80", "ex/x"]
    stats = {
        f"{rng.choice(spaces)}/0x{i * 7919:08x}_0x{i * 7919 + 100:08x}": {
            "msgThroughputIn": rng.choice([0, 0, 49999, 50000, 149999.9, 150000, 1e6, rng.random() * 1e6]),
            "msgThroughputOut": rng.choice([0, 0, 50000, 1e5, 250000, rng.random() * 1e6]),
            "msgRateIn": rng.choice([0, 49.9, 50, 150]),
            "topics": rng.choice([0, 499, 500]),
            "consumerCount": rng.choice([0, 1, 500]),
            "cacheSize": rng.choice([0, 99999, 100000]),
        }
        for i in range(rng.choice([1, 3, 5, 8, 11, 12, 24, 48, 100]))
    }
    config = {
        "loadBalancerMaxNumberOfBundlesInBundleLoadReport": rng.choice([1, 3, 5, 10]),
        "loadBalancerSheddingExcludedNamespaces": rng.choice([[], ["ex/x"]]),
    }
    return {"kind": "top_k_bundles", "id": f"top-{number}", "config": config, "input": {"bundleStats": stats}}


def test_top_bundles(oracle: Oracle) -> None:
    rng = seeded()
    vectors = [random_report(rng, number) for number in range(1500)]
    check(oracle, vectors, top_k_bundles)


def random_placement(rng: random.Random, number: int) -> dict[str, Any]:
    names = [f"b{i}" for i in range(8)]
    turns = rng.random() < 0.5
    steps: list[dict[str, Any]] = []
    candidates = rng.sample(names, 4)
    for _ in range(12 if turns else 3):
        if rng.random() < 0.4:
            candidates = rng.sample(names, rng.choice([len(candidates), rng.randrange(7)]))
        loads = {
            b: {"cpu": {"usage": float(rng.choice([0, 10, 20, 30, 40, 50, 85, 90, 150])), "limit": 100.0}}
            for b in names
            if rng.random() < 0.8
        }
        steps.append({"candidates": candidates, **({} if turns else {"brokerLoad": loads})})
    strategy = "RoundRobinBrokerSelectionStrategy" if turns else "extensions.LeastResourceUsageWithWeight"
    difference = rng.choice([0, 5, 10, 20])
    return {
        "kind": "placement",
        "id": f"placement-{number}",
        "config": {"loadBalancerAverageResourceUsageDifferenceThresholdPercentage": difference},
        "input": {"strategy": strategy, "steps": steps},
    }


def test_placement(oracle: Oracle) -> None:
    rng = seeded()
    check(oracle, [random_placement(rng, number) for number in range(300)], placement_answer)
