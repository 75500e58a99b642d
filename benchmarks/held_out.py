"""Recommended numbers of bundles on days that they were not chosen on, beside rules of thumb and today's number.

    python -m benchmarks.held_out --clusters 20 --days 10

A cluster is generated for each seed. The number for its most uneven namespace is chosen at the busiest moment of its
first day; on each later day it is simulated beside 4, 32 and the number that the namespace has, and judged.
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace

from planner.cluster.snapshot import Snapshot
from planner.history.generate import snapshots_of_day
from planner.history.spec import HistorySpec
from planner.namespaces.advice import USUAL, TriedCount, bundle_advice, settled_with
from planner.namespaces.overview import namespaces_frame
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.judge import judge
from planner.simulate.scenario import unchanged

SPEC = HistorySpec(
    cluster=ClusterSpec(brokers=6, bundles=60, topics=900, namespaces=3, msg_rate_per_s=90_000, topic_skew=1.1),
    interval_s=4 * 3_600,
    restarts_per_day=0,
    splits_per_day=0,
    topics=True,
)


@dataclass(frozen=True)
class HeldOut:
    """One held-out day.

    Attributes:
        seed: The cluster.
        day: The day.
        recommended: The number that was chosen on the first day.
        worse_than: Other numbers that the judge calls better on this day.
        sentences: What it says of them.
    """

    seed: int
    day: int
    recommended: int
    worse_than: tuple[int, ...]
    sentences: tuple[str, ...]


def busiest(spec: HistorySpec, seed: int, day: int) -> Snapshot:
    """Return the moment of a day with most messages."""
    return max(snapshots_of_day(spec, seed, day), key=lambda one: float(one.bundles.msg_rate_in_per_s.sum()))


def held_out(seed: int, days: int) -> Iterator[HeldOut]:
    """Choose on the first day of a cluster, and look at the days after it."""
    spec = replace(SPEC, days=days + 1)
    chosen_on = busiest(spec, seed, 0)
    namespace = str(namespaces_frame(chosen_on)["namespace"].iloc[0])
    advice = bundle_advice(chosen_on, namespace)
    others = sorted({*USUAL, advice.now.bundles} - {advice.recommended})
    for day in range(1, days + 1):
        snapshot = busiest(spec, seed, day)
        mine, *tried = (_tried(snapshot, namespace, number) for number in (advice.recommended, *others))
        found = [(number, judge(other.result, mine.result)) for number, other in zip(others, tried, strict=True)]
        worse = [(number, verdict.text) for number, verdict in found if verdict.word == "worse"]
        numbers, sentences = zip(*worse, strict=True) if worse else ((), ())
        yield HeldOut(seed, day, advice.recommended, numbers, sentences)


def _tried(snapshot: Snapshot, namespace: str, bundles: int) -> TriedCount:
    found = settled_with(snapshot, unchanged(snapshot.info.pulsar_version), namespace, bundles)
    if found is None:
        raise SystemExit(f"{namespace} cannot have {bundles} bundles")
    return found


def main() -> None:
    """Print every day on which another number is better, and how many there were."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clusters", type=int, default=20)
    parser.add_argument("--days", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=1)
    asked = parser.parse_args()
    every = worse = 0
    for seed in range(asked.first_seed, asked.first_seed + asked.clusters):
        for one in held_out(seed, asked.days):
            every += 1
            worse += bool(one.worse_than)
            for number, sentence in zip(one.worse_than, one.sentences, strict=True):
                sys.stdout.write(f"seed {seed}, day {one.day}: {one.recommended} instead of {number}: {sentence}\n")
    sys.stdout.write(f"{every} held-out days, {worse} on which another number is better\n")


if __name__ == "__main__":
    main()
