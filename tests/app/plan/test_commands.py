"""Plans as commands: read by a real shell, in a safe order, and leading to where the simulation ended."""

import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.cluster.errors import SettingError
from planner.cluster.load_manager import LoadManager
from planner.cluster.names import SHEDDING_ENABLED
from planner.cluster.ranges import bundle_name, parse_bundle, parse_range
from planner.cluster.snapshot import Snapshot
from planner.cluster.switches import hold_of
from planner.pulsar.splitting.manual import SplitCommand
from planner.share.commands import (
    CommandOptions,
    changed_settings,
    final_moves,
    needs_restart,
    plan_commands,
    setting_changes,
)
from planner.share.script import SECTIONS, command_list, command_script, comment
from planner.simulate.admin_commands import Command, option, positional, quoted, split_command
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.edits.add_brokers import AddBrokers
from planner.simulate.edits.drain_broker import DrainBroker
from planner.simulate.edits.edit import Edit
from planner.simulate.edits.kill_broker import KillBroker
from planner.simulate.edits.move_bundle import MoveBundle
from planner.simulate.edits.pin_bundle import PinBundle
from planner.simulate.edits.rolling_restart import RollingRestart
from planner.simulate.edits.scale_traffic import ScaleTraffic
from planner.simulate.edits.set_anti_affinity import SetAntiAffinity
from planner.simulate.edits.set_bundle_count import SetBundleCount
from planner.simulate.edits.set_isolation import SetIsolation
from planner.simulate.edits.split_bundle import SplitBundle
from planner.simulate.event import Event
from planner.simulate.generate import generate
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario, Step
from planner.simulate.trace import Trace
from tests.app.plan.random_scenarios import random_plan
from tests.app.plan.stand_in import StandIn

HOSTILE = "a'b\"c`touch pwned`$(touch pwned)\\;&|<>*?[x]{y}~#! %"


def trace_of(snapshot: Snapshot, *edits: Edit, cycles: int = 3, **settings: str | float | bool) -> Trace:
    steps = tuple(Step(edit) for edit in edits)
    return simulate(snapshot, Scenario(steps=steps, settings=settings, cycles=cycles))


def script_of(trace: Trace, title: str = "t", **options: Any) -> str:
    how = CommandOptions(**options)
    return command_script(plan_commands(trace, how), title, how.program, trace.start.info.cluster)


def listed(commands: Sequence[Command]) -> str:
    """What a person reads."""
    return "\n".join(command_list(commands, section) for section in SECTIONS)


def carried_out(snapshot: Snapshot, commands: Sequence[Command]) -> dict[str, str]:
    """Return who serves what after the splits and unloads of a plan."""
    owners = {
        name: snapshot.brokers.name[owner] if owner >= 0 else ""
        for name, owner in zip(snapshot.bundle_names, snapshot.bundles.owner.tolist(), strict=True)
    }
    for command in commands:
        words = list(command.words)
        if command.section not in {"splits", "unloads"} or words[1:2] != ["namespaces"]:
            continue
        namespace, given = words[3], dict(zip(words[4::2], words[5::2], strict=True))
        name = f"{namespace}/{given['--bundle']}"
        if words[2] == "unload":
            assert name in owners
            owners[name] = given["--destinationBroker"]
            continue
        low, high = parse_range(given["--bundle"])
        cuts = [low + (high - low) // 2]
        if given["--split-algorithm-name"] == "specified_positions_divide":
            cuts = [
                int(cut) for flag, cut in zip(words[4::2], words[5::2], strict=True) if flag == "--split-boundaries"
            ]
        owner = owners.pop(name)
        for start, stop in zip((low, *cuts), (*cuts, high), strict=True):
            owners[bundle_name(namespace, start, stop)] = owner
    return owners


@pytest.fixture(scope="module")
def several() -> Snapshot:
    """A generated cluster of several namespaces."""
    return generate(ClusterSpec(brokers=5, namespaces=4, bundles=64, topics=300, msg_rate_per_s=40_000), 3)


@pytest.mark.parametrize("seed", range(40))
def test_commands_lead_to_the_end_of_the_simulation(several: Snapshot, seed: int) -> None:
    trace = random_plan(several, seed)
    scenario = trace.scenario
    commands = plan_commands(trace)
    killed = {edit.broker for edit in scenario.edits if isinstance(edit, KillBroker)}
    anew = {edit.namespace for edit in scenario.edits if isinstance(edit, SetBundleCount)}
    if any("The plan ends here" in command.note for command in commands):
        assert needs_restart(changed_settings(trace))
        assert not [command for command in commands if command.section in {"splits", "unloads", "hold", "leaving"}]
        return
    after = carried_out(several, commands)
    end = trace.end
    sources = {move.bundle: move.source for move in final_moves(trace)}
    for name, owner in zip(end.bundle_names, end.bundles.owner.tolist(), strict=True):
        left_out = sources.get(name) == "" or sources.get(name) in killed
        if parse_bundle(name)[0] in anew or left_out or owner < 0:
            continue
        assert after[name] == end.brokers.name[owner]


def test_order_is_that_of_the_sections(small: Snapshot) -> None:
    order = list(SECTIONS)
    for seed in range(40, 60):
        places = [order.index(c.section) for c in plan_commands(random_plan(small, seed))]
        assert places == sorted(places)


def test_a_shell_reads_back_every_word(small: Snapshot, tmp_path: Path) -> None:
    bundle, broker = small.bundle_names[0], small.brokers.name[1]
    trace = trace_of(
        small,
        SplitBundle(bundle=bundle),
        MoveBundle(bundle=small.bundle_names[5], destination=broker),
        SetIsolation(name=HOSTILE, namespaces=(f".*{HOSTILE}",), primary=(".*", "b-1'$(touch pwned)"), min_limit=2),
        SetAntiAffinity(namespace=small.namespaces[0], group=HOSTILE),
        minUnloadMessage=77,
    )
    commands = plan_commands(trace, CommandOptions(batch_bundles=1, pause_s=9))
    expected = [list(c.words) for c in commands if c.words and not c.by_hand and c.section not in {"hold", "release"}]
    stand_in = StandIn(tmp_path, small)
    done = stand_in.run(script_of(trace, f"Plan\n{HOSTILE}\ntouch pwned", batch_bundles=1, pause_s=9))
    assert done.returncode == 0, done.stderr
    switches = {"loadBalancerSheddingEnabled", "loadBalancerAutoBundleSplitEnabled"}
    assert [call for call in stand_in.changes() if switches.isdisjoint(call)] == expected
    assert not (tmp_path / "pwned").exists()
    assert [
        "pulsar-admin",
        "namespaces",
        "set-anti-affinity-group",
        small.namespaces[0],
        "--group",
        HOSTILE,
    ] in expected
    assert any(words[1:3] == ["namespaces", "split-bundle"] for words in expected)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), min_size=1))
def test_comments_stay_comments(parts: list[str]) -> None:
    for line in comment(" ".join(parts)).split("\n"):
        assert line.startswith("#")
        assert line.isprintable()


@given(st.text())
def test_words_that_pulsar_admin_would_misread_are_refused(value: str) -> None:
    for words in (option("--group", value), positional(value)):
        if words is None:
            continue
        assert all(word.isprintable() for word in words)
        assert not words[-1].startswith("@") or words[-1] == f"@{value}"


@pytest.mark.parametrize(
    ("value", "as_option", "as_argument"),
    [
        ("plain", ("--x", "plain"), ("plain",)),
        ("-1", ("--x", "-1"), None),
        ("-0.5", ("--x", "-0.5"), None),
        ("-g", None, None),
        ("--", None, None),
        ("@file", ("--x=@file",), ("@@file",)),
        ("", None, None),
        ("a\nb", None, None),
        ("a\u202eb", None, None),
        ("ü b", ("--x", "ü b"), ("ü b",)),
    ],
)
def test_what_pulsar_admin_takes(
    value: str, as_option: tuple[str, ...] | None, as_argument: tuple[str, ...] | None
) -> None:
    """As `pulsar-admin` 4.0.8 answered when it was asked."""
    assert option("--x", value) == as_option
    assert positional(value) == as_argument


def test_settings_are_set_as_they_can_be(small: Snapshot) -> None:
    trace = trace_of(
        small,
        cycles=1,
        minUnloadMessage=77,
        maxUnloadBundleNumPerShedding=-1,
        lowerBoundarySheddingEnabled=True,
        loadBalancerLoadSheddingStrategy="org.apache.pulsar.broker.loadbalance.impl.AvgShedder",
        loadBalancerSheddingExcludedNamespaces="a/b,c/d",
    )
    script = listed(plan_commands(trace))
    assert "brokers update-dynamic-config --config minUnloadMessage --value 77\n" in script
    assert "--config loadBalancerSheddingExcludedNamespaces --value a/b,c/d\n" in script
    assert "maxUnloadBundleNumPerShedding" not in script, "it has that value already"
    assert "\n# lowerBoundarySheddingEnabled=true\n" in script
    assert "--config lowerBoundarySheddingEnabled" not in script
    restart = next(line for line in script.split("\n") if "restart the brokers" in line)
    assert "loadBalancerLoadSheddingStrategy" in restart
    assert "lowerBoundarySheddingEnabled" in restart
    assert "minUnloadMessage" not in restart.split("\n#")[0]


def test_a_setting_that_goes_back_to_nothing(small: Snapshot) -> None:
    start = replace(small, settings=small.settings.changed(loadBalancerSheddingExcludedNamespaces="a/b"))
    trace = trace_of(start, cycles=1, loadBalancerSheddingExcludedNamespaces="")
    assert changed_settings(trace) == {"loadBalancerSheddingExcludedNamespaces": (("a/b",), ())}
    lines = [c.line for c in plan_commands(trace) if c.section == "settings"]
    assert lines == ["pulsar-admin brokers delete-dynamic-config --config loadBalancerSheddingExcludedNamespaces"]


def test_strategies_have_the_names_that_a_broker_starts_with(small: Snapshot) -> None:
    impl = "org.apache.pulsar.broker.loadbalance.impl."
    shedding, placement = "loadBalancerLoadSheddingStrategy", "loadBalancerLoadPlacementStrategy"
    before = small.settings.changed(**{shedding: f"{impl}ThresholdShedder", placement: "LeastLongTermMessageRate"})
    after = before.changed(**{shedding: "AvgShedder", placement: f"{impl}LeastLongTermMessageRate"})
    managers = (LoadManager.MODULAR, LoadManager.MODULAR)
    assert setting_changes(before, after, managers) == {shedding: (f"{impl}ThresholdShedder", f"{impl}AvgShedder")}
    own = before.changed(**{shedding: "com.acme.ThresholdShedder"})
    assert setting_changes(before, own, managers)[shedding][1] == "com.acme.ThresholdShedder"


def test_another_load_manager_is_a_setting(small: Snapshot) -> None:
    assert small.info.load_manager is LoadManager.MODULAR
    assert "loadManagerClassName" not in changed_settings(simulate(small, Scenario(load_manager="modular", cycles=1)))
    before, after = changed_settings(simulate(small, Scenario(load_manager="extensible", cycles=1)))[
        "loadManagerClassName"
    ]
    assert str(before).endswith(".ModularLoadManagerImpl")
    assert str(after).endswith(".ExtensibleLoadManagerImpl")


def test_shedding_and_splits_are_held(small: Snapshot) -> None:
    move = MoveBundle(bundle=small.bundle_names[0], destination=_other(small, 0))
    names = ("loadBalancerSheddingEnabled", "loadBalancerAutoBundleSplitEnabled")

    def held(snapshot: Snapshot, **settings: bool) -> list[tuple[str, tuple[str, ...]]]:
        commands = plan_commands(trace_of(snapshot, move, cycles=1, **settings))
        return [(c.section, c.words[2:]) for c in commands if c.section in {"hold", "release"}]

    off = [("hold", ("update-dynamic-config", "--config", name, "--value", "false")) for name in names]
    deleted = [("release", ("delete-dynamic-config", "--config", name)) for name in names]
    assert held(small) == [*off, *deleted]
    # Whether they are on is seen when the script runs; the capture may be older than a change.
    assert held(small, loadBalancerSheddingEnabled=False) == [*off, *deleted]
    known = replace(small, info=replace(small.info, dynamic_settings={names[1]: "true"}))
    value = ("release", ("update-dynamic-config", "--config", names[1], "--value", "true"))
    assert held(known) == [*off, deleted[0], value]
    commands = plan_commands(trace_of(small, move, cycles=1), CommandOptions(hold=False))
    assert not any(c.section == "hold" for c in commands)


def test_another_load_manager_is_a_migration(small: Snapshot) -> None:
    move = Step(MoveBundle(bundle=small.bundle_names[0], destination=_other(small, 0)))
    trace = simulate(small, Scenario(steps=(move,), load_manager="extensible", cycles=1))
    commands = plan_commands(trace)
    assert not [c for c in commands if "loadManagerClassName" in c.words]
    assert not [c for c in commands if c.section in {"unloads", "hold"}]
    migration = [c for c in commands if "migration" in c.note]
    assert [c.by_hand for c in migration] == [True]
    assert "loadManagerClassName=org.apache.pulsar" in migration[0].note
    assert "update-dynamic-config --config loadManagerClassName" not in script_of(trace)


def _other(snapshot: Snapshot, bundle: int) -> str:
    owner = int(snapshot.bundles.owner[bundle])
    return snapshot.brokers.name[(owner + 1) % len(snapshot.brokers)]


def test_unloads_come_in_batches_with_pauses(small: Snapshot) -> None:
    moves = [MoveBundle(bundle=small.bundle_names[at], destination=_other(small, at)) for at in range(7)]
    trace = trace_of(
        small, *moves, cycles=1, loadBalancerSheddingEnabled=False, loadBalancerAutoBundleSplitEnabled=False
    )
    commands = [c for c in plan_commands(trace, CommandOptions(batch_bundles=3, pause_s=5)) if c.section == "unloads"]
    waves = [at for at, c in enumerate(commands) if c.wave_s is not None]
    assert waves == [0, 4, 8]
    assert {commands[at].wave_s for at in waves} == {5}
    moved = [c for c in commands if c.words]
    assert [c.bundle for c in moved] == list(small.bundle_names[:7])
    assert [(c.source, c.destination) for c in moved] == [(m.source, m.destination) for m in final_moves(trace)]
    counted = re.fullmatch(
        r"Batch 1 of 3: 3 bundles, ([\d,]+) topics, ([\d,]+) clients disconnected\.", commands[0].note
    )
    assert counted
    rows = [trace.end.bundle_position[small.bundle_names[at]] for at in range(3)]
    bundles = trace.end.bundles
    assert int(counted[1].replace(",", "")) == int(bundles.topics[rows].sum())
    assert int(counted[2].replace(",", "")) == int((bundles.producers[rows] + bundles.consumers[rows]).sum())


def test_splits_are_cut_where_the_simulation_cut_them(small: Snapshot) -> None:
    name = small.bundle_names[0]
    namespace, low, high = parse_bundle(name)
    size = high - low
    cuts = (low + size // 5, low + size // 3, low + size // 2)
    trace = trace_of(small, cycles=1, loadBalancerSheddingEnabled=False, loadBalancerAutoBundleSplitEnabled=False)

    def lines(cuts: tuple[int, ...], manager: LoadManager) -> list[tuple[str, ...]]:
        children = tuple(bundle_name(namespace, a, b) for a, b in zip((low, *cuts), (*cuts, high), strict=True))
        cycle = replace(trace.cycles[0], events=(Event(name, children=children, at_ms=1, kind="split"),))
        start = replace(trace.start, info=replace(trace.start.info, load_manager=manager))
        return [
            c.words[5:] for c in plan_commands(replace(trace, start=start, cycles=(cycle,))) if c.section == "splits"
        ]

    whole = name.rpartition("/")[2]
    middle = ("--split-algorithm-name", "range_equally_divide")
    placed = ("--split-algorithm-name", "specified_positions_divide")
    assert lines((low + size // 2,), LoadManager.MODULAR) == [(whole, *middle)]
    at_once = tuple(word for cut in cuts for word in ("--split-boundaries", str(cut)))
    assert lines(cuts, LoadManager.MODULAR) == [(whole, *placed, *at_once)]
    step = [
        (f"0x{a:08x}_0x{high:08x}", *placed, "--split-boundaries", str(b))
        for a, b in zip((low, *cuts), cuts, strict=False)
    ]
    assert lines(cuts, LoadManager.EXTENSIBLE) == step


def test_what_pulsar_cannot_do_is_said(several: Snapshot) -> None:
    bundle, broker, namespace = several.bundle_names[0], several.brokers.name[0], several.namespaces[0]
    trace = trace_of(
        several,
        PinBundle(bundle=bundle, broker=broker),
        SetBundleCount(namespace=several.namespaces[-1], bundles=9),
        AddBrokers(count=2, at_min=1),
        DrainBroker(broker=broker, at_min=2, bundles_per_min=120),
        KillBroker(broker=several.brokers.name[1], at_min=2),
        RollingRestart(at_min=500),
        ScaleTraffic(scope="namespace", target=namespace, factor=2.5),
        cycles=4,
    )
    text = listed(plan_commands(trace))
    for part in (
        f"Pulsar cannot pin {bundle} to {broker}",
        (
            "Pulsar cannot change the number of bundles of an existing namespace, and splits only add bundles."
            f" To get 9 bundles, recreate {several.namespaces[-1]}"
        ),
        "start 2 brokers, and note the real ids for added-1:8080, added-2:8080",
        f"pulsar-admin --admin-url http://{broker} brokers shutdown --max-concurrent-unload-per-sec 2",
        f"Assumption: {several.brokers.name[1]} dies at minute 2",
        "restart all brokers one by one, each down for 2 min and 3 min apart",
        f"Assumption: traffic of {namespace} changes to 2.5x (step) from minute 0",
        "of brokers that the scenario kills",
    ):
        assert part in text
    assert "\npulsar-admin --admin-url" not in text, "a person stops brokers"


@pytest.mark.parametrize(
    "edit",
    [
        SetIsolation(name="-p", namespaces=("a",), primary=("b",)),
        SetIsolation(name="p", namespaces=("a{1,2}",), primary=("b",)),
        SetIsolation(name="p\nrm -rf", namespaces=("a",), primary=("b",)),
        SetIsolation(name="p", namespaces=("a",)),
    ],
)
def test_what_cannot_be_written_is_left_to_a_person(small: Snapshot, edit: SetIsolation) -> None:
    trace = trace_of(small, cycles=1)
    scenario = replace(trace.scenario, steps=(Step(edit),))
    policies = [c for c in plan_commands(replace(trace, scenario=scenario)) if c.section == "policies"]
    assert len(policies) == 1
    assert policies[0].words == ()
    assert policies[0].note.startswith("By hand: set the isolation policy")


def test_policies_are_removed(small: Snapshot) -> None:
    trace = trace_of(small, cycles=1)
    steps = (Step(SetIsolation(name="p")), Step(SetAntiAffinity(namespace="a/b")))
    scenario = replace(trace.scenario, steps=steps)
    lines = [c.line for c in plan_commands(replace(trace, scenario=scenario)) if c.section == "policies"]
    assert lines == [
        "pulsar-admin ns-isolation-policy delete small p",
        "pulsar-admin namespaces delete-anti-affinity-group a/b",
    ]


def test_a_split_request() -> None:
    request = SplitCommand("a/b", "0x00000000_0x40000000", "specified_positions_divide", (5, 9), unload=True)
    assert quoted(split_command(request, ("bin/pulsar-admin",))) == (
        "bin/pulsar-admin namespaces split-bundle a/b --bundle 0x00000000_0x40000000 --unload"
        " --split-algorithm-name specified_positions_divide --split-boundaries 5 --split-boundaries 9"
    )
    assert (
        quoted(split_command(SplitCommand("a/b", "HOT")))
        == "pulsar-admin namespaces split-bundle a/b --bundle-type HOT"
    )


def test_options_are_checked() -> None:
    with pytest.raises(SettingError):
        CommandOptions(batch_bundles=0)
    with pytest.raises(SettingError):
        CommandOptions(pause_s=-1)


class TestScript:
    """What is taken away is run as it is, against a stand-in that fails where it is told to."""

    @pytest.fixture
    def trace(self, several: Snapshot) -> Trace:
        moves = [MoveBundle(bundle=several.bundle_names[at], destination=_other(several, at)) for at in (1, 9, 20, 33)]
        split = SplitBundle(bundle=several.bundle_names[40])
        return trace_of(several, split, *moves, cycles=1, minUnloadMessage=77)

    @pytest.fixture
    def script(self, trace: Trace) -> str:
        return script_of(trace, batch_bundles=2, pause_s=9)

    def owners(self, trace: Trace) -> dict[str, str]:
        end = trace.end
        return {
            name: end.brokers.name[owner]
            for name, owner in zip(end.bundle_names, end.bundles.owner.tolist(), strict=True)
        }

    def test_it_leads_to_the_end_and_waits_between_batches(
        self, trace: Trace, script: str, several: Snapshot, tmp_path: Path
    ) -> None:
        stand_in = StandIn(tmp_path, several)
        done = stand_in.run(script)
        assert done.returncode == 0, done.stderr
        assert stand_in.state()["owners"] == self.owners(trace)
        assert stand_in.state()["settings"] == {"minUnloadMessage": "77"}
        pauses = [["sleep", "9"], ["sleep", "5"]]  # between batches, and before overrides are deleted
        assert [call for call in stand_in.calls() if call[0] == "sleep"] == pauses
        assert not list(tmp_path.glob("plan.sh.*"))

    def test_a_dry_run_shows_all_and_does_nothing(self, script: str, several: Snapshot, tmp_path: Path) -> None:
        stand_in = StandIn(tmp_path, several)
        done = stand_in.run(script, "--dry-run")
        assert done.returncode == 0, done.stderr
        assert stand_in.calls() == []
        assert done.stdout.count("namespaces unload") == 4
        assert not list(tmp_path.glob("plan.sh.*"))

    @pytest.mark.parametrize("dynamic", [{}, {SHEDDING_ENABLED: "true", "minUnloadMessage": "5"}], ids=["unset", "set"])
    def test_wherever_it_fails_all_is_as_before_and_a_second_run_ends_it(
        self, trace: Trace, script: str, several: Snapshot, tmp_path: Path, dynamic: dict[str, str]
    ) -> None:
        stand_in = StandIn(tmp_path, several)
        stand_in.reset(several, dynamic)
        assert stand_in.run(script).returncode == 0
        calls = stand_in.calls()
        changes = calls.index(next(call for call in calls if "minUnloadMessage" in call)) + 1
        for at in range(1, len(calls) + 1):
            stand_in.reset(several, dynamic)
            done = stand_in.run(script, fail_at=at)
            asked = calls[at - 1][1:3] == ["brokers", "namespaces"]
            # What puts settings back, or only helps to, is tried again, or does without.
            helps = at > changes or calls[at - 1][2:3] == ["get-runtime-config"]
            assert done.returncode == (0 if helps else 4 if asked else 7), (at, done.stdout)
            wanted = dynamic | {"minUnloadMessage": "77"} if done.returncode == 0 else dynamic
            assert stand_in.state()["settings"] == wanted, (at, done.stdout)
            assert stand_in.runs_with(SHEDDING_ENABLED) == "true"
            assert not list(tmp_path.glob("plan.sh.*.before"))
            if not helps:
                again = stand_in.run(script)
                assert again.returncode == 0, (at, again.stdout)
            assert stand_in.state()["owners"] == self.owners(trace)
            assert stand_in.state()["settings"] == dynamic | {"minUnloadMessage": "77"}

    def test_settings_that_cannot_be_put_back_are_left_to_a_person(
        self, script: str, several: Snapshot, tmp_path: Path
    ) -> None:
        stand_in = StandIn(tmp_path, several)
        stand_in.reset(several, {"loadBalancerAutoBundleSplitEnabled": "false"})
        done = stand_in.run(script, fail_on="brokers delete-dynamic-config")
        assert done.returncode == 6
        assert "RESTORING SETTINGS FAILED. Run these commands yourself" in done.stdout
        lines = done.stdout.splitlines()
        for name, value in ((SHEDDING_ENABLED, "true"), ("loadBalancerAutoBundleSplitEnabled", "false")):
            assert f"pulsar-admin brokers update-dynamic-config --config {name} --value {value}" in lines
        assert f"pulsar-admin brokers delete-dynamic-config --config {SHEDDING_ENABLED}" in lines
        assert stand_in.run(script).returncode == 0, "they are still noted"
        assert stand_in.state()["settings"] == {
            "loadBalancerAutoBundleSplitEnabled": "false",
            "minUnloadMessage": "77",
        }

    def test_brokers_that_keep_a_deleted_value(self, script: str, several: Snapshot, tmp_path: Path) -> None:
        stand_in = StandIn(tmp_path, several)
        stand_in.reset(several, old=True)
        assert stand_in.run(script).returncode == 0
        assert stand_in.state()["settings"] == {"minUnloadMessage": "77"}
        assert stand_in.runs_with(SHEDDING_ENABLED) == "true"

    def test_answers_in_json(self, trace: Trace, script: str, several: Snapshot, tmp_path: Path) -> None:
        stand_in = StandIn(tmp_path, several)
        dynamic = {SHEDDING_ENABLED: "false", "minUnloadMessage": "5"}
        stand_in.reset(several, dynamic, as_json=True)
        assert stand_in.run(script).returncode == 0
        assert stand_in.state()["owners"] == self.owners(trace)
        assert stand_in.state()["settings"] == dynamic | {"minUnloadMessage": "77"}

    def test_killed_it_leaves_a_mark_that_others_see(
        self, trace: Trace, script: str, several: Snapshot, tmp_path: Path
    ) -> None:
        stand_in = StandIn(tmp_path, several)
        killing = script.replace("batch 9 'Batch 2", "kill -KILL $$\nbatch 9 'Batch 2")
        assert stand_in.run(killing).returncode == -9
        left = stand_in.state()["settings"]
        mark = hold_of(left[SHEDDING_ENABLED])
        assert mark is not None
        assert (mark.overridden, mark.was_on) == (False, True)
        # Another script changes nothing, unless it is told that the first one is gone.
        stand_in.forget_runs()
        other = script_of(trace, batch_bundles=1, pause_s=0)
        refused = stand_in.run(other)
        assert refused.returncode == 5
        assert f"Another script holds {SHEDDING_ENABLED}: {left[SHEDDING_ENABLED]}" in refused.stdout
        assert stand_in.state()["settings"] == left
        taken = stand_in.run(other, "--take-over")
        assert taken.returncode == 4, "the split was made before"
        assert stand_in.state()["settings"] == {}
        assert stand_in.state()["owners"] == self.owners(trace)

    def test_killed_it_can_be_run_again_though_its_notes_are_gone(
        self, script: str, several: Snapshot, tmp_path: Path
    ) -> None:
        stand_in = StandIn(tmp_path, several)
        for dynamic in ({}, {SHEDDING_ENABLED: "true"}):
            for forgets in (False, True):
                stand_in.reset(several, dynamic)
                body = "kill -KILL $$\nbatch 9 'Batch 1"
                stand_in.run(script.replace("batch 9 'Batch 1", body))
                assert "held-by" in stand_in.state()["settings"][SHEDDING_ENABLED]
                if forgets:
                    stand_in.forget_runs()
                done = stand_in.run(script)
                assert done.returncode == (4 if forgets else 0)  # the split is made, and only its notes know
                assert "An earlier run of this script was interrupted" in done.stdout
                assert stand_in.state()["settings"] == dynamic | ({} if forgets else {"minUnloadMessage": "77"})
                assert stand_in.runs_with(SHEDDING_ENABLED) == "true"

    def test_what_a_person_changed_since_is_left_alone(self, script: str, several: Snapshot, tmp_path: Path) -> None:
        stand_in = StandIn(tmp_path, several)
        stand_in.run(script.replace("batch 9 'Batch 1", "kill -KILL $$\nbatch 9 'Batch 1"))
        state = stand_in.state()
        state["settings"] = {SHEDDING_ENABLED: "false"}  # put right by hand, and then off on purpose
        stand_in.write(state)
        assert stand_in.run(script).returncode == 0
        assert stand_in.state()["settings"] == {SHEDDING_ENABLED: "false", "minUnloadMessage": "77"}

    def test_shedding_that_was_off_is_asked_about(self, script: str, several: Snapshot, tmp_path: Path) -> None:
        stand_in = StandIn(tmp_path, several)
        for answers, after in (("on\n", "true"), ("no\n", "false"), ("", "false")):
            stand_in.reset(several, {SHEDDING_ENABLED: "false"})
            done = stand_in.run(script, answers=answers)
            assert done.returncode == 0
            assert f"Shedding was off before this script ({SHEDDING_ENABLED}=false)." in done.stdout
            assert stand_in.state()["settings"] == {SHEDDING_ENABLED: after, "minUnloadMessage": "77"}
            assert (done.stdout.splitlines()[-1].startswith("SHEDDING IS OFF.")) is (after == "false")

    def test_it_leaves_shedding_off_only_when_told_and_all_is_done(
        self, script: str, several: Snapshot, tmp_path: Path
    ) -> None:
        stand_in = StandIn(tmp_path, several)
        done = stand_in.run(script, "--leave-shedding-off")
        assert done.returncode == 0
        assert stand_in.state()["settings"] == {SHEDDING_ENABLED: "false", "minUnloadMessage": "77"}
        how = f"pulsar-admin brokers update-dynamic-config --config {SHEDDING_ENABLED} --value true"
        assert done.stdout.splitlines()[-1] == f"SHEDDING IS OFF. To turn it on: {how}"
        stand_in.reset(several)
        state = stand_in.state()
        state["owners"] = {}
        stand_in.write(state)
        skipped = stand_in.run(script, "--leave-shedding-off")
        assert skipped.returncode == 4
        assert stand_in.state()["settings"] == {}
        assert "Shedding is not left off, as bundles were skipped." in skipped.stdout

    def test_a_scenario_may_ask_for_shedding_to_be_off(self, several: Snapshot, tmp_path: Path) -> None:
        move = MoveBundle(bundle=several.bundle_names[1], destination=_other(several, 1))
        script = script_of(trace_of(several, move, cycles=1, loadBalancerSheddingEnabled=False))
        stand_in = StandIn(tmp_path, several)
        assert "changes these settings" in script
        done = stand_in.run(script)
        assert done.returncode == 0
        assert stand_in.state()["settings"] == {SHEDDING_ENABLED: "false"}
        assert done.stdout.splitlines()[-1].startswith("SHEDDING IS OFF.")
        stand_in.reset(several)
        assert stand_in.run(script, fail_unload=1).returncode == 7
        assert stand_in.state()["settings"] == {}

    def test_what_lies_elsewhere_is_passed_over(
        self, trace: Trace, script: str, several: Snapshot, tmp_path: Path
    ) -> None:
        stand_in = StandIn(tmp_path, several)
        state = stand_in.state()
        away, there = several.bundle_names[9], several.bundle_names[20]
        destinations = {move.bundle: move.destination for move in final_moves(trace)}
        third = next(b for b in several.brokers.name if b not in {destinations[away], state["owners"][away]})
        state["owners"] |= {away: third, there: destinations[there]}
        stand_in.write(state)
        done = stand_in.run(script)
        assert done.returncode == 4, done.stderr
        assert f"Skipped: {away} is not on" in done.stdout
        assert f"Already there: {there} is on {destinations[there]}." in done.stdout
        assert "capture the cluster again" in done.stdout
        assert stand_in.state()["owners"] == self.owners(trace) | {away: third}
        assert stand_in.state()["settings"] == {}, "settings follow the moves"

    def test_a_part_of_a_split_bundle_is_split_again(self, several: Snapshot, tmp_path: Path) -> None:
        name = several.bundle_names[0]
        namespace, low, high = parse_bundle(name)
        middle = low + (high - low) // 2
        trace = trace_of(
            several, SplitBundle(bundle=name), SplitBundle(bundle=bundle_name(namespace, low, middle)), cycles=1
        )
        stand_in = StandIn(tmp_path, several)
        done = stand_in.run(script_of(trace, pause_s=0))
        assert done.returncode == 0, done.stdout
        assert stand_in.state()["owners"] == self.owners(trace)

    def test_it_stops_at_steps_by_hand_and_asks_for_real_names(self, several: Snapshot, tmp_path: Path) -> None:
        trace = trace_of(several, AddBrokers(count=2), DrainBroker(broker=several.brokers.name[0]), cycles=8)
        script = script_of(trace, pause_s=0)
        moves = {move.bundle: move.destination for move in final_moves(trace)}
        assert "added-1:8080" in moves.values()
        stand_in = StandIn(tmp_path, several)
        refused = stand_in.run(script, answers="no\n")
        assert refused.returncode == 3
        assert stand_in.changes() == []
        assert stand_in.run(script).returncode == 3, "nobody answers"
        named = ["--broker", "added-2:8080=real-2:8080"]
        half = stand_in.run(script, *named, answers="yes\nreal-1:8080\nwhat\nno\n")
        assert half.returncode == 3
        assert stand_in.state()["settings"] == {}, "shedding is back"
        drained = several.brokers.name[0]
        assert f"{drained} owns no bundles any more." in half.stdout
        assert f"Stop {drained} before you answer: once this script ends, the load balancer moves" in half.stdout
        assert half.stdout.count("Type yes when this is done, or stop to end the script: ") == 3, (
            "any other word asks again"
        )
        names = {"added-1:8080": "real-1:8080", "added-2:8080": "real-2:8080"}
        owners = stand_in.state()["owners"]
        assert {bundle: owners[bundle] for bundle in moves} == {
            bundle: names.get(name, name) for bundle, name in moves.items()
        }
        calls = len(stand_in.calls())
        rest = stand_in.run(script, *named, "--broker", "added-1:8080=real-1:8080", answers="y\n")
        assert rest.returncode == 0, rest.stdout
        assert not [call for call in stand_in.calls()[calls:] if "unload" in call]

    def test_a_signal_ends_it_with_shedding_on(self, script: str, several: Snapshot, tmp_path: Path) -> None:
        stand_in = StandIn(tmp_path, several)
        killing = script.replace("batch 9 'Batch 2", "kill -TERM $$\nbatch 9 'Batch 2")
        assert killing != script
        assert stand_in.run(killing).returncode == 143
        assert stand_in.state()["settings"] == {}
        assert stand_in.runs_with(SHEDDING_ENABLED) == "true"

    def test_from_standard_input_it_does_nothing(self, script: str, several: Snapshot, tmp_path: Path) -> None:
        stand_in = StandIn(tmp_path, several)
        environment = {"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"}
        done = subprocess.run(
            ["/bin/sh"], input=script, env=environment, text=True, cwd=tmp_path, capture_output=True, check=False
        )
        assert done.returncode == 2
        assert "Save this script" in done.stdout
        assert stand_in.calls() == []

    def test_shellcheck_has_nothing_to_say(self, script: str, tmp_path: Path) -> None:
        checker = Path(sys.executable).with_name("shellcheck")
        path = tmp_path / "plan.sh"
        path.write_text(script)
        done = subprocess.run([str(checker), str(path)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout
