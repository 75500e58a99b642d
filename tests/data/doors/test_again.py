"""Of answers to one question that was asked several times, the last one counts, and that is said."""

import io
import json
from pathlib import Path

import pytest

from planner.doors.read import Given, read_given
from planner.doors.reading import Reading

INPUTS = Path(__file__).parent / "inputs"
A, B, C = (f"{name}.mq.svc:8080" for name in "abc")
ONE, TWO, THREE = (
    f"shop/orders/0x{low}_0x{high}"
    for low, high in (("00000000", "40000000"), ("40000000", "80000000"), ("80000000", "ffffffff"))
)


def owned(broker: str, *bundles: str) -> str:
    rows = "".join(f"{name}    [broker_assignment=shared is_controlled=true is_active=true]\n" for name in bundles)
    return f"$ pulsar-admin brokers namespaces east --url {broker}\n{rows}"


def brokers(*names: str, cluster: str = "east") -> str:
    return f"$ pulsar-admin brokers list {cluster}\n" + "".join(f"{name}\n" for name in names)


def policy(name: str) -> str:
    parameters = "parameters={min_limit=1, usage_threshold=80}"
    lists = "namespaces=[shop/.*], primary=[a.*], secondary=[]"
    failover = f"autoFailoverPolicy=AutoFailoverPolicyDataImpl(policyType=min_available, {parameters})"
    return f"{name}    NamespaceIsolationDataImpl({lists}, {failover}, unloadScope=null)\n"


def read(text: str, cluster: str = "") -> Reading:
    return read_given([Given("terminal.txt", io.BytesIO(text.encode()))], cluster=cluster, now_ms=1795225795494)


CLUSTER = owned(A, ONE, TWO) + owned(B, THREE)
LISTED = "$ pulsar-admin ns-isolation-policy list east\n"
DYNAMIC = "$ pulsar-admin brokers get-all-dynamic-config\n"


def test_a_bundle_is_where_the_last_answers_have_it() -> None:
    """It stayed where the first answer had it."""
    reading = read(CLUSTER + owned(A, TWO) + owned(B, ONE, THREE))
    snapshot = reading.snapshot
    assert snapshot is not None
    owner = dict(zip(snapshot.bundle_names, snapshot.bundles.owner.tolist(), strict=True))
    assert [snapshot.brokers.name[owner[name]] for name in (ONE, TWO, THREE)] == [B, A, B]
    assert reading.contradictions == tuple(
        f"Several answers give the bundles of {broker}; the last one counts." for broker in (A, B)
    )


def test_a_broker_that_is_gone_from_the_list_is_gone() -> None:
    reading = read(brokers(A, B, C) + brokers(A, B) + CLUSTER)
    assert reading.snapshot is not None
    assert reading.snapshot.brokers.name == (A, B)
    assert "Several answers give the list of brokers" in " ".join(reading.contradictions)


@pytest.mark.parametrize(("cluster", "kept"), [("", (A, B)), ("west", (C, A, B))])
def test_lists_of_two_clusters_are_not_put_together(cluster: str, kept: tuple[str, ...]) -> None:
    reading = read(brokers(A, B) + brokers(C, cluster="west") + CLUSTER, cluster)
    assert reading.snapshot is not None
    assert set(reading.snapshot.brokers.name) == set(kept)
    assert "lists of brokers are of several clusters: east, west" in " ".join(reading.contradictions)


def test_what_was_removed_in_between_does_not_count() -> None:
    """Both were kept without a word."""
    off = "loadBalancerSheddingEnabled    false\n"
    reading = read(f"{CLUSTER}{DYNAMIC}{off}{DYNAMIC}{LISTED}{policy('first')}{LISTED}")
    snapshot = reading.snapshot
    assert snapshot is not None
    assert snapshot.settings["loadBalancerSheddingEnabled"] is True
    assert snapshot.policies.isolation == ()
    said = " ".join(reading.contradictions)
    assert "Several answers give dynamic settings" in said
    assert "Several answers give the isolation policies" in said


def test_the_last_release_leader_and_group_count() -> None:
    command = "$ pulsar-admin brokers leader-broker\n"
    leaders = "".join(f'{command}{{"brokerId": "{name}", "serviceUrl": "http://{name}"}}\n' for name in (A, B))
    versions = "".join(f"$ pulsar-admin brokers version\n{name}\n" for name in ("2.10.4", "3.0.7"))
    groups = "".join(f"$ pulsar-admin namespaces get-anti-affinity-group shop/orders\n{name}\n" for name in ("x", "y"))
    reading = read(CLUSTER + leaders + versions + groups)
    snapshot = reading.snapshot
    assert snapshot is not None
    assert (snapshot.info.leader, snapshot.info.pulsar_version) == (B, "3.0.7")
    assert snapshot.policies.anti_affinity_group == {"shop/orders": "y"}
    assert len(reading.contradictions) == 3


def test_the_same_answer_twice_is_no_contradiction() -> None:
    assert not read(CLUSTER + CLUSTER + brokers(A, B) + brokers(B, A)).contradictions


def test_single_policies_add_up() -> None:
    value = {"namespaces": ["shop/.*"], "primary": ["a.*"], "auto_failover_policy": {"parameters": {"min_limit": "1"}}}
    texts = "".join(f"$ pulsar-admin ns-isolation-policy get east {name}\n{json.dumps(value)}\n" for name in "pq")
    snapshot = read(CLUSTER + texts).snapshot
    assert snapshot is not None
    assert [one.name for one in snapshot.policies.isolation] == ["p", "q"]


def test_a_release_that_load_reports_do_not_name_is_said() -> None:
    report = json.loads((INPUTS / "load_report" / "pretty_4_0.json").read_text()) | {"brokerVersionString": "2.10.4"}
    reading = read(f"{json.dumps(report)}\n$ pulsar-admin brokers version\n4.0.8\n")
    assert "Load reports name Pulsar 2.10.4, but the release is given as 4.0.8" in " ".join(reading.contradictions)
