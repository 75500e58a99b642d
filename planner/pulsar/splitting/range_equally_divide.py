"""range_equally_divide: cuts a bundle in the middle of its range, whatever its topics.

Mirrors `RangeEquallyDivideBundleSplitAlgorithm` of Pulsar 4.2.4.
"""

from planner.cluster.decisions import ReasonCode
from planner.cluster.ranges import middle_of
from planner.cluster.settings import Settings
from planner.pulsar.splitting.protocol import SplitAnswer, SplitExample, SplitRequest

_MIDDLE = ReasonCode(
    "range_equally_divide.middle",
    "cut at 0x{boundary:08x}, the middle of the range, regardless of the topics",
    acts=True,
)


class RangeEquallyDivide:
    """The algorithm; its contract is `SplitAlgorithm`."""

    name = "range_equally_divide"
    java_class = "RangeEquallyDivideBundleSplitAlgorithm"
    summary = "Cuts the range in the middle, regardless of the topics. The default."
    settings: tuple[str, ...] = ()
    needs_positions = False
    reads_topics = False
    reads_traffic = False
    finds_none = "it halves the range, which fails only if nothing is left to halve"
    differences: tuple[str, ...] = (
        "The Concepts page writes both ends of a range as open; the lower end belongs to the bundle.",
    )
    examples: tuple[SplitExample, ...] = (SplitExample(0, 0x80000000, (), (0x40000000,)),)

    def boundaries(self, request: SplitRequest, config: Settings) -> SplitAnswer:
        """Answer the middle of the range; see `SplitAlgorithm`.

        The middle of a single hash is its lower end, which the bundle factory refuses.
        """
        del config
        middle = middle_of(request.low, request.high)
        return SplitAnswer((middle,), (_MIDDLE.of(middle),))


ALGORITHM = RangeEquallyDivide()
"""The algorithm, as the registry lists it."""
