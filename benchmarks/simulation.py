"""How fast simulations run, beside deciding alone in the same run.

    python benchmarks/simulation.py

Prints cycles per second of processor time, and the ratio of a simulated cycle to the strategy's own decision, which
depends less on the machine.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from planner.cluster.load_manager import LoadManager
from planner.cluster.memory import SheddingMemory
from planner.cluster.snapshot import Snapshot
from planner.pulsar.manager.cycle import effective_shedder
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.edits.scale_traffic import ScaleTraffic
from planner.simulate.generate import generate
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario, Step

NO_SPLITS = {"loadBalancerAutoBundleSplitEnabled": False}


def seconds(work: Callable[[], Any]) -> float:
    """Return the shorter of two runs, in processor time."""
    taken = []
    for _ in range(2):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return min(taken)


def decision_seconds(snapshot: Snapshot) -> float:
    """Return what one decision of the strategy takes."""
    shedder, _ = effective_shedder(snapshot.info.load_manager, snapshot.settings)
    memory = SheddingMemory(shedder.initial())
    shedder.decide(snapshot, memory, snapshot.settings)
    return seconds(lambda: [shedder.decide(snapshot, memory, snapshot.settings) for _ in range(20)]) / 20


def main() -> None:
    """Print the numbers."""
    daily = (Step(ScaleTraffic(factor=2, shape="daily", duration_min=600)),)
    for manager in LoadManager:
        small = generate(
            ClusterSpec(
                brokers=32, bundles=3_200, topics=64_000, namespaces=32, ownership_skew=0.5, load_manager=manager
            ),
            1,
        )
        taken = seconds(partial(simulate, small, Scenario(cycles=5)))
        print(f"{manager}: 32 brokers x 3,200 bundles, 5 minutes: {taken:.3f} s")
        large = generate(ClusterSpec(brokers=100, bundles=10_000, topics=0, namespaces=100, load_manager=manager), 1)
        alone = decision_seconds(large)
        for name, steps in (("steady", ()), ("traffic changes all the time", daily)):
            scenario = Scenario(cycles=300, settings=NO_SPLITS, steps=steps)
            taken = seconds(partial(simulate, large, scenario)) / 300
            print(
                f"{manager}: 100 x 10,000, {name}: {1 / taken:,.0f} cycles/s; a cycle is {taken / alone:.1f} decisions"
            )


if __name__ == "__main__":
    main()
