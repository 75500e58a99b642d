"""Whatever format a cluster goes through, it comes back the same."""

import io
import tempfile
import zlib
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planner.cluster.digest import snapshot_digest
from planner.cluster.load_manager import LoadManager
from planner.cluster.moments import LAST_MS
from planner.cluster.ranges import FULL_HIGH
from planner.cluster.releases import release
from planner.cluster.settings import Settings
from planner.cluster.snapshot import DispatchRate, DispatchRatePolicy, IsolationPolicy, Policies, Snapshot, SnapshotInfo
from planner.cluster.tables import (
    BrokerTable,
    BundleTable,
    ColumnInfo,
    TopicTable,
    column_info,
    make_brokers,
    make_bundles,
    make_topics,
)
from planner.formats.archive import write_zip
from planner.formats.document import write_document
from planner.formats.folder import write_folder
from planner.formats.reading import read_snapshot, read_upload
from planner.formats.rows import bundle_of_topics
from planner.formats.validate import validate
from planner.history.day_writer import DayWriter
from planner.history.days import snapshot_at
from planner.history.manifest import DayManifest, day_folder, day_of
from planner.history.watched import HistoryFolder
from planner.simulate.cluster_spec import ClusterSpec
from planner.simulate.generate import generate

TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc", "Cf"]), max_size=12)
LINE = st.text(
    st.characters(min_codepoint=33, max_codepoint=0x2FFF, exclude_categories=["Cs", "Cc", "Cf", "Zs"]),
    min_size=1,
    max_size=8,
)
RATES = st.one_of(
    st.just(0.0), st.floats(0, 1e18, allow_subnormal=True), st.just(-0.0), st.integers(0, 10**6).map(float)
)


def cells(info: ColumnInfo, name: str) -> st.SearchStrategy[Any]:
    if info.kind == "bool":
        return st.booleans()
    if info.kind == "text":
        return st.sampled_from(["", "4.2.4", "org.apache.X"])
    if info.kind == "float":
        limits = st.one_of(st.sampled_from([0.0, -1000.0]), st.floats(1e-18, 1e18))
        some = limits if "_limit_" in name else RATES
        return st.one_of(some, st.just(float("nan"))) if info.may_be_unknown else some
    least = min(0, int(info.default))
    small = info.kind == "id" or info.unit in {"topics", "producers", "consumers"}
    most = LAST_MS if info.name.endswith("_at_ms") else 2**31 - 1 if small else 2**63 - 1
    return st.integers(least, most)


def columns(draw: Any, table: type, size: int, without: set[str]) -> dict[str, Any]:
    chosen = [info for info in column_info(table) if info.name not in without and draw(st.booleans())]
    return {i.name: draw(st.lists(cells(i, i.name), min_size=size, max_size=size)) for i in chosen}


POLICIES = st.builds(
    Policies,
    isolation=st.lists(
        st.builds(
            IsolationPolicy,
            LINE,
            st.tuples(st.just(r"acme/.*")),
            st.lists(st.just(r"broker-\d+\..*"), max_size=2).map(tuple),
            st.lists(st.just(".*"), max_size=2).map(tuple),
            st.integers(0, 9),
            st.integers(0, 100),
        ),
        max_size=2,
    ).map(tuple),
    anti_affinity_group=st.dictionaries(st.sampled_from(["a/b", "c/d"]), LINE),
    failure_domains=st.dictionaries(LINE, st.lists(LINE, max_size=2).map(tuple), max_size=2),
    dispatch_rates=st.lists(
        st.builds(
            DispatchRatePolicy,
            st.sampled_from(["dispatch", "subscription", "replicator"]),
            st.sampled_from(["a/b", "persistent://a/b/c"]),
            st.builds(
                DispatchRate, st.integers(-1, 2**31 - 1), st.integers(-1, 2**63 - 1), st.integers(1, 60), st.booleans()
            ),
            st.sampled_from(["", "sub"]),
            st.booleans(),
        ),
        max_size=2,
    ).map(tuple),
)
SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        "loadBalancerEnabled": st.booleans(),
        "loadBalancerBrokerOverloadedThresholdPercentage": st.integers(1, 100),
        "loadBalancerHistoryResourcePercentage": st.floats(0, 1),
        "loadBalancerOverrideBrokerNicSpeedGbps": st.one_of(st.none(), st.floats(0.1, 100)),
        "loadBalancerSheddingExcludedNamespaces": st.lists(st.sampled_from(["a/b", "c/d"]), max_size=2),
        "loadBalancerLoadSheddingStrategy": st.just("com.example.Own"),
    },
)


@st.composite
def clusters(draw: Any) -> Snapshot:
    """Any cluster that the validator lets pass, however odd."""
    brokers = draw(st.lists(st.sampled_from(["b-1:80", "b-2:80", "[::1]:8080", "10.0.0.1:1"]), min_size=1, unique=True))
    namespaces = draw(st.lists(st.sampled_from(["t/n", "acme/orders", "pulsar/b-1:80"]), min_size=1, unique=True))
    rows = []
    for place in range(len(namespaces)):
        cuts = draw(st.sets(st.integers(1, FULL_HIGH - 1), max_size=3))
        rows += [(place, *pair) for pair in pairwise([0, *sorted(cuts), FULL_HIGH])]
    rows = draw(st.permutations(rows))
    bundles = make_bundles(
        [low for _, low, _ in rows],
        high=[high for _, _, high in rows],
        namespace=[place for place, _, _ in rows],
        owner=draw(st.lists(st.integers(-1, len(brokers) - 1), min_size=len(rows), max_size=len(rows))),
        **columns(draw, BundleTable, len(rows), {"low", "high", "namespace", "owner"}),
    )
    locals_ = draw(st.lists(LINE, max_size=6, unique=True))
    names = [
        f"{draw(st.sampled_from(['persistent', 'non-persistent']))}://{draw(st.sampled_from(namespaces))}/{n}"
        for n in locals_
    ]
    names = [n for n in names if zlib.crc32(n.encode()) != FULL_HIGH]
    hashes = np.array([zlib.crc32(n.encode()) for n in names], dtype=np.uint32)
    version = draw(st.sampled_from(["4.2.4", "4.0.8", "3.0.0"]))
    return Snapshot(
        info=SnapshotInfo(
            cluster=draw(LINE),
            load_manager=draw(st.sampled_from(LoadManager)),
            captured_at_ms=draw(st.integers(0, LAST_MS)),
            pulsar_version=version,
            leader=draw(st.sampled_from(["", brokers[0]])),
            source=draw(TEXT),
            description=draw(TEXT),
            warnings=tuple(draw(st.lists(TEXT, max_size=2))),
        ),
        settings=Settings(draw(SETTINGS), release(version)),
        brokers=make_brokers(tuple(brokers), **columns(draw, BrokerTable, len(brokers), {"name"})),
        namespaces=tuple(namespaces),
        bundles=bundles,
        topics=make_topics(
            hashes,
            name=pa.array(names, type=pa.large_string()),
            bundle=bundle_of_topics(names, hashes, bundles, namespaces),
            **columns(draw, TopicTable, len(names), {"name", "hash", "bundle"}),
        ),
        policies=draw(POLICIES),
    )


def through_folder(snapshot: Snapshot) -> Snapshot:
    with tempfile.TemporaryDirectory() as folder:
        write_folder(snapshot, Path(folder) / "snapshot")
        return read_snapshot(Path(folder) / "snapshot")


def through_zip(snapshot: Snapshot) -> Snapshot:
    target = io.BytesIO()
    write_zip(snapshot, target)
    return read_upload("snapshot.zip", target)


def through_document(snapshot: Snapshot) -> Snapshot:
    return read_upload("snapshot.json", io.BytesIO(write_document(snapshot).encode()))


def through_segment(snapshot: Snapshot) -> Snapshot:
    with tempfile.TemporaryDirectory() as root:
        segment = HistoryFolder(Path(root), 1 << 40).add(snapshot)
        return snapshot_at(segment.parent, snapshot.info.captured_at_ms)


def through_run(snapshot: Snapshot) -> Snapshot:
    cluster, at = snapshot.info.cluster, snapshot.info.captured_at_ms
    day = day_of(at)
    manifest = DayManifest(
        cluster=cluster, day=day, made_by="generate", interval_ms=1, moments=0, first_ms=0, last_ms=0, parts={}
    )
    with tempfile.TemporaryDirectory() as root:
        with DayWriter(Path(root), cluster, day) as writer:
            writer.add(snapshot)
            writer.commit(manifest)
        return snapshot_at(day_folder(Path(root), cluster, day), at)


TIMELESS = [through_folder, through_zip, through_document]
ROADS = [*TIMELESS, through_segment, through_run]


def assert_same(one: Snapshot, other: Snapshot) -> None:
    assert other.info == one.info
    assert other.settings == one.settings
    assert other.settings.release == one.settings.release
    assert other.policies == one.policies
    assert other.bundle_names == one.bundle_names
    assert snapshot_digest(other) == snapshot_digest(one)
    for part in ("brokers", "bundles", "topics"):
        for column in column_info(type(getattr(one, part))):
            mine, yours = (getattr(getattr(s, part), column.name) for s in (one, other))
            if isinstance(mine, np.ndarray) and column.name != "namespace":
                assert mine.dtype == yours.dtype
                np.testing.assert_array_equal(yours, mine, err_msg=column.name)
                assert not yours.flags.writeable


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(clusters())
def test_any_cluster_survives_every_format(snapshot: Snapshot) -> None:
    validate(snapshot)
    for road in ROADS if snapshot.info.captured_at_ms else TIMELESS:
        assert_same(snapshot, road(snapshot))


@pytest.mark.parametrize("road", ROADS)
def test_a_generated_cluster_survives(road: Callable[[Snapshot], Snapshot]) -> None:
    snapshot = generate(ClusterSpec(brokers=20, bundles=500, topics=3_000, load_manager=LoadManager.EXTENSIBLE), 3)
    assert_same(snapshot, road(snapshot))


@pytest.mark.parametrize("road", ROADS)
def test_topics_are_optional(cluster: Snapshot, road: Callable[[Snapshot], Snapshot]) -> None:
    assert_same(bare := replace(cluster, topics=make_topics()), road(bare))


def test_the_same_snapshot_gives_the_same_bytes(cluster: Snapshot) -> None:
    one, two = io.BytesIO(), io.BytesIO()
    write_zip(cluster, one)
    write_zip(cluster, two)
    assert one.getvalue() == two.getvalue()


def test_a_zip_can_be_written_to_what_cannot_seek(cluster: Snapshot) -> None:
    class Pipe(io.RawIOBase):
        def __init__(self) -> None:
            self.written = bytearray()

        def writable(self) -> bool:
            return True

        def write(self, data: Any) -> int:
            self.written += data
            return len(data)

    pipe = Pipe()
    write_zip(cluster, pipe)  # type: ignore[arg-type]
    assert snapshot_digest(read_upload("x.zip", io.BytesIO(bytes(pipe.written)))) == snapshot_digest(cluster)
