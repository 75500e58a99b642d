"""specified_positions_divide: cuts a bundle at the positions that were asked for.

Mirrors `SpecifiedPositionsBundleSplitAlgorithm` of Pulsar 4.2.4, its internal `force` variant included.
"""

from planner.model.decisions import Reason, ReasonCode
from planner.model.errors import PulsarError
from planner.model.settings import Settings
from planner.splitting.protocol import SplitAnswer, SplitRequest

__all__ = ["ALGORITHM", "SpecifiedPositionsDivide"]

_KEPT = ReasonCode("specified_positions_divide.inside", "position {position:.0f} lies strictly inside", acts=True)
_DROPPED = ReasonCode("specified_positions_divide.outside", "position {position:.0f} does not lie strictly inside")
_FEW = ReasonCode("specified_positions_divide.too_few_topics", "{topics:.0f} topics; at least two are needed")


class SpecifiedPositionsDivide:
    """See the module."""

    name = "specified_positions_divide"
    java_class = "SpecifiedPositionsBundleSplitAlgorithm"
    summary = "Cuts at the positions given with the request; those outside the bundle are dropped."
    settings: tuple[str, ...] = ()
    reasons = (_KEPT, _DROPPED, _FEW)

    def boundaries(self, request: SplitRequest, config: Settings) -> SplitAnswer:
        """Answer the positions strictly inside, sorted, repetitions kept; see `SplitAlgorithm`.

        Raises:
            PulsarError: No position was given.
        """
        del config
        if not request.positions:
            raise PulsarError(
                "IllegalArgumentException",
                "specified_positions_divide needs positions, and none were given.",
                remedy="Give positions, or choose another algorithm.",
            )
        size = 0 if request.topic_hashes is None else len(request.topic_hashes)
        if not request.force and size <= 1:
            return SplitAnswer(None, (Reason(_FEW, None, None, {"topics": float(size)}),))
        reasons = []
        kept = []
        for position in sorted(request.positions):
            inside = request.low < position < request.high
            reasons.append(Reason(_KEPT if inside else _DROPPED, None, None, {"position": float(position)}))
            if inside:
                kept.append(position)
        return SplitAnswer(tuple(kept) or None, tuple(reasons))


ALGORITHM = SpecifiedPositionsDivide()
