"""Scripts of every sample, run as they are: whatever the cluster does, settings end as they began."""

import re
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planner.cluster.errors import PlannerError
from planner.cluster.snapshot import Snapshot
from planner.optimize.answer import best_plan
from planner.optimize.plan import Plan
from planner.optimize.question import Question
from planner.optimize.stability import LEFT_OFF, Stability, stability_of
from planner.optimize.waves import scenario_of, waves_of
from planner.share.carry_out import Basis, steps, steps_back
from planner.share.commands import CommandOptions, plan_commands
from planner.share.script import command_script
from planner.share.script_head import facts_of
from planner.simulate.admin_commands import Command
from planner.simulate.edits.add_brokers import AddBrokers
from planner.simulate.edits.drain_broker import DrainBroker
from planner.simulate.run import simulate
from planner.simulate.scenario import Step, unchanged
from planner.workspace.opening import open_snapshot
from planner.workspace.samples import samples
from tests.app.plan.stand_in import StandIn

SHEDDING = "loadBalancerSheddingEnabled"
THRESHOLD = "loadBalancerBrokerThresholdShedderPercentage"
NO_PAUSE = CommandOptions(pause_s=0)
MOVES = 6
SAMPLES = sorted(one.file for one in samples())


SHELLS = ("/bin/sh", "/bin/bash", "/bin/dash")


def script_of(commands: Sequence[Command], snapshot: Snapshot) -> str:
    facts = facts_of(snapshot, question="q", link="", made_at_ms=snapshot.info.captured_at_ms)
    return command_script(commands, "t", NO_PAUSE.program, snapshot.info.cluster, facts)


def scripts(snapshot: Snapshot) -> Iterator[tuple[str, str, str]]:
    """Yield the scripts of a plan, of a drain, of the best plan and of its way back, each with what runs before it."""
    busiest = max(snapshot.brokers.name, key=lambda name: len(snapshot.bundles_of(snapshot.brokers.position[name])))
    version = snapshot.info.pulsar_version
    plan = simulate(snapshot, unchanged(version, cycles=1, settings={"minUnloadMessage": 77}))
    yield "plan", script_of(plan_commands(plan, NO_PAUSE), snapshot), ""
    drain = simulate(snapshot, unchanged(version, cycles=1, steps=(Step(DrainBroker(broker=busiest)),)))
    yield "drain", script_of(plan_commands(drain, NO_PAUSE), snapshot), ""
    try:
        best = best_plan(snapshot, Question(moves=MOVES, splits=1, rounds=1))
    except PlannerError:
        return
    waves = waves_of(best)
    threshold = {THRESHOLD: 77}
    keeps = Stability(stable=False, cycle=1, shed=(), undone=0, splits=0, why="", keeps=threshold)
    there = script_of(steps(best, waves, keeps, NO_PAUSE), snapshot)
    yield "best", there, ""
    yield "back", script_of(steps_back(best, waves, keeps, NO_PAUSE), snapshot), there


SITUATIONS: Mapping[str, Mapping[str, Any]] = {
    "as planned": {},
    "gone": {},
    "look-ups fail": {"fail_on": "brokers namespaces"},
    "the fifth unload fails": {"fail_unload": 5},
    "late": {},
    "another cluster": {},
}
DYNAMIC: Sequence[Mapping[str, str]] = ({}, {SHEDDING: "true", THRESHOLD: "9"})
FEW = ("avg-shedder.json", "real-extensible.json")


def begin_after(stand_in: StandIn, snapshot: Snapshot, earlier: str, dynamic: Mapping[str, str]) -> None:
    """Let a cluster be as it was captured, or as an earlier script leaves it, which runs once for each."""
    stand_in.reset(snapshot, dynamic)
    if not earlier:
        return
    key = f"{earlier} {dynamic}"
    if key not in stand_in.left:
        assert stand_in.run(earlier, answers="no\n").returncode == 0
        stand_in.left[key] = stand_in.state() | {"unloads": 0}
        stand_in.reset(snapshot, dynamic)
    stand_in.write(deepcopy(stand_in.left[key]))


def ends_as_it_began(
    stand_in: StandIn, snapshot: Snapshot, scripts: tuple[str, str, str], situation: str, at: int
) -> None:
    kind, script, earlier = scripts
    dynamic = DYNAMIC[at % len(DYNAMIC)]
    begin_after(stand_in, snapshot, earlier, dynamic)
    changes: Mapping[str, dict[str, Any]] = {
        "gone": {"owners": {}},
        "late": {"looks": 4},
        "another cluster": {"conf": stand_in.state()["conf"] | {"clusterName": "other"}},
    }
    stand_in.write(stand_in.state() | changes.get(situation, {}))
    before = len(stand_in.changes())
    done = stand_in.run(script, answers="yes\n" * 20, shell=SHELLS[at % 3], **SITUATIONS[situation])
    state = stand_in.state()
    # A person who types yes asks for the settings of the plan, where everything succeeds.
    asked = {"plan": {"minUnloadMessage": "77"}, "best": {THRESHOLD: "77"}}.get(kind, {})
    given = {one: value for one, value in asked.items() if done.returncode == 0 and f" {one} {value} " in script}
    assert state["settings"] == {**dynamic, **given}, done.stdout
    moves = "\nmove " in script or re.search(r"\nonce \d+ divide ", script) is not None
    well = {"as planned": False, "late": False, "another cluster": True}
    failed = {**well, "the fifth unload fails": state["unloads"] >= 5}.get(situation, moves)
    if situation == "another cluster" or (situation in {"gone", "look-ups fail"} and moves):
        assert len(stand_in.changes()) == before
        assert "Nothing was changed." in done.stdout
    assert (done.returncode != 0) is failed, done.stdout + done.stderr


@pytest.mark.parametrize("name", FEW)
def test_settings_end_as_they_began(name: str, tmp_path: Path, subtests: pytest.Subtests) -> None:
    snapshot = open_snapshot(name)[1]
    stand_in = StandIn(tmp_path, snapshot)
    for at, one in enumerate(scripts(snapshot)):
        for number, situation in enumerate(SITUATIONS):
            with subtests.test(kind=one[0], situation=situation):
                ends_as_it_began(stand_in, snapshot, one, situation, at + number)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", SAMPLES)
def test_settings_of_every_sample_end_as_they_began(name: str, tmp_path: Path, subtests: pytest.Subtests) -> None:
    snapshot = open_snapshot(name)[1]
    stand_in = StandIn(tmp_path, snapshot)
    for one in scripts(snapshot):
        for at in range(len(DYNAMIC)):
            for situation in SITUATIONS:
                with subtests.test(kind=one[0], situation=situation, dynamic=DYNAMIC[at]):
                    ends_as_it_began(stand_in, snapshot, one, situation, at)


@pytest.mark.parametrize("kind", ["plan", "drain", "best", "back"])
def test_wherever_it_fails_settings_end_as_they_began(kind: str, tmp_path: Path) -> None:
    """Each call fails in turn, the shells take turns."""
    snapshot = open_snapshot("pip-364.json")[1]
    script, earlier = next((text, first) for name, text, first in scripts(snapshot) if name == kind)
    stand_in = StandIn(tmp_path, snapshot)
    dynamic = {SHEDDING: "true", THRESHOLD: "77" if kind == "back" else "9"}

    def run(fail_at: int, shell: str) -> int:
        begin_after(stand_in, snapshot, earlier, dynamic)
        done = stand_in.run(script, answers="no\n", fail_at=fail_at, shell=shell)
        settings = stand_in.state()["settings"]
        if done.returncode:
            assert settings == dynamic, (fail_at, done.stdout)
        assert settings[SHEDDING] == "true"
        assert stand_in.runs_with(SHEDDING) == "true"
        return len(stand_in.calls())

    calls = run(0, SHELLS[0])
    for at in range(1, calls + 1):
        run(at, SHELLS[at % 3])


@pytest.fixture(scope="module")
def five() -> Snapshot:
    return open_snapshot("pip-364.json")[1]


@pytest.fixture(scope="module")
def plan(five: Snapshot) -> Plan:
    """Some moves in it."""
    return best_plan(five, Question(moves=MOVES, rounds=1))


def test_the_way_back_takes_settings_back_and_only_where_they_were_set(
    five: Snapshot, plan: Plan, tmp_path: Path
) -> None:
    waves = waves_of(plan)
    keeps = Stability(stable=False, cycle=1, shed=(), undone=0, splits=0, why="", keeps={THRESHOLD: 21})
    there = script_of(steps(plan, waves, keeps, NO_PAUSE), five)
    back = script_of(steps_back(plan, waves, keeps, NO_PAUSE), five)
    stand_in = StandIn(tmp_path, five)
    owners = stand_in.state()["owners"]
    for dynamic in ({}, {THRESHOLD: "10"}, {THRESHOLD: "15"}):
        for old in (False, True):
            stand_in.reset(five, dynamic, old=old)
            runs = stand_in.runs_with(THRESHOLD)
            assert stand_in.run(there, "--with-settings").returncode == 0
            assert stand_in.state()["settings"] == {THRESHOLD: "21"}
            done = stand_in.run(back)
            assert done.returncode == 0, done.stdout
            assert stand_in.state()["owners"] == owners
            captured = "10"  # as the snapshot has it, which does not say what is dynamic
            assert stand_in.runs_with(THRESHOLD) == captured
            if dynamic.get(THRESHOLD) in {None, captured}:
                assert stand_in.state()["settings"] == {}, "an override of the same value is none"
                assert runs == captured
            # Where the plan set nothing, nothing is taken back.
            stand_in.reset(five, dynamic, old=old)
            stand_in.run(there, answers="no\n")
            assert stand_in.state()["settings"] == dynamic
            stand_in.run(back)
            assert stand_in.state()["settings"] == dynamic


def test_what_is_known_of_overrides_is_put_back_exactly(five: Snapshot, tmp_path: Path) -> None:
    keeps = Stability(stable=False, cycle=1, shed=(), undone=0, splits=0, why="", keeps={THRESHOLD: 21})
    for dynamic in ({}, {THRESHOLD: "10"}):
        known = replace(five, info=replace(five.info, dynamic_settings=dynamic))
        plan = best_plan(known, Question(moves=MOVES, rounds=1))
        waves = waves_of(plan)
        stand_in = StandIn(tmp_path, known)
        stand_in.reset(known, dynamic)
        stand_in.run(script_of(steps(plan, waves, keeps, NO_PAUSE), known), "--with-settings")
        assert stand_in.run(script_of(steps_back(plan, waves, keeps, NO_PAUSE), known)).returncode == 0
        assert stand_in.state()["settings"] == dynamic


def test_settings_of_a_plan_are_asked_about(five: Snapshot, plan: Plan, tmp_path: Path) -> None:
    keeps = Stability(stable=False, cycle=1, shed=(), undone=0, splits=0, why="", keeps={THRESHOLD: 21})
    script = script_of(steps(plan, waves_of(plan), keeps, NO_PAUSE), five)
    assert f"# At the end it asks whether to change these settings: {THRESHOLD}: 10 -> 21." in script
    stand_in = StandIn(tmp_path, five)
    for answers, after in (("", {}), ("no\n", {}), ("yes\n", {THRESHOLD: "21"})):
        stand_in.reset(five)
        done = stand_in.run(script, answers=answers)
        assert done.returncode == 0
        assert f"Unless {THRESHOLD} is 21 (captured: 10), Pulsar undoes part of this plan." in done.stdout
        assert stand_in.state()["settings"] == after


def test_shedding_is_left_off_only_by_an_option(five: Snapshot, plan: Plan, tmp_path: Path) -> None:
    off = Stability(stable=False, cycle=1, shed=(), undone=0, splits=0, why="", keeps=LEFT_OFF)
    script = script_of(steps(plan, waves_of(plan), off, NO_PAUSE), five)
    assert "--leave-shedding-off" in script.split("=== Assumptions")[1].split("# ===")[0]
    stand_in = StandIn(tmp_path, five)
    assert stand_in.run(script).returncode == 0
    assert stand_in.state()["settings"] == {}
    stand_in.reset(five)
    done = stand_in.run(script, "--leave-shedding-off")
    assert stand_in.state()["settings"] == {SHEDDING: "false"}
    assert done.stdout.splitlines()[-1].startswith("SHEDDING IS OFF. To turn it on: pulsar-admin")


@pytest.mark.parametrize(
    ("options", "waits"), [((), True), (("--restore-at-once",), False), (("--leave-shedding-off",), False)]
)
def test_a_script_holds_shedding_as_long_as_the_simulation(
    five: Snapshot, plan: Plan, tmp_path: Path, options: tuple[str, ...], *, waits: bool
) -> None:
    """What was judged had shedding on hold for 20 cycles more; a script that restores it sooner does something else."""
    script = script_of(steps(plan, waves_of(plan), None, NO_PAUSE), five)
    stand_in = StandIn(tmp_path, five)
    assert stand_in.run(script, *options).returncode == 0
    calls = stand_in.calls()
    assert (["sleep", "1200"] in calls) is waits
    if waits:
        at = calls.index(["sleep", "1200"])
        assert any("unload" in call for call in calls[:at])
        assert any("delete-dynamic-config" in call for call in calls[at:])
        assert not any("delete-dynamic-config" in call for call in calls[:at])
    stand_in.reset(five)
    opened = simulate(five, scenario_of(plan, held=False))
    moved = script_of(plan_commands(opened, NO_PAUSE), five)
    assert re.search(r"settle \d+", moved)


def test_brokers_that_a_scenario_adds_get_real_names(five: Snapshot, tmp_path: Path) -> None:
    scenario = unchanged(five.info.pulsar_version, cycles=1, steps=(Step(AddBrokers(count=2)),))
    trace = simulate(five, scenario)
    plan = best_plan(trace.end, Question(moves=MOVES, rounds=1))
    assert {move.destination for move in plan.moves} & {"added-1:8080", "added-2:8080"}
    waves, basis = waves_of(plan), Basis(five, scenario)
    there, back = (script_of(make(plan, waves, None, NO_PAUSE, basis), five) for make in (steps, steps_back))
    stand_in = StandIn(tmp_path, five)
    assert stand_in.run(there, answers="no\n").returncode == 3
    assert stand_in.changes() == []
    done = stand_in.run(there, answers="yes\nreal-1:8080\nreal-2:8080\n")
    assert done.returncode == 0, done.stdout
    assert "By hand: start 2 brokers, and note the real ids for added-1:8080, added-2:8080." in done.stdout
    assert not [call for call in stand_in.calls() if any("added-" in word for word in call)]
    owners = stand_in.state()["owners"]
    names = {"added-1:8080": "real-1:8080", "added-2:8080": "real-2:8080"}
    for move in plan.moves:
        assert owners[move.bundle] == names.get(move.destination, move.destination)
    home = stand_in.run(back, answers="yes\nreal-1:8080\nreal-2:8080\n")
    assert home.returncode == 0, home.stdout
    assert {move.bundle: move.source for move in plan.moves}.items() <= stand_in.state()["owners"].items()


def test_a_drain_of_the_best_plan_ends_with_the_stop(five: Snapshot, tmp_path: Path) -> None:
    broker = five.brokers.name[3]
    plan = best_plan(five, Question(drain=(broker,), rounds=1))
    script = script_of(steps(plan, waves_of(plan), None, NO_PAUSE), five)
    stand_in = StandIn(tmp_path, five)
    state = stand_in.state()
    name = next(name for name, owner in state["owners"].items() if owner == broker)
    heartbeat = f"pulsar/{broker}/0x00000000_0xffffffff"
    state["owners"] |= {"acme/late/0x00000000_0xffffffff": broker, heartbeat: broker, name: broker}
    stand_in.write(state)
    done = stand_in.run(script, answers="stop\n")
    assert done.returncode == 3
    assert f"{broker} still owns 1 bundles." in done.stdout
    assert "    acme/late/0x00000000_0xffffffff" in done.stdout.splitlines()
    assert heartbeat not in done.stdout
    assert (
        f"Stop {broker} before you answer: once this script ends, the load balancer moves bundles back" in done.stdout
    )
    assert "Shedding and automatic splits stay off while this waits." in done.stdout
    assert stand_in.state()["settings"] == {}
    assert stand_in.run(script, answers="yes\n").returncode == 0


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_reads_it(five: Snapshot, tmp_path: Path, shell: str) -> None:
    plan = best_plan(five, Question(moves=3, rounds=1))
    stability = stability_of(plan)
    script = script_of(steps(plan, waves_of(plan), stability, NO_PAUSE), five)
    stand_in = StandIn(tmp_path, five)
    assert stand_in.run(script, shell=shell).returncode == 0
    assert stand_in.state()["settings"] == {}
