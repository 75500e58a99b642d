"""A successor namespace: each batch simulated and judged, in text, in JSON, and as a scenario."""

import json

import pytest

from planner.cluster.snapshot import Snapshot
from planner.namespaces.advice import bundle_advice
from planner.namespaces.successor import _up_to, successor_move, successor_name, successor_trial
from planner.share.bundle_advice import advice_document, advice_text, move_scenario
from planner.simulate.edits.move_namespace import MoveNamespace
from planner.simulate.judge import Result, judge
from planner.simulate.planned import plan_cluster
from planner.simulate.planned_spec import PlannedCluster, PlannedTopics
from planner.simulate.run import simulate
from planner.simulate.scenario import unchanged

MANY = PlannedTopics(pattern="persistent://a/b/t-%d", count=1_500, bundles=160, msg_rate_per_s=20_000.0)


@pytest.fixture(scope="module")
def crowded() -> Snapshot:
    return plan_cluster(PlannedCluster(brokers=3, topics=(MANY,)))


def test_batches_are_those_of_one_simulation_judged_by_the_judge(crowded: Snapshot) -> None:
    move = successor_move(crowded, "a/b", 8)
    trial = successor_trial(crowded, move)
    assert move.batches == len(trial.batches) == 3
    assert sum(one.clients for one in trial.batches) == 3_000
    assert [one.at_min for one in trial.batches] == [0.0, 5.0, 10.0]
    whole = simulate(crowded, trial.scenario)
    plain = simulate(crowded, unchanged(crowded.info.pulsar_version, cycles=trial.scenario.cycles))
    assert trial.verdict == judge(Result.of(plain), Result.of(whole))
    assert list(_up_to(crowded, trial.scenario, [3, trial.scenario.cycles]))[-1].digest() == whole.digest()
    told = sum(one.topics + one.other_topics for one in trial.batches)
    assert told <= Result.of(whole).topics


def test_a_move_that_brings_overload_is_not_recommended() -> None:
    busy = PlannedTopics(pattern="persistent://a/b/t-%d", count=1_500, bundles=160, msg_rate_per_s=900_000.0)
    cluster = plan_cluster(PlannedCluster(brokers=3, topics=(busy,)))
    trial = successor_trial(cluster, successor_move(cluster, "a/b", 1))
    assert any(one.verdict.overload != 1 for one in trial.batches)
    assert not trial.is_worth_it
    assert "not worth it" in trial.heading
    assert "brings overload from batch" in trial.text


def test_text_json_and_scenario_say_the_same(crowded: Snapshot) -> None:
    advice = bundle_advice(crowded, "a/b")
    assert advice.successor
    document = json.loads(json.dumps(advice_document(advice)))
    trial = successor_trial(crowded, successor_move(crowded, "a/b", advice.successor))
    assert document["successor_move"] == trial.text
    assert document["successor_recommended"] == trial.is_worth_it
    assert [one["clients"] for one in document["successor_batches"]] == [one.clients for one in trial.batches]
    assert document["successor_batches"][0]["verdict"] == trial.batches[0].verdict.word
    assert document["successor_scenario"]["steps"][0]["edit"]["kind"] == "move_namespace"
    text = advice_text(advice)
    assert trial.text in text
    assert trial.heading in text
    assert f"namespaces create {trial.edit.successor} --bundles {advice.successor}" in text
    opened = move_scenario(trial, unchanged(crowded.info.pulsar_version, cycles=5))
    assert isinstance(opened.edits[0], MoveNamespace)
    assert simulate(crowded, opened).digest() == simulate(crowded, trial.scenario).digest()


def test_a_name_that_is_taken_is_not_used() -> None:
    taken = PlannedTopics(pattern="persistent://a/b-8/t-%d", count=5, bundles=4)
    cluster = plan_cluster(PlannedCluster(brokers=3, topics=(MANY, taken)))
    assert successor_name(cluster, "a/b", 8) == "a/b-8-new"
