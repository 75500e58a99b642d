"""A plan beside a later capture: what is done, what is left, what diverged."""

from dataclasses import replace

import pytest

from planner.cluster.errors import ScenarioError
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot
from planner.share.commands import changed_settings, final_moves, planned_splits
from planner.share.follow import Following, follow, new_brokers
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.edits.add_brokers import AddBrokers
from planner.simulate.edits.drain_broker import DrainBroker
from planner.simulate.edits.edit import Edit
from planner.simulate.edits.move_bundle import MoveBundle
from planner.simulate.edits.split_bundle import SplitBundle
from planner.simulate.generate import generate
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario, Step
from planner.simulate.trace import Trace
from tests.app.plan.random_scenarios import random_plan


@pytest.fixture(scope="module")
def start() -> Snapshot:
    return generate(ClusterSpec(brokers=5, namespaces=4, bundles=64, topics=300, msg_rate_per_s=40_000), 3)


def captured_later(snapshot: Snapshot, like: Snapshot, settings: Settings | None = None) -> Snapshot:
    """The same cluster, captured ten minutes after another one."""
    info = replace(snapshot.info, captured_at_ms=like.info.captured_at_ms + 600_000)
    return replace(snapshot, info=info, settings=settings or snapshot.settings)


def run(start: Snapshot, *edits: Edit, cycles: int = 1, **settings: int) -> Trace:
    return simulate(start, Scenario(steps=tuple(map(Step, edits)), settings=settings, cycles=cycles))


def states(found: Following) -> dict[str, str]:
    return {step.name: step.state for step in found.steps}


def moving(start: Snapshot, *rows: int) -> list[MoveBundle]:
    """Moves of bundles to the next broker."""
    brokers = start.brokers.name
    return [
        MoveBundle(
            bundle=start.bundle_names[row], destination=brokers[(int(start.bundles.owner[row]) + 1) % len(brokers)]
        )
        for row in rows
    ]


@pytest.mark.parametrize("seed", range(20))
def test_before_it_everything_is_left_and_after_it_everything_is_done(start: Snapshot, seed: int) -> None:
    trace = random_plan(start, seed)
    steps = len(changed_settings(trace)) + len(planned_splits(trace)) + len(final_moves(trace))
    before = follow(trace, captured_later(start, start))
    assert len(before.steps) == steps
    assert set(states(before).values()) <= {"left"}
    after = follow(trace, captured_later(trace.end, start, trace.settings))
    assert {step.state for step in after.steps} <= {"done"}
    assert after.sentence.startswith("The plan is complete" if steps else "This plan has no step")
    assert not after.advice


def test_half_of_a_plan_and_what_others_did(start: Snapshot) -> None:
    moves = moving(start, 1, 9, 20)
    split = SplitBundle(bundle=start.bundle_names[40])
    trace = run(start, split, *moves, minUnloadMessage=77)
    third = start.brokers.name[(int(start.bundles.owner[20]) + 2) % 5]
    happened = run(start, moves[0], replace(moves[2], destination=third), *moving(start, 33))
    found = follow(trace, captured_later(happened.end, start))
    assert states(found) == {
        "minUnloadMessage": "left",
        start.bundle_names[40]: "left",
        moves[0].bundle: "done",
        moves[1].bundle: "left",
        moves[2].bundle: "elsewhere",
    }
    assert {step.name: step.found for step in found.steps}[moves[2].bundle] == third
    assert [name for name, _, _ in found.strayed] == [start.bundle_names[33]]
    assert found.sentence == "Of 5 steps: 1 done, 3 still to do, 1 diverged."
    assert "Plan again" in found.advice
    assert found.minutes == 10


def test_a_moved_bundle_may_have_been_split_since(start: Snapshot) -> None:
    (move,) = moving(start, 9)
    trace = run(start, move)
    cut = SplitBundle(bundle=move.bundle)
    done = follow(trace, captured_later(run(start, move, cut).end, start))
    left = follow(trace, captured_later(run(start, cut).end, start))
    assert (states(done), done.steps[0].found) == ({move.bundle: "done"}, f"{move.destination}, in 2 parts")
    assert states(left) == {move.bundle: "left"}


def test_a_part_waits_for_its_split(start: Snapshot) -> None:
    split = SplitBundle(bundle=start.bundle_names[40])
    children = next(event.children for event in run(start, split).events if event.kind == "split")
    other = start.brokers.name[(int(start.bundles.owner[40]) + 1) % 5]
    trace = run(start, split, MoveBundle(bundle=children[1], destination=other))
    found = follow(trace, captured_later(start, start))
    assert states(found) == {start.bundle_names[40]: "left", children[1]: "left"}
    assert "as part of" in found.steps[1].found


def test_added_brokers_have_other_names_in_the_end(start: Snapshot) -> None:
    trace = run(start, AddBrokers(count=1), DrainBroker(broker=start.brokers.name[0]), cycles=4)
    brokers = replace(
        trace.end.brokers, name=tuple(n.replace("added-1:8080", "real-9:8080") for n in trace.end.brokers.name)
    )
    later = captured_later(replace(trace.end, brokers=brokers), start)
    assert new_brokers(trace, later) == (("added-1:8080",), ("real-9:8080",))
    assert "elsewhere" in states(follow(trace, later)).values()
    assert set(states(follow(trace, later, {"added-1:8080": "real-9:8080"})).values()) == {"done"}


def test_other_clusters_and_earlier_captures_are_refused(start: Snapshot) -> None:
    trace = run(start, *moving(start, 1))
    with pytest.raises(ScenarioError, match="not later"):
        follow(trace, start)
    foreign = replace(start, info=replace(start.info, cluster="another"))
    with pytest.raises(ScenarioError, match="another"):
        follow(trace, captured_later(foreign, start))


def test_a_namespace_that_is_not_there(start: Snapshot) -> None:
    trace = run(start, *moving(start, 1), SplitBundle(bundle=start.bundle_names[1]))
    later = captured_later(replace(start, namespaces=tuple(f"{name}-2" for name in start.namespaces)), start)
    assert set(states(follow(trace, later)).values()) == {"gone"}
