"""The judge: overload first, then disruption, then balance, and the same answer from both sides."""

from dataclasses import asdict, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.cluster.snapshot import IsolationPolicy, Snapshot
from planner.simulate.breaches import breaches
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.generate import generate
from planner.simulate.judge import Result, Word, judge, judge_overload
from planner.simulate.measures import broker_series, summary_of_cycles
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario
from tests.app.simulate.traces import cluster

CALM = Result(
    limit_percent=85,
    overloaded_broker_min=0,
    highest_percent=70,
    end_peak_percent=70,
    unserved=0,
    misplaced=0,
    topics=0,
    clients=0,
    all_topics=1_000,
    thrashing_percent=0,
    deviation_points=10,
)


@pytest.mark.parametrize(
    ("change", "word", "said"),
    [
        ({}, "same", "No difference"),
        ({"end_peak_percent": 64}, "better", "highest usage 70.0 to 64.0 %"),
        ({"end_peak_percent": 70.9}, "same", "No difference"),
        ({"topics": 500}, "worse", "500 topics more disconnected"),
        ({"topics": 500, "deviation_points": 4}, "trade-off", "but 500 topics more"),
        ({"topics": 9, "deviation_points": 4}, "better", "deviation 10.0 to 4.0 points"),
        ({"highest_percent": 97}, "worse", "peak 70.0 to 97.0 %"),
        ({"overloaded_broker_min": 30, "highest_percent": 90, "deviation_points": 1}, "worse", "broker-minutes"),
        ({"unserved": 1, "deviation_points": 1}, "worse", "bundles without a broker 0 to 1"),
        ({"misplaced": 3}, "worse", "against their policy 0 to 3"),
        ({"end_peak_percent": 60, "deviation_points": 12}, "better", "highest usage"),
    ],
)
def test_what_counts_first(change: dict[str, float], word: Word, said: str) -> None:
    found = judge(CALM, replace(CALM, **change))  # type: ignore[arg-type]
    assert found.word == word
    assert said in found.text


def test_less_overload_is_better_whatever_it_disconnects() -> None:
    hot = replace(CALM, overloaded_broker_min=200, highest_percent=100, end_peak_percent=100)
    assert judge(hot, replace(CALM, topics=900)).word == "better"
    assert judge_overload(hot, replace(CALM, topics=900)).word == "better"
    assert judge_overload(CALM, replace(CALM, topics=900)).word == "same"


def test_fewer_minutes_at_a_higher_peak_are_a_trade_off() -> None:
    hot = replace(CALM, overloaded_broker_min=200, highest_percent=90)
    assert judge(hot, replace(hot, overloaded_broker_min=20, highest_percent=100)).word == "trade-off"


RESULTS = st.builds(
    Result,
    limit_percent=st.just(85.0),
    overloaded_broker_min=st.integers(0, 60).map(float),
    highest_percent=st.integers(50, 130).map(float),
    end_peak_percent=st.integers(50, 130).map(float),
    unserved=st.integers(0, 2),
    misplaced=st.integers(0, 2),
    topics=st.integers(0, 300),
    clients=st.integers(0, 300),
    all_topics=st.just(1_000),
    thrashing_percent=st.integers(0, 60).map(float),
    deviation_points=st.integers(0, 30).map(float),
)
OTHER_SIDE = {"better": "worse", "worse": "better", "trade-off": "trade-off", "same": "same"}


@settings(max_examples=300, deadline=None)
@given(RESULTS, RESULTS)
def test_both_sides_get_the_same_answer(one: Result, two: Result) -> None:
    assert judge(one, one).word == "same"
    assert judge(two, one).word == OTHER_SIDE[judge(one, two).word]


@pytest.mark.parametrize(("topics", "thrashing_percent"), [(1, 6), (500, 6), (500, 0)])
def test_thrashing_counts_alike_from_both_sides(topics: int, thrashing_percent: float) -> None:
    for one in (CALM, replace(CALM, topics=200, thrashing_percent=20)):
        two = replace(CALM, topics=topics, thrashing_percent=thrashing_percent)
        assert judge(two, one).word == OTHER_SIDE[judge(one, two).word]


def _cluster() -> Snapshot:
    return generate(ClusterSpec(brokers=6, bundles=120, topics=600), seed=4)


def test_no_scenario_improves_by_measuring_differently() -> None:
    cluster = _cluster()
    own = Result.of(simulate(cluster, Scenario(cycles=3, settings={"loadBalancerEnabled": False})))
    blind = {"loadBalancerEnabled": False, "loadBalancerCPUResourceWeight": 0.0}
    easy = {"loadBalancerEnabled": False, "loadBalancerBrokerOverloadedThresholdPercentage": 100}
    for changed in (blind, easy):
        other = Result.of(simulate(cluster, Scenario(cycles=3, settings=changed)))
        assert judge(own, other).word == "same", judge(own, other).text


def test_a_machine_is_full_whatever_its_weight() -> None:
    """The weight of a capture hides 95 % of CPU from Pulsar, and not from the judge."""
    captured = {"loadBalancerCPUResourceWeight": 0.0}
    snapshot = cluster((0.95, 0.2, 0.2), dict.fromkeys(range(3), (10.0,) * 10), settings=captured)
    own = Result.of(simulate(snapshot, Scenario(cycles=12)))
    assert own.overloaded_broker_min == 12
    assert own.highest_percent == pytest.approx(95, abs=1)
    after = Result.of(simulate(snapshot, Scenario(cycles=12, settings={"loadBalancerCPUResourceWeight": 1.0})))
    assert judge(own, after).word == "better", judge(own, after).text
    assert 30 < after.end_peak_percent < 85, "its CPU is measured, not only what counts by the weights of the capture"


def test_breaches_are_bundles_that_no_listed_broker_serves() -> None:
    cluster = _cluster()
    namespace = cluster.namespaces[0]
    hosts = [name.rpartition(":")[0] for name in cluster.brokers.name]
    policy = IsolationPolicy(
        name="own", namespaces=(namespace,), primary=(hosts[0],), secondary=(hosts[1],), min_limit=1
    )
    bound = replace(cluster, policies=replace(cluster.policies, isolation=(policy,)))
    names = [bound.bundle_names[at] for at in breaches(bound).tolist()]
    expected = [
        name
        for name, owner in zip(bound.bundle_names, bound.bundles.owner.tolist(), strict=True)
        if name.rpartition("/")[0] == namespace and owner not in {0, 1, -1}
    ]
    assert names == expected != []
    nobody = replace(policy, primary=("elsewhere",), secondary=())
    assert not len(breaches(replace(cluster, policies=replace(cluster.policies, isolation=(nobody,)))))


def test_replayed_days_are_judged_by_the_same_measures() -> None:
    trace = simulate(_cluster(), Scenario(cycles=12))
    of, days = Result.of(trace), Result.over_days(asdict(summary_of_cycles(trace)), 85.0)
    assert days.topics == of.topics > 0
    assert days.clients == of.clients
    assert days.thrashing_percent == of.thrashing_percent
    assert days.highest_percent == pytest.approx(100 * float(broker_series(trace).usage.max()))
    assert judge(days, days).word == "same"
    calm = Result.over_days({**asdict(summary_of_cycles(trace)), "overloaded_broker_min": 0.0}, 85.0)
    hot = Result.over_days({**asdict(summary_of_cycles(trace)), "overloaded_broker_min": 900.0}, 85.0)
    assert judge(hot, calm).word == "better"
