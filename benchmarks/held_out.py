"""Recommended numbers of bundles on days that they were not chosen on, beside rules of thumb and today's number.

    python -m benchmarks.held_out --clusters 20 --days 10

A cluster is generated for each seed. The number for its most uneven namespace is chosen at the busiest moment of its
first day; on each later day it is simulated beside 4, 32 and the number that the namespace has, and judged. A single
simulation of a small cluster is a matter of luck as well: the same is counted for each of these numbers as a rule.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping
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
        numbers: The number of bundles that each choice comes to.
        beaten: Choices that the judge calls worse than another one on this day.
    """

    numbers: Mapping[str, int]
    beaten: frozenset[str]


def busiest(spec: HistorySpec, seed: int, day: int) -> Snapshot:
    """Return the moment of a day with most messages."""
    return max(snapshots_of_day(spec, seed, day), key=lambda one: float(one.bundles.msg_rate_in_per_s.sum()))


def held_out(seed: int, days: int) -> Iterator[HeldOut]:
    """Choose on the first day of a cluster, and look at the days after it."""
    spec = replace(SPEC, days=days + 1)
    chosen_on = busiest(spec, seed, 0)
    namespace = str(namespaces_frame(chosen_on)["namespace"].iloc[0])
    advice = bundle_advice(chosen_on, namespace)
    numbers = {"recommended": advice.recommended, "today's": advice.now.bundles, **{str(one): one for one in USUAL}}
    for day in range(1, days + 1):
        snapshot = busiest(spec, seed, day)
        tried = {number: _tried(snapshot, namespace, number).result for number in set(numbers.values())}
        worse = {
            number
            for number, mine in tried.items()
            if any(judge(other, mine).word == "worse" for other in tried.values() if other is not mine)
        }
        yield HeldOut(numbers, frozenset(name for name, number in numbers.items() if number in worse))


def _tried(snapshot: Snapshot, namespace: str, bundles: int) -> TriedCount:
    found = settled_with(snapshot, unchanged(snapshot.info.pulsar_version), namespace, bundles)
    if found is None:
        raise SystemExit(f"{namespace} cannot have {bundles} bundles")
    return found


def main() -> None:
    """Print on how many days each choice is beaten by another one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clusters", type=int, default=20)
    parser.add_argument("--days", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=1)
    asked = parser.parse_args()
    days = [
        one for seed in range(asked.first_seed, asked.first_seed + asked.clusters) for one in held_out(seed, asked.days)
    ]
    for name in days[0].numbers:
        beaten = sum(name in one.beaten for one in days)
        sys.stdout.write(f"{name}: another number is better on {beaten} of {len(days)} held-out days\n")


if __name__ == "__main__":
    main()
