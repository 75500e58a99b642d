"""A namespace moves to a successor: every topic arrives where its new name hashes to, and no traffic is lost."""

from dataclasses import replace

import numpy as np
import pytest

from planner.cluster.errors import ScenarioError
from planner.cluster.hashing import topic_hash
from planner.cluster.load_manager import LoadManager
from planner.cluster.ranges import parse_bundle
from planner.cluster.snapshot import DispatchRate, DispatchRatePolicy, IsolationPolicy, Policies, Snapshot
from planner.cluster.tables import TRAFFIC_COLUMNS
from planner.pulsar.load.namespace_policies import isolation_policy, policies_like
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.edits.move_namespace import MoveNamespace
from planner.simulate.edits.scale_traffic import ScaleTraffic
from planner.simulate.edits.set_partitions import SetPartitions
from planner.simulate.edits.split_bundle import SplitBundle
from planner.simulate.generate import generate
from planner.simulate.moves import disconnections
from planner.simulate.run import simulate
from planner.simulate.scenario import Scenario, Step
from planner.simulate.trace import Trace

SPEC = ClusterSpec(brokers=4, bundles=24, topics=150, namespaces=3, topic_skew=1.1, partitioned=0.5)
OFF = {"loadBalancerAutoBundleSplitEnabled": False, "loadBalancerSheddingEnabled": False}


@pytest.fixture(scope="module", params=list(LoadManager))
def cluster(request: pytest.FixtureRequest) -> Snapshot:
    return generate(replace(SPEC, load_manager=request.param), 5)


def moved(cluster: Snapshot, *edits: object, cycles: int = 12, on: bool = False, **fields: object) -> Trace:
    """Move the first namespace, after some edits."""
    values = {"namespace": cluster.namespaces[0], "successor": "ten/next", "bundles": 6, "batches": 4, "pause_min": 2.0}
    steps = (*map(Step, edits), Step(MoveNamespace(**{**values, **fields})))  # type: ignore[arg-type]
    return simulate(cluster, Scenario(steps=steps, settings={} if on else OFF, cycles=cycles))


def of(snapshot: Snapshot, namespace: str) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    """Say which bundles are of a namespace."""
    return np.array([parse_bundle(name)[0] == namespace for name in snapshot.bundle_names])


def test_no_traffic_topic_or_client_is_lost(cluster: Snapshot) -> None:
    end = moved(cluster).end
    old, new = of(end, cluster.namespaces[0]), of(end, "ten/next")
    before = of(cluster, cluster.namespaces[0])
    assert new.sum() == 6
    for column in (*TRAFFIC_COLUMNS, "topics", "producers", "consumers"):
        values = getattr(end.bundles, column)
        assert values[old].sum() == pytest.approx(0, abs=1e-6)
        assert values[new].sum() == pytest.approx(getattr(cluster.bundles, column)[before].sum(), rel=0.02, abs=6)
    for column in TRAFFIC_COLUMNS:
        assert getattr(end.bundles, column).sum() == pytest.approx(getattr(cluster.bundles, column).sum(), rel=1e-9)
    assert (end.bundles.owner[old] == -1).all()
    assert (end.bundles.owner[new & (end.bundles.topics > 0)] >= 0).all()


def test_each_topic_lies_where_its_new_name_hashes_to(cluster: Snapshot) -> None:
    end = moved(cluster).end
    names = end.topics.name.to_pylist()
    assert sum("://ten/next/" in name for name in names) == len(
        np.flatnonzero(of(cluster, cluster.namespaces[0])[cluster.topics.bundle])
    )
    for name, place, bundle in zip(names, end.topics.hash.tolist(), end.topics.bundle.tolist(), strict=True):
        assert place == topic_hash(name)
        assert end.bundles.low[bundle] <= place <= end.bundles.high[bundle]
        assert f"://{parse_bundle(end.bundle_names[bundle])[0]}/" in name


def test_batches_have_about_as_many_clients_and_keep_partitions_together(cluster: Snapshot) -> None:
    trace = moved(cluster)
    by_cycle = [[one for one in part if one.kind == "handed_over"] for part in disconnections(trace)]
    clients = [sum(one.producers + one.consumers for one in part) for part in by_cycle]
    assert [at for at, number in enumerate(clients) if number] == [0, 2, 4, 6]
    mine = of(cluster, cluster.namespaces[0])
    whole = int((cluster.bundles.producers + cluster.bundles.consumers)[mine].sum())
    assert sum(clients) == pytest.approx(whole, rel=0.02, abs=12)
    assert max(clients) < whole / 2
    half = moved(cluster, cycles=1).end.topics.name.to_pylist()
    gone = {name.rpartition("-partition-")[0] for name in half if "://ten/next/" in name and "-partition-" in name}
    for base in gone:
        old = base.replace("://ten/next/", f"://{cluster.namespaces[0]}/")
        assert not [name for name in half if name.startswith(f"{old}-partition-")]


def test_traffic_that_grows_goes_on_growing_there(cluster: Snapshot) -> None:
    grows = ScaleTraffic(scope="namespace", target=cluster.namespaces[0], factor=3.0)
    end = moved(cluster, grows).end
    before = cluster.bundles.msg_rate_in_per_s[of(cluster, cluster.namespaces[0])].sum()
    assert end.bundles.msg_rate_in_per_s[of(end, "ten/next")].sum() == pytest.approx(3 * before, rel=1e-6)


def test_it_goes_with_splits_and_partitions_on_the_way(cluster: Snapshot) -> None:
    topic = next(name for name in cluster.topics.name.to_pylist() if name.endswith("-partition-0"))
    edits = (
        SplitBundle(bundle=cluster.bundle_names[0], at_min=3),
        SetPartitions(topic=topic.rpartition("-partition-")[0], partitions=40),
    )
    end = moved(cluster, *edits, on=True).end
    assert not [name for name in end.topics.name.to_pylist() if f"://{cluster.namespaces[0]}/" in name]


def test_a_name_that_is_taken_and_one_that_is_missing_are_refused(cluster: Snapshot) -> None:
    with pytest.raises(ScenarioError, match="already has a namespace"):
        moved(cluster, successor=cluster.namespaces[1])
    with pytest.raises(ScenarioError, match="no namespace x/y"):
        moved(cluster, namespace="x/y")


def test_the_successor_is_bound_as_the_namespace_is() -> None:
    rate = DispatchRate(1, 2, 3)
    policies = Policies(
        isolation=(
            IsolationPolicy("a", ("t/n\\.x",), ("b1",), (), 1),
            IsolationPolicy("all", ("z/.*",), ("b2",), (), 1),
        ),
        anti_affinity_group={"t/n.x": "g"},
        dispatch_rates=(
            DispatchRatePolicy("dispatch", "t/n.x", rate),
            DispatchRatePolicy("dispatch", "persistent://t/n.x/topic", rate),
            DispatchRatePolicy("dispatch", "persistent://t/other/topic", rate),
        ),
    )
    found = policies_like(policies, "t/n.x", "t/n.x-4")
    bound = isolation_policy(found, "t/n.x-4")
    assert bound is not None
    assert bound.name == "a"
    assert isolation_policy(found, "t/nAx-4") is None
    assert found.anti_affinity_group == {"t/n.x": "g", "t/n.x-4": "g"}
    assert [one.target for one in found.dispatch_rates[3:]] == ["t/n.x-4", "persistent://t/n.x-4/topic"]
    assert isolation_policy(policies_like(policies, "z/a", "z/b"), "z/b") == policies.isolation[1]
