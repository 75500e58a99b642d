"""Bundle ranges: intervals of the 32-bit hash space.

Mirrors `NamespaceBundle`, `NamespaceBundles` and `NamespaceBundleFactory` of Pulsar 4.2.4.
"""

import re
from bisect import bisect_left
from collections.abc import Sequence

import numpy as np

from planner.cluster.arrays import FloatArray, Int64Array
from planner.cluster.errors import FormatError, PulsarError

HASH_SPACE = 1 << 32
"""Number of hashes."""

FULL_HIGH = HASH_SPACE - 1
"""The last boundary of every namespace, `0xffffffff`."""

_RANGE = re.compile(r"0x([0-9a-f]{8})_0x([0-9a-f]{8})")
_BUNDLE = re.compile(r"(?P<namespace>[^/\s]+(?:/[^/\s]+){1,2})/(?P<range>0x[0-9a-f]{8}_0x[0-9a-f]{8})")


def format_range(low: int, high: int) -> str:
    """Return a range as Pulsar writes it, such as `0x00000000_0x40000000`."""
    return f"0x{low:08x}_0x{high:08x}"


def parse_range(text: str, where: str = "") -> tuple[int, int]:
    """Read a range such as `0x00000000_0x40000000`.

    Raises:
        FormatError: The text has another shape, or the range is empty.
    """
    found = _RANGE.fullmatch(text)
    if not found:
        raise FormatError(
            f"'{text}' is not a bundle range.",
            where=where,
            remedy="Write two boundaries as in 0x00000000_0x40000000, lower-case, eight digits each.",
        )
    low, high = int(found[1], 16), int(found[2], 16)
    if low >= high:
        raise FormatError(
            f"The range {text} is empty.", where=where, remedy="The lower boundary must come before the upper one."
        )
    return low, high


def bundle_name(namespace: str, low: int, high: int) -> str:
    """Return the full name of a bundle, `tenant/namespace/0x…_0x…`."""
    return f"{namespace}/{format_range(low, high)}"


def parse_bundle(name: str, where: str = "") -> tuple[str, int, int]:
    """Read a full bundle name.

    Returns:
        Namespace (`tenant/namespace`, of old ones `tenant/cluster/namespace`), lower and upper boundary.

    Raises:
        FormatError: The name has another shape, or its range is empty.
    """
    found = _BUNDLE.fullmatch(name)
    if not found:
        raise FormatError(
            f"'{name}' is not a bundle name.",
            where=where,
            remedy="Write tenant/namespace/0x00000000_0x40000000.",
        )
    low, high = parse_range(found["range"], where)
    return found["namespace"], low, high


def middle_of(low: int, high: int) -> int:
    """Return where a range is cut in the middle, rounded down."""
    return low + (high - low) // 2


def equal_boundaries(count: int) -> tuple[int, ...]:
    """Return the boundaries of a namespace created with `count` bundles.

    The step is the integer part of 2^32 / count; the last bundle takes the remainder. Mirrors
    `NamespaceBundleFactory.getBundles(namespace, numBundles)` of 4.2.4.

    Raises:
        PulsarError: The count is not within 1 … 2^32.
    """
    if not 1 <= count <= HASH_SPACE:
        raise PulsarError(
            "IllegalArgumentException",
            f"A namespace cannot have {count} bundles.",
            remedy="Use a number from 1 to 4294967296.",
        )
    step = HASH_SPACE // count
    return (*(step * i for i in range(count)), FULL_HIGH)


def bundle_of_hash(boundaries: Sequence[int], topic_hash: int) -> int:
    """Return the index of the bundle that holds a hash.

    Args:
        boundaries: Sorted boundaries of the namespace, first 0x00000000, last 0xffffffff.
        topic_hash: Unsigned 32-bit hash.

    Raises:
        PulsarError: The hash is exactly 0xffffffff. Pulsar's own lookup finds that boundary itself, one past the last
            bundle, and fails, although the last range is documented as closed.
    """
    at = bisect_left(boundaries, topic_hash)
    index = at if at < len(boundaries) and boundaries[at] == topic_hash else at - 1
    if index >= len(boundaries) - 1:
        raise PulsarError(
            "IndexOutOfBoundsException",
            f"Hash 0x{topic_hash:08x} is the end of the hash space; Pulsar finds no bundle for it.",
            remedy="Rename the topic.",
        )
    return index


def bundles_of_hashes(boundaries: Int64Array, hashes: Int64Array) -> Int64Array:
    """Return the bundle index of every hash; the same rule as `bundle_of_hash` over arrays. Shape (hashes,).

    A hash of 0xffffffff gives `len(boundaries) - 1`, one past the last bundle, for the caller to report.
    """
    return np.searchsorted(boundaries, hashes, side="right") - 1


def dividing_boundary(hashes: Int64Array, traffic: FloatArray) -> int | None:
    """Return the boundary that divides traffic best, halfway between two hashes; None where nothing can be divided.

    Args:
        hashes: Hash of each topic, in any order. Shape (topics,).
        traffic: What each topic counts for. Shape (topics,).
    """
    order = np.argsort(hashes, kind="stable")
    places, sums = hashes[order], np.cumsum(traffic[order])
    between = np.flatnonzero(places[1:] != places[:-1])
    if not len(between) or not sums[-1]:
        return None
    at = int(between[np.argmin(np.abs(sums[between] - sums[-1] / 2))])
    return int(places[at]) + (int(places[at + 1]) - int(places[at]) + 1) // 2
