"""A capture shows the cluster that was asked, whatever part of it does not answer."""

import json
import re
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from planner.capture.catalogue import CATALOGUE
from planner.capture.options import CaptureOptions, Credentials
from planner.capture.run import CaptureResult, capture_cluster
from planner.cluster.errors import CaptureError
from planner.cluster.load_manager import LoadManager
from planner.cluster.snapshot import Snapshot
from planner.formats.raw_capture.snapshot import snapshot_of_capture
from planner.formats.reading import read_snapshot
from tests.data.recorded_cluster import RECORDED, Cluster, Handler, ZooKeeper

Options = Callable[..., CaptureOptions]


def differing(one: Snapshot, other: Snapshot) -> set[str]:
    """Return the columns in which two snapshots differ, whatever order topics came in."""
    found = set()
    for part in ("brokers", "bundles", "topics"):
        left, right = getattr(one, part), getattr(other, part)
        orders = [np.argsort(t.name.to_numpy(zero_copy_only=False)) if part == "topics" else ... for t in (left, right)]
        for field in fields(left):
            columns = [np.asarray(getattr(table, field.name)) for table in (left, right)]
            a, b = (column[order] for column, order in zip(columns, orders, strict=True))
            if not np.array_equal(a, b, equal_nan=a.dtype.kind == "f"):
                found.add(f"{part}.{field.name}")
    return found


def warned(result: CaptureResult, text: str) -> bool:
    return any(text in warning for warning in result.snapshot.info.warnings)


def unknown(result: CaptureResult) -> list[str]:
    """Return the brokers whose load is unknown."""
    brokers = result.snapshot.brokers
    return [name for name, known in zip(brokers.name, brokers.has_load_data, strict=True) if not known]


def owners(snapshot: Snapshot) -> dict[str, str]:
    """Return the owner of each bundle, by name; empty for none."""
    names = (*snapshot.brokers.name, "")
    return {name: names[at] for name, at in zip(snapshot.bundle_names, snapshot.bundles.owner.tolist(), strict=True)}


def files_without(cluster: Cluster, *names: str) -> dict[str, bytes]:
    return {file: data for file, data in cluster.files.items() if file.partition(".")[0] not in names}


def test_a_capture_equals_what_the_brokers_answer(cluster: Cluster, options: Options) -> None:
    result = capture_cluster(options(cluster))
    expected = snapshot_of_capture(files_without(cluster, "zookeeper", "prometheus", "metrics"))
    assert differing(result.snapshot, expected) == set()
    assert result.snapshot.namespaces == expected.namespaces
    assert result.snapshot.policies == expected.policies
    assert result.snapshot.settings == expected.settings
    assert result.snapshot.info.cluster == "planner"
    assert result.snapshot.info.leader == expected.info.leader
    assert result.snapshot.bundles.averages_estimated.any()
    assert not result.missing


def test_the_leader_alone_is_asked_for_metrics(cluster: Cluster, options: Options) -> None:
    result = capture_cluster(options(cluster))
    asked = [part.file for part in result.parts if "broker-stats/metrics" in part.path]
    assert len(asked) == 1
    said = result.snapshot.info.leader_metrics
    assert said == {"unloaded": 0.0}
    assert read_snapshot(result.folder / "snapshot").info.leader_metrics == said
    assert not capture_cluster(options(cluster, metrics="off", out=result.folder / "off")).snapshot.info.leader_metrics


def test_both_folders_can_be_loaded(cluster: Cluster, options: Options) -> None:
    result = capture_cluster(options(cluster))
    stored = read_snapshot(result.folder / "snapshot")
    assert differing(stored, result.snapshot) == set()
    assert stored.info == result.snapshot.info
    assert differing(read_snapshot(result.folder / "raw"), result.snapshot) == set()


def test_averages_come_from_the_metadata_store(cluster: Cluster, zookeeper: ZooKeeper, options: Options) -> None:
    result = capture_cluster(options(cluster, metadata_store=zookeeper.address))
    expected = snapshot_of_capture(files_without(cluster, "prometheus", "metrics"))
    assert differing(result.snapshot, expected) == set()
    assert result.snapshot.policies == expected.policies
    reported = result.snapshot.bundles.has_data & ~np.isin(
        result.snapshot.bundles.namespace,
        [i for i, name in enumerate(result.snapshot.namespaces) if name.startswith("pulsar/")],
    )
    assert not result.snapshot.bundles.averages_estimated[reported].all()
    assert not np.isnan(result.snapshot.brokers.long_term_msg_rate_in_per_s).any()
    assert set(zookeeper.operations) <= {4, 8, 11, -11}, "something else than reading was asked of ZooKeeper"
    assert b"must not be read" not in (result.folder / "raw" / "zookeeper.json").read_bytes()


def test_the_extensible_load_manager_is_known_by_its_metrics(start: Callable[..., Cluster], options: Options) -> None:
    cluster = start("extensible")
    result = capture_cluster(options(cluster))
    expected = snapshot_of_capture(files_without(cluster, "zookeeper", "system-topics", "prometheus"))
    assert result.snapshot.info.load_manager is LoadManager.EXTENSIBLE
    assert differing(result.snapshot, expected) == {"brokers.updated_at_ms"}
    assert (result.snapshot.brokers.cpu_usage_percent > 0).all()
    assert not any("load-report" in path for path in cluster.paths())
    assert not any(path.startswith("/metrics") for path in cluster.paths()), "asked once, since it advances averages"
    assert warned(result, "take one more sample of weightedMaxEMA")


def test_metrics_off_is_said(start: Callable[..., Cluster], options: Options) -> None:
    result = capture_cluster(options(start("extensible"), metrics="off"))
    assert warned(result, "Metrics were not captured")
    assert not result.snapshot.brokers.has_load_data.any()


@pytest.mark.parametrize("metrics", ["prometheus", "template"])
def test_prometheus_gives_the_same_load(start: Callable[..., Cluster], options: Options, metrics: str) -> None:
    cluster = start("extensible")
    if metrics == "template":
        port = cluster.ids[RECORDED[1]].rpartition(":")[2]
        cluster.answers["", "/m"] = cluster.answers[RECORDED[1], "/metrics/"]
        only = json.dumps([cluster.ids[RECORDED[1]]]).encode()  # all others have the same host
        cluster.answers["", "/admin/v2/brokers"] = (200, only, "application/json")
        metrics = f"http://{{host}}:{port}/m"
    result = capture_cluster(options(cluster, metrics=metrics))
    assert result.snapshot.brokers.has_load_data.all()
    assert (result.snapshot.brokers.cpu_usage_percent > 0).all()


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"<html>log in</html>", "has no metric of its load"),
        (b"node_cpu_seconds_total 4\n", "has no metric of its load, such as pulsar_lb_cpu_usage"),
        (None, "cannot be reached"),
    ],
)
def test_metrics_that_are_none(start: Callable[..., Cluster], options: Options, body: bytes | None, said: str) -> None:
    """What a watch says when --metrics leads to a login page, to another exporter or nowhere."""
    cluster = start("extensible")
    cluster.answers["", "/elsewhere"] = (200, body or b"", "text/html")
    port = cluster.ids[RECORDED[1]].rpartition(":")[2] if body is not None else "1"
    result = capture_cluster(options(cluster, metrics=f"http://{{host}}:{port}/elsewhere"))
    assert not result.snapshot.brokers.has_load_data.any()
    assert warned(result, said), result.snapshot.info.warnings


def test_a_broker_whose_id_leads_nowhere_is_asked_where_it_is_said(cluster: Cluster, options: Options) -> None:
    """The id is the name of a pod, which resolves inside its network alone."""
    real, pod = cluster.ids[RECORDED[1]], "broker-1.pulsar.invalid:8080"
    cluster.answers = {
        (broker, path.replace(real, pod)): (status, body.replace(real.encode(), pod.encode()), kind)
        for (broker, path), (status, body, kind) in cluster.answers.items()
    }
    result = capture_cluster(options(cluster, broker_at=(f"{pod}=http://{real}/",)))
    assert pod in result.snapshot.brokers.name
    assert not unknown(result)
    assert not result.missing


def test_every_request_is_a_get_of_the_catalogue(cluster: Cluster, options: Options) -> None:
    capture_cluster(options(cluster, metrics="prometheus"))
    shapes = [re.compile(re.sub(r"\{\w+\}", "[^/]+", re.escape(r.path).replace(r"\{", "{").replace(r"\}", "}")))
              for r in CATALOGUE]  # fmt: skip
    for _, method, path, _ in cluster.asked:
        assert method == "GET"
        assert any(shape.fullmatch(path) for shape in shapes), path


def test_each_broker_is_asked_for_its_own_report(cluster: Cluster, options: Options) -> None:
    capture_cluster(options(cluster))
    for path in ("/admin/v2/broker-stats/load-report", "/admin/v2/broker-stats/topics"):
        assert [b for b, _, p, _ in sorted(cluster.asked, key=lambda a: a[0]) if p == path] == list(RECORDED)


def test_only_namespaces_that_are_wanted(cluster: Cluster, zookeeper: ZooKeeper, options: Options) -> None:
    wanted = ("acme/*", "globex/alerts")
    result = capture_cluster(options(cluster, namespaces=wanted, metadata_store=zookeeper.address))
    assert set(result.snapshot.namespaces) == {"acme/audit", "acme/clicks", "acme/orders", "globex/alerts"}
    assert warned(result, "Only namespaces that match acme/*, globex/alerts")
    assert "/admin/v2/tenants" not in cluster.paths()
    assert "/admin/v2/namespaces/globex" not in cluster.paths()
    for path in (result.folder / "raw").iterdir():
        if path.name not in {"index.json", "journal.jsonl", "isolation-policies.json", "zookeeper.json"}:
            assert b"telemetry" not in path.read_bytes(), path.name
    nodes = json.loads((result.folder / "raw" / "zookeeper.json").read_bytes())
    assert not [node["path"] for node in nodes if "telemetry" in node["path"]]
    whole = capture_cluster(options(cluster, out=result.folder / "whole", metadata_store=zookeeper.address))
    assert result.snapshot.brokers.msg_rate_in_per_s.tolist() == whole.snapshot.brokers.msg_rate_in_per_s.tolist()


def test_tenants_that_may_not_be_listed_are_found_by_their_bundles(cluster: Cluster, options: Options) -> None:
    cluster.answers["", "/admin/v2/tenants"] = (403, b'{"reason":"no"}', "application/json")
    result = capture_cluster(options(cluster))
    assert warned(result, "The tenants cannot be listed")
    assert warned(result, "tenants was refused 1 times with HTTP 403")
    assert {"acme/orders", "globex/telemetry"} <= set(result.snapshot.namespaces)
    assert len(result.snapshot.bundles) == len(
        capture_cluster(options(cluster, out=result.folder / "2")).snapshot.bundles
    )


def test_a_token_that_the_cluster_does_not_know_is_named(
    cluster: Cluster, zookeeper: ZooKeeper, options: Options
) -> None:
    """With a metadata store too: whoever gave the token believes that it is right."""
    for path in ("/admin/v2/brokers", "/admin/v2/clusters"):
        cluster.answers["", path] = (401, b"{}", "application/json")
    with pytest.raises(CaptureError, match="HTTP 401"):
        capture_cluster(options(cluster, metadata_store=zookeeper.address))


def test_without_a_superuser_the_metadata_store_is_enough(
    cluster: Cluster, zookeeper: ZooKeeper, options: Options
) -> None:
    """As Pulsar's own provider answers the admin of a tenant: only its namespaces may be asked for."""
    whole = capture_cluster(options(cluster, metadata_store=zookeeper.address))
    for broker in ("", *RECORDED):
        for request in CATALOGUE:
            if not {"{tenant}", "{namespace}"} & set(re.findall(r"{\w+}", request.path)) and request.name != "clusters":
                path = request.path.format(cluster="planner", broker=cluster.ids.get(broker, ""))
                cluster.answers[broker, path] = (401, b"{}", "application/json")
    asked = options(cluster, out=whole.folder / "again", metadata_store=zookeeper.address, namespaces=("acme/*",))
    result = capture_cluster(asked)
    assert warned(result, "The API refused the list of brokers")
    mine, theirs = result.snapshot, whole.snapshot
    assert set(mine.brokers.name) == set(theirs.brokers.name)
    assert mine.brokers.has_load_data.all()
    found, expected = map(owners, (mine, theirs))
    acme = {name: owner for name, owner in expected.items() if name.startswith("acme/")}
    assert len(set(acme.values())) > 1
    assert {name: found[name] for name in acme} == acme


def test_without_a_superuser_and_a_metadata_store_there_is_nothing(cluster: Cluster, options: Options) -> None:
    cluster.answers["", "/admin/v2/brokers"] = (401, b"{}", "application/json")
    with pytest.raises(CaptureError, match="HTTP 401"):
        capture_cluster(options(cluster))


def test_a_refused_endpoint_is_said(cluster: Cluster, options: Options) -> None:
    cluster.answers[RECORDED[1], "/admin/v2/broker-stats/load-report"] = (401, b"{}", "application/json")
    result = capture_cluster(options(cluster))
    assert warned(result, "load-report was refused 1 times with HTTP 401")
    assert warned(result, "returned no load report. Usage of cpu")
    assert unknown(result) == []  # the metrics stand in
    assert [(part.file.partition(".")[0], part.asked) for part in result.missing] == [
        ("load-report", cluster.url_of(RECORDED[1]))
    ]


def test_a_broker_that_left_is_said(cluster: Cluster, options: Options) -> None:
    names = list(cluster.ids.values())
    said = iter([names, names[:2]])
    cluster.special["", "/admin/v2/brokers"] = lambda h: h.give(200, json.dumps(next(said)).encode())
    cluster.stop(RECORDED[2])
    cluster.stop = lambda broker: Cluster.stop(cluster, broker) if broker != RECORDED[2] else None  # type: ignore[method-assign]
    result = capture_cluster(options(cluster))
    assert warned(result, f"Broker {names[2]} left during the capture")
    assert warned(result, f"Broker {names[2]} did not answer")
    assert unknown(result) == [names[2]]


def test_no_broker_answers_under_its_id(cluster: Cluster, options: Options) -> None:
    cluster.answers["", "/admin/v2/brokers"] = (200, b'["127.0.0.1:1"]', "application/json")
    with pytest.raises(CaptureError, match=r"No broker returned its load or its bundles.*cannot be reached"):
        capture_cluster(options(cluster, cluster="planner"))


def test_the_cluster_must_be_clear(cluster: Cluster, options: Options) -> None:
    for broker in RECORDED:
        cluster.answers[broker, "/admin/v2/brokers/configuration/runtime"] = (403, b"{}", "application/json")
    cluster.answers["", "/admin/v2/clusters"] = (200, b'["east","west","global"]', "application/json")
    with pytest.raises(CaptureError, match=r"is unknown \(east, west\).*--cluster"):
        capture_cluster(options(cluster))
    named = options(cluster, cluster="planner", out=Path(options(cluster).out).with_name("named"))
    assert capture_cluster(named).snapshot.info.cluster == "planner"


def test_parts_far_apart_are_said(cluster: Cluster, options: Options) -> None:
    def answer(handler: Handler) -> None:
        settings = {"clusterName": "planner", "loadBalancerReportUpdateMinIntervalMillis": "1"}
        handler.give(200, json.dumps(settings).encode())

    cluster.special["", "/admin/v2/brokers/configuration/runtime"] = answer
    assert warned(capture_cluster(options(cluster)), "longer than a report interval (0.001 s)")


def test_pulsars_own_bundles_and_partitions_are_said(cluster: Cluster, options: Options) -> None:
    result = capture_cluster(options(cluster))
    assert warned(result, "bundles are Pulsar's own")
    assert warned(result, "of the topics are partitions")


def test_no_isolation_policy_was_ever_set(cluster: Cluster, options: Options) -> None:
    path = "/admin/v2/clusters/planner/namespaceIsolationPolicies"
    cluster.answers["", path] = (404, b'{"reason":"NamespaceIsolationPolicies does not exist"}', "application/json")
    result = capture_cluster(options(cluster))
    assert not result.missing
    assert not warned(result, "isolation-policies")
    assert result.snapshot.policies.isolation == ()


def test_topics_can_be_left_out(cluster: Cluster, options: Options) -> None:
    result = capture_cluster(options(cluster, with_topics=False))
    assert len(result.snapshot.topics) == 0
    assert warned(result, "Topics were not captured")
    assert not any("broker-stats/topics" in path or "/persistent/" in path for path in cluster.paths())


def test_requests_at_once_are_bounded(cluster: Cluster, options: Options) -> None:
    result = capture_cluster(options(cluster, limits={"in_flight": 3, "in_flight_per_broker": 2}))
    assert cluster.most_in_flight <= 3
    assert result.most_in_flight <= 3
    assert result.requests == len(cluster.asked)


def test_a_busy_broker_is_asked_again(cluster: Cluster, options: Options) -> None:
    path = "/admin/v2/brokers/leaderBroker"
    good = cluster.answers["", path]
    said = iter([(503, b"", "text/plain"), (429, b"", "text/plain"), good])
    cluster.special["", path] = lambda h: h.give(*next(said))
    assert capture_cluster(options(cluster)).snapshot.info.leader
    assert cluster.paths().count(path) == 3


def test_what_is_not_there_is_asked_once(cluster: Cluster, options: Options) -> None:
    path = "/admin/v2/brokers/version"
    cluster.answers["", path] = (404, b"{}", "application/json")
    capture_cluster(options(cluster))
    assert cluster.paths().count(path) == 1


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"metrics": "sometimes"}, "--metrics"),
        ({"namespaces": ("acme",)}, "--namespaces"),
        ({"broker_url": "https://broker:8443"}, "--broker-url"),
        ({"broker_at": ("broker-1:8080",)}, "--broker-at"),
        ({"broker_at": ("broker-1:8080=ftp://here",)}, "--broker-at"),
        ({"metadata_store": "etcd:host:2379"}, "--metadata-store"),
        ({"metadata_store": "zk:host one"}, "--metadata-store"),
        ({"cluster": "../x"}, "--cluster"),
        ({"limits": {"in_flight": 0}}, "in_flight"),
        ({"credentials": Credentials(token_file=Path("no-such-file"))}, "no-such-file"),
    ],
)
def test_options_that_cannot_be_carried_out(
    cluster: Cluster, options: Options, changed: dict[str, Any], said: str
) -> None:
    with pytest.raises(CaptureError, match=re.escape(said)):
        capture_cluster(options(cluster, **changed))
    assert not cluster.asked or "metadata_store" in changed


@pytest.mark.parametrize(
    "url",
    ["broker:8080", "ftp://broker", "http://user:hunter2@broker:8080", "http://", "http://b:99999", "http://b/?t=1"],
)
def test_addresses_that_are_none(tmp_path: Path, url: str) -> None:
    with pytest.raises(CaptureError) as caught:
        capture_cluster(CaptureOptions(url, tmp_path))
    assert "hunter2" not in str(caught.value)
