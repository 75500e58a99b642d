"""How often advice is worse than doing nothing: every remedy, Fix it and best plan of random clusters, simulated anew.

python -m benchmarks.advice [--clusters 400] [--first 0]

Prints each offer that the judge calls worse, or that loses more than half of its gain under other seeds or traffic, and
how many offers there were. Exit status 1 when there is one.
"""

import argparse
import random
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from planner.cluster.load_manager import LoadManager
from planner.cluster.snapshot import Snapshot
from planner.explain.diagnosis import diagnose
from planner.explain.outcome import Outcome
from planner.optimize.absorb import left_by
from planner.optimize.answer import best_plan
from planner.optimize.offer import offer_of, required, with_alternative
from planner.optimize.plan import Plan
from planner.optimize.question import Question
from planner.optimize.waves import WAVE_CLIENTS, scenario_of, waves_of
from planner.pulsar.shedding.registry import offered_shedders
from planner.remedy.action import Action, restart_of
from planner.remedy.trials import Trials
from planner.remedy.tried import fix, tried_findings
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.edits.registry import TrafficGrowth
from planner.simulate.generate import generate
from planner.simulate.judge import Result, gained, judge, share_gone
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario, Step, unchanged
from planner.simulate.steadiness import KEPT, VARIANTS, variants
from planner.simulate.strategies import under_strategy

_MOVES = 10
"""Budget of the best plans."""
_NO_SETTINGS: Mapping[str, str | int | float | bool] = {}


def random_cluster(number: int) -> tuple[Snapshot, Scenario]:
    """Return a cluster and a scenario that makes it calm, busy or full, under any strategy of its load manager."""
    draw = random.Random(number)  # noqa: S311 - clusters that come out the same again
    brokers = draw.randint(2, 9)
    spec = ClusterSpec(
        brokers=brokers,
        bundles=brokers * draw.choice((3, 8, 16)),
        topics=brokers * draw.choice((12, 60)),
        load_manager=draw.choice(list(LoadManager)),
        topic_skew=draw.uniform(0, 1.4),
        ownership_skew=draw.uniform(0, 1),
        heterogeneity=draw.choice((0.0, 0.4)),
        joined_brokers=draw.choice((0, 0, 1)),
        isolated_namespaces=draw.choice((0, 0, 1)),
        anti_affinity_namespaces=draw.choice((0, 0, 4)),
    )
    cluster = generate(spec, number)
    factor = draw.choice((0.8, 1.0, 1.5, 2.0, 2.6))
    steps = (Step(TrafficGrowth(factor=factor)),) if factor != 1 else ()
    scenario = unchanged(cluster.info.pulsar_version, steps=steps)
    shedder = draw.choice(offered_shedders(spec.load_manager, cluster.settings.release))
    return cluster, under_strategy(scenario, cluster.settings, spec.load_manager, shedder.name)


def faults(cluster: Snapshot, scenario: Scenario, action: Action) -> Iterator[str]:
    """Yield what is wrong with an offer, simulated with nothing of the room that made it but the action."""

    def results(own: Scenario) -> tuple[Result, Result]:
        changed = action.with_restart(own, restart_of(len(cluster.brokers)))
        return Result.of(simulate(cluster, own)), Result.of(simulate(cluster, changed))

    before, after = results(scenario)
    if judge(before, after).word in {"worse", "same"}:
        yield f"{judge(before, after).text}"
    yield from _by_luck(gained(before, after), (results(other) for other in variants(scenario)))
    if action.restarts(scenario):
        restarted = scenario.with_steps(*scenario.steps, Step(restart_of(len(cluster.brokers))))
        bare = Result.of(simulate(cluster, restarted))
        if judge(bare, after).word in {"worse", "same"}:
            yield f"no better than its restart alone: {judge(bare, after).text}"


def _by_luck(best: tuple[str, float] | None, outcomes: Iterable[tuple[Result, Result]]) -> Iterator[str]:
    """Yield where a gain does not hold, of the outcomes of `variants`."""
    for where, (one, two) in zip(VARIANTS, outcomes, strict=True):
        if judge(one, two).word == "worse":
            yield f"worse {where}: {judge(one, two).text}"
        elif best is not None and share_gone(best[0], one, two) < KEPT * best[1]:
            yield f"less than half of the gain in {best[0]} is left {where}"


def faults_of_plan(cluster: Snapshot, scenario: Scenario) -> tuple[int, list[str]]:
    """Return how many best plans are offered, and what is wrong with one, opened as a scenario.

    A plan that is not recommended counts by its alternative, and so does one that Pulsar undoes. One that does what has
    to be done, such as repairs, may be worse for the usage of brokers.
    """
    start = left_by(cluster, scenario)
    offer = with_alternative(offer_of(best_plan(start, Question(moves=_MOVES, rounds=2))))
    if not offer.plan.moves or required(offer.plan):
        return 0, []
    given = [(offer.plan, _NO_SETTINGS)] if offer.recommended else []
    if (other := offer.alternative) is not None:
        given.append((other.plan or offer.plan, other.settings))
    said = [text for plan, settings in given for text in _faults_of_plan(start, plan, settings)]
    return len(given), said


def _faults_of_plan(start: Snapshot, plan: Plan, settings: Mapping[str, str | int | float | bool]) -> list[str]:
    """Return what is wrong with a best plan, opened as a scenario with settings that keep it."""
    idle = scenario_of(plan, waves_of(plan, WAVE_CLIENTS), held=False)
    opened = replace(idle, settings=settings)

    def results(idle: Scenario, busy: Scenario) -> tuple[Result, Result]:
        return Result.of(simulate(start, idle)), Result.of(simulate(start, busy))

    before, after = results(idle.with_steps(), opened)
    verdict = judge(before, after)
    pairs = zip(variants(idle.with_steps()), variants(opened), strict=True)
    said = _by_luck(gained(before, after), (results(*pair) for pair in pairs))
    return [verdict.text] if verdict.word == "worse" else list(said)


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clusters", type=int, default=400)
    parser.add_argument("--first", type=int, default=0)
    asked = parser.parse_args()
    offers = wrong = helped = plans = 0
    begun = time.perf_counter()
    for number in range(asked.first, asked.first + asked.clusters):
        cluster, scenario = random_cluster(number)
        outcome = Outcome(simulate(cluster, scenario))
        trials = Trials(cluster, scenario, outcome)
        trial = [one.trial for one in tried_findings(diagnose(outcome), trials)]
        found = fix(trials, outcome)
        given = [one for one in (*trial, found.best, found.pair, *found.others) if one is not None and one.offered]
        helped += bool(given)
        offered, said = faults_of_plan(cluster, scenario)
        plans += offered
        wrong += bool(said)
        for text in said:
            print(f"cluster {number}: best plan: {text}", flush=True)
        for action in {repr(one.action.key): one.action for one in given}.values():
            offers += 1
            said = list(faults(cluster, scenario, action))
            wrong += bool(said)
            for text in said:
                print(f"cluster {number}: {action.words}: {text}", flush=True)
    seconds = time.perf_counter() - begun
    print(
        f"{offers} offers on {asked.clusters} clusters, {helped} with one, and {plans} best plans; {wrong} wrong;"
        f" {seconds:.0f} s"
    )
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
