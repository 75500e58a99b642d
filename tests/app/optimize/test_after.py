"""What comes after a plan: waves, splits, whether Pulsar undoes it, the script, the JSON."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from planner.cluster.errors import ScenarioError
from planner.cluster.releases import release
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.optimize import stability
from planner.optimize.absorb import left_by, surviving, with_traffic
from planner.optimize.answer import best_plan
from planner.optimize.offer import offer_of, with_alternative
from planner.optimize.plan import Plan
from planner.optimize.question import Question, model_of
from planner.optimize.stability import left_alone, stability_of, watch
from planner.optimize.waves import Wave, scenario_of, waves_of
from planner.share.carry_out import document, moves_csv, steps, way_back
from planner.share.export import json_text
from planner.share.scenario_file import read_scenario_file, scenario_file
from planner.simulate.assumptions import Assumptions
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.generate import generate
from planner.simulate.losses import simulate_losses
from planner.simulate.run import simulate
from planner.simulate.scenario import MOST_STEPS, Scenario, unchanged
from planner.simulate.trace import Trace
from planner.simulate.usage_model import UsageModel
from planner.workspace.samples import load_sample, samples
from tests.app.optimize.brute import small_cluster
from tests.app.simulate.traces import cluster


@pytest.fixture(scope="module")
def hundred() -> Snapshot:
    return load_sample(next(sample for sample in samples() if sample.file == "generated-100.zip"))


@pytest.fixture(scope="module")
def plan(hundred: Snapshot) -> Plan:
    return best_plan(hundred, Question(moves=120))


def _peaks_on_the_way(plan: Plan, waves: tuple[Wave, ...]) -> None:
    """Play waves by hand: within one everything arrives first, then leaves."""
    model = UsageModel.of(plan.at_start, plan.at_start.settings, Assumptions())
    limit = plan.snapshot.settings.integer("loadBalancerBrokerOverloadedThresholdPercentage") / 100
    limits = np.maximum(np.maximum(plan.usage_before, plan.usage_after), limit) + 1e-6
    position, broker = plan.at_start.bundle_position, plan.at_start.brokers.position
    owner = plan.at_start.bundles.owner.copy()
    served = model.served()
    named: set[str] = set()
    for wave in waves:
        named.update(wave.over)
        for move in wave.moves:
            at = position[move.bundle]
            assert plan.at_start.brokers.name[owner[at]] == move.source
            served[:, broker[move.destination]] += model.bundle[:, at]
        over = np.flatnonzero(model.usage(served) > limits).tolist()
        assert {plan.at_start.brokers.name[at] for at in over} <= named
        for move in wave.moves:
            at = position[move.bundle]
            served[:, owner[at]] -= model.bundle[:, at]
            owner[at] = broker[move.destination]
    assert np.allclose(model.usage(served), plan.usage_after)
    assert (owner == plan.after().bundles.owner).all()


@pytest.mark.parametrize("most_clients", [300, 5_000])
def test_waves_overload_nobody_and_stay_small(plan: Plan, most_clients: int) -> None:
    waves = waves_of(plan, most_clients)
    _peaks_on_the_way(plan, waves)
    assert not [wave for wave in waves if wave.over]
    assert all(wave.clients <= most_clients or len(wave.moves) == 1 for wave in waves)
    trace = simulate(plan.snapshot, scenario_of(plan, waves, cycles=2))
    limit = plan.snapshot.settings.integer("loadBalancerBrokerOverloadedThresholdPercentage") / 100
    limits = np.maximum(np.maximum(limit, plan.usage_before), plan.usage_after) + 1e-4  # reports are single precision
    assert not np.array([cycle.state.usage > limits for cycle in trace.cycles]).any()


def test_a_plan_of_any_size_is_a_scenario(hundred: Snapshot) -> None:
    plan = best_plan(hundred, Question(rounds=0))
    assert len(plan.moves) > MOST_STEPS
    scenario = scenario_of(plan, waves_of(plan), cycles=1)
    read = read_scenario_file(scenario_file(scenario, "ab" * 32).encode()).scenario
    assert read == scenario
    assert (simulate(hundred, read).end.bundles.owner == plan.after().bundles.owner).all()
    with pytest.raises(ScenarioError, match="can have at most 500 edits; this plan has"):
        scenario_of(plan, waves_of(plan, 1))


def test_the_release_of_the_cluster_decides_what_comes_after(
    hundred: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    releases: set[str] = set()

    def noted(start: Snapshot, scenario: Scenario, **more: Any) -> Trace:
        releases.add(scenario.pulsar_version)
        return simulate(start, scenario, **more)

    monkeypatch.setattr(stability, "simulate", noted)
    own = Settings(hundred.settings.overrides, release("3.0.2"))
    older = replace(hundred, info=replace(hundred.info, pulsar_version="3.0.2"), settings=own)
    found = best_plan(older, Question(moves=3))
    assert scenario_of(found).pulsar_version == "3.0.2"
    stability_of(found)
    assert releases == {"3.0.2"}


def test_waves_of_tight_clusters(subtests: pytest.Subtests) -> None:
    for seed in (1, 4, 5, 6):  # each of them has waves above a limit where the limit is left out
        with subtests.test(seed=seed):
            snapshot = small_cluster(seed, bundles=20, grouped=True)
            found = best_plan(snapshot, Question(rounds=0))
            limit = int(found.peak * 100) + 8
            changed = Settings(
                {**snapshot.settings.overrides, "loadBalancerBrokerOverloadedThresholdPercentage": min(limit, 100)}
            )
            tight = best_plan(replace(snapshot, settings=changed), Question(rounds=0))
            waves = waves_of(tight, 50)
            _peaks_on_the_way(tight, waves)
            assert not [wave.over for wave in waves if wave.over]


def test_a_swap_gets_a_temporary_place() -> None:
    """Two full brokers exchange bundles of which neither can arrive before the other has left."""
    snapshot = cluster([0.8, 0.8, 0.2], {0: (40, 38), 1: (41, 37), 2: (5, 5)})
    names = snapshot.bundle_names
    first, second = (int(snapshot.bundles_of(at)[0]) for at in (0, 1))
    pins = {names[first]: snapshot.brokers.name[1], names[second]: snapshot.brokers.name[0]}
    waves = waves_of(best_plan(snapshot, Question(moves=2, pins=pins, splits=0)))
    assert [len(wave.moves) for wave in waves] == [1, 1, 1]
    assert waves[0].moves[0].destination == snapshot.brokers.name[2]
    assert "temporary" in waves[0].moves[0].why
    assert not [wave for wave in waves if wave.over]


def test_the_simulation_ends_where_the_plan_says(plan: Plan, hundred: Snapshot) -> None:
    waves = waves_of(plan)
    trace = simulate(hundred, scenario_of(plan, waves, cycles=2))
    assert (trace.end.bundles.owner == plan.after().bundles.owner).all()
    assert trace.cycles[-1].state.usage.max() == pytest.approx(plan.peak, abs=1e-4)


def test_a_level_plan_is_stable_and_a_small_one_is_not(hundred: Snapshot) -> None:
    level = stability_of(best_plan(hundred, Question(moves=300)))
    assert level.cycle > 1, "what is shed later comes of automatic splits"
    small = stability_of(best_plan(hundred, Question(moves=10)))
    assert not small.stable
    assert small.cycle == 1
    assert small.why
    kept = replace(hundred, settings=Settings({**hundred.settings.overrides, **small.keeps}))
    assert stability_of(best_plan(kept, Question(moves=10))).stable


def _one_large_bundle() -> Snapshot:
    spec = ClusterSpec(brokers=5, bundles=6, namespaces=2, topics=600, topic_skew=0.3, msg_rate_per_s=180_000)
    return generate(spec, 3)


def test_a_bundle_that_is_the_limit_is_split() -> None:
    snapshot = _one_large_bundle()
    whole, split = (best_plan(snapshot, Question(splits=most)) for most in (0, 4))
    assert not whole.splits
    assert split.splits
    assert split.peak < whole.peak - 0.01
    assert split.bound <= split.peak
    assert any("Splitting it would allow" in note for note in whole.notes)
    trace = simulate(snapshot, scenario_of(split, waves_of(split), cycles=2))
    assert [event.kind for event in trace.events].count("split") == len(split.splits)
    assert not [event for event in trace.events if event.kind == "split_refused"]
    assert trace.cycles[-1].state.usage.max() == pytest.approx(split.peak, abs=1e-3)
    lines = [command.line for command in steps(split, waves_of(split)) if command.words]
    assert sum("split-bundle" in line for line in lines) == len(split.splits)


def test_a_bundle_whose_topics_are_not_listed_is_split_in_the_middle() -> None:
    """Positions are refused where no topics are known; the command ended with an error about its own plan."""
    sizes: dict[int, tuple[float, ...]] = {0: (40.0,), 1: (2.0,) * 2, 2: (2.0,) * 2}
    made = cluster((0.9, 0.1, 0.1), sizes, settings={"loadBalancerAutoBundleSplitEnabled": False})
    plan = best_plan(made, Question())
    assert plan.splits
    assert offer_of(plan).plan.splits
    trace = simulate(made, scenario_of(plan, waves_of(plan), cycles=2))
    assert [event.kind for event in trace.events].count("split") == len(plan.splits)


def test_a_topic_that_is_the_limit_is_named() -> None:
    spec = ClusterSpec(
        brokers=6, bundles=24, namespaces=3, topics=600, topic_skew=1.3, msg_rate_per_s=150_000, partitioned=0.2
    )
    found = best_plan(generate(spec, 3), Question())
    assert any("The lower bound is" in note for note in found.notes)


def test_the_steps_and_the_way_back(plan: Plan) -> None:
    waves = waves_of(plan)
    commands = steps(plan, waves)
    unloads = [command for command in commands if command.destination]
    assert len(unloads) == len(plan.moves)
    assert all("--destinationBroker" in command.words for command in unloads)
    assert next(command.section for command in commands if command.words) == "hold"
    assert "release" in {command.section for command in commands}
    back = [move for wave in way_back(waves) for move in wave.moves]
    there = [move for wave in waves for move in wave.moves]
    assert [(m.bundle, m.destination, m.source) for m in reversed(there)] == [
        (m.bundle, m.source, m.destination) for m in back
    ]


def test_the_document_says_all(plan: Plan) -> None:
    waves, found = waves_of(plan), stability_of(plan)
    told = json.loads(json_text(document(plan, waves, found, name="hundred")))
    assert told["peak_percent"] == pytest.approx(plan.peak * 100)
    assert told["bound_percent"] <= told["peak_percent"]
    assert told["plan_digest"] == plan.digest()
    assert told["stable"] is found.stable
    assert [(m["bundle"], m["from"], m["to"]) for m in told["moves"]] == [
        (m.bundle, m.source, m.destination) for m in plan.moves
    ]
    assert told == json.loads(json.dumps(document(plan, waves, found, name="hundred")))
    rows = moves_csv(waves).splitlines()
    assert len(rows) == len(plan.moves) + 1


def test_more_traffic_and_losses(hundred: Snapshot) -> None:
    busy = with_traffic(hundred, 1.5)
    found = best_plan(busy, Question(moves=100))
    assert found.usage_before.max() > 1.3
    assert found.peak < 1


@pytest.mark.parametrize("seed", [1, 14, 22, 30])
def test_a_loss_is_never_worse_after_a_plan_for_it(seed: int) -> None:
    """Judged by the simulation, as on Failure review: an estimate chose moves that made losses worse."""
    small = with_traffic(small_cluster(seed), 2.5)
    before = _worst_loss(small)
    safe = surviving(small, Question())
    assert f"{before[1]:.1f} %" in safe.notes[-1]
    if safe.moves:
        after = _worst_loss(left_by(small, scenario_of(safe, held=False)))
        assert after[0] <= before[0]
        assert after[1] < before[1]
        assert f"at most {after[1]:.1f} % after the loss of any one broker" in safe.notes[-1]
    elif before[1] > small.settings.integer("loadBalancerBrokerOverloadedThresholdPercentage"):
        assert "No moves that were tried make the loss of a broker milder" in safe.notes[-1]


def _worst_loss(cluster: Snapshot) -> tuple[int, float]:
    """Return the most bundles that nobody can serve, and the highest usage, after any loss, in percent."""
    found = simulate_losses(cluster, unchanged(cluster.settings.release.name)).simulated
    return max(one.unserved for one in found), round(max(one.highest_percent for one in found), 1)


def test_moves_that_spare_a_broker_when_another_dies() -> None:
    """The estimate said that nothing helps: it placed what was lost elsewhere than Pulsar does."""
    cluster = load_sample(next(sample for sample in samples() if sample.file == "avg-shedder.json"))
    safe = surviving(cluster, Question(splits=0))
    assert 0 < len(safe.moves) <= 3
    assert "compared with 101.2 % without them" in safe.notes[-1]


@pytest.mark.parametrize(("decides", "movable"), [("4.2.4", False), ("4.0.8", True)])
def test_monitors_of_a_broker_are_those_of_the_release_that_decides(
    small: Snapshot, decides: str, *, movable: bool
) -> None:
    names = ("sla-monitor/broker-1:8080", *small.namespaces[1:])
    asked = replace(small, namespaces=names, settings=Settings(small.settings.overrides, release(decides)))
    assert model_of(asked, Question()).movable[small.bundles.namespace == 0].any() == movable


def test_the_bound_of_a_safe_plan_is_one_of_usage() -> None:
    for seed in range(8):
        found = surviving(small_cluster(seed), Question(rounds=0))
        assert 0 < found.bound <= found.peak, f"seed {seed}"


def test_a_gap_to_nothing_is_no_number_of_json(plan: Plan) -> None:
    assert document(replace(plan, bound=0.0), (), None)["gap_percent"] is None


def test_a_plan_that_splits_undo_is_not_stable() -> None:
    """Nothing is shed, but both parts of one bundle go to one broker: a headline said that Pulsar leaves it alone."""
    spec = ClusterSpec(brokers=4, bundles=16, topics=120, ownership_skew=0.6)
    offer = offer_of(best_plan(generate(spec, seed=9), Question(moves=3)))
    found = offer.stability
    assert not found.shed
    assert not found.divided
    end = max(watch(offer.plan).after[-1].state.usage)
    assert end > offer.plan.peak + 0.04
    assert not found.stable
    assert offer.lasting == f"Pulsar's own splits raise it to {end * 100:.1f} % from cycle {found.risen_in}"
    assert f"the highest usage rises to {end * 100:.1f} % from cycle {found.risen_in}." in found.sentence
    other = with_alternative(offer).alternative
    if other is not None and other.plan is not None:
        assert left_alone(other.plan, watch(other.plan))


def test_settings_that_stop_shedding_do_not_make_a_plan_stable_that_splits_undo() -> None:
    """They were offered as such, while the busiest broker came to 100 %."""
    story = next(sample for sample in samples() if sample.file == "story.zip")
    found = stability_of(best_plan(load_sample(story), Question(moves=6)))
    assert found.shed
    assert found.keeps
    assert "To stop the shedding, set " in found.sentence
    assert f"Pulsar's own splits then raise the highest usage to {found.risen_to * 100:.1f} %" in found.sentence
    assert found.risen_to > 0.9
