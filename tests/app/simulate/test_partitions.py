"""A topic gets more partitions: its traffic goes where their names hash to, and none is lost."""

import pytest

from planner.cluster.errors import ScenarioError
from planner.cluster.hashing import topic_hash
from planner.cluster.snapshot import Snapshot
from planner.cluster.tables import TRAFFIC_COLUMNS
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.edits.scale_traffic import ScaleTraffic
from planner.simulate.edits.set_dispatch_rate import SetDispatchRate
from planner.simulate.edits.set_partitions import SetPartitions
from planner.simulate.edits.split_bundle import SplitBundle
from planner.simulate.generate import generate
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario, Step

SPEC = ClusterSpec(brokers=4, bundles=16, topics=120, namespaces=2, topic_skew=1.2, partitioned=0.5)
OFF = {"loadBalancerAutoBundleSplitEnabled": False, "loadBalancerSheddingEnabled": False}


@pytest.fixture(scope="module")
def cluster() -> Snapshot:
    return generate(SPEC, 3)


def plain(cluster: Snapshot) -> str:
    """The busiest topic without partitions."""
    names, rate = cluster.topics.name.to_pylist(), cluster.topics.throughput_bytes_per_s()
    return str(max((name for name in names if "-partition-" not in name), key=lambda name: rate[names.index(name)]))


def divided(cluster: Snapshot) -> str:
    names: list[str] = cluster.topics.name.to_pylist()
    return next(name.rpartition("-partition-")[0] for name in names if name.endswith("-partition-1"))


def after(cluster: Snapshot, *edits: object) -> Snapshot:
    steps = tuple(Step(edit) for edit in edits)  # type: ignore[arg-type]
    return simulate(cluster, Scenario(steps=steps, settings=OFF, cycles=2)).end


def rates(snapshot: Snapshot, base: str) -> dict[str, float]:
    values = snapshot.topics.msg_rate_in_per_s.tolist()
    return {
        name: value
        for name, value in zip(snapshot.topics.name.to_pylist(), values, strict=True)
        if name.startswith(f"{base}-partition-")
    }


@pytest.mark.parametrize("column", TRAFFIC_COLUMNS)
@pytest.mark.parametrize("new", [True, False])
def test_no_traffic_is_lost(cluster: Snapshot, column: str, *, new: bool) -> None:
    topic = plain(cluster) if new else divided(cluster)
    end = after(cluster, SetPartitions(topic=topic, partitions=24, new_topic=f"{topic}-new" if new else ""))
    for table in ("bundles", "topics"):
        before, now = (getattr(getattr(one, table), column).sum() for one in (cluster, end))
        assert now == pytest.approx(before, rel=1e-9)


@pytest.mark.parametrize("new", [True, False])
def test_partitions_are_equal_and_where_they_hash_to(cluster: Snapshot, *, new: bool) -> None:
    topic = plain(cluster) if new else divided(cluster)
    target = f"{topic}-new" if new else topic
    end = after(cluster, SetPartitions(topic=topic, partitions=24, new_topic=target if new else ""))
    found = rates(end, target)
    assert len(found) == 24
    assert max(found.values()) == pytest.approx(min(found.values()))
    names = end.topics.name.to_pylist()
    for name in found:
        row = names.index(name)
        bundle = int(end.topics.bundle[row])
        assert int(end.topics.hash[row]) == topic_hash(name)
        assert end.bundles.low[bundle] <= topic_hash(name) < end.bundles.high[bundle]
        assert end.namespaces[end.bundles.namespace[bundle]] in name
    assert end.bundles.topics.sum() == cluster.bundles.topics.sum() + 24 - (0 if new else len(rates(cluster, topic)))


def test_bundles_that_get_their_first_topics_are_looked_up() -> None:
    """They stayed without a broker, so that more partitions seemed to leave clients unserved."""
    sparse = generate(ClusterSpec(brokers=3, bundles=60, topics=9, namespaces=3, topic_skew=1.2), 1)
    assert (sparse.bundles.owner < 0).any()
    topic = plain(sparse)
    end = after(sparse, SetPartitions(topic=topic, partitions=12, new_topic=f"{topic}-new"))
    served = end.bundles.owner[end.topics.bundle]
    assert (served >= 0).all()


def test_the_old_topic_is_left_without_traffic(cluster: Snapshot) -> None:
    topic = plain(cluster)
    end = after(cluster, SetPartitions(topic=topic, partitions=4, new_topic=f"{topic}-new"))
    row = end.topics.name.to_pylist().index(topic)
    assert end.topics.throughput_bytes_per_s()[row] == 0


def test_what_comes_later_counts_them(cluster: Snapshot) -> None:
    """Traffic that grows, limits, splits and one more change take the partitions as any topic."""
    topic = divided(cluster)
    before = sum(rates(cluster, topic).values())
    grown = ScaleTraffic(scope="topic", target=topic, factor=3.0)
    more = SetPartitions(topic=topic, partitions=24)
    for edits in ((grown, more), (more, grown)):
        assert sum(rates(after(cluster, *edits), topic).values()) == pytest.approx(3 * before, rel=1e-9)
    name = next(iter(rates(cluster, topic)))
    bundle = cluster.bundle_names[int(cluster.topics.bundle[cluster.topics.name.to_pylist().index(name)])]
    end = after(cluster, more, SplitBundle(bundle=bundle), SetPartitions(topic=topic, partitions=30))
    assert len(rates(end, topic)) == 30
    assert end.bundles.msg_rate_in_per_s.sum() == pytest.approx(cluster.bundles.msg_rate_in_per_s.sum(), rel=1e-9)
    limited = after(cluster, SetDispatchRate(target=topic, msg_per_period=1), more)
    out = [
        value
        for name, value in zip(limited.topics.name.to_pylist(), limited.topics.msg_rate_out_per_s, strict=True)
        if name.startswith(f"{topic}-partition-")
    ]
    assert len(out) == 24


def test_what_pulsar_refuses(cluster: Snapshot) -> None:
    topic, parts = plain(cluster), divided(cluster)
    for edit, words in (
        (SetPartitions(topic=topic, partitions=4), "cannot get any"),
        (SetPartitions(topic=topic, partitions=4, new_topic=parts), "already has a topic"),
        (SetPartitions(topic=parts, partitions=1), "already has"),
        (SetPartitions(topic="persistent://acme/orders/nothing", partitions=4), "lists no topic"),
    ):
        with pytest.raises(ScenarioError, match=words):
            after(cluster, edit)
