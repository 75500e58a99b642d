"""One question has one answer: each fact that two pages show, asked where both pages get it, on many small clusters."""

import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from planner.cluster.arrays import frozen
from planner.cluster.load_manager import LoadManager
from planner.cluster.snapshot import Snapshot
from planner.explain.cluster_patterns import throttled
from planner.explain.cluster_tables import broker_frame
from planner.explain.diagnosis import diagnose
from planner.explain.health import usage_of
from planner.explain.outcome import Outcome
from planner.explain.split_advice import split_advice
from planner.pulsar.manager.cycle import next_cycle
from planner.pulsar.throttling.precedence import all_chains
from planner.remedy.candidates import candidates
from planner.simulate.assumptions import Assumptions
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.dispatch.caps import at_the_limit, dispatch_caps, dispatched
from planner.simulate.dispatch.prefill import topic_traffic
from planner.simulate.edits.split_bundle import SplitBundle
from planner.simulate.failure_review import review_losses
from planner.simulate.generate import generate
from planner.simulate.losses import losses_now, with_loss
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario, unchanged
from planner.simulate.sequence import decide_cycles
from planner.simulate.summary import summary
from planner.simulate.usage_model import at_the_end, standing

CLUSTERS = range(60)
ALIKE = 1e-6


@cache
def cluster(number: int) -> Snapshot:
    """A small cluster with skewed traffic; every third one limits the dispatch of topics."""
    spec = ClusterSpec(
        load_manager=LoadManager.EXTENSIBLE if number % 4 == 3 else LoadManager.MODULAR,
        brokers=3 + number % 4,
        bundles=20 + number % 17,
        topics=150,
        namespaces=4,
        isolated_namespaces=number % 2,
        anti_affinity_namespaces=2 * (number % 3 == 1),
        ownership_skew=(number % 5) / 5,
        topic_skew=0.8 + (number % 3) / 5,
        msg_rate_per_s=8_000.0 * (1 + number % 7),
    )
    settings = {"dispatchThrottlingRatePerTopicInMsg": 300} if number % 3 == 0 else {}
    made = generate(spec, number)
    return replace(made, settings=made.settings.changed(**settings)) if settings else made


def made_of_few(number: int, **more: float) -> Snapshot:
    """A cluster of few, large bundles."""
    spec = ClusterSpec(brokers=3, bundles=4 + number % 5, topics=150, namespaces=1, msg_rate_per_s=60_000.0)
    return generate(replace(spec, **more), number)  # type: ignore[arg-type]


@cache
def simulated(number: int) -> Outcome:
    return Outcome(simulate(cluster(number), Scenario(cycles=6)))


@pytest.mark.parametrize("number", CLUSTERS)
def test_usage_and_headroom(number: int) -> None:
    """Overview, Brokers, Failure review and What-if."""
    snapshot = cluster(number)
    config, assumed = snapshot.settings, Assumptions()
    now, first = standing(snapshot, config, assumed), simulated(number).trace.cycles[0].state
    for peak in (
        usage_of(snapshot, config)[2],
        float(broker_frame(snapshot)["usage (%)"].max()) / 100,
        review_losses(snapshot, config, assumptions=assumed).before.peak_usage,
        float(first.usage[first.present].max()),
    ):
        assert peak == pytest.approx(now.peak_usage, abs=ALIKE)
    assert review_losses(snapshot, config, assumptions=assumed).before.growth == now.growth
    assert first.growth_factor[first.present].min() == pytest.approx(now.growth.factor, rel=ALIKE)
    moved = simulate(snapshot, Scenario(cycles=1))
    after = review_losses(at_the_end(moved), config, assumptions=assumed).before.growth
    assert summary(moved).final_headroom_factor == pytest.approx(after.factor, rel=ALIKE)


@pytest.mark.parametrize("number", CLUSTERS)
def test_what_is_shed_next(number: int) -> None:
    """Overview and Shedding decide the next cycle; What-if, Moves and Compare simulate it."""
    snapshot, trace = cluster(number), simulated(number).trace
    (step,) = decide_cycles([snapshot], snapshot.settings, trace.scenario.seed)
    _, alone = next_cycle(snapshot, None, snapshot.settings, trace.scenario.seed)
    said = [move.bundle for move in step.decision.moves]
    assert said == [move.bundle for move in alone.moves]
    tried = [(one.move.bundle, one.move.source, one.move.destination, one.carried_out) for one in alone.unloads]
    played = trace.cycles[0].unloads
    assert tried == [(one.move.bundle, one.move.source, one.move.destination, one.carried_out) for one in played]
    assert said == [unload.move.bundle for unload in played if unload.carried_out]


@pytest.mark.parametrize("number", CLUSTERS[::6])
def test_losses(number: int) -> None:
    """Overview, Failure review and the report list losses; What-if simulates the one that is clicked."""
    snapshot = cluster(number)
    found = losses_now(simulated(number).trace)
    worst = found.simulated[0]
    clicked = simulate(snapshot, with_loss(unchanged(snapshot.settings.release.name), worst.broker))
    assert summary(clicked).peak_usage_percent == worst.peak_percent
    assert summary(clicked).topics_disconnected == worst.topics
    assert found.limit_percent == snapshot.settings.integer("loadBalancerBrokerOverloadedThresholdPercentage")


@pytest.mark.parametrize("number", CLUSTERS[::3])
def test_the_limit_of_a_topic(number: int) -> None:
    """The finding, and the page Throttling that it opens."""
    case = simulated(number)
    end = case.trace.end
    caps = dispatch_caps(end, case.trace.settings)
    near = at_the_limit(end, caps).tolist()
    found = list(throttled(case))
    assert bool(found) == bool(near)
    for finding in found:
        topic = finding.topics[0]
        assert topic == end.topics.name[near[0]].as_py()
        assert dispatched(end, caps, near[0]) in finding.evidence
        traffic = topic_traffic(end, topic)
        assert traffic.msg_rate_out_per_s == end.topics.msg_rate_out_per_s[near[0]]
        rates = [chain.rate for chain in all_chains(topic, end.policies, case.trace.settings)]
        limits = [rate.msg_per_period / rate.period_s for rate in rates if rate.msg_per_period > 0]
        assert min(limits) == caps.msg_per_s[near[0]]


def test_some_topics_are_at_their_limit() -> None:
    assert any(list(throttled(simulated(number))) for number in CLUSTERS[::3])


@pytest.mark.parametrize("number", CLUSTERS[::6])
def test_a_split_is_worth_it_or_not(number: int) -> None:
    """Fix it tries splits, findings name them, Split lab judges them."""
    snapshot = made_of_few(number)
    played = Outcome(simulate(snapshot, Scenario(cycles=6)))
    tried = [one.edits[0] for one in candidates(snapshot, Scenario(cycles=6), played) if one.kind == "split"]
    for edit in tried:
        assert isinstance(edit, SplitBundle)
        advice = split_advice(snapshot, snapshot.bundle_position[edit.bundle], snapshot.settings)
        assert advice.verdict == "Worth it"
        assert advice.best is not None
        assert (edit.algorithm, edit.positions) == (advice.best.algorithm, advice.best.positions or ())
    for held in (finding for finding in diagnose(played) if finding.code == "held_by_gate"):
        found = re.search(r"Its only bundle is (\S+)\. (.*)", held.remedy)
        if found:
            last = played.last
            advice = split_advice(last, last.bundle_position[found[1]], played.trace.settings)
            assert found[2].startswith("Split it") == (advice.verdict in {"Worth it", "Not known"})


def test_some_splits_are_tried() -> None:
    scenario = Scenario(cycles=1)
    few = [made_of_few(number) for number in CLUSTERS[::6]]
    found = [one for snapshot in few for one in candidates(snapshot, scenario, Outcome(simulate(snapshot, scenario)))]
    assert any(one.kind == "split" for one in found)


@pytest.mark.parametrize("together", [1, 3])
def test_a_bundle_that_is_all_of_a_full_broker_is_worth_a_split(together: int) -> None:
    snapshot = made_of_few(1, topic_skew=0.0, msg_rate_per_s=5_000.0)
    full = np.array([0.95, 0.1, 0.1]) * snapshot.brokers.cpu_limit_percent
    owner = np.where(np.arange(len(snapshot.bundles)) < together, 0, 1).astype(np.int32)
    brokers = replace(snapshot.brokers, cpu_usage_percent=frozen(full))
    advice = split_advice(snapshot.with_columns(brokers=brokers).with_owner(owner), 0, snapshot.settings)
    assert ("all that its broker serves, which is at 95 %" in advice.sentence) == (together == 1)
    assert advice.verdict == ("Worth it" if together == 1 else "No need")
