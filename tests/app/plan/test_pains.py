"""The known pains of operators: of each a cluster that has it, whose diagnosis names the right cause and remedy."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pytest

from planner.cluster.hashing import topic_hashes
from planner.cluster.load_manager import LoadManager
from planner.cluster.settings import Settings
from planner.cluster.snapshot import DispatchRate, DispatchRatePolicy, Policies, Snapshot
from planner.cluster.tables import make_topics
from planner.explain.diagnosis import diagnose
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.generate import generate
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario
from planner.workspace.samples import load_sample, samples
from tests.app.simulate.traces import MB, START_MS, cluster

SHEDDING = "loadBalancerLoadSheddingStrategy"
PLACEMENT = "loadBalancerLoadPlacementStrategy"
EVENLY = "loadBalancerDistributeBundlesEvenlyEnabled"
SPLIT_BY = "defaultNamespaceBundleSplitAlgorithm"
MAX_TOPICS = "loadBalancerNamespaceBundleMaxTopics"
DAY_MS = 86_400_000


def sample(file: str) -> Snapshot:
    return load_sample(next(one for one in samples() if one.file == file))


def made(settings: Mapping[str, Any], **spec: Any) -> Snapshot:
    """A generated cluster of one namespace under other settings."""
    snapshot = generate(ClusterSpec(namespaces=1, **spec), 5)
    return replace(snapshot, settings=Settings({**snapshot.settings.overrides, **settings}))


def idle_one() -> Snapshot:
    view = cluster([0.4, 0.4, 0.4, 0.05], {0: (20, 20), 1: (20, 20), 2: (20, 20), 3: ()})
    started = np.array([START_MS - 30 * DAY_MS] * 3 + [START_MS - 600_000])
    return replace(view, brokers=replace(view.brokers, started_at_ms=started))


def wrong_speed() -> Snapshot:
    view = cluster([0.5, 0.5, 0.5])
    speed = np.array([1e7, 1e6, 1e7])
    brokers = replace(view.brokers, bandwidth_in_limit_kbit_per_s=speed, bandwidth_out_limit_kbit_per_s=speed)
    return replace(view, brokers=brokers)


def limited(share: float) -> Snapshot:
    """Two partitions under a limit of 1 MiB/s for each, dispatched at a share of it."""
    names = pa.array([f"persistent://acme/orders/t-partition-{i}" for i in range(2)], type=pa.large_string())
    hashes = topic_hashes(names.cast(pa.large_binary()).to_pylist(), 2)
    out = np.full(2, MB * share)
    topics = make_topics(
        hashes,
        name=names,
        bundle=np.zeros(2, np.int32),
        msg_rate_out_per_s=out / 1000,
        msg_throughput_out_bytes_per_s=out,
    )
    limit = DispatchRate(msg_per_period=-1, bytes_per_period=MB, period_s=1)
    policies = Policies(dispatch_rates=(DispatchRatePolicy("dispatch", "acme/orders", limit),))
    config = Settings({"dispatchThrottlingOnNonBacklogConsumerEnabled": True})
    return replace(cluster([0.5, 0.5], {0: (4, 4), 1: (4, 4)}), topics=topics, policies=policies, settings=config)


PAINS: Final[Mapping[str, tuple[Callable[[], Snapshot], str, str]]] = {
    "1 unload storm": (
        lambda: cluster([0.95, 0.96, 0.97], settings={SHEDDING: "OverloadShedder"}),
        "out_of_capacity",
        "Even in perfect balance, each would use",
    ),
    "2 ping-pong": (
        lambda: sample("threshold-lower-boundary.json"),
        "ping_pong",
        "had received as much from shedding within",
    ),
    "3 idle broker": (idle_one, "idle_broker", "b4:8080 joined or came back"),
    "4 never sheds, as everybody is full": (
        lambda: cluster([0.93, 0.88, 0.86]),
        "out_of_capacity",
        "No strategy or threshold can fix this",
    ),
    "5 averages": (lambda: sample("pip-364.json"), "ema_lag", "half of a change takes"),
    "6 random fallback": (
        lambda: cluster(
            [0.75, 0.55, 0.55, 0.55],
            dict.fromkeys(range(4), (100, 50, 50)),
            settings={PLACEMENT: "LeastResourceUsageWithWeight", EVENLY: False},
        ),
        "drawn_at_random",
        "on average, a broker above the average usage had a",
    ),
    "7 strategies that fight": (
        lambda: cluster(
            [0.9, 0.7, 0.2],
            {0: (20, 20, 20), 1: (20, 20), 2: (5,)},
            rates={0: (100, 100, 100), 1: (10, 10), 2: (90_000,)},
            settings={EVENLY: False},
        ),
        "fighting_strategies",
        "Shedding compares",
    ),
    "8 threshold": (lambda: cluster([0.56, 0.48, 0.40]), "threshold_never_reached", "the threshold"),
    "9 too few bundles": (
        lambda: made({}, brokers=8, bundles=4, topics=500, topic_skew=0.2),
        "bundle_count_too_low",
        "Split its bundles, for example into",
    ),
    "10 splits up to the most there may be": (
        lambda: made({MAX_TOPICS: 104}, brokers=4, bundles=126, topics=12_600, msg_rate_per_s=1000),
        "split_cascade",
        f"exceed {MAX_TOPICS}: its bundles may hold many topics",
    ),
    "11 refused split": (
        lambda: made(
            {SPLIT_BY: "flow_or_qps_equally_divide", "loadBalancerNamespaceBundleMaxMsgRate": 1000},
            brokers=3,
            bundles=6,
            topics=60,
            msg_rate_per_s=400_000,
            load_manager=LoadManager.EXTENSIBLE,
        ),
        "split_refused",
        "can only split a bundle in two",
    ),
    "12 hot topic": (
        lambda: made({}, brokers=4, bundles=16, topics=200, topic_skew=3, msg_rate_per_s=200_000, partitioned=0),
        "hot_topic",
        "create-partitioned-topic persistent://",
    ),
    "13 clients": (
        lambda: cluster([0.9, 0.1, 0.1], {0: (10,) * 30, 1: (10,), 2: (10,)}),
        "clients_cut_off",
        "By namespace: acme/orders",
    ),
    "14 wrong speed of a network": (
        wrong_speed,
        "unlike_machines",
        "outbound network 1 Gbit/s on b2:8080, 10 Gbit/s on others",
    ),
    "15 throttling": (lambda: limited(1.0), "throttled", "2 topics at 90 % of the limit or more"),
}


@pytest.mark.parametrize("pain", PAINS)
def test_the_cause_is_named(pain: str) -> None:
    build, code, words = PAINS[pain]
    found = {finding.code: finding for finding in diagnose(simulate(build(), Scenario()))}
    assert code in found, list(found)
    assert words in f"{found[code].evidence} {found[code].remedy}"


def test_a_cluster_that_was_started_as_a_whole_has_no_idle_broker() -> None:
    view = idle_one()
    fresh = replace(view.brokers, started_at_ms=np.full(4, START_MS - 600_000))
    calm = cluster([0.06, 0.06, 0.06, 0.01], {0: (20, 20), 1: (20, 20), 2: (20, 20), 3: ()})
    calm = replace(calm, brokers=replace(calm.brokers, started_at_ms=view.brokers.started_at_ms))
    for snapshot in (replace(view, brokers=fresh), calm):
        assert "idle_broker" not in {finding.code for finding in diagnose(simulate(snapshot, Scenario()))}


@pytest.mark.parametrize("snapshot", [limited(0.5), cluster([0.7, 0.7, 0.7]), cluster([0.9, 0.2])])
def test_what_is_no_such_pain_is_not_told(snapshot: Snapshot) -> None:
    found = {finding.code for finding in diagnose(simulate(snapshot, Scenario()))}
    assert not found & {"throttled", "out_of_capacity", "unlike_machines"}


def test_two_types_of_machines_are_meant_to_differ() -> None:
    view = wrong_speed()
    cores = np.array([1000.0, 200.0, 1000.0])
    snapshot = replace(view, brokers=replace(view.brokers, cpu_limit_percent=cores, cpu_usage_percent=cores / 2))
    assert "unlike_machines" not in {finding.code for finding in diagnose(simulate(snapshot, Scenario()))}


def test_releases_that_differ_are_told() -> None:
    view = cluster([0.5, 0.5, 0.5])
    snapshot = replace(view, brokers=replace(view.brokers, version=("4.2.4", "4.2.4", "4.0.1")))
    (finding,) = [f for f in diagnose(simulate(snapshot, Scenario())) if f.code == "unlike_machines"]
    assert "release 4.0.1 on b3:8080, 4.2.4 on others" in finding.evidence
