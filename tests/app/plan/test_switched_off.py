"""Shedding and splits that are off are the first thing that pages and commands say."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from planner.__main__ import main
from planner.cluster.names import AUTO_BUNDLE_SPLIT_ENABLED, SHEDDING_ENABLED
from planner.cluster.snapshot import Snapshot
from planner.cluster.switches import Hold, hold_of, shedding_is_off
from planner.explain.switched_off import switched_off
from planner.formats.document import write_document
from planner.optimize.answer import best_plan
from planner.optimize.question import Question
from planner.optimize.stability import stability_of
from planner.workspace.opening import open_snapshot

MARK = "false.held-by-6ee77aa694a4.since-20261125T033100Z.was-unset-true"


def off(snapshot: Snapshot, *names: str, dynamic: Mapping[str, str] | None = None) -> Snapshot:
    changed = snapshot.settings.changed(**{AUTO_BUNDLE_SPLIT_ENABLED: True} | dict.fromkeys(names, False))
    return replace(snapshot, settings=changed, info=replace(snapshot.info, dynamic_settings=dynamic))


def test_nothing_is_said_of_what_is_on(small: Snapshot) -> None:
    assert switched_off(off(small)) == ()
    assert not shedding_is_off(small.settings)


def test_it_names_what_turns_a_switch_off(small: Snapshot) -> None:
    said = {
        name: one.text
        for name, dynamic in {
            "unknown": None,
            "conf": {},
            "dynamic": {SHEDDING_ENABLED: "false"},
            "held": {SHEDDING_ENABLED: MARK},
        }.items()
        for one in switched_off(off(small, SHEDDING_ENABLED, dynamic=dynamic))
    }
    on = f"To turn it on: pulsar-admin brokers update-dynamic-config --config {SHEDDING_ENABLED} --value true"
    assert said["unknown"] == f"Shedding is off: {SHEDDING_ENABLED} is false. No bundle is shed. {on}"
    assert said["conf"] == f"Shedding is off: {SHEDDING_ENABLED} is false in broker.conf. No bundle is shed. {on}"
    assert f"{SHEDDING_ENABLED} is false in the dynamic configuration." in said["dynamic"]
    assert said["held"].startswith(
        f"Shedding is off: a script (6ee77aa694a4) has held {SHEDDING_ENABLED} since 2026-11-25 03:31 UTC."
    )


def test_both_and_the_whole_load_balancer(small: Snapshot) -> None:
    both = off(small, SHEDDING_ENABLED, AUTO_BUNDLE_SPLIT_ENABLED)
    assert [one.setting for one in switched_off(both)] == [SHEDDING_ENABLED, AUTO_BUNDLE_SPLIT_ENABLED]
    assert switched_off(both)[1].text.startswith("Automatic splits are off:")
    assert not shedding_is_off(off(small, AUTO_BUNDLE_SPLIT_ENABLED).settings)
    whole = off(small, "loadBalancerEnabled", SHEDDING_ENABLED)
    assert [one.setting for one in switched_off(whole)] == ["loadBalancerEnabled"]
    assert shedding_is_off(whole.settings)


@pytest.mark.parametrize(
    "value",
    [
        "false",
        "true",
        MARK + "x",
        MARK.replace("6ee", "xyz"),
        MARK.replace("was-unset", "was-gone"),
        MARK.replace("20261125", "20261325"),
    ],
)
def test_what_is_no_mark(value: str) -> None:
    assert hold_of(value) is None


def test_a_mark() -> None:
    found = hold_of(MARK)
    assert found is not None
    assert found == Hold("6ee77aa694a4", found.since, overridden=False, was_on=True)
    assert found.since.isoformat() == "2026-11-25T03:31:00+00:00"


@pytest.fixture
def five() -> Snapshot:
    return open_snapshot("pip-364.json")[1]


def test_stable_is_said_of_the_time_when_shedding_is_on(five: Snapshot) -> None:
    """With shedding off nothing is ever shed, which says nothing about the plan."""
    on = replace(five, settings=five.settings.changed(loadBalancerBrokerThresholdShedderPercentage=1))
    question = Question(moves=1, rounds=1)
    undone = stability_of(best_plan(on, question))
    assert not undone.stable
    held = stability_of(best_plan(off(on, SHEDDING_ENABLED), question))
    assert not held.stable
    assert (
        held.sentence == f"Shedding is off, so nothing undoes the plan for now. Once shedding is on: {undone.sentence}"
    )


@pytest.mark.parametrize("form", ["text", "--json", "--commands"])
def test_commands_say_it_first(five: Snapshot, tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str) -> None:
    path, scenario = tmp_path / "s.json", tmp_path / "scenario.json"
    path.write_text(write_document(off(five, SHEDDING_ENABLED, dynamic={SHEDDING_ENABLED: "false"})))
    scenario.write_text('{"version": 1, "cycles": 1}')
    more = [] if form == "text" else [form]
    for words in (
        ["plan", "--snapshot", str(path), "--scenario", str(scenario)],
        ["optimize", "--snapshot", str(path), "--moves", "2"],
    ):
        assert main([*words, *more]) == 0
        said = capsys.readouterr()
        text = f"Shedding is off: {SHEDDING_ENABLED} is false in the dynamic configuration."
        if form == "text":
            assert [line for line in said.out.splitlines() if line][3 if words[0] == "plan" else 2].startswith(text)
        else:
            assert f"warning: {text}" in said.err
        if form == "--json":
            json.loads(said.out)
