"""Recommended numbers of bundles on days that they were not chosen on, beside rules of thumb and today's number.

    python -m benchmarks.held_out --clusters 20 --days 10

A cluster is generated for each seed. The number for its most uneven namespace is chosen at the busiest moment of its
first day; at the busiest moment of each later day it is simulated beside 4, 32 and the number that the namespace has,
under four seeds and loads. Where a bundle is placed is partly a matter of luck, so the judge compares the means of all
days; on how many single days the other number is better is counted as well.
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import replace

from planner.cluster.snapshot import Snapshot
from planner.history.generate import snapshots_of_day
from planner.history.spec import HistorySpec
from planner.namespaces.advice import USUAL, TriedCount, bundle_advice, settled_with
from planner.namespaces.overview import namespaces_frame
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.judge import Result, judge
from planner.simulate.scenario import unchanged

SPEC = HistorySpec(
    cluster=ClusterSpec(brokers=6, bundles=60, topics=900, namespaces=3, msg_rate_per_s=90_000, topic_skew=1.1),
    interval_s=4 * 3_600,
    restarts_per_day=0,
    splits_per_day=0,
    topics=True,
)


SEEDS = range(4)
CHOICES = ("recommended", "today's", *map(str, USUAL))


def busiest(spec: HistorySpec, seed: int, day: int) -> Snapshot:
    """Return the moment of a day with most messages."""
    return max(snapshots_of_day(spec, seed, day), key=lambda one: float(one.bundles.msg_rate_in_per_s.sum()))


def held_out(seed: int, days: int) -> Iterator[dict[str, TriedCount]]:
    """Choose on the first day of a cluster; yield what each choice comes to on each of the days after it."""
    spec = replace(SPEC, days=days + 1)
    chosen_on = busiest(spec, seed, 0)
    namespace = str(namespaces_frame(chosen_on)["namespace"].iloc[0])
    advice = bundle_advice(chosen_on, namespace)
    numbers = dict(zip(CHOICES, (advice.recommended, advice.now.bundles, *USUAL), strict=True))
    for day in range(1, days + 1):
        snapshot = busiest(spec, seed, day)
        tried = {number: _tried(snapshot, namespace, number) for number in set(numbers.values())}
        yield {name: tried[number] for name, number in numbers.items()}


def _tried(snapshot: Snapshot, namespace: str, bundles: int) -> TriedCount:
    found = settled_with(snapshot, unchanged(snapshot.info.pulsar_version), namespace, bundles, SEEDS)
    if found is None:
        raise SystemExit(f"{namespace} cannot have {bundles} bundles")
    return found


def main() -> None:
    """Print what the judge says of the recommended numbers against each other choice, over all days."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clusters", type=int, default=20)
    parser.add_argument("--days", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=1)
    asked = parser.parse_args()
    days = [
        one for seed in range(asked.first_seed, asked.first_seed + asked.clusters) for one in held_out(seed, asked.days)
    ]
    means = {name: Result.mean([result for day in days for result in day[name].results]) for name in CHOICES}
    for other in CHOICES[1:]:
        verdict = judge(means[other], means["recommended"])
        worse = sum(judge(day[other].result, day["recommended"].result).word == "worse" for day in days)
        same = sum(day[other].bundles == day["recommended"].bundles for day in days)
        sys.stdout.write(
            f"recommended against {other} on {len(days)} held-out days: {verdict.text}"
            f" Same number on {same} days; worse on {worse} single days.\n"
        )


if __name__ == "__main__":
    main()
