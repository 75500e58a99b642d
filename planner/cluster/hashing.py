"""Topic hashes, Java string hashes, and the iteration order of Java's hash maps.

Topic hash: `ConsistentHashingTopicBundleAssigner` of Pulsar 4.2.4 (CRC-32 of the full topic name in UTF-8). Map order:
`java.util.HashMap` and `java.util.concurrent.ConcurrentHashMap` of OpenJDK 17, whose order decides ties in Pulsar.
"""

import zlib
from collections.abc import Iterable, Sequence

import numpy as np

from planner.cluster.arrays import Int64Array, IntArray, UInt32Array

PARTITION = "-partition-"
_INT = 2**31 - 1
_INT_DIGITS = 10
_FIRST_PLANE = "\uffff"  # Java reads a number by UTF-16 units, so no digits beyond it


def topic_hash(full_name: str) -> int:
    """Return the unsigned 32-bit hash of a full topic name, such as `persistent://public/default/my-topic`."""
    return zlib.crc32(full_name.encode())


def topic_hashes(full_names: Iterable[bytes], count: int = -1) -> UInt32Array:
    """Return the hash of every full topic name, given as UTF-8; to know their number saves a copy. Shape (names,)."""
    return np.fromiter(map(zlib.crc32, full_names), dtype=np.uint32, count=count)


def partition_index(full_name: str) -> int:
    """Return N of a name ending in `-partition-N`, -1 for a topic that is no partition.

    Leading zeros and numbers above 2^31 - 1 make no partition.
    """
    _, suffix, number = full_name.rpartition(PARTITION)
    if not suffix or not number.isdecimal() or len(number) > _INT_DIGITS or max(number) > _FIRST_PLANE:
        return -1
    index = int(number)
    return index if index <= _INT and len(str(index)) == len(number) else -1


def partitioned_topic(full_name: str) -> str:
    """Return the topic that a partition belongs to; the name as it is for one that is no partition."""
    return full_name.rpartition(PARTITION)[0] if partition_index(full_name) >= 0 else full_name


def java_string_hash(text: str) -> int:
    """Return `String.hashCode` as a signed 32-bit integer, over UTF-16 code units as Java counts them."""
    value = 0
    units = np.frombuffer(text.encode("utf-16-le", "surrogatepass"), dtype="<u2")
    for unit in units.tolist():
        value = (value * 31 + unit) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def java_string_hashes(texts: Sequence[str]) -> IntArray:
    """Return `String.hashCode` of every text; the same rule as `java_string_hash`, by array where all are ASCII.

    Shape (texts,).
    """
    if len(texts) < _FEW:
        return np.fromiter(map(java_string_hash, texts), dtype=np.int32, count=len(texts))
    try:
        matrix = np.array(texts, dtype=np.bytes_)
    except UnicodeEncodeError:
        return np.fromiter(map(java_string_hash, texts), dtype=np.int32, count=len(texts))
    if any(t.endswith("\0") for t in texts):  # numpy drops trailing NULs
        return np.fromiter(map(java_string_hash, texts), dtype=np.int32, count=len(texts))
    width = matrix.dtype.itemsize
    columns = matrix.view(np.uint8).reshape(len(texts), width)
    lengths = np.char.str_len(matrix)
    value = np.zeros(len(texts), dtype=np.uint32)
    for at in range(width):
        value = np.where(at < lengths, value * np.uint32(31) + columns[:, at], value)
    return value.astype(np.uint32).view(np.int32)


_FEW = 16
"""Texts up to which it is quicker to take one after the other."""

_MANY = 500
"""Numbers from which on it pays to sort them digit by digit."""

_FIRST_SIZE = 16
"""Buckets of a map that has not grown."""


def hash_map_order(hashes: IntArray, table_size: int | None = None, *, concurrent: bool = False) -> Int64Array:
    """Return the order in which a Java hash map visits keys that were put in as listed. Shape (keys,).

    Buckets ascend; inside a bucket keys come as they were put in, but that a `ConcurrentHashMap` that grows turns a
    part of each bucket round. This is exact for maps filled one by one, with fewer than eight keys in any bucket.

    Args:
        hashes: `String.hashCode` of the distinct keys.
        table_size: Size of the table when known; otherwise what the number of keys makes it grow to, from 16, doubled
            when more than three quarters are filled.
        concurrent: The map is a `ConcurrentHashMap`, which grows as soon as three quarters are filled: at 12 keys, not
            at 13.

    Returns:
        Positions into `hashes`, in the order of visit.
    """
    size = table_size
    if size is None:
        size = hash_map_size(len(hashes), concurrent=concurrent)
    bucket = hash_map_buckets(hashes, size)
    if not concurrent or size <= _FIRST_SIZE:
        return _sorted(bucket)
    one = np.zeros(len(hashes), dtype=np.int64)
    return _order(bucket.astype(np.int64), _ranks_in_buckets(hashes, one, np.array([size])), len(hashes))


def hash_map_buckets(hashes: IntArray, table_size: int) -> UInt32Array:
    """Return the bucket of a Java hash map that each key is in. Shape (keys,).

    Args:
        hashes: `String.hashCode` of the keys.
        table_size: Size of the table, a power of two.
    """
    return _spread(hashes) & np.uint32(table_size - 1)


def grouped_map_order(
    hashes: IntArray, groups: IntArray, counts: Int64Array | None = None, *, concurrent: bool = False
) -> Int64Array:
    """Return the order in which many Java hash maps are visited one after the other; see `hash_map_order`.

    Args:
        hashes: `String.hashCode` of the keys; those of one map are distinct.
        groups: Which map each key is in, not negative.
        counts: How many keys each map holds, when more than those given. Shape (maps,).
        concurrent: The maps are `ConcurrentHashMap`s.

    Returns:
        Positions into `hashes`: by map, then in the order of visit.
    """
    sizes = _table_sizes(np.bincount(groups) if counts is None else counts, concurrent=concurrent)
    group = groups.astype(np.int64)
    bucket = group * sizes.max(initial=0) + (_spread(hashes) & (sizes - 1).astype(np.uint32)[groups])
    order = _sorted(bucket)
    if not concurrent or (sizes <= _FIRST_SIZE).all():
        return order
    in_order = bucket[order]
    if not (in_order[1:] == in_order[:-1]).any():  # no two keys are in one bucket
        return order
    return _order(bucket, _ranks_in_buckets(hashes, group, sizes), len(hashes))


def _ranks_in_buckets(hashes: IntArray, groups: Int64Array, sizes: Int64Array) -> Int64Array:
    """Return what orders the keys of one bucket of `ConcurrentHashMap`s that grew while they were filled.

    A map doubles as soon as three quarters of its buckets are filled. Of each bucket the keys at its end that all go to
    the same half stay as they are; each of the others is put before those that are already in its half. Shape (keys,).

    Args:
        hashes: `String.hashCode` of the keys.
        groups: Which map each key is in, not negative.
        sizes: Size that the table of each map has grown to.
    """
    spread = _spread(hashes)
    by_map = np.argsort(groups, kind="stable")
    starts = np.searchsorted(groups[by_map], np.arange(len(sizes)))
    put = np.empty(len(hashes), dtype=np.int64)  # how many keys of the map were there before
    put[by_map] = np.arange(len(hashes)) - starts[groups[by_map]]
    rank, size = put.copy(), _FIRST_SIZE
    while size < sizes.max(initial=0):
        there = np.flatnonzero((sizes[groups] > size) & (put < size * 3 // 4))
        bucket = groups[there] * size + (spread[there] & np.uint32(size - 1))
        in_order = _order(bucket, rank[there], len(hashes))
        there, bucket = there[in_order], bucket[in_order]
        half = (spread[there] & np.uint32(size)) != 0
        ends = np.ones(len(there), dtype=np.bool_)  # the last key of its bucket
        ends[:-1] = bucket[1:] != bucket[:-1]
        turns = np.zeros(len(there), dtype=np.bool_)  # the next key of the bucket goes to the other half
        turns[:-1] = ~ends[:-1] & (half[1:] != half[:-1])
        position = np.arange(len(there))
        number: Int64Array = np.cumsum(ends) - ends  # of the bucket, among those that have keys
        last_turn = np.full(len(there), -1, dtype=np.int64)
        last_turn[number[turns]] = position[turns]  # ascending, so that the last one stays
        before = position <= last_turn[number]
        moved = _order(bucket * 2 + half, np.where(before, -position - 1, position), len(hashes))
        rank[there[moved]] = position - len(there)
        size *= 2
    return rank


def _order(bucket: Int64Array, rank: Int64Array, most: int) -> Int64Array:
    """Return keys by bucket, then by rank, from -`most` to `most` - 1, which none of a bucket share. Shape (keys,).

    One column is sorted sooner than `lexsort` sorts two. The largest number in it, maps x buckets x keys of
    a cluster, is far from 2^63.
    """
    return _sorted(bucket * (2 * most) + rank + most)


def _sorted(numbers: Int64Array | UInt32Array) -> Int64Array:
    """Return the stable order of numbers from 0 on. Shape (numbers,).

    NumPy sorts 16 bits by radix, several times as fast as it sorts whole numbers: so one digit of 16 bits after the
    other, the lowest first.
    """
    most = int(numbers.max(initial=0))
    if len(numbers) < _MANY:
        return np.argsort(numbers, kind="stable")
    order = np.argsort((numbers & 0xFFFF).astype(np.uint16), kind="stable")
    for shift in range(16, most.bit_length(), 16):
        digit = ((numbers >> shift) & 0xFFFF).astype(np.uint16)
        order = order[np.argsort(digit[order], kind="stable")]
    return order


def hash_map_size(keys: int, *, concurrent: bool = False) -> int:
    """Return the size of the table that a map of that many keys has grown to; see `hash_map_order`."""
    size = _FIRST_SIZE
    while keys + concurrent > size * 3 // 4:
        size *= 2
    return size


def _table_sizes(counts: Int64Array, *, concurrent: bool) -> Int64Array:
    sizes = np.full(len(counts), _FIRST_SIZE, dtype=np.int64)
    while (small := counts + concurrent > sizes * 3 // 4).any():
        sizes[small] *= 2
    return sizes


def _spread(hashes: IntArray) -> UInt32Array:
    unsigned = np.ascontiguousarray(hashes).view(np.uint32)
    return unsigned ^ (unsigned >> np.uint32(16))
