"""A bundle that was split still counts for the broker that reported it, until the leader reads a newer one of it."""

from dataclasses import replace

import numpy as np

from planner.cluster.snapshot import Snapshot
from planner.pulsar.placement.modular import Report, after_refresh, fresh_memory, with_active_brokers
from planner.pulsar.placement.modular_filters import ModularFilters
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.edits.split_bundle import SplitBundle
from planner.simulate.generate import generate
from tests.app.simulate.small_runs import quiet


def _alone() -> tuple[Snapshot, str]:
    """Return a cluster with as many bundles as brokers, one on each, and the name of one of them."""
    snapshot = generate(ClusterSpec(brokers=4, bundles=4, topics=400, namespaces=1), seed=1)
    owner = np.arange(4, dtype=snapshot.bundles.owner.dtype)
    snapshot = replace(snapshot, bundles=replace(snapshot.bundles, owner=owner))
    return snapshot, snapshot.bundle_names[0]


def test_it_is_a_bundle_of_its_namespace_for_that_broker() -> None:
    snapshot, _ = _alone()
    namespace = snapshot.namespaces[0]
    before = ModularFilters(snapshot, snapshot.settings).bundle_counts(namespace)
    gone = {
        f"{namespace}/0x00000000_0x00000001": snapshot.brokers.name[1],
        f"{namespace}/0x00000001_0x00000002": "left:8080",
        "acme/other/0x00000000_0x00000001": snapshot.brokers.name[2],
    }
    counts = ModularFilters(snapshot, snapshot.settings, None, gone).bundle_counts(namespace)
    assert (counts - before).tolist() == [0, 1, 0, 0]


def test_it_counts_once_where_it_was_promised_too() -> None:
    snapshot, _ = _alone()
    namespace = snapshot.namespaces[0]
    bundle, broker = f"{namespace}/0x00000000_0x00000001", snapshot.brokers.name[1]
    once = ModularFilters(snapshot, snapshot.settings, {bundle: broker}).bundle_counts(namespace)
    both = ModularFilters(snapshot, snapshot.settings, {bundle: broker}, {bundle: broker}).bundle_counts(namespace)
    assert both.tolist() == once.tolist()


def test_only_a_report_of_its_broker_makes_the_leader_forget_it() -> None:
    snapshot, bundle = _alone()
    brokers = snapshot.brokers
    memory = fresh_memory(snapshot.settings).after_split(bundle, Report(brokers.name[0], int(brokers.updated_at_ms[0])))
    assert memory.heeds_reports
    assert with_active_brokers(memory, snapshot) == memory
    for at, kept in ((0, False), (1, True)):
        updated_at_ms = brokers.updated_at_ms.copy()
        updated_at_ms[at] += 60_000
        reported = snapshot.with_columns(brokers=replace(brokers, updated_at_ms=updated_at_ms))
        assert bool(after_refresh(memory, reported).split) is kept
    has_load_data = brokers.has_load_data.copy()
    has_load_data[0] = False
    gone = snapshot.with_columns(brokers=replace(brokers, has_load_data=has_load_data))
    assert not after_refresh(memory, gone).split


def test_halves_do_not_return_to_a_broker_that_still_counts_the_whole() -> None:
    """Where every broker has one bundle of a namespace, the broker of a split one seemed to have none."""
    snapshot, bundle = _alone()
    split = SplitBundle(bundle=bundle, unload=True)
    for seed in range(5):
        trace = quiet(snapshot, split, cycles=1)
        placed = [event for event in trace.events if event.kind == "placed"]
        assert len(placed) == 2
        assert {event.destination for event in placed} & {snapshot.brokers.name[0]} == set(), seed
