"""The outputs of ten commands give the next cycle that the full capture of a real cluster gives."""

import io
import json
from dataclasses import replace
from functools import cache
from random import Random

import pytest

from planner.cluster.load_manager import LoadManager
from planner.cluster.snapshot import Snapshot
from planner.cluster.tables import TRAFFIC_COLUMNS
from planner.doors.read import Given, read_given
from planner.doors.reading import Reading
from planner.formats.raw_capture.snapshot import snapshot_of_capture
from planner.pulsar.manager.class_names import in_full
from planner.pulsar.manager.cycle import next_cycle
from planner.pulsar.shedding.registry import SHEDDERS
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.generate import generate
from planner.simulate.scenario import unchanged
from planner.simulate.strategies import under_strategy
from tests.data.doors.printed import GOLDENS, capture, printed
from tests.data.doors.printed_snapshot import answers_of

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
    config = snapshot.settings.changed(**in_full({**scenario.settings, **EASY}))
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


def strategies(snapshot: Snapshot) -> list[str]:
    return [one.name for one in SHEDDERS if one.load_manager is snapshot.info.load_manager]


def check_cycle(full: Snapshot, reading: Reading, strategy: str) -> None:
    """Expect the decision of the full capture; only what the reading names as missing may differ."""
    assert reading.snapshot is not None
    expected, got = cycle(full, strategy), cycle(reading.snapshot, strategy)
    named = {one.kind if one.kind == "averages" else one.what for one in reading.missing}
    may_stay = GROUPS in named or "failure domains" in named
    if not may_stay:
        assert {row[1] for row in got} == {row[1] for row in expected}, strategy
    if not may_stay and "averages" not in named:
        assert got == expected, strategy


@pytest.mark.parametrize("name", CAPTURES)
def test_the_next_cycle_is_the_same_or_what_may_differ_is_named(name: str) -> None:
    full, reading = both(name)
    assert reading.snapshot is not None
    is_same_moment = usage(full) == usage(reading.snapshot)
    said = [one.uncertain for one in reading.missing if one.kind == "averages"]
    for strategy in strategies(full):
        check_cycle(full, reading, strategy)
        sources = [{row[1] for row in cycle(one, strategy)} for one in (full, reading.snapshot)]
        assert sources[0] == sources[1] or (not is_same_moment and "published earlier" in said[0]), strategy


def usage(snapshot: Snapshot) -> dict[str, float]:
    return dict(zip(snapshot.brokers.name, snapshot.brokers.cpu_usage_percent.tolist(), strict=True))


def test_strategies_are_those_that_are_named() -> None:
    """Simple names are of classes that Pulsar cannot load, so that the default one decided each time."""
    full, _ = both("modular.zip")
    assert len({str(cycle(full, strategy)) for strategy in strategies(full)}) > 1


def generated(seed: int) -> Snapshot:
    """Return a cluster of either load manager, with isolation policies, groups and failure domains on some."""
    random = Random(seed)  # noqa: S311 - no secret
    namespaces = random.randint(1, 4)
    spec = ClusterSpec(
        brokers=random.randint(2, 6),
        bundles=random.randint(4, 40),
        namespaces=namespaces,
        topics=random.randint(50, 200),
        msg_rate_per_s=random.choice([5_000, 30_000, 60_000]),
        topic_skew=random.uniform(0, 1.3),
        ownership_skew=random.random(),
        isolated_namespaces=random.randint(0, namespaces),
        anti_affinity_namespaces=random.randint(0, namespaces),
        load_manager=list(LoadManager)[seed % 2],
    )
    made = generate(spec, seed)
    if random.random() < 0.5:
        domains: dict[str, tuple[str, ...]] = {f"rack-{n}": made.brokers.name[n::2] for n in range(2)}
        config = made.settings.changed(failureDomainsEnabled=True)
        made = replace(made, policies=replace(made.policies, failure_domains=domains), settings=config)
    return made


def without_memory(snapshot: Snapshot) -> Snapshot:
    """Return a cluster whose averages are its current rates, as when its traffic never changed."""
    table = snapshot.bundles
    rates = {
        f"{term}{name}": getattr(table, name) for term in ("short_term_", "long_term_") for name in TRAFFIC_COLUMNS
    }
    brokers = {name: getattr(snapshot.brokers, name.partition("_term_")[2]) for name in rates}
    return replace(snapshot, bundles=replace(table, **rates), brokers=replace(snapshot.brokers, **brokers))


def beyond_ten(snapshot: Snapshot) -> str:
    """Return what the commands print that the reading names as missing: groups and failure domains."""
    groups = snapshot.policies.anti_affinity_group
    text = "".join(
        f"$ pulsar-admin namespaces get-anti-affinity-group {name}\n{groups.get(name, 'null')}\n"
        for name in snapshot.namespaces
    )
    domains = {name: {"brokers": list(found)} for name, found in snapshot.policies.failure_domains.items()}
    return f"{text}$ pulsar-admin clusters list-failure-domains c\n{json.dumps(domains, indent=2)}\n"


def read(snapshot: Snapshot, more: str = "") -> Reading:
    text = printed(answers_of(snapshot)) + more
    return read_given([Given("terminal.txt", io.BytesIO(text.encode()))], now_ms=snapshot.info.captured_at_ms)


def test_failure_domains_are_named_where_they_are_on() -> None:
    """Nothing said that the ten commands do not print them."""
    full = next(one for one in map(generated, range(20)) if one.policies.failure_domains)
    assert "failure domains" in [one.what for one in read(full).missing]
    reading = read(full, beyond_ten(full))
    assert reading.snapshot is not None
    assert "failure domains" not in [one.what for one in reading.missing]
    assert reading.snapshot.policies.failure_domains == full.policies.failure_domains
    off = next(one for one in map(generated, range(20)) if not one.policies.failure_domains)
    assert "failure domains" not in [one.what for one in read(off).missing]


SOME, MANY = range(12), range(200)


@pytest.mark.parametrize("seeds", [SOME, pytest.param(MANY, marks=pytest.mark.slow)], ids=["some", "many"])
def test_generated_clusters_decide_the_same_or_what_may_differ_is_named(seeds: range) -> None:
    for seed in seeds:
        full = generated(seed)
        reading = read(full)
        assert reading.snapshot is not None
        assert owners(reading.snapshot) == owners(full), seed
        assert reading.snapshot.settings == full.settings, seed
        assert not reading.contradictions, seed
        assert not reading.not_used, seed
        for strategy in strategies(full):
            check_cycle(full, reading, strategy)


@pytest.mark.parametrize("seeds", [SOME, pytest.param(MANY, marks=pytest.mark.slow)], ids=["some", "many"])
def test_with_what_is_named_a_generated_cluster_decides_exactly_the_same(seeds: range) -> None:
    shed = 0
    for seed in seeds:
        full = without_memory(generated(seed))
        reading = read(full, beyond_ten(full))
        assert reading.snapshot is not None
        for strategy in strategies(full):
            expected = cycle(full, strategy)
            assert cycle(reading.snapshot, strategy) == expected, (seed, strategy)
            shed += len(expected)
    assert shed > len(seeds)


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
    strategy = strategies(full)[0]
    expected = cycle(full, strategy)
    assert expected
    assert cycle(without.snapshot, strategy) != expected
    assert cycle(reading.snapshot, strategy) == expected
