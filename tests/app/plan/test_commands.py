"""Plans as commands: read by a real shell, in a safe order, and leading to where the simulation ended."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.cluster.errors import SettingError
from planner.cluster.host_names import uses_tls
from planner.cluster.load_manager import LoadManager
from planner.cluster.ranges import bundle_name, parse_bundle
from planner.cluster.snapshot import Snapshot
from planner.pulsar.splitting.manual import SplitCommand
from planner.share.commands import (
    CommandOptions,
    changed_settings,
    final_moves,
    needs_restart,
    plan_commands,
    setting_changes,
)
from planner.share.script import SECTIONS, comment
from planner.simulate.admin_commands import option, positional, quoted, shutdown_command, split_command
from planner.simulate.edits.add_brokers import AddBrokers
from planner.simulate.edits.drain_broker import DrainBroker
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
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario, Step
from tests.app.plan.random_scenarios import random_plan
from tests.app.plan.scripts import HOSTILE, carried_out, listed, other_broker, script_of, trace_of
from tests.app.plan.stand_in import StandIn


def test_a_broker_with_tls_alone_is_stopped_there() -> None:
    command = shutdown_command("b-1:8443", ("pulsar-admin",))
    assert command.words[:3] == ("pulsar-admin", "--admin-url", "https://b-1:8443")


@pytest.mark.parametrize("seed", range(40))
def test_commands_lead_to_the_end_of_the_simulation(several: Snapshot, seed: int) -> None:
    trace = random_plan(several, seed)
    scenario = trace.scenario
    commands = plan_commands(trace)
    killed = {edit.broker for edit in scenario.edits if isinstance(edit, KillBroker)}
    anew = {namespace for edit in scenario.edits for namespace in edit.recreated()}
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
    assert "broker.conf: lowerBoundarySheddingEnabled=true. Then restart the brokers" in script
    assert "--config lowerBoundarySheddingEnabled" not in script
    restart = next(line for line in script.split("\n") if "restart the brokers" in line)
    assert "loadBalancerLoadSheddingStrategy" in restart
    assert "lowerBoundarySheddingEnabled" in restart
    assert "minUnloadMessage" not in restart.split("\n#")[0]


def test_brokers_restart_once_when_the_settings_are_set(small: Snapshot) -> None:
    """A restart before the settings are there would do nothing for them, and a second one disconnects everybody."""
    trace = trace_of(
        small,
        RollingRestart(down_min=2.0, pause_min=1.0),
        cycles=4,
        loadBalancerLoadSheddingStrategy="OverloadShedder",
        lowerBoundarySheddingEnabled=True,
    )
    commands = plan_commands(trace)
    by_hand = [command for command in commands if command.by_hand]
    assert [command.section for command in by_hand] == ["settings"]
    (restart,) = by_hand
    assert "lowerBoundarySheddingEnabled=true. Then restart all brokers one by one, 2 min each." in restart.note
    assert commands.index(restart) > max(at for at, one in enumerate(commands) if one.setting is not None)
    some = trace_of(
        small,
        RollingRestart(brokers=small.brokers.name[:1]),
        cycles=4,
        loadBalancerLoadSheddingStrategy="OverloadShedder",
    )
    assert sum(command.by_hand for command in plan_commands(some)) == 2, "one broker is not all of them"


def test_a_setting_that_goes_back_to_nothing(small: Snapshot) -> None:
    start = replace(small, settings=small.settings.changed(loadBalancerSheddingExcludedNamespaces="a/b"))
    trace = trace_of(start, cycles=1, loadBalancerSheddingExcludedNamespaces="")
    assert changed_settings(trace) == {"loadBalancerSheddingExcludedNamespaces": (("a/b",), ())}
    lines = [c.line for c in plan_commands(trace) if c.section == "settings"]
    assert lines == ["pulsar-admin brokers delete-dynamic-config --config loadBalancerSheddingExcludedNamespaces"]


def test_strategies_have_the_names_that_a_broker_starts_with(small: Snapshot) -> None:
    impl = "org.apache.pulsar.broker.loadbalance.impl."
    shedding, placement = "loadBalancerLoadSheddingStrategy", "loadBalancerLoadPlacementStrategy"
    before = small.settings.changed(
        **{shedding: f"{impl}ThresholdShedder", placement: f"{impl}LeastLongTermMessageRate"}
    )
    after = before.changed(**{shedding: "AvgShedder", placement: "LeastLongTermMessageRate"})
    managers = (LoadManager.MODULAR, LoadManager.MODULAR)
    assert setting_changes(before, after, managers) == {shedding: (f"{impl}ThresholdShedder", f"{impl}AvgShedder")}
    unloadable = before.changed(**{shedding: "ThresholdShedder"})
    assert setting_changes(unloadable, before, managers) == {shedding: ("ThresholdShedder", f"{impl}ThresholdShedder")}
    assert setting_changes(unloadable, unloadable, managers) == {}
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
    move = MoveBundle(bundle=small.bundle_names[0], destination=other_broker(small, 0))
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
    move = Step(MoveBundle(bundle=small.bundle_names[0], destination=other_broker(small, 0)))
    trace = simulate(small, Scenario(steps=(move,), load_manager="extensible", cycles=1))
    commands = plan_commands(trace)
    assert not [c for c in commands if "loadManagerClassName" in c.words]
    assert not [c for c in commands if c.section in {"unloads", "hold"}]
    migration = [c for c in commands if "migration" in c.note]
    assert [c.by_hand for c in migration] == [True]
    assert "loadManagerClassName=org.apache.pulsar" in migration[0].note
    assert "update-dynamic-config --config loadManagerClassName" not in script_of(trace)


def test_unloads_come_in_batches_with_pauses(small: Snapshot) -> None:
    moves = [MoveBundle(bundle=small.bundle_names[at], destination=other_broker(small, at)) for at in range(7)]
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
        RollingRestart(at_min=3),
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


def test_a_broker_is_stopped_at_an_address_with_tls_where_the_commands_use_it() -> None:
    """The address that a person was told had a port without TLS, and the command sends a token."""
    plain, secure = ("pulsar-admin",), ("pulsar-admin", "--admin-url", "https://pulsar.example")
    assert "http://b1:8080" in shutdown_command("b1:8080", plain).words
    assert "https://b1:8080" in shutdown_command("b1:8080", secure).words
    assert uses_tls(("pulsar-admin", "--admin-url=https://pulsar.example"))
    assert not uses_tls(("kubectl", "exec", "toolset", "--", "bin/pulsar-admin"))
