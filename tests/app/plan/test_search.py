"""A name is found whether the snapshot lists it or not."""

from dataclasses import replace

import pytest

from planner.cluster.hashing import topic_hash
from planner.cluster.snapshot import Snapshot
from planner.explain.search import Place, search


def test_a_listed_topic(small: Snapshot) -> None:
    for row in (0, 7, len(small.topics) - 1):
        name = small.topics.name[row].as_py()
        (found,) = search(small, name)
        bundle = int(small.topics.bundle[row])
        assert (found.kind, found.listed, found.topic_hash) == ("topic", True, int(small.topics.hash[row]))
        assert found.bundle == small.bundle_names[bundle]
        assert found.broker == small.brokers.name[int(small.bundles.owner[bundle])]


def test_a_topic_that_nobody_lists_is_hashed(small: Snapshot) -> None:
    name = f"persistent://{small.namespaces[0]}/order-12"
    (found,) = search(small, name)
    assert (found.listed, found.topic_hash) == (False, topic_hash(name))
    low, high = (int(end, 16) for end in found.bundle.rpartition("/")[2].split("_"))
    assert low <= topic_hash(name) <= high
    assert search(small, name.removeprefix("persistent://")) == (found,)


def test_a_bundle_a_namespace_a_broker(small: Snapshot) -> None:
    bundle, broker = small.bundle_names[3], small.brokers.name[1]
    assert search(small, f" {bundle} ")[0].kind == "bundle"
    assert search(small, small.namespaces[0]) == (Place("namespace", small.namespaces[0], small.namespaces[0]),)
    assert search(small, broker) == (Place("broker", broker, broker=broker),)


def test_a_part_of_names(small: Snapshot) -> None:
    assert [found.name for found in search(small, "BROKER-1")] == [small.brokers.name[1]]
    assert {found.kind for found in search(small, "stream-0")} == {"topic"}


@pytest.mark.parametrize("text", ["", "  ", "no/such/topic", "x" * 400, "0x00000000_0xffffffff"])
def test_nothing(small: Snapshot, text: str) -> None:
    assert search(small, text) == ()


def test_the_hash_that_has_no_bundle_in_pulsar(small: Snapshot) -> None:
    namespaces = ("acme/orders", *small.namespaces[1:])
    renamed = replace(small, namespaces=namespaces)
    name = "persistent://acme/orders/3qqmw8aa"
    (found,) = search(renamed, name)
    assert (found.topic_hash, found.bundle, found.listed) == (0xFFFFFFFF, "", False)
