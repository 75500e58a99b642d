"""What the namespace's bundle factory accepts or refuses of an algorithm's answer.

Mirrors `NamespaceBundleFactory.splitBundles` of Pulsar 4.2.4.
"""

from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from planner.cluster.errors import PulsarError
from planner.cluster.ranges import format_range


@dataclass(frozen=True, slots=True)
class SplitResult:
    """A split that the factory accepts.

    Attributes:
        children: Ranges of the children, ascending.
        boundaries: Boundaries of the namespace afterwards.
    """

    children: tuple[tuple[int, int], ...]
    boundaries: tuple[int, ...]


def apply_split(boundaries: Sequence[int], bundle: tuple[int, int], cuts: Sequence[int]) -> SplitResult:
    """Insert new boundaries into those of the namespace.

    Args:
        boundaries: Boundaries of the namespace, ascending.
        bundle: Range of the bundle to split.
        cuts: New boundaries.

    Raises:
        PulsarError: `IllegalArgumentException`, the range holds a single hash, a cut does not lie strictly inside, or a
            cut is repeated; `ServiceUnitNotReadyException`, the range is no bundle of the namespace.
    """
    low, high = bundle
    if high - low <= 1:
        raise PulsarError(
            "IllegalArgumentException",
            f"{format_range(low, high)} cannot be split further: it holds a single hash.",
            remedy="Choose another bundle.",
        )
    inside = sorted(cuts)
    for cut in inside:
        if not low < cut < high:
            raise PulsarError(
                "IllegalArgumentException",
                f"The boundary 0x{cut:08x} does not lie strictly inside {format_range(low, high)}.",
                remedy="Topics with equal hashes cannot be separated; choose another algorithm or position.",
            )
    at = bisect_left(boundaries, low)
    if at + 1 >= len(boundaries) or boundaries[at] != low or boundaries[at + 1] != high:
        raise PulsarError(
            "ServiceUnitNotReadyException",
            f"{format_range(low, high)} is not a bundle of the namespace.",
            remedy="Choose one of its bundles.",
        )
    if len(set(inside)) != len(inside):
        raise PulsarError(
            "IllegalArgumentException",
            "A boundary occurs twice, so a child would be empty.",
            remedy="Use each boundary once.",
        )
    after = list(boundaries)
    for cut in inside:
        insort(after, cut)
    ends = [low, *inside, high]
    return SplitResult(tuple(pairwise(ends)), tuple(after))
