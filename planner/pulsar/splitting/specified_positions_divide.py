"""specified_positions_divide: cuts a bundle at the positions that were asked for.

Mirrors `SpecifiedPositionsBundleSplitAlgorithm` of Pulsar 4.2.4, its internal `force` variant included.
"""

from planner.cluster.decisions import ReasonCode
from planner.cluster.errors import PulsarError
from planner.cluster.settings import Settings
from planner.pulsar.splitting.protocol import SplitAnswer, SplitExample, SplitRequest

_KEPT = ReasonCode("specified_positions_divide.inside", "cut at 0x{position:08x}, as requested", acts=True)
_DROPPED = ReasonCode(
    "specified_positions_divide.outside", "position {position:.0f} does not lie strictly inside {low:.0f} to {high:.0f}"
)
_FEW = ReasonCode("specified_positions_divide.too_few_topics", "{topics:.0f} topics; at least two are needed")
_UNKNOWN = ReasonCode("specified_positions_divide.unknown_topics", "its topics are not listed")


class SpecifiedPositionsDivide:
    """The algorithm; its contract is `SplitAlgorithm`."""

    name = "specified_positions_divide"
    java_class = "SpecifiedPositionsBundleSplitAlgorithm"
    summary = "Cuts at the positions of the request; positions outside the bundle are ignored."
    settings: tuple[str, ...] = ()
    needs_positions = True
    reads_topics = False
    reads_traffic = False
    finds_none = "it needs positions, so every automatic split fails"
    differences: tuple[str, ...] = ()
    examples: tuple[SplitExample, ...] = (
        SplitExample(0, 0x40000000, (0x30, 0x35), (0x33000000,), positions=(0x33000000,)),
    )

    def boundaries(self, request: SplitRequest, config: Settings) -> SplitAnswer:
        """Answer the positions strictly inside, sorted, repetitions kept; see `SplitAlgorithm`.

        Raises:
            PulsarError: No position was given.
        """
        del config
        if not request.positions:
            raise PulsarError(
                "IllegalArgumentException",
                "specified_positions_divide needs positions, and the request has none.",
                remedy="Specify positions, or choose another algorithm.",
            )
        if not request.force:
            if request.topic_hashes is None:
                return SplitAnswer(None, (_UNKNOWN.of(),))
            if len(request.topic_hashes) <= 1:
                return SplitAnswer(None, (_FEW.of(len(request.topic_hashes)),))
        low, high = request.low, request.high
        kept = tuple(position for position in sorted(request.positions) if low < position < high)
        reasons = tuple(
            _KEPT.of(position) if low < position < high else _DROPPED.of(position, low, high)
            for position in sorted(request.positions)
        )
        return SplitAnswer(kept or None, reasons)


ALGORITHM = SpecifiedPositionsDivide()
"""The algorithm, as the registry lists it."""
