"""A real etcd gives a capture what was put into it, with and without a login."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from planner.capture.answer_filter import NamespaceFilter
from planner.capture.options import CaptureOptions, Credentials
from planner.capture.stores.etcd import EtcdStore
from planner.cluster.errors import CaptureError
from tests.cluster.etcd import SECRET, Etcd, running_etcd

pytestmark = pytest.mark.cluster
NODES = {
    "/loadbalance/leader": '{"brokerId": "b-1:8080"}',
    **{f"/loadbalance/brokers/b-{at}:8080": json.dumps({"at": at}) for at in range(700)},
    "/loadbalance/brokerage": "not a child of brokers",
    "/loadbalance/bundle-data/acme/orders/0x00000000_0xffffffff": '{"topics": 3}',
    "/loadbalance/bundle-data/globex/x/0x00000000_0xffffffff": '{"topics": 4}',
    "/admin/policies/acme/orders": "{}",
}


@pytest.fixture
def etcd(tmp_path: Path) -> Iterator[Etcd]:
    with running_etcd(tmp_path) as found:
        for key, value in NODES.items():
            found.put(key, value)
        yield found


def test_a_real_etcd_is_read(etcd: Etcd, tmp_path: Path) -> None:
    asked = CaptureOptions("http://b-1:8080", metadata_store=f"etcd:{etcd.url}")
    with closing(EtcdStore(asked)) as store:
        everything = store.dump("planner", NamespaceFilter(()))
        some = store.dump("planner", NamespaceFilter(("acme/*",)))
    expected = {path: data for path, data in NODES.items() if path != "/loadbalance/brokerage"}
    assert {node["path"]: node["data"] for node in everything.nodes} == expected
    assert {node["path"] for node in some.nodes} == {path for path in expected if "globex" not in path}
    assert not everything.notes

    etcd.require_login()
    login = tmp_path / "login"
    login.write_text(f"reader:{SECRET}\n")
    with closing(EtcdStore(CaptureOptions(asked.admin_url, metadata_store=asked.metadata_store))) as store:
        denied = store.dump("planner", NamespaceFilter(()))
    assert not denied.nodes
    assert all("denies access" in note for note in denied.notes)
    known = CaptureOptions(
        asked.admin_url, metadata_store=asked.metadata_store, credentials=Credentials(store_auth_file=login)
    )
    with closing(EtcdStore(known)) as store:
        assert len(store.dump("planner", NamespaceFilter(())).nodes) == len(expected)
    login.write_text("reader:wrong\n")
    with pytest.raises(CaptureError, match="etcd refused the login"):
        EtcdStore(known)
