"""A best plan, carried out on a real cluster by its own script: where bundles end, what brokers carry, what stays."""

import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from planner.cluster.arrays import FloatArray, frozen
from planner.cluster.snapshot import Snapshot
from planner.formats.document import write_document
from planner.optimize.answer import best_plan
from planner.optimize.question import Question
from planner.optimize.stability import stability_of
from planner.optimize.waves import waves_of
from planner.share.carry_out import best_plan_script, summary
from planner.share.commands import CommandOptions
from tests.cluster.launch import wait_for
from tests.cluster.pulsar_admin import PulsarAdmin
from tests.cluster.scene import SHED, Scene, shed_layout

WATCHED_S = 300
"""How long nothing may move after a plan that is called stable."""

_BY_CPU = {
    "loadBalancerDirectMemoryResourceWeight": 0.0,
    "loadBalancerMemoryResourceWeight": 0.0,
    "loadBalancerCPUResourceWeight": 1.0,
    "loadBalancerSheddingEnabled": True,
}


def carry_out_the_best_plan(scene: Scene, folder: Path, calm: dict[str, object]) -> None:
    """Put bundles on one broker, capture, optimize, run the script, capture again, and go back by the other script.

    Args:
        scene: The cluster.
        folder: An empty one.
        calm: Settings with which shedding is on and leaves a level cluster alone.
    """
    brokers = scene.cluster.brokers
    layout = shed_layout(scene.cluster, brokers[0].id, brokers[-1].id)
    scene.put(layout)
    wait_for("what brokers say of bundles is what flows", lambda: _settled(scene, layout), seconds=240, every=5.0)
    with scene.settings({**_BY_CPU, **calm}):
        before = _with_cpu_of_traffic(scene.snapshot())
        others = tuple(name for name in before.namespaces if name != SHED)
        plan = best_plan(before, Question(moves=6, keep_namespaces=others, splits=0))
        assert plan.moves, (summary(plan), plan.usage_before, write_document(before))
        waves = waves_of(plan, 4)
        stability = stability_of(plan)
        options = CommandOptions(pause_s=1)
        made_at_ms = before.info.captured_at_ms
        script = best_plan_script(plan, waves, stability, options, made_at_ms=made_at_ms)
        admin = PulsarAdmin(folder, scene.cluster.brokers[0].url)
        overrides = scene.admin.ask("/brokers/configuration/values")
        done = admin.run(script, "--restore-at-once")
        assert done.returncode == 0, done.stdout + done.stderr
        assert scene.admin.ask("/brokers/configuration/values") == overrides
        wanted = {move.bundle: move.destination for move in plan.moves}
        wait_for("the bundles have landed", lambda: wanted.items() <= scene.cluster.owners().items(), seconds=60)

        predicted = _traffic(plan.after())
        busy = predicted > 0.05

        def as_predicted() -> bool:
            return np.allclose(_traffic(scene.snapshot())[busy], predicted[busy], rtol=0.10)

        wait_for("the traffic of each broker is within 10 % of the prediction", as_predicted, seconds=240, every=5.0)

        if stability.stable:
            owners, until = scene.cluster.owners(), time.monotonic() + WATCHED_S
            while time.monotonic() < until:
                time.sleep(10)
                now = scene.cluster.owners()
                assert {name: now.get(name) for name in wanted} == {name: owners[name] for name in wanted}

        home = best_plan_script(plan, waves, stability, options, made_at_ms=made_at_ms, back=True)
        (folder / "back").mkdir()
        returned = PulsarAdmin(folder / "back", scene.cluster.brokers[0].url).run(home)
        assert returned.returncode == 0, returned.stdout + returned.stderr
        assert scene.admin.ask("/brokers/configuration/values") == overrides
        sources = {move.bundle: move.source for move in plan.moves}
        wait_for("the bundles are back", lambda: sources.items() <= scene.cluster.owners().items(), seconds=60)


def _settled(scene: Scene, layout: dict[str, str]) -> bool:
    """Say whether bundles are in place and have their topics' traffic, and not what came while they were moved.

    A broker takes its load data back when a bundle comes or goes, and sends it again later.
    """
    snapshot = scene.snapshot()
    names = [*snapshot.brokers.name, ""]
    owners = dict(zip(snapshot.bundle_names, [names[at] for at in snapshot.bundles.owner.tolist()], strict=True))
    if not layout.items() <= owners.items() or not snapshot.brokers.has_load_data.all():
        return False
    bundles = dict(zip(snapshot.topics.name.to_pylist(), snapshot.topics.bundle.tolist(), strict=True))
    if not scene.flows.keys() <= bundles.keys():
        return False
    places = [bundles[topic] for topic in scene.flows]
    wanted = np.bincount(places, [flow.msg_per_s for flow in scene.flows.values()], minlength=len(snapshot.bundles))
    share = snapshot.bundles.msg_rate_in_per_s[wanted > 0] / wanted[wanted > 0]
    return bool(share.min() > 0) and bool(np.allclose(share, np.median(share), rtol=0.07))


def _with_cpu_of_traffic(snapshot: Snapshot) -> Snapshot:
    """Return a snapshot whose brokers use CPU by what `SHED` brings them; brokers of one machine all tell the same."""
    place = snapshot.namespaces.index(SHED)
    mine = (snapshot.bundles.namespace == place) & (snapshot.bundles.owner >= 0)
    size = snapshot.bundles.msg_throughput_in_bytes_per_s[mine]
    sums = np.bincount(snapshot.bundles.owner[mine], size, minlength=len(snapshot.brokers))
    limit = snapshot.brokers.cpu_limit_percent
    brokers = replace(snapshot.brokers, cpu_usage_percent=frozen(limit * (0.1 + 0.8 * sums / sums.sum())))
    return snapshot.with_columns(brokers=brokers)


def _traffic(snapshot: Snapshot) -> FloatArray:
    """Return the share of all traffic that each broker has, by the names of brokers in order.

    Shares, as the programs that make the traffic are slow where the machine is busy.
    """
    bundles, names = snapshot.bundles, snapshot.brokers.name
    size = bundles.msg_throughput_in_bytes_per_s + bundles.msg_throughput_out_bytes_per_s
    served = bundles.owner >= 0
    sums = np.bincount(bundles.owner[served], size[served], minlength=len(names)).astype(np.float64)
    ordered: FloatArray = sums[np.argsort(np.array(names, dtype=np.str_))] / sums.sum()
    return ordered
