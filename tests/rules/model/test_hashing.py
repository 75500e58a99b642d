"""Topic names and hashes, Java's string hash, and the order of its maps."""

import zlib
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.cluster.errors import FormatError
from planner.cluster.hashing import (
    _sorted,
    grouped_map_order,
    hash_map_order,
    hash_map_size,
    java_string_hash,
    java_string_hashes,
    partition_index,
    topic_hash,
    topic_hashes,
)
from planner.cluster.topic_names import full_topic_name, namespace_of_topic

texts = st.text(st.characters(codec="utf-8"), max_size=60)


def java_hash_by_the_book(text: str) -> int:
    """The sum of the UTF-16 units, each times a power of 31, as the documentation of `String.hashCode` has it."""
    encoded = text.encode("utf-16-be")
    units = [int.from_bytes(encoded[at : at + 2], "big") for at in range(0, len(encoded), 2)]
    total = sum(unit * pow(31, len(units) - 1 - at, 2**32) for at, unit in enumerate(units)) % 2**32
    return total - 2**32 if total >= 2**31 else total


class TestTopicNames:
    # Answers of `TopicName` 4.2.4 to the same names.
    @pytest.mark.parametrize(
        ("name", "full"),
        [
            ("x", "persistent://public/default/x"),
            ("t/n/x", "persistent://t/n/x"),
            ("persistent://a/b/c", "persistent://a/b/c"),
            ("non-persistent://a/b/c-partition-01", "non-persistent://a/b/c-partition-01"),
            ("x -y", "persistent://public/default/x -y"),
            ("persistent://a/b/ c", "persistent://a/b/ c"),
            ("persistent://a/b/c?d#e", "persistent://a/b/c?d#e"),
            ("persistent://a.b/c=d/c", "persistent://a.b/c=d/c"),
            ("persistent://a/b:8080/ü", "persistent://a/b:8080/ü"),
        ],
    )
    def test_completed(self, name: str, full: str) -> None:
        assert full_topic_name(name) == full

    @pytest.mark.parametrize(
        "name",
        [
            "",
            " ",
            "a/b",
            "a/b/c/d",
            "/x",
            "x/",
            "persistent://a/b",
            "persistent://a/b/",
            "persistent://a//c",
            "persistent://a/b/c/d",
            "persistent://a /b/c",
            "persistent://a$b/c/c",
            "persistent:/a/b/c",
            "foo://a/b/c",
            "a/b/c://d",
        ],
    )
    def test_refused(self, name: str) -> None:
        with pytest.raises(FormatError):
            full_topic_name(name)

    def test_namespace(self) -> None:
        assert full_topic_name("x", "t/n") == "persistent://t/n/x"
        assert namespace_of_topic("non-persistent://t/n/x") == "t/n"
        with pytest.raises(FormatError):
            namespace_of_topic("t/n/x")

    @pytest.mark.parametrize(
        ("name", "index"),
        [
            ("x", -1),
            ("x-partition-0", 0),
            ("x-partition-12", 12),
            ("x-partition-1-partition-2", 2),
            ("x-partition-01", -1),
            ("x-partition--1", -1),
            ("x-partition-+5", -1),
            ("x-partition-", -1),
            ("x-partition-1\n", -1),
            ("x-partition-2147483647", 2147483647),
            ("x-partition-2147483648", -1),
            ("x-partition-" + "9" * 6000, -1),
        ],
    )
    def test_partition(self, name: str, index: int) -> None:
        assert partition_index(name) == index


class TestTopicHash:
    def test_of_the_release(self) -> None:
        assert topic_hash("persistent://public/default/my-topic") == 0x2BAD45F7
        assert topic_hash("persistent://public/default/my-topic-partition-0") == 0x3D4B4235
        assert topic_hash("non-persistent://public/default/my-topic") == 0x831E214A

    @given(st.lists(texts, max_size=10))
    def test_many_are_each(self, names: list[str]) -> None:
        encoded = [name.encode() for name in names]
        assert topic_hashes(encoded).tolist() == [topic_hash(name) for name in names] == [*map(zlib.crc32, encoded)]


class TestJavaStringHash:
    def test_known(self) -> None:
        assert java_string_hash("") == 0
        assert java_string_hash("polygenelubricants") == -(2**31)
        assert java_string_hash("Aa") == java_string_hash("BB") == 2112

    @given(texts)
    def test_as_documented(self, text: str) -> None:
        assert java_string_hash(text) == java_hash_by_the_book(text)

    @given(st.lists(texts | st.text("abc\0", max_size=8), max_size=20))
    def test_many_are_each(self, many: list[str]) -> None:
        assert java_string_hashes(many).tolist() == [java_string_hash(text) for text in many]


def walk(hashes: Sequence[int], size: int) -> list[int]:
    """Put keys into the buckets of a map one after the other, then visit it."""
    buckets: list[list[int]] = [[] for _ in range(size)]
    for at, value in enumerate(hashes):
        unsigned = value % 2**32
        buckets[(unsigned ^ unsigned >> 16) & (size - 1)].append(at)
    return [at for bucket in buckets for at in bucket]


def grown(count: int) -> int:
    size = 16
    while count > 0.75 * size:
        size *= 2
    return size


java_hashes = st.lists(st.integers(-(2**31), 2**31 - 1), max_size=120)


class TestMapOrder:
    # What `java.util.HashMap` of OpenJDK 17 answers.
    def test_of_a_real_map(self) -> None:
        names = [f"h{n}" for n in range(10)] + ["low"]
        order = hash_map_order(java_string_hashes(names))
        assert [names[i] for i in order] == ["h8", "h9", "low", *(f"h{n}" for n in range(8))]

    @pytest.mark.parametrize(
        ("step", "expected"),
        [
            (16, [7, 4, 2, 11, 0, 8, 6, 9, 10, 5, 1, 3]),
            (1, [22, 9, 11, 6, 17, 14, 0, 3, 20, 2, 23, 18, 15, 12, 5, 8, 1, 10, 13, 4, 19, 16, 21, 7]),
        ],
    )
    def test_a_map_that_grows_turns_parts_of_its_buckets_round(self, step: int, expected: list[int]) -> None:
        """What `java.util.concurrent.ConcurrentHashMap` of OpenJDK 17 answers."""
        hashes = java_string_hashes([f"b{at * step}:8080" for at in range(len(expected))])
        assert hash_map_order(hashes, concurrent=True).tolist() == expected
        assert hash_map_order(hashes, hash_map_size(len(hashes), concurrent=True)).tolist() != expected

    @given(java_hashes)
    def test_buckets_ascend(self, values: list[int]) -> None:
        hashes = np.array(values, dtype=np.int32)
        order = hash_map_order(hashes).tolist()
        assert sorted(order) == list(range(len(values)))
        assert order == walk(values, grown(len(values)))
        assert hash_map_order(hashes, 64).tolist() == walk(values, 64)

    @pytest.mark.parametrize(("count", "concurrent"), [(12, False), (13, False), (11, True), (12, True)])
    def test_when_a_map_grows(self, count: int, *, concurrent: bool) -> None:
        """A `HashMap` grows with its 13th key, a `ConcurrentHashMap` with its 12th; then 16 leaves the bucket of 0."""
        values = np.array([*range(count - 1), 16], dtype=np.int32)
        order = hash_map_order(values, concurrent=concurrent).tolist()
        has_grown = count == (12 if concurrent else 13)
        assert order.index(count - 1) == (count - 1 if has_grown else 1)

    @given(st.lists(java_hashes, min_size=1, max_size=5), st.booleans())
    def test_many_maps_are_each(self, maps: list[list[int]], concurrent: bool) -> None:  # noqa: FBT001
        groups = np.repeat(np.arange(len(maps), dtype=np.int32), [len(keys) for keys in maps])
        hashes = np.array([value for keys in maps for value in keys], dtype=np.int32)
        each = [
            np.flatnonzero(groups == number)[hash_map_order(np.array(keys, dtype=np.int32), concurrent=concurrent)]
            for number, keys in enumerate(maps)
        ]
        assert grouped_map_order(hashes, groups, concurrent=concurrent).tolist() == np.concatenate(each).tolist()

    @given(java_hashes, st.integers(0, 300))
    def test_a_part_of_a_map(self, values: list[int], others: int) -> None:
        hashes, groups = np.array(values, dtype=np.int32), np.zeros(len(values), dtype=np.int32)
        order = grouped_map_order(hashes, groups, np.array([len(values) + others]))
        assert order.tolist() == walk(values, grown(len(values) + others))


@pytest.mark.parametrize("size", [0, 1, 499, 500, 3_000, 70_000])
@pytest.mark.parametrize("bits", [1, 15, 16, 17, 33, 62])
def test_numbers_sorted_by_digits_are_in_stable_order(size: int, bits: int) -> None:
    numbers = np.random.default_rng(size + bits).integers(0, 2**bits, size)
    kinds = (numbers, numbers.astype(np.uint32)) if bits <= 32 else (numbers,)
    for one in kinds:
        np.testing.assert_array_equal(_sorted(one), np.argsort(one, kind="stable"))
