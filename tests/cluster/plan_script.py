"""A plan's script, as it is, with the real `pulsar-admin` on a real cluster: cut short, run again, and followed."""

import re
from pathlib import Path

from planner.cluster.names import AUTO_BUNDLE_SPLIT_ENABLED, SHEDDING_ENABLED
from planner.cluster.snapshot import Snapshot
from planner.cluster.switches import hold_of
from planner.explain.switched_off import switched_off
from planner.share.asked import asked_of
from planner.share.commands import CommandOptions, final_moves
from planner.share.follow import Following, follow
from planner.share.hand_over import plan_script
from planner.simulate.edits.move_bundle import MoveBundle
from planner.simulate.edits.split_bundle import SplitBundle
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario, Step
from planner.simulate.trace import Trace
from tests.cluster.launch import wait_for
from tests.cluster.pulsar_admin import PulsarAdmin
from tests.cluster.scene import Scene, one_in_each_bundle
from tests.cluster.traffic import Flow, traffic

PLANNED = "acme/planned"
"""One topic with one producer in each bundle, so that one lookup places it; nobody else touches it."""


def plan_of(snapshot: Snapshot) -> Trace:
    """Return a plan that splits the first bundle of `PLANNED`, and moves the others to the next broker."""
    rows = [row for row, name in enumerate(snapshot.bundle_names) if name.startswith(f"{PLANNED}/")]
    brokers = snapshot.brokers.name
    steps = [Step(SplitBundle(bundle=snapshot.bundle_names[rows[0]], algorithm="range_equally_divide"))]
    for row in rows[1:]:
        destination = brokers[(int(snapshot.bundles.owner[row]) + 1) % len(brokers)]
        steps.append(Step(MoveBundle(bundle=snapshot.bundle_names[row], destination=destination)))
    settings = {"loadBalancerNamespaceMaximumBundles": 120}
    return simulate(snapshot, Scenario(steps=tuple(steps), settings=settings, cycles=1))


def run_a_plan(scene: Scene, folder: Path, calm: dict[str, object]) -> None:
    """Run a plan's script, first with a call that fails, then again, and see by captures how far it got.

    Args:
        scene: The cluster.
        folder: An empty one.
        calm: Settings with which shedding is on and moves nothing.
    """
    scene.admin.create_namespace(PLANNED, 4)
    flows = {topic: Flow(2.0) for topic in one_in_each_bundle(PLANNED, 4)}
    given = {**calm, SHEDDING_ENABLED: True, "loadBalancerNamespaceMaximumBundles": 100}
    with traffic(scene.cluster.brokers[0].service_url, flows), scene.settings(given):
        wait_for(
            "owners", lambda: sum(name.startswith(f"{PLANNED}/") for name in scene.cluster.owners()) == 4, seconds=60
        )
        before = scene.snapshot(PLANNED)
        trace = plan_of(before)
        moves = {move.bundle: move.destination for move in final_moves(trace)}
        assert len(moves) == 3
        options = CommandOptions(batch_bundles=2, pause_s=1)
        script = plan_script(asked_of(trace), options, made_at_ms=before.info.captured_at_ms)
        admin = PulsarAdmin(folder, scene.cluster.brokers[0].url)

        shown = admin.run(script, "--dry-run")
        assert (shown.returncode, admin.calls()) == (0, []), shown.stdout

        # Whatever fails, the dynamic configuration ends as it began, and so does what brokers run with.
        overrides = _overrides(scene)
        assert AUTO_BUNDLE_SPLIT_ENABLED not in overrides
        running = _running(scene)
        unseen = admin.run(script, fail_on="brokers namespaces")
        assert unseen.returncode == 1, unseen.stdout + unseen.stderr
        other = admin.run(re.sub("(?m)^cluster=.*$", "cluster=other", script))
        assert other.returncode == 7, other.stdout + other.stderr
        assert "Nothing was changed." in other.stdout
        assert (_overrides(scene), _running(scene)) == (overrides, running)

        # Killed, it leaves its mark: brokers shed nothing, a capture says why, and another script does not begin.
        killed = admin.run(script.replace("\nbatch ", "\nkill -KILL $$\nbatch ", 1))
        assert killed.returncode == -9, killed.stdout + killed.stderr
        assert scene.admin.ask("/brokers/configuration/runtime")[AUTO_BUNDLE_SPLIT_ENABLED] == "false"
        marks = [hold_of(_overrides(scene)[name]) for name in (SHEDDING_ENABLED, AUTO_BUNDLE_SPLIT_ENABLED)]
        was_on = [running[name] == "true" for name in (SHEDDING_ENABLED, AUTO_BUNDLE_SPLIT_ENABLED)]
        assert [(mark.overridden, mark.was_on) for mark in marks if mark] == [(True, True), (False, was_on[1])]
        mark = next(mark for mark in marks if mark)
        held = scene.snapshot(PLANNED)
        assert [one.setting for one in switched_off(held)] == [SHEDDING_ENABLED, AUTO_BUNDLE_SPLIT_ENABLED]
        assert {one.hold.script for one in switched_off(held) if one.hold} == {mark.script}
        other = PulsarAdmin(folder / "other", scene.cluster.brokers[0].url).run(
            f"{script}\n# another\n".replace(f"digest={mark.script}", "digest=000000000000")
        )
        assert other.returncode == 5, other.stdout + other.stderr

        # Run again, the second unload fails: nothing after it is done, and all settings are back.
        second = list(moves)[1].rpartition("/")[2]
        broken = admin.run(script, fail_on=f"namespaces unload {PLANNED} --bundle {second}")
        assert broken.returncode == 1, broken.stdout + broken.stderr
        assert (_overrides(scene), _running(scene)) == (overrides, running)
        half = _followed(scene, trace)
        assert half.counts == {"done": 2, "left": 3}, half.steps  # the split and the first move

        whole = admin.run(script)
        assert whole.returncode == 0, whole.stdout + whole.stderr
        assert len(re.findall(r"(?m)^  127\.\S+: \d+ % used$", whole.stdout)) == 2, whole.stdout
        wait_for("the bundles have landed", lambda: moves.items() <= scene.cluster.owners().items(), seconds=30)
        done = _followed(scene, trace)
        assert done.sentence.startswith("The plan is complete"), done.steps
        assert not [name for name, _, _ in done.strayed if name.startswith(f"{PLANNED}/")]
        assert _overrides(scene) == overrides | {"loadBalancerNamespaceMaximumBundles": "120"}


def _overrides(scene: Scene) -> dict[str, str]:
    found: dict[str, str] = scene.admin.ask("/brokers/configuration/values")
    return found


def _running(scene: Scene) -> dict[str, str]:
    """What a broker runs with, of what the script changes."""
    found = scene.admin.ask("/brokers/configuration/runtime")
    return {
        name: found[name]
        for name in (SHEDDING_ENABLED, AUTO_BUNDLE_SPLIT_ENABLED, "loadBalancerNamespaceMaximumBundles")
    }


def _owned(scene: Scene) -> int:
    return sum(name.startswith(f"{PLANNED}/") for name in scene.cluster.owners())


def _followed(scene: Scene, trace: Trace) -> Following:
    return follow(trace, scene.snapshot(PLANNED))
