"""The placement filters of the extensible load manager."""

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planner.cluster.errors import PulsarError
from planner.cluster.load_manager import LoadManager
from planner.cluster.pulsar_json import Json
from planner.cluster.ranges import parse_bundle
from planner.cluster.settings import Settings
from planner.cluster.snapshot import IsolationPolicy, Policies, Snapshot, SnapshotInfo
from planner.cluster.tables import make_brokers, make_bundles, make_topics
from planner.pulsar.placement.extensible_filters import FILTERS, ExtensibleFilters
from planner.pulsar.placement.filters import broker_domains, isolate

GOLDENS = Path(__file__).parent.parent.parent / "goldens" / "placement_extensible" / "filters.jsonl.gz"


def recorded() -> list[Any]:
    vectors = [json.loads(line) for line in gzip.decompress(GOLDENS.read_bytes()).splitlines()]
    return [pytest.param(vector, id=vector["id"]) for vector in vectors]


def cluster(given: Json) -> Snapshot:
    brokers = given["brokers"]
    names = [broker["name"] for broker in brokers]
    owned = [(*parse_bundle(bundle), names.index(owner)) for bundle, owner in given["owned"]]
    namespaces = tuple(dict.fromkeys(["t/n", *(namespace for namespace, _, _, _ in owned)]))
    return Snapshot(
        info=SnapshotInfo(cluster="test", load_manager=LoadManager.EXTENSIBLE, captured_at_ms=1),
        settings=Settings(),
        brokers=make_brokers(
            names,
            topics=[broker.get("topics", 0) for broker in brokers],
            has_load_data=["topics" in broker for broker in brokers],
            version=[broker["version"] for broker in brokers],
            load_manager_class=[broker.get("cls", "m") for broker in brokers],
            persistent_topics_enabled=[broker.get("persistent", True) for broker in brokers],
        ),
        namespaces=namespaces,
        bundles=make_bundles(
            [low for _, low, _, _ in owned],
            high=[high for _, _, high, _ in owned],
            namespace=[namespaces.index(namespace) for namespace, _, _, _ in owned],
            owner=[owner for _, _, _, owner in owned],
        ),
        topics=make_topics(),
        policies=Policies(
            isolation=tuple(
                IsolationPolicy(
                    p["name"], tuple(p["namespaces"]), tuple(p["primary"]), tuple(p["secondary"]), min_limit=p["min"]
                )
                for p in given["isolation"]
            ),
            anti_affinity_group=given["groups"],
            failure_domains={domain: tuple(members) for domain, members in given["domains"].items()},
        ),
    )


def test_of_several_failure_domains_the_last_one_by_name_counts() -> None:
    """Pulsar puts them into a map in the order of their names, in which U+FF5A is above U+1F600."""
    for last in ("zone-b", "\uff5a"):
        for order in ((last, "\U0001f600"), ("\U0001f600", last)):
            domains = {name: ("b:1", f"{at}:1") for at, name in enumerate(order)}
            expected = "\uff5a" if last == "\uff5a" else "\U0001f600"
            assert broker_domains(Policies(failure_domains=domains))["b:1"] == expected


@pytest.mark.parametrize("vector", recorded())
def test_filters_leave_what_the_official_ones_leave(vector: Json) -> None:
    filters = ExtensibleFilters(cluster(vector["input"]), Settings(vector["config"]))
    namespace, _, _ = parse_bundle(vector["input"]["bundle"])
    steps = filters.steps(namespace)
    assert [{"kept": sorted(step.kept), "failed": bool(step.failure)} for step in steps] == vector["expected"]
    if any(step["failed"] for step in vector["expected"]):
        with pytest.raises(PulsarError):
            filters.allowed(namespace)
    else:
        assert sorted(filters.allowed(namespace)) == vector["expected"][-1]["kept"]


def two_brokers(**columns: Any) -> Snapshot:
    given = {
        "brokers": [{"name": name, "version": "4.2.4"} for name in ("b0:1", "b1:1")],
        "owned": [],
        "isolation": [],
        "groups": {},
        "domains": {},
    }
    snapshot = cluster(given)
    return replace(snapshot, brokers=make_brokers(snapshot.brokers.name, **columns))


def test_names_are_pulsar_s() -> None:
    assert tuple(step.name for step in ExtensibleFilters(two_brokers(), Settings()).steps("t/n")) == FILTERS


def test_only_registered_brokers_are_candidates() -> None:
    snapshot = two_brokers(registered=[True, False])
    assert ExtensibleFilters(snapshot, Settings()).allowed("t/n") == {"b0:1"}


def test_class_is_the_leader_s_when_known() -> None:
    snapshot = two_brokers(load_manager_class=["m1", "m2"])
    led = replace(snapshot, info=replace(snapshot.info, leader="b1:1"))
    assert ExtensibleFilters(led, Settings()).allowed("t/n") == {"b1:1"}
    assert ExtensibleFilters(snapshot, Settings({"loadManagerClassName": "m1"})).allowed("t/n") == {"b0:1"}


def test_unknown_classes_drop_nobody() -> None:
    assert ExtensibleFilters(two_brokers(), Settings()).allowed("t/n") == {"b0:1", "b1:1"}
    other = two_brokers(load_manager_class=["m2", "m2"])
    assert ExtensibleFilters(other, Settings()).allowed("t/n") == {"b0:1", "b1:1"}


def test_unknown_version_is_named() -> None:
    filters = ExtensibleFilters(two_brokers(version=["4.2.4", ""]), Settings({"preferLaterVersions": True}))
    assert filters.steps("t/n")[-1].kept == ("b0:1", "b1:1")
    with pytest.raises(PulsarError, match="b1:1"):
        filters.allowed("t/n")


@pytest.mark.parametrize("expressions", [["*"], ["other/.*", "["]])
def test_filter_fails_where_java_cannot_read_an_expression_and_keeps_everybody(expressions: list[str]) -> None:
    """The official filter raises PatternSyntaxException; the modular manager takes that for no policy."""
    brokers = [{"name": name, "version": "4.2.4", "topics": 1} for name in ("a:8080", "b:8080")]
    policy = {"name": "p", "namespaces": expressions, "primary": ["a"], "secondary": [], "min": 1}
    given = cluster({"brokers": brokers, "owned": [], "isolation": [policy], "groups": {}, "domains": {}})
    filters = ExtensibleFilters(given, Settings())
    last = filters.steps("t/n")[-1]
    assert (last.name, last.kept) == (FILTERS[4], ("a:8080", "b:8080"))
    assert "isolation policy p" in last.failure
    with pytest.raises(PulsarError, match="isolation policy p"):
        filters.allowed("t/n")
    assert isolate(given.policies, "t/n", ["a:8080", "b:8080"], lambda _: True).candidates == ("b:8080",)


def test_policy_before_a_bad_expression_holds() -> None:
    brokers = [{"name": name, "version": "4.2.4", "topics": 1} for name in ("a:8080", "b:8080")]
    bad = {"name": "p", "namespaces": ["t/n", "*"], "primary": ["a"], "secondary": [], "min": 1}
    given = cluster({"brokers": brokers, "owned": [], "isolation": [bad], "groups": {}, "domains": {}})
    assert ExtensibleFilters(given, Settings()).allowed("t/n") == {"a:8080"}
