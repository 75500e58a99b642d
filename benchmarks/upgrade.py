"""How long the upgrade question takes on the generated cluster of 100 brokers and 10,000 bundles.

    python -m benchmarks.upgrade

Prints for each pair of neighbouring releases, and from the oldest to the newest, how many runs of an hour the answer
takes, seconds by the clock and of the processor, and how many times a single run of an hour that is.
"""

import time
from dataclasses import replace
from itertools import pairwise

from planner.cluster.releases import RELEASES
from planner.share.upgrade import ask_upgrade
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario
from planner.workspace.opening import open_snapshot


def main() -> None:
    """Print the numbers."""
    _, snapshot = open_snapshot("generated-100")
    simulate(snapshot, Scenario(cycles=2))
    begun = time.process_time()
    simulate(snapshot, Scenario(cycles=60))
    single = time.process_time() - begun
    for source, target in [*pairwise(RELEASES), (RELEASES[0], RELEASES[-1])]:
        old = replace(snapshot, info=replace(snapshot.info, pulsar_version=source))
        start, begun = time.perf_counter(), time.process_time()
        answer = ask_upgrade(old, target)
        taken, worked = time.perf_counter() - start, time.process_time() - begun
        print(
            f"{source} -> {target}: {len(answer.runs)} runs, {taken:.2f} s ({worked:.2f} s of processor,"
            f" {worked / single:.1f} times one run): {answer.found.sentence}"
        )


if __name__ == "__main__":
    main()
