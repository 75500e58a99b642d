"""Bundles that Pulsar keeps for itself are never advised on, nor counted as harm."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from planner.cluster.internal_bundles import internal_bundles, internal_topics, is_internal_bundle
from planner.cluster.internal_namespaces import SYSTEM_NAMESPACE
from planner.cluster.load_manager import LoadManager
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.explain.diagnosis import diagnose
from planner.explain.finding import Finding
from planner.explain.outcome import Outcome
from planner.explain.split_advice import split_advice
from planner.simulate.assumptions import Assumptions
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.edits.drain_broker import DrainBroker
from planner.simulate.edits.kill_broker import KillBroker
from planner.simulate.edits.remove_broker import RemoveBroker
from planner.simulate.edits.rolling_restart import RollingRestart
from planner.simulate.failure_review import review_losses
from planner.simulate.generate import generate
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario, Step
from planner.simulate.usage_model import standing
from planner.workspace.samples import load_sample, samples

USERS = "acme/orders"
SPLITS: Mapping[str, object] = {
    "loadBalancerNamespaceBundleMaxTopics": 2,
    "loadBalancerNamespaceMaximumBundles": 64,
}
REAL = ("real-extensible.json", "real-modular.json")


def real(file: str) -> Snapshot:
    return load_sample(next(one for one in samples() if one.file == file))


def under(namespace: str, **spec: int) -> Snapshot:
    """A cluster of one namespace, called so."""
    made = generate(ClusterSpec(**{"brokers": 3, "bundles": 24, "namespaces": 1, "topics": 90, **spec}), 5)  # type: ignore[arg-type]
    return replace(made, namespaces=(namespace,))


def found(snapshot: Snapshot, settings: Mapping[str, object], cycles: int = 30) -> dict[str, Finding]:
    scenario = Scenario(cycles=cycles, settings=settings)  # type: ignore[arg-type]
    return {one.code: one for one in diagnose(simulate(snapshot, scenario))}


@pytest.mark.parametrize("file", REAL)
def test_which_they_are(file: str) -> None:
    snapshot = real(file)
    internal = internal_bundles(snapshot)
    assert 0 < internal.sum() < len(internal)
    for name, is_internal in zip(snapshot.bundle_names, internal.tolist(), strict=True):
        assert (
            is_internal
            == name.startswith(("pulsar/", "sla-monitor/"))
            == is_internal_bundle(name, snapshot.settings.release)
        )
    of_topics = [name.as_py().partition("://")[2].startswith("pulsar/") for name in snapshot.topics.name]
    assert internal_topics(snapshot).tolist() == of_topics


@pytest.mark.parametrize("file", REAL)
@pytest.mark.parametrize("how", [DrainBroker, RemoveBroker, KillBroker])
def test_emptying_a_broker_is_no_harm(file: str, how: type[DrainBroker | RemoveBroker | KillBroker]) -> None:
    """Its heartbeats go with it, what is not in use waits for a lookup, and to empty it is the aim."""
    snapshot = real(file)
    for broker in snapshot.brokers.name:
        outcome = Outcome(simulate(snapshot, Scenario(cycles=20, steps=(Step(how(broker=broker)),))))
        assert outcome.gate.objections == ()
        assert outcome.before_after.topics <= outcome.before_after.all_topics
        assert not any(
            is_internal_bundle(b, snapshot.settings.release) for one in diagnose(outcome) for b in one.bundles
        )


def test_a_restart_in_turn_is_no_harm() -> None:
    trace = simulate(real(REAL[1]), Scenario(cycles=30, steps=(Step(RollingRestart()),)))
    assert Outcome(trace).gate.objections == ()


def test_a_bundle_in_use_without_an_owner_is_counted() -> None:
    snapshot, assumptions = under(USERS), Assumptions()
    gone = replace(snapshot.bundles, owner=np.full(len(snapshot.bundles), -1, dtype=np.int32))
    used = int((snapshot.bundles.topics > 0).sum())
    assert used
    assert standing(replace(snapshot, bundles=gone), snapshot.settings, assumptions).unserved == used
    system = replace(snapshot, namespaces=(SYSTEM_NAMESPACE,), bundles=gone)
    assert standing(system, snapshot.settings, assumptions).unserved == 0


def test_a_lost_broker_takes_its_heartbeats_along() -> None:
    snapshot = real(REAL[0])
    review = review_losses(snapshot)
    alone = review_losses(replace(snapshot, namespaces=tuple(f"acme/n{at}" for at in range(len(snapshot.namespaces)))))
    assert (review.clients <= alone.clients).all()
    assert (review.clients < alone.clients).any()
    assert (review.unserved == 0).all()


CASES: tuple[tuple[str, Mapping[str, object], Mapping[str, int]], ...] = (
    ("split_cascade", SPLITS, {}),
    ("split_refused", {**SPLITS, "defaultNamespaceBundleSplitAlgorithm": "specified_positions_divide"}, {}),
    (
        "hot_topic",
        {"loadBalancerAutoBundleSplitEnabled": False},
        {"topic_skew": 3, "partitioned": 0, "msg_rate_per_s": 100_000},
    ),
    (
        "topic_above_limit",
        {"loadBalancerNamespaceBundleMaxMsgRate": 1, "loadBalancerNamespaceMaximumBundles": 1},
        {},
    ),
    (
        "namespace_full",
        {"loadBalancerNamespaceBundleMaxTopics": 2, "loadBalancerNamespaceMaximumBundles": 1},
        {"topics": 400},
    ),
    ("bundle_count_too_low", {"loadBalancerAutoBundleSplitEnabled": False}, {"bundles": 2, "topics": 400}),
    ("bundle_count_too_high", {"loadBalancerAutoBundleSplitEnabled": False}, {"bundles": 512, "topics": 20}),
    ("throttled", {"dispatchThrottlingRatePerTopicInMsg": 1}, {}),
)


@pytest.mark.parametrize(("code", "settings", "spec"), CASES, ids=[code for code, _, _ in CASES])
@pytest.mark.parametrize("namespace", [SYSTEM_NAMESPACE, "pulsar/broker-1:8080", "sla-monitor/broker-1:8080"])
def test_no_finding_is_about_them(
    code: str, settings: Mapping[str, object], spec: Mapping[str, int], namespace: str
) -> None:
    assert code in found(under(USERS, **spec), settings)
    assert code not in found(under(namespace, **spec), settings)


SHED: Mapping[str, object] = {
    "loadBalancerBrokerThresholdShedderPercentage": 1,
    "loadBalancerBundleUnloadMinThroughputThreshold": 0,
    "loadBalancerHistoryResourcePercentage": 0,
    "loadBalancerSheddingGracePeriodMinutes": 0,
    "loadBalancerAutoBundleSplitEnabled": False,
}


def test_what_is_shed_of_them_is_no_harm() -> None:
    spec = ClusterSpec(brokers=4, bundles=64, namespaces=1, topics=400, msg_rate_per_s=200_000, ownership_skew=1.0)
    snapshot = generate(spec, 5)
    users = found(replace(snapshot, namespaces=(USERS,)), SHED)
    system = found(replace(snapshot, namespaces=(SYSTEM_NAMESPACE,)), SHED)
    about_moves = {"unload_storm", "clients_cut_off", "ping_pong", "drawn_at_random", "fighting_strategies"}
    assert about_moves & set(users)
    assert not about_moves & set(system)


@pytest.mark.parametrize("manager", LoadManager)
def test_their_splits_are_not_advised(manager: LoadManager) -> None:
    snapshot = under(SYSTEM_NAMESPACE)
    snapshot = replace(snapshot, info=replace(snapshot.info, load_manager=manager))
    config = Settings({"loadBalancerNamespaceBundleMaxTopics": 1})
    advice = split_advice(snapshot, 0, config)
    assert (advice.verdict, advice.best, advice.options) == ("No need", None, ())
    assert "Pulsar keeps this namespace for itself" in advice.sentence
    assert split_advice(replace(snapshot, namespaces=(USERS,)), 0, config).options
