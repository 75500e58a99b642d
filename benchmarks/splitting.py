"""How long automatic splitting of the modular manager takes, beside plain array work of the same size in the same run.

    python benchmarks/splitting.py

Prints milliseconds for orientation, and the ratio to sorting one float for each bundle, which depends less on the
machine.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from planner.cluster.settings import Settings
from planner.pulsar.load.averages import broker_averages, refresh
from planner.pulsar.load.broker_report import with_report_totals
from planner.pulsar.splitting.automatic_modular import decide
from planner.pulsar.splitting.manual import SplitCommand, answer
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.generate import generate


def best_ms(work: Callable[[], Any], times: int = 10) -> float:
    """Return the shortest of several runs."""
    best = float("inf")
    for _ in range(times):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best * 1000


def measure(brokers: int, bundles: int) -> None:
    """Print what one cluster size takes."""
    snapshot = generate(ClusterSpec(brokers=brokers, bundles=bundles, topics=4 * bundles, ownership_skew=0.7), 7)
    topics = np.sort(snapshot.bundles.topics)
    some_hot = Settings({"loadBalancerNamespaceBundleMaxTopics": int(topics[-bundles // 1000])})
    every_hot = Settings({"loadBalancerNamespaceBundleMaxBandwidthMbytes": 2048})
    values = np.random.default_rng(1).random(bundles)
    yardstick = best_ms(lambda: np.sort(values))
    namespace, low = snapshot.namespaces[0], int(snapshot.bundles.low[0])
    command = SplitCommand(namespace, f"0x{low:08x}_0x{int(snapshot.bundles.high[0]):08x}")
    whole = replace(snapshot)
    start = time.perf_counter()
    decide(whole, some_hot)
    first = (time.perf_counter() - start) * 1000
    rows = {
        "none hot": best_ms(lambda: decide(snapshot, Settings())),
        "one in 1,000 hot, first time": first,
        "one in 1,000 hot": best_ms(lambda: decide(snapshot, some_hot)),
        "all with two topics hot": best_ms(lambda: decide(snapshot, every_hot), 3),
        "one manual split": best_ms(lambda: answer(snapshot, command, Settings())),
        "one sample of all averages": best_ms(lambda: refresh(snapshot.bundles)),
        "averages of all brokers": best_ms(lambda: broker_averages(snapshot)),
        "totals of all reports": best_ms(lambda: with_report_totals(snapshot)),
    }
    print(f"{brokers} brokers, {bundles} bundles; sort takes {yardstick:.3f} ms")
    for name, taken in rows.items():
        print(f"  {name:30} {taken:9.3f} ms {taken / yardstick:9.2f} x sort")


if __name__ == "__main__":
    measure(20, 2_000)
    measure(1_000, 100_000)
