"""Best plans of clusters with too many bundles to be asked about as a whole."""

from functools import cache

import pytest

from planner.cluster.load_manager import LoadManager
from planner.cluster.snapshot import Snapshot
from planner.optimize.answer import best_plan
from planner.optimize.leaving import MOST_BUNDLES
from planner.optimize.plan import Plan
from planner.optimize.question import Question
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.generate import generate


@cache
def _cluster(seed: int, manager: LoadManager) -> Snapshot:
    spec = ClusterSpec(
        brokers=100, bundles=4_000, topics=40_000, namespaces=60, load_manager=manager, ownership_skew=0.7,
        topic_skew=1.0, heterogeneity=0.4, isolated_namespaces=6, anti_affinity_namespaces=6,
    )  # fmt: skip
    snapshot = generate(spec, seed)
    assert len(snapshot.bundles) > MOST_BUNDLES
    return snapshot


@cache
def _plan(seed: int, manager: LoadManager, moves: int) -> Plan:
    return best_plan(_cluster(seed, manager), Question(moves=moves, splits=0))


@pytest.mark.parametrize(("seed", "moves"), [(1, 3), (1, 10), (3, 3), (3, 10)])
def test_few_moves_are_proven_to_be_the_best(seed: int, moves: int) -> None:
    """Whole bundles leave their brokers: what a bundle alone on a broker allows takes more moves."""
    assert _plan(seed, LoadManager.MODULAR, moves).gap_percent < 0.1


@pytest.mark.parametrize("manager", list(LoadManager))
def test_more_moves_are_not_worse(manager: LoadManager) -> None:
    """A huge bundle fits on another broker only once smaller ones have left that."""
    few, many = _plan(2, manager, 3), _plan(2, manager, 50)
    assert many.peak <= few.peak + 1e-9
