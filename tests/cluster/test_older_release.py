"""A real cluster of an older release: captured as what it is, and its leader decides by the rules of that release."""

import json
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from planner.__main__ import main
from planner.capture.options import CaptureOptions
from planner.capture.run import capture_cluster
from planner.cluster.releases import REFERENCE
from planner.pulsar.placement.modular import fresh_memory, select_broker, unreported
from planner.share.commands import CommandOptions, plan_commands
from planner.share.scenario_file import scenario_file
from planner.share.script import command_script
from planner.simulate.edits.move_bundle import MoveBundle
from planner.simulate.run import simulate
from planner.simulate.scenario import Step, unchanged
from tests.cluster.conftest import OLDER
from tests.cluster.extensible import captured_as_answered, moves_as_the_leader
from tests.cluster.launch import wait_for
from tests.cluster.pulsar_admin import PulsarAdmin
from tests.cluster.scene import ONLY_DIRECT_MEMORY, SHED, Scene
from tests.cluster.watch import settled_snapshot, shed_by_leader, words_before

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1200)]

SHEDDING = {**ONLY_DIRECT_MEMORY, "loadBalancerSheddingEnabled": True}


def told(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Return what a command prints."""
    assert main(arguments) == 0
    return capsys.readouterr().out


def test_decided_as_its_leader_does(older: Scene, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """UniformLoadShedder takes bundles that are larger than what is left to move; the reference would take others."""
    settled_snapshot(older)
    older.admin.send("/admin/v2/brokers/health")  # writes into a namespace that names the cluster, too
    options = CaptureOptions(older.cluster.brokers[0].url, tmp_path, metadata_store=older.cluster.store_url)
    captured = capture_cluster(options).snapshot
    assert captured.info.pulsar_version == captured.settings.release.name == OLDER
    assert captured.info.leader == older.admin.leader()
    owner = captured.bundles.owner.tolist()
    owners = {name: captured.brokers.name[i] for name, i in zip(captured.bundle_names, owner, strict=True) if i >= 0}
    assert older.cluster.owners() == owners
    assert f"pulsar/{captured.info.cluster}/{captured.info.leader}" in captured.namespaces
    assert not [warning for warning in captured.info.warnings if "left out" in warning]

    expected: dict[str, list[tuple[str, str]]] = {}
    for version in (OLDER, REFERENCE.name):
        scenario = tmp_path / f"{version}.json"
        scenario.write_text(scenario_file(unchanged(version, settings=SHEDDING, cycles=1)))
        document = json.loads(
            told(["plan", "--snapshot", str(tmp_path / "snapshot"), "--scenario", str(scenario), "--json"], capsys)
        )
        expected[version] = [(move["source"], move["bundle"]) for move in document["moves"]]
    before, done = shed_by_leader(older, SHEDDING)
    found = [(unload.source, unload.bundle) for unload in done]
    assert found == expected[OLDER] != expected[REFERENCE.name]
    assert len(found) == 3
    now = older.cluster.owners()
    # What the leader gave to itself it counts for good while nobody uses it; an earlier leader may have given it, too.
    silent: tuple[dict[str, str], ...] = ({}, unreported(before))
    for at, unload in enumerate(done):
        assert unload.bundle.startswith(f"{SHED}/")
        acceptable: set[str] = set()
        for taken, own in product(range(at + 1), silent):  # those before it count when clients have asked for them
            placed = own | {one.bundle: one.destination for one in done[:taken]}
            memory = replace(fresh_memory(before.settings), preallocated=placed)
            _, selection = select_broker(before, unload.bundle, memory, before.settings, 0)
            acceptable.update(selection.decision.acceptable)
        assert unload.destination in acceptable, words_before(older.cluster.leader, unload)
        assert now[unload.bundle] == unload.destination


def test_script(older: Scene, tmp_path: Path) -> None:
    """A plan's script moves a bundle with the `pulsar-admin` of that release."""
    before = older.snapshot()
    bundle = next(name for name in before.bundle_names if name.startswith(f"{SHED}/"))
    destination = before.brokers.name[(int(before.bundles.owner[before.bundle_position[bundle]]) + 1) % 3]
    step = Step(MoveBundle(bundle=bundle, destination=destination))
    trace = simulate(before, unchanged(OLDER, steps=(step,), cycles=1))
    options = CommandOptions()
    script = command_script(plan_commands(trace, options), "a plan", options.program, before.info.cluster)
    overrides = older.admin.ask("/brokers/configuration/values")
    done = PulsarAdmin(tmp_path, older.cluster.brokers[0].url).run(script)
    assert done.returncode == 0, done.stdout + done.stderr
    assert older.admin.ask("/brokers/configuration/values") == overrides
    wait_for("the bundle has landed", lambda: older.cluster.owners().get(bundle) == destination, seconds=60)


def test_extensible_capture(older_extensible: Scene, tmp_path: Path) -> None:
    captured_as_answered(older_extensible, tmp_path, OLDER)


def test_extensible_transfers(older_extensible: Scene) -> None:
    """The same capture and the same rule as with the reference, decided by that release's."""
    moves_as_the_leader(older_extensible)
