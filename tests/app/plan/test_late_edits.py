"""An edit that is due after the last cycle is not made: every answer leaves it out, and says so."""

from dataclasses import replace

import pytest

from planner.explain.outcome import Outcome
from planner.optimize.absorb import left_by, on_its_edits
from planner.optimize.answer import best_plan
from planner.optimize.question import Question
from planner.optimize.waves import scenario_of
from planner.share.asked import asked_of
from planner.share.carry_out import Basis
from planner.share.commands import CommandOptions
from planner.share.hand_over import commands_of, plan_script
from planner.share.plan_text import plan_text
from planner.simulate.edits.registry import BrokerDrain, TrafficGrowth
from planner.simulate.edits.remove_broker import RemoveBroker
from planner.simulate.losses import with_loss
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario, Step, unchanged
from planner.simulate.usage_model import settled
from tests.app.plan.test_one_answer import cluster

SNAPSHOT = cluster(2)
LATE = RemoveBroker(broker=SNAPSHOT.brokers.name[1], at_min=5.0)
SOON = BrokerDrain(broker=SNAPSHOT.brokers.name[0])


def of(*edits: RemoveBroker | BrokerDrain | TrafficGrowth, cycles: int = 5) -> Scenario:
    return unchanged(SNAPSHOT.info.pulsar_version, steps=tuple(map(Step, edits)), cycles=cycles)


def test_it_is_said_and_changes_nothing() -> None:
    trace = simulate(SNAPSHOT, of(SOON, LATE))
    (said,) = [note for note in trace.notes if note.startswith("Not made")]
    assert said == f"Not made, as it is due after the last of 5 cycles: {LATE.phrase()}. Simulate more cycles."
    assert said in plan_text(trace, "", ())
    assert trace.digest() == simulate(SNAPSHOT, of(SOON)).digest()
    assert [step.on for step in trace.scenario.steps] == [True, False]
    in_time = simulate(SNAPSHOT, of(SOON, LATE, cycles=6))
    assert not [note for note in in_time.notes if note.startswith("Not made")]
    assert any(event.source == LATE.broker for event in in_time.events)


def test_one_that_is_not_done_after_the_last_cycle_is_named() -> None:
    """A broker that is drained bundle by bundle was left half full without a word."""
    most = SNAPSHOT.brokers.name[int(SNAPSHOT.bundle_counts().argmax())]
    slow, said = BrokerDrain(broker=most, bundles_per_min=0.5), "Not finished within 5 cycles"
    trace = simulate(SNAPSHOT, of(LATE, slow))
    assert [note for note in trace.notes if note.startswith("Not f")] == [
        f"{said}: {slow.phrase()}. Simulate more cycles."
    ]
    assert (trace.end.bundles.owner == SNAPSHOT.brokers.position[most]).any()
    assert not [note for note in simulate(SNAPSHOT, of(SOON, cycles=30)).notes if note.startswith("Not finished")]


def test_a_long_interval_gives_it_time() -> None:
    slow = replace(of(LATE, cycles=1), settings={"loadBalancerSheddingIntervalMinutes": 6})
    assert not slow.too_late(SNAPSHOT)
    assert slow.within(SNAPSHOT) == slow


def test_no_script_stops_a_broker_whose_bundles_were_not_moved() -> None:
    """It asked to stop the broker, and moved none of its bundles."""
    asked = asked_of(simulate(SNAPSHOT, of(SOON, LATE)))
    steps = [command for command in commands_of(asked) if command.section == "leaving"]
    assert [SOON.broker in command.note for command in steps] == [True]
    script = plan_script(asked, CommandOptions(), made_at_ms=SNAPSHOT.info.captured_at_ms)
    assert f"stop {LATE.broker}" not in script
    alone = asked_of(simulate(SNAPSHOT, of(LATE)))
    assert alone.nothing
    assert Outcome(alone.whole).gate.planned is False


@pytest.mark.parametrize("after_cycles", [False, True])
def test_a_best_plan_opens(*, after_cycles: bool) -> None:
    """The plan moved bundles to the broker, which was gone by then: the scenario could not be simulated."""
    base = of(TrafficGrowth(factor=0.5), LATE)
    start = settled(simulate(SNAPSHOT, base)) if after_cycles else left_by(SNAPSHOT, base)
    others = tuple(name for name in SNAPSHOT.brokers.name if name != LATE.broker)
    plan = best_plan(start, Question(moves=3, rounds=1, exclude=others))
    assert {move.destination for move in plan.moves} <= {LATE.broker}
    opened = on_its_edits(SNAPSHOT, base, scenario_of(plan, held=False), after_cycles=after_cycles)
    assert simulate(SNAPSHOT, opened).complete
    assert not any(LATE.broker in command.note for command in Basis(SNAPSHOT, base).asked(("pulsar-admin",)))


def test_a_loss_that_is_one_click_away_happens() -> None:
    lost = with_loss(of(cycles=1), LATE.broker)
    assert not lost.too_late(SNAPSHOT)
    assert lost.cycles == 3
