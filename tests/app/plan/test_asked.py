"""What a person asked for, apart from what the load balancer does by itself."""

import pytest

from planner.cluster.names import AUTO_BUNDLE_SPLIT_ENABLED, SHEDDING_ENABLED
from planner.cluster.snapshot import Snapshot
from planner.share.asked import advised_against, asked_of, quiet
from planner.share.commands import CommandOptions, changed_settings, final_moves, planned_splits
from planner.share.export import plan_document
from planner.share.hand_over import commands_of, preview_lines
from planner.share.report import markdown_report
from planner.simulate.edits.drain_broker import DrainBroker
from planner.simulate.edits.move_bundle import MoveBundle
from planner.simulate.edits.split_bundle import SplitBundle
from planner.simulate.run import simulate
from planner.simulate.scenario import Step, unchanged
from planner.workspace.opening import open_snapshot
from tests.app.plan.scripts import carried_out, other_broker, trace_of

STORY = "story.zip"


@pytest.fixture(scope="module")
def story() -> Snapshot:
    return open_snapshot(STORY)[1]


def test_a_drain_unloads_the_drained_broker_and_nothing_else(story: Snapshot) -> None:
    broker = story.brokers.name[14]
    whole = simulate(story, unchanged(story.info.pulsar_version, steps=(Step(DrainBroker(broker=broker)),)))
    asked = asked_of(whole)
    unloads = [command for command in commands_of(asked) if command.section == "unloads" and command.words]
    mine = {story.bundle_names[at] for at in story.bundles_of(story.brokers.position[broker])}
    assert {command.bundle for command in unloads} == mine
    assert {command.source for command in unloads} == {broker}
    assert not [command for command in commands_of(asked) if command.section == "splits"]
    own = f"moves {len(asked.moves)} bundles and makes 8 splits"
    assert asked.sentence == f"You asked for {len(mine)} moves. Pulsar itself {own}."
    assert len(final_moves(whole)) > len(mine)
    everything = commands_of(asked, everything=True)
    assert {c.bundle for c in everything if c.words and c.section == "unloads"} == {
        move.bundle for move in final_moves(whole)
    }


def test_where_nothing_is_asked_for_all_is_a_preview(story: Snapshot) -> None:
    whole = simulate(story, unchanged(story.info.pulsar_version))
    asked = asked_of(whole)
    assert asked.nothing
    assert asked.sentence.startswith("You asked for nothing here: this scenario has no edits and no changed settings.")
    assert commands_of(asked) == ()
    assert asked.moves == final_moves(whole)
    assert asked.splits == planned_splits(whole)
    assert asked.followed is whole
    assert len(preview_lines(asked, shown=3)) == 4
    assert preview_lines(asked, shown=3)[-1] == f"and {len(asked.moves) + len(asked.splits) - 3} more"


def test_splits_that_split_lab_advises_against_say_so(story: Snapshot) -> None:
    whole = simulate(story, unchanged(story.info.pulsar_version))
    against = advised_against(whole)
    assert against, "a cascade around one topic"
    commands = [c for c in commands_of(asked_of(whole), everything=True) if c.section == "splits" and c.words]
    told = {command.bundle for command in commands if "Split lab: not worth it." in command.note}
    assert told == set(against)
    assert len(told) < len({command.bundle for command in commands})


def test_settings_are_asked_for_and_what_follows_from_them_is_not(several: Snapshot) -> None:
    asked = asked_of(trace_of(several, minUnloadMessage=77))
    assert not asked.nothing
    assert asked.sentence.startswith("You asked for 1 setting.")
    assert {command.section for command in commands_of(asked) if command.words} == {"settings"}


def test_held_switches_are_no_settings_of_the_plan(several: Snapshot) -> None:
    move = MoveBundle(bundle=several.bundle_names[3], destination=other_broker(several, 3))
    whole = trace_of(several, move, SplitBundle(bundle=several.bundle_names[40]))
    asked = asked_of(whole)
    assert changed_settings(asked.trace) == {}
    assert quiet(whole.scenario).settings == {SHEDDING_ENABLED: False, AUTO_BUNDLE_SPLIT_ENABLED: False}
    assert [one.bundle for one in final_moves(asked.trace)] == [several.bundle_names[3]]
    assert [event.bundle for event in planned_splits(asked.trace)] == [several.bundle_names[40]]
    assert carried_out(several, commands_of(asked))[several.bundle_names[3]] == move.destination


def test_a_simulation_that_the_caller_has_is_taken(several: Snapshot) -> None:
    move = MoveBundle(bundle=several.bundle_names[3], destination=other_broker(several, 3))
    whole = trace_of(several, move)
    mine, given = asked_of(whole), asked_of(whole, simulate(several, quiet(whole.scenario)))
    assert commands_of(mine) == commands_of(given)
    assert (mine.moves, mine.splits) == (given.moves, given.splits)


def test_json_and_report_have_what_was_asked_for(story: Snapshot) -> None:
    whole = simulate(story, unchanged(story.info.pulsar_version, cycles=2))
    document = plan_document(whole)
    assert document["commands"] == []
    assert [move["bundle"] for move in document["preview"]["moves"]] == [move.bundle for move in final_moves(whole)]
    assert document["moves"], "the whole simulation"
    assert plan_document(whole, options=CommandOptions(), everything=True)["commands"]
    report = markdown_report(whole)
    assert "Preview of what Pulsar does by itself, without a command:" in report
    assert "namespaces unload" not in report
