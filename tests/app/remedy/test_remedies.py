"""Remedies are tried before they are offered, and Fix it finds what helps."""

import json
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planner.__main__ import main
from planner.cluster.load_manager import LoadManager
from planner.cluster.names import LOAD_MANAGER_CLASS_NAME, SHEDDING_ENABLED
from planner.cluster.releases import REFERENCE
from planner.cluster.snapshot import IsolationPolicy, Policies, Snapshot
from planner.explain.diagnosis import diagnose
from planner.explain.outcome import Outcome
from planner.pulsar.shedding.registry import default_shedder, shedder_by_name
from planner.remedy.action import Action, both, settings_action
from planner.remedy.candidates import candidates
from planner.remedy.trials import Trial, Trials, by_gain
from planner.remedy.tried import diagnosed, fix, tried_findings
from planner.share.fix import fix_document, fix_text
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.edits.move_bundles import MoveBundles
from planner.simulate.edits.registry import BrokerLoss
from planner.simulate.edits.rolling_restart import RollingRestart
from planner.simulate.edits.scale_traffic import ScaleTraffic
from planner.simulate.generate import generate
from planner.simulate.judge import Result, gained, judge, share_gone
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario, Step, unchanged
from planner.workspace.samples import load_sample, samples
from tests.app.plan.test_diagnosis_gates import hot
from tests.app.simulate.traces import cluster

TRANSFER = shedder_by_name("TransferShedder").java_class
HISTORY = "loadBalancerHistoryResourcePercentage"
LIMIT = "loadBalancerBrokerOverloadedThresholdPercentage"


def sample(file: str) -> Snapshot:
    return load_sample(next(one for one in samples() if one.file == file))


def trials_of(cluster: Snapshot) -> tuple[Trials, Outcome]:
    scenario = unchanged(cluster.info.pulsar_version)
    outcome = Outcome(simulate(cluster, scenario))
    return Trials(cluster, scenario, outcome), outcome


@pytest.fixture(scope="module")
def story() -> tuple[Trials, Outcome]:
    return trials_of(sample("story.zip"))


def test_a_remedy_that_makes_it_worse_is_shown_and_not_offered(story: tuple[Trials, Outcome]) -> None:
    trials, outcome = story
    own = {one.code: one for one in diagnose(outcome)}
    assert own["held_by_gate"].changes
    found = {one.finding.code: one for one in tried_findings(diagnose(outcome), trials)}
    gate = found["held_by_gate"]
    assert gate.trial is not None
    assert gate.trial.verdict.word == "worse"
    assert gate.finding.changes == {}
    assert gate.finding.tried.startswith("Not recommended. Tried: worse: ")
    assert gate.finding.remedy_label == "Usual remedy"
    assert set(found) == set(own)
    assert [one.changes for one in diagnosed(outcome)] == [
        one.finding.changes for one in tried_findings(diagnose(outcome), trials)
    ]


@pytest.mark.parametrize("file", ["overload-shedder.json", "real-modular.json"])
def test_what_is_applied_is_what_was_tried(file: str) -> None:
    """With the rolling restart that a strategy needs, unless the scenario makes one anyway."""
    trials, outcome = trials_of(sample(file))
    strategies = [one for one in candidates(trials.snapshot, trials.scenario, outcome) if one.restart]
    assert strategies
    for action in strategies:
        trial = trials.try_out(action)
        assert trial is not None
        done = trial.on(trials.scenario)
        assert Result.of(simulate(trials.snapshot, done)) == trial.after
        assert any(isinstance(edit, RollingRestart) for edit in done.edits)
        restarting = trials.scenario.with_steps(Step(RollingRestart()))
        assert trial.on(restarting).edits == (*restarting.edits, *action.edits)


def test_what_is_offered_was_simulated_and_is_not_worse(story: tuple[Trials, Outcome]) -> None:
    trials, outcome = story
    found = fix(trials, outcome)
    offered = [one for one in (found.best, found.pair, *found.others) if one is not None]
    assert offered
    for trial in offered:
        after = Result.of(simulate(trials.snapshot, trial.on(trials.scenario)))
        assert after == trial.after
        assert judge(outcome.result, after).word != "worse"
        assert trial.steady


@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 10_000), hot=st.floats(0.5, 1.0), extensible=st.booleans())
def test_on_random_clusters_nothing_worse_is_offered(seed: int, hot: float, extensible: bool) -> None:  # noqa: FBT001
    manager = LoadManager.EXTENSIBLE if extensible else LoadManager.MODULAR
    spec = ClusterSpec(brokers=5, bundles=40, topics=160, ownership_skew=hot, load_manager=manager)
    trials, outcome = trials_of(generate(spec, seed))
    for one in tried_findings(diagnose(outcome), trials):
        if one.finding.changes:
            assert one.trial is not None
            kept_half(trials, one.trial.action, outcome.result)
    best = fix(trials, outcome).best
    if best is not None:
        kept_half(trials, best.action, outcome.result)


def kept_half(trials: Trials, action: Action, before: Result) -> None:
    """Simulate an action anew, also under other seeds, without the room's own bookkeeping."""
    own = trials.scenario
    if action.restart:
        return
    best = gained(before, Result.of(simulate(trials.snapshot, action.on(own))))
    assert best is not None
    for seed in (1, 2, 3):
        other = replace(own, seed=own.seed + seed)
        plain, after = (Result.of(simulate(trials.snapshot, one)) for one in (other, action.on(other)))
        assert judge(plain, after).word != "worse"
        assert share_gone(best[0], plain, after) >= best[1] / 2


def test_fix_never_offers_another_load_manager() -> None:
    cluster = sample("real-extensible.json")
    scenario = unchanged(cluster.info.pulsar_version)
    tried = list(candidates(cluster, scenario, Outcome(simulate(cluster, scenario))))
    assert tried
    for action in tried:
        assert LOAD_MANAGER_CLASS_NAME not in action.settings
        assert action.on(scenario).load_manager == ""


@pytest.mark.parametrize("name", ["real-extensible.json", "overload-shedder.json", "story.zip", "avg-shedder.json"])
def test_no_threshold_of_usage_beyond_a_full_broker_is_tried(name: str) -> None:
    """A limit of 128 % is never reached: that switches a rule off, and calls it a threshold."""
    cluster = sample(name)
    scenario = unchanged(cluster.info.pulsar_version)
    tried = [one.settings for one in candidates(cluster, scenario, Outcome(simulate(cluster, scenario)))]
    values = {name: value for settings in tried for name, value in settings.items() if "ThresholdPercentage" in name}
    assert all(isinstance(value, int) and value <= 100 for value in values.values()), values


def test_what_needs_a_restart_disconnects_everybody_once() -> None:
    cluster = sample("avg-shedder.json")
    trials, _ = trials_of(cluster)
    action = settings_action("setting", {"lowerBoundarySheddingEnabled": True}, cluster.settings)
    assert action.restart == ("lowerBoundarySheddingEnabled",)
    trial = trials.try_out(action)
    assert trial is not None
    assert trial.after.topics >= trial.before.topics + trial.before.all_topics / 2
    assert "restart" in trial.text
    small = settings_action("setting", {HISTORY: 0.5}, cluster.settings)
    assert small.restart == ()


def test_a_setting_gets_no_credit_for_its_restart() -> None:
    """Brokers that start take bundles over, whatever was set: an idle setting was offered for what that brings."""
    many: dict[int, tuple[float, ...]] = {0: (1.0,) * 60, 1: (1.0,) * 4}
    settings = {"loadBalancerLoadSheddingStrategy": default_shedder(LoadManager.EXTENSIBLE).java_class}
    settings["loadBalancerMaxNumberOfBundlesInBundleLoadReport"] = "1"
    usage = (0.96, 0.06, 0.02, 0.02)
    trials, _ = trials_of(cluster(usage, many, load_manager=LoadManager.EXTENSIBLE, settings=settings, topics=5))
    trial = trials.try_out(settings_action("setting", {"lowerBoundarySheddingEnabled": True}, trials.snapshot.settings))
    assert trial is not None
    assert trial.verdict.word == "better"
    assert not trials.confirmed(trial).offered
    assert trial.text.startswith("Not recommended: the rolling restart that it needs brings as much alone.")
    assert f"alone, it ends with a peak of {trial.after.end_peak_percent:.1f} %" in trial.text


def test_a_setting_that_is_emptied_is_told_so() -> None:
    cluster = sample("avg-shedder.json")
    action = settings_action("setting", {"loadBalancerSheddingExcludedNamespaces": (), HISTORY: 0.5}, cluster.settings)
    assert action.words == f"Set loadBalancerSheddingExcludedNamespaces to nothing, {HISTORY} = 0.5"


def test_large_clusters_count_the_restart_instead() -> None:
    trials, _ = trials_of(sample("avg-shedder.json"))
    action = settings_action("setting", {"lowerBoundarySheddingEnabled": True}, trials.snapshot.settings)
    plain = Result.of(simulate(trials.snapshot, action.on(trials.scenario)))
    counted = _Counted(trials.snapshot, trials.scenario)
    trial = counted.try_out(action)
    assert trial is not None
    assert trial.after.topics == plain.topics + plain.all_topics


class _Counted(Trials):
    @property
    def simulates_restarts(self) -> bool:
        return False


def test_only_capacity_helps_where_everything_is_full() -> None:
    hot = ClusterSpec(brokers=4, bundles=60, topics=240, heterogeneity=0, ownership_skew=0.1, topic_skew=0.2)
    cluster = generate(hot, seed=3)
    busy = unchanged(cluster.info.pulsar_version, steps=(Step(ScaleTraffic(factor=2.6)),))
    outcome = Outcome(simulate(cluster, busy))
    trials = Trials(cluster, busy, outcome)
    assert outcome.result.end_peak_percent > 85
    found = fix(trials, outcome)
    assert found.needed
    assert found.brokers > 0
    assert found.sentence.startswith(f"Only capacity helps: add {found.brokers} broker")
    assert found.capacity is not None
    again = trials.try_out(found.capacity.action)
    assert again is not None
    assert again.after.end_peak_percent <= 85


def uneven() -> tuple[Snapshot, Scenario]:
    """A cluster that is far from even, with shedding off."""
    spec = ClusterSpec(
        brokers=8, bundles=80, topics=240, load_manager=LoadManager.EXTENSIBLE, ownership_skew=0.8, topic_skew=0.6
    )
    cluster = generate(spec, seed=5)
    return cluster, unchanged(cluster.info.pulsar_version, settings={SHEDDING_ENABLED: False})


def odd_cluster() -> tuple[Snapshot, Scenario]:
    """A cluster where a split, or moves, are not enough alone."""
    spec = ClusterSpec(
        brokers=4, bundles=60, topics=240, heterogeneity=0, ownership_skew=0.1, topic_skew=1.6,
        load_manager=LoadManager.EXTENSIBLE,
    )  # fmt: skip
    cluster = generate(spec, seed=5)
    off = {SHEDDING_ENABLED: False}
    return cluster, unchanged(cluster.info.pulsar_version, steps=(Step(ScaleTraffic(factor=1.6)),), settings=off)


def test_fix_moves_bundles_where_more_traffic_overloads_some() -> None:
    """Moves were tried on the cluster as captured only, and ten at most: "only capacity helps" was not true.

    And a broker more was the best pair where moves alone end the overload nearly as well.
    """
    cluster, scenario = uneven()
    busy = replace(scenario, steps=(Step(ScaleTraffic(factor=2.0)),))
    outcome = Outcome(simulate(cluster, busy))
    assert outcome.result.end_peak_percent > outcome.result.limit_percent
    found = fix(Trials(cluster, busy, outcome), outcome)
    best = found.best
    assert best is not None
    assert best.action.kind == "moves"
    assert best.after.end_peak_percent <= best.after.limit_percent
    assert found.brokers == 0
    for one in filter(None, (best, found.pair)):
        assert not {edit.kind for edit in one.action.edits} & {"add_brokers", "change_capacity"}, "no machine is bought"
    moves = [edit for edit in best.action.edits if isinstance(edit, MoveBundles)]
    assert sum(len(edit.moves) for edit in moves) > 10


def test_moves_wait_for_the_edits_before_them() -> None:
    cluster, scenario = uneven()
    late = replace(scenario, steps=(Step(BrokerLoss(broker=cluster.brokers.name[0], at_min=4.0)),))
    tried = list(candidates(cluster, late, Outcome(simulate(cluster, late))))
    moves = [edit for one in tried if one.kind == "moves" for edit in one.edits if isinstance(edit, MoveBundles)]
    assert moves
    assert all(edit.at_min == 5.0 for edit in moves)
    assert all(to != cluster.brokers.name[0] for edit in moves for _, to in edit.moves)
    never = replace(scenario, steps=(Step(BrokerLoss(broker=cluster.brokers.name[0], at_min=1_000.0)),))
    assert all(one.kind != "moves" for one in candidates(cluster, never, Outcome(simulate(cluster, never))))


@pytest.mark.parametrize("manager", list(LoadManager))
def test_brokers_that_get_nothing_by_themselves_come_with_moves(manager: LoadManager) -> None:
    """With shedding off, new brokers stay empty: no number of them seemed to help."""
    full = ClusterSpec(
        brokers=4, bundles=60, topics=240, heterogeneity=0, ownership_skew=0.1, topic_skew=0.2, load_manager=manager
    )
    cluster = generate(full, seed=3)
    off = {SHEDDING_ENABLED: False}
    busy = unchanged(cluster.info.pulsar_version, steps=(Step(ScaleTraffic(factor=2.6)),), settings=off)
    outcome = Outcome(simulate(cluster, busy))
    found = fix(Trials(cluster, busy, outcome), outcome)
    assert found.capacity is not None
    assert found.capacity.offered
    assert found.capacity.after.end_peak_percent <= found.capacity.after.limit_percent
    assert any(isinstance(edit, MoveBundles) for edit in found.capacity.action.edits)
    assert 0 < found.brokers <= 3
    assert found.sentence.startswith(f"Only capacity helps: add {found.brokers} brokers, and move ")
    assert f"Capacity: {found.capacity.action.words}. Tried: better" in fix_text(found)
    said = fix_document(found, REFERENCE.name)["capacity"]
    edits = [step["edit"]["kind"] for step in said["scenario"]["steps"]]
    assert "add_brokers" in edits
    assert "move_bundles" in edits


def test_new_brokers_that_a_finding_asks_for_come_with_moves() -> None:
    """With shedding off they stay empty, so that the card said "worse" of what it advised."""
    full = ClusterSpec(brokers=4, bundles=60, topics=240, heterogeneity=0, ownership_skew=0.1, topic_skew=0.2)
    cluster = generate(full, seed=3)
    off = {SHEDDING_ENABLED: False}
    busy = unchanged(cluster.info.pulsar_version, steps=(Step(ScaleTraffic(factor=3.2)),), settings=off)
    outcome = Outcome(simulate(cluster, busy))
    (finding,) = [one for one in diagnosed(outcome) if one.code == "out_of_capacity"]
    assert {edit.kind for edit in finding.edits} >= {"add_brokers", "move_bundles"}
    assert "Pulsar moves too little onto them by itself, so move " in finding.remedy
    assert finding.tried.startswith("Tried: better")


def test_one_broker_more_gets_the_same_bundles_from_a_finding_and_from_fix_it() -> None:
    """Fix it moved one bundle, just below the limit, where the finding moved two and evened both out."""
    trials, outcome = trials_of(cluster((1.0,), {0: (0.05, 0.05, 0.05, 0.05)}))  # below what shedding moves
    (finding,) = [one for one in diagnosed(outcome) if one.code == "out_of_capacity"]
    found = fix(trials, outcome)
    assert found.brokers == 1
    assert found.capacity is not None
    assert tuple(finding.edits) == tuple(found.capacity.action.edits)
    assert found.capacity.after.end_peak_percent < 60


@pytest.mark.parametrize(("manager", "seed"), [(LoadManager.MODULAR, 0), (LoadManager.EXTENSIBLE, 8)])
def test_no_machine_is_bought_where_every_broker_has_room(manager: LoadManager, seed: int) -> None:
    """A calm cluster was advised to add a broker, as nothing else made it better."""
    spec = ClusterSpec(brokers=3, bundles=6, topics=90, load_manager=manager, topic_skew=0.5, heterogeneity=0)
    even = generate(spec, seed)
    plain = unchanged("4.2.4")
    outcome = Outcome(simulate(even, plain))
    assert not outcome.result.overloaded_broker_min
    found = fix(Trials(even, plain, outcome), outcome)
    for one in filter(None, (found.best, found.pair, found.capacity, *found.others)):
        assert one.action.kind not in {"brokers", "machines"}


@pytest.mark.parametrize("strategy", ["ThresholdShedder", "TransferShedder"])
def test_no_broker_is_bought_that_takes_nothing_off_a_full_one(strategy: str) -> None:
    """All bundles are bound to one broker: another one only makes the average look better."""
    bound = Policies(
        isolation=(
            IsolationPolicy("only", ("acme/.*",), ("b1",)),
            IsolationPolicy("rest", ("other/.*",), ("b2", "b3")),
        )
    )
    full = hot(strategy, {0: (20.0,) * 8}, policies=bound, usage=(0.95, 0.05, 0.05))
    plain = unchanged(full.info.pulsar_version)
    outcome = Outcome(simulate(full, plain))
    assert outcome.result.overloaded_broker_min
    found = fix(Trials(full, plain, outcome), outcome)
    offered = [one for one in (found.best, found.pair, found.capacity, *found.others) if one is not None]
    assert not [one for one in offered if one.action.kind in {"brokers", "machines"} and one.verdict.overload != 1]


def test_a_change_of_the_cluster_is_followed_by_the_moves_that_are_best_after_it() -> None:
    cluster, scenario = odd_cluster()
    outcome = Outcome(simulate(cluster, scenario))
    found = fix(Trials(cluster, scenario, outcome), outcome)
    assert found.pair is not None
    kinds = {edit.kind for edit in found.pair.action.edits}
    assert "move_bundles" in kinds
    assert kinds & {"set_partitions", "split_bundle"}
    assert found.best is None or judge(found.best.after, found.pair.after).word != "worse"
    still = found.pair.after.end_peak_percent > found.pair.after.limit_percent
    assert found.sentence.endswith("Even then 85 % is exceeded.") == still


def test_the_best_comes_first(story: tuple[Trials, Outcome]) -> None:
    trials, _ = story
    tried = [
        trials.try_out(settings_action("setting", {HISTORY: value}, trials.snapshot.settings)) for value in (0.1, 0.9)
    ]
    known = [one for one in tried if one is not None]
    first, last = by_gain(known)
    assert judge(last.after, first.after).word in {"better", "trade-off", "same"}


def test_among_equals_the_one_that_leaves_brokers_apart_comes_last() -> None:
    """Both end the overload: one with fewer disconnected topics, and with brokers further apart than without it."""
    own = {"loadBalancerLoadSheddingStrategy": TRANSFER, "loadBalancerTransferEnabled": False}
    sizes = {0: (4.0,) * 16, 1: (4.0,) * 6, 2: (4.0,) * 5, 3: (4.0,) * 5}
    usage = (0.9, 0.2, 0.2, 0.2)
    full = cluster(usage, sizes, load_manager=LoadManager.EXTENSIBLE, settings=own)
    trials, outcome = trials_of(full)
    plans = [one for one in candidates(full, trials.scenario, outcome) if one.kind == "moves"]
    tried = [one for one in map(trials.try_out, plans) if one is not None and one.is_worth_it]
    signs = [one.verdict.balance == -1 for one in by_gain(tried)]
    assert len(signs) > 1
    assert any(signs)
    assert signs == sorted(signs)


def half_full() -> Snapshot:
    """A broker at 84 % beside two at 15 %: a lower limit relieves it halfway, and four moves even all out."""
    sizes = {0: (10.0,) * 8, 1: (10.0,) * 3, 2: (10.0,) * 3}
    return cluster((0.84, 0.15, 0.15), sizes, settings={"loadBalancerLoadSheddingStrategy": "OverloadShedder"})


def test_the_best_evens_out_rather_than_half_for_half_the_topics() -> None:
    """Both cost as much for a point: what stops halfway comes after what brings all of it, and says what it leaves."""
    trials, outcome = trials_of(half_full())
    found = fix(trials, outcome)
    assert found.best is not None
    assert found.best.action.kind == "moves"
    assert found.best.after.apart_points < 15
    assert "apart" not in found.sentence
    half = trials.try_out(settings_action("setting", {LIMIT: 64}, trials.snapshot.settings))
    assert half is not None
    assert half.is_worth_it
    assert half.after.topics < found.best.after.topics
    assert half.text.endswith(f"Brokers stay {half.after.apart_points:.0f} points apart.")
    assert [one.action.key for one in by_gain([half, found.best])] == [found.best.action.key, half.action.key]


def test_a_large_plan_whose_last_moves_bring_little_stays_behind() -> None:
    trials, outcome = trials_of(half_full())
    best = fix(trials, outcome).best
    assert best is not None
    plans = [one for one in candidates(trials.snapshot, trials.scenario, outcome) if one.kind == "moves"]
    tried = [one for one in map(trials.try_out, plans) if one is not None]
    most = max(tried, key=lambda one: one.after.topics)
    assert most.after.deviation_points < best.after.deviation_points
    assert most.after.topics > best.after.topics
    assert by_gain([*tried, best])[0].after.topics == best.after.topics


def test_how_many_worse_ones_something_beats_does_not_count(story: tuple[Trials, Outcome]) -> None:
    """Two trade-offs of each other, and copies of what one of them beats."""
    trials, _ = story
    some = trials.try_out(settings_action("setting", {HISTORY: 0.5}, trials.snapshot.settings))
    assert some is not None
    plain = replace(some.before, topics=0, thrashing_percent=0.0, overloaded_broker_min=0.0)
    plain = replace(plain, highest_percent=80.0, end_peak_percent=80.0, deviation_points=20.0, misplaced=0, stranded=0)

    def trial(peak: float, deviation: float, topics: int) -> Trial:
        after = replace(plain, highest_percent=peak, end_peak_percent=peak, deviation_points=deviation, topics=topics)
        return replace(some, before=plain, after=after, verdict=judge(plain, after))

    few, many, beaten = trial(60.0, 10.0, 100), trial(58.0, 9.0, 1000), trial(61.0, 11.0, 2000)
    assert by_gain([many, beaten, few])[0] is few
    assert by_gain([many, *[replace(beaten)] * 3, replace(few)])[0].after.topics == 100
    close = trial(70.0, 15.0, 50)
    assert [one.after.topics for one in by_gain([few, close, many])] == [100, 50, 1000]


def test_a_pair_is_both(story: tuple[Trials, Outcome]) -> None:
    trials, _ = story
    one = settings_action("setting", {HISTORY: 0.5}, trials.snapshot.settings)
    name = trials.snapshot.bundle_names[0]
    two = Action(kind="moves", words="Move 1 bundle", edits=(MoveBundles(moves=((name, "broker-01:8080"),)),))
    pair = both(one, two)
    assert pair.words == f"Set {HISTORY} = 0.5, and move 1 bundle"
    scenario = pair.on(trials.scenario)
    assert scenario.settings[HISTORY] == 0.5
    assert scenario.edits == two.edits


def test_the_command_says_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fix", "--snapshot", "threshold-shedder-80.json"]) == 0
    said = capsys.readouterr().out
    assert main(["fix", "--snapshot", "threshold-shedder-80.json", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert said.splitlines()[0] == document["sentence"]
    assert document["best"]["verdict"] == "better"
    assert document["best"]["steady"]
    assert document["best"]["text"] in said


def after_a_restart(manager: LoadManager) -> Snapshot:
    """Nearly all bundles came to the broker that was back first."""
    many: dict[int, tuple[float, ...]] = {0: (1.0,) * 60, 1: (1.0,) * 4}
    strategy = {"loadBalancerLoadSheddingStrategy": default_shedder(manager).java_class}
    return cluster((0.84, 0.06, 0.02, 0.02), many, load_manager=manager, settings=strategy, topics=5)


def test_brokers_are_evened_out_by_as_many_moves_as_it_takes() -> None:
    """Three moves, or ten, change nothing that counts where most of 64 bundles have to move."""
    trials, outcome = trials_of(after_a_restart(LoadManager.EXTENSIBLE))
    moves = [one for one in candidates(trials.snapshot, trials.scenario, outcome) if one.kind == "moves"]
    tried = [trial for one in moves if (trial := trials.try_out(one)) is not None]
    best, of_any_size = (one for one in tried if one.is_worth_it)
    assert of_any_size.after.end_peak_percent <= best.after.end_peak_percent
    assert best.after.end_peak_percent < outcome.result.end_peak_percent - 10


def test_the_extensible_load_manager_is_asked_to_report_more_bundles() -> None:
    """It moves only bundles that brokers report, ten of each by default."""
    trials, outcome = trials_of(after_a_restart(LoadManager.EXTENSIBLE))
    name = "loadBalancerMaxNumberOfBundlesInBundleLoadReport"
    asked = [one for one in candidates(trials.snapshot, trials.scenario, outcome) if name in one.settings]
    assert [one.settings[name] for one in asked] == [20, 50]
    trial = trials.try_out(asked[0])
    assert trial is not None
    assert trial.after.end_peak_percent < outcome.result.end_peak_percent - 5
    modular, seen = trials_of(after_a_restart(LoadManager.MODULAR))
    assert not [one for one in candidates(modular.snapshot, modular.scenario, seen) if name in one.settings]


def test_the_only_bundle_of_a_full_broker_is_split() -> None:
    manager = LoadManager.EXTENSIBLE
    strategy = {"loadBalancerLoadSheddingStrategy": default_shedder(manager).java_class}
    alone: dict[int, tuple[float, ...]] = dict.fromkeys(range(3), (60.0,))
    rates: dict[int, tuple[float, ...]] = dict.fromkeys(range(3), (5000.0,))
    made = cluster((0.91, 0.4, 0.03), alone, load_manager=manager, settings=strategy, rates=rates, topics=5)
    trials, outcome = trials_of(made)
    (gate,) = [one for one in diagnose(outcome) if one.code == "held_by_gate"]
    assert [edit.phrase() for edit in gate.edits] == [f"split {made.bundle_names[0]} by range_equally_divide"]
    pair = fix(trials, outcome).pair
    assert pair is not None
    assert pair.after.end_peak_percent < 85


@pytest.mark.parametrize("switch", ["loadBalancerSheddingEnabled", "loadBalancerEnabled"])
def test_with_shedding_off_a_strategy_comes_with_the_switch(switch: str) -> None:
    """It was offered alone, for what the restart brings that it needs."""
    off = cluster((0.9, 0.3, 0.3), settings={switch: False})
    trials, outcome = trials_of(off)
    found = [one for one in candidates(off, trials.scenario, outcome) if one.settings]
    strategies = [one for one in found if one.kind == "strategy"]
    assert strategies
    assert all(one.settings[switch] is True and "switch shedding on" in one.words for one in strategies)
    read = shedder_by_name(outcome.shedder).profile.bounds.keys() - {SHEDDING_ENABLED}
    assert not [one.words for one in found if read & one.settings.keys() and switch not in one.settings]
