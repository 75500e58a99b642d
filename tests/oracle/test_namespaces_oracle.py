"""Asks Pulsar's own map of bundles how many topics each bundle of random namespaces has, with names of every kind."""

import random
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from planner.cluster.errors import FormatError
from planner.cluster.hashing import topic_hash
from planner.cluster.load_manager import LoadManager
from planner.cluster.ranges import bundle_name, bundles_of_hashes, equal_boundaries
from planner.cluster.releases import REFERENCE, release
from planner.cluster.settings import Settings
from planner.cluster.snapshot import Snapshot, SnapshotInfo
from planner.cluster.tables import make_brokers, make_bundles, make_topics
from planner.cluster.topic_names import FOUR_PARTS, SCALABLE, full_topic_name, namespace_of_topic
from planner.namespaces.counts import count_rows, topics_of
from planner.namespaces.population import population_of
from tests.oracle.cases import Case, case, seeded
from tests.oracle.harness import Oracle, available

pytestmark = [pytest.mark.oracle, pytest.mark.timeout(3600)]

ASKED = (REFERENCE.name, "3.0.7", "3.3.5", "4.0.8", "5.0.0-M1")  # one of each line
DOMAINS = ("persistent", "persistent", "non-persistent", "Persistent", "NON-persistent")
SCALED = ("topic", "segment", "TOPIC")
SPACES = ("t/n", "Tenant/NS", "a-b/c.d_e=1", "prop/cluster/ns", "Prop/Cluster-1/N.s")
NAMES = ("x", "ü", "订单", "Straße ", "emoji-🦊", "a b", "a+b%2F", "-partition-", "İ", "x.y=z", "КАПС")


@pytest.fixture(scope="module", params=ASKED)
def map_of_bundles(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Oracle:
    if not available():
        pytest.skip("Java and Maven are needed")
    return Oracle(tmp_path_factory.mktemp("oracle"), str(request.param))


def spaces_of(version: str) -> list[str]:
    """Those that a release has: newer ones have none with a cluster (V1)."""
    found = []
    for space in SPACES:
        with suppress(FormatError):
            found += [space] if namespace_of_topic(f"persistent://{space}/x", release(version)) == space else []
    return found


def domains_of(version: str) -> tuple[str, ...]:
    """Those that a release has, some in capitals."""
    return (*DOMAINS, *SCALED) if release(version).has(SCALABLE) else DOMAINS


def random_namespace(rng: random.Random, number: int, spaces: Sequence[str], domains: Sequence[str]) -> Case:
    """A namespace of a few dozen topics, some of them partitions, some not persistent; V1 where it has a cluster."""
    space = rng.choice(spaces)
    topics: dict[str, None] = {}
    for _ in range(rng.randrange(1, 12)):
        domain = rng.choice(domains)
        full = f"{domain}://{space}/{rng.choice(NAMES)}{rng.choice(('', rng.randrange(10**6)))}"
        full += "/0000-7fff-12" if domain == "segment" else ""
        partitions = rng.choice((0, 0, 1, 3, 8)) if domain in DOMAINS else 0
        topics |= dict.fromkeys(f"{full}-partition-{at}" for at in range(partitions)) if partitions else {full: None}
    bundles = rng.choice((1, 2, 3, 4, 7, 12, 64, 1000))
    return case("topic_to_bundle", number, {"namespace": space, "topics": list(topics), "numBundles": bundles})


def cluster(given: Any, version: str) -> Snapshot:
    """The namespace as a snapshot has it."""
    decides = release(version)
    edges = np.array(equal_boundaries(given["numBundles"]))
    names = [full_topic_name(name, release=decides) for name in given["topics"]]
    hashes = np.array([topic_hash(name) for name in names], dtype=np.int64)
    bundle = bundles_of_hashes(edges, hashes)
    topics = make_topics(hashes.astype(np.uint32), name=pa.array(names, pa.large_string()), bundle=bundle)
    bundles = make_bundles(edges[:-1], high=edges[1:], namespace=0, owner=0)
    info = SnapshotInfo("test", LoadManager.MODULAR, 0, pulsar_version=version)
    return Snapshot(info, Settings({}, decides), make_brokers(["b1:8080"]), (given["namespace"],), bundles, topics)


def test_bundles_have_as_many_topics_as_in_the_map_of_pulsar(map_of_bundles: Oracle) -> None:
    rng, spaces = seeded(), spaces_of(map_of_bundles.version)
    domains = domains_of(map_of_bundles.version)
    cases = [random_namespace(rng, number, spaces, domains) for number in range(1000)]
    seen = Counter[str]()
    seen_domains = Counter[str]()
    for asked, answer in zip(cases, map_of_bundles(cases), strict=True):
        given = asked["input"]
        space, bundles = given["namespace"], given["numBundles"]
        assert not [one for one in answer["assignments"] if "error" in one], given
        owned = Counter(one["bundle"] for one in answer["assignments"])
        edges = equal_boundaries(bundles)
        expected = [owned[bundle_name(space, low, high)] for low, high in pairwise(edges)]
        population = population_of(cluster(given, map_of_bundles.version), space)
        assert topics_of(population, edges).tolist() == expected, given
        (row,) = count_rows(population, [bundles], 3)
        assert (row.topics_most, row.empty) == (max(expected), expected.count(0))
        seen[space] += 1
        seen_domains.update(one.partition(":")[0] for one in given["topics"])
    assert set(seen) == set(spaces)
    assert set(seen_domains) == set(domains)
    assert (len(spaces) == len(SPACES)) == release(map_of_bundles.version).has(FOUR_PARTS)
