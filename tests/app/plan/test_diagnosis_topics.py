"""Topics: hot by a broker's capacity, skewed partitions, above a bundle's limits; where partitions would go."""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from planner.cluster.hashing import topic_hash, topic_hashes
from planner.cluster.names import (
    CPU_RESOURCE_WEIGHT,
    NAMESPACE_BUNDLE_MAX_BANDWIDTH_MBYTES,
    NAMESPACE_BUNDLE_MAX_MSG_RATE,
)
from planner.cluster.ranges import bundle_of_hash
from planner.cluster.snapshot import Snapshot
from planner.cluster.tables import make_topics
from planner.explain.diagnosis import diagnose
from planner.explain.finding import Finding
from planner.explain.health import health
from planner.explain.outcome import Outcome
from planner.explain.split_advice import split_advice
from planner.explain.topic_advice import PART, partition_advice, raised
from planner.explain.topic_patterns import hottest_topics
from planner.simulate.assumptions import Assumptions
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.edits.registry import BundleSplit, MachineChange
from planner.simulate.edits.set_partitions import SetPartitions
from planner.simulate.event import Event
from planner.simulate.generate import generate
from planner.simulate.planned import plan_cluster
from planner.simulate.planned_spec import PlannedCluster, PlannedTopics
from planner.simulate.run import simulate
from planner.simulate.scenario import Step, unchanged
from planner.simulate.usage_model import standing
from planner.workspace.samples import load_sample, samples
from tests.app.simulate.traces import MB, START_MS, cluster, trace_of

QUIET = {"loadBalancerAutoBundleSplitEnabled": False, "loadBalancerSheddingEnabled": False}
STREAM = "persistent://acme/orders/stream"


def partitions(count: int, base: str = STREAM) -> list[str]:
    return [f"{base}-partition-{at}" for at in range(count)]


def served(
    names: Sequence[str],
    mib_per_s: Sequence[float],
    brokers: int = 3,
    usage: Sequence[float] = (),
    settings: dict[str, Any] | None = None,
) -> Snapshot:
    """Topics in the bundles of their hashes, of 12, on brokers in turn; 1,000 messages for each MiB."""
    count = 12
    hashes = topic_hashes((name.encode() for name in names), len(names))
    ends = cluster((0.1,), {0: (1.0,) * count}).bundles.low.astype(np.int64)
    bundle = np.array([bundle_of_hash([*ends.tolist(), 2**32 - 1], int(value)) for value in hashes], np.int32)
    size = np.bincount(bundle, np.array(mib_per_s), minlength=count)
    by_broker = {at: tuple(size[at * count // brokers : (at + 1) * count // brokers]) for at in range(brokers)}
    of_broker = [sum(sizes) for sizes in by_broker.values()]
    used = usage or [0.05 + 0.01 * value for value in of_broker]
    made = cluster(used, by_broker, settings={**QUIET, **(settings or {})}, topics=0)
    topics = make_topics(
        hashes,
        name=pa.array(list(names), type=pa.large_string()),
        bundle=bundle,
        msg_rate_in_per_s=np.array(mib_per_s) * 500,
        msg_rate_out_per_s=np.array(mib_per_s) * 500,
        msg_throughput_in_bytes_per_s=np.array(mib_per_s) * MB / 2,
        msg_throughput_out_bytes_per_s=np.array(mib_per_s) * MB / 2,
    )
    held = np.bincount(bundle, minlength=count)
    return replace(made, topics=topics, bundles=replace(made.bundles, topics=held.astype(made.bundles.topics.dtype)))


def outcome(snapshot: Snapshot, cycles: int = 2) -> Outcome:
    return Outcome(simulate(snapshot, unchanged(snapshot.info.pulsar_version or "4.2.4", cycles=cycles)))


def found(snapshot: Snapshot, cycles: int = 2) -> dict[str, Finding]:
    return {finding.code: finding for finding in diagnose(outcome(snapshot, cycles))}


@pytest.mark.parametrize("weight", [1.0, 2.0])
def test_no_topic_uses_more_than_its_broker(weight: float) -> None:
    """A scenario that corrects a weight above 1 measures topics as it measures brokers."""
    captured = served([f"{STREAM}-{at}" for at in range(8)], [40.0, *[1.0] * 7], settings={CPU_RESOURCE_WEIGHT: weight})
    mended = Outcome(simulate(captured, unchanged("4.2.4", cycles=2, settings={CPU_RESOURCE_WEIGHT: 1.0})))
    usage = dict(zip(mended.series.brokers, mended.series.usage[-1].tolist(), strict=True))
    topics = hottest_topics(mended)
    assert max(topics.values()) > 0.3
    assert {broker: topic for broker, topic in topics.items() if topic > usage[broker] + 1e-9} == {}


@pytest.mark.parametrize(("largest", "hot"), [(70.0, True), (45.0, True), (10.0, False), (1.0, False)])
def test_hot_is_what_takes_a_good_part_of_a_broker(largest: float, *, hot: bool) -> None:
    limits = {NAMESPACE_BUNDLE_MAX_MSG_RATE: 10, NAMESPACE_BUNDLE_MAX_BANDWIDTH_MBYTES: 1}
    seen = found(served([f"{STREAM}-{at}" for at in range(8)], [largest, *[1.0] * 7], settings=limits))
    assert ("hot_topic" in seen) is hot
    if hot:
        assert "by itself it uses " in seen["hot_topic"].evidence
        assert seen["hot_topic"].evidence.startswith(f"{STREAM}-0 carries {largest:.1f} MiB/s")


def test_the_limit_of_a_bundle_makes_no_topic_hot() -> None:
    limits = {NAMESPACE_BUNDLE_MAX_MSG_RATE: 500, "loadBalancerAutoBundleSplitEnabled": True}
    seen = found(served([f"{STREAM}-{at}" for at in range(8)], [2.0, 1.5, *[0.1] * 6], settings=limits))
    assert "hot_topic" not in seen
    finding = seen.get("topic_above_limit") or seen["split_cascade"]
    assert NAMESPACE_BUNDLE_MAX_MSG_RATE in finding.changes
    value = finding.changes[NAMESPACE_BUNDLE_MAX_MSG_RATE]
    assert isinstance(value, int)
    assert value > 2000


@pytest.mark.parametrize("count", [2, 4, 8, 16])
def test_a_partition_with_most_of_the_traffic(count: int) -> None:
    names = partitions(count)
    seen = found(served([*names, f"{STREAM}-own"], [*[0.1] * (count - 1), 50.0, 1.0]))
    assert "hot_topic" not in seen
    finding = seen["key_skew"]
    assert finding.evidence.startswith(names[-1])
    assert f"It is one of {count} partitions: it has 25,000 msg/s in, the others 50 each." in finding.evidence
    assert "hot key" in finding.remedy
    assert "update-partitioned-topic" not in finding.remedy


@pytest.mark.parametrize("count", [2, 4])
def test_equal_partitions_are_no_skew_and_get_more(count: int) -> None:
    seen = found(served(partitions(count), [50.0] * count, brokers=2))
    assert "key_skew" not in seen
    remedy = seen["hot_topic"].remedy
    assert f"instead of {count}: pulsar-admin topics update-partitioned-topic {STREAM} --partitions " in remedy
    assert "order" in remedy


def test_a_partition_that_no_broker_carries_needs_a_larger_machine() -> None:
    """Moving all others off its broker was advised, which is not enough, and nothing was tried."""
    names = partitions(4)
    snapshot = served(names, [1.0, 1.0, 90.0, 1.0])
    finding = found(snapshot)["key_skew"]
    (edit,) = finding.edits
    assert isinstance(edit, MachineChange)
    assert edit.brokers == finding.brokers[:1]
    assert f"only a larger machine carries it: {edit.what()} (now " in finding.remedy
    changed = Outcome(simulate(snapshot, unchanged("4.2.4", cycles=2).with_steps(Step(edit))))
    assert changed.result.end_peak_percent <= 85 < outcome(snapshot).result.end_peak_percent
    assert "move the other bundles off" in found(served(names, [1.0, 1.0, 50.0, 1.0]))["key_skew"].remedy


def test_siblings_of_a_skewed_partition_are_no_hot_topics() -> None:
    """More partitions were advised for the second largest one, as if the traffic of the hot key spread over them."""
    names = partitions(4)
    snapshot = served(names, [5.0, 45.0, 75.0, 0.1])
    seen = found(snapshot)
    assert "hot_topic" not in seen
    finding = seen["key_skew"]
    assert finding.evidence.startswith(names[2])
    assert "such partitions in total" not in finding.evidence
    second = partition_advice(snapshot, 1, 0.5)
    assert (second.skewed, second.wanted, second.edits) == (True, 0, ())
    assert f"the broker of {names[2].rpartition('/')[2]}" in second.remedy


def test_one_remedy_divides_several_hot_topics() -> None:
    names = [f"{STREAM}-{at}" for at in range(8)]
    finding = found(served(names, [50.0] * 3 + [0.1] * 5))["hot_topic"]
    divided = [edit for edit in finding.edits if isinstance(edit, SetPartitions)]
    assert {edit.topic for edit in divided} == set(names[:3])
    others = [one for one in names[:3] if one not in finding.evidence]
    assert "Likewise for " in finding.remedy
    for one in others:
        assert re.search(rf"{one} \(\d+ partitions\)", finding.remedy)
    assert names[5] not in finding.remedy
    (only,) = found(served(names, [50.0] + [0.1] * 7))["hot_topic"].edits
    assert isinstance(only, SetPartitions)


def test_siblings_are_those_of_the_same_topic() -> None:
    names = [*partitions(4), *partitions(4, f"{STREAM}-partition-1x"), f"{STREAM}-partition-one", f"{STREAM}s"]
    snapshot = served(names, [1.0, 1.0, 1.0, 30.0, *[9.0] * 6])
    advice = partition_advice(snapshot, 3, 0.3)
    assert (advice.topic, advice.partitions, advice.skewed) == (STREAM, 4, True)
    assert "the others 500 each" in advice.evidence


def test_partitions_go_where_their_names_hash_to() -> None:
    snapshot = served([STREAM, f"{STREAM}-b"], [50.0, 1.0])
    advice = partition_advice(snapshot, 0, 0.45)
    assert "bundle_names" not in vars(snapshot), "those of all bundles of a large cluster take long"
    assert advice.wanted == 5
    assert f"create-partitioned-topic {STREAM}-parts --partitions 5" in advice.remedy
    low = snapshot.bundles.low.astype(np.int64).tolist()
    places = {bundle_of_hash([*low, 2**32 - 1], topic_hash(f"{STREAM}-parts-partition-{at}")) for at in range(5)}
    assert set(advice.bundles) == {snapshot.bundle_names[at] for at in places}
    owners = {snapshot.brokers.name[int(snapshot.bundles.owner[at])] for at in places}
    assert set(advice.brokers) == owners


def test_partitions_that_all_hash_to_one_bundle_need_a_split_as_well() -> None:
    group = PlannedTopics(pattern="persistent://a/b/t-%d", count=1, bundles=1)
    one = partition_advice(plan_cluster(PlannedCluster(brokers=3, topics=(group,))), 0, 0.45)
    assert len(one.bundles) == 1
    assert "Split it as well, or they all stay on one broker." in one.remedy
    many = partition_advice(served([STREAM, f"{STREAM}-b"], [50.0, 1.0]), 0, 0.45)
    assert len(many.bundles) > 1
    assert "Split it as well" not in many.remedy


def test_partitions_need_bundles_for_all_brokers() -> None:
    """Of 24 brokers at most 12 can serve a namespace of 12 bundles: more partitions alone leave its bundles as hot."""
    snapshot = served(partitions(4), [50.0] * 4, brokers=24)
    finding = found(snapshot)["hot_topic"]
    assert finding.remedy.endswith("Before that, split acme/orders into 32 bundles: there are too few for 24 brokers.")
    *splits, divided = finding.edits
    assert isinstance(divided, SetPartitions)
    assert splits
    assert all(isinstance(edit, BundleSplit) for edit in splits)
    peaks = [
        Outcome(simulate(snapshot, unchanged("4.2.4", cycles=2).with_steps(*map(Step, edits)))).result.end_peak_percent
        for edits in ((divided,), finding.edits)
    ]
    assert peaks[1] < peaks[0] - 5
    (alone,) = found(served(partitions(4), [50.0] * 4, brokers=3))["hot_topic"].edits
    assert isinstance(alone, SetPartitions), "bundles enough for three brokers"


@pytest.mark.parametrize("usage", [0.0, 0.05, 0.34, 0.99, 3.0, 100.0])
def test_each_partition_is_small_enough(usage: float) -> None:
    advice = partition_advice(served([STREAM], [50.0]), 0, usage)
    assert 2 <= advice.wanted <= 64
    assert advice.wanted == 64 or usage / advice.wanted <= PART


def test_split_advice_knows_skew() -> None:
    skewed = served(partitions(4), [0.1, 0.1, 0.1, 50.0])
    at = int(skewed.topics.bundle[3])
    config = skewed.settings.changed(**{NAMESPACE_BUNDLE_MAX_MSG_RATE: 100})
    assert "more partitions do not divide it" in split_advice(skewed, at, config).sentence
    alike = served(partitions(4), [50.0] * 4)
    assert "Add partitions to this topic" in split_advice(alike, int(alike.topics.bundle[3]), config).sentence


@pytest.mark.parametrize(("sizes", "worth"), [((20.0, *[0.003] * 99), False), ((0.5,) * 100, True)])
def test_the_remedy_of_a_cascade_is_the_advice_on_splits(sizes: tuple[float, ...], *, worth: bool) -> None:
    limits = {NAMESPACE_BUNDLE_MAX_MSG_RATE: 2000, NAMESPACE_BUNDLE_MAX_BANDWIDTH_MBYTES: 2}
    snapshot = served([f"{STREAM}-{at}" for at in range(100)], sizes, settings=limits)
    busiest = int(snapshot.bundles.throughput_bytes_per_s().argmax())
    chain = [snapshot.bundle_names[busiest], *(f"acme/orders/child-{at}" for at in range(4))]
    events = {
        at: [Event(a, "b1:8080", "b1:8080", children=(b,), why="too much", at_ms=START_MS, kind="split")]
        for at, (a, b) in enumerate(pairwise(chain))
    }
    trace = trace_of([[0.2] * 3] * 5, events, view=snapshot)
    (finding,) = [one for one in diagnose(trace) if one.code == "split_cascade"]
    advice = split_advice(snapshot, busiest, snapshot.settings)
    assert (advice.verdict == "Worth it") is worth
    assert finding.remedy.startswith("Do not split further. ") is not worth
    assert (advice.sentence in finding.remedy) is not worth
    assert ("defaultNamespaceBundleSplitAlgorithm" in finding.changes) is worth
    if not worth:
        assert set(finding.changes) == set(limits)
        most = float(snapshot.bundles.msg_rate_per_s().max())
        value = finding.changes[NAMESPACE_BUNDLE_MAX_MSG_RATE]
        assert isinstance(value, int)
        assert value > most


@pytest.mark.parametrize(
    ("largest", "limit"), [(0.0, 1), (7.9, 10), (100.0, 130), (12_345.0, 16_000), (99_000.0, 130_000)]
)
def test_raised_limits_are_round_and_leave_room(largest: float, limit: int) -> None:
    assert raised(largest) == limit
    assert raised(largest) >= largest


def test_the_real_cluster_is_healthy() -> None:
    sample = next(one for one in samples() if one.file == "real-extensible.json")
    snapshot = load_sample(sample)
    whole = outcome(snapshot, 30)
    findings = diagnose(whole)
    now = standing(snapshot, snapshot.settings, Assumptions())
    assert health(snapshot, snapshot.settings, now, whole, findings).level == "good"
    seen = {finding.code: finding for finding in findings}
    assert "hot_topic" not in seen
    assert seen["topic_above_limit"].severity == "low"
    assert f"alone exceed {NAMESPACE_BUNDLE_MAX_MSG_RATE} = 50" in seen["topic_above_limit"].title


def test_partitions_may_hash_to_bundles_that_no_broker_serves() -> None:
    """The remedy named one broker for three bundles, two of which had none."""
    sparse = generate(ClusterSpec(brokers=3, bundles=60, topics=9, namespaces=3, topic_skew=1.2), 1)
    rows = np.flatnonzero(sparse.bundles.owner[sparse.topics.bundle] >= 0)
    advice = partition_advice(sparse, int(rows[0]), 0.9)
    position = sparse.bundle_position
    unowned = sum(int(sparse.bundles.owner[position[name]]) < 0 for name in advice.bundles)
    assert 0 < unowned < len(advice.bundles)
    assert f"; Pulsar places the other {unowned} when clients connect." in advice.remedy
