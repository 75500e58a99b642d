"""The contract of a split algorithm."""

from dataclasses import dataclass
from typing import Protocol

from planner.cluster.arrays import BoolArray, FloatArray, Int64Array
from planner.cluster.decisions import Reason, ReasonCode
from planner.cluster.settings import Settings


@dataclass(frozen=True, eq=False)
class SplitRequest:
    """A bundle to cut and what is known of its topics.

    Attributes:
        low: Lower boundary of the bundle.
        high: Its upper boundary.
        topic_hashes: Hash of each topic in the bundle, in listed order, one entry for each topic even when hashes
            collide; None when the topics could not be listed. Shape (topics,).
        has_stats: Whether the topic's rates are known. Shape (topics,).
        msg_rate_per_s: Message rate in + out. Shape (topics,).
        throughput_bytes_per_s: Throughput in + out. Shape (topics,).
        positions: Boundaries asked for (specified_positions_divide); None when none were given.
        force: Cut even when there are fewer than two topics (Pulsar's internal variant).
    """

    low: int
    high: int
    topic_hashes: Int64Array | None
    has_stats: BoolArray
    msg_rate_per_s: FloatArray
    throughput_bytes_per_s: FloatArray
    positions: tuple[int, ...] | None = None
    force: bool = False


@dataclass(frozen=True, slots=True)
class SplitAnswer:
    """What an algorithm answers.

    Attributes:
        boundaries: New boundaries as Pulsar returns them: unchecked, perhaps equal to an end of the bundle, perhaps
            repeated. None when it answers null, empty when it answers an empty list; neither splits anything.
        reasons: Why the cuts are where they are, or why there is none.
    """

    boundaries: tuple[int, ...] | None
    reasons: tuple[Reason, ...]


class SplitAlgorithm(Protocol):
    """Finds where to cut a bundle. Pure.

    Attributes:
        name: Name in `supportedNamespaceBundleSplitAlgorithms`.
        java_class: Simple class name in Pulsar.
        summary: One sentence for people.
        settings: Real names of the settings it reads.
        reasons: Every kind of reason it can give.
    """

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def java_class(self) -> str: ...  # noqa: D102
    @property
    def summary(self) -> str: ...  # noqa: D102
    @property
    def settings(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def reasons(self) -> tuple[ReasonCode, ...]: ...  # noqa: D102

    def boundaries(self, request: SplitRequest, config: Settings) -> SplitAnswer:
        """Answer where the bundle would be cut.

        Raises:
            PulsarError: Pulsar's algorithm raises (its exception's simple name is carried).
        """
