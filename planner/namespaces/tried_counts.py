"""Numbers of bundles, simulated beside each other: one is better than another only beyond luck.

Where a bundle is placed is partly a matter of luck, and other days are busier or calmer. So each number is simulated
under several seeds and loads, and what is better has to be so on average, under most of them, and again under others.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np

from planner.cluster.errors import PlannerError
from planner.cluster.snapshot import Snapshot
from planner.namespaces.counts import CountRow
from planner.namespaces.cuts import NEAR
from planner.remedy.trials import Trials
from planner.simulate.edits.registry import BundleCount, TrafficGrowth
from planner.simulate.judge import Result, Verdict, judge
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario, Step
from planner.simulate.usage_model import settled

USUAL: Final = (4, 32)
"""Numbers of bundles that people choose by rule of thumb; each is tried."""
MOST_SEEDS: Final = 8
"""Most seeds that a number of bundles is simulated with, and most others before it is recommended."""
LATER_SEEDS: Final = 4
"""Most seeds for traffic that is only expected."""
MOSTLY: Final = 0.75
"""Share of the seeds under which a number has to be better than another one."""
_LOADS: Final = (1.0, 0.9, 1.1, 0.8, 1.2)
"""Traffic under one seed after the other, as a factor: other days are busier or calmer."""
_BUNDLES_AT_ONCE: Final = 10_000
"""Bundles from which on one seed has to do; below it, as many as make about the same work."""


@dataclass(frozen=True, eq=False, slots=True)
class TriedCount:
    """A number of bundles, simulated: the namespace made anew, and placed and shed by the strategies in force.

    Attributes:
        bundles: The number.
        results: What came of it once it had settled, under one seed after the other.
        topics: Topics disconnected until then, on average.
    """

    bundles: int
    results: tuple[Result, ...]
    topics: int

    @property
    def result(self) -> Result:
        """The mean result."""
        return Result.mean(self.results)

    def against(self, other: "TriedCount") -> Verdict:
        """Return what the judge says of it compared with another number, under the seeds that both have."""
        both = min(len(self.results), len(other.results))
        return judge(Result.mean(other.results[:both]), Result.mean(self.results[:both]))

    def holds_against(self, other: "TriedCount") -> bool:
        """Say whether it is better than another number on average, and under most of the seeds that both have."""
        pairs = list(zip(other.results, self.results, strict=False))
        won = sum(judge(before, after).word == "better" for before, after in pairs)
        return self.against(other).word == "better" and won >= MOSTLY * len(pairs)


Again: TypeAlias = Callable[[int], TriedCount | None]
"""Simulates a number of bundles under seeds that it was not chosen by; None where that is not possible."""


def wanted_counts(rows: Sequence[CountRow], even: int, now: int, maximum: int) -> set[int]:
    """Return the numbers of bundles that are simulated, each one of those that are looked at.

    Args:
        rows: What each number that is looked at gives.
        even: The fewest that brokers can share about as evenly as the best number.
        now: Today's number.
        maximum: How many automatic splits would make.
    """
    some = (min(times * even, maximum) for times in (1, 2, 4))
    return {*USUAL, now, *(min(row.bundles for row in rows if row.bundles >= one) for one in some)}


def evener(rows: Sequence[CountRow], kept: CountRow) -> set[int]:
    """Return the numbers of bundles that let brokers share noticeably more evenly than one that is to be kept."""
    return {row.bundles for row in rows if row.placed_percent * NEAR <= kept.placed_percent}


def settled_with(
    snapshot: Snapshot,
    scenario: Scenario,
    namespace: str,
    bundles: int,
    seeds: Sequence[int] = (0,),
    against: TriedCount | None = None,
) -> TriedCount | None:
    """Return what a namespace made anew with a number of bundles comes to, once it has settled.

    None where it cannot be simulated, such as without a broker for it.

    Args:
        snapshot: The cluster.
        scenario: What happens meanwhile.
        namespace: Its name.
        bundles: The number of equal bundles.
        seeds: What is added to the seed of the scenario, for one simulation each, some of them of other loads.
        against: Another number under the same seeds; the rest of them is left out once it cannot be beaten any more.
    """
    made = Step(BundleCount(namespace=namespace, bundles=bundles))
    results: list[Result] = []
    topics: list[int] = []
    lost = 0
    try:
        for at, seed in enumerate(seeds):
            own = replace(scenario, seed=scenario.seed + seed)
            load = TrafficGrowth(factor=_LOADS[seed % len(_LOADS)])
            first = simulate(snapshot, own.with_steps(Step(load), *own.steps, made))
            later = simulate(settled(first), replace(own, steps=()))
            results.append(Result.of(later))
            topics.append(Result.of(first).topics)
            lost += against is not None and judge(against.results[at], results[-1]).word != "better"
            if lost > (1 - MOSTLY) * len(seeds):
                break
    except PlannerError:
        return None
    return TriedCount(bundles, tuple(results), round(float(np.mean(topics))))


def tried_counts(
    trials: Trials, namespace: str, wanted: Collection[int], kept: int, most_seeds: int = MOST_SEEDS
) -> tuple[tuple[TriedCount, ...], Again]:
    """Simulate a namespace with a few numbers of bundles, each once it has settled.

    Args:
        trials: The cluster, and whether to go on.
        namespace: The namespace.
        wanted: The numbers.
        kept: The one of them that the others have to beat.
        most_seeds: Under how many seeds at most.

    Returns:
        The numbers that could be simulated, ascending, and what simulates one of them under as many other seeds.
    """
    most = min(max(_BUNDLES_AT_ONCE // max(len(trials.snapshot.bundles), 1), 1), most_seeds)

    def simulated(bundles: int, first: int, against: TriedCount | None = None) -> TriedCount | None:
        if trials.cancelled():
            return None
        seeds = range(first, first + most)
        return settled_with(trials.snapshot, trials.scenario, namespace, bundles, seeds, against)

    found: dict[int, TriedCount] = {}
    for bundles in sorted(wanted, key=lambda one: (one != kept, one)):
        one = simulated(bundles, 0, found.get(kept))
        found |= {bundles: one} if one is not None else {}
    return tuple(found[bundles] for bundles in sorted(found)), lambda bundles: simulated(bundles, most)


def best_count(
    tried: Sequence[TriedCount], again: Again, rows: Sequence[CountRow], kept: CountRow, even: int, now: int = 0
) -> int:
    """Return a number to be kept unless another one is better beyond luck; never one that is worse than today's.

    A better one lets brokers share more evenly, which depends on names and shares alone and is the same on other days,
    is better when it is simulated, and is so again under other seeds. Of several that none is better than the fewest
    from which on brokers can share evenly, else the fewest.

    Args:
        tried: The numbers that were simulated.
        again: Simulates one of them under other seeds.
        rows: What each number that is looked at gives.
        kept: The number to be kept.
        even: The fewest that brokers can share about as evenly as the best number.
        now: Today's number; 0 where it does not matter.
    """
    by_number = {one.bundles: one for one in tried}
    base, possible = by_number.get(kept.bundles), evener(rows, kept)
    held = [one for one in tried if base is not None and one.bundles in possible and one.holds_against(base)]
    held.sort(key=lambda one: (one.bundles < even, one.bundles))
    results = [one.result for one in held]
    unbeaten = [one for one in held if all(judge(one.result, other).word != "better" for other in results)]
    once_more = again(kept.bundles) if held else None
    for one in (*unbeaten, *(other for other in held if other not in unbeaten)):
        found = again(one.bundles)
        if found is not None and once_more is not None and found.holds_against(once_more):
            best = one.bundles
            break
    else:
        best = kept.bundles
    if best in by_number and now in by_number and by_number[best].against(by_number[now]).word == "worse":
        return now
    return best
