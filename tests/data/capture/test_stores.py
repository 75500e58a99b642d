"""A metadata store is its file and one line of the registry: everything else asks the registry."""

import json
import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from planner.capture.answer_filter import NamespaceFilter
from planner.capture.catalogue import STORE_FOLDERS, StoreFolder
from planner.capture.options import CaptureOptions
from planner.capture.permissions import capture_permissions
from planner.capture.run import capture_cluster
from planner.capture.stores import registry
from planner.capture.stores.protocol import Dump, StoreKind
from planner.cluster.errors import CaptureError
from tests.data.recorded_cluster import Cluster

ROOT = Path(__file__).parent.parent.parent.parent
PATH = "/loadbalance/leader"


class ToyStore:
    """A store with one node."""

    def __init__(self, _options: CaptureOptions) -> None:
        self.closed = False

    def dump(self, cluster: str, wanted: NamespaceFilter, folders: tuple[StoreFolder, ...] = STORE_FOLDERS) -> Dump:
        assert (cluster, bool(wanted), len(folders)) == ("planner", False, len(STORE_FOLDERS))
        return Dump(({"path": PATH, "data": '{"brokerId": "127.0.0.1:18081"}'},), ("It is small.",))

    def close(self) -> None:
        self.closed = True


TOY = StoreKind("toy", "toy", re.compile(r"toy:https?://[-\w.:]+"), "toy:http://host:2379", ToyStore)


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    """One more store, added where a store is added."""
    monkeypatch.setattr(registry, "STORES", (*registry.STORES, TOY))


@pytest.mark.usefixtures("toy")
def test_another_store_is_captured_like_the_first(cluster: Cluster, options: Callable[..., CaptureOptions]) -> None:
    result = capture_cluster(options(cluster, metadata_store="toy:http://e1:2379"))
    dump = next(part for part in result.parts if part.file == "zookeeper.json")
    assert PATH in (result.folder / "raw" / dump.file).read_text()
    assert "It is small." in result.snapshot.info.warnings


def test_load_reports_are_read_last(
    cluster: Cluster, options: Callable[..., CaptureOptions], monkeypatch: pytest.MonkeyPatch
) -> None:
    report = "/loadbalance/brokers/127.0.0.1:18081"
    when_s, read_s = time.time() + 1.5, []

    class Reporting(ToyStore):
        def dump(self, cluster: str, wanted: NamespaceFilter, folders: tuple[StoreFolder, ...] = STORE_FOLDERS) -> Dump:
            if len(folders) < len(STORE_FOLDERS):
                read_s.append(time.time())
                return Dump(({"path": report, "data": '{"lastUpdate": 2}'},), ())
            first = super().dump(cluster, wanted, folders)
            return Dump((*first.nodes, {"path": report, "data": '{"lastUpdate": 1}'}), ())

    monkeypatch.setattr(registry, "STORES", (*registry.STORES, replace(TOY, open=Reporting)))
    result = capture_cluster(options(cluster, metadata_store="toy:http://e1:2379"), reports_at_s=when_s)
    assert read_s[0] >= when_s, "not before the moment that was asked for"
    nodes = json.loads((result.folder / "raw" / "zookeeper.json").read_text())
    assert {node["path"]: json.loads(node["data"]) for node in nodes} == {
        PATH: {"brokerId": "127.0.0.1:18081"},
        report: {"lastUpdate": 2},
    }, "as they are after the topics, which take long"


@pytest.mark.usefixtures("toy")
def test_addresses_of_a_store_are_checked_by_its_kind() -> None:
    assert registry.kind_of("zk:zk-1:2181").name == "ZooKeeper"
    assert registry.kind_of("toy:http://e1:2379") is TOY
    for address, words in (
        ("toy:///", "not an address of toy"),
        ("zk:", "ZooKeeper"),
        ("rocksdb:x", "ZooKeeper and etcd and toy"),
    ):
        with pytest.raises(CaptureError, match=words):
            registry.kind_of(address)


def test_pages_may_ask_the_stores_that_are_listed() -> None:
    allowed = capture_permissions({"PLANNER_ALLOW_CAPTURE": "http://b:8080,zk:zk-1:2181,zk-2:2181 zk:other:2181/root"})
    assert allowed.stores == ("zk:zk-1:2181,zk-2:2181", "zk:other:2181/root")


def test_a_store_is_named_in_its_file_and_the_registry_alone() -> None:
    home = ROOT / "planner" / "capture" / "stores"
    for path in (ROOT / "planner" / "capture").rglob("*.py"):
        if path.parent != home:
            assert not re.search(r"kazoo|ZooKeeper|\bzk:(?!host)", path.read_text(encoding="utf-8")), path
