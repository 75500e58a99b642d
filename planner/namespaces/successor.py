"""A successor namespace with fewer bundles, each batch of clients simulated on the cluster and judged."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from planner.cluster.names import SHEDDING_INTERVAL_MINUTES
from planner.cluster.snapshot import Snapshot
from planner.cluster.text import count
from planner.explain.cluster_tables import bundles_of_namespace
from planner.optimize.waves import REPORTED, WAVE_CLIENTS
from planner.simulate.edits.registry import NamespaceMove
from planner.simulate.judge import Result, Verdict, judge, judge_overload
from planner.simulate.moves import disconnections
from planner.simulate.run import Simulation
from planner.simulate.scenario import Scenario, Step, unchanged
from planner.simulate.trace import Cycle, Trace

_MOST_BATCHES: Final = 20
_PAUSE_MIN: Final = 5
"""Minutes from one batch to the next: several reports, so that the load balancer answers to each."""


@dataclass(frozen=True, slots=True)
class SuccessorBatch:
    """A batch of clients that goes over to the successor, and the time until the next one.

    Attributes:
        batch: Its number, from 1.
        at_min: When it goes, minutes after the start.
        topics: Topics that go over.
        clients: Producers and consumers that go over; each is disconnected once.
        highest_percent: Highest usage of a broker up to the next batch, in percent.
        overloaded_broker_min: Broker-minutes above `loadBalancerBrokerOverloadedThresholdPercentage` in that time.
        shed: Bundles that Pulsar sheds in that time.
        splits: Bundles that it splits.
        other_topics: Topics that this disconnects besides.
        other_clients: Producers and consumers that this disconnects besides.
        verdict: What the judge says of the overload up to the next batch, compared with leaving the namespace alone.
    """

    batch: int
    at_min: float
    topics: int
    clients: int
    highest_percent: float
    overloaded_broker_min: float
    shed: int
    splits: int
    other_topics: int
    other_clients: int
    verdict: Verdict


@dataclass(frozen=True, eq=False, slots=True)
class SuccessorTrial:
    """The move of a namespace to a successor, simulated.

    Attributes:
        edit: The move.
        scenario: A scenario that consists of it.
        batches: Its batches in order.
        verdict: What the judge says of all of it, compared with leaving the namespace alone as long.
    """

    edit: NamespaceMove
    scenario: Scenario
    batches: tuple[SuccessorBatch, ...]
    verdict: Verdict

    @property
    def is_worth_it(self) -> bool:
        """Whether it neither brings more overload, on the way or in the end, nor is worse as a whole."""
        steps = [one.verdict for one in self.batches]
        calm = all(one.overload is not None and one.overload >= 0 for one in (*steps, self.verdict))
        return calm and self.verdict.word != "worse"

    @property
    def heading(self) -> str:
        """The verdict."""
        if self.is_worth_it:
            return "It has too many bundles. Move to a successor:"
        return "It has too many bundles, but moving to a successor is not worth it as simulated:"

    @property
    def text(self) -> str:
        """It in a sentence or two."""
        worse = [one.batch for one in self.batches if one.verdict.overload in {None, -1}]
        number = "1 batch" if len(self.batches) == 1 else f"{len(self.batches)} batches"
        clients = sum(one.clients for one in self.batches)
        highest = max((one.highest_percent for one in self.batches), default=0.0)
        on_the_way = f"It brings overload from batch {worse[0]} on." if worse else "It brings no overload on the way."
        return (
            f"In {number}, {self.edit.pause_min:g} min apart, {count(clients, 'client')} reconnect once; the highest"
            f" usage on the way is {highest:.0f} %. {on_the_way} Compared with no move: {self.verdict.text}"
        )


def successor_name(snapshot: Snapshot, namespace: str, bundles: int) -> str:
    """Return a name for the successor that the cluster does not have yet."""
    name = f"{namespace}-{bundles}"
    while name in snapshot.namespaces:
        name = f"{name}-new"
    return name


def successor_move(snapshot: Snapshot, namespace: str, bundles: int) -> NamespaceMove:
    """Return the move of a namespace to a successor, in batches of about as many clients as a wave of a plan has."""
    rows = bundles_of_namespace(snapshot, namespace)
    clients = int((snapshot.bundles.producers[rows] + snapshot.bundles.consumers[rows]).sum())
    interval_min = max(snapshot.settings.integer(SHEDDING_INTERVAL_MINUTES), 1)
    return NamespaceMove(
        namespace=namespace,
        successor=successor_name(snapshot, namespace, bundles),
        bundles=bundles,
        batches=min(max(math.ceil(clients / WAVE_CLIENTS), 1), _MOST_BATCHES),
        pause_min=float(math.ceil(_PAUSE_MIN / interval_min) * interval_min),
    )


def successor_trial(
    snapshot: Snapshot, edit: NamespaceMove, cancelled: Callable[[], bool] = lambda: False
) -> SuccessorTrial:
    """Simulate the move of a namespace to a successor, and judge it after every batch.

    Raises:
        ScenarioError: The move does not fit the cluster.
    """
    interval_min = max(snapshot.settings.integer(SHEDDING_INTERVAL_MINUTES), 1)
    pause = max(round(edit.pause_min / interval_min), 1)
    ends = [pause * (batch + 1) for batch in range(edit.batches)]
    plain = unchanged(snapshot.settings.release.name, cycles=ends[-1] + REPORTED)
    name = f"Move {edit.namespace} to {edit.successor}"[:120]
    moved = unchanged(snapshot.settings.release.name, name=name, steps=(Step(edit),), cycles=plain.cycles)
    ends.append(plain.cycles)
    found: list[SuccessorBatch] = []
    verdicts: list[Verdict] = []
    first = 0
    for before, after in zip(*(_up_to(snapshot, one, ends) for one in (plain, moved)), strict=True):
        results = Result.of(before), Result.of(after)
        verdicts.append(judge(*results))
        if len(found) < edit.batches:
            found.append(_batch(len(found) + 1, after, first, judge_overload(*results), interval_min))
        first = len(after.cycles)
        if cancelled():
            break
    return SuccessorTrial(edit, moved, tuple(found), verdicts[-1])


def _up_to(snapshot: Snapshot, scenario: Scenario, ends: Sequence[int]) -> Iterator[Trace]:
    """Yield the trace of a scenario up to each of some numbers of cycles, in order; it is simulated once."""
    running = Simulation([snapshot], scenario)
    following = running.cycles(scenario.cycles)
    cycles: list[Cycle] = []
    try:
        for end in ends:
            cycles += [next(following) for _ in range(end - len(cycles))]
            notes = tuple(dict.fromkeys(running.notes))
            yield Trace(
                scenario,
                running.config,
                running.start,
                tuple(cycles),
                running.end(),
                notes,
                end == scenario.cycles,
                running.demand(),
            )
    finally:
        running.close()


def _batch(number: int, trace: Trace, first: int, verdict: Verdict, interval_min: int) -> SuccessorBatch:
    """Return what happened in the cycles of a batch, the last ones of a trace."""
    cycles, closed = trace.cycles[first:], disconnections(trace)[first:]
    over = [one for events in closed for one in events if one.kind == "handed_over"]
    other = [one for events in closed for one in events if one.kind != "handed_over"]
    kinds = Counter(event.kind for cycle in cycles for event in cycle.events)
    part = Result.of(replace(trace, cycles=cycles))
    return SuccessorBatch(
        batch=number,
        at_min=float(first * interval_min),
        topics=sum(one.topics for one in over),
        clients=sum(one.producers + one.consumers for one in over),
        highest_percent=part.highest_percent,
        overloaded_broker_min=part.overloaded_broker_min,
        shed=kinds["shed"],
        splits=kinds["split"],
        other_topics=sum(one.topics for one in other),
        other_clients=sum(one.producers + one.consumers for one in other),
        verdict=verdict,
    )
