"""topic_count_equally_divide: cuts a bundle between its two central topic hashes.

Mirrors `TopicCountEquallyDivideBundleSplitAlgorithm` of Pulsar 4.2.4.
"""

import numpy as np

from planner.cluster.decisions import ReasonCode
from planner.cluster.settings import Settings
from planner.pulsar.splitting.protocol import SplitAnswer, SplitExample, SplitRequest

_MIDDLE = ReasonCode(
    "topic_count_equally_divide.middle",
    (
        "cut at 0x{boundary:08x}, halfway between 0x{left:08x} and 0x{right:08x}, the central hashes of "
        "{topics:.0f} topics"
    ),
    acts=True,
)
_FEW = ReasonCode("topic_count_equally_divide.too_few_topics", "{topics:.0f} topics; at least two are needed")
_UNKNOWN = ReasonCode("topic_count_equally_divide.unknown_topics", "its topics are not listed")


class TopicCountEquallyDivide:
    """The algorithm; its contract is `SplitAlgorithm`."""

    name = "topic_count_equally_divide"
    java_class = "TopicCountEquallyDivideBundleSplitAlgorithm"
    summary = "Cuts halfway between the two central topics, so that both halves have the same number of topics."
    settings: tuple[str, ...] = ()
    needs_positions = False
    reads_topics = True
    reads_traffic = False
    finds_none = "it finds no position if the topics have equal hashes or there is only one"
    differences: tuple[str, ...] = (
        "The Concepts page cuts its example at 0x50000000; the middle of 0x35000000 and 0x65000000 is 0x4d000000.",
    )
    examples: tuple[SplitExample, ...] = (
        SplitExample(
            0,
            0x80000000,
            (0x10, 0x20, 0x35, 0x65, 0x70, 0x75),
            (0x50000000,),
            why="The middle of 0x35000000 and 0x65000000 is taken as if the digits were decimal.",
        ),
    )

    def boundaries(self, request: SplitRequest, config: Settings) -> SplitAnswer:
        """Answer the middle of the central hashes; see `SplitAlgorithm`.

        With equal central hashes the answer can be the lower end of the bundle, which the bundle factory then refuses.
        """
        del config
        if request.topic_hashes is None:
            return SplitAnswer(None, (_UNKNOWN.of(),))
        size = len(request.topic_hashes)
        if size <= 1:
            return SplitAnswer(None, (_FEW.of(size),))
        hashes = np.sort(request.topic_hashes)
        left, right = int(hashes[max(size // 2 - 1, 0)]), int(hashes[size // 2])
        boundary = left + (right - left) // 2
        return SplitAnswer((boundary,), (_MIDDLE.of(boundary, left, right, size),))


ALGORITHM = TopicCountEquallyDivide()
"""The algorithm, as the registry lists it."""
