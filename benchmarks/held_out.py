"""Recommended numbers of bundles on days that they were not chosen on, beside rules of thumb and today's number.

    python -m benchmarks.held_out --clusters 20 --days 10 --workers 2

A cluster is generated for each seed. The number for its most uneven namespace is chosen at the busiest moment of its
first day; at the busiest moment of each later day it is simulated beside 4, 32 and the number that the namespace has.

Where bundles are placed is partly luck: on one day, the same number of bundles ends with a highest usage that differs
by 10 to 40 points (standard deviation) from seed to seed. So a number is better on a day by the rule that chooses one:
the judge finds it better on average and in three quarters of eight simulations, and then of 32 others. The judge also
compares the means of all days.

How much is luck shows where a number is compared with itself: the mean of eight simulations with that of eight others
of the same loads. Beside it stand the other choices, compared by the mean of eight alone.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context

from planner.cluster.snapshot import Snapshot
from planner.history.generate import snapshots_of_day
from planner.history.spec import HistorySpec
from planner.namespaces.advice import bundle_advice
from planner.namespaces.overview import namespaces_frame
from planner.namespaces.tried_counts import USUAL, TriedCount, settled_with
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

SEEDS = range(8)
OTHER_SEEDS = range(8, 40)
ITSELF_SEEDS = range(40, 48)
"""Seeds with the loads of `SEEDS`."""
CHOICES = ("recommended", "today's", *map(str, USUAL))


@dataclass(frozen=True, slots=True)
class Day:
    """One held-out day.

    Attributes:
        tried: What each choice comes to.
        better: The choices that the recommended number is better than.
        worse: Those that it is worse than.
        itself: The recommended number under other seeds.
    """

    tried: Mapping[str, TriedCount]
    better: frozenset[str]
    worse: frozenset[str]
    itself: TriedCount


def busiest(spec: HistorySpec, seed: int, day: int) -> Snapshot:
    """Return the moment of a day with most messages."""
    return max(snapshots_of_day(spec, seed, day), key=lambda one: float(one.bundles.msg_rate_in_per_s.sum()))


def held_out(seed: int, days: int) -> list[Day]:
    """Choose on the first day of a cluster; return what each choice comes to on each of the days after it."""
    spec = replace(SPEC, days=days + 1)
    chosen_on = busiest(spec, seed, 0)
    namespace = str(namespaces_frame(chosen_on)["namespace"].iloc[0])
    advice = bundle_advice(chosen_on, namespace)
    numbers = dict(zip(CHOICES, (advice.recommended, advice.now.bundles, *USUAL), strict=True))
    return [judged(busiest(spec, seed, day), namespace, numbers) for day in range(1, days + 1)]


def judged(snapshot: Snapshot, namespace: str, numbers: Mapping[str, int]) -> Day:
    """Compare a recommended number with other ones on a day, by the rule that chooses one."""
    tried = {number: _tried(snapshot, namespace, number, SEEDS) for number in set(numbers.values())}
    again: dict[int, TriedCount] = {}

    def holds(one: int, other: int) -> bool:
        if not tried[one].holds_against(tried[other]):
            return False
        for number in {one, other} - set(again):
            again[number] = _tried(snapshot, namespace, number, OTHER_SEEDS)
        return again[one].holds_against(again[other])

    mine = numbers[CHOICES[0]]
    return Day(
        {name: tried[number] for name, number in numbers.items()},
        frozenset(name for name, number in numbers.items() if holds(mine, number)),
        frozenset(name for name, number in numbers.items() if holds(number, mine)),
        _tried(snapshot, namespace, mine, ITSELF_SEEDS),
    )


def _tried(snapshot: Snapshot, namespace: str, bundles: int, seeds: Sequence[int]) -> TriedCount:
    found = settled_with(snapshot, unchanged(snapshot.info.pulsar_version), namespace, bundles, seeds)
    if found is None:
        raise SystemExit(f"{namespace} cannot have {bundles} bundles")
    return found


def lines(days: Sequence[Day]) -> Iterator[str]:
    """Yield what is said of the recommended numbers against each other choice."""
    means = {name: Result.mean([result for day in days for result in day.tried[name].results]) for name in CHOICES}
    for other in CHOICES[1:]:
        same = sum(day.tried[other].bundles == day.tried[CHOICES[0]].bundles for day in days)
        better, worse = sum(other in day.better for day in days), sum(other in day.worse for day in days)
        yield (
            f"recommended against {other} on {len(days)} held-out days: worse on {worse}, better on {better}, the same"
            f" number on {same}. Together: {judge(means[other], means[CHOICES[0]]).text}"
        )
    yield "By the mean of 8 simulations alone:"
    for other in CHOICES[1:]:
        words = [day.tried[CHOICES[0]].against(day.tried[other]).word for day in days]
        yield f"recommended against {other}: worse on {words.count('worse')}, better on {words.count('better')}"
    words = [day.tried[CHOICES[0]].against(day.itself).word for day in days]
    yield f"recommended against itself, 8 others: worse on {words.count('worse')}, better on {words.count('better')}"


def main() -> None:
    """Print what the judge says of the recommended numbers against each other choice."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clusters", type=int, default=20)
    parser.add_argument("--days", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    asked = parser.parse_args()
    seeds = range(asked.first_seed, asked.first_seed + asked.clusters)
    with ProcessPoolExecutor(asked.workers, mp_context=get_context("spawn")) as pool:
        days = [day for found in pool.map(partial(held_out, days=asked.days), seeds) for day in found]
    sys.stdout.writelines(f"{line}\n" for line in lines(days))


if __name__ == "__main__":
    main()
