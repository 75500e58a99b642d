"""Waves keep to the filters: each move is one that Pulsar allows when its turn comes."""

from dataclasses import replace

import pytest

from planner.optimize.answer import best_plan
from planner.optimize.plan import Plan
from planner.optimize.question import Question
from planner.optimize.waves import waves_of
from tests.app.optimize.brute import refused, small_cluster

LIMIT = "loadBalancerBrokerOverloadedThresholdPercentage"


def tight(seed: int) -> Plan:
    """A plan for a cluster with anti-affinity groups whose limit is a point above what the best plan reaches."""
    snapshot = small_cluster(seed, bundles=24, grouped=True)
    question = Question(rounds=1, even=True)
    limit = min(int(best_plan(snapshot, question).peak * 100) + 1, 100)
    return best_plan(replace(snapshot, settings=snapshot.settings.changed(**{LIMIT: limit})), question)


@pytest.mark.parametrize("seed", [0, 12, 18, 40, 51])
@pytest.mark.parametrize("most_clients", [20, 1000])
def test_no_move_of_a_wave_is_refused(seed: int, most_clients: int) -> None:
    """Some moves wait here for others, so that the order of the plan is not that of the waves."""
    plan = tight(seed)
    moves = [(move.bundle, move.destination) for wave in waves_of(plan, most_clients) for move in wave.moves]
    assert moves
    assert refused(plan.at_start, plan.snapshot.settings, moves, even=True) == []
