"""The outputs of ten commands give the next cycle that the full capture of a real cluster gives."""

import io
from functools import cache

import pytest

from planner.cluster.snapshot import Snapshot
from planner.doors.read import Given, read_given
from planner.doors.reading import Reading
from planner.formats.raw_capture.snapshot import snapshot_of_capture
from planner.pulsar.manager.cycle import next_cycle
from planner.pulsar.shedding.registry import SHEDDERS
from planner.simulate.scenario import unchanged
from planner.simulate.strategies import under_strategy
from tests.data.doors.printed import GOLDENS, capture, printed

EASY = {
    "loadBalancerBrokerThresholdShedderPercentage": 1,
    "loadBalancerBrokerOverloadedThresholdPercentage": 5,
    "loadBalancerBundleUnloadMinThroughputThreshold": 0.01,
    "loadBalancerMsgRateDifferenceShedderThreshold": 5,
    "loadBalancerSheddingBundlesWithPoliciesEnabled": True,
    "loadBalancerAvgShedderLowThreshold": 1,
    "loadBalancerAvgShedderHighThreshold": 2,
    "loadBalancerAvgShedderHitCountLowThreshold": 1,
    "loadBalancerAvgShedderHitCountHighThreshold": 1,
    "loadBalancerSheddingConditionHitCountThreshold": 0,
    "minUnloadMessage": 1,
}
"""Settings under which every strategy sheds something of these idle clusters."""

CAPTURES = sorted(path.name for path in GOLDENS.glob("*.zip"))
GROUPS = "anti-affinity groups"


@cache
def both(name: str, more: str = "") -> tuple[Snapshot, Reading]:
    """Return the full capture, and what is read from the terminal in which the commands were run."""
    files = capture(name)
    text = printed(files) + more
    return snapshot_of_capture(files), read_given([Given("terminal.txt", io.BytesIO(text.encode()))])


def owners(snapshot: Snapshot) -> dict[str, str]:
    """Return the owner of each bundle that has one; some small captures list others in the metadata store alone."""
    pairs = zip(snapshot.bundle_names, snapshot.bundles.owner.tolist(), strict=True)
    return {bundle: snapshot.brokers.name[at] for bundle, at in pairs if at >= 0}


def cycle(snapshot: Snapshot, strategy: str) -> list[tuple[str, str, tuple[str, ...]]]:
    scenario = under_strategy(
        unchanged(snapshot.info.pulsar_version), snapshot.settings, snapshot.info.load_manager, strategy
    )
    config = snapshot.settings.changed(**{**scenario.settings, **EASY})
    _, decision = next_cycle(snapshot, None, config, 0)
    return sorted((one.move.bundle, one.move.source, tuple(sorted(one.acceptable))) for one in decision.unloads)


@pytest.mark.parametrize("name", CAPTURES)
def test_the_cluster_is_the_same(name: str) -> None:
    full, reading = both(name)
    found = reading.snapshot
    assert found is not None
    assert owners(found) == owners(full)
    assert sorted(found.brokers.name) == sorted(full.brokers.name)
    assert found.info.load_manager is full.info.load_manager
    assert found.info.leader == full.info.leader
    assert {*found.topics.name.to_pylist()} == {*full.topics.name.to_pylist()}
    if full.info.settings_from == "brokers":
        assert found.settings == full.settings
    assert not reading.contradictions


@pytest.mark.parametrize("name", CAPTURES)
def test_the_next_cycle_is_the_same_or_what_may_differ_is_named(name: str) -> None:
    full, reading = both(name)
    found = reading.snapshot
    assert found is not None
    named = {one.what for one in reading.missing}
    for strategy in (one.name for one in SHEDDERS if one.load_manager is full.info.load_manager):
        expected, got = cycle(full, strategy), cycle(found, strategy)
        assert [row[:2] for row in got] == [row[:2] for row in expected], strategy
        assert got == expected or GROUPS in named, strategy


def test_something_is_shed_and_groups_decide_where_to() -> None:
    """With the groups of its namespaces, the full capture's destinations come out as well."""
    full, without = both("modular.zip")
    groups = "".join(
        f"$ pulsar-admin namespaces get-anti-affinity-group {namespace}\n{group}\n"
        for namespace, group in full.policies.anti_affinity_group.items()
    )
    _, reading = both("modular.zip", groups)
    assert without.snapshot is not None
    assert reading.snapshot is not None
    strategy = next(one.name for one in SHEDDERS if one.load_manager is full.info.load_manager)
    expected = cycle(full, strategy)
    assert expected
    assert cycle(without.snapshot, strategy) != expected
    assert cycle(reading.snapshot, strategy) == expected
