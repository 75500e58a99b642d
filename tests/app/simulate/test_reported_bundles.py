"""Brokers of the extensible load manager report their top bundles by the settings and policies in force."""

from dataclasses import replace

import numpy as np

from planner.cluster.arrays import IntArray
from planner.cluster.load_manager import LoadManager
from planner.cluster.snapshot import Policies, Snapshot
from planner.pulsar.load.top_bundles import with_top_ranks
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.edits.registry import IsolationChange
from planner.simulate.generate import generate
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario, Step, unchanged

WITH_POLICIES = "loadBalancerSheddingBundlesWithPoliciesEnabled"
EXCLUDED = "loadBalancerSheddingExcludedNamespaces"
MOST = "loadBalancerMaxNumberOfBundlesInBundleLoadReport"


def calm() -> Snapshot:
    """Return a cluster in which nothing changes, with a namespace in an anti-affinity group."""
    spec = ClusterSpec(
        brokers=4,
        bundles=40,
        topics=160,
        namespaces=4,
        load_manager=LoadManager.EXTENSIBLE,
        ownership_skew=0,
        msg_rate_per_s=400,
    )
    made = generate(spec, 3)
    made = replace(made, policies=Policies(anti_affinity_group={made.namespaces[0]: "apart"}))
    return with_top_ranks(made, made.settings)


def ranks(cluster: Snapshot, scenario: Scenario) -> list[IntArray]:
    return [cycle.view.bundles.top_rank for cycle in simulate(cluster, scenario).cycles]


def test_changed_settings_change_the_reports_of_brokers_on_which_nothing_changes() -> None:
    cluster = calm()
    own = unchanged(cluster.settings.release.name, cycles=2)
    for changes in ({WITH_POLICIES: True}, {EXCLUDED: cluster.namespaces[1]}, {MOST: 2}):
        then = with_top_ranks(cluster, cluster.settings.changed(**changes)).bundles.top_rank
        assert not np.array_equal(then, cluster.bundles.top_rank), changes
        for seen in ranks(cluster, replace(own, settings=changes)):
            assert np.array_equal(seen, then), changes


def test_settings_that_decide_nothing_about_reports_leave_them_as_captured() -> None:
    """Ties fall as bundles came to a broker, which is not known: what a broker reported is kept."""
    cluster = calm()
    turned = np.where(
        cluster.bundles.top_rank == 0, 1, np.where(cluster.bundles.top_rank == 1, 0, cluster.bundles.top_rank)
    )
    cluster = replace(cluster, bundles=replace(cluster.bundles, top_rank=turned.astype(np.int32)))
    own = unchanged(cluster.settings.release.name, cycles=1)
    absent = {EXCLUDED: "acme/absent"}
    for changes in ({}, {"loadBalancerBrokerLoadTargetStd": 0.4}, absent):
        (seen,) = ranks(cluster, replace(own, settings=changes))
        assert np.array_equal(seen, turned)


def test_a_policy_that_is_set_later_takes_bundles_out_of_the_reports() -> None:
    cluster = calm()
    space = cluster.namespaces[1]
    everywhere = IsolationChange(name="wide", namespaces=(space,), primary=(".*",))
    last = ranks(cluster, unchanged(cluster.settings.release.name, cycles=8, steps=(Step(everywhere),)))[-1]
    mine = cluster.bundles.namespace == 1
    assert (cluster.bundles.top_rank[mine] >= 0).any()
    assert not (last[mine] >= 0).any()
