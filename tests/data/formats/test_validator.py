"""What no cluster could have answered is refused, and the message says where."""

import zlib
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.cluster.errors import SnapshotError, Violation
from planner.cluster.load_manager import LoadManager
from planner.cluster.moments import LAST_MS
from planner.cluster.ranges import FULL_HIGH, HASH_SPACE
from planner.cluster.settings import Settings
from planner.cluster.snapshot import DispatchRate, DispatchRatePolicy, IsolationPolicy, Policies, Snapshot, SnapshotInfo
from planner.cluster.tables import make_brokers, make_bundles, make_topics
from planner.formats.validate import validate

Change = Callable[..., Snapshot]


def violations(snapshot: Snapshot) -> tuple[Violation, ...]:
    with pytest.raises(SnapshotError) as caught:
        validate(snapshot)
    return caught.value.violations


def of_ranges(ranges: list[tuple[int, int]]) -> Snapshot:
    """One namespace with these ranges."""
    return Snapshot(
        SnapshotInfo("c", LoadManager.MODULAR, 0),
        Settings(),
        make_brokers(("b:1",)),
        ("t/n",),
        make_bundles([low for low, _ in ranges], high=[high for _, high in ranges], namespace=0),
        make_topics(),
    )


def test_a_generated_cluster_is_fine(cluster: Snapshot) -> None:
    validate(cluster)


class TestRanges:
    def test_overlap_names_both_rows(self) -> None:
        (found,) = violations(of_ranges([(0, 0x8000_0000), (0x4000_0000, FULL_HIGH)]))
        assert (found.file, found.row) == ("bundles", 2)
        assert "t/n/0x40000000_0xffffffff overlaps t/n/0x00000000_0x80000000 of row 1" in found.what

    def test_overlap_with_a_row_that_is_not_the_neighbour(self) -> None:
        (found,) = violations(of_ranges([(0x20, 0x30), (0, 0x1000), (0x1000, FULL_HIGH)]))
        assert (found.row, "of row 2" in found.what) == (1, True)
        rows = {v.row for v in violations(of_ranges([(0, FULL_HIGH), (0x10, 0x20), (0x20, 0x30)]))}
        assert rows == {2, 3}

    def test_hole_names_both_rows(self) -> None:
        (found,) = violations(of_ranges([(0x8000_0000, FULL_HIGH), (0, 0x4000_0000)]))
        assert found.row == 1
        assert "No bundle covers 0x40000000_0x80000000 of t/n, between row 2 and row 1" in found.what

    def test_hole_at_either_end(self) -> None:
        before, after = violations(of_ranges([(0x10, 0x20)]))
        assert "0x00000000_0x00000010 of t/n, before row 1" in before.what
        assert "0x00000020_0xffffffff of t/n, after row 1" in after.what

    def test_hole_at_the_end_behind_a_long_bundle(self) -> None:
        found = violations(of_ranges([(0, 0x1000), (0x10, 0x20)]))
        assert [v.what.split(".")[0] for v in found][-1] == "No bundle covers 0x00001000_0xffffffff of t/n, after row 1"

    def test_duplicate(self) -> None:
        (found,) = violations(of_ranges([(0, FULL_HIGH), (0, FULL_HIGH)]))
        assert "t/n/0x00000000_0xffffffff is listed twice, also in row 1" in found.what

    @pytest.mark.parametrize(("low", "high"), [(-1, 5), (0, 1 << 32), (5, 5), (6, 5)])
    def test_impossible_range(self, low: int, high: int) -> None:
        (found,) = violations(of_ranges([(low, high)]))
        assert found.row == 1
        assert "32 bits" in found.what or "empty" in found.what

    def test_one_namespace_does_not_mend_another(self) -> None:
        snapshot = of_ranges([(0, 0x8000_0000), (0x8000_0000, FULL_HIGH)])
        parted = replace(
            snapshot, namespaces=("t/n", "t/m"), bundles=replace(snapshot.bundles, namespace=np.array([0, 1], np.int32))
        )
        assert len(violations(parted)) == 2

    @given(st.sets(st.integers(1, FULL_HIGH - 1), max_size=12), st.randoms(use_true_random=False), st.data())
    def test_tilings_pass_and_any_shift_fails(self, cuts: set[int], random: Any, data: st.DataObject) -> None:
        edges = [0, *sorted(cuts), FULL_HIGH]
        ranges = list(pairwise(edges))
        random.shuffle(ranges)
        validate(of_ranges(ranges))
        row = data.draw(st.integers(0, len(ranges) - 1))
        low, high = ranges[row]
        end = data.draw(st.integers(0, HASH_SPACE - 1).filter(lambda e: e != high))
        broken = [*ranges[:row], (low, end), *ranges[row + 1 :]]
        violations(of_ranges(broken))


class TestReferences:
    @pytest.mark.parametrize("owner", [3, 99, -2])
    def test_owner_that_does_not_exist(self, cluster: Snapshot, changed: Change, owner: int) -> None:
        (found,) = violations(changed(cluster, "bundles", 4, owner=owner))
        assert (found.file, found.row) == ("bundles", 5)
        assert f"broker number {owner + 1}; there are 3" in found.what

    def test_namespace_that_does_not_exist(self, cluster: Snapshot, changed: Change) -> None:
        assert violations(changed(cluster, "bundles", 0, namespace=2))[0].row == 1

    def test_namespace_without_bundle(self, cluster: Snapshot) -> None:
        assert "'a/b' has no bundle" in violations(replace(cluster, namespaces=(*cluster.namespaces, "a/b")))[0].what


class TestNames:
    @pytest.mark.parametrize(
        "name",
        [
            "",
            "b",
            "b:",
            ":80",
            "b:0",
            "b:65536",
            "b:80 ",
            "http://b:80",
            "b\n:80",
            "b/c:80",
            "b:\uff18\uff10",
            "\ud800:1",
        ],
    )
    def test_broker(self, cluster: Snapshot, changed: Change, name: str) -> None:
        (found,) = violations(changed(cluster, "brokers", 1, name=name))
        assert (found.file, found.row) == ("brokers", 2)

    @pytest.mark.parametrize(
        "name", ["b:1", "10.0.0.1:8080", "[::1]:8443", "pulsar-broker_0.ns.svc:65535", "fe80::1:80"]
    )
    def test_broker_as_pulsar_writes_them(self, cluster: Snapshot, changed: Change, name: str) -> None:
        validate(changed(cluster, "brokers", 1, name=name))

    def test_broker_twice(self, cluster: Snapshot, changed: Change) -> None:
        (found,) = violations(changed(cluster, "brokers", 2, name=cluster.brokers.name[0]))
        assert (found.row, "first in row 1" in found.what) == (3, True)

    def test_no_broker(self) -> None:
        snapshot = replace(of_ranges([(0, FULL_HIGH)]), brokers=make_brokers(()))
        assert "There is no broker" in violations(snapshot)[0].what

    @pytest.mark.parametrize("name", ["", "a", "a/b/c", "a/", "/b", "a b/c", "a/b\n", "ä/b", "a/b?"])
    def test_namespace(self, name: str) -> None:
        (found,) = violations(replace(of_ranges([(0, FULL_HIGH)]), namespaces=(name,)))
        assert (found.file, found.row) == ("bundles", 1)

    @pytest.mark.parametrize(
        "name",
        ["pulsar/127.0.0.1:8080", "sla-monitor/b:8080", "pulsar/cluster/b:8080", "public/default", "a=b/c_d.e-f"],
    )
    def test_namespace_as_pulsar_writes_them(self, name: str) -> None:
        validate(replace(of_ranges([(0, FULL_HIGH)]), namespaces=(name,)))

    def test_namespace_twice(self) -> None:
        snapshot = of_ranges([(0, FULL_HIGH), (0, FULL_HIGH)])
        twice = replace(
            snapshot, namespaces=("t/n", "t/n"), bundles=replace(snapshot.bundles, namespace=np.array([0, 1], np.int32))
        )
        assert "listed twice" in violations(twice)[0].what


class TestNumbers:
    @pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), -0.001])
    @pytest.mark.parametrize("part", ["brokers", "bundles", "topics"])
    def test_rate(self, cluster: Snapshot, changed: Change, part: str, value: float) -> None:
        (found,) = violations(changed(cluster, part, 2, msg_rate_in_per_s=value))
        assert (found.file, found.row) == (part, 3)
        assert "'msg_rate_in_per_s' is" in found.what

    def test_nan_where_it_may_be_unknown(self, cluster: Snapshot, changed: Change) -> None:
        validate(changed(cluster, "brokers", 0, weighted_max_ema=float("nan")))
        assert violations(changed(cluster, "brokers", 0, weighted_max_ema=float("inf")))
        assert violations(changed(cluster, "brokers", 0, weighted_max_ema=-1.0))

    @pytest.mark.parametrize("limit", [-1000.0, -1.0, 0.0])
    def test_limits_may_be_unknown(self, cluster: Snapshot, changed: Change, limit: float) -> None:
        validate(changed(cluster, "brokers", 0, bandwidth_in_limit_kbit_per_s=limit))
        assert violations(changed(cluster, "brokers", 0, bandwidth_in_limit_kbit_per_s=float("nan")))

    def test_usage_below_0_only_as_pulsar_starts_it(self, cluster: Snapshot, changed: Change) -> None:
        validate(changed(cluster, "brokers", 0, cpu_usage_percent=-1.0, cpu_limit_percent=-1.0))
        assert violations(changed(cluster, "brokers", 0, cpu_usage_percent=-1.0))
        assert violations(changed(cluster, "brokers", 0, cpu_usage_percent=-2.0, cpu_limit_percent=-1.0))

    @pytest.mark.parametrize(
        ("part", "column"),
        [("brokers", "topics"), ("bundles", "producers"), ("bundles", "long_term_samples"), ("topics", "consumers")],
    )
    def test_count_below_0(self, cluster: Snapshot, changed: Change, part: str, column: str) -> None:
        (found,) = violations(changed(cluster, part, 0, **{column: -1}))
        assert (found.row, found.what) == (1, f"'{column}' is -1.")

    def test_minus_one_where_it_means_unknown(self, cluster: Snapshot, changed: Change) -> None:
        validate(changed(cluster, "brokers", 0, reported_bundles=-1))
        validate(changed(cluster, "bundles", 0, owner=-1, top_rank=-1))
        assert violations(changed(cluster, "brokers", 0, reported_bundles=-2))


class TestTopics:
    def rename(self, cluster: Snapshot, row: int, name: str, *, rehash: bool = False) -> Snapshot:
        names = cluster.topics.name.to_pylist()
        names[row] = name
        hashes = np.array(cluster.topics.hash)
        if rehash:
            hashes[row] = zlib.crc32(name.encode())
        return replace(
            cluster, topics=replace(cluster.topics, name=pa.array(names, type=pa.large_string()), hash=hashes)
        )

    def test_hash_that_is_not_of_the_name(self, cluster: Snapshot, changed: Change) -> None:
        real = int(cluster.topics.hash[3])
        (found,) = violations(changed(cluster, "topics", 3, hash=real ^ 1))
        assert (found.file, found.row) == ("topics", 4)
        assert f"is 0x{real:08x}, not 0x{real ^ 1:08x}" in found.what

    def test_outside_its_bundle(self, cluster: Snapshot, changed: Change) -> None:
        space = cluster.bundles.namespace
        bundle = int(cluster.topics.bundle[0])
        other = next(i for i in range(len(space)) if space[i] == space[bundle] and i != bundle)
        (found,) = violations(changed(cluster, "topics", 0, bundle=other))
        assert f"outside its bundle {cluster.bundle_names[other]}" in found.what

    @pytest.mark.parametrize("bundle", [-1, 8])
    def test_in_no_bundle(self, cluster: Snapshot, changed: Change, bundle: int) -> None:
        assert violations(changed(cluster, "topics", 5, bundle=bundle))[0].row == 6

    @pytest.mark.parametrize(
        "name", ["x", "persistent://other/one/x", "persistent://acme", "file://{}/x", "persistent://{}/"]
    )
    def test_name(self, cluster: Snapshot, name: str) -> None:
        own = cluster.namespaces[cluster.bundles.namespace[cluster.topics.bundle[9]]]
        found = violations(self.rename(cluster, 9, name.format(own)))
        assert found[0].row == 10
        assert found[0].remedy.startswith("Write domain://tenant/namespace/topic")

    @pytest.mark.parametrize("name", ["non-persistent://t/n/x", "persistent://t/n/a/b c\u00e4\n"])
    def test_name_as_pulsar_writes_them(self, name: str) -> None:
        topics = make_topics([zlib.crc32(name.encode())], name=pa.array([name], type=pa.large_string()), bundle=0)
        validate(replace(of_ranges([(0, FULL_HIGH)]), topics=topics))

    def test_twice(self, cluster: Snapshot) -> None:
        topics = cluster.topics
        both = [0, 1, 2, 1]
        repeated = make_topics(topics.hash[both], name=topics.name.take(pa.array(both)), bundle=topics.bundle[both])
        (found,) = violations(replace(cluster, topics=repeated))
        assert (found.row, "first in row 2" in found.what) == (4, True)

    def test_equal_hashes_of_other_names_are_fine(self) -> None:
        # plumless and buckeroo are a known pair of equal CRC-32; a common prefix keeps them equal.
        names = [f"persistent://t/n/{name}" for name in ("plumless", "buckeroo")]
        hashes = [zlib.crc32(n.encode()) for n in names]
        assert hashes[0] == hashes[1]
        topics = make_topics(hashes, name=pa.array(names, type=pa.large_string()), bundle=0)
        validate(replace(of_ranges([(0, FULL_HIGH)]), topics=topics))

    def test_the_hash_that_pulsar_finds_no_bundle_for(self) -> None:
        name = topic_of_hash(b"persistent://t/n/", FULL_HIGH)
        topics = make_topics([FULL_HIGH], name=pa.array([name], type=pa.large_string()), bundle=0)
        (found,) = violations(replace(of_ranges([(0, FULL_HIGH)]), topics=topics))
        assert "Pulsar finds no bundle" in found.what


def topic_of_hash(prefix: bytes, wanted: int) -> str:
    """Return a topic name with a given CRC-32: CRC is linear, so that 32 letters of two kinds solve it."""
    base = bytearray(prefix + b"`" * 40)
    start = zlib.crc32(base)
    rows = []
    for at in range(40):
        flipped = bytearray(base)
        flipped[len(prefix) + at] ^= 1
        rows.append((zlib.crc32(flipped) ^ start, 1 << at))
    need, chosen = start ^ wanted, 0
    for bit in range(32):
        pivot = next(r for r in rows if r[0] >> bit & 1)
        rows.remove(pivot)
        rows = [(v ^ pivot[0], m ^ pivot[1]) if v >> bit & 1 else (v, m) for v, m in rows]
        if need >> bit & 1:
            need, chosen = need ^ pivot[0], chosen ^ pivot[1]
    for at in range(40):
        base[len(prefix) + at] ^= chosen >> at & 1
    assert zlib.crc32(base) == wanted
    return base.decode()


class TestTheRest:
    def test_more_than_100_are_counted(self) -> None:
        edges = list(range(0, 600, 2))
        snapshot = of_ranges([(low, low + 1) for low in edges])
        with pytest.raises(SnapshotError) as caught:
            validate(snapshot)
        assert len(caught.value.violations) == 100
        assert caught.value.total == 300  # a hole after each

    def test_files_are_named_as_the_caller_names_them(self, cluster: Snapshot, changed: Change) -> None:
        with pytest.raises(SnapshotError, match=r"bundles\.parquet, row 1: 'topics' is -3\."):
            validate(changed(cluster, "bundles", 0, topics=-3), {"bundles": "bundles.parquet"})

    def test_too_many_brokers(self) -> None:
        brokers = make_brokers(tuple(f"b{i}:1" for i in range(20_001)))
        assert "the maximum is 20,000" in violations(replace(of_ranges([(0, FULL_HIGH)]), brokers=brokers))[0].what

    @pytest.mark.parametrize("info", [{"cluster": " "}, {"captured_at_ms": -1}, {"captured_at_ms": LAST_MS + 1}])
    def test_info(self, cluster: Snapshot, info: dict[str, Any]) -> None:
        assert violations(replace(cluster, info=replace(cluster.info, **info)))[0].file == "info"

    def test_a_number_whose_sum_has_no_end(self, cluster: Snapshot, changed: Change) -> None:
        validate(changed(cluster, "bundles", 0, msg_rate_in_per_s=1e18))
        (found,) = violations(changed(cluster, "bundles", 0, msg_rate_in_per_s=1e308))
        assert (found.row, "1e+18 at most" in found.remedy) == (1, True)

    def test_a_percentage_that_single_precision_cannot_hold(self, cluster: Snapshot, changed: Change) -> None:
        validate(changed(cluster, "brokers", 0, cpu_usage_percent=1e18, cpu_limit_percent=1e-18))
        (found,) = violations(changed(cluster, "brokers", 0, cpu_limit_percent=1e-40))
        assert (found.row, "0 or at least 1e-18" in found.remedy) == (1, True)

    @pytest.mark.parametrize("sign", ["\u202e", "\x1b", "\0", "\u2066"])
    @pytest.mark.parametrize("name", ["cluster", "leader", "source", "description", "warnings"])
    def test_signs_that_hide_what_a_text_says(self, cluster: Snapshot, name: str, sign: str) -> None:
        text = f"a{sign}b"
        value: Any = (text,) if name == "warnings" else text
        (found,) = violations(replace(cluster, info=replace(cluster.info, **dict[str, Any]({name: value}))))
        assert f"'{name}' contains control characters" in found.what
        assert found.remedy

    def test_a_report_of_a_year_that_no_calendar_has(self, cluster: Snapshot, changed: Change) -> None:
        validate(changed(cluster, "brokers", 1, updated_at_ms=LAST_MS))
        (found,) = violations(changed(cluster, "brokers", 1, updated_at_ms=LAST_MS + 1))
        assert (found.row, "end of the year 9999" in found.remedy) == (2, True)

    @pytest.mark.parametrize(
        "policies",
        [
            Policies(isolation=(IsolationPolicy("", ("a",), ("b",)),)),
            Policies(isolation=(IsolationPolicy("p", ("a",), ("(",)),)),
            Policies(isolation=(IsolationPolicy("p", ("a",), ("b",), ("(",)),)),
            Policies(failure_domains={"d": ("b:1", "")}),
            Policies(failure_domains={"d": ("x" * 4_097,)}),
            Policies(failure_domains={"\ud800": ("b:1",)}),
            Policies(anti_affinity_group={"a/b": "x" * 4_097}),
            Policies(dispatch_rates=(DispatchRatePolicy("dispatch", "a/b", DispatchRate(2**31)),)),
            Policies(isolation=(IsolationPolicy("p", ("a",), ("b",), min_limit=-1),)),
            Policies(anti_affinity_group={"a": "g"}),
            Policies(dispatch_rates=(DispatchRatePolicy("dispatch", "a", DispatchRate()),)),
            Policies(dispatch_rates=(DispatchRatePolicy("dispatch", "a/b", DispatchRate(period_s=0)),)),
        ],
    )
    def test_policies(self, cluster: Snapshot, policies: Policies) -> None:
        assert violations(replace(cluster, policies=policies))[0].file == "policies"

    @pytest.mark.parametrize("name", ["topics", "producers", "consumers"])
    def test_what_pulsar_counts_in_32_bits(self, cluster: Snapshot, changed: Change, name: str) -> None:
        validate(changed(cluster, "bundles", 1, **{name: 2**31 - 1}))
        (found,) = violations(changed(cluster, "bundles", 1, **{name: 2**31}))
        assert "2,147,483,647" in found.remedy

    def test_text_that_is_no_name(self, cluster: Snapshot, changed: Change) -> None:
        assert violations(changed(cluster, "brokers", 0, version="4.2\x00"))[0].row == 1
