"""Shedding and splits that are held for a while, and what the best plan and the scenario that it opens say of it."""

import pytest

from planner.explain.outcome import Outcome
from planner.optimize.absorb import left_by, made_after_min, on_its_edits
from planner.optimize.answer import best_plan
from planner.optimize.offer import offer_of
from planner.optimize.question import Question
from planner.optimize.waves import on_top_of, scenario_of, waves_of
from planner.simulate.edits.add_brokers import AddBrokers
from planner.simulate.edits.hold_balancer import HoldBalancer
from planner.simulate.edits.registry import BrokerLoss
from planner.simulate.moves import relocations, thrashing_percent
from planner.simulate.run import simulate
from planner.simulate.scenario import Step, unchanged
from tests.app.optimize.asked import PLANS_OF_STORY, STORY, plan_of, sample


@pytest.mark.parametrize("file", ["story.zip", "transfer-shedder.json"])
def test_nothing_is_shed_or_split_while_both_are_held(file: str) -> None:
    snapshot = sample(file)
    hold = HoldBalancer(duration_min=6.0, at_min=2.0)
    plain = unchanged(snapshot.info.pulsar_version, cycles=12)
    free, held = (simulate(snapshot, one) for one in (plain, plain.with_steps(Step(hold))))
    start_ms = snapshot.info.captured_at_ms
    within = [event for event in held.events if 2 * 60_000 <= event.at_ms - start_ms < 8 * 60_000]
    assert {event.kind for event in within} <= {"placed"}
    assert [e for e in held.events if e.at_ms - start_ms < 2 * 60_000] == [
        e for e in free.events if e.at_ms - start_ms < 2 * 60_000
    ]
    assert any(event.at_ms - start_ms >= 8 * 60_000 for event in held.events) or not free.cycles[8].unloads


def test_a_held_cycle_says_why_nothing_is_shed() -> None:
    snapshot = sample("threshold-shedder-80.json")
    scenario = unchanged(snapshot.info.pulsar_version, cycles=4).with_steps(Step(HoldBalancer(duration_min=2.0)))
    trace = simulate(snapshot, scenario)
    for at, cycle in enumerate(trace.cycles):
        decision = trace.decision(at)
        assert decision.moves == tuple(unload.move for unload in cycle.unloads if unload.carried_out)
        names = cycle.view.brokers.name, cycle.view.bundle_names
        said = {reason.text for block in decision.shedding.reasons for reason in block.rows(*names)}
        assert ("automatic unloading is turned off" in said) is (at < 2)


@pytest.mark.parametrize(
    ("file", "rounds"),
    [
        pytest.param(STORY, Question().rounds, marks=pytest.mark.xdist_group(PLANS_OF_STORY)),
        ("pip-364.json", Question().rounds),
        ("threshold-lower-boundary.json", 1),
    ],
    ids=str,
)
def test_a_best_plan_that_is_opened_as_a_scenario_is_judged_alike(file: str, rounds: int) -> None:
    """Whoever opens the plan that the page calls better is not told by the gate that it is worse.

    More rounds find no other plan for the last one, and take six times as long.
    """
    snapshot = sample(file)
    offer = offer_of(plan_of(file, Question(moves=18, rounds=rounds)))
    assert offer.plan.moves
    assert offer.verdict is not None
    opened = Outcome(simulate(snapshot, scenario_of(offer.plan, waves_of(offer.plan, 1000), held=False)))
    assert opened.gate is not None
    assert not opened.gate.objections
    assert opened.gate.verdict.word == offer.verdict.word


def test_what_is_said_of_a_plan_is_what_it_opens_as() -> None:
    """Four brokers join, and two bundles are split at random: once only the opened scenario shed one to and fro."""
    joined = unchanged("4.2.4", steps=(Step(AddBrokers(count=4)),))
    start = left_by(sample("story.zip"), joined)
    offer = offer_of(best_plan(start, Question(moves=13)))
    trace = simulate(start, scenario_of(offer.plan, waves_of(offer.plan, 1000), held=False))
    shed = [event for event in trace.events if event.kind == "shed"]
    assert tuple(event.bundle for event in shed) == tuple(event.bundle for event in offer.stability.shed)
    assert offer.stability.stable == (not shed and not offer.stability.divided and not offer.stability.risen_in)
    assert offer.verdict is not None
    assert ("thrashing" in offer.verdict.text) is (thrashing_percent(relocations(trace)) > 0)
    assert f"sheds {len(shed)} bundle" in offer.stability.sentence or not shed


@pytest.mark.parametrize("settled_min", [0.0, 30.0])
def test_a_plan_for_a_scenario_opens_with_its_edits(settled_min: float) -> None:
    """It dropped them, and moved bundles to brokers that were not there."""
    snapshot = sample("pip-364.json")
    base = unchanged("4.2.4", steps=(Step(AddBrokers(count=2, at_min=3.0)),))
    plan = best_plan(left_by(snapshot, base), Question(moves=6))
    assert any(move.destination.startswith("added-") for move in plan.moves)
    opened = on_top_of(base, scenario_of(plan, waves_of(plan, 10), held=False), settled_min=settled_min)
    trace = simulate(snapshot, opened)
    moved = [event for event in trace.events if event.kind == "moved"]
    assert [event.bundle for event in moved] == [
        move.bundle for wave in waves_of(plan, 10) for move in wave.moves if move.bundle in {e.bundle for e in moved}
    ]
    begins = snapshot.info.captured_at_ms + (settled_min or 3.0) * 60_000
    assert moved[0].at_ms >= begins
    assert len(moved) == len(plan.moves) or settled_min


def test_a_plan_begins_when_the_edits_are_made_and_not_when_they_begin() -> None:
    """A dead broker is noticed after half a minute: its bundles were moved before any broker had them."""
    snapshot = sample("avg-shedder.json")
    lost = snapshot.brokers.name[-1]
    base = unchanged("4.2.4", steps=(Step(BrokerLoss(broker=lost, at_min=3.0)),))
    assert made_after_min(snapshot, base) == pytest.approx(3.5)
    plan = best_plan(left_by(snapshot, base), Question(moves=3))
    opened = on_its_edits(snapshot, base, scenario_of(plan, waves_of(plan, 1000), held=False))
    trace = simulate(snapshot, opened)
    start_ms, events = snapshot.info.captured_at_ms, trace.events
    placed = [event.at_ms for event in events if event.kind == "placed"]
    moved = [event for event in events if event.kind == "moved"]
    assert placed
    assert max(placed) < min(event.at_ms for event in moved) == start_ms + 4 * 60_000
    assert {event.bundle: event.destination for event in moved} == {m.bundle: m.destination for m in plan.moves}
    assert trace.end.bundles.owner.tolist() == plan.after().bundles.owner.tolist()
    assert made_after_min(snapshot, unchanged("4.2.4")) == 0
