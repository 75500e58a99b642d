"""How long advice on bundles takes, beside a what-if of the same cluster in the same run.

    python -m benchmarks.bundle_advice --largest 25000

Prints seconds of processor time, and the ratio to 30 cycles of a what-if that changes nothing, which depends less on
the machine. Advice for all namespaces is that of `planner bundles` without `--namespace`; the namespace with most
bundles is advised alone as well, and is moved to a successor of 128 bundles.
"""

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Final

import numpy as np

from planner.cluster.snapshot import Snapshot
from planner.namespaces.advice import advisable, bundle_advice
from planner.namespaces.counts import count_rows
from planner.namespaces.population import population_of
from planner.namespaces.successor import successor_move, successor_trial
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.generate import generate
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario

_SIZES: Final = ((10, 1_000, 20), (100, 10_000, 20), (150, 25_000, 20), (200, 50_000, 20))
"""Brokers, bundles and namespaces of each cluster."""
_SUCCESSOR_BUNDLES: Final = 128


def _seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def _everything(snapshot: Snapshot) -> None:
    for namespace in advisable(snapshot):
        bundle_advice(snapshot, namespace)


def _counted(snapshot: Snapshot, namespace: str) -> None:
    count_rows(population_of(snapshot, namespace), range(1, 1025), len(snapshot.brokers))


def _measure(brokers: int, bundles: int, namespaces: int, *, every: bool) -> None:
    spec = ClusterSpec(
        brokers=brokers, bundles=bundles, topics=4 * bundles, namespaces=namespaces, msg_rate_per_s=3_000 * brokers
    )
    snapshot = generate(spec, 3)
    largest = snapshot.namespaces[int(np.bincount(snapshot.bundles.namespace).argmax())]
    move = successor_move(snapshot, largest, _SUCCESSOR_BUNDLES)
    works: dict[str, Callable[[], object]] = {
        "a what-if of 30 cycles": partial(simulate, snapshot, Scenario(cycles=30)),
        "all counts to 1,024": partial(_counted, snapshot, largest),
        "advice on the namespace with most bundles": partial(bundle_advice, snapshot, largest),
        "its move to a successor": partial(successor_trial, snapshot, move),
    }
    if every:
        works[f"advice on all {namespaces} namespaces"] = partial(_everything, snapshot)
    sys.stdout.write(f"{brokers:,} brokers x {bundles:,} bundles, {4 * bundles:,} topics\n")
    yardstick = 0.0
    for name, work in works.items():
        taken = _seconds(work)
        yardstick = yardstick or taken
        sys.stdout.write(f"  {name:42} {taken:8.2f} s  {taken / yardstick:8.1f} x\n")
        sys.stdout.flush()


def main() -> None:
    """Print the numbers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=int, default=25_000, help="leave out clusters with more bundles")
    parser.add_argument("--every-up-to", type=int, default=10_000, help="advise on all namespaces up to these bundles")
    asked = parser.parse_args()
    for brokers, bundles, namespaces in _SIZES:
        if bundles <= asked.largest:
            _measure(brokers, bundles, namespaces, every=bundles <= asked.every_up_to)


if __name__ == "__main__":
    main()
