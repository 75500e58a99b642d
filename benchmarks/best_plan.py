"""What strategies move, beside the cheapest plan that is at least as balanced, and how fast best plans are found.

    python -m benchmarks.best_plan [--large | --policies]

Prints for each strategy that sheds anything its moves and disconnected clients in 30 cycles, those of the cheapest plan
whose peak and deviation are both no worse, and how many times fewer that is; for the generated cluster of 100 brokers
the gap to the bound and seconds; with --large the same at 1,000 brokers x 100,000 bundles, with the memory it takes.

With --policies instead: peak, bound and gap of 20 generated clusters with isolation policies, anti-affinity groups and
unlike machines at 10, 50 and 200 moves, and how many of the 60 plans are within 1 % of their bound.
"""

import argparse
import resource
import time
from collections.abc import Sequence

from benchmarks.clusters_with_policies import CLUSTERS, cluster_with_policies
from benchmarks.rival import as_balanced_as
from planner.cluster.snapshot import Snapshot
from planner.optimize.answer import best_plan
from planner.optimize.question import Question
from planner.pulsar.shedding.registry import SHEDDERS
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.generate import generate
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario
from planner.simulate.strategies import under_strategy
from planner.simulate.summary import summary
from planner.workspace.samples import load_sample, samples

_NEAR_PERCENT = 1.0
"""Gap to the bound up to which a plan is near it."""


def strategies(snapshot: Snapshot) -> None:
    """Print what each strategy moves, and what would have been enough."""
    config, manager = snapshot.settings, snapshot.info.load_manager
    for shedder in SHEDDERS:
        numbers = summary(simulate(snapshot, under_strategy(Scenario(cycles=30), config, manager, shedder.name)))
        if not numbers.shed:
            continue
        clients = numbers.producers_disconnected + numbers.consumers_disconnected
        peak, deviation = numbers.final_peak_usage_percent / 100, numbers.final_std_percent / 100
        rival = as_balanced_as(snapshot, peak, deviation)
        print(
            f"{shedder.name}: {numbers.shed:,} moves, {clients:,} clients, peak {peak:.1%}, deviation {deviation:.2%};"
            f" enough: {rival.moves:,} moves, {rival.clients:,} clients, peak {rival.peak:.1%}, deviation"
            f" {rival.deviation:.2%}; {numbers.shed / max(rival.moves, 1):.1f} times fewer moves,"
            f" {clients / max(rival.clients, 1):.1f} times fewer clients; such a peak takes at least"
            f" {rival.least_moves:,} moves{'' if rival.reached else ' (NOT REACHED)'}"
        )


def plans(snapshot: Snapshot, budgets: tuple[int | None, ...]) -> None:
    """Print peak, bound and seconds for budgets of moves."""
    for moves in budgets:
        start, begun = time.perf_counter(), time.process_time()
        plan = best_plan(snapshot, Question(moves=moves, splits=0))
        taken, worked = time.perf_counter() - start, time.process_time() - begun
        print(
            f"{'any number of' if moves is None else moves} moves: peak {plan.peak:.2%}, bound {plan.bound:.2%}, gap"
            f" {plan.gap_percent:.2f} %, {len(plan.moves):,} moves, {taken:.2f} s ({worked:.2f} s of processor)"
        )


def policies(seeds: Sequence[int], rounds: int) -> None:
    """Print peak, bound and seconds of clusters with policies, and how many plans are near their bound."""
    near = total = 0
    spent_s = 0.0
    for seed in seeds:
        cluster = cluster_with_policies(seed)
        size = f"{len(cluster.brokers)} x {len(cluster.bundles):,}, {cluster.info.load_manager}"
        for moves in (10, 50, 200):
            begun = time.process_time()
            plan = best_plan(cluster, Question(moves=moves, splits=0, rounds=rounds))
            worked = time.process_time() - begun
            spent_s += worked
            total += 1
            near += plan.gap_percent <= _NEAR_PERCENT
            print(
                f"{seed:2} {size:>28} {moves:3} moves: {float(plan.usage_before.max()):6.1%} -> peak {plan.peak:7.2%},"
                f" bound {plan.bound:7.2%}, gap {plan.gap_percent:5.2f} %, {len(plan.moves):3} moves, {worked:5.2f} s"
                f"  {plan.limit[:60]}",
                flush=True,
            )
    print(f"{near} of {total} plans within {_NEAR_PERCENT:g} % of their bound; {spent_s:.1f} s of processor")


def main() -> None:
    """Print the numbers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--large", action="store_true", help="1,000 brokers x 100,000 bundles as well")
    parser.add_argument("--policies", action="store_true", help="clusters with policies and unlike machines instead")
    parser.add_argument("--seeds", type=int, nargs="*", default=range(CLUSTERS), help="which of them")
    parser.add_argument("--rounds", type=int, default=Question().rounds, help="how long to search")
    asked = parser.parse_args()
    if asked.policies:
        policies(asked.seeds, asked.rounds)
        return
    hundred = load_sample(next(sample for sample in samples() if sample.file == "generated-100.zip"))
    strategies(hundred)
    plans(hundred, (10, 50, 200, 500, None))
    if asked.large:
        spec = ClusterSpec(
            brokers=1_000,
            bundles=100_000,
            topics=1_000_000,
            namespaces=1_000,
            ownership_skew=0.5,
            msg_rate_per_s=2_000_000,
        )
        plans(generate(spec, 1), (52, 500, None))
        print(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB at most")


if __name__ == "__main__":
    main()
