"""More small clusters on public reports of operators: what is said of each, and what is not."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from planner.cluster.snapshot import Snapshot
from tests.app.remedy.operator_reports import CLASS, PLACEMENT, SHEDDING, Asked, bundle, bundles, cluster, isolation

UNIFORM = {SHEDDING: CLASS["UniformLoadShedder"]}
AVG = {SHEDDING: CLASS["AvgShedder"], PLACEMENT: CLASS["AvgShedder"]}
RATE, SIZE = (
    "loadBalancerMsgRateDifferenceShedderThreshold",
    "loadBalancerMsgThroughputMultiplierDifferenceShedderThreshold",
)
HOT = bundles("p/d", (1,) * 8 + (2, 3) * 2, 9.0, msg_per_s=900.0)
EVEN = bundles("p/d", (1, 2, 3) * 6, 3.0)


def with_brokers(made: Snapshot, **columns: Mapping[int, float]) -> Snapshot:
    """Return a cluster with other values of some brokers, by their position."""
    changed: dict[str, Any] = {name: np.array(getattr(made.brokers, name)) for name in columns}
    for name, values in columns.items():
        changed[name][list(values)] = list(values.values())
    return made.with_columns(brokers=replace(made.brokers, **changed))


def slow_network() -> Snapshot:
    limits = dict.fromkeys(range(3), 1e5)
    return with_brokers(cluster(3, EVEN), bandwidth_in_limit_kbit_per_s=limits, bandwidth_out_limit_kbit_per_s=limits)


CLUSTERS: Mapping[str, tuple[Callable[[], Snapshot], str, str]] = {
    "21174 uniform by throughput, placed by rate": (
        lambda: cluster(
            3,
            bundles("big/a", (1,) * 8, 8.0, msg_per_s=10.0) + bundles("small/a", (2, 3) * 8, 0.2, msg_per_s=3e3),
            settings={**UNIFORM, RATE: 0.0, SIZE: 1.1},
            release="3.0.7",
        ),
        "held_by_gate",
        "unload_storm",
    ),
    "18215 a new broker, usage just below the threshold": (
        lambda: cluster(
            6, [r for at in range(1, 6) for r in bundles(f"t/n{at}", (at,) * 8, 5.6)], cpu_percent=(50,) * 5 + (2,)
        ),
        "idle_broker",
        "out_of_capacity",
    ),
    "18215 little used": (
        lambda: cluster(4, bundles("p/d", (1,) * 6 + (2, 3, 4), 1.0), cpu_percent=(12, 2, 1, 1)),
        "",
        "out_of_capacity",
    ),
    "21722 only the network counts": (
        lambda: cluster(3, HOT, settings={"loadBalancerCPUResourceWeight": 0.0}, cpu_percent=(95, 40, 40)),
        "resource_not_counted",
        "threshold_never_reached",
    ),
    "15419 a policy with ports": (
        lambda: cluster(
            3, bundles("vip/a", (None,) * 4) + EVEN, policies=isolation(["b1:8080"], secondary=["b2:8080"])
        ),
        "policy_matches_no_broker",
        "against_policy",
    ),
    "direct memory at its limit": (
        lambda: with_brokers(cluster(3, EVEN), direct_memory_usage_mib={0: 4_000.0}),
        "resource_not_counted",
        "memory_stays",
    ),
    "wrong network speed everywhere": (slow_network, "impossible_measurement", "out_of_capacity"),
    "one bundle and no automatic splits": (
        lambda: cluster(
            3,
            [bundle("p/d", 0, 0xFFFFFFFF, 1, 70.0, topics=30, msg_per_s=2e4)],
            settings={"loadBalancerAutoBundleSplitEnabled": False},
        ),
        "bundle_count_too_low",
        "idle_broker",
    ),
    "a new broker with AvgShedder": (
        lambda: cluster(
            4,
            [r for at in (1, 2, 3) for r in bundles(f"t/n{at}", (at,) * 8, 6.0, msg_per_s=900.0)],
            settings=AVG,
            cpu_percent=(62, 60, 61, 3),
            release="3.0.7",
        ),
        "held_by_gate",
        "class_not_loaded",
    ),
    "TransferShedder below its deviation": (
        lambda: cluster(3, bundles("p/d", (1,) * 7 + (2, 3) * 3, 9.0, msg_per_s=900.0), manager="extensible"),
        "threshold_never_reached",
        "out_of_capacity",
    ),
    "TransferShedder and one topic": (
        lambda: cluster(3, bundles("p/h", (1,), 80.0) + bundles("p/d", (2, 3) * 4, 2.0), manager="extensible"),
        "hot_topic",
        "out_of_capacity",
    ),
    "TransferShedder and bundles with policies": (
        lambda: cluster(
            3,
            bundles("vip/a", (1,) * 8, 9.0) + bundles("p/d", (2, 3) * 3, 1.0),
            manager="extensible",
            policies=isolation(["b1", "b2"]),
        ),
        "held_by_gate",
        "policy_full",
    ),
    "OverloadShedder with a low limit": (
        lambda: cluster(
            3,
            bundles("p/d", (1, 2, 3) * 6, 9.0, msg_per_s=900.0),
            settings={SHEDDING: CLASS["OverloadShedder"], "loadBalancerBrokerOverloadedThresholdPercentage": 50},
        ),
        "out_of_capacity",
        "memory_stays",
    ),
    "no load balancing": (
        lambda: cluster(3, HOT, settings={"loadBalancerEnabled": False}),
        "shedding_off",
        "held_by_gate",
    ),
    "AvgShedder on a release without it": (
        lambda: cluster(3, HOT, settings=AVG, release="3.0.2"),
        "class_not_loaded",
        "fighting_strategies",
    ),
    "thousands of topics in one bundle": (
        lambda: cluster(3, bundles("p/d", (1,), 30.0, topics=5_000, msg_per_s=3e3) + bundles("p/e", (2, 3) * 4, 3.0)),
        "split_cascade",
        "out_of_capacity",
    ),
}


@pytest.mark.parametrize("report", CLUSTERS)
def test_the_cause_is_named_and_nothing_beside_it(report: str) -> None:
    made, cause, other = CLUSTERS[report]
    codes = Asked(made()).codes
    assert not cause or cause in codes
    assert other not in codes
