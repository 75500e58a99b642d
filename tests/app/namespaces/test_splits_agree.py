"""Whether a namespace will split: the table of numbers of bundles and the split forecast, on random clusters."""

import numpy as np
import pytest

from planner.cluster.load_manager import LoadManager
from planner.cluster.names import (
    AUTO_BUNDLE_SPLIT_ENABLED,
    LOAD_BALANCER_ENABLED,
    NAMESPACE_BUNDLE_MAX_MSG_RATE,
    NAMESPACE_BUNDLE_MAX_SESSIONS,
    NAMESPACE_MAXIMUM_BUNDLES,
)
from planner.cluster.ranges import equal_boundaries
from planner.namespaces.advice import bundle_advice
from planner.namespaces.costs import after_splits, cost_rows
from planner.namespaces.impact import growing, split_forecasts
from planner.namespaces.outlook import will_split
from planner.namespaces.population import population_of
from planner.pulsar.manager.splits import splits_by_itself
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.generate import generate
from planner.simulate.run import simulate
from tests.app.namespaces.random_clusters import random_cluster


@pytest.mark.parametrize("seeds", [range(20), range(20, 40), range(40, 60)], ids=str)
def test_the_table_and_the_forecast_agree(seeds: range) -> None:
    said = []
    for seed in seeds:
        snapshot = random_cluster(seed)
        manager = snapshot.info.load_manager
        for at, namespace in enumerate(snapshot.namespaces):
            bundles = int(np.count_nonzero(snapshot.bundles.namespace == at))
            topics = population_of(snapshot, namespace)
            assert topics.boundaries == equal_boundaries(bundles)
            (row,) = cost_rows(topics, [bundles], snapshot.settings, manager, len(snapshot.brokers))
            said.append(will_split(snapshot, namespace))
            assert said[-1] is (row.will_split > 0), (seed, namespace)
    assert len(set(said)) == 2


@pytest.mark.parametrize(
    "settings",
    [
        {NAMESPACE_MAXIMUM_BUNDLES: 1},
        {AUTO_BUNDLE_SPLIT_ENABLED: False},
        {LOAD_BALANCER_ENABLED: False},
        {NAMESPACE_BUNDLE_MAX_SESSIONS: -1, NAMESPACE_BUNDLE_MAX_MSG_RATE: 10**9},
        {NAMESPACE_BUNDLE_MAX_SESSIONS: 10},
    ],
    ids=["full", "no automatic splits", "no load balancer", "any number of sessions", "few sessions"],
)
def test_they_agree_where_settings_let_nothing_split(settings: dict[str, int | bool]) -> None:
    """The table had bundles that will split where the forecast had none: each limit was compared in its own way."""
    wanted = NAMESPACE_BUNDLE_MAX_SESSIONS in settings and settings[NAMESPACE_BUNDLE_MAX_SESSIONS] == 10
    for seed in range(6):
        made = random_cluster(seed)
        snapshot = made.with_columns(settings=made.settings.changed(**settings))
        manager, brokers = snapshot.info.load_manager, len(snapshot.brokers)
        splits = splits_by_itself(snapshot, snapshot.settings)
        for namespace in snapshot.namespaces:
            topics = population_of(snapshot, namespace)
            bundles = len(topics.boundaries) - 1
            (row,) = cost_rows(topics, [bundles], snapshot.settings, manager, brokers, splits=splits)
            assert (row.will_split > 0) is wanted is will_split(snapshot, namespace), (seed, namespace)
            assert not splits or (after_splits(topics, bundles, snapshot.settings) > bundles) is wanted


def test_one_broker_of_the_modular_load_manager_splits_nothing() -> None:
    """The leader looks at splits only where it knows another broker."""
    for manager in LoadManager:
        spec = ClusterSpec(brokers=1, bundles=4, namespaces=1, topics=200, msg_rate_per_s=90_000, load_manager=manager)
        snapshot = generate(spec, 1)
        rows = bundle_advice(snapshot, snapshot.namespaces[0]).costs
        alone = manager is LoadManager.MODULAR
        assert will_split(snapshot, snapshot.namespaces[0]) is not alone
        assert any(row.will_split for row in rows) is not alone


@pytest.mark.parametrize("room", [0, 1, 3])
def test_no_more_bundles_will_split_than_there_is_room_for(room: int) -> None:
    """As many as the forecast has by the end, whatever more of them are above a limit."""
    made = random_cluster(0)
    for namespace in made.namespaces:
        topics = population_of(made, namespace)
        bundles = len(topics.boundaries) - 1
        full = {NAMESPACE_MAXIMUM_BUNDLES: bundles + room, NAMESPACE_BUNDLE_MAX_SESSIONS: 2}
        snapshot = made.with_columns(settings=made.settings.changed(**full))
        (row,) = cost_rows(topics, [bundles], snapshot.settings, made.info.load_manager, len(made.brokers))
        trace = simulate(snapshot, growing(snapshot, 1, 1))
        splits = {one.namespace: one.splits for one in split_forecasts(trace, trace.end)}
        assert row.above_limits > room
        assert row.will_split == room == splits.get(namespace, 0)
