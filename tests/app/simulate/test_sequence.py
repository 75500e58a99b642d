"""Cycles one after the other: what goes on from one to the next, and what does not as nothing is carried out."""

from dataclasses import replace

import pytest

from planner.cluster.load_manager import LoadManager
from planner.cluster.snapshot import Snapshot
from planner.pulsar.manager.cycle import next_cycle
from planner.simulate.sequence import decide_cycles, decide_split_checks, same_load
from planner.workspace.samples import load_sample, samples


def sample(file: str) -> Snapshot:
    return load_sample(next(s for s in samples() if s.file == file))


def test_clock_and_reports_advance_together() -> None:
    snapshot = sample("transfer-shedder.json")
    config = snapshot.settings.changed(loadBalancerSheddingIntervalMinutes=7)
    made = same_load(snapshot, 3, config)
    assert made[0] is snapshot
    assert [m.info.captured_at_ms - snapshot.info.captured_at_ms for m in made] == [0, 420_000, 840_000]
    known = snapshot.brokers.updated_at_ms > 0
    for at, one in enumerate(made):
        moved = one.brokers.updated_at_ms - snapshot.brokers.updated_at_ms
        assert (moved == at * 420_000 * known).all()


@pytest.mark.parametrize("file", ["avg-shedder.json", "threshold-shedder.json", "transfer-shedder.json"])
def test_the_first_cycle_is_that_of_a_leader_just_elected(file: str) -> None:
    snapshot = sample(file)
    (step,) = decide_cycles([snapshot], snapshot.settings, 3)
    memory, decision = next_cycle(snapshot, None, snapshot.settings, 3)
    assert step.after == memory
    assert step.decision.moves == decision.moves


@pytest.mark.parametrize("file", ["threshold-shedder.json", "transfer-shedder.json", "transfer-shedder-swap.json"])
def test_what_is_not_carried_out_is_chosen_again(file: str) -> None:
    snapshot = sample(file)
    steps = decide_cycles(same_load(snapshot, 4, snapshot.settings), snapshot.settings, 0)
    chosen = [{move.bundle for move in step.decision.moves} for step in steps if step.decision.moves]
    assert len(chosen) >= 2
    assert all(one == chosen[0] for one in chosen)
    assert all(set(step.after.shedding.recently_unloaded_bundles) == chosen[0] for step in steps if step.decision.moves)


def test_marks_from_before_stay_until_their_grace_is_over() -> None:
    snapshot = sample("threshold-shedder.json")
    memory, decision = next_cycle(snapshot, None, snapshot.settings, 0)
    config = snapshot.settings.changed(loadBalancerSheddingIntervalMinutes=20)
    steps = decide_cycles(same_load(snapshot, 3, config)[1:], config, 0, memory)
    marked = decision.moves[0].bundle
    assert marked not in {move.bundle for move in steps[0].decision.moves}
    assert marked in {move.bundle for move in steps[1].decision.moves}  # 40 minutes later, of 30


def test_counters_go_on() -> None:
    snapshot = sample("avg-shedder.json")
    config = snapshot.settings.changed(loadBalancerAvgShedderHitCountHighThreshold=3)
    steps = decide_cycles(same_load(snapshot, 7, config), config, 0)
    assert [len(step.decision.moves) for step in steps] == [0, 0, 1, 0, 0, 1, 0]


def test_only_the_last_cycle_explains_its_candidates() -> None:
    snapshot = sample("threshold-shedder-80.json")
    steps = decide_cycles(same_load(snapshot, 2, snapshot.settings), snapshot.settings, 0)
    given = [
        sum(len(s.reasons) for u in step.decision.unloads if u.selection for s in u.selection.steps) for step in steps
    ]
    assert given[0] == 0
    assert given[1] > 0


def test_split_hits_fill_until_a_bundle_is_split() -> None:
    snapshot = sample("split-flow-or-qps.json")
    snapshot = replace(snapshot, info=replace(snapshot.info, load_manager=LoadManager.EXTENSIBLE))
    config = snapshot.settings.changed(
        defaultNamespaceBundleSplitAlgorithm="range_equally_divide",
        loadBalancerNamespaceBundleSplitConditionHitCountThreshold=2,
    )
    steps = decide_split_checks(same_load(snapshot, 4, config), config)
    counted = [max((h for s in step.after.values() for h in s.hit_counts.values()), default=0) for step in steps]
    assert counted == [1, 2, 0, 1]
    assert [len(step.decision.splits) for step in steps] == [0, 0, 1, 0]


def test_names_and_orders_are_worked_out_once_for_all_cycles() -> None:
    snapshot = sample("threshold-shedder.json")
    steps = decide_cycles(same_load(snapshot, 3, snapshot.settings), snapshot.settings, 0)
    assert len({id(step.snapshot.bundle_names) for step in steps}) == 1
