"""Scenarios drawn at random, every kind of edit among them."""

import random
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from planner.cluster.errors import ScenarioError
from planner.cluster.releases import REFERENCE
from planner.cluster.snapshot import Snapshot
from planner.simulate.assumptions import Assumptions
from planner.simulate.edits.add_brokers import AddBrokers
from planner.simulate.edits.change_capacity import ChangeCapacity
from planner.simulate.edits.drain_broker import DrainBroker
from planner.simulate.edits.edit import Edit
from planner.simulate.edits.hold_balancer import HoldBalancer
from planner.simulate.edits.kill_broker import KillBroker
from planner.simulate.edits.move_bundle import MoveBundle
from planner.simulate.edits.move_bundles import MoveBundles
from planner.simulate.edits.move_namespace import MoveNamespace
from planner.simulate.edits.pin_bundle import PinBundle
from planner.simulate.edits.remove_broker import RemoveBroker
from planner.simulate.edits.rolling_restart import RollingRestart
from planner.simulate.edits.scale_traffic import ScaleTraffic
from planner.simulate.edits.set_anti_affinity import SetAntiAffinity
from planner.simulate.edits.set_bundle_count import SetBundleCount
from planner.simulate.edits.set_dispatch_rate import SetDispatchRate
from planner.simulate.edits.set_isolation import SetIsolation
from planner.simulate.edits.set_partitions import SetPartitions
from planner.simulate.edits.split_bundle import SplitBundle
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario, Step
from planner.simulate.trace import Trace

Value: TypeAlias = str | int | float | bool
Pool: TypeAlias = tuple[tuple[str, Callable[[], Value]], ...]

SHEDDERS = ("OverloadShedder", "ThresholdShedder", "UniformLoadShedder", "AvgShedder")


def random_scenario(snapshot: Snapshot, seed: int, *, most_edits: int = 6, most_cycles: int = 100_000) -> Scenario:
    """Return a scenario that fits a snapshot; the same seed gives the same one."""
    draw = random.Random(seed)  # noqa: S311
    managers: tuple[Literal["", "modular", "extensible"], ...] = ("", "", "modular", "extensible")
    return Scenario(
        name=draw.choice(("", "plan", "Ünïcode ✓ 名", "a'b\"c`$(id)\n&=#?")),
        steps=tuple(Step(random_edit(snapshot, draw), draw.random() < 0.9) for _ in range(draw.randint(0, most_edits))),
        settings=_settings(draw),
        load_manager=draw.choice(managers),
        seed=draw.randrange(2**31),
        cycles=draw.randint(1, most_cycles),
        assumptions=draw.choice(
            (
                Assumptions(),
                Assumptions(cpu_model="fixed", cpu_percent_per_mb_per_s=draw.random() * 9, spread_reports=False),
                Assumptions(idle_cpu_percent=draw.random() * 50, session_timeout_s=draw.randint(0, 60)),
            )
        ),
    )


def _settings(draw: random.Random) -> dict[str, Value]:
    pool: Pool = (
        (
            "loadBalancerLoadSheddingStrategy",
            lambda: f"org.apache.pulsar.broker.loadbalance.impl.{draw.choice(SHEDDERS)}",
        ),
        ("loadBalancerBrokerThresholdShedderPercentage", lambda: draw.randint(1, 50)),
        ("loadBalancerHistoryResourcePercentage", lambda: round(draw.random(), draw.randint(1, 17))),
        ("maxUnloadPercentage", draw.random),
        ("lowerBoundarySheddingEnabled", lambda: draw.random() < 0.5),
        ("loadBalancerSheddingExcludedNamespaces", lambda: draw.choice(("public/default", "a/b,c/d"))),
        ("loadBalancerSheddingGracePeriodMinutes", lambda: draw.randint(1, 60)),
        ("loadBalancerOverrideBrokerNicSpeedGbps", lambda: draw.choice((1.0, 10.0, 25.5))),
    )
    assert all(name in REFERENCE.settings for name, _ in pool)
    return {name: make() for name, make in draw.sample(pool, draw.randint(0, 4))}


def random_edit(snapshot: Snapshot, draw: random.Random) -> Edit:
    """Return an edit of any kind."""
    broker = draw.choice(snapshot.brokers.name)
    namespace = draw.choice(snapshot.namespaces)
    bundle = draw.choice(snapshot.bundle_names)
    at = draw.choice((0.0, 1.0, 2.5, draw.random() * 10))
    shapes: tuple[Literal["step", "growth", "daily", "spike"], ...] = ("step", "growth", "daily", "spike")
    targets: tuple[tuple[Any, str], ...] = (
        ("cluster", ""),
        ("namespace", namespace),
        ("bundle", bundle),
        ("topic", topic := str(draw.choice(snapshot.topics.name))),
    )
    scope, target = draw.choice(targets)
    return draw.choice(
        (
            AddBrokers(count=draw.randint(1, 3), cores=draw.choice((0.0, 8.0)), at_min=at),
            RemoveBroker(broker=broker, at_min=at),
            DrainBroker(broker=broker, at_min=at, bundles_per_min=draw.choice((60.0, 7.5))),
            KillBroker(broker=broker, at_min=at),
            RollingRestart(brokers=draw.choice(((), (broker,))), at_min=at),
            ChangeCapacity(brokers=(broker,), cores=draw.choice((4.0, 16.0)), nic_gbps=10.0, at_min=at),
            ScaleTraffic(
                scope=scope, target=target, factor=draw.random() * 4, shape=draw.choice(shapes), at_min=at,
                duration_min=draw.choice((0.0, 5.0)),
            ),
            SplitBundle(bundle=bundle, at_min=at, unload=draw.random() < 0.5),
            SetBundleCount(namespace=namespace, bundles=draw.randint(1, 32)),
            MoveNamespace(
                namespace=namespace, successor=f"{namespace}-new", bundles=draw.randint(1, 32), at_min=at,
                batches=draw.randint(1, 5), pause_min=draw.choice((0.5, 3.0)),
            ),
            SetPartitions(
                topic=topic.rpartition("-partition-")[0] or topic, partitions=draw.randint(1, 40), at_min=at,
                new_topic=draw.choice(("", f"{topic}-new")),
            ),
            MoveBundle(bundle=bundle, destination=draw.choice(("", broker)), at_min=at),
            MoveBundles(moves=((bundle, broker), (snapshot.bundle_names[0], broker)), at_min=at),
            PinBundle(bundle=bundle, broker=broker),
            SetIsolation(name="policy", namespaces=(namespace,), primary=(".*",), min_limit=1),
            SetAntiAffinity(namespace=namespace, group=draw.choice(("", "group"))),
            HoldBalancer(duration_min=draw.choice((1.0, 4.5)), at_min=at),
            SetDispatchRate(target=namespace, msg_per_period=draw.choice((-1, 5, 100))),
        )
    )  # fmt: skip


def random_plan(snapshot: Snapshot, seed: int, *, most_cycles: int = 6) -> Trace:
    """Run a random scenario; edits that do not fit together are left out, the last one first."""
    scenario = random_scenario(snapshot, seed, most_cycles=most_cycles)
    while True:
        try:
            return simulate(snapshot, scenario)
        except ScenarioError:
            scenario = scenario.with_steps(*scenario.steps[:-1])
