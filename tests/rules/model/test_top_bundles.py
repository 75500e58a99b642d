"""Which bundles a broker of the extensible load manager reports."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.cluster.internal_namespaces import is_heartbeat_or_sla_namespace, is_system_service_namespace
from planner.cluster.load_manager import LoadManager
from planner.cluster.settings import Settings
from planner.cluster.snapshot import IsolationPolicy, Policies, Snapshot, SnapshotInfo
from planner.cluster.tables import make_brokers, make_bundles, make_topics
from planner.pulsar.load.top_bundles import load_keys, partition_top, top_bundles, with_top_ranks


def cluster(rows: list[tuple[str, int, float]], **columns: object) -> Snapshot:
    """Bundles as (namespace, broker, throughput in bytes/s)."""
    namespaces = tuple(dict.fromkeys(name for name, _, _ in rows))
    low = [i * 16 for i in range(len(rows))]
    return Snapshot(
        info=SnapshotInfo(cluster="test", load_manager=LoadManager.EXTENSIBLE, captured_at_ms=1),
        settings=Settings(),
        brokers=make_brokers(["b0:1", "b1:1"]),
        namespaces=namespaces,
        bundles=make_bundles(
            low,
            high=[x + 16 for x in low],
            namespace=[namespaces.index(name) for name, _, _ in rows],
            owner=[broker for _, broker, _ in rows],
            msg_throughput_in_bytes_per_s=[traffic for _, _, traffic in rows],
            **columns,
        ),
        topics=make_topics(),
    )


def keys(**columns: list[float]) -> list[int]:
    size = len(next(iter(columns.values())))
    return [int(key) for key in load_keys(make_bundles([0] * size, high=1, namespace=0, **columns))]


def test_throughput_is_compared_in_steps_of_100_kilobytes() -> None:
    assert keys(msg_throughput_in_bytes_per_s=[149_999.9, 50_000.0, 49_999.9, 150_000.0]) == [1, 1, 0, 2]
    assert keys(msg_throughput_out_bytes_per_s=[0.0, 50_000.0]) == [0, 1]


def test_half_is_rounded_up_without_floating_point_error() -> None:
    below_half = float(np.nextafter(0.5, 0.0))
    assert keys(msg_rate_in_per_s=[below_half * 100, 50.0]) == [0, 1]


def test_later_columns_decide_only_between_equals() -> None:
    assert keys(msg_throughput_in_bytes_per_s=[2e5, 1e5, 1e5], topics=[0, 499, 500]) == [2, 0, 1]
    assert keys(topics=[400, 400], producers=[50, 0], consumers=[50, 99]) == [1, 0]
    assert keys(cache_size_bytes=[99_999, 100_000]) == [0, 1]


@given(st.lists(st.integers(0, 9), max_size=60), st.integers(-1, 70))
def test_partition_takes_the_greatest(values: list[int], count: int) -> None:
    taken = partition_top(values, count)
    assert len(taken) == len(set(taken)) == max(0, min(count, len(values)))
    assert [values[i] for i in taken] == sorted(values, reverse=True)[: max(0, count)]


def test_report_lists_the_heaviest_from_the_lightest() -> None:
    snapshot = cluster([("t/n", 0, 3e6), ("t/n", 0, 9e6), ("t/n", 0, 1e6), ("t/n", 1, 5e6), ("t/n", -1, 7e6)])
    config = Settings({"loadBalancerMaxNumberOfBundlesInBundleLoadReport": 2})
    assert top_bundles(snapshot, config) == ((0, 1), (3,))
    assert with_top_ranks(snapshot, config).bundles.top_rank.tolist() == [0, 1, -1, 0, -1]


@pytest.mark.parametrize("count", [0, -1])
def test_no_room_no_report(count: int) -> None:
    config = Settings({"loadBalancerMaxNumberOfBundlesInBundleLoadReport": count})
    assert top_bundles(cluster([("t/n", 0, 3e6)]), config) == ((), ())


def test_what_is_never_reported() -> None:
    rows = [(name, 0, 1e6) for name in ("pulsar/system", "pulsar/b0:1", "sla-monitor/b0:1", "t/excluded", "pulsar/n")]
    snapshot = cluster([*rows, ("t/idle", 0, 0.0)])
    config = Settings({"loadBalancerSheddingExcludedNamespaces": "t/excluded"})
    assert [snapshot.namespaces[i] for i in top_bundles(snapshot, config)[0]] == ["pulsar/n"]


def test_bundles_without_statistics_are_not_reported() -> None:
    snapshot = cluster([("t/n", 0, 3e6), ("t/n", 0, 9e6)], has_stats=[False, True])
    assert top_bundles(snapshot, Settings()) == ((1,), ())


def test_bundles_under_policies_are_reported_only_when_they_may_be_shed() -> None:
    rows = [("t/isolated", 0, 1e6), ("t/grouped", 0, 2e6), ("t/blank", 0, 3e6)]
    policies = Policies(
        isolation=(IsolationPolicy("p", ("t/iso.*",), ("b.*",)),),
        anti_affinity_group={"t/grouped": "g", "t/blank": " "},
    )
    snapshot = replace(cluster(rows), policies=policies)
    assert top_bundles(snapshot, Settings()) == ((2,), ())
    allowed = Settings({"loadBalancerSheddingBundlesWithPoliciesEnabled": True})
    assert top_bundles(snapshot, allowed) == ((0, 1, 2), ())


@pytest.mark.parametrize(
    ("namespace", "of_one_broker", "internal"),
    [
        ("pulsar/system", False, True),
        ("pulsar/b-1.x:8080", True, True),
        ("sla-monitor/b:80", True, True),
        ("pulsar/c/b:80", False, False),
        ("pulsar/b", False, False),
        ("pulsar/b:80x", False, False),
        ("pulsar/b:1:2", False, False),
        ("pulsar/:80", False, False),
        ("pulsar/system2", False, False),
        ("public/default", False, False),
    ],
)
def test_internal_namespaces(namespace: str, of_one_broker: bool, internal: bool) -> None:  # noqa: FBT001 - cases
    """As `NamespaceService` of 4.2.4 answered for the same names."""
    assert is_heartbeat_or_sla_namespace(namespace) is of_one_broker
    assert is_system_service_namespace(namespace) is internal
