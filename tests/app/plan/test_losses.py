"""Losses are simulated, and every place says the same number."""

from dataclasses import replace

import numpy as np
import pytest

from planner.cluster.snapshot import Snapshot
from planner.explain.losses import losses_text
from planner.explain.outcome import Outcome
from planner.share.report import markdown_report
from planner.simulate import losses
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.edits.scale_traffic import ScaleTraffic
from planner.simulate.failure_review import review_losses
from planner.simulate.generate import generate
from planner.simulate.losses import LOSS_AT_MIN, losses_after, losses_now, simulate_losses, with_loss
from planner.simulate.price import price_of
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario, Step, unchanged
from planner.workspace.samples import load_sample, samples


@pytest.fixture(scope="module")
def story() -> Snapshot:
    return load_sample(next(one for one in samples() if one.file == "story.zip"))


def own(cluster: Snapshot) -> Scenario:
    return unchanged(cluster.settings.release.name)


def test_what_if_shows_the_number_of_the_review(story: Snapshot) -> None:
    found = simulate_losses(story, own(story), budget_s=0.2)
    assert found.simulated
    assert found.left == len(story.brokers) - len(found.simulated) > 0
    worst = found.simulated[0]
    outcome = Outcome(simulate(story, with_loss(own(story), worst.broker)))
    assert outcome.summary.peak_usage_percent == worst.peak_percent
    assert f"{worst.highest_percent:.0f} %" in losses_text(found)
    left = f"{found.left} others were not" if found.left > 1 else "1 other was not"
    assert f"simulated; {left}." in losses_text(found)


def test_a_simulated_loss_exceeds_its_estimate(story: Snapshot) -> None:
    worst, estimate = simulate_losses(story, own(story), budget_s=600).simulated[0], review_losses(story)
    assert worst.highest_percent > float(estimate.peak_usage.max()) * 100 + 10  # what the estimate left out


def test_all_losses_where_that_is_cheap() -> None:
    cluster = generate(ClusterSpec(brokers=4, bundles=40, topics=160), seed=5)
    found = simulate_losses(cluster, own(cluster))
    assert sorted(one.broker for one in found.simulated) == sorted(cluster.brokers.name)
    assert found.left == 0
    highest = [one.highest_percent for one in found.simulated if not one.unserved]
    assert highest == sorted(highest, reverse=True)
    assert found.minutes == 29 - LOSS_AT_MIN
    for one in found.simulated:
        assert one.right_after_percent <= one.highest_percent + 1e-9
        assert one.highest_on != one.broker
        assert one.highest_at_min >= 0
        assert one.topics > 0


def test_what_was_before_the_loss_is_not_its_doing() -> None:
    """A broker at 95 % has the highest usage of the simulation in which it dies: not after that, and not of others."""
    cluster = generate(ClusterSpec(brokers=6, bundles=60, topics=240, msg_rate_per_s=3_000), seed=3)
    usage = np.where(np.arange(6) == 2, 95.0, cluster.brokers.cpu_usage_percent)
    cluster = replace(
        cluster,
        brokers=replace(cluster.brokers, cpu_usage_percent=usage, cpu_limit_percent=np.full(6, 100.0)),
        settings=cluster.settings.changed(loadBalancerSheddingEnabled=False),
    )
    found = simulate_losses(cluster, own(cluster))
    hot = cluster.brokers.name[2]
    (its,) = (one for one in found.simulated if one.broker == hot)
    assert its.before_on == hot
    assert its.before_percent == pytest.approx(95, abs=1)
    assert its.highest_percent < 90
    assert its.highest_on != hot
    assert its.over_threshold == 0
    said = losses_text(replace(found, simulated=(its,), without=None))
    assert f"Before it, {hot} was at 95 %." in said
    assert "above 85 %" not in said


def test_what_comes_without_any_loss_is_not_the_doing_of_one() -> None:
    """A broker that stays at 95 % is the highest after every loss but its own, so that none of them is the worst."""
    cluster = generate(ClusterSpec(brokers=6, bundles=60, topics=240, msg_rate_per_s=3_000), seed=3)
    calm = cluster.settings.changed(loadBalancerSheddingEnabled=False, loadBalancerAutoBundleSplitEnabled=False)
    usage = np.where(np.arange(6) == 2, 95.0, cluster.brokers.cpu_usage_percent)
    brokers = replace(cluster.brokers, cpu_usage_percent=usage, cpu_limit_percent=np.full(6, 100.0))
    found = simulate_losses(replace(cluster, brokers=brokers, settings=calm), own(cluster))
    assert found.without is not None
    assert found.without.highest_percent == pytest.approx(95, abs=1)
    hot = cluster.brokers.name[2]
    said = f"raises the highest usage: {hot} reaches 95 % without one as well, with 1 broker above 85 %."
    assert losses_text(found) == f"No loss {said} All 6 losses were simulated."
    assert losses_text(replace(found, left=2)).startswith(f"No simulated loss {said}")
    fuller = replace(found, without=replace(found.without, highest_percent=80.0))
    assert losses_text(fuller).startswith("Worst is the loss of ")


def test_the_time_without_a_loss_counts_for_the_budget(story: Snapshot) -> None:
    each_s = price_of(story, own(story)).seconds
    for simulations, number in ((1.5, 1), (2.5, 1), (4.5, 3)):
        found = simulate_losses(story, own(story), budget_s=simulations * each_s)
        assert len(found.simulated) == number
        assert (found.without is None) is (simulations < 2)


def test_a_cluster_of_one_has_nobody_to_take_over() -> None:
    cluster = generate(ClusterSpec(brokers=1, bundles=8, topics=16), seed=5)
    found = simulate_losses(cluster, own(cluster))
    assert found.simulated == ()
    assert losses_text(found) == "No broker would be left to take over."


def test_the_report_says_what_is_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = generate(ClusterSpec(brokers=3, bundles=24, topics=96), seed=2)
    trace = simulate(cluster, replace(own(cluster), steps=(Step(ScaleTraffic(factor=1.3)),), cycles=8))
    now, after = losses_now(trace), losses_after(trace)
    text = markdown_report(trace)
    for found in (now, after):
        assert f"{found.simulated[0].highest_percent:.1f} %" in text
    # In another format it is written again, but simulates nothing again.
    monkeypatch.setattr(losses, "simulate", None)
    assert markdown_report(trace) == text


def test_demand_beyond_a_machine_is_that_of_the_cluster_after_a_scenario() -> None:
    """Failure review began with 100 % and headroom 1.00x where Overview showed 186 %."""
    cluster = generate(ClusterSpec(brokers=3, bundles=24, topics=96), seed=2)
    trace = simulate(cluster, replace(own(cluster), steps=(Step(ScaleTraffic(factor=6.0)),), cycles=4))
    after = Outcome(trace).before_after.after
    found = losses_after(trace).review.before
    assert after.peak_usage > 1
    assert (found.peak_usage, found.growth.factor) == (after.peak_usage, after.growth.factor)
