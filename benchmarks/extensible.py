"""How long the extensible load manager's decisions take, beside plain array work of the same size in the same run.

    python benchmarks/extensible.py

Prints milliseconds for orientation, and the ratio to sorting one float for each bundle, which depends less on the
machine.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from planner.cluster.load_manager import LoadManager
from planner.cluster.memory import SheddingMemory
from planner.cluster.settings import Settings
from planner.pulsar.load.top_bundles import with_top_ranks
from planner.pulsar.placement.least_resource_usage_extensible import PLACEMENT
from planner.pulsar.shedding.transfer import SHEDDER
from planner.pulsar.splitting.automatic_extensible import decide_all
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.generate import generate

EAGER = Settings({"loadBalancerSheddingConditionHitCountThreshold": 0, "loadBalancerBrokerLoadTargetStd": 0.0})


def best_ms(work: Callable[[], Any], times: int = 15) -> float:
    """Return the shortest of several runs."""
    best = float("inf")
    for _ in range(times):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best * 1000


def measure(brokers: int, bundles: int) -> None:
    """Print what one cluster size takes."""
    spec = ClusterSpec(
        brokers=brokers, bundles=bundles, topics=4 * bundles, load_manager=LoadManager.EXTENSIBLE, ownership_skew=0.7
    )
    snapshot = with_top_ranks(generate(spec, 7), EAGER)
    memory = SheddingMemory(SHEDDER.initial())
    values = np.random.default_rng(1).random(bundles)
    yardstick = best_ms(lambda: np.sort(values))
    start = time.perf_counter()
    _, decision = SHEDDER.decide(snapshot, memory, EAGER)
    first = (time.perf_counter() - start) * 1000
    candidates, bundle = snapshot.brokers.name, snapshot.bundle_names[0]
    rows = {
        "shed, first time": first,
        "shed": best_ms(lambda: SHEDDER.decide(snapshot, memory, EAGER)),
        "hold (hit count)": best_ms(lambda: SHEDDER.decide(snapshot, memory, Settings())),
        "split, all brokers": best_ms(lambda: decide_all(snapshot, {}, Settings())),
        "top bundles, all brokers": best_ms(lambda: with_top_ranks(snapshot, EAGER), 5),
        "place one bundle": best_ms(
            lambda: PLACEMENT.select(bundle, candidates, snapshot, PLACEMENT.initial(), EAGER, 1)
        ),
    }
    print(f"{brokers} brokers, {bundles} bundles, {len(decision.moves)} moves; sort takes {yardstick:.3f} ms")
    for name, taken in rows.items():
        print(f"  {name:26} {taken:9.3f} ms {taken / yardstick:9.2f} x sort")


if __name__ == "__main__":
    measure(20, 2_000)
    measure(1_000, 100_000)
