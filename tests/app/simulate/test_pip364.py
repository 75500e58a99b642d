"""The published story of PIP-364: what five brokers do under two strategies, in directions and counts.

The rates of single bundles were not published, so that curves cannot be compared.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from planner.cluster.snapshot import Snapshot
from planner.simulate.edits.add_brokers import AddBrokers
from planner.simulate.edits.edit import Edit
from planner.simulate.edits.remove_broker import RemoveBroker
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario, Step
from planner.workspace.samples import load_sample, samples

THRESHOLD = {
    "loadBalancerLoadSheddingStrategy": "ThresholdShedder",
    "loadBalancerLoadPlacementStrategy": "LeastResourceUsageWithWeight",
}
AVG = {
    "loadBalancerLoadSheddingStrategy": "AvgShedder",
    "loadBalancerLoadPlacementStrategy": "AvgShedder",
    "maxUnloadPercentage": 0.5,
    "minUnloadMessage": 10_000,
    "minUnloadMessageThroughput": 10_485_760,
}


@dataclass(frozen=True)
class Story:
    """What a simulation came to.

    Attributes:
        rounds: Cycles that shed something.
        wrong: Bundles shed to a broker that is above the average at the end.
        std: Deviation of usage at the end, points.
        ratio: Highest by lowest message rate at the end.
        first_round: Which cycle shed first, counted from 1.
    """

    rounds: int
    wrong: int
    std: float
    ratio: float
    first_round: int


@pytest.fixture(scope="module")
def cluster() -> Snapshot:
    return load_sample(next(sample for sample in samples() if sample.file == "pip-364.json"))


def story(snapshot: Snapshot, settings: dict[str, Any], *edits: Edit, cycles: int = 40) -> Story:
    trace = simulate(snapshot, Scenario(cycles=cycles, settings=settings, steps=tuple(Step(edit) for edit in edits)))
    shed = [[event for event in cycle.events if event.kind == "shed"] for cycle in trace.cycles]
    last = trace.cycles[-1]
    names, usage = last.view.brokers.name, last.state.usage
    there = usage[last.state.present]
    above = {name for name, used in zip(names, usage.tolist(), strict=True) if used > there.mean()}
    rates = last.state.msg_rate_per_s[last.state.present]
    return Story(
        rounds=sum(bool(events) for events in shed),
        wrong=sum(event.destination in above for events in shed for event in events),
        std=float(np.std(there)) * 100,
        ratio=float(rates.max() / rates.min()),
        first_round=next((at for at, events in enumerate(shed, start=1) if events), 0),
    )


def test_threshold_shedder_needs_several_rounds_and_places_wrongly(cluster: Snapshot) -> None:
    told = story(cluster, THRESHOLD)
    assert told.rounds >= 3
    assert told.wrong >= 1


def test_avg_shedder_needs_one_round_after_eight_minutes(cluster: Snapshot) -> None:
    told = story(cluster, AVG)
    assert told.rounds == 1
    assert told.first_round == 8
    assert told.wrong == 0
    assert told.ratio <= 1.5


def test_avg_shedder_ends_closer_to_balance(cluster: Snapshot) -> None:
    assert story(cluster, AVG).std < story(cluster, THRESHOLD).std


@pytest.mark.parametrize(
    "edits",
    [
        pytest.param((RemoveBroker(broker="broker-4:8080"), RemoveBroker(broker="broker-5:8080")), id="scale-in"),
        pytest.param((AddBrokers(count=2),), id="scale-out"),
    ],
)
def test_after_scaling_avg_shedder_needs_fewer_rounds(cluster: Snapshot, edits: tuple[Edit, ...]) -> None:
    threshold, avg = story(cluster, THRESHOLD, *edits), story(cluster, AVG, *edits)
    assert threshold.rounds > avg.rounds
    assert avg.rounds <= 3
