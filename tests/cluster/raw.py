"""Raw answers of the real cluster in the layout of a raw capture, gathered without the planner's own capture."""

import json
import time
from collections.abc import Mapping
from typing import Any

from planner.cluster.snapshot import Snapshot
from planner.formats.raw_capture.snapshot import snapshot_of_capture
from tests.cluster.launch import Cluster

_METADATA = ("/loadbalance", "/namespace", "/admin/local-policies", "/admin/policies", "/admin/configuration")


class _Files:
    """Answers as they come, and the index of them."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.files: dict[str, bytes] = {}
        self.index: list[dict[str, Any]] = []

    def ask(self, stem: str, path: str, broker: int) -> None:
        answer = self.cluster.admin(broker).send(path)
        name = f"{stem}.json"
        self.files[name] = answer.body
        line = {"file": name, "path": path, "asked": self.cluster.brokers[broker].url}
        self.index.append({**line, "status": answer.status, "time_ms": answer.time_ms})

    def put(self, name: str, content: object, path: str, asked: str) -> None:
        self.files[name] = json.dumps(content).encode()
        self.index.append({"file": name, "path": path, "asked": asked, "time_ms": time.time_ns() // 1_000_000})


def raw_capture(cluster: Cluster, namespaces: list[str], system_topics: object = None) -> dict[str, bytes]:
    """Return what the brokers and the metadata store answer now, by file name.

    Args:
        cluster: The cluster.
        namespaces: Namespaces whose topics and policies are wanted; bundles and owners are those of all.
        system_topics: What `system_topics.read` returned, for the extensible load manager.
    """
    files = _Files(cluster)
    numbers = [i for i, broker in enumerate(cluster.brokers) if broker.process.poll() is None]
    one = numbers[0]
    files.ask("brokers", f"/admin/v2/brokers/{cluster.name}", one)
    files.ask("leader", "/admin/v2/brokers/leaderBroker", one)
    files.ask("version", "/admin/v2/brokers/version", one)
    files.ask("dynamic-config-values", "/admin/v2/brokers/configuration/values", one)
    files.ask("isolation-policies", f"/admin/v2/clusters/{cluster.name}/namespaceIsolationPolicies", one)
    files.ask("failure-domains", f"/admin/v2/clusters/{cluster.name}/failureDomains", one)
    for namespace in namespaces:
        stem = namespace.replace("/", "-")
        files.ask(f"bundles.{stem}", f"/admin/v2/namespaces/{namespace}/bundles", one)
        files.ask(f"persistent-topics.{stem}", f"/admin/v2/persistent/{namespace}", one)
        files.ask(f"partitioned-topics.{stem}", f"/admin/v2/persistent/{namespace}/partitioned", one)
    for number in numbers:
        tag = f"b{number + 1}"
        broker = cluster.brokers[number]
        files.ask(f"runtime-config.{tag}", "/admin/v2/brokers/configuration/runtime", number)
        files.ask(f"topics.{tag}", "/admin/v2/broker-stats/topics", number)
        files.ask(f"owned.{tag}", f"/admin/v2/brokers/{cluster.name}/{broker.id}/ownedNamespaces", number)
        files.ask(f"load-report.{tag}", "/admin/v2/broker-stats/load-report", number)
    if system_topics is not None:
        files.put("system-topics.json", system_topics, "", "pulsar client")
    files.put("zookeeper.json", cluster.metadata(*_METADATA), " ".join(_METADATA), "zookeeper")
    files.files["index.json"] = json.dumps(files.index).encode()
    return files.files


def snapshot_now(cluster: Cluster, namespaces: list[str], system_topics: object = None) -> Snapshot:
    """Return the snapshot that the answers of this moment make."""
    return snapshot_of_capture(raw_capture(cluster, namespaces, system_topics))


def rewound(files: Mapping[str, bytes], system_topics: object, at_ms: int) -> Snapshot:
    """Return the snapshot of a capture at a moment soon after it, of which the system topics tell."""
    index = json.loads(files["index.json"])
    next(line for line in index if line["file"] == "system-topics.json")["time_ms"] = at_ms
    later = {"system-topics.json": json.dumps(system_topics).encode(), "index.json": json.dumps(index).encode()}
    return snapshot_of_capture({**files, **later})
