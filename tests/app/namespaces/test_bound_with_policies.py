"""The bound of a namespace against every placement that the load manager's own filters allow.

Brokers are unlike, some are not registered, isolation policies have primary and secondary brokers, and anti-affinity
groups make what a bundle may do depend on where the others are.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.cluster.arrays import FloatArray, frozen
from planner.cluster.load_manager import LoadManager
from planner.cluster.names import DISTRIBUTE_BUNDLES_EVENLY_ENABLED
from planner.cluster.settings import Settings
from planner.cluster.snapshot import IsolationPolicy, Policies, Snapshot
from planner.explain.isolation import allowed_brokers
from planner.namespaces.advice import bundle_advice
from planner.namespaces.counts import count_row, loads_of
from planner.namespaces.cuts import topic_bound
from planner.namespaces.population import population_of
from planner.pulsar.placement.filters import broker_host
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.generate import generate
from tests.app.optimize.brute import kept_by_filters

BROKERS = 4


def cluster(seed: int, manager: LoadManager = LoadManager.MODULAR) -> Snapshot:
    spec = ClusterSpec(
        brokers=BROKERS, bundles=11, namespaces=3, topics=40, topic_skew=1.0, heterogeneity=1.0, load_manager=manager
    )
    return generate(spec, seed)


def every_placement(now: Snapshot, config: Settings, rows: list[int]) -> Iterator[tuple[int, ...]]:
    """Place bundles one after the other in every way that the filters allow."""
    if not rows:
        yield ()
        return
    for broker in kept_by_filters(now, config, now.bundle_names[rows[0]]):
        owner = now.bundles.owner.copy()
        owner[rows[0]] = broker
        for rest in every_placement(now.with_owner(owner), config, rows[1:]):
            yield (broker, *rest)


def share_of_busiest(loads: FloatArray, owners: tuple[int, ...]) -> float:
    return float(np.bincount(owners, loads).max() / loads.sum())


hosts = st.sets(st.integers(0, BROKERS - 1), max_size=3)


@settings(max_examples=120, deadline=None)
@given(
    st.integers(0, 10**6),
    st.sampled_from(list(LoadManager)),
    st.sets(st.integers(0, BROKERS - 1), max_size=2),
    st.one_of(st.none(), st.tuples(hosts, hosts, st.integers(1, 3))),
    st.sets(st.sampled_from(["reserved", "grouped", "even"])),
)
def test_no_placement_that_policies_allow_beats_the_bound(
    seed: int,
    manager: LoadManager,
    gone: set[int],
    isolated: tuple[set[int], set[int], int] | None,
    rules: set[str],
) -> None:
    reserved, grouped, even = (rule in rules for rule in ("reserved", "grouped", "even"))
    made = cluster(seed, manager)
    space, other = made.namespaces[0], made.namespaces[1]
    here = np.array([at not in gone for at in range(BROKERS)])
    names = [broker_host(name).replace(".", r"\.") for name in made.brokers.name]
    policies = []
    if isolated is not None:
        primary, secondary = ([names[at] for at in sorted(part)] for part in isolated[:2])
        policies.append(IsolationPolicy("mine", (space,), tuple(primary), tuple(secondary), isolated[2]))
    if reserved:
        policies.append(IsolationPolicy("other", (other,), (names[0],), ()))
    rows = np.flatnonzero(made.bundles.namespace == 0)
    owner = np.where(here[made.bundles.owner], made.bundles.owner, -1).astype(np.int32)
    owner[rows] = -1
    snapshot = made.with_columns(
        brokers=replace(made.brokers, registered=frozen(here)),
        policies=Policies(
            isolation=tuple(policies), anti_affinity_group={space: "group", other: "group"} if grouped else {}
        ),
    ).with_owner(frozen(owner))
    topics, allowed = population_of(snapshot, space), allowed_brokers(snapshot, space)
    loads = loads_of(topics, topics.boundaries)
    config = snapshot.settings.changed(**{DISTRIBUTE_BUNDLES_EVENLY_ENABLED: even})
    placements = list(every_placement(snapshot, config, rows.tolist()))
    if not placements:
        assert grouped or not allowed
        return
    used = {snapshot.brokers.name[at] for owners in placements for at in owners}
    assert used <= set(allowed)
    best = min(share_of_busiest(loads, owners) for owners in placements)
    assert count_row(topics, topics.boundaries, len(allowed)).bound_percent <= best * 100 + 1e-9
    assert topic_bound(topics, len(allowed)) <= best + 1e-9
    if not even and not grouped and len(rows) > 1:  # else rules of placement leave out some
        assert used == set(allowed), "brokers that may take none make the bound too low"


@pytest.mark.parametrize("manager", LoadManager)
def test_secondary_brokers_count_only_where_they_are_used(manager: LoadManager) -> None:
    made = cluster(3, manager)
    space, names = made.namespaces[0], made.brokers.name
    hosts = [broker_host(name) for name in names]
    for least, used in ((1, names[:1]), (2, names[:3])):
        policy = IsolationPolicy("mine", (space,), (hosts[0],), tuple(hosts[1:3]), least)
        isolated = made.with_columns(policies=Policies(isolation=(policy,)))
        assert allowed_brokers(isolated, space) == used
    gone = replace(made.brokers, registered=frozen(np.arange(BROKERS) != 1))
    assert allowed_brokers(made.with_columns(brokers=gone), space) == (names[0], *names[2:])


@pytest.mark.parametrize(
    ("primary", "said"),
    [
        ("none.example", "No broker may serve this namespace: its isolation policy mine allows none that runs."),
        (None, "Only one broker may serve this namespace (isolation policy mine), so its bundles make no difference."),
    ],
)
def test_without_a_choice_of_brokers_the_advice_says_so(primary: str | None, said: str) -> None:
    made = cluster(3)
    policy = IsolationPolicy("mine", (made.namespaces[0],), (primary or broker_host(made.brokers.name[0]),), ())
    advice = bundle_advice(made.with_columns(policies=Policies(isolation=(policy,))), made.namespaces[0])
    assert advice.sentence.startswith(said)
