"""A successor namespace: each batch simulated and judged, in text, in JSON, and as a scenario."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from planner.cluster.snapshot import Snapshot
from planner.namespaces.successor import SuccessorTrial, _up_to, successor_move, successor_name, successor_trial
from planner.share.bundle_advice import advice_document, advice_text, move_scenario, successor_commands
from planner.simulate.edits.move_namespace import MoveNamespace
from planner.simulate.edits.registry import NewBrokers
from planner.simulate.judge import Result, judge
from planner.simulate.planned import plan_cluster
from planner.simulate.planned_spec import PlannedCluster, PlannedTopics
from planner.simulate.run import simulate
from planner.simulate.scenario import Step, unchanged
from tests.app.namespaces.asked import advice_on
from tests.app.plan.stand_in import StandIn

MANY = PlannedTopics(pattern="persistent://a/b/t-%d", count=1_500, bundles=160, msg_rate_per_s=20_000.0)


def crowded_cluster() -> Snapshot:
    """Too many bundles, evenly spread: a successor brings nothing."""
    return plan_cluster(PlannedCluster(brokers=3, topics=(MANY,)))


def stuck_cluster() -> Snapshot:
    """All bundles on one of three brokers, which sheds nothing: two have joined."""
    many = replace(MANY, msg_rate_per_s=150_000.0)
    cluster = plan_cluster(PlannedCluster(brokers=1, topics=(many,)))
    cluster = cluster.with_columns(settings=cluster.settings.changed(loadBalancerSheddingEnabled=False))
    joined = unchanged(cluster.info.pulsar_version, cycles=3).with_steps(Step(NewBrokers(count=2)))
    return simulate(cluster, joined).end


@pytest.fixture(scope="module")
def advised(stuck: Snapshot) -> tuple[SuccessorTrial, list[str]]:
    """A move to a successor that is worth it, and its commands."""
    advice = advice_on(stuck, "a/b")
    trial = successor_trial(stuck, successor_move(stuck, "a/b", advice.successor))
    return trial, list(successor_commands(advice, trial))


@pytest.fixture(scope="module")
def crowded() -> Snapshot:
    return crowded_cluster()


@pytest.fixture(scope="module")
def stuck() -> Snapshot:
    return stuck_cluster()


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


def test_text_json_and_scenario_say_the_same(stuck: Snapshot) -> None:
    advice = advice_on(stuck, "a/b")
    assert advice.successor
    document = json.loads(json.dumps(advice_document(advice)))
    trial = successor_trial(stuck, successor_move(stuck, "a/b", advice.successor))
    assert document["successor_move"] == trial.text
    assert document["successor_recommended"] is trial.is_worth_it is True
    assert [one["clients"] for one in document["successor_batches"]] == [one.clients for one in trial.batches]
    assert document["successor_batches"][0]["verdict"] == trial.batches[0].verdict.word
    assert document["successor_scenario"]["steps"][0]["edit"]["kind"] == "move_namespace"
    assert advice.sentence.startswith(f"Do not cut it, as {advice.successor} bundles would do: with its 160 bundles,")
    text = advice_text(advice)
    assert trial.text in text
    assert trial.heading in text
    commands = document["successor"]
    assert commands[1] == f"pulsar-admin namespaces create {trial.edit.successor} --bundles {advice.successor}"
    assert commands[-1] == "pulsar-admin namespaces delete a/b"
    assert all(line in text for line in commands)
    moved = [line for line in commands if " in all)" in line]
    assert ["(1,500 in all)" in line for line in moved] == [True, True]
    opened = move_scenario(trial, unchanged(stuck.info.pulsar_version, cycles=5))
    assert isinstance(opened.edits[0], MoveNamespace)
    assert simulate(stuck, opened).digest() == simulate(stuck, trial.scenario).digest()


@pytest.mark.parametrize("shell", ["/bin/sh", "/bin/dash", "/bin/bash"])
@pytest.mark.parametrize("fail_at", [0, 1, 2])
def test_commands_that_are_pasted_all_at_once_or_again_disconnect_nothing(
    stuck: Snapshot, advised: tuple[SuccessorTrial, list[str]], tmp_path: Path, shell: str, fail_at: int
) -> None:
    """They unloaded the namespace before its clients had moved."""
    trial, commands = advised
    stand_in = StandIn(tmp_path, stuck)
    before = stand_in.state()["owners"]
    for again in (False, True):
        done = stand_in.run("\n".join(commands), shell=shell, yes=False, fail_at=0 if again else fail_at)
        assert done.returncode == 1  # it has topics
        assert done.stderr == ""
    words = [["create", trial.edit.successor, "--bundles", "23"], ["policies", "a/b"], ["delete", "a/b"]]
    assert [call[2:] for call in stand_in.calls()] == words * 2
    assert stand_in.state()["owners"] == before
    assert stand_in.state()["created"][0] == trial.edit.successor


def test_what_is_not_worth_it_is_shown_as_tried_and_not_offered(crowded: Snapshot) -> None:
    advice = advice_on(crowded, "a/b")
    document = advice_document(advice)
    trial = successor_trial(crowded, successor_move(crowded, "a/b", advice.successor))
    assert not trial.is_worth_it
    assert (document["successor"], document["successor_scenario"]) == ([], None)
    assert (document["successor_move"], document["successor_recommended"]) == (trial.text, False)
    text = advice_text(advice)
    assert trial.heading in text
    assert "namespaces create" not in text


def test_the_number_that_is_kept_is_simulated_as_well(stuck: Snapshot) -> None:
    """It was recommended untried where it is neither usual nor the fewest even one, and there was no successor."""
    advice = advice_on(stuck, "a/b")
    assert advice.recommended in {one.bundles for one in advice.tried}
    assert advice.successor == advice.recommended < 128


def test_a_name_that_is_taken_is_not_used() -> None:
    taken = PlannedTopics(pattern="persistent://a/b-8/t-%d", count=5, bundles=4)
    cluster = plan_cluster(PlannedCluster(brokers=3, topics=(MANY, taken)))
    assert successor_name(cluster, "a/b", 8) == "a/b-8-new"
